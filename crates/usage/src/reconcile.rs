//! Compares our figures with Claude Code's own, from its `cost-state` lines.

use serde::{Deserialize, Serialize};
use threadline_entry::lens::{CostState, FromJson, ModelUsage};
use threadline_entry::{Entry, Millis};

use crate::calls::ModelCalls;
use crate::figures::TokenCounts;
use crate::model::model;
use crate::money::Money;
use crate::price_book::PriceBook;
use crate::totals::{UsageTotals, format_calls};

/// Claude Code's own cost account of a session, from its last `cost-state` line.
///
/// It starts with the Claude Code process, which may be before the session or after a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostAccount {
    /// The total cost.
    pub cost: Money,
    /// Whether the cost of some model was unknown to Claude Code.
    pub has_unknown_cost: bool,
    /// When it starts.
    pub start: Option<Millis>,
    /// The usage of each model, sorted by name.
    pub models: Vec<CostAccountModel>,
}

/// The usage of one model in Claude Code's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostAccountModel {
    /// The model, by its name in the price book.
    pub name: String,
    /// The token counts.
    pub tokens: TokenCounts,
    /// The number of web searches.
    pub web_searches: u64,
    /// The cost.
    pub cost: Money,
}

impl CostAccount {
    /// Reads the account from a `cost-state` line; `None` if it has no total.
    pub(crate) fn of(entry: &Entry) -> Option<Self> {
        let state: CostState<'_> = entry.lens()?;
        let models = state.model_usage().into_iter().flat_map(|models| models.members());
        let mut models: Vec<CostAccountModel> = models
            .filter_map(|(name, json)| {
                let used = ModelUsage::from_json(json)?;
                let all = used.cache_creation_input_tokens().unwrap_or(0);
                let hour = used.cache_creation_ephemeral_1h_input_tokens().unwrap_or(0);
                Some(CostAccountModel {
                    name: model(&name.name()).name,
                    tokens: TokenCounts {
                        input: used.input_tokens().unwrap_or(0),
                        output: used.output_tokens().unwrap_or(0),
                        cache_read: used.cache_read_input_tokens().unwrap_or(0),
                        cache_write_5m: all.saturating_sub(hour),
                        cache_write_1h: hour,
                    },
                    web_searches: used.web_search_requests().unwrap_or(0),
                    cost: used.cost_usd().and_then(Money::from_f64).unwrap_or_default(),
                })
            })
            .collect();
        models.sort_by(|a, b| a.name.cmp(&b.name));
        Some(Self {
            cost: state.total_cost_usd().and_then(Money::from_f64)?,
            has_unknown_cost: state.has_unknown_model_cost().unwrap_or(false),
            start: state.start_time().map(|millis| millis as Millis),
            models,
        })
    }
}

/// Our figures of a session and Claude Code's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// The session id.
    pub session: String,
    /// Our figures.
    pub ours: UsageTotals,
    /// Claude Code's figures.
    pub theirs: CostAccount,
    /// Possible explanations of the difference.
    pub reasons: Vec<String>,
}

/// Compares the sessions that have an account by Claude Code, sorted by id. Requires
/// [`ScanOptions::accounts`](crate::ScanOptions::accounts).
pub fn reconcile(calls: &ModelCalls, book: &PriceBook, keep: impl Fn(&str) -> bool) -> Vec<Reconciliation> {
    let inherited = calls.inherited();
    let mut accounts: Vec<(&str, &CostAccount)> =
        calls.accounts.iter().map(|(session, account)| (calls.names.get(*session), account)).collect();
    // A log may have been added twice; the account with the highest cost is the latest.
    accounts.sort_by(|a, b| (a.0, b.1.cost).cmp(&(b.0, a.1.cost)));
    accounts.dedup_by_key(|(session, _)| *session);
    let mut out = Vec::new();
    for (session, theirs) in accounts.into_iter().filter(|(session, _)| keep(session)) {
        let mut ours = UsageTotals::default();
        let mut models: std::collections::BTreeMap<&str, UsageTotals> = std::collections::BTreeMap::new();
        for call in calls.iter().filter(|call| call.session == session) {
            let totals = UsageTotals::of(&call, book);
            ours += &totals;
            *models.entry(call.model).or_default() += &totals;
        }
        let mut reasons = Vec::new();
        for other in &theirs.models {
            let own = models.remove(&*other.name).unwrap_or_default();
            reasons.extend(compare(other, &own));
        }
        for (name, own) in models {
            let calls = format_calls(own.calls);
            reasons.push(format!("{name}: {calls} in the log, none in Claude Code's account"));
        }
        if !ours.unpriced.is_empty() {
            reasons.push(format!("no price for {}", ours.unpriced_models()));
        }
        if theirs.has_unknown_cost {
            reasons.push("Claude Code has no price for some models".to_owned());
        }
        if ours.under_reported > 0 {
            let calls = format_calls(ours.under_reported);
            reasons.push(format!("{calls} from versions that under-report output tokens"));
        }
        if let Some(&inherited) = inherited.get(session) {
            let calls = format_calls(inherited);
            reasons.push(format!("{calls} inherited from another session and counted there"));
        }
        out.push(Reconciliation { session: session.to_owned(), ours, theirs: theirs.clone(), reasons });
    }
    out
}

/// Returns why the figures of a model differ, if they do.
fn compare(theirs: &CostAccountModel, ours: &UsageTotals) -> Option<String> {
    let name = &theirs.name;
    let (own, other) = (ours.tokens, theirs.tokens);
    let difference = |ours: u64, theirs: u64| i128::from(theirs) - i128::from(ours);
    let parts: Vec<String> = [
        ("input", difference(own.input, other.input)),
        ("output", difference(own.output, other.output)),
        ("cache read", difference(own.cache_read, other.cache_read)),
        ("cache write", difference(own.cache_write(), other.cache_write())),
    ]
    .into_iter()
    .filter(|(_, n)| *n != 0)
    .map(|(what, n)| format!("{n:+} {what}"))
    .collect();
    if !parts.is_empty() {
        let why = if ours.calls == 0 {
            "no calls in the log"
        } else if difference(own.total(), other.total()) > 0 {
            "calls missing from the logs, or tokens not logged"
        } else {
            "Claude Code started counting later"
        };
        return Some(format!("{name}: Claude Code reports {} tokens ({why})", parts.join(", ")));
    }
    // Claude Code adds floating-point numbers; up to a millionth of a dollar is not a difference.
    let gap = (theirs.cost - ours.cost).steps().abs();
    (gap > 1_000_000_000).then(|| format!("{name}: same tokens, different price"))
}
