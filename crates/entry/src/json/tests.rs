//! Tests of the walker and the lenses against serde_json.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::masks::tests::with_each_simd_level;
use super::*;

/// Returns whether serde_json accepts the text.
fn serde_json_accepts(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[test]
fn walker_and_serde_json_agree_on_a_table() {
    let table = [
        "",
        " ",
        "{}",
        "[]",
        "null",
        "nul",
        "nulll",
        "true",
        "tru",
        "0",
        "-0",
        "01",
        "1.",
        "1.5e+3",
        "1e",
        ".5",
        "-",
        "\"\"",
        "\"\\u12\"",
        "\"\\u12G4\"",
        "\"\\ud800\"",
        "\"\\x\"",
        "\"a",
        "{\"a\":1}",
        "{\"a\" : 1 , \"b\":[ ]}",
        "{\"a\":1,}",
        "[1,]",
        "[1 2]",
        "{a:1}",
        "{\"a\"}",
        "{\"a\":}",
        "{}{}",
        "[[]",
        "[}",
        "{]",
        "\t{}\r",
        "\"\t\"",
        "// no",
        "{\"a\":1}x",
        "\u{feff}{}",
        "1 ",
        "NaN",
        "\"\u{2028}\"",
        "123456789012345678901234567890",
    ];
    for text in table {
        assert_eq!(with_each_simd_level(|| check(text)), [serde_json_accepts(text); 3], "{text:?}");
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    assert!(check(&deep));
    let open = "{\"a\":".repeat(200_000);
    assert!(!check(&open));
}

#[test]
fn nested_values_are_visited_in_order_at_any_depth() {
    let text = r#" {"a" : [1, {"b":"x"}, [], "y"] , "c":{ }, "d":{"e":[2]}, "f":null} "#;
    let mut seen = Vec::new();
    Json::parse(text).unwrap().visit_nested(|value| {
        let key = value.key().map(JsonKey::raw);
        if !matches!(value.kind(), JsonKind::Array | JsonKind::Object) {
            seen.push(format!("{} {}", key.unwrap_or_default(), value.json().raw()));
        }
        key != Some("d")
    });
    assert_eq!(seen, ["a 1", "b \"x\"", "a \"y\"", "f null"]);
    for text in ["1", "[]", "{}", "\"x\"", ""] {
        let mut n = 0;
        Json::from_valid(text).visit_nested(|_| {
            n += 1;
            true
        });
        assert_eq!(n, usize::from(!text.is_empty()), "{text}");
    }
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = open.repeat(200_000) + "1" + &close.repeat(200_000);
        let (mut n, mut depth) = (0, 0);
        Json::from_valid(&deep).visit_nested(|value| {
            n += usize::from(value.kind() == JsonKind::Number);
            depth += 1;
            true
        });
        assert_eq!((n, depth), (1, 200_001));
    }
}

#[test]
fn strings_are_decoded() {
    let text = r#"{"plain":"x","esc":"a\n\t\"\\\/\u0041\u00e9","pair":"\ud83d\ude00","lone":"\ud83d!","k\u0065y":1}"#;
    let json = Json::parse(text).unwrap();
    assert_eq!(json.get("plain").unwrap().as_str().unwrap(), "x");
    assert_eq!(json.get("esc").unwrap().as_str().unwrap(), "a\n\t\"\\/Aé");
    assert_eq!(json.get("pair").unwrap().as_str().unwrap(), "😀");
    assert_eq!(json.get("lone").unwrap().as_str().unwrap(), "\u{fffd}!");
    assert_eq!(json.get("key").unwrap().as_u64(), Some(1));
    assert!(has_lone_surrogate(text));
    assert!(!has_lone_surrogate(r#""\ud83d\ude00 \\ud800""#));
    assert_eq!(
        replace_lone_surrogates(r#""\ud800x\ud83d\ude00 \\ud800 \udc00\n""#),
        "\"\u{fffd}x\\ud83d\\ude00 \\\\ud800 \u{fffd}\\n\""
    );
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    assert_eq!(Json::parse(r#"{"a":1,"a":2}"#).unwrap().get("a").unwrap().raw(), "2");
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::hash_map(any::<String>(), inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Converts a value to a serde_json value by means of our accessors.
fn rebuild(json: Json<'_>) -> serde_json::Value {
    match json.kind() {
        JsonKind::Array => json.items().map(rebuild).collect(),
        JsonKind::Object => serde_json::Value::Object(
            json.members().map(|(k, v)| (k.name().into_owned(), rebuild(v))).collect(),
        ),
        JsonKind::String => json.as_str().unwrap().into_owned().into(),
        _ => serde_json::from_str(json.raw()).unwrap(),
    }
}

proptest! {
    #[test]
    fn walker_and_serde_json_agree_on_any_text(text in "[\\[\\]{}:,\"\\\\a-f0-9.eE+\\- \tu\u{e9}ntrlse]{0,40}") {
        prop_assert_eq!(with_each_simd_level(|| check(&text)), [serde_json_accepts(&text); 3]);
    }

    #[test]
    fn any_value_reads_back(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        prop_assert_eq!(rebuild(Json::parse(&text).unwrap()), value);
    }

    #[test]
    fn both_reject_a_truncated_value(value in any_json(), cut in any::<prop::sample::Index>()) {
        let text = serde_json::to_string(&value).unwrap();
        let mut at = cut.index(text.len() + 1);
        while !text.is_char_boundary(at) { at -= 1; }
        prop_assert_eq!(with_each_simd_level(|| check(&text[..at])), [serde_json_accepts(&text[..at]); 3]);
    }

    #[test]
    fn long_strings_are_decoded_like_serde_json(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..400)) {
        let text = format!("\"{}\"", pieces.concat());
        let expected: String = serde_json::from_str(&text).unwrap();
        for decoded in with_each_simd_level(|| Json::parse(&text).unwrap().as_str().unwrap().into_owned()) {
            prop_assert_eq!(&decoded, &expected);
        }
    }

    #[test]
    fn long_strings_are_validated_like_serde_json(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..400),
        odd in prop::sample::select(&["", "\\", "\"", "\t", "\\x", "\\u12", "\\u12g4", "\u{1f}", "\\\"", "\",\"", "\\\\\""][..]),
        at in any::<prop::sample::Index>(),
    ) {
        let (before, behind) = pieces.split_at(at.index(pieces.len() + 1));
        let text = format!("[\"{}{odd}{}\",\t1]", before.concat(), behind.concat());
        prop_assert_eq!(with_each_simd_level(|| check(&text)), [serde_json_accepts(&text); 3]);
    }
}

/// The pieces that long strings are built from, with escapes.
const PIECES: &[&str] = &[
    "a",
    "the warp and the weft ",
    "\\n",
    "\\\\",
    "\\\"",
    "\\/",
    "\\t\\r\\b\\f",
    "\\u0041",
    "\\ud83d\\ude00",
    "织机",
    "é",
    "{}[],:",
    "sixty-four bytes without anything special in them, and then some more",
];

#[test]
fn several_keys_have_the_values_of_each() {
    let keys = ["a", "b", "missing"];
    for text in [
        "{}",
        "[1]",
        "7",
        r#"{"a":1,"b":{"a":2}}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{ "b" : [1, {"a":2}] , "c":"\"", "a":null }"#,
        r#"{"\u0061":1,"b":2}"#,
    ] {
        let json = Json::parse(text).unwrap();
        assert_eq!(json.get_all(keys), keys.map(|key| json.get(key)), "{text}");
        assert_eq!(
            json.get_all(keys)[0],
            json.members().filter(|(key, _)| key.is("a")).last().map(|(_, a)| a)
        );
    }
}
