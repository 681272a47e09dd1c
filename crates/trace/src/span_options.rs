//! Which parts of a session are sent, and in which form: content policy, limits, redaction, naming.

use std::borrow::Cow;

use serde_json::Value as Tree;
use threadline_edit::Redactor;
use threadline_entry::lens::Content as Blocks;
use threadline_entry::{Json, JsonKind, value};
use threadline_secret::{KnownSecrets, Rules};
use threadline_session::SessionFamily;
use threadline_usage::PriceBook;

use crate::span::{AttributeValue, TraceSpan};

/// How much of the conversation is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContentPolicy {
    /// Structure, times, models, tokens and tool names. No written text, no paths.
    None,
    /// Also directory, branch, version and descriptions.
    Metadata,
    /// Also the text of the conversation, each value truncated at a limit.
    Truncated,
    /// All text, up to a limit that receivers still accept.
    Full,
}

/// Removes secrets from the strings of spans.
///
/// Replaces each secret by a placeholder with its kind only, so that the same log always produces the same
/// spans.
#[derive(Clone, Copy)]
pub struct SpanRedaction<'a> {
    pub(crate) rules: &'a Rules,
    /// The secrets of the session or the turn, which are replaced without the text that identifies them.
    secrets: Option<&'a KnownSecrets>,
    /// Whether `secrets` are the secrets of the whole session, so that those of a turn need not be searched.
    has_session_secrets: bool,
}

impl<'a> From<&'a Rules> for SpanRedaction<'a> {
    fn from(rules: &'a Rules) -> Self {
        Self { rules, secrets: None, has_session_secrets: false }
    }
}

impl<'a> SpanRedaction<'a> {
    /// Returns a redaction that replaces these secrets of the session everywhere. By default, the secrets of
    /// each turn are searched, and replaced in the turn.
    #[must_use]
    pub fn with_session_secrets(self, secrets: Option<&'a KnownSecrets>) -> Self {
        Self { secrets, has_session_secrets: true, ..self }
    }

    /// Returns the secrets in a turn and its sub-agents, unless those of the session are known.
    fn find_secrets(&self, family: &SessionFamily) -> Option<KnownSecrets> {
        if self.has_session_secrets {
            return None;
        }
        let mut redactor = Redactor::new(self.rules);
        redactor.learn(&family.main);
        family.agents.iter().for_each(|agent| drop(redactor.learn(&agent.session)));
        redactor.into_known()
    }

    /// Returns the text without its secrets; borrowed if there are none.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.secrets.map(|secrets| secrets.mask(text)) {
            Some(Cow::Owned(masked)) => Cow::Owned(self.rules.mask(&masked).into_owned()),
            _ => self.rules.mask(text),
        }
    }
}

/// The naming convention of spans, and the attributes that contain the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Human-readable names; content in `langfuse.observation.*`.
    Langfuse,
    /// Names and attributes of the OpenTelemetry GenAI conventions.
    GenAi,
}

/// How a session is converted to spans.
#[derive(Clone, Copy)]
pub struct SpanOptions<'a> {
    /// How much of the conversation is sent.
    pub content: ContentPolicy,
    /// The maximum size of a value in bytes; `None` for the default of the policy.
    pub limit: Option<usize>,
    /// Removes secrets, if set.
    pub redact: Option<SpanRedaction<'a>>,
    /// The naming convention.
    pub dialect: Dialect,
    /// The user's id.
    pub user: Option<&'a str>,
    /// Tags for every trace.
    pub tags: &'a [String],
    /// `production`, `staging` …
    pub environment: Option<&'a str>,
    /// The release that the traces belong to.
    pub release: Option<&'a str>,
    /// The prices of models.
    pub prices: &'a PriceBook,
}

/// The default limit of a value for [`ContentPolicy::Truncated`], in bytes.
const TRUNCATED_LIMIT: usize = 16 << 10;
/// The default limit for [`ContentPolicy::Full`]: receivers reject spans of several megabytes.
const FULL_LIMIT: usize = 1 << 20;
/// How many bytes beyond the limit are searched for secrets, so that none is missed because it was cut in
/// half.
const REDACTION_MARGIN: usize = 4 << 10;

impl<'a> SpanOptions<'a> {
    /// Returns the secrets of a turn, unless those of the session are known.
    pub(crate) fn find_turn_secrets(&self, family: &SessionFamily) -> Option<KnownSecrets> {
        self.redact.and_then(|redact| redact.find_secrets(family))
    }

    /// Returns the options for a turn with these secrets, in addition to those of the session.
    pub(crate) fn with_turn_secrets<'k>(&self, secrets: Option<&'k KnownSecrets>) -> SpanOptions<'k>
    where
        'a: 'k,
    {
        let redact =
            self.redact.map(|redact| SpanRedaction { secrets: secrets.or(redact.secrets), ..redact });
        SpanOptions { redact, ..*self }
    }

    /// Returns the options for a session with these secrets.
    pub(crate) fn with_session_secrets<'k>(&self, secrets: Option<&'k KnownSecrets>) -> SpanOptions<'k>
    where
        'a: 'k,
    {
        SpanOptions { redact: self.redact.map(|redact| redact.with_session_secrets(secrets)), ..*self }
    }
}

impl SpanOptions<'_> {
    /// Whether the text of the conversation is sent.
    pub(crate) fn has_content(&self) -> bool {
        self.content >= ContentPolicy::Truncated
    }

    /// Whether paths, branches and descriptions are sent.
    pub(crate) fn has_metadata(&self) -> bool {
        self.content >= ContentPolicy::Metadata
    }

    fn limit(&self) -> usize {
        let own = if self.content == ContentPolicy::Full { FULL_LIMIT } else { TRUNCATED_LIMIT };
        self.limit.unwrap_or(own).max(64)
    }

    /// Redacts and truncates a text; `None` if no content is sent.
    pub(crate) fn text(&self, text: &str) -> Option<String> {
        self.has_content().then(|| self.redact_and_truncate(text, self.limit()))
    }

    /// Redacts and truncates a short metadata text, such as a directory or an error message; `None` if no
    /// metadata is sent.
    pub(crate) fn metadata(&self, text: &str) -> Option<String> {
        self.has_metadata().then(|| self.redact_and_truncate(text, 512))
    }

    fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact.map_or(Cow::Borrowed(text), |redact| redact.redact(text))
    }

    fn redact_and_truncate(&self, text: &str, limit: usize) -> String {
        let near = &text[..text.floor_char_boundary(limit + REDACTION_MARGIN)];
        let clean = self.redacted(near);
        if near.len() == text.len() && clean.len() <= limit {
            return clean.into_owned();
        }
        let kept = clean.floor_char_boundary(limit);
        let left_out = (clean.len() - kept) + (text.len() - near.len());
        format!("{}… [{left_out} bytes omitted]", &clean[..kept])
    }

    /// Removes secrets from every string of the spans, as the last step.
    ///
    /// Truncated texts are redacted already; this covers strings taken from a line directly, such as a branch
    /// or a tool name.
    pub(crate) fn redact_spans(&self, spans: &mut [TraceSpan]) {
        let Some(redact) = self.redact else { return };
        let clean = |text: &mut String| {
            if let Cow::Owned(clean) = redact.redact(text) {
                *text = clean;
            }
        };
        for span in spans {
            clean(&mut span.name);
            span.error.iter_mut().for_each(clean);
            let events = span.events.iter_mut().flat_map(|event| &mut event.attributes);
            for (_, value) in span.attributes.iter_mut().chain(events) {
                match value {
                    AttributeValue::Text(text) => clean(text),
                    AttributeValue::List(texts) => texts.iter_mut().for_each(clean),
                    AttributeValue::Number(_) | AttributeValue::Decimal(_) | AttributeValue::Flag(_) => {}
                }
            }
        }
    }

    /// Redacts and truncates a JSON value and returns it as JSON text; `None` if no content is sent.
    pub(crate) fn json(&self, json: Json<'_>) -> Option<String> {
        if !self.has_content() {
            return None;
        }
        let raw = json.raw();
        let limit = self.limit();
        if raw.len() <= limit && matches!(self.redacted(raw), Cow::Borrowed(_)) && self.is_clean(json) {
            return Some(raw.to_owned());
        }
        let mut tree: Tree = match serde_json::from_str(raw) {
            Ok(tree) => tree,
            Err(_) => return Some(quote(&self.redact_and_truncate(raw, limit))),
        };
        self.clean(&mut tree, limit);
        let text = tree.to_string();
        Some(if text.len() <= limit { text } else { self.shorten(tree, limit) })
    }

    /// Whether no string contains a secret that is hidden by escapes in the raw text.
    fn is_clean(&self, json: Json<'_>) -> bool {
        if self.redact.is_none() || !json.raw().contains('\\') {
            return true;
        }
        let mut is_clean = true;
        json.visit_nested(|value| {
            let mut check = |text: &str| is_clean &= matches!(self.redacted(text), Cow::Borrowed(_));
            if let Some(key) = value.key() {
                check(&key.name());
            }
            if value.kind() == JsonKind::String
                && let Some(text) = value.json().as_str()
            {
                check(&text);
            }
            is_clean
        });
        is_clean
    }

    /// Redacts and truncates every string and key.
    fn clean(&self, tree: &mut Tree, limit: usize) {
        match tree {
            Tree::String(text) => {
                let clean = self.redact_and_truncate(text, limit);
                *text = clean;
            }
            Tree::Array(items) => items.iter_mut().for_each(|item| self.clean(item, limit)),
            Tree::Object(members) => {
                for (key, mut value) in std::mem::take(members) {
                    self.clean(&mut value, limit);
                    members.insert(self.redact_and_truncate(&key, limit), value);
                }
            }
            Tree::Null | Tree::Bool(_) | Tree::Number(_) => {}
        }
    }

    /// Truncates strings further and further until the whole value fits.
    fn shorten(&self, mut tree: Tree, limit: usize) -> String {
        let mut each = limit / 2;
        while each >= 64 {
            self.clean(&mut tree, each);
            let text = tree.to_string();
            if text.len() <= limit {
                return text;
            }
            each /= 4;
        }
        quote(&self.redact_and_truncate(&tree.to_string(), limit))
    }

    /// Redacts and truncates the text of a result or prompt; other blocks are replaced by placeholders.
    pub(crate) fn blocks(&self, content: Blocks<'_>) -> Option<String> {
        self.has_content().then(|| self.redact_and_truncate(&content_text(content), self.limit()))
    }
}

/// Returns all text of a content, with a placeholder for each block that is not text.
pub(crate) fn content_text(content: Blocks<'_>) -> Cow<'_, str> {
    if content.json().kind() == JsonKind::String {
        return content.text();
    }
    let mut parts: Vec<Cow<'_, str>> = Vec::new();
    parts.extend(content.blocks().filter_map(|block| {
        if block.is(value::TEXT) {
            return block.text();
        }
        if block.is("tool_reference") {
            return block.tool_name();
        }
        let kind = block.kind().unwrap_or_default();
        let data = block.source().and_then(|source| source.data()).map(|data| data.len() / 4 * 3);
        let size = data.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
        Some(format!("[{kind}{size}]").into())
    }));
    match parts.len() {
        1 => parts.remove(0),
        _ => parts.join("\n").into(),
    }
}

/// Returns the text as a JSON string literal.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
