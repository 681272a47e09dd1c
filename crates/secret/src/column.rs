//! Passwords in a column of a table: CSV, values separated by tabs, and Markdown.

use std::ops::Range;

use crate::heuristics;

/// The names of columns that contain secrets, in lower case.
pub(crate) const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passwort",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "api key",
    "api_token",
    "api token",
    "access_token",
    "access token",
    "secret_key",
    "secret key",
    "secret access key",
    "client_secret",
    "client secret",
    "temporary password",
    "initial password",
];

/// The characters that separate columns.
const SEPARATORS: &[char] = &[',', ';', '\t', '|'];

/// The longest line of a table, and the maximum number of its lines.
const MAX_LINE: usize = 400;
const MAX_LINES: usize = 64;

/// Finds the secrets in the column below the header at `at`.
///
/// Ends at the next header, so that every line belongs to one header at most, and the cost is linear.
pub(crate) fn find(text: &str, at: Range<usize>, mut found: impl FnMut(Range<usize>)) {
    // Most matches are words in prose and code.
    let after = text.as_bytes()[at.end..].iter().find(|byte| !b" \"'`".contains(byte));
    if !after.is_none_or(|byte| b",;\t|\r\n".contains(byte)) {
        return;
    }
    let from = text.floor_char_boundary(at.start.saturating_sub(MAX_LINE));
    let start = text[from..at.start].rfind('\n').map_or(from, |newline| from + newline + 1);
    let Some(header) = line_at(text, start) else { return };
    let place = at.start - start;
    let Some(separator) = separator_around(header, place..place + at.len()) else { return };
    // The first of several secret columns finds them all.
    let columns: Vec<usize> =
        header.split(separator).enumerate().filter(|(_, name)| is_name(name)).map(|(n, _)| n).collect();
    if header[..place].matches(separator).count() != columns.first().copied().unwrap_or_default() {
        return;
    }
    let n_columns = header.split(separator).count();
    let mut line_start = start + header.len() + 1;
    for _ in 0..MAX_LINES {
        if line_start >= text.len() {
            return;
        }
        let Some(line) = line_at(text, line_start) else { return };
        if line.split(separator).count() != n_columns || line.split(separator).any(is_name) {
            return;
        }
        let mut cell_start = line_start;
        for (n, cell) in line.split(separator).enumerate() {
            let value = cell.trim().trim_matches(['"', '\'', '`']);
            let is_secret = heuristics::is_varied(value) && heuristics::is_password(value)
                || value.len() >= 16 && heuristics::is_random(value.as_bytes());
            let is_plain = !value.contains(' ') && !heuristics::is_placeholder_value(value);
            if columns.contains(&n) && value.len() >= 8 && is_secret && is_plain {
                let offset = cell.len() - cell.trim_start().trim_start_matches(['"', '\'', '`']).len();
                found(cell_start + offset..cell_start + offset + value.len());
            }
            cell_start += cell.len() + separator.len_utf8();
        }
        line_start += line.len() + 1;
    }
}

/// Returns the line that begins at `start`, without its newline; `None` if it is longer than those of a
/// table.
fn line_at(text: &str, start: usize) -> Option<&str> {
    let end = text.floor_char_boundary(start + MAX_LINE + 1);
    let piece = &text[start..end];
    let is_last = end == text.len() && piece.len() <= MAX_LINE;
    piece.split_once('\n').map(|(line, _)| line).or(is_last.then_some(piece))
}

/// Returns the separator beside a name that is alone in its cell.
fn separator_around(header: &str, name: Range<usize>) -> Option<char> {
    let before = header.get(..name.start)?.trim_end_matches([' ', '"', '\'', '`']);
    let after = header.get(name.end..)?.trim_start_matches([' ', '"', '\'', '`', '\r']);
    let separator = before.chars().next_back().or_else(|| after.chars().next())?;
    let is_edge = |edge: Option<char>| edge.is_none_or(|edge| edge == separator);
    (SEPARATORS.contains(&separator) && is_edge(after.chars().next())).then_some(separator)
}

/// Returns whether a cell is the name of a secret.
fn is_name(cell: &str) -> bool {
    let name = cell.trim().trim_matches(['"', '\'', '`']).to_ascii_lowercase();
    NAMES.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use crate::Rules;

    #[test]
    fn secrets_are_found_in_their_column() {
        let rules = Rules::new();
        for (text, clean) in [
            ("user,password\nada,We4ft-Wq2rp\nbob,Lo7mm#Kx1", "user,password\nada,#\nbob,#"),
            ("Password;user\r\n\"We4ft-Wq2rp\";ada\r\n", "Password;user\r\n\"#\";ada\r\n"),
            (
                "| user | password | note |\n|---|---|---|\n| ada | `We4ft-Wq2rp` | none |\n",
                "| user | password | note |\n|---|---|---|\n| ada | `#` | none |\n",
            ),
        ] {
            assert_eq!(rules.clean(text).replace("[secret:assignment]", "#"), clean);
        }
        for text in [
            "name, password, and We4ft-Wq2rp\nada",
            "user,password\nada,required\nbob,changeme1A",
            "fn login(user, password)\nlet x = (a, B2c3d4e5F6)",
        ] {
            assert_eq!(rules.clean(text), text);
        }
    }

    #[test]
    fn a_long_line_may_end_within_a_character() {
        let rules = Rules::new();
        for length in 380..410 {
            let long = format!("password,{}€€€", "x".repeat(length));
            for text in [format!("{long},y\nada,b"), format!("token,b\n{long},y\nada,b"), long] {
                assert_eq!(rules.clean(&text), text);
            }
        }
    }
}
