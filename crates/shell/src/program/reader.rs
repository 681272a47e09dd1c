//! Programs that change no file, or only files that builds and tests write.

/// Programs that only read, whatever their arguments.
const READERS: &[&str] = &[
    "[",
    "ack",
    "ag",
    "arch",
    "base64",
    "basename",
    "bc",
    "bzcat",
    "cal",
    "cargo-audit",
    "chgrp",
    "chmod",
    "chown",
    "cksum",
    "clear",
    "cloc",
    "cmp",
    "column",
    "comm",
    "crontab",
    "cut",
    "date",
    "df",
    "diff",
    "dig",
    "dirname",
    "dirs",
    "du",
    "egrep",
    "env",
    "expr",
    "fd",
    "fgrep",
    "file",
    "fold",
    "free",
    "gh",
    "grep",
    "groups",
    "hash",
    "head",
    "help",
    "hexdump",
    "host",
    "hostname",
    "htop",
    "id",
    "ifconfig",
    "jobs",
    "join",
    "journalctl",
    "jq",
    "kill",
    "killall",
    "ldd",
    "less",
    "lsb_release",
    "ls",
    "ll",
    "lsof",
    "lscpu",
    "man",
    "md5",
    "md5sum",
    "mkfifo",
    "more",
    "nc",
    "netstat",
    "nl",
    "nm",
    "nproc",
    "nslookup",
    "objdump",
    "od",
    "otool",
    "paste",
    "pgrep",
    "ping",
    "pkill",
    "printenv",
    "ps",
    "pwd",
    "pytest",
    "readelf",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "scc",
    "seq",
    "sha1sum",
    "sha256sum",
    "shasum",
    "shellcheck",
    "sleep",
    "ss",
    "ssh",
    "stat",
    "strings",
    "stty",
    "sum",
    "sw_vers",
    "sync",
    "sysctl",
    "systemctl",
    "tac",
    "tail",
    "test",
    "time",
    "times",
    "tokei",
    "top",
    "tput",
    "tr",
    "tree",
    "tsort",
    "tty",
    "type",
    "ulimit",
    "umask",
    "uname",
    "uniq",
    "uptime",
    "users",
    "vmstat",
    "w",
    "wait",
    "watch",
    "wc",
    "whereis",
    "which",
    "who",
    "whoami",
    "xxd",
    "yes",
    "zcat",
    "zgrep",
    "shopt",
    "pyright",
    "mypy",
    "tsc",
    "vitest",
    "jest",
    "mocha",
    "ctest",
    "tox",
    "nosetests",
    "flake8",
    "pylint",
    "psql",
    "mysql",
    "redis-cli",
    "sqlite3",
    "kubectl",
    "docker-compose",
    "open",
    "pbcopy",
    "xclip",
    "say",
    "notify-send",
];

/// Programs with subcommands that only read, build or test.
const READING_SUBCOMMANDS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "audit",
            "b",
            "bench",
            "build",
            "c",
            "check",
            "clean",
            "clippy",
            "d",
            "doc",
            "help",
            "locate-project",
            "metadata",
            "nextest",
            "owner",
            "pkgid",
            "r",
            "run",
            "search",
            "t",
            "test",
            "tree",
            "verify-project",
            "version",
        ],
    ),
    ("go", &["build", "doc", "env", "list", "run", "test", "tool", "version", "vet"]),
    ("mix", &["compile", "credo", "dialyzer", "test"]),
    ("npm", &["ls", "list", "outdated", "root", "t", "test", "view", "whoami", "audit", "search", "explain"]),
    ("pnpm", &["ls", "list", "outdated", "test", "why"]),
    ("yarn", &["list", "info", "test", "why"]),
    ("bun", &["test"]),
    ("deno", &["check", "lint", "test"]),
    ("pip", &["check", "freeze", "list", "show"]),
    ("pip3", &["check", "freeze", "list", "show"]),
    (
        "docker",
        &[
            "images", "inspect", "logs", "ps", "version", "info", "stats", "top", "port", "pull", "network",
            "volume",
        ],
    ),
    ("dotnet", &["build", "test", "list"]),
    ("gradle", &["build", "check", "test"]),
    ("./gradlew", &["build", "check", "test"]),
    ("mvn", &["compile", "test", "verify", "package"]),
    ("swift", &["build", "test"]),
    ("zig", &["build", "test", "version"]),
    ("bundle", &["list", "show", "check"]),
    ("brew", &["list", "info", "search"]),
    ("rustup", &["show", "which", "toolchain"]),
    ("terraform", &["plan", "show", "validate"]),
    ("ruff", &["check"]),
];

/// Programs that run the program in their arguments, with the words before it.
const RUNNERS: &[&str] = &["npx", "bunx", "uvx"];

/// Options that make a reader write.
const WRITING_OPTIONS: &[&str] =
    &["--fix", "--write", "--in-place", "--fix-only", "--unsafe-fixes", "--update"];

/// Returns whether a program changes no file that exists besides the outputs of builds.
pub(crate) fn only_reads(name: &str, arguments: &[&str]) -> bool {
    let has =
        |options: &[&str]| arguments.iter().any(|word| options.iter().any(|option| word.starts_with(option)));
    if matches!(arguments, ["--version" | "--help" | "-V" | "-version"]) && !name.contains('/') {
        return true;
    }
    let first = arguments.first().copied().unwrap_or_default();
    match name {
        "awk" | "gawk" | "mawk" => {
            let writes = |text: &&str| {
                ["system(", "> \"", ">\"", "| \"", "|\"", "inplace", "print >", "getline"]
                    .iter()
                    .any(|part| text.contains(part))
            };
            !arguments.iter().any(writes) && !has(&["-f"])
        }
        "find" => find_reads(arguments),
        "sort" => !has(&["-o", "--output"]),
        "yq" => !has(&["-i", "--inplace"]),
        "gh" => !has(&["--output", "-o", "-O"]) && !github_downloads(arguments),
        "rg" => !has(&["--pre"]),
        "fd" => !has(&["-x", "-X", "--exec"]),
        "jest" | "vitest" => !has(&["-u", "--update"]),
        "tree" => !has(&["-o"]),
        "sqlite3" | "psql" | "mysql" => true,
        "xxd" => arguments.iter().filter(|word| !word.starts_with('-')).count() < 2,
        "uniq" => arguments.iter().filter(|word| !word.starts_with('-')).count() < 2,
        "tar" => first.trim_start_matches('-').starts_with('t'),
        "unzip" => first == "-l" || first == "-p",
        "node" => first == "--check" || first == "-c",
        "python" | "python3" => python_reads(arguments),
        "make" | "just" | "ninja" => has(&["-n", "--dry-run"]),
        "rustc" | "gcc" | "clang" | "javac" => false,
        "uv" | "poetry" | "pipenv" => match arguments {
            ["run", program, rest @ ..] => only_reads(program, rest),
            _ => false,
        },
        name if RUNNERS.contains(&name) => match arguments {
            [program, rest @ ..] => only_reads(program, rest),
            [] => true,
        },
        name => {
            // `cargo +nightly test`, `npm --prefix a test`
            let subcommand =
                arguments.iter().find(|word| !word.starts_with(['-', '+'])).copied().unwrap_or_default();
            let reads = |(program, subcommands): &(&str, &[&str])| {
                *program == name && subcommands.contains(&subcommand)
            };
            (READERS.contains(&name) || READING_SUBCOMMANDS.iter().any(reads)) && !has(WRITING_OPTIONS)
        }
    }
}

/// Returns whether a program in the arguments of another changes nothing: one that this crate follows
/// otherwise, or a reader.
pub(crate) fn reads_as_inner(name: &str, arguments: &[&str]) -> bool {
    match name {
        "cat" | "echo" | "printf" | "mkdir" | "true" => true,
        "sed" | "gsed" => {
            let call = crate::sed::SedCall::parse(arguments);
            call.in_place.is_none() && !call.script.contains("w ") && !call.script.contains("/e")
        }
        "git" => matches!(
            arguments.first(),
            Some(&("log" | "show" | "diff" | "blame" | "grep" | "ls-files" | "status"))
        ),
        name => only_reads(name, arguments),
    }
}

/// Whether `python` runs a module that only reads.
fn python_reads(arguments: &[&str]) -> bool {
    const MODULES: &[&str] = &[
        "pytest",
        "unittest",
        "json.tool",
        "mypy",
        "py_compile",
        "compileall",
        "flake8",
        "pylint",
        "http.server",
    ];
    matches!(arguments, ["-m", module, ..] if MODULES.contains(module))
}

/// Whether a command of `gh` writes files.
fn github_downloads(arguments: &[&str]) -> bool {
    matches!(
        arguments,
        ["repo", "clone" | "sync", ..] | ["pr", "checkout", ..] | ["run" | "release", "download", ..]
    )
}

fn find_reads(arguments: &[&str]) -> bool {
    let writes = ["-delete", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"];
    if arguments.iter().any(|word| writes.contains(word)) {
        return false;
    }
    let mut rest = arguments;
    while let Some(at) = rest.iter().position(|word| matches!(*word, "-exec" | "-execdir")) {
        rest = &rest[at + 1..];
        let end = rest.iter().position(|word| matches!(*word, ";" | "+")).unwrap_or(rest.len());
        match rest[..end].split_first() {
            Some((name, arguments)) if reads_as_inner(name, arguments) => rest = &rest[end..],
            _ => return false,
        }
    }
    true
}

/// Returns whether a command of PowerShell only reads, judged by its name.
pub(crate) fn looks_like_reader_cmdlet(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "cat",
        "cd",
        "cls",
        "compare-object",
        "convertfrom-json",
        "convertto-json",
        "dir",
        "echo",
        "findstr",
        "format-list",
        "format-table",
        "gc",
        "gci",
        "group-object",
        "ls",
        "measure-object",
        "out-host",
        "out-null",
        "out-string",
        "pwd",
        "resolve-path",
        "select-object",
        "select-string",
        "set-location",
        "sl",
        "sort-object",
        "split-path",
        "join-path",
        "start-sleep",
        "test-path",
        "type",
        "where.exe",
        "write-host",
        "write-output",
        "hostname",
        "whoami",
    ];
    name.starts_with("get-") || NAMES.contains(&name)
}
