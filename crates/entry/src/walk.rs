//! Picks a few values out of a line without making an entry of it.

use memchr::memchr_iter;

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

/// The values that [`skim`] found: of the line's keys, and of its message's.
pub type Skimmed<'a, const N: usize, const M: usize> = ([Option<Json<'a>>; N], [Option<Json<'a>>; M]);

/// The values of `keys` at the top level of `line`, and of `message_keys` in its message.
///
/// For a line that is JSON this is exact: of a key that is written twice the last one counts, and so does
/// the last of two messages. What is stepped over is not checked, though, which makes this several times as
/// quick as [`pick`]: of a line that is broken somewhere inside, values may come back all the same. Whatever
/// looks odd on the way is left to [`pick`], so that a line that is no object at all is `None`.
pub fn skim<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    keys: [&str; N],
    message_keys: [&str; M],
) -> Option<Skimmed<'a, N, M>> {
    skim_quickly(line, None, &keys, &message_keys).or_else(|| skim_strictly(line, keys, message_keys))
}

/// The same, quicker still, for a line in which the quoted name of one of `message_keys` stands at `hit`.
///
/// Most of a message is its content, and what is wanted stands before or behind it: so the content is jumped
/// over, from its beginning to the hit. That the hit is a key of the message, and not something that looks the
/// same deeper inside or in another object, is made sure of: where it is not, and where a key of the message is not
/// found, this is [`skim`]. The one difference is that of a key that the message has twice either may count.
pub fn skim_around<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    hit: usize,
    keys: [&str; N],
    message_keys: [&str; M],
) -> Option<Skimmed<'a, N, M>> {
    // Nothing of the line itself is jumped over, so what was not found there is not there.
    let whole = |(_, in_message): &Skimmed<'a, N, M>| in_message.iter().all(Option::is_some);
    let jumped = skim_quickly(line, Some(hit), &keys, &message_keys).filter(whole);
    jumped.or_else(|| skim(line, keys, message_keys))
}

/// Steps over the line without checking it; `None` for whatever is not as plain as Claude Code writes it.
#[inline(always)]
fn skim_quickly<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    hit: Option<usize>,
    keys: &[&str; N],
    message_keys: &[&str; M],
) -> Option<Skimmed<'a, N, M>> {
    let hit = hit.filter(|_| !keys.contains(&"message") && !message_keys.contains(&"content"));
    let mut found = [None; N];
    let mut in_message = [None; M];
    let mut jumped = None;
    let end = json::step_over(line, 0, |key, start| {
        let end = if key == b"message" {
            in_message = [None; M];
            match line.get(start) {
                Some(b'{') => json::step_over(line, start, |key, start| {
                    let end = match hit {
                        Some(hit) if start < hit && key == b"content" => {
                            let end = jump(line, start, hit)?;
                            jumped = Some((start, end));
                            end
                        }
                        _ => json::skip_value(line, start),
                    };
                    note(&mut in_message, message_keys, key, (start, end));
                    Some(end)
                })?,
                _ => json::skip_value(line, start),
            }
        } else {
            json::skip_value(line, start)
        };
        note(&mut found, keys, key, (start, end));
        Some(end)
    })?;
    if json::skip_white(line, end) != line.len() {
        return None;
    }
    let text = Text::of(line, jumped)?;
    Some((text.values(found)?, text.values(in_message)?))
}

/// The line as text, as far as it is known to be.
enum Text<'a> {
    /// What stands before the content, and what stands behind it, from here on.
    Around(&'a str, &'a str, usize),
    /// Each value must be looked at by itself.
    Unknown(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Looks at once at all that is left of a line if its content is jumped over; `None` if it is no text.
    fn of(line: &'a [u8], jumped: Option<Span>) -> Option<Self> {
        let Some((from, to)) = jumped else { return Some(Self::Unknown(line)) };
        let text = |bytes| simdutf8::basic::from_utf8(bytes).ok();
        Some(Self::Around(text(&line[..from])?, text(&line[to..])?, to))
    }

    /// The values that stand at `found`; `None` if one of them is no text.
    fn values<const N: usize>(&self, found: [Option<Span>; N]) -> Option<[Option<Json<'a>>; N]> {
        let mut values = [None; N];
        for (value, span) in values.iter_mut().zip(found) {
            if let Some((start, end)) = span {
                let text = match *self {
                    Self::Around(_, behind, from) if start >= from => behind.get(start - from..end - from)?,
                    Self::Around(before, ..) => before.get(start..end)?,
                    Self::Unknown(line) => simdutf8::basic::from_utf8(line.get(start..end)?).ok()?,
                };
                *value = Some(Json::trusted(text));
            }
        }
        Some(values)
    }
}

/// Jumps from the content of a message to the comma before `hit`, if the message may still be open there.
///
/// The caller goes on from there as if inside the message, and finds the end of the line after two closing
/// braces if and only if the hit is a key two objects deep. What is left to rule out is that the message ended
/// on the way and the hit is in the value of a later key of the line. Then somewhere a brace is followed by a
/// comma and a key, and, stepping on from there, by a value with the hit inside. Braces in strings may be
/// taken for such an end, but never the other way round.
pub(crate) fn jump(line: &[u8], content: usize, hit: usize) -> Option<usize> {
    let before = line.get(content..hit)?.trim_ascii_end();
    let comma = content + before.len().checked_sub(1)?;
    if line[comma] != b',' {
        return None;
    }
    let mut braces = memchr_iter(b'}', before).map(|brace| content + brace);
    braces.all(|brace| !leads_into(line, brace, hit)).then_some(comma)
}

/// Whether `hit` is, or may be, inside one of the members that follow the object which ends with `brace`.
fn leads_into(line: &[u8], brace: usize, hit: usize) -> bool {
    let Some(mut at) = next_key(line, brace + 1) else { return false };
    while at != hit {
        let Some(close) = json::find_special(line, at + 1).filter(|&close| line[close] == b'"') else {
            return true;
        };
        let colon = json::skip_white(line, close + 1);
        if line.get(colon) != Some(&b':') {
            return true;
        }
        let end = json::skip_value(line, json::skip_white(line, colon + 1));
        if end > hit {
            return true;
        }
        at = match next_key(line, end) {
            Some(next) => next,
            // The object around them ends before the hit, so it is not the line itself.
            None => return !matches!(line.get(json::skip_white(line, end)), Some(b'}' | b']')),
        };
    }
    false
}

/// Where a key begins behind a comma.
fn next_key(line: &[u8], at: usize) -> Option<usize> {
    let comma = json::skip_white(line, at);
    let key = json::skip_white(line, comma + 1);
    (line.get(comma) == Some(&b',') && line.get(key) == Some(&b'"')).then_some(key)
}

/// Where a value begins and ends.
type Span = (usize, usize);

/// Notes a value if its key is asked for.
#[inline(always)]
fn note(found: &mut [Option<Span>], keys: &[&str], key: &[u8], value: Span) {
    if let Some(i) = keys.iter().position(|want| want.as_bytes() == key) {
        found[i] = Some(value);
    }
}

/// The same as [`skim`] says, with every byte checked.
#[cold]
fn skim_strictly<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    keys: [&str; N],
    message_keys: [&str; M],
) -> Option<Skimmed<'a, N, M>> {
    let found = pick(line, keys)?;
    let [message] = pick(line, ["message"])?;
    Some((found, message_keys.map(|key| message?.get(key))))
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
    use proptest::prelude::*;
    use serde_json::Value;

    use super::{pick, skim, skim_around};
    use crate::Json;

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

    #[test]
    fn skims_lines_that_are_not_written_plainly() {
        fn usage(line: &str) -> Option<Option<&str>> {
            skim(line.as_bytes(), [], ["usage"]).map(|([], [usage])| usage.map(|json| json.raw()))
        }
        for (line, expected) in [
            (r#"{"message":{"usage":1}}"#, Some(Some("1"))),
            (r#" { "message" : { "usage" : 1 } } "#, Some(Some("1"))),
            (r#"{"message":{"content":[{"usage":2}],"usage":1}}"#, Some(Some("1"))),
            (r#"{"message":{"content":"\\\"usage\":2}}\"","usage":1}}"#, Some(Some("1"))),
            (r#"{"message":{"usage":1},"toolUseResult":{"usage":2},"usage":3}"#, Some(Some("1"))),
            (r#"{"message":{"usage":1,"usage":2},"message":{"usage":3,"u\u0073age":4}}"#, Some(Some("4"))),
            (r#"{"message":{"usage":1},"message":"none"}"#, Some(None)),
            (r#"{"m\u0065ssage":{"usage":1}}"#, Some(Some("1"))),
            (r#"{"usage":1}"#, Some(None)),
            (r#"{"message":null}"#, Some(None)),
            ("{}", Some(None)),
            (r#"[{"message":{"usage":1}}]"#, None),
            (r#"{"message":{"usage":1}}{}"#, None),
            (r#"{"message":{"usage":1}"#, None),
            (r#"{"message":{"usage":1,}"#, None),
            (r#"{"message":{"usage"#, None),
            (r#"{"message":{"usage":"#, None),
            ("", None),
        ] {
            assert_eq!(usage(line), expected, "{line}");
        }
        assert!(skim(b"{\"a\":\"\xff\"}", ["a"], []).is_none());
    }

    /// What serde_json finds under the same keys.
    fn reference(line: &[u8], keys: &[&str], message_keys: &[&str]) -> Option<Vec<Option<Value>>> {
        let line: serde_json::Map<String, Value> = serde_json::from_slice(line).ok()?;
        let message = line.get("message");
        let top = keys.iter().map(|key| line.get(*key).cloned());
        let inner = message_keys.iter().map(|key| message?.get(*key).cloned());
        Some(top.chain(inner).collect())
    }

    /// A line that is JSON, skimmed, says what serde_json says.
    fn agrees(line: &[u8]) -> Result<(), TestCaseError> {
        let (keys, inner) = (["type", "uuid", "message"], ["id", "model", "usage", "content"]);
        let expected = reference(line, &keys, &inner);
        let skimmed = skim(line, keys, inner);
        let picked = pick(line, keys);
        prop_assert_eq!(picked.is_some(), expected.is_some());
        if let Some(expected) = expected {
            let (top, inner) = skimmed.unwrap();
            prop_assert_eq!(
                picked.unwrap().map(|json| json.map(|json| json.raw())),
                top.map(|json| json.map(|json| json.raw()))
            );
            let found = top.iter().chain(&inner);
            let found: Vec<_> =
                found.map(|json| json.map(|json| serde_json::from_str(json.raw()).unwrap())).collect();
            prop_assert_eq!(found, expected);
            agrees_around(line)?;
        }
        Ok(())
    }

    /// From wherever `"usage"` stands in the line, the same is found.
    fn agrees_around(line: &[u8]) -> Result<(), TestCaseError> {
        let (keys, inner) = (["type"], ["id", "usage"]);
        let (top, message) = skim(line, ["type", "message"], inner).unwrap();
        if message_has_twice(top[1], &inner) {
            return Ok(());
        }
        for hit in memchr::memmem::find_iter(line, b"\"usage\"") {
            let found = skim_around(line, hit, keys, inner).unwrap();
            prop_assert_eq!(found, ([top[0]], message));
            let (none, [usage]) = skim_around(line, hit, [], ["usage"]).unwrap();
            prop_assert_eq!((none, usage), ([], message[1]));
        }
        Ok(())
    }

    fn message_has_twice(message: Option<Json<'_>>, keys: &[&str]) -> bool {
        let count =
            |key: &str| message.into_iter().flat_map(Json::members).filter(|(name, _)| name.is(key)).count();
        keys.iter().any(|key| count(key) > 1)
    }

    #[test]
    fn a_hit_that_is_no_key_of_the_message_does_not_mislead() {
        for (line, expected) in [
            (r#"{"message":{"content":[{"a":{},"b":{"c":1}}],"x":{},"usage":1}}"#, Some("1")),
            (r#"{"message":{"content":"},","usage":1}}"#, Some("1")),
            (r#"{"message":{"content":[],"usage":1},"other":{"usage":2}}"#, Some("1")),
            (r#"{"message":{"content":[]},"other":{"usage":2}}"#, None),
            (r#"{"message":{"content":[]} , "x":1,"other":{"y":[],"usage":2}}"#, None),
            (r#"{"message":{"content":[]},"x\\":1,"other":{"usage":2}}"#, None),
            (r#"{"message":{"content":[{"x":{"usage":2}}]}}"#, None),
            (r#"{"message":{"content":[{"x":"y","usage":2}]}}"#, None),
            (r#"{"message":{"content":[]},"usage":2}"#, None),
            (r#"{"message":{"content":"say, \"usage"}}"#, None),
        ] {
            for hit in memchr::memmem::find_iter(line.as_bytes(), b"\"usage\"") {
                let ([], [usage]) = skim_around(line.as_bytes(), hit, [], ["usage"]).unwrap();
                assert_eq!(usage.map(|usage| usage.raw()), expected, "{line}");
            }
        }
    }

    #[test]
    fn skimming_and_serde_json_agree_on_the_corpus() {
        for path in threadline_testkit::shared_logs() {
            for line in std::fs::read(&path).unwrap().split(|&byte| byte == b'\n') {
                agrees(line).unwrap();
            }
        }
    }

    /// An object of the names that matter here, some with escapes, some twice, with or without white space.
    fn any_object(value: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> + Clone {
        let name = prop::sample::select(vec![
            "message",
            "usage",
            "type",
            "content",
            "id",
            "\\u0069d",
            "m\\u0065ssage",
            "x\\\\",
            "",
        ]);
        let space = prop::sample::select(vec!["", "", "", " ", "\t "]);
        let member = (name, space, value)
            .prop_map(|(name, space, value)| format!("{space}\"{name}\"{space}:{space}{value}{space}"));
        prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    fn any_line() -> impl Strategy<Value = String> {
        let plain = prop::sample::select(vec![
            "1",
            "-2.5e3",
            "null",
            "true",
            "\"\"",
            "\"}\\\",\\\\\"",
            "\"\\\"usage\"",
            "[]",
            "[{\"usage\":[\"]\"]}]",
            "{}",
            "\"é\\ud83d\\ude00\"",
        ]);
        let leaf = plain.prop_map(str::to_owned);
        any_object(prop_oneof![leaf.clone(), any_object(prop_oneof![leaf.clone(), any_object(leaf)])])
    }

    proptest! {
        #[test]
        fn skimming_and_serde_json_agree_on_any_line(line in any_line()) {
            agrees(line.as_bytes())?;
        }

        #[test]
        fn skimming_survives_any_bytes(line in any_line(), cut in any::<prop::sample::Index>(), put in any::<u8>()) {
            let mut line = line.into_bytes();
            let at = cut.index(line.len());
            line[at] = put;
            let _ = skim(&line, ["type"], ["usage"]);
            let _ = skim(&line[..at], ["type"], ["usage"]);
            let _ = skim_around(&line, at, ["type"], ["usage"]);
        }
    }
}
