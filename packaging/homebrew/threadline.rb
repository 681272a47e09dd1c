class Threadline < Formula
  desc "Read, search, count, edit and continue Claude Code sessions"
  homepage "https://github.com/@OWNER@/threadline"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/@OWNER@/threadline/releases/download/v@VERSION@/threadline-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256_MACOS_ARM64@"
    end
    on_intel do
      url "https://github.com/@OWNER@/threadline/releases/download/v@VERSION@/threadline-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256_MACOS_X86_64@"
    end
  end

  on_linux do
    depends_on arch: :x86_64
    url "https://github.com/@OWNER@/threadline/releases/download/v@VERSION@/threadline-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
    sha256 "@SHA256_LINUX_X86_64@"
  end

  def install
    bin.install "threadline"
    man1.install "man/threadline.1"
    bash_completion.install "completions/threadline.bash" => "threadline"
    zsh_completion.install "completions/_threadline"
    fish_completion.install "completions/threadline.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/threadline --version")
    assert_match "Overshot panic", shell_output("#{bin}/threadline --demo list")
  end
end
