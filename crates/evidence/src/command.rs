//! What shell commands did to files: the lists of changes in their results, and what their texts say.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use threadline_entry::Json;
use threadline_entry::lens::BashEditFile;
use threadline_session::{AgentIndex, EntryIndex, Session, SessionFamily, ToolCall, ToolOutcome};
use threadline_shell::{
    CommandEffects, GitStep, OtherChanges, ShellEffect, ShellStep, StepCondition, TextPart,
};

use crate::change::{ContentPart, FileChangeKind, TextStep};
use crate::collect::{Collector, EventPlace, LateEffectKind};
use crate::content::FileContent;
use crate::hunk::{LineHunk, line_hunks, lines_with};
use crate::patch::file_patches;
use crate::timeline::{EvidenceSource, FileEvent, Known, Level, Moment, SparedFiles};
use crate::tracking::{Tracking, command_diff, command_result, is_shell};

/// Messages of git commands that changed no file.
const GIT_DID_NOTHING: &[&str] =
    &["No stash entries found", "No local changes to save", "did not match any file(s) known to git"];

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandEnd {
    Succeeded,
    /// With an exit status other than 0, by itself.
    Failed,
    /// Killed, interrupted, or the log does not say.
    Unknown,
    /// It goes on in the background, until a line of the main log, or longer than the log.
    Background(Option<EntryIndex>),
}

/// A command with what is known of its end.
struct CommandRun<'s> {
    session: &'s Session,
    call: &'s ToolCall,
    place: EventPlace,
    command: Cow<'s, str>,
    end: CommandEnd,
    /// Whether it printed nothing.
    is_silent: bool,
    /// Whether the files that it changed would be listed in its result.
    is_tracked: bool,
    /// Whether it is the first command with such a list since a prompt.
    is_first_list: bool,
    /// What its text says.
    effects: CommandEffects,
}

/// A file or folder that a command copies or moves.
struct FileCopy<'e> {
    from: &'e str,
    to: &'e str,
    /// Whether the destination is below `to` if that is a folder.
    may_be_folder: bool,
    is_move: bool,
}

/// What a command does to one file, according to its text. Without a level, it may not have happened.
struct FileStep {
    file: usize,
    step: TextStep,
    level: Option<Level>,
}

/// A file in the list of changes of a command.
struct ListedFile {
    hunks: Vec<LineHunk>,
    /// `Some(true)` for a created file, `Some(false)` for a deleted one.
    created: Option<bool>,
}

/// Returns the number of shell commands that may have changed files without a trace of how: neither the list
/// of changes in the result nor the text of the command says what they did.
pub fn uncertain_commands(family: &SessionFamily) -> usize {
    let agents = std::iter::once(None).chain(family.agents.indices().map(Some));
    let uncertain = |agent: Option<AgentIndex>| {
        let session = family.session(agent);
        let mut tracking = Tracking::of(session);
        let calls = session.tool_calls().iter().filter(|call| is_shell(call));
        calls
            .filter(|call| {
                let is_tracked = agent.is_none() && tracking.is_on(session, call.entry_idx);
                let place = EventPlace::nowhere(call.entry_idx);
                CommandRun::of(session, call, place, is_tracked).is_some_and(|run| run.is_uncertain())
            })
            .count()
    };
    agents.map(uncertain).sum()
}

impl Collector<'_> {
    /// Adds what a command did.
    pub(crate) fn add_command(
        &mut self,
        session: &Session,
        call: &ToolCall,
        place: EventPlace,
        is_tracked: bool,
    ) {
        let Some(mut run) = CommandRun::of(session, call, place, is_tracked) else { return };
        if let CommandEnd::Background(end) = &mut run.end {
            *end = self.notifications().get(&call.id).copied();
        }
        run.is_first_list = command_diff(session, call).is_some() && self.is_first_list(place.called_at);
        // A command in the background may go on after the comparison.
        let is_over = !matches!(run.end, CommandEnd::Background(_)) && !run.effects.in_background;
        self.in_scanned_call = self.add_scan(&call.id, place) && is_over;
        self.add_run(&run);
        self.in_scanned_call = false;
    }

    fn add_run(&mut self, run: &CommandRun<'_>) {
        let mut listed = self.listed_files(run);
        let (is_skipped, is_tracked) = (run.is_skipped(), run.has_list());
        let effects = &run.effects;
        let until = self.end_moment(run);
        self.in_tracked_call = is_tracked;
        self.add_steps(run, &mut listed, until);
        self.in_tracked_call = false;
        let mut rest: Vec<(usize, ListedFile)> = listed.into_iter().collect();
        rest.sort_by_key(|(file, _)| *file);
        for (file, change) in rest {
            self.add_listed(run, file, change, Vec::new());
        }
        let place = run.place;
        match &effects.other_changes {
            OtherChanges::None => {}
            OtherChanges::Named(names) => self.add_named(place, names, is_tracked, until),
            OtherChanges::Any(names) => {
                if threadline_shell::names_editor(&run.command) || until.is_some() {
                    self.add_named(place, names, is_tracked, until);
                }
                if is_tracked {
                    self.add_revert(place, Level::Likely);
                }
                let spared =
                    SparedFiles { watched: is_tracked && until.is_none(), scanned: self.in_scanned_call };
                self.add_wide(place, until.unwrap_or(place.moment), Level::Likely, spared, None);
            }
        }
        for ShellStep { effect, .. } in effects.steps.iter().filter(|_| !run.git_changed_nothing()) {
            if let ShellEffect::Git { folder, step } = effect {
                self.add_git(place, folder, step, is_tracked, is_skipped);
            }
        }
    }

    /// Returns the moment until which a command in the background may change files. `None` if it ended
    /// before its result.
    fn end_moment(&self, run: &CommandRun<'_>) -> Option<Moment> {
        let position = match run.end {
            CommandEnd::Background(Some(line)) => line,
            CommandEnd::Background(None) => self.family.main.entries().end(),
            _ if run.effects.in_background => self.family.main.entries().end(),
            _ => return None,
        };
        Some(Moment { position, at: i64::MAX, seq: u32::MAX })
    }

    fn add_named(&mut self, place: EventPlace, names: &[String], is_tracked: bool, until: Option<Moment>) {
        // A list of changes does not contain what happens later.
        let spared = SparedFiles { watched: is_tracked && until.is_none(), scanned: self.in_scanned_call };
        let kind = LateEffectKind::MayChange { names: names.to_vec(), spared, until };
        self.add_late(place, kind);
    }

    /// Returns the files in the list of changes. Files that are listed by name only are added as changed.
    fn listed_files(&mut self, run: &CommandRun<'_>) -> HashMap<usize, ListedFile> {
        let mut listed = HashMap::default();
        let Some(diff) = command_diff(run.session, run.call) else { return listed };
        let files = || diff.files().into_iter().flat_map(|files| files.iter());
        for item in files() {
            let Some(path) = item.file_path() else { continue };
            let file = self.file(&path);
            self.timelines.files[file].is_watched = true;
            let created = match (item.created(), item.deleted()) {
                (Some(true), _) => Some(true),
                (_, Some(true)) => Some(false),
                _ => None,
            };
            listed.insert(file, ListedFile { hunks: line_hunks(item.hunks()), created });
        }
        // Large and binary files are listed by name only.
        let with_text: HashSet<Cow<'_, str>> = files().filter_map(BashEditFile::file_path).collect();
        let named = diff.changed_files().into_iter().flat_map(|names| names.iter());
        for path in named.filter(|path| !with_text.contains(path)) {
            let file = self.file(&path);
            self.timelines.files[file].is_watched = true;
            self.add(file, run.place, None, FileChangeKind::Changed);
        }
        listed
    }

    /// Adds the steps of a command in order, each listed file after the last step that changes it.
    fn add_steps(
        &mut self,
        run: &CommandRun<'_>,
        listed: &mut HashMap<usize, ListedFile>,
        until: Option<Moment>,
    ) {
        let effects = &run.effects;
        let mut steps = Vec::new();
        // What git does after a step may undo it.
        let is_git =
            |step: &ShellStep| matches!(&step.effect, ShellEffect::Git { step, .. } if changes_files(step));
        let last_git = effects.steps.iter().rposition(is_git);
        for (n, ShellStep { effect, condition }) in effects.steps.iter().enumerate() {
            // What a command in the background does cannot be placed.
            let is_final = until.is_none() && last_git.is_none_or(|last| last < n);
            let level = if is_final { run.step_level(*condition) } else { None };
            self.file_steps(run, effect, level, &mut steps);
        }
        let mut last: HashMap<usize, usize> = HashMap::default();
        for (n, step) in steps.iter().enumerate() {
            last.insert(step.file, n);
        }
        // Steps confirm a list only if nothing else in the command changes the file.
        let is_complete = matches!(effects.other_changes, OtherChanges::None);
        let mut own: HashMap<usize, Vec<TextStep>> = HashMap::default();
        for (n, FileStep { file, step, level }) in steps.into_iter().enumerate() {
            if !listed.contains_key(&file) {
                match (step, level) {
                    (TextStep::Unknown, Some(_)) => self.add(file, run.place, None, FileChangeKind::Changed),
                    (step, Some(level)) => self.add_step(file, run.place, step, Some(level)),
                    (_, None) => {
                        let path = self.timelines.files[file].path.clone();
                        self.add_named(run.place, &[path], run.has_list(), until);
                    }
                }
                continue;
            }
            let confirms = is_complete && level == Some(Level::Exact);
            own.entry(file).or_default().push(if confirms { step } else { TextStep::Unknown });
            if last.get(&file) == Some(&n)
                && let Some(change) = listed.remove(&file)
            {
                let steps = own.remove(&file).unwrap_or_default();
                self.add_listed(run, file, change, steps);
            }
        }
    }

    /// Adds a file of the list of changes.
    fn add_listed(&mut self, run: &CommandRun<'_>, file: usize, change: ListedFile, steps: Vec<TextStep>) {
        let ListedFile { hunks, created } = change;
        let whole = |sign: char| {
            let text = lines_with(sign, &hunks);
            // Bytes that are not text are listed as replacement characters.
            (!text.contains('\u{fffd}')).then_some(text)
        };
        // Lists whose first line is 0 do not say whether the file ends with a newline.
        let is_plain = |text: &str| text.contains('\n') && !text.contains('\r');
        let level = |text: &str, start: u64| match start {
            _ if text.is_empty() => Level::Exact,
            0 => Level::Likely,
            _ if is_plain(text) => Level::Exact,
            _ => Level::Likely,
        };
        let (before, change) = match created {
            Some(true) => {
                let start = hunks.first().map_or(1, |hunk| hunk.old_start);
                let text = whole('+');
                let known = text.map(|text| {
                    let level = level(&text, start);
                    Known::new(FileContent::bytes(text.into_bytes()), level, EvidenceSource::CommandDiff)
                });
                let absent = Known::exact(FileContent::Absent, EvidenceSource::CommandDiff);
                (Some(absent), FileChangeKind::Created { known, steps })
            }
            Some(false) => {
                let start = hunks.first().map_or(1, |hunk| hunk.new_start);
                // The newline at the end of a text that was read before may be missing.
                let known = whole('-').map(|text| {
                    let level = if text.ends_with('\n') { level(&text, start) } else { Level::Likely };
                    Known::new(FileContent::bytes(text.into_bytes()), level, EvidenceSource::CommandDiff)
                });
                let absent = Known::exact(FileContent::Absent, EvidenceSource::CommandDiff);
                (known, FileChangeKind::Become(absent))
            }
            None => (None, FileChangeKind::Diff { hunks: hunks.into(), steps, is_first: run.is_first_list }),
        };
        self.add(file, run.place, before, change);
    }

    /// Adds a git command. Its changes are in the list of changes, if there is one.
    fn add_git(
        &mut self,
        place: EventPlace,
        folder: &str,
        step: &GitStep,
        is_tracked: bool,
        is_skipped: bool,
    ) {
        if !changes_files(step) {
            return;
        }
        let level = Level::Suspect;
        if is_tracked && !is_skipped {
            return self.add_revert(place, level);
        }
        let paths = match step {
            GitStep::Restore { paths, .. } | GitStep::Remove { paths, .. } | GitStep::Stash { paths, .. } => {
                paths
            }
            _ => &Vec::new(),
        };
        if paths.is_empty() {
            let spared = SparedFiles { watched: false, scanned: self.in_scanned_call };
            return self.add_wide(place, place.moment, level, spared, Some(folder));
        }
        self.add_named(place, paths, false, None);
    }

    /// Adds the changes of single files in one effect of a command.
    fn file_steps(
        &mut self,
        run: &CommandRun<'_>,
        effect: &ShellEffect,
        mut level: Option<Level>,
        steps: &mut Vec<FileStep>,
    ) {
        let (file, step) = match effect {
            ShellEffect::Write { path, text } => (self.file(path), TextStep::Write(text.clone())),
            ShellEffect::Append { path, text } => (self.file(path), TextStep::Append(text.clone())),
            ShellEffect::Touch { path } => (self.file(path), TextStep::Touch),
            ShellEffect::Truncate { path, length } => (self.file(path), TextStep::Truncate(*length)),
            ShellEffect::Substitute { path, script } => {
                (self.file(path), TextStep::Substitute(script.clone()))
            }
            ShellEffect::Change { path } => (self.file(path), TextStep::Unknown),
            ShellEffect::Compose { path, parts, is_append } => {
                let part = |part: &TextPart| match part {
                    TextPart::Text(text) => ContentPart::Text(text.clone()),
                    TextPart::File(path) => ContentPart::File(self.file(path)),
                };
                let parts = parts.iter().map(part).collect();
                (self.file(path), TextStep::Compose { parts, is_append: *is_append })
            }
            ShellEffect::Remove { path, is_recursive } => {
                if *is_recursive {
                    self.add_late(run.place, LateEffectKind::RemoveFolder { path: path.clone(), level });
                    // Only a path that other events name is that of a file.
                    if self.known_file(path).is_none() {
                        return;
                    }
                }
                (self.file(path), TextStep::Remove)
            }
            ShellEffect::Link { path, target, may_be_folder } => {
                if *may_be_folder {
                    level = level.map(|level| level.min(self.name_level(path)));
                }
                (self.file(path), TextStep::Link(target.clone()))
            }
            ShellEffect::HardLink { path, from, .. } => {
                // Later changes of one name change the other, which is not followed.
                level = level.map(|level| level.min(Level::Likely));
                (self.file(path), TextStep::CopyOf(self.file(from)))
            }
            ShellEffect::Copy { from, to, may_be_folder, is_recursive } => {
                let copy = FileCopy { from, to, may_be_folder: *may_be_folder, is_move: false };
                return self.copy_steps(run, &copy, *is_recursive, level, steps);
            }
            ShellEffect::Move { from, to, may_be_folder }
            | ShellEffect::Git { step: GitStep::Move { from, to, may_be_folder }, .. } => {
                let copy = FileCopy { from, to, may_be_folder: *may_be_folder, is_move: true };
                return self.copy_steps(run, &copy, true, level, steps);
            }
            ShellEffect::Patch { text, strip, folder, is_reverse } => {
                let patches = file_patches(text, *strip, folder, *is_reverse).into_iter();
                let step =
                    |(path, step): (String, TextStep)| FileStep { file: self.file(&path), step, level };
                return steps.extend(patches.map(step));
            }
            ShellEffect::Git { .. } => return,
        };
        steps.push(FileStep { file, step, level });
    }

    /// Adds the steps of a copy or a move. Those of a folder are left until all files are known.
    fn copy_steps(
        &mut self,
        run: &CommandRun<'_>,
        copy: &FileCopy<'_>,
        is_recursive: bool,
        mut level: Option<Level>,
        steps: &mut Vec<FileStep>,
    ) {
        let FileCopy { from, to, may_be_folder, is_move } = *copy;
        let mut to = to.to_owned();
        if may_be_folder {
            // The destination is a folder if it was one before this command.
            let position = run.place.moment.position;
            let is_earlier = |event: &FileEvent| event.moment.position < position;
            let files = &self.timelines.files;
            match self.files_below(&to).iter().any(|(_, file)| files[*file].events.iter().any(is_earlier)) {
                true => to = format!("{to}/{}", from.rsplit('/').next().unwrap_or(from)),
                false => level = level.map(|level| level.min(self.name_level(&to))),
            }
        }
        if is_recursive && !self.files_below(from).is_empty() {
            let kind = LateEffectKind::CopyFolder { from: from.to_owned(), to, is_move, level };
            return self.add_late(run.place, kind);
        }
        let source = self.file(from);
        steps.push(FileStep { file: self.file(&to), step: TextStep::CopyOf(source), level });
        if is_move {
            steps.push(FileStep { file: source, step: TextStep::Remove, level });
        }
    }

    /// Returns how certain it is that a path is not that of a folder: the text of a command does not say.
    fn name_level(&self, path: &str) -> Level {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_file = self.known_file(path).is_some() || name.trim_start_matches('.').contains('.');
        if is_file { Level::Exact } else { Level::Likely }
    }
}

impl<'s> CommandRun<'s> {
    /// Returns a command that was run. `None` for one that was denied.
    fn of(session: &'s Session, call: &'s ToolCall, place: EventPlace, is_tracked: bool) -> Option<Self> {
        let outcome = call.outcome(session);
        if outcome == ToolOutcome::Denied {
            return None;
        }
        let input = call.block(session)?.input()?;
        let command = input.get("command").and_then(Json::as_str).unwrap_or_default();
        let end = command_end(session, call, input, outcome);
        let text = call.result(session).and_then(|result| result.content()).map(|content| content.text());
        let is_silent = text.is_some_and(|text| is_silent_result(&text));
        let is_tracked = is_tracked && end == CommandEnd::Succeeded;
        let cwd = session.entries()[call.entry_idx].cwd().or_else(|| session.first_cwd());
        let effects = match &*call.name {
            "PowerShell" => threadline_shell::powershell_effects(&command),
            _ => threadline_shell::file_effects(&command, &cwd.unwrap_or_default(), None),
        };
        let is_first_list = false;
        Some(Self { session, call, place, command, end, is_silent, is_tracked, is_first_list, effects })
    }

    /// Returns whether Claude Code did not look at what the command changed.
    fn is_skipped(&self) -> bool {
        command_diff(self.session, self.call).is_some_and(|diff| diff.skipped() == Some(true))
    }

    /// Returns whether the files that the command changed are listed in its result, if it changed any.
    fn has_list(&self) -> bool {
        (self.is_tracked || command_diff(self.session, self.call).is_some()) && !self.is_skipped()
    }

    /// Returns whether git says that it had nothing to do, in a command of one git step.
    fn git_changed_nothing(&self) -> bool {
        let text = self.call.result(self.session).and_then(|result| result.content());
        let text = text.map(|content| content.text()).unwrap_or_default();
        self.command.matches("git").count() == 1
            && GIT_DID_NOTHING.iter().any(|message| text.contains(message))
    }

    /// Returns whether the command may have ended before its last step.
    fn may_end_early(&self) -> bool {
        let mut words = self.command.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        words.any(|word| matches!(word, "exit" | "return" | "exec" | "set" | "kill" | "trap" | "logout"))
    }

    /// Returns whether the command may have changed files without a trace of how.
    fn is_uncertain(&self) -> bool {
        if self.has_list() {
            return false;
        }
        let effects = &self.effects;
        let is_known = |step: &ShellStep| match &step.effect {
            ShellEffect::Git { step, .. } => matches!(step, GitStep::Commit { .. } | GitStep::Add { .. }),
            ShellEffect::Change { .. } => false,
            _ => self.step_level(step.condition).is_some() && !matches!(self.end, CommandEnd::Background(_)),
        };
        effects.other_changes != OtherChanges::None || !effects.steps.iter().all(is_known)
    }

    /// Returns how certain it is that a step happened. `None` if it may not have.
    fn step_level(&self, condition: StepCondition) -> Option<Level> {
        match (self.end, condition) {
            (CommandEnd::Succeeded, StepCondition::IfSucceeded) => Some(Level::Exact),
            (CommandEnd::Succeeded, StepCondition::IfSilent) if self.is_silent => Some(Level::Exact),
            // A command that failed did the steps before, unless it ended at one of them.
            (CommandEnd::Failed, StepCondition::IfSilent) if self.is_silent && !self.may_end_early() => {
                Some(Level::Exact)
            }
            (CommandEnd::Succeeded, StepCondition::IfSilent) => Some(Level::Likely),
            _ => None,
        }
    }
}

fn command_end(session: &Session, call: &ToolCall, input: Json<'_>, outcome: ToolOutcome) -> CommandEnd {
    let asked = input.get("run_in_background").and_then(Json::as_bool) == Some(true);
    let moved = command_result(session, call).is_some_and(|result| result.background_task_id().is_some());
    if asked || moved {
        return CommandEnd::Background(None);
    }
    let error = || {
        let text = call.result(session)?.content()?.text();
        let code = text.trim_start_matches("Error: ").strip_prefix("Exit code ")?;
        code.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    match outcome {
        ToolOutcome::Ok => CommandEnd::Succeeded,
        // From 126 on, the shell did not run the command, or a signal ended it.
        ToolOutcome::Error if error().is_some_and(|code| code < 126) => CommandEnd::Failed,
        _ => CommandEnd::Unknown,
    }
}

/// Returns whether a git command may change files of the working tree.
fn changes_files(step: &GitStep) -> bool {
    match step {
        GitStep::Commit { .. } | GitStep::Add { .. } | GitStep::Move { .. } => false,
        GitStep::Remove { is_cached, .. } => !is_cached,
        GitStep::Restore { in_worktree, .. } => *in_worktree,
        GitStep::Stash { .. } | GitStep::StashPop { .. } | GitStep::Switch { .. } | GitStep::Other => true,
    }
}

/// Returns whether the text of a result says that the command printed nothing.
fn is_silent_result(text: &str) -> bool {
    let text = text.trim_start_matches("Error: ");
    let text = text
        .strip_prefix("Exit code ")
        .map_or(text, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    matches!(text.trim(), "" | "(Bash completed with no output)" | "(No content)")
}
