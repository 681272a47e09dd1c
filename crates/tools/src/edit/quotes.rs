//! Straight and curly quotes: models write straight ones where files have curly ones.

const LEFT_SINGLE: char = '\u{2018}';
const RIGHT_SINGLE: char = '\u{2019}';
const LEFT_DOUBLE: char = '\u{201C}';
const RIGHT_DOUBLE: char = '\u{201D}';

fn straight(ch: char) -> char {
    match ch {
        LEFT_SINGLE | RIGHT_SINGLE => '\'',
        LEFT_DOUBLE | RIGHT_DOUBLE => '"',
        other => other,
    }
}

/// Returns the part of `text` that equals `wanted`, or that equals it if curly quotes count as straight ones.
pub(super) fn find_actual<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    if let Some(at) = text.find(wanted) {
        return Some(&text[at..at + wanted.len()]);
    }
    let has_curly = text.contains([LEFT_SINGLE, RIGHT_SINGLE, LEFT_DOUBLE, RIGHT_DOUBLE]);
    if !has_curly && !wanted.contains([LEFT_SINGLE, RIGHT_SINGLE, LEFT_DOUBLE, RIGHT_DOUBLE]) {
        return None;
    }
    let plain: String = text.chars().map(straight).collect();
    let wanted: String = wanted.chars().map(straight).collect();
    let at = plain.find(&wanted)?;
    // A curly quote has three bytes and a straight one has one, so offsets are counted in characters.
    let start = plain[..at].chars().count();
    let length = wanted.chars().count();
    let mut offsets = text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
    let first = offsets.nth(start)?;
    let last = if length == 0 { first } else { offsets.nth(length - 1)? };
    Some(&text[first..last])
}

/// Makes the quotes of `new` curly, for each kind of quote that is curly in `sample`.
pub(super) fn curl_like(sample: &str, new: &str) -> String {
    let curls_single = sample.contains([LEFT_SINGLE, RIGHT_SINGLE]);
    let curls_double = sample.contains([LEFT_DOUBLE, RIGHT_DOUBLE]);
    let chars: Vec<char> = new.chars().collect();
    let opens = |index: usize| {
        index == 0
            || matches!(chars[index - 1], ch if ch.is_whitespace() || matches!(ch, '(' | '[' | '{' | '—' | '–'))
    };
    let is_letter =
        |index: Option<usize>| index.and_then(|at| chars.get(at)).is_some_and(|ch| ch.is_alphabetic());
    let curl = |(index, ch): (usize, &char)| match ch {
        '"' if curls_double => {
            if opens(index) {
                LEFT_DOUBLE
            } else {
                RIGHT_DOUBLE
            }
        }
        // Between letters it is an apostrophe.
        '\'' if curls_single && is_letter(index.checked_sub(1)) && is_letter(Some(index + 1)) => RIGHT_SINGLE,
        '\'' if curls_single => {
            if opens(index) {
                LEFT_SINGLE
            } else {
                RIGHT_SINGLE
            }
        }
        other => *other,
    };
    chars.iter().enumerate().map(curl).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_quotes_match_curly_ones() {
        let text = "é say “hello” it’s";
        assert_eq!(find_actual(text, "say \"hello\""), Some("say “hello”"));
        assert_eq!(find_actual(text, "it's"), Some("it’s"));
        assert_eq!(find_actual(text, "\"nope\""), None);
    }

    #[test]
    fn only_kinds_that_are_curly_in_the_sample_are_made_curly() {
        assert_eq!(curl_like("say “hello”", "cry \"bye\" 'q' it's"), "cry “bye” 'q' it's");
        assert_eq!(curl_like("‘a’ “b”", "'it's' (\"c\") \"d\""), "‘it’s’ (“c”) “d”");
    }
}
