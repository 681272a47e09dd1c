//! What of a session leaves the machine, and in what shape: content policy, limits, redaction, names.

use std::borrow::Cow;

use serde_json::Value as Tree;
use threadline_entry::lens::Content as Blocks;
use threadline_entry::{Json, JsonKind};
use threadline_secret::Rules;
use threadline_usage::Book;

use crate::span::{Span, Value};

/// How much of what was said is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Structure, times, models, tokens, names of tools. Nothing that somebody wrote, no paths.
    None,
    /// The same, and directory, branch, version, descriptions.
    Metadata,
    /// What was said too, each value cut at a limit.
    Truncated,
    /// Everything, up to a limit that keeps a span acceptable to receivers.
    Full,
}

/// Finds secrets in plain text and takes them out.
pub trait Redact: Sync {
    /// The text without its secrets; borrowed if there are none.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str>;
}

/// A name stands in the place of a secret. It tells the kind alone, so that the same log gives the same spans.
impl Redact for Rules {
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.clean(text)
    }
}

/// How spans are called, and where what was said is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Names as people read them; what was said in `langfuse.observation.*`.
    Langfuse,
    /// Names and places that the GenAI conventions of OpenTelemetry ask for.
    GenAi,
}

/// How a session is turned into spans.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// How much of what was said is sent.
    pub content: Content,
    /// How many bytes a value may have; `None` for the policy's own limit.
    pub limit: Option<usize>,
    /// Takes out secrets.
    pub redact: Option<&'a dyn Redact>,
    /// How spans are called.
    pub dialect: Dialect,
    /// Who uses Claude Code.
    pub user: Option<&'a str>,
    /// Labels for every trace.
    pub tags: &'a [String],
    /// `production`, `staging` …
    pub environment: Option<&'a str>,
    /// The release that the traces belong to.
    pub release: Option<&'a str>,
    /// What models cost.
    pub book: &'a Book,
}

/// How long a value may be where it is cut.
const TRUNCATED: usize = 16 << 10;
/// How long it may be where it is not: receivers refuse spans of some megabytes.
const FULL: usize = 1 << 20;
/// How far beyond the cut secrets are looked for, so that none is cut in half and missed.
const SLACK: usize = 4 << 10;

impl Shape<'_> {
    /// Whether anything that somebody wrote is sent.
    pub(crate) fn has_content(&self) -> bool {
        self.content >= Content::Truncated
    }

    /// Whether paths, branches and descriptions are sent.
    pub(crate) fn has_metadata(&self) -> bool {
        self.content >= Content::Metadata
    }

    fn limit(&self) -> usize {
        let own = if self.content == Content::Full { FULL } else { TRUNCATED };
        self.limit.unwrap_or(own).max(64)
    }

    /// A text, without secrets and as long as it may be; `None` if no content is sent.
    pub(crate) fn text(&self, text: &str) -> Option<String> {
        self.has_content().then(|| self.cut(text, self.limit()))
    }

    /// A short text beside the content, such as a directory or the message of an error.
    pub(crate) fn note(&self, text: &str) -> Option<String> {
        self.has_metadata().then(|| self.cut(text, 512))
    }

    fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact.map_or(Cow::Borrowed(text), |redact| redact.redact(text))
    }

    fn cut(&self, text: &str, limit: usize) -> String {
        let near = &text[..text.floor_char_boundary(limit + SLACK)];
        let clean = self.redacted(near);
        if near.len() == text.len() && clean.len() <= limit {
            return clean.into_owned();
        }
        let kept = clean.floor_char_boundary(limit);
        let left_out = (clean.len() - kept) + (text.len() - near.len());
        format!("{}… [{left_out} bytes left out]", &clean[..kept])
    }

    /// Takes the secrets out of every string of some spans: the last thing that is done to them.
    ///
    /// Most were taken out before, where a text was cut; what comes from a line without being cut, such as a branch or
    /// the name of a tool, is looked at here.
    pub(crate) fn seal(&self, spans: &mut [Span]) {
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
                    Value::Text(text) => clean(text),
                    Value::List(texts) => texts.iter_mut().for_each(clean),
                    Value::Number(_) | Value::Decimal(_) | Value::Flag(_) => {}
                }
            }
        }
    }

    /// A JSON value as JSON text, the same way.
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
            Err(_) => return Some(quote(&self.cut(raw, limit))),
        };
        self.clean(&mut tree, limit);
        let text = tree.to_string();
        Some(if text.len() <= limit { text } else { self.shorten(tree, limit) })
    }

    /// Whether no string holds a secret behind escapes.
    fn is_clean(&self, json: Json<'_>) -> bool {
        if self.redact.is_none() || !json.raw().contains('\\') {
            return true;
        }
        match json.kind() {
            JsonKind::String => {
                json.as_str().is_none_or(|text| matches!(self.redacted(&text), Cow::Borrowed(_)))
            }
            JsonKind::Array => json.items().all(|item| self.is_clean(item)),
            JsonKind::Object => json.members().all(|(key, value)| {
                matches!(self.redacted(&key.name()), Cow::Borrowed(_)) && self.is_clean(value)
            }),
            JsonKind::Null | JsonKind::Bool | JsonKind::Number => true,
        }
    }

    /// Takes secrets out of every string, and cuts those that are too long.
    fn clean(&self, tree: &mut Tree, limit: usize) {
        match tree {
            Tree::String(text) => {
                let clean = self.cut(text, limit);
                *text = clean;
            }
            Tree::Array(items) => items.iter_mut().for_each(|item| self.clean(item, limit)),
            Tree::Object(members) => {
                for (key, mut value) in std::mem::take(members) {
                    self.clean(&mut value, limit);
                    members.insert(self.cut(&key, limit), value);
                }
            }
            Tree::Null | Tree::Bool(_) | Tree::Number(_) => {}
        }
    }

    /// Cuts strings shorter and shorter until the whole fits.
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
        quote(&self.cut(&tree.to_string(), limit))
    }

    /// The text of a result or a prompt; what is no text is named.
    pub(crate) fn blocks(&self, content: Blocks<'_>) -> Option<String> {
        self.has_content().then(|| self.cut(&said(content), self.limit()))
    }
}

/// All text in a content, and a word for what is none.
pub(crate) fn said(content: Blocks<'_>) -> Cow<'_, str> {
    if content.json().kind() == JsonKind::String {
        return content.text();
    }
    let mut parts: Vec<Cow<'_, str>> = Vec::new();
    for block in content.blocks() {
        if block.is("text") {
            parts.extend(block.text());
        } else if block.is("tool_reference") {
            parts.extend(block.tool_name());
        } else {
            let kind = block.kind().unwrap_or_default();
            let data = block.source().and_then(|source| source.data()).map(|data| data.len() / 4 * 3);
            let size = data.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
            parts.push(format!("[{kind}{size}]").into());
        }
    }
    match parts.len() {
        1 => parts.remove(0),
        _ => parts.join("\n").into(),
    }
}

/// A JSON string.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
