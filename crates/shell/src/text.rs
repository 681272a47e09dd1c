//! Texts that `echo` and `printf` print, and escapes.

/// Which escapes a text has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// `echo -e`: octal numbers begin with `\0`, and `\c` ends the output.
    Echo,
    /// The format of `printf`.
    Format,
    /// `$'…'`
    AnsiC,
}

/// Returns what `echo` prints with these arguments. `None` if shells differ.
pub(crate) fn echo(arguments: &[&str]) -> Option<String> {
    let mut has_newline = true;
    let mut escapes = None;
    let mut words = arguments;
    while let [first, rest @ ..] = words
        && let Some(letters) = first.strip_prefix('-')
        && !letters.is_empty()
        && letters.chars().all(|ch| "neE".contains(ch))
    {
        for letter in letters.chars() {
            match letter {
                'n' => has_newline = false,
                letter => escapes = Some(letter == 'e'),
            }
        }
        words = rest;
    }
    let text = words.join(" ");
    // Without an option, bash prints backslashes, and zsh and dash replace escapes.
    let may_be_escape = |(at, _): (usize, &str)| {
        text[at + 1..].starts_with(|ch: char| ch.is_ascii_digit() || "abceEfnrtvxuU\\".contains(ch))
    };
    let (mut text, is_ended) = match escapes {
        Some(true) => unescape(&text, Escapes::Echo)?,
        None if text.match_indices('\\').any(may_be_escape) => return None,
        _ => (text, false),
    };
    if has_newline && !is_ended {
        text.push('\n');
    }
    Some(text)
}

/// Returns what `printf` prints with these arguments. `None` if it is not known, or `printf` fails.
pub(crate) fn printf(arguments: &[&str]) -> Option<String> {
    let arguments = arguments.strip_prefix(&["--"]).unwrap_or(arguments);
    let [format, values @ ..] = arguments else { return None };
    if arguments.len() == values.len() + 1 && format.starts_with('-') && format.len() > 1 {
        return None;
    }
    let pieces = format_pieces(format)?;
    let per_round = pieces.iter().filter(|piece| matches!(piece, FormatPiece::Value(_))).count();
    let mut out = String::new();
    let mut values = values.iter();
    loop {
        for piece in &pieces {
            match piece {
                FormatPiece::Text(text) => out.push_str(text),
                FormatPiece::Value(kind) => {
                    if push_value(&mut out, *kind, values.next().copied())? {
                        return Some(out);
                    }
                }
            }
        }
        if per_round == 0 || values.len() == 0 {
            return Some(out);
        }
    }
}

enum FormatPiece {
    Text(String),
    Value(char),
}

fn format_pieces(format: &str) -> Option<Vec<FormatPiece>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        pieces.push(FormatPiece::Text(unescape_format(&rest[..at])?));
        let kind = rest[at + 1..].chars().next()?;
        match kind {
            '%' => pieces.push(FormatPiece::Text("%".to_owned())),
            's' | 'd' | 'i' | 'b' | 'c' => pieces.push(FormatPiece::Value(kind)),
            _ => return None,
        }
        rest = &rest[at + 2..];
    }
    pieces.push(FormatPiece::Text(unescape_format(rest)?));
    Some(pieces)
}

fn unescape_format(text: &str) -> Option<String> {
    unescape(text, Escapes::Format).filter(|(_, is_ended)| !is_ended).map(|(text, _)| text)
}

/// Appends a value. Returns whether it ends the output.
fn push_value(out: &mut String, kind: char, value: Option<&str>) -> Option<bool> {
    let value = value.unwrap_or_default();
    match kind {
        's' => out.push_str(value),
        'c' => out.extend(value.chars().next().filter(char::is_ascii)),
        'b' => {
            let (text, is_ended) = unescape(value, Escapes::Echo)?;
            out.push_str(&text);
            return Some(is_ended);
        }
        _ => {
            // A leading zero makes a number octal.
            let digits = value.strip_prefix('-').unwrap_or(value);
            let is_decimal = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
            let is_number = digits.is_empty() && value.is_empty() || digits == "0";
            if !(is_number || is_decimal && !digits.is_empty() && digits.len() < 18) {
                return None;
            }
            out.push_str(if value.is_empty() || digits == "0" { "0" } else { value });
        }
    }
    Some(false)
}

/// Replaces the escapes in the text of `$'…'`.
pub(crate) fn unescape_ansi_c(text: &str) -> Option<String> {
    unescape(text, Escapes::AnsiC).map(|(text, _)| text)
}

/// Replaces escapes. Returns also whether `\c` ended the text. `None` if the result is not UTF-8.
fn unescape(text: &str, escapes: Escapes) -> Option<(String, bool)> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else {
            out.push(b'\\');
            break;
        };
        let after = &rest[escape.len_utf8()..];
        let mut used = escape.len_utf8();
        if let Some(byte) = control(escape) {
            out.push(byte);
            rest = after;
            continue;
        }
        match escape {
            'c' if escapes == Escapes::Echo => return String::from_utf8(out).ok().map(|text| (text, true)),
            'c' => return None,
            '\'' | '"' | '?' if escapes != Escapes::Echo => out.push(escape as u8),
            '0' if escapes == Escapes::Echo => {
                let digits = digits(after, 8, 3);
                out.push(u32::from_str_radix(digits, 8).unwrap_or(0) as u8);
                used += digits.len();
            }
            '0'..='7' if escapes != Escapes::Echo => {
                let digits = digits(rest, 8, 3);
                let byte = u32::from_str_radix(digits, 8).unwrap_or(0) as u8;
                if byte == 0 && escapes == Escapes::AnsiC {
                    return None;
                }
                out.push(byte);
                used = digits.len();
            }
            'x' => {
                let digits = digits(after, 16, 2);
                let byte = u8::from_str_radix(digits, 16).ok()?;
                if byte == 0 && escapes == Escapes::AnsiC {
                    return None;
                }
                out.push(byte);
                used += digits.len();
            }
            'u' | 'U' => {
                let digits = digits(after, 16, if escape == 'u' { 4 } else { 8 });
                let ch = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
                // Another locale than UTF-8 has other bytes for the other characters.
                if !ch.is_ascii() || ch == '\0' {
                    return None;
                }
                out.push(ch as u8);
                used += digits.len();
            }
            other => {
                out.push(b'\\');
                out.extend(other.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        rest = &rest[used..];
    }
    out.extend(rest.as_bytes());
    String::from_utf8(out).ok().map(|text| (text, false))
}

/// Returns the character that a letter after a backslash is in all kinds of texts.
fn control(escape: char) -> Option<u8> {
    Some(match escape {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 0x1b,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        _ => return None,
    })
}

fn digits(text: &str, radix: u32, limit: usize) -> &str {
    let length = text.chars().take(limit).take_while(|ch| ch.is_digit(radix)).count();
    &text[..length]
}
