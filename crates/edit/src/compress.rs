//! Compresses a session: summarises older turns above a native compact boundary.
//!
//! [`Compression::choose`] selects the turns to summarise and the level of detail, [`Compression::summary`]
//! writes the summary, and [`Compression::apply`] inserts it. The steps are separate so that the summary
//! can also be written by a person or a model.

mod extract;
mod fact;
mod segment;

use std::fmt::Write;

use foldhash::HashSet;
use threadline_entry::lens::Lens;
use threadline_entry::write::{CompactBoundaryLine, LineContext, LineHeader, UserContent, UserLine};
use threadline_entry::{Entry, Kind, key, value};
use threadline_session::{ClientVersion, EntryIndex, IndexVec, ReplayMessage, Session, Thread};

pub use self::segment::SummaryLevel;

use self::extract::WordFrequency;
use self::segment::{NameCounter, SegmentContent, TodoItem, TodoList};
use crate::draft::EditDraft;
use crate::seed::PlanSeed;
use crate::splice::Splice;
use crate::tokens::{text_tokens, tokens};
use crate::usage_reset::RESET_REASON;

/// Options of a compression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompressOptions {
    /// The level of detail of each part of the conversation, oldest first. Turns after the last band are
    /// kept.
    pub bands: Vec<SummaryBand>,
    /// The maximum number of tokens that a resume should send. If set, it replaces the bands.
    pub budget: Option<u64>,
    /// The path of the full conversation, which the summary mentions.
    pub original: Option<String>,
}

/// A part of the conversation, from the end of the previous band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryBand {
    /// The level of detail.
    pub level: SummaryLevel,
    /// The end, in percent of the segments. A short turn is one segment, a long one several.
    pub until: u8,
}

/// The default bands.
pub const DEFAULT_BANDS: [SummaryBand; 2] = [
    SummaryBand { level: SummaryLevel::Short, until: 50 },
    SummaryBand { level: SummaryLevel::Long, until: 80 },
];

/// The reason why a session cannot be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressError {
    /// Claude Code would not resume the session.
    NoConversation,
    /// There is nothing before the last exchange.
    TooShort,
    /// The result would not be shorter.
    NoGain,
}

impl std::fmt::Display for CompressError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoConversation => "the session has no conversation to resume",
            Self::TooShort => "the session is too short to compress",
            Self::NoGain => "compression would not make the session shorter",
        })
    }
}

impl std::error::Error for CompressError {}

/// A part of a turn that is summarised or kept as a whole.
#[derive(Clone, Debug)]
struct TurnSegment<'s> {
    /// The number of the turn, and whether this is its first part.
    turn: usize,
    is_first: bool,
    lines: Vec<EntryIndex>,
    content: SegmentContent<'s>,
    /// The number of tokens of the original lines.
    tokens: u64,
    /// The level of detail; `None` if it is kept.
    level: Option<SummaryLevel>,
}

/// The selection of turns to summarise and to keep.
#[derive(Clone, Debug)]
pub struct Compression<'s> {
    session: &'s Session,
    segments: Vec<TurnSegment<'s>>,
    frequency: WordFrequency,
    project_dir: Option<String>,
    original: Option<String>,
}

/// The number of replies after which a turn is split.
const MAX_REPLIES: usize = 8;

impl<'s> Compression<'s> {
    /// Selects the turns to summarise and to keep.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no conversation, if it is too short, or if the summary would not be
    /// shorter.
    pub fn choose(session: &'s Session, options: &CompressOptions) -> Result<Self, CompressError> {
        let lines = session.resumed_lines().ok_or(CompressError::NoConversation)?;
        let leaf = lines.last().copied();
        let mut segments = Vec::new();
        for turn in session.turns_of(&Thread { entries: lines, leaf }) {
            for (i, lines) in split(session, turn.entries).into_iter().enumerate() {
                let whole = lines.iter().map(|&idx| tokens(&session.entries()[idx])).sum();
                let content = SegmentContent::of(session, &lines);
                segments.push(TurnSegment {
                    turn: turn.number,
                    is_first: i == 0,
                    lines,
                    content,
                    tokens: whole,
                    level: None,
                });
            }
        }
        let mut frequency = WordFrequency::default();
        segments.iter().for_each(|segment| segment.content.texts().for_each(|text| frequency.add(text)));
        let project_dir = session.first_cwd().map(Into::into);
        let mut this = Self { session, segments, frequency, project_dir, original: options.original.clone() };
        if this.segments.len() < 2 {
            return Err(CompressError::TooShort);
        }
        match options.budget {
            Some(budget) => this.fit(budget),
            None => this.set_bands(if options.bands.is_empty() { &DEFAULT_BANDS } else { &options.bands }),
        }
        if this.summarised().next().is_none() {
            return Err(CompressError::TooShort);
        }
        let summarised_tokens: u64 = this.summarised().map(|segment| segment.tokens).sum();
        if text_tokens(&this.summary()) >= summarised_tokens { Err(CompressError::NoGain) } else { Ok(this) }
    }

    /// Returns the part to summarise as messages, as a version of Claude Code would send it.
    pub fn summarised_messages(&self, version: ClientVersion) -> Vec<ReplayMessage<'s>> {
        let lines: Vec<EntryIndex> =
            self.summarised().flat_map(|segment| segment.lines.iter().copied()).collect();
        self.session.replay_path(&lines, version)
    }

    fn set_bands(&mut self, bands: &[SummaryBand]) {
        let count = self.segments.len();
        for (i, segment) in self.segments.iter_mut().enumerate().take(count - 1) {
            let percent = i * 100 / count;
            segment.level =
                bands.iter().find(|band| percent < usize::from(band.until)).map(|band| band.level);
        }
    }

    /// Selects levels of detail for a token budget: keeps the newest segments in up to 70 % of the budget,
    /// then raises the level of the others, newest first, to long in up to 90 % and to short in the rest.
    fn fit(&mut self, budget: u64) {
        let cost = |this: &Self, i: usize, level: SummaryLevel| {
            let mut text = String::new();
            this.summarise(&this.segments[i], &this.segments[i].content, level, &mut text);
            text_tokens(&text)
        };
        let count = self.segments.len();
        let last = count - 1;
        for segment in &mut self.segments[..last] {
            segment.level = Some(SummaryLevel::Bare);
        }
        let mut costs: Vec<u64> = (0..last).map(|i| cost(self, i, SummaryLevel::Bare)).collect();
        costs.push(self.segments[last].tokens);
        // 100 tokens for the final state, which depends on the selection.
        let head = text_tokens(&self.summary_head()) + 100;
        let mut total: u64 = head + costs.iter().sum::<u64>();
        let mut first_kept = last;
        while first_kept > 0 {
            let i = first_kept - 1;
            let with = total - costs[i] + self.segments[i].tokens;
            if with > budget * 7 / 10 {
                break;
            }
            total = with;
            self.segments[i].level = None;
            first_kept = i;
        }
        for (level, share) in [(SummaryLevel::Long, 9), (SummaryLevel::Short, 10)] {
            for i in (0..first_kept).rev() {
                if self.segments[i].level.is_some_and(|current| current >= level) {
                    continue;
                }
                let now = cost(self, i, level);
                if total - costs[i] + now <= budget * share / 10 {
                    total = total - costs[i] + now;
                    costs[i] = now;
                    self.segments[i].level = Some(level);
                }
            }
        }
    }

    fn summarised(&self) -> impl Iterator<Item = &TurnSegment<'s>> {
        self.segments.iter().filter(|segment| segment.level.is_some())
    }

    fn kept(&self) -> impl Iterator<Item = &TurnSegment<'s>> {
        self.segments.iter().filter(|segment| segment.level.is_none())
    }

    /// Returns the numbers of turns that are summarised, at least in part, and kept.
    pub fn turns(&self) -> (usize, usize) {
        let count = |mut turns: Vec<usize>| {
            turns.dedup();
            turns.len()
        };
        (
            count(self.summarised().map(|segment| segment.turn).collect()),
            count(self.kept().map(|segment| segment.turn).collect()),
        )
    }

    /// Estimates the number of tokens that are kept.
    pub fn kept_tokens(&self) -> u64 {
        self.kept().map(|segment| segment.tokens).sum()
    }

    /// Returns the summary.
    pub fn summary(&self) -> String {
        let mut out = self.summary_head();
        let summarised: Vec<&TurnSegment<'_>> = self.summarised().collect();
        // Segments of one turn with the same level are summarised together.
        for group in summarised.chunk_by(|a, b| a.turn == b.turn && a.level == b.level) {
            let level = group[0].level.unwrap_or(SummaryLevel::Bare);
            let lines: Vec<EntryIndex> =
                group.iter().flat_map(|segment| segment.lines.iter().copied()).collect();
            let start = out.len();
            out.push('\n');
            match group {
                [segment] => self.summarise(segment, &segment.content, level, &mut out),
                _ => self.summarise(group[0], &SegmentContent::of(self.session, &lines), level, &mut out),
            }
            if out.len() == start + 1 {
                out.truncate(start);
            }
        }
        self.write_state(&mut out);
        out
    }

    fn summary_head(&self) -> String {
        let mut out = "The earlier conversation was summarised to save context. Its turns follow in order, each with \
                       the prompts of the user, verbatim; one line per tool call, with its result where relevant; \
                       and the main sentences of the answers."
            .to_owned();
        if let Some(original) = &self.original {
            let _ = write!(
                out,
                " The full conversation is in {original} (JSON Lines): look there for missing details."
            );
        }
        out.push('\n');
        out
    }

    /// Appends the summary of a segment, which may be as long as the session; nothing if it has no content.
    fn summarise(
        &self,
        segment: &TurnSegment<'_>,
        content: &SegmentContent<'_>,
        level: SummaryLevel,
        out: &mut String,
    ) {
        let start = out.len();
        let continued = if segment.is_first { "" } else { " continued=\"true\"" };
        let _ = writeln!(out, "<turn number=\"{}\"{continued}>", segment.turn);
        let content_start = out.len();
        content.write(self.session, level, self.project_dir.as_deref(), &self.frequency, out);
        if out.len() == content_start {
            out.truncate(start);
        } else {
            out.push_str("</turn>\n");
        }
    }

    /// Writes the final state: changed files and open tasks.
    fn write_state(&self, out: &mut String) {
        let mut files = NameCounter::default();
        let mut todos = TodoList::default();
        for segment in self.summarised() {
            let changed = segment.content.changed_files(self.session, self.project_dir.as_deref());
            changed.into_iter().for_each(|path| files.add(path));
            segment.content.update_todos(self.session, &mut todos);
        }
        let files = files.counts;
        let open = todos.items.iter().any(|todo| todo.status != "completed");
        if files.is_empty() && !open {
            return;
        }
        out.push_str("\n<state>\n");
        if !files.is_empty() {
            out.push_str("Files changed so far:\n");
            for (path, count) in files {
                let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
                let _ = writeln!(out, "- {path} ({times})");
            }
        }
        if open {
            out.push_str("Tasks:\n");
            for TodoItem { status, subject } in todos.items {
                let _ = writeln!(out, "- [{}] {subject}", status.replace('_', " "));
            }
        }
        out.push_str("</state>\n");
    }

    /// Replaces the summarised lines with a boundary and a summary. If `keep_original`, the lines stay
    /// above the boundary, as in a compaction by Claude Code; otherwise they are removed.
    pub fn apply(&self, draft: &mut EditDraft<'s>, summary: &str, keep_original: bool) {
        let session = self.session;
        let entries = session.entries();
        let Some(first_kept) = self.kept().next().and_then(|segment| segment.lines.first().copied()) else {
            return;
        };
        let after = self.summarised().last().and_then(|segment| segment.lines.last().copied());
        let context = context_before(session, first_kept);
        // The boundary and the summary are one millisecond apart, and before the first kept line.
        let time = session.timestamp(first_kept).unwrap_or_default() - 2;
        let seed = format!("{} {}", session.id().unwrap_or_default(), entries.len());
        let seed = PlanSeed { seed, now: 0 };
        let (boundary_id, summary_id) = (seed.uuid("boundary"), seed.uuid("summary"));
        let pre_tokens: u64 = self.segments.iter().map(|segment| segment.tokens).sum();
        let why = "summarised";
        let boundary = CompactBoundaryLine {
            uuid: &boundary_id,
            logical_parent_uuid: None,
            timestamp: time,
            context: &context,
            trigger: "manual",
            pre_tokens,
            details: None,
        };
        draft.insert(after, boundary.to_line(), "the boundary");
        let header = LineHeader { uuid: &summary_id, parent_uuid: Some(&boundary_id), timestamp: time + 1 };
        let summary = UserLine {
            is_compact_summary: true,
            ..UserLine::new(header, &context, UserContent::Text(summary))
        };
        draft.insert(after, summary.to_line(), "the summary");
        if !keep_original {
            let mut kept = IndexVec::filled(false, entries.len());
            self.kept().flat_map(|segment| &segment.lines).for_each(|&idx| kept[idx] = true);
            for &idx in
                session.thread().entries.iter().chain(self.summarised().flat_map(|segment| &segment.lines))
            {
                let speaks = matches!(entries[idx].kind(), Kind::User | Kind::Assistant | Kind::System);
                let is_before = after.is_some_and(|after| idx <= after) || idx < first_kept;
                if !kept[idx] && !draft.is_removed(idx) && (speaks || is_before) {
                    draft.remove(idx, why);
                }
            }
            for (idx, entry) in entries.enumerated() {
                if entry.kind() == Kind::FileHistorySnapshot || entry.kind() == Kind::FileHistoryDelta {
                    let prompt_id =
                        entry.get(key::SNAPSHOT_MESSAGE_ID).or_else(|| entry.get(key::MESSAGE_ID));
                    let prompt = prompt_id.and_then(|id| session.find(&id.as_str()?));
                    if prompt.is_some_and(|prompt| !kept[prompt]) && idx < first_kept {
                        draft.remove(idx, "file history of summarised turns");
                    }
                }
            }
        }
        self.reset_context_size(draft);
    }

    /// Resets the input token counts of the last reply, which Claude Code takes as the size of the context.
    fn reset_context_size(&self, draft: &mut EditDraft<'s>) {
        let session = self.session;
        let lines = self.kept().flat_map(|segment| &segment.lines).copied();
        let Some(last) = lines.filter_map(|idx| session.reply_of(idx)).last() else { return };
        for &idx in &session.replies()[last].entries {
            let entry = &session.entries()[idx];
            let Some(usage) = entry.message().and_then(|message| message.object().get(key::USAGE)) else {
                continue;
            };
            for count in [key::INPUT_TOKENS, key::CACHE_CREATION_INPUT_TOKENS, key::CACHE_READ_INPUT_TOKENS] {
                if let Some(old) = usage.get(count).filter(|old| old.as_u64().is_some_and(|old| old > 0)) {
                    draft.splice(idx, Splice::replace(entry.text(), old.raw(), "0"), RESET_REASON);
                }
            }
        }
    }
}

/// Splits a long turn into segments. Each starts at a reply and contains the results of its calls.
fn split(session: &Session, lines: Vec<EntryIndex>) -> Vec<Vec<EntryIndex>> {
    let mut out: Vec<Vec<EntryIndex>> = vec![Vec::new()];
    let mut replies = 0;
    let mut last = None;
    // Calls without a result so far.
    let mut open: HashSet<String> = HashSet::default();
    for idx in lines {
        let reply = session.reply_of(idx);
        if reply.is_some() && reply != last {
            if replies >= MAX_REPLIES && open.is_empty() {
                out.push(Vec::new());
                replies = 0;
            }
            replies += 1;
            last = reply;
        }
        for block in session.entries()[idx].message().into_iter().flat_map(|message| message.blocks()) {
            if let Some(id) = block.id().filter(|_| block.is(value::TOOL_USE)) {
                let answered = session.tool_call_on(idx, &id).is_some_and(|call| !call.results.is_empty());
                open.extend(answered.then(|| id.into_owned()));
            } else if let Some(id) = block.tool_use_id().filter(|_| block.is(value::TOOL_RESULT)) {
                open.remove(&*id);
            }
        }
        if let Some(segment) = out.last_mut() {
            segment.push(idx);
        }
    }
    out
}

/// The context of the lines that a compaction adds before a line: that of the nearest line above it.
fn context_before(session: &Session, before: EntryIndex) -> LineContext<'_> {
    let template = session.entries()[EntryIndex::FIRST..before.next()].iter().rev().find(|entry: &&Entry| {
        matches!(entry.kind(), Kind::User | Kind::Assistant) && entry.session_id().is_some()
    });
    let context = template.map(LineContext::of).unwrap_or_default();
    LineContext { is_sidechain: false, agent_id: None, slug: None, ..context }
}
