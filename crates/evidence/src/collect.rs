//! Collects what happened to the files of a session, from its log and the logs of its sub-agents.

use std::cell::{LazyCell, OnceCell};
use std::collections::BTreeMap;

use foldhash::HashMap;
use threadline_entry::Millis;
use threadline_session::{
    AgentIndex, CallIndex, EntryIndex, InputKind, Session, SessionFamily, ToolCall, ToolOutcome,
};

use crate::backup::{FileBackup, PromptSnapshot, absolute, root, snapshots};
use crate::change::{FileChangeKind, TextStep};
use crate::content::FileContent;
use crate::sources::{FileScan, FileSources, ScannedChange};
use crate::timeline::{
    CallPlace, EvidenceSource, FileEvent, FileTimeline, Known, Level, Moment, SparedFiles, Timelines,
    WideEvent,
};
use crate::tool::tool_change;
use crate::tracking::{Tracking, is_shell};

/// For each line, the earliest time of it and of the lines after it.
pub(crate) struct LinesByTime(Vec<Millis>);

impl LinesByTime {
    fn of(session: &Session) -> Self {
        let mut earliest = Millis::MAX;
        let times = session.entries().indices().rev().map(|idx| {
            earliest = earliest.min(session.timestamp(idx).unwrap_or(Millis::MAX));
            earliest
        });
        let mut times: Vec<Millis> = times.collect();
        times.reverse();
        Self(times)
    }

    /// Returns the last line that was written at this time or before; the first line if there is none.
    fn last_until(&self, at: Millis) -> EntryIndex {
        let n_lines = self.0.partition_point(|earliest| *earliest <= at);
        EntryIndex::from_position(n_lines.saturating_sub(1))
    }
}

/// An effect of a command on files that it names in part, or on folders. It is applied when all files of the
/// session are known.
pub(crate) struct LateEffect {
    pub(crate) place: EventPlace,
    /// Whether a hook compared the files after the command.
    pub(crate) is_scanned: bool,
    pub(crate) kind: LateEffectKind,
}

pub(crate) enum LateEffectKind {
    /// The command may change files with these names, or in folders with these names; in the background,
    /// until some moment.
    MayChange { names: Vec<String>, spared: SparedFiles, until: Option<Moment> },
    /// All files below a folder are removed.
    RemoveFolder { path: String, level: Option<Level> },
    /// All files below a folder are there too, or there instead.
    CopyFolder { from: String, to: String, is_move: bool, level: Option<Level> },
}

/// The most files that effects on files that they name in part may examine. A log with more, of many commands
/// that may change many files, says nothing about the texts of its files.
const MAX_LATE_EVENTS: usize = 4_000_000;

/// The place of an event.
#[derive(Clone, Copy)]
pub(crate) struct EventPlace {
    pub(crate) moment: Moment,
    pub(crate) call: Option<CallPlace>,
    pub(crate) called_at: EntryIndex,
}

impl EventPlace {
    /// A place for a command whose effects are not added.
    pub(crate) fn nowhere(line: EntryIndex) -> Self {
        Self { moment: Moment { position: line, at: 0, seq: 0 }, call: None, called_at: line }
    }
}

/// The events of a session, while they are collected.
pub(crate) struct Collector<'s> {
    pub(crate) family: &'s SessionFamily,
    pub(crate) root: Option<String>,
    pub(crate) timelines: Timelines,
    /// By one spelling of the path (see [`Collector::path_key`]): the number of the file.
    by_path: BTreeMap<String, usize>,
    pub(crate) late: Vec<LateEffect>,
    sources: &'s dyn FileSources,
    /// By id of the call: the complete comparisons of a hook after it.
    scans: HashMap<String, FileScan>,
    /// Whether a hook has compared the files after the call that is being added.
    pub(crate) in_scanned_call: bool,
    /// Whether the call that is being added has a list of changes.
    pub(crate) in_tracked_call: bool,
    /// The lines of prompts.
    prompts: Vec<EntryIndex>,
    /// The call of the last command with a list of changes.
    last_list: Option<EntryIndex>,
    /// By call: the line that reports its end, if it ran in the background.
    notifications: OnceCell<HashMap<String, EntryIndex>>,
    seq: u32,
}

/// Collects the events of a session. The contents are not derived yet.
pub(crate) fn collect<'s>(family: &'s SessionFamily, sources: &'s dyn FileSources) -> Collector<'s> {
    let main = &family.main;
    let snapshots = snapshots(main);
    let root = root(main, &snapshots);
    let is_prompt = |input: InputKind| input.opens_turn();
    let mut collector = Collector {
        family,
        root,
        timelines: Timelines::default(),
        by_path: BTreeMap::new(),
        late: Vec::new(),
        sources,
        scans: HashMap::default(),
        in_scanned_call: false,
        in_tracked_call: false,
        prompts: main.entries().indices().filter(|idx| main.input(*idx).is_some_and(is_prompt)).collect(),
        last_list: None,
        notifications: OnceCell::new(),
        seq: 0,
    };
    let times = LazyCell::new(|| LinesByTime::of(main));
    collector.add_scans(&times);
    collector.add_calls(None, &|_, at| at);
    for agent in family.agents.indices() {
        let session = family.session(Some(agent));
        // The calls of a sub-agent are in another log. Their times determine their positions in the main log.
        let position = |_: &Session, idx: EntryIndex| {
            session.timestamp(idx).map_or(EntryIndex::FIRST, |at| times.last_until(at))
        };
        collector.add_calls(Some(agent), &position);
    }
    collector.apply_late_effects();
    collector.in_scanned_call = false;
    collector.add_backups(snapshots, &times, sources);
    collector
}

impl Collector<'_> {
    /// Returns the number of a file.
    pub(crate) fn file(&mut self, path: &str) -> usize {
        let path = absolute(self.root.as_deref(), path, None);
        let key = self.path_key(&path);
        if let Some(&known) = self.by_path.get(&key) {
            return known;
        }
        let number = self.timelines.files.len();
        let is_scanned = self.sources.is_scanned(&path);
        self.timelines.files.push(FileTimeline { path: path.clone(), is_scanned, ..FileTimeline::default() });
        self.by_path.insert(key, number);
        number
    }

    /// Returns whether a command with a list of changes is the first one since a prompt.
    pub(crate) fn is_first_list(&mut self, called_at: EntryIndex) -> bool {
        let n_prompts = |line: EntryIndex| self.prompts.partition_point(|prompt| *prompt < line);
        let is_first = self.last_list.is_none_or(|last| n_prompts(last) < n_prompts(called_at));
        self.last_list = Some(called_at);
        is_first
    }

    /// Returns the number of a file that is known already.
    pub(crate) fn known_file(&self, path: &str) -> Option<usize> {
        self.by_path.get(&self.path_key(path)).copied()
    }

    /// Returns one spelling of a path. On Windows, tools write `D:\\a`, and commands `D:/a` and `/d/a`.
    fn path_key(&self, path: &str) -> String {
        let has_drive = |path: &str| path.as_bytes().get(1) == Some(&b':');
        let path = path.replace('\\', "/");
        match path.as_bytes() {
            [b'/', drive, b'/', ..] if self.root.as_deref().is_some_and(has_drive) => {
                format!("{}:{}", drive.to_ascii_uppercase() as char, &path[2..])
            }
            [drive, b':', ..] => format!("{}{}", drive.to_ascii_uppercase() as char, &path[1..]),
            _ => path,
        }
    }

    /// Returns the lines that report the ends of calls in the background.
    pub(crate) fn notifications(&self) -> &HashMap<String, EntryIndex> {
        self.notifications.get_or_init(|| {
            let entries = self.family.main.entries().enumerated();
            let reports = entries.filter(|(_, entry)| entry.text().contains("<task-notification>"));
            let mut found = HashMap::default();
            for (idx, entry) in reports {
                let ids = entry.text().split("<tool-use-id>").skip(1);
                for id in ids.filter_map(|rest| rest.split_once("</tool-use-id>")) {
                    found.entry(id.0.to_owned()).or_insert(idx);
                }
            }
            found
        })
    }

    /// Adds an effect that is applied when all files of the session are known.
    pub(crate) fn add_late(&mut self, place: EventPlace, kind: LateEffectKind) {
        self.late.push(LateEffect { place, is_scanned: self.in_scanned_call, kind });
    }

    /// Returns the next place with the same call.
    pub(crate) fn next(&mut self, place: EventPlace) -> EventPlace {
        self.seq = self.seq.saturating_add(1);
        EventPlace { moment: Moment { seq: self.seq, ..place.moment }, ..place }
    }

    pub(crate) fn add(
        &mut self,
        file: usize,
        place: EventPlace,
        before: Option<Known>,
        change: FileChangeKind,
    ) {
        // A hook has compared the file before and after the call.
        if self.in_scanned_call && self.timelines.files[file].is_scanned {
            return;
        }
        let EventPlace { moment, call, called_at } = self.next(place);
        let is_unlisted = self.in_tracked_call && change.may_create();
        let event = FileEvent { moment, call, called_at, before, change, is_unlisted };
        self.timelines.files[file].events.push(event);
    }

    /// Adds something that may have changed any file, from one moment to another; if there is a `repository`,
    /// any file that may be in the repository of this folder.
    pub(crate) fn add_wide(
        &mut self,
        place: EventPlace,
        until: Moment,
        level: Level,
        spared: SparedFiles,
        repository: Option<&str>,
    ) {
        let moment = self.next(place).moment;
        let until = until.max(moment);
        let repository = repository.map(|folder| self.repository(folder));
        let only_reverts = false;
        self.timelines.wide.add(WideEvent { moment, until, level, spared, only_reverts, repository });
    }

    /// Returns the number of a folder in which git was run.
    fn repository(&mut self, folder: &str) -> usize {
        let folders = &mut self.timelines.repositories;
        folders.iter().position(|known| known == folder).unwrap_or_else(|| {
            folders.push(folder.to_owned());
            folders.len() - 1
        })
    }

    /// Adds a command that may have changed files back to the text that was read, without a trace.
    pub(crate) fn add_revert(&mut self, place: EventPlace, level: Level) {
        let moment = self.next(place).moment;
        let spared = SparedFiles { scanned: self.in_scanned_call, ..SparedFiles::default() };
        let (until, only_reverts, repository) = (moment, true, None);
        self.timelines.wide.add(WideEvent { moment, until, level, spared, only_reverts, repository });
    }

    fn add_calls(
        &mut self,
        agent: Option<AgentIndex>,
        position: &dyn Fn(&Session, EntryIndex) -> EntryIndex,
    ) {
        let session = self.family.session(agent);
        let mut tracking = Tracking::of(session);
        for (call_idx, call) in session.tool_calls().enumerated() {
            let place = self.place(session, agent, call_idx, call, position);
            if is_shell(call) {
                let is_tracked = agent.is_none() && tracking.is_on(session, call.entry_idx);
                self.add_command(session, call, place, is_tracked);
            } else if call.outcome(session) == ToolOutcome::Ok
                && let Some(found) = tool_change(session, call)
            {
                let file = self.file(&found.path);
                self.add(file, place, found.before, found.change);
            }
        }
    }

    fn place(
        &self,
        session: &Session,
        agent: Option<AgentIndex>,
        call_idx: CallIndex,
        call: &ToolCall,
        position: &dyn Fn(&Session, EntryIndex) -> EntryIndex,
    ) -> EventPlace {
        let entry_idx = call.results.first().map_or(call.entry_idx, |result| result.entry_idx);
        let at = session.timestamp(entry_idx);
        let moment =
            Moment { position: position(session, entry_idx), at: at.unwrap_or_default(), seq: self.seq };
        let called_at = position(session, call.entry_idx);
        EventPlace { moment, call: Some(CallPlace { agent, call_idx, entry_idx, at }), called_at }
    }

    /// Adds what a hook found before calls, and keeps what it found after them.
    fn add_scans(&mut self, times: &LazyCell<LinesByTime, impl FnOnce() -> LinesByTime>) {
        for scan in self.sources.scans() {
            if scan.is_after && scan.is_complete {
                self.scans.insert(scan.call_id.clone(), scan);
                continue;
            }
            let position = times.last_until(scan.at);
            let place = EventPlace {
                moment: Moment { position, at: scan.at, seq: 0 },
                call: None,
                called_at: position,
            };
            for change in scan.changes {
                let file = self.file(&change.path);
                let before = change.after.map(|content| Known::exact(content, EvidenceSource::Copy));
                // Something changed the file since the comparison before.
                self.add(file, place, before, FileChangeKind::Scanned);
            }
        }
    }

    /// Adds what a hook found after a call. Returns whether it compared all files.
    pub(crate) fn add_scan(&mut self, call_id: &str, place: EventPlace) -> bool {
        let Some(scan) = self.scans.get(call_id).cloned() else { return false };
        for ScannedChange { path, before, after } in scan.changes {
            let file = self.file(&path);
            let known = |content| Known::exact(content, EvidenceSource::Copy);
            let change = after.map(known).map_or(FileChangeKind::Changed, FileChangeKind::Become);
            self.add(file, place, before.map(known), change);
        }
        true
    }

    /// Adds the backups that the file history has of each file.
    fn add_backups(
        &mut self,
        snapshots: Vec<PromptSnapshot>,
        times: &LazyCell<LinesByTime, impl FnOnce() -> LinesByTime>,
        sources: &dyn FileSources,
    ) {
        // Every prompt names the backups of all files again.
        let mut contents: HashMap<String, Option<FileContent>> = HashMap::default();
        for PromptSnapshot { position, backups } in snapshots {
            for (path, backup) in backups {
                let FileBackup { name, real_parent_dir, time } = backup.unwrap_or_default();
                let path = absolute(self.root.as_deref(), &path, real_parent_dir.as_deref());
                let file = self.file(&path);
                // A first backup is made when a tool is about to edit the file. The shell may have changed
                // it before, in the same turn.
                let prompt = self.family.main.timestamp(position);
                let later = time.filter(|time| prompt.is_some_and(|prompt| *time > prompt));
                let position = later.map_or(position, |time| times.last_until(time).max(position));
                let at = later.or(prompt).unwrap_or_default();
                let place =
                    EventPlace { moment: Moment { position, at, seq: 0 }, call: None, called_at: position };
                let content = match &name {
                    Some(name) => {
                        let read = || sources.backup(name).map(FileContent::bytes);
                        contents.entry(name.clone()).or_insert_with(read).clone()
                    }
                    None => Some(FileContent::Absent),
                };
                self.timelines.files[file].last_backup =
                    name.clone().or(self.timelines.files[file].last_backup.take());
                let before = content.map(|content| Known::exact(content, EvidenceSource::Backup));
                self.add(file, place, before, FileChangeKind::Seen);
            }
        }
    }

    /// Applies the effects on files that only the whole session names.
    fn apply_late_effects(&mut self) {
        let paths: Vec<&str> = self.timelines.files.iter().map(|file| &*file.path).collect();
        let watched = self.sources.are_watched(&paths);
        for (file, is_watched) in self.timelines.files.iter_mut().zip(watched) {
            file.is_watched |= is_watched == Some(true);
        }
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::default();
        for (number, file) in self.timelines.files.iter().enumerate() {
            by_name.entry(last_part(&file.path).to_owned()).or_default().push(number);
        }
        let mut left = MAX_LATE_EVENTS;
        for LateEffect { place, is_scanned, kind } in std::mem::take(&mut self.late) {
            self.in_scanned_call = is_scanned;
            let n_files = match kind {
                LateEffectKind::MayChange { names, spared, until } => {
                    let (files, n_examined) = self.named_files(&names, &by_name);
                    for file in files {
                        if !spared.contain(&self.timelines.files[file]) {
                            self.add_may_change(file, place, until);
                        }
                    }
                    n_examined
                }
                LateEffectKind::RemoveFolder { path, level } => {
                    let files = self.files_below(&path);
                    files.iter().for_each(|(_, file)| self.add_step(*file, place, TextStep::Remove, level));
                    files.len()
                }
                LateEffectKind::CopyFolder { from, to, is_move, level } => {
                    let files = self.files_below(&from);
                    for (name, file) in &files {
                        let copy = self.file(&format!("{to}/{name}"));
                        self.add_step(copy, place, TextStep::CopyOf(*file), level);
                        if is_move {
                            self.add_step(*file, place, TextStep::Remove, level);
                        }
                    }
                    files.len()
                }
            };
            left = left.saturating_sub(n_files + 1);
            if left == 0 {
                // Every text is unknown from the beginning on.
                let start = Moment { position: EntryIndex::FIRST, at: i64::MIN, seq: 0 };
                let end = Moment { position: self.family.main.entries().end(), at: i64::MAX, seq: u32::MAX };
                let everywhere = EventPlace { moment: start, ..place };
                return self.add_wide(everywhere, end, Level::Suspect, SparedFiles::default(), None);
            }
        }
    }

    /// Adds a step of a command. Without a level, it may not have happened.
    pub(crate) fn add_step(&mut self, file: usize, place: EventPlace, step: TextStep, level: Option<Level>) {
        let change = match level {
            Some(level) => FileChangeKind::Step { step, level },
            None => FileChangeKind::MayChange,
        };
        self.add(file, place, None, change);
    }

    /// Adds a possible change, in the background until some moment.
    pub(crate) fn add_may_change(&mut self, file: usize, place: EventPlace, until: Option<Moment>) {
        self.add(file, place, None, FileChangeKind::MayChange);
        if let Some(until) = until {
            self.timelines.files[file].unstable.push((place.moment, until));
        }
    }

    /// Returns the files below a folder, with their names below it.
    pub(crate) fn files_below(&self, folder: &str) -> Vec<(String, usize)> {
        let below = format!("{}/", self.path_key(folder).trim_end_matches('/'));
        let files = self.by_path.range(below.clone()..);
        let names = files.map_while(|(path, file)| Some((path.strip_prefix(&below)?.to_owned(), *file)));
        names.collect()
    }

    /// Returns the files that some names may mean (paths, folders, last parts of paths, patterns), and the
    /// number of files that were examined for that.
    fn named_files(&self, names: &[String], by_name: &HashMap<String, Vec<usize>>) -> (Vec<usize>, usize) {
        let (mut found, mut n_examined) = (Vec::new(), 0);
        for name in names {
            let name = name.trim_end_matches('/');
            let last = last_part(name);
            if last.contains(['*', '?', '[']) {
                let files = self.timelines.files.iter().enumerate();
                found
                    .extend(files.filter(|(_, file)| matches(last, last_part(&file.path))).map(|(at, _)| at));
                n_examined += self.timelines.files.len();
            } else {
                found.extend(by_name.get(last).into_iter().flatten());
            }
            if name.starts_with('/') {
                found.extend(self.files_below(name).into_iter().map(|(_, file)| file));
            }
        }
        n_examined += found.len();
        found.sort_unstable();
        found.dedup();
        (found, n_examined)
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns whether a name may match a shell pattern. A set of characters matches any character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // The places in the pattern after the characters of the name so far.
    let mut places = vec![false; pattern.len() + 1];
    let close = |places: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            places[at + 1] |= places[at] && pattern[at] == '*';
        }
    };
    places[0] = true;
    close(&mut places);
    for c in name {
        let mut next = vec![false; pattern.len() + 1];
        for at in (0..pattern.len()).filter(|&at| places[at]) {
            match pattern[at] {
                '*' => next[at] = true,
                '?' => next[at + 1] = true,
                '[' => {
                    let end = pattern[at..]
                        .iter()
                        .position(|c| *c == ']')
                        .map_or(pattern.len(), |end| at + end + 1);
                    next[end] = true;
                }
                known => next[at + 1] |= known == c,
            }
        }
        places = next;
        close(&mut places);
    }
    places[pattern.len()]
}
