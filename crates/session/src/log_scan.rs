//! Counts the turns and failed calls of an ordinary log without building a [`Session`](crate::Session).
//!
//! A list of sessions needs two numbers of every log of a home. Building the session takes ten times as long
//! as reading the log, and most logs are ordinary: every line continues an earlier one, and uuids and call
//! ids are unique. For these the numbers follow from the outlines of the lines. [`LogScan::finish`] returns
//! `None` for every other log, which must be counted as a session.
//!
//! The scan decides only what it is certain about. It shares the definitions of input, turns and outcomes
//! with the session.

use std::sync::LazyLock;

use foldhash::{HashMap, HashSet};
use memchr::memmem::Finder;
use threadline_entry::lens::CompactBoundary;
use threadline_entry::{
    BlockKind, Entry, Kind, LineSketch, LogLine, Millis, hash_of, key, parse_line, value,
};

use crate::index::{EntryIndex, IndexVec};
use crate::input::InputKind;
use crate::tool_call::result_outcome;
use crate::turn::{TurnLines, belongs_to_next_turn, count_turns, has_no_typed_text, recorded_turn_index};

/// Scans the lines of one log after another.
pub struct LogScan {
    /// Returns the number of errors of a line, not counting failed calls.
    line_errors: fn(Entry) -> u64,
    lines: IndexVec<EntryIndex, ScannedLine>,
    line_by_uuid: HashMap<Box<[u8]>, EntryIndex>,
    /// The uuids of parents that no earlier line has.
    missing_parents: HashSet<Box<[u8]>>,
    /// The number of each message id, and whether the model wrote the reply.
    message_ids: HashMap<Box<[u8]>, (u32, bool)>,
    calls: CallIds,
    results: CallIds,
    /// The ids of the failed calls.
    failed: Vec<Box<[u8]>>,
    /// The number of errors of lines, other than failed calls.
    errors: Vec<(EntryIndex, u64)>,
    turn_indexes: HashMap<EntryIndex, u64>,
    /// The ids of the sub-agents whose messages progress lines repeat.
    agents: HashSet<Box<[u8]>>,
    /// The one added last.
    last_agent: Vec<u8>,
    /// The leaf that the last `last-prompt` line names.
    named_leaf: Option<String>,
    /// Whether the log is not ordinary.
    is_unusual: bool,
}

/// The counts of an ordinary log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScannedCounts {
    /// The number of turns.
    pub turns: u64,
    /// The number of errors, including failed calls.
    pub errors: u64,
    /// The ids of the sub-agents inside the log, in any order. None of them has errors.
    pub agents: Vec<String>,
}

/// A line of the tree.
#[derive(Clone, Copy, Debug)]
struct ScannedLine {
    /// The line that this one continues.
    continues: Option<EntryIndex>,
    /// The number of an assistant line's message id, if it has one.
    reply: Option<u32>,
    /// A digest of its content.
    digest: u32,
    kind: Kind,
    input: Option<InputKind>,
    flags: LineFlags,
}

/// Properties of a line.
#[derive(Clone, Copy, Debug, Default)]
struct LineFlags {
    /// The line names its parent, which precedes it.
    has_parent: bool,
    /// The line is part of a reply of the model.
    is_model_reply: bool,
    has_no_typed_text: bool,
    belongs_to_next_turn: bool,
    is_boundary: bool,
    is_sidechain: bool,
    /// The line belongs to the conversation if its parent does.
    follows_parent: bool,
}

/// The ids of calls or of the calls that results answer, with their lines, in order.
type CallIds = Vec<(Box<[u8]>, EntryIndex)>;

/// The lines of a call and of its result; how many calls and results have its id.
#[derive(Clone, Copy, Default)]
struct CallPair {
    n_calls: usize,
    n_results: usize,
    call: Option<EntryIndex>,
}

/// The links of a line, as written.
#[derive(Clone, Copy)]
struct LineLinks<'a> {
    uuid: Option<&'a [u8]>,
    parent: Option<&'a [u8]>,
    is_sidechain: bool,
}

/// The blocks of a line that matter.
#[derive(Default)]
struct BlockSummary {
    has_call: bool,
    n_results: usize,
    has_failed: bool,
    is_special: bool,
}

impl BlockSummary {
    fn of(sketch: &LineSketch<'_>) -> Self {
        let mut summary = Self::default();
        for block in &sketch.blocks {
            match block.kind {
                BlockKind::ToolResult => {
                    summary.n_results += 1;
                    summary.has_failed |= block.is_error;
                }
                BlockKind::ToolUse => summary.has_call = true,
                BlockKind::Text | BlockKind::Thinking => {}
                BlockKind::OtherCall | BlockKind::OtherResult | BlockKind::Other => summary.is_special = true,
            }
        }
        summary
    }
}

impl LogScan {
    /// Creates a scan. `line_errors` returns the number of errors of a line other than failed calls.
    pub fn new(line_errors: fn(Entry) -> u64) -> Self {
        Self {
            line_errors,
            lines: IndexVec::default(),
            line_by_uuid: HashMap::default(),
            missing_parents: HashSet::default(),
            message_ids: HashMap::default(),
            calls: CallIds::new(),
            results: CallIds::new(),
            failed: Vec::new(),
            errors: Vec::new(),
            turn_indexes: HashMap::default(),
            agents: HashSet::default(),
            last_agent: Vec::new(),
            named_leaf: None,
            is_unusual: false,
        }
    }

    /// Scans the next line. `sketch` is `None` if it has none.
    pub fn line(&mut self, line: &LogLine<'_>, sketch: Option<&LineSketch<'_>>) {
        match sketch {
            _ if self.is_unusual => {}
            Some(sketch) => self.sketched_line(line, sketch),
            None => self.parse(line),
        }
    }

    fn sketched_line(&mut self, line: &LogLine<'_>, sketch: &LineSketch<'_>) {
        match sketch.kind {
            Some(Kind::Assistant) => self.reply(line, sketch),
            Some(Kind::User) => {
                let blocks = BlockSummary::of(sketch);
                if blocks.n_results > 0 {
                    self.result(line, sketch, &blocks);
                } else if is_plain_prompt(sketch) {
                    self.add(
                        LineLinks::of(sketch),
                        Kind::User,
                        Some(InputKind::Prompt),
                        LineFlags::default(),
                    );
                } else {
                    self.parse(line);
                }
            }
            Some(Kind::Progress) => self.progress(sketch),
            Some(Kind::Attachment) if !is_special_attachment(sketch) => {
                self.add(LineLinks::of(sketch), Kind::Attachment, None, LineFlags::default());
            }
            Some(Kind::FileHistorySnapshot | Kind::FileHistoryDelta | Kind::QueueOperation) => {}
            _ => self.parse(line),
        }
    }

    /// Adds a line of a reply.
    fn reply(&mut self, line: &LogLine<'_>, sketch: &LineSketch<'_>) {
        let blocks = BlockSummary::of(sketch);
        let content = sketch.content;
        let mut errors = 0;
        if sketch.is_api_error || sketch.may_be_cut_off() || blocks.is_special || content.is_none() {
            let (entry, _) = Entry::parse(line.bytes);
            // The calls of an error message are not shown.
            self.is_unusual |= entry.kind() != Kind::Assistant || (sketch.is_api_error && blocks.has_call);
            errors = (self.line_errors)(entry);
        }
        let is_model = sketch.model != Some(value::SYNTHETIC_MODEL.as_bytes());
        // Calls of other replies are not model calls, so that a scan of those does not find their tools.
        self.is_unusual |= blocks.has_call && !(is_model && sketch.has_usage);
        let reply = self.add_message_id(sketch.message_id, is_model);
        let flags = LineFlags { is_model_reply: is_model, ..LineFlags::default() };
        if let Some(idx) = self.add(LineLinks::of(sketch), Kind::Assistant, None, flags) {
            self.lines[idx].reply = reply;
            self.lines[idx].digest = content.map_or(0, content_digest);
            self.add_errors(idx, errors);
            if blocks.has_call || blocks.n_results > 0 {
                self.add_call_ids(sketch, idx);
            }
        }
    }

    /// Adds the ids of the calls and results of a line.
    fn add_call_ids(&mut self, sketch: &LineSketch<'_>, idx: EntryIndex) {
        for block in &sketch.blocks {
            let id = block.id.filter(|id| !id.is_empty()).map(|id| (id.into(), idx));
            match block.kind {
                BlockKind::ToolResult => self.results.extend(id),
                BlockKind::ToolUse => self.calls.extend(id),
                _ => {}
            }
        }
    }

    /// Adds the message id of a reply, and returns its number. A reply without an id is one of its own.
    fn add_message_id(&mut self, id: Option<&[u8]>, is_model: bool) -> Option<u32> {
        let id = id?;
        self.is_unusual |= !is_id(id);
        let next = self.message_ids.len() as u32;
        let (number, was_model) = *self.message_ids.entry(id.into()).or_insert((next, is_model));
        self.is_unusual |= was_model != is_model;
        Some(number)
    }

    /// Adds the results of calls.
    fn result(&mut self, line: &LogLine<'_>, sketch: &LineSketch<'_>, blocks: &BlockSummary) {
        if blocks.has_failed {
            let (entry, _) = Entry::parse(line.bytes);
            self.is_unusual |= entry.kind() != Kind::User;
            for block in entry.message().into_iter().flat_map(|message| message.blocks()) {
                if block.is(value::TOOL_RESULT) && result_outcome(&entry, block).is_error() {
                    self.failed.extend(block.tool_use_id().map(|id| id.as_bytes().into()));
                }
            }
        }
        if let Some(idx) =
            self.add(LineLinks::of(sketch), Kind::User, Some(InputKind::ToolResult), LineFlags::default())
        {
            self.add_call_ids(sketch, idx);
        }
    }

    /// Adds a progress report. The log is unusual if a sub-agent in it may have errors.
    fn progress(&mut self, sketch: &LineSketch<'_>) {
        if let Some(nested) = sketch.nested {
            let blocks = BlockSummary::of(sketch);
            let is_plain = match nested.kind {
                Some(Kind::User) if blocks.n_results > 0 => !blocks.has_failed,
                Some(Kind::User) => is_plain_text(sketch.content.unwrap_or_default()),
                Some(Kind::Assistant) => {
                    !sketch.may_be_cut_off()
                        && !nested.is_api_error
                        && !blocks.is_special
                        && (!blocks.has_call || sketch.has_usage)
                }
                _ => false,
            };
            self.is_unusual |= !is_plain;
            let agent = sketch
                .agent_id
                .filter(|_| sketch.body_type.is_some_and(|kind| kind == value::AGENT_PROGRESS.as_bytes()));
            if let Some(agent) = agent.filter(|id| *id != self.last_agent) {
                self.last_agent.clear();
                self.last_agent.extend(agent);
                self.agents.insert(agent.into());
            }
        }
        let is_start = sketch.hook_event == Some(b"SessionStart");
        let flags = LineFlags { belongs_to_next_turn: is_start, ..LineFlags::default() };
        self.add(LineLinks::of(sketch), Kind::Progress, None, flags);
    }

    /// Scans a line that is rare, or whose text matters.
    fn parse(&mut self, line: &LogLine<'_>) {
        let mut entries = Vec::new();
        parse_line(line, |entry, _| entries.push(entry));
        let [entry] = &entries[..] else {
            self.is_unusual = true;
            return;
        };
        let input = match entry.kind() {
            Kind::User => Some(InputKind::of_user(entry)),
            Kind::Attachment => InputKind::of_attachment(entry),
            Kind::System => InputKind::of_system(entry),
            Kind::LastPrompt => {
                if let Some(leaf) = entry.get(key::LEAF_UUID).and_then(|leaf| leaf.as_str()) {
                    self.named_leaf = Some(leaf.into_owned());
                }
                return;
            }
            // These have an unusual syntax.
            Kind::Assistant | Kind::Progress => {
                self.is_unusual = true;
                return;
            }
            _ => {
                self.is_unusual |= entry.get(key::PARENT_UUID).is_some();
                return;
            }
        };
        let is_result =
            entry.message().is_some_and(|message| message.blocks().any(|block| block.is(value::TOOL_RESULT)));
        self.is_unusual |= entry.kind() == Kind::User && is_result;
        let is_boundary = entry.kind() == Kind::System
            && entry.get(key::SUBTYPE).is_some_and(|subtype| subtype.is_str(value::COMPACT_BOUNDARY));
        let flags = LineFlags {
            has_no_typed_text: has_no_typed_text(entry),
            belongs_to_next_turn: belongs_to_next_turn(entry, input),
            is_boundary,
            follows_parent: entry.is_compact_summary() || entry.get(key::SOURCE_TOOL_USE_ID).is_some(),
            ..LineFlags::default()
        };
        let (uuid, parent) = (entry.uuid(), entry.parent_uuid());
        let mut links = LineLinks {
            uuid: uuid.as_deref().map(str::as_bytes),
            parent: parent.as_deref().map(str::as_bytes),
            is_sidechain: entry.is_sidechain(),
        };
        let logical =
            entry.get(key::LOGICAL_PARENT_UUID).filter(|_| is_boundary).and_then(|uuid| uuid.as_str());
        if is_boundary {
            self.named_leaf = None;
            let metadata = entry.lens::<CompactBoundary<'_>>().and_then(CompactBoundary::compact_metadata);
            self.is_unusual |= links.parent.is_some() || links.is_sidechain;
            self.is_unusual |= metadata.is_some_and(|metadata| {
                metadata.preserved_segment().is_some() || metadata.preserved_messages().is_some()
            });
            links.parent = logical.as_deref().map(str::as_bytes);
        }
        if let Some(idx) = self.add(links, entry.kind(), input, flags) {
            if let Some(number) = input.and_then(|input| recorded_turn_index(entry, input)) {
                self.turn_indexes.insert(idx, number);
            }
            // Other input is never an error.
            if input.is_none_or(|input| input == InputKind::HookStop) {
                let errors = entries.pop().map_or(0, self.line_errors);
                self.add_errors(idx, errors);
            }
        }
    }

    fn add_errors(&mut self, idx: EntryIndex, errors: u64) {
        if errors > 0 {
            self.errors.push((idx, errors));
        }
    }

    /// Adds a line to the tree. Returns `None` if that makes the log unusual.
    fn add(
        &mut self,
        links: LineLinks<'_>,
        kind: Kind,
        input: Option<InputKind>,
        mut flags: LineFlags,
    ) -> Option<EntryIndex> {
        let Some(uuid) = links.uuid.filter(|uuid| is_id(uuid)) else {
            self.is_unusual = true;
            return None;
        };
        let idx = self.lines.end();
        let before = self.lines.last_index();
        let is_boundary = flags.is_boundary;
        let same_side =
            before.is_none_or(|before| self.lines[before].flags.is_sidechain == links.is_sidechain);
        self.is_unusual |= !same_side;
        let named = links.parent.and_then(|parent| self.line_by_uuid.get(parent).copied());
        if let Some(parent) = links.parent.filter(|_| named.is_none()) {
            self.is_unusual |= !is_id(parent);
            self.missing_parents.insert(parent.into());
        }
        let has_parent = named.is_some() && !is_boundary;
        (flags.has_parent, flags.is_sidechain) = (has_parent, links.is_sidechain);
        // A line with a missing parent continues the previous one.
        let continues = named.or(before.filter(|_| links.parent.is_some() || is_boundary));
        self.is_unusual |= self.line_by_uuid.insert(uuid.into(), idx).is_some();
        self.lines.push(ScannedLine { continues, reply: None, digest: 0, kind, input, flags });
        Some(idx)
    }

    /// Returns the counts, and prepares the scan for the next log. `None` if the log is not ordinary.
    pub fn finish(&mut self) -> Option<ScannedCounts> {
        // A parent may follow.
        let has_late_parent = self.missing_parents.iter().any(|uuid| self.line_by_uuid.contains_key(uuid));
        let counts = if self.is_unusual || has_late_parent { None } else { self.counts() };
        // The next log reuses the memory.
        self.lines.clear();
        self.line_by_uuid.clear();
        self.missing_parents.clear();
        self.message_ids.clear();
        self.calls.clear();
        self.results.clear();
        self.failed.clear();
        self.errors.clear();
        self.turn_indexes.clear();
        self.agents.clear();
        self.last_agent.clear();
        self.named_leaf = None;
        self.is_unusual = false;
        counts
    }

    fn counts(&self) -> Option<ScannedCounts> {
        if self.lines.is_empty() {
            return Some(ScannedCounts::default());
        }
        let members = self.conversation()?;
        let mut errors: u64 =
            self.errors.iter().filter(|(idx, _)| members[*idx]).map(|(_, errors)| errors).sum();
        if !self.failed.is_empty() {
            let pairs = self.call_pairs();
            for id in &self.failed {
                // The first result decides. A result without a call is not shown.
                match pairs.get(&**id)? {
                    CallPair { call: None, .. } => {}
                    CallPair { n_calls: 1, n_results: 1, call: Some(call) } => {
                        errors += u64::from(members[*call]);
                    }
                    _ => return None,
                }
            }
        }
        let members: Vec<EntryIndex> = members.indices().filter(|&idx| members[idx]).collect();
        let turns = count_turns(self, &members);
        let agents = self.agents.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect();
        Some(ScannedCounts { turns, errors: if turns == 0 { 0 } else { errors }, agents })
    }

    /// Returns for each line whether it belongs to the active conversation. `None` if that is not certain.
    fn conversation(&self) -> Option<IndexVec<EntryIndex, bool>> {
        let leaf = self.leaf()?;
        let mut members = IndexVec::filled(false, self.lines.len());
        let mut n_members = 0;
        let mut at = Some(leaf);
        while let Some(idx) = at {
            members[idx] = true;
            n_members += 1;
            at = self.lines[idx].continues;
        }
        if n_members == self.lines.len() {
            return Some(members);
        }
        let mut pairs = None;
        let mut results = self.results.iter().peekable();
        let mut replies = None;
        for idx in self.lines.indices() {
            while results.next_if(|(_, line)| *line < idx).is_some() {}
            if members[idx] {
                continue;
            }
            let line = &self.lines[idx];
            let has_parent = line.flags.has_parent && line.continues.is_some_and(|parent| members[parent]);
            members[idx] = match (line.kind, line.input) {
                (Kind::Assistant, _) => match line.reply {
                    Some(reply) => {
                        replies.get_or_insert_with(|| ReplyDigests::of(self, &members)).contains(reply)?
                    }
                    None => false,
                },
                (Kind::User, Some(InputKind::ToolResult)) => {
                    let pairs = pairs.get_or_insert_with(|| self.call_pairs());
                    let mut is_answer = false;
                    while let Some((id, _)) = results.next_if(|(_, line)| *line == idx) {
                        match pairs.get(&**id)? {
                            CallPair { call: None, .. } => {}
                            CallPair { n_calls: 1, n_results: 1, call: Some(call) } => {
                                is_answer |= members[*call];
                            }
                            _ => return None,
                        }
                    }
                    is_answer
                }
                (Kind::User, _) if line.flags.follows_parent => has_parent,
                // Lines of local commands belong to the conversation only if it does not continue there.
                (Kind::User, Some(input)) if input.is_command_line() || input.is_command_output() => {
                    return None;
                }
                (Kind::User, Some(InputKind::Meta)) => return None,
                (Kind::User, _) => false,
                _ if line.flags.is_boundary => return None,
                _ => has_parent,
            };
        }
        Some(members)
    }

    /// Returns the last line of the conversation, as a resume selects it. `None` if that is not certain.
    fn leaf(&self) -> Option<EntryIndex> {
        let is_message = |idx: EntryIndex| matches!(self.lines[idx].kind, Kind::User | Kind::Assistant);
        let last = self.lines.last_index()?;
        if self.lines[last].flags.is_sidechain {
            return self.lines.indices().rev().find(|&idx| is_message(idx));
        }
        let tip = self.lines.indices().rev().find(|&idx| self.lines[idx].kind != Kind::Progress)?;
        let above =
            |idx: &EntryIndex| self.lines[*idx].continues.filter(|_| self.lines[*idx].flags.has_parent);
        let ancestors = || std::iter::successors(Some(tip), above);
        ancestors().find(|&idx| is_message(idx))?;
        let named = self.named_leaf.as_ref().and_then(|uuid| self.line_by_uuid.get(uuid.as_bytes()).copied());
        // The person went back to an earlier line.
        named.is_none_or(|named| ancestors().any(|idx| idx == named)).then_some(tip)
    }

    /// Joins calls and results.
    fn call_pairs(&self) -> HashMap<&[u8], CallPair> {
        let mut pairs: HashMap<&[u8], CallPair> = HashMap::default();
        for (id, idx) in &self.calls {
            let pair = pairs.entry(&**id).or_default();
            pair.n_calls += 1;
            pair.call = Some(*idx);
        }
        for (id, _) in &self.results {
            pairs.entry(&**id).or_default().n_results += 1;
        }
        pairs
    }
}

/// The replies, and whether their lines certainly have different contents: a line that repeats another one
/// may belong to a copy of the conversation.
struct ReplyDigests {
    /// By message id: whether it has a line in the conversation, and whether two of its lines have one
    /// digest.
    replies: HashMap<u32, (bool, bool)>,
}

impl ReplyDigests {
    fn of(scan: &LogScan, members: &IndexVec<EntryIndex, bool>) -> Self {
        let mut replies: HashMap<u32, (bool, bool)> = HashMap::default();
        let mut digests = HashSet::default();
        for (idx, line) in scan.lines.enumerated() {
            let Some(reply) = line.reply else { continue };
            let (is_member, is_repeated) = replies.entry(reply).or_default();
            *is_member |= members[idx];
            *is_repeated |= !digests.insert((reply, line.digest));
        }
        Self { replies }
    }

    /// Returns whether the lines of a reply belong to the conversation. `None` if some may be copies.
    fn contains(&self, reply: u32) -> Option<bool> {
        match self.replies.get(&reply) {
            Some((true, true)) => None,
            Some((is_member, _)) => Some(*is_member),
            None => None,
        }
    }
}

impl TurnLines for LogScan {
    fn kind(&self, idx: EntryIndex) -> Kind {
        self.lines[idx].kind
    }

    fn input(&self, idx: EntryIndex) -> Option<InputKind> {
        self.lines[idx].input
    }

    fn is_model_reply(&self, idx: EntryIndex) -> bool {
        self.lines[idx].flags.is_model_reply
    }

    fn turn_index(&self, idx: EntryIndex) -> Option<u64> {
        self.turn_indexes.get(&idx).copied()
    }

    fn has_no_typed_text(&self, idx: EntryIndex) -> bool {
        self.lines[idx].flags.has_no_typed_text
    }

    fn belongs_to_next_turn(&self, idx: EntryIndex) -> bool {
        self.lines[idx].flags.belongs_to_next_turn
    }

    /// Times do not change the number of turns.
    fn timestamp(&self, _: EntryIndex) -> Option<Millis> {
        None
    }
}

impl<'a> LineLinks<'a> {
    fn of(sketch: &LineSketch<'a>) -> Self {
        Self { uuid: sketch.uuid, parent: sketch.parent, is_sidechain: sketch.is_sidechain }
    }
}

/// Returns whether bytes of a line can be an id.
fn is_id(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_ok()
}

/// Returns a number that differs only if contents do. Calls begin with their id, so the start is enough.
fn content_digest(content: &[u8]) -> u32 {
    const START: usize = 128;
    let start = &content[..content.len().min(START)];
    hash_of(&(content.len(), start)) as u32
}

/// Returns whether a user line certainly is a prompt with nothing else on its line.
fn is_plain_prompt(sketch: &LineSketch<'_>) -> bool {
    let content = sketch.content.unwrap_or_default();
    let text = content.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
    !sketch.has_other_keys && text.is_some_and(InputKind::is_plain_text)
}

/// Returns whether an attachment may be input or an error, or belong to the next turn.
fn is_special_attachment(sketch: &LineSketch<'_>) -> bool {
    sketch.hook_event.is_some()
        || sketch
            .body_type
            .is_none_or(|kind| kind == value::QUEUED_COMMAND.as_bytes() || kind.starts_with(b"hook_"))
}

/// Returns whether the content of a sub-agent's prompt certainly does not say that a hook stopped the agent.
fn is_plain_text(content: &[u8]) -> bool {
    static NOT_PLAIN: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [&b"stopped by hook"[..], b"\\u00"].map(Finder::new));
    std::str::from_utf8(content).is_ok() && NOT_PLAIN.iter().all(|text| text.find(content).is_none())
}
