//! A preview of a session for lists, read from both ends of its file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use memchr::{memchr, memmem};
use rayon::prelude::*;
use threadline_entry::{Json, walk};

use crate::agent_file::AgentCounts;
use crate::home::Store;
use crate::leading;
use crate::listing::Listing;
use crate::prompt::PromptSearch;
use crate::session_file::{SessionFile, starts_sidechain};
use crate::window::{Window, lines, lines_back};

/// The properties of a session that a list shows.
///
/// They are taken from the first and the last 64 KiB of the file, by the rules of Anthropic's SDK; anything
/// in between is not seen. If these contain no prompt, and lack either a working directory or a heading, up
/// to 4 MiB of the beginning are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The title set by the user.
    pub custom_title: Option<String>,
    /// The title set by Claude Code.
    pub ai_title: Option<String>,
    /// The last summary near the end, which was the title in older versions.
    pub summary: Option<String>,
    /// The first prompt, or else the first slash command; 200 characters at most.
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
    /// The first timestamp, as written.
    pub created: Option<String>,
    /// When the file was last modified.
    pub modified: SystemTime,
    /// The size of the file in bytes.
    pub size: u64,
    /// The number of transcripts of sub-agents.
    pub n_agents: usize,
    /// Whether the file is the log of a sub-agent rather than a session.
    pub is_sidechain: bool,
}

impl Glance {
    /// Returns the title: the user's, else Claude Code's, else a summary.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref().or(self.ai_title.as_deref()).or(self.summary.as_deref())
    }

    /// Returns the text to show in a list, by the same precedence as Claude Code's own list.
    pub fn heading(&self) -> Option<&str> {
        let title = self.custom_title.as_deref().or(self.ai_title.as_deref());
        title.or(self.last_prompt.as_deref()).or(self.summary.as_deref()).or(self.opening())
    }

    /// Returns the first prompt as it was typed: for a shell command, without its tags.
    pub fn opening(&self) -> Option<&str> {
        let first = self.first_prompt.as_deref()?;
        let command = first.strip_prefix("<bash-input>").and_then(|rest| rest.strip_suffix("</bash-input>"));
        Some(command.unwrap_or(first))
    }

    /// Whether this is a conversation to list: a session with a heading.
    pub fn is_listed(&self) -> bool {
        !self.is_sidechain && self.heading().is_some()
    }
}

impl Store {
    /// Returns the conversations of the store, most recently modified first; if several files have the same
    /// id, the newest.
    pub fn list(&self) -> Listing<(SessionFile, Glance)> {
        let files = self.session_files(|_| true);
        let glances = glance_all(&files.found);
        let mut listing = Listing { found: Vec::new(), unread: files.unread };
        for (file, glance) in files.found.into_iter().zip(glances) {
            if let Some(glance) = listing.note(glance).filter(Glance::is_listed) {
                listing.found.push((file, glance));
            }
        }
        listing.found.sort_by(|(a, x), (b, y)| y.modified.cmp(&x.modified).then_with(|| a.id.cmp(&b.id)));
        let mut seen = std::collections::HashSet::new();
        listing.found.retain(|(file, _)| seen.insert(file.id.clone()));
        listing
    }
}

/// Reads the preview of one session.
pub fn glance(file: &SessionFile) -> io::Result<Glance> {
    let agents = file.path.parent().map(AgentCounts::of).unwrap_or_default();
    look(file, &agents, &mut Window::default())
}

/// Reads the previews of many sessions in parallel. The results are in the order of the files.
pub fn glance_all(files: &[SessionFile]) -> Vec<io::Result<Glance>> {
    let mut folders: HashMap<&Path, AgentCounts> = HashMap::new();
    for folder in files.iter().filter_map(|file| file.path.parent()) {
        folders.entry(folder).or_default();
    }
    folders.par_iter_mut().for_each(|(folder, agents)| *agents = AgentCounts::of(folder));
    let nobody = AgentCounts::default();
    files
        .par_iter()
        .with_min_len(16)
        .map_init(Window::default, |window, file| {
            let agents = file.path.parent().and_then(|folder| folders.get(folder)).unwrap_or(&nobody);
            look(file, agents, window)
        })
        .collect()
}

fn look(file: &SessionFile, agents: &AgentCounts, window: &mut Window) -> io::Result<Glance> {
    let (mut handle, metadata) = window.read(&file.path)?;
    let n_agents = agents.count(&file.path, &file.id);
    let mut glance = Tail::of(window.tail()).glance(metadata.modified()?, metadata.len(), n_agents);
    // If the tail is the whole file, all titles are known already.
    let named = window.is_short();
    loop {
        let head = Head::of(window.head(), &glance, named);
        head.fill(&mut glance);
        let stranger = glance.first_prompt.is_none() && (glance.cwd.is_none() || glance.heading().is_none());
        if !(stranger && window.grow(&mut handle)?) {
            glance.is_sidechain = starts_sidechain(window.ragged_head());
            return Ok(glance);
        }
    }
}

/// The values at the end of a file. The last occurrence of each counts, even if it is empty.
#[derive(Default)]
struct Tail<'w> {
    names: Names<'w>,
    git_branch: Option<Cow<'w, str>>,
    version: Option<Cow<'w, str>>,
}

impl<'w> Tail<'w> {
    fn of(bytes: &'w [u8]) -> Self {
        let mut tail = Self::default();
        for line in lines_back(bytes) {
            let kind = LineKind::of(line);
            tail.names.look(line, kind);
            let wanted = [("gitBranch", tail.git_branch.is_none()), ("version", tail.version.is_none())];
            if kind != LineKind::Record && wanted.iter().any(|(_, wanted)| *wanted) {
                let [branch, version] = leading::members(line, wanted);
                keep(&mut tail.git_branch, branch);
                keep(&mut tail.version, version);
            }
        }
        tail
    }

    fn glance(self, modified: SystemTime, size: u64, n_agents: usize) -> Glance {
        Glance {
            custom_title: owned(self.names.custom_title),
            ai_title: owned(self.names.ai_title),
            summary: owned(self.names.summary),
            last_prompt: owned(self.names.last_prompt),
            tag: owned(self.names.tag),
            git_branch: owned(self.git_branch),
            version: owned(self.version),
            first_prompt: None,
            cwd: None,
            created: None,
            modified,
            size,
            n_agents,
            is_sidechain: false,
        }
    }
}

/// The values at the beginning of a file, for those that the end did not have.
#[derive(Default)]
struct Head<'w> {
    prompt: Option<String>,
    names: Names<'w>,
    cwd: Option<Cow<'w, str>>,
    created: Option<Cow<'w, str>>,
    git_branch: Option<Cow<'w, str>>,
    version: Option<Cow<'w, str>>,
}

impl<'w> Head<'w> {
    fn of(bytes: &'w [u8], known: &Glance, named: bool) -> Self {
        let mut head = Self::default();
        let mut search = PromptSearch::default();
        let named = named || known.custom_title.is_some();
        head.created = first_timestamp(bytes);
        for line in lines(bytes) {
            let is_done = head.look(line, known);
            search.look(line);
            if is_done && search.is_done() {
                break;
            }
        }
        if !named {
            for line in lines_back(bytes) {
                head.names.look(line, LineKind::of(line));
            }
        }
        head.prompt = search.finish();
        head
    }

    /// Reads the next line; returns `true` once all values are known.
    fn look(&mut self, line: &'w [u8], known: &Glance) -> bool {
        let wanted = [
            ("cwd", self.cwd.is_none()),
            ("version", self.version.is_none() && known.version.is_none()),
            ("gitBranch", self.git_branch.is_none() && known.git_branch.is_none()),
        ];
        let is_done = !wanted.iter().any(|(_, wanted)| *wanted);
        if !is_done {
            let [cwd, version, branch] = leading::members(line, wanted);
            keep(&mut self.cwd, cwd);
            keep(&mut self.version, version);
            keep(&mut self.git_branch, branch);
        }
        is_done
    }

    fn fill(self, glance: &mut Glance) {
        fn or(known: &mut Option<String>, value: Option<Cow<'_, str>>) {
            *known = known.take().or_else(|| owned(value));
        }
        or(&mut glance.custom_title, self.names.custom_title);
        or(&mut glance.ai_title, self.names.ai_title);
        or(&mut glance.cwd, self.cwd);
        or(&mut glance.created, self.created);
        or(&mut glance.git_branch, self.git_branch);
        or(&mut glance.version, self.version);
        glance.first_prompt = glance.first_prompt.take().or(self.prompt);
    }
}

/// The titles of a session, each from a separate record. Lines are read from last to first.
#[derive(Default)]
struct Names<'w> {
    custom_title: Option<Cow<'w, str>>,
    ai_title: Option<Cow<'w, str>>,
    last_prompt: Option<Cow<'w, str>>,
    summary: Option<Cow<'w, str>>,
    tag: Option<Cow<'w, str>>,
}

impl<'w> Names<'w> {
    fn look(&mut self, line: &'w [u8], kind: LineKind) {
        if kind == LineKind::Conversation {
            if let Some(record) = record_at_end(line) {
                self.look(record, LineKind::Record);
            }
            return;
        }
        const NEEDLES: [&str; 5] =
            ["\"customTitle\"", "\"aiTitle\"", "\"lastPrompt\"", "\"summary\"", "\"tag\""];
        // The type of a record is its first member, so it can be compared directly; other lines are searched.
        let wanted = match kind {
            LineKind::Record => NAMING.iter().any(|name| line[RECORD.len()..].starts_with(name.as_bytes())),
            _ => NEEDLES.iter().any(|needle| has(line, needle)),
        };
        let keys = ["type", "customTitle", "aiTitle", "lastPrompt", "summary", "tag"];
        let Some([kind, custom, ai, prompt, summary, tag]) = wanted.then(|| walk::pick(line, keys)).flatten()
        else {
            return;
        };
        let of = |name: &str, value| if kind.is_some_and(|kind| kind.is_str(name)) { value } else { None };
        keep(&mut self.custom_title, custom);
        keep(&mut self.ai_title, ai);
        keep(&mut self.last_prompt, prompt);
        keep(&mut self.summary, of("summary", summary));
        keep(&mut self.tag, of("tag", tag));
    }
}

/// The prefixes of lines, as Claude Code writes them.
const CONVERSATION: &[u8] = b"{\"parentUuid\":";
const RECORD: &[u8] = b"{\"type\":\"";

/// The types of records that contain a title.
const NAMING: [&str; 5] = ["custom-title\"", "ai-title\"", "last-prompt\"", "summary\"", "tag\""];

/// The types of conversation lines, which some writers put first as in records.
const TALKING: [&str; 5] = ["user\"", "assistant\"", "system\"", "progress\"", "attachment\""];

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
        match line.strip_prefix(RECORD) {
            Some(rest) if TALKING.iter().any(|name| rest.starts_with(name.as_bytes())) => Self::Conversation,
            Some(_) => Self::Record,
            None if line.starts_with(CONVERSATION) => Self::Conversation,
            None => Self::Other,
        }
    }
}

/// Returns a record with a title at the end of a torn line, which was not terminated before the record was
/// appended.
fn record_at_end(line: &[u8]) -> Option<&[u8]> {
    let record = &line[memmem::rfind(line, RECORD).filter(|start| *start > 0)?..];
    NAMING.iter().any(|name| record[RECORD.len()..].starts_with(name.as_bytes())).then_some(record)
}

fn has(line: &[u8], needle: &str) -> bool {
    memmem::find(line, needle.as_bytes()).is_some()
}

/// Returns the first timestamp at any depth: the first line is often a snapshot with a nested timestamp.
fn first_timestamp(bytes: &[u8]) -> Option<Cow<'_, str>> {
    const KEY: &[u8] = b"\"timestamp\":";
    memmem::find_iter(bytes, KEY).find_map(|at| {
        let text = bytes[at + KEY.len()..].trim_ascii_start().strip_prefix(b"\"")?;
        let text = &text[..memchr(b'"', text)?];
        std::str::from_utf8(text).ok().map(Cow::Borrowed)
    })
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
