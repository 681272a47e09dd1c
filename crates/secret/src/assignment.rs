//! Values assigned to a name: `api_key = "…"`, `"password": "…"`, `DB_PASSWORD=…`, `--token …`.
//!
//! The name suggests a secret, but code is full of such names, so the value decides. It must look random,
//! unless it is a password in a line of an `.env` file: those are often chosen by people, and any value
//! counts that is neither a placeholder nor code.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::bytes::Regex;

use crate::alphabet::Alphabet;
use crate::heuristics;

/// Words in a name that make its value a secret.
pub(crate) static SECRET_WORDS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("words/secret_names.txt").lines().collect());

/// Those that are parts of many other words, and count only as whole words of a name.
const WHOLE_WORDS: &[&str] = &["pass", "pw"];

/// Suffixes that may follow such a word: `SECRET_KEY_BASE`, `tokenValue`, `password2`, `secretOrKey`.
const SUFFIXES: &[&str] = &[
    "s",
    "key",
    "orkey",
    "orprivatekey",
    "base",
    "base64",
    "b64",
    "token",
    "value",
    "string",
    "prod",
    "production",
    "dev",
    "staging",
    "live",
    "test",
    "text",
    "s3",
    "salt",
    "pepper",
];

/// Words that make it the name of something else, such as a page token or a public key. They do not apply to
/// passwords: `REDIS_CACHE_PASSWORD`.
const HARMLESS_WORDS: &[&str] = &[
    "next",
    "page",
    "continuation",
    "cancel",
    "csrf",
    "xsrf",
    "public",
    "cache",
    "sync",
    "sort",
    "partition",
    "primary",
    "foreign",
    "unique",
];

/// Words of names in tests, whatever follows.
const TEST_WORDS: &[&str] = &["fake", "mock"];

/// The maximum length of a name, of a value, and of a value of nothing but letters, digits and a few signs.
const LONGEST_NAME: usize = 64;
const LONGEST_DECLARATION: usize = 160;
const LONGEST_VALUE: usize = 512;
const LONGEST_TOKEN: usize = 8192;

/// The words in a JSON key that make it the name of a secret, in any case.
static NAME_WORDS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = SECRET_WORDS.iter().chain(&["cookie", "authorization"]);
    let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(words);
    #[expect(clippy::unwrap_used, reason = "a few short words always make an automaton")]
    automaton.unwrap()
});

/// Returns whether a JSON key may be the name of a secret.
pub(crate) fn is_name(key: &str) -> bool {
    NAME_WORDS.is_match(key)
}

/// Returns whether a word in lower case, alone, is the name of a secret.
pub(crate) fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.contains(&word)
}

/// Returns the value assigned to the name that contains the word at `at`, if it is a secret.
pub(crate) fn find(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_whole_word = WHOLE_WORDS.iter().any(|word| word.eq_ignore_ascii_case(&text[at.clone()]));
    if is_whole_word && !begins_name_word(bytes, at.start) {
        return None;
    }
    // Cheap checks first: most matches are words in prose and code.
    let tail = name_run(&bytes[at.end..bytes.len().min(at.end + LONGEST_NAME)]);
    let end = at.end + tail;
    let value = value_start(bytes, end)?;
    let start = at.start
        - bytes[at.start.saturating_sub(LONGEST_NAME)..at.start]
            .iter()
            .rev()
            .take_while(|byte| Alphabet::Dotted.has(**byte))
            .count();
    // A quote after the name closes one before it: not `"while True: pass", …`.
    let is_quote =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| b"\"'`".contains(byte));
    if is_whole_word && is_quote(Some(end)) && !is_quote(start.checked_sub(1)) {
        return None;
    }
    let mut name =
        SecretName::new(&text[start..end], &text[at.clone()], &text[at.end..end], value.plain_equals)?;
    // A part of a connection string or a URL: `User Id=sa;Password=…`, `?user=sa&password=…`.
    name.is_env |= value.plain_equals && start > 0 && matches!(bytes[start - 1], b';' | b'&' | b'?');
    // A property on the command line of Java: `-Dspring.datasource.password=…`.
    name.is_env |= value.plain_equals && text[start..end].starts_with("-D");
    // Only calls that set a password have it as their argument.
    let lower = text[start..end].to_ascii_lowercase();
    let is_setter =
        lower.rsplit('.').next().is_some_and(|name| name.starts_with("set") || name.starts_with("with"));
    // `.password("…")` of a builder.
    let is_builder = tail == 0 && text[start..at.start] == *".";
    if value.is_argument && !is_setter && !is_builder && &text[start..end] != "PASSWORD" {
        return None;
    }
    let is_flag = text[start..end].starts_with("--")
        || text[start..end].starts_with('-') && name.is_password && text[..start].ends_with([' ', '\n']);
    // `ENV NAME value` in a Dockerfile, and other commands that set a variable.
    let is_set = value.by_space
        && [
            "ENV ",
            "ARG ",
            "setenv ",
            "SetEnv ",
            "setx ",
            "set -x ",
            "set -gx ",
            "set -Ux ",
            "#define ",
            "fastcgi_param ",
            "proxy_set_header ",
        ]
        .iter()
        .any(|word| text[..start].ends_with(word));
    // A row of a table that is aligned with spaces: `password    …`.
    let is_row = value.by_space
        && bytes[end..].starts_with(b"  ")
        && (start == 0 || bytes[start - 1] == b'\n')
        && name.is_password;
    if value.by_space && !is_flag && !is_set && !is_row {
        return None;
    }
    // `env[DB_PASSWORD] = …` of PHP-FPM, but not a variable in a map of code.
    if bytes[end..].starts_with(b"] =") && value.quote.is_none() && !text[..start].ends_with("env[") {
        return None;
    }
    // A row of a Markdown table: `| Password | … |`.
    if value.is_cell && !begins_cell(text, start) {
        return None;
    }
    name.is_env |= is_set || is_flag && name.is_password;
    let range = value.range(text)?;
    if !name.is_vague
        && is_in_data(text, start)
        && let Some(is_secret) = is_encoded_secret(&text[range.clone()])
    {
        return is_secret.then_some(range);
    }
    if name.is_password
        && !value.is_quoted
        && (name.is_env || begins_line(bytes, start))
        && let Some(range) = value.generated_range(text, start, range.end)
    {
        return Some(range);
    }
    // Alone on the rest of its line, as in a configuration file.
    let is_end =
        matches!(bytes.get(range.end), None | Some(b'\n' | b'\r')) || bytes[range.end..].starts_with(b" # ");
    let is_line = is_end && (!value.by_space || is_row);
    if is_row && !is_line {
        return None;
    }
    // A word of a list of settings: `host=db password=… dbname=cloth`.
    let is_word = value.plain_equals && range.len() >= 10 && !text[range.clone()].contains(['[', '.', '/']);
    let is_line = is_line || is_word;
    name.accepts(&text[range.clone()], value.is_quoted, is_line).then_some(range)
}

/// Returns whether the line of a name belongs to the `data` of a Kubernetes secret, whose values are base64.
fn is_in_data(text: &str, name: usize) -> bool {
    const REACH: usize = 4096;
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let before = &text[text.floor_char_boundary(name.saturating_sub(REACH))..name];
    let mut lines = before.split('\n').rev();
    let own = indent(lines.next().unwrap_or_default());
    let parent = lines.find(|line| !line.trim().is_empty() && indent(line) < own);
    parent.is_some_and(|parent| matches!(parent.trim(), "data:" | "\"data\": {"))
}

/// Returns whether a value is base64 of a text that may be a password or a token, or of random bytes. `None`
/// if it is no base64 of either.
fn is_encoded_secret(value: &str) -> Option<bool> {
    const SHORTEST: usize = 5;
    const SHORTEST_KEY: usize = 16;
    let bytes = STANDARD.decode(value).ok()?;
    match std::str::from_utf8(&bytes).map(|text| text.trim_end_matches('\n')) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic()) => Some(
            text.len() >= SHORTEST && !heuristics::is_weak(text) && !heuristics::is_placeholder_value(text),
        ),
        Ok(_) => None,
        Err(_) => (bytes.len() >= SHORTEST_KEY).then_some(true),
    }
}

/// Returns whether nothing but a little space, or the sign of a list or of a diff, is before a name on its
/// line.
fn begins_line(bytes: &[u8], start: usize) -> bool {
    let before = &bytes[start.saturating_sub(LONGEST_NAME)..start];
    let indent = before.iter().rev().take_while(|byte| b" \t+-".contains(byte)).count();
    start == indent || before.iter().rev().nth(indent) == Some(&b'\n')
}

/// Returns whether the cell of a table contains nothing before a name but a few words: `| Admin password |`.
/// The first cell of a line needs no mark before it.
fn begins_cell(text: &str, start: usize) -> bool {
    const REACH: usize = 48;
    let before = &text[text.floor_char_boundary(start.saturating_sub(REACH))..start];
    let is_start = before.len() == start;
    let line = before.rsplit('\n').next().unwrap_or_default();
    let cell = line.rsplit(['|', '│']).next().unwrap_or_default();
    let is_whole = is_start || line.len() < before.len() || cell.len() < line.len();
    let words = cell.trim_matches([' ', '*', '`', '\t']);
    is_whole
        && words.split(' ').count() <= 3
        && words.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" _-".contains(&byte))
        && (words.is_empty() || cell.len() < line.len())
}

/// Returns whether a word of a name begins here: `PASS`, `db.pass`, `keystorePass`.
fn begins_name_word(bytes: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| bytes[before]) else { return true };
    !before.is_ascii_alphanumeric() || before.is_ascii_lowercase() && bytes[at].is_ascii_uppercase()
}

fn name_run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| Alphabet::Url.has(**byte)).count()
}

/// The start of a value after a name.
struct AssignedValue {
    start: usize,
    /// The opening quote, if any.
    quote: Option<u8>,
    is_quoted: bool,
    /// Assigned with `=` and without spaces, as in a shell.
    plain_equals: bool,
    /// Separated by a space only, as after a flag.
    by_space: bool,
    /// The argument of a call: `setPassword("…")`.
    is_argument: bool,
    /// The next cell of a row.
    is_cell: bool,
}

fn value_start(bytes: &[u8], end: usize) -> Option<AssignedValue> {
    let get = |at: usize| bytes.get(at).copied().unwrap_or(b'\n');
    let mut at = end;
    let skip = |mut at: usize| {
        let from = at;
        while at - from < 8 && matches!(get(at), b' ' | b'\t') {
            at += 1;
        }
        at
    };
    let quotes = |mut at: usize| {
        while get(at) == b'\\' && matches!(get(at + 1), b'"' | b'\'' | b'\\') {
            at += 1;
        }
        matches!(get(at), b'"' | b'\'' | b'`').then(|| (get(at), at + 1))
    };
    if let Some(start) = declared_start(&bytes[at..bytes.len().min(at + LONGEST_DECLARATION)]) {
        let start = at + start;
        let quote = Some(get(start - 1)).filter(|quote| b"\"'`".contains(quote));
        return Some(AssignedValue {
            start,
            quote,
            is_quoted: true,
            plain_equals: false,
            by_space: false,
            is_argument: false,
            is_cell: bytes[at..start]
                .iter()
                .find(|byte| !b" \t*`".contains(byte))
                .is_some_and(|byte| matches!(byte, b'|' | 0xE2)),
        });
    }
    let closing = quotes(at);
    if let Some((_, behind)) = closing {
        at = behind;
    }
    if closing.is_some() && get(at) == b']' {
        at += 1;
    }
    // A selector: `'input[name="password"]'`, `'input[name=password]'`.
    let selector_end = if closing.is_none() && get(at) == b']' { at + 1 } else { at };
    let closing = match quotes(selector_end).filter(|_| get(selector_end - 1) == b']') {
        Some((quote, behind)) => {
            at = behind;
            Some((quote, behind))
        }
        None => closing,
    };
    if closing.is_some()
        && get(at) == b')'
        && let Some(start) = default_start(&bytes[at + 1..bytes.len().min(at + 1 + LONGEST_NAME)])
    {
        let start = at + 1 + start;
        return Some(AssignedValue {
            start,
            quote: Some(get(start - 1)),
            is_quoted: true,
            plain_equals: false,
            by_space: false,
            is_argument: false,
            is_cell: false,
        });
    }
    let is_argument = closing.is_none() && get(at) == b'(' && quotes(at + 1).is_some();
    let mut is_element = false;
    let before = at;
    at = skip(at);
    let spaced = at > before;
    // A default value counts as assigned, too: `${DB_PASSWORD:-…}`.
    let plain_equals = get(at) == b'=' && get(at + 1) != b'=' && get(at + 1) != b'>'
        || get(at) == b':' && get(at + 1) == b'-';
    let by_space = match (get(at), get(at + 1)) {
        // A comparison with a string: `password == "…"`.
        (b'=' | b'!', b'=') if closing.is_none() => {
            at = skip(at + 2 + usize::from(get(at + 2) == b'='));
            quotes(at)?;
            false
        }
        // Another comparison, or a path: `Secret::Known`.
        (b'=', b'=') | (b':', b':') => return None,
        (b':' | b'=', b'=' | b'>') | (b':', b'-') => {
            at += 2;
            false
        }
        // A default: `process.env.DB_PASS || '…'`.
        (b'|', b'|') | (b'?', b'?') => {
            at = skip(at + 2 + usize::from(get(at + 2) == b'='));
            quotes(at)?;
            false
        }
        (b'=' | b':', _) => {
            at += 1;
            false
        }
        // An element: `<password>…`, `<property name="password">…`.
        (b'>', _) if !spaced => {
            at += 1;
            is_element = true;
            false
        }
        (b',', _) if closing.is_some() => {
            at += 1;
            false
        }
        (b'(', _) if is_argument => {
            at += 1;
            false
        }
        _ if spaced && closing.is_none() => true,
        _ => return None,
    };
    let spaced = spaced || matches!(get(at), b' ' | b'\t');
    at = skip(at);
    let opening = quotes(at);
    let (quote, start) = opening.map_or((None, at), |(quote, behind)| (Some(quote), behind));
    Some(AssignedValue {
        start,
        quote,
        is_quoted: quote.is_some() || is_element,
        plain_equals: plain_equals && closing.is_none() && !spaced,
        by_space,
        is_argument,
        is_cell: false,
    })
}

/// Returns the offset of the default value of a variable that is read by a function, after the call:
/// `os.getenv("DB_PASSWORD") or "…"`, `env::var("DB_PASSWORD").unwrap_or("…")`; or of the text that is typed
/// into a field: `get("#password").type("…")`.
fn default_start(rest: &[u8]) -> Option<usize> {
    static DEFAULT: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r#"^(?:\s*(?:or|\|\||\?\?|\?:)\s*|\.(?:unwrap_or|orElse|getOrElse|unwrap_or_else|type|fill|sendKeys|send_keys)\((?:\|_\|\s*)?)["']"#;
        #[expect(clippy::unwrap_used, reason = "the pattern is ours, and tests compile it")]
        Regex::new(pattern).unwrap()
    });
    DEFAULT.find(rest).map(|found| found.end())
}

/// Returns the offset of a value that does not directly follow its name.
fn declared_start(rest: &[u8]) -> Option<usize> {
    const FORMS: &[&str] = &[
        // The type of a declaration: `API_SECRET: &str = "…"`, `apiSecret string = "…"`, `char pass[] = "…"`.
        r#"\s?:\s?[A-Za-z&'][A-Za-z0-9_&' <>\[\]?.|]{0,30}?\s?=\s?["'`]"#,
        r#"\s(?:string|String|str|std::string|char\*)\s?=\s?["'`]"#,
        r#"\[[0-9]*\]\s?=\s?""#,
        r#"\s[Aa]s\s[A-Za-z.]{1,20}\s?=\s?""#,
        // A comparison in a call: `password.equals("…")`, `expect(password).toBe("…")`.
        r#"(?:\(\))?\)?\.(?:equals|equalsIgnoreCase|toBe|toEqual|eq|compareTo)\(["']"#,
        // The value of an object: `"db_password": {"sensitive": true, "value": "…"}`.
        r#"\\?["']?\s?[:=]\s?\{[^{}]{0,100}?\\?["']?(?:value|default)\\?["']?\s*[:=]\s*\\?["']"#,
        // A variable of PHP-FPM: `env[DB_PASSWORD] = …`.
        r#"\][ \t]=[ \t]"#,
        // A member of a map: `$ENV{DB_PASSWORD} = "…"`.
        r#"[\]}]\s?(?:\|\||\?\?)?=\s?["']"#,
        // The prefix of a string: `password = b"…"`, `PASSWORD = N'…'`, `String::from("…")`.
        r#"["']?\s?(?:=|:=?)\s?(?:[bBrRuUN@$]{1,2}|(?:Some|String::from|SecretStr|SecretString|SecretString::from|SecretString::new|Secret::new|Buffer\.from)\()["']"#,
        // An arrow: `password <- "…"`.
        r#"\s<-\s?["'`]"#,
        // The line after a YAML block indicator: `password: >-`.
        r#":[ \t]*[>|][+-]?[ \t]*\r?\n[ \t]+"#,
        // An anchor of YAML: `password: &name …`.
        r#":[ \t]&[A-Za-z0-9_-]{1,24}[ \t]["']?"#,
        // The value of a pair: `{"name": "DB_PASSWORD", "value": "…"}`.
        r#"(?:\\?["'])?,?\s*(?:\\?["'])?[vV]alue(?:\\?["'])?\s*[:=]\s?(?:\\?["'])?"#,
        // Markdown and HTML: `**Password**: …`, `**Password:** …`, `Password: **…**`, `Password: <b>…</b>`.
        r#"(?:\*\*[ \t]?[:=]|[:=]\*\*)[ \t]?["'`]?"#,
        r#"[:=][ \t]?(?:\*\*|<(?:b|strong|code|kbd)>)["'`]?"#,
        // The next cell of a row: `| Password | … |`, `<td>Password</td><td>…</td>`.
        r#"(?:\*\*|`)?[ \t]{1,40}(?:\||│)[ \t]{1,40}["'`]?"#,
        // The next element: `<td>Password</td><td>…</td>`, `<key>password</key> <string>…`.
        r#":?</(?:td|th|dt|key|name)>\s{0,12}<(?:td|dd|string|value)(?: [^<>\n]{0,32})?>(?:<(?:b|strong|code|kbd)>)?"#,
        r#":</(?:b|strong|label|span|em)>\s?(?:<(?:b|strong|code|kbd|span)>)?"#,
        // An element with attributes: `<password type="text">…`.
        r#"(?: [A-Za-z:]{1,16}=["'][^"'<>\n]{0,40}["']){1,2}>\s{0,12}(?:<!\[CDATA\[)?"#,
        r#">\s{0,12}<!\[CDATA\["#,
        r#">[ \t]*\r?\n[ \t]{1,24}"#,
    ];
    static DECLARATION: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the patterns are ours, and tests compile them")]
        Regex::new(&format!("^(?:{})", FORMS.join("|"))).unwrap()
    });
    if !b": \t\"',\n\r\\=*`|<>[]}".contains(rest.first()?) {
        return None;
    }
    DECLARATION.find(rest).map(|found| found.end())
}

impl AssignedValue {
    fn range(&self, text: &str) -> Option<Range<usize>> {
        let rest = &text.as_bytes()[self.start..text.len().min(self.start + LONGEST_TOKEN)];
        // The characters of a token contain no `=` here, so names in one long word are examined once.
        let token = Alphabet::Dotted.run(rest);
        if token > LONGEST_VALUE && token < rest.len() {
            return Some(self.start..self.start + token);
        }
        let rest = &rest[..rest.len().min(LONGEST_VALUE + 1)];
        let length = match self.quote {
            Some(quote) => rest.iter().position(|byte| *byte == quote || *byte == b'\n' || *byte == b'\\')?,
            None => rest
                .iter()
                .position(|byte| {
                    *byte <= b' '
                        || *byte >= 0x7F
                        || matches!(
                            byte,
                            b'"' | b'\''
                                | b'`'
                                | b','
                                | b';'
                                | b')'
                                | b'}'
                                | b']'
                                | b'<'
                                | b'>'
                                | b'|'
                                | b'&'
                                | b'\\'
                        )
                })
                .unwrap_or(rest.len()),
        };
        if length > LONGEST_VALUE || !text.is_char_boundary(self.start + length) {
            return None;
        }
        let value = text[self.start..self.start + length].trim_end_matches('.');
        // Bold text in Markdown.
        let value = value.strip_suffix("**").unwrap_or(value);
        Some(self.start..self.start + value.len())
    }
}

impl AssignedValue {
    /// Returns the range of a generated password, given the start of its name, and the end of the part before
    /// its first sign that may end a value. A password in a connection string ends at a semicolon; others end
    /// with their line or, as in a shell, at a space.
    fn generated_range(&self, text: &str, name: usize, end: usize) -> Option<Range<usize>> {
        let rest = &text.as_bytes()[end..text.len().min(end + LONGEST_NAME)];
        let is_end = |byte: &u8| *byte <= b' ' || *byte >= 0x7F || b"\"'`\\".contains(byte);
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        if length == 0 || rest.get(length) == Some(&b' ') && !self.plain_equals {
            return None;
        }
        let whole = self.start..end + length;
        let value = &text[whole.clone()];
        let is_string = value.ends_with(';') || name > 0 && text.as_bytes()[name - 1] == b';';
        let length = if is_string { value.split(';').next().map_or(0, str::len) } else { value.len() };
        let range = self.start..self.start + length;
        heuristics::is_generated(&text[range.clone()]).then_some(range)
    }
}

/// The expectations that a name sets for its value.
struct SecretName {
    /// A password, which may be chosen by a person.
    is_password: bool,
    /// A line of an `.env` file: `DB_PASSWORD=…`.
    is_env: bool,
    /// A name that may be used for anything: `SORT_KEY`.
    is_vague: bool,
    /// A name of something else, unless the value looks like a key: `PRIMARY_KEY`.
    is_harmless: bool,
}

/// Returns the words of a name in lower case, separated by `_`, `-`, `.`, changes of case, and the word that
/// makes it the name of a secret: `next`, `page` of `nextPageToken`.
fn name_words<'n>(name: &'n str, secret_word: &'n str) -> impl Iterator<Item = String> {
    let parts = name.split(['_', '-', '.']).flat_map(|part| {
        let mut starts: Vec<usize> = vec![0];
        let bytes = part.as_bytes();
        let is_turn = |at: &usize| bytes[at - 1].is_ascii_lowercase() && bytes[*at].is_ascii_uppercase();
        starts.extend((1..bytes.len()).filter(is_turn));
        let ends = starts[1..].iter().copied().chain([part.len()]).collect::<Vec<_>>();
        starts.into_iter().zip(ends).map(|(start, end)| part[start..end].to_ascii_lowercase())
    });
    parts.map(move |part| part.strip_suffix(secret_word).map(str::to_owned).unwrap_or(part))
}

/// Returns whether a text is one or several of the words.
fn is_made_of(text: &str, words: &[&str]) -> bool {
    let mut rest = text;
    while let Some(word) = words.iter().find(|word| rest.starts_with(**word)) {
        rest = &rest[word.len()..];
    }
    rest.is_empty() && !text.is_empty()
}

impl SecretName {
    fn new(name: &str, word: &str, tail: &str, plain_equals: bool) -> Option<Self> {
        let mut rest = tail.to_ascii_lowercase();
        while !rest.is_empty() {
            let bare = rest
                .trim_start_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '_' | '-'));
            let suffix =
                SUFFIXES.iter().filter(|suffix| bare.starts_with(*suffix)).max_by_key(|suffix| suffix.len());
            match suffix {
                Some(suffix) => rest = bare[suffix.len()..].to_owned(),
                None if bare.is_empty() => break,
                None => return None,
            }
        }
        let word = word.to_ascii_lowercase();
        let is_password = word.contains("pass") || word == "pwd" || word.ends_with("pw");
        let words = || name_words(name, &word);
        if words().any(|part| is_made_of(&part, TEST_WORDS)) {
            return None;
        }
        let is_general = matches!(&*word, "token" | "_key" | "_auth" | "_pat");
        let is_harmless = is_general && words().any(|part| is_made_of(&part, HARMLESS_WORDS));
        let is_upper = name.bytes().all(|byte| !byte.is_ascii_lowercase());
        let is_env = is_upper && plain_equals;
        if is_harmless && !is_env {
            return None;
        }
        Some(Self { is_password, is_env, is_vague: word == "_key" || word == "_auth", is_harmless })
    }

    /// Returns whether the value is a secret under this name.
    fn accepts(&self, value: &str, is_quoted: bool, is_line: bool) -> bool {
        let bytes = value.as_bytes();
        if value.len() < 8 || self.is_vague && !self.is_env {
            return false;
        }
        // An app password of Google: four groups of four letters.
        if self.is_password && is_quoted && value.len() == 19 && value.split(' ').all(is_four_letters) {
            return true;
        }
        if self.is_password && is_quoted && heuristics::is_generated(value) {
            return true;
        }
        // A sign before a password chosen by a person, but not before a name or a path: `@cme2024Prod`.
        if self.is_password && is_quoted && value.len() > 8 {
            let n_digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
            let is_plain = bytes[1..].iter().all(u8::is_ascii_alphanumeric);
            if n_digits >= 2 && is_plain && matches!(bytes[0], b'@' | b'&' | b'*' | b'~') {
                return self.accepts(&value[1..], is_quoted, is_line);
            }
        }
        if self.is_harmless && (value.len() < 20 || !heuristics::is_random(bytes)) {
            return false;
        }
        if self.is_encoded(value) || is_quoted && is_symbol_key(value) {
            return true;
        }
        if bytes.iter().any(|byte| *byte <= b' ' || *byte >= 0x7F)
            || matches!(
                bytes[0],
                b'$' | b'{' | b'<' | b'%' | b'[' | b'(' | b'*' | b'~' | b'.' | b'@' | b'#' | b'&'
            )
            || ["${", "{{", "$(", "()", "://", "..", "=>", "->", "::", "/*"]
                .iter()
                .any(|code| value.contains(code))
            || ["sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "arn:", "data:", "env:"]
                .iter()
                .any(|start| value.starts_with(start))
            || heuristics::is_weak(value)
            || if self.is_password && self.is_env {
                heuristics::is_dummy(value)
            } else if self.is_password && (is_quoted || is_line) {
                heuristics::is_dummy(value) || heuristics::is_fixture(value)
            } else {
                heuristics::is_placeholder_value(value)
            }
        {
            return false;
        }
        let is_base64 = value.len() >= 32 && Alphabet::Base64.run(bytes) == bytes.len();
        if bytes[0] == b'/' && !is_base64 {
            return false;
        }
        let is_uuid = value.len() == 36 && Alphabet::Hyphened.run(bytes) == 36;
        if is_uuid {
            return self.is_env && !self.is_vague;
        }
        if self.is_password {
            // A password chosen by a person: at least two kinds of characters.
            let has = |kind: fn(&u8) -> bool| bytes.iter().any(kind);
            let mixed =
                has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || has(u8::is_ascii_punctuation));
            let is_code = is_code(value) && !heuristics::is_varied(value);
            // Words joined by hyphens are names in code, but passwords in an `.env` file, and with a number
            // among them in quotes or alone on a line.
            let is_stated = is_quoted || is_line;
            let is_phrase = is_phrase(value, self.is_env) && (self.is_env || is_stated);
            let strong = has(u8::is_ascii_digit)
                && has(u8::is_ascii_alphabetic)
                && !heuristics::is_wordy(bytes)
                && !is_code;
            let is_scrambled = heuristics::is_scrambled(bytes);
            // Too long to be a name with a number, and without the letter pairs of one.
            let is_meaningless = strong && value.len() >= 16 && heuristics::has_uncommon_letters(bytes, 2);
            return if is_phrase {
                true
            } else if self.is_env {
                mixed && !is_code || is_scrambled || bytes.iter().all(u8::is_ascii_alphabetic)
            } else {
                is_quoted && (strong || is_scrambled)
                    || is_line && (strong && heuristics::is_varied(value) || is_scrambled || is_meaningless)
                    || heuristics::is_random(bytes) && !self::is_code(value)
            };
        }
        let long_enough =
            if bytes.iter().all(u8::is_ascii_hexdigit) { value.len() >= 24 } else { value.len() >= 16 };
        let is_mixed =
            heuristics::is_varied(value) && !heuristics::is_wordy(bytes) || heuristics::is_scrambled(bytes);
        let is_stated = is_quoted || self.is_env || is_line && heuristics::is_short_random(bytes);
        let is_chosen = is_stated && !self.is_vague && value.len() >= 12 && is_mixed;
        (long_enough && heuristics::is_random(bytes) || is_chosen) && !is_code(value)
    }

    /// Returns whether the value is a base64-encoded password, as in Kubernetes secrets.
    fn is_encoded(&self, value: &str) -> bool {
        if self.is_vague || !value.len().is_multiple_of(4) || !value.ends_with('=') && value.len() < 16 {
            return false;
        }
        let Some(decoded) = STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return false;
        };
        decoded.len() >= 6
            && decoded.bytes().all(|byte| (b'!'..0x7F).contains(&byte))
            && heuristics::is_password(&decoded)
    }
}

/// Returns whether a value is words that are joined by hyphens, with a number among them unless
/// `without_number`: `shuttle-loom-42`, `weaver7-prod`.
pub(crate) fn is_phrase(value: &str, without_number: bool) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let is_word = |part: &&str| part.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !part.is_empty();
    let n_digits = |part: &&str| part.bytes().filter(u8::is_ascii_digit).count();
    let n_letters = |part: &&str| part.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_number = |part: &&str| n_digits(part) >= 2 && n_digits(part) == part.len();
    // A word with a digit, and another word: not a version of an algorithm, `utf8-text`.
    let is_named = |part: &&str| n_letters(part) >= 5 && (1..=4).contains(&n_digits(part));
    match parts.len() {
        0 | 1 => false,
        2 => {
            value.len() >= 10
                && parts.iter().all(|part| is_word(part) && (n_letters(part) >= 3 || is_named(part)))
                && parts.iter().any(is_named)
        }
        _ => parts.iter().all(is_word) && (without_number || parts.iter().any(is_number)),
    }
}

fn is_four_letters(part: &str) -> bool {
    part.len() == 4
        && part.bytes().all(|byte| byte.is_ascii_lowercase())
        && !heuristics::is_wordy(part.as_bytes())
}

/// Returns whether the value is a long key of letters, digits and many signs, as Django generates them.
fn is_symbol_key(value: &str) -> bool {
    let bytes = value.as_bytes();
    let is_sign = |byte: &u8| b"!@#$%^&*(-_=+).,~".contains(byte);
    let signs: Vec<u8> = bytes.iter().copied().filter(is_sign).collect();
    value.len() >= 32
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || is_sign(byte))
        && bytes.iter().any(u8::is_ascii_digit)
        && heuristics::distinct(&signs) >= 4
        && heuristics::entropy(bytes) >= 4.0
        && !heuristics::is_wordy(bytes)
        && !heuristics::is_placeholder_value(value)
}

/// Returns whether the value is code: identifiers joined by dots or underscores, calls, or indexing.
fn is_code(value: &str) -> bool {
    if value.contains(['(', ')', '{', '}', ' ']) {
        return true;
    }
    // Words, optionally with a short number: `osc7/osc51`.
    let is_word = |part: &str| {
        let digits = part.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        let is_word =
            part.len() <= 12 && digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_word && !heuristics::is_scrambled(part.as_bytes())
    };
    let mut n = 0;
    let all_words = value.split(['.', '_', '/', '-', ':']).filter(|part| !part.is_empty()).all(|part| {
        n += 1;
        is_word(part)
    });
    all_words && n >= 2
}
