//! `list_sessions`: the sessions of the scope.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadline_app::CardFilter;
use threadline_app::time::TimeRange;
use threadline_entry::Millis;
use threadline_usage::TokenCounts;
use threadline_view::humanize::plural;
use threadline_view::wire::moment;
use threadline_view::{Selection, SessionCard, SessionCardFigures, SortBy, TypedTime};

use crate::answer::AnswerEnd;
use crate::budget::{AnswerPage, shorten};
use crate::call::PageRequestState;
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::{HistoryTool, ToolAnswer};

pub(crate) struct ListSessions;

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListArguments {
    /// Words that must all occur in the title or the first prompt.
    #[serde(default)]
    words: Option<String>,
    /// A part of the directory.
    #[serde(default)]
    project: Option<String>,
    /// A part of the git branch.
    #[serde(default)]
    branch: Option<String>,
    /// A part of the name of a model that was used.
    #[serde(default)]
    model: Option<String>,
    /// A tool that was called; mcp__* for several.
    #[serde(default)]
    tool: Option<String>,
    /// A tag of the session.
    #[serde(default)]
    tag: Option<String>,
    /// Only sessions active since: 2026-03-01, 2026-03, 7d, 12h, today, yesterday.
    #[serde(default)]
    since: Option<String>,
    /// Only sessions started before the end of this time.
    #[serde(default)]
    until: Option<String>,
    /// Only sessions with errors.
    #[serde(default)]
    errors: bool,
    /// Default: active (last active first).
    #[serde(default)]
    sort: Option<ListOrder>,
    /// Also turns, errors, tool calls, sub-agents, models, tokens and cost. Default: true.
    #[serde(default)]
    figures: Option<bool>,
    /// Approximate size of the answer, from 400 to 50000. Default: 6000.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// The next_cursor of the previous page.
    #[serde(default)]
    #[expect(dead_code, reason = "read before the arguments are parsed")]
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ListOrder {
    Active,
    Started,
    Turns,
    Tokens,
    Cost,
    Errors,
}

impl From<ListOrder> for SortBy {
    fn from(order: ListOrder) -> Self {
        match order {
            ListOrder::Active => Self::Active,
            ListOrder::Started => Self::Started,
            ListOrder::Turns => Self::Turns,
            ListOrder::Tokens => Self::Tokens,
            ListOrder::Cost => Self::Cost,
            ListOrder::Errors => Self::Errors,
        }
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ListAnswer {
    /// The number of sessions on all pages.
    total: u64,
    items: Vec<ListedSession>,
    #[serde(flatten)]
    end: AnswerEnd,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ListedSession {
    /// The session, for the other tools.
    source: String,
    /// The same.
    id: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_prompt: Option<String>,
    project: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    last_active_at: String,
    /// Whether the session is being written now.
    live: bool,
    /// Whether it is the session that asks.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    current: bool,
    /// The label set in Claude Code.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    /// The tags set in threadline.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_agents: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<SessionTokens>,
    /// In dollars. A minimum if the log lacks some figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Models without a price, whose calls are not in the cost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    unpriced_models: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct SessionTokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl From<TokenCounts> for SessionTokens {
    fn from(tokens: TokenCounts) -> Self {
        let TokenCounts { input, output, cache_read, .. } = tokens;
        Self { input, output, cache_read, cache_write: tokens.cache_write() }
    }
}

impl HistoryTool for ListSessions {
    const NAME: &'static str = "list_sessions";
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Lists earlier Claude Code sessions with title, project, branch, \
        times, turns, errors and cost; filtered by words, time, branch, model or tool.";
    type Arguments = ListArguments;
    type Answer = ListAnswer;

    fn run(
        history: &History,
        arguments: ListArguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<ListAnswer>, HistoryError> {
        let (cards, unread) = cards(history, &arguments)?;
        let current = history.current_session();
        let mut page = AnswerPage::of_sessions(arguments.max_tokens);
        let skipped = usize::try_from(request.start.item).unwrap_or(usize::MAX);
        for (index, card) in cards.iter().enumerate().skip(skipped) {
            let is_current = current.as_ref() == Some(&card.id);
            let goes_on = page.push_shortened(index as u64, |limit| {
                let item = ListedSession { current: is_current, ..ListedSession::of(card, limit) };
                let text = item.text(history, card);
                (item, text)
            });
            if !goes_on {
                break;
            }
        }
        let (items, mut text, next) = page.finish();
        let mut notes = unread;
        if cards.is_empty() {
            notes.push(history.nothing_found("no matching sessions"));
        }
        let end = AnswerEnd::new(request, next, notes, &mut text);
        let text = format!("{}\n\n{text}", plural(cards.len() as u64, "session"));
        Ok(ToolAnswer { data: ListAnswer { total: cards.len() as u64, items, end }, text })
    }
}

fn cards(
    history: &History,
    arguments: &ListArguments,
) -> Result<(Vec<SessionCard>, Vec<String>), HistoryError> {
    let now = history.now();
    let range = TimeRange::parse(arguments.since.as_deref(), arguments.until.as_deref(), &now)?;
    let typed = |text: &Option<String>, at: Option<Millis>| {
        text.clone().zip(at).map(|(text, at)| TypedTime { text, at })
    };
    let filter = CardFilter {
        selection: Selection {
            words: arguments.words.clone().unwrap_or_default(),
            tag: arguments.tag.clone(),
            since: typed(&arguments.since, range.from),
            until: typed(&arguments.until, range.to),
            errors: arguments.errors,
            sort: arguments.sort.map_or_else(SortBy::default, Into::into),
            ..Selection::default()
        },
        project: arguments.project.clone(),
        branch: arguments.branch.clone(),
        model: arguments.model.clone(),
        tool: arguments.tool.clone(),
        untitled: false,
    };
    let options = history.app.figure_options();
    let counts = arguments.figures.unwrap_or(true) || filter.needs_figures();
    let (mut cards, unread) = history.app.list_cards(
        &filter,
        &history.zone,
        counts.then_some(&options),
        history.clock(),
        &|_| (),
    )?;
    cards.retain(|card| history.scope.contains(card.cwd.as_deref(), Some(&card.folder)));
    Ok((cards, unread))
}

impl ListedSession {
    fn of(card: &SessionCard, limit: usize) -> Self {
        let figures = card.figures.as_deref();
        let short = |text: &str, usual: usize| shorten(text, usual.min(limit)).0;
        let prompt = card.first_prompt.as_ref().filter(|prompt| one_line(prompt) != one_line(&card.title));
        Self {
            source: card.id.clone(),
            id: card.id.clone(),
            title: short(&one_line(&card.title), 200),
            first_prompt: prompt.map(|prompt| short(&one_line(prompt), 300)),
            project: short(&card.project, 300),
            git_branch: card.branch.as_ref().map(|branch| short(branch, 300)),
            started_at: card.started.map(moment),
            last_active_at: moment(card.last_active),
            live: card.live,
            current: false,
            tag: card.tag.clone(),
            tags: card.tags.clone(),
            turns: figures.map(|figures| figures.tally.turns),
            errors: figures.map(|figures| figures.tally.errors),
            tool_calls: figures.map(SessionCardFigures::tool_calls),
            sub_agents: figures.map(|figures| figures.tally.agents),
            models: figures.map(|figures| figures.models.clone()),
            tokens: figures.map(|figures| figures.totals.tokens.into()),
            cost_usd: figures.map(|figures| figures.totals.cost.to_f64()),
            unpriced_models: figures
                .map(|figures| figures.totals.unpriced.iter().cloned().collect())
                .unwrap_or_default(),
        }
    }

    fn text(&self, history: &History, card: &SessionCard) -> String {
        let mut facts = vec![history.shown_time(Some(card.last_active)), self.project.clone()];
        facts.extend(self.git_branch.clone());
        if let Some(figures) = &card.figures {
            facts.push(plural(figures.tally.turns, "turn"));
            if figures.tally.errors > 0 {
                facts.push(plural(figures.tally.errors, "error"));
            }
            facts.push(figures.totals.short_cost());
        }
        if self.live || self.current {
            facts.push(if self.current { "this session" } else { "live" }.to_owned());
        }
        let mut text = format!("- {}  {}\n  {}\n", self.id, self.title, one_line(&facts.join(" · ")));
        if let Some(prompt) = &self.first_prompt {
            let _ = writeln!(text, "  > {}", shorten(prompt, 200).0);
        }
        text
    }
}
