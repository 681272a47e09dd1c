//! Scans one log: reads its lines and extracts the model calls.

use std::cmp::Ordering;

use memchr::{memchr, memchr_iter, memmem};
use threadline_entry::lens::{FromJson, Moment};
use threadline_entry::{
    AgentKind, Block, Ending, Entry, Json, Kind, Line, Millis, Position, parse_line, walk,
};

use crate::explain::Reason;
use crate::figures::Tokens;
use crate::key::Key;
use crate::names::{NameId, Names};
use crate::reconcile::Account;
use crate::reply::{More, Nearness, Reply, Seen, Top};
use crate::ways::Ways;
use crate::window::Limit;

/// The origin of a log's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The path of the log, as shown in explanations.
    pub path: String,
    /// The session that the log belongs to; `None` to take it from the lines.
    pub session: Option<String>,
    /// The project's folder name, which identifies the project if no line has a directory.
    pub folder: Option<String>,
    /// The sub-agent that the log belongs to.
    pub agent: Option<(String, AgentKind)>,
}

impl Source {
    /// Returns the source for the log of a session.
    pub fn session(path: &str, id: &str) -> Self {
        Self { path: path.to_owned(), session: Some(id.to_owned()), ..Self::default() }
    }

    /// Returns the source for the log of a sub-agent of this session.
    #[must_use]
    pub fn agent(self, id: &str, kind: AgentKind) -> Self {
        Self { agent: Some((id.to_owned(), kind)), ..self }
    }
}

/// Optional data to keep besides the calls. Each option costs time or memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The tools that each call used.
    pub tools: bool,
    /// Every record and whether it was counted, for explanations.
    pub records: bool,
    /// Claude Code's notices about usage limits.
    pub limits: bool,
    /// Claude Code's own cost account.
    pub accounts: bool,
}

/// Scans the lines of one log.
pub struct Scan {
    wants: Wants,
    head: Head,
    out: Scanned,
    ways: Ways,
}

/// The calls of one log, to be passed to a [`Ledger`](crate::Ledger).
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    pub(crate) source: Source,
    pub(crate) first_at: Option<Millis>,
    pub(crate) cwd: Option<String>,
    pub(crate) names: Names,
    pub(crate) rows: Vec<(Key, Row)>,
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) records: Vec<Record>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) account: Option<Account>,
    pub(crate) n_broken: u64,
    pub(crate) is_torn: bool,
}

/// The data of one call, from one log or merged from several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The time of the first line; [`UNDATED`] if no line has one.
    pub(crate) at: Millis,
    pub(crate) tokens: Tokens,
    pub(crate) web_searches: u32,
    pub(crate) model: NameId,
    pub(crate) branch: NameId,
    pub(crate) file: u32,
    /// The nearness of the line that the figures are from.
    pub(crate) figures: Nearness,
    /// The nearness of the nearest line in the owning log.
    pub(crate) owner: Nearness,
    pub(crate) flags: u8,
}

/// The time of a call without a timestamp.
pub(crate) const UNDATED: Millis = Millis::MAX;

/// The reply has a stop reason.
pub(crate) const STOP: u8 = 1;
pub(crate) const FAST: u8 = 2;
pub(crate) const US: u8 = 4;
pub(crate) const UNDER_REPORTED: u8 = 8;
pub(crate) const REGIONAL: u8 = 16;
/// The line in the owning log is marked as copied from another session.
pub(crate) const FORK: u8 = 32;

impl Row {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Compares the figures of two lines of a call; the greater is used. Equal only if the figures are the
    /// same.
    pub(crate) fn compare(&self, other: &Self, names: &Names) -> Ordering {
        let size = |row: &Self| (row.has(STOP), row.tokens.output, row.tokens.total());
        let rest = |row: &Self| (row.tokens, row.web_searches, row.flags & !FORK);
        (other.figures.cmp(&self.figures))
            .then_with(|| size(self).cmp(&size(other)))
            .then_with(|| rest(self).cmp(&rest(other)))
            .then_with(|| names.get(self.model).cmp(names.get(other.model)))
    }

    /// Replaces all figures with those of `other` if they are better, and keeps the earlier time.
    pub(crate) fn merge(&mut self, other: &Self, names: &Names) {
        self.at = self.at.min(other.at);
        if self.compare(other, names) == Ordering::Less {
            self.tokens = other.tokens;
            self.web_searches = other.web_searches;
            self.model = other.model;
            self.figures = other.figures;
            self.flags = (other.flags & !FORK) | (self.flags & FORK);
        }
    }
}

/// A tool that a call used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ToolUse {
    pub(crate) row: u32,
    pub(crate) id: u64,
    pub(crate) name: NameId,
}

/// A line with a call or a rejected reply, kept for explanations.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at: Position,
    pub(crate) file: u32,
    pub(crate) message_id: Option<Box<str>>,
    pub(crate) found: Result<(u32, Row), (Millis, Reason)>,
}

/// The state of reading the first lines of a log.
#[derive(Debug, Default)]
struct Head {
    done: bool,
    lines: usize,
    session: Option<String>,
}

/// The maximum number of lines that are searched for the start time, directory and session of the log.
const HEAD_LINES: usize = 64;

impl Scan {
    /// Creates a scan of the log described by `source`.
    pub fn new(source: Source, wants: Wants) -> Self {
        Self::with_ways(source, wants, Ways::default())
    }

    /// Creates a scan that uses the cache of an earlier scan; [`Scan::finish_with_ways`] returns it.
    pub fn with_ways(source: Source, wants: Wants, mut ways: Ways) -> Self {
        ways.begin_log();
        Self { wants, head: Head::default(), out: Scanned { source, ..Scanned::default() }, ways }
    }

    /// Scans the next block of lines.
    pub fn block(&mut self, block: &Block<'_>) {
        if !self.head.done {
            self.look_at_head(block.bytes);
        }
        let finder = self.ways.usage.clone();
        let mut counted = (0, block.at.line_no);
        for (mut line, hit) in block.hits(&finder) {
            if self.wants.records {
                let start = (line.at.byte_offset - block.at.byte_offset) as usize;
                counted.1 += memchr_iter(b'\n', &block.bytes[counted.0..start]).count() as u64;
                counted.0 = start;
                line.at.line_no = counted.1;
            }
            self.line(&line, hit);
        }
        if self.wants.accounts {
            for (line, _) in block.hits(&memmem::Finder::new("\"cost-state\"")) {
                let (entry, _) = Entry::parse(line.bytes);
                let account = (entry.kind() == Kind::CostState).then(|| Account::of(&entry)).flatten();
                self.out.account = account.or(self.out.account.take());
            }
        }
    }

    /// Scans the next entry of a log that is in memory.
    pub fn entry(&mut self, entry: &Entry) {
        if !self.head.done {
            self.out.first_at = self.out.first_at.or_else(|| entry.timestamp());
            self.head.lines += 1;
            self.head.done = self.out.first_at.is_some() || self.head.lines >= HEAD_LINES;
        }
        if matches!(entry.kind(), Kind::Assistant | Kind::Progress) {
            let line = Line { bytes: entry.as_bytes(), ending: entry.ending(), at: entry.at() };
            self.seen(Top::of(entry).see(), &line);
        }
    }

    /// Returns a copy of the result so far, for a log that grows.
    pub fn snapshot(&self) -> Scanned {
        let mut out = self.out.clone();
        out.source.session = out.source.session.or_else(|| self.head.session.clone());
        out
    }

    /// What the log holds.
    pub fn finish(self) -> Scanned {
        self.finish_with_ways().0
    }

    /// Returns the calls of the log, and the cache for the next scan.
    pub fn finish_with_ways(mut self) -> (Scanned, Ways) {
        if self.out.source.session.is_none() {
            self.out.source.session = self.head.session;
        }
        (self.out, self.ways)
    }

    /// Finds the start time, directory and session of the log in its first lines.
    fn look_at_head(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.head.done {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, after) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
            if let Some(([at, cwd, session], [])) = walk::skim(line, ["timestamp", "cwd", "sessionId"], []) {
                let moment = at.and_then(Moment::from_json);
                self.out.first_at = self.out.first_at.or(moment.map(|moment| moment.0));
                let text = |json: Option<Json<'_>>| {
                    Some(json?.as_str()?.into_owned()).filter(|text| !text.is_empty())
                };
                self.out.cwd = self.out.cwd.take().or_else(|| text(cwd));
                self.head.session = self.head.session.take().or_else(|| text(session));
            }
            self.head.lines += 1;
            let found = self.out.first_at.is_some() && self.out.cwd.is_some() && self.head.session.is_some();
            self.head.done = found || self.head.lines >= HEAD_LINES;
            rest = after;
        }
    }

    /// Scans a line that may contain a call: `"usage"` is at offset `hit`.
    fn line(&mut self, line: &Line<'_>, hit: usize) {
        let ways = &mut self.ways;
        let hit = ways.first_key.find(line.bytes, hit);
        if let Some(values) = ways.trails.read(line.bytes, hit) {
            ways.n_read += 1;
            if let Some((id, row)) = ways.commons.read(&values) {
                ways.n_plain += 1;
                self.put(own_key(id), row);
                return;
            }
            if let Some(top) = Top::along(&values) {
                let row = self.seen(top.see(), line);
                if let Some(row) = row.filter(|_| !self.wants.tools && !self.wants.records) {
                    self.ways.commons.learn(&values, row);
                }
                return;
            }
        }
        if let Some(top) = Top::skim(line.bytes, hit) {
            self.seen(top.see(), line);
            return;
        }
        // Unusual lines are parsed in full: several objects on one line, a byte order mark, invalid UTF-8.
        let mut entries = Vec::new();
        parse_line(line, |entry, _| entries.push(entry));
        for entry in &entries {
            match entry.kind() {
                Kind::Bad if line.ending == Ending::None => self.out.is_torn = true,
                Kind::Bad => {
                    self.out.n_broken += 1;
                    self.reject(line, None, Reason::Broken);
                }
                // Each object of a line is a separate record.
                _ => {
                    self.seen(Top::of(entry).see(), &Line { bytes: entry.as_bytes(), ..*line });
                }
            }
        }
    }

    /// Adds the classified line to the output. Returns the row of a reply if it has exactly one.
    fn seen<'l>(&mut self, seen: Seen<'l>, line: &Line<'l>) -> Option<Row> {
        match seen {
            Seen::Reply(reply) => return self.add(reply, line),
            Seen::Notice { at, more, reason } => {
                if self.wants.limits
                    && let Some(at) = at
                    && let Some(content) = more.unwrap_or_else(|| More::skim(line.bytes)).content
                {
                    self.out.limits.extend(Limit::of(at, content));
                }
                self.reject(line, at, reason);
            }
            Seen::NoFigures(at) => self.reject(line, at, Reason::NoFigures),
            Seen::Other => {}
        }
        None
    }

    fn reject(&mut self, line: &Line<'_>, at: Option<Millis>, reason: Reason) {
        if self.wants.records {
            let found = Err((at.unwrap_or(UNDATED), reason));
            self.out.records.push(Record { at: line.at, file: 0, message_id: None, found });
        }
    }

    fn add<'l>(&mut self, mut reply: Reply<'l>, line: &Line<'l>) -> Option<Row> {
        let has_own_id = reply.message_id.as_deref().is_some_and(|id| id.starts_with("msg_"));
        if reply.more.is_none() && (!has_own_id || self.wants.tools) {
            reply.more = Some(More::skim(line.bytes));
        }
        let key = self.key(&reply, line);
        let near = match (&self.out.source.agent, reply.is_progress) {
            (_, true) => Nearness::Progress,
            (Some((_, AgentKind::Compaction | AgentKind::SideQuestion)), _) => Nearness::Replay,
            (Some(_), _) => Nearness::Sidechain,
            (None, _) if reply.is_sidechain => Nearness::Sidechain,
            (None, _) => Nearness::Main,
        };
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let figures = &reply.figures;
        let row = Row {
            at: reply.at.unwrap_or(UNDATED),
            tokens: figures.tokens,
            web_searches: u32::try_from(figures.web_searches).unwrap_or(u32::MAX),
            model: self.out.names.id(&reply.model),
            branch: self.out.names.id(reply.branch.as_deref().unwrap_or_default()),
            file: 0,
            figures: near,
            owner: near,
            flags: flag(reply.has_stop, STOP)
                | flag(figures.fast, FAST)
                | flag(figures.us, US)
                | flag(reply.under_reported, UNDER_REPORTED)
                | flag(reply.is_fork, FORK),
        };
        let place = self.put(key, row);
        self.record(line, &reply, place, row);
        for (n, (model, tokens)) in reply.figures.advisors.iter().enumerate() {
            let advice = Row {
                tokens: *tokens,
                web_searches: 0,
                model: self.out.names.id(model),
                flags: row.flags & !(FAST | US),
                ..row
            };
            let place = self.put(key.step(n as u64), advice);
            self.record(line, &reply, place, advice);
        }
        if self.wants.tools {
            self.add_tools(reply.more.and_then(|more| more.content), place, key);
        }
        reply.figures.advisors.is_empty().then_some(row)
    }

    /// Adds a row, or merges it into the last one if both belong to the same call. The lines of a reply
    /// nearly always follow each other; the ledger merges those that do not.
    fn put(&mut self, key: Key, row: Row) -> u32 {
        match self.out.rows.last_mut().filter(|(last, _)| *last == key) {
            Some((_, known)) => {
                known.merge(&row, &self.out.names);
                if row.owner < known.owner {
                    known.owner = row.owner;
                    known.branch = row.branch;
                    known.flags = (known.flags & !FORK) | (row.flags & FORK);
                }
            }
            None => self.out.rows.push((key, row)),
        }
        self.out.rows.len() as u32 - 1
    }

    fn record(&mut self, line: &Line<'_>, reply: &Reply<'_>, place: u32, row: Row) {
        if self.wants.records {
            let message_id = reply.message_id.as_deref().map(Into::into);
            self.out.records.push(Record { at: line.at, file: 0, message_id, found: Ok((place, row)) });
        }
    }

    /// Returns the key that identifies the call of a reply.
    fn key(&self, reply: &Reply<'_>, line: &Line<'_>) -> Key {
        let more = reply.more.as_ref();
        let own = self.out.source.session.as_deref();
        let session = || more.and_then(|more| more.session_id.as_deref()).or(own).unwrap_or_default();
        let request = more.and_then(|more| more.request_id.as_deref());
        match (reply.message_id.as_deref(), request) {
            (Some(id), _) if id.starts_with("msg_") => own_key(id),
            (Some(id), Some(request)) => Key::of(&[b"request", id.as_bytes(), request.as_bytes()]),
            // A gateway may reuse an id, but hardly within a session.
            (Some(id), None) => Key::of(&[b"session", id.as_bytes(), session().as_bytes()]),
            (None, _) => match more.and_then(|more| more.uuid.as_deref()) {
                Some(uuid) => Key::of(&[b"uuid", uuid.as_bytes()]),
                None => Key::of(&[b"line", line.bytes]),
            },
        }
    }

    /// Adds the tools of a call. Each line of a reply has different blocks; copies of a line have the same.
    fn add_tools(&mut self, content: Option<Json<'_>>, row: u32, key: Key) {
        for (n, block) in content.into_iter().flat_map(Json::items).enumerate() {
            let Some(block) = threadline_entry::lens::Block::from_json(block) else { continue };
            let is_call = ["tool_use", "server_tool_use", "mcp_tool_use"].iter().any(|kind| block.is(kind));
            let Some(name) = block.name().filter(|_| is_call) else { continue };
            let id = match block.id() {
                Some(id) => Key::of(&[id.as_bytes()]).short(),
                None => key.step(n as u64).short(),
            };
            let name = self.out.names.id(&name);
            self.out.tools.push(ToolUse { row, id, name });
        }
    }
}

/// Returns the key of a call with an id assigned by the API, which is never reused. No other key has a single
/// part.
fn own_key(id: &str) -> Key {
    Key::of(&[id.as_bytes()])
}
