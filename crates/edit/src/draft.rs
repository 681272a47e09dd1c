//! Drafts: what an operation wants done to each line of a session, before the rest is made to fit.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use threadline_entry::lens::Block;
use threadline_entry::{Entry, Finding};
use threadline_session::Session;

use crate::plan::{Digest, Plan, Shape};
use crate::splice::{self, Splice};

/// What is to become of the lines of a session: they stay, go or change, and new ones come.
///
/// An operation says what it wants and no more. [`Draft::plan`] then makes the rest fit: parents, times, ids, and
/// references to lines that are gone.
#[derive(Debug)]
pub struct Draft<'s> {
    pub(crate) session: &'s Session,
    pub(crate) fates: Vec<Fate>,
    pub(crate) added: Vec<Added>,
    pub(crate) reasons: Vec<Cow<'static, str>>,
    /// Lines that were gone before the session was read, by their numbers, and why.
    pub(crate) gone_before: Vec<(u64, u16)>,
    pub(crate) side: Vec<SideFile>,
    pub(crate) findings: Vec<Finding>,
    /// Whether nobody ever asks anything, so that the first message is the model's whatever is done.
    pub(crate) nobody_asks: bool,
    /// Text to look for in every line, and what to put in its place: folders that have another name in the result.
    pub(crate) moved_paths: Vec<(String, String)>,
    /// Whether sub-agents that stand inside the log get logs of their own.
    pub(crate) agents_apart: bool,
    /// What is done to the content of files beside the log, in words.
    pub(crate) beside: Vec<String>,
}

/// What is to become of a line.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    pub(crate) goes: bool,
    pub(crate) why: Vec<u16>,
    pub(crate) body: Body,
    /// Whether the tokens that it says it used count what is gone.
    pub(crate) stale: bool,
    /// Blocks of its message that go.
    pub(crate) out: BTreeSet<u32>,
    /// How many blocks its message has, once somebody asked.
    pub(crate) n_blocks: Option<usize>,
}

/// What a line says.
#[derive(Debug, Default)]
pub(crate) enum Body {
    /// What it said.
    #[default]
    Same,
    /// The same with small changes.
    Spliced(Vec<Splice>),
    /// Something else.
    Made(Box<Entry>),
}

/// A line that comes.
#[derive(Debug)]
pub(crate) struct Added {
    /// The line that it follows; `None` for the start of the log.
    pub(crate) after: Option<usize>,
    pub(crate) entry: Entry,
    pub(crate) why: u16,
}

/// A file beside the log, and what is to become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideFile {
    /// A copy of a file as it is.
    Copy {
        /// The file.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
    },
    /// A copy of a log, or of a file of JSON, whose ids are those of the new session.
    CopyLog {
        /// The log.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
    },
    /// A log that is made, or a file of JSON, whose ids are those of the new session.
    MakeLog {
        /// The log.
        path: PathBuf,
        /// What it will hold, but for the ids.
        content: Vec<u8>,
    },
    /// A file with other content than it had.
    Change {
        /// The file.
        path: PathBuf,
        /// What was read of it.
        read: Digest,
        /// What it will hold.
        content: Vec<u8>,
    },
    /// A file that goes and comes elsewhere.
    Move {
        /// The file.
        from: PathBuf,
        /// Where it comes.
        to: PathBuf,
        /// What was read of it and what it will hold there; `None` if it stays the same.
        content: Option<(Digest, Vec<u8>)>,
    },
    /// A file that comes.
    Create {
        /// The file.
        path: PathBuf,
        /// What it will hold.
        content: Vec<u8>,
    },
    /// A file that goes.
    Remove {
        /// The file.
        path: PathBuf,
    },
}

impl<'s> Draft<'s> {
    /// A draft that changes nothing.
    pub fn new(session: &'s Session) -> Self {
        Self {
            session,
            fates: session.entries().iter().map(|_| Fate::default()).collect(),
            added: Vec::new(),
            reasons: Vec::new(),
            gone_before: Vec::new(),
            side: Vec::new(),
            findings: Vec::new(),
            nobody_asks: false,
            moved_paths: Vec::new(),
            agents_apart: false,
            beside: Vec::new(),
        }
    }

    /// The session.
    pub fn session(&self) -> &'s Session {
        self.session
    }

    /// Takes a line out. `why` is said in the plan: a few words, lower case.
    pub fn remove(&mut self, entry_idx: usize, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let fate = &mut self.fates[entry_idx];
        fate.goes = true;
        fate.why.push(why);
    }

    /// Takes a block out of a message; the line goes with the last of them.
    ///
    /// Blocks are counted as the lenses do, as the line stands in the log.
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

    /// The blocks of a line's message that stay, with their numbers.
    pub fn blocks(&self, entry_idx: usize) -> impl Iterator<Item = (usize, Block<'s>)> + '_ {
        let fate = &self.fates[entry_idx];
        let message = self.session.entries()[entry_idx].message().filter(|_| !fate.goes);
        let blocks = message.into_iter().flat_map(|message| message.blocks()).enumerate();
        blocks.filter(|(block_idx, _)| !fate.out.contains(&(*block_idx as u32)))
    }

    /// Changes a stretch of a line. Splices are measured on the line as it stands in the log.
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

    /// Puts another line in the place of a line, given without a newline.
    pub fn rewrite(&mut self, entry_idx: usize, text: &str, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let fate = &mut self.fates[entry_idx];
        if !fate.why.contains(&why) {
            fate.why.push(why);
        }
        fate.body = Body::Made(Box::new(Entry::parse(text.as_bytes()).0));
    }

    /// Adds a line behind `after`, or at the start of the log. Several behind one line keep their order.
    ///
    /// A line of the conversation needs a uuid; its parent is that of its place, unless it is a boundary.
    pub fn insert(&mut self, after: Option<usize>, text: &str, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        self.added.push(Added { after, entry: Entry::parse(text.as_bytes()).0, why });
    }

    /// Adds a line at the end.
    pub fn append(&mut self, text: &str, why: impl Into<Cow<'static, str>>) {
        let last = self.session.entries().len().checked_sub(1);
        self.insert(last, text, why);
    }

    /// Says why a line is not as it stands in the file, though it is as the session has it.
    pub(crate) fn note(&mut self, entry_idx: usize, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        let fate = &mut self.fates[entry_idx];
        if !fate.why.contains(&why) {
            fate.why.push(why);
        }
    }

    /// Says why a line of the file is not in the session.
    pub(crate) fn note_gone(&mut self, line_no: u64, why: impl Into<Cow<'static, str>>) {
        let why = self.reason(why);
        self.gone_before.push((line_no, why));
    }

    /// Whether the line is to go.
    pub fn goes(&self, entry_idx: usize) -> bool {
        self.fates[entry_idx].goes
    }

    /// Whether anything is to be done to the line.
    pub fn is_touched(&self, entry_idx: usize) -> bool {
        let fate = &self.fates[entry_idx];
        fate.goes || !fate.out.is_empty() || !matches!(fate.body, Body::Same)
    }

    /// About how many tokens a resume sends of the session as it is.
    pub fn tokens(&self) -> u64 {
        let sent = self.session.resumed_lines().unwrap_or_default();
        sent.into_iter().map(|idx| crate::tokens::tokens(&self.session.entries()[idx])).sum()
    }

    /// Whether nothing is to be done to any line.
    pub fn is_untouched(&self) -> bool {
        self.added.is_empty()
            && self.side.is_empty()
            && self.gone_before.is_empty()
            && (0..self.fates.len()).all(|idx| !self.is_touched(idx) && self.fates[idx].why.is_empty())
    }

    /// The line as it will stand, but for its links, times and ids.
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

    /// Says what is to become of a file beside the log.
    pub fn side(&mut self, file: SideFile) {
        self.side.push(file);
    }

    /// What is to become of the files beside the log, so far.
    pub fn sides(&self) -> &[SideFile] {
        &self.side
    }

    /// The same, to be changed.
    pub fn sides_mut(&mut self) -> &mut Vec<SideFile> {
        &mut self.side
    }

    /// Says in a few words what is done to the content of a file beside the log.
    pub fn note_beside(&mut self, what: String) {
        self.beside.push(what);
    }

    /// Tells something odd that the person should know of.
    pub fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Has paths that begin with `from` begin with `to` instead, wherever they stand in a text.
    pub fn move_path(&mut self, from: String, to: String) {
        self.moved_paths.push((from, to));
    }

    /// Makes everything fit, and checks what comes out.
    pub fn plan(self, shape: Shape) -> Plan<'s> {
        Plan::new(self, shape)
    }

    pub(crate) fn reason(&mut self, why: impl Into<Cow<'static, str>>) -> u16 {
        let why = why.into();
        let known = self.reasons.iter().position(|reason| *reason == why);
        let at = known.unwrap_or_else(|| {
            self.reasons.push(why);
            self.reasons.len() - 1
        });
        // More reasons than there are numbers share the last one.
        at.min(usize::from(u16::MAX)) as u16
    }
}
