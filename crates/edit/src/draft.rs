//! Drafts: the changes that an operation requests for each line of a session.

use std::borrow::Cow;
use std::ops::{Index, IndexMut};
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
    pub(crate) line_edits: LineEdits,
    pub(crate) line_reasons: LineReasons,
    /// The reasons of the changes that the session already contains.
    pub(crate) earlier_reasons: Option<&'s LineReasons>,
    pub(crate) added: Vec<AddedLine>,
    pub(crate) reasons: ReasonTable,
    /// Lines of the file that are not in the session: their numbers, and the indices of the reasons.
    pub(crate) already_removed: Vec<(u64, u16)>,
    pub(crate) side_files: Vec<SideFileOp>,
    pub(crate) findings: Vec<Finding>,
    /// Whether the conversation has no user message, so that the result may start with an assistant message.
    pub(crate) no_user_message: bool,
    /// Path prefixes to replace in every line, with their replacements.
    pub(crate) moved_paths: Vec<(String, String)>,
    /// Whether sub-agents inside the log are moved to separate logs.
    pub(crate) extracts_agents: bool,
    /// Descriptions of the changes to the content of side files.
    pub(crate) side_notes: Vec<String>,
    /// The replies whose thinking is removed.
    pub(crate) without_thinking: HashSet<ReplyIndex>,
}

/// The changes to the text of one line. Kept small, since every line may have one.
#[derive(Debug, Default)]
pub(crate) struct LineEdit {
    pub(crate) content: LineContent,
    /// Whether its token counts include removed content.
    pub(crate) stale_usage: bool,
    /// The indices of the blocks to remove from its message, sorted.
    pub(crate) removed_blocks: Vec<u32>,
    /// The number of blocks in its message, if any of them is removed.
    pub(crate) n_blocks: u32,
}

/// The changes to the lines that have any. Other lines need hardly any memory.
#[derive(Debug, Default)]
pub(crate) struct LineEdits {
    /// Boxed, since a log may need a change of every line, and a hash table is up to half empty.
    edits: HashMap<EntryIndex, Box<LineEdit>>,
    /// Whether lines are removed, by their positions, up to the last one.
    removed: Vec<bool>,
}

impl LineEdits {
    pub(crate) fn is_removed(&self, entry_idx: EntryIndex) -> bool {
        self.removed.get(entry_idx.position()).is_some_and(|&removed| removed)
    }

    /// Removes a line. The removal of its blocks has no effect then.
    pub(crate) fn remove(&mut self, entry_idx: EntryIndex) {
        let position = entry_idx.position();
        if position >= self.removed.len() {
            self.removed.resize(position + 1, false);
        }
        self.removed[position] = true;
        if matches!(self[entry_idx].content, LineContent::Unchanged) {
            self.edits.remove(&entry_idx);
        }
    }
}

impl Index<EntryIndex> for LineEdits {
    type Output = LineEdit;

    fn index(&self, entry_idx: EntryIndex) -> &LineEdit {
        static UNCHANGED: LineEdit = LineEdit {
            content: LineContent::Unchanged,
            stale_usage: false,
            removed_blocks: Vec::new(),
            n_blocks: 0,
        };
        self.edits.get(&entry_idx).map_or(&UNCHANGED, |line_edit| line_edit)
    }
}

impl IndexMut<EntryIndex> for LineEdits {
    fn index_mut(&mut self, entry_idx: EntryIndex) -> &mut LineEdit {
        self.edits.entry(entry_idx).or_default()
    }
}

/// The reasons of the changes to lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineReasons(Vec<LineReason>);

/// The reason of one change to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineReason {
    entry_idx: EntryIndex,
    /// The index in the [`ReasonTable`].
    why: u16,
    /// Whether the line, or a block of it, is removed for this reason.
    is_removal: bool,
}

impl LineReasons {
    /// Adds the reason of a change.
    pub(crate) fn add(&mut self, entry_idx: EntryIndex, why: u16) {
        self.push(LineReason { entry_idx, why, is_removal: false });
    }

    /// Adds the reason of the removal of a line, or of a block of it.
    fn add_removal(&mut self, entry_idx: EntryIndex, why: u16) {
        self.push(LineReason { entry_idx, why, is_removal: true });
    }

    fn push(&mut self, reason: LineReason) {
        if self.0.last() != Some(&reason) {
            self.0.push(reason);
        }
    }

    /// Sorts the reasons by line, each once, for [`LineReasons::of`].
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|reason| reason.entry_idx);
        // The start of the current line, and the number of reasons that remain.
        let (mut start, mut end) = (0, 0);
        for at in 0..self.0.len() {
            let reason = self.0[at];
            if start < end && self.0[start].entry_idx != reason.entry_idx {
                start = end;
            }
            match self.0[start..end].iter_mut().find(|known| known.why == reason.why) {
                Some(known) => known.is_removal |= reason.is_removal,
                None => {
                    self.0[end] = reason;
                    end += 1;
                }
            }
        }
        self.0.truncate(end);
    }

    /// Returns the reasons of a line, in the order in which they were added. They must be sorted.
    pub(crate) fn of(&self, entry_idx: EntryIndex) -> impl Iterator<Item = u16> {
        self.line(entry_idx).map(|reason| reason.why)
    }

    fn line(&self, entry_idx: EntryIndex) -> impl Iterator<Item = &LineReason> {
        let start = self.0.partition_point(|reason| reason.entry_idx < entry_idx);
        self.0[start..].iter().take_while(move |reason| reason.entry_idx == entry_idx)
    }
}

/// The distinct reasons of an edit. Lines refer to them by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReasonTable {
    texts: Vec<Cow<'static, str>>,
    indices: HashMap<Cow<'static, str>, u16>,
}

impl ReasonTable {
    /// Maximum number of distinct reasons. Further ones become `further changes`.
    const MAX_LENGTH: usize = 1000;

    /// Returns the index of a reason, which is added if it is new.
    pub(crate) fn intern(&mut self, why: impl Into<Cow<'static, str>>) -> u16 {
        let why = why.into();
        if let Some(&at) = self.indices.get(&why) {
            return at;
        }
        // Some reasons contain tool names or line numbers, so their number has no bound.
        let why = if self.texts.len() < Self::MAX_LENGTH { why } else { Cow::Borrowed("further changes") };
        let at = self.texts.len() as u16;
        let at = *self.indices.entry(why.clone()).or_insert(at);
        if usize::from(at) == self.texts.len() {
            self.texts.push(why);
        }
        at
    }

    pub(crate) fn text(&self, reason: u16) -> &str {
        &self.texts[usize::from(reason)]
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
    pub(crate) reason: u16,
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
            line_edits: LineEdits::default(),
            line_reasons: LineReasons::default(),
            earlier_reasons: None,
            added: Vec::new(),
            reasons: ReasonTable::default(),
            already_removed: Vec::new(),
            side_files: Vec::new(),
            findings: Vec::new(),
            no_user_message: false,
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

    /// Removes a line. The reason is shown in the plan: a few words, lower case.
    pub fn remove(&mut self, entry_idx: EntryIndex, why: impl Into<Cow<'static, str>>) {
        self.note_removal(entry_idx, why);
        self.line_edits.remove(entry_idx);
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
        self.note_removal(entry_idx, why);
        if self.is_removed(entry_idx) {
            return;
        }
        let line_edit = &mut self.line_edits[entry_idx];
        if line_edit.removed_blocks.is_empty() {
            let message = self.session.entries()[entry_idx].message();
            line_edit.n_blocks = message.map_or(0, |message| message.blocks().count() as u32);
        }
        if let Err(at) = line_edit.removed_blocks.binary_search(&(block_idx as u32)) {
            // Usually the only one.
            line_edit.removed_blocks.reserve_exact(usize::from(line_edit.removed_blocks.is_empty()));
            line_edit.removed_blocks.insert(at, block_idx as u32);
        }
        if line_edit.removed_blocks.len() >= line_edit.n_blocks as usize {
            self.line_edits.remove(entry_idx);
        }
    }

    /// Returns the remaining blocks of a line's message, with their original indices.
    pub fn blocks(&self, entry_idx: EntryIndex) -> impl Iterator<Item = (usize, Block<'s>)> + '_ {
        let line_edit = &self.line_edits[entry_idx];
        let message = self.session.entries()[entry_idx].message().filter(|_| !self.is_removed(entry_idx));
        let blocks = message.into_iter().flat_map(|message| message.blocks()).enumerate();
        blocks.filter(|(block_idx, _)| line_edit.removed_blocks.binary_search(&(*block_idx as u32)).is_err())
    }

    /// Replaces a range of a line. The range refers to the original line.
    pub fn splice(&mut self, entry_idx: EntryIndex, splice: Splice, why: impl Into<Cow<'static, str>>) {
        self.note(entry_idx, why);
        match &mut self.line_edits[entry_idx].content {
            LineContent::Spliced(splices) => splices.push(splice),
            body => *body = LineContent::Spliced(vec![splice]),
        }
    }

    /// Replaces a whole line with `text`, which has no newline.
    pub fn rewrite(&mut self, entry_idx: EntryIndex, text: &str, why: impl Into<Cow<'static, str>>) {
        self.note(entry_idx, why);
        self.line_edits[entry_idx].content = LineContent::Replaced(Box::new(Entry::parse(text.as_bytes()).0));
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
        let why = self.reasons.intern(why);
        let (entry, _) = Entry::parse_owned(text.into().into_bytes());
        self.added.push(AddedLine { after, entry, reason: why });
    }

    /// Adds a line at the end.
    pub fn append(&mut self, text: &str, why: impl Into<Cow<'static, str>>) {
        let last = self.session.entries().last_index();
        self.insert(last, text, why);
    }

    /// Records the reason why a line of the session differs from the line in the file.
    pub(crate) fn note(&mut self, entry_idx: EntryIndex, why: impl Into<Cow<'static, str>>) {
        let why = self.reasons.intern(why);
        self.line_reasons.add(entry_idx, why);
    }

    fn note_removal(&mut self, entry_idx: EntryIndex, why: impl Into<Cow<'static, str>>) {
        let why = self.reasons.intern(why);
        self.line_reasons.add_removal(entry_idx, why);
    }

    /// Returns the reasons why a removed line is removed, without those of other changes to it. They must be
    /// sorted.
    pub(crate) fn removal_reasons_of(&self, entry_idx: EntryIndex) -> impl Iterator<Item = u16> {
        self.line_reasons.line(entry_idx).filter(|reason| reason.is_removal).map(|reason| reason.why)
    }

    /// Returns the reasons of a line, in the order in which they were added. They must be sorted.
    pub(crate) fn reasons_of(&self, entry_idx: EntryIndex) -> impl Iterator<Item = u16> {
        let earlier = move || self.earlier_reasons.into_iter().flat_map(move |reasons| reasons.of(entry_idx));
        let own = self.line_reasons.of(entry_idx);
        earlier().chain(own.filter(move |why| !earlier().any(|earlier| earlier == *why)))
    }

    /// Returns whether the line is to be removed.
    pub fn is_removed(&self, entry_idx: EntryIndex) -> bool {
        self.line_edits.is_removed(entry_idx)
    }

    /// Returns whether the line is to be removed or changed.
    pub fn is_touched(&self, entry_idx: EntryIndex) -> bool {
        let line_edit = &self.line_edits[entry_idx];
        self.is_removed(entry_idx)
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
            && self.line_reasons.0.is_empty()
            && self.earlier_reasons.is_none_or(|reasons| reasons.0.is_empty())
            && !self.line_edits.removed.contains(&true)
            && !self.line_edits.edits.keys().any(|&idx| self.is_touched(idx))
    }

    /// Returns the line with the requested changes, before links, timestamps and ids are set.
    pub fn entry(&self, entry_idx: EntryIndex) -> Cow<'_, Entry> {
        let line_edit = &self.line_edits[entry_idx];
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
                block_idx += u32::from(is_block);
                is_block && line_edit.removed_blocks.binary_search(&(block_idx - 1)).is_ok()
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
    fn a_draft_records_only_lines_that_change() {
        let session = Session::from_bytes(&b"{\"type\":\"x\"}\n".repeat(100));
        let mut draft = EditDraft::new(&session);
        assert!(draft.is_untouched() && !draft.is_removed(EntryIndex::FIRST));
        draft.remove(EntryIndex::FIRST, "test");
        assert_eq!((draft.line_edits.removed.len(), draft.line_edits.edits.len()), (1, 0));
        assert!(!draft.is_untouched() && draft.is_removed(EntryIndex::FIRST));
        draft.rewrite(EntryIndex::FIRST.next(), "{}", "test");
        assert_eq!((draft.line_edits.removed.len(), draft.line_edits.edits.len()), (1, 1));
        assert!(size_of::<LineEdit>() <= 56, "{}", size_of::<LineEdit>());
    }

    #[test]
    fn a_line_without_blocks_is_removed() {
        let session = Session::from_bytes(
            br#"{"type":"assistant","message":{"content":[{"type":"text"},{"type":"tool_use"}]}}"#,
        );
        let mut draft = EditDraft::new(&session);
        let blocks = |draft: &EditDraft<'_>| draft.blocks(EntryIndex::FIRST).count();
        for (block_idx, n_left) in [(1, 1), (1, 1), (0, 0), (0, 0)] {
            draft.remove_block(EntryIndex::FIRST, block_idx, "test");
            assert_eq!((blocks(&draft), draft.is_removed(EntryIndex::FIRST)), (n_left, n_left == 0));
        }
        assert!(draft.line_edits.edits.is_empty());
    }

    #[test]
    fn earlier_reasons_come_first_and_are_not_repeated() {
        let (session, first) = (Session::from_bytes(b"{}"), EntryIndex::FIRST);
        let mut earlier = LineReasons::default();
        earlier.add(first, 0);
        let mut draft = EditDraft::new(&session);
        draft.reasons.intern("earlier");
        draft.earlier_reasons = Some(&earlier);
        assert!(!draft.is_untouched());
        draft.note(first, "later");
        draft.note(first, "earlier");
        draft.line_reasons.sort();
        assert_eq!(draft.reasons_of(first).collect::<Vec<_>>(), [0, 1]);
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
        draft.line_reasons.sort();
        let texts =
            |reasons: Vec<u16>| reasons.iter().map(|&why| draft.reasons.text(why)).collect::<Vec<_>>();
        assert_eq!(texts(draft.reasons_of(first).collect()), ["changed", "both", "gone"]);
        assert_eq!(texts(draft.removal_reasons_of(first).collect()), ["both", "gone"]);
    }

    #[test]
    fn a_line_has_each_reason_once_in_the_order_of_the_changes() {
        let (first, second) = (EntryIndex::FIRST, EntryIndex::FIRST.next());
        let mut reasons = LineReasons::default();
        for (entry_idx, why) in [(second, 3), (first, 2), (second, 1), (second, 3), (first, 2), (first, 0)] {
            reasons.add(entry_idx, why);
        }
        reasons.sort();
        assert!(size_of::<LineReason>() <= 8, "{}", size_of::<LineReason>());
        let of = |entry_idx| reasons.of(entry_idx).collect::<Vec<u16>>();
        assert_eq!((of(first), of(second), of(second.next())), (vec![2, 0], vec![3, 1], vec![]));
    }
}
