//! Relocates the session of a project that was moved to another folder.

use threadline_entry::{Json, key};

use crate::draft::EditDraft;
use crate::splice::{Splice, quote};

/// Changes the working directory of every line from `from`, or a folder below it, to `to`. Returns the
/// number of lines changed.
pub fn relocate(draft: &mut EditDraft<'_>, from: &str, to: &str) -> usize {
    draft.changes_every_line = true;
    let mut n = 0;
    for (idx, entry) in draft.session.entries().enumerated() {
        let Some(value) = entry.get(key::CWD) else { continue };
        let Some(cwd) = value.as_str() else { continue };
        let rest = cwd.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\']));
        if let Some(rest) = rest {
            let splice = Splice::replace(entry.text(), Json::raw(value), quote(&format!("{to}{rest}")));
            draft.splice(idx, splice, "working directory changed");
            n += 1;
        }
    }
    n
}
