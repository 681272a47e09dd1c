//! Every call to the file system fails once: while an operation is applied, undone and redone, alone and
//! while another program writes to the same logs. No bytes of any program may be lost, and an undo, a redo or
//! another run must succeed.

mod disk;

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use self::disk::{EIO, ENOSPC, Fault, FaultyDisk, PART, Plan, Writer, Writing};
use super::tests::operation;
use super::version::Version;
use super::*;
use crate::disk::{FileSystem, RealFileSystem, Visibility};
use crate::update::{FileUpdate, update_with};

/// The change of an operation to one file.
#[derive(Clone, Copy, Debug)]
struct Change {
    path: &'static str,
    kind: FileKind,
    before: Option<&'static str>,
    after: After,
    /// Whether the new file gets a modification time.
    is_dated: bool,
}

impl Change {
    /// The content that the operation replaces.
    fn read(&self) -> Option<&'static str> {
        match self.after {
            After::Lines(_) => self.before.map(whole_lines),
            _ => self.before,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum After {
    Content(&'static str),
    /// The whole lines are replaced, and a part of a line stays where it is.
    Lines(&'static str),
    Appended(&'static str),
    Moved(&'static str, &'static str),
    Gone,
    /// The file is a symbolic link, and only the link is removed.
    Unlinked,
}

const fn log(path: &'static str, before: Option<&'static str>, after: After) -> Change {
    Change { path, kind: FileKind::Log, before, after, is_dated: false }
}

const fn plain(path: &'static str, before: Option<&'static str>, after: After) -> Change {
    Change { path, kind: FileKind::Plain, before, after, is_dated: false }
}

const fn dated(change: Change) -> Change {
    Change { is_dated: true, ..change }
}

const LOG: &str = "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n";
const TORN: &str = "{\"n\":1}\n{\"n\":2";
const SHORTER: &str = "{\"n\":1}\n";
const LONGER: &str = "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"m\":4}\n";
const OTHER_TORN: &str = "{\"m\":1}\n{\"n\":2";
const OTHER: &str = "{\"m\":1}\n{\"m\":2}\n";
const LINE: &str = "{\"title\":\"t\"}";

/// The operations. The log that another program writes to comes first.
const OPERATIONS: &[(&str, &[Change])] = &[
    ("create", &[log("p/s.jsonl", None, After::Content(LOG))]),
    ("replace", &[log("p/s.jsonl", Some(LOG), After::Content(OTHER))]),
    ("replace by less", &[log("p/s.jsonl", Some(LOG), After::Content(SHORTER))]),
    ("replace by more", &[log("p/s.jsonl", Some(LOG), After::Content(LONGER))]),
    ("replace torn", &[log("p/s.jsonl", Some(TORN), After::Content(OTHER))]),
    ("replace and keep torn", &[log("p/s.jsonl", Some(TORN), After::Content(OTHER_TORN))]),
    ("replace lines before torn", &[log("p/s.jsonl", Some(TORN), After::Lines(OTHER))]),
    ("move torn", &[log("p/s.jsonl", Some(TORN), After::Moved("q/s.jsonl", OTHER))]),
    ("append", &[log("p/s.jsonl", Some(LOG), After::Appended(LINE))]),
    ("append to torn", &[log("p/s.jsonl", Some(TORN), After::Appended(LINE))]),
    ("remove", &[log("p/s.jsonl", Some(LOG), After::Gone)]),
    ("move", &[log("p/s.jsonl", Some(LOG), After::Moved("q/s.jsonl", OTHER))]),
    (
        "move with side files",
        &[
            log("p/s.jsonl", Some(LOG), After::Moved("q/s.jsonl", OTHER)),
            plain("p/s/x.json", Some("{}"), After::Moved("q/s/x.json", "{1}")),
            log("p/s/a.jsonl", Some(LOG), After::Moved("q/s/a.jsonl", SHORTER)),
        ],
    ),
    (
        "delete with side files",
        &[
            log("p/s.jsonl", Some(LOG), After::Gone),
            plain("p/s/x.json", Some("{}"), After::Gone),
            plain("h/s/1@v1", Some("fn main() {}"), After::Gone),
        ],
    ),
    (
        "clone with side files",
        &[
            plain("p/c/x.json", None, After::Content("{}")),
            log("p/c/a.jsonl", None, After::Content(LOG)),
            log("p/c.jsonl", None, After::Content(LOG)),
        ],
    ),
    (
        "restore",
        &[
            plain("w/a.rs", None, After::Content("a\n")),
            plain("w/b.rs", Some("b\n"), After::Content("B\n")),
            plain("w/c.rs", Some("c\n"), After::Gone),
            plain("w/d/e.rs", None, After::Content("")),
            plain("w/f.rs", Some(""), After::Content("f\n")),
            plain("w/g/h/i.rs", None, After::Content("i\n")),
        ],
    ),
    (
        "restore an archived session",
        &[
            dated(log("p/s.jsonl", Some(LONGER), After::Content(LOG))),
            dated(log("p/s/a.jsonl", None, After::Content(LOG))),
            dated(plain("p/s/x.json", Some("{}"), After::Content("{1}"))),
        ],
    ),
    (
        "mixed",
        &[
            log("p/s.jsonl", Some(LOG), After::Content(OTHER)),
            log("p/s/a.jsonl", Some(LOG), After::Appended(LINE)),
            plain("p/s/made/deep.txt", None, After::Content("made")),
            plain("p/s/gone.txt", Some("kept"), After::Gone),
        ],
    ),
];

/// A folder with the files of an operation.
struct World {
    dir: tempfile::TempDir,
    disk: Arc<FaultyDisk>,
    operations: Operations,
    changes: &'static [Change],
    written: Vec<String>,
    is_cut: bool,
    /// Whether another program keeps the log open, and may write to it after the operation: into the receipt.
    is_held: bool,
}

/// Which of the faults and other programs a run has.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    fault: Option<(usize, Fault)>,
    writer: Option<(Writing, usize, usize)>,
    crosses_devices: bool,
    has_no_links: bool,
    has_no_exchange: bool,
}

const NOTHING: Conditions = Conditions {
    fault: None,
    writer: None,
    crosses_devices: false,
    has_no_links: false,
    has_no_exchange: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Do,
    Undo,
    Redo,
}

impl World {
    fn new(changes: &'static [Change]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(FaultyDisk::default());
        let operations =
            Operations { dir: dir.path().join("state/operations"), fs: Arc::clone(&disk) as Arc<_> };
        std::fs::create_dir_all(dir.path().join("state/operations")).unwrap();
        let world =
            Self { dir, disk, operations, changes, written: Vec::new(), is_cut: false, is_held: false };
        for change in changes {
            // The folder of the first log is there, so that another program can write.
            std::fs::create_dir_all(world.at(changes[0].path).parent().unwrap()).unwrap();
            if let Some(before) = change.before {
                let path = world.at(change.path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                match change.after {
                    After::Unlinked => RealFileSystem.symlink(Path::new(before), &path).unwrap(),
                    _ => std::fs::write(path, before).unwrap(),
                }
            }
        }
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn steps(&self) -> Vec<Step<'static>> {
        let step = |change: &Change| {
            let read = FileDigest::of(change.read().unwrap_or_default().as_bytes());
            let content = |text: &'static str| Box::new(Cursor::new(text));
            let action = match (change.before, change.after) {
                (None, After::Content(text)) => {
                    StepAction::Create { content: content(text), visibility: Visibility::Private }
                }
                (_, After::Content(text) | After::Lines(text)) => {
                    StepAction::Replace { read, content: content(text) }
                }
                (_, After::Appended(line)) => StepAction::Append { read, lines: vec![line.to_owned()] },
                (_, After::Moved(to, text)) => {
                    StepAction::Move { read, to: self.at(to), content: content(text) }
                }
                (_, After::Gone) => StepAction::Remove,
                (_, After::Unlinked) => StepAction::Unlink,
            };
            let modified = change.is_dated.then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1));
            Step { path: self.at(change.path), kind: change.kind, action, modified }
        };
        self.changes.iter().map(step).collect()
    }

    fn perform(&mut self, phase: Phase, conditions: Conditions) -> Result<(), OpError> {
        let log = self.changes[0];
        let mut path = self.at(log.path);
        if let (After::Moved(to, _), Phase::Undo) = (log.after, phase) {
            path = self.at(to);
        }
        let writes = |(writing, ..): &(Writing, usize, usize)| {
            log.kind == FileKind::Log || matches!(writing, Writing::Saving | Writing::SavingFirst)
        };
        let writer = conditions.writer.filter(writes).map(|(writing, from, limit)| {
            let open = || std::fs::OpenOptions::new().read(true).append(true).open(&path).ok();
            Writer {
                open_file: if writing == Writing::Holding { open() } else { None },
                half: None,
                writing,
                log: path.clone(),
                from,
                limit,
                written: Vec::new(),
            }
        });
        // A program cannot keep a file open that does not exist.
        let writer = writer.filter(|writer| {
            writer.open_file.is_some() || !matches!(conditions.writer, Some((Writing::Holding, ..)))
        });
        *self.disk.plan() = Plan {
            fault: conditions.fault,
            crosses_devices: conditions.crosses_devices,
            has_no_links: conditions.has_no_links,
            has_no_exchange: conditions.has_no_exchange,
            writer,
            ..Plan::default()
        };
        let result = match phase {
            Phase::Do => self.operations.apply(operation("a"), self.steps()).map(drop),
            Phase::Undo => self
                .operations
                .find("last")
                .and_then(|receipt| self.operations.undo(&receipt, true).map(drop)),
            Phase::Redo => self
                .operations
                .find_undone("a")
                .and_then(|receipt| self.operations.redo(&receipt, true).map(drop)),
        };
        let mut writer = self.disk.plan().writer.take();
        writer.iter_mut().for_each(Writer::complete);
        self.written.extend(writer.into_iter().flat_map(|writer| writer.written));
        let process_scans = self.disk.plan().process_scans;
        *self.disk.plan() =
            Plan { process_scans, crosses_devices: conditions.crosses_devices, ..Plan::default() };
        result
    }

    fn files(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.dir.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    let name =
                        entry.path().strip_prefix(self.dir.path()).unwrap().to_string_lossy().into_owned();
                    found.insert(name, std::fs::read_to_string(entry.path()).unwrap());
                }
            }
        }
        found
    }

    /// Everything that was there before or that another program wrote is in a file or in a receipt.
    fn check_nothing_lost(&self) {
        let files = self.files();
        for change in self.changes {
            if let Some(before) = change.read() {
                assert!(files.values().any(|text| text.starts_with(before)), "{}: {files:#?}", change.path);
            }
        }
        for line in &self.written {
            assert!(files.values().any(|text| text.contains(line)), "lost: {line} in {files:#?}");
        }
    }

    /// Every file has the version of a side, with the lines of the other program, each once.
    fn check(&self, side: Version) {
        let files = self.files();
        let mut lines: HashMap<&str, usize> = HashMap::new();
        let mut expected: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let mut may_be_in_receipt = false;
        let (mut first_before, mut first_after) = (String::new(), String::new());
        for change in self.changes {
            let (before, after) = (change.read(), change.after);
            let appended;
            let version = match (side, after) {
                (Version::Before, _) => before.map(|text| (change.path, text)),
                (Version::After, After::Content(text) | After::Lines(text)) => Some((change.path, text)),
                (Version::After, After::Moved(to, text)) => Some((to, text)),
                (Version::After, After::Gone | After::Unlinked) => {
                    may_be_in_receipt |= change.kind == FileKind::Log;
                    // A log that has lines of another program is not removed again by a redo.
                    let text = before.unwrap_or_default();
                    let is_left = files.get(change.path).is_some_and(|now| now.starts_with(text));
                    (is_left && change.kind == FileKind::Log && !self.written.is_empty())
                        .then_some((change.path, text))
                }
                (Version::After, After::Appended(line)) => {
                    let before = before.unwrap();
                    let newline = if before.ends_with('\n') { "" } else { "\n" };
                    appended = format!("{before}{newline}{line}\n");
                    // The other program may have been quicker.
                    let now = files.get(change.path).unwrap();
                    assert!(now.starts_with(before) && now.contains(&format!("\n{line}\n")), "{now}");
                    let rest = rest_after(before, now).replacen(&format!("{line}\n"), "", 1);
                    first_before.push_str(&rest);
                    drop(appended);
                    continue;
                }
            };
            if let Some((path, text)) = version {
                expected.insert(path, text.as_bytes().to_vec());
            }
        }
        for (name, text) in &files {
            assert!(!name.contains(".threadline-"), "{name} is left in {files:#?}");
            if name.starts_with("state/") {
                continue;
            }
            let rest = match expected.remove(&**name) {
                Some(version) => {
                    let version = String::from_utf8(version).unwrap();
                    assert!(text.starts_with(&version), "{name} has another version: {files:#?}");
                    rest_after(&version, text)
                }
                None if self.changes.iter().any(|change| {
                    matches!(change.after, After::Appended(_))
                        && side == Version::After
                        && change.path == name
                }) =>
                {
                    continue;
                }
                None => text,
            };
            first_after.push_str(rest);
        }
        assert!(expected.is_empty(), "missing: {expected:?} in {files:#?}");
        let rest = first_before + "\n" + &first_after;
        if self.is_cut {
            // The disk became full after half a line, and the other program appended before it could be
            // removed: all its bytes are in the file, after ours.
            let mut is_open_log_replaced = false;
            for line in &self.written {
                let is_there = rest.contains(line);
                let kept = files.iter().any(|(name, text)| name.starts_with("state/") && text.contains(line));
                // A program that keeps the log open may write when the operation has ended, to the file that
                // was replaced.
                let may_be_in_receipt = may_be_in_receipt || self.is_held;
                assert!(is_there || (may_be_in_receipt && kept), "{line} in {files:#?}");
                // From then on, it writes nowhere else.
                assert!(!is_open_log_replaced || !is_there, "{line} in {files:#?}");
                is_open_log_replaced |= self.is_held && !is_there;
            }
            return;
        }
        for line in rest.lines().filter(|line| !line.is_empty()) {
            *lines.entry(line).or_default() += 1;
        }
        // The part of a line that was not completed.
        if self.changes.iter().any(|change| change.before.is_some_and(|text| text.ends_with(PART))) {
            let n = lines.remove(PART).unwrap_or(0);
            let is_completed = self.written.iter().any(|line| line.starts_with(PART));
            assert!(n == 0 || n == 1 && !is_completed, "{n} times {PART} in {files:#?}");
        }
        let mut written: HashMap<&String, usize> = HashMap::new();
        self.written.iter().for_each(|line| *written.entry(line).or_default() += 1);
        for (line, times) in written {
            let n = lines.remove(line.trim_end()).unwrap_or(0);
            let kept = files.iter().any(|(name, text)| name.starts_with("state/") && text.contains(line));
            // If both versions had the part of a line, it may have been completed in each, and is one line.
            let is_part = line.starts_with(PART);
            let is_there = n == times || is_part && (1..times).contains(&n);
            assert!(is_there || (may_be_in_receipt && n == 0 && kept), "{n} times {line} in {files:#?}");
        }
        assert!(lines.is_empty(), "{lines:?} is too much in {files:#?}");
    }

    /// Returns which version of a file is there; `None` for neither and for both.
    fn version(&self, change: &Change) -> Option<Version> {
        let read = |path| std::fs::read_to_string(self.at(path)).ok();
        let now = read(change.path);
        let has = |text: &str| now.as_ref().is_some_and(|now| now.starts_with(text));
        let (is_before, is_after) = match (change.read(), change.after) {
            (None, After::Content(text)) => (now.is_none(), has(text)),
            (Some(before), After::Content(text) | After::Lines(text)) => {
                // The longer one, if one begins with the other.
                let is_after = has(text) && !(has(before) && before.len() > text.len());
                (has(before) && !is_after, is_after)
            }
            (Some(before), After::Appended(line)) => {
                let is_appended = now.as_ref().is_some_and(|now| now.contains(line));
                (has(before) && !is_appended, is_appended)
            }
            (Some(before), After::Moved(to, text)) => {
                let moved = read(to);
                let is_moved = moved.as_ref().is_some_and(|moved| moved.starts_with(text));
                (has(before) && moved.is_none(), now.is_none() && is_moved)
            }
            (before, _) => (before.is_some_and(has), now.is_none()),
        };
        match (is_before, is_after) {
            (true, false) => Some(Version::Before),
            (false, true) => Some(Version::After),
            _ => None,
        }
    }

    /// Checks that an error names the changed files and the state of the operation.
    fn check_error(&self, phase: Phase, error: &OpError) {
        let from = if phase == Phase::Undo { Version::After } else { Version::Before };
        let mut n_named = 0;
        for change in self.changes {
            let version = self.version(change);
            let is_unchanged = match error {
                OpError::Stopped { changed, unchanged, .. } => {
                    n_named = changed.len() + unchanged.len();
                    let target = match change.after {
                        After::Moved(to, _) => to,
                        _ => change.path,
                    };
                    unchanged.iter().any(|path| *path == self.at(change.path) || *path == self.at(target))
                }
                // All other errors mean that nothing was changed, or changed back.
                _ => true,
            };
            assert_eq!(
                version == Some(from),
                is_unchanged,
                "{}: {error:?} in {:#?}",
                change.path,
                self.files()
            );
        }
        if let OpError::Stopped { attempt, state, .. } = error {
            assert_eq!(n_named, self.changes.len(), "{error:?}");
            assert_eq!(
                *attempt,
                match phase {
                    Phase::Do => Attempt::Apply,
                    Phase::Undo => Attempt::Undo,
                    Phase::Redo => Attempt::Redo,
                }
            );
            assert_eq!(*state, self.operations.find("a").unwrap().state, "{error:?}");
        }
    }

    /// Checks after a run, which may have failed, that nothing is lost, and that undo, redo and another run
    /// succeed.
    fn check_ends(&mut self, failed: bool) {
        self.check_nothing_lost();
        let has_receipt = !self.operations.list().found.is_empty();
        // A log that another program extended or created is not changed.
        let is_theirs = self.changes[0].before.is_none() && !self.written.is_empty();
        if is_theirs {
            if has_receipt {
                let _ = self.perform(Phase::Undo, NOTHING);
                self.check_nothing_lost();
            }
            return;
        }
        if !has_receipt {
            assert!(failed);
            self.check(Version::Before);
            // The log may only have grown, so the same plan applies.
            self.perform(Phase::Do, NOTHING).unwrap();
            self.check(Version::After);
        }
        let state = self.operations.find("a").unwrap().state;
        if state.is_interrupted() {
            assert_eq!(self.operations.find("last").unwrap().id, "a");
            assert_eq!(self.operations.find_undone("last").unwrap().id, "a");
        }
        if state == OperationState::Begun {
            let receipt = self.operations.find("last").unwrap();
            if self.written.len() % 2 == 1 {
                let redone = self.operations.redo(&receipt, false);
                assert!(matches!(redone, Err(OpError::NeverApplied { .. })), "{redone:?}");
            } else {
                assert_eq!(self.operations.undo(&receipt, false).unwrap().files, 0);
            }
            self.check(Version::Before);
            self.perform(Phase::Do, NOTHING).unwrap();
        }
        // From wherever it is, both ways.
        if state == OperationState::Undone || failed && self.written.len() % 2 == 1 {
            let redone = self.perform(Phase::Redo, NOTHING);
            assert!(
                redone.is_ok() || matches!(redone, Err(OpError::AlreadyDone { .. })),
                "redo from {state:?}: {redone:?}"
            );
            self.check(Version::After);
        }
        for _ in 0..2 {
            let undone = self.perform(Phase::Undo, NOTHING);
            assert!(undone.is_ok(), "undo from {state:?}: {undone:?}");
            self.check(Version::Before);
            self.perform(Phase::Redo, NOTHING).unwrap();
            self.check(Version::After);
        }
        self.check_nothing_lost();
    }
}

/// The text without a part of a line at its end.
fn whole_lines(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |newline| newline + 1)]
}

/// The lines of a text that are not in the version that it begins with. A part of a line at the end of the
/// version may have been completed.
fn rest_after<'a>(version: &str, text: &'a str) -> &'a str {
    match text.len() > version.len() {
        true => &text[whole_lines(version).len()..],
        false => "",
    }
}

/// Runs an operation up to a phase without faults, and that phase with them.
fn run(changes: &'static [Change], phase: Phase, conditions: Conditions) {
    let mut world = World::new(changes);
    let before = match phase {
        Phase::Do => &[][..],
        Phase::Undo => &[Phase::Do],
        Phase::Redo => &[Phase::Do, Phase::Undo],
    };
    for phase in before {
        world.perform(*phase, Conditions { fault: None, writer: None, ..conditions }).unwrap();
    }
    let result = world.perform(phase, conditions);
    if let Err(error) = &result
        && conditions.writer.is_none()
        && !matches!(conditions.fault, Some((_, Fault::Stop)))
    {
        world.check_error(phase, error);
    }
    world.is_cut = matches!(conditions.fault, Some((_, Fault::Short))) && !world.written.is_empty();
    world.is_held = matches!(conditions.writer, Some((Writing::Holding, ..)));
    world.check_ends(result.is_err());
}

/// How many calls that write a phase makes.
fn count(changes: &'static [Change], phase: Phase, conditions: Conditions) -> (usize, usize) {
    let mut world = World::new(changes);
    let phases = [Phase::Do, Phase::Undo, Phase::Redo];
    for earlier in phases.iter().take_while(|earlier| **earlier != phase) {
        world.perform(*earlier, Conditions { writer: None, ..conditions }).unwrap();
    }
    *world.disk.plan() = Plan { crosses_devices: conditions.crosses_devices, ..Plan::default() };
    let result = match phase {
        Phase::Do => world.operations.apply(operation("a"), world.steps()).map(drop),
        Phase::Undo => world.operations.undo(&world.operations.find("a").unwrap(), true).map(drop),
        Phase::Redo => world.operations.redo(&world.operations.find("a").unwrap(), true).map(drop),
    };
    result.unwrap();
    let plan = world.disk.plan();
    (plan.calls, plan.writing_calls)
}

/// Every operation, in every phase, with a fault at every call that writes. In debug builds only a part of
/// the combinations is tried.
#[test]
fn nothing_is_lost_wherever_it_stops() {
    let faults = [Fault::Stop, Fault::Error(ENOSPC), Fault::Error(EIO), Fault::Short];
    let writers = [None, Some(Writing::Reopening), Some(Writing::Holding), Some(Writing::Halving)];
    let mut combinations = Vec::new();
    for (name, changes) in OPERATIONS {
        for phase in [Phase::Do, Phase::Undo, Phase::Redo] {
            for crosses_devices in [false, true] {
                let conditions = Conditions { crosses_devices, ..NOTHING };
                let (calls, writing_calls) = count(changes, phase, conditions);
                for writing in writers {
                    if writing.is_some() && changes[0].kind == FileKind::Plain {
                        continue;
                    }
                    // A file on another file system can only be copied and removed: bytes that a program
                    // writes to it after the pause are lost.
                    if matches!(writing, Some(Writing::Holding | Writing::Halving)) && crosses_devices {
                        continue;
                    }
                    for fault in faults {
                        for at in 0..writing_calls + usize::from(writing.is_some()) * 4 {
                            // From the first call on, and around the fault.
                            for from in [0, calls / 3, calls * 2 / 3] {
                                if writing.is_none() && from > 0 {
                                    continue;
                                }
                                let writer = writing.map(|writing| (writing, from, 40));
                                let conditions =
                                    Conditions { fault: Some((at, fault)), writer, ..conditions };
                                combinations.push((*name, *changes, phase, conditions));
                                if writing.is_none() {
                                    for conditions in [
                                        Conditions { has_no_links: true, ..conditions },
                                        Conditions { has_no_exchange: true, ..conditions },
                                    ] {
                                        combinations.push((*name, *changes, phase, conditions));
                                    }
                                }
                            }
                        }
                    }
                    // One line at a time, between any two calls, without a fault.
                    for from in 0..calls {
                        let writer = writing.map(|writing| (writing, from, 1));
                        combinations.push((*name, *changes, phase, Conditions { writer, ..conditions }));
                    }
                }
            }
        }
    }
    let all = combinations.len();
    let wanted = if cfg!(debug_assertions) { 600 } else { all };
    // An odd step visits all kinds of faults.
    let step = (all / wanted).max(1) | 1;
    let mut runs = 0;
    let mut failures = Vec::new();
    for (name, changes, phase, conditions) in combinations.into_iter().step_by(step) {
        runs += 1;
        if let Err(panic) = std::panic::catch_unwind(|| run(changes, phase, conditions)) {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failures.push(format!("{name}, {phase:?}, {conditions:?}: {text}"));
        }
    }
    println!("{runs} of {all} combinations of faults and other programs were run");
    assert!(runs >= 300);
    assert!(
        failures.is_empty(),
        "{} of {runs} failed: {}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
}

/// A program completes its line late, or writes other lines first.
#[test]
fn a_line_that_is_completed_late_stays_whole() {
    let torn = OPERATIONS.iter().filter(|(_, changes)| changes[0].before == Some(TORN));
    for (_, changes) in torn {
        for phase in [Phase::Do, Phase::Undo, Phase::Redo] {
            let (calls, writing_calls) = count(changes, phase, NOTHING);
            for from in [calls - 1, calls - 2, calls - 4, calls - 8] {
                run(changes, phase, Conditions { writer: Some((Writing::Holding, from, 1)), ..NOTHING });
            }
            for at in [writing_calls, writing_calls - 1, writing_calls - 4] {
                let writer = Some((Writing::Reopening, calls * 2 / 3, 40));
                run(changes, phase, Conditions { fault: Some((at, Fault::Stop)), writer, ..NOTHING });
            }
        }
    }
}

/// A program writes half of a line before any call, the rest three calls later, and opens the log again.
#[test]
fn a_line_that_is_written_in_two_parts_stays_whole() {
    const OPERATIONS: &[&[Change]] = &[
        &[log("p/s.jsonl", Some(LOG), After::Content(OTHER))],
        &[log("p/s.jsonl", Some(LOG), After::Appended(LINE))],
        &[log("p/s.jsonl", Some(LOG), After::Moved("q/s.jsonl", OTHER))],
    ];
    for changes in OPERATIONS {
        for phase in [Phase::Do, Phase::Undo, Phase::Redo] {
            let (calls, _) = count(changes, phase, NOTHING);
            for from in 0..calls {
                for limit in [2, 40] {
                    let writer = Some((Writing::Halving, from, limit));
                    run(changes, phase, Conditions { writer, ..NOTHING });
                }
            }
        }
    }
}

/// A program keeps the log open and writes on, from any call, while a late part of the operation fails.
#[test]
fn a_roll_back_keeps_what_is_written_to_an_open_log() {
    let removed = const { &[log("p/s.jsonl", Some(LOG), After::Gone)] };
    let replaced = const { &[log("p/s.jsonl", Some(LOG), After::Content(OTHER))] };
    for changes in [removed, replaced] {
        let (calls, writing_calls) = count(changes, Phase::Do, NOTHING);
        for at in writing_calls.saturating_sub(6)..=writing_calls {
            for from in 0..calls {
                let writer = Some((Writing::Holding, from, 40));
                let conditions = Conditions { fault: Some((at, Fault::Error(EIO))), writer, ..NOTHING };
                run(changes, Phase::Do, conditions);
            }
        }
    }
}

/// A program writes to the backup of an undone operation and ends; then the backup is replaced by a redo.
#[test]
fn a_redo_keeps_what_was_written_to_a_backup() {
    for change in [
        log("p/s.jsonl", Some(LOG), After::Gone),
        log("p/s.jsonl", Some(LOG), After::Content(OTHER)),
        log("p/s.jsonl", Some(LOG), After::Moved("q/s.jsonl", OTHER)),
        plain("p/x.json", Some("{}"), After::Gone),
        plain("p/x.json", Some("{}"), After::Content("{1}")),
    ] {
        let mut world = World::new(vec![change].leak());
        let mut options = std::fs::OpenOptions::new();
        let mut open_file = options.append(true).open(world.at(change.path)).unwrap();
        world.perform(Phase::Do, NOTHING).unwrap();
        world.perform(Phase::Undo, NOTHING).unwrap();
        let line = "{\"by\":\"another program\"}\n".to_owned();
        open_file.write_all(line.as_bytes()).unwrap();
        drop(open_file);
        world.written.push(line);
        for phase in [Phase::Redo, Phase::Undo, Phase::Redo, Phase::Undo] {
            world.perform(phase, NOTHING).unwrap();
            world.check_nothing_lost();
        }
        if change.kind == FileKind::Log {
            world.check(Version::Before);
        }
    }
}

/// A program begins its line at the moment of the append: nothing is appended.
#[test]
fn an_append_at_the_moment_of_another_one_is_taken_back() {
    const APPEND: &[Change] = &[log("p/s.jsonl", Some(LOG), After::Appended(LINE))];
    let mut n_failed = 0;
    for phase in [Phase::Do, Phase::Redo] {
        let (calls, _) = count(APPEND, phase, NOTHING);
        for from in 0..calls {
            let mut world = World::new(APPEND);
            for phase in [Phase::Do, Phase::Undo].iter().take_while(|_| phase == Phase::Redo) {
                world.perform(*phase, NOTHING).unwrap();
            }
            let result =
                world.perform(phase, Conditions { writer: Some((Writing::Racing, from, 1)), ..NOTHING });
            if let Err(error) = &result {
                n_failed += 1;
                world.check_error(phase, error);
                world.check(Version::Before);
            }
            world.check_ends(result.is_err());
        }
    }
    assert!(n_failed > 0);
}

/// A log that may be read and not written.
#[test]
fn an_append_to_a_read_only_log_changes_nothing_and_leaves_no_receipt() {
    let world = World::new(const { &[log("p/s.jsonl", Some(LOG), After::Appended(LINE))] });
    world.disk.plan().read_only = Some(world.at("p/s.jsonl"));
    let error = world.operations.apply(operation("a"), world.steps()).unwrap_err();
    assert!(matches!(error, OpError::NotDone { reverted: 0, .. }), "{error:?}");
    assert!(world.operations.list().found.is_empty());
    world.check(Version::Before);
}

/// The backup of a replaced file is on another file system, which is full.
#[test]
fn without_space_for_a_backup_nothing_is_changed() {
    for (name, changes) in OPERATIONS {
        let is_copied = |change: &Change| {
            change.before.is_some() && !matches!(change.after, After::Appended(_) | After::Unlinked)
        };
        if !changes.iter().any(is_copied) {
            continue;
        }
        let mut world = World::new(changes);
        let files = |world: &World| {
            let mut files = world.files();
            files.remove("state/operations.lock");
            files
        };
        let before = files(&world);
        let full = |world: &World, is_full: bool| {
            let mut plan = world.disk.plan();
            (plan.crosses_devices, plan.has_no_space_for_copies) = (true, is_full);
        };
        full(&world, true);
        let error = world.operations.apply(operation("a"), world.steps()).unwrap_err();
        assert!(matches!(error, OpError::NotDone { reverted: 0, .. }), "{name}: {error:?}");
        assert_eq!(files(&world), before, "{name}");
        full(&world, false);
        let done = world.operations.apply(operation("a"), world.steps()).unwrap();
        let after = files(&world);
        full(&world, true);
        if let Err(error) = world.operations.undo(&done, false) {
            assert!(matches!(error, OpError::Stopped { state: OperationState::Done, .. }), "{error:?}");
            assert_eq!(files(&world), after, "{name}");
            full(&world, false);
            world.operations.undo(&world.operations.find("a").unwrap(), false).unwrap();
        }
        world.written.clear();
        world.check(Version::Before);
        let copies = files(&world).into_keys().filter(|name| name.ends_with(".copy"));
        assert_eq!(copies.count(), 0, "{name}");
    }
}

/// The time of a file that belongs to another user cannot be set; its content can be.
#[test]
fn an_undo_does_not_need_to_set_the_time() {
    let mut world = World::new(const { &[log("p/s.jsonl", Some(LOG), After::Content(OTHER))] });
    world.perform(Phase::Do, NOTHING).unwrap();
    world.disk.plan().read_only = Some(world.at("p/s.jsonl"));
    let receipt = world.operations.find("a").unwrap();
    world.operations.undo(&receipt, false).unwrap();
    world.check(Version::Before);
}

/// A person saves a file, as editors do it, before any call and with a fault at any call. The text is in a
/// file or in a receipt, also after an undo and a redo.
#[test]
fn a_file_saved_meanwhile_is_not_lost_wherever_it_stops() {
    const OPERATIONS: &[&[Change]] = &[
        &[plain("w/b.rs", Some("b\n"), After::Content("B\n"))],
        &[log("p/s.jsonl", Some(LOG), After::Content(OTHER))],
        &[log("p/s.jsonl", Some(LOG), After::Appended(LINE))],
        &[plain("w/b.rs", Some("b\n"), After::Gone)],
        #[cfg(unix)]
        &[
            plain("w/link.rs", Some("b.rs"), After::Unlinked),
            plain("w/b.rs", Some("b\n"), After::Content("B\n")),
        ],
    ];
    let mut combinations = Vec::new();
    for changes in OPERATIONS {
        for phase in [Phase::Do, Phase::Undo, Phase::Redo] {
            let (calls, writing_calls) = count(changes, phase, NOTHING);
            for from in 0..calls + 4 {
                let faults = (0..writing_calls + 4).map(|at| Some((at, Fault::Stop)));
                for fault in [None].into_iter().chain(faults) {
                    for writer in [(Writing::Saving, from, 1), (Writing::SavingFirst, from, 6)] {
                        let writer = Some(writer);
                        combinations.push((*changes, phase, Conditions { fault, writer, ..NOTHING }));
                    }
                }
            }
        }
    }
    // In debug builds only a part of the combinations is tried. An odd step visits all kinds of faults.
    let step = if cfg!(debug_assertions) { (combinations.len() / 300) | 1 } else { 1 };
    for (changes, phase, conditions) in combinations.into_iter().step_by(step) {
        let mut world = World::new(changes);
        for earlier in [Phase::Do, Phase::Undo, Phase::Redo].into_iter().take_while(|of| *of != phase) {
            world.perform(earlier, NOTHING).unwrap();
        }
        let result = world.perform(phase, conditions);
        // A file of the person is not called one that the operation has changed.
        let is_stopped = matches!(result, Err(OpError::Stopped { .. }));
        assert!(!is_stopped || phase != Phase::Do || conditions.fault.is_some(), "{result:?}");
        let check = |world: &World| {
            let files = world.files();
            for line in &world.written {
                assert!(
                    files.values().any(|text| text.contains(line)),
                    "lost {line} in {files:#?} after {phase:?} of {changes:?} with {conditions:?}"
                );
            }
        };
        check(&world);
        for next in [Phase::Redo, Phase::Undo, Phase::Redo] {
            let _ = world.perform(next, NOTHING);
            check(&world);
        }
    }
}

/// A program saves a settings file before any call, with a fault at any call. Its text is in a file, and
/// without a fault, it is in the settings together with our change.
#[test]
fn settings_saved_meanwhile_are_not_lost_wherever_it_stops() {
    let update = |disk: &FaultyDisk, path: &Path, removes: bool| {
        update_with(disk, path, |before| {
            let before = before.unwrap_or_default();
            let is_ours = before.ends_with(b"ours");
            Ok::<_, std::io::Error>(match removes {
                true if before == b"old" => FileUpdate::Remove,
                true => FileUpdate::Keep,
                false if is_ours => FileUpdate::Keep,
                false => FileUpdate::Write([before, b"ours"].concat()),
            })
        })
    };
    let mut runs = 0;
    for (before, removes, has_no_exchange) in [
        (None, false, false),
        (Some("old"), false, false),
        (Some("old"), true, false),
        (Some("old"), false, true),
    ] {
        for from in 0..24 {
            let faults =
                (0..16).flat_map(|at| [Fault::Stop, Fault::Error(EIO)].map(|fault| Some((at, fault))));
            for fault in [None].into_iter().chain(faults) {
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join("settings.json");
                if let Some(before) = before {
                    std::fs::write(&path, before).unwrap();
                }
                let writer = Writer {
                    open_file: None,
                    half: None,
                    writing: Writing::Saving,
                    log: path.clone(),
                    from,
                    limit: 2,
                    written: Vec::new(),
                };
                let disk = FaultyDisk::default();
                *disk.plan() = Plan { fault, has_no_exchange, writer: Some(writer), ..Plan::default() };
                let result = update(&disk, &path, removes);
                let written = disk.plan().writer.take().unwrap().written;
                let files = std::fs::read_dir(dir.path()).unwrap().flatten();
                let files: Vec<_> = files.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
                let what = format!("{before:?} {removes} {from} {fault:?} {written:?} {files:?} {result:?}");
                runs += 1;
                // Without an exchange, a save at the very moment is replaced.
                if let Some(last) = written.last().filter(|_| !has_no_exchange) {
                    assert!(files.iter().any(|text| text.contains(last)), "{what}");
                }
                if fault.is_none() {
                    assert!(result.is_ok() && files.len() <= 1, "{what}");
                    let is_there = files.iter().any(|text| text.ends_with("ours"));
                    assert!(removes || is_there || !written.is_empty(), "{what}");
                }
            }
        }
    }
    assert!(runs > 1000);
}

/// The error of an operation, an undo or a redo names the files that were changed and those that were not.
#[test]
fn an_error_says_which_files_were_changed() {
    let mut n_stopped = 0;
    let names = ["restore", "mixed", "move with side files"];
    for (_, changes) in OPERATIONS.iter().filter(|(name, _)| names.contains(name)) {
        for phase in [Phase::Do, Phase::Undo, Phase::Redo] {
            for has_no_links in [false, true] {
                let conditions = Conditions { has_no_links, ..NOTHING };
                let (_, writing_calls) = count(changes, phase, conditions);
                for at in 0..writing_calls {
                    for fault in [Fault::Error(EIO), Fault::Errors(ENOSPC)] {
                        let mut world = World::new(changes);
                        for phase in [Phase::Do, Phase::Undo].into_iter().take_while(|of| *of != phase) {
                            world.perform(phase, conditions).unwrap();
                        }
                        let fault = Some((at, fault));
                        if let Err(error) = world.perform(phase, Conditions { fault, ..conditions }) {
                            n_stopped += usize::from(matches!(error, OpError::Stopped { .. }));
                            world.check_error(phase, &error);
                        }
                    }
                }
            }
        }
    }
    assert!(n_stopped > 100, "{n_stopped}");
}

/// There may be thousands of processes with many open files each.
#[test]
fn the_processes_are_not_examined_for_each_file() {
    let (_, changes) = OPERATIONS.iter().find(|(name, _)| *name == "restore").unwrap();
    let (_, writing_calls) = count(changes, Phase::Do, NOTHING);
    for at in 0..=writing_calls {
        let mut world = World::new(changes);
        let failed = world.perform(Phase::Do, Conditions { fault: Some((at, Fault::Error(EIO))), ..NOTHING });
        let mut scans = vec![world.disk.plan().process_scans];
        if failed.is_ok() {
            for phase in [Phase::Undo, Phase::Redo, Phase::Undo] {
                world.perform(phase, NOTHING).unwrap();
                scans.push(world.disk.plan().process_scans);
            }
        }
        assert!(scans.iter().all(|&scans| scans <= 3), "{at}: {scans:?}");
    }
}

#[test]
fn an_operation_that_stops_names_the_files_that_it_has_written() {
    let mut world = World::new(const { &[log("p/s.jsonl", Some(LOG), After::Moved("q/s.jsonl", OTHER))] });
    let writer = Some((Writing::Holding, 0, usize::MAX));
    let error = world.perform(Phase::Do, Conditions { writer, ..NOTHING }).unwrap_err();
    let OpError::Stopped { changed, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*changed, [world.at("q/s.jsonl")]);
}

/// A receipt that cannot be read is not a missing one: the files may have been changed.
#[test]
fn nothing_is_called_unchanged_because_the_receipt_cannot_be_read() {
    const CHANGES: &[Change] =
        &[plain("w/b.rs", Some("b\n"), After::Content("B\n")), plain("w/c.rs", Some("c\n"), After::Gone)];
    let (_, writing_calls) = count(CHANGES, Phase::Do, NOTHING);
    let mut n_stopped = 0;
    for at in 0..writing_calls {
        let world = World::new(CHANGES);
        let damaging = Writer {
            log: world.operations.folder("a").join("receipt.json"),
            writing: Writing::Saving,
            open_file: None,
            half: None,
            from: 0,
            limit: usize::MAX,
            written: Vec::new(),
        };
        *world.disk.plan() =
            Plan { fault: Some((at, Fault::Errors(EIO))), writer: Some(damaging), ..Plan::default() };
        let error = world.operations.apply(operation("a"), world.steps()).unwrap_err();
        *world.disk.plan() = Plan::default();
        if matches!(error, OpError::NotDone { .. }) {
            assert!(
                CHANGES.iter().all(|change| world.version(change) == Some(Version::Before)),
                "{at}: {error}"
            );
        }
        n_stopped += usize::from(matches!(error, OpError::Stopped { .. }));
    }
    assert!(n_stopped > 0);
}
