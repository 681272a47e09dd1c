//! Removes Markdown from a single line, such as a title.

use std::borrow::Cow;

/// Returns a line without the marks of headings, quotes, bold text and code.
///
/// `a ** b` and `a**b` are not marks and stay.
pub fn strip_markdown(line: &str) -> Cow<'_, str> {
    let line = line.trim_start();
    let bare = line.trim_start_matches(['#', '>']);
    let line = if bare.starts_with(' ') { bare.trim_start() } else { line };
    if !line.contains("**") && !line.contains('`') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let (mut rest, mut in_strong) = (line, false);
    while let Some(at) = rest.find(['*', '`']) {
        out.push_str(&rest[..at]);
        let mark = if rest[at..].starts_with("**") { "**" } else { &rest[at..at + 1] };
        let before = out.chars().next_back();
        rest = &rest[at + mark.len()..];
        let is_apart = |ch: Option<char>| ch.is_none_or(|ch| ch.is_whitespace() || ch.is_ascii_punctuation());
        let opens = !in_strong && is_apart(before) && !is_apart(rest.chars().next());
        let closes = in_strong && before.is_some_and(|ch| !ch.is_whitespace());
        match mark {
            "`" => {}
            "**" if opens || closes => in_strong = opens,
            _ => out.push_str(mark),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::strip_markdown;

    #[test]
    fn marks_are_removed_and_words_kept() {
        for (line, wanted) in [
            ("the **logs** row only has **Read**, no more", "the logs row only has Read, no more"),
            ("**All** of it (**really**)", "All of it (really)"),
            ("run `cargo test` now", "run cargo test now"),
            ("## What was done", "What was done"),
            ("> a quote", "a quote"),
            ("#12 is mended", "#12 is mended"),
            ("2 ** 3 and a**b and *this*", "2 ** 3 and a**b and *this*"),
            ("**cut off in the mid…", "cut off in the mid…"),
            ("**織機**は", "織機は"),
            ("plain", "plain"),
            ("", ""),
        ] {
            assert_eq!(strip_markdown(line), wanted, "{line}");
        }
    }
}
