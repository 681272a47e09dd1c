//! The logged edits of one file: found by a search over the bytes of all logs, then loaded with their
//! sessions.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memchr::memmem::Finder;
use parking_lot::Mutex;
use rayon::prelude::*;
use threadline_entry::{FirstPromptSearch, LineReader, Millis, key};
use threadline_evidence::{FileEdit, FileEvidence, FileText};
use threadline_session::{EntryIndex, InputKind, SessionFamily};
use threadline_store::{LogFile, SessionFile, SessionLogs, open_regular};
use threadline_view::{agent_anchor, anchor, turn_title};

use crate::config::App;
use crate::error::AppError;
use crate::load::{MainLines, load_unpriced};
use crate::usage::MAX_LINE;

/// An edit of a file by a session.
#[derive(Clone, Debug)]
pub struct LoggedEdit {
    /// The session.
    pub session: SessionFile,
    /// The title of the session.
    pub title: Option<String>,
    /// The id of the sub-agent that made the edit.
    pub agent: Option<String>,
    /// The number of the turn, from 1; `None` on an abandoned branch.
    pub turn: Option<usize>,
    /// The prompt of the turn, or the title of the notification that opened it, on one line.
    pub prompt: Option<String>,
    /// The anchor of the prompt.
    pub prompt_anchor: Option<String>,
    /// The anchor of the call on the page of the session.
    pub anchor: String,
    /// The name of the tool.
    pub tool: String,
    /// The edit.
    pub edit: FileEdit,
    /// Cache of [`LoggedEdit::changed_lines`].
    pub(super) changed_lines: OnceLock<Option<(usize, usize)>>,
    /// The id of the call, which is the same in all copies of it.
    call_id: String,
    /// Whether the line was copied from another session.
    is_copy: bool,
}

impl LoggedEdit {
    /// Returns the session and the anchor of the call, such as `3f2a…#m42`.
    pub fn link(&self) -> String {
        format!("{}#{}", self.session.id, self.anchor)
    }

    /// Removes the texts of the file, of which a log has very many.
    fn drop_texts(&mut self) {
        self.changed_lines();
        let FileEdit { before, after, hunks, replacements, .. } = &mut self.edit;
        (*before, *after) = (FileText::Unknown, FileText::Unknown);
        (*hunks, *replacements) = (Vec::new(), Vec::new());
    }

    /// Removes the texts that [`LineHistory`](threadline_session::LineHistory) does not read: it applies
    /// replacements to the text that it has. Many edits of a long file have far longer texts than the log.
    ///
    /// The text after the change of a shell command is removed, too, if it is longer than `bytes_left`, from
    /// which it is subtracted otherwise.
    fn drop_unread_texts(&mut self, bytes_left: &mut usize) {
        if self.edit.is_before_logged {
            return;
        }
        self.changed_lines();
        self.edit.before = FileText::Unknown;
        let mut is_read = self.edit.replacements.is_empty();
        if self.edit.by_command {
            let left = bytes_left.checked_sub(self.edit.after.as_text().map_or(0, str::len));
            *bytes_left = left.unwrap_or(*bytes_left);
            is_read &= left.is_some();
        }
        if !is_read {
            self.edit.after = FileText::Unknown;
        }
    }

    /// Returns whether both edits are in the same turn of the same session.
    pub(crate) fn is_same_turn(&self, other: &Self) -> bool {
        self.turn.is_some() && self.turn == other.turn && self.session.id == other.session.id
    }
}

/// Edits in the order of their times, and the logs that could not be read.
#[derive(Debug, Default)]
pub(crate) struct FoundEdits {
    pub(crate) edits: Vec<LoggedEdit>,
    pub(crate) unread: Vec<AppError>,
}

/// The names of the tools that edit files, as the log contains them.
const EDIT_TOOLS: [&[u8]; 4] = [br#""Edit""#, br#""Write""#, br#""MultiEdit""#, br#""NotebookEdit""#];

/// Searches lines for a call of an edit tool, or a command with changed files, that names a file.
struct EditFinder {
    name: Finder<'static>,
    /// The end of the path.
    suffix: String,
    markers: Vec<Finder<'static>>,
}

impl EditFinder {
    /// Searches for paths that end with `suffix`, one or more components.
    fn new(suffix: &str) -> Self {
        let file_name = suffix.rsplit('/').next().unwrap_or(suffix);
        // A character that is not ASCII may be escaped. The rest of the name behind it is not.
        let quoted = escaped(file_name);
        let tail = quoted.rfind(|c: char| !c.is_ascii()).map_or(&*quoted, |at| {
            let rest = &quoted[at..];
            rest.char_indices().nth(1).map_or("", |(next, _)| &rest[next..])
        });
        // Every string ends with a quote, so that alone finds too much.
        let tail = if tail.len() > 1 { tail } else { &*quoted };
        let diff = key::quoted::BASH_EDIT_DIFF.as_bytes();
        let markers = EDIT_TOOLS.into_iter().chain([diff]).map(|marker| Finder::new(marker).into_owned());
        Self { name: Finder::new(tail).into_owned(), suffix: suffix.to_owned(), markers: markers.collect() }
    }

    /// Returns whether the path that ends before the quote at `end` of a line may be the file.
    fn may_be_path(&self, line: &[u8], end: usize) -> bool {
        let start = memchr::memrchr(b'"', &line[..end]).map_or(0, |quote| quote + 1);
        let (path, suffix) = (&line[start..end], self.suffix.as_bytes());
        let is_escaped = start > 1 && line[start - 2] == b'\\';
        // A path with an escape is compared when it is decoded; a short one is relative.
        is_escaped
            || path.contains(&b'\\')
            || path.strip_suffix(suffix).is_some_and(|dir| dir.is_empty() || dir.ends_with(b"/"))
            || suffix.strip_suffix(path).is_some_and(|dir| dir.ends_with(b"/"))
    }

    /// Returns whether a block of whole lines contains such a line.
    fn is_in(&self, block: &[u8]) -> bool {
        let (mut at, mut start, mut end) = (0, 0, 0);
        while let Some(hit) = self.name.find(&block[at..]) {
            let hit = at + hit;
            // A long line may have very many hits, so its ends are found once.
            if hit >= end {
                start = memchr::memrchr(b'\n', &block[end..hit]).map_or(end, |newline| end + newline + 1);
                end = memchr::memchr(b'\n', &block[hit..]).map_or(block.len(), |newline| hit + newline);
            }
            let line = &block[start..end];
            let quote = hit + self.name.needle().len() - 1;
            if !self.may_be_path(line, quote - start) {
                at = hit + 1;
                continue;
            }
            if self.markers.iter().any(|marker| marker.find(line).is_some()) {
                return true;
            }
            at = end;
        }
        false
    }
}

/// Returns a text as it is inside of a JSON string, with the closing quote.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns the sessions with an edit of a file whose path has one of these ends, and perhaps others.
pub(crate) fn sessions_with_edits<'s>(
    sessions: &'s [SessionLogs],
    suffixes: &[String],
    unread: &mut Vec<AppError>,
) -> Vec<&'s SessionLogs> {
    let finders: Vec<EditFinder> = suffixes.iter().map(|suffix| EditFinder::new(suffix)).collect();
    let mut logs: Vec<(usize, &LogFile)> = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        logs.extend(session.logs().map(|log| (at, log)));
    }
    logs.sort_by_key(|(_, log)| std::cmp::Reverse(log.size));
    let errors = Mutex::new(Vec::new());
    let search =
        |buffer: &mut Vec<u8>, (at, log): &(usize, &LogFile)| match is_in_log(&finders, &log.path, buffer) {
            Ok(found) => found.then_some(*at),
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    errors.lock().push(AppError::Read { path: log.path.clone(), source: error });
                }
                None
            }
        };
    let found: HashSet<usize> =
        logs.par_iter().with_max_len(1).map_init(Vec::new, search).flatten_iter().collect();
    unread.extend(errors.into_inner());
    let mut found: Vec<usize> = found.into_iter().collect();
    found.sort_unstable();
    found.into_iter().map(|at| &sessions[at]).collect()
}

fn is_in_log(finders: &[EditFinder], path: &Path, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut lines = LineReader::new(open_regular(path)?).skip_longer_than(MAX_LINE);
    lines = lines.with_buffer(std::mem::take(buffer));
    lines.stop_numbering();
    let found = loop {
        match lines.next_block() {
            Ok(Some(block)) if finders.iter().any(|finder| finder.is_in(block.bytes)) => break Ok(true),
            Ok(Some(_)) => {}
            Ok(None) => break Ok(false),
            Err(error) => break Err(error),
        }
    };
    *buffer = lines.into_buffer();
    found
}

/// Whether the texts of the file are needed to replay the edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditTexts {
    Keep,
    Drop,
}

/// Loads sessions and returns their edits of the files that `is_wanted` selects by path.
pub(crate) fn load_edits(
    app: &App,
    sessions: &[&SessionLogs],
    is_wanted: &(dyn Fn(&str) -> bool + Sync),
    texts: EditTexts,
) -> FoundEdits {
    let load = |session: &&SessionLogs| edits_of(app, session, is_wanted, texts);
    let parts: Vec<Result<FoundEdits, AppError>> = sessions.par_iter().with_max_len(1).map(load).collect();
    let mut found = FoundEdits::default();
    for part in parts {
        match part {
            Ok(part) => {
                found.edits.extend(part.edits);
                found.unread.extend(part.unread);
            }
            Err(error) => found.unread.push(error),
        }
    }
    remove_copies(&mut found.edits);
    found.edits.sort_by(|a, b| {
        let order = |edit: &LoggedEdit| (edit.edit.at, edit.edit.entry_idx);
        order(a).cmp(&order(b))
    });
    found
}

/// Removes the copies of edits in forked sessions.
fn remove_copies(edits: &mut Vec<LoggedEdit>) {
    edits.sort_by(|a, b| (a.is_copy, &*a.session.id).cmp(&(b.is_copy, &*b.session.id)));
    let mut seen: HashSet<(String, Option<Millis>, PathBuf)> = HashSet::new();
    edits.retain(|edit| {
        edit.call_id.is_empty()
            || seen.insert((edit.call_id.clone(), edit.edit.at, PathBuf::from(&edit.edit.path)))
    });
}

/// The size of the texts after changes by shell commands that are kept for a session, unless its logs are
/// larger: a short change of a long file makes another long text.
const MAX_KEPT_TEXTS: usize = 8 << 20;

fn edits_of(
    app: &App,
    logs: &SessionLogs,
    is_wanted: &(dyn Fn(&str) -> bool + Sync),
    texts: EditTexts,
) -> Result<FoundEdits, AppError> {
    let file = &logs.file;
    let n_logged = logs.logs().map(|log| log.size as usize).sum();
    let loaded = load_unpriced(file)?;
    let family = &loaded.family;
    let sources = app.disk_sources(file, family);
    let evidence = FileEvidence::of_files(family, &sources, &|path| is_wanted(path));
    let edits: Vec<FileEdit> = evidence.edits().into_iter().filter(|edit| is_wanted(&edit.path)).collect();
    if edits.is_empty() {
        return Ok(FoundEdits { edits: Vec::new(), unread: loaded.unread });
    }
    let mut turns = SessionTurns::of(family);
    let title = family.main.title();
    let mut bytes_left = MAX_KEPT_TEXTS.max(n_logged);
    let edits = edits.into_iter().map(|edit| {
        let session = family.session(edit.agent);
        let call = &session.tool_calls()[edit.call_idx];
        let agent = edit.agent.map(|agent| family.agents[agent].id.clone());
        let own_anchor = anchor(session.entries()[call.entry_idx].at().line_no, call.block_idx as usize);
        let anchor = agent.as_ref().map_or_else(|| own_anchor.clone(), |id| agent_anchor(id, &own_anchor));
        let TurnInfo { number, prompt, prompt_anchor } = turns.of_edit(&edit);
        let envelope = session.entries()[edit.entry_idx].envelope();
        let mut edit = LoggedEdit {
            session: file.clone(),
            title: title.clone(),
            agent,
            turn: number,
            prompt,
            prompt_anchor,
            anchor,
            tool: call.name.to_string(),
            call_id: call.id.to_string(),
            is_copy: envelope.is_some_and(|envelope| envelope.forked_from().is_some()),
            changed_lines: OnceLock::new(),
            edit,
        };
        match texts {
            EditTexts::Keep => edit.drop_unread_texts(&mut bytes_left),
            EditTexts::Drop => edit.drop_texts(),
        }
        edit
    });
    let edits = edits.collect();
    Ok(FoundEdits { edits, unread: loaded.unread })
}

/// The turns of a session by line.
struct SessionTurns<'f> {
    family: &'f SessionFamily,
    main_lines: MainLines,
    /// By line of the main log: the number of the turn, and its prompt.
    by_entry: HashMap<EntryIndex, (usize, Option<EntryIndex>)>,
    /// The prompts above lines of abandoned branches, and above the lines between.
    prompts_above: HashMap<EntryIndex, Option<EntryIndex>>,
    /// The texts of prompts. A turn may have very many edits, and a long prompt.
    prompts: HashMap<EntryIndex, Option<String>>,
}

#[derive(Default)]
struct TurnInfo {
    number: Option<usize>,
    prompt: Option<String>,
    prompt_anchor: Option<String>,
}

impl<'f> SessionTurns<'f> {
    fn of(family: &'f SessionFamily) -> Self {
        let mut by_entry = HashMap::new();
        for turn in family.main.turns() {
            by_entry.extend(turn.entries.iter().map(|&idx| (idx, (turn.number, turn.prompt))));
        }
        let main_lines = MainLines::of(family);
        let (prompts_above, prompts) = (HashMap::new(), HashMap::new());
        Self { family, main_lines, by_entry, prompts_above, prompts }
    }

    fn of_edit(&mut self, edit: &FileEdit) -> TurnInfo {
        let Some(line) = self.main_lines.line(edit.agent, edit.entry_idx) else { return TurnInfo::default() };
        let (number, prompt) = match self.by_entry.get(&line) {
            Some((number, prompt)) => (Some(*number), *prompt),
            None => (None, self.prompt_above(line)),
        };
        let family = self.family;
        let prompt_anchor = prompt.map(|idx| anchor(family.main.entries()[idx].at().line_no, 0));
        let prompt = prompt
            .and_then(|idx| self.prompts.entry(idx).or_insert_with(|| prompt_text(family, idx)).clone());
        TurnInfo { number, prompt, prompt_anchor }
    }

    /// Returns the prompt above a line of an abandoned branch.
    fn prompt_above(&mut self, line: EntryIndex) -> Option<EntryIndex> {
        let main = &self.family.main;
        let (mut passed, mut prompt) = (Vec::new(), None);
        for idx in main.ancestors(line) {
            if main.input(idx).is_some_and(InputKind::opens_turn) {
                prompt = Some(idx);
                break;
            }
            // A long branch may have very many edits.
            if let Some(known) = self.prompts_above.get(&idx) {
                prompt = *known;
                break;
            }
            passed.push(idx);
        }
        self.prompts_above.extend(passed.into_iter().map(|idx| (idx, prompt)));
        prompt
    }
}

/// Returns the prompt that opened a turn, or the title of the notification that did, on one line.
fn prompt_text(family: &SessionFamily, idx: EntryIndex) -> Option<String> {
    let mut search = FirstPromptSearch::default();
    search.examine(&family.main.entries()[idx]);
    // A notification opens a turn, too, and nobody typed it.
    search.finish().or_else(|| turn_title(family, idx))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(file_name: &str, log: &str) -> bool {
        EditFinder::new(file_name).is_in(log.as_bytes())
    }

    #[test]
    fn only_lines_with_an_edit_of_the_file_are_found() {
        let read = r#"{"name":"Read","input":{"file_path":"/a/loom.rs"}}"#;
        let edit = r#"{"name":"Edit","input":{"file_path":"/a/loom.rs"}}"#;
        assert!(!finds("loom.rs", read));
        assert!(finds("loom.rs", edit));
        assert!(finds("loom.rs", &format!("{read}\n{read}\n{edit}\n{read}")));
        assert!(!finds("loom.rs", &edit.replace("loom.rs", "loom.rst")));
        assert!(!finds("loom.rs", &format!("{read}\n{}", edit.replace("loom", "weft"))));
        assert!(finds("a \"b\".rs", &edit.replace("loom.rs", r#"a \"b\".rs"#)));
        // Some programs escape all characters that are not ASCII.
        assert!(finds("织机.rs", &edit.replace("loom.rs", r"\u7ec7\u673a.rs")));
        assert!(finds("织机", &edit.replace("loom.rs", "织机")));
        // The folder counts, too.
        assert!(finds("a/loom.rs", edit));
        assert!(!finds("b/loom.rs", edit));
        assert!(!finds("x/a/loom.rs", edit));
        assert!(finds("x/a/loom.rs", &edit.replace("/a/", "a/")));
        assert!(finds("b/loom.rs", &edit.replace("/a/", r"C:\\b\\")));
        let other = r#"{"name":"Edit","input":{"file_path":"/c/loom.rs","old":"\"/a/loom.rs\""}}"#;
        assert!(!finds("b/loom.rs", &other.replace("\\\"", "")));
        assert!(finds("a/loom.rs", &format!("{}\n{edit}", edit.replace("/a/", "/b/"))));
    }
}
