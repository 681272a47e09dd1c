//! File edits: the changes that tools of a session and its sub-agents made to files.
//!
//! Each edit has the whole text before and after it where the log contains or implies it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{
    BashEditFile, EditResult, List, MultiEditResult, NotebookEditResult, PatchHunk, ReadFile, ReadResult,
    WriteResult,
};
use threadline_entry::{Json, Millis};

use crate::agent::SessionFamily;
use crate::command_effect::{CommandEffect, command_diff, is_shell, lists_changes};
use crate::index::{AgentIndex, CallIndex, EntryIndex};
use crate::session::Session;
use crate::tool_call::{ToolCall, ToolOutcome};

/// The text of a file at some time, as far as the log contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileText {
    /// The file did not exist.
    Absent,
    /// The whole text.
    Text(String),
    /// The log does not contain the text.
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
}

/// One change of a file, made by an edit tool or a shell command.
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
    /// The path, as it was passed to the tool.
    pub path: String,
    /// The file before the edit.
    pub before: FileText,
    /// Whether the result of the call contains the file before the edit. Otherwise, `before` is the text
    /// after the previous edit.
    pub is_before_logged: bool,
    /// The file after the edit.
    pub after: FileText,
    /// The changed lines, if the whole text of the file is unknown.
    pub hunks: Arc<[LineHunk]>,
    /// The replacements of an `Edit` or `MultiEdit`, in order.
    pub replacements: Arc<[EditReplacement]>,
    /// Whether a shell command made the edit.
    pub by_command: bool,
    /// Whether the log says that the file changed. Otherwise, a command may have changed it, and its text is
    /// unknown from then on.
    pub(crate) is_certain: bool,
}

impl FileEdit {
    /// Returns the length of the path, the replacements and the changed lines.
    pub(crate) fn replaced_bytes(&self) -> usize {
        let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines).map(String::len);
        let replaced =
            self.replacements.iter().map(|replacement| replacement.old.len() + replacement.new.len());
        self.path.len() + replaced.sum::<usize>() + lines.sum::<usize>()
    }
}

/// A hunk of a unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHunk {
    /// The first line of the old text that the hunk covers, counted from 1.
    pub old_start: u64,
    /// The first line of the new text that the hunk covers, counted from 1.
    pub new_start: u64,
    /// The lines, each prefixed with ` `, `+` or `-`. A line prefixed with `\` marks that the previous one
    /// has no newline.
    pub lines: Vec<String>,
}

/// The edits of a session as its log contains them: most without the whole text of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedEdits(Vec<(FileEdit, RecordedChange)>);

impl RecordedEdits {
    /// Collects the edits of a session and its sub-agents, ordered by time.
    pub(crate) fn of(family: &SessionFamily) -> Self {
        let mut edits = Vec::new();
        for (agent, calls) in family.calls_with_edits() {
            let session = family.session(agent);
            for call in calls {
                add_edits(session, agent, call, &mut edits);
            }
        }
        edits.sort_by_key(|(edit, _)| edit.at);
        add_uncertain_edits(family, &mut edits);
        Self(edits)
    }

    /// Returns the edits with the texts before and after, each when it is needed.
    pub(crate) fn completed(&self) -> impl Iterator<Item = FileEdit> {
        complete_edits(self.0.iter().cloned())
    }
}

/// The form in which a tool result describes a change.
#[derive(Clone, Debug)]
enum RecordedChange {
    /// The texts before and after the edit, as far as the result contains them.
    Texts,
    /// The replacements of the edit.
    Replaced,
    /// Hunks, relative to the text before the edit or to an earlier one.
    Patched(Arc<[LineHunk]>),
    /// The file was read completely, and not changed.
    Read,
    /// A command may have changed the file.
    Uncertain,
}

/// A text replacement made by a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditReplacement {
    /// The text to replace.
    pub old: String,
    /// The new text.
    pub new: String,
    /// Whether all occurrences are replaced.
    pub all: bool,
}

/// The first and the last known text of a file.
struct FirstAndLastText {
    first: FileText,
    last: FileText,
}

impl SessionFamily {
    /// Returns all successful edits, ordered by time, because sub-agents run in parallel.
    ///
    /// Edits with the same time are in the order of the logs. The texts of a file are made when its edit is
    /// returned: many edits of a long file take far more memory than the log.
    pub fn file_edits(&self) -> impl Iterator<Item = FileEdit> + use<> {
        complete_edits(RecordedEdits::of(self).0.into_iter()).filter(|edit| edit.is_certain)
    }

    /// Returns the calls that [`SessionFamily::file_edits`] reads, as indexes into [`Session::tool_calls`].
    ///
    /// The calls of the main session come first, then those of each agent.
    pub fn calls_with_edits(&self) -> impl Iterator<Item = (Option<AgentIndex>, Vec<CallIndex>)> {
        let by_commands = self.read_and_changed_by_commands();
        std::iter::once(None).chain(self.agents.indices().map(Some)).map(move |agent| {
            let session = self.session(agent);
            let calls = session.tool_calls().enumerated();
            let edits = calls.filter(|(_, call)| contributes_to_edits(session, call, &by_commands));
            (agent, edits.map(|(place, _)| place).collect())
        })
    }

    /// Returns the number of shell commands that may have changed files without a list of them in the log.
    /// Such changes are in no patch, and cannot be restored.
    pub fn n_unlogged_commands(&self) -> usize {
        let sessions = std::iter::once(&self.main).chain(self.agents.iter().map(|agent| &agent.session));
        let unlogged = |session: &Session| {
            let is_listed = lists_changes(session);
            let calls = session.tool_calls().iter().filter(|call| is_shell(call));
            calls.filter(|call| CommandEffect::of(session, call, is_listed) != CommandEffect::Logged).count()
        };
        sessions.map(unlogged).sum()
    }

    /// Returns the paths of the files that were read and that shell commands changed, according to the
    /// results.
    fn read_and_changed_by_commands(&self) -> HashSet<Cow<'_, str>> {
        let sessions = || std::iter::once(&self.main).chain(self.agents.iter().map(|agent| &agent.session));
        let mut read: HashSet<Cow<'_, str>> = HashSet::default();
        for session in sessions() {
            let calls = session.tool_calls().iter().filter(|call| &*call.name == "Read");
            read.extend(calls.filter_map(|call| read_file(session, call)?.file_path()));
        }
        let mut changed = HashSet::default();
        for session in sessions() {
            for diff in session.tool_calls().iter().filter_map(|call| command_diff(session, call)) {
                let names = diff.changed_files().into_iter().flat_map(|names| names.iter());
                let files = diff.files().into_iter().flat_map(|files| files.iter());
                let paths = names.chain(files.filter_map(BashEditFile::file_path));
                changed.extend(paths.filter(|path| read.contains(path)));
            }
        }
        changed
    }
}

fn complete_edits(edits: impl Iterator<Item = (FileEdit, RecordedChange)>) -> impl Iterator<Item = FileEdit> {
    let mut known: HashMap<String, FirstAndLastText> = HashMap::default();
    let mut budget = EditBudget::default();
    edits.filter_map(move |(edit, change)| complete_edit(edit, change, &mut known, &mut budget))
}

/// How much longer texts may become than the log accounts for, and how many bytes of texts edits may search.
///
/// An edit that replaces all occurrences is short, and may double a text. A few dozen of them would make a
/// text that fits no memory. Every edit searches the whole text, so very many edits of one long text would
/// take time in proportion to both.
#[derive(Clone, Debug)]
pub(crate) struct EditBudget {
    growth_left: usize,
    search_left: usize,
}

impl Default for EditBudget {
    fn default() -> Self {
        Self { growth_left: 16 << 20, search_left: 512 << 20 }
    }
}

impl EditBudget {
    /// The number of bytes that may be searched for each byte of the edits in the log.
    const SEARCHED_PER_BYTE: usize = 400;
    /// The bytes that an edit has in the log besides its texts.
    const BYTES_PER_EDIT: usize = 256;

    /// A budget for texts that were counted before.
    pub(crate) fn unlimited() -> Self {
        Self { growth_left: usize::MAX, search_left: usize::MAX }
    }

    /// Adds the share of an edit with these bytes in the log.
    pub(crate) fn add_logged(&mut self, bytes: usize) {
        let share = (bytes + Self::BYTES_PER_EDIT).saturating_mul(Self::SEARCHED_PER_BYTE);
        self.search_left = self.search_left.saturating_add(share);
    }

    /// Returns whether a text may become longer by this much, and counts it.
    fn allows_growth(&mut self, bytes: usize) -> bool {
        take(&mut self.growth_left, bytes)
    }

    /// Returns whether a text of this length may be searched, and counts it.
    fn allows_search(&mut self, bytes: usize) -> bool {
        take(&mut self.search_left, bytes)
    }
}

/// Subtracts `bytes`, unless less is left. Returns whether it did.
fn take(left: &mut usize, bytes: usize) -> bool {
    let rest = left.checked_sub(bytes);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}

/// Adds the texts that the result of an edit need not contain: the text before is that after the previous
/// edit. Returns `None` if the file was only read.
fn complete_edit(
    mut edit: FileEdit,
    change: RecordedChange,
    known: &mut HashMap<String, FirstAndLastText>,
    budget: &mut EditBudget,
) -> Option<FileEdit> {
    if edit.by_command && edit.after == FileText::Absent {
        edit.before = deleted_text(&edit.before, known.get(&edit.path).map(|known| &known.last));
    }
    edit.is_before_logged = edit.before != FileText::Unknown;
    let texts = [&edit.before, &edit.after].into_iter().filter_map(FileText::as_text);
    budget.add_logged(texts.map(str::len).sum::<usize>() + edit.replaced_bytes());
    if !edit.is_before_logged
        && let Some(known) = known.get(&edit.path)
        && budget.allows_search(known.last.as_text().map_or(0, str::len))
    {
        edit.before = known.last.clone();
    }
    let is_read = matches!(change, RecordedChange::Read);
    match change {
        RecordedChange::Texts | RecordedChange::Read | RecordedChange::Uncertain => {}
        RecordedChange::Replaced => {
            edit.after = apply_replacements(&edit.before, &edit.replacements, budget);
            if edit.after != FileText::Unknown {
                edit.hunks = Arc::default();
            }
        }
        RecordedChange::Patched(hunks) => {
            // The hunks of a file tracked by git are relative to the last commit, not to the previous edit.
            let first = known.get(&edit.path).map_or(&FileText::Unknown, |known| &known.first);
            let mut from = |text: &FileText| {
                let text = text.as_text().filter(|text| budget.allows_search(text.len()))?;
                apply_hunks(text, &hunks)
            };
            match from(&edit.before).or_else(|| from(first)) {
                Some(after) => edit.after = FileText::Text(after),
                None => (edit.before, edit.hunks) = (FileText::Unknown, hunks),
            }
        }
    }
    match known.get_mut(&edit.path) {
        Some(known) => known.last = edit.after.clone(),
        None => {
            let texts = FirstAndLastText { first: edit.before.clone(), last: edit.after.clone() };
            known.insert(edit.path.clone(), texts);
        }
    }
    (!is_read).then_some(edit)
}

/// Returns the text of a file that a command deleted, given the one in the list of changes and the last known
/// one.
///
/// The list may lack the newline at the end of the file.
fn deleted_text(listed: &FileText, last: Option<&FileText>) -> FileText {
    let Some(text) = listed.as_text().filter(|text| !text.ends_with('\n')) else { return listed.clone() };
    let is_same = |last: &&FileText| last.as_text().is_some_and(|last| last.strip_suffix('\n') == Some(text));
    last.filter(is_same).cloned().unwrap_or(FileText::Unknown)
}

/// Returns whether the result of a call contributes to the file edits. A read file does if a command
/// changed it.
fn contributes_to_edits(session: &Session, call: &ToolCall, by_commands: &HashSet<Cow<'_, str>>) -> bool {
    match &*call.name {
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => true,
        "Bash" | "PowerShell" => command_diff(session, call).is_some(),
        "Read" => read_file(session, call)
            .and_then(|file| file.file_path())
            .is_some_and(|path| by_commands.contains(&path)),
        _ => false,
    }
}

/// Returns the file in the result of a `Read` call.
fn read_file<'s>(session: &'s Session, call: &ToolCall) -> Option<ReadFile<'s>> {
    call.results.first()?.record(session)?.of::<ReadResult<'_>>()?.file()
}

/// Appends the changes in the result of a call, or the text that it read.
///
/// Stops with `None` if the call failed or its result lacks a required field.
fn add_edits(
    session: &Session,
    agent: Option<AgentIndex>,
    call_idx: CallIndex,
    edits: &mut Vec<(FileEdit, RecordedChange)>,
) -> Option<()> {
    let call = &session.tool_calls()[call_idx];
    let is_command = matches!(&*call.name, "Bash" | "PowerShell");
    let outcome = call.outcome(session);
    // A command that failed or was interrupted may still have changed files.
    if outcome != ToolOutcome::Ok && !(is_command && outcome != ToolOutcome::Missing) {
        return None;
    }
    let input = call.block(session)?.input()?;
    let result = call.results.first()?;
    let entry_idx = result.entry_idx;
    let at = session.timestamp(entry_idx);
    let data = result.record(session);
    let edit = |path: String, before: FileText, after: FileText| FileEdit {
        agent,
        call_idx,
        entry_idx,
        at,
        path,
        before,
        is_before_logged: false,
        after,
        hunks: Arc::default(),
        replacements: Arc::default(),
        by_command: is_command,
        is_certain: true,
    };
    let mut add = |path: String, before: FileText, after: FileText, change: RecordedChange| {
        edits.push((edit(path, before, after), change));
    };
    let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    let given = |key: &str| input.get(key).and_then(Json::as_str);
    let known = |text: Option<String>| text.map_or(FileText::Unknown, FileText::Text);
    match &*call.name {
        "Write" => {
            let result: Option<WriteResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(WriteResult::file_path).or_else(|| given("file_path")))?;
            let after = owned(result.and_then(WriteResult::content).or_else(|| given("content")));
            let is_new = result.and_then(WriteResult::kind).as_deref() == Some("create");
            let before = owned(result.and_then(WriteResult::original_file)).or_else(|| {
                let hunks = line_hunks(result?.structured_patch());
                reverse_hunks(after.as_deref()?, &hunks).filter(|_| !hunks.is_empty())
            });
            add(
                path,
                if is_new { FileText::Absent } else { known(before) },
                known(after),
                RecordedChange::Texts,
            );
        }
        "Edit" => {
            let result: Option<EditResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(EditResult::file_path).or_else(|| given("file_path")))?;
            let old = owned(result.and_then(EditResult::old_string).or_else(|| given("old_string")))?;
            let new = owned(result.and_then(EditResult::new_string).or_else(|| given("new_string")))?;
            let asked = || input.get("replace_all").and_then(Json::as_bool);
            let all = result.and_then(EditResult::replace_all).or_else(asked).unwrap_or(false);
            let before = owned(result.and_then(EditResult::original_file));
            // An `Edit` with an empty old string creates a file. If the file existed, the result contains
            // its text.
            let before = if old.is_empty() && before.is_none() { FileText::Absent } else { known(before) };
            let mut edit = edit(path, before, FileText::Unknown);
            edit.replacements = Arc::new([EditReplacement { old, new, all }]);
            if edit.before == FileText::Unknown {
                edit.hunks = line_hunks(result.and_then(EditResult::structured_patch));
            }
            edits.push((edit, RecordedChange::Replaced));
        }
        "MultiEdit" => {
            let result: Option<MultiEditResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(MultiEditResult::file_path).or_else(|| given("file_path")))?;
            let listed = input.get("edits").into_iter().flat_map(Json::items);
            let replacements = listed.map(|edit| {
                let text = |key: &str| edit.get(key).and_then(Json::as_str).unwrap_or_default().into_owned();
                let all = edit.get("replace_all").and_then(Json::as_bool).unwrap_or(false);
                EditReplacement { old: text("old_string"), new: text("new_string"), all }
            });
            let before = owned(result.and_then(MultiEditResult::original_file_contents));
            let mut edit = edit(path, known(before), FileText::Unknown);
            edit.replacements = replacements.collect();
            if edit.before == FileText::Unknown {
                edit.hunks = line_hunks(result.and_then(MultiEditResult::structured_patch));
            }
            edits.push((edit, RecordedChange::Replaced));
        }
        "NotebookEdit" => {
            let result: Option<NotebookEditResult<'_>> = data.and_then(|data| data.of());
            let named = result.and_then(NotebookEditResult::notebook_path);
            let path = owned(named.or_else(|| given("notebook_path")))?;
            let before = owned(result.and_then(NotebookEditResult::original_file));
            let after = owned(result.and_then(NotebookEditResult::updated_file));
            add(path, known(before), known(after), RecordedChange::Texts);
        }
        "Read" => {
            let file = read_file(session, call)?;
            let is_whole = file.start_line() == Some(1) && file.num_lines() == file.total_lines();
            let text = owned(file.content()).filter(|_| is_whole && file.num_lines().is_some())?;
            add(
                owned(file.file_path())?,
                FileText::Text(text.clone()),
                FileText::Text(text),
                RecordedChange::Read,
            );
        }
        _ => {
            let diff = command_diff(session, call)?;
            // A link is listed as a file with the path that it leads to as its text.
            let makes_links = given("command").is_some_and(|command| {
                command.split(|c: char| !c.is_alphanumeric()).any(|word| word == "ln")
            });
            let files = || diff.files().into_iter().flat_map(|files| files.iter());
            for file in files() {
                let (path, hunks) = (owned(file.file_path())?, line_hunks(file.hunks()));
                let whole = |sign: char| FileText::Text(lines_with(sign, &hunks));
                match (file.created(), file.deleted()) {
                    (Some(true), _) => {
                        let after = Some(whole('+')).filter(|text| {
                            !makes_links || text.as_text().is_some_and(|text| text.contains('\n'))
                        });
                        let after = after.unwrap_or(FileText::Unknown);
                        add(path, FileText::Absent, after, RecordedChange::Texts);
                    }
                    (_, Some(true)) => add(path, whole('-'), FileText::Absent, RecordedChange::Texts),
                    _ => add(path, FileText::Unknown, FileText::Unknown, RecordedChange::Patched(hunks)),
                }
            }
            // Large and binary files are listed by name only.
            let listed: HashSet<Cow<'_, str>> = files().filter_map(BashEditFile::file_path).collect();
            let named = diff.changed_files().into_iter().flat_map(|names| names.iter());
            for path in named.filter(|path| !listed.contains(path)) {
                add(path.into_owned(), FileText::Unknown, FileText::Unknown, RecordedChange::Texts);
            }
        }
    }
    Some(())
}

/// Adds an edit of unknown text for each command that may have changed a file of these edits, at its place.
fn add_uncertain_edits(family: &SessionFamily, edits: &mut Vec<(FileEdit, RecordedChange)>) {
    let mut paths: Vec<String> = edits.iter().map(|(edit, _)| edit.path.clone()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut by_name: HashMap<&str, Vec<&String>> = HashMap::default();
    for path in &paths {
        by_name.entry(path.rsplit(['/', '\\']).next().unwrap_or(path)).or_default().push(path);
    }
    let n_edits = edits.len();
    for agent in std::iter::once(None).chain(family.agents.indices().map(Some)) {
        let session = family.session(agent);
        let is_listed = lists_changes(session);
        for (call_idx, call) in session.tool_calls().enumerated().filter(|(_, call)| is_shell(call)) {
            let (words, or_all) = match CommandEffect::of(session, call, is_listed) {
                CommandEffect::Logged => continue,
                CommandEffect::Named(words) => (words, false),
                CommandEffect::Skipped(words) => (words, true),
            };
            let named: HashSet<&String> =
                words.iter().filter_map(|word| by_name.get(&**word)).flatten().copied().collect();
            let changed: Vec<&String> =
                if named.is_empty() && or_all { paths.iter().collect() } else { named.into_iter().collect() };
            if edits.len() - n_edits + changed.len() > MAX_UNCERTAIN_EDITS {
                edits.truncate(n_edits);
                return edits.iter_mut().for_each(forget_texts);
            }
            let entry_idx = call.results.first().map_or(call.entry_idx, |result| result.entry_idx);
            edits.extend(changed.into_iter().map(|path| {
                let edit = FileEdit {
                    agent,
                    call_idx,
                    entry_idx,
                    at: session.timestamp(entry_idx),
                    path: path.clone(),
                    before: FileText::Unknown,
                    is_before_logged: false,
                    after: FileText::Unknown,
                    hunks: Arc::default(),
                    replacements: Arc::default(),
                    by_command: true,
                    is_certain: false,
                };
                (edit, RecordedChange::Uncertain)
            }));
        }
    }
    if edits.len() > n_edits {
        edits.sort_by_key(|(edit, _)| (edit.at, edit.entry_idx));
    }
}

/// The maximum number of times that commands may have changed a file. A log with more, of many commands that
/// may change many files, says nothing about the texts of its files.
const MAX_UNCERTAIN_EDITS: usize = 100_000;

/// Makes the texts before and after an edit unknown.
fn forget_texts((edit, change): &mut (FileEdit, RecordedChange)) {
    (edit.before, edit.after) = (FileText::Unknown, FileText::Unknown);
    *change = RecordedChange::Texts;
}

fn line_hunks(hunks: Option<List<'_, PatchHunk<'_>>>) -> Arc<[LineHunk]> {
    let hunk = |hunk: PatchHunk<'_>| LineHunk {
        old_start: hunk.old_start().unwrap_or_default(),
        new_start: hunk.new_start().unwrap_or_default(),
        lines: hunk.lines().into_iter().flat_map(|lines| lines.iter()).map(Cow::into_owned).collect(),
    };
    // A hunk without its place cannot be applied.
    let has_place = |hunk: &PatchHunk<'_>| hunk.old_start().is_some() && hunk.new_start().is_some();
    hunks.into_iter().flat_map(|hunks| hunks.iter()).filter(has_place).map(hunk).collect()
}

/// Returns the lines of hunks with the given sign, joined to a text.
fn lines_with(sign: char, hunks: &[LineHunk]) -> String {
    let mut text = String::new();
    for (line, has_newline) in hunks.iter().flat_map(LineHunk::terminated_lines) {
        if let Some(line) = line.strip_prefix(sign) {
            text.push_str(line);
            text.push_str(if has_newline { "\n" } else { "" });
        }
    }
    text
}

impl LineHunk {
    /// Returns the numbers of unchanged lines before the first change and after the last one.
    fn context_lines(&self) -> [usize; 2] {
        let is_kept: Vec<bool> = self.terminated_lines().map(|(line, _)| line.starts_with(' ')).collect();
        let count = |lines: &mut dyn Iterator<Item = &bool>| lines.take_while(|is_kept| **is_kept).count();
        [count(&mut is_kept.iter()), count(&mut is_kept.iter().rev())]
    }

    /// Returns the lines with their signs, and whether each one ends with a newline.
    fn terminated_lines(&self) -> impl Iterator<Item = (&str, bool)> {
        let is_mark = |at: usize| self.lines.get(at).is_some_and(|line| line.starts_with('\\'));
        let lines = self.lines.iter().enumerate().filter(|(_, line)| !line.starts_with('\\'));
        lines.map(move |(at, line)| (&**line, !is_mark(at + 1)))
    }
}

/// Returns the text before hunks were applied. `None` if a context or added line does not match.
fn reverse_hunks(after: &str, hunks: &[LineHunk]) -> Option<String> {
    let reverse = |line: &str| match line.split_at_checked(1) {
        Some(("+", line)) => format!("-{line}"),
        Some(("-", line)) => format!("+{line}"),
        _ => line.to_owned(),
    };
    let reversed: Vec<LineHunk> = hunks
        .iter()
        .map(|hunk| LineHunk {
            old_start: hunk.new_start,
            new_start: hunk.old_start,
            lines: hunk.lines.iter().map(|line| reverse(line)).collect(),
        })
        .collect();
    apply_hunks(after, &reversed)
}

/// The number of unchanged lines before and after the changes of a hunk, in the hunks of Claude Code.
const CONTEXT_LINES: usize = 3;

/// Applies hunks to a text. `None` if a context or removed line does not match, or if a hunk with fewer
/// context lines than usual is not at the beginning or the end of the text: then it is of another text.
pub(crate) fn apply_hunks(text: &str, hunks: &[LineHunk]) -> Option<String> {
    let mut old = text.split_inclusive('\n').peekable();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for hunk in hunks {
        let start = hunk.old_start.saturating_sub(1);
        let [leading, trailing] = hunk.context_lines();
        if start < at || (leading < CONTEXT_LINES && start > 0) {
            return None;
        }
        for _ in at..start {
            out.push_str(old.next()?);
        }
        at = start;
        for (line, has_newline) in hunk.terminated_lines() {
            let newline = if has_newline { "\n" } else { "" };
            let (sign, line) = line.split_at_checked(1)?;
            if sign != "+" {
                let found = old.next()?;
                if found.strip_suffix('\n').unwrap_or(found) != line {
                    return None;
                }
                at += 1;
            }
            if sign != "-" {
                out.push_str(line);
                out.push_str(newline);
            }
        }
        if trailing < CONTEXT_LINES && old.peek().is_some() {
            return None;
        }
    }
    out.extend(old);
    Some(out)
}

/// Applies replacements in sequence. [`FileText::Unknown`] if one of them does not match, or makes the text
/// too long.
fn apply_replacements(
    before: &FileText,
    replacements: &[EditReplacement],
    budget: &mut EditBudget,
) -> FileText {
    let mut text = match before {
        FileText::Absent => String::new(),
        FileText::Text(text) => text.clone(),
        FileText::Unknown => return FileText::Unknown,
    };
    for replacement in replacements {
        match replacement.apply(&text, budget) {
            Some((_, after)) => text = after,
            None => return FileText::Unknown,
        }
    }
    FileText::Text(text)
}

impl EditReplacement {
    /// Applies the replacement to a text. Returns the byte range of the first occurrence, and the new text.
    /// `None` if the text does not contain the old one, or the budget does not suffice.
    pub(crate) fn apply(&self, text: &str, budget: &mut EditBudget) -> Option<(Range<usize>, String)> {
        let (old, new, all) = (&*self.old, &*self.new, self.all);
        budget.allows_search(text.len()).then_some(())?;
        if old.is_empty() {
            let after = if text.is_empty() { new.to_owned() } else { format!("{new}{text}") };
            return Some((0..0, after));
        }
        // Deleting whole lines also deletes their newline, as the tool does.
        let line = format!("{old}\n");
        let old = if new.is_empty() && !old.ends_with('\n') && text.contains(&line) { &*line } else { old };
        let start = text.find(old)?;
        let added = if all { new.len().saturating_sub(old.len()) } else { 0 };
        if added > 0 {
            // The log contains the new text once.
            let n_more = text[start + old.len()..].matches(old).count();
            budget.allows_growth(added.saturating_mul(n_more)).then_some(())?;
        }
        let after = if all { text.replace(old, new) } else { text.replacen(old, new, 1) };
        Some((start..start + old.len(), after))
    }
}

#[cfg(test)]
mod tests {
    use super::{EditBudget, EditReplacement, FileText, apply_replacements};

    #[test]
    fn a_text_that_doubles_with_every_edit_becomes_unknown() {
        let double = EditReplacement { old: "a".to_owned(), new: "aa".to_owned(), all: true };
        let once = FileText::Text("a".to_owned());
        let mut budget = EditBudget::default();
        let text =
            |n: usize, budget: &mut EditBudget| apply_replacements(&once, &vec![double.clone(); n], budget);
        assert_eq!(text(20, &mut budget).as_text().map(str::len), Some(1 << 20));
        assert_eq!(text(100, &mut budget), FileText::Unknown);
    }

    #[test]
    fn very_many_edits_of_one_long_text_become_unknown() {
        let long = FileText::Text(format!("ab{}", "x".repeat(1 << 20)));
        let edit = [EditReplacement { old: "ab".to_owned(), new: "ba".to_owned(), all: false }];
        let mut budget = EditBudget::default();
        let mut is_known = |_: &usize| {
            // The share of an edit in the log allows less than the text is long.
            budget.add_logged(4);
            apply_replacements(&long, &edit, &mut budget) != FileText::Unknown
        };
        let n_known = (0..1000).take_while(|n| is_known(n)).count();
        assert!((500..700).contains(&n_known), "{n_known}");
    }
}
