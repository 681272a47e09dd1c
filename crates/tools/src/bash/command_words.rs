//! Words of command lines, as far as results depend on them. Not a shell parser, and no basis for
//! permissions.

/// Commands that print nothing when they succeed.
const SILENT: &[&str] = &[
    "cd", "chgrp", "chmod", "chown", "cp", "export", "ln", "mkdir", "mv", "rm", "rmdir", "touch", "unset",
    "wait",
];

/// Returns whether every command of the line is one that prints nothing when it succeeds.
pub(super) fn is_silent(line: &str) -> bool {
    let commands = simple_commands(line);
    !commands.is_empty()
        && commands.iter().all(|words| words.first().is_some_and(|word| SILENT.contains(&word.as_str())))
}

/// Returns the meaning of an exit code that is not a failure, by the last command of the line.
pub(super) fn exit_meaning(line: &str, code: i32) -> Option<&'static str> {
    if code != 1 {
        return None;
    }
    let commands = simple_commands(line);
    let words = commands.last()?;
    match (words.first()?.as_str(), words.get(1).map(String::as_str)) {
        ("grep" | "egrep" | "fgrep" | "rg", _) => Some("No matches found"),
        ("diff", _) | ("git", Some("diff")) => Some("Files differ"),
        ("test" | "[", _) => Some("Condition is false"),
        ("find", _) => Some("Some directories were inaccessible"),
        _ => None,
    }
}

/// Returns whether a command that exceeds its time continues in the background. Commands that begin by
/// sleeping are killed, and so are those that the reference does not analyse.
pub(super) fn may_move_to_background(line: &str) -> bool {
    let commands = simple_commands(line);
    let first = commands.first().and_then(|words| words.first()).map_or("", String::as_str);
    !matches!(first, "sleep" | "for" | "case" | "select" | "function" | "{") && !first.ends_with("()")
}

/// Splits a line at `;`, `&`, `|` and line ends outside of quotes, and each part into words without quotes.
pub(super) fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    let mut previous = '\0';
    while let Some(ch) = chars.next() {
        match ch {
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                while let Some(inner) = chars.next() {
                    if inner == ch {
                        break;
                    }
                    let escaped = inner == '\\' && ch == '"';
                    text.push(if escaped { chars.next().unwrap_or(inner) } else { inner });
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            // `2>&1` and `&>file` are redirections.
            '&' if previous == '>' || chars.peek() == Some(&'>') => word.get_or_insert_default().push(ch),
            ';' | '&' | '|' | '\n' => {
                words.extend(word.take());
                if !words.is_empty() {
                    commands.push(std::mem::take(&mut words));
                }
            }
            ch if ch.is_whitespace() => words.extend(word.take()),
            ch => word.get_or_insert_default().push(ch),
        }
        previous = ch;
    }
    words.extend(word);
    if !words.is_empty() {
        commands.push(words);
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_silent_commands_are_silent() {
        for line in [
            "mkdir a && cp y a/",
            "chmod 600 y; chown root y",
            "export A=1",
            "touch g > /dev/null",
            "cd .",
            "mkdir h\nmkdir i",
            "mkdir k3 &",
            "rm k9 2>/dev/null; mkdir k4",
        ] {
            assert!(is_silent(line), "{line}");
        }
        for line in [
            "true; mkdir c",
            "rm -f b | cat",
            "rmdir x || true",
            "X=1 mkdir k2",
            "command mkdir k1",
            "sleep 0",
            "echo x > out",
            "",
            "mkdir b; echo",
        ] {
            assert!(!is_silent(line), "{line}");
        }
    }

    #[test]
    fn the_last_command_decides_what_code_1_means() {
        for (line, meaning) in [
            ("echo a | grep b", Some("No matches found")),
            ("cd sub && grep zz x.txt", Some("No matches found")),
            ("git diff --no-index --exit-code y z", Some("Files differ")),
            ("[ 1 = 2 ]", Some("Condition is false")),
            ("find /nonexistent", Some("Some directories were inaccessible")),
            ("grep q y || false", None),
            ("test 1 = 2 && echo x", None),
            ("FOO=1 grep q y", None),
            ("/usr/bin/grep q y", None),
            ("cmp y z", None),
        ] {
            assert_eq!(exit_meaning(line, 1), meaning, "{line}");
            assert_eq!(exit_meaning(line, 2), None, "{line}");
        }
    }

    #[test]
    fn commands_that_begin_by_sleeping_do_not_move_to_the_background() {
        for line in ["sleep 3", "sleep 5 && echo x", "for i in 1; do sleep 1; done", "f() { sleep 3; }; f"] {
            assert!(!may_move_to_background(line), "{line}");
        }
        for line in ["true; sleep 3", "while true; do sleep 1; done", "FOO=1 sleep 3", "(sleep 3)", "make"] {
            assert!(may_move_to_background(line), "{line}");
        }
    }

    #[test]
    fn quotes_hide_separators() {
        assert_eq!(simple_commands("echo 'a; b' \"c|d\" 2>&1"), [["echo", "a; b", "c|d", "2>&1"]]);
    }
}
