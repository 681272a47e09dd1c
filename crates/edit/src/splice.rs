//! Splices: replacements of ranges in a line that leave every other byte unchanged.

use std::borrow::Borrow;
use std::ops::Range;

pub use threadline_entry::write::quote;
use threadline_entry::{Entry, Json, JsonKind};

/// A byte range of a line, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    range: Range<usize>,
    text: String,
}

impl Splice {
    /// Replaces the byte range `range` of a line with `text`.
    pub fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Self { range, text: text.into() }
    }

    /// Replaces `piece`, which must be a slice of `line`, with `text`.
    pub fn replace(line: &str, piece: &str, text: impl Into<String>) -> Self {
        Self::new(span(line, piece), text)
    }

    /// Deletes the byte range `range`.
    pub fn delete(range: Range<usize>) -> Self {
        Self::new(range, "")
    }
}

/// Returns the byte range of `piece` in `line`. `piece` must be a slice of `line`.
pub fn span(line: &str, piece: &str) -> Range<usize> {
    let start = (piece.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
    debug_assert!(start + piece.len() <= line.len(), "a piece of another line");
    start..start + piece.len()
}

/// Applies splices to a line. If two overlap, the one that starts first is applied.
pub(crate) fn apply<S: Borrow<Splice>>(line: &str, splices: &mut [S]) -> String {
    splices.sort_by_key(|splice| (splice.borrow().range.start, splice.borrow().range.end));
    let grown: usize = splices.iter().map(|splice| splice.borrow().text.len()).sum();
    let mut out = String::with_capacity(line.len() + grown);
    let mut copied = 0;
    for Splice { range, text } in splices.iter().map(|splice| splice.borrow()) {
        if range.start >= copied {
            out.push_str(&line[copied..range.start]);
            out.push_str(text);
            copied = range.end;
        }
    }
    out.push_str(&line[copied..]);
    out
}

/// Sets a top-level member of a line to a JSON value, in place or at the end. Returns `None` if the line is
/// not an object.
pub fn set(entry: &Entry, key: &str, value: &str) -> Option<Splice> {
    let text = entry.text();
    if let Some(old) = entry.get(key) {
        return Some(Splice::replace(text, old.raw(), value));
    }
    let end = span(text, entry.object()?.json().raw()).end - 1;
    let comma = if entry.members().next().is_some() { "," } else { "" };
    Some(Splice::new(end..end, format!("{comma}\"{key}\":{value}")))
}

/// Deletes a member of a line.
pub(crate) fn delete_key(entry: &Entry, key: &str) -> Vec<Splice> {
    let object = entry.object().map(|object| object.json());
    object.map_or(Vec::new(), |json| delete_parts(entry.text(), json, |_, name, _| name == Some(key)))
}

/// Deletes the members of an object, or the items of an array, for which `goes` returns true, with their
/// commas. `goes` is called with the index, the key (of a member), and the value.
pub fn delete_parts<'a>(
    line: &str,
    json: Json<'a>,
    mut goes: impl FnMut(usize, Option<&str>, Json<'a>) -> bool,
) -> Vec<Splice> {
    // The range of each part, including its key.
    let mut parts: Vec<(Range<usize>, bool)> = Vec::new();
    if json.kind() == JsonKind::Object {
        for (i, (key, value)) in json.members().enumerate() {
            let start = span(line, key.raw()).start - 1;
            parts.push((start..span(line, value.raw()).end, goes(i, Some(&key.name()), value)));
        }
    } else {
        for (i, item) in json.items().enumerate() {
            parts.push((span(line, item.raw()), goes(i, None, item)));
        }
    }
    let mut out = Vec::new();
    let mut all_before_go = true;
    for (i, (part, goes)) in parts.iter().enumerate() {
        if !goes {
            all_before_go = false;
            continue;
        }
        out.push(Splice::delete(match (all_before_go, parts.get(i + 1)) {
            (true, Some((next, _))) => part.start..next.start,
            (true, None) => part.clone(),
            (false, _) => parts[i - 1].0.end..part.end,
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_deleted_with_their_commas() {
        let array = "x[1, 2 ,3,4]";
        let object = r#"x{"a" : 1, "b":2 ,"c":3}"#;
        for (goes, numbers, members) in [
            (&[0][..], "x[2 ,3,4]", r#"x{"b":2 ,"c":3}"#),
            (&[0, 1], "x[3,4]", r#"x{"c":3}"#),
            (&[1], "x[1 ,3,4]", r#"x{"a" : 1 ,"c":3}"#),
            (&[1, 2], "x[1,4]", r#"x{"a" : 1}"#),
            (&[2], "x[1, 2,4]", r#"x{"a" : 1, "b":2}"#),
            (&[0, 2], "x[2,4]", r#"x{"b":2}"#),
            (&[0, 1, 2, 3], "x[]", "x{}"),
            (&[], array, object),
        ] {
            for (line, expected) in [(array, numbers), (object, members)] {
                let json = Json::parse(&line[1..]).unwrap();
                let mut splices = delete_parts(line, json, |i, _, _| goes.contains(&i));
                let result = apply(line, &mut splices);
                assert_eq!(result, expected);
                assert!(Json::parse(&result[1..]).is_some());
            }
        }
    }

    #[test]
    fn a_member_is_set_in_place_or_at_the_end() {
        for (line, expected) in [
            (r#" {"a":1,"k": 2 } "#, r#" {"a":1,"k": null } "#),
            (r#"{"a":1}"#, r#"{"a":1,"k":null}"#),
            ("{}", r#"{"k":null}"#),
        ] {
            let entry = Entry::parse(line.as_bytes()).0;
            let splice = set(&entry, "k", "null").unwrap();
            assert_eq!(apply(entry.text(), &mut [splice]), expected);
        }
        assert!(set(&Entry::parse(b"torn {").0, "k", "1").is_none());
    }
}
