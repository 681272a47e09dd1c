//! The session: a fold over its entries that builds the tree and its indexes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use foldhash::HashMap;
use threadline_entry::lens::{Block, FromJson, Lens, User};
use threadline_entry::{
    ChunkReader, Code, Entry, Finding, FirstPromptSearch, Json, Kind, Millis, TitleSources, key, value,
};

use crate::id_table::IdTable;
use crate::index::{CallIndex, EntryIndex, IndexRange, IndexVec, ReplyIndex};
use crate::input::InputKind;
use crate::node_table::{NO_TIMESTAMP, NodeTable, TreeNode};
use crate::prompt_queue::{PromptQueue, typed};
use crate::reply::Reply;
use crate::shared_str::SharedStrTable;
use crate::small_list::SmallList;
use crate::thread::Thread;
use crate::tool_call::{ResultPosition, ServerCall, ToolCall};
use crate::uuid_table::{UuidKey, UuidTable};

/// The entries of a log with the tree, replies and tool calls that they form.
///
/// An entry is identified by its index in [`Session::entries`], here and in all other types of this crate.
#[derive(Clone, Debug, Default)]
pub struct Session {
    id: Option<String>,
    entries: IndexVec<EntryIndex, Entry>,
    nodes: NodeTable,
    /// Shared with a check of the same lines.
    uuid_table: Arc<UuidTable>,
    /// The first entry with each uuid, indexed by [`UuidKey::idx`].
    first_by_uuid: Vec<Option<EntryIndex>>,
    /// Entries with a parent that has not been pushed yet, by the uuid of the parent.
    pending_children: HashMap<UuidKey, SmallList<EntryIndex, 3>>,
    /// The last entry in the tree: of the main conversation at index 0, of sub-agents at index 1.
    last_in_tree: [Option<EntryIndex>; 2],
    pub(crate) replies: IndexVec<ReplyIndex, Reply>,
    reply_by_id: IdTable<ReplyIndex>,
    pub(crate) calls: IndexVec<CallIndex, ToolCall>,
    call_by_id: IdTable<CallIndex>,
    server_calls: Vec<ServerCall>,
    /// The names of tools and models.
    names: SharedStrTable,
    /// Pairs of line and call, sorted by line.
    calls_by_line: Vec<(EntryIndex, CallIndex)>,
    /// The calls of a line, sorted by id, for lines with very many calls.
    calls_of_wide_lines: HashMap<EntryIndex, Box<[CallIndex]>>,
    /// The blocks that repeat a call of the same line, by line and number, sorted.
    repeated_calls: Vec<(EntryIndex, u32)>,
    /// The call of each result, sorted by line and block. Results before their call are in `early_answers`.
    answers: Vec<(ResultPosition, CallIndex)>,
    early_answers: HashMap<ResultPosition, CallIndex>,
    /// Byte ranges of the message blocks, for lines with more than [`BLOCK_INDEX_THRESHOLD`] of them.
    block_ranges_by_line: HashMap<EntryIndex, Box<[Range<u32>]>>,
    /// Results without a call so far, by the id of the call.
    pub(crate) orphan_results_by_id: HashMap<Box<str>, SmallList<ResultPosition, 1>>,
    /// The compaction boundaries, in file order, each with the last line of the main conversation before it.
    boundaries: Vec<(EntryIndex, Option<EntryIndex>)>,
    /// The first entry with a working directory.
    first_with_cwd: Option<EntryIndex>,
    queue: PromptQueue,
    /// The line that records the interruption of each interrupted reply, by message id.
    interrupted: HashMap<Box<str>, EntryIndex>,
    findings: Vec<Finding>,
    /// Cache of [`Session::cached_thread`], cleared by `push`.
    pub(crate) cached_thread: OnceLock<Thread>,
    /// Cache of the counts of [`Session::spoken_up_to`].
    spoken: OnceLock<IndexVec<EntryIndex, u32>>,
    /// Cache of the findings about the log as a whole.
    pub(crate) cached_faults: OnceLock<Vec<Finding>>,
    /// Cache of the findings about secrets.
    pub(crate) cached_secrets: OnceLock<Vec<Finding>>,
}

/// The parent of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentLink {
    /// No parent: the entry is not in the tree, or its `parentUuid` is `null`.
    Root,
    /// The entry at this index.
    Entry(EntryIndex),
    /// A uuid that no entry in the log has so far.
    Dangling,
}

impl Session {
    /// Returns an empty session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty session with the id `id`, which is the stem of its file name.
    pub fn with_id(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// Builds a session from all lines of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut session = Self::new();
        let mut chunks = ChunkReader::new(bytes);
        while let Ok(Some(chunk)) = chunks.next() {
            chunk.parse(|entry, findings| session.push(entry, findings));
        }
        session
    }

    /// Reserves memory for this many further entries, and no more.
    pub fn reserve_exact(&mut self, count: usize) {
        self.entries.reserve_exact(count);
        self.nodes.reserve_exact(count);
    }

    /// Releases unused capacity, for a short session of which there may be very many.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.replies.shrink_to_fit();
        self.calls.shrink_to_fit();
        self.first_by_uuid.shrink_to_fit();
        self.calls_by_line.shrink_to_fit();
        self.answers.shrink_to_fit();
    }

    /// Appends the next entry, with the findings of its parser.
    ///
    /// Updates the tree, the replies and the tool calls, and clears the cached results.
    pub fn push(&mut self, entry: Entry, findings: Vec<Finding>) {
        let idx = self.entries.end();
        self.cached_thread.take();
        self.spoken.take();
        self.cached_faults.take();
        self.cached_secrets.take();
        self.findings.extend(findings);
        let kind = entry.kind();
        let is_tree = is_tree_kind(kind, &entry);
        let mut intern = |uuid: Cow<'_, str>| Arc::make_mut(&mut self.uuid_table).intern(&uuid);
        let name = entry.uuid().filter(|_| is_tree).map(&mut intern);
        let parent_name = entry.parent_uuid().filter(|_| is_tree).map(intern);
        let again = name.and_then(|name| self.first_with_uuid(name));
        let is_copy = again.is_some_and(|first| has_same_content(&self.entries[first], &entry));
        let queued = if kind == Kind::Attachment { InputKind::of_attachment(&entry) } else { None };
        let spoken = matches!(kind, Kind::User | Kind::Assistant) || queued.is_some();
        let nameless = name.is_none() && spoken;
        let mut node = TreeNode {
            parent: None,
            uuid: name,
            parent_uuid: parent_name,
            first_child: None,
            last_child: None,
            next_sibling: None,
            reply: None,
            timestamp: entry.timestamp().unwrap_or(NO_TIMESTAMP),
            input: None,
            is_dangling: false,
            in_tree: (name.is_some() && !is_copy) || nameless,
            sidechain: entry.is_sidechain(),
        };
        match kind {
            Kind::User => node.input = Some(self.add_user(idx, &entry)),
            Kind::Assistant => node.reply = Some(self.add_assistant(idx, &entry, is_copy)),
            Kind::Attachment => node.input = queued,
            Kind::System => node.input = InputKind::of_system(&entry),
            _ => {}
        }
        if self.first_with_cwd.is_none() && entry.cwd().is_some() {
            self.first_with_cwd = Some(idx);
        }
        self.queue.push(&self.entries, &entry, node.input);
        let at = entry.at();
        let in_tree = node.in_tree;
        if spoken
            && entry.message().is_some_and(|message| message.blocks().nth(BLOCK_INDEX_THRESHOLD).is_some())
        {
            self.block_ranges_by_line.insert(idx, block_ranges(&entry));
        }
        self.entries.push(entry);
        self.nodes.push(node);
        if self.is_boundary(idx) {
            self.boundaries.push((idx, self.last_in_tree[0]));
        }
        if let Some(first) = again {
            let line = self.entries[first].at().line_no;
            let what = if is_copy { "copy of" } else { "same uuid as" };
            let finding = Finding::new(Code::DuplicateUuid, at, format!("{what} line {line}"));
            // Claude Code repeats lines before a compaction, sometimes with an additional field.
            self.findings.push(if is_copy { finding.as_note() } else { finding });
        }
        if !in_tree {
            return;
        }
        let before = self.last_in_tree[usize::from(self.nodes[idx].sidechain)].replace(idx);
        match parent_name {
            Some(parent) => match self.first_with_uuid(parent) {
                Some(parent) => self.link(idx, parent),
                None => {
                    self.nodes[idx].is_dangling = true;
                    self.pending_children.entry(parent).or_default().push(idx);
                }
            },
            None if nameless => {
                if let Some(before) = before {
                    self.link(idx, before);
                }
            }
            None => {}
        }
        if let Some(name) = name.filter(|_| again.is_none()) {
            self.register(idx, name);
        }
    }

    /// Returns the compaction boundaries, in file order, each with the last line of the main conversation
    /// before it.
    pub(crate) fn boundaries(&self) -> &[(EntryIndex, Option<EntryIndex>)] {
        &self.boundaries
    }

    /// Returns the first entry with a uuid.
    fn first_with_uuid(&self, name: UuidKey) -> Option<EntryIndex> {
        self.first_by_uuid.get(name.idx()).copied().flatten()
    }

    /// Links a root to the previous line in the tree with the same sidechain flag. Does nothing for other
    /// entries.
    pub(crate) fn link_to_previous_line(&mut self, idx: EntryIndex) {
        if !self.nodes[idx].in_tree || self.parent(idx) != ParentLink::Root {
            return;
        }
        let before = |&at: &EntryIndex| {
            self.nodes[at].in_tree && self.nodes[at].sidechain == self.nodes[idx].sidechain
        };
        if let Some(before) = (EntryIndex::FIRST..idx).indices().rev().find(before) {
            self.link(idx, before);
        }
    }

    /// Registers an entry under its uuid and links the entries that were pushed before this parent of
    /// theirs.
    fn register(&mut self, idx: EntryIndex, name: UuidKey) {
        let waiting = self.pending_children.remove(&name).unwrap_or_default();
        if self.first_by_uuid.len() <= name.idx() {
            self.first_by_uuid.resize(self.uuid_table.len(), None);
        }
        self.first_by_uuid[name.idx()] = Some(idx);
        for &child in &waiting {
            // The child has no parent yet, so it can only be an ancestor of the entry if it is the root.
            if self.nodes.root_of(idx) == child {
                let message = "the parents of the line form a cycle";
                self.findings.push(Finding::new(Code::Cycle, self.entries[child].at(), message));
                continue;
            }
            let late = self.entries[idx].at().line_no;
            let message = format!("the parent comes later, on line {late}");
            self.findings.push(Finding::new(Code::LateParent, self.entries[child].at(), message));
            self.link(child, idx);
        }
    }

    fn link(&mut self, child: EntryIndex, parent: EntryIndex) {
        self.cached_thread.take();
        self.spoken.take();
        self.cached_faults.take();
        self.nodes.set_root_link(child, parent);
        self.nodes[child].parent = Some(parent);
        let child = Some(child);
        match self.nodes[parent].last_child {
            Some(last) => self.nodes[last].next_sibling = child,
            None => self.nodes[parent].first_child = child,
        }
        self.nodes[parent].last_child = child;
    }

    /// Records the tool results of a user entry and returns the kind of the entry.
    fn add_user(&mut self, idx: EntryIndex, entry: &Entry) -> InputKind {
        let mut is_result = false;
        for (block_idx, block) in entry.message().into_iter().flat_map(|message| message.blocks()).enumerate()
        {
            if !block.is(value::TOOL_RESULT) {
                continue;
            }
            is_result = true;
            let Some(id) = block.tool_use_id() else { continue };
            let result = ResultPosition { entry_idx: idx, block_idx: block_idx as u32 };
            match self.call_index(&id) {
                Some(call) => {
                    self.calls[call].results.push(result);
                    self.answers.push((result, call));
                }
                None => self.orphan_results_by_id.entry(id.into()).or_default().push(result),
            }
        }
        if is_result {
            return InputKind::ToolResult;
        }
        let input = InputKind::of_user(entry);
        if input == InputKind::Interrupt
            && let Some(id) = entry.lens::<User<'_>>().and_then(|line| line.interrupted_message_id())
        {
            self.interrupted.insert(id.into(), idx);
        }
        input
    }

    /// Adds an assistant entry to its reply and records its tool calls. Returns the index of the reply.
    fn add_assistant(&mut self, idx: EntryIndex, entry: &Entry, is_copy: bool) -> ReplyIndex {
        let message = entry.message();
        let id = message.and_then(|message| message.id());
        let id_of = |reply: ReplyIndex| self.replies[reply].id.as_deref().unwrap_or_default();
        let known = id.as_ref().and_then(|id| self.reply_by_id.get(id, id_of));
        let reply_idx = known.unwrap_or(self.replies.end());
        match known {
            Some(reply) => {
                let reply = &mut self.replies[reply];
                reply.entries.push(idx);
                let output_tokens = |entry: &Entry| Some(entry.message()?.usage()?.output_tokens());
                if output_tokens(entry) >= output_tokens(&self.entries[reply.usage_entry]) {
                    reply.usage_entry = idx;
                }
            }
            None => {
                if let Some(id) = &id {
                    self.reply_by_id.insert(id, reply_idx, id_of);
                }
                let model = message.and_then(|message| message.model());
                self.replies.push(Reply {
                    id: id.map(Cow::into_owned),
                    model: model.map(|model| self.names.share(&model)),
                    entries: SmallList::of(idx),
                    usage_entry: idx,
                    calls: SmallList::default(),
                });
            }
        }
        for (block_idx, block) in message.into_iter().flat_map(|message| message.blocks()).enumerate() {
            let id = block.id().unwrap_or_default();
            if !block.is(value::TOOL_USE) {
                if block.is(value::SERVER_TOOL_USE) || block.is(value::MCP_TOOL_USE) {
                    let name = self.names.share(&block.name().unwrap_or_default());
                    self.server_calls.push(ServerCall { id: id.into_owned(), name, reply: reply_idx });
                }
                continue;
            }
            let block_idx = block_idx as u32;
            let mut results = SmallList::default();
            if !id.is_empty() {
                // A later reply may reuse an id. That is a new call, and results that follow answer the new
                // one.
                let known = self.call_index(&id);
                if let Some(call) = known.filter(|&call| self.calls[call].reply == reply_idx) {
                    if self.calls[call].lines.last() == Some(&idx) {
                        self.repeated_calls.push((idx, block_idx));
                    } else {
                        self.calls[call].add_line(idx, block_idx, is_copy);
                        self.calls_by_line.push((idx, call));
                    }
                    continue;
                }
                let call = self.calls.end();
                self.call_by_id.insert(&id, call, |call| &self.calls[call].id);
                results = self.orphan_results_by_id.remove(&*id).unwrap_or_default();
                self.early_answers.extend(results.iter().map(|result| (*result, call)));
            }
            self.calls_by_line.push((idx, self.calls.end()));
            self.replies[reply_idx].calls.push(self.calls.end());
            self.calls.push(ToolCall {
                id: id.into(),
                name: self.names.share(&block.name().unwrap_or_default()),
                entry_idx: idx,
                block_idx,
                reply: reply_idx,
                results,
                lines: SmallList::of(idx),
            });
        }
        let from = self.calls_by_line.partition_point(|(line, _)| *line < idx);
        if self.calls_by_line.len() - from > BLOCK_INDEX_THRESHOLD {
            let mut calls: Box<[CallIndex]> =
                self.calls_by_line[from..].iter().map(|(_, call)| *call).collect();
            // Stable, so that the first of several calls with one id is found.
            calls.sort_by(|left, right| self.calls[*left].id.cmp(&self.calls[*right].id));
            self.calls_of_wide_lines.insert(idx, calls);
        }
        reply_idx
    }

    /// Returns the session id: the one given to [`Session::with_id`], else the id on the last line that has
    /// one.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        if let Some(id) = &self.id {
            return Some(Cow::Borrowed(id));
        }
        self.entries.iter().rev().find_map(Entry::session_id)
    }

    /// Returns the entries, in file order.
    pub fn entries(&self) -> &IndexVec<EntryIndex, Entry> {
        &self.entries
    }

    /// Returns the entries without the rest of the session.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries.into_vec()
    }

    /// Returns the replies of the model: one per `message.id` in the whole log.
    pub fn replies(&self) -> &IndexVec<ReplyIndex, Reply> {
        &self.replies
    }

    /// Returns the tool calls, each joined to its result, in the order of the calls.
    pub fn tool_calls(&self) -> &IndexVec<CallIndex, ToolCall> {
        &self.calls
    }

    /// Returns the calls of tools that the API ran itself. A call that several lines contain is repeated.
    pub fn server_calls(&self) -> &[ServerCall] {
        &self.server_calls
    }

    /// Returns the last call with this id.
    pub fn tool_call(&self, id: &str) -> Option<&ToolCall> {
        self.call_index(id).map(|call| &self.calls[call])
    }

    /// Returns the index of the last call with this id in [`Session::tool_calls`].
    pub fn call_index(&self, id: &str) -> Option<CallIndex> {
        self.call_by_id.get(id, |call| &self.calls[call].id)
    }

    /// Returns the queued prompt that steered the current turn, if the line at `entry_idx` took it from the
    /// queue.
    ///
    /// `None` if the conversation has a line of its own for that prompt.
    pub fn steering_prompt(&self, entry_idx: EntryIndex) -> Option<Cow<'_, str>> {
        typed(&self.entries[self.steering_prompt_line(entry_idx)?])
    }

    /// Returns the line that contains the prompt of [`steering_prompt`](Self::steering_prompt).
    pub fn steering_prompt_line(&self, entry_idx: EntryIndex) -> Option<EntryIndex> {
        self.queue.enqueue_line(entry_idx)
    }

    /// Returns the line that records that the user interrupted a reply or one of its calls.
    ///
    /// Only newer versions of Claude Code record which reply was interrupted.
    pub fn interrupted_at(&self, reply: ReplyIndex) -> Option<EntryIndex> {
        self.interrupted.get(self.replies[reply].id.as_deref()?).copied()
    }

    /// Returns the number of blocks of a line that has very many. `None` for other lines.
    ///
    /// [`Session::block`] takes constant time for such a line.
    pub fn n_blocks_of_wide_line(&self, entry_idx: EntryIndex) -> Option<usize> {
        self.block_ranges_by_line.get(&entry_idx).map(|blocks| blocks.len())
    }

    /// A block of a line, by its number.
    pub fn block(&self, entry_idx: EntryIndex, block_idx: usize) -> Option<Block<'_>> {
        let entry = &self.entries[entry_idx];
        match self.block_ranges_by_line.get(&entry_idx) {
            Some(blocks) => {
                let range = blocks.get(block_idx)?;
                Block::from_json(Json::parse(&entry.text()[range.start as usize..range.end as usize])?)
            }
            None => entry.message()?.blocks().nth(block_idx),
        }
    }

    /// Returns the calls on a line, as indexes into [`Session::tool_calls`].
    pub fn calls_on(&self, entry_idx: EntryIndex) -> impl Iterator<Item = CallIndex> {
        let from = self.calls_by_line.partition_point(|(line, _)| *line < entry_idx);
        let calls = self.calls_by_line[from..].iter().take_while(move |(line, _)| *line == entry_idx);
        calls.map(|(_, call)| *call)
    }

    /// Returns the call with this id on a line.
    pub fn tool_call_on(&self, entry_idx: EntryIndex, id: &str) -> Option<&ToolCall> {
        self.call_index_on(entry_idx, id).map(|call| &self.calls[call])
    }

    /// Returns the index of that call in [`Session::tool_calls`].
    pub fn call_index_on(&self, entry_idx: EntryIndex, id: &str) -> Option<CallIndex> {
        match self.calls_of_wide_lines.get(&entry_idx) {
            Some(by_id) => {
                let first = by_id.partition_point(|call| *self.calls[*call].id < *id);
                by_id.get(first).copied().filter(|call| *self.calls[*call].id == *id)
            }
            None => self.calls_on(entry_idx).find(|&call| *self.calls[call].id == *id),
        }
    }

    /// Returns whether a result is the first one of its line that answers a call.
    pub(crate) fn is_first_result(&self, at: ResultPosition) -> bool {
        let from = self.answers.partition_point(|(result, _)| result.entry_idx < at.entry_idx);
        match self.answers.get(from).filter(|(first, _)| first.entry_idx == at.entry_idx) {
            Some((first, _)) => *first == at,
            // The call is on a later line.
            None => at.block_idx == 0,
        }
    }

    /// Returns whether a block repeats a call that an earlier block of the line contains.
    pub(crate) fn repeats_call(&self, entry_idx: EntryIndex, block_idx: usize) -> bool {
        let at = (entry_idx, u32::try_from(block_idx).unwrap_or(u32::MAX));
        self.repeated_calls.binary_search(&at).is_ok()
    }

    /// Returns the call that the result at `at` answers. `None` if the id of that call is not `id`.
    pub(crate) fn call_answered(&self, id: &str, at: ResultPosition) -> Option<&ToolCall> {
        let known =
            self.answers.binary_search_by_key(&at, |(result, _)| *result).map(|found| self.answers[found].1);
        let call = known.ok().or_else(|| self.early_answers.get(&at).copied())?;
        Some(&self.calls[call]).filter(|call| *call.id == *id)
    }

    /// Returns the results that answer no call in the log, grouped by call id, in the order of the first result
    /// of each.
    pub fn orphan_results(&self) -> impl Iterator<Item = (&str, &[ResultPosition])> {
        let results = self.orphan_results_by_id.iter().map(|(id, results)| (&**id, &**results));
        let mut results: Vec<(&str, &[ResultPosition])> = results.collect();
        results.sort_unstable_by_key(|(_, positions)| positions.first().copied());
        results.into_iter()
    }

    /// Returns the first entry in the tree with this uuid.
    pub fn find(&self, uuid: &str) -> Option<EntryIndex> {
        self.uuid_table.get(uuid).and_then(|name| self.first_with_uuid(name))
    }

    /// Returns every uuid in the tree, in no particular order.
    pub fn uuids(&self) -> impl Iterator<Item = &str> {
        self.uuid_table.iter().filter(|(_, name)| self.first_with_uuid(*name).is_some()).map(|(uuid, _)| uuid)
    }

    /// Returns the table of all uuids that the tree mentions.
    pub(crate) fn uuid_table(&self) -> &Arc<UuidTable> {
        &self.uuid_table
    }

    /// Returns the uuid of an entry. `None` if its kind cannot be in the tree.
    pub(crate) fn uuid_key(&self, entry_idx: EntryIndex) -> Option<UuidKey> {
        self.nodes[entry_idx].uuid
    }

    /// Returns the uuid in the `parentUuid` field of an entry. `None` if its kind cannot be in the tree.
    pub(crate) fn parent_uuid_key(&self, entry_idx: EntryIndex) -> Option<UuidKey> {
        self.nodes[entry_idx].parent_uuid
    }

    /// Returns whether the entry is in the tree. A copy of an earlier line is not.
    pub fn in_tree(&self, entry_idx: EntryIndex) -> bool {
        self.nodes[entry_idx].in_tree
    }

    /// Returns whether the entry belongs to a sub-agent.
    pub fn is_sidechain(&self, entry_idx: EntryIndex) -> bool {
        self.nodes[entry_idx].sidechain
    }

    /// Returns the parent of the entry, as the log names it.
    ///
    /// A message without a uuid has the previous line as its parent, unless it names one. A link that would
    /// close a cycle is left out; the entry is then [`ParentLink::Dangling`].
    pub fn parent(&self, entry_idx: EntryIndex) -> ParentLink {
        let node = &self.nodes[entry_idx];
        match node.parent {
            Some(parent) => ParentLink::Entry(parent),
            None if node.is_dangling => ParentLink::Dangling,
            None => ParentLink::Root,
        }
    }

    /// Returns the entry itself, its parent, and so on up to the root.
    pub fn ancestors(&self, entry_idx: EntryIndex) -> impl Iterator<Item = EntryIndex> {
        std::iter::successors(Some(entry_idx), |&idx| self.nodes[idx].parent)
    }

    /// Returns how many user and assistant lines an entry and its ancestors are.
    pub fn spoken_up_to(&self, entry_idx: EntryIndex) -> usize {
        let count = || {
            // Parents may follow their children, so each chain is walked up to the first known count, and
            // back.
            let mut counts: IndexVec<EntryIndex, Option<u32>> = IndexVec::filled(None, self.entries.len());
            let mut chain = Vec::new();
            for idx in counts.indices() {
                chain.extend(self.ancestors(idx).take_while(|&above| counts[above].is_none()));
                while let Some(below) = chain.pop() {
                    let above = self.nodes[below].parent;
                    let above = above.and_then(|parent| counts[parent]).unwrap_or(0);
                    let speaks = matches!(self.entries[below].kind(), Kind::User | Kind::Assistant);
                    counts[below] = Some(above + u32::from(speaks));
                }
            }
            counts.into_iter().map(Option::unwrap_or_default).collect()
        };
        self.spoken.get_or_init(count).get(entry_idx).map_or(0, |&count| count as usize)
    }

    /// The entries that continue this one.
    pub fn children(&self, entry_idx: EntryIndex) -> impl Iterator<Item = EntryIndex> {
        let first = self.nodes[entry_idx].first_child;
        std::iter::successors(first, |&child| self.nodes[child].next_sibling)
    }

    /// Returns the entries in the tree without a linked parent: roots, and entries with a missing parent.
    pub fn roots(&self) -> impl Iterator<Item = EntryIndex> {
        self.entries.indices().filter(|&idx| self.nodes[idx].in_tree && self.nodes[idx].parent.is_none())
    }

    /// Returns the last reply with this message id.
    pub fn find_reply(&self, id: &str) -> Option<ReplyIndex> {
        self.reply_by_id.get(id, |reply| self.replies[reply].id.as_deref().unwrap_or_default())
    }

    /// Returns the reply that an assistant entry is part of, as an index into [`Session::replies`].
    pub fn reply_of(&self, entry_idx: EntryIndex) -> Option<ReplyIndex> {
        self.nodes[entry_idx].reply
    }

    /// Returns the kind of input of an entry. `None` for an entry that is not input.
    pub fn input(&self, entry_idx: EntryIndex) -> Option<InputKind> {
        self.nodes[entry_idx].input
    }

    /// Returns the time at which the entry was written.
    pub fn timestamp(&self, entry_idx: EntryIndex) -> Option<Millis> {
        Some(self.nodes[entry_idx].timestamp).filter(|&timestamp| timestamp != NO_TIMESTAMP)
    }

    /// Returns the findings about single lines that were collected by `push`.
    pub(crate) fn line_findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the last non-empty value of a top-level string field on lines of `kind`.
    pub fn last_value(&self, kind: Kind, key: &str) -> Option<Cow<'_, str>> {
        let mut lines = self.entries.iter().rev().filter(|entry| entry.kind() == kind);
        lines.find_map(|entry| entry.get(key)?.as_str().filter(|text| !text.is_empty()))
    }

    /// Returns the first working directory in the log. Takes constant time.
    pub fn first_cwd(&self) -> Option<Cow<'_, str>> {
        self.entries[self.first_with_cwd?].cwd()
    }

    /// Returns the title on one line, by the rules of [`TitleSources`].
    pub fn title(&self) -> Option<String> {
        let summary = || {
            let mut lines = self.entries.iter().rev().filter(|entry| entry.kind() == Kind::Summary);
            // Old versions wrote the titles of other sessions into a new log. Only one with a leaf in this
            // log counts.
            lines
                .find(|entry| {
                    entry.get(key::LEAF_UUID).and_then(|leaf| self.find(&leaf.as_str()?)).is_some()
                })?
                .get("summary")?
                .as_str()
        };
        let custom = self.last_value(Kind::CustomTitle, key::CUSTOM_TITLE);
        let generated = self.last_value(Kind::AiTitle, key::AI_TITLE);
        let last_prompt = self.last_value(Kind::LastPrompt, key::LAST_PROMPT);
        let (summary, first_prompt) = (summary(), self.first_prompt());
        let sources = TitleSources {
            custom: custom.as_deref(),
            generated: generated.as_deref(),
            last_prompt: last_prompt.as_deref(),
            summary: summary.as_deref(),
            first_prompt: first_prompt.as_deref(),
        };
        sources.title()
    }

    /// Returns the first prompt on one line, by the rules of [`FirstPromptSearch`].
    pub fn first_prompt(&self) -> Option<String> {
        let mut search = FirstPromptSearch::default();
        for entry in self.entries() {
            search.examine(entry);
            if search.is_done() {
                break;
            }
        }
        search.finish()
    }
}

/// The number of message blocks beyond which their byte ranges are indexed. Iterating to the nth block of
/// such a line each time would be quadratic.
const BLOCK_INDEX_THRESHOLD: usize = 64;

/// Returns the byte ranges of the message blocks in the text of a line.
fn block_ranges(entry: &Entry) -> Box<[Range<u32>]> {
    let start = entry.text().as_ptr().addr();
    let range = |block: Block<'_>| {
        let raw = block.object().json().raw();
        let at = raw.as_ptr().addr().saturating_sub(start);
        // Lines of 4 GiB or more are not parsed.
        at as u32..(at + raw.len()) as u32
    };
    entry.message().into_iter().flat_map(|message| message.blocks()).map(range).collect()
}

/// Returns whether two lines with the same uuid have the same content.
///
/// Forks add fields to the lines that they copy, so the envelope may differ.
fn has_same_content(first: &Entry, again: &Entry) -> bool {
    fn content_of(entry: &Entry) -> Option<Json<'_>> {
        match entry.kind() {
            Kind::Attachment => entry.get(key::ATTACHMENT),
            _ => entry.message()?.content().map(|content| content.json()),
        }
    }
    first == again
        || (first.kind() == again.kind()
            && content_of(first).is_some()
            && content_of(first) == content_of(again))
}

/// Returns whether lines of this kind can be in the tree.
fn is_tree_kind(kind: Kind, entry: &Entry) -> bool {
    match kind {
        Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment => true,
        // A kind that is unknown today can be in the tree if it names a parent.
        Kind::Unknown | Kind::Untyped => entry.get(key::PARENT_UUID).is_some(),
        _ => false,
    }
}
