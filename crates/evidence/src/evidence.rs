//! File evidence: the states, edits and net changes of the files of a session.

use threadline_entry::Millis;
use threadline_session::{AgentIndex, CallIndex, EntryIndex, Session, SessionFamily};

use crate::change::FileChangeKind;
use crate::collect::collect;
use crate::content::{FileBytes, FileContent};
use crate::git::StartStatus;
use crate::hunk::LineHunk;
use crate::replacement::EditReplacement;
use crate::sources::FileSources;
use crate::text_form::TextForm;
use crate::timeline::{CallPlace, EvidenceSource, FileEvent, FileTimeline, Known, Level, Moment, Timelines};

/// A point in the main log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryPoint {
    /// The time at which this line, a prompt, was written.
    Prompt(EntryIndex),
    /// The end of the session.
    End,
}

/// How certain the content of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Something may have changed the file; its content is unknown.
    Changed,
    /// Derived, or from a base that fits and is not proven.
    Likely,
    /// From a chain of recorded contents.
    Exact,
}

impl Certainty {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Likely => "likely",
            Self::Changed => "changed",
        }
    }
}

/// A file at some point in the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The absolute path.
    pub path: String,
    /// The content at that point; `None` if it is unknown.
    pub content: Option<FileContent>,
    /// How certain the content is.
    pub certainty: Certainty,
    /// The source of the content.
    pub source: Option<EvidenceSource>,
    /// The place of the evidence, relative to the point. [`EvidenceBasis::Exact`] if the content is unknown.
    pub basis: EvidenceBasis,
    /// The file name of the last backup of the file.
    pub last_backup: Option<String>,
}

/// The place of the evidence for a content, relative to a point in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceBasis {
    /// A snapshot at exactly that point.
    Exact,
    /// An observation at this earlier line. Nothing in the log changed the file in between.
    Earlier(EntryIndex),
    /// An observation at this later line, the first one at or after that point.
    Later(EntryIndex),
    /// Something outside of the log.
    Outside,
}

/// One change of a file by a call, with what is known of the file before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    /// The sub-agent that made the edit, as an index into [`SessionFamily::agents`]. `None` for the main
    /// session.
    pub agent: Option<AgentIndex>,
    /// The call, as an index into [`Session::tool_calls`] of that agent or session.
    pub call_idx: CallIndex,
    /// The line with the result, in the log of that agent or session.
    pub entry_idx: EntryIndex,
    /// The time of the result.
    pub at: Option<Millis>,
    /// The absolute path.
    pub path: String,
    /// The file before the edit.
    pub before: FileText,
    /// Whether the text before the edit was recorded with it. Otherwise, `before` is derived from other
    /// changes, and something else may have changed the file.
    pub is_before_logged: bool,
    /// The file after the edit.
    pub after: FileText,
    /// The changed lines, if the whole text of the file is unknown.
    pub hunks: Vec<LineHunk>,
    /// The replacements of an `Edit` or `MultiEdit`, in order.
    pub replacements: Vec<EditReplacement>,
    /// Whether a shell command made the edit.
    pub by_command: bool,
}

/// The text of a file before or after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileText {
    /// The file did not exist.
    Absent,
    /// The whole text, with plain line ends.
    Text(String),
    /// The text is unknown, or the file is not text.
    Unknown,
}

impl FileText {
    /// Returns the text. `None` if the file does not exist or its text is unknown.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unknown => None,
        }
    }

    fn of(content: Option<&FileContent>) -> Self {
        match content {
            Some(FileContent::Absent) => Self::Absent,
            Some(content) => content.text().map_or(Self::Unknown, |text| Self::Text(text.into_owned())),
            None => Self::Unknown,
        }
    }
}

/// The content of a file as far as it is known, with its certainty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownContent {
    /// The content; `None` if it is unknown.
    pub content: Option<FileContent>,
    /// How certain it is.
    pub certainty: Certainty,
    /// Its source.
    pub source: Option<EvidenceSource>,
}

/// What happened to the files of a session and its sub-agents, and what is known of their contents.
#[derive(Clone, Debug, Default)]
pub struct FileEvidence {
    root: Option<String>,
    timelines: Timelines,
    /// The times of all lines of the main log.
    times: Vec<Millis>,
}

impl FileEvidence {
    /// Collects the evidence for all files of a session.
    pub fn of(family: &SessionFamily, sources: &dyn FileSources) -> Self {
        Self::of_files(family, sources, &|_| true)
    }

    /// Collects the evidence for the files whose absolute paths `is_wanted` accepts.
    pub fn of_files(
        family: &SessionFamily,
        sources: &dyn FileSources,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Self {
        let collector = collect(family, sources);
        let (root, mut timelines) = (collector.root, collector.timelines);
        timelines.keep_wanted(is_wanted);
        let main = &family.main;
        let status = root.as_deref().and_then(|root| StartStatus::of(main, root));
        timelines.add_outside(status.as_ref(), main, sources);
        timelines.resolve();
        let times = main.entries().indices().map(|idx| main.timestamp(idx).unwrap_or_default()).collect();
        Self { root, timelines, times }
    }

    /// Returns the working directory that relative paths are resolved against.
    pub fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// Returns whether no file was changed.
    pub fn is_empty(&self) -> bool {
        self.changed_files().next().is_none()
    }

    fn changed_files(&self) -> impl Iterator<Item = &FileTimeline> {
        self.timelines.files.iter().filter(|file| file.is_changed())
    }

    /// Returns the state of every changed file at a point in the session, sorted by path.
    pub fn states_at(&self, at: HistoryPoint) -> Vec<FileState> {
        let mut states: Vec<FileState> = self.changed_files().map(|file| self.state(file, at)).collect();
        states.sort_by(|a, b| a.path.cmp(&b.path));
        states
    }

    fn state(&self, file: &FileTimeline, at: HistoryPoint) -> FileState {
        let (gap, moment) = self.gap(file, at);
        let basis = self.basis(file, gap, at);
        // A backup at this prompt is the file at this prompt, whatever it was when the next tool saw it.
        let own = file.forward[gap]
            .clone()
            .filter(|known| basis == EvidenceBasis::Exact && known.level == Level::Exact);
        let known = own.or_else(|| self.timelines.known_at(file, gap, moment));
        let known = known.filter(|known| known.level > Level::Suspect);
        let (content, certainty, source) = file.formed(known);
        FileState {
            path: file.path.clone(),
            basis: if content.is_some() { basis } else { EvidenceBasis::Exact },
            content,
            certainty,
            source,
            last_backup: file.last_backup.clone(),
        }
    }

    /// Returns the gap between events that contains a point, and the moment of the point.
    fn gap(&self, file: &FileTimeline, at: HistoryPoint) -> (usize, Moment) {
        let end = EntryIndex::from_position(self.times.len());
        match at {
            HistoryPoint::End => (file.events.len(), Moment { position: end, at: i64::MAX, seq: u32::MAX }),
            HistoryPoint::Prompt(prompt) => {
                let at = self.times.get(prompt.position()).copied().unwrap_or_default();
                (file.gap_at(prompt, at), Moment { position: prompt, at, seq: u32::MAX })
            }
        }
    }

    fn basis(&self, file: &FileTimeline, gap: usize, at: HistoryPoint) -> EvidenceBasis {
        let has_known = |event: &&FileEvent| event.before.is_some() || event.change.is_certain();
        match file.events[..gap].iter().rev().find(has_known) {
            Some(event) if HistoryPoint::Prompt(event.moment.position) == at && event.is_backup() => {
                EvidenceBasis::Exact
            }
            Some(event) => EvidenceBasis::Earlier(event.moment.position),
            None => match file.events[gap..].iter().find(has_known) {
                Some(event) => EvidenceBasis::Later(event.moment.position),
                None => EvidenceBasis::Outside,
            },
        }
    }

    /// Returns the files that changed from each of some lines, which are in order, up to the next one, or to
    /// the end.
    pub fn changes_from(&self, starts: &[EntryIndex]) -> Vec<Vec<ModifiedFile>> {
        let mut changed: Vec<Vec<ModifiedFile>> = vec![Vec::new(); starts.len()];
        let mut files: Vec<&FileTimeline> = self.changed_files().collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        for file in files {
            // By part: the number of edits. The events are in order, and so are the parts.
            let mut parts: Vec<(usize, usize)> = Vec::new();
            let mut last_backup: Option<(usize, &Known)> = None;
            for event in &file.events {
                let n_before = starts.partition_point(|start| *start <= event.moment.position);
                let Some(part) = n_before.checked_sub(1) else { continue };
                if event.call.is_some() && event.change.is_certain() {
                    match parts.last_mut() {
                        Some((last, edits)) if *last == part => *edits += 1,
                        _ => parts.push((part, 1)),
                    }
                } else if event.is_backup()
                    && starts[part] == event.moment.position
                    && let Some(backup) = &event.before
                {
                    let is_other = |before: &Known| before.content != backup.content;
                    if let Some((last, before)) = last_backup
                        && last + 1 == part
                        && is_other(before)
                        && parts.last().is_none_or(|(known, _)| *known != last)
                    {
                        parts.push((last, 0));
                    }
                    last_backup = Some((part, backup));
                }
            }
            for (part, edits) in parts {
                changed[part].push(ModifiedFile { path: file.path.clone(), edits });
            }
        }
        changed
    }

    /// Returns the changes that calls made, in the order of their times.
    pub fn edits(&self) -> Vec<FileEdit> {
        let mut edits = Vec::new();
        for file in &self.timelines.files {
            for (n, event) in file.events.iter().enumerate() {
                if let Some(call) = event.call.filter(|_| event.change.is_certain()) {
                    edits.push((event.moment, self.edit(file, n, call)));
                }
            }
        }
        edits.sort_by_key(|(moment, edit)| (edit.at, *moment));
        edits.into_iter().map(|(_, edit)| edit).collect()
    }

    fn edit(&self, file: &FileTimeline, n: usize, call: CallPlace) -> FileEdit {
        let event = &file.events[n];
        let text = |known: Option<Known>| {
            FileText::of(
                known.filter(|known| known.level > Level::Suspect).map(|known| known.content).as_ref(),
            )
        };
        let before = text(self.timelines.known_before(file, n));
        let after = text(self.timelines.known_after(file, n));
        let by_command = event.change.is_by_command();
        let (mut hunks, replacements) = event.change.recorded_lines();
        if after != FileText::Unknown && before != FileText::Unknown {
            hunks.clear();
        }
        FileEdit {
            agent: call.agent,
            call_idx: call.call_idx,
            entry_idx: call.entry_idx,
            at: call.at,
            path: file.path.clone(),
            is_before_logged: before != FileText::Unknown && (event.before.is_some() || by_command),
            before,
            after,
            hunks,
            replacements,
            by_command,
        }
    }

    /// Returns the net change of each file by the calls that `is_inside` accepts, sorted by path.
    pub fn net_changes(&self, is_inside: &dyn Fn(&CallPlace) -> bool) -> Vec<NetChange> {
        let mut changes: Vec<NetChange> = Vec::new();
        for file in self.changed_files() {
            let is_change = |event: &FileEvent| {
                !event.change.is_observation() && event.call.as_ref().is_some_and(is_inside)
            };
            let inside: Vec<usize> = (0..file.events.len()).filter(|&n| is_change(&file.events[n])).collect();
            if !inside.iter().any(|&n| file.events[n].change.is_certain()) {
                continue;
            }
            let change = self.net_change(file, &inside);
            if change.before.content.is_none() || change.before.content != change.after.content {
                changes.push(change);
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    /// Returns the net change of a file by some of its events.
    fn net_change(&self, file: &FileTimeline, inside: &[usize]) -> NetChange {
        let (first, last) = (inside.first().copied().unwrap_or(0), inside.last().copied().unwrap_or(0));
        let known = |known: Option<Known>| {
            let known = known.filter(|known| known.level > Level::Suspect);
            let (content, certainty, source) = file.formed(known);
            KnownContent { content, certainty, source }
        };
        let before = known(self.timelines.known_before(file, first));
        let is_last = file.events[last + 1..].iter().all(|event| event.call.is_none());
        let after = known(match is_last {
            true => {
                let (gap, end) = self.gap(file, HistoryPoint::End);
                self.timelines.known_at(file, gap, end)
            }
            false => self.timelines.known_after(file, last),
        });
        let is_known = before.content.is_some() && after.content.is_some();
        let parts = inside.iter().filter(|_| !is_known).filter_map(|&n| self.part(file, n)).collect();
        // The hunks alone are the whole change if each is relative to the result of the one before. After a read,
        // they may be relative to the text that was read.
        let is_hunk = |n: &usize| match &file.events[*n].change {
            FileChangeKind::Diff { hunks, is_first, .. } => {
                !hunks.is_empty() && hunks.iter().all(|hunk| hunk.is_unambiguous(*is_first))
            }
            FileChangeKind::Edit { hunks, .. } => !hunks.is_empty(),
            _ => false,
        };
        let is_lost =
            |n: usize| self.timelines.known_after(file, n).is_none_or(|known| known.level == Level::Suspect);
        let is_chain = before.content.is_none()
            && inside.iter().all(is_hunk)
            && file.events[..=last].iter().all(|event| !event.is_read());
        NetChange {
            path: file.path.clone(),
            before,
            after,
            calls: inside.iter().filter_map(|&n| file.events[n].call).collect(),
            unrecorded: inside.iter().filter(|&&n| is_lost(n)).filter_map(|&n| file.events[n].call).collect(),
            parts,
            is_chain,
        }
    }

    /// Returns the recorded changed lines of one event.
    fn part(&self, file: &FileTimeline, n: usize) -> Option<ChangedPart> {
        let call = file.events[n].call?;
        let edit = self.edit(file, n, call);
        let (hunks, _) = file.events[n].change.recorded_lines();
        let is_known = edit.before != FileText::Unknown && edit.after != FileText::Unknown;
        (is_known || !hunks.is_empty()).then_some(ChangedPart {
            call,
            before: edit.before,
            after: edit.after,
            hunks,
        })
    }
}

/// A file that was changed in a range of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifiedFile {
    /// The absolute path.
    pub path: String,
    /// The number of edits. With none, something else changed the file, such as a command or the user.
    pub edits: usize,
}

/// The net change of one file.
#[derive(Clone, Debug)]
pub struct NetChange {
    /// The absolute path.
    pub path: String,
    /// The content before the first of the calls.
    pub before: KnownContent,
    /// The content after the last of the calls.
    pub after: KnownContent,
    /// The calls that changed the file, or may have.
    pub calls: Vec<CallPlace>,
    /// Those of the calls after which the content is unknown.
    pub unrecorded: Vec<CallPlace>,
    /// The recorded changes in order, if the content before or after is unknown.
    pub parts: Vec<ChangedPart>,
    /// Whether the parts are the whole change, each relative to the result of the one before.
    pub is_chain: bool,
}

/// A recorded change of a file whose whole content is not known at some point.
#[derive(Clone, Debug)]
pub struct ChangedPart {
    /// The call.
    pub call: CallPlace,
    /// The text before.
    pub before: FileText,
    /// The text after.
    pub after: FileText,
    /// The changed lines as they were recorded. Empty if the texts are known.
    pub hunks: Vec<LineHunk>,
}

impl Known {
    fn certainty(&self) -> Certainty {
        match self.level {
            Level::Exact => Certainty::Exact,
            Level::Likely => Certainty::Likely,
            Level::Suspect => Certainty::Changed,
        }
    }
}

impl Timelines {
    /// Adds what is known from outside of the log.
    fn add_outside(&mut self, status: Option<&StartStatus>, main: &Session, sources: &dyn FileSources) {
        let mut files: Vec<&mut FileTimeline> =
            self.files.iter_mut().filter(|file| !file.events.is_empty()).collect();
        let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        for (file, is_watched) in files.iter_mut().zip(sources.are_watched(&paths)) {
            file.is_watched |= is_watched == Some(true);
        }
        if let Some(status) = status {
            let at = main.timestamp(status.line);
            for (file, content) in files.iter_mut().zip(sources.committed(&status.commit, &paths)) {
                if let Some(content) = content {
                    file.add_start(status, at, content);
                }
            }
        }
        let last = main.entries().indices().filter_map(|idx| main.timestamp(idx)).max();
        for file in files {
            // A file that was changed after the session is not what the session left. A deleted one has no
            // time.
            let end = sources.disk(&file.path).map(|disk| {
                let is_same = disk.modified_at.zip(last).is_some_and(|(at, last)| at <= last);
                let level = if is_same { Level::Likely } else { Level::Suspect };
                Known::new(disk.content, level, EvidenceSource::Disk)
            });
            file.end = end;
            file.add_absence();
            file.set_forms();
        }
    }
}

impl FileTimeline {
    /// Returns whether a call changed the file, or the file history has backups of it.
    fn is_changed(&self) -> bool {
        self.events.iter().any(|event| event.change.is_certain() || event.is_backup())
    }

    /// Adds what the current commit at the beginning of the session says of the file.
    fn add_start(&mut self, status: &StartStatus, at: Option<Millis>, content: FileContent) {
        if status.is_changed(&self.path) {
            return;
        }
        // A file that git ignores is in no commit, and may exist.
        if content.is_absent() && !self.is_watched {
            return;
        }
        let level = if status.is_truncated { Level::Likely } else { Level::Exact };
        let moment = Moment { position: status.line, at: at.unwrap_or_default(), seq: 0 };
        let before = Some(Known::new(content, level, EvidenceSource::Git));
        let change = FileChangeKind::Start;
        self.events.push(FileEvent {
            moment,
            call: None,
            called_at: status.line,
            before,
            change,
            is_unlisted: false,
        });
    }

    /// A file that a command created and that its list of changes lacks did not exist before, and does not
    /// exist after the command.
    fn add_absence(&mut self) {
        let is_watched = self.is_watched;
        let first = self.events.iter_mut().min_by_key(|event| event.moment);
        if let Some(first) = first.filter(|first| is_watched && first.is_unlisted && first.before.is_none()) {
            first.before = Some(Known::new(FileContent::Absent, Level::Likely, EvidenceSource::CommandDiff));
        }
    }

    /// Gives texts that tools have shown the line ends and the encoding of the file, if all its known
    /// contents have the same.
    fn set_forms(&mut self) {
        let befores = self.events.iter().filter_map(|event| event.before.as_ref());
        let afters = self.events.iter().filter_map(|event| event.change.recorded());
        let known = befores.chain(afters).chain(&self.end).filter_map(|known| known.content.file());
        let mut forms = known.filter(|file| !file.is_shown).map(|file| TextForm::of(&file.bytes));
        let Some(form) = forms.next().flatten() else { return };
        if !forms.all(|other| other == Some(form)) {
            return;
        }
        let set = |known: &mut Known| {
            if let FileContent::File(file) = &mut known.content
                && file.is_shown
                && let Some(bytes) = file.text().and_then(|text| form.encode(&text))
            {
                *file = FileBytes { bytes: bytes.into(), is_shown: false };
            }
        };
        for event in &mut self.events {
            event.before.iter_mut().for_each(set);
            event.change.recorded_mut().into_iter().for_each(set);
        }
    }

    /// Returns the content to report. A text without its line ends and encoding is not certain.
    fn formed(&self, known: Option<Known>) -> (Option<FileContent>, Certainty, Option<EvidenceSource>) {
        let Some(known) = known else { return (None, Certainty::Changed, None) };
        let is_shown = known.content.file().is_some_and(|file| file.is_shown);
        let certainty = if is_shown { Certainty::Likely } else { known.certainty() };
        (Some(known.content), certainty, Some(known.source))
    }
}
