//! Finds the first prompt of a session in the lines at its beginning.

use memchr::memmem;
use threadline_entry::{Entry, FirstPromptSearch, key, value};

/// Examines the next line of a log; most are not parsed.
pub(crate) fn examine_line(search: &mut FirstPromptSearch, line: &[u8]) {
    let is_reply = || search.needs_reply() && memmem::find(line, br#""assistant""#).is_some();
    if !search.is_done() && (may_be_prompt(line) || is_reply()) {
        search.examine(&Entry::parse(line).0);
    }
}

/// Whether the line has to be parsed.
///
/// The names searched for cannot occur inside a text, where quotes are escaped.
fn may_be_prompt(line: &[u8]) -> bool {
    const NEVER: [&str; 3] =
        [value::quoted::TOOL_RESULT, key::set_true::IS_META, key::set_true::IS_COMPACT_SUMMARY];
    let has = |text: &str| memmem::find(line, text.as_bytes()).is_some();
    has(r#""user""#) && !NEVER.into_iter().any(has)
}
