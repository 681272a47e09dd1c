//! Builds the items of one session of a family, entry by entry.

mod attachment;
mod call;
mod line;
mod notice;
mod topic;
mod turn;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{Block, FrameLink, Lens, PrLink};
use threadline_entry::{Entry, Json, Kind, key, value};
use threadline_session::{
    AgentIndex, BlockPosition, CallIndex, EntryIndex, InputKind, Reply, Session, Subagent, Thread,
    ToolOutcome, editor_context, is_command_caveat,
};
use threadline_usage::UsageTotals;

use self::attachment::attachment_body;
pub(crate) use self::call::{fill_agent_names, relative_to, set_topic};
pub(crate) use self::line::strip_tags;
use self::line::{compaction_body, file_of, progress, queue_body, system_body};
pub(crate) use self::notice::notices;
use self::topic::TopicLookup;
pub(crate) use self::turn::demote_early_command;
use crate::humanize::joined;
use crate::name::short_model;
use crate::outline::outline;
use crate::spending::Spending;
use crate::transcript::{AgentView, ItemBody, TranscriptItem, anchor};
use crate::transcript_builder::{OutputReads, TranscriptBuilder};

/// The maximum nesting depth of sub-agents; deeper ones are not built.
pub const MAX_AGENT_DEPTH: usize = 100;

/// The number of bytes shown of a block of unknown type; the log has all of it.
const UNKNOWN_BLOCK_PREVIEW: usize = 300;

/// The reply that Claude Code inserts for the model if no response was requested.
const NO_RESPONSE_TEXT: &str = "No response requested.";

/// The sentence that ends every context message of the editor.
const EDITOR_SUFFIX: &str = "This may or may not be related to the current task.";

/// The content of a block that becomes an item. Calls and compactions are not built yet, because that takes
/// longest and the notes of a line need not do it.
pub(crate) enum BlockContent<'f> {
    /// A finished body.
    Body(ItemBody),
    /// A block with a tool call.
    Call(CallBlock<'f>),
    /// The boundary of a compaction.
    Compaction,
}

/// A block with a tool call.
#[derive(Clone, Copy)]
pub(crate) struct CallBlock<'f> {
    /// The index in [`Session::tool_calls`].
    pub(crate) call: CallIndex,
    pub(crate) block: Block<'f>,
    /// The result that is shown with it, as `ToolCall::result_of_block` returns it.
    pub(crate) result: Option<BlockPosition>,
    /// Whether it is the last block with its id, with which the sub-agents are shown.
    pub(crate) has_agents: bool,
}

impl CallBlock<'_> {
    /// Returns the outcome of the call according to the result that is shown with the block.
    pub(crate) fn outcome(&self, session: &Session) -> ToolOutcome {
        session.tool_calls()[self.call].outcome_of(self.result, session)
    }
}

/// Builds the items of one session of a family.
#[derive(Clone)]
pub(crate) struct TranscriptWriter<'f> {
    pub(crate) builder: TranscriptBuilder<'f>,
    pub(crate) agent: Option<AgentIndex>,
    /// The index in [`Spending`] of the log that contains the session's lines.
    log: usize,
    depth: usize,
    state: Rc<WriterState>,
}

/// The state of a writer that the writers of sub-agents share.
#[derive(Default)]
struct WriterState {
    /// The agents that were already built.
    visited: RefCell<HashSet<AgentIndex>>,
    /// The agents that are being built, each inside of the one before.
    open_agents: RefCell<Vec<AgentIndex>>,
    topics: TopicLookup,
    output_reads: OutputReads,
    /// Whether the last turn of a session is open, for those of which it was asked.
    open_turns: RefCell<HashMap<Option<AgentIndex>, bool>>,
}

impl<'f> TranscriptWriter<'f> {
    /// Creates a writer for the session or for one of its sub-agents.
    pub(crate) fn new(builder: TranscriptBuilder<'f>, agent: Option<AgentIndex>) -> Self {
        let log = Spending::log_index(builder.family, agent);
        Self { builder, agent, log, depth: 0, state: Rc::default() }
    }

    /// Creates a writer for a session that contains only some lines of a log, given the index of that log in
    /// [`Spending`].
    pub(crate) fn of_log(builder: TranscriptBuilder<'f>, log: usize) -> Self {
        Self { log, ..Self::new(builder, None) }
    }

    /// Creates a writer that does not descend into sub-agents.
    pub(crate) fn without_agents(builder: TranscriptBuilder<'f>, agent: Option<AgentIndex>) -> Self {
        Self { depth: MAX_AGENT_DEPTH, ..Self::new(builder, agent) }
    }

    /// Returns whether it descends into sub-agents.
    pub(crate) fn descends(&self) -> bool {
        self.depth < MAX_AGENT_DEPTH
    }

    /// Returns the writer of a sub-agent, and marks the sub-agent as visited.
    pub(crate) fn for_agent(&self, agent: AgentIndex) -> Self {
        self.state.visited.borrow_mut().insert(agent);
        let log = Spending::log_index(self.builder.family, Some(agent));
        Self { agent: Some(agent), log, depth: self.depth + 1, ..self.clone() }
    }

    pub(crate) fn session(&self) -> &'f Session {
        self.builder.family.session(self.agent)
    }

    /// Returns the cost of the calls that begin on this line.
    fn cost_on(&self, entry: &Entry) -> Option<&'f Arc<UsageTotals>> {
        let spending = self.builder.spending.filter(|_| entry.kind() == Kind::Assistant)?;
        spending.at(self.log, entry.at().line_no)
    }

    /// Marks the sub-agents that the calls of some lines started as visited, and those below them, without
    /// building them.
    pub(crate) fn visit_agents_of(&self, entries: &[EntryIndex]) {
        let calls = self.session().tool_calls();
        for content in entries.iter().flat_map(|&idx| self.contents(idx)) {
            let (_, BlockContent::Call(CallBlock { call, has_agents: true, .. })) = content else { continue };
            for agent in self.builder.family.spawned_by(self.agent, &calls[call].id) {
                let is_new = !self.state.visited.borrow().contains(&agent);
                if self.descends() && is_new {
                    let below = self.for_agent(agent);
                    below.visit_agents_of(&below.thread().entries);
                }
            }
        }
    }

    /// Returns the sub-agents that were not visited, in order. Those without a parent call are built first,
    /// since building one visits the sub-agents below it.
    pub(crate) fn unattached_agents(&self, build_agent: &dyn Fn(AgentIndex) -> AgentView) -> Vec<AgentView> {
        let agents = &self.builder.family.agents;
        let mut order: Vec<AgentIndex> = agents.indices().collect();
        order.sort_by_key(|&agent| agents[agent].spawn.is_some());
        let is_unvisited = |agent: &AgentIndex| !self.state.visited.borrow().contains(agent);
        let mut found: Vec<(AgentIndex, AgentView)> = Vec::new();
        for agent in order {
            if is_unvisited(&agent) {
                found.push((agent, build_agent(agent)));
            }
        }
        found.sort_by_key(|(agent, _)| *agent);
        found.into_iter().map(|(_, view)| view).collect()
    }

    /// Returns the active conversation, including lines outside the tree that are shown.
    pub(crate) fn thread(&self) -> Thread {
        let mut thread = self.session().thread();
        self.add_lines_outside_tree(&mut thread);
        thread
    }

    /// Adds the lines outside the tree that are shown to a conversation.
    pub(crate) fn add_lines_outside_tree(&self, thread: &mut Thread) {
        let session = self.session();
        let beside =
            session.entries().indices().filter(|&idx| !session.in_tree(idx) && is_shown(session, idx));
        thread.entries.extend(beside);
        thread.entries.sort_unstable();
    }

    /// Returns the items of a line. The first one has the cost of its model call.
    pub(crate) fn items(&self, entry_idx: EntryIndex) -> Vec<TranscriptItem> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let item = |(block_idx, content): (usize, BlockContent<'f>)| TranscriptItem {
            anchor: anchor(entry.at().line_no, block_idx),
            line_no: entry.at().line_no,
            at: session.timestamp(entry_idx),
            spent: None,
            body: self.body(entry_idx, content),
        };
        let mut items: Vec<TranscriptItem> = self.contents(entry_idx).into_iter().map(item).collect();
        if let Some(item) = items.first_mut() {
            item.spent = self.cost_on(entry).cloned();
        }
        items
    }

    /// Builds the body of an item from its content.
    fn body(&self, entry_idx: EntryIndex, content: BlockContent<'f>) -> ItemBody {
        let session = self.session();
        match content {
            BlockContent::Body(body) => body,
            BlockContent::Call(block) => ItemBody::Call(Box::new(self.call(entry_idx, block))),
            BlockContent::Compaction => compaction_body(session, &session.compaction_at(entry_idx)),
        }
    }

    /// Returns the contents of a line that become items, with their block index. Every item of a line and
    /// every count of a [`LineNotes`](crate::LineNotes) is based on it.
    pub(crate) fn contents(&self, entry_idx: EntryIndex) -> Vec<(usize, BlockContent<'f>)> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let one =
            |body: Option<ItemBody>| body.map(|body| (0, BlockContent::Body(body))).into_iter().collect();
        match entry.kind() {
            Kind::Assistant => {
                let content = entry.message().and_then(|message| message.content());
                if content.is_none() {
                    return one(Some(ItemBody::Unknown { kind: None, raw: entry.text().to_owned() }));
                }
                if entry.is_api_error() {
                    let text = content.map(|content| content.text()).unwrap_or_default();
                    // The text repeats the label.
                    let text = text.trim().trim_start_matches("API Error:").trim().to_owned();
                    return one(Some(ItemBody::Error { label: "API error".to_owned(), text }));
                }
                // Third-party writers store a reply's text as a plain string.
                if let Some(text) = content.and_then(|content| content.as_str()) {
                    return one(Some(ItemBody::Text(text.into_owned())));
                }
                let blocks = content.into_iter().flat_map(|content| content.blocks()).enumerate();
                let mut contents: Vec<(usize, BlockContent<'f>)> = blocks
                    .filter_map(|(i, block)| Some((i, self.reply_block(entry_idx, i, block)?)))
                    .collect();
                // The reason why a reply was cut off follows its last text.
                if let Some((last, BlockContent::Body(ItemBody::Text(_)))) = contents.last() {
                    let next = last + 1;
                    contents.extend(cut_off_reason(entry).map(|cut| (next, BlockContent::Body(cut))));
                }
                contents
            }
            Kind::User => one(self.user_line(entry_idx)),
            Kind::Attachment => one(attachment_body(session, entry_idx)),
            Kind::System if session.is_boundary(entry_idx) => vec![(0, BlockContent::Compaction)],
            Kind::System => one(system_body(entry)),
            Kind::Progress => one(progress(entry)),
            Kind::QueueOperation => one(queue_body(session, entry_idx)),
            Kind::PrLink => one(entry.lens().and_then(|link: PrLink<'_>| {
                let label = format!(
                    "{} #{}",
                    link.pr_repository().unwrap_or_default(),
                    link.pr_number().unwrap_or(0)
                );
                Some(ItemBody::Link {
                    label: format!("pull request {label}"),
                    url: link.pr_url()?.into_owned(),
                })
            })),
            Kind::FrameLink => one(entry.lens().and_then(|link: FrameLink<'_>| {
                let label = link.title().or_else(|| link.path()).unwrap_or_default().into_owned();
                Some(ItemBody::Link { label, url: link.frame_url()?.into_owned() })
            })),
            Kind::Unknown | Kind::Untyped | Kind::Bad => {
                let kind = entry.type_name().map(Cow::into_owned);
                one(Some(ItemBody::Unknown { kind, raw: entry.text().to_owned() }))
            }
            _ => Vec::new(),
        }
    }

    /// Returns the number of lines that a compaction removed from the conversation, given its boundary.
    pub(crate) fn dropped(&self, boundary: EntryIndex) -> usize {
        let session = self.session();
        match session.compaction(boundary).map(|compaction| compaction_body(session, &compaction)) {
            Some(ItemBody::Compaction { dropped, .. }) => dropped,
            _ => 0,
        }
    }

    /// Returns the content of a block of a reply.
    fn reply_block(
        &self,
        entry_idx: EntryIndex,
        block_idx: usize,
        block: Block<'f>,
    ) -> Option<BlockContent<'f>> {
        let session = self.session();
        let body = match &*block.kind()? {
            "text" => {
                let text = block.text()?;
                let reply = session.reply_of(entry_idx).map(|reply| &session.replies()[reply]);
                let is_filler = text == NO_RESPONSE_TEXT && reply.is_some_and(Reply::is_synthetic);
                match text.into_owned() {
                    text if is_filler => ItemBody::Event { label: "note".to_owned(), text },
                    text => ItemBody::Text(text),
                }
            }
            "thinking" => ItemBody::Thinking(block.thinking().unwrap_or_default().into_owned()),
            value::REDACTED_THINKING => ItemBody::Thinking(String::new()),
            value::TOOL_USE => {
                let call = session.call_index_on(entry_idx, &block.id()?)?;
                let known = &session.tool_calls()[call];
                let result = known.result_of_block(entry_idx, block_idx, session);
                let has_agents = known.is_last_block(entry_idx, block_idx, session);
                return Some(BlockContent::Call(CallBlock { call, block, result, has_agents }));
            }
            "fallback" => {
                let model = |json: Option<Json<'_>>| {
                    let name = json.and_then(|json| json.as_str().or_else(|| json.get("model")?.as_str()));
                    short_model(&name.unwrap_or_default()).to_owned()
                };
                let text = format!("{} → {}", model(block.from()), model(block.to()));
                ItemBody::Error { label: "model switched".to_owned(), text }
            }
            // A web search by the API itself.
            value::SERVER_TOOL_USE => {
                let asked =
                    block.input().and_then(|input| input.get("query").or_else(|| input.get("url"))?.as_str());
                let label = block.name().unwrap_or_default().replace('_', " ");
                ItemBody::Event { label, text: asked.unwrap_or_default().into_owned() }
            }
            "web_search_tool_result" => {
                let found = block.object().json().get(key::CONTENT).into_iter().flat_map(Json::items);
                let part = |page: Json<'_>, key: &str| Some(page.get(key)?.as_str()?.into_owned());
                let pages =
                    found.filter_map(|page| Some(format!("{} {}", part(page, "title")?, part(page, "url")?)));
                ItemBody::Event { label: "search results".to_owned(), text: joined(pages, "\n") }
            }
            kind => {
                let raw = block.object().json().raw();
                let start = &raw[..raw.floor_char_boundary(UNKNOWN_BLOCK_PREVIEW)];
                let more = if start.len() < raw.len() { " …" } else { "" };
                ItemBody::Event { label: kind.to_owned(), text: format!("{start}{more}") }
            }
        };
        Some(BlockContent::Body(body))
    }

    pub(crate) fn agent(&self, idx: AgentIndex) -> AgentView {
        let below = self.for_agent(idx);
        self.state.open_agents.borrow_mut().push(idx);
        let turns = below.turns_of(&below.thread());
        self.state.open_agents.borrow_mut().pop();
        let mut view = below.agent_without_turns(idx);
        turns.iter().for_each(|turn| view.spent += &turn.spent_by_agents);
        let items = || turns.iter().flat_map(|turn| &turn.items);
        view.errors = outline(&turns).iter().map(|line| line.errors).sum();
        let has_errors = |item: &&TranscriptItem| !item.error_anchors().is_empty();
        view.error_anchors = items().filter(has_errors).map(|item| item.anchor.clone()).collect();
        AgentView { turns, ..view }
    }

    /// Returns the agent with its own cost, without its turns and without the cost of its sub-agents.
    pub(crate) fn agent_without_turns(&self, idx: AgentIndex) -> AgentView {
        let agent: &Subagent = &self.builder.family.agents[idx];
        let mut spent = UsageTotals::default();
        for totals in agent.session.entries().iter().filter_map(|entry| self.cost_on(entry)) {
            spent += totals;
        }
        AgentView {
            id: agent.id.clone(),
            agent_type: agent.agent_type.clone(),
            description: agent.description.clone(),
            kind: agent.kind,
            spent,
            errors: 0,
            error_anchors: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Returns the content of a user line. Tool results are shown with their calls, and summaries with
    /// their compaction.
    fn user_line(&self, entry_idx: EntryIndex) -> Option<ItemBody> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let input = session.input(entry_idx)?;
        let Some(content) = entry.message().and_then(|message| message.content()) else {
            return Some(ItemBody::Unknown { kind: None, raw: entry.text().to_owned() });
        };
        if input == InputKind::CompactSummary {
            return None;
        }
        let files = content.blocks().filter_map(file_of);
        let mut context = Vec::new();
        let texts = content.blocks().filter(|block| block.is(value::TEXT)).filter_map(Block::text);
        let mut text = content.as_str().map(Cow::into_owned).unwrap_or_default();
        for part in texts {
            if let Some(about) = editor_context(&part) {
                context.push(about.strip_suffix(EDITOR_SUFFIX).unwrap_or(about).trim_end().to_owned());
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
        }
        if input == InputKind::ToolResult {
            // Text next to a tool result was typed by the person.
            return (!text.is_empty()).then_some(ItemBody::Input {
                input: InputKind::Prompt,
                text,
                files: Vec::new(),
                context,
            });
        }
        let files: Vec<_> = files.collect();
        if input.is_from_editor() && text.is_empty() && files.is_empty() {
            // The line contains only the editor's context; the prompt is on another line.
            return Some(ItemBody::Event { label: "editor".to_owned(), text: context.join("\n") });
        }
        if input == InputKind::HookStop {
            let text =
                text.trim().trim_start_matches("Operation stopped by hook").trim_start_matches(':').trim();
            return Some(ItemBody::Error { label: "stopped by hook".to_owned(), text: text.to_owned() });
        }
        let is_caveat = input == InputKind::Meta && is_command_caveat(&text);
        let text = strip_tags(input, text);
        if is_caveat {
            return Some(ItemBody::Event { label: "note".to_owned(), text });
        }
        // Commands without output log one of these placeholders.
        let printed = matches!(input, InputKind::CommandOutput | InputKind::BashOutput);
        if printed && matches!(text.trim(), "" | "(no content)" | "(No output)") {
            return None;
        }
        Some(ItemBody::Input { input, text, files, context })
    }
}

/// Returns the reason why a reply was cut off, if it was.
pub(crate) fn cut_off_reason(entry: &Entry) -> Option<ItemBody> {
    let why = match &*entry.message()?.stop_reason()? {
        "max_tokens" => "output limit reached",
        "model_context_window_exceeded" => "context window full",
        "refusal" => "the model refused to continue",
        _ => return None,
    };
    Some(ItemBody::Error { label: "truncated".to_owned(), text: why.to_owned() })
}

/// Returns whether a line outside the tree is shown.
fn is_shown(session: &Session, idx: EntryIndex) -> bool {
    let entry = &session.entries()[idx];
    match entry.kind() {
        Kind::PrLink | Kind::FrameLink | Kind::Unknown | Kind::Untyped | Kind::Bad => true,
        Kind::QueueOperation => queue_body(session, idx).is_some(),
        _ => false,
    }
}
