//! Drafts: the changes that an operation requests for each line of a session.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use rustc_hash::FxHashMap;
use threadline_entry::lens::Block;
use threadline_entry::{Entry, Finding};
use threadline_session::Session;

use crate::plan::{Digest, Plan, Shape};
use crate::splice::{self, Splice};

/// The requested changes to a session: lines to remove, change or add.
///
/// An operation records only the changes that it wants. [`Draft::plan`] then adjusts parents, timestamps,
/// ids, and references to removed lines.
#[derive(Debug)]
pub struct Draft<'s> {
    pub(crate) session: &'s Session,
    pub(crate) fates: Vec<Fate>,
    pub(crate) added: Vec<Added>,
    pub(crate) reasons: Vec<Cow<'static, str>>,
    /// The places of `reasons`.
    reason_places: FxHashMap<Cow<'static, str>, u16>,
    /// Lines that were gone before the session was read, by their numbers, and why.
    pub(crate) gone_before: Vec<(u64, u16)>,
    pub(crate) side: Vec<SideFile>,
    pub(crate) findings: Vec<Finding>,
    /// Whether the conversation contains no user message, so that it starts with the assistant in any case.
    pub(crate) nobody_asks: bool,
    /// Path prefixes to replace in every line, with their replacements.
    pub(crate) moved_paths: Vec<(String, String)>,
    /// Whether sub-agents inside the log are moved to separate logs.
    pub(crate) agents_apart: bool,
    /// Descriptions of the changes to the content of side files.
    pub(crate) beside: Vec<String>,
}

/// Maximum number of distinct reasons in a plan; all others share one.
const MOST_REASONS: usize = 1000;

/// The changes to one line.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    pub(crate) goes: bool,
    pub(crate) why: Vec<u16>,
    pub(crate) body: Body,
    /// Whether its token counts include removed content.
    pub(crate) stale: bool,
    /// The indices of the blocks to remove from its message.
    pub(crate) out: BTreeSet<u32>,
    /// The number of blocks in its message; computed on first use.
    pub(crate) n_blocks: Option<usize>,
}

/// The content of a line.
#[derive(Debug, Default)]
pub(crate) enum Body {
    /// Unchanged.
    #[default]
    Same,
    /// The original with splices applied.
    Spliced(Vec<Splice>),
    /// A different line.
    Made(Box<Entry>),
}

/// A new line.
#[derive(Debug)]
pub(crate) struct Added {
    /// The index of the entry that it follows; `None` for the start of the log.
    pub(crate) after: Option<usize>,
    pub(crate) entry: Entry,
    pub(crate) why: u16,
}

/// A planned operation on a side file: a file that belongs to the session but is not its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideFile {
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
    MakeLog {
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
        read: Digest,
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
        content: Option<(Digest, Vec<u8>)>,
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

impl<'s> Draft<'s> {
    /// Creates a draft that changes nothing.
    pub fn new(session: &'s Session) -> Self {
        Self {
            session,
            fates: session.entries().iter().map(|_| Fate::default()).collect(),
            added: Vec::new(),
            reasons: Vec::new(),
            reason_places: FxHashMap::default(),
            gone_before: Vec::new(),
            side: Vec::new(),
            findings: Vec::new(),
            nobody_asks: false,
            moved_paths: Vec::new(),
            agents_apart: false,
            beside: Vec::new(),
        }
    }

    /// Returns the session.
    pub fn session(&self) -> &'s Session {
        self.session
    }

    /// Removes a line. The reason is shown in the plan: a few words, lower case.
    pub fn remove(&mut self, entry_idx: usize, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let fate = &mut self.fates[entry_idx];
        fate.goes = true;
        fate.why.push(why);
    }

    /// Removes a block from a message. When all blocks are removed, so is the line.
    ///
    /// `block_idx` is the index among the blocks of the original line, as the lenses count them.
    pub fn remove_block(&mut self, entry_idx: usize, block_idx: usize, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let message = self.session.entries()[entry_idx].message();
        let fate = &mut self.fates[entry_idx];
        let count = || message.map_or(0, |message| message.blocks().count());
        let n_blocks = *fate.n_blocks.get_or_insert_with(count);
        fate.out.insert(block_idx as u32);
        if !fate.why.contains(&why) {
            fate.why.push(why);
        }
        fate.goes |= fate.out.len() >= n_blocks;
    }

    /// Returns the remaining blocks of a line's message, with their original indices.
    pub fn blocks(&self, entry_idx: usize) -> impl Iterator<Item = (usize, Block<'s>)> + '_ {
        let fate = &self.fates[entry_idx];
        let message = self.session.entries()[entry_idx].message().filter(|_| !fate.goes);
        let blocks = message.into_iter().flat_map(|message| message.blocks()).enumerate();
        blocks.filter(|(block_idx, _)| !fate.out.contains(&(*block_idx as u32)))
    }

    /// Replaces a range of a line. The range refers to the original line.
    pub fn splice(&mut self, entry_idx: usize, splice: Splice, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let fate = &mut self.fates[entry_idx];
        if !fate.why.contains(&why) {
            fate.why.push(why);
        }
        match &mut fate.body {
            Body::Spliced(splices) => splices.push(splice),
            body => *body = Body::Spliced(vec![splice]),
        }
    }

    /// Replaces a whole line with `text`, which has no newline.
    pub fn rewrite(&mut self, entry_idx: usize, text: &str, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let fate = &mut self.fates[entry_idx];
        if !fate.why.contains(&why) {
            fate.why.push(why);
        }
        fate.body = Body::Made(Box::new(Entry::parse(text.as_bytes()).0));
    }

    /// Adds a line after entry `after`, or at the start of the log. Several lines after one entry keep
    /// their order.
    ///
    /// A line of the conversation needs a uuid. Its parent is set to the preceding line of the
    /// conversation; a compaction boundary becomes a root.
    pub fn insert(&mut self, after: Option<usize>, text: &str, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        self.added.push(Added { after, entry: Entry::parse(text.as_bytes()).0, why });
    }

    /// Adds a line at the end.
    pub fn append(&mut self, text: &str, why: impl Into<Cow<'static, str>>) {
        let last = self.session.entries().len().checked_sub(1);
        self.insert(last, text, why);
    }

    /// Records the reason why a line of the session differs from the line in the file.
    pub(crate) fn note(&mut self, entry_idx: usize, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let fate = &mut self.fates[entry_idx];
        if !fate.why.contains(&why) {
            fate.why.push(why);
        }
    }

    /// Records the reason why a line of the file is not in the session.
    pub(crate) fn note_gone(&mut self, line_no: u64, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        self.gone_before.push((line_no, why));
    }

    /// Returns whether the line is to be removed.
    pub fn goes(&self, entry_idx: usize) -> bool {
        self.fates[entry_idx].goes
    }

    /// Returns whether the line is to be removed or changed.
    pub fn is_touched(&self, entry_idx: usize) -> bool {
        let fate = &self.fates[entry_idx];
        fate.goes || !fate.out.is_empty() || !matches!(fate.body, Body::Same)
    }

    /// Estimates the number of tokens that a resume of the original session sends.
    pub fn tokens(&self) -> u64 {
        let sent = self.session.resumed_lines().unwrap_or_default();
        sent.into_iter().map(|idx| crate::tokens::tokens(&self.session.entries()[idx])).sum()
    }

    /// Returns whether the draft changes nothing.
    pub fn is_untouched(&self) -> bool {
        self.added.is_empty()
            && self.side.is_empty()
            && self.gone_before.is_empty()
            && (0..self.fates.len()).all(|idx| !self.is_touched(idx) && self.fates[idx].why.is_empty())
    }

    /// Returns the line with the requested changes, before links, timestamps and ids are set.
    pub fn entry(&self, entry_idx: usize) -> Cow<'_, Entry> {
        let fate = &self.fates[entry_idx];
        let source = &self.session.entries()[entry_idx];
        let mut splices = match &fate.body {
            Body::Made(entry) => return Cow::Borrowed(&**entry),
            Body::Spliced(splices) => splices.clone(),
            Body::Same if fate.out.is_empty() => return Cow::Borrowed(source),
            Body::Same => Vec::new(),
        };
        if let Some(content) =
            source.message().and_then(|message| message.content()).filter(|_| !fate.out.is_empty())
        {
            // Only objects are blocks.
            let mut block_idx = 0;
            splices.extend(splice::without(source.text(), content.json(), |_, _, item| {
                let is_block = item.is_object();
                block_idx += u32::from(is_block);
                is_block && fate.out.contains(&(block_idx - 1))
            }));
        }
        let text = splice::apply(source.text(), &mut splices);
        Cow::Owned(Entry::parse(text.as_bytes()).0)
    }

    /// Adds an operation on a side file.
    pub fn side(&mut self, file: SideFile) {
        self.side.push(file);
    }

    /// Returns the operations on side files so far.
    pub fn sides(&self) -> &[SideFile] {
        &self.side
    }

    /// Returns the operations on side files, for modification.
    pub fn sides_mut(&mut self) -> &mut Vec<SideFile> {
        &mut self.side
    }

    /// Adds a short description of a change to the content of a side file.
    pub fn note_beside(&mut self, what: String) {
        self.beside.push(what);
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
    pub fn plan(self, shape: Shape) -> Plan<'s> {
        Plan::new(self, shape)
    }

    pub(crate) fn reason(&mut self, why: impl Into<Cow<'static, str>>) -> u16 {
        let why = why.into();
        if let Some(&at) = self.reason_places.get(&why) {
            return at;
        }
        // Each line lists its reasons, so there must not be very many: names of tools are part of some.
        let why = if self.reasons.len() < MOST_REASONS { why } else { Cow::Borrowed("further changes") };
        let at = self.reasons.len() as u16;
        let at = *self.reason_places.entry(why.clone()).or_insert(at);
        if usize::from(at) == self.reasons.len() {
            self.reasons.push(why);
        }
        at
    }
}
