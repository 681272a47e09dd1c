//! Reads a few values of a line without parsing it into an entry.

use memchr::{memchr_iter, memchr2, memmem};

use crate::json::{self, Json, JsonValidator};
pub use crate::json::{skip_value, visit_members};

/// Returns the values of `keys` at the top level of `line`; `None` if the line is not a JSON object.
///
/// The line is validated as strictly as by [`Entry::parse`](crate::Entry::parse), but nothing is stored: this
/// is for loops over every line of a home that need few values of each. The last value counts if a key occurs
/// twice.
pub fn pick<'a, const N: usize>(line: &'a [u8], keys: [&str; N]) -> Option<[Option<Json<'a>>; N]> {
    let text = simdutf8::basic::from_utf8(line).ok()?;
    let start = json::skip_white(line, 0);
    let body = &text[start..];
    let mut found: [Option<(usize, usize)>; N] = [None; N];
    let mut walker = JsonValidator::new(body);
    walker
        .object(|walker, key| {
            let hit = keys.iter().position(|want| walker.key_is(key, want));
            let value = walker.pos();
            walker.value()?;
            if let Some(i) = hit.or_else(|| find_escaped_key(body, key, &keys)) {
                found[i] = Some((value, walker.pos()));
            }
            Ok(())
        })
        .ok()?;
    if json::skip_white(body.as_bytes(), walker.pos()) != body.len() {
        return None;
    }
    Some(found.map(|value| value.map(|(from, to)| Json::from_valid(&body[from..to]))))
}

/// Returns the string values of a [quoted key](crate::key::quoted) in the lines of a log, at any depth, as
/// they are written, with escapes. Only complete values are returned.
///
/// For the beginnings of logs: the lines are not parsed, and the last one may be incomplete. White space
/// around the colon, which Claude Code does not write but other programs do, is accepted.
pub fn string_values<'a>(lines: &'a [u8], quoted_key: &'static str) -> impl Iterator<Item = &'a str> {
    memmem::find_iter(lines, quoted_key.as_bytes()).filter_map(move |at| {
        let rest = lines[at + quoted_key.len()..].trim_ascii_start().strip_prefix(b":")?;
        let value = rest.trim_ascii_start().strip_prefix(b"\"")?;
        let mut end = 0;
        loop {
            end += memchr2(b'"', b'\\', value.get(end..)?)?;
            if value[end] == b'"' {
                return std::str::from_utf8(&value[..end]).ok();
            }
            end += 2;
        }
    })
}

/// The values that [`skim`] returns: those of the line's keys, and those of its message's keys.
pub type Skimmed<'a, const N: usize, const M: usize> = ([Option<Json<'a>>; N], [Option<Json<'a>>; M]);

/// Returns the values of `keys` at the top level of `line`, and of `message_keys` in its message.
///
/// The result is exact for a line that is valid JSON: if a key or the message occurs twice, the last one
/// counts. Skipped values are not validated, which makes this several times faster than [`pick`]: a line that
/// is invalid somewhere inside may still return values. Lines with unusual syntax are passed to [`pick`], so
/// that a line that is not an object returns `None`.
pub fn skim<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    keys: [&str; N],
    message_keys: [&str; M],
) -> Option<Skimmed<'a, N, M>> {
    skim_unchecked(line, None, &keys, &message_keys).or_else(|| skim_checked(line, keys, message_keys))
}

/// A faster [`skim`] for a line that contains the quoted name of one of `message_keys` at offset `hit`.
///
/// Most of a message is its content, and the requested values are before or after it. So this function jumps
/// from the start of the content to the hit. It verifies that the hit is a key of the message, and not the
/// same text deeper inside or in another object. If it is not, or if one of `message_keys` is not found, it
/// calls [`skim`]. The only difference: if the message has a key twice, either value may be returned.
pub fn skim_around<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    hit: usize,
    keys: [&str; N],
    message_keys: [&str; M],
) -> Option<Skimmed<'a, N, M>> {
    // Top-level keys are never jumped over, so those that were not found do not exist.
    let whole = |(_, in_message): &Skimmed<'a, N, M>| in_message.iter().all(Option::is_some);
    let jumped = skim_unchecked(line, Some(hit), &keys, &message_keys).filter(whole);
    jumped.or_else(|| skim(line, keys, message_keys))
}

/// Skims the line without validation; returns `None` for any syntax other than the plain form of Claude Code.
#[inline(always)]
fn skim_unchecked<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    hit: Option<usize>,
    keys: &[&str; N],
    message_keys: &[&str; M],
) -> Option<Skimmed<'a, N, M>> {
    let hit = hit.filter(|_| !keys.contains(&"message") && !message_keys.contains(&"content"));
    let mut found = [None; N];
    let mut in_message = [None; M];
    let mut jumped = None;
    let end = json::visit_members(line, 0, |key, start| {
        let end = if key == b"message" {
            in_message = [None; M];
            match line.get(start) {
                Some(b'{') => json::visit_members(line, start, |key, start| {
                    let end = match hit {
                        Some(hit) if start < hit && key == b"content" => {
                            let end = jump_to_hit(line, start, hit)?;
                            jumped = Some((start, end));
                            end
                        }
                        _ => json::skip_value(line, start),
                    };
                    store_span(&mut in_message, message_keys, key, (start, end));
                    Some(end)
                })?,
                _ => json::skip_value(line, start),
            }
        } else {
            json::skip_value(line, start)
        };
        store_span(&mut found, keys, key, (start, end));
        Some(end)
    })?;
    if json::skip_white(line, end) != line.len() {
        return None;
    }
    let text = CheckedText::of(line, jumped)?;
    Some((text.values(found)?, text.values(in_message)?))
}

/// The validated parts of a line.
enum CheckedText<'a> {
    /// The text before the content, the text after it, and the offset at which the latter begins.
    Around(&'a str, &'a str, usize),
    /// Nothing is validated yet: each value must be validated separately.
    Unchecked(&'a [u8]),
}

impl<'a> CheckedText<'a> {
    /// Validates all of the line except the skipped content; returns `None` if that is not UTF-8.
    fn of(line: &'a [u8], jumped: Option<ByteSpan>) -> Option<Self> {
        let Some((from, to)) = jumped else { return Some(Self::Unchecked(line)) };
        let text = |bytes| simdutf8::basic::from_utf8(bytes).ok();
        Some(Self::Around(text(&line[..from])?, text(&line[to..])?, to))
    }

    /// Returns the values at the spans `found`; `None` if one of them is not UTF-8.
    fn values<const N: usize>(&self, found: [Option<ByteSpan>; N]) -> Option<[Option<Json<'a>>; N]> {
        let mut values = [None; N];
        for (value, span) in values.iter_mut().zip(found) {
            if let Some((start, end)) = span {
                let text = match *self {
                    Self::Around(_, behind, from) if start >= from => behind.get(start - from..end - from)?,
                    Self::Around(before, ..) => before.get(start..end)?,
                    Self::Unchecked(line) => simdutf8::basic::from_utf8(line.get(start..end)?).ok()?,
                };
                *value = Some(Json::from_valid(text));
            }
        }
        Some(values)
    }
}

/// Returns the offset of the comma before `hit` if the message that contains `content` may still be open
/// there.
///
/// The caller continues there as if inside the message. It reaches the end of the line after two closing
/// braces if and only if the hit is a key two objects deep. What remains to be excluded is that the message
/// ended before the hit, and the hit is inside the value of a later key of the line. In that case some brace
/// is followed by a comma and a key, and the members from there on lead to a value that contains the hit.
/// Braces in strings may be mistaken for such an end, but no end is missed.
///
/// Also returns `None` if that would take much longer than reading the line: an object of very many objects
/// has a brace before each of its members.
pub fn jump_to_hit(line: &[u8], content: usize, hit: usize) -> Option<usize> {
    let before = line.get(content..hit)?.trim_ascii_end();
    let comma = content + before.len().checked_sub(1)?;
    if line[comma] != b',' {
        return None;
    }
    let mut braces = memchr_iter(b'}', before).map(|brace| content + brace);
    let mut budget = before.len().saturating_mul(MAX_REREADS);
    braces.all(|brace| !may_contain_hit(line, brace, hit, &mut budget)).then_some(comma)
}

/// How often [`jump_to_hit`] may read the bytes before the hit.
const MAX_REREADS: usize = 4;

/// Returns whether `hit` is or may be inside one of the members that follow the object closed by `brace`.
/// Reads at most `budget` bytes.
fn may_contain_hit(line: &[u8], brace: usize, hit: usize, budget: &mut usize) -> bool {
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
        let Some(left) = budget.checked_sub(end - at) else { return true };
        *budget = left;
        if end > hit {
            return true;
        }
        at = match next_key(line, end) {
            Some(next) => next,
            // The enclosing object ends before the hit, so it is not the line itself.
            None => return !matches!(line.get(json::skip_white(line, end)), Some(b'}' | b']')),
        };
    }
    false
}

/// Returns the offset of the key after a comma at `at`, if there is one.
fn next_key(line: &[u8], at: usize) -> Option<usize> {
    let comma = json::skip_white(line, at);
    let key = json::skip_white(line, comma + 1);
    (line.get(comma) == Some(&b',') && line.get(key) == Some(&b'"')).then_some(key)
}

/// The start and end offset of a value.
type ByteSpan = (usize, usize);

/// Stores the span of a value if its key is one of `keys`.
#[inline(always)]
fn store_span(found: &mut [Option<ByteSpan>], keys: &[&str], key: &[u8], value: ByteSpan) {
    if let Some(i) = keys.iter().position(|want| want.as_bytes() == key) {
        found[i] = Some(value);
    }
}

/// Does the same as [`skim`], but validates every byte.
#[cold]
fn skim_checked<'a, const N: usize, const M: usize>(
    line: &'a [u8],
    keys: [&str; N],
    message_keys: [&str; M],
) -> Option<Skimmed<'a, N, M>> {
    let found = pick(line, keys)?;
    let [message] = pick(line, ["message"])?;
    Some((found, message_keys.map(|key| message?.get(key))))
}

/// Returns the index of the key in `keys` that the escaped key at `key` decodes to. Keys rarely have escapes.
fn find_escaped_key(body: &str, key: usize, keys: &[&str]) -> Option<usize> {
    let end = json::skip_value(body.as_bytes(), key) - 1;
    let name = &body[key + 1..end];
    if !name.contains('\\') {
        return None;
    }
    let name = json::decode(name);
    keys.iter().position(|want| *want == name)
}

/// Returns whether two texts of equal length are equal. For the texts between the values of a line, most of
/// which are one or two keys long: too short for a call to `memcmp`.
#[inline(always)]
pub fn short_texts_equal(a: &[u8], b: &[u8]) -> bool {
    match a.len() {
        0..2 => a == b,
        2..4 => words_equal(a, b, |piece: &[u8; 2]| u128::from(u16::from_le_bytes(*piece))),
        4..8 => words_equal(a, b, |piece: &[u8; 4]| u128::from(u32::from_le_bytes(*piece))),
        8..16 => words_equal(a, b, |piece: &[u8; 8]| u128::from(u64::from_le_bytes(*piece))),
        64.. => a == b,
        _ => words_equal(a, b, |piece: &[u8; 16]| u128::from_le_bytes(*piece)),
    }
}

/// Compares in pieces of `N` bytes, of which the last may overlap the previous one. Needs at least `N` bytes.
#[inline(always)]
fn words_equal<const N: usize>(a: &[u8], b: &[u8], word: impl Fn(&[u8; N]) -> u128) -> bool {
    let (Some((_, a_last)), Some((_, b_last))) = (a.split_last_chunk::<N>(), b.split_last_chunk::<N>())
    else {
        return false;
    };
    let pieces = a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0);
    pieces.fold(word(a_last) ^ word(b_last), |differ, (a, b)| differ | (word(a) ^ word(b))) == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::{jump_to_hit, pick, short_texts_equal, skim, skim_around, string_values};
    use crate::Json;

    #[test]
    fn string_values_are_found_with_and_without_white_space() {
        let values = |lines: &str| -> Vec<String> {
            string_values(lines.as_bytes(), "\"cwd\"").map(str::to_owned).collect()
        };
        assert_eq!(values(r#"{"cwd":"/a"}"#), ["/a"]);
        assert_eq!(
            values("{\"x\": {\"cwd\" :\t\"/a \\\"b\\\\\"}}\n{\"cwd\":1}\n{\"cwd\":\"c\"}"),
            [r#"/a \"b\\"#, "c"]
        );
        assert_eq!(values(r#"{"x":"\"cwd\":\"no\"","y":"cwd"}{"cwd":"to"#), [""; 0]);
        assert_eq!(values(r#"{"cwd":"\"#), [""; 0]);
    }

    #[test]
    fn any_difference_of_short_texts_is_detected() {
        let text: Vec<u8> = (0..70).collect();
        for length in 0..text.len() {
            let mut other = text[..length].to_vec();
            assert!(short_texts_equal(&text[..length], &other));
            for i in 0..length {
                other[i] ^= 0x80;
                assert!(!short_texts_equal(&text[..length], &other), "{length} {i}");
                other[i] ^= 0x80;
            }
        }
    }

    #[test]
    fn the_way_to_a_hit_is_not_searched_for_ever() {
        let jump = |n: usize| {
            let members: Vec<String> = (0..n).map(|idx| format!(r#""k{idx}":{{"a":[]}}"#)).collect();
            let input = members.join(",");
            let line = format!(r#"{{"message":{{"content":[{{"input":{{{input}}}}}],"usage":{{}}}}}}"#);
            let hit = line.find("\"usage\"").unwrap();
            jump_to_hit(line.as_bytes(), line.find('[').unwrap(), hit).map(|comma| comma + 1 == hit)
        };
        assert_eq!(jump(6), Some(true));
        assert_eq!(jump(1000), None);
    }

    #[test]
    fn picks_requested_keys_and_rejects_non_objects() {
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
    fn skims_lines_with_unusual_syntax() {
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

    /// Returns the values that serde_json finds under the same keys.
    fn serde_json_values(line: &[u8], keys: &[&str], message_keys: &[&str]) -> Option<Vec<Option<Value>>> {
        let line: serde_json::Map<String, Value> = serde_json::from_slice(line).ok()?;
        let message = line.get("message");
        let top = keys.iter().map(|key| line.get(*key).cloned());
        let inner = message_keys.iter().map(|key| message?.get(*key).cloned());
        Some(top.chain(inner).collect())
    }

    /// Checks that skimming a valid line returns the same values as serde_json.
    fn assert_agrees(line: &[u8]) -> Result<(), TestCaseError> {
        let (keys, inner) = (["type", "uuid", "message"], ["id", "model", "usage", "content"]);
        let expected = serde_json_values(line, &keys, &inner);
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
            assert_agrees_around(line)?;
        }
        Ok(())
    }

    /// Checks that `skim_around` returns the same values for every occurrence of `"usage"` as `skim`.
    fn assert_agrees_around(line: &[u8]) -> Result<(), TestCaseError> {
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
    fn hits_outside_the_message_are_ignored() {
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
                assert_agrees(line).unwrap();
            }
        }
    }

    /// An object with the relevant keys, some escaped, some duplicated, with and without white space.
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
            assert_agrees(line.as_bytes())?;
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
