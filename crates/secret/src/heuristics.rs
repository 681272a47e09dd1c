//! Heuristics for strings: random, chosen by a person, or a placeholder.
//!
//! The words that they look for are in the folder `words`, one per line.

use std::sync::LazyLock;

use regex::Regex;

type WordList = LazyLock<Vec<&'static str>>;

fn words(text: &'static str) -> Vec<&'static str> {
    text.lines().collect()
}

/// Common letter pairs of words. In random strings about 30 % of the pairs are among them, in words about 80
/// %.
const PAIRS: &str = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le \
    ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot \
    il tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su \
    id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo ag if ap gr od bo sp rd \
    do uc bu ov rm ep tt oc cu sc cr cl du ck ey va um pp";

const fn common_pairs() -> [[bool; 26]; 26] {
    let mut table = [[false; 26]; 26];
    let bytes = PAIRS.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] == b' ' {
            at += 1;
        } else {
            table[(bytes[at] - b'a') as usize][(bytes[at + 1] - b'a') as usize] = true;
            at += 2;
        }
    }
    table
}

static COMMON: [[bool; 26]; 26] = common_pairs();

/// Parts of placeholder values.
static PLACEHOLDER_PARTS: WordList = LazyLock::new(|| words(include_str!("words/placeholder_parts.txt")));

/// Passwords that are not secret, because they are used in examples.
static WEAK: WordList = LazyLock::new(|| words(include_str!("words/weak_passwords.txt")));

/// Returns the number of distinct bytes.
pub(crate) fn distinct(text: &[u8]) -> usize {
    let mut seen = [false; 256];
    for byte in text {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count()
}

/// Returns the Shannon entropy in bits per byte.
pub(crate) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let length = text.len() as f64;
    let parts = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / length);
    -parts.map(|part| part * part.log2()).sum::<f64>()
}

/// Counts of adjacent letters.
struct LetterPairs {
    all: u32,
    /// Those that are [common](COMMON) in words.
    common: u32,
    /// Those of an upper-case and a lower-case letter.
    turns: u32,
}

impl LetterPairs {
    fn of(text: &[u8]) -> Self {
        let letter =
            |byte: u8| byte.is_ascii_alphabetic().then(|| usize::from(byte.to_ascii_lowercase() - b'a'));
        let mut pairs = Self { all: 0, common: 0, turns: 0 };
        for pair in text.windows(2) {
            if let (Some(first), Some(second)) = (letter(pair[0]), letter(pair[1])) {
                pairs.all += 1;
                pairs.common += u32::from(COMMON[first][second]);
                pairs.turns += u32::from(pair[0].is_ascii_uppercase() != pair[1].is_ascii_uppercase());
            }
        }
        pairs
    }
}

/// Returns whether a string consists of words: few digits, and mostly common letter pairs.
pub(crate) fn is_wordy(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits * 8 >= text.len()
        || text.iter().all(|byte| byte.is_ascii_hexdigit() || !byte.is_ascii_alphanumeric())
    {
        return false;
    }
    let pairs = LetterPairs::of(text);
    // In random strings case changes at every second letter, in identifiers only twice per word.
    if f64::from(pairs.turns) > f64::from(pairs.all) * 0.42 {
        return false;
    }
    // About 30 % in random strings, and rarely many more if the string is long.
    pairs.all >= 5 && f64::from(pairs.common) > f64::from(pairs.all) * if pairs.all < 16 { 0.6 } else { 0.55 }
}

/// Returns whether letters look random although there are no or few digits among them.
///
/// In random letters, every second pair changes its case and two of three are uncommon in words; in
/// identifiers, about one of four is either. So the two counts together separate them, also in short strings.
pub(crate) fn is_scrambled(text: &[u8]) -> bool {
    let count = |kind: fn(&u8) -> bool| text.iter().filter(|byte| kind(byte)).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let pairs = LetterPairs::of(text);
    upper >= 3
        && lower >= 3
        && pairs.all >= 9
        && f64::from(pairs.turns + pairs.all - pairs.common) >= f64::from(pairs.all) * 0.8
        && !has_sequence(text)
}

/// Returns whether letters look random because at most one of `divisor` pairs is common in words.
pub(crate) fn has_uncommon_letters(text: &[u8], divisor: u32) -> bool {
    let pairs = LetterPairs::of(text);
    pairs.all >= 9 && pairs.common * divisor <= pairs.all && !has_sequence(text)
}

/// Returns whether capitals alone look random, as in the ids of keys.
pub(crate) fn is_scrambled_upper(text: &[u8]) -> bool {
    let pairs = LetterPairs::of(text);
    text.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && pairs.all >= 9
        && pairs.common * 5 <= pairs.all * 3
        && !has_sequence(text)
}

/// Returns whether a string contains letters in alphabetical order, as placeholders do: `ABCDE`.
fn has_sequence(text: &[u8]) -> bool {
    text.windows(5).any(|part| {
        part.iter().all(u8::is_ascii_alphabetic) && part.windows(2).all(|pair| pair[1] == pair[0] + 1)
    })
}

/// Returns whether the value is a placeholder: `<your key>`, `changeme`, `xxxx`.
pub(crate) fn is_placeholder_value(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_scrambled = is_scrambled(text.as_bytes());
    let is_word = |part: &str, at: usize| {
        let edge = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let bytes = lower.as_bytes();
        // Four letters may form a word by chance.
        part.len() > 4
            || !is_scrambled && edge(at.checked_sub(1).map(|before| &bytes[before]))
            || !is_scrambled && edge(bytes.get(at + part.len()))
    };
    PLACEHOLDER_PARTS.iter().any(|part| lower.match_indices(part).any(|(at, _)| is_word(part, at)))
}

/// Returns whether a password is a common example.
pub(crate) fn is_weak(password: &str) -> bool {
    let lower = password.to_ascii_lowercase();
    WEAK.contains(&lower.as_str())
        || distinct(password.as_bytes()) <= 2
        || lower.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '!').len() <= 1
}

/// Words that occur in placeholders, but not in passwords chosen by people.
static DUMMIES: WordList = LazyLock::new(|| words(include_str!("words/dummy_parts.txt")));

/// Returns whether a password mixes kinds of characters, as password policies require: `Summer2024!`.
pub(crate) fn is_varied(password: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| password.bytes().any(|byte| kind(&byte));
    let sign =
        |byte: u8| byte.is_ascii_punctuation() && !matches!(byte, b'_' | b'-' | b'.' | b'/' | b':' | b',');
    let digit = has(u8::is_ascii_digit);
    digit && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
        || digit && has(u8::is_ascii_alphabetic) && password.bytes().any(sign)
}

/// Matches texts that consist of nothing but parts of placeholders, which may be parts of a password, but not
/// all of it: `SecretPassword`, `db_pass_dev`.
static FILLERS: LazyLock<Regex> = LazyLock::new(|| {
    let parts = words(include_str!("words/fillers.txt")).join("|");
    #[expect(clippy::unwrap_used, reason = "the words contain letters only")]
    Regex::new(&format!("^(?:{parts})*$")).unwrap()
});

/// Returns whether a value consists of nothing but [`FILLERS`], with any digits and signs.
pub(crate) fn is_filler(value: &str) -> bool {
    let letters = value.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase());
    FILLERS.is_match(&letters.collect::<String>())
}

/// Returns whether the value is a placeholder of a password.
pub(crate) fn is_dummy(password: &str) -> bool {
    if is_weak(password) {
        return true;
    }
    let lower = password.to_ascii_lowercase();
    // Four letters may form a word by chance.
    let is_scrambled = is_scrambled(password.as_bytes());
    let has_part = DUMMIES.iter().any(|part| lower.contains(part) && (part.len() > 4 || !is_scrambled));
    // A password that mixes kinds of characters may consist of words like `secret`.
    has_part || !is_varied(password) && (is_filler(password) || lower.contains("abcdef"))
}

/// Returns whether a password looks like test data: `TestPassword1!`.
pub(crate) fn is_fixture(password: &str) -> bool {
    let lower = password.to_ascii_lowercase();
    [
        "password", "passw0rd", "test", "demo", "admin", "user", "login", "token", "abc", "correct", "wrong",
        "invalid",
    ]
    .iter()
    .any(|part| lower.contains(part))
}

/// Parts of templates, expressions and markup.
const CODE_PARTS: &[&str] = &[
    "${", "{{", "$(", "#{", "<%", "%>", "</", "/>", "()", "://", "..", "=>", "->", "::", "/*", "&&", "||",
    "==", "!=", ");", "&amp;", "&lt;", "&gt;", "&quot;", "[secret:",
];

/// Returns whether a password looks generated: letters of both cases, digits and signs, and no words.
///
/// Such a password may contain any sign and begin with any, also those that end a value elsewhere.
pub(crate) fn is_generated(password: &str) -> bool {
    let bytes = password.as_bytes();
    if !(10..=128).contains(&bytes.len()) || !bytes.iter().all(u8::is_ascii_graphic) {
        return false;
    }
    let count = |kind: fn(&u8) -> bool| bytes.iter().filter(|byte| kind(byte)).count();
    let letters_and_digits =
        [count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase), count(u8::is_ascii_digit)];
    let n_signs = count(u8::is_ascii_punctuation);
    let (n_distinct, pairs) = (distinct(bytes), LetterPairs::of(bytes));
    let is_mixed = match letters_and_digits.iter().filter(|count| **count > 0).count() {
        3 => n_signs >= 1 && n_distinct >= 8,
        // One of the kinds may be missing by chance.
        2 => n_signs >= 2 && n_distinct >= 11,
        _ => false,
    };
    // Two signs may form an operator by chance.
    let is_long = bytes.len() >= 16 && n_signs >= 4 && pairs.common * 3 <= pairs.all;
    is_mixed
        && pairs.common * 2 <= pairs.all
        && !has_sequence(bytes)
        // A placeholder of a template: `##DB_Password1##`.
        && !(password.starts_with("##") && password.ends_with("##"))
        && (is_long || !CODE_PARTS.iter().any(|part| password.contains(part)))
        && !is_dummy(password)
}

/// Returns whether the value is a password, given that one is expected here, such as after a flag.
pub(crate) fn is_password(value: &str) -> bool {
    let bytes = value.as_bytes();
    if is_generated(value) {
        return true;
    }
    let has = |kind: fn(&u8) -> bool| bytes.iter().any(kind);
    if value.len() < 5
        || bytes.iter().any(|byte| *byte < b' ' || *byte >= 0x7F)
        || matches!(bytes[0], b'$' | b'{' | b'<' | b'%' | b'[' | b'(' | b'~' | b'/' | b'.')
        || ["${", "{{", "$(", "$env:", "://", "<", "[secret:", "..."].iter().any(|code| value.contains(code))
        || is_dummy(value)
    {
        return false;
    }
    let mixed = has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || has(u8::is_ascii_punctuation));
    if value.contains(' ') {
        return is_varied(value) && value.len() <= 40;
    }
    // Letters with digits or punctuation, or many letters that are not a word.
    let is_word = is_wordy(bytes) && LetterPairs::of(bytes).turns < 2;
    mixed && (!is_word || has(u8::is_ascii_digit)) || value.len() >= 8 && !is_word
}

/// Returns whether a short value looks random: letters of both cases with digits between them, and no words.
pub(crate) fn is_short_random(value: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| value.iter().any(kind);
    let n_numbers = value.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty()).count();
    let pairs = LetterPairs::of(value);
    value.iter().all(u8::is_ascii_alphanumeric)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && n_numbers >= 2
        && pairs.common * 2 <= pairs.all
        && distinct(value) >= 9
        && !has_sequence(value)
}

/// Returns whether a value looks random: mixed letters and digits, high entropy, no words.
pub(crate) fn is_random(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"0x").unwrap_or(value);
    let count = |kind: fn(&u8) -> bool| value.iter().filter(|byte| kind(byte)).count();
    let (upper, lower, digits) =
        (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase), count(u8::is_ascii_digit));
    let mixed = digits >= 2 || value.len() >= 16 && is_scrambled(value);
    if !mixed || upper + lower < 2 || value.len() < 12 {
        return false;
    }
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    let enough = if is_hex || value.len() < 20 { 2.8 } else { 3.4 };
    entropy(value) >= enough && !is_wordy(value)
}
