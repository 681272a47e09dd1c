//! Comparison of two conversations: two sessions, or two branches of one.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::AddAssign;

use threadline_entry::Millis;
use threadline_evidence::{CallPlace, FileEvidence};
use threadline_session::{Branch, EntryIndex, Session};
use threadline_store::SessionFile;
use threadline_usage::UsageTotals;
use threadline_view::humanize::{plural, short_id};
use threadline_view::wire::{
    CompareObject, ComparedFileObject, ComparedPromptObject, ComparedToolObject, ConversationObject,
    ProducedFileObject, TokensObject, exact, moment,
};
use threadline_view::{
    AgentView, BranchView, FileChange, Hunk, InheritedCalls, ItemBody, OutlineLine, TranscriptHeader,
    TranscriptItem, TranscriptPart, TurnTiming, TurnView, changes_by, unified,
};

use crate::config::App;
use crate::error::AppError;
use crate::file_sources::SessionSources;
use crate::find::split_anchor;
use crate::load::{MainLines, OpenSession};
use crate::restore::relative_label;

/// Why conversations could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The session has no conversation with this line.
    #[error("{anchor} is in no conversation of {session}")]
    NoBranch {
        /// The session.
        session: String,
        /// The anchor.
        anchor: String,
    },
    /// A session could not be found or read.
    #[error(transparent)]
    App(#[from] AppError),
}

/// A conversation of a session: the active one, or the branch that contains a line.
#[derive(Clone, Debug)]
pub struct ConversationName {
    /// The session.
    pub file: SessionFile,
    /// The anchor of a line, such as `m42`; `None` for the active conversation.
    pub anchor: Option<String>,
}

/// Two conversations.
#[derive(Debug)]
pub struct Comparison {
    /// The conversations.
    pub sides: [ComparedConversation; 2],
    /// The number of turns that both have in common, at the beginning.
    pub shared_turns: usize,
    /// The files that at least one of them changed, sorted by name.
    pub files: Vec<ComparedFile>,
    /// Sub-agents that could not be read.
    pub unread: Vec<AppError>,
}

/// The figures of one conversation.
#[derive(Debug)]
pub struct ComparedConversation {
    /// The session.
    pub session: SessionFile,
    /// The title.
    pub title: Option<String>,
    /// The anchor of the first turn of an abandoned branch; `None` for the active conversation.
    pub branch: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The branch of git.
    pub git_branch: Option<String>,
    /// The models, in order of first use.
    pub models: Vec<String>,
    /// The prompts.
    pub prompts: Vec<ComparedPrompt>,
    /// Tokens and costs, with sub-agents.
    pub spent: UsageTotals,
    /// The number of errors, with sub-agents.
    pub errors: usize,
    /// The number of sub-agents. Those that no call started belong to the active conversation.
    pub n_agents: usize,
    /// The number of branches of the session that are not part of this conversation: if it is zero, the
    /// figures are those of the session.
    pub n_other_branches: usize,
    /// The calls that another session made. They are part of `spent`, unlike in lists.
    pub inherited: Option<InheritedCalls>,
    /// When the session started.
    pub started: Option<Millis>,
    /// The number of compactions.
    pub compactions: usize,
    /// The calls of each tool, with those of sub-agents.
    pub tools: BTreeMap<String, ToolTally>,
    /// The start of the first turn and the end of the last one.
    pub span: Option<(Millis, Millis)>,
    /// The breakdown of the time.
    pub timing: TurnTiming,
}

/// One prompt of a conversation.
#[derive(Clone, Debug)]
pub struct ComparedPrompt {
    /// The number of the turn, from 1.
    pub turn: usize,
    /// The anchor.
    pub anchor: String,
    /// The first line of the prompt.
    pub title: String,
    /// Whether the other conversation begins with the same turns.
    pub is_shared: bool,
    /// The cost of the turn.
    pub spent: UsageTotals,
    /// The duration of the turn.
    pub duration: Option<Millis>,
    started: Option<Millis>,
}

/// The calls of one tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolTally {
    /// The number of calls.
    pub calls: usize,
    /// The number of calls that failed.
    pub errors: usize,
    /// The time that they took.
    pub duration: Millis,
}

impl AddAssign for ToolTally {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.duration += other.duration;
    }
}

/// A file that at least one conversation changed.
#[derive(Debug)]
pub struct ComparedFile {
    /// The path below the working directory.
    pub label: String,
    /// The net change by each conversation; `None` if it did not change the file.
    pub changes: [Option<FileChange>; 2],
}

/// How the files that two conversations produced relate to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum FileRelation {
    Same,
    Different,
    OnlyA,
    OnlyB,
    /// The log does not contain the whole text.
    Unknown,
}

impl FileRelation {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::OnlyA => "only_a",
            Self::OnlyB => "only_b",
            Self::Unknown => "unknown",
        }
    }
}

impl ComparedFile {
    /// Returns how the two files relate.
    pub fn relation(&self) -> FileRelation {
        let is_partial = |change: &FileChange| !change.has_whole();
        match &self.changes {
            [Some(a), Some(b)] if is_partial(a) || is_partial(b) => FileRelation::Unknown,
            [Some(a), Some(b)] if a.after == b.after => FileRelation::Same,
            [Some(_), Some(_)] => FileRelation::Different,
            [Some(_), None] => FileRelation::OnlyA,
            _ => FileRelation::OnlyB,
        }
    }

    /// Returns the texts to compare: those that both produced, or those before and after the change by one.
    pub fn texts(&self) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
        let after = |change: &'_ FileChange| change.text_after().unwrap_or_default().into_owned();
        match (self.relation(), &self.changes) {
            (FileRelation::Different, [Some(a), Some(b)]) => Some((after(a).into(), after(b).into())),
            (FileRelation::OnlyA | FileRelation::OnlyB, [Some(change), None] | [None, Some(change)]) => {
                let before = || change.text_before().unwrap_or_default();
                change.has_whole().then(|| (before(), change.text_after().unwrap_or_default()))
            }
            _ => None,
        }
    }

    /// Returns the names of the two texts.
    pub fn text_names(&self) -> (String, String) {
        let label = self.label.replace('\\', "/");
        let label = label.trim_start_matches('/');
        match self.relation() {
            FileRelation::OnlyA => (format!("before/{label}"), format!("a/{label}")),
            FileRelation::OnlyB => (format!("before/{label}"), format!("b/{label}")),
            _ => (format!("a/{label}"), format!("b/{label}")),
        }
    }

    /// Returns the difference in the format of `diff -u`; empty if there is none or it is unknown.
    pub fn patch(&self) -> String {
        let (from, to) = self.text_names();
        self.texts().map(|(old, new)| unified(&old, &new, (&from, &to))).unwrap_or_default()
    }
}

impl App {
    /// Finds a conversation by the name of a session, with `#m42` for the branch that contains line 42.
    ///
    /// # Errors
    ///
    /// Those of [`App::find`].
    pub fn find_conversation(&self, name: &str) -> Result<ConversationName, AppError> {
        let (name, anchor) = split_anchor(name);
        Ok(ConversationName { file: self.find(name)?, anchor: anchor.map(str::to_owned) })
    }

    /// Compares two conversations.
    ///
    /// # Errors
    ///
    /// [`CompareError::NoBranch`] if a line is in no conversation, and errors of loading.
    pub fn compare(&self, names: [&ConversationName; 2]) -> Result<Comparison, CompareError> {
        let mut unread = Vec::new();
        let mut read = |name: &ConversationName| -> Result<_, CompareError> {
            let mut loaded = self.load(&name.file)?;
            unread.append(&mut loaded.unread);
            let chosen = ChosenConversation::of(&loaded, name.anchor.as_deref())?;
            let figures = chosen.figures(&loaded).ok_or_else(|| chosen.not_found(&loaded))?;
            let changes = chosen.changes(&loaded, figures.cwd.as_deref());
            Ok((figures, changes))
        };
        let ((a, files_a), (b, files_b)) = (read(names[0])?, read(names[1])?);
        let mut sides = [a, b];
        for side in &mut sides {
            let names = [&mut side.title, &mut side.cwd, &mut side.git_branch];
            let names = names.into_iter().flatten().chain(&mut side.models);
            names.for_each(|name| self.mask_string(name));
            // Several tools may have the same name when it is masked.
            for (tool, tally) in std::mem::take(&mut side.tools) {
                *side.tools.entry(self.masked(&tool).into_owned()).or_default() += tally;
            }
        }
        let shared_turns = mark_shared(&mut sides);
        Ok(Comparison { sides, shared_turns, files: pair_files(files_a, files_b), unread })
    }
}

/// Marks the turns that both conversations begin with. Returns their number.
fn mark_shared(sides: &mut [ComparedConversation; 2]) -> usize {
    let [a, b] = sides;
    // A copied line keeps its time. Without one, equal prompts may be a coincidence.
    let is_same = |(a, b): &(&ComparedPrompt, &ComparedPrompt)| {
        a.started.is_some() && a.started == b.started && a.title == b.title
    };
    let shared = a.prompts.iter().zip(&b.prompts).take_while(is_same).count();
    for side in [a, b] {
        side.prompts.iter_mut().take(shared).for_each(|prompt| prompt.is_shared = true);
    }
    shared
}

fn pair_files(a: Vec<(String, FileChange)>, b: Vec<(String, FileChange)>) -> Vec<ComparedFile> {
    let mut files: BTreeMap<String, [Option<FileChange>; 2]> = BTreeMap::new();
    for (side, changes) in [a, b].into_iter().enumerate() {
        for (label, change) in changes {
            files.entry(label).or_default()[side] = Some(change);
        }
    }
    files.into_iter().map(|(label, changes)| ComparedFile { label, changes }).collect()
}

/// The lines of one conversation of a loaded session.
struct ChosenConversation<'a> {
    anchor: Option<&'a str>,
    /// The abandoned branch; `None` for the active conversation.
    branch: Option<Branch>,
    /// The lines of the session's own log.
    lines: HashSet<EntryIndex>,
}

impl<'a> ChosenConversation<'a> {
    fn of(loaded: &OpenSession, anchor: Option<&'a str>) -> Result<Self, CompareError> {
        let session = &loaded.family.main;
        let mut lines: HashSet<EntryIndex> = session.thread().entries.into_iter().collect();
        let line_no = anchor.and_then(|anchor| loaded.main_line_no(anchor));
        let line = line_no.and_then(|line_no| line_at(session, line_no));
        let mut chosen = Self { anchor, branch: None, lines: HashSet::new() };
        if anchor.is_some() && !line.is_some_and(|line| lines.contains(&line)) {
            let line = line.ok_or_else(|| chosen.not_found(loaded))?;
            let branch = session.branches().into_iter().find(|branch| branch.entries.contains(&line));
            let branch = branch.ok_or_else(|| chosen.not_found(loaded))?;
            lines.retain(|&idx| branch.fork.is_some_and(|fork| idx <= fork));
            lines.extend(branch.entries.iter().copied());
            chosen.branch = Some(branch);
        }
        chosen.lines = lines;
        Ok(chosen)
    }

    fn not_found(&self, loaded: &OpenSession) -> CompareError {
        CompareError::NoBranch {
            session: loaded.file.id.to_string(),
            anchor: self.anchor.unwrap_or_default().to_owned(),
        }
    }

    /// Returns the net change of each file, with its name below the working directory.
    fn changes(&self, loaded: &OpenSession, root: Option<&str>) -> Vec<(String, FileChange)> {
        let family = &loaded.family;
        let main_lines = MainLines::of(family);
        let is_inside = |call: &CallPlace| {
            main_lines.line(call.agent, call.entry_idx).is_some_and(|line| self.lines.contains(&line))
        };
        let evidence = FileEvidence::of(family, &SessionSources::log_only(&loaded.file));
        let changes = changes_by(&evidence, family, &is_inside);
        changes.into_iter().map(|change| (relative_label(&change.path, root), change)).collect()
    }

    /// Returns the figures of the conversation; `None` if no part of the transcript shows the branch.
    fn figures(&self, loaded: &OpenSession) -> Option<ComparedConversation> {
        let session = &loaded.family.main;
        let mut figures = ConversationFigures::default();
        let mut header = TranscriptHeader::default();
        let line_of = |idx: EntryIndex| session.entries()[idx].at().line_no;
        let fork = self.branch.as_ref().map(|branch| branch.fork.map(line_of));
        // The branch continues the turns of the conversation that ended before it forked off.
        let is_kept = |last_line: Option<u64>| match fork {
            Some(fork) => fork.zip(last_line).is_some_and(|(fork, last)| last <= fork),
            None => true,
        };
        let branch_lines: HashSet<u64> =
            self.branch.iter().flat_map(|branch| &branch.entries).map(|&idx| line_of(idx)).collect();
        let contains = |view: &BranchView| {
            let items = view.turns.iter().flat_map(|turn| &turn.items);
            items.map(|item| item.line_no).any(|line_no| branch_lines.contains(&line_no))
        };
        let kept = |path: &str| loaded.kept_output(path);
        let mut branch = None;
        // One part at a time, since all turns together need many times the size of the log.
        for part in loaded.transcript_builder(&kept).parts().without_findings() {
            match part {
                TranscriptPart::Header(found) => header = *found,
                TranscriptPart::Turn(turn) => {
                    if is_kept(turn.items.iter().map(|item| item.line_no).max()) {
                        figures.add(*turn);
                    }
                }
                TranscriptPart::Branch(view) if contains(&view) => {
                    branch = Some(view);
                    break;
                }
                // The conversation is complete, unless there are sub-agents that no call started.
                _ if self.branch.is_none() && loaded.family.agents.is_empty() => break,
                TranscriptPart::Agent(agent) if self.branch.is_none() => figures.add_agent(&agent),
                TranscriptPart::Branch(_) | TranscriptPart::Agent(_) | TranscriptPart::Findings(_) => {}
            }
        }
        let branch_name = match (&self.branch, branch) {
            (None, _) => None,
            (Some(_), None) => return None,
            (Some(_), Some(view)) => {
                let name = view.turns.first().map(|turn| turn.anchor.clone());
                view.turns.into_iter().for_each(|turn| figures.add(turn));
                for (at, prompt) in figures.prompts.iter_mut().enumerate() {
                    prompt.turn = at + 1;
                }
                name
            }
        };
        let ConversationFigures { models, prompts, spent, timing, span, items, .. } = figures;
        Some(ComparedConversation {
            session: loaded.file.clone(),
            title: header.title,
            branch: branch_name,
            cwd: header.cwd,
            git_branch: header.git_branch,
            models,
            prompts,
            spent,
            errors: items.errors,
            n_agents: items.n_agents,
            // Of an abandoned branch, the end of the active conversation is another one.
            n_other_branches: session.branches().len(),
            inherited: header.inherited,
            started: header.active.map(|(start, _)| start),
            compactions: items.compactions,
            tools: items.tools,
            span,
            timing,
        })
    }
}

/// The figures of some turns.
#[derive(Default)]
struct ConversationFigures {
    models: Vec<String>,
    seen_models: BTreeSet<String>,
    prompts: Vec<ComparedPrompt>,
    spent: UsageTotals,
    timing: TurnTiming,
    span: Option<(Millis, Millis)>,
    items: ItemTally,
}

impl ConversationFigures {
    fn add(&mut self, turn: TurnView) {
        let line = OutlineLine::of(&turn);
        turn.items.iter().for_each(|item| self.items.add(item));
        self.spent += &turn.spent;
        self.timing.model += turn.timing.model;
        self.timing.tools += turn.timing.tools;
        self.timing.user_response += turn.timing.user_response;
        self.timing.idle += turn.timing.idle;
        let seen = &mut self.seen_models;
        self.models.extend(turn.models.into_iter().filter(|model| seen.insert(model.clone())));
        self.items.compactions += line.compactions;
        self.span = match (self.span, turn.span) {
            (Some((start, end)), Some((from, to))) => Some((start.min(from), end.max(to))),
            (before, span) => before.or(span),
        };
        self.prompts.push(ComparedPrompt {
            turn: turn.number,
            anchor: turn.anchor,
            title: line.title,
            is_shared: false,
            spent: turn.spent,
            duration: turn.span.map(|(start, end)| end - start),
            started: turn.span.map(|(start, _)| start),
        });
    }

    /// Adds a sub-agent that no call started.
    fn add_agent(&mut self, agent: &AgentView) {
        self.spent += &agent.spent;
        self.items.add_agent(agent);
    }
}

fn line_at(session: &Session, line_no: u64) -> Option<EntryIndex> {
    session.entries().enumerated().find(|(_, entry)| entry.at().line_no == line_no).map(|(idx, _)| idx)
}

/// Counts of the items of a conversation and its sub-agents.
#[derive(Default)]
struct ItemTally {
    tools: BTreeMap<String, ToolTally>,
    errors: usize,
    n_agents: usize,
    compactions: usize,
}

impl ItemTally {
    fn add(&mut self, item: &TranscriptItem) {
        match &item.body {
            ItemBody::Call(call) => {
                let tally = self.tools.entry(call.name.to_string()).or_default();
                tally.calls += 1;
                tally.errors += usize::from(call.is_error());
                tally.duration += call.duration.unwrap_or(0);
                self.errors += usize::from(call.is_error());
                call.agents.iter().for_each(|agent| self.add_agent(agent));
            }
            ItemBody::Error { .. } => self.errors += 1,
            _ => {}
        }
    }

    fn add_agent(&mut self, agent: &AgentView) {
        self.n_agents += 1;
        agent.turns.iter().flat_map(|turn| &turn.items).for_each(|item| self.add(item));
    }
}

impl ComparedConversation {
    /// Returns the time between the start of the first turn and the end of the last one.
    pub fn elapsed(&self) -> Millis {
        self.span.map_or(0, |(start, end)| end - start)
    }

    /// Returns how the figures differ from those of the session in lists.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.n_other_branches > 0 {
            let branches = plural(self.n_other_branches as u64, "other branch");
            notes.push(format!("one branch only: without {branches} of the session, which lists count"));
        }
        if let Some(inherited) = &self.inherited {
            let from = inherited.from.as_deref().map_or("other sessions", short_id);
            let cost = inherited.usage.short_cost();
            notes
                .push(format!("cost includes {cost} of calls inherited from {from}, where lists count them"));
        }
        notes
    }

    /// Returns the number of tool calls.
    pub fn n_calls(&self) -> usize {
        self.tools.values().map(|tally| tally.calls).sum()
    }

    fn object(&self) -> ConversationObject {
        let cost = |spent: &UsageTotals| exact(spent.cost).filter(|_| spent.calls > 0);
        let tool = |(name, tally): (&String, &ToolTally)| {
            let ToolTally { calls, errors, duration } = *tally;
            let object =
                ComparedToolObject { calls: calls as u64, errors: errors as u64, duration_ms: duration };
            (name.clone(), object)
        };
        let prompt = |prompt: &ComparedPrompt| ComparedPromptObject {
            turn: prompt.turn as u64,
            anchor: prompt.anchor.clone(),
            prompt: prompt.title.clone(),
            shared: prompt.is_shared,
            cost_usd: cost(&prompt.spent),
            duration_ms: prompt.duration,
        };
        ConversationObject {
            session: self.session.id.to_string(),
            title: self.title.clone(),
            branch: self.branch.clone(),
            cwd: self.cwd.clone(),
            git_branch: self.git_branch.clone(),
            models: self.models.clone(),
            turns: self.prompts.len() as u64,
            model_calls: self.spent.calls,
            tool_calls: self.n_calls() as u64,
            errors: self.errors as u64,
            sub_agents: self.n_agents as u64,
            other_branches: self.n_other_branches as u64,
            compactions: self.compactions as u64,
            tokens: TokensObject {
                input: self.spent.tokens.input,
                output: self.spent.tokens.output,
                cache_read: self.spent.tokens.cache_read,
                cache_write: self.spent.tokens.cache_write(),
            },
            cost_usd: cost(&self.spent),
            is_minimum: self.spent.is_lower_bound(),
            inherited_cost_usd: self.inherited.as_ref().and_then(|calls| cost(&calls.usage)),
            started_at: self.started.map(moment),
            ended_at: self.span.map(|(_, end)| moment(end)),
            elapsed_ms: self.elapsed(),
            timing: self.timing.into(),
            tools: self.tools.iter().map(tool).collect(),
            prompts: self.prompts.iter().map(prompt).collect(),
        }
    }
}

impl Comparison {
    /// Formats the cost of the second conversation minus that of the first: `+$0.42`, `−$0.42`, or nothing
    /// if both cost the same.
    pub fn cost_difference(&self) -> String {
        let [a, b] = self.sides.each_ref().map(|side| side.spent.cost);
        match a.steps().cmp(&b.steps()) {
            Ordering::Less => format!("+{}", (b - a).short()),
            Ordering::Equal => String::new(),
            Ordering::Greater => format!("−{}", (a - b).short()),
        }
    }

    /// Returns the comparison as public JSON.
    pub fn object(&self) -> CompareObject {
        let produced = |change: &FileChange| {
            let (added, removed) = Hunk::counts(&change.hunks());
            ProducedFileObject {
                path: change.path.clone(),
                edits: change.edits() as u64,
                lines_added: added as u64,
                lines_removed: removed as u64,
            }
        };
        let file = |file: &ComparedFile| ComparedFileObject {
            path: file.label.clone(),
            relation: file.relation().name(),
            a: file.changes[0].as_ref().map(produced),
            b: file.changes[1].as_ref().map(produced),
            patch: Some(file.patch()).filter(|patch| !patch.is_empty()),
        };
        let [a, b] = &self.sides;
        CompareObject {
            shared_turns: self.shared_turns as u64,
            a: a.object(),
            b: b.object(),
            files: self.files.iter().map(file).collect(),
        }
    }
}
