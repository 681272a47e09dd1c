//! A scan: the lines of one log in, its calls out.

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

/// Where lines come from, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The log, as it is named in explanations.
    pub path: String,
    /// The session that the log belongs to; `None` if its lines must tell.
    pub session: Option<String>,
    /// The folder of the project, which names the project if no line does.
    pub folder: Option<String>,
    /// The sub-agent whose log it is.
    pub agent: Option<(String, AgentKind)>,
}

impl Source {
    /// The log of a session.
    pub fn session(path: &str, id: &str) -> Self {
        Self { path: path.to_owned(), session: Some(id.to_owned()), ..Self::default() }
    }

    /// The log of a sub-agent of this session.
    #[must_use]
    pub fn agent(self, id: &str, kind: AgentKind) -> Self {
        Self { agent: Some((id.to_owned(), kind)), ..self }
    }
}

/// What to keep beside the calls. Each of these costs time or memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The tools that each call used.
    pub tools: bool,
    /// Every record with what became of it, for explanations.
    pub records: bool,
    /// When limits end, as Claude Code said.
    pub limits: bool,
    /// Claude Code's own account.
    pub accounts: bool,
}

/// Reads the lines of one log.
pub struct Scan {
    wants: Wants,
    head: Head,
    out: Scanned,
    ways: Ways,
}

/// What a log holds of calls, to be given to a [`Ledger`](crate::Ledger).
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

/// A call, as one log or all of them tell of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The first line's moment; the latest there is, if no line has one.
    pub(crate) at: Millis,
    pub(crate) tokens: Tokens,
    pub(crate) web_searches: u32,
    pub(crate) model: NameId,
    pub(crate) branch: NameId,
    pub(crate) file: u32,
    /// How near the line is that the figures are from.
    pub(crate) figures: Nearness,
    /// How near the nearest line of the owning log is.
    pub(crate) owner: Nearness,
    pub(crate) flags: u8,
}

/// The moment of a call without one.
pub(crate) const UNDATED: Millis = Millis::MAX;

/// The reply is known to have come to its end.
pub(crate) const STOP: u8 = 1;
pub(crate) const FAST: u8 = 2;
pub(crate) const US: u8 = 4;
pub(crate) const UNDER_REPORTED: u8 = 8;
pub(crate) const REGIONAL: u8 = 16;
/// The owning log says that it copied the line.
pub(crate) const FORK: u8 = 32;

impl Row {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Which of two lines of a call has the better figures; equal only if they are the same.
    pub(crate) fn compare(&self, other: &Self, names: &Names) -> Ordering {
        let size = |row: &Self| (row.has(STOP), row.tokens.output, row.tokens.total());
        let rest = |row: &Self| (row.tokens, row.web_searches, row.flags & !FORK);
        (other.figures.cmp(&self.figures))
            .then_with(|| size(self).cmp(&size(other)))
            .then_with(|| rest(self).cmp(&rest(other)))
            .then_with(|| names.get(self.model).cmp(names.get(other.model)))
    }

    /// Takes the figures of another line if they are better, whole, and the earlier moment.
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

/// A record, for explanations.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at: Position,
    pub(crate) file: u32,
    pub(crate) message_id: Option<Box<str>>,
    pub(crate) found: Result<(u32, Row), (Millis, Reason)>,
}

/// How the log begins.
#[derive(Debug, Default)]
struct Head {
    done: bool,
    lines: usize,
    session: Option<String>,
}

/// How many lines are asked when the log begins, and where. Most tell at once.
const HEAD_LINES: usize = 64;

impl Scan {
    /// A scan of the log that `source` names.
    pub fn new(source: Source, wants: Wants) -> Self {
        Self::with_ways(source, wants, Ways::default())
    }

    /// The same, with what was learnt from another log; [`Scan::finish_with_ways`] hands it on.
    pub fn with_ways(source: Source, wants: Wants, mut ways: Ways) -> Self {
        ways.begin_log();
        Self { wants, head: Head::default(), out: Scanned { source, ..Scanned::default() }, ways }
    }

    /// Reads the next stretch of lines.
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

    /// Reads the next entry of a log that is in memory.
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

    /// What the log holds.
    pub fn finish(self) -> Scanned {
        self.finish_with_ways().0
    }

    /// The same, and what was learnt, for the next log.
    pub fn finish_with_ways(mut self) -> (Scanned, Ways) {
        if self.out.source.session.is_none() {
            self.out.source.session = self.head.session;
        }
        (self.out, self.ways)
    }

    /// Finds when and where the log begins, in its first lines.
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

    /// Reads a line that may tell of a call: `"usage"` stands at `hit`.
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
        // Odd lines are looked at with all care: several objects on one line, a byte order mark, no UTF-8.
        let mut entries = Vec::new();
        parse_line(line, |entry, _| entries.push(entry));
        for entry in &entries {
            match entry.kind() {
                Kind::Bad if line.ending == Ending::None => self.out.is_torn = true,
                Kind::Bad => {
                    self.out.n_broken += 1;
                    self.reject(line, None, Reason::Broken);
                }
                // Each object of a line is a record of its own.
                _ => {
                    self.seen(Top::of(entry).see(), &Line { bytes: entry.as_bytes(), ..*line });
                }
            }
        }
    }

    /// Takes what a line turned out to be. Returns the row of a reply if there is but one.
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

    /// Keeps a row, or makes it part of the last one if that tells of the same call. The lines of a reply nearly always follow
    /// each other; where they do not, the ledger brings them together.
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

    /// What makes this call the same as another.
    fn key(&self, reply: &Reply<'_>, line: &Line<'_>) -> Key {
        let more = reply.more.as_ref();
        let own = self.out.source.session.as_deref();
        let session = || more.and_then(|more| more.session_id.as_deref()).or(own).unwrap_or_default();
        let request = more.and_then(|more| more.request_id.as_deref());
        match (reply.message_id.as_deref(), request) {
            (Some(id), _) if id.starts_with("msg_") => own_key(id),
            (Some(id), Some(request)) => Key::of(&[b"request", id.as_bytes(), request.as_bytes()]),
            // A gateway may use an id again, but hardly in the same session.
            (Some(id), None) => Key::of(&[b"session", id.as_bytes(), session().as_bytes()]),
            (None, _) => match more.and_then(|more| more.uuid.as_deref()) {
                Some(uuid) => Key::of(&[b"uuid", uuid.as_bytes()]),
                None => Key::of(&[b"line", line.bytes]),
            },
        }
    }

    /// Keeps the tools of a call. Each line of a reply has other blocks, and a copy has the same ones.
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

/// The key of a call that the API itself gave an id: those are never used twice. No other key has so few parts.
fn own_key(id: &str) -> Key {
    Key::of(&[id.as_bytes()])
}
