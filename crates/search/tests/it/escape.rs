//! A text is found regardless of how it is escaped in JSON.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use crate::search;

/// Writes `text` as a JSON string; `dice` select which characters are escaped.
fn write_json(text: &str, dice: &[u8]) -> String {
    let mut out = String::from("\"");
    for (ch, die) in text.chars().zip(dice.iter().cycle()) {
        let short = match ch {
            '\n' => Some("\\n"),
            '\t' => Some("\\t"),
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' => Some("\\/"),
            _ => None,
        };
        let must = ch < ' ' || ch == '"' || ch == '\\';
        match (short, die % 3) {
            (Some(short), 0) => out.push_str(short),
            (None, 0) if !must => out.push(ch),
            (_, 1) if !must => out.push(ch),
            _ => {
                for unit in ch.encode_utf16(&mut [0; 2]) {
                    let hex = if die % 2 == 0 { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
                    out.push_str(&hex);
                }
            }
        }
    }
    out.push('"');
    out
}

/// Returns a log with `text` on the second of three lines.
fn log_with(text: &str, dice: &[u8]) -> Vec<u8> {
    let plain = r#"{"type":"user","message":{"role":"user","content":"§"}}"#;
    let text = write_json(text, dice);
    format!("{plain}\n{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{text}}}}}\n{plain}\n")
        .into_bytes()
}

/// Texts of characters that are hard to match.
fn texts() -> impl Strategy<Value = String> {
    let hard = prop::sample::select(vec![
        'a', 'e', 'K', 's', 'k', 'z', '0', '_', '-', '.', '/', ' ', '\n', '\t', '"', '\\', 'é', 'É', 'ß',
        'İ', 'ſ', 'ё', 'Σ', 'ς', '\u{301}', '\u{327}', '错', '误', 'が', 'か', '\u{3099}', '한', '🦀', '≠',
        '\u{212a}', '\u{0}', '\u{1b}', '\u{2028}', '𐐀', 'ế',
    ]);
    prop::collection::vec(hard, 1..12).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn a_word_is_found_however_it_is_written(
        word in texts(), before in texts(), behind in texts(), dice in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let word: String = word.split_whitespace().next().unwrap_or("x").to_owned();
        // These would be parsed as other query syntax.
        prop_assume!(!word.starts_with(['-', '"', '/']) && !word.contains('\0'));
        // A combining mark at the boundary would belong to the text before it.
        prop_assume!(!word.starts_with(['\u{301}', '\u{327}', '\u{3099}']));
        prop_assume!(!behind.trim_start_matches(['\u{301}', '\u{327}']).starts_with('\u{3099}'));
        let text = format!("{before}{word}{behind}");
        let matches = search(&word, &log_with(&text, &dice));
        prop_assert_eq!(matches.len(), 1, "{:?} in {:?}", word, text);
        prop_assert_eq!(matches[0].line_no, 2);
        prop_assert!(!matches[0].ranges.is_empty());
        let found = &matches[0];
        prop_assert_eq!(&text[found.within.clone()], &*found.text);
        // The same word, decomposed or without accents, matches as well. The kelvin sign is not a K.
        prop_assume!(!word.contains('\u{212a}'));
        let apart: String = word.nfd().collect();
        prop_assert_eq!(search(&apart, &log_with(&text, &dice)).len(), 1, "{:?} in {:?}", apart, text);
        let bare: String = word.nfd().filter(|ch| !('\u{300}'..='\u{327}').contains(ch)).nfc().collect();
        prop_assert_eq!(search(&bare, &log_with(&text, &dice)).len(), 1, "{:?} in {:?}", bare, text);
    }

    #[test]
    fn a_phrase_is_found_across_white_space(
        words in prop::collection::vec("[a-zé错]{1,4}", 1..4), dice in prop::collection::vec(any::<u8>(), 1..20), blank in "[ \t\n]{1,3}",
    ) {
        let text = format!("start, {} end", words.join(&blank));
        let matches = search(&format!("\"{}\"", words.join(" ")), &log_with(&text, &dice));
        prop_assert_eq!(matches.len(), 1, "{:?}", text);
    }
}
