//! Detection of secrets in the lines of a log.

use std::sync::LazyLock;

use threadline_entry::{Entry, Kind, StringRole, visit_strings};
use threadline_secret::Rules;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::new);

/// Returns the kinds of secrets in a line, each once. Ids and opaque data, such as signatures and images, are
/// skipped.
pub(crate) fn secrets_in(entry: &Entry) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let mut add = |key: &str, text: &str| {
        for found in RULES.find_in_member(key, text) {
            if !kinds.contains(&found.description) {
                kinds.push(found.description);
            }
        }
    };
    // A line that is not JSON is searched as raw text.
    if entry.kind() == Kind::Bad {
        add("", entry.text());
    } else {
        visit_strings(entry.text(), |text| {
            if !matches!(text.role, StringRole::Id | StringRole::Opaque) {
                add(text.key, &text.decoded());
            }
        });
    }
    kinds
}
