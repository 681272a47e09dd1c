//! A preview of a session for lists, read from both ends of its file.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;

use memchr::{memchr, memmem, memrchr_iter};
use rayon::prelude::*;
use threadline_entry::key::{self, quoted};
use threadline_entry::{
    Entry, FirstPromptSearch, Json, Kind, Millis, SessionStartSearch, TitleSources, walk,
};

use crate::agent_file::AgentCounts;
use crate::file_window::{
    EndCollector, FileWindow, head_is_whole_file, head_lines, lines, lines_back, tail_is_whole_file,
};
use crate::home::Store;
use crate::last_active;
use crate::leading_members;
use crate::listing::Listing;
use crate::prompt::{REPLY, examine_line};
use crate::session_file::{SessionFile, starts_sidechain};

/// The properties of a session that a list shows.
///
/// They are taken from the first and the last 64 KiB of the file; anything in between is not seen. If these
/// contain no prompt or no timestamp, up to 4 MiB of the beginning are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPreview {
    /// The title set by the user.
    pub custom_title: Option<String>,
    /// The title set by Claude Code.
    pub ai_title: Option<String>,
    /// The last summary near the end that belongs to a message of the log. In older versions, it was the
    /// title.
    pub summary: Option<String>,
    /// The first prompt, by the rules of [`FirstPromptSearch`].
    pub first_prompt: Option<String>,
    /// The last prompt, if Claude Code recorded it.
    pub last_prompt: Option<String>,
    /// The last tag that was set.
    pub tag: Option<String>,
    /// The working directory at the start.
    pub cwd: Option<String>,
    /// The git branch at the end.
    pub git_branch: Option<String>,
    /// The version of Claude Code at the end.
    pub version: Option<String>,
    /// When the session started, by the rules of [`SessionStartSearch`].
    pub started: Option<Millis>,
    /// The time of the last message: that of the last line with a timestamp, else [`modified`].
    ///
    /// [`modified`]: Self::modified
    pub last_active: SystemTime,
    /// When the file was last modified. A copied or edited file is new, so this only shows whether another
    /// program is writing to it.
    pub modified: SystemTime,
    /// The size of the file in bytes.
    pub size: u64,
    /// The number of transcripts of sub-agents.
    pub n_agents: usize,
    /// Whether the file is the log of a sub-agent rather than a session.
    pub is_sidechain: bool,
}

impl SessionPreview {
    /// Returns the title on one line, by the rules of [`TitleSources`].
    pub fn title(&self) -> Option<String> {
        self.title_sources().title()
    }

    fn title_sources(&self) -> TitleSources<'_> {
        TitleSources {
            custom: self.custom_title.as_deref(),
            generated: self.ai_title.as_deref(),
            last_prompt: self.last_prompt.as_deref(),
            summary: self.summary.as_deref(),
            first_prompt: self.first_prompt.as_deref(),
        }
    }

    /// Whether this is a conversation to list: a session with a title.
    pub fn is_listed(&self) -> bool {
        !self.is_sidechain && self.title().is_some()
    }
}

impl Store {
    /// Returns the conversations of the store, last active first; if several files have the same id, the one
    /// last active.
    pub fn list(&self) -> Listing<(SessionFile, SessionPreview)> {
        let files = self.session_files(|_| true);
        let previews = preview_all(&files.found);
        let mut listing = Listing { found: Vec::new(), errors: files.errors };
        for (file, preview) in files.found.into_iter().zip(previews) {
            if let Some(preview) = listing.ok_or_record(preview).filter(SessionPreview::is_listed) {
                listing.found.push((file, preview));
            }
        }
        keep_last_active(&mut listing.found);
        listing
    }
}

/// Sorts sessions by last activity, latest first, and keeps one file of each session: the one last active.
pub fn keep_last_active(sessions: &mut Vec<(SessionFile, SessionPreview)>) {
    sessions.sort_by(|(a, x), (b, y)| {
        let newest = y.last_active.cmp(&x.last_active);
        newest.then_with(|| a.id.cmp(&b.id)).then_with(|| y.modified.cmp(&x.modified))
    });
    let mut seen = std::collections::HashSet::new();
    sessions.retain(|(file, _)| seen.insert(file.id.clone()));
}

/// Reads the preview of one session.
pub fn read_session_preview(file: &SessionFile) -> io::Result<SessionPreview> {
    let agents = file.path.parent().map(AgentCounts::of).unwrap_or_default();
    read_preview(file, &agents, &mut FileWindow::default())
}

/// Reads the previews of many sessions in parallel. The results are in the order of the files.
pub fn preview_all(files: &[SessionFile]) -> Vec<io::Result<SessionPreview>> {
    let mut folders: HashMap<&Path, AgentCounts> = HashMap::new();
    for folder in files.iter().filter_map(|file| file.path.parent()) {
        folders.entry(folder).or_default();
    }
    folders.par_iter_mut().for_each(|(folder, agents)| *agents = AgentCounts::of(folder));
    let no_agents = AgentCounts::default();
    files
        .par_iter()
        .with_min_len(16)
        .map_init(FileWindow::default, |window, file| {
            let agents = file.path.parent().and_then(|folder| folders.get(folder)).unwrap_or(&no_agents);
            read_preview(file, agents, window)
        })
        .collect()
}

fn read_preview(
    file: &SessionFile,
    agents: &AgentCounts,
    window: &mut FileWindow,
) -> io::Result<SessionPreview> {
    let (mut handle, metadata) = window.read(&file.path)?;
    let n_agents = agents.count(&file.path, &file.id);
    preview_of(&mut handle, metadata.len(), metadata.modified()?, n_agents, window)
}

/// Makes previews from logs that are read for another purpose, one after the other.
#[derive(Default)]
pub struct PreviewReader {
    ends: EndCollector,
    head: Option<HeadValues>,
    tail: Option<TailValues>,
    is_sidechain: bool,
}

impl PreviewReader {
    /// Begins the log of a session, which has `size` bytes.
    pub fn begin(&mut self, size: u64) {
        self.ends.begin(size);
        (self.head, self.tail, self.is_sidechain) = (None, None, false);
    }

    /// Adds the piece of the log at `offset`. Pieces must be added in order.
    pub fn add(&mut self, offset: u64, piece: &[u8]) {
        let size = self.ends.size();
        let ends = self.ends.add(offset, piece);
        if let Some(head) = ends.head {
            self.head = Some(HeadValues::of(head_lines(head, size), tail_is_whole_file(size)));
            self.is_sidechain = starts_sidechain(head);
        }
        if let Some(tail) = ends.tail {
            self.tail = Some(TailValues::of(tail));
        }
    }

    /// Returns the preview of the session with this log. Its sub-agents are not counted.
    ///
    /// Returns `None` if the pieces were not the whole log, or if more of it is needed than both ends.
    pub fn finish(&mut self, modified: SystemTime) -> Option<SessionPreview> {
        if !self.ends.is_complete() {
            return None;
        }
        let size = self.ends.size();
        let (head, tail) = (self.head.take().unwrap_or_default(), self.tail.take().unwrap_or_default());
        if tail.last_message.is_none() && !tail_is_whole_file(size) {
            return None;
        }
        let mut preview = tail.into_preview(modified, size, 0);
        let is_complete = head.fill(&mut preview);
        preview.is_sidechain = self.is_sidechain;
        (is_complete || head_is_whole_file(size)).then_some(preview)
    }
}

/// Reads the preview of a log of `size` bytes, of which `window` contains both ends.
fn preview_of(
    log: &mut (impl Read + Seek),
    size: u64,
    modified: SystemTime,
    n_agents: usize,
    window: &mut FileWindow,
) -> io::Result<SessionPreview> {
    let mut tail = TailValues::of(window.tail());
    if tail.last_message.is_none() && !tail_is_whole_file(size) {
        tail.last_message = last_active::search_back(log, size)?;
    }
    let mut preview = tail.into_preview(modified, size, n_agents);
    loop {
        // If the tail is the whole file, all titles are known already.
        let titles_are_known = tail_is_whole_file(size) || preview.custom_title.is_some();
        let is_complete = HeadValues::of(window.head(), titles_are_known).fill(&mut preview);
        if is_complete || !window.grow(log)? {
            preview.is_sidechain = starts_sidechain(window.head_bytes());
            return Ok(preview);
        }
    }
}

/// The values at the end of a file. The last occurrence of each counts, even if it is empty.
#[derive(Default)]
struct TailValues {
    custom_title: Option<String>,
    ai_title: Option<String>,
    summary: Option<String>,
    last_prompt: Option<String>,
    tag: Option<String>,
    git_branch: Option<String>,
    version: Option<String>,
    last_message: Option<Millis>,
}

impl TailValues {
    fn of(bytes: &[u8]) -> Self {
        let mut titles = SessionTitles::default();
        let (mut git_branch, mut version, mut last_message) = (None, None, None);
        for line in lines_back(bytes) {
            let kind = LineKind::of(line);
            titles.read_line(line, kind, bytes);
            last_message = last_message.or_else(|| last_active::line_time(line));
            let wanted = [(key::GIT_BRANCH, git_branch.is_none()), (key::VERSION, version.is_none())];
            if kind != LineKind::Record && wanted.iter().any(|(_, wanted)| *wanted) {
                let members = leading_members::members(line, wanted);
                keep(&mut git_branch, members[0]);
                keep(&mut version, members[1]);
            }
        }
        Self {
            custom_title: owned(titles.custom_title),
            ai_title: owned(titles.ai_title),
            summary: owned(titles.summary),
            last_prompt: owned(titles.last_prompt),
            tag: owned(titles.tag),
            git_branch: owned(git_branch),
            version: owned(version),
            last_message,
        }
    }

    fn into_preview(self, modified: SystemTime, size: u64, n_agents: usize) -> SessionPreview {
        SessionPreview {
            custom_title: self.custom_title,
            ai_title: self.ai_title,
            summary: self.summary,
            last_prompt: self.last_prompt,
            tag: self.tag,
            git_branch: self.git_branch,
            version: self.version,
            first_prompt: None,
            cwd: None,
            started: None,
            last_active: last_active::time_or(self.last_message, modified),
            modified,
            size,
            n_agents,
            is_sidechain: false,
        }
    }
}

/// The values at the beginning of a file, for those that the end did not have.
#[derive(Default)]
struct HeadValues {
    prompt: Option<String>,
    /// Whether the prompt is certain, so that no further lines are needed.
    has_prompt: bool,
    custom_title: Option<String>,
    ai_title: Option<String>,
    cwd: Option<String>,
    started: Option<Millis>,
    git_branch: Option<String>,
    version: Option<String>,
}

impl HeadValues {
    /// Reads the values from whole lines. Titles are not searched for if they are known.
    fn of(bytes: &[u8], titles_are_known: bool) -> Self {
        let (mut cwd, mut version, mut git_branch) = (None, None, None);
        let mut search = FirstPromptSearch::default();
        let mut start = SessionStartSearch::default();
        for line in lines(bytes) {
            let wanted = [
                (key::CWD, cwd.is_none()),
                (key::VERSION, version.is_none()),
                (key::GIT_BRANCH, git_branch.is_none()),
            ];
            let is_done = !wanted.iter().any(|(_, wanted)| *wanted);
            if !is_done {
                let members = leading_members::members(line, wanted);
                keep(&mut cwd, members[0]);
                keep(&mut version, members[1]);
                keep(&mut git_branch, members[2]);
            }
            examine_line(&mut search, line);
            if !start.is_done() {
                start.add_line(|| last_active::line_time(line), is_reply(line));
            }
            if is_done && search.is_done() && start.is_done() {
                break;
            }
        }
        let mut titles = SessionTitles::default();
        if !titles_are_known && END_OF_TITLE.find(bytes).is_some() {
            for line in lines_back(bytes) {
                titles.read_line(line, LineKind::of(line), bytes);
            }
        }
        Self {
            has_prompt: search.is_done(),
            prompt: search.finish(),
            custom_title: owned(titles.custom_title),
            ai_title: owned(titles.ai_title),
            cwd: owned(cwd),
            started: start.start(),
            git_branch: owned(git_branch),
            version: owned(version),
        }
    }

    /// Adds the values to a preview. Returns `false` if more of the beginning is needed.
    fn fill(self, preview: &mut SessionPreview) -> bool {
        fn or(known: &mut Option<String>, value: Option<String>) {
            *known = known.take().or(value);
        }
        if preview.custom_title.is_none() {
            or(&mut preview.custom_title, self.custom_title);
            or(&mut preview.ai_title, self.ai_title);
        }
        or(&mut preview.cwd, self.cwd);
        or(&mut preview.git_branch, self.git_branch);
        or(&mut preview.version, self.version);
        // The head grows, so the last result is the best one.
        preview.started = self.started;
        preview.first_prompt = self.prompt;
        preview.started.is_some() && self.has_prompt
    }
}

/// The titles of a session, each from a separate record. Lines are read from last to first.
#[derive(Default)]
struct SessionTitles<'w> {
    custom_title: Option<Cow<'w, str>>,
    ai_title: Option<Cow<'w, str>>,
    last_prompt: Option<Cow<'w, str>>,
    summary: Option<Cow<'w, str>>,
    tag: Option<Cow<'w, str>>,
    /// The uuids of the messages, once a summary is found.
    uuids: Option<HashSet<&'w [u8]>>,
}

impl<'w> SessionTitles<'w> {
    /// Reads a line of `bytes`.
    fn read_line(&mut self, line: &'w [u8], kind: LineKind, bytes: &'w [u8]) {
        if kind == LineKind::Conversation {
            if let Some(record) = record_at_end(line) {
                self.read_line(record, LineKind::Record, bytes);
            }
            return;
        }
        const NEEDLES: [&str; 5] =
            [quoted::CUSTOM_TITLE, quoted::AI_TITLE, quoted::LAST_PROMPT, quoted::SUMMARY, quoted::TAG];
        // The type of a record is its first member, so it can be compared directly; other lines are searched.
        let wanted = match kind {
            LineKind::Record => {
                TITLE_TYPES.iter().any(|name| line[RECORD_PREFIX.len()..].starts_with(name.as_bytes()))
            }
            _ => NEEDLES.iter().any(|needle| has(line, needle)),
        };
        let keys = [
            key::TYPE,
            key::CUSTOM_TITLE,
            key::AI_TITLE,
            key::LAST_PROMPT,
            key::SUMMARY,
            key::TAG,
            key::LEAF_UUID,
        ];
        let Some([kind, custom, ai, prompt, summary, tag, leaf]) =
            wanted.then(|| walk::pick(line, keys)).flatten()
        else {
            return;
        };
        let of = |name: &str, value| if kind.is_some_and(|kind| kind.is_str(name)) { value } else { None };
        keep(&mut self.custom_title, custom);
        keep(&mut self.ai_title, ai);
        keep(&mut self.last_prompt, prompt);
        // Old versions wrote the titles of other sessions into a new log.
        if let Some(leaf) = leaf.filter(|_| self.summary.is_none()).and_then(Json::as_str)
            && self.uuids.get_or_insert_with(|| uuids(bytes)).contains(leaf.as_bytes())
        {
            keep(&mut self.summary, of("summary", summary));
        }
        keep(&mut self.tag, of("tag", tag));
    }
}

/// The end of the types and keys of records with a title that Claude Code or a person has chosen.
static END_OF_TITLE: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"itle\""));

/// The prefixes of lines, as Claude Code writes them.
const CONVERSATION_PREFIX: &[u8] = key::first::PARENT_UUID.as_bytes();
const RECORD_PREFIX: &[u8] = b"{\"type\":\"";

/// The types of records that contain a title.
const TITLE_TYPES: [&str; 5] = ["custom-title\"", "ai-title\"", "last-prompt\"", "summary\"", "tag\""];

/// The types of conversation lines, which some writers put first as in records.
const CONVERSATION_TYPES: [&str; 5] = ["user\"", "assistant\"", "system\"", "progress\"", "attachment\""];

/// The kind of a line according to its first bytes, so that few lines have to be parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// A line of the conversation.
    Conversation,
    /// A record about the session.
    Record,
    /// A line of another program, with members in another order.
    Other,
}

impl LineKind {
    fn of(line: &[u8]) -> Self {
        match line.strip_prefix(RECORD_PREFIX) {
            Some(rest) if CONVERSATION_TYPES.iter().any(|name| rest.starts_with(name.as_bytes())) => {
                Self::Conversation
            }
            Some(_) => Self::Record,
            None if line.starts_with(CONVERSATION_PREFIX) => Self::Conversation,
            None => Self::Other,
        }
    }
}

/// Returns whether a line is part of a reply.
fn is_reply(line: &[u8]) -> bool {
    REPLY.find(line).is_some() && {
        match leading_members::members(line, [(key::TYPE, true)]) {
            [Some(kind)] => kind.is_str("assistant"),
            // Other writers leave out the type of a reply.
            [None] => Entry::parse(line).0.kind() == Kind::Assistant,
        }
    }
}

/// Returns a record with a title at the end of a torn line, which was not terminated before the record was
/// appended.
fn record_at_end(line: &[u8]) -> Option<&[u8]> {
    // It contains no other object. In a string, a quote after a brace is escaped, or ends the string.
    let is_object = |start: &usize| {
        line[start + 1..]
            .strip_prefix(b"\"")
            .is_some_and(|rest| !rest.starts_with(b",") && !rest.starts_with(b"}"))
    };
    let start = memrchr_iter(b'{', line).find(is_object).filter(|start| *start > 0)?;
    let kind = line[start..].strip_prefix(RECORD_PREFIX)?;
    TITLE_TYPES.iter().any(|name| kind.starts_with(name.as_bytes())).then_some(&line[start..])
}

fn has(line: &[u8], needle: &str) -> bool {
    memmem::find(line, needle.as_bytes()).is_some()
}

/// Returns the values of all members `uuid` in `bytes`.
fn uuids(bytes: &[u8]) -> HashSet<&[u8]> {
    let values = memmem::find_iter(bytes, quoted::UUID).filter_map(|at| {
        let value = bytes[at + quoted::UUID.len()..].strip_prefix(b":")?;
        let value = value.strip_prefix(b" ").unwrap_or(value).strip_prefix(b"\"")?;
        Some(&value[..memchr(b'"', value)?])
    });
    values.collect()
}

/// Stores the value if the slot is empty and the value is a string.
fn keep<'w>(slot: &mut Option<Cow<'w, str>>, value: Option<Json<'w>>) {
    if slot.is_none() {
        *slot = value.and_then(Json::as_str);
    }
}

/// Returns the text, unless it is empty.
fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(Cow::into_owned)
}

#[cfg(test)]
mod tests;
