//! Finds the first prompt of a session in the lines at its beginning.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use threadline_entry::{Entry, FirstPromptSearch, key, value};

/// Finds the type of a reply.
pub(crate) static REPLY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""assistant""#));

/// Finds the type of a prompt.
static USER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""user""#));

/// Finds byte strings that no prompt line contains.
static NEVER: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| {
    [value::quoted::TOOL_RESULT, key::set_true::IS_META, key::set_true::IS_COMPACT_SUMMARY].map(Finder::new)
});

/// Examines the next line of a log; most are not parsed.
pub(crate) fn examine_line(search: &mut FirstPromptSearch, line: &[u8]) {
    let is_reply = || search.needs_reply() && REPLY.find(line).is_some();
    if !search.is_done() && (may_be_prompt(line) || is_reply()) {
        search.examine(&Entry::parse(line).0);
    }
}

/// Whether the line has to be parsed.
///
/// The names searched for cannot occur inside a text, where quotes are escaped.
fn may_be_prompt(line: &[u8]) -> bool {
    USER.find(line).is_some() && !NEVER.iter().any(|text| text.find(line).is_some())
}
