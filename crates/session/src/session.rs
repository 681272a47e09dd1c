//! The session: a fold over its entries that builds the tree and its indexes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use foldhash::HashMap;
use threadline_entry::lens::{Block, User};
use threadline_entry::{
    ChunkReader, Code, Entry, Finding, FirstPromptSearch, Json, Kind, Millis, TitleSources, key, value,
};

use crate::index::{CallIndex, EntryIndex, IndexRange, IndexVec, ReplyIndex};
use crate::input::InputKind;
use crate::prompt_queue::{PromptQueue, typed};
use crate::reply::Reply;
use crate::thread::Thread;
use crate::tool_call::{BlockPosition, ServerCall, ToolCall};

/// The entries of a log with the tree, replies and tool calls that they form.
///
/// An entry is identified by its index in [`Session::entries`], here and in all other types of this crate.
///
/// # Terms
///
/// - *tree*: the entries with a uuid, linked by parent. A *chain* is a path in which each entry is the
///   parent of the next.
/// - *main conversation*: the entries of the tree that do not belong to sub-agents, on any path.
/// - *active conversation*: the [`Thread`], which ends at the *leaf*. It includes lines that are attached to
///   the chain to the leaf, such as parallel results.
/// - *branch*: a path of the tree that is not part of the active conversation, after a rewind or a retry.
/// - *copy*: a line with the uuid and the content of an earlier one, which Claude Code wrote again, before a
///   compaction for example. It is not in the tree.
///
/// ```
/// # use threadline_session::{EntryIndex, Session};
/// let session = Session::from_bytes(&threadline_testkit::log(r#"
/// u1        user   "hello"
/// a1 <- u1  reply  m1 text "Hello."
/// u2 <- a1  user   "Warp it"
/// a1 <- u1  reply  m1 text "Hello."
/// u3 <- a1  user   "Weave it"
/// "#));
/// let lines = |entries: &[EntryIndex]| entries.iter().map(|idx| idx.position()).collect::<Vec<_>>();
/// assert_eq!(lines(&session.thread().entries), [0, 1, 4]);
/// assert_eq!(lines(&session.branches()[0].entries), [2]);
/// let copies = session.entries().indices().filter(|idx| !session.in_tree(*idx));
/// assert_eq!(lines(&copies.collect::<Vec<_>>()), [3]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Session {
    id: Option<String>,
    entries: IndexVec<EntryIndex, Entry>,
    nodes: IndexVec<EntryIndex, TreeNode>,
    /// The first entry with each uuid.
    entry_by_uuid: HashMap<String, EntryIndex>,
    /// Entries with a parent that has not been pushed yet, by the uuid of the parent.
    pending_children: HashMap<String, Vec<EntryIndex>>,
    /// The last entry in the tree: of the main conversation at index 0, of sub-agents at index 1.
    last_in_tree: [Option<EntryIndex>; 2],
    pub(crate) replies: IndexVec<ReplyIndex, Reply>,
    reply_by_id: HashMap<String, ReplyIndex>,
    pub(crate) calls: IndexVec<CallIndex, ToolCall>,
    /// The last call with each id.
    call_by_id: HashMap<String, CallIndex>,
    server_calls: Vec<ServerCall>,
    /// The call of each block, sorted by line and block. Of several blocks of a line with one call, only the
    /// first.
    calls_by_block: Vec<(BlockPosition, CallIndex)>,
    /// The call of each result.
    answers: BTreeMap<BlockPosition, CallIndex>,
    /// Results without a call so far, by the id of the call.
    pub(crate) orphan_results_by_id: HashMap<String, Vec<BlockPosition>>,
    /// The compaction boundaries, in file order, each with the last line of the main conversation before it.
    boundaries: Vec<(EntryIndex, Option<EntryIndex>)>,
    /// The first entry with a working directory.
    first_with_cwd: Option<EntryIndex>,
    queue: PromptQueue,
    /// The line that records the interruption of each interrupted reply, by message id.
    interrupted: HashMap<String, EntryIndex>,
    findings: Vec<Finding>,
    /// Cache of [`Session::cached_thread`], cleared by `push`.
    pub(crate) cached_thread: OnceLock<Thread>,
    /// Cache of the counts of [`Session::spoken_up_to`].
    spoken: OnceLock<IndexVec<EntryIndex, u32>>,
    /// Cache of the findings about the log as a whole.
    pub(crate) cached_findings: OnceLock<Vec<Finding>>,
}

/// The links of an entry in the tree, and the facts about it that are needed often.
#[derive(Clone, Debug)]
struct TreeNode {
    /// The parent, if it is in the log.
    parent: Option<EntryIndex>,
    first_child: Option<EntryIndex>,
    last_child: Option<EntryIndex>,
    next_sibling: Option<EntryIndex>,
    /// An ancestor, or the entry itself if it is a root. The nodes are a union-find forest.
    root_link: EntryIndex,
    reply: Option<ReplyIndex>,
    timestamp: Option<Millis>,
    input: Option<InputKind>,
    /// Whether the entry names a parent that is not in the log.
    is_dangling: bool,
    in_tree: bool,
    sidechain: bool,
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

    /// Appends the next entry, with the findings of its parser.
    ///
    /// Updates the tree, the replies and the tool calls, and clears the cached results.
    pub fn push(&mut self, entry: Entry, findings: Vec<Finding>) {
        let idx = self.entries.end();
        self.cached_thread.take();
        self.spoken.take();
        self.cached_findings.take();
        self.findings.extend(findings);
        let kind = entry.kind();
        let is_tree = is_tree_kind(kind, &entry);
        let uuid = entry.uuid().filter(|_| is_tree).map(Cow::into_owned);
        let parent_uuid = entry.parent_uuid().filter(|_| is_tree).map(Cow::into_owned);
        let again = uuid.as_ref().and_then(|uuid| self.find(uuid));
        let is_copy = again.is_some_and(|first| has_same_content(&self.entries[first], &entry));
        let queued = if kind == Kind::Attachment { InputKind::of_attachment(&entry) } else { None };
        let spoken = matches!(kind, Kind::User | Kind::Assistant) || queued.is_some();
        let nameless = uuid.is_none() && spoken;
        let mut node = TreeNode {
            parent: None,
            first_child: None,
            last_child: None,
            next_sibling: None,
            root_link: idx,
            reply: None,
            timestamp: entry.timestamp(),
            input: None,
            is_dangling: false,
            in_tree: (uuid.is_some() && !is_copy) || nameless,
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
        match parent_uuid {
            Some(parent) => match self.find(&parent) {
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
        if let Some(uuid) = uuid.filter(|_| again.is_none()) {
            self.register(idx, uuid);
        }
    }

    /// Returns the compaction boundaries, in file order, each with the last line of the main conversation
    /// before it.
    pub(crate) fn boundaries(&self) -> &[(EntryIndex, Option<EntryIndex>)] {
        &self.boundaries
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
    fn register(&mut self, idx: EntryIndex, uuid: String) {
        let pending = self.pending_children.remove(&uuid).unwrap_or_default();
        self.entry_by_uuid.insert(uuid, idx);
        for child in pending {
            // The child has no parent yet, so it can only be an ancestor of the entry if it is the root.
            if self.root_of(idx) == child {
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

    /// Returns the root of the tree that contains an entry.
    fn root_of(&mut self, entry_idx: EntryIndex) -> EntryIndex {
        let mut at = entry_idx;
        while self.nodes[at].root_link != at {
            // Path halving: shortens later lookups.
            let above = self.nodes[self.nodes[at].root_link].root_link;
            self.nodes[at].root_link = above;
            at = above;
        }
        at
    }

    fn link(&mut self, child: EntryIndex, parent: EntryIndex) {
        self.cached_thread.take();
        self.spoken.take();
        self.cached_findings.take();
        self.nodes[child].root_link = parent;
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
            let result = BlockPosition { entry_idx: idx, block_idx: block_idx as u32 };
            match self.call_index(&id) {
                Some(call) => {
                    self.calls[call].results.push(result);
                    self.answers.insert(result, call);
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
        let known = id.as_deref().and_then(|id| self.find_reply(id));
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
                    self.reply_by_id.insert(id.clone().into_owned(), reply_idx);
                }
                let model = message.and_then(|message| message.model());
                self.replies.push(Reply {
                    id: id.map(Cow::into_owned),
                    model: model.map(Cow::into_owned),
                    entries: vec![idx],
                    usage_entry: idx,
                    calls: Vec::new(),
                });
            }
        }
        for (block_idx, block) in message.into_iter().flat_map(|message| message.blocks()).enumerate() {
            let id = block.id().unwrap_or_default();
            if !block.is(value::TOOL_USE) {
                if block.is(value::SERVER_TOOL_USE) || block.is(value::MCP_TOOL_USE) {
                    let name = block.name().unwrap_or_default().into_owned();
                    self.server_calls.push(ServerCall { id: id.into_owned(), name, reply: reply_idx });
                }
                continue;
            }
            let position = BlockPosition { entry_idx: idx, block_idx: block_idx as u32 };
            let mut results = Vec::new();
            if !id.is_empty() {
                // A later reply may reuse an id. That is a new call, and results that follow answer the new
                // one.
                let known = self.call_index(&id);
                if let Some(call) = known.filter(|&call| self.calls[call].reply == reply_idx) {
                    if self.calls[call].lines.last() != Some(&idx) {
                        self.calls[call].add_line(position, is_copy);
                        self.calls_by_block.push((position, call));
                    }
                    continue;
                }
                let call = self.calls.end();
                self.call_by_id.insert(id.clone().into_owned(), call);
                results = self.orphan_results_by_id.remove(&*id).unwrap_or_default();
                self.answers.extend(results.iter().map(|result| (*result, call)));
            }
            self.calls_by_block.push((position, self.calls.end()));
            self.replies[reply_idx].calls.push(self.calls.end());
            self.calls.push(ToolCall {
                id: id.into_owned(),
                name: block.name().unwrap_or_default().into_owned(),
                entry_idx: idx,
                block_idx: position.block_idx,
                reply: reply_idx,
                results,
                lines: vec![idx],
            });
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
        self.call_by_id.get(id).copied()
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

    /// Returns a block of a line, by its number. Takes constant time.
    pub fn block(&self, entry_idx: EntryIndex, block_idx: usize) -> Option<Block<'_>> {
        self.entries[entry_idx].message()?.content()?.block(block_idx)
    }

    /// Returns the calls on a line, as indexes into [`Session::tool_calls`].
    pub fn calls_on(&self, entry_idx: EntryIndex) -> impl Iterator<Item = CallIndex> {
        let from = self.calls_by_block.partition_point(|(at, _)| at.entry_idx < entry_idx);
        let calls = self.calls_by_block[from..].iter().take_while(move |(at, _)| at.entry_idx == entry_idx);
        calls.map(|(_, call)| *call)
    }

    /// Returns the call of a block, as an index into [`Session::tool_calls`]. `None` if it repeats the call
    /// of an earlier block of the line.
    pub fn call_of_block(&self, entry_idx: EntryIndex, block_idx: usize) -> Option<CallIndex> {
        let at = BlockPosition { entry_idx, block_idx: u32::try_from(block_idx).ok()? };
        let found = self.calls_by_block.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.calls_by_block[found].1)
    }

    /// Returns the first call with this id on a line.
    pub fn tool_call_on(&self, entry_idx: EntryIndex, id: &str) -> Option<&ToolCall> {
        self.call_index_on(entry_idx, id).map(|call| &self.calls[call])
    }

    /// Returns the index of that call in [`Session::tool_calls`].
    pub fn call_index_on(&self, entry_idx: EntryIndex, id: &str) -> Option<CallIndex> {
        // A later reply may have used the id for another call.
        let last = self.call_index(id)?;
        if self.calls[last].lines.binary_search(&entry_idx).is_ok() {
            return Some(last);
        }
        self.calls_on(entry_idx).find(|&call| self.calls[call].id == id)
    }

    /// Returns whether a result is the first one of its line that answers a call.
    pub(crate) fn is_first_result(&self, at: BlockPosition) -> bool {
        let start = BlockPosition { block_idx: 0, ..at };
        self.answers.range(start..=at).next().map_or(at.block_idx == 0, |(first, _)| *first == at)
    }

    /// Returns the results of a line that answer calls, with the calls.
    pub(crate) fn answers_on(
        &self,
        entry_idx: EntryIndex,
    ) -> impl Iterator<Item = (BlockPosition, &ToolCall)> {
        let start = BlockPosition { entry_idx, block_idx: 0 };
        let answers = self.answers.range(start..).take_while(move |(at, _)| at.entry_idx == entry_idx);
        answers.map(|(at, call)| (*at, &self.calls[*call]))
    }

    /// Returns the results that answer no call in the log, grouped by call id, in the order of the first
    /// result of each.
    pub fn orphan_results(&self) -> impl Iterator<Item = (&str, &[BlockPosition])> {
        let results = self.orphan_results_by_id.iter().map(|(id, results)| (&**id, &**results));
        let mut results: Vec<(&str, &[BlockPosition])> = results.collect();
        results.sort_unstable_by_key(|(_, positions)| positions.first().copied());
        results.into_iter()
    }

    /// Returns the first entry in the tree with this uuid.
    pub fn find(&self, uuid: &str) -> Option<EntryIndex> {
        self.entry_by_uuid.get(uuid).copied()
    }

    /// Returns every uuid in the tree, in no particular order.
    pub fn uuids(&self) -> impl Iterator<Item = &str> {
        self.entry_by_uuid.keys().map(String::as_str)
    }

    /// Returns whether the entry is in the [tree](Session#terms). A copy of an earlier line is not.
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
        self.reply_by_id.get(id).copied()
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
        self.nodes[entry_idx].timestamp
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
