//! Reads simple members at the beginning of a line without parsing the whole line.

use memchr::{memchr, memchr2, memmem};
use threadline_entry::{Json, walk};

/// Returns the values of the `wanted` keys at the top level of `line`. A key with `false` is returned only if
/// it is found on the way.
///
/// Claude Code writes ids, directory and time before the message, so the beginning of the line usually
/// contains them all. The whole line is read only if a key is missing there and its name occurs in the rest.
/// Unlike [`walk::pick`], this does not detect errors inside a line.
pub(crate) fn members<'a, const N: usize>(
    line: &'a [u8],
    wanted: [(&str, bool); N],
) -> [Option<Json<'a>>; N] {
    let mut found = [None; N];
    let mut rest = line.strip_prefix(b"{").unwrap_or_default();
    let is_missing = |found: &[Option<Json<'a>>; N], i: usize| wanted[i].1 && found[i].is_none();
    while let Some((key, value, next)) = member(rest) {
        if let Some(i) = wanted.iter().position(|(want, _)| want.as_bytes() == key) {
            found[i] = std::str::from_utf8(value).ok().and_then(Json::parse);
            if !(0..N).any(|i| is_missing(&found, i)) {
                return found;
            }
        }
        rest = next;
    }
    let named = |key: &str| memmem::find(rest, format!("\"{key}\"").as_bytes()).is_some();
    if (0..N).any(|i| is_missing(&found, i) && named(wanted[i].0)) {
        let skimmed = walk::skim(line, wanted.map(|(key, _)| key), []);
        return skimmed.map_or(found, |(values, [])| values);
    }
    found
}

/// Splits the first member off `bytes`, which are inside an object, if its value is not nested. Returns the
/// key, the value, and the bytes after the comma.
fn member(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let key = bytes.strip_prefix(b"\"")?;
    let end = memchr(b'"', key)?;
    let value = key.get(end + 1..)?.strip_prefix(b":")?;
    let length = match value.first()? {
        b'"' => string_length(value)?,
        b'{' | b'[' | b' ' => return None,
        _ => memchr2(b',', b'}', value)?,
    };
    let next = value.get(length..)?.strip_prefix(b",")?;
    Some((&key[..end], &value[..length], next))
}

/// Returns the length of the string at the start of `bytes`, including its quotes.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> [Option<&str>; 3] {
        members(line.as_bytes(), ["cwd", "version", "n"].map(|key| (key, true)))
            .map(|value| value.map(Json::raw))
    }

    #[test]
    fn the_rest_of_a_line_is_parsed_only_if_needed() {
        let all = [Some("\"/a\\\\\\\"b\""), Some("\"2\""), Some("1")];
        for (line, expected) in [
            (r#"{"parentUuid":null,"cwd":"/a\\\"b","version":"2","n":1,"message":{}}"#, all),
            (r#"{"cwd":"/a\\\"b","version":"2","n":1,"message":{"torn"#, all),
            (r#"{"cwd":"/a\\\"b","message":{"version":"no"},"version":"2","n":1}"#, all),
            (r#"{"message":{"version":"no"},"x":"version"}"#, [None; 3]),
            (r#"{"version": "2"}"#, [None, Some("\"2\""), None]),
            (r#"{"x":"version","version":"2","n":3}"#, [None, Some("\"2\""), Some("3")]),
            (r#"{"version":"2","message":{"torn"#, [None, Some("\"2\""), None]),
            (r#"{"cwd":"to"#, [None; 3]),
            ("", [None; 3]),
            ("[1]", [None; 3]),
            (r#"{"cwd":"\"#, [None; 3]),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
        let line = br#"{"cwd":"/a","x":[],"n":1}"#;
        assert!(members(line, [("cwd", true), ("n", false)])[1].is_none(), "not requested");
    }
}
