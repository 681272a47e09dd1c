//! Conversion of conversation lines into messages that the API accepts.

use std::borrow::Cow;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{AttachmentLine, ReadFile, System};
use threadline_entry::{Entry, Json, JsonKind, Kind, key, value};

use super::block::ReplayBlock;
use super::rule::{ReplayRule, VersionRules};
use super::{MessageRole, ReplayMessage, reminder};
use crate::index::EntryIndex;
use crate::session::Session;

/// The maximum number of images in a request. With more, only the newest [`IMAGES_KEPT`] are sent.
const MAX_IMAGES: usize = 100;
const IMAGES_KEPT: usize = 80;

/// A line and its blocks.
struct ReplayLine<'s> {
    entry: &'s Entry,
    blocks: Vec<ReplayBlock<'s>>,
}

impl<'s> ReplayLine<'s> {
    fn new(entry: &'s Entry, rules: VersionRules) -> Self {
        let content = entry.message().and_then(|message| message.content());
        let block = |item: Json<'s>| ReplayBlock::of(item, rules);
        let mut blocks: Vec<_> = match content.map(|content| (content.as_str(), content.json())) {
            Some((Some(text), _)) => vec![ReplayBlock::text(&text)],
            Some((None, list)) => list.items().filter(|item| item.is_object()).map(block).collect(),
            None => Vec::new(),
        };
        if entry.kind() == Kind::Assistant {
            let (advisor, fallback) =
                (rules.has(ReplayRule::DropAdvisor), rules.has(ReplayRule::DropFallback));
            blocks.retain(|block| !(advisor && block.is_advisor() || fallback && block.is("fallback")));
        }
        Self { entry, blocks }
    }

    /// Returns whether the line is a generated notification about a background task.
    fn is_task_notice(&self) -> bool {
        let origin = self.entry.get(key::ORIGIN).and_then(|origin| origin.get(key::KIND));
        self.entry.kind() == Kind::User && origin.is_some_and(|kind| kind.is_str("task-notification"))
    }

    fn is_reply(&self) -> bool {
        self.entry.kind() == Kind::Assistant
    }

    fn has_result(&self) -> bool {
        self.entry.kind() == Kind::User && self.blocks.iter().any(|block| block.is(value::TOOL_RESULT))
    }

    /// Returns the id of the reply that the line is part of. A line without a message id is a reply by
    /// itself.
    fn reply_id(&self) -> Cow<'s, str> {
        let id = self.entry.message().and_then(|message| message.id());
        id.or_else(|| self.entry.uuid()).unwrap_or_default()
    }
}

/// A message under construction.
pub(super) struct DraftMessage<'s> {
    pub(super) role: MessageRole,
    /// The reply id of an assistant message. Empty for user messages.
    id: Cow<'s, str>,
    pub(super) content: Vec<ReplayBlock<'s>>,
    /// Calls of a reply that follow all other blocks.
    calls: Vec<ReplayBlock<'s>>,
    /// Whether the blocks of a reply keep their order: the model thought again after a call.
    keeps_order: bool,
    /// Whether a user message has been added to, so that its results come first in the end.
    is_joined: bool,
    /// The index of the last block of a user message that is not a result.
    last_other: Option<usize>,
    has_result: bool,
    /// Whether any block is not a reminder.
    says_something: bool,
}

impl<'s> DraftMessage<'s> {
    fn new(role: MessageRole, id: Cow<'s, str>) -> Self {
        Self {
            role,
            id,
            content: Vec::new(),
            calls: Vec::new(),
            keeps_order: false,
            is_joined: false,
            last_other: None,
            has_result: false,
            says_something: false,
        }
    }

    fn user(content: Vec<ReplayBlock<'s>>) -> Self {
        let mut draft = Self::new(MessageRole::User, Cow::Borrowed(""));
        draft.add(content);
        draft
    }

    /// Adds blocks to a user message. Their order is settled by [`DraftMessage::finish`].
    fn add(&mut self, blocks: Vec<ReplayBlock<'s>>) {
        for block in blocks {
            let is_result = block.is(value::TOOL_RESULT);
            self.has_result |= is_result;
            self.says_something |= !block.is("reminder");
            if !is_result {
                self.last_other = Some(self.content.len());
            }
            self.content.push(block);
        }
    }

    /// Returns the block that would be last if the message ended here.
    pub(super) fn last_mut(&mut self) -> Option<&mut ReplayBlock<'s>> {
        match self.last_other.filter(|_| self.is_joined) {
            Some(at) => self.content.get_mut(at),
            None => self.content.last_mut(),
        }
    }

    /// Returns whether this message is a prompt, so that a later reply cannot continue an earlier one.
    fn is_prompt(&self) -> bool {
        self.role == MessageRole::User && !self.has_result && self.says_something
    }

    /// Adds blocks to a reply. Calls follow all other blocks, unless the model thought again after a call.
    fn add_reply(&mut self, blocks: Vec<ReplayBlock<'s>>, calls_last: bool) {
        if !calls_last || self.keeps_order {
            return self.content.extend(blocks);
        }
        let mut thought = self.content.last().is_some_and(ReplayBlock::is_thinking);
        let mut called = thought && !self.calls.is_empty();
        for block in &blocks {
            if block.is_thinking() {
                if called {
                    self.keeps_order = true;
                    break;
                }
                thought = true;
            } else if block.is(value::TOOL_USE) {
                called = thought;
            } else {
                (thought, called) = (false, false);
            }
        }
        if self.keeps_order {
            self.content.append(&mut self.calls);
            return self.content.extend(blocks);
        }
        for block in blocks {
            let list = if block.is(value::TOOL_USE) { &mut self.calls } else { &mut self.content };
            list.push(block);
        }
    }

    /// Puts the blocks into the order in which they are sent, and the reminders into their results.
    fn finish(&mut self) {
        self.content.iter_mut().for_each(ReplayBlock::fold_reminders);
        self.content.append(&mut self.calls);
        if self.is_joined {
            // Within a user message, results come before anything else.
            self.content.sort_by_key(|block| !block.is(value::TOOL_RESULT));
        }
    }
}

/// The messages so far.
#[derive(Default)]
pub(super) struct Drafts<'s> {
    list: Vec<DraftMessage<'s>>,
    /// The last message of each reply.
    by_id: HashMap<Cow<'s, str>, usize>,
    /// A message before this one is continued by no reply. The last message may change, and does not count.
    from: usize,
}

impl<'s> Drafts<'s> {
    /// Returns the last message, if it is a user's.
    pub(super) fn last_user(&mut self) -> Option<&mut DraftMessage<'s>> {
        self.list.last_mut().filter(|draft| draft.role == MessageRole::User)
    }

    /// Returns the message of a reply that can still be continued, because no prompt follows it.
    fn open_reply(&mut self, id: &str) -> Option<&mut DraftMessage<'s>> {
        if self.list.last().is_some_and(DraftMessage::is_prompt) {
            return None;
        }
        let at = self.by_id.get(id).copied().filter(|&at| at >= self.from)?;
        self.list.get_mut(at)
    }

    fn push_reply(&mut self, draft: DraftMessage<'s>) {
        if self.list.last().is_some_and(DraftMessage::is_prompt) {
            self.from = self.list.len();
        }
        self.by_id.insert(draft.id.clone(), self.list.len());
        self.list.push(draft);
    }

    fn finish(mut self) -> Vec<DraftMessage<'s>> {
        self.list.iter_mut().for_each(DraftMessage::finish);
        self.list
    }
}

/// Returns the messages of a request for the conversation on the lines of `path`.
pub(super) fn messages<'s>(
    session: &'s Session,
    path: &[EntryIndex],
    rules: VersionRules,
) -> Vec<ReplayMessage<'s>> {
    let mut lines: Vec<ReplayLine<'s>> =
        path.iter().map(|&idx| ReplayLine::new(&session.entries()[idx], rules)).collect();
    if rules.has(ReplayRule::HideDisplayOnly) {
        lines.retain(|line| !(line.entry.kind() == Kind::System && line.entry.is_display_only()));
    }
    let interrupted = interrupted_calls(&lines, rules);
    drop_unanswered(&mut lines, &interrupted);
    drop_empty_lines(&mut lines, |block| block.is_thinking(), |block| !block.is_thinking());
    drop_empty_lines(&mut lines, |block| block.is_blank(), |block| !block.is_blank() && !block.is_thinking());
    let model = last_model(session);
    let recorded = recorded_tools(&lines);
    let mut drafts = merge_lines(lift_attachments(lines), model.as_deref(), rules);
    reminder::drop_reminders(&mut drafts);
    let mut drafts = pair_calls(drafts, &interrupted, rules);
    drop_empty_replies(&mut drafts);
    drop_old_images(&mut drafts);
    let mut drafts = merge_adjacent(drafts);
    if rules.has(ReplayRule::ToolLoadedText) {
        add_tool_loaded(&mut drafts, &recorded, model.as_deref());
    }
    if rules.has(ReplayRule::StripLoadedExitPlanMode) && recorded.contains(EXIT_PLAN_MODE) {
        strip_loaded_plan(&mut drafts);
    }
    drafts.into_iter().map(|draft| ReplayMessage { role: draft.role, content: draft.content }).collect()
}

/// Returns the last reply that names its model, and the model.
pub(super) fn last_model_line(session: &Session) -> Option<(EntryIndex, Cow<'_, str>)> {
    let lines = session.entries().enumerated().rev();
    let mut replies = lines.filter(|(idx, entry)| {
        entry.kind() == Kind::Assistant && !entry.follows_on_line() && !session.is_sidechain(*idx)
    });
    replies.find_map(|(idx, entry)| {
        let model = entry.message()?.model().filter(|model| !model.starts_with('<'))?;
        Some((idx, model))
    })
}

/// Returns the model that answered last, or its successor if it was retired. A resume continues with it.
fn last_model(session: &Session) -> Option<Cow<'_, str>> {
    let (_, model) = last_model_line(session)?;
    let retired = model.strip_prefix("claude-opus-4").is_some_and(|rest| {
        let rest = rest.strip_prefix("-0").or_else(|| rest.strip_prefix("-1")).unwrap_or(rest);
        rest.is_empty() || (rest.len() == 9 && rest[1..].bytes().all(|byte| byte.is_ascii_digit()))
    });
    Some(if retired { Cow::Borrowed("claude-opus-4-8") } else { model })
}

/// Returns the ids of the calls that have a result on a user line.
fn answered_calls(lines: &[ReplayLine<'_>]) -> HashSet<Box<str>> {
    let users = lines.iter().filter(|line| line.entry.kind() == Kind::User);
    let results = users.flat_map(|line| &line.blocks).filter(|block| block.is(value::TOOL_RESULT));
    results.filter_map(|block| Some(block.field(key::TOOL_USE_ID)?.into())).collect()
}

/// Returns the unanswered calls of the last reply, if the version keeps them.
///
/// There are none if anything other than results follows that reply.
fn interrupted_calls(lines: &[ReplayLine<'_>], rules: VersionRules) -> HashSet<String> {
    let mut spoken = lines
        .iter()
        .rev()
        .filter(|line| line.is_reply() || line.entry.kind() == Kind::User && !line.has_result());
    let Some(last) =
        spoken.next().filter(|line| line.is_reply() && rules.has(ReplayRule::KeepInterruptedCalls))
    else {
        return HashSet::default();
    };
    let id = last.reply_id();
    let answered = answered_calls(lines);
    let calls =
        lines.iter().filter(|line| line.is_reply() && line.reply_id() == id).flat_map(|line| &line.blocks);
    let calls = calls.filter(|block| block.is(value::TOOL_USE)).filter_map(|block| block.field(key::ID));
    calls.filter(|id| !answered.contains(&**id)).collect()
}

/// Removes reply lines with calls of which none was answered, including their text.
fn drop_unanswered(lines: &mut Vec<ReplayLine<'_>>, interrupted: &HashSet<String>) {
    let answered = answered_calls(lines);
    lines.retain(|line| {
        let mut calls = line.blocks.iter().filter(|block| block.is(value::TOOL_USE)).peekable();
        !line.is_reply()
            || calls.peek().is_none()
            || calls.any(|call| {
                call.field(key::ID).is_some_and(|id| answered.contains(&*id) || interrupted.contains(&id))
            })
    });
}

/// Removes reply lines that consist only of `nothing` blocks, unless the reply has a `something` block
/// elsewhere.
fn drop_empty_lines(
    lines: &mut Vec<ReplayLine<'_>>,
    nothing: fn(&ReplayBlock<'_>) -> bool,
    something: fn(&ReplayBlock<'_>) -> bool,
) {
    let replies = lines.iter().filter(|line| line.is_reply());
    let spoken = replies.filter(|line| line.blocks.iter().any(something));
    let spoken: HashSet<String> = spoken.map(|line| line.reply_id().into_owned()).collect();
    lines.retain(|line| {
        let silent = line.is_reply() && !line.blocks.is_empty() && line.blocks.iter().all(nothing);
        !silent || spoken.contains(&*line.reply_id())
    });
}

/// Moves attachments up, directly after the nearest preceding reply or result.
fn lift_attachments(lines: Vec<ReplayLine<'_>>) -> Vec<ReplayLine<'_>> {
    let mut lifted = Vec::with_capacity(lines.len());
    let mut waiting = Vec::new();
    for line in lines.into_iter().rev() {
        if line.entry.kind() == Kind::Attachment {
            waiting.push(line);
            continue;
        }
        if line.is_reply() || line.has_result() {
            lifted.append(&mut waiting);
        }
        lifted.push(line);
    }
    lifted.append(&mut waiting);
    lifted.reverse();
    lifted
}

/// Merges the lines of a reply into one message, and consecutive user lines too.
fn merge_lines<'s>(
    lines: Vec<ReplayLine<'s>>,
    model: Option<&str>,
    rules: VersionRules,
) -> Vec<DraftMessage<'s>> {
    let mut drafts = Drafts::default();
    for line in lines {
        match line.entry.kind() {
            Kind::User if line.is_task_notice() && rules.has(ReplayRule::TaskNoticeReminders) => {
                push_user(&mut drafts, vec![ReplayBlock::reminder()]);
            }
            Kind::User => {
                let blocks = line.blocks.into_iter().map(reduce_result).collect();
                push_user(&mut drafts, blocks);
            }
            Kind::System if rules.has(ReplayRule::LocalCommands) => {
                let system: Option<System<'_>> = line.entry.lens();
                if system.and_then(System::subtype).as_deref() == Some(value::LOCAL_COMMAND) {
                    let text = system.and_then(System::content).unwrap_or_default();
                    push_user(&mut drafts, vec![ReplayBlock::text(&text)]);
                }
            }
            Kind::Attachment => {
                let images = attached_images(line.entry, rules);
                if images.is_empty() {
                    reminder::push_attachment(&mut drafts, line.entry, model, rules);
                } else {
                    push_user(&mut drafts, images);
                }
            }
            Kind::Assistant => push_reply(&mut drafts, line, model, rules),
            _ => {}
        }
    }
    drafts.finish()
}

/// Tools that the first request does not contain, but that every session of 2.1.325 can look up.
const DEFERRED_TOOLS: &[&str] = &[
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterWorktree",
    "ExitWorktree",
    "Monitor",
    "NotebookEdit",
    "SendMessage",
    "TaskStop",
    "WebFetch",
    "WebSearch",
];

/// Further deferred tools. Models that accept system messages do not have them.
const DEFERRED_TASK_TOOLS: &[&str] = &["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

/// Inserts a text after results that refer to tools, stating that these were loaded.
///
/// Results that refer only to tools that the session no longer has get no such text.
fn add_tool_loaded(drafts: &mut [DraftMessage<'_>], recorded: &HashSet<String>, model: Option<&str>) {
    let has = |tool: &str| {
        DEFERRED_TOOLS.contains(&tool)
            || DEFERRED_TASK_TOOLS.contains(&tool) && !model.is_some_and(reminder::takes_system_messages)
            || recorded.contains(tool)
    };
    for draft in drafts {
        if draft.content.iter().any(|block| refers_to(block, has)) {
            let at =
                draft.content.iter().rposition(|block| block.is(value::TOOL_RESULT)).map_or(0, |at| at + 1);
            draft.content.insert(at, ReplayBlock::text("Tool loaded."));
        }
    }
}

/// Returns whether a block is a result that refers to a tool.
fn refers_to(block: &ReplayBlock<'_>, is_wanted: impl Fn(&str) -> bool) -> bool {
    let content = block.json().get(key::CONTENT);
    let mut names =
        content.into_iter().flat_map(Json::items).filter_map(|item| item.get(key::TOOL_NAME)?.as_str());
    block.is(value::TOOL_RESULT) && names.any(|name| is_wanted(&name))
}

/// The tool that ends plan mode.
const EXIT_PLAN_MODE: &str = "ExitPlanMode";

/// Removes the plan from calls of `ExitPlanMode`, if a result refers to that tool.
fn strip_loaded_plan(drafts: &mut [DraftMessage<'_>]) {
    let mut blocks = drafts.iter().flat_map(|draft| &draft.content);
    if !blocks.any(|block| refers_to(block, |tool| tool == EXIT_PLAN_MODE)) {
        return;
    }
    for block in drafts.iter_mut().flat_map(|draft| &mut draft.content) {
        let is_call = block.is(value::TOOL_USE) && block.field(key::NAME).as_deref() == Some(EXIT_PLAN_MODE);
        if let Some(stripped) = is_call.then(|| block.without_input(&["plan"])).flatten() {
            *block = stripped;
        }
    }
}

/// Returns the tools with schemas in `deferred_tools_record` attachments. They are available after a
/// resume.
fn recorded_tools(lines: &[ReplayLine<'_>]) -> HashSet<String> {
    let records = lines.iter().filter_map(|line| line.entry.get(key::ATTACHMENT));
    let records =
        records.filter(|json| json.get(key::TYPE).is_some_and(|kind| kind.is_str("deferred_tools_record")));
    let entries = records.filter_map(|json| json.get("entries")).flat_map(Json::items);
    let deferred =
        entries.filter(|entry| entry.get(key::DEFER_LOADING).and_then(Json::as_bool) == Some(true));
    deferred.filter_map(|entry| entry.get(key::NAME)?.as_str().map(Cow::into_owned)).collect()
}

/// Reduces the content of a result to the items that are sent.
///
/// An error result keeps only its texts. Tool references are removed if anything else remains.
fn reduce_result(block: ReplayBlock<'_>) -> ReplayBlock<'_> {
    if !block.is(value::TOOL_RESULT) {
        return block;
    }
    let json = block.json();
    let Some(content) = json.get(key::CONTENT).filter(|content| content.kind() == JsonKind::Array) else {
        return block;
    };
    let is = |item: &Json<'_>, kind: &str| item.get(key::TYPE).is_some_and(|json| json.is_str(kind));
    let references = content.items().filter(|item| is(item, "tool_reference")).count();
    if references > 0 {
        let rest = || content.items().filter(|item| item.is_object() && !is(item, "tool_reference"));
        return if rest().next().is_some() { block.with_content(rest()) } else { block };
    }
    let failed = json.get(key::IS_ERROR).and_then(Json::as_bool).unwrap_or(false);
    if failed && content.items().any(|item| !is(&item, value::TEXT)) {
        return block.with_content(content.items().filter(|item| is(item, "text")));
    }
    block
}

/// Returns the images of a queued prompt, or of an attached image file.
fn attached_images(entry: &Entry, rules: VersionRules) -> Vec<ReplayBlock<'_>> {
    let Some(body) = entry.lens::<AttachmentLine<'_>>().and_then(AttachmentLine::attachment) else {
        return Vec::new();
    };
    match body.kind().as_deref() {
        Some(value::QUEUED_COMMAND) => {
            let items = body.prompt().into_iter().flat_map(Json::items);
            items
                .filter(|item| item.get(key::TYPE).is_some_and(|kind| kind.is_str(value::IMAGE)))
                .map(|item| ReplayBlock::of(item, rules))
                .collect()
        }
        Some("file") => {
            let content = body
                .content()
                .filter(|content| content.get(key::TYPE).is_some_and(|kind| kind.is_str(value::IMAGE)));
            let file = content.and_then(|content| content.get(key::FILE));
            let image = file.and_then(<ReadFile<'_> as threadline_entry::lens::FromJson<'_>>::from_json);
            let image = image.and_then(|image| Some(ReplayBlock::image(&image.kind()?, &image.base64()?)));
            image.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn push_user<'s>(drafts: &mut Drafts<'s>, content: Vec<ReplayBlock<'s>>) {
    let Some(draft) = drafts.last_user() else {
        drafts.list.push(DraftMessage::user(content));
        return;
    };
    // Two texts in a row are set apart by a newline.
    if let (Some(last), Some(next)) = (draft.last_mut(), content.first())
        && let (true, true, Some(text)) = (last.is(value::TEXT), next.is(value::TEXT), last.field(key::TEXT))
    {
        *last = ReplayBlock::text(&(text + "\n"));
    }
    draft.add(content);
    draft.is_joined = true;
}

fn push_reply<'s>(drafts: &mut Drafts<'s>, line: ReplayLine<'s>, model: Option<&str>, rules: VersionRules) {
    let own = line.entry.message().and_then(|message| message.model());
    if own.as_deref() == Some(value::SYNTHETIC_MODEL) && line.entry.is_api_error() {
        return;
    }
    // Thinking is readable only for the model that produced it.
    let foreign = own.as_deref() != model && rules.has(ReplayRule::DropForeignThinking);
    let id = line.reply_id();
    let mut content = line.blocks;
    content.retain(|block| !(foreign && block.is_thinking()));
    let calls_last = rules.has(ReplayRule::CallsLast);
    // The reply may have begun further up, before results of its first calls.
    if let Some(draft) = drafts.open_reply(&id) {
        if !content.iter().all(ReplayBlock::is_blank) {
            draft.add_reply(content, calls_last);
        }
        return;
    }
    let mut draft = DraftMessage::new(MessageRole::Assistant, id);
    draft.add_reply(content, calls_last);
    drafts.push_reply(draft);
}

/// Removes empty replies, and replies that consist only of thinking unless the same reply has other
/// content.
fn drop_empty_replies(drafts: &mut Vec<DraftMessage<'_>>) {
    let replies = drafts.iter().filter(|draft| draft.role == MessageRole::Assistant);
    let spoken = replies.filter(|draft| !draft.content.iter().all(ReplayBlock::is_thinking));
    let spoken: HashSet<String> = spoken.map(|draft| draft.id.clone().into_owned()).collect();
    drafts.retain(|draft| {
        let silent =
            draft.role == MessageRole::Assistant && draft.content.iter().all(ReplayBlock::is_thinking);
        !silent || !draft.content.is_empty() && spoken.contains(&*draft.id)
    });
}

/// Merges consecutive messages of the same role.
fn merge_adjacent(drafts: Vec<DraftMessage<'_>>) -> Vec<DraftMessage<'_>> {
    let mut merged: Vec<DraftMessage<'_>> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        match merged.last_mut().filter(|last| last.role == draft.role) {
            Some(last) => last.content.extend(draft.content),
            None => merged.push(draft),
        }
    }
    merged
}

/// Pairs calls and results: each call occurs once and has one result in the next message.
fn pair_calls<'s>(
    drafts: Vec<DraftMessage<'s>>,
    interrupted: &HashSet<String>,
    rules: VersionRules,
) -> Vec<DraftMessage<'s>> {
    let mut paired: Vec<DraftMessage<'s>> = Vec::with_capacity(drafts.len());
    let mut seen: HashSet<Rc<str>> = HashSet::default();
    let mut open: Vec<Rc<str>> = Vec::new();
    for mut draft in drafts {
        match draft.role {
            MessageRole::User => fill_results(&mut draft, std::mem::take(&mut open), interrupted, rules),
            MessageRole::Assistant => {
                if !open.is_empty() {
                    let mut missing = DraftMessage::user(Vec::new());
                    fill_results(&mut missing, std::mem::take(&mut open), interrupted, rules);
                    paired.push(missing);
                }
                open = drop_repeated_calls(&mut draft.content, &mut seen);
            }
        }
        paired.push(draft);
    }
    if !open.is_empty() {
        let mut missing = DraftMessage::user(Vec::new());
        fill_results(&mut missing, open, interrupted, rules);
        paired.push(missing);
    }
    paired.retain(|draft| draft.role == MessageRole::Assistant || !draft.content.is_empty());
    paired
}

/// Removes repeated calls and returns the ids of the remaining ones, which need results.
fn drop_repeated_calls(content: &mut Vec<ReplayBlock<'_>>, seen: &mut HashSet<Rc<str>>) -> Vec<Rc<str>> {
    let had_blocks = !content.is_empty();
    let answered: HashSet<String> =
        content.iter().filter_map(|block| block.field(key::TOOL_USE_ID)).collect();
    let mut open = Vec::new();
    content.retain(|block| match block.field(key::ID) {
        Some(id) if block.is(value::TOOL_USE) => {
            let id: Rc<str> = id.into();
            let is_new = seen.insert(id.clone());
            open.extend(is_new.then_some(id));
            is_new
        }
        Some(id) if block.is(value::SERVER_TOOL_USE) || block.is(value::MCP_TOOL_USE) => {
            answered.contains(&id)
        }
        _ => true,
    });
    if had_blocks && content.is_empty() {
        content.push(ReplayBlock::text("[Tool use interrupted]"));
    }
    open
}

/// Keeps one result for each of the `open` calls and adds error results for those without one.
///
/// Other results are removed if the version does that.
fn fill_results(
    draft: &mut DraftMessage<'_>,
    mut open: Vec<Rc<str>>,
    interrupted: &HashSet<String>,
    rules: VersionRules,
) {
    // No id is open twice: a call that was made before is left out.
    let mut unanswered: HashSet<Rc<str>> = open.iter().cloned().collect();
    draft.content.retain(|block| {
        if !block.is(value::TOOL_RESULT) {
            return true;
        }
        let id = block.field(key::TOOL_USE_ID).unwrap_or_default();
        unanswered.remove(&*id) || !rules.has(ReplayRule::DropOrphanResults)
    });
    open.retain(|call| unanswered.contains(call));
    let (cut, missing): (Vec<&Rc<str>>, Vec<&Rc<str>>) =
        open.iter().partition(|call| interrupted.contains(&***call));
    draft.content.splice(0..0, missing.into_iter().map(|call| ReplayBlock::missing_result(call)));
    let end = draft.content.iter().rposition(|block| block.is(value::TOOL_RESULT)).map_or(0, |at| at + 1);
    draft.content.splice(end..end, cut.into_iter().map(|call| ReplayBlock::interrupted_result(call)));
}

/// Removes the oldest images if there are too many.
fn drop_old_images(drafts: &mut [DraftMessage<'_>]) {
    let is_image = |json: Json<'_>| {
        json.get(key::TYPE).is_some_and(|kind| kind.is_str(value::IMAGE) || kind.is_str(value::DOCUMENT))
    };
    let nested = |block: &ReplayBlock<'_>| {
        let content = block.json().get(key::CONTENT);
        content.map_or(0, |content| content.items().filter(|item| is_image(*item)).count())
    };
    let count = |block: &ReplayBlock<'_>| usize::from(is_image(block.json())) + nested(block);
    let total: usize = drafts.iter().flat_map(|draft| &draft.content).map(count).sum();
    if total <= MAX_IMAGES {
        return;
    }
    let mut surplus = total - IMAGES_KEPT;
    for draft in drafts {
        draft.content.retain_mut(|block| {
            if surplus == 0 {
                return true;
            }
            if is_image(block.json()) {
                surplus -= 1;
                return false;
            }
            if nested(block) > 0 {
                let keep: Vec<String> = block
                    .json()
                    .get(key::CONTENT)
                    .into_iter()
                    .flat_map(Json::items)
                    .filter(|item| {
                        let dropped = surplus > 0 && is_image(*item);
                        surplus -= usize::from(dropped);
                        !dropped
                    })
                    .map(|item| item.raw().to_owned())
                    .collect();
                *block = block.with_content(keep.iter().filter_map(|item| Json::parse(item)));
            }
            true
        });
    }
}
