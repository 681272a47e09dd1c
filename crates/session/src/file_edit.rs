//! Edits of files: changes that tools of a session and its sub-agents made, from whole text to whole text where the log has it.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_entry::lens::{
    BashEditDiff, BashEditFile, BashResult, EditResult, MultiEditResult, NotebookEditResult, PatchHunk,
    ReadFile, ReadResult, WriteResult,
};
use threadline_entry::{Json, Millis};

use crate::agent::Family;
use crate::session::Session;
use crate::tool_call::{Outcome, ToolCall};

/// The text of a file at a moment, as far as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileText {
    /// It did not exist.
    Absent,
    /// Its whole text.
    Text(String),
    /// The log does not have it.
    Unknown,
}

impl FileText {
    /// The text; `None` for a file that does not exist or is not known.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// One change of a file, by an edit tool or by a shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    /// The sub-agent that made it, by its place in [`Family::agents`]; `None` for the session itself.
    pub agent: Option<usize>,
    /// The line with the result, in the log of the one who made it.
    pub entry_idx: usize,
    /// When it was made.
    pub at: Option<Millis>,
    /// The file, as the tool was given it.
    pub path: String,
    /// The file before.
    pub before: FileText,
    /// The file after.
    pub after: FileText,
    /// The changed lines, where a shell command changed a file whose whole text the log does not have.
    pub hunks: Vec<LineHunk>,
    /// Whether a shell command made it.
    pub by_command: bool,
}

/// A run of changed lines, as a unified diff has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHunk {
    /// The first line of the old text that it covers, from 1.
    pub old_start: u64,
    /// The first line of the new text that it covers, from 1.
    pub new_start: u64,
    /// The lines, each behind ` `, `+` or `-`; `\\` marks a missing newline at the end of the line before.
    pub lines: Vec<String>,
}

/// What a result says of a change.
enum Change {
    /// The texts before and after, as far as the result has them.
    Texts,
    /// Pieces of text that were replaced one after the other.
    Replaced(Vec<Replacement>),
    /// Changed lines, from the text before or from an earlier one.
    Patched(Vec<LineHunk>),
    /// The file was read whole, and not changed.
    Read,
}

/// A piece of text that a call replaced.
struct Replacement {
    old: String,
    new: String,
    all: bool,
}

/// The last text that is known of a file, and the first.
struct KnownText {
    first: FileText,
    last: FileText,
}

impl Family {
    /// Every edit that succeeded, in the order they were made: by time, since sub-agents work side by side,
    /// and by the logs where that is the same.
    pub fn file_edits(&self) -> Vec<FileEdit> {
        let mut edits: Vec<(FileEdit, Change)> = Vec::new();
        for (agent, calls) in self.calls_with_edits() {
            let session = self.session(agent);
            for call in calls {
                add_edits(session, agent, &session.tool_calls()[call], &mut edits);
            }
        }
        edits.sort_by_key(|(edit, _)| edit.at);
        // A result need not repeat the whole file: the rest follows from the edit before.
        let mut known: FxHashMap<String, KnownText> = FxHashMap::default();
        let mut out = Vec::with_capacity(edits.len());
        for (mut edit, change) in edits {
            if edit.before == FileText::Unknown
                && let Some(known) = known.get(&edit.path)
            {
                edit.before = known.last.clone();
            }
            let is_read = matches!(change, Change::Read);
            match change {
                Change::Texts | Change::Read => {}
                Change::Replaced(replacements) => edit.after = replaced(&edit.before, &replacements),
                Change::Patched(hunks) => {
                    // The hunks of a file that git tracks start from the last commit, not from the edit before.
                    let first = known.get(&edit.path).map_or(&FileText::Unknown, |known| &known.first);
                    let from = |text: &FileText| patched(text.as_text()?, &hunks);
                    match from(&edit.before).or_else(|| from(first)) {
                        Some(after) => edit.after = FileText::Text(after),
                        None => (edit.before, edit.hunks) = (FileText::Unknown, hunks),
                    }
                }
            }
            let first = known.remove(&edit.path).map_or_else(|| edit.before.clone(), |known| known.first);
            known.insert(edit.path.clone(), KnownText { first, last: edit.after.clone() });
            if !is_read {
                out.push(edit);
            }
        }
        out
    }

    /// The calls that [`Family::file_edits`] reads, by their place in [`Session::tool_calls`]: those of the session,
    /// then those of each agent.
    pub fn calls_with_edits(&self) -> impl Iterator<Item = (Option<usize>, Vec<usize>)> {
        let by_commands = self.changed_by_commands();
        std::iter::once(None).chain((0..self.agents.len()).map(Some)).map(move |agent| {
            let session = self.session(agent);
            let calls = session.tool_calls().iter().enumerate();
            let edits = calls.filter(|(_, call)| has_edit(session, call, &by_commands));
            (agent, edits.map(|(place, _)| place).collect())
        })
    }

    /// The files that shell commands changed, as their results say.
    fn changed_by_commands(&self) -> FxHashSet<String> {
        let mut paths = FxHashSet::default();
        for session in std::iter::once(&self.main).chain(self.agents.iter().map(|agent| &agent.session)) {
            for diff in session.tool_calls().iter().filter_map(|call| command_diff(session, call)) {
                let names = diff.changed_files().into_iter().flat_map(|names| names.iter());
                let files = diff.files().into_iter().flat_map(|files| files.iter());
                paths.extend(names.chain(files.filter_map(BashEditFile::file_path)).map(Cow::into_owned));
            }
        }
        paths
    }
}

/// Whether a call's result has the texts or lines of an edit. A file that was read is of interest if a command changed it.
fn has_edit(session: &Session, call: &ToolCall, by_commands: &FxHashSet<String>) -> bool {
    match &*call.name {
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => true,
        "Bash" | "PowerShell" => command_diff(session, call).is_some(),
        "Read" => read_file(session, call)
            .and_then(|file| file.file_path())
            .is_some_and(|path| by_commands.contains(&*path)),
        _ => false,
    }
}

/// The changes of files that a shell command's result lists.
fn command_diff<'s>(session: &'s Session, call: &ToolCall) -> Option<BashEditDiff<'s>> {
    let is_command = matches!(&*call.name, "Bash" | "PowerShell");
    let at = call.results.first().filter(|_| is_command)?;
    session.entries()[at.entry_idx].tool_use_result()?.of::<BashResult<'_>>()?.bash_edit_diff()
}

/// The file that a call read.
fn read_file<'s>(session: &'s Session, call: &ToolCall) -> Option<ReadFile<'s>> {
    session.entries()[call.results.first()?.entry_idx].tool_use_result()?.of::<ReadResult<'_>>()?.file()
}

/// Adds the changes that a call made, as far as its own result tells, and the text that it read. Answers `None` where
/// something is missing that every result of the tool has.
fn add_edits(
    session: &Session,
    agent: Option<usize>,
    call: &ToolCall,
    edits: &mut Vec<(FileEdit, Change)>,
) -> Option<()> {
    let is_command = matches!(&*call.name, "Bash" | "PowerShell");
    let outcome = call.outcome(session);
    // A command that fails, or is stopped, may have changed files all the same.
    if outcome != Outcome::Ok && !(is_command && outcome != Outcome::Missing) {
        return None;
    }
    let input = call.block(session)?.input()?;
    let entry_idx = call.results.first()?.entry_idx;
    let at = session.timestamp(entry_idx);
    let data = session.entries()[entry_idx].tool_use_result();
    let mut add = |path: String, before: FileText, after: FileText, change: Change| {
        let by_command = is_command;
        edits.push((
            FileEdit { agent, entry_idx, at, path, before, after, hunks: Vec::new(), by_command },
            change,
        ));
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
            let before = owned(result.and_then(WriteResult::original_file));
            add(path, if is_new { FileText::Absent } else { known(before) }, known(after), Change::Texts);
        }
        "Edit" => {
            let result: Option<EditResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(EditResult::file_path).or_else(|| given("file_path")))?;
            let old = owned(result.and_then(EditResult::old_string).or_else(|| given("old_string")))?;
            let new = owned(result.and_then(EditResult::new_string).or_else(|| given("new_string")))?;
            let asked = || input.get("replace_all").and_then(Json::as_bool);
            let all = result.and_then(EditResult::replace_all).or_else(asked).unwrap_or(false);
            let before = owned(result.and_then(EditResult::original_file));
            // Replacing nothing is how a file is made; one that was there has its text in the result.
            let before = if old.is_empty() && before.is_none() { FileText::Absent } else { known(before) };
            add(path, before, FileText::Unknown, Change::Replaced(vec![Replacement { old, new, all }]));
        }
        "MultiEdit" => {
            let result: Option<MultiEditResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(MultiEditResult::file_path).or_else(|| given("file_path")))?;
            let edits = input.get("edits").into_iter().flat_map(Json::items);
            let replacements = edits.map(|edit| {
                let text = |key: &str| owned(edit.get(key).and_then(Json::as_str)).unwrap_or_default();
                let all = edit.get("replace_all").and_then(Json::as_bool).unwrap_or(false);
                Replacement { old: text("old_string"), new: text("new_string"), all }
            });
            let before = owned(result.and_then(MultiEditResult::original_file_contents));
            add(path, known(before), FileText::Unknown, Change::Replaced(replacements.collect()));
        }
        "NotebookEdit" => {
            let result: Option<NotebookEditResult<'_>> = data.and_then(|data| data.of());
            let named = result.and_then(NotebookEditResult::notebook_path);
            let path = owned(named.or_else(|| given("notebook_path")))?;
            let before = owned(result.and_then(NotebookEditResult::original_file));
            let after = owned(result.and_then(NotebookEditResult::updated_file));
            add(path, known(before), known(after), Change::Texts);
        }
        "Read" => {
            let file = read_file(session, call)?;
            let is_whole = file.start_line() == Some(1) && file.num_lines() == file.total_lines();
            let text = owned(file.content()).filter(|_| is_whole && file.num_lines().is_some())?;
            add(owned(file.file_path())?, FileText::Text(text.clone()), FileText::Text(text), Change::Read);
        }
        _ => {
            let diff = command_diff(session, call)?;
            let files = || diff.files().into_iter().flat_map(|files| files.iter());
            for file in files() {
                let (path, hunks) = (owned(file.file_path())?, line_hunks(file));
                let whole = |sign: char| FileText::Text(lines_with(sign, &hunks));
                match (file.created(), file.deleted()) {
                    (Some(true), _) => add(path, FileText::Absent, whole('+'), Change::Texts),
                    (_, Some(true)) => add(path, whole('-'), FileText::Absent, Change::Texts),
                    _ => add(path, FileText::Unknown, FileText::Unknown, Change::Patched(hunks)),
                }
            }
            // Large and binary files are named alone.
            let named = diff.changed_files().into_iter().flat_map(|names| names.iter());
            for path in named.filter(|path| !files().any(|file| file.file_path().as_ref() == Some(path))) {
                add(path.into_owned(), FileText::Unknown, FileText::Unknown, Change::Texts);
            }
        }
    }
    Some(())
}

fn line_hunks(file: BashEditFile<'_>) -> Vec<LineHunk> {
    let hunk = |hunk: PatchHunk<'_>| LineHunk {
        old_start: hunk.old_start().unwrap_or(1),
        new_start: hunk.new_start().unwrap_or(1),
        lines: hunk.lines().into_iter().flat_map(|lines| lines.iter()).map(Cow::into_owned).collect(),
    };
    file.hunks().into_iter().flat_map(|hunks| hunks.iter()).map(hunk).collect()
}

/// The lines of hunks that begin with a sign, as a text.
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
    /// The lines with their signs, and whether each ends with a newline.
    fn terminated_lines(&self) -> impl Iterator<Item = (&str, bool)> {
        let is_mark = |at: usize| self.lines.get(at).is_some_and(|line| line.starts_with('\\'));
        let lines = self.lines.iter().enumerate().filter(|(_, line)| !line.starts_with('\\'));
        lines.map(move |(at, line)| (&**line, !is_mark(at + 1)))
    }
}

/// A text with hunks applied to it; `None` if one of their old lines is not where it says.
fn patched(text: &str, hunks: &[LineHunk]) -> Option<String> {
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for hunk in hunks {
        let start = usize::try_from(hunk.old_start.saturating_sub(1)).ok()?;
        out.extend(old.get(at..start)?.iter().copied());
        at = start;
        for (line, has_newline) in hunk.terminated_lines() {
            let newline = if has_newline { "\n" } else { "" };
            let (sign, line) = line.split_at_checked(1)?;
            if sign != "+" {
                let found = old.get(at)?;
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
    }
    out.extend(old.get(at..)?.iter().copied());
    Some(out)
}

/// The file after some replacements, each in the text that the one before left.
fn replaced(before: &FileText, replacements: &[Replacement]) -> FileText {
    let mut text = match before {
        FileText::Absent => String::new(),
        FileText::Text(text) => text.clone(),
        FileText::Unknown => return FileText::Unknown,
    };
    for Replacement { old, new, all } in replacements {
        match apply(&text, old, new, *all) {
            Some(after) => text = after,
            None => return FileText::Unknown,
        }
    }
    FileText::Text(text)
}

/// The text with `old` replaced; `None` if it is not in it.
fn apply(text: &str, old: &str, new: &str, all: bool) -> Option<String> {
    if old.is_empty() {
        return Some(if text.is_empty() { new.to_owned() } else { format!("{new}{text}") });
    }
    // Deleting whole lines takes their newline along.
    let line = format!("{old}\n");
    let old = if new.is_empty() && !old.ends_with('\n') && text.contains(&line) { &line } else { old };
    if !text.contains(old) {
        return None;
    }
    Some(if all { text.replace(old, new) } else { text.replacen(old, new, 1) })
}
