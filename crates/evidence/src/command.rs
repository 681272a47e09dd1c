//! What shell commands did to files: the lists of changes in their results, and what their texts say.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use threadline_entry::Json;
use threadline_entry::lens::BashEditFile;
use threadline_session::{AgentIndex, EntryIndex, Session, SessionFamily, ToolCall, ToolOutcome};
use threadline_shell::{
    CommandEffects, GitSource, GitStep, OtherChanges, ShellEffect, ShellStep, StepCondition, TextPart,
};

use crate::change::{ContentPart, FileChangeKind, TextStep};
use crate::collect::{Collector, EventPlace, LateEffect, LateEffectKind};
use crate::content::FileContent;
use crate::hunk::{LineHunk, line_hunks, lines_with};
use crate::patch::file_patches;
use crate::timeline::{EvidenceSource, FileEvent, Known, Level, Moment, SparedFiles};
use crate::tracking::{Tracking, command_diff, command_result, is_shell};

/// Programs that run a script, and programs that change the files that they name.
const EDITORS: &[&str] = &[
    "add-content",
    "autopep",
    "awk",
    "biome",
    "black",
    "bun",
    "clang-format",
    "clear-content",
    "copy-item",
    "dd",
    "deno",
    "dos2unix",
    "dprint",
    "ed",
    "emacs",
    "eslint",
    "ex",
    "find",
    "gawk",
    "gofmt",
    "goimports",
    "isort",
    "jq",
    "julia",
    "lua",
    "make",
    "mawk",
    "move-item",
    "nawk",
    "new-item",
    "node",
    "nvim",
    "out-file",
    "parallel",
    "patch",
    "perl",
    "php",
    "prettier",
    "python",
    "remove-item",
    "rename-item",
    "rscript",
    "ruby",
    "ruff",
    "rustfmt",
    "sd",
    "sed",
    "set-content",
    "shfmt",
    "sort",
    "source",
    "sponge",
    "tar",
    "tclsh",
    "tsx",
    "unix2dos",
    "unzip",
    "vi",
    "vim",
    "writealllines",
    "writealltext",
    "xargs",
    "yq",
];

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
            *end = self.notified_at(&call.id);
        }
        run.is_first_list = command_diff(session, call).is_some() && self.is_first_list(place.called_at);
        // A command in the background may go on after the comparison.
        let is_over = !matches!(run.end, CommandEnd::Background(_)) && !run.effects().in_background;
        self.in_scanned_call = self.add_scan(&call.id, place) && is_over;
        self.add_run(&run);
        self.in_scanned_call = false;
    }

    /// Returns the line that reports the end of a command in the background.
    fn notified_at(&self, call_id: &str) -> Option<EntryIndex> {
        let mark = format!("<tool-use-id>{call_id}</tool-use-id>");
        let entries = self.family.main.entries();
        entries
            .find_index(|entry| entry.text().contains("<task-notification>") && entry.text().contains(&mark))
    }

    fn add_run(&mut self, run: &CommandRun<'_>) {
        let mut listed = self.listed_files(run);
        let (is_skipped, is_tracked) = (run.is_skipped(), run.has_list());
        let effects = run.effects();
        let until = self.end_moment(run, &effects);
        // What a command in the background does cannot be placed.
        self.in_tracked_call = is_tracked;
        self.add_steps(run, &effects, &mut listed, until);
        self.in_tracked_call = false;
        for (file, change) in listed {
            self.add_listed(run, file, change, Vec::new());
        }
        let place = run.place;
        match &effects.other_changes {
            OtherChanges::None => {}
            OtherChanges::Named(names) => self.add_named(place, names, is_tracked, until),
            OtherChanges::Any(names) => {
                if run.may_edit_named_files() || until.is_some() {
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
    fn end_moment(&self, run: &CommandRun<'_>, effects: &CommandEffects) -> Option<Moment> {
        let position = match run.end {
            CommandEnd::Background(Some(line)) => line,
            CommandEnd::Background(None) => self.family.main.entries().end(),
            _ if effects.in_background => self.family.main.entries().end(),
            _ => return None,
        };
        Some(Moment { position, at: i64::MAX, seq: u32::MAX })
    }

    fn add_named(&mut self, place: EventPlace, names: &[String], is_tracked: bool, until: Option<Moment>) {
        // A list of changes does not contain what happens later.
        let spared = SparedFiles { watched: is_tracked && until.is_none(), scanned: self.in_scanned_call };
        let kind = LateEffectKind::MayChange { names: names.to_vec(), spared, until };
        self.late.push(LateEffect { place, is_scanned: self.in_scanned_call, kind });
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
        effects: &CommandEffects,
        listed: &mut HashMap<usize, ListedFile>,
        until: Option<Moment>,
    ) {
        let mut steps = Vec::new();
        // What git does after a step may undo it.
        let is_git =
            |step: &ShellStep| matches!(&step.effect, ShellEffect::Git { step, .. } if changes_files(step));
        let last_git = effects.steps.iter().rposition(is_git);
        for (n, ShellStep { effect, condition }) in effects.steps.iter().enumerate() {
            let is_final = until.is_none() && last_git.is_none_or(|last| last < n);
            let level = if is_final { run.step_level(*condition) } else { None };
            self.file_steps(run, effect, level, &mut steps);
        }
        let mut last: HashMap<usize, usize> = HashMap::default();
        for (n, (file, ..)) in steps.iter().enumerate() {
            last.insert(*file, n);
        }
        // Steps confirm a list only if nothing else in the command changes the file.
        let is_complete = matches!(effects.other_changes, OtherChanges::None);
        let mut own: HashMap<usize, Vec<TextStep>> = HashMap::default();
        for (n, (file, step, level)) in steps.into_iter().enumerate() {
            if !listed.contains_key(&file) {
                match (step, level) {
                    (Some(step), Some(level)) => self.add_step(file, run.place, step, Some(level)),
                    (None, Some(_)) => self.add(file, run.place, None, FileChangeKind::Changed),
                    (_, None) => {
                        let path = self.timelines.files[file].path.clone();
                        self.add_named(run.place, &[path], run.has_list(), until);
                    }
                }
                continue;
            }
            let confirms = is_complete && step.is_some() && level == Some(Level::Exact);
            let list = own.entry(file).or_default();
            match step.filter(|_| confirms) {
                Some(step) => list.push(step),
                None => list.push(TextStep::Unknown),
            }
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
        let (paths, level) = match step {
            GitStep::Commit { .. } | GitStep::Add { .. } => return,
            GitStep::Remove { is_cached: true, .. } => return,
            GitStep::Restore { in_worktree: false, .. } => return,
            GitStep::Restore { paths, source: GitSource::Index | GitSource::Revision(_), .. }
            | GitStep::Remove { paths, .. }
            | GitStep::Stash { paths, .. } => (&paths[..], Level::Suspect),
            GitStep::Move { .. } => return,
            GitStep::StashPop { .. } | GitStep::Switch { .. } | GitStep::Other => (&[][..], Level::Suspect),
        };
        if is_tracked && !is_skipped {
            return self.add_revert(place, level);
        }
        if paths.is_empty() {
            let spared = SparedFiles { watched: false, scanned: self.in_scanned_call };
            return self.add_wide(place, place.moment, level, spared, Some(folder));
        }
        self.add_named(place, paths, false, None);
    }

    /// Adds the changes of single files in one effect of a command. A step of `None` is a change that the
    /// text does not determine.
    fn file_steps(
        &mut self,
        run: &CommandRun<'_>,
        effect: &ShellEffect,
        level: Option<Level>,
        steps: &mut Vec<(usize, Option<TextStep>, Option<Level>)>,
    ) {
        let late = |collector: &mut Self, kind: LateEffectKind| {
            let is_scanned = collector.in_scanned_call;
            collector.late.push(LateEffect { place: run.place, is_scanned, kind });
        };
        match effect {
            ShellEffect::Write { path, text } => {
                steps.push((self.file(path), Some(TextStep::Write(text.clone())), level));
            }
            ShellEffect::Append { path, text } => {
                steps.push((self.file(path), Some(TextStep::Append(text.clone())), level));
            }
            ShellEffect::Compose { path, parts, is_append } => {
                let part = |part: &TextPart| match part {
                    TextPart::Text(text) => ContentPart::Text(text.clone()),
                    TextPart::File(path) => ContentPart::File(self.file(path)),
                };
                let parts = parts.iter().map(part).collect();
                let step = TextStep::Compose { parts, is_append: *is_append };
                steps.push((self.file(path), Some(step), level));
            }
            ShellEffect::Remove { path, is_recursive } => {
                if *is_recursive {
                    late(self, LateEffectKind::RemoveFolder { path: path.clone(), level });
                }
                if !is_recursive || self.known_file(path).is_some() {
                    steps.push((self.file(path), Some(TextStep::Remove), level));
                }
            }
            ShellEffect::Copy { from, to, may_be_folder, is_recursive } => {
                self.copy_steps(run, [from, to], *may_be_folder, *is_recursive, false, level, steps);
            }
            ShellEffect::Move { from, to, may_be_folder }
            | ShellEffect::Git { step: GitStep::Move { from, to, may_be_folder }, .. } => {
                self.copy_steps(run, [from, to], *may_be_folder, true, true, level, steps);
            }
            ShellEffect::Link { path, target, may_be_folder } => {
                let level =
                    if *may_be_folder { level.map(|level| level.min(self.name_level(path))) } else { level };
                steps.push((self.file(path), Some(TextStep::Link(target.clone())), level));
            }
            ShellEffect::HardLink { path, from, .. } => {
                // Later changes of one name change the other, which is not followed.
                let step = TextStep::CopyOf(self.file(from));
                steps.push((self.file(path), Some(step), level.map(|level| level.min(Level::Likely))));
            }
            ShellEffect::Touch { path } => steps.push((self.file(path), Some(TextStep::Touch), level)),
            ShellEffect::Truncate { path, length } => {
                steps.push((self.file(path), Some(TextStep::Truncate(*length)), level));
            }
            ShellEffect::Substitute { path, script } => {
                steps.push((self.file(path), Some(TextStep::Substitute(script.clone())), level));
            }
            ShellEffect::Patch { text, strip, folder, is_reverse } => {
                for (path, step) in file_patches(text, *strip, folder, *is_reverse) {
                    steps.push((self.file(&path), step, level));
                }
            }
            ShellEffect::Change { path } => steps.push((self.file(path), None, level)),
            ShellEffect::Git { .. } => {}
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of two effects that differ in one of them")]
    fn copy_steps(
        &mut self,
        run: &CommandRun<'_>,
        [from, to]: [&String; 2],
        may_be_folder: bool,
        is_recursive: bool,
        is_move: bool,
        level: Option<Level>,
        steps: &mut Vec<(usize, Option<TextStep>, Option<Level>)>,
    ) {
        // The destination counts as a folder if it was one before this command.
        let is_folder = |collector: &Self, path: &str, is_older: bool| {
            let below = format!("{path}/");
            let mut files = collector.timelines.files.iter();
            let is_earlier = |event: &FileEvent| event.moment.position < run.place.moment.position;
            files.any(|file| {
                file.path.starts_with(&below) && (!is_older || file.events.iter().any(is_earlier))
            })
        };
        let mut to = to.clone();
        let mut level = level;
        if may_be_folder {
            match is_folder(self, &to, true) {
                true => to = format!("{to}/{}", from.rsplit('/').next().unwrap_or(from)),
                false => level = level.map(|level| level.min(self.name_level(&to))),
            }
        }
        if is_recursive && is_folder(self, from, false) {
            let kind = LateEffectKind::CopyFolder { from: from.clone(), to, is_move, level };
            return self.late.push(LateEffect { place: run.place, is_scanned: self.in_scanned_call, kind });
        }
        let source = self.file(from);
        steps.push((self.file(&to), Some(TextStep::CopyOf(source)), level));
        if is_move {
            steps.push((source, Some(TextStep::Remove), level));
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
        Some(Self { session, call, place, command, end, is_silent, is_tracked, is_first_list: false })
    }

    /// Returns whether Claude Code did not look at what the command changed.
    fn is_skipped(&self) -> bool {
        command_diff(self.session, self.call).is_some_and(|diff| diff.skipped() == Some(true))
    }

    /// Returns whether the files that the command changed are listed in its result, if it changed any.
    fn has_list(&self) -> bool {
        (self.is_tracked || command_diff(self.session, self.call).is_some()) && !self.is_skipped()
    }

    /// Returns what the text of the command says.
    fn effects(&self) -> CommandEffects {
        let cwd = self.session.entries()[self.call.entry_idx].cwd().or_else(|| self.session.first_cwd());
        let cwd = cwd.unwrap_or_default();
        match &*self.call.name {
            "PowerShell" => threadline_shell::powershell_effects(&self.command),
            _ => threadline_shell::file_effects(&self.command, &cwd, None),
        }
    }

    /// Returns whether git says that it had nothing to do, in a command of one git step.
    fn git_changed_nothing(&self) -> bool {
        let text = self.call.result(self.session).and_then(|result| result.content());
        let text = text.map(|content| content.text()).unwrap_or_default();
        self.command.matches("git").count() == 1
            && GIT_DID_NOTHING.iter().any(|message| text.contains(message))
    }

    /// Returns whether a program in the command is one that people use to change the files that it names.
    fn may_edit_named_files(&self) -> bool {
        let mut words = self.command.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'));
        words.any(|word| {
            let name = word
                .strip_suffix(".exe")
                .unwrap_or(word)
                .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            EDITORS.contains(&&*name.to_ascii_lowercase())
        })
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
        let effects = self.effects();
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
