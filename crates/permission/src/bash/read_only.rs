//! Commands that change nothing.

use super::listing::XargsCall;
use threadline_shell::command_line::Word;

/// How the arguments of a command are checked.
enum Arguments {
    /// Any are harmless.
    Any,
    /// None may be given.
    None,
    /// Only options and operands that the function accepts.
    Checked(fn(&[&str]) -> bool),
}

use Arguments::{Any, Checked, None as NoArguments};

const COMMANDS: &[(&str, Arguments)] = &[
    ("[", Checked(has_no_index)),
    ("[[", Any),
    ("arch", NoArguments),
    ("base64", Any),
    ("basename", Any),
    ("cal", Any),
    ("cat", Any),
    ("cd", Any),
    ("claude", Checked(|words| matches!(words, ["-h" | "--help"]))),
    ("cmp", Any),
    ("column", Any),
    ("comm", Any),
    ("cut", Any),
    ("date", Checked(is_date_shown)),
    ("df", Any),
    ("diff", Any),
    ("dirname", Any),
    ("docker", Checked(is_docker_query)),
    ("du", Any),
    ("echo", Any),
    ("egrep", Any),
    ("expand", Any),
    ("expr", Any),
    ("false", Any),
    ("fd", Checked(is_fd_query)),
    ("fdfind", Checked(is_fd_query)),
    ("fgrep", Any),
    (
        "file",
        Checked(|words| {
            !has_option(words, &["-C", "--compile", "-f", "--files-from", "-m", "--magic-file"], "Cfm")
        }),
    ),
    ("find", Any),
    ("fmt", Any),
    ("fold", Any),
    ("free", Any),
    ("git", Checked(super::git_query)),
    ("grep", Any),
    ("groups", Any),
    ("head", Any),
    ("help", Any),
    ("hexdump", Any),
    ("history", Checked(|words| words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_digit())))),
    (
        "hostname",
        Checked(|words| words.iter().all(|word| ["-I", "-f", "-s", "-d", "-i", "-A"].contains(word))),
    ),
    ("id", Any),
    ("ifconfig", NoArguments),
    ("ip", Checked(|words| matches!(words, ["addr"]))),
    ("jq", Checked(is_jq_query)),
    ("locale", NoArguments),
    ("ls", Any),
    ("lsof", Checked(|words| !words.iter().any(|word| word.starts_with("-D") || word.starts_with('+')))),
    ("man", Checked(is_man_query)),
    ("md5sum", Any),
    ("netstat", Any),
    ("nl", Any),
    ("node", Checked(|words| matches!(words, ["-v" | "--version"]))),
    ("nproc", Any),
    ("numfmt", Any),
    ("od", Any),
    ("paste", Any),
    ("pgrep", Any),
    ("pr", Any),
    ("printf", Checked(|words| words.first().is_some_and(|word| !word.starts_with('-')))),
    ("ps", Checked(super::ps::prints_no_environment)),
    ("pwd", NoArguments),
    ("python", Checked(|words| matches!(words, ["--version"]))),
    ("python3", Checked(|words| matches!(words, ["--version"]))),
    ("readlink", Any),
    ("realpath", Any),
    ("rev", Any),
    ("rg", Checked(is_rg_query)),
    ("sed", Any),
    ("seq", Any),
    ("sha1sum", Any),
    ("sha256sum", Any),
    ("sleep", Any),
    ("sort", Checked(is_sort_query)),
    ("ss", Checked(|words| !has_option(words, &["-K", "--kill", "-D", "--diag", "-F", "--filter"], "KDF"))),
    ("stat", Any),
    ("strings", Any),
    ("tac", Any),
    ("tail", Any),
    ("test", Checked(has_no_index)),
    ("tput", Checked(|words| matches!(words, ["cols" | "lines" | "colors"]))),
    ("tr", Any),
    ("tree", Checked(|words| !has_option(words, &["-o", "--output", "-R"], "oR"))),
    ("true", Any),
    ("tsort", Any),
    ("type", Any),
    ("uname", Any),
    ("unexpand", Any),
    ("uniq", Checked(|words| words.iter().all(|word| word.starts_with('-') && *word != "--"))),
    ("uptime", Any),
    ("wc", Any),
    ("which", Any),
    ("whoami", NoArguments),
    ("xargs", Checked(is_xargs_query)),
];

/// Returns whether a command changes nothing. Its paths are judged elsewhere.
pub(super) fn is_read_only(name: &str, arguments: &[Word]) -> bool {
    let Some((_, expected)) = COMMANDS.iter().find(|(known, _)| *known == name) else { return false };
    // A word that is only known when the command runs may be an option.
    let is_unknown = |word: &Word| word.is_dynamic || word.is_pattern;
    let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    match expected {
        Any if arguments.iter().any(|word| word.is_dynamic) => name == "echo",
        Any => true,
        NoArguments => arguments.is_empty(),
        Checked(_) if name == "printf" => {
            !arguments.first().is_some_and(is_unknown)
                && words.first().is_some_and(|word| !word.starts_with('-'))
        }
        Checked(is_harmless) => !arguments.iter().any(is_unknown) && is_harmless(&words),
    }
}

/// Whether an option is given: exactly, with `=value`, or as one of these letters in a group.
pub(super) fn has_option(words: &[&str], options: &[&str], letters: &str) -> bool {
    words.iter().take_while(|word| **word != "--").any(|word| {
        let name = word.split('=').next().unwrap_or(word);
        // Long options may be shortened: `--outp` is `--output`.
        let is_long =
            name.len() > 3 && name.starts_with("--") && options.iter().any(|option| option.starts_with(name));
        let is_group =
            word.starts_with('-') && !word.starts_with("--") && word.contains(|ch| letters.contains(ch));
        is_long || options.contains(&name) || is_group
    })
}

/// Whether no operand of a test has an array index, which `-v` evaluates.
fn has_no_index(words: &[&str]) -> bool {
    !words.iter().any(|word| word.contains('['))
}

fn is_date_shown(words: &[&str]) -> bool {
    let mut is_value = false;
    words.iter().all(|word| {
        if std::mem::take(&mut is_value) {
            return true;
        }
        is_value = ["-d", "--date", "-r"].contains(word);
        word.starts_with('+')
            || ["-u", "--utc", "-R", "-I", "--iso-8601", "-d", "--date", "-r"].contains(word)
            || ["--date=", "-I", "--iso-8601=", "--rfc-3339="].iter().any(|option| word.starts_with(option))
    })
}

fn is_docker_query(words: &[&str]) -> bool {
    matches!(words.first(), Some(&("ps" | "images" | "logs" | "inspect")))
        && words.iter().all(|word| !["-H", "--host", "-c", "--context", "--config"].contains(word))
}

fn is_fd_query(words: &[&str]) -> bool {
    !has_option(words, &["-x", "--exec", "-X", "--exec-batch", "--list-details", "-l"], "xXl")
}

fn is_man_query(words: &[&str]) -> bool {
    let is_page = |word: &&str| word.chars().all(|ch| ch.is_ascii_alphanumeric() || "._-+:".contains(ch));
    words
        .iter()
        .all(|word| ["-k", "-f", "-a", "-w"].contains(word) || !word.starts_with('-') && is_page(word))
}

fn is_rg_query(words: &[&str]) -> bool {
    let harmless = "-nilcCvwxoFSsUAhHLaB.0e";
    let long = [
        "--line-number",
        "--ignore-case",
        "--files-with-matches",
        "--count",
        "--context",
        "--word-regexp",
        "--hidden",
        "--no-ignore",
        "--glob",
        "--type",
        "--max-count",
        "--color",
        "--no-heading",
        "--multiline",
        "--json",
        "--only-matching",
        "--fixed-strings",
        "--smart-case",
        "--after-context",
        "--before-context",
        "--sort",
        "--stats",
        "--type-not",
        "--max-depth",
        "--with-filename",
        "--no-filename",
    ];
    words.iter().take_while(|word| **word != "--").filter(|word| word.starts_with('-') && word.len() > 1).all(
        |word| {
            let name = word.split('=').next().unwrap_or(word);
            long.contains(&name)
                || ["-g", "-t", "-T", "-m"].iter().any(|option| name.starts_with(option))
                || !name.starts_with("--")
                    && name[1..].chars().all(|ch| harmless.contains(ch) || ch.is_ascii_digit())
        },
    )
}

fn is_sort_query(words: &[&str]) -> bool {
    let options = ["-o", "--output", "--compress-program", "-T", "--temporary-directory", "--files0-from"];
    !has_option(words, &options, "oT")
}

/// Options of `jq` that read or run other files.
pub(super) fn jq_has_dangerous_flag(arguments: &[Word]) -> bool {
    let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let options = ["-f", "--from-file", "--slurpfile", "--rawfile", "--run-tests", "-L", "--library-path"];
    has_option(&words, &options, "fL")
}

fn is_jq_query(words: &[&str]) -> bool {
    let names = ["env", "input_filename", "import", "include", "$__prog", "debug", "stderr", "halt", "$ENV"];
    let reads_more = |word: &&str| names.iter().any(|name| word.contains(name));
    !words.iter().any(reads_more)
}

fn is_xargs_query(words: &[&str]) -> bool {
    let Some(call) = XargsCall::parse(words) else { return false };
    let Some((name, arguments)) = call.command.split_first() else { return true };
    let is_known = call.reads_files() || ["echo", "printf"].contains(name);
    // Their operands come from the input, so that only these commands run.
    is_known && arguments.iter().all(|word| !word.contains('/') && !word.starts_with('~'))
}
