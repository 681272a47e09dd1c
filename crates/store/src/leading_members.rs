//! Reads a few members of a line without parsing the whole line.

use threadline_entry::{Json, walk};

/// Returns the values of the `wanted` keys at the top level of `line`. A key with `false` is returned only if
/// it is found on the way.
///
/// Claude Code writes ids and directory before the message, so few members are read for them. Unlike
/// [`walk::pick`], this does not detect errors inside a line, and reads no keys with escapes.
pub(crate) fn members<'a, const N: usize>(
    line: &'a [u8],
    wanted: [(&str, bool); N],
) -> [Option<Json<'a>>; N] {
    let mut found = [None; N];
    walk::visit_members(line, 0, |key, start| {
        let end = walk::skip_value(line, start);
        if let Some(i) = wanted.iter().position(|(want, _)| want.as_bytes() == key) {
            found[i] = std::str::from_utf8(line.get(start..end)?).ok().and_then(Json::parse);
            if found.iter().zip(&wanted).all(|(value, (_, is_wanted))| value.is_some() || !is_wanted) {
                return None;
            }
        }
        Some(end)
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> [Option<&str>; 3] {
        members(line.as_bytes(), ["cwd", "version", "n"].map(|key| (key, true)))
            .map(|value| value.map(Json::raw))
    }

    #[test]
    fn members_are_read_until_all_wanted_ones_are_found() {
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
