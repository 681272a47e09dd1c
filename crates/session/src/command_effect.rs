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
        if diff.is_some() || (is_listed && has_ended) {
            return Self::Logged;
        }
        written_names(&command).map_or(Self::Logged, Self::Named)
    }
}

/// Programs that change no file that they name, unless their output goes to one.
const READERS: &[&str] = &[
    "[",
    "awk",
    "basename",
    "cat",
    "cd",
    "chmod",
    "chown",
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
    "gh",
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
    "pytest",
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

/// Programs with subcommands that change no file that they name.
const READING_SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("cargo", &["bench", "build", "check", "doc", "run", "test", "tree"]),
    (
        "git",
        &[
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
        ],
    ),
    ("go", &["build", "list", "test", "vet"]),
    ("mix", &["compile", "credo", "test"]),
    ("npm", &["ls", "test", "view"]),
];

/// Programs that run the file that their first argument names.
const INTERPRETERS: &[&str] = &["bash", "node", "perl", "python", "python3", "ruby", "sh"];

/// Words before the program of a command.
const PREFIXES: &[&str] = &["!", "do", "elif", "else", "if", "then", "time", "until", "while", "{"];

/// Returns the names, without folders, of the files that a command may write: those that are arguments of
/// programs which do not only read, and those that output goes to. `None` if it writes none.
///
/// A program that is run is not taken for one of them.
fn written_names(command: &str) -> Option<Vec<String>> {
    let (mut names, mut writes) = (Vec::new(), false);
    add_written_names(command, MAX_SUBSTITUTIONS, &mut names, &mut writes);
    writes.then_some(names)
}

/// The maximum nesting of substitutions, such as `$(cat $(ls))`, that are examined.
const MAX_SUBSTITUTIONS: usize = 8;

fn add_written_names(command: &str, depth: usize, names: &mut Vec<String>, writes: &mut bool) {
    for SimpleCommand { words, targets, document } in simple_commands(command) {
        *writes |= !targets.is_empty();
        names.extend(targets.iter().flat_map(|target| file_words(target)));
        let is_before = |word: &&String| is_assignment(word) || PREFIXES.contains(&word.as_str());
        let run: Vec<&String> = words.iter().skip_while(is_before).collect();
        if !only_reads(&run) {
            *writes = true;
            let [program, arguments @ ..] = &run[..] else { continue };
            let runs_file = INTERPRETERS.contains(&program.as_str())
                && arguments.first().is_some_and(|first| !first.starts_with('-'));
            let arguments = &arguments[usize::from(runs_file)..];
            names.extend(arguments.iter().copied().chain(&document).flat_map(|text| file_words(text)));
        } else if depth > 0 {
            let inner = words.iter().chain(&document).filter_map(|text| text.split_once("$("));
            inner.for_each(|(_, inner)| add_written_names(inner, depth - 1, names, writes));
        }
    }
}

/// Returns whether a program with these arguments changes no file that it names.
fn only_reads(words: &[&String]) -> bool {
    let has =
        |options: &[&str]| words.iter().any(|word| options.iter().any(|option| word.starts_with(option)));
    let Some(program) = words.first() else { return true };
    match program.as_str() {
        "sed" => !has(&["-i", "-Ei", "-ni", "--in-place"]),
        "find" => !has(&["-delete", "-exec", "-ok", "-fprint"]),
        "sort" => !has(&["-o", "--output"]),
        program => {
            let subcommand = words.get(1).map_or("", |word| word.as_str());
            let reads =
                |(name, subcommands): &(&str, &[&str])| *name == program && subcommands.contains(&subcommand);
            READERS.contains(&program) || READING_SUBCOMMANDS.iter().any(reads)
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Returns the last parts of the words of a text that may name files.
fn file_words(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '\\' | '@' | '+');
    let words = text.split(|c: char| !is_part(c));
    let names = words.map(|word| word.rsplit(['/', '\\']).next().unwrap_or(word));
    names.filter(|name| name.contains('.') && *name != "." || name.len() > 3).map(str::to_owned).collect()
}

/// One program of a command, with its arguments.
#[derive(Debug, Default)]
struct SimpleCommand {
    /// The words without quotes. Substitutions are parts of their word.
    words: Vec<String>,
    /// The files that the output goes to.
    targets: Vec<String>,
    /// The here-documents.
    document: Vec<String>,
}

/// Splits a command into its programs. Approximate: what is not understood becomes part of a word.
fn simple_commands(command: &str) -> Vec<SimpleCommand> {
    let mut reader = CommandReader { rest: command, done: Vec::new(), current: SimpleCommand::default() };
    reader.read();
    reader.done.push(reader.current);
    reader.done
}

struct CommandReader<'c> {
    rest: &'c str,
    done: Vec<SimpleCommand>,
    current: SimpleCommand,
}

impl<'c> CommandReader<'c> {
    fn read(&mut self) {
        let mut delimiters: Vec<String> = Vec::new();
        while let Some(first) = self.rest.chars().next() {
            match first {
                '\n' => {
                    self.rest = &self.rest[1..];
                    for delimiter in delimiters.drain(..) {
                        let document = self.document(&delimiter);
                        self.current.document.push(document);
                    }
                    self.end_command();
                }
                ';' | '|' | '(' | ')' => {
                    self.rest = &self.rest[1..];
                    self.end_command();
                }
                '&' if !self.rest.starts_with("&>") => {
                    self.rest = &self.rest[1..];
                    self.end_command();
                }
                '#' => self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]),
                '<' if self.rest.starts_with("<<") && !self.rest.starts_with("<<<") => {
                    self.rest = self.rest[2..].trim_start_matches('-').trim_start_matches([' ', '\t']);
                    delimiters.extend(self.word());
                }
                '<' => self.rest = self.rest.trim_start_matches('<'),
                '>' | '&' => {
                    self.rest = self.rest.trim_start_matches(['&', '>', '|']).trim_start_matches([' ', '\t']);
                    // A target such as `&1` is no file.
                    let is_file = |word: &String| word != "/dev/null" && word.parse::<u32>().is_err();
                    let target = self.word().filter(is_file);
                    self.current.targets.extend(target);
                }
                c if c.is_whitespace() => self.rest = &self.rest[c.len_utf8()..],
                _ => {
                    let word = self.word();
                    // The number before a redirection is a stream.
                    let is_stream =
                        |word: &String| self.rest.starts_with(['<', '>']) && word.parse::<u32>().is_ok();
                    self.current.words.extend(word.filter(|word| !is_stream(word)));
                }
            }
        }
    }

    fn end_command(&mut self) {
        self.done.push(std::mem::take(&mut self.current));
    }

    /// Reads a word, without its quotes.
    fn word(&mut self) -> Option<String> {
        let mut word = String::new();
        let before = self.rest.len();
        while let Some(first) = self.rest.chars().next() {
            let length = match first {
                '\'' => self.rest[1..].find('\'').map_or(self.rest.len(), |end| end + 2),
                '"' => quoted_length(self.rest),
                '`' => self.rest[1..].find('`').map_or(self.rest.len(), |end| end + 2),
                '$' if self.rest.starts_with("$(") => substitution_length(self.rest),
                '\\' => 1 + self.rest[1..].chars().next().map_or(0, char::len_utf8),
                ';' | '|' | '&' | '<' | '>' | '(' | ')' => break,
                c if c.is_whitespace() => break,
                c => c.len_utf8(),
            };
            let (part, rest) = self.rest.split_at(length);
            self.rest = rest;
            match first {
                '\'' | '"' => word.push_str(part.trim_matches(first)),
                '`' => word.push_str(&format!("$({})", part.trim_matches('`'))),
                _ => word.push_str(part),
            }
        }
        (self.rest.len() < before).then_some(word)
    }

    /// Reads a here-document up to the line that ends it.
    fn document(&mut self, delimiter: &str) -> String {
        let text = self.rest;
        let mut length = 0;
        for line in text.split_inclusive('\n') {
            let start = length;
            length += line.len();
            if line.trim_end_matches('\n').trim_start_matches('\t') == delimiter {
                self.rest = &text[length..];
                return text[..start].to_owned();
            }
        }
        self.rest = "";
        text.to_owned()
    }
}

/// Returns the length of the text in double quotes at the start of `text`, with its quotes.
fn quoted_length(text: &str) -> usize {
    let mut at = 1;
    while let Some(next) = text[at..].chars().next() {
        at += match next {
            '"' => return at + 1,
            '\\' => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '$' if text[at..].starts_with("$(") => substitution_length(&text[at..]),
            c => c.len_utf8(),
        };
    }
    text.len()
}

/// Returns the length of the substitution `$(…)` at the start of `text`. Quotes inside are not examined.
fn substitution_length(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_command_may_write_are_found() {
        for (command, expected) in [
            ("cat a.txt | head -3", &[][..]),
            ("ls -la && git status", &[]),
            ("cd src; grep -n x a.txt 2>/dev/null", &[]),
            ("git add a.txt && git commit -m 'fix: a.txt; rm b.txt'", &[]),
            ("git commit -m \"$(cat <<'EOF'\nfix a.txt (twice)\n\nsed -i b.txt\nEOF\n)\"", &[]),
            ("sed -n 1,5p a.txt", &[]),
            ("X=1 wc -l a.txt 2>&1", &[]),
            ("echo x >> src/a.txt", &["a.txt"]),
            ("sed -i 's/a b/b/' a.txt", &["a.txt"]),
            ("git restore a.txt", &["restore", "a.txt"]),
            ("cat a.txt | tee b.txt", &["b.txt"]),
            ("echo $(rm a.txt)", &["a.txt"]),
            ("echo `rm a.txt`", &["a.txt"]),
            ("find . -name a.txt -delete", &["-name", "a.txt", "-delete"]),
            ("python3 - <<'EOF'\nopen('a.txt', 'w')\nEOF\ncat b.txt", &["open", "a.txt"]),
            ("cat >a.txt <<EOF\nb.txt\nEOF", &["a.txt"]),
            ("cp \"my notes.md\" Makefile", &["notes.md", "Makefile"]),
            ("./build.sh out.txt && python3 run.py b.txt", &["out.txt", "b.txt"]),
        ] {
            assert_eq!(written_names(command).unwrap_or_default(), expected, "{command}");
        }
        assert_eq!(written_names("# rm a.txt\nmake &"), Some(Vec::new()));
        assert_eq!(written_names("ls; git status"), None);
    }

    #[test]
    fn any_text_is_read() {
        let odd = [
            "\"",
            "'",
            "`",
            "$(",
            "\\",
            "<<",
            "<<EOF",
            ">",
            "a>",
            "&>",
            "$(((",
            "\u{1f9f6}\\\u{1f9f6}",
            "2>",
            "#",
        ];
        for command in odd.iter().flat_map(|a| odd.map(|b| format!("{a}{b} x"))) {
            written_names(&command);
        }
    }
}
