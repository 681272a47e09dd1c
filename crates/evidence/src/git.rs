//! Commits that a log names, and what they say of files.

use foldhash::HashSet;
use threadline_entry::Kind;
use threadline_entry::lens::AttachmentLine;
use threadline_session::{EntryIndex, Session};

use crate::backup::absolute;

/// The state of the working tree at the beginning of a session, as Claude Code recorded it.
pub(crate) struct StartStatus {
    /// The line that records it.
    pub(crate) line: EntryIndex,
    /// The current commit, abbreviated.
    pub(crate) commit: String,
    /// The absolute paths that are changed or untracked. Folders contain only such files.
    changed: HashSet<String>,
    /// Whether other files may be changed too, since the record is truncated.
    pub(crate) is_truncated: bool,
}

impl StartStatus {
    /// Returns the status at the beginning of a session.
    pub(crate) fn of(session: &Session, root: &str) -> Option<Self> {
        session.entries().enumerated().filter(|(_, entry)| entry.kind() == Kind::Attachment).find_map(
            |(line, entry)| {
                let attachment = entry.lens::<AttachmentLine<'_>>()?.attachment()?;
                let text = attachment.context()?.git_status()?.as_str()?;
                Self::parse(&text, line, root)
            },
        )
    }

    fn parse(text: &str, line: EntryIndex, root: &str) -> Option<Self> {
        let (_, rest) = text.split_once("\nStatus:\n")?;
        let (status, commits) = rest.rsplit_once("\nRecent commits:\n")?;
        let commit = commits.split_whitespace().next()?;
        let is_hash = commit.len() >= 4 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut changed = HashSet::default();
        let mut is_truncated = status.contains("truncated");
        for entry in status.lines().filter(|entry| !entry.trim().is_empty() && *entry != "(clean)") {
            // The first line may have lost the space that begins it.
            let Some((_, path)) = entry.trim_start().split_once(' ') else {
                is_truncated = true;
                continue;
            };
            is_truncated |= path.contains(['"', '\\']);
            for path in path.trim_start().split(" -> ") {
                changed.insert(absolute(Some(root), path.trim_end_matches('/'), None));
            }
        }
        is_hash.then(|| Self { line, commit: commit.to_owned(), changed, is_truncated })
    }

    /// Returns whether a path, or a folder that contains it, is changed or untracked.
    pub(crate) fn is_changed(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.filter(|at| *at > 0).any(|at| self.changed.contains(&path[..at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> StartStatus {
        let text = format!(
            "Current branch: main\n\nStatus:\n{text}\n\nRecent commits:\n4f0f069 first\n1234567 older"
        );
        StartStatus::parse(&text, EntryIndex::FIRST, "/p").unwrap()
    }

    #[test]
    fn changed_and_untracked_files_are_known() {
        let clean = status("(clean)");
        assert_eq!((&*clean.commit, clean.is_truncated), ("4f0f069", false));
        assert!(!clean.is_changed("/p/a.txt"));
        let changed = status("M a.txt\n M src/b.rs\nR  old.txt -> new.txt\n?? notes/");
        for path in ["/p/a.txt", "/p/src/b.rs", "/p/old.txt", "/p/new.txt", "/p/notes/x/y.md"] {
            assert!(changed.is_changed(path), "{path}");
        }
        assert!(!changed.is_changed("/p/src/a.rs"));
        assert!(status("M a.txt\n... (truncated because it exceeds 40k characters)").is_truncated);
    }
}
