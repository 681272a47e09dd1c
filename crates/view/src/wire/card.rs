//! JSON of lists: sessions with their figures, and search matches.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::usage::exact;
use super::{TokensObject, moment};
use crate::session_card::{SessionCard, SessionCardFigures};

/// One session of `list`, and of the viewer's home page.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CardObject<'a> {
    pub id: &'a str,
    pub path: &'a str,
    pub project: &'a str,
    pub folder: &'a str,
    pub cwd: Option<&'a str>,
    pub title: &'a str,
    pub first_prompt: Option<&'a str>,
    pub git_branch: Option<&'a str>,
    pub tag: Option<&'a str>,
    pub tags: &'a [String],
    pub pinned: bool,
    pub version: Option<&'a str>,
    pub started_at: Option<String>,
    pub last_active_at: String,
    pub modified_at: String,
    pub size_bytes: u64,
    pub live: bool,
    pub turns: Option<u64>,
    pub errors: Option<u64>,
    pub tool_calls: Option<u64>,
    pub sub_agents: Option<u64>,
    pub models: Option<&'a [String]>,
    pub tools: Option<BTreeMap<&'a str, u64>>,
    pub tokens: Option<TokensObject>,
    pub cost_usd: Option<Box<RawValue>>,
    pub unpriced_models: Option<Vec<&'a str>>,
    pub inherited_calls: Option<u64>,
}

impl<'a> From<&'a SessionCard> for CardObject<'a> {
    fn from(card: &'a SessionCard) -> Self {
        let figures = card.figures.as_deref();
        let tokens = |tokens: threadline_usage::TokenCounts| TokensObject {
            input: tokens.input,
            output: tokens.output,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write(),
        };
        Self {
            id: &card.id,
            path: &card.path,
            project: &card.project,
            folder: &card.folder,
            cwd: card.cwd.as_deref(),
            title: &card.title,
            first_prompt: card.first_prompt.as_deref(),
            git_branch: card.branch.as_deref(),
            tag: card.tag.as_deref(),
            tags: &card.tags,
            pinned: card.pinned,
            version: card.version.as_deref(),
            started_at: card.started.map(moment),
            last_active_at: moment(card.last_active),
            modified_at: moment(card.modified),
            size_bytes: card.size,
            live: card.live,
            turns: figures.map(|figures| figures.tally.turns),
            errors: figures.map(|figures| figures.tally.errors),
            tool_calls: figures.map(SessionCardFigures::tool_calls),
            sub_agents: figures.map(|figures| figures.tally.agents),
            models: figures.map(|figures| &*figures.models),
            tools: figures
                .map(|figures| figures.tools.iter().map(|(name, count)| (&**name, *count)).collect()),
            tokens: figures.map(|figures| tokens(figures.totals.tokens)),
            cost_usd: figures.and_then(|figures| exact(figures.totals.cost)),
            unpriced_models: figures
                .map(|figures| figures.totals.unpriced.iter().map(String::as_str).collect()),
            inherited_calls: figures.map(|figures| figures.inherited_calls),
        }
    }
}

/// The pin and the tags of a session.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct LabelObject<'a> {
    pub id: &'a str,
    pub pinned: bool,
    pub tags: Vec<&'a str>,
}

/// A match of `search`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct MatchObject<'a> {
    pub session: &'a str,
    pub path: String,
    pub line: u64,
    pub anchor: &'a str,
    pub kind: &'static str,
    pub tool: Option<&'a str>,
    pub timestamp: Option<String>,
    pub text: &'a str,
    pub ranges: Vec<[usize; 2]>,
    pub role: &'static str,
    pub agent: Option<String>,
    pub matches: usize,
    pub copies: usize,
}

/// The number of matches in a session, of `search --count`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SessionCountObject<'a> {
    pub session: &'a str,
    pub path: String,
    pub count: usize,
}
