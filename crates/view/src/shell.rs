//! Commands for people to copy, quoted for a shell.

use std::borrow::Cow;
use std::fmt::Write;

use crate::visible::visible;

/// Quotes text as one word of a POSIX shell.
///
/// Text without special characters is returned unchanged. Control characters, which a shell's line editor
/// would execute when the command is pasted, are written as `$'\x1b'`, which bash, zsh, ksh and busybox
/// support. PowerShell reads the plain and the single-quoted form as well, except for text with a single
/// quote in it.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |ch: char| ch.is_ascii_alphanumeric() || "/._-+:@%,=".contains(ch);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    if visible(text) == text && !text.contains(['\n', '\t']) {
        return Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")));
    }
    let mut word = "$'".to_owned();
    for byte in text.bytes() {
        match byte {
            b'\'' | b'\\' => word.extend(['\\', char::from(byte)]),
            b' '..=b'~' => word.push(char::from(byte)),
            byte => {
                let _ = write!(word, "\\x{byte:02x}");
            }
        }
    }
    word.push('\'');
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
            ("it's here", r"'it'\''s here'"),
            ("~ada", "'~ada'"),
            ("$(rm -rf x)`y`;&|<>*?[a]{b}!#\"\\", "'$(rm -rf x)`y`;&|<>*?[a]{b}!#\"\\'"),
            ("naïve", "'naïve'"),
            ("a\nb", r"$'a\x0ab'"),
            ("it's\u{1b}[2J\\", r"$'it\'s\x1b[2J\\'"),
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

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_quoted_words_back() {
        // `$'…'` needs a shell that supports it; any `sh` must read the rest.
        for (shell, texts) in [
            ("sh", &["it's", "$(x)`y`\"\\ *", "~", "a;b&c|d", "naïve"][..]),
            ("bash", &["a\nb'c\\", "\u{1b}[2J\u{7f}", "\u{9b}\u{202e}é"]),
        ] {
            for text in texts {
                let script = format!("printf %s {}", shell_word(text));
                let Ok(done) = std::process::Command::new(shell).args(["-c", &script]).output() else {
                    continue;
                };
                assert_eq!(String::from_utf8_lossy(&done.stdout), **text, "{shell}: {script}");
            }
        }
    }
}
