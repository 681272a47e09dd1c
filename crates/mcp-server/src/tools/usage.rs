//! `usage`: tokens and cost of the sessions of the scope.

use std::borrow::Cow;
use std::collections::HashSet;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use threadline_app::UsageNotes;
use threadline_app::time::TimeRange;
use threadline_usage::{CallGroupKey, CallGroups, GroupBy, ScanOptions, UsageTotals};
use threadline_view::humanize::{count, plural};
use threadline_view::wire::KeyObject;

use crate::answer::AnswerEnd;
use crate::budget::AnswerPage;
use crate::call::PageRequestState;
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::{HistoryTool, ToolAnswer};

pub(crate) struct UsageCount;

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageArguments {
    /// Default: model.
    #[serde(default)]
    by: Option<UsageGrouping>,
    /// Only this session: the id, a unique beginning of it, the title, or `last`.
    #[serde(default)]
    session: Option<String>,
    /// Only calls since: 2026-03-01, 2026-03, 7d, 12h, today, yesterday.
    #[serde(default)]
    since: Option<String>,
    /// Only calls before the end of this time.
    #[serde(default)]
    until: Option<String>,
    /// Approximate size of the answer, from 400 to 50000. Default: 6000.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// The next_cursor of the previous page.
    #[serde(default)]
    #[expect(dead_code, reason = "read before the arguments are parsed")]
    cursor: Option<String>,
}

/// The name of a grouping.
#[derive(Clone, Copy, Debug)]
struct UsageGrouping(GroupBy);

impl<'de> Deserialize<'de> for UsageGrouping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let by = GroupBy::from_name(&name);
        by.map(Self).ok_or_else(|| {
            let names = GroupBy::ALL.map(GroupBy::name).join(", ");
            D::Error::custom(format!("unknown grouping `{name}`, expected one of {names}"))
        })
    }
}

impl JsonSchema for UsageGrouping {
    fn schema_name() -> Cow<'static, str> {
        "UsageGrouping".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": GroupBy::ALL.map(GroupBy::name) })
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct UsageAnswer {
    total: UsageItem,
    items: Vec<UsageItem>,
    #[serde(flatten)]
    end: AnswerEnd,
}

/// A group of calls. Exactly the names of its grouping are present, none in the total.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
struct UsageItem {
    /// The session, for the other tools, if usage is counted by session.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    week: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    month: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_5m_tokens: u64,
    cache_write_1h_tokens: u64,
    web_searches: u64,
    cost_usd: f64,
    /// Whether the cost is a minimum.
    is_minimum: bool,
    /// Models without a price, whose calls are not in the cost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    unpriced_models: Vec<String>,
}

impl HistoryTool for UsageCount {
    const NAME: &'static str = "usage";
    const TITLE: &'static str = "Tokens and cost";
    const DESCRIPTION: &'static str = "Counts the model calls, tokens and cost of earlier Claude Code \
        sessions, by day, week, month, session, project, model, tool or branch.";
    type Arguments = UsageArguments;
    type Answer = UsageAnswer;

    fn run(
        history: &History,
        arguments: UsageArguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<UsageAnswer>, HistoryError> {
        let range = TimeRange::parse(arguments.since.as_deref(), arguments.until.as_deref(), &history.now())?;
        let sessions: Option<HashSet<String>> = match &arguments.session {
            Some(name) => Some(HashSet::from([history.find(name)?.0.id.to_string()])),
            None => history.session_ids(),
        };
        let by = arguments.by.map_or(GroupBy::Model, |UsageGrouping(by)| by);
        let book = history.app.prices()?;
        // All logs are read: a call that several sessions contain counts in one of them.
        let logs = history.app.usage_logs(&[])?.logs;
        request.state.expect(logs.found.len());
        let options = ScanOptions { tools: by == GroupBy::Tool, ..ScanOptions::default() };
        let read = logs.read(options, &|| request.state.step());
        let groups = CallGroups::of(&read.calls, by, &book, &history.zone, |at, session| {
            range.contains(at) && sessions.as_ref().is_none_or(|sessions| sessions.contains(session))
        });
        let mut page = AnswerPage::new(arguments.max_tokens);
        let skipped = usize::try_from(request.start.item).unwrap_or(usize::MAX);
        for (index, group) in groups.groups.iter().enumerate().skip(skipped) {
            let item = UsageItem::of(&group.key, &group.totals);
            let text = item.form(&group_name(&group.key), &group.totals);
            if !page.push(index as u64, item, &text) {
                break;
            }
        }
        let (items, mut text, next) = page.finish();
        let (calls, total) = (&read.calls, &groups.total);
        let notes = UsageNotes { calls, total, n_undated: 0, gone: &read.gone, prices: &book }.texts();
        let notes = read.unread.iter().cloned().chain(notes).collect();
        let total = UsageItem::total(&groups.total);
        text.push_str(&total.form("total", &groups.total));
        let end = AnswerEnd::new(request, next, notes, &mut text);
        Ok(ToolAnswer { data: UsageAnswer { total, items, end }, text })
    }
}

impl UsageItem {
    fn of(key: &CallGroupKey, totals: &UsageTotals) -> Self {
        let KeyObject { day, week, month, session, project, model, tool, branch } = KeyObject::from(key);
        let owned = |name: Option<&str>| name.map(str::to_owned);
        Self {
            source: owned(session),
            day: owned(day),
            week: owned(week),
            month: owned(month),
            session: owned(session),
            project: owned(project),
            model: owned(model),
            tool: owned(tool),
            branch: owned(branch),
            ..Self::total(totals)
        }
    }

    fn total(totals: &UsageTotals) -> Self {
        Self {
            calls: totals.calls,
            input_tokens: totals.tokens.input,
            output_tokens: totals.tokens.output,
            cache_read_tokens: totals.tokens.cache_read,
            cache_write_5m_tokens: totals.tokens.cache_write_5m,
            cache_write_1h_tokens: totals.tokens.cache_write_1h,
            web_searches: totals.web_searches,
            cost_usd: totals.cost.to_f64(),
            is_minimum: totals.is_lower_bound(),
            unpriced_models: totals.unpriced.iter().cloned().collect(),
            ..Self::default()
        }
    }

    /// Formats the item under a name.
    fn form(&self, name: &str, totals: &UsageTotals) -> String {
        format!(
            "{}: {}, {}, {} input, {} output, {} cache read, {} cache write tokens\n",
            one_line(name),
            totals.short_cost(),
            plural(self.calls, "call"),
            count(self.input_tokens),
            count(self.output_tokens),
            count(self.cache_read_tokens),
            count(totals.tokens.cache_write())
        )
    }
}

/// Returns the name of a group, with the project of a session or branch.
fn group_name(key: &CallGroupKey) -> String {
    match key {
        CallGroupKey::Day(name)
        | CallGroupKey::Week(name)
        | CallGroupKey::Month(name)
        | CallGroupKey::Project(name)
        | CallGroupKey::Model(name)
        | CallGroupKey::Tool(name) => name.clone(),
        CallGroupKey::Session { session, project } => format!("{session} ({project})"),
        CallGroupKey::Branch { project, branch } => format!("{branch} ({project})"),
    }
}
