//! The tools, one file each: arguments, answer and implementation.

mod changes;
mod check;
mod edits;
mod list;
mod read;
mod read_item;
mod search;
mod usage;

pub(crate) use changes::SessionChanges;
pub(crate) use check::CheckSession;
pub(crate) use edits::FindEdits;
pub(crate) use list::ListSessions;
pub(crate) use read::ReadSession;
pub(crate) use search::SearchSessions;
pub(crate) use usage::UsageCount;
