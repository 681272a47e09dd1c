//! JSON of usage: groups of calls, five-hour windows, and records with the reason for counting or rejecting
//! them.

use foldhash::HashMap;
use serde::Serialize;
use serde_json::value::RawValue;
use threadline_entry::Millis;
use threadline_usage::{
    CallGroup, CallGroupKey, CostAccountModel, GroupBy, LimitWindow, Money, Reconciliation,
    RecordExplanation, RecordVerdict, UsageTotals,
};

use super::moment;

/// A group of calls.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct GroupObject<'a> {
    #[serde(flatten)]
    pub key: KeyObject<'a>,
    #[serde(flatten)]
    pub figures: FiguresObject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherited_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<String>,
}

/// The key of a group: exactly the fields of its grouping are set.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct KeyObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub week: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<&'a str>,
}

impl<'a> From<&'a CallGroupKey> for KeyObject<'a> {
    fn from(key: &'a CallGroupKey) -> Self {
        let mut object = Self::default();
        match key {
            CallGroupKey::Day(day) => object.day = Some(day),
            CallGroupKey::Week(week) => object.week = Some(week),
            CallGroupKey::Month(month) => object.month = Some(month),
            CallGroupKey::Session { session, project } => {
                object.session = Some(session);
                object.project = Some(project);
            }
            CallGroupKey::Project(project) => object.project = Some(project),
            CallGroupKey::Model(model) => object.model = Some(model),
            CallGroupKey::Tool(tool) => object.tool = Some(tool),
            CallGroupKey::Branch { project, branch } => {
                object.project = Some(project);
                object.branch = Some(branch);
            }
        }
        object
    }
}

/// A sum of calls.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct FiguresObject<'a> {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_5m_tokens: u64,
    pub cache_write_1h_tokens: u64,
    pub web_searches: u64,
    pub cost_usd: Option<Box<RawValue>>,
    pub unpriced_models: Vec<&'a str>,
}

impl<'a> From<&'a UsageTotals> for FiguresObject<'a> {
    fn from(totals: &'a UsageTotals) -> Self {
        Self {
            calls: totals.calls,
            input_tokens: totals.tokens.input,
            output_tokens: totals.tokens.output,
            cache_read_tokens: totals.tokens.cache_read,
            cache_write_5m_tokens: totals.tokens.cache_write_5m,
            cache_write_1h_tokens: totals.tokens.cache_write_1h,
            web_searches: totals.web_searches,
            cost_usd: exact(totals.cost),
            unpriced_models: totals.unpriced.iter().map(String::as_str).collect(),
        }
    }
}

/// A five-hour window.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct WindowObject<'a> {
    pub start: String,
    pub end: String,
    /// `stated` or `estimate`.
    pub reset: &'static str,
    pub active: bool,
    pub first_at: String,
    pub last_at: String,
    #[serde(flatten)]
    pub figures: FiguresObject<'a>,
    pub cost_per_hour_usd: Option<Box<RawValue>>,
    pub projected_cost_usd: Option<Box<RawValue>>,
}

/// A record, with the reason if it was not counted.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct RecordObject<'a> {
    pub path: &'a str,
    pub line: u64,
    pub byte_offset: u64,
    pub timestamp: Option<String>,
    pub session: &'a str,
    pub message_id: Option<&'a str>,
    pub model: Option<&'a str>,
    pub counted: bool,
    pub reason: Option<&'static str>,
    pub explanation: Option<String>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_5m_tokens: u64,
    pub cache_write_1h_tokens: u64,
    pub cost_usd: Option<Box<RawValue>>,
}

/// Returns an amount as a JSON number with all its digits.
pub fn exact(amount: Money) -> Option<Box<RawValue>> {
    RawValue::from_string(amount.to_string()).ok()
}

impl<'a> GroupObject<'a> {
    /// Converts a group; `inherited` contains the number of calls that each session copied from others.
    pub fn new(group: &'a CallGroup, by: GroupBy, inherited: &HashMap<&str, u64>) -> Self {
        let mut object = Self {
            key: KeyObject::from(&group.key),
            figures: FiguresObject::from(&group.totals),
            tool_calls: (by == GroupBy::Tool).then_some(group.totals.tool_calls),
            ..Self::default()
        };
        if let CallGroupKey::Session { session, .. } = &group.key {
            object.inherited_calls = Some(inherited.get(&**session).copied().unwrap_or(0));
            object.first_at = group.first_at.map(moment);
            object.last_at = group.last_at.map(moment);
        }
        object
    }
}

impl<'a> WindowObject<'a> {
    /// Converts a window as of `now`.
    pub fn new(window: &'a LimitWindow, now: Millis) -> Self {
        let active = window.is_active(now);
        let projected = window.projected(now).filter(|_| active);
        Self {
            start: moment(window.start),
            end: moment(window.end),
            reset: if window.stated { "stated" } else { "estimate" },
            active,
            first_at: moment(window.first_at),
            last_at: moment(window.last_at),
            figures: FiguresObject::from(&window.totals),
            cost_per_hour_usd: window.cost_per_hour().and_then(exact),
            projected_cost_usd: projected.and_then(exact),
        }
    }
}

impl<'a> From<&'a RecordExplanation> for RecordObject<'a> {
    fn from(record: &'a RecordExplanation) -> Self {
        let reason = match &record.verdict {
            RecordVerdict::Counted => None,
            RecordVerdict::Rejected(reason) => Some(reason),
        };
        Self {
            path: &record.path,
            line: record.line,
            byte_offset: record.byte_offset,
            timestamp: record.at.map(moment),
            session: &record.session,
            message_id: record.message_id.as_deref(),
            model: record.model.as_deref(),
            counted: reason.is_none(),
            reason: reason.map(|reason| reason.name()),
            explanation: reason.map(ToString::to_string),
            input_tokens: record.tokens.input,
            output_tokens: record.tokens.output,
            cache_read_tokens: record.tokens.cache_read,
            cache_write_5m_tokens: record.tokens.cache_write_5m,
            cache_write_1h_tokens: record.tokens.cache_write_1h,
            cost_usd: record.cost.and_then(exact),
        }
    }
}

/// A session's cost compared with Claude Code's own figure, of `usage --reconcile`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ReconciledObject<'a> {
    pub session: &'a str,
    pub cost_usd: Option<Box<RawValue>>,
    pub claude_code_cost_usd: Option<Box<RawValue>>,
    pub difference_usd: Option<Box<RawValue>>,
    pub reasons: &'a [String],
    pub models: Vec<AccountObject<'a>>,
}

/// The usage of a model according to Claude Code.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct AccountObject<'a> {
    pub model: &'a str,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_5m_tokens: u64,
    pub cache_write_1h_tokens: u64,
    pub web_searches: u64,
    pub cost_usd: Option<Box<RawValue>>,
}

impl<'a> From<&'a Reconciliation> for ReconciledObject<'a> {
    fn from(session: &'a Reconciliation) -> Self {
        Self {
            session: &session.session,
            cost_usd: exact(session.ours.cost),
            claude_code_cost_usd: exact(session.theirs.cost),
            difference_usd: exact(session.theirs.cost - session.ours.cost),
            reasons: &session.reasons,
            models: session.theirs.models.iter().map(AccountObject::from).collect(),
        }
    }
}

impl<'a> From<&'a CostAccountModel> for AccountObject<'a> {
    fn from(model: &'a CostAccountModel) -> Self {
        Self {
            model: &model.name,
            input_tokens: model.tokens.input,
            output_tokens: model.tokens.output,
            cache_read_tokens: model.tokens.cache_read,
            cache_write_5m_tokens: model.tokens.cache_write_5m,
            cache_write_1h_tokens: model.tokens.cache_write_1h,
            web_searches: model.web_searches,
            cost_usd: exact(model.cost),
        }
    }
}
