//! Logins in settings and files of programs, and in databases.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use regex::Regex;

use super::{is_varied_password, near, regex, word_start};
use crate::alphabet::Alphabet;
use crate::heuristics;

/// Returns whether base64 decodes to a user and a password.
pub(super) fn is_login(base64: &str) -> bool {
    let decoded = STANDARD.decode(base64).or_else(|_| URL_SAFE_NO_PAD.decode(base64.trim_end_matches('=')));
    let Some(decoded) = decoded.ok().and_then(|decoded| String::from_utf8(decoded).ok()) else {
        return false;
    };
    let Some((user, password)) = decoded.split_once(':') else { return false };
    decoded.bytes().all(|byte| (b' '..0x7F).contains(&byte))
        && (!user.is_empty() || !password.is_empty())
        && !heuristics::is_dummy(password)
}

/// Finds the password in `requirepass …` of a configuration, or in the command `AUTH [user] …`.
pub(super) fn redis_password(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:(?:requirepass|masterauth)[ \t]+|AUTH (?:[A-Za-z0-9_.-]+ )?)["']?([^\s"'\\]{6,})["']?\s*(?:\n|$|\\n)"#,
        )
    });
    let before = text[..at.start].trim_end_matches(' ');
    if !(before.is_empty() || before.ends_with(['\n', '>', '"', '\'']) || before.ends_with("\\n")) {
        return None;
    }
    let value = LINE.captures(near(text, at.start))?.get(1)?;
    let bytes = value.as_str().as_bytes();
    let is_mixed = bytes.iter().any(u8::is_ascii_digit) || heuristics::is_scrambled(bytes);
    let is_strong = is_mixed && heuristics::is_password(value.as_str());
    is_strong.then_some(at.start + value.start()..at.start + value.end())
}

/// Finds the password in a line of two or more quoted words, such as those of PgBouncer and of pppd: `"ada"
/// "…"`.
pub(super) fn listed_login(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static REST: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"^" (?:\* )?"([^\s"'\\<${}]{8,64})"(?: \*)?[ \t]*(?:\n|$)"#));
    let from = text.floor_char_boundary(at.start.saturating_sub(64));
    let user =
        text[from..at.start].rsplit('\n').next()?.trim_start_matches(|letter: char| !letter.is_ascii());
    let user =
        user.trim_start_matches(|letter: char| letter.is_ascii_digit() || b" \t".contains(&(letter as u8)));
    let user = user.trim_start_matches('→').strip_prefix('"')?;
    if user.is_empty() || user.contains(['"', ' ']) {
        return None;
    }
    let value = REST.captures(near(text, at.start))?.get(1)?;
    is_varied_password(value.as_str()).then(|| at.start + value.start()..at.start + value.end())
}

/// Finds the passwords of `INSERT INTO users (name, password) VALUES ('ada', '…')`.
pub(super) fn inserted_passwords(text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
    static HEAD: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?i)^insert into [^\s(]{1,80}\s*\(([^()]{1,300})\)\s*values\s*\("));
    let rest = near(text, at.start);
    let Some(head) = HEAD.captures(rest) else { return };
    let names = head[1].to_ascii_lowercase();
    let is_name = |name: &str| {
        let name = name.trim_matches([' ', '"', '`', '[', ']', '\n']);
        name.ends_with("password")
            || name.ends_with("passwd")
            || name.ends_with("secret")
            || name.ends_with("token")
    };
    let start = at.start + head[0].len();
    // Values that contain a comma or a bracket are rare.
    let row = rest[head[0].len()..].split(')').next().unwrap_or_default();
    let mut from = start;
    for (name, value) in names.split(',').zip(row.split(',')) {
        let word = value.trim();
        let word = word.strip_prefix(['\'', '"']).and_then(|word| word.strip_suffix(['\'', '"']));
        if is_name(name)
            && let Some(word) = word
            && word.len() >= 8
            && (is_varied_password(word) || heuristics::is_generated(word))
        {
            let offset = value.len() - value.trim_start().len() + 1;
            found(from + offset..from + offset + word.len());
        }
        from += value.len() + 1;
    }
}

/// Finds the password in a line of a `.pgpass`: `host:port:database:user:password`.
pub(super) fn pgpass(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"^[A-Za-z0-9.*_-]+:(?:[0-9]{2,5}|\*):[A-Za-z0-9.*_-]+:[A-Za-z0-9.*_@-]+:([^\s"'`\\]{5,})"#)
    });
    let start = word_start(text, at.start, Alphabet::Dotted);
    let start = if text[..at.start].ends_with('*') { at.start - 1 } else { start };
    let password = LINE.captures(near(text, start))?.get(1)?;
    heuristics::is_password(password.as_str()).then(|| start + password.start()..start + password.end())
}

/// Finds the password in a data source name of Go: `user:password@tcp(host:3306)/database`.
pub(super) fn data_source(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(120))..at.start];
    let login = before.rsplit(|letter: char| letter.is_whitespace() || "\"'`=".contains(letter)).next()?;
    let (_, password) = login.split_once(':')?;
    heuristics::is_password(password).then(|| at.start - password.len()..at.start)
}

/// Finds the password of `net user NAME PASSWORD /add`.
pub(super) fn windows_user(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:\\*"[^"\n]+"|[^\s"]+)[ \t]+(?:\\*")?([^\s"/*%$\\][^\s"\\]{4,})(?:\\*")?([ \t]+/[A-Za-z])?"#,
        )
    });
    let command = COMMAND.captures(near(text, at.end))?;
    let password = command.get(1)?;
    let is_command = command.get(2).is_some() || heuristics::is_varied(password.as_str());
    let is_real = is_command && !heuristics::is_dummy(password.as_str());
    is_real.then(|| at.end + password.start()..at.end + password.end())
}

/// Finds the password of `net use Z: \\\\server\\share /user:NAME PASSWORD`, in either order.
pub(super) fn windows_share(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let line = near(text, at.end).split(['\n', '\r', '|', '&']).next().unwrap_or_default();
    if !line.to_ascii_lowercase().contains("user") {
        return None;
    }
    let word = line.split([' ', '\t']).map(|word| word.trim_matches(['"', '\''])).find(|word| {
        let is_name = word.starts_with(['/', '\\', '-']) || word.contains(":\\") || word.ends_with(':');
        !is_name && heuristics::is_varied(word) && heuristics::is_password(word)
    })?;
    let start = at.end + line.find(word)?;
    Some(start..start + word.len())
}
