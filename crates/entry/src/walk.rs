//! Picks a few top-level values out of a line without making an entry of it.

use crate::json::{self, Json, Walker};

/// The values of `keys` at the top level of `line`; `None` if the line is no JSON object.
///
/// The line is checked as strictly as [`Entry::parse`](crate::Entry::parse) does, but nothing is kept:
/// this is for loops that see every line of a home and want little of each. Of a key that is written
/// twice the last one counts.
pub fn pick<'a, const N: usize>(line: &'a [u8], keys: [&str; N]) -> Option<[Option<Json<'a>>; N]> {
    let text = simdutf8::basic::from_utf8(line).ok()?;
    let start = json::skip_white(line, 0);
    let body = &text[start..];
    let mut found: [Option<(usize, usize)>; N] = [None; N];
    let mut walker = Walker::new(body);
    walker
        .object(|walker, key| {
            let hit = keys.iter().position(|want| walker.key_is(key, want));
            let value = walker.pos();
            walker.value()?;
            if let Some(i) = hit.or_else(|| escaped(body, key, &keys)) {
                found[i] = Some((value, walker.pos()));
            }
            Ok(())
        })
        .ok()?;
    if json::skip_white(body.as_bytes(), walker.pos()) != body.len() {
        return None;
    }
    Some(found.map(|value| value.map(|(from, to)| Json::trusted(&body[from..to]))))
}

/// Which of `keys` an escaped key spells; nearly always the key has no escape at all.
fn escaped(body: &str, key: usize, keys: &[&str]) -> Option<usize> {
    let end = json::skip_value(body.as_bytes(), key) - 1;
    let name = &body[key + 1..end];
    if !name.contains('\\') {
        return None;
    }
    let name = json::decode(name);
    keys.iter().position(|want| *want == name)
}

#[cfg(test)]
mod tests {
    use super::pick;

    #[test]
    fn picks_what_is_asked_for_and_refuses_what_is_no_object() {
        let line = br#" {"type" : "user","a":{"type":"x"},"u\u0075id":"1","n":[1, 2],"type":"last"} "#;
        let [kind, uuid, n, none] = pick(line, ["type", "uuid", "n", "nope"]).unwrap();
        assert_eq!(kind.unwrap().raw(), "\"last\"");
        assert_eq!(uuid.unwrap().raw(), "\"1\"");
        assert_eq!(n.unwrap().raw(), "[1, 2]");
        assert!(none.is_none());
        for odd in [&b""[..], b"42", b"// x", b"{\"a\":1}{\"b\":2}", b"{\"a\":1", b"{\"a\":\"\xff\"}"] {
            assert!(pick(odd, ["a"]).is_none());
        }
    }
}
