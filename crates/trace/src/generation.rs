//! A generation: one message of a model with its usage.

use std::borrow::Cow;
use std::fmt::Write;

use threadline_entry::lens::Assistant;
use threadline_entry::{Entry, Millis, key, value};
use threadline_session::{Reply, Session};
use threadline_usage::{LineUsage, Money, TokenCounts};

use crate::attribute as name;
use crate::id::{SpanId, TraceId};
use crate::message;
use crate::sent_replies::{ReplyFigures, SentReply, tokens_since};
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
    usage: Option<LineUsage<'s>>,
    /// The figures sent before, in other traces.
    sent_before: Option<ReplyFigures>,
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

    /// Builds the generation of a reply that the model began to work on at `work_start`.
    pub(crate) fn of(session: &'s Session, reply: &'s Reply, work_start: Millis) -> Self {
        let lines = || reply.entries.iter().map(|&idx| &session.entries()[idx]);
        let usages = || lines().filter_map(LineUsage::of);
        let best = usages().reduce(|best, next| if next.supersedes(&best) { next } else { best });
        // Prices depend on the date.
        let usage = best.map(|best| LineUsage { at: usages().filter_map(|usage| usage.at).min(), ..best });
        let end = reply.entries.iter().filter_map(|&idx| session.timestamp(idx)).max().unwrap_or(work_start);
        let mut stops = lines().filter_map(|entry| entry.message()?.stop_reason());
        let assistant_lines = || lines().filter_map(|entry| entry.lens::<Assistant<'_>>());
        let is_error = assistant_lines().any(|line| line.is_api_error_message().unwrap_or(false));
        Self {
            key: Self::key(session, reply),
            start: work_start.min(end),
            end,
            is_notice: is_error || reply.is_synthetic(),
            is_error,
            status: assistant_lines().find_map(|line| line.api_error_status()),
            usage,
            sent_before: None,
            stop: stops.next_back().map(Into::into),
            session,
            reply,
        }
    }

    /// Returns the figures of its lines.
    pub(crate) fn figures(&self) -> ReplyFigures {
        let of =
            |usage: &LineUsage<'_>| ReplyFigures { tokens: usage.tokens, web_searches: usage.web_searches };
        self.usage.as_ref().map(of).unwrap_or_default()
    }

    /// Returns whether the reply has more tokens than were sent.
    pub(crate) fn has_new_tokens(&self, sent: &SentReply) -> bool {
        tokens_since(self.figures().tokens, sent.figures.tokens) != TokenCounts::default()
    }

    /// Leaves out the tokens that were sent before, unless this span replaces the one with them: that has the
    /// same trace.
    ///
    /// Lines that have fewer tokens than were sent do not lower them.
    pub(crate) fn exclude_sent(&mut self, sent: &SentReply, trace: TraceId) {
        let figures = self.figures().max(sent.figures);
        if let Some(usage) = &mut self.usage {
            (usage.tokens, usage.web_searches) = (figures.tokens, figures.web_searches);
        }
        let excluded = if sent.trace == trace { sent.in_other_traces } else { sent.figures };
        self.sent_before = Some(excluded).filter(|figures| *figures != ReplyFigures::default());
    }

    /// Returns the content of the reply, as far as it may be sent.
    pub(crate) fn content(&self, options: &SpanOptions<'_>) -> ReplyContent<'s> {
        let mut content = ReplyContent::default();
        if !options.has_content() {
            return content;
        }
        let mut texts = Vec::new();
        let mut thoughts = Vec::new();
        for (_, block) in self.reply.blocks(self.session) {
            if block.is(value::TEXT) {
                texts.extend(block.text());
            } else if block.is(value::THINKING) {
                thoughts.extend(block.thinking().filter(|text| !text.is_empty()));
            } else if block.is(value::TOOL_USE) {
                content.calls.push((block.id().unwrap_or_default(), block.name().unwrap_or_default()));
            }
        }
        content.text =
            Some(texts.join("\n")).filter(|text| !text.is_empty()).and_then(|text| options.text(&text));
        content.thinking = options.text(&thoughts.join("\n")).unwrap_or_default();
        content
    }

    /// Returns its span.
    pub(crate) fn span(
        &self,
        builder: &SpanBuilder<'_, '_>,
        id: SpanId,
        content: &ReplyContent<'_>,
        input: Option<&str>,
        n_calls: usize,
    ) -> TraceSpan {
        let options = builder.options;
        let model = self.reply.model.as_deref().unwrap_or("unknown").to_owned();
        let mut span = builder.span(SpanKind::Generation, id, model.clone(), (self.start, self.end));
        set_model(&mut span, &model);
        span.add_some(name::RESPONSE_ID, self.reply.id.as_deref());
        if let Some(stop) = &self.stop {
            span.attributes.push((name::FINISH_REASONS.into(), AttributeValue::List(vec![stop.clone()])));
        }
        if options.has_content() {
            let text = content.text.as_deref().unwrap_or_default();
            let (called, thinking) = (&content.calls, &*content.thinking);
            match options.dialect {
                Dialect::Langfuse => {
                    span.add_some(name::INPUT, input.map(|text| message::plain("user", text)));
                    span.add(name::OUTPUT, message::plain_reply(text, thinking, called));
                }
                Dialect::GenAi => {
                    span.add_some(name::INPUT_MESSAGES, input.map(|text| message::parts("user", text)));
                    let output = message::parts_reply(text, thinking, called, self.stop.as_deref());
                    span.add(name::OUTPUT_MESSAGES, output);
                }
            }
        }
        span.add(name::META_TOOLS, n_calls);
        let lines = || {
            self.reply.entries.iter().filter_map(|&idx| self.session.entries()[idx].lens::<Assistant<'_>>())
        };
        span.add_some(name::META_REQUEST, lines().find_map(|line| line.request_id()).as_deref());
        let Some(usage) = &self.usage else { return span };
        let cost = usage.cost(options.prices);
        let (tokens, cost) = match self.sent_before {
            Some(ReplyFigures { tokens, web_searches }) => {
                let sent_cost = LineUsage { tokens, web_searches, ..usage.clone() }.cost(options.prices);
                (tokens_since(usage.tokens, tokens), cost.zip(sent_cost).map(|(cost, sent)| cost - sent))
            }
            None => (usage.tokens, cost),
        };
        set_usage(&mut span, tokens, cost);
        self.set_parameters(&mut span, usage);
        let thought =
            self.reply.usage(self.session).and_then(|usage| usage.output_tokens_details()?.thinking_tokens());
        span.add_some(name::REASONING, thought);
        span
    }

    /// Returns the span of the `n`-th call of an advisor model, counted from 0; `None` if there were fewer.
    /// `parent` is the span of the reply.
    pub(crate) fn advisor_span(
        &self,
        builder: &SpanBuilder<'_, '_>,
        parent: SpanId,
        n: usize,
    ) -> Option<TraceSpan> {
        let usage = self.usage.as_ref()?;
        let (model, tokens) = usage.advisors.get(n)?;
        let id = builder.turn.trace.span(&["advice", &self.key, &n.to_string()]);
        let mut span = builder.span(SpanKind::Generation, id, model.to_string(), (self.start, self.end));
        span.parent = Some(parent);
        set_model(&mut span, model);
        set_usage(&mut span, *tokens, usage.advisor_cost(n, builder.options.prices));
        Some(span)
    }

    /// Sets the model parameters; receivers use them to price fast mode.
    fn set_parameters(&self, span: &mut TraceSpan, usage: &LineUsage<'_>) {
        let mut parameters = String::new();
        let mut add = |key: &str, value: &str| {
            let comma = if parameters.is_empty() { "" } else { "," };
            let _ = write!(parameters, "{comma}\"{key}\":{}", crate::span_options::quote(value));
        };
        if usage.fast {
            add("speed", "fast");
        }
        let mut lines =
            self.reply.entries.iter().filter_map(|&idx| self.session.entries()[idx].lens::<Assistant<'_>>());
        if let Some(effort) = lines.find_map(|line| line.effort()) {
            add("effort", &effort);
        }
        if !parameters.is_empty() {
            span.add(name::MODEL_PARAMETERS, format!("{{{parameters}}}"));
        }
    }
}

fn set_model(span: &mut TraceSpan, model: &str) {
    span.add(name::MODEL, model);
    span.add(name::REQUEST_MODEL, model);
    span.add(name::RESPONSE_MODEL, model);
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
    span.add(name::USAGE_DETAILS, details);
    span.add(name::INPUT_TOKENS, tokens.context());
    span.add(name::OUTPUT_TOKENS, tokens.output);
    if tokens.cache_read > 0 {
        span.add(name::CACHE_READ, tokens.cache_read);
    }
    if tokens.cache_write() > 0 {
        span.add(name::CACHE_CREATION, tokens.cache_write());
        span.add(name::CACHE_WRITE, tokens.cache_write());
    }
    if let Some(cost) = cost {
        span.add(name::COST_DETAILS, format!("{{\"total\":{cost}}}"));
        span.attributes.push((name::COST.into(), AttributeValue::Decimal(cost.to_f64())));
    }
    span.usage = Some((tokens, cost));
}
