//! Scans one log: reads its lines and extracts the model calls.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use memchr::{memchr, memchr_iter};
use serde::{Deserialize, Serialize};
use threadline_entry::lens::{CompactBoundary, FromJson, Moment};
use threadline_entry::{
    AgentKind, Ending, Entry, Json, Kind, LineBlock, LineSketch, LogLine, Millis, Position, key, parse_line,
    value, walk,
};

use crate::call_key::CallKey;
use crate::explain::RejectReason;
use crate::figures::TokenCounts;
use crate::name_table::{NameId, NameTable};
use crate::reconcile::CostAccount;
use crate::reply_line::{LineClass, LineOrigin, LineValues, RareValues, ReplyLine};
use crate::scan_cache::ScanCache;
use crate::window::LimitNotice;

/// The origin of a log's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSource {
    /// The path of the log, as shown in explanations.
    #[serde(skip)]
    pub path: String,
    /// The session that the log belongs to; `None` to take it from the lines.
    pub session: Option<String>,
    /// The project's folder name, which identifies the project if no line has a directory.
    #[serde(skip)]
    pub folder: Option<String>,
    /// The sub-agent that the log belongs to.
    #[serde(skip)]
    pub agent: Option<(String, AgentKind)>,
}

impl LogSource {
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
pub struct ScanOptions {
    /// The tools that each call used.
    pub tools: bool,
    /// Every record and whether it was counted, for explanations.
    pub records: bool,
    /// The first line of each call, for [`ModelCalls::located_totals`](crate::ModelCalls::located_totals).
    pub lines: bool,
    /// Claude Code's notices about usage limits.
    pub limits: bool,
    /// Claude Code's own cost account, also of sessions without compactions.
    pub accounts: bool,
}

/// Scans the lines of one log.
pub struct UsageScan {
    options: ScanOptions,
    head: LogHead,
    out: ScannedLog,
    cache: ScanCache,
    has_compaction: bool,
}

/// The calls of one log, to be passed to a [`CallLedger`](crate::CallLedger).
///
/// A cache stores it without the source, the records and the limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ScannedLog {
    pub(crate) source: LogSource,
    pub(crate) first_at: Option<Millis>,
    pub(crate) cwd: Option<String>,
    /// The other sessions that lines were copied from.
    pub(crate) origins: BTreeSet<String>,
    pub(crate) names: NameTable,
    pub(crate) rows: Vec<(CallKey, CallRow)>,
    pub(crate) tools: Vec<ToolUse>,
    #[serde(skip)]
    pub(crate) records: Vec<CallRecord>,
    #[serde(skip)]
    pub(crate) lines: Vec<CallLine>,
    #[serde(skip)]
    pub(crate) limits: Vec<LimitNotice>,
    pub(crate) account: Option<CostAccount>,
    pub(crate) n_broken: u64,
    pub(crate) ends_in_incomplete_line: bool,
}

/// The data of one call, from one log or merged from several.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CallRow {
    /// The time of the first line; [`UNDATED`] if no line has one.
    pub(crate) at: Millis,
    pub(crate) tokens: TokenCounts,
    pub(crate) web_searches: u32,
    pub(crate) model: NameId,
    pub(crate) branch: NameId,
    pub(crate) file: u32,
    /// The nearness of the line that the figures are from.
    pub(crate) figures_origin: LineOrigin,
    /// The nearness of the nearest line in the owning log.
    pub(crate) owner_origin: LineOrigin,
    pub(crate) flags: u8,
}

/// The time of a call without a timestamp.
pub(crate) const UNDATED: Millis = Millis::MAX;

/// The reply has a stop reason.
pub(crate) const HAS_STOP: u8 = 1;
pub(crate) const FAST: u8 = 2;
pub(crate) const US: u8 = 4;
pub(crate) const UNDER_REPORTED: u8 = 8;
pub(crate) const REGIONAL: u8 = 16;
/// The line in the owning log is marked as copied from another session.
pub(crate) const IS_FORK: u8 = 32;
/// The row is a compaction, whose call is in no line. Until the ledger has settled it, its only figure is
/// `cache_read`: the tokens of the conversation before.
pub(crate) const COMPACTION: u8 = 64;
/// The figures of a compaction are known: from Claude Code's own totals, or from the log of its agent.
pub(crate) const SETTLED: u8 = 128;

impl CallRow {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Compares the figures of two lines of a call; the greater is used. Equal only if the figures are the
    /// same.
    pub(crate) fn compare(&self, other: &Self, names: &NameTable) -> Ordering {
        let size = |row: &Self| (row.has(HAS_STOP), row.tokens.output, row.tokens.total());
        let rest = |row: &Self| (row.tokens, row.web_searches, row.flags & !IS_FORK);
        (other.figures_origin.cmp(&self.figures_origin))
            .then_with(|| size(self).cmp(&size(other)))
            .then_with(|| rest(self).cmp(&rest(other)))
            .then_with(|| names.get(self.model).cmp(names.get(other.model)))
    }

    /// Replaces all figures with those of `other` if they are better, and keeps the earlier time.
    pub(crate) fn merge(&mut self, other: &Self, names: &NameTable) {
        self.at = self.at.min(other.at);
        if self.compare(other, names) == Ordering::Less {
            self.tokens = other.tokens;
            self.web_searches = other.web_searches;
            self.model = other.model;
            self.figures_origin = other.figures_origin;
            self.flags = (other.flags & !IS_FORK) | (self.flags & IS_FORK);
        }
    }
}

/// A tool that a call used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ToolUse {
    pub(crate) row: u32,
    pub(crate) id: u64,
    pub(crate) name: NameId,
}

/// The first of consecutive lines of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallLine {
    pub(crate) row: u32,
    pub(crate) file: u32,
    pub(crate) line_no: u64,
}

/// A line with a call or a rejected reply, kept for explanations.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) at: Position,
    pub(crate) file: u32,
    pub(crate) message_id: Option<Box<str>>,
    pub(crate) call: Result<(u32, CallRow), (Millis, RejectReason)>,
}

/// The state of reading the first lines of a log.
#[derive(Debug, Default)]
struct LogHead {
    done: bool,
    lines: usize,
    session: Option<String>,
}

/// The maximum number of lines that are searched for the start time, directory and session of the log.
const HEAD_LINES: usize = 64;

impl ScannedLog {
    /// Sets the source of a log that was read from a cache. The session id is kept if `source` has none.
    #[must_use]
    pub fn with_source(mut self, source: LogSource) -> Self {
        let session = source.session.or(self.source.session.take());
        self.source = LogSource { session, ..source };
        self
    }

    /// Adds a row for a compaction. Returns whether the line is one.
    fn add_compaction(&mut self, entry: &Entry, line: &LogLine<'_>, with_line: bool) -> bool {
        let Some(boundary) = entry.lens::<CompactBoundary<'_>>() else { return false };
        let (Some(metadata), Some(uuid)) = (boundary.compact_metadata(), entry.uuid()) else { return false };
        let origin = if entry.is_sidechain() { LineOrigin::Sidechain } else { LineOrigin::Main };
        let row = CallRow {
            at: entry.timestamp().unwrap_or(UNDATED),
            tokens: TokenCounts { cache_read: metadata.pre_tokens().unwrap_or(0), ..TokenCounts::default() },
            web_searches: 0,
            model: self.names.id("(none)"),
            branch: self.names.id(&entry.git_branch().unwrap_or_default()),
            file: 0,
            figures_origin: origin,
            owner_origin: origin,
            flags: COMPACTION,
        };
        if with_line {
            self.lines.push(CallLine { row: self.rows.len() as u32, file: 0, line_no: line.at.line_no });
        }
        self.rows.push((CallKey::of(&[b"compaction", uuid.as_bytes()]), row));
        true
    }
}

impl UsageScan {
    /// Creates a scan of the log described by `source`.
    pub fn new(source: LogSource, wants: ScanOptions) -> Self {
        Self::with_cache(source, wants, ScanCache::default())
    }

    /// Creates a scan that uses the cache of an earlier scan; [`UsageScan::finish_with_cache`] returns it.
    pub fn with_cache(source: LogSource, wants: ScanOptions, mut cache: ScanCache) -> Self {
        cache.begin_log();
        Self {
            options: wants,
            head: LogHead::default(),
            out: ScannedLog { source, rows: Vec::with_capacity(cache.n_rows), ..ScannedLog::default() },
            cache,
            has_compaction: false,
        }
    }

    /// Scans the next block of lines.
    pub fn block(&mut self, block: &LineBlock<'_>) {
        if !self.head.done {
            self.read_head(block.bytes);
        }
        let finder = self.cache.usage.clone();
        let mut counted = (0, block.at.line_no);
        for (mut line, hit) in block.hits(&finder) {
            if self.options.records || self.options.lines {
                let start = (line.at.byte_offset - block.at.byte_offset) as usize;
                counted.1 += memchr_iter(b'\n', &block.bytes[counted.0..start]).count() as u64;
                counted.0 = start;
                line.at.line_no = counted.1;
            }
            self.scan_line(&line, hit);
        }
        let boundary = self.cache.boundary.clone();
        let mut records: Vec<LogLine<'_>> = block.hits(&boundary).map(|(line, _)| line).collect();
        // Few logs have compactions, so most are not searched for accounts.
        if self.options.accounts || self.has_compaction || !records.is_empty() {
            let cost_state = self.cache.cost_state.clone();
            records.extend(block.hits(&cost_state).map(|(line, _)| line));
            records.sort_by_key(|line| line.at.byte_offset);
        }
        let mut counted = (0, block.at.line_no);
        for mut line in records {
            let start = (line.at.byte_offset - block.at.byte_offset) as usize;
            counted.1 += memchr_iter(b'\n', &block.bytes[counted.0..start]).count() as u64;
            counted.0 = start;
            line.at.line_no = counted.1;
            self.add_record(&Entry::parse(line.bytes).0, &line);
        }
    }

    /// Adds a compaction, or Claude Code's own totals after one.
    fn add_record(&mut self, entry: &Entry, line: &LogLine<'_>) {
        match entry.kind() {
            Kind::CostState if self.options.accounts || self.has_compaction => {
                self.out.account = CostAccount::of(entry).or(self.out.account.take());
            }
            Kind::System if self.out.add_compaction(entry, line, self.options.lines) => {
                self.has_compaction = true;
                if !self.options.accounts {
                    // The totals so far do not contain it.
                    self.out.account = None;
                }
            }
            _ => {}
        }
    }

    /// Exchanges the cache for that of another scan, so that logs that are in memory share one.
    pub fn swap_cache(&mut self, cache: &mut ScanCache) {
        std::mem::swap(&mut self.cache, cache);
        self.cache.begin_log();
    }

    /// Scans the next entry of a log that is in memory. Finds the same calls as [`UsageScan::block`].
    pub fn entry(&mut self, entry: &Entry) {
        if !self.head.done {
            self.out.first_at = self.out.first_at.or_else(|| entry.timestamp());
            self.head.lines += 1;
            self.head.done = self.out.first_at.is_some() || self.head.lines >= HEAD_LINES;
        }
        let line = LogLine { bytes: entry.as_bytes(), ending: entry.ending(), at: entry.at() };
        if !matches!(entry.kind(), Kind::Assistant | Kind::Progress) {
            return self.add_record(entry, &line);
        }
        if let Some(hit) = self.cache.usage.find(line.bytes) {
            self.scan_line(&line, hit);
        }
    }

    /// Returns a copy of the result so far, for a log that grows.
    pub fn snapshot(&self) -> ScannedLog {
        let mut out = self.out.clone();
        out.source.session = out.source.session.or_else(|| self.head.session.clone());
        out
    }

    /// Returns the calls of the log.
    pub fn finish(self) -> ScannedLog {
        self.finish_with_cache().0
    }

    /// Returns the calls of the log, and the cache for the next scan.
    pub fn finish_with_cache(mut self) -> (ScannedLog, ScanCache) {
        if self.out.source.session.is_none() {
            self.out.source.session = self.head.session;
        }
        self.cache.n_rows = self.out.rows.len();
        self.out.lines.sort_by_key(|line| line.line_no);
        (self.out, self.cache)
    }

    /// Finds the start time, directory and session of the log in its first lines.
    fn read_head(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.head.done {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, after) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
            if let Some(([at, cwd, session], [])) =
                walk::skim(line, [key::TIMESTAMP, key::CWD, key::SESSION_ID], [])
            {
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
    fn scan_line(&mut self, line: &LogLine<'_>, hit: usize) {
        let cache = &mut self.cache;
        let hit = cache.first_key.find(line.bytes, hit);
        if let Some(values) = cache.layouts.read(line.bytes, hit) {
            cache.n_read += 1;
            if let Some((id, row)) = cache.plain_replies.read(&values) {
                cache.n_plain += 1;
                let key = api_id_key(id);
                let place = self.add_row(key, row, line);
                self.add_tools(line, place, key);
                return;
            }
            if let Some(top) = LineValues::from_layout(&values) {
                let row = self.add_line(top.classify(), line);
                if let Some(row) = row.filter(|_| !self.options.records) {
                    self.cache.plain_replies.learn(&values, row);
                }
                return;
            }
        }
        if let Some(top) = LineValues::skim(line.bytes, hit) {
            self.add_line(top.classify(), line);
            return;
        }
        // Unusual lines are parsed in full: several objects on one line, a byte order mark, invalid UTF-8.
        let mut entries = Vec::new();
        parse_line(line, |entry, _| entries.push(entry));
        for entry in &entries {
            match entry.kind() {
                Kind::Bad if line.ending == Ending::None => self.out.ends_in_incomplete_line = true,
                Kind::Bad => {
                    self.out.n_broken += 1;
                    self.reject(line, None, RejectReason::Broken);
                }
                // Each object of a line is a separate record.
                _ => {
                    self.add_line(
                        LineValues::of(entry).classify(),
                        &LogLine { bytes: entry.as_bytes(), ..*line },
                    );
                }
            }
        }
    }

    /// Adds the classified line to the output. Returns the row of a reply if it has exactly one.
    fn add_line<'l>(&mut self, seen: LineClass<'l>, line: &LogLine<'l>) -> Option<CallRow> {
        match seen {
            LineClass::Reply(reply) => return self.add(reply, line),
            LineClass::Notice { at, more, reason } => {
                if self.options.limits
                    && let Some(at) = at
                    && let Some(content) = more.unwrap_or_else(|| RareValues::skim(line.bytes)).content
                {
                    self.out.limits.extend(LimitNotice::of(at, content));
                }
                self.reject(line, at, reason);
            }
            LineClass::NoFigures(at) => self.reject(line, at, RejectReason::NoFigures),
            LineClass::Other => {}
        }
        None
    }

    fn reject(&mut self, line: &LogLine<'_>, at: Option<Millis>, reason: RejectReason) {
        if self.options.records {
            let found = Err((at.unwrap_or(UNDATED), reason));
            self.out.records.push(CallRecord { at: line.at, file: 0, message_id: None, call: found });
        }
    }

    fn add<'l>(&mut self, mut reply: ReplyLine<'l>, line: &LogLine<'l>) -> Option<CallRow> {
        let has_own_id = reply.message_id.as_deref().is_some_and(|id| id.starts_with("msg_"));
        if reply.rare.is_none() && !has_own_id {
            reply.rare = Some(RareValues::skim(line.bytes));
        }
        let key = self.key(&reply, line);
        let near = match (&self.out.source.agent, reply.is_progress) {
            (_, true) => LineOrigin::Progress,
            (Some((_, AgentKind::Compaction | AgentKind::SideQuestion)), _) => LineOrigin::Replay,
            (Some(_), _) => LineOrigin::Sidechain,
            (None, _) if reply.is_sidechain => LineOrigin::Sidechain,
            (None, _) => LineOrigin::Main,
        };
        let own = self.out.source.session.as_deref().or(self.head.session.as_deref());
        let origin = reply.origin.as_deref().filter(|origin| Some(*origin) != own);
        if let Some(origin) = origin.filter(|origin| !self.out.origins.contains(*origin)) {
            self.out.origins.insert(origin.to_owned());
        }
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let figures = &reply.figures;
        let row = CallRow {
            at: reply.at.unwrap_or(UNDATED),
            tokens: figures.tokens,
            web_searches: u32::try_from(figures.web_searches).unwrap_or(u32::MAX),
            model: self.out.names.id(&reply.model),
            branch: self.out.names.id(reply.branch.as_deref().unwrap_or_default()),
            file: 0,
            figures_origin: near,
            owner_origin: near,
            flags: flag(reply.has_stop, HAS_STOP)
                | flag(figures.fast, FAST)
                | flag(figures.us, US)
                | flag(reply.under_reported, UNDER_REPORTED)
                | flag(reply.is_fork || origin.is_some(), IS_FORK),
        };
        let place = self.add_row(key, row, line);
        self.record(line, &reply, place, row);
        for (n, (model, tokens)) in reply.figures.advisors.iter().enumerate() {
            let advice = CallRow {
                tokens: *tokens,
                web_searches: 0,
                model: self.out.names.id(model),
                flags: row.flags & !(FAST | US),
                ..row
            };
            let place = self.add_row(key.step(n as u64), advice, line);
            self.record(line, &reply, place, advice);
        }
        self.add_tools(line, place, key);
        reply.figures.advisors.is_empty().then_some(row)
    }

    /// Adds a row, or merges it into the last one if both belong to the same call. The lines of a reply
    /// nearly always follow each other; the ledger merges those that do not.
    fn add_row(&mut self, key: CallKey, row: CallRow, line: &LogLine<'_>) -> u32 {
        match self.out.rows.last_mut().filter(|(last, _)| *last == key) {
            Some((_, known)) => {
                known.merge(&row, &self.out.names);
                if row.owner_origin < known.owner_origin {
                    known.owner_origin = row.owner_origin;
                    known.branch = row.branch;
                    known.flags = (known.flags & !IS_FORK) | (row.flags & IS_FORK);
                }
            }
            None => {
                if self.options.lines {
                    let (row, line_no) = (self.out.rows.len() as u32, line.at.line_no);
                    self.out.lines.push(CallLine { row, file: 0, line_no });
                }
                self.out.rows.push((key, row));
            }
        }
        self.out.rows.len() as u32 - 1
    }

    fn record(&mut self, line: &LogLine<'_>, reply: &ReplyLine<'_>, place: u32, row: CallRow) {
        if self.options.records {
            let message_id = reply.message_id.as_deref().map(Into::into);
            self.out.records.push(CallRecord { at: line.at, file: 0, message_id, call: Ok((place, row)) });
        }
    }

    /// Returns the key that identifies the call of a reply.
    fn key(&self, reply: &ReplyLine<'_>, line: &LogLine<'_>) -> CallKey {
        let more = reply.rare.as_ref();
        let own = self.out.source.session.as_deref();
        // A copied line names the session of the copy.
        let made_by = || reply.origin.as_deref().or_else(|| more?.session_id.as_deref());
        let session = || made_by().or(own).unwrap_or_default();
        let request = more.and_then(|more| more.request_id.as_deref());
        match (reply.message_id.as_deref(), request) {
            (Some(id), _) if id.starts_with("msg_") => api_id_key(id.as_bytes()),
            (Some(id), Some(request)) => CallKey::of(&[b"request", id.as_bytes(), request.as_bytes()]),
            // A gateway may reuse an id, but hardly within a session.
            (Some(id), None) => CallKey::of(&[b"session", id.as_bytes(), session().as_bytes()]),
            (None, _) => match more.and_then(|more| more.uuid.as_deref()) {
                Some(uuid) => CallKey::of(&[b"uuid", uuid.as_bytes()]),
                None => CallKey::of(&[b"line", line.bytes]),
            },
        }
    }

    /// Adds the tools of a call. Each line of a reply has different blocks; copies of a line have the same.
    fn add_tools(&mut self, line: &LogLine<'_>, row: u32, key: CallKey) {
        if !self.options.tools {
            return;
        }
        let sketch = LineSketch::read(line.bytes);
        if !sketch.is_some_and(|sketch| self.add_sketched_tools(&sketch, row)) {
            self.add_unusual_tools(line, row, key);
        }
    }

    /// Adds the tools of a call. Returns `false` if a call has no plain name and id; then nothing is added.
    fn add_sketched_tools(&mut self, sketch: &LineSketch<'_>, row: u32) -> bool {
        let n_before = self.out.tools.len();
        for block in sketch.blocks.iter().filter(|block| block.kind.is_call()) {
            let name = block.name.and_then(|name| std::str::from_utf8(name).ok());
            let Some((name, id)) = name.zip(block.id) else {
                self.out.tools.truncate(n_before);
                return false;
            };
            let name = self.out.names.id(name);
            self.out.tools.push(ToolUse { row, id: CallKey::of(&[id]).short(), name });
        }
        true
    }

    /// Does the same for a line of any syntax.
    fn add_unusual_tools(&mut self, line: &LogLine<'_>, row: u32, key: CallKey) {
        let (entry, _) = Entry::parse(line.bytes);
        let rare = LineValues::of(&entry).classify();
        let LineClass::Reply(ReplyLine { rare: Some(RareValues { content: Some(content), .. }), .. }) = rare
        else {
            return;
        };
        for (n, block) in content.items().enumerate() {
            let Some(block) = threadline_entry::lens::Block::from_json(block) else { continue };
            let is_call = block.kind().is_some_and(|kind| value::is_call(kind.as_bytes()));
            let Some(name) = block.name().filter(|_| is_call) else { continue };
            let id = match block.id() {
                Some(id) => CallKey::of(&[id.as_bytes()]).short(),
                None => key.step(n as u64).short(),
            };
            let name = self.out.names.id(&name);
            self.out.tools.push(ToolUse { row, id, name });
        }
    }
}

/// Returns the key of a call with an id assigned by the API, which is never reused. No other key has a single
/// part.
fn api_id_key(id: &[u8]) -> CallKey {
    CallKey::of(&[id])
}
