//! Detection of secrets in the lines of a log.

use std::sync::LazyLock;

use threadline_entry::{Entry, Kind, StringRole, visit_strings};
use threadline_secret::Rules;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::new);

/// Returns the name of the first secret in a line. Ids and opaque data, such as signatures and images, are
/// skipped.
pub(crate) fn secret_in(entry: &Entry) -> Option<&'static str> {
    let first =
        |key: &str, text: &str| RULES.find_in_member(key, text).first().map(|found| found.description);
    // A line that is not JSON is searched as raw text.
    if entry.kind() == Kind::Bad {
        return first("", entry.text());
    }
    let mut secret = None;
    visit_strings(entry.text(), |text| {
        if secret.is_none() && !matches!(text.role, StringRole::Id | StringRole::Opaque) {
            secret = first(text.key, &text.decoded());
        }
    });
    secret
}
