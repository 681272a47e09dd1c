//! A session as a fold over its entries: the tree, and indexes over what stands in it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use threadline_entry::lens::{Block, FromJson, Lens, User};
use threadline_entry::{Code, Entry, Finding, Json, Kind, Lines, Millis, parse_line};

use crate::input::Input;
use crate::name::{Name, Names};
use crate::queue::{Queue, typed};
use crate::reply::Reply;
use crate::thread::Thread;
use crate::tool_call::{ResultAt, ToolCall};

/// A log, and what its lines mean together.
///
/// Positions in [`Session::entries`] are how everything here refers to a line.
#[derive(Clone, Debug, Default)]
pub struct Session {
    id: Option<String>,
    entries: Vec<Entry>,
    nodes: Vec<Node>,
    names: Names,
    /// The first entry of each name.
    by_name: Vec<Option<u32>>,
    /// Entries whose parent has not been written yet, by the parent's name.
    waiting: FxHashMap<Name, Vec<u32>>,
    /// An ancestor of each entry, the entry itself for a root. Lookups shorten the way.
    above: Vec<u32>,
    /// The last entry of the tree, of the main conversation and of sub-agents.
    last_in_tree: [Option<u32>; 2],
    pub(crate) replies: Vec<Reply>,
    reply_by_id: FxHashMap<Box<str>, u32>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) call_by_id: FxHashMap<Box<str>, u32>,
    /// Which calls each line holds: the line and the call, in order of lines.
    calls_by_line: Vec<(u32, u32)>,
    /// Which call each result answers: its line, its block and the call, in order; results before their call are apart.
    answers: Vec<(ResultAt, u32)>,
    early_answers: FxHashMap<ResultAt, u32>,
    /// Where the blocks of a line stand in it, of lines that have very many.
    wide_lines: FxHashMap<usize, Vec<Range<usize>>>,
    /// Results whose call has not been seen.
    pub(crate) stray_results: FxHashMap<Box<str>, Vec<ResultAt>>,
    /// The boundaries of compactions, in order.
    boundaries: Vec<usize>,
    queue: Queue,
    /// The ids of replies that the person stopped, and the lines that say so.
    interrupted: FxHashMap<Box<str>, u32>,
    findings: Vec<Finding>,
    /// The active conversation, once somebody asked.
    pub(crate) thread: OnceLock<Thread>,
    /// What is odd about the log, once somebody asked.
    pub(crate) odd: OnceLock<Vec<Finding>>,
}

/// What an entry continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// Nothing: it is no part of the tree, or its parent is `null`.
    Root,
    /// This entry.
    Entry(usize),
    /// A uuid that stands nowhere in the log (yet).
    Dangling,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Parent,
    /// Its own name, and that of its parent; of lines that can stand in a tree.
    name: Option<Name>,
    parent_name: Option<Name>,
    first_child: Option<u32>,
    last_child: Option<u32>,
    next_sibling: Option<u32>,
    reply: Option<u32>,
    input: Option<Input>,
    timestamp: Option<Millis>,
    in_tree: bool,
    sidechain: bool,
}

impl Session {
    /// An empty session.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty session that is known by `id`, which is how its file is named.
    pub fn with_id(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// Pushes every line of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut session = Self::new();
        let mut lines = Lines::new(bytes);
        while let Ok(Some(line)) = lines.next() {
            parse_line(&line, |entry, findings| session.push(entry, findings));
        }
        session
    }

    /// Takes in the next entry, and what was found odd about it.
    pub fn push(&mut self, entry: Entry, findings: Vec<Finding>) {
        let idx = self.entries.len();
        self.thread.take();
        self.odd.take();
        self.findings.extend(findings);
        let kind = entry.kind();
        let is_tree = is_tree_kind(kind, &entry);
        let name = entry.uuid().filter(|_| is_tree).map(|uuid| self.names.take(&uuid));
        let parent_name = entry.parent_uuid().filter(|_| is_tree).map(|uuid| self.names.take(&uuid));
        let again = name.and_then(|name| self.first_of(name));
        let is_copy = again.is_some_and(|first| says_the_same(&self.entries[first as usize], &entry));
        let queued = if kind == Kind::Attachment { Input::of_attachment(&entry) } else { None };
        let spoken = matches!(kind, Kind::User | Kind::Assistant) || queued.is_some();
        let nameless = name.is_none() && spoken;
        let mut node = Node {
            parent: Parent::Root,
            name,
            parent_name,
            first_child: None,
            last_child: None,
            next_sibling: None,
            reply: None,
            input: None,
            timestamp: entry.timestamp(),
            in_tree: (name.is_some() && !is_copy) || nameless,
            sidechain: entry.flag("isSidechain"),
        };
        match kind {
            Kind::User => node.input = Some(self.take_user(idx, &entry)),
            Kind::Assistant => node.reply = Some(self.take_assistant(idx, &entry, is_copy)),
            Kind::Attachment => node.input = queued,
            Kind::System => node.input = Input::of_system(&entry),
            _ => {}
        }
        self.queue.take(&self.entries, &entry, node.input);
        let at = entry.at();
        let in_tree = node.in_tree;
        if spoken && entry.message().is_some_and(|message| message.blocks().nth(MANY_BLOCKS).is_some()) {
            self.wide_lines.insert(idx, block_ranges(&entry));
        }
        self.entries.push(entry);
        self.nodes.push(node);
        self.above.push(idx as u32);
        if self.is_boundary(idx) {
            self.boundaries.push(idx);
        }
        if let Some(first) = again {
            let line = self.entries[first as usize].at().line_no;
            let what = if is_copy { "is a copy of" } else { "has the uuid of" };
            let finding = Finding::new(Code::DuplicateUuid, at, format!("the line {what} line {line}"));
            // Claude Code itself writes lines again before it compacts, sometimes with a field more.
            self.findings.push(if is_copy { finding.as_note() } else { finding });
        }
        if !in_tree {
            return;
        }
        let before = self.last_in_tree[usize::from(self.nodes[idx].sidechain)].replace(idx as u32);
        match parent_name {
            Some(parent) => match self.first_of(parent) {
                Some(parent) => self.link(idx, parent as usize),
                None => {
                    self.nodes[idx].parent = Parent::Dangling;
                    self.waiting.entry(parent).or_default().push(idx as u32);
                }
            },
            None if nameless => {
                if let Some(before) = before {
                    self.link(idx, before as usize);
                }
            }
            None => {}
        }
        if let Some(name) = name.filter(|_| again.is_none()) {
            self.settle(idx, name);
        }
    }

    /// The boundaries of compactions, in order.
    pub(crate) fn boundaries(&self) -> &[usize] {
        &self.boundaries
    }

    /// The first entry of a name.
    fn first_of(&self, name: Name) -> Option<u32> {
        self.by_name.get(name.idx()).copied().flatten()
    }

    /// Hangs an entry that names no parent below the line before it.
    pub(crate) fn link_to_line_before(&mut self, idx: usize) {
        if !self.nodes[idx].in_tree || self.nodes[idx].parent != Parent::Root {
            return;
        }
        let before =
            |&at: &usize| self.nodes[at].in_tree && self.nodes[at].sidechain == self.nodes[idx].sidechain;
        if let Some(before) = (0..idx).rev().find(before) {
            self.link(idx, before);
        }
    }

    /// Enters an entry under its name, and links the entries that waited for it.
    fn settle(&mut self, idx: usize, name: Name) {
        let waiting = self.waiting.remove(&name).unwrap_or_default();
        if self.by_name.len() <= name.idx() {
            self.by_name.resize(self.names.len(), None);
        }
        self.by_name[name.idx()] = Some(idx as u32);
        for child in waiting {
            let child = child as usize;
            // The child continues nothing yet, so it is above the entry only as its root.
            if self.root_of(idx) == child {
                let message = "the line's parents lead back to itself";
                self.findings.push(Finding::new(Code::Cycle, self.entries[child].at(), message));
                continue;
            }
            let late = self.entries[idx].at().line_no;
            let message = format!("the parent is written only later, on line {late}");
            self.findings.push(Finding::new(Code::LateParent, self.entries[child].at(), message));
            self.link(child, idx);
        }
    }

    /// The entry at the top of the tree that an entry is in.
    fn root_of(&mut self, idx: usize) -> usize {
        let mut root = idx;
        while self.above[root] as usize != root {
            // Each step halves the way for those who come after.
            self.above[root] = self.above[self.above[root] as usize];
            root = self.above[root] as usize;
        }
        root
    }

    fn link(&mut self, child: usize, parent: usize) {
        self.thread.take();
        self.odd.take();
        self.above[child] = parent as u32;
        self.nodes[child].parent = Parent::Entry(parent);
        let child = child as u32;
        match self.nodes[parent].last_child {
            Some(last) => self.nodes[last as usize].next_sibling = Some(child),
            None => self.nodes[parent].first_child = Some(child),
        }
        self.nodes[parent].last_child = Some(child);
    }

    /// Notes the tool results of a user entry, and says what kind of entry it is.
    fn take_user(&mut self, idx: usize, entry: &Entry) -> Input {
        let mut is_result = false;
        for (block_idx, block) in entry.message().into_iter().flat_map(|message| message.blocks()).enumerate()
        {
            if !block.is("tool_result") {
                continue;
            }
            is_result = true;
            let Some(id) = block.tool_use_id() else { continue };
            let result = ResultAt { entry_idx: idx, block_idx };
            match self.call_by_id.get(&*id) {
                Some(&call) => {
                    self.calls[call as usize].results.push(result);
                    self.answers.push((result, call));
                }
                None => self.stray_results.entry(id.into()).or_default().push(result),
            }
        }
        if is_result {
            return Input::ToolResult;
        }
        let input = Input::of_user(entry);
        if input == Input::Interrupt
            && let Some(id) = entry.lens::<User<'_>>().and_then(|line| line.interrupted_message_id())
        {
            self.interrupted.insert(id.into(), idx as u32);
        }
        input
    }

    /// Adds an assistant entry to its reply, and its tool calls to the list.
    fn take_assistant(&mut self, idx: usize, entry: &Entry, is_copy: bool) -> u32 {
        let message = entry.message();
        let id = message.and_then(|message| message.id()).map(|id| Box::<str>::from(&*id));
        let known = id.as_ref().and_then(|id| self.reply_by_id.get(id).copied());
        let reply_idx = known.unwrap_or(self.replies.len() as u32);
        match known {
            Some(reply) => self.replies[reply as usize].entries.push(idx),
            None => {
                if let Some(id) = &id {
                    self.reply_by_id.insert(id.clone(), reply_idx);
                }
                let model = message.and_then(|message| message.model()).map(Cow::into_owned);
                self.replies.push(Reply {
                    id: id.map(Into::into),
                    model,
                    entries: vec![idx],
                    calls: Vec::new(),
                });
            }
        }
        for (block_idx, block) in message.into_iter().flat_map(|message| message.blocks()).enumerate() {
            if !block.is("tool_use") {
                continue;
            }
            let id = block.id().unwrap_or_default();
            let name = block.name().unwrap_or_default().into_owned();
            let reply = reply_idx as usize;
            let mut results = Vec::new();
            if !id.is_empty() {
                // Another reply may use an id again: that is another call, and what follows answers it.
                let known = self.call_by_id.get(&*id).map(|&call| call as usize);
                if let Some(call) = known.filter(|&call| self.calls[call].reply == reply) {
                    let known = &mut self.calls[call];
                    if known.entry_idx != idx && known.copies.last() != Some(&idx) {
                        self.calls_by_line.push((idx as u32, call as u32));
                    }
                    known.write_again(idx, block_idx, is_copy);
                    continue;
                }
                let call = self.calls.len() as u32;
                self.call_by_id.insert((&*id).into(), call);
                results = self.stray_results.remove(&*id).unwrap_or_default();
                self.early_answers.extend(results.iter().map(|result| (*result, call)));
            }
            self.calls_by_line.push((idx as u32, self.calls.len() as u32));
            self.replies[reply].calls.push(self.calls.len());
            self.calls.push(ToolCall {
                id: id.into_owned(),
                name,
                entry_idx: idx,
                block_idx,
                reply,
                results,
                copies: Vec::new(),
            });
        }
        reply_idx
    }

    /// The id that the session is known by: its file's name, else what the last of its lines says.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        if let Some(id) = &self.id {
            return Some(Cow::Borrowed(id));
        }
        self.entries.iter().rev().find_map(Entry::session_id)
    }

    /// The lines, in file order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The replies of the model: lines of one `message.id` over the whole log.
    pub fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// The tool calls, each joined to its result, in the order they were made.
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// The call with this id; of several, the last.
    pub fn tool_call(&self, id: &str) -> Option<&ToolCall> {
        self.call_by_id.get(id).map(|&call| &self.calls[call as usize])
    }

    /// The prompt that steered the turn under way from this line on, where no line of the conversation says so.
    pub fn steering(&self, entry_idx: usize) -> Option<Cow<'_, str>> {
        typed(&self.entries[self.steered_from(entry_idx)?])
    }

    /// The line that holds the prompt of [`steering`](Self::steering).
    pub fn steered_from(&self, entry_idx: usize) -> Option<usize> {
        self.queue.steered_from(entry_idx)
    }

    /// The line that says that the person stopped a reply, or a call of it that ran. Only newer versions of Claude Code
    /// say which reply it was.
    pub fn interrupted_at(&self, reply: usize) -> Option<usize> {
        self.interrupted.get(self.replies[reply].id.as_deref()?).map(|&idx| idx as usize)
    }

    /// A block of a line, by its number.
    pub(crate) fn block(&self, entry_idx: usize, block_idx: usize) -> Option<Block<'_>> {
        let entry = &self.entries[entry_idx];
        match self.wide_lines.get(&entry_idx) {
            Some(blocks) => Block::from_json(Json::parse(&entry.text()[blocks.get(block_idx)?.clone()])?),
            None => entry.message()?.blocks().nth(block_idx),
        }
    }

    /// The calls that a line holds, by their place in [`Session::tool_calls`].
    pub fn calls_on(&self, entry_idx: usize) -> impl Iterator<Item = usize> {
        let from = self.calls_by_line.partition_point(|(line, _)| (*line as usize) < entry_idx);
        let calls =
            self.calls_by_line[from..].iter().take_while(move |(line, _)| *line as usize == entry_idx);
        calls.map(|(_, call)| *call as usize)
    }

    /// The call with this id that a line holds.
    pub fn tool_call_on(&self, entry_idx: usize, id: &str) -> Option<&ToolCall> {
        self.calls_on(entry_idx).map(|call| &self.calls[call]).find(|call| call.id == id)
    }

    /// The call that the result at `at` answers, given the id that both carry.
    pub(crate) fn call_answered(&self, id: &str, at: ResultAt) -> Option<&ToolCall> {
        let known =
            self.answers.binary_search_by_key(&at, |(result, _)| *result).map(|found| self.answers[found].1);
        let call = known.ok().or_else(|| self.early_answers.get(&at).copied())?;
        Some(&self.calls[call as usize]).filter(|call| call.id == id)
    }

    /// Results that answer no call in the log: the call's id, and where the results stand.
    pub fn orphan_results(&self) -> impl Iterator<Item = (&str, &[ResultAt])> {
        self.stray_results.iter().map(|(id, results)| (&**id, &results[..]))
    }

    /// The entry with this uuid; of two, the first.
    pub fn find(&self, uuid: &str) -> Option<usize> {
        self.names.get(uuid).and_then(|name| self.first_of(name)).map(|idx| idx as usize)
    }

    /// Every uuid in the tree.
    pub fn uuids(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|(_, name)| self.first_of(*name).is_some()).map(|(uuid, _)| uuid)
    }

    /// The names that the tree mentions.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The name of an entry that can stand in the tree.
    pub(crate) fn name(&self, entry_idx: usize) -> Option<Name> {
        self.nodes[entry_idx].name
    }

    /// The name of what such an entry says it continues.
    pub(crate) fn parent_name(&self, entry_idx: usize) -> Option<Name> {
        self.nodes[entry_idx].parent_name
    }

    /// Whether the entry is part of the tree. A copy of an earlier line is not.
    pub fn in_tree(&self, entry_idx: usize) -> bool {
        self.nodes[entry_idx].in_tree
    }

    /// Whether the entry belongs to a sub-agent.
    pub fn is_sidechain(&self, entry_idx: usize) -> bool {
        self.nodes[entry_idx].sidechain
    }

    /// What the entry continues, as written; a line that has no uuid continues the one before.
    /// Circles are broken where they would close.
    pub fn parent(&self, entry_idx: usize) -> Parent {
        self.nodes[entry_idx].parent
    }

    /// The entry's parent, that one's parent, and so on to the root. The entry itself comes first.
    pub fn ancestors(&self, entry_idx: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(entry_idx), |&idx| match self.nodes[idx].parent {
            Parent::Entry(parent) => Some(parent),
            Parent::Root | Parent::Dangling => None,
        })
    }

    /// The entries that continue this one.
    pub fn children(&self, entry_idx: usize) -> impl Iterator<Item = usize> {
        let first = self.nodes[entry_idx].first_child;
        std::iter::successors(first, |&child| self.nodes[child as usize].next_sibling)
            .map(|child| child as usize)
    }

    /// The entries of the tree that continue nothing: roots, and those whose parent is missing.
    pub fn roots(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len())
            .filter(|&idx| self.nodes[idx].in_tree && !matches!(self.nodes[idx].parent, Parent::Entry(_)))
    }

    /// The reply that an assistant entry is part of.
    pub fn reply_of(&self, entry_idx: usize) -> Option<usize> {
        self.nodes[entry_idx].reply.map(|reply| reply as usize)
    }

    /// What kind of user entry this is; `None` for entries of other kinds.
    pub fn input(&self, entry_idx: usize) -> Option<Input> {
        self.nodes[entry_idx].input
    }

    /// When the entry was made.
    pub fn timestamp(&self, entry_idx: usize) -> Option<Millis> {
        self.nodes[entry_idx].timestamp
    }

    /// What was found odd about single lines while they were pushed.
    pub(crate) fn line_findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The last non-empty value of a top-level string on lines of `kind`.
    pub fn last_value(&self, kind: Kind, key: &str) -> Option<Cow<'_, str>> {
        let mut lines = self.entries.iter().rev().filter(|entry| entry.kind() == kind);
        lines.find_map(|entry| entry.get(key)?.as_str().filter(|text| !text.is_empty()))
    }

    /// The title: one that a person gave, else one that a model gave, else one of the old kind.
    pub fn title(&self) -> Option<Cow<'_, str>> {
        let summary = || {
            let mut lines = self.entries.iter().rev().filter(|entry| entry.kind() == Kind::Summary);
            // Old versions wrote the titles of other sessions into a new one: only a leaf of ours counts.
            lines
                .find(|entry| entry.get("leafUuid").and_then(|leaf| self.find(&leaf.as_str()?)).is_some())?
                .get("summary")?
                .as_str()
        };
        self.last_value(Kind::CustomTitle, "customTitle")
            .or_else(|| self.last_value(Kind::AiTitle, "aiTitle"))
            .or_else(summary)
    }
}

/// Whether a line of the same uuid says nothing new. Forks mark their copies, so the envelope may differ.
/// From so many blocks on, where each stands is noted: going through all of them to find one would take too long.
const MANY_BLOCKS: usize = 64;

/// Where the blocks of a line's message stand in its text.
fn block_ranges(entry: &Entry) -> Vec<Range<usize>> {
    let start = entry.text().as_ptr().addr();
    let range = |block: Block<'_>| {
        let raw = block.object().json().raw();
        let at = raw.as_ptr().addr().saturating_sub(start);
        at..at + raw.len()
    };
    entry.message().into_iter().flat_map(|message| message.blocks()).map(range).collect()
}

fn says_the_same(first: &Entry, again: &Entry) -> bool {
    fn said(entry: &Entry) -> Option<Json<'_>> {
        match entry.kind() {
            Kind::Attachment => entry.get("attachment"),
            _ => entry.message()?.content().map(|content| content.json()),
        }
    }
    first == again || (first.kind() == again.kind() && said(first).is_some() && said(first) == said(again))
}

/// Whether lines of this kind take part in the tree.
fn is_tree_kind(kind: Kind, entry: &Entry) -> bool {
    match kind {
        Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment => true,
        // A type of next week may stand in the chain; it says so by naming a parent.
        Kind::Unknown | Kind::Untyped => entry.get("parentUuid").is_some(),
        _ => false,
    }
}
