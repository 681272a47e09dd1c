//! Drafts: the changes that an operation requests for each line of a session.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::Block;
use threadline_entry::{Entry, Finding};
use threadline_session::{EntryIndex, ReplyIndex, Session};

use crate::plan::{ContentDigest, EditPlan, PlanOptions};
use crate::splice::{self, Splice};

/// The requested changes to a session: lines to remove, change or add.
///
/// An operation records only the changes that it wants. [`EditDraft::plan`] then adjusts parents, timestamps,
/// ids, and references to removed lines.
#[derive(Debug)]
pub struct EditDraft<'s> {
    pub(crate) session: &'s Session,
    line_edits: HashMap<EntryIndex, LineEdit>,
    /// The reasons of the changes that the session already contains.
    pub(crate) earlier_reasons: Option<&'s HashMap<EntryIndex, Reasons>>,
    pub(crate) added: Vec<AddedLine>,
    /// Lines of the file that are not in the session: their numbers, and the reasons of their removal.
    pub(crate) already_removed: Vec<(u64, String)>,
    pub(crate) side_files: Vec<SideFileOp>,
    pub(crate) findings: Vec<Finding>,
    /// Whether the conversation has no user message, so that the result may start with an assistant message.
    pub(crate) no_user_message: bool,
    /// Whether the edit has to change all lines, as an edit with a new session as its result has to.
    pub(crate) changes_every_line: bool,
    /// Path prefixes to replace in every line, with their replacements.
    pub(crate) moved_paths: Vec<(String, String)>,
    /// Whether sub-agents inside the log are moved to separate logs.
    pub(crate) extracts_agents: bool,
    /// Descriptions of the changes to the content of side files.
    pub(crate) side_notes: Vec<String>,
    /// The replies whose thinking is removed.
    pub(crate) without_thinking: HashSet<ReplyIndex>,
}

/// The changes to one line.
#[derive(Debug, Default)]
pub(crate) struct LineEdit {
    pub(crate) content: LineContent,
    /// Whether the line is removed. Then the other changes have no effect.
    is_removed: bool,
    /// Whether its token counts include removed content.
    pub(crate) stale_usage: bool,
    /// The indices of the blocks to remove from its message.
    pub(crate) removed_blocks: BTreeSet<usize>,
    /// The number of blocks in its message, if any of them is removed.
    n_blocks: usize,
    reasons: Reasons,
}

static UNCHANGED: LineEdit = LineEdit {
    content: LineContent::Unchanged,
    is_removed: false,
    stale_usage: false,
    removed_blocks: BTreeSet::new(),
    n_blocks: 0,
    reasons: Reasons(Vec::new()),
};

/// The reasons of the changes to a line, each once, in the order of the changes.
#[derive(Debug, Default)]
pub(crate) struct Reasons(Vec<Reason>);

/// The reason of a change to a line.
#[derive(Debug)]
struct Reason {
    text: Cow<'static, str>,
    /// Whether the line, or a block of it, is removed for this reason.
    is_removal: bool,
}

impl Reasons {
    /// Adds the reason of a change.
    pub(crate) fn add(&mut self, text: impl Into<Cow<'static, str>>, is_removal: bool) {
        let text = text.into();
        match self.0.iter_mut().find(|known| known.text == text) {
            Some(known) => known.is_removal |= is_removal,
            None => self.0.push(Reason { text, is_removal }),
        }
    }
}

/// The content of a line.
#[derive(Debug, Default)]
pub(crate) enum LineContent {
    /// Unchanged.
    #[default]
    Unchanged,
    /// The original with splices applied.
    Spliced(Vec<Splice>),
    /// A different line.
    Replaced(Box<Entry>),
}

/// A new line.
#[derive(Debug)]
pub(crate) struct AddedLine {
    /// The index of the entry that it follows; `None` for the start of the log.
    pub(crate) after: Option<EntryIndex>,
    pub(crate) entry: Entry,
    pub(crate) reason: Cow<'static, str>,
}

/// A planned operation on a side file: a file that belongs to the session but is not its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideFileOp {
    /// Copies a file unchanged.
    Copy {
        /// The source.
        from: PathBuf,
        /// The target.
        to: PathBuf,
    },
    /// Copies a log or a JSON file, with the ids of the new session.
    CopyLog {
        /// The source.
        from: PathBuf,
        /// The target.
        to: PathBuf,
    },
    /// Creates a log or a JSON file, with the ids of the new session.
    CreateLog {
        /// The file.
        path: PathBuf,
        /// Its content, before the ids are replaced.
        content: Vec<u8>,
    },
    /// Replaces the content of a file.
    Change {
        /// The file.
        path: PathBuf,
        /// The digest of the current content.
        read: ContentDigest,
        /// The new content.
        content: Vec<u8>,
    },
    /// Moves a file.
    Move {
        /// The source.
        from: PathBuf,
        /// The target.
        to: PathBuf,
        /// The digest of the current content and the new content; `None` if the content does not change.
        content: Option<(ContentDigest, Vec<u8>)>,
    },
    /// Creates a file.
    Create {
        /// The file.
        path: PathBuf,
        /// Its content.
        content: Vec<u8>,
    },
    /// Removes a file.
    Remove {
        /// The file.
        path: PathBuf,
    },
}

impl<'s> EditDraft<'s> {
    /// Creates a draft that changes nothing.
    pub fn new(session: &'s Session) -> Self {
        Self {
            session,
            line_edits: HashMap::default(),
            earlier_reasons: None,
            added: Vec::new(),
            already_removed: Vec::new(),
            side_files: Vec::new(),
            findings: Vec::new(),
            no_user_message: false,
            changes_every_line: false,
            moved_paths: Vec::new(),
            extracts_agents: false,
            side_notes: Vec::new(),
            without_thinking: HashSet::default(),
        }
    }

    /// Returns the session that is edited.
    pub fn session(&self) -> &'s Session {
        self.session
    }

    /// Returns the changes to a line.
    pub(crate) fn line_edit(&self, entry_idx: EntryIndex) -> &LineEdit {
        self.line_edits.get(&entry_idx).unwrap_or(&UNCHANGED)
    }

    pub(crate) fn line_edit_mut(&mut self, entry_idx: EntryIndex) -> &mut LineEdit {
        self.line_edits.entry(entry_idx).or_default()
    }

    /// Removes a line. The reason is shown in the plan: a few words, lower case. A line that was removed
    /// before has several reasons.
    pub fn remove(&mut self, entry_idx: EntryIndex, why: impl Into<Cow<'static, str>>) {
        let line_edit = self.line_edit_mut(entry_idx);
        line_edit.reasons.add(why, true);
        line_edit.is_removed = true;
    }

    /// Removes a block from a message. When all blocks are removed, so is the line.
    ///
    /// `block_idx` is the index among the blocks of the original line, as the lenses count them.
    pub fn remove_block(
        &mut self,
        entry_idx: EntryIndex,
        block_idx: usize,
        why: impl Into<Cow<'static, str>>,
    ) {
        let message = self.session.entries()[entry_idx].message();
        let line_edit = self.line_edits.entry(entry_idx).or_default();
        if line_edit.removed_blocks.is_empty() {
            line_edit.n_blocks = message.map_or(0, |message| message.blocks().count());
        }
        line_edit.reasons.add(why, true);
        line_edit.removed_blocks.insert(block_idx);
        line_edit.is_removed |= line_edit.removed_blocks.len() >= line_edit.n_blocks;
    }

    /// Returns the remaining blocks of a line's message, with their original indices.
    pub fn blocks(&self, entry_idx: EntryIndex) -> impl Iterator<Item = (usize, Block<'s>)> + '_ {
        let line_edit = self.line_edit(entry_idx);
        let message = self.session.entries()[entry_idx].message().filter(|_| !line_edit.is_removed);
        let blocks = message.into_iter().flat_map(|message| message.blocks()).enumerate();
        blocks.filter(|(block_idx, _)| !line_edit.removed_blocks.contains(block_idx))
    }

    /// Replaces a range of a line. The range refers to the original line.
    pub fn splice(&mut self, entry_idx: EntryIndex, splice: Splice, why: impl Into<Cow<'static, str>>) {
        self.note(entry_idx, why);
        match &mut self.line_edit_mut(entry_idx).content {
            LineContent::Spliced(splices) => splices.push(splice),
            body => *body = LineContent::Spliced(vec![splice]),
        }
    }

    /// Replaces a whole line with `text`, which has no newline.
    pub fn rewrite(&mut self, entry_idx: EntryIndex, text: &str, why: impl Into<Cow<'static, str>>) {
        self.note(entry_idx, why);
        self.line_edit_mut(entry_idx).content =
            LineContent::Replaced(Box::new(Entry::parse(text.as_bytes()).0));
    }

    /// Adds a line after entry `after`, or at the start of the log. Several lines after one entry keep
    /// their order.
    ///
    /// A line of the conversation needs a uuid. Its parent is set to the preceding line of the
    /// conversation; a compaction boundary becomes a root.
    pub fn insert(
        &mut self,
        after: Option<EntryIndex>,
        text: impl Into<String>,
        why: impl Into<Cow<'static, str>>,
    ) {
        let (entry, _) = Entry::parse_owned(text.into().into_bytes());
        self.added.push(AddedLine { after, entry, reason: why.into() });
    }

    /// Adds a line at the end.
    pub fn append(&mut self, text: &str, why: impl Into<Cow<'static, str>>) {
        let last = self.session.entries().last_index();
        self.insert(last, text, why);
    }

    /// Records the reason why a line of the session differs from the line in the file.
    pub(crate) fn note(&mut self, entry_idx: EntryIndex, why: impl Into<Cow<'static, str>>) {
        self.line_edit_mut(entry_idx).reasons.add(why, false);
    }

    /// Returns the reasons why a removed line is removed, without those of other changes to it.
    pub(crate) fn removal_reasons_of(&self, entry_idx: EntryIndex) -> impl Iterator<Item = &str> {
        let reasons = self.line_edit(entry_idx).reasons.0.iter();
        reasons.filter(|reason| reason.is_removal).map(|reason| &*reason.text)
    }

    /// Returns the reasons of a line, in the order in which they were added.
    pub(crate) fn reasons_of(&self, entry_idx: EntryIndex) -> impl Iterator<Item = &str> {
        let earlier: &[Reason] = self
            .earlier_reasons
            .and_then(|reasons| reasons.get(&entry_idx))
            .map_or(&[], |reasons| &reasons.0);
        let own = self.line_edit(entry_idx).reasons.0.iter();
        let own = own.filter(|reason| !earlier.iter().any(|earlier| earlier.text == reason.text));
        earlier.iter().chain(own).map(|reason| &*reason.text)
    }

    /// Returns whether the line is to be removed.
    pub fn is_removed(&self, entry_idx: EntryIndex) -> bool {
        self.line_edit(entry_idx).is_removed
    }

    /// Returns whether the line is to be removed or changed.
    pub fn is_touched(&self, entry_idx: EntryIndex) -> bool {
        let line_edit = self.line_edit(entry_idx);
        line_edit.is_removed
            || !line_edit.removed_blocks.is_empty()
            || !matches!(line_edit.content, LineContent::Unchanged)
    }

    /// Estimates the number of tokens that a resume of the original session sends.
    pub fn tokens(&self) -> u64 {
        let sent = self.session.resumed_lines().unwrap_or_default();
        sent.into_iter().map(|idx| crate::tokens::tokens(&self.session.entries()[idx])).sum()
    }

    /// Returns whether the draft changes nothing.
    pub fn is_untouched(&self) -> bool {
        self.added.is_empty()
            && self.side_files.is_empty()
            && self.already_removed.is_empty()
            && self.earlier_reasons.is_none_or(|reasons| reasons.is_empty())
            && self.line_edits.values().all(|line_edit| line_edit.reasons.0.is_empty())
    }

    /// Returns the line with the requested changes, before links, timestamps and ids are set.
    pub fn entry(&self, entry_idx: EntryIndex) -> Cow<'_, Entry> {
        let line_edit = self.line_edit(entry_idx);
        let source = &self.session.entries()[entry_idx];
        let spliced: &[Splice] = match &line_edit.content {
            LineContent::Replaced(entry) => return Cow::Borrowed(&**entry),
            LineContent::Spliced(splices) => splices,
            LineContent::Unchanged if line_edit.removed_blocks.is_empty() => return Cow::Borrowed(source),
            LineContent::Unchanged => &[],
        };
        let mut removed = Vec::new();
        if let Some(content) = source
            .message()
            .and_then(|message| message.content())
            .filter(|_| !line_edit.removed_blocks.is_empty())
        {
            // Only objects are blocks.
            let mut block_idx = 0;
            removed = splice::delete_parts(source.text(), content.json(), |_, _, item| {
                let is_block = item.is_object();
                block_idx += usize::from(is_block);
                is_block && line_edit.removed_blocks.contains(&(block_idx - 1))
            });
        }
        let mut splices: Vec<&Splice> = spliced.iter().chain(&removed).collect();
        let text = splice::apply(source.text(), &mut splices);
        Cow::Owned(Entry::parse_owned(text.into_bytes()).0)
    }

    /// Adds an operation on a side file.
    pub fn add_side_file(&mut self, file: SideFileOp) {
        self.side_files.push(file);
    }

    /// Returns the operations on side files so far.
    pub fn side_files(&self) -> &[SideFileOp] {
        &self.side_files
    }

    /// Returns the operations on side files, for modification.
    pub fn side_files_mut(&mut self) -> &mut Vec<SideFileOp> {
        &mut self.side_files
    }

    /// Adds a short description of a change to the content of a side file.
    pub fn add_side_note(&mut self, what: String) {
        self.side_notes.push(what);
    }

    /// Adds a finding to show to the user.
    pub fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Replaces the path prefix `from` with `to` wherever it occurs in the lines.
    pub fn move_path(&mut self, from: String, to: String) {
        self.moved_paths.push((from, to));
    }

    /// Builds the plan: adjusts links, timestamps, ids and references, and checks the result.
    pub fn plan(self, shape: PlanOptions) -> EditPlan<'s> {
        EditPlan::new(self, shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_blocks_is_removed() {
        let session = Session::from_bytes(
            br#"{"type":"assistant","message":{"content":[{"type":"text"},{"type":"tool_use"}]}}"#,
        );
        let mut draft = EditDraft::new(&session);
        assert!(draft.is_untouched());
        let blocks = |draft: &EditDraft<'_>| draft.blocks(EntryIndex::FIRST).count();
        for (block_idx, n_left) in [(1, 1), (1, 1), (0, 0), (0, 0)] {
            draft.remove_block(EntryIndex::FIRST, block_idx, "test");
            assert_eq!((blocks(&draft), draft.is_removed(EntryIndex::FIRST)), (n_left, n_left == 0));
        }
        assert!(!draft.is_untouched());
    }

    #[test]
    fn earlier_reasons_come_first_and_are_not_repeated() {
        let (session, first) = (Session::from_bytes(b"{}"), EntryIndex::FIRST);
        let mut earlier: HashMap<EntryIndex, Reasons> = HashMap::default();
        earlier.entry(first).or_default().add("earlier", false);
        let mut draft = EditDraft::new(&session);
        draft.earlier_reasons = Some(&earlier);
        assert!(!draft.is_untouched());
        draft.note(first, "later");
        draft.note(first, "earlier");
        assert_eq!(draft.reasons_of(first).collect::<Vec<_>>(), ["earlier", "later"]);
    }

    #[test]
    fn a_removed_line_has_only_the_reasons_of_its_removal() {
        let (session, first) = (Session::from_bytes(b"{}"), EntryIndex::FIRST);
        let mut draft = EditDraft::new(&session);
        for why in ["changed", "both"] {
            draft.rewrite(first, "{}", why);
        }
        draft.remove(first, "gone");
        draft.remove(first, "both");
        assert_eq!(draft.reasons_of(first).collect::<Vec<_>>(), ["changed", "both", "gone"]);
        assert_eq!(draft.removal_reasons_of(first).collect::<Vec<_>>(), ["both", "gone"]);
    }
}
