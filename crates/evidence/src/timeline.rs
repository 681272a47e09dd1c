//! The events of each file, and the contents between them: derived forwards from earlier contents, backwards
//! from later ones, and from both.

use foldhash::HashMap;
use threadline_entry::Millis;
use threadline_session::{AgentIndex, CallIndex, EntryIndex};

use crate::change::FileChangeKind;
use crate::content::FileContent;

/// The place of an event in the order of a session and its sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    /// The line of the main log, or the last one before an event of a sub-agent.
    pub(crate) position: EntryIndex,
    pub(crate) at: Millis,
    /// The number of the event, in the order in which they were collected.
    pub(crate) seq: u32,
}

/// A tool call of a session or one of its sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallPlace {
    /// The sub-agent, as an index into [`SessionFamily::agents`](threadline_session::SessionFamily::agents).
    /// `None` for the main session.
    pub agent: Option<AgentIndex>,
    /// The call, as an index into [`Session::tool_calls`](threadline_session::Session::tool_calls) of that
    /// agent or session.
    pub call_idx: CallIndex,
    /// The line with the result, or the line of the call if there is no result, in the log of that agent or
    /// session.
    pub entry_idx: EntryIndex,
    /// The time of that line.
    pub at: Option<Millis>,
}

/// How certain a content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The content from before something that may have changed it. Not shown to anyone.
    Suspect,
    /// Derived, or from a base that fits and is not proven.
    Likely,
    /// From a chain of recorded contents.
    Exact,
}

/// The source of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvidenceSource {
    /// The text that a tool wrote.
    Write,
    /// An edit of a known text.
    Edit,
    /// A file that was read completely.
    Read,
    /// The list of changes in the result of a command.
    CommandDiff,
    /// A command whose text says what it does.
    Command,
    /// A backup of the file history.
    Backup,
    /// A copy that a hook made.
    Copy,
    /// An object of git.
    Git,
    /// The file on disk.
    Disk,
}

impl EvidenceSource {
    /// Returns the name of the source in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Read => "read",
            Self::CommandDiff => "command-diff",
            Self::Command => "command",
            Self::Backup => "backup",
            Self::Copy => "copy",
            Self::Git => "git",
            Self::Disk => "disk",
        }
    }
}

/// A content with its certainty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) content: FileContent,
    pub(crate) level: Level,
    pub(crate) source: EvidenceSource,
}

impl Known {
    pub(crate) fn new(content: FileContent, level: Level, source: EvidenceSource) -> Self {
        Self { content, level, source }
    }

    pub(crate) fn exact(content: FileContent, source: EvidenceSource) -> Self {
        Self::new(content, Level::Exact, source)
    }

    /// Returns the same content with this level at most.
    pub(crate) fn at_most(self, level: Level) -> Self {
        Self { level: self.level.min(level), ..self }
    }

    /// Joins what is known from before and from after.
    ///
    /// Contents that agree confirm each other: it is unlikely that something changed a file and changed it
    /// back.
    fn join(forward: Option<Self>, backward: Option<Self>) -> Option<Self> {
        let (forward, backward) = match (forward, backward) {
            (Some(forward), Some(backward)) => (forward, backward),
            (one, other) => return one.or(other),
        };
        if forward.content.agrees_with(&backward.content) {
            let level = match (forward.level.min(backward.level), forward.level.max(backward.level)) {
                (_, Level::Exact) | (Level::Likely, _) => Level::Exact,
                _ => Level::Likely,
            };
            let source = if forward.level >= backward.level { forward.source } else { backward.source };
            return Some(Self { content: forward.content.better(backward.content), level, source });
        }
        match forward.level.cmp(&backward.level) {
            std::cmp::Ordering::Greater => Some(forward),
            std::cmp::Ordering::Less => Some(backward),
            // Something that is not in the log changed the file in between, at an unknown time.
            std::cmp::Ordering::Equal => None,
        }
    }
}

/// Something that happened to a file.
#[derive(Clone, Debug)]
pub(crate) struct FileEvent {
    pub(crate) moment: Moment,
    pub(crate) call: Option<CallPlace>,
    /// The line of the main log at which the call was made. Calls at the same time may list each other's
    /// changes.
    pub(crate) called_at: EntryIndex,
    /// The content before, as far as it is recorded.
    pub(crate) before: Option<Known>,
    pub(crate) change: FileChangeKind,
    /// Whether it is a step of a command whose list of changes lacks the file.
    pub(crate) is_unlisted: bool,
}

impl FileEvent {
    /// Returns whether the file was read.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.change, FileChangeKind::Seen) && self.before.as_ref().is_some_and(Known::is_read)
    }

    /// Returns whether the event is a backup of the file history.
    pub(crate) fn is_backup(&self) -> bool {
        self.call.is_none() && matches!(self.change, FileChangeKind::Seen)
    }
}

/// Files that a command has certainly not changed, since another source would say so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SparedFiles {
    /// Those that Claude Code watches: the command has a list of its changes.
    pub(crate) watched: bool,
    /// Those that a hook compares: it did so after the command.
    pub(crate) scanned: bool,
}

impl SparedFiles {
    pub(crate) fn contain(self, file: &FileTimeline) -> bool {
        self.watched && file.is_watched || self.scanned && file.is_scanned
    }
}

/// Something that may have changed files that it does not name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideEvent {
    pub(crate) moment: Moment,
    /// The end of the time in which it may have changed files, if it ran in the background.
    pub(crate) until: Moment,
    /// The highest level of a content that was known before.
    pub(crate) level: Level,
    /// The files that it has certainly not changed.
    pub(crate) spared: SparedFiles,
    /// Whether only files are meant that may have been changed back to the text that was read, which lists
    /// of changes do not show.
    pub(crate) only_reverts: bool,
    /// The folder in whose repository it may have changed files, by its number. `None` for any file.
    pub(crate) repository: Option<usize>,
}

/// The events of a file, and what is known between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileTimeline {
    pub(crate) path: String,
    pub(crate) events: Vec<FileEvent>,
    /// Whether the lists of changes of commands contain this file if it changes.
    pub(crate) is_watched: bool,
    /// Whether the comparisons of a hook contain every change of this file.
    pub(crate) is_scanned: bool,
    /// The times in which a command in the background may change the file. Sorted and without overlaps when
    /// the contents are derived.
    pub(crate) unstable: Vec<(Moment, Moment)>,
    /// By event: the event before it that read the file last, if commands may have changed the file since.
    pub(crate) older_reads: Vec<Option<usize>>,
    /// The file name of the last backup.
    pub(crate) last_backup: Option<String>,
    /// What is known of the end from outside of the log: the file on disk.
    pub(crate) end: Option<Known>,
    /// By gap: what is known before event `i`, or after the last one, derived from the events before it.
    pub(crate) forward: Vec<Option<Known>>,
    /// The same, derived from the events after it.
    pub(crate) backward: Vec<Option<Known>>,
}

/// The timelines of all files of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timelines {
    pub(crate) files: Vec<FileTimeline>,
    pub(crate) wide: WideEvents,
    /// The folders in which git was run.
    pub(crate) repositories: Vec<String>,
}

/// The bytes of contents that may be derived. The log of a session of months derives a few hundred megabytes
/// at most; edits of a hostile log could double a text again and again.
const MAX_DERIVED: usize = 1 << 30;

/// The contents of all files at one moment of the forward pass.
pub(crate) struct Current<'t> {
    pub(crate) before: Option<&'t Known>,
    /// The text that was read last, if commands changed the file since.
    pub(crate) read: Option<&'t FileContent>,
    /// The content when the call was made.
    pub(crate) at_call: Option<&'t Known>,
    /// By file: the content now.
    pub(crate) others: &'t HashMap<usize, Known>,
}

impl Timelines {
    /// Removes the events of files that are neither wanted nor needed to derive the contents of wanted ones.
    pub(crate) fn keep_wanted(&mut self, is_wanted: &dyn Fn(&str) -> bool) {
        let mut needed: Vec<usize> = Vec::new();
        let mut is_needed: Vec<bool> = self.files.iter().map(|file| is_wanted(&file.path)).collect();
        needed.extend((0..self.files.len()).filter(|&at| is_needed[at]));
        while let Some(at) = needed.pop() {
            for other in self.files[at].events.iter().flat_map(|event| event.change.sources()) {
                if !std::mem::replace(&mut is_needed[other], true) {
                    needed.push(other);
                }
            }
        }
        for (file, _) in self.files.iter_mut().zip(is_needed).filter(|(_, is_needed)| !is_needed) {
            file.events.clear();
        }
    }

    /// Sorts the events and derives the contents.
    pub(crate) fn resolve(&mut self) {
        for file in &mut self.files {
            file.events.sort_by_key(|event| event.moment);
            file.find_older_reads();
            file.join_unstable();
            file.forward = vec![None; file.events.len() + 1];
            file.backward = vec![None; file.events.len() + 1];
        }
        self.wide.sort(self.files.len());
        let mut order: Vec<(Moment, usize, usize)> = Vec::new();
        for (at, file) in self.files.iter().enumerate() {
            order.extend(file.events.iter().enumerate().map(|(n, event)| (event.moment, at, n)));
        }
        order.sort_unstable();
        // What both directions agree on is a new start for the second pass.
        let mut left = MAX_DERIVED;
        for _ in 0..2 {
            self.run_forward(&order, &mut left);
            for at in 0..self.files.len() {
                self.run_backward(at, &mut left);
            }
        }
    }

    fn run_forward(&mut self, order: &[(Moment, usize, usize)], left: &mut usize) {
        let mut current: HashMap<usize, Known> = HashMap::default();
        let mut reads: HashMap<usize, FileContent> = HashMap::default();
        for &(_, at, n) in order {
            let file = &self.files[at];
            let event = &file.events[n];
            let incoming = self.incoming(file, n, event.moment, Direction::Forward);
            let before = better(event.before.clone(), incoming);
            let called = file.events.partition_point(|other| other.moment.position <= event.called_at);
            let at_call = self.files[at].forward[called.min(n)].as_ref();
            let state = Current { before: before.as_ref(), read: reads.get(&at), at_call, others: &current };
            let after = event.change.forward(&state);
            let after = after.filter(|known| event.change.allows(known, left));
            match &event.change {
                FileChangeKind::Seen if event.is_read() => {
                    reads.extend(event.before.as_ref().map(|before| (at, before.content.clone())));
                }
                change if change.updates_read() => drop(reads.remove(&at)),
                _ => {}
            }
            match &after {
                Some(known) => drop(current.insert(at, known.clone())),
                None => drop(current.remove(&at)),
            }
            self.files[at].forward[n + 1] = after;
        }
    }

    fn run_backward(&mut self, at: usize, left: &mut usize) {
        let n_events = self.files[at].events.len();
        self.files[at].backward[n_events] = self.files[at].end.clone();
        for n in (0..n_events).rev() {
            let file = &self.files[at];
            let event = &file.events[n];
            let after = self.incoming(file, n + 1, event.moment, Direction::Backward);
            let derived = event.change.backward(after.as_ref(), file.older_read(n).is_some());
            let derived = derived.filter(|known| event.change.allows(known, left));
            let before = better(event.before.clone(), derived);
            self.files[at].backward[n] = before;
        }
    }

    /// Returns what is known of a file in gap `gap` at a moment in it.
    pub(crate) fn known_at(&self, file: &FileTimeline, gap: usize, moment: Moment) -> Option<Known> {
        let forward = self.side(file, gap, moment, Direction::Forward);
        Known::join(forward, self.side(file, gap, moment, Direction::Backward))
    }

    /// Returns what is known of a file immediately before an event. What is derived from the event itself
    /// counts more than what was known before something else may have changed the file.
    pub(crate) fn known_before(&self, file: &FileTimeline, n: usize) -> Option<Known> {
        let own = file.backward[n].clone().filter(|known| known.level == Level::Exact);
        own.or_else(|| self.known_at(file, n, file.events[n].moment))
    }

    /// Returns what is known of a file immediately after an event.
    pub(crate) fn known_after(&self, file: &FileTimeline, n: usize) -> Option<Known> {
        let own = file.forward[n + 1].clone().filter(|known| known.level == Level::Exact);
        own.or_else(|| self.known_at(file, n + 1, file.events[n].moment))
    }

    /// Returns what a pass continues with: what both directions prove, or what its own direction says. What
    /// only the other direction says must not come back as a confirmation of itself.
    fn incoming(
        &self,
        file: &FileTimeline,
        gap: usize,
        moment: Moment,
        direction: Direction,
    ) -> Option<Known> {
        let both = self.known_at(file, gap, moment).filter(|known| known.level == Level::Exact);
        both.or_else(|| self.side(file, gap, moment, direction))
    }

    /// Returns what one direction says of a moment in a gap.
    fn side(&self, file: &FileTimeline, gap: usize, moment: Moment, direction: Direction) -> Option<Known> {
        let (known, from, to) = match direction {
            Direction::Forward => {
                let from = gap.checked_sub(1).map(|n| file.events[n].moment);
                (&file.forward[gap], from, Some(moment))
            }
            Direction::Backward => {
                let to = file.events.get(gap).map(|event| event.moment);
                (&file.backward[gap], Some(moment), to)
            }
        };
        let mut known = known.clone()?;
        if file.is_unstable_between(from, to) {
            known = known.at_most(Level::Suspect);
        }
        let touched = self.wide.between(from, to).filter(|wide| self.touches(wide, file, &known.content));
        match touched.map(|wide| wide.level).min() {
            Some(level) => Some(known.at_most(level)),
            None => Some(known),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Joins a recorded content and a derived one of the same moment.
fn better(recorded: Option<Known>, derived: Option<Known>) -> Option<Known> {
    match (recorded, derived) {
        (Some(recorded), Some(derived)) if recorded.content.agrees_with(&derived.content) => {
            let level = recorded.level.max(derived.level);
            Some(Known { content: recorded.content.better(derived.content), level, source: recorded.source })
        }
        (Some(recorded), Some(derived)) if derived.level > recorded.level => Some(derived),
        (recorded, derived) => recorded.or(derived),
    }
}

/// The commands that may have changed files that they do not name.
#[derive(Clone, Debug, Default)]
pub(crate) struct WideEvents {
    /// Those that ended before the next call, by moment.
    short: Vec<WideEvent>,
    /// Those that ran in the background.
    long: Vec<WideEvent>,
}

/// The most commands in the background that are distinguished.
const MAX_LONG: usize = 256;

/// The most pairs of a file and a command that may have changed any file. A log with more says little about
/// its files; to ask each pair would take time in proportion to the square of its length.
const MAX_PAIRS: usize = 1 << 26;

impl WideEvents {
    pub(crate) fn add(&mut self, event: WideEvent) {
        let is_full = self.long.len() >= MAX_LONG;
        match self.long.last_mut() {
            _ if event.until <= event.moment => self.short.push(event),
            Some(last) if is_full => {
                last.moment = last.moment.min(event.moment);
                last.until = last.until.max(event.until);
                last.level = last.level.min(event.level);
                (last.spared, last.only_reverts, last.repository) = (SparedFiles::default(), false, None);
            }
            _ => self.long.push(event),
        }
    }

    fn sort(&mut self, n_files: usize) {
        self.short.sort_by_key(|event| event.moment);
        if let (Some(first), Some(last)) = (self.short.first(), self.short.last())
            && n_files.saturating_mul(self.short.len()) > MAX_PAIRS
        {
            let level = self.short.iter().map(|event| event.level).min().unwrap_or(Level::Suspect);
            let (until, repository) = (last.moment, None);
            let (spared, only_reverts) = (SparedFiles::default(), false);
            let all = WideEvent { moment: first.moment, until, level, spared, only_reverts, repository };
            self.short.clear();
            self.long.push(all);
        }
    }

    /// Returns the events that may have happened after one moment and before another.
    fn between(&self, from: Option<Moment>, to: Option<Moment>) -> impl Iterator<Item = &WideEvent> {
        let first = from.map_or(0, |from| self.short.partition_point(|event| event.moment <= from));
        let short = self.short[first..].iter().take_while(move |event| to.is_none_or(|to| event.moment < to));
        let long = self.long.iter().filter(move |event| {
            to.is_none_or(|to| event.moment < to) && from.is_none_or(|from| event.until > from)
        });
        short.chain(long)
    }
}

impl Timelines {
    /// Returns whether something may have changed a file with this content.
    fn touches(&self, wide: &WideEvent, file: &FileTimeline, content: &FileContent) -> bool {
        let folder = wide.repository.and_then(|number| self.repositories.get(number));
        !wide.spared.contain(file)
            && (!wide.only_reverts || file.may_be_reverted(wide.moment, content))
            && folder.is_none_or(|folder| may_share_repository(folder, &file.path))
    }
}

/// The number of folders at the start of a path that are too general for a repository: `/home/ada`.
const GENERAL_FOLDERS: usize = 2;

/// Returns whether a file may be in the repository of a folder, whose root is this folder or above it.
fn may_share_repository(folder: &str, path: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split(['/', '\\']).filter(|part| !part.is_empty());
        parts.map(|part| part.trim_end_matches(':').to_lowercase()).collect()
    };
    let (folder, path) = (parts(folder), parts(path));
    let shared = folder.iter().zip(&path).take_while(|(a, b)| a == b).count();
    shared == folder.len() || shared > GENERAL_FOLDERS
}

impl Known {
    fn is_read(&self) -> bool {
        self.source == EvidenceSource::Read
    }
}

impl FileTimeline {
    /// Finds, for each event and for the end, the last read before it that commands may have made obsolete.
    fn find_older_reads(&mut self) {
        let (mut read, mut is_changed) = (None, false);
        self.older_reads.clear();
        for (n, event) in self.events.iter().enumerate() {
            self.older_reads.push(read.filter(|_| is_changed));
            match &event.change {
                _ if event.is_read() => (read, is_changed) = (Some(n), false),
                FileChangeKind::Seen => {}
                change if change.updates_read() => read = None,
                _ => is_changed = true,
            }
        }
        self.older_reads.push(read.filter(|_| is_changed));
    }

    /// Returns the content that was read before event `n`, if commands may have changed the file since.
    fn older_read(&self, n: usize) -> Option<&FileContent> {
        let read = self.older_reads.get(n).copied().flatten()?;
        self.events[read].before.as_ref().map(|before| &before.content)
    }

    /// Returns whether a command may have changed the file back to a text that was read, unnoticed.
    fn may_be_reverted(&self, moment: Moment, content: &FileContent) -> bool {
        let n = self.events.partition_point(|event| event.moment < moment);
        self.older_read(n).is_some_and(|read| !read.agrees_with(content))
    }

    /// Joins the times in which the file is unstable where they overlap.
    fn join_unstable(&mut self) {
        self.unstable.sort_unstable();
        self.unstable.dedup_by(|next, last| {
            let overlaps = next.0 <= last.1;
            last.1 = if overlaps { last.1.max(next.1) } else { last.1 };
            overlaps
        });
    }

    /// Returns whether a command in the background may have changed the file after one moment and before
    /// another.
    fn is_unstable_between(&self, from: Option<Moment>, to: Option<Moment>) -> bool {
        let first = from.map_or(0, |from| self.unstable.partition_point(|(_, end)| *end <= from));
        self.unstable.get(first).is_some_and(|(start, _)| to.is_none_or(|to| *start < to))
    }

    /// Returns the gap at a prompt: the number of events up to it. Of the events of sub-agents between the
    /// prompt and the next line, only those before the prompt count.
    pub(crate) fn gap_at(&self, prompt: EntryIndex, at: Millis) -> usize {
        let is_later = |event: &FileEvent| {
            let Moment { position, at: time, .. } = event.moment;
            position > prompt || position == prompt && event.call.is_some() && time > at
        };
        self.events.iter().position(is_later).unwrap_or(self.events.len())
    }
}
