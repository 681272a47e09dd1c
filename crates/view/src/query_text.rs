//! The text of a search query with conditions that were entered elsewhere: as options, or as controls.

/// Adds a condition such as `since:"7d"` to the text of a query.
pub fn add_condition(query: &mut String, field: &str, value: &str) {
    let space = if query.is_empty() { "" } else { " " };
    // A quote would end the value.
    let value = value.replace('"', " ");
    query.push_str(&format!("{space}{field}:\"{}\"", value.trim()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_separate_parts_of_a_query() {
        let mut query = String::new();
        add_condition(&mut query, "since", "7d");
        add_condition(&mut query, "until", " 2026-03\" x ");
        assert_eq!(query, "since:\"7d\" until:\"2026-03  x\"");
    }
}
