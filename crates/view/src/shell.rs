//! Commands for people to copy, quoted for a shell.

use std::borrow::Cow;
use std::fmt::Write;

use crate::visible::is_hidden;

/// Quotes text as one word of a POSIX shell or of fish.
///
/// Text without special characters is returned unchanged. Control characters, which a shell's line editor
/// would execute when the command is pasted, are written as `$'\x1b'`, which bash, zsh, ksh and busybox
/// support. Nothing else is between these quotes, so a shell without them (dash, fish) reads another word,
/// but runs no part of it. Single quotes, and backslashes before the end of a quoted part, are in double
/// quotes, because fish reads `\'` between single quotes as a quote. PowerShell reads the plain and the
/// single-quoted form as well, except for text with a single quote in it.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |ch: char| ch.is_ascii_alphanumeric() || "/._-+:@%,=".contains(ch);
    if text.is_empty() {
        return Cow::Borrowed("''");
    }
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let is_control = |ch: char| is_hidden(ch) || matches!(ch, '\n' | '\t');
    let mut word = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let controls = rest.find(|ch| !is_control(ch)).unwrap_or(rest.len());
        let quoted = &rest[..rest.find(|ch| ch == '\'' || is_control(ch)).unwrap_or(rest.len())];
        let before_backslashes = quoted.trim_end_matches('\\');
        let length = if controls > 0 {
            word.push_str("$'");
            for byte in rest[..controls].bytes() {
                let _ = write!(word, "\\x{byte:02x}");
            }
            word.push('\'');
            controls
        } else if quoted.is_empty() {
            word.push_str("\"'\"");
            1
        } else if before_backslashes.is_empty() {
            let _ = write!(word, "\"{}\"", quoted.replace('\\', r"\\"));
            quoted.len()
        } else {
            let _ = write!(word, "'{before_backslashes}'");
            before_backslashes.len()
        };
        rest = &rest[length..];
    }
    Cow::Owned(word)
}

/// Returns the command that resumes a Claude Code session in its working directory. `home` is the folder that
/// contains the session, as an absolute path, if Claude Code does not use it anyway.
pub fn resume_command(id: &str, cwd: Option<&str>, home: Option<&str>) -> String {
    resume_command_with(&["claude", "--resume", id], cwd, home)
}

/// Returns a command that resumes a session with another program, like [`resume_command`].
pub fn resume_command_with(words: &[&str], cwd: Option<&str>, home: Option<&str>) -> String {
    let home = home.map(|home| format!("CLAUDE_CONFIG_DIR={}", shell_word(home)));
    let words = words.iter().map(|word| shell_word(word).into_owned());
    command_in(cwd, &home.into_iter().chain(words).collect::<Vec<_>>().join(" "))
}

/// Returns a command that runs another one in a directory.
fn command_in(directory: Option<&str>, command: &str) -> String {
    match directory {
        // A name that begins with a dash would be parsed as an option.
        Some(name) if name.starts_with('-') => {
            format!("cd {} && {command}", shell_word(&format!("./{name}")))
        }
        Some(name) => format!("cd {} && {command}", shell_word(name)),
        None => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_special_characters_are_quoted() {
        for (text, word) in [
            ("/home/ada/loom-1.0_x", "/home/ada/loom-1.0_x"),
            ("", "''"),
            ("it's here", r#"'it'"'"'s here'"#),
            ("~ada", "'~ada'"),
            ("$(rm -rf x)`y`;&|<>*?[a]{b}!#\"\\", r##"'$(rm -rf x)`y`;&|<>*?[a]{b}!#"'"\\""##),
            (r"D:\loom x", r"'D:\loom x'"),
            ("naïve", "'naïve'"),
            ("a\nb", r"'a'$'\x0a''b'"),
            ("it's\u{1b}[2J\\", r#"'it'"'"'s'$'\x1b''[2J'"\\""#),
            ("\u{9b}\u{202e}", r"$'\xc2\x9b\xe2\x80\xae'"),
        ] {
            assert_eq!(shell_word(text), word, "{text:?}");
        }
    }

    #[test]
    fn a_session_is_resumed_where_it_ran() {
        assert_eq!(resume_command("one", None, None), "claude --resume one");
        assert_eq!(resume_command("a;b", Some("/x y"), None), "cd '/x y' && claude --resume 'a;b'");
        assert_eq!(resume_command("one", Some("-P"), None), "cd ./-P && claude --resume one");
        assert_eq!(
            resume_command("one", Some("/x"), Some("/my home")),
            "cd /x && CLAUDE_CONFIG_DIR='/my home' claude --resume one"
        );
    }

    /// Returns what a shell in a folder reads as the word; `None` if it is not installed.
    #[cfg(unix)]
    fn read_by(shell: &str, text: &str, folder: &std::path::Path) -> Option<String> {
        let script = format!("printf %s {}", shell_word(text));
        let mut command = std::process::Command::new(shell);
        let done = command.args(["-c", &script]).current_dir(folder).output().ok()?;
        Some(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    #[test]
    #[cfg(unix)]
    fn no_shell_runs_a_part_of_a_word() {
        let folder = tempfile::tempdir().unwrap();
        for shell in ["sh", "bash", "dash", "zsh", "fish"] {
            for start in ["", "'", "\\", "\\'", "'\\", "\t", "\\\t", "x'\t", "\n\\'"] {
                for end in ["", "'", "\\", "\\'", "\t", " #\ty", "\\\n"] {
                    let text = format!("{start}$(touch a)`touch b`; touch c; {end}");
                    let read = read_by(shell, &text, folder.path());
                    let has_controls = text.contains(['\t', '\n']);
                    assert!(has_controls || read.is_none_or(|read| read == text), "{shell}: {text:?}");
                    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{shell}: {text:?}");
                }
            }
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_quoted_words_back() {
        // `$'…'` needs a shell that supports it; any `sh` must read the rest.
        for (shell, texts) in [
            ("sh", &["it's", "$(x)`y`\"\\ *", "~", "a;b&c|d", "naïve", "\\", "a\\'b\\\\"][..]),
            ("bash", &["a\nb'c\\", "\u{1b}[2J\u{7f}", "\u{9b}\u{202e}é"]),
        ] {
            for text in texts {
                let Some(read) = read_by(shell, text, ".".as_ref()) else { continue };
                assert_eq!(read, **text, "{shell}: {}", shell_word(text));
            }
        }
    }
}
