//! `cargo xtask dist`: the files of a release.
//!
//! `build` makes the archive of one target, its Debian package (if `cargo-deb` is installed) and its npm
//! package. `finish` adds what covers all targets in the folder: the npm package that selects a binary, the
//! Homebrew formula, the installer and the checksums. Without a word, both are run for this machine.

mod archive;
mod npm;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The release.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The organisation that publishes releases. A placeholder until there is one.
const OWNER: &str = "threadline-org";
/// The largest binary that is packaged, in bytes.
const MAX_BINARY: u64 = 30_000_000;
/// Shells, and the names of the files that they look for.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "threadline.bash"),
    ("zsh", "_threadline"),
    ("fish", "threadline.fish"),
    ("powershell", "_threadline.ps1"),
    ("elvish", "threadline.elv"),
];

/// A result, or a sentence that says what failed.
type DistResult<T> = Result<T, String>;

/// The options of `dist`.
struct DistOptions {
    /// The target triple; `None` for that of this machine.
    target: Option<String>,
    /// The folder of the finished files.
    out: PathBuf,
    /// Whether a binary that exists already is packaged.
    no_build: bool,
    owner: String,
}

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let (builds, finishes, rest) = match args {
        ["build", rest @ ..] => (true, false, rest),
        ["finish", rest @ ..] => (false, true, rest),
        rest => (true, true, rest),
    };
    let done = parse(rest).and_then(|options| {
        fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
        if builds {
            build(&options)?;
        }
        if finishes { summary::finish(&options) } else { Ok(()) }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dist: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: &[&str]) -> DistResult<DistOptions> {
    let out = target_dir().join("release-files");
    let mut options = DistOptions { target: None, out, no_build: false, owner: OWNER.to_owned() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().map(|value| (*value).to_owned()).ok_or(format!("{arg} needs a value"));
        match *arg {
            "--target" => options.target = Some(value()?),
            "--out" => options.out = value()?.into(),
            "--owner" => options.owner = value()?,
            "--no-build" => options.no_build = true,
            other => return Err(format!("unknown option `{other}`")),
        }
    }
    Ok(options)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds the program for one target and packages it.
fn build(options: &DistOptions) -> DistResult<()> {
    let target = match &options.target {
        Some(target) => target.clone(),
        None => host()?,
    };
    let name = if target.contains("windows") { "threadline.exe" } else { "threadline" };
    let binary = target_dir().join(&target).join("dist").join(name);
    if !options.no_build {
        let mut cargo = Command::new("cargo");
        cargo.args(["rustc", "--locked", "--profile", "dist", "--package", "threadline"]);
        cargo.args(["--bin", "threadline", "--target", &target]);
        cargo.arg("--").args(linker_args(&target));
        check(cargo.current_dir(root()))?;
    }
    let size = fs::metadata(&binary).map_err(|error| format!("{}: {error}", binary.display()))?.len();
    println!("{target}: binary of {:.1} MB", size as f64 / 1e6);
    if size > MAX_BINARY {
        return Err(format!("{target}: the binary is larger than {} MB", MAX_BINARY / 1_000_000));
    }
    let extras = write_extras(&binary)?;
    archive::write(&target, &binary, &extras, &options.out)?;
    if target.ends_with("linux-gnu") {
        write_deb(&target, options)?;
    }
    npm::write_platform(&target, &binary, options)
}

/// Returns arguments of rustc that make the linker write a smaller binary. lld keeps one copy of functions
/// with the same code.
fn linker_args(target: &str) -> &'static [&'static str] {
    match target {
        // Rust links this target with lld. Relocations are not packed: glibc before 2.36 cannot read them.
        "x86_64-unknown-linux-gnu" => &["-Clink-arg=-Wl,--icf=all"],
        // The default is the linker of the system. The libc of this target is in the binary, and reads packed
        // relocations.
        "x86_64-unknown-linux-musl" => {
            &["-Clinker=rust-lld", "-Clink-arg=--icf=all", "-Clink-arg=--pack-dyn-relocs=relr"]
        }
        _ => &[],
    }
}

/// Returns the target triple of this machine.
fn host() -> DistResult<String> {
    let about = output(Command::new("rustc").arg("-vV"))?;
    let about = String::from_utf8_lossy(&about).into_owned();
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say what this machine is".to_owned())
}

/// Writes completions and the man page, which the program itself prints. Returns their folder, which the
/// metadata of the Debian package names, too.
fn write_extras(binary: &Path) -> DistResult<PathBuf> {
    let extras = target_dir().join("package-files");
    for folder in ["completions", "man"] {
        fs::create_dir_all(extras.join(folder)).map_err(|error| error.to_string())?;
    }
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(binary).args(["completions", shell]))?;
        write(&extras.join("completions").join(file), &script)?;
    }
    write(&extras.join("man/threadline.1"), &output(Command::new(binary).arg("man"))?)?;
    Ok(extras)
}

fn write_deb(target: &str, options: &DistOptions) -> DistResult<()> {
    let is_installed = Command::new("cargo").args(["deb", "--version"]).output();
    if !is_installed.is_ok_and(|output| output.status.success()) {
        println!("{target}: no Debian package, cargo-deb is not installed (cargo install cargo-deb)");
        return Ok(());
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["deb", "--no-build", "--no-strip", "--package", "threadline", "--profile", "dist"]);
    cargo.args(["--target", target, "--output"]).arg(&options.out);
    check(cargo.current_dir(root()))
}

/// Replaces `@NAME@` in a file of `packaging`.
fn fill(template: &str, values: &[(&str, &str)]) -> DistResult<String> {
    let path = root().join("packaging").join(template);
    let mut text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    Ok(text)
}

fn write(path: &Path, bytes: &[u8]) -> DistResult<()> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> DistResult<()> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// Runs a command to its end.
fn check(command: &mut Command) -> DistResult<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Runs a command and returns its standard output.
fn output(command: &mut Command) -> DistResult<Vec<u8>> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{command:?}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr)));
    }
    Ok(done.stdout)
}
