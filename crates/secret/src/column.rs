//! Passwords in a column of a table: CSV, values separated by tabs, and Markdown.

use std::ops::Range;

use crate::{assignment, heuristics};

/// Words that the names of columns with secrets end with, in lower case.
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
    "secret_key",
    "secret key",
    "access key",
];

/// Words before them, which make other names of them: a column of identifiers.
const OTHER_NAMES: &[&str] =
    &["max", "reset", "forgot", "number of", "has", "is", "input", "output", "total"];

/// The characters that separate columns.
const SEPARATORS: &[char] = &[',', ';', '\t', '|', '│'];

/// The longest line of a table, and the maximum number of its lines.
const MAX_LINE: usize = 400;
const MAX_LINES: usize = 64;

/// Finds the secrets in the column below the header at `at`.
///
/// Ends at the next header, so that every line belongs to one header at most, and the cost is linear.
pub(crate) fn find(text: &str, at: Range<usize>, mut found: impl FnMut(Range<usize>)) {
    // Most matches are words in prose and code.
    let after = text[at.end..].trim_start_matches([' ', '"', '\'', '`']);
    if !after.is_empty() && !after.starts_with([',', ';', '\t', '|', '│', '\r', '\n']) {
        return;
    }
    let from = text.floor_char_boundary(at.start.saturating_sub(MAX_LINE));
    let start = text[from..at.start].rfind('\n').map_or(from, |newline| from + newline + 1);
    let Some(header) = line_at(text, start) else { return };
    let place = at.start - start;
    let Some(separator) = separator_around(header, place..place + at.len()) else {
        aligned(text, start, header, place, found);
        return;
    };
    // The first of several secret columns finds them all.
    let columns: Vec<usize> =
        header.split(separator).enumerate().filter(|(_, name)| is_name(name)).map(|(n, _)| n).collect();
    if header[..place].matches(separator).count() != columns.first().copied().unwrap_or_default() {
        return;
    }
    let n_columns = header.split(separator).count();
    // A list of names is no header: `'email_token',`.
    if header.split(separator).filter(|name| !name.trim().is_empty()).count() < 2 {
        return;
    }
    let mut line_start = start + header.len() + 1;
    for _ in 0..MAX_LINES {
        if line_start >= text.len() {
            return;
        }
        let Some(line) = line_at(text, line_start) else { return };
        if is_rule(line) {
            line_start += line.len() + 1;
            continue;
        }
        if line.split(separator).count() != n_columns || line.split(separator).any(is_name) {
            return;
        }
        let mut cell_start = line_start;
        for (n, cell) in line.split(separator).enumerate() {
            if columns.contains(&n)
                && let Some(value) = secret_cell(cell)
            {
                found(cell_start + value.start..cell_start + value.end);
            }
            cell_start += cell.len() + separator.len_utf8();
        }
        line_start += line.len() + 1;
    }
}

/// Returns the secret in a cell, without blanks and quotes.
fn secret_cell(cell: &str) -> Option<Range<usize>> {
    let value = cell.trim().trim_matches(['"', '\'', '`']);
    let is_secret = heuristics::is_varied(value) && heuristics::is_password(value)
        || value.len() >= 16 && heuristics::is_random(value.as_bytes())
        || assignment::is_phrase(value, false);
    let is_plain = !value.contains(' ') && !heuristics::is_placeholder_value(value);
    let offset = cell.len() - cell.trim_start().trim_start_matches(['"', '\'', '`']).len();
    (value.len() >= 8 && is_secret && is_plain).then(|| offset..offset + value.len())
}

/// Returns whether a line of a table separates its rows: `|---|---|`, `----+----`, `├────┼────┤`.
fn is_rule(line: &str) -> bool {
    line.len() >= 3
        && line.chars().all(|letter| "-+|=: ".contains(letter) || ('\u{2500}'..='\u{257f}').contains(&letter))
        && line.contains(['-', '=', '─', '━', '═'])
}

/// Finds the secrets in the last column of a table that is aligned with blanks, in capitals as commands print
/// it: `NAME   PASSWORD`.
fn aligned(text: &str, start: usize, header: &str, place: usize, mut found: impl FnMut(Range<usize>)) {
    let names: Vec<&str> = header.split_ascii_whitespace().collect();
    let is_header = header.bytes().all(|byte| byte.is_ascii_uppercase() || b" _-\r".contains(&byte))
        && header[..place].ends_with("  ")
        && names.len() >= 2
        && names.last().is_some_and(|name| header[place..].trim() == *name);
    if !is_header {
        return;
    }
    let mut line_start = start + header.len() + 1;
    for _ in 0..MAX_LINES {
        let Some(line) = text.get(line_start..).and_then(|_| line_at(text, line_start)) else { return };
        // A blank line ends the table.
        let Some(cell) = line.get(place..).filter(|_| line[..place.min(line.len())].ends_with(' ')) else {
            return;
        };
        if let Some(value) = secret_cell(cell) {
            found(line_start + place + value.start..line_start + place + value.end);
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
    // The name may be the last word of the cell: `db_password`, `Initial password`.
    let before = header.get(..name.start)?;
    let words = before.bytes().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b" _".contains(byte));
    let before = before[..before.len() - words.count()].trim_end_matches(['"', '\'', '`', ' ']);
    let after = header.get(name.end..)?.trim_start_matches([' ', '"', '\'', '`', '\r']);
    let separator = before.chars().next_back().or_else(|| after.chars().next())?;
    let is_edge = |edge: Option<char>| edge.is_none_or(|edge| edge == separator);
    (SEPARATORS.contains(&separator) && is_edge(after.chars().next())).then_some(separator)
}

/// Returns whether a cell is the name of a secret.
fn is_name(cell: &str) -> bool {
    let name = cell.trim().trim_matches(['"', '\'', '`']).to_ascii_lowercase();
    let Some(end) = NAMES.iter().find(|end| name.ends_with(**end)) else { return false };
    let before = &name[..name.len() - end.len()];
    let is_whole = before.is_empty() || before.ends_with([' ', '_']);
    let before = before.trim_end_matches([' ', '_']);
    let is_plain = before.len() <= 24
        && before.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" _".contains(&byte));
    is_whole && is_plain && !OTHER_NAMES.contains(&before)
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
            assert_eq!(rules.mask(text).replace("[secret:assignment]", "#"), clean);
        }
        for text in [
            "name, password, and We4ft-Wq2rp\nada",
            "user,password\nada,required\nbob,changeme1A",
            "fn login(user, password)\nlet x = (a, B2c3d4e5F6)",
        ] {
            assert_eq!(rules.mask(text), text);
        }
    }

    #[test]
    fn a_long_line_may_end_within_a_character() {
        let rules = Rules::new();
        for length in 380..410 {
            let long = format!("password,{}€€€", "x".repeat(length));
            for text in [format!("{long},y\nada,b"), format!("token,b\n{long},y\nada,b"), long] {
                assert_eq!(rules.mask(&text), text);
            }
        }
    }
}
