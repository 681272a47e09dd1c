//! A generation: one message of a model with its usage.

use std::borrow::Cow;
use std::fmt::Write;

use threadline_entry::lens::Assistant;
use threadline_entry::{Entry, Millis, key, value};
use threadline_session::{Reply, Session};
use threadline_usage::{LineUsage, Money, TokenCounts};

use crate::attribute as name;
use crate::id::SpanId;
use crate::message;
use crate::sent_replies::{most, tokens_since};
use crate::span::{AttributeValue, SpanKind, TraceSpan};
use crate::span_options::{Dialect, SpanOptions};
use crate::turn::SpanBuilder;

/// A message of a model, assembled from its lines.
pub(crate) struct Generation<'s> {
    session: &'s Session,
    reply: &'s Reply,
    /// The key of the reply, as the function of the same name returns it.
    pub(crate) key: String,
    pub(crate) start: Millis,
    pub(crate) end: Millis,
    /// Whether Claude Code wrote the message in place of a model.
    pub(crate) is_notice: bool,
    /// Whether the message reports a failed request.
    pub(crate) is_error: bool,
    pub(crate) status: Option<u64>,
    reading: Option<LineUsage<'s>>,
    /// The token counts sent before, with an earlier turn.
    sent_tokens: Option<TokenCounts>,
    stop: Option<String>,
}

/// The content of a reply, as far as the policy allows it to be sent.
#[derive(Default)]
pub(crate) struct ReplyContent<'s> {
    pub(crate) text: Option<String>,
    thinking: String,
    calls: Vec<CalledTool<'s>>,
}

/// The id and the tool of a call.
pub(crate) type CalledTool<'s> = (Cow<'s, str>, Cow<'s, str>);

impl<'s> Generation<'s> {
    /// Returns the key of a reply: its message id. If a gateway made the id up, or there is none, the request
    /// id is added, or the uuid or offset of the first line.
    pub(crate) fn key(session: &Session, reply: &Reply) -> String {
        let first = reply.entries.first().map(|&idx| &session.entries()[idx]);
        match reply.id.as_deref() {
            Some(id) if id.starts_with("msg_") => id.to_owned(),
            id => {
                let request = first.and_then(|entry| entry.get(key::REQUEST_ID)?.as_str());
                let own = request.or_else(|| first.and_then(Entry::uuid)).unwrap_or_default();
                let place = first.filter(|_| own.is_empty()).map_or(0, |entry| entry.at().byte_offset);
                format!("{} {own} {place}", id.unwrap_or_default())
            }
        }
    }

    /// Builds the generation of a reply that the model began to work on at `before`.
    pub(crate) fn of(session: &'s Session, reply: &'s Reply, before: Millis) -> Self {
        let lines = || reply.entries.iter().map(|&idx| &session.entries()[idx]);
        let mut reading: Option<LineUsage<'s>> = None;
        for next in lines().filter_map(LineUsage::of) {
            let at = reading.as_ref().map_or(next.at, |first| first.at.min(next.at).or(next.at));
            if reading.as_ref().is_none_or(|best| next.supersedes(best)) {
                reading = Some(next);
            }
            if let Some(best) = &mut reading {
                best.at = at;
            }
        }
        let end = reply.entries.iter().filter_map(|&idx| session.timestamp(idx)).max().unwrap_or(before);
        let mut stops = lines().filter_map(|entry| entry.message()?.stop_reason());
        let asked = || lines().filter_map(|entry| entry.lens::<Assistant<'_>>());
        let is_error = asked().any(|line| line.is_api_error_message().unwrap_or(false));
        Self {
            key: Self::key(session, reply),
            start: before.min(end),
            end,
            is_notice: is_error || reply.is_synthetic(),
            is_error,
            status: asked().find_map(|line| line.api_error_status()),
            reading,
            sent_tokens: None,
            stop: stops.next_back().map(Into::into),
            session,
            reply,
        }
    }

    /// Returns the token counts of its lines.
    pub(crate) fn tokens(&self) -> TokenCounts {
        self.reading.as_ref().map(|reading| reading.tokens).unwrap_or_default()
    }

    /// Leaves out the tokens that were sent before. Returns whether others are left.
    ///
    /// Lines that have fewer tokens than were sent do not lower them.
    pub(crate) fn exclude_sent(&mut self, known: TokenCounts) -> bool {
        if let Some(reading) = &mut self.reading {
            reading.tokens = most(reading.tokens, known);
        }
        self.sent_tokens = Some(known).filter(|known| *known != TokenCounts::default());
        tokens_since(self.tokens(), known) != TokenCounts::default()
    }

    /// Returns the content of the reply, as far as it may be sent.
    pub(crate) fn content(&self, shape: &SpanOptions<'_>) -> ReplyContent<'s> {
        let mut said = ReplyContent::default();
        if !shape.has_content() {
            return said;
        }
        let mut texts = Vec::new();
        let mut thoughts = Vec::new();
        for (_, block) in self.reply.blocks(self.session) {
            if block.is(value::TEXT) {
                texts.extend(block.text());
            } else if block.is(value::THINKING) {
                thoughts.extend(block.thinking().filter(|text| !text.is_empty()));
            } else if block.is(value::TOOL_USE) {
                said.calls.push((block.id().unwrap_or_default(), block.name().unwrap_or_default()));
            }
        }
        said.text = Some(texts.join("\n")).filter(|text| !text.is_empty()).and_then(|text| shape.text(&text));
        said.thinking = shape.text(&thoughts.join("\n")).unwrap_or_default();
        said
    }

    /// Returns its span.
    pub(crate) fn span(
        &self,
        builder: &SpanBuilder<'_, '_>,
        id: SpanId,
        said: &ReplyContent<'_>,
        (input, calls): (Option<&str>, usize),
    ) -> TraceSpan {
        let shape = builder.shape;
        let model = self.reply.model.as_deref().unwrap_or("unknown").to_owned();
        let mut span = builder.span(SpanKind::Generation, id, model.clone(), (self.start, self.end));
        set_model(&mut span, &model);
        span.set_some(name::RESPONSE_ID, self.reply.id.as_deref());
        if let Some(stop) = &self.stop {
            span.attributes.push((name::FINISH_REASONS.into(), AttributeValue::List(vec![stop.clone()])));
        }
        if shape.has_content() {
            let text = said.text.as_deref().unwrap_or_default();
            let (called, thinking) = (&said.calls, &*said.thinking);
            match shape.dialect {
                Dialect::Langfuse => {
                    span.set_some(name::INPUT, input.map(|text| message::plain("user", text)));
                    span.set(name::OUTPUT, message::plain_reply(text, thinking, called));
                }
                Dialect::GenAi => {
                    span.set_some(name::INPUT_MESSAGES, input.map(|text| message::parts("user", text)));
                    let output = message::parts_reply(text, thinking, called, self.stop.as_deref());
                    span.set(name::OUTPUT_MESSAGES, output);
                }
            }
        }
        span.set(name::META_TOOLS, calls);
        let lines = || {
            self.reply.entries.iter().filter_map(|&idx| self.session.entries()[idx].lens::<Assistant<'_>>())
        };
        span.set_some(name::META_REQUEST, lines().find_map(|line| line.request_id()).as_deref());
        let Some(reading) = &self.reading else { return span };
        let cost = reading.cost(shape.book);
        let (tokens, cost) = match self.sent_tokens {
            Some(known) => {
                let before = LineUsage { tokens: known, web_searches: 0, ..reading.clone() }.cost(shape.book);
                (tokens_since(reading.tokens, known), cost.zip(before).map(|(cost, before)| cost - before))
            }
            None => (reading.tokens, cost),
        };
        set_usage(&mut span, tokens, cost);
        self.set_parameters(&mut span, reading);
        let thought =
            self.reply.usage(self.session).and_then(|usage| usage.output_tokens_details()?.thinking_tokens());
        span.set_some(name::REASONING, thought);
        span
    }

    /// Returns the span of the advisor model called as number `n` on the way to the reply; `None` if there
    /// were fewer. The reply has the span `parent`.
    pub(crate) fn advisor_span(
        &self,
        builder: &SpanBuilder<'_, '_>,
        parent: SpanId,
        n: usize,
    ) -> Option<TraceSpan> {
        let reading = self.reading.as_ref()?;
        let (model, tokens) = reading.advisors.get(n)?;
        let id = builder.home.trace.span(&["advice", &self.key, &n.to_string()]);
        let mut span = builder.span(SpanKind::Generation, id, model.to_string(), (self.start, self.end));
        span.parent = Some(parent);
        set_model(&mut span, model);
        set_usage(&mut span, *tokens, reading.advisor_cost(n, builder.shape.book));
        Some(span)
    }

    /// Sets the model parameters; receivers use them to price fast mode.
    fn set_parameters(&self, span: &mut TraceSpan, reading: &LineUsage<'_>) {
        let mut parameters = String::new();
        let mut add = |key: &str, value: &str| {
            let comma = if parameters.is_empty() { "" } else { "," };
            let _ = write!(parameters, "{comma}\"{key}\":{}", crate::span_options::quote(value));
        };
        if reading.fast {
            add("speed", "fast");
        }
        let mut lines =
            self.reply.entries.iter().filter_map(|&idx| self.session.entries()[idx].lens::<Assistant<'_>>());
        if let Some(effort) = lines.find_map(|line| line.effort()) {
            add("effort", &effort);
        }
        if !parameters.is_empty() {
            span.set(name::MODEL_PARAMETERS, format!("{{{parameters}}}"));
        }
    }
}

fn set_model(span: &mut TraceSpan, model: &str) {
    span.set(name::MODEL, model);
    span.set(name::REQUEST_MODEL, model);
    span.set(name::RESPONSE_MODEL, model);
}

/// Sets token counts by price class, under the names that each kind of receiver reads. No total is set:
/// receivers add the counts up themselves, each in its own way.
fn set_usage(span: &mut TraceSpan, tokens: TokenCounts, cost: Option<Money>) {
    let mut details = format!("{{\"input\":{},\"output\":{}", tokens.input, tokens.output);
    for (key, count) in [
        ("cache_read_input_tokens", tokens.cache_read),
        ("input_cache_creation_5m", tokens.cache_write_5m),
        ("input_cache_creation_1h", tokens.cache_write_1h),
    ] {
        if count > 0 {
            let _ = write!(details, ",\"{key}\":{count}");
        }
    }
    details.push('}');
    span.set(name::USAGE_DETAILS, details);
    span.set(name::INPUT_TOKENS, tokens.context());
    span.set(name::OUTPUT_TOKENS, tokens.output);
    if tokens.cache_read > 0 {
        span.set(name::CACHE_READ, tokens.cache_read);
    }
    if tokens.cache_write() > 0 {
        span.set(name::CACHE_CREATION, tokens.cache_write());
        span.set(name::CACHE_WRITE, tokens.cache_write());
    }
    if let Some(cost) = cost {
        span.set(name::COST_DETAILS, format!("{{\"total\":{cost}}}"));
        span.attributes.push((name::COST.into(), AttributeValue::Decimal(cost.to_f64())));
    }
    span.usage = Some((tokens, cost));
}
