//! Indents JSON that a program wrote on one line.

use std::borrow::Cow;

use threadline_entry::Json;

/// The maximum number of levels that are indented.
const MAX_LEVELS: usize = 16;

/// Indents a text that is JSON on one long line; returns any other text unchanged.
pub(crate) fn indent_json(text: &str) -> Cow<'_, str> {
    const LONG: usize = 80;
    let trimmed = text.trim();
    let is_long = trimmed.starts_with(['{', '[']) && trimmed.len() > LONG && !trimmed.contains('\n');
    if !is_long || Json::parse(trimmed).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(trimmed.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    let mut chars = trimmed.chars().peekable();
    while let Some(ch) = chars.next() {
        if in_string {
            out.push(ch);
            in_string = escaped || ch != '"';
            escaped = ch == '\\' && !escaped;
            continue;
        }
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth.min(MAX_LEVELS)));
        };
        match ch {
            '{' | '[' => {
                out.push(ch);
                while chars.peek().is_some_and(|next| next.is_whitespace()) {
                    chars.next();
                }
                match chars.peek() {
                    Some('}' | ']') => out.extend(chars.next()),
                    _ => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(ch);
            }
            ',' => {
                out.push(ch);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ch if ch.is_whitespace() => {}
            ch => {
                in_string = ch == '"';
                out.push(ch);
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_on_a_long_line_is_indented() {
        let long = r#"{"name":"a \"{,}\" b","deep":{"list":[1,2,{}],"none":[ ]},"text":"0123456789012345678901234567890123456789"}"#;
        insta::assert_snapshot!(indent_json(long), @r#"
    {
      "name": "a \"{,}\" b",
      "deep": {
        "list": [
          1,
          2,
          {}
        ],
        "none": []
      },
      "text": "0123456789012345678901234567890123456789"
    }
    "#);
        for text in [
            "",
            "{}",
            r#"{"a":1}"#,
            "[not json, however long it may be, and it is longer than eighty characters in all]",
        ] {
            assert_eq!(indent_json(text), text);
        }
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let widest = indent_json(&deep).lines().map(str::len).max();
        assert_eq!(widest, Some(2 * MAX_LEVELS + 1));
        let set = format!("{{\n\"a\":\"{}\"}}", "x".repeat(100));
        assert_eq!(indent_json(&set), set);
    }
}
