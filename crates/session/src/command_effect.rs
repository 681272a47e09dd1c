//! Which files a shell command may have changed, if its result does not list them.
//!
//! Claude Code lists the files that a command changed only in some modes, in a git repository, for commands
//! of the main session that succeeded in the foreground. After any other command, a file that it names may
//! have another text than the log suggests, unless the command only reads.

use threadline_entry::Json;
use threadline_entry::lens::{BashEditDiff, BashResult};

use crate::session::Session;
use crate::tool_call::{ToolCall, ToolOutcome};

/// The effect of a shell command on the files of a session, as far as the log contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandEffect {
    /// The result lists the changed files, or the command changed none.
    Logged,
    /// The command may have changed the files that it names: the words of the command.
    Named(Vec<String>),
    /// The command changed the files that it names, or any file if it names none.
    Skipped(Vec<String>),
}

/// Returns whether a call runs a shell command.
pub(crate) fn is_shell(call: &ToolCall) -> bool {
    matches!(&*call.name, "Bash" | "PowerShell")
}

/// Returns the file changes listed in the result of a shell command.
pub(crate) fn command_diff<'s>(session: &'s Session, call: &ToolCall) -> Option<BashEditDiff<'s>> {
    command_result(session, call)?.bash_edit_diff()
}

fn command_result<'s>(session: &'s Session, call: &ToolCall) -> Option<BashResult<'s>> {
    call.results.first().filter(|_| is_shell(call))?.record(session)?.of()
}

/// Returns whether Claude Code listed the changes of any command of a session.
pub(crate) fn lists_changes(session: &Session) -> bool {
    session.tool_calls().iter().any(|call| command_diff(session, call).is_some())
}

impl CommandEffect {
    /// Returns the effect of a call that runs a shell command. `is_listed` is true if Claude Code lists the
    /// changes of commands in this session.
    pub(crate) fn of(session: &Session, call: &ToolCall, is_listed: bool) -> Self {
        let input = call.block(session).and_then(|block| block.input());
        let given = |key: &str| input.and_then(|input| input.get(key));
        let command = given("command").and_then(Json::as_str).unwrap_or_default();
        let diff = command_diff(session, call);
        if diff.is_some_and(|diff| diff.skipped() == Some(true)) {
            // Claude Code looks at no file after `git restore`, `git checkout` and `git stash`.
            return Self::Skipped(file_words(&command));
        }
        let in_background = given("run_in_background").and_then(Json::as_bool) == Some(true)
            || command_result(session, call).is_some_and(|result| result.background_task_id().is_some());
        let has_ended = call.outcome(session) == ToolOutcome::Ok && !in_background;
        if diff.is_some() || (is_listed && has_ended) || only_reads(&command) {
            return Self::Logged;
        }
        Self::Named(file_words(&command))
    }
}

/// Programs that change no file that they name, unless their output goes to one.
const READERS: &[&str] = &[
    "[",
    "awk",
    "basename",
    "cat",
    "cd",
    "cmp",
    "cut",
    "date",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "export",
    "false",
    "fgrep",
    "file",
    "grep",
    "head",
    "jq",
    "less",
    "ls",
    "md5sum",
    "nl",
    "od",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rg",
    "sha256sum",
    "sleep",
    "stat",
    "strings",
    "tail",
    "test",
    "tree",
    "true",
    "type",
    "uniq",
    "wait",
    "wc",
    "which",
    "xxd",
];

/// Subcommands of git that change no file of the working tree.
const GIT_READERS: &[&str] = &[
    "add",
    "blame",
    "branch",
    "commit",
    "config",
    "diff",
    "fetch",
    "log",
    "ls-files",
    "push",
    "remote",
    "rev-parse",
    "show",
    "status",
    "tag",
];

/// Returns whether every program of a command only reads. A command that is not understood may write.
fn only_reads(command: &str) -> bool {
    let without_null = ["2>&1", ">/dev/null", "> /dev/null", "2>/dev/null", "2> /dev/null", "&>/dev/null"]
        .iter()
        .fold(command.to_owned(), |command, quiet| command.replace(quiet, " "));
    if without_null.contains(['>', '`']) || without_null.contains("$(") {
        return false;
    }
    without_null.split(['\n', ';', '|', '&']).all(|part| {
        let mut words = part.split_whitespace().skip_while(|word| is_assignment(word));
        match words.next() {
            None => true,
            Some("git") => words.next().is_some_and(|sub| GIT_READERS.contains(&sub)),
            Some("sed") => !part.contains(" -i") && !part.contains("--in-place"),
            Some("find") => !part.contains("-delete") && !part.contains("-exec"),
            Some("sort") => !part.contains(" -o"),
            Some(program) => READERS.contains(&program),
        }
    })
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Returns the last parts of the words of a command that may name files.
fn file_words(command: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '\\' | '@' | '+');
    let words = command.split(|c: char| !is_part(c));
    let names = words.map(|word| word.rsplit(['/', '\\']).next().unwrap_or(word));
    names.filter(|name| name.contains('.') || name.len() > 3).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_only_read_are_known() {
        for command in [
            "cat a.txt | head -3",
            "ls -la && git status",
            "cd src; grep -n x a.txt 2>/dev/null",
            "git add a.txt && git commit -m 'a.txt'",
            "sed -n 1,5p a.txt",
            "X=1 wc -l a.txt",
        ] {
            assert!(only_reads(command), "{command}");
        }
        for command in [
            "echo x >> a.txt",
            "sed -i s/a/b/ a.txt",
            "git restore a.txt",
            "python3 a.py",
            "cat a.txt | tee b.txt",
            "echo $(rm a.txt)",
            "find . -name a.txt -delete",
            "make",
        ] {
            assert!(!only_reads(command), "{command}");
        }
    }

    #[test]
    fn words_that_may_name_files_are_found_without_folders() {
        assert_eq!(file_words("sed -i 's/a/b/' ./src/a.txt"), ["a.txt"]);
        assert_eq!(file_words("cp \"my notes.md\" Makefile"), ["notes.md", "Makefile"]);
    }
}
