//! A glance at a session: what a list shows of it, from both ends of its file.

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

/// What a list shows of a session.
///
/// Taken from the first and the last 64 KiB of the file, by the rules of Anthropic's own SDK: what
/// stands in between is not known here. If that yields no prompt and nothing else to call the session
/// by, up to 4 MiB of the beginning are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The name that the person gave it.
    pub custom_title: Option<String>,
    /// The name that Claude Code gave it.
    pub ai_title: Option<String>,
    /// The last summary near the end, which was the title in older versions.
    pub summary: Option<String>,
    /// The first thing the person typed, else the first slash command; 200 characters at most.
    pub first_prompt: Option<String>,
    /// What the person typed last, where Claude Code noted it.
    pub last_prompt: Option<String>,
    /// The tag that was set last.
    pub tag: Option<String>,
    /// The working directory at the start.
    pub cwd: Option<String>,
    /// The git branch at the end.
    pub git_branch: Option<String>,
    /// The version of Claude Code that wrote last.
    pub version: Option<String>,
    /// The first timestamp, as written.
    pub created: Option<String>,
    /// When the file was last written to.
    pub modified: SystemTime,
    /// The length of the file in bytes.
    pub size: u64,
    /// How many transcripts of sub-agents there are.
    pub n_agents: usize,
    /// Whether the file is a sub-agent's, and no session of its own.
    pub is_sidechain: bool,
}

impl Glance {
    /// What the session is called: the person's title, else Claude Code's, else a summary.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref().or(self.ai_title.as_deref()).or(self.summary.as_deref())
    }

    /// The line to show in a list, in the order that Claude Code's own list has.
    pub fn heading(&self) -> Option<&str> {
        let title = self.custom_title.as_deref().or(self.ai_title.as_deref());
        title.or(self.last_prompt.as_deref()).or(self.summary.as_deref()).or(self.opening())
    }

    /// The first prompt as it was typed: of a command for the shell, the command.
    pub fn opening(&self) -> Option<&str> {
        let first = self.first_prompt.as_deref()?;
        let command = first.strip_prefix("<bash-input>").and_then(|rest| rest.strip_suffix("</bash-input>"));
        Some(command.unwrap_or(first))
    }

    /// Whether this is a conversation to list: a session that can be called by something.
    pub fn is_listed(&self) -> bool {
        !self.is_sidechain && self.heading().is_some()
    }
}

impl Store {
    /// The conversations of the store, the last modified first; of an id that several files have, the newest.
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

/// Takes a glance at one session.
pub fn glance(file: &SessionFile) -> io::Result<Glance> {
    let agents = file.path.parent().map(AgentCounts::of).unwrap_or_default();
    look(file, &agents, &mut Window::default())
}

/// Takes a glance at many sessions at once. The answers stand in the order of the files.
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
    // Where the end of the file is all of it, its names are known already.
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

/// What the end of a file tells. The last of each counts, even if it is empty.
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

/// What the beginning of a file tells, where the end did not.
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

    /// Looks at the next line; `true` once there is nothing more to learn.
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

/// What a session may be called by, each from a line of its own. Lines are looked at from the last to the first.
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
        // The type of a record stands first and tells at once; other lines have to be searched.
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

/// How lines begin, as Claude Code writes them.
const CONVERSATION: &[u8] = b"{\"parentUuid\":";
const RECORD: &[u8] = b"{\"type\":\"";

/// The types of record that hold a name.
const NAMING: [&str; 5] = ["custom-title\"", "ai-title\"", "last-prompt\"", "summary\"", "tag\""];

/// The types of line that some writers begin with their type, though they are no records.
const TALKING: [&str; 5] = ["user\"", "assistant\"", "system\"", "progress\"", "attachment\""];

/// What a line's first bytes tell, so that few lines need to be taken apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// A part of the conversation.
    Conversation,
    /// A note about the session.
    Record,
    /// Written by somebody else, in some other order.
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

/// A record with a name at the end of a torn line, which the program that appended it did not close.
fn record_at_end(line: &[u8]) -> Option<&[u8]> {
    let record = &line[memmem::rfind(line, RECORD).filter(|start| *start > 0)?..];
    NAMING.iter().any(|name| record[RECORD.len()..].starts_with(name.as_bytes())).then_some(record)
}

fn has(line: &[u8], needle: &str) -> bool {
    memmem::find(line, needle.as_bytes()).is_some()
}

/// The first timestamp, wherever it stands: the first line is often a snapshot, which has its time inside.
fn first_timestamp(bytes: &[u8]) -> Option<Cow<'_, str>> {
    const KEY: &[u8] = b"\"timestamp\":";
    memmem::find_iter(bytes, KEY).find_map(|at| {
        let text = bytes[at + KEY.len()..].trim_ascii_start().strip_prefix(b"\"")?;
        let text = &text[..memchr(b'"', text)?];
        std::str::from_utf8(text).ok().map(Cow::Borrowed)
    })
}

/// Keeps the first string that comes.
fn keep<'w>(slot: &mut Option<Cow<'w, str>>, value: Option<Json<'w>>) {
    if slot.is_none() {
        *slot = value.and_then(Json::as_str);
    }
}

/// The text, unless it is empty.
fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(Cow::into_owned)
}

#[cfg(test)]
mod tests;
