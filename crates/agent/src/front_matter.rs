//! The values at the start of a Markdown file, between lines of three dashes.
//!
//! They are YAML, but people write values that are not, such as `[WIP] draft` or `Use this: always`, and
//! Claude Code accepts many of them. If the whole is no YAML, each value is read on its own, and one that is
//! no YAML is the text as it is written.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser};

/// The values of a file: texts and lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    values: Vec<(String, Value)>,
}

/// A value. Tables are skipped: no key that is used has one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    List(Vec<String>),
}

/// The most references to an anchor. Each copies a value, which can be as large as the file.
const MAX_ALIASES: usize = 100;

impl FrontMatter {
    /// Splits a file into its values and the rest.
    pub(crate) fn split(text: &str) -> (Self, &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| is_border(line)) else { return (Self::default(), text) };
        let mut end = first.len();
        for line in lines {
            if is_border(line) {
                return (Self::parse(&text[first.len()..end]), &text[end + line.len()..]);
            }
            end += line.len();
        }
        (Self::default(), text)
    }

    fn parse(text: &str) -> Self {
        if let Some(values) = parse_yaml(text) {
            return Self { values };
        }
        let values = split_values(text).into_iter().filter_map(|(key, lines)| {
            let own = parse_yaml(&lines).and_then(|values| values.into_iter().next());
            Some((key.clone(), own.map(|(_, value)| value).or_else(|| plain_value(&key, &lines))?))
        });
        Self { values: values.collect() }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns a text; of a list, its first item.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(text) => Some(text),
            Value::List(items) => items.first().map(String::as_str),
        }
    }

    /// Returns a list: one item per line, or separated by commas, with or without brackets.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        let text = match self.value(key) {
            None => return Vec::new(),
            Some(Value::List(items)) => return items.clone(),
            Some(Value::Text(text)) => text,
        };
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let mut depth = 0usize;
        let parts = inner.split(|ch| {
            match ch {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            ch == ',' && depth == 0
        });
        parts.map(|part| unquote(part.trim())).filter(|part| !part.is_empty()).collect()
    }
}

/// Whether a line begins or ends the values.
fn is_border(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Parses a table of texts and lists of texts; other values are skipped. `None` if the text is something
/// else, or no YAML.
fn parse_yaml(text: &str) -> Option<Vec<(String, Value)>> {
    let mut values = Vec::new();
    let mut anchors: HashMap<usize, Value> = HashMap::new();
    let mut aliases = 0;
    // The depth of the current node, the key of the next value, and the list that is being read.
    let (mut depth, mut key, mut list) = (0usize, None::<String>, None::<(usize, Vec<String>)>);
    for event in Parser::new_from_str(text) {
        let value = match event.ok()?.0 {
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => continue,
            Event::MappingStart(..) => {
                depth += 1;
                continue;
            }
            Event::SequenceStart(anchor, _) => {
                depth += 1;
                if depth == 2 {
                    list = Some((anchor, Vec::new()));
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                depth = depth.checked_sub(1)?;
                match (depth, list.take()) {
                    (1, Some((anchor, items))) => {
                        anchors.insert(anchor, Value::List(items.clone()));
                        Some(Value::List(items))
                    }
                    (1, None) => None,
                    (_, unfinished) => {
                        list = unfinished;
                        continue;
                    }
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let is_null =
                    style == saphyr_parser::ScalarStyle::Plain && ["", "~", "null"].contains(&&*text);
                let value = (!is_null).then(|| Value::Text(text.trim().to_owned()));
                anchors.extend(value.clone().map(|value| (anchor, value)));
                value
            }
            Event::Alias(anchor) => {
                aliases += 1;
                if aliases > MAX_ALIASES {
                    return None;
                }
                anchors.get(&anchor).cloned()
            }
            _ => continue,
        };
        match (depth, &mut list) {
            // The whole is not a table.
            (0, _) => return None,
            (1, _) => match key.take() {
                None => match value {
                    Some(Value::Text(name)) => key = Some(name),
                    _ => return None,
                },
                Some(name) => values.extend(value.map(|value| (name, value))),
            },
            (2, Some((_, items))) => {
                if let Some(Value::Text(item)) = value {
                    items.push(item);
                }
            }
            _ => {}
        }
    }
    Some(values)
}

/// Splits values at lines that begin with a key. Returns the lines of each.
fn split_values(text: &str) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let is_key = |key: &&str| {
            !key.is_empty() && key.chars().all(|ch| ch.is_alphanumeric() || ch == '-' || ch == '_')
        };
        match (line.split_once(':').map(|(key, _)| key.trim_end()).filter(is_key), values.last_mut()) {
            (Some(key), _) if !line.starts_with('-') => values.push((key.to_owned(), format!("{line}\n"))),
            (_, Some((_, lines))) => {
                lines.push_str(line);
                lines.push('\n');
            }
            (_, None) => {}
        }
    }
    values
}

/// Returns a value that is no YAML as it is written: the items of a list with one per line, or the lines as
/// one.
fn plain_value(key: &str, lines: &str) -> Option<Value> {
    let lines = lines.strip_prefix(key)?.trim_start().strip_prefix(':')?;
    let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<&str> = lines.by_ref().collect();
    let items: Option<Vec<String>> =
        lines.iter().map(|line| line.strip_prefix("- ").map(|item| unquote(item.trim()))).collect();
    match items {
        _ if lines.is_empty() => None,
        Some(items) => Some(Value::List(items)),
        None => Some(Value::Text(unquote(&lines.join(" ")))),
    }
}

/// Removes quotes around a text.
fn unquote(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(values: &str) -> Option<String> {
        let file = format!("---\nname: x\n{values}\nmodel: haiku\n---\nBody");
        let (values, body) = FrontMatter::split(&file);
        assert_eq!((values.text("name"), values.text("model"), body), (Some("x"), Some("haiku"), "Body"));
        values.text("description").map(str::to_owned)
    }

    #[test]
    fn texts_have_every_form_of_yaml() {
        let cases = [
            ("description: plain", "plain"),
            ("description: >\n  folded\n  text", "folded text"),
            ("description: >-\n  folded\n  text\n\n  two", "folded text\ntwo"),
            ("description: |\n  one\n  two", "one\ntwo"),
            ("description: |-\n  one\n  two: x", "one\ntwo: x"),
            ("description: continued\n  on the next line", "continued on the next line"),
            ("description: \"quoted\n  and continued\"", "quoted and continued"),
            ("description: 'quoted\n  and continued'", "quoted and continued"),
            (r#"description: "with \"quotes\" and \u00e9""#, "with \"quotes\" and é"),
            ("description: 'it''s'", "it's"),
            ("description: text # note", "text"),
            ("description: text#no note", "text#no note"),
            ("description: &anchor text", "text"),
            ("other: &a shared\ndescription: *a", "shared"),
            ("description: http://x.example/a:b", "http://x.example/a:b"),
            ("description: 12", "12"),
            ("description:\n  below", "below"),
            ("hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [a]\ndescription: after", "after"),
            ("# comment\ndescription: text", "text"),
            ("description: \"[x] * & @\"", "[x] * & @"),
        ];
        for (values, expected) in cases {
            assert_eq!(description(values).as_deref(), Some(expected), "{values}");
            let windows = values.replace('\n', "\r\n");
            assert_eq!(description(&windows).as_deref(), Some(expected), "{windows:?}");
        }
        for empty in ["description:", "description: ~", "description: null", "other: x"] {
            assert_eq!(description(empty), None, "{empty}");
        }
    }

    #[test]
    fn a_value_that_is_no_yaml_is_the_text_as_it_is_written() {
        let cases = [
            ("description: Use this: always", "Use this: always"),
            ("description: [WIP] draft", "[WIP] draft"),
            ("description: *important* text", "*important* text"),
            ("description: @someone", "@someone"),
            ("description: `code` first", "`code` first"),
            ("description: %percent", "%percent"),
            ("description: {a} b", "{a} b"),
            ("description: \"a\" and b", "\"a\" and b"),
            ("description: Use: this\n  and that", "Use: this and that"),
            ("broken: [\ndescription: text", "text"),
            ("broken: \"no end\ndescription: >\n  folded\n  text", "folded text"),
            ("broken: *none\ndescription: 'it''s'", "it's"),
        ];
        for (values, expected) in cases {
            assert_eq!(description(values).as_deref(), Some(expected), "{values}");
        }
    }

    #[test]
    fn lists_have_every_form() {
        let list = |values: &str| {
            let (values, _) = FrontMatter::split(&format!("---\nname: x\n{values}\n---\n"));
            assert_eq!(values.text("name"), Some("x"), "{values:?}");
            values.list("tools")
        };
        for values in [
            "tools: Read, Bash(a, b)",
            "tools: [Read, \"Bash(a, b)\"]",
            "tools: [\n  Read,\n  'Bash(a, b)',\n]",
            "tools:\n  - Read\n  - Bash(a, b)",
            "tools:\n- Read\n- 'Bash(a, b)' # note",
            "tools: >\n  Read,\n  Bash(a, b)",
            "other: &t [Read, 'Bash(a, b)']\ntools: *t",
            "broken: a: b\ntools:\n  - Read\n  - Bash(a, b)",
        ] {
            assert_eq!(list(values), ["Read", "Bash(a, b)"], "{values}");
        }
        assert_eq!(list("tools:\n  - **/*.ts\n  - src/**"), ["**/*.ts", "src/**"]);
        assert_eq!(list("tools: **/*.ts"), ["**/*.ts"]);
        assert_eq!(list("tools: Bash(git: *), Read"), ["Bash(git: *)", "Read"]);
        assert_eq!(list("tools: []"), Vec::<String>::new());
    }

    #[test]
    fn borders_may_have_spaces_and_a_byte_order_mark() {
        for file in
            ["--- \nname: x\n---\t\nBody", "\u{feff}---\nname: x\n---\nBody", "---\r\nname: x\r\n---\r\nBody"]
        {
            let (values, body) = FrontMatter::split(file);
            assert_eq!((values.text("name"), body), (Some("x"), "Body"), "{file:?}");
        }
        let (values, body) = FrontMatter::split("---\nname: x\n---\nBody\n---\n");
        assert_eq!((values.text("name"), body), (Some("x"), "Body\n---\n"));
    }

    #[test]
    fn a_file_without_values_is_all_text() {
        for file in ["Body", "---\nno end", " ---\nx: y\n---\n", ""] {
            assert_eq!(FrontMatter::split(file), (FrontMatter::default(), file));
        }
        for values in ["text", "- a\n- b", "", "[", "a: b: c: d", ": x", "\u{0}", "{", "? [a]\n: b"] {
            let file = format!("---\n{values}\n---\nBody");
            assert_eq!(FrontMatter::split(&file).1, "Body", "{values}");
        }
    }

    #[test]
    fn aliases_do_not_multiply_a_file() {
        let mut file = format!("---\na0: &a0 [{}]\n", vec!["lol"; 1000].join(", "));
        for i in 1..2000 {
            file.push_str(&format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", ")));
        }
        for i in 0..2000 {
            file.push_str(&format!("b{i}: *a0\n"));
        }
        file.push_str("name: x\n---\n");
        let (values, _) = FrontMatter::split(&file);
        assert_eq!(values.text("name"), Some("x"));
        let size: usize = values.values.iter().map(|(_, value)| format!("{value:?}").len()).sum();
        assert!(size < 2 * file.len(), "{size} of {}", file.len());
    }
}
