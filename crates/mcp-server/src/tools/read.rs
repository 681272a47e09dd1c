//! `read_session`: the outline of a session, some of its turns, one item, or its sub-agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadline_app::{LiveSession, SessionFile, SessionSelector, TurnSpan};
use threadline_session::TurnIndex;
use threadline_view::humanize::plural;
use threadline_view::wire::moment;
use threadline_view::{
    AnchorParts, DetailLevel, OutlineLine, TranscriptFilter, TranscriptItem, TranscriptLayout, TurnRange,
    TurnView, agent_anchor, anchor_line,
};

use super::read_item::{ItemText, ReadItem};
use crate::answer::AnswerEnd;
use crate::budget::{AnswerPage, PagePlace, shorten};
use crate::call::PageRequestState;
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::{HistoryTool, ToolAnswer};

pub(crate) struct ReadSession;

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArguments {
    /// The id, a unique beginning of it, the title, `last`, or a source such as ID#m42.
    pub(crate) session: String,
    /// Default: turns if turns is given, item if item is given, otherwise outline.
    #[serde(default)]
    pub(crate) part: Option<SessionPart>,
    /// Which turns: 3, 2..4, -1 (the last one), -3.. (the last three).
    #[serde(default)]
    pub(crate) turns: Option<String>,
    /// One item as a whole, such as m42 or a-AGENT-m42.
    #[serde(default)]
    pub(crate) item: Option<String>,
    /// The id of a sub-agent, to read its conversation.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// How much of the turns. Default: tools.
    #[serde(default)]
    pub(crate) detail: Option<ReadDetail>,
    /// Approximate size of the answer, from 400 to 50000. Default: 6000.
    #[serde(default)]
    pub(crate) max_tokens: Option<u64>,
    /// The next_cursor of the previous page.
    #[serde(default)]
    #[expect(dead_code, reason = "read before the arguments are parsed")]
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionPart {
    /// One line per turn.
    Outline,
    /// The items of some turns.
    Turns,
    /// One item as a whole.
    Item,
    /// The sub-agents.
    Agents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReadDetail {
    /// Only prompts.
    Prompts,
    /// Prompts and replies.
    Chat,
    /// Also tool calls, in short.
    Tools,
    /// Also thinking, input and output of tools, and events.
    Full,
}

impl From<ReadDetail> for DetailLevel {
    fn from(detail: ReadDetail) -> Self {
        match detail {
            ReadDetail::Prompts => Self::Prompts,
            ReadDetail::Chat => Self::Chat,
            ReadDetail::Tools => Self::Tools,
            ReadDetail::Full => Self::Full,
        }
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ReadAnswer {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    part: SessionPart,
    /// The number of turns of the conversation.
    turns: u64,
    /// The number of tool calls, with those of sub-agents.
    tool_calls: u64,
    sub_agents: u64,
    errors: u64,
    cost_usd: f64,
    items: Vec<ReadItem>,
    #[serde(flatten)]
    end: AnswerEnd,
}

/// The maximum size of an item in bytes, where several are read.
const MAX_ITEM: usize = 2_500;

/// The maximum size of the summary beside a whole item, and of the type of a sub-agent.
const MAX_WHOLE_ITEM_SUMMARY: usize = 100;

impl HistoryTool for ReadSession {
    const NAME: &'static str = "read_session";
    const TITLE: &'static str = "Read a session";
    const DESCRIPTION: &'static str = "Reads an earlier Claude Code session. Without turns and item: its \
        outline, one line per turn. With turns: prompts, replies and tool calls of these turns. With item: \
        one item as a whole, such as the complete output of a command.";
    type Arguments = ReadArguments;
    type Answer = ReadAnswer;

    fn run(
        history: &History,
        arguments: ReadArguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<ReadAnswer>, HistoryError> {
        read_session(history, &arguments, request)
    }
}

/// Reads a part of a session of the scope.
pub(crate) fn read_session(
    history: &History,
    arguments: &ReadArguments,
    request: &PageRequestState,
) -> Result<ToolAnswer<ReadAnswer>, HistoryError> {
    if arguments.turns.is_some() && arguments.item.is_some() {
        return Err(HistoryError::new("both turns and item are given").hint("pass one of them"));
    }
    let (file, named_item) = history.find(&arguments.session)?;
    let item = arguments.item.as_deref().map(|item| item.trim_start_matches('#').to_owned()).or(named_item);
    let mut selector = SessionSelector { agent: arguments.agent.clone(), leaf: None };
    let item = item.map(|item| match AnchorParts::parse(&item) {
        Some(AnchorParts { agent: Some(agent), item, .. }) => {
            selector.agent = Some(agent.to_owned());
            item.to_owned()
        }
        _ => item,
    });
    let part = arguments.part.unwrap_or(match (&arguments.turns, &item) {
        (Some(_), _) => SessionPart::Turns,
        (None, Some(_)) => SessionPart::Item,
        (None, None) => SessionPart::Outline,
    });
    let reader = SessionReader { history, request, file: &file, selector, max_tokens: arguments.max_tokens };
    let read = |live: &mut LiveSession| match part {
        SessionPart::Outline => reader.outline(live),
        SessionPart::Agents => reader.agents(live),
        SessionPart::Turns => {
            let range = arguments.turns.as_deref().unwrap_or("1..").trim();
            let range: TurnRange = range.parse().map_err(|error| {
                HistoryError::new(format!("invalid turns: {error}")).hint("use 3, 2..4, -1 or -3..")
            })?;
            reader.turns(live, range, arguments.detail.unwrap_or(ReadDetail::Tools).into())
        }
        SessionPart::Item => {
            let missing = || HistoryError::new("item is missing").hint("pass an anchor such as m42");
            reader.item(live, &item.ok_or_else(missing)?)
        }
    };
    match part {
        SessionPart::Outline => history.sessions.with_file(&history.app, &file, read),
        _ => history.sessions.with(&history.app, &file.id, read),
    }
}

/// Reads parts of one session.
struct SessionReader<'a> {
    history: &'a History,
    request: &'a PageRequestState,
    file: &'a SessionFile,
    selector: SessionSelector,
    max_tokens: Option<u64>,
}

impl SessionReader<'_> {
    fn outline(&self, live: &mut LiveSession) -> Result<ToolAnswer<ReadAnswer>, HistoryError> {
        let layout = live.cached_layout(&self.selector)?;
        let mut page = AnswerPage::new(self.max_tokens);
        let turns = layout.turns.as_slice();
        for (index, turn) in turns.iter().enumerate().skip(self.first_item()) {
            let make = |limit: usize| self.outline_item(&turn.turn, &turn.line, limit);
            if !page.push_shortened(index as u64, make) {
                break;
            }
        }
        Ok(self.finish(live, &layout, SessionPart::Outline, page))
    }

    fn outline_item(&self, turn: &TurnView, line: &OutlineLine, limit: usize) -> (ReadItem, String) {
        let mut facts = Vec::new();
        let counts = [(line.calls, "call"), (line.all_edits(), "edit"), (line.errors, "error")];
        let by_shell = |name: &str| match line.shell_edits {
            count if count > 0 && name == "edit" => format!(" ({count} by shell)"),
            _ => String::new(),
        };
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        facts.extend(counts.map(|(count, name)| plural(*count as u64, name) + &by_shell(name)));
        if line.compactions > 0 {
            facts.push("compacted".to_owned());
        }
        if line.spent.calls > 0 {
            facts.push(line.spent.short_cost());
        }
        let title = shorten(&one_line(&line.title), limit.min(300)).0;
        let at = turn.span.map(|(start, _)| start);
        let facts = facts.join(", ");
        let text = format!(
            "{}. {} · {} · {title}{}\n",
            line.number,
            self.anchor(&line.anchor),
            self.history.shown_time(at),
            if facts.is_empty() { String::new() } else { format!(" ({facts})") },
        );
        let item = ReadItem {
            source: self.source(&line.anchor),
            turn: Some(line.number as u64),
            timestamp: at.map(moment),
            kind: "turn".to_owned(),
            text: title,
            summary: Some(facts).filter(|facts| !facts.is_empty()),
            ..ReadItem::default()
        };
        (item, text)
    }

    fn turns(
        &self,
        live: &mut LiveSession,
        range: TurnRange,
        level: DetailLevel,
    ) -> Result<ToolAnswer<ReadAnswer>, HistoryError> {
        let layout = live.cached_layout(&self.selector)?;
        let count = layout.turns.len();
        let is_wanted = |turn: TurnIndex| range.contains(layout.turns[turn].turn.number, count);
        let wanted: Vec<TurnIndex> = layout.turns.indices().filter(|turn| is_wanted(*turn)).collect();
        if wanted.is_empty() {
            return Err(HistoryError::new(format!(
                "no such turn: the conversation has {}",
                plural(count as u64, "turn")
            )));
        }
        let mut page = AnswerPage::new(self.max_tokens);
        // The first number of a place is that of the turn among the wanted ones, and that of the item in it.
        let (first_turn, first_item) = split_place(self.request.start.item);
        'turns: for (n, turn) in wanted.iter().enumerate().skip(first_turn) {
            let items = self.items(live, &layout, *turn, level)?;
            let number = layout.turns[*turn].turn.number;
            let skipped = if n == first_turn { first_item } else { 0 };
            for (i, item) in items.iter().enumerate().skip(skipped) {
                let space = MAX_ITEM.min(page.left().max(400));
                let make = |limit: usize| {
                    let mut text = ItemText::of(item, level);
                    // The text of a call contains the whole command.
                    text.shorten_summary(limit.min(500));
                    self.read_item(item, &text, number, space.min(limit))
                };
                if !page.push_shortened(joined_place(n, i), make) {
                    break 'turns;
                }
            }
        }
        Ok(self.finish(live, &layout, SessionPart::Turns, page))
    }

    /// Reads the items of a turn, without the work of its sub-agents.
    fn items(
        &self,
        live: &LiveSession,
        layout: &TranscriptLayout,
        turn: TurnIndex,
        level: DetailLevel,
    ) -> Result<Vec<TranscriptItem>, HistoryError> {
        let span = TurnSpan { turn, entries: 0..layout.turns[turn].entries.len() };
        let mut items = live.read(&self.selector, layout, &[span])?.items(layout, 0);
        TranscriptFilter::up_to_level(level).keep_items(&mut items);
        Ok(items)
    }

    fn read_item(
        &self,
        item: &TranscriptItem,
        text: &ItemText,
        turn: usize,
        space: usize,
    ) -> (ReadItem, String) {
        let (shown, is_cut) = shorten(&text.body, space);
        let mut read = self.whole_item(item, text, turn, &shown);
        read.cut = is_cut;
        let mut form = text.form(&self.anchor(&item.anchor), &self.history.shown_time(item.at), &shown);
        if is_cut {
            form.push_str(&format!("  (cut; whole: item {})\n", self.anchor(&item.anchor)));
        }
        (read, form)
    }

    fn whole_item(&self, item: &TranscriptItem, text: &ItemText, turn: usize, shown: &str) -> ReadItem {
        ReadItem {
            source: self.source(&item.anchor),
            turn: Some(turn as u64),
            timestamp: item.at.map(moment),
            kind: text.kind.to_owned(),
            tool: text.tool.clone(),
            summary: text.summary.clone(),
            agents: text.agents.clone(),
            text: shown.to_owned(),
            cut: false,
        }
    }

    fn item(mut self, live: &mut LiveSession, anchor: &str) -> Result<ToolAnswer<ReadAnswer>, HistoryError> {
        let line =
            anchor_line(anchor).ok_or_else(|| HistoryError::new(format!("`{anchor}` is not an anchor")))?;
        let mut layout = live.cached_layout(&self.selector)?;
        let mut found = self.find_item(live, &layout, anchor, line)?;
        if found.is_none() {
            // It may be on an abandoned branch.
            self.selector.leaf = Some(line);
            layout = live.cached_layout(&self.selector)?;
            found = self.find_item(live, &layout, anchor, line)?;
        }
        let Some((turn, item)) = found else {
            return Err(HistoryError::new(format!("the session has no item {anchor}")));
        };
        let mut text = ItemText::of(&item, DetailLevel::Full);
        text.shorten_summary(MAX_WHOLE_ITEM_SUMMARY);
        let mut page = AnswerPage::new(self.max_tokens);
        let place = PagePlace { item: 0, byte: self.request.start.byte };
        page.push_long(place, &text.body, |shown, part| {
            let mut read = self.whole_item(&item, &text, turn, shown);
            read.cut = part.is_cut();
            let form = text.form(&self.anchor(&item.anchor), &self.history.shown_time(item.at), shown);
            (read, form)
        });
        Ok(self.finish(live, &layout, SessionPart::Item, page))
    }

    /// Finds an item of a conversation, and the number of its turn.
    fn find_item(
        &self,
        live: &LiveSession,
        layout: &TranscriptLayout,
        anchor: &str,
        line: u64,
    ) -> Result<Option<(usize, TranscriptItem)>, HistoryError> {
        let (_, session) = live.log(&self.selector)?;
        for turn in layout.turns.indices() {
            let turn_layout = &layout.turns[turn];
            if !turn_layout.entries.iter().any(|idx| session.entries()[*idx].at().line_no == line) {
                continue;
            }
            let items = self.items(live, layout, turn, DetailLevel::Full)?;
            // A result is part of the item of its call, and a search finds it on a line of its own.
            let exact = items.iter().position(|item| item.anchor == anchor);
            let at = exact.or_else(|| items.iter().rposition(|item| item.line_no <= line));
            if let Some(at) = at {
                let number = turn_layout.turn.number;
                return Ok(items.into_iter().nth(at).map(|item| (number, item)));
            }
        }
        Ok(None)
    }

    fn agents(&self, live: &mut LiveSession) -> Result<ToolAnswer<ReadAnswer>, HistoryError> {
        let layout = live.cached_layout(&self.selector)?;
        let mut page = AnswerPage::new(self.max_tokens);
        for (index, agent) in live.family().agents.iter().enumerate().skip(self.first_item()) {
            let name = agent.description.as_deref().or(agent.agent_type.as_deref()).unwrap_or("sub-agent");
            let name = live.masked(&shorten(&one_line(name), 200).0).into_owned();
            let turns = agent.session.turns();
            let first =
                turns.iter().next().and_then(|turn| turn.span(&agent.session)).map(|(start, _)| start);
            let summary = agent.agent_type.as_ref().map(|kind| shorten(kind, MAX_WHOLE_ITEM_SUMMARY).0);
            let text = format!(
                "- {} · {} · {name}{}\n",
                one_line(&agent.id),
                self.history.shown_time(first),
                summary.as_ref().map_or_else(String::new, |kind| format!(" ({})", one_line(kind))),
            );
            let item = ReadItem {
                source: format!("{}#{}", self.file.id, agent_anchor(&agent.id, "m1")),
                timestamp: first.map(moment),
                kind: "agent".to_owned(),
                agents: vec![agent.id.clone()],
                text: name,
                summary,
                ..ReadItem::default()
            };
            if !page.push(index as u64, item, &text) {
                break;
            }
        }
        Ok(self.finish(live, &layout, SessionPart::Agents, page))
    }

    fn first_item(&self) -> usize {
        usize::try_from(self.request.start.item).unwrap_or(usize::MAX)
    }

    /// Returns the anchor of an item in the whole session.
    fn anchor(&self, anchor: &str) -> String {
        match &self.selector.agent {
            Some(agent) => agent_anchor(agent, anchor),
            None => anchor.to_owned(),
        }
    }

    fn source(&self, anchor: &str) -> String {
        format!("{}#{}", self.file.id, self.anchor(anchor))
    }

    fn finish(
        &self,
        live: &LiveSession,
        layout: &TranscriptLayout,
        part: SessionPart,
        page: AnswerPage<ReadItem>,
    ) -> ToolAnswer<ReadAnswer> {
        let notes = live.unread().iter().map(ToString::to_string).collect();
        let header = &layout.header;
        let (items, mut text, next) = page.finish();
        let end = AnswerEnd::new(self.request, next, notes, &mut text);
        let project = live.cwd().map(|cwd| threadline_entry::project_directory(&cwd).to_owned());
        let data = ReadAnswer {
            session: self.file.id.to_string(),
            title: header.title.as_deref().map(|title| shorten(&one_line(title), 200).0),
            project,
            git_branch: header.git_branch.clone(),
            agent: self.selector.agent.clone(),
            part,
            turns: layout.turns.len() as u64,
            tool_calls: header.n_calls as u64,
            sub_agents: header.n_agents as u64,
            errors: header.errors as u64,
            cost_usd: header.spent.cost.to_f64(),
            items,
            end,
        };
        let facts = [
            Some(data.session.clone()),
            data.project.clone(),
            data.git_branch.clone(),
            data.agent.as_ref().map(|agent| format!("sub-agent {agent}")),
            Some(plural(data.turns, "turn")),
            (data.tool_calls > 0).then(|| plural(data.tool_calls, "tool call")),
            (data.sub_agents > 0).then(|| plural(data.sub_agents, "sub-agent")),
            (data.errors > 0).then(|| plural(data.errors, "error")),
            (header.spent.calls > 0).then(|| header.spent.short_cost()),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().map(|fact| one_line(&fact)).collect();
        let title = data.title.as_deref().unwrap_or("untitled");
        let text = format!("# {title}\n{}\n\n{text}", facts.join(" · "));
        ToolAnswer { data, text }
    }
}

/// Items of a turn are numbered within this many.
const ITEMS_PER_TURN: u64 = 1 << 24;

fn joined_place(turn: usize, item: usize) -> u64 {
    turn as u64 * ITEMS_PER_TURN + item as u64
}

fn split_place(place: u64) -> (usize, usize) {
    ((place / ITEMS_PER_TURN) as usize, (place % ITEMS_PER_TURN) as usize)
}
