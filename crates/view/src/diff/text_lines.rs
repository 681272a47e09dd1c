//! The lines of a text, from its start or its end, without a list of them.

/// Returns the first line of a text with its end, as [`similar::DiffableStr::tokenize_lines`] does.
pub(super) fn first_line(text: &str) -> &str {
    let end = match text.bytes().position(|byte| matches!(byte, b'\n' | b'\r')) {
        Some(at) if text[at..].starts_with("\r\n") => at + 2,
        Some(at) => at + 1,
        None => text.len(),
    };
    &text[..end]
}

/// Returns the lines of a text with their ends.
pub(super) fn lines_of(text: &str) -> impl Iterator<Item = &str> + Clone {
    let mut rest = text;
    std::iter::from_fn(move || {
        let line = first_line(rest);
        rest = &rest[line.len()..];
        (!line.is_empty()).then_some(line)
    })
}

/// Returns the lines of a text with their ends, the last line first.
pub(super) fn lines_from_end(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let inner = rest.strip_suffix("\r\n").or_else(|| rest.strip_suffix(['\n', '\r'])).unwrap_or(rest);
        let start = inner.bytes().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        let (before, line) = rest.split_at(start);
        rest = before;
        (!line.is_empty()).then_some(line)
    })
}

/// Returns the number of lines of a text.
pub(super) fn count_lines(text: &str) -> usize {
    lines_of(text).count()
}

/// Returns the length of the equal lines at the start of both texts.
pub(super) fn common_head(old: &str, new: &str) -> usize {
    common_length(lines_of(old).zip(lines_of(new)))
}

/// Returns the length of the equal lines at the end of both texts.
pub(super) fn common_tail(old: &str, new: &str) -> usize {
    common_length(lines_from_end(old).zip(lines_from_end(new)))
}

fn common_length<'l>(pairs: impl Iterator<Item = (&'l str, &'l str)>) -> usize {
    pairs.take_while(|(old, new)| old == new).map(|(line, _)| line.len()).sum()
}
