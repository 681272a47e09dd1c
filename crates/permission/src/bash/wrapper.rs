//! Commands that run other commands.

use threadline_shell::command_line::{Part, Word};

/// The command that a part runs, behind wrappers such as `timeout 5`.
pub(super) struct Core<'a> {
    pub(super) words: &'a [Word],
    /// Whether nothing before the command changes what it does: no variables but harmless ones, no wrappers
    /// but those in [`HARMLESS`].
    pub(super) is_plain: bool,
    /// Whether wrappers were removed.
    is_wrapped: bool,
}

/// Wrappers that change how a command is scheduled, but not what it does, and their options with a value.
const HARMLESS: &[(&str, &[&str])] = &[
    ("timeout", &["-k", "--kill-after", "-s", "--signal"]),
    ("time", &[]),
    ("nice", &["-n", "--adjustment"]),
    ("nohup", &[]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("command", &[]),
    ("builtin", &[]),
];

/// Wrappers that are looked through to find paths and refused commands, but that no rule for the inner
/// command permits.
const OTHERS: &[(&str, &[&str])] = &[
    ("env", &["-u", "--unset", "-C", "--chdir", "-S"]),
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t"]),
    ("doas", &["-u", "-C"]),
    (
        "xargs",
        &["-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E", "-i", "--max-args", "--max-procs", "--replace"],
    ),
    ("exec", &["-a"]),
    ("eval", &[]),
    ("setsid", &[]),
    ("ionice", &["-c", "-n", "-p"]),
    ("chrt", &[]),
    ("taskset", &[]),
    ("unshare", &[]),
    ("nsenter", &[]),
    ("chroot", &[]),
    ("busybox", &[]),
    ("toybox", &[]),
    ("watch", &["-n", "-d"]),
    ("strace", &["-o", "-e", "-p"]),
    ("ltrace", &[]),
    ("gdb", &[]),
    ("script", &[]),
    ("flock", &[]),
    ("parallel", &[]),
    ("caffeinate", &[]),
    ("noglob", &[]),
    ("nocorrect", &[]),
    ("proxychains", &[]),
    ("torsocks", &[]),
    ("fakeroot", &[]),
    ("su", &["-c"]),
    ("ssh", &[]),
    ("coproc", &[]),
    ("!", &[]),
];

/// Shells that run the argument of `-c`.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "su", "rbash"];

/// Variables that a command may be given without changing what it runs or which files it uses.
const HARMLESS_VARIABLES: &[&str] = &[
    "CI",
    "COLUMNS",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "FORCE_COLOR",
    "GOARCH",
    "GOOS",
    "CGO_ENABLED",
    "GO111MODULE",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
    "TIME_STYLE",
    "LS_COLORS",
    "GREP_COLOR",
    "GREP_COLORS",
    "BLOCKSIZE",
    "BLOCK_SIZE",
];

/// Returns the command that a part runs.
pub(super) fn core(part: &Part) -> Core<'_> {
    let is_harmless = part.variables.iter().all(|name| HARMLESS_VARIABLES.contains(&name.as_str()));
    // Without a command, variables are assigned.
    let mut core =
        Core { words: &part.words, is_plain: is_harmless || part.words.is_empty(), is_wrapped: false };
    while let Some(name) = core.name() {
        let arguments = &core.words[1..];
        let harmless = HARMLESS.iter().find(|(wrapper, _)| *wrapper == name);
        let other = OTHERS.iter().find(|(wrapper, _)| *wrapper == "env" && name == "env");
        let Some((_, with_value)) = harmless.or(other) else { break };
        let Some(rest) = inner(name, arguments, with_value) else { break };
        core.is_plain &= harmless.is_some();
        core.is_wrapped = true;
        core.words = rest;
    }
    core
}

/// Returns the words of the inner command; `None` if there is none, or if the options are not understood.
fn inner<'a>(name: &str, arguments: &'a [Word], with_value: &[&str]) -> Option<&'a [Word]> {
    let mut at = 0;
    let mut is_duration_pending = name == "timeout";
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        if word.is_dynamic || word.is_pattern {
            return None;
        }
        if text == "--" {
            at += 1;
        } else if text.starts_with('-') && text.len() > 1 {
            // `command -v` prints; `time -f` and others are not known.
            if name == "command" && text != "-p" || name == "builtin" || name == "time" {
                return None;
            }
            let needs_value = with_value.contains(&text);
            at += if needs_value { 2 } else { 1 };
            continue;
        } else if name == "env" && text.contains('=') {
            at += 1;
            continue;
        } else if is_duration_pending {
            is_duration_pending = false;
            at += 1;
            continue;
        }
        break;
    }
    arguments.get(at..).filter(|rest| !rest.is_empty())
}

impl<'a> Core<'a> {
    /// Returns the name of the command.
    pub(super) fn name(&self) -> Option<&'a str> {
        self.words.first().map(|word| word.text.as_str())
    }

    /// Returns the arguments.
    pub(super) fn arguments(&self) -> &'a [Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the forms of a part that allow rules are compared with.
    pub(super) fn allow_texts(&self, part: &Part) -> Vec<String> {
        let mut texts = vec![part.text.clone()];
        if !self.is_plain {
            return texts;
        }
        if let Some(text) = plain_text(self.words) {
            texts.push(text);
        } else if let (Some(first), false) = (self.words.first(), self.is_wrapped) {
            // The name without its quotes, and the arguments as they are written.
            if part.variables.is_empty()
                && let Some((_, rest)) = part.text.split_once(' ')
            {
                texts.push(format!("{} {rest}", first.text));
            }
        }
        texts
    }
}

/// Returns words joined with spaces, if that has only one meaning.
fn plain_text(words: &[Word]) -> Option<String> {
    let is_plain =
        |word: &Word| !word.is_dynamic && !word.text.is_empty() && !word.text.contains(char::is_whitespace);
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.iter().all(is_plain).then(|| texts.join(" "))
}

/// Commands inside of a command, for rules that refuse or ask.
#[derive(Default)]
pub(super) struct InnerCommands {
    /// Commands as text.
    pub(super) commands: Vec<String>,
    /// Scripts that a shell is given.
    pub(super) scripts: Vec<String>,
}

/// Returns the commands that the arguments of a command may be. It returns too much rather than too little.
pub(super) fn inner_commands(words: &[Word]) -> InnerCommands {
    let mut inner = InnerCommands::default();
    let Some(name) = words.first().map(|word| base_name(&word.text)) else { return inner };
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let is_wrapper = HARMLESS.iter().chain(OTHERS).any(|(wrapper, _)| *wrapper == name);
    if is_wrapper {
        for start in 1..texts.len() {
            inner.commands.push(texts[start..].join(" "));
            inner.commands.push(
                format!("{} {}", base_name(texts[start]), texts[start + 1..].join(" ")).trim_end().to_owned(),
            );
        }
    }
    if name == "find" || name == "fd" || name == "fdfind" {
        for (i, text) in texts.iter().enumerate() {
            if ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"].contains(text) {
                inner.commands.push(texts[i + 1..].join(" "));
            }
        }
    }
    let is_script_host = is_wrapper || SHELLS.contains(&name);
    if is_script_host {
        for (i, text) in texts.iter().enumerate().skip(1) {
            let is_command_flag = text.starts_with('-') && !text.starts_with("--") && text.ends_with('c');
            // Further options may precede the script.
            let script = texts[i + 1..].iter().find(|text| !text.starts_with(['-', '+']));
            if is_command_flag && let Some(script) = script {
                inner.scripts.push((*script).to_owned());
            }
        }
        if ["eval", "ssh", "watch", "env", "coproc"].contains(&name) {
            inner.scripts.push(texts[1..].join(" "));
        }
    }
    if name == "trap" {
        inner.scripts.extend(texts.get(1).map(|script| (*script).to_owned()));
    }
    inner
}

fn base_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}
