{
  description = "Read, search, count, edit and continue Claude Code sessions";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forAll = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = (nixpkgs.lib.importTOML ./Cargo.toml).workspace.package;
    in
    {
      packages = forAll (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "threadline";
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          buildAndTestSubdir = "crates/cli";
          cargoBuildType = "dist";
          # The tests need a browser, terminals and git; the hosted workflow runs them.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            export HOME=$TMPDIR
            $out/bin/threadline man > threadline.1
            installManPage threadline.1
            for shell in bash zsh fish; do
              $out/bin/threadline completions $shell > threadline.$shell
            done
            installShellCompletion --cmd threadline \
              --bash threadline.bash --zsh threadline.zsh --fish threadline.fish
          '';
          meta = {
            description = "Read, search, count, edit and continue Claude Code sessions";
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            mainProgram = "threadline";
          };
        };
      });

      devShells = forAll (pkgs: {
        default = pkgs.mkShell {
          packages = [
            pkgs.cargo
            pkgs.clippy
            pkgs.rustc
            pkgs.rustfmt
          ];
        };
      });
    };
}
