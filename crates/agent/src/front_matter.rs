//! The values at the start of a Markdown file, between lines of three dashes.

/// The values of a file: texts and lists. This is the part of YAML that such files use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    values: Vec<(String, Vec<String>)>,
}

impl FrontMatter {
    /// Splits a file into its values and the rest.
    pub(crate) fn split(text: &str) -> (Self, &str) {
        let none = (Self::default(), text);
        let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
            return none;
        };
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            if line.trim_end() == "---" {
                return (Self::parse(&rest[..end]), &rest[end + line.len()..]);
            }
            end += line.len();
        }
        none
    }

    fn parse(text: &str) -> Self {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        for line in text.lines() {
            let is_item = line.trim_start().starts_with("- ");
            if let (true, Some((_, items))) = (is_item, values.last_mut()) {
                items.push(unquote(line.trim_start().trim_start_matches("- ").trim()));
            } else if !line.starts_with([' ', '\t', '#'])
                && let Some((key, value)) = line.split_once(':')
            {
                let value = value.trim();
                let items = if value.is_empty() { Vec::new() } else { vec![unquote(value)] };
                values.push((key.trim().to_owned(), items));
            }
        }
        Self { values }
    }

    fn items(&self, key: &str) -> &[String] {
        self.values.iter().find(|(known, _)| known == key).map_or(&[], |(_, items)| items)
    }

    /// Returns a text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.items(key).first().map(String::as_str)
    }

    /// Returns a list: one item per line, or separated by commas, with or without brackets.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        let items = self.items(key);
        let [only] = items else { return items.to_vec() };
        let inner = only.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(only);
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

    #[test]
    fn values_are_texts_and_lists() {
        let file = "---\nname: x\ndescription: \"A: b\"\ntools: Read, Bash(a, b)\nlist:\n  - one\n  - 'two'\nflow: [p, q]\n# c\n---\nBody\n---\n";
        let (values, body) = FrontMatter::split(file);
        assert_eq!(body, "Body\n---\n");
        assert_eq!((values.text("name"), values.text("description")), (Some("x"), Some("A: b")));
        assert_eq!(values.list("tools"), ["Read", "Bash(a, b)"]);
        assert_eq!(values.list("list"), ["one", "two"]);
        assert_eq!(values.list("flow"), ["p", "q"]);
        assert_eq!(values.text("none"), None);
    }

    #[test]
    fn a_file_without_values_is_all_text() {
        for file in ["Body", "---\nno end", "--- \nx: y\n---\n", ""] {
            assert_eq!(FrontMatter::split(file), (FrontMatter::default(), file));
        }
    }
}
