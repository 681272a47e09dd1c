//! The rows of the tables.

use std::borrow::Cow;
use std::collections::HashSet;

use threadline_app::OpenSession;
use threadline_archive::PrivacyLevel;
use threadline_entry::{Millis, value};
use threadline_session::{CallIndex, EntryIndex, InputKind, Session};
use threadline_usage::{ModelCall, PriceBook};

use crate::export::SessionOrigin;
use crate::partition::{TableCell, TableRow};
use crate::schema::TableKind;

/// A row, its table and its time.
pub(crate) struct DatedRow {
    pub(crate) table: TableKind,
    pub(crate) at: Option<Millis>,
    pub(crate) cells: TableRow,
}

/// Returns the row of a model call.
pub(crate) fn usage_row(
    call: &ModelCall<'_>,
    book: &PriceBook,
    origin: Option<&SessionOrigin>,
    level: PrivacyLevel,
) -> DatedRow {
    let path = |text: &str| match level {
        PrivacyLevel::Metadata => TableCell::Null,
        _ if text.is_empty() => TableCell::Null,
        _ => TableCell::text(text),
    };
    let tokens = call.tokens;
    let cells = vec![
        call.at.into(),
        TableCell::text(call.session),
        origin.map(|origin| origin.machine.clone()).into(),
        origin.map(|origin| origin.user.clone()).into(),
        path(call.project),
        path(call.branch),
        call.agent.map(|kind| kind.name().to_owned()).into(),
        TableCell::text(call.model),
        tokens.input.into(),
        tokens.output.into(),
        tokens.cache_read.into(),
        tokens.cache_write_5m.into(),
        tokens.cache_write_1h.into(),
        call.web_searches.into(),
        call.fast.into(),
        call.under_reported.into(),
        book.cost(call).into(),
    ];
    DatedRow { table: TableKind::Usage, at: call.at, cells }
}

/// Returns the rows of a session and its sub-agents, except its usage.
pub(crate) fn session_rows(loaded: &OpenSession, level: PrivacyLevel) -> Vec<DatedRow> {
    let id = loaded.file.id.as_str();
    let mut rows = Vec::new();
    let main = LogRows { id, agent: None, session: &loaded.family.main, level };
    main.add_messages(&mut rows);
    main.add_tool_calls(&mut rows);
    main.add_turns(&mut rows);
    for agent in loaded.family.agents.iter() {
        let rows_of = LogRows { id, agent: Some(&agent.id), session: &agent.session, level };
        rows_of.add_messages(&mut rows);
        rows_of.add_tool_calls(&mut rows);
    }
    rows
}

/// Makes the rows of the log of a session or a sub-agent.
struct LogRows<'a> {
    id: &'a str,
    agent: Option<&'a str>,
    session: &'a Session,
    level: PrivacyLevel,
}

impl LogRows<'_> {
    /// Returns the size and the content of a text, if the level includes texts.
    fn text(&self, text: Option<Cow<'_, str>>) -> [TableCell; 2] {
        match text.filter(|_| self.level != PrivacyLevel::Metadata) {
            Some(text) => [text.len().into(), text.into_owned().into()],
            None => [TableCell::Null, TableCell::Null],
        }
    }

    /// Returns whether a line of the main log belongs to a sub-agent, which has rows of its own.
    fn is_of_agent(&self, idx: EntryIndex) -> bool {
        self.agent.is_none() && self.session.is_sidechain(idx)
    }

    fn add_messages(&self, rows: &mut Vec<DatedRow>) {
        let mut seen = HashSet::new();
        let mut replies = HashSet::new();
        for (idx, entry) in self.session.entries().enumerated() {
            if self.is_of_agent(idx) {
                continue;
            }
            let uuid = entry.uuid();
            let row = if let Some(place) = self.session.reply_of(idx) {
                if !replies.insert(place) {
                    continue;
                }
                let reply = &self.session.replies()[place];
                let blocks = reply.blocks(self.session).map(|(_, block)| block);
                let texts: Vec<_> =
                    blocks.filter(|block| block.is(value::TEXT)).filter_map(|block| block.text()).collect();
                let kind = if reply.is_synthetic() { "synthetic" } else { "reply" };
                let text = Some(Cow::Owned(texts.join("\n")));
                let calls = reply.calls.len();
                ("assistant", kind, reply.id.clone(), reply.model.as_deref().map(str::to_owned), calls, text)
            } else if let Some(input) = self.session.input(idx) {
                let is_copy = uuid.as_ref().is_some_and(|uuid| !seen.insert(uuid.clone()));
                if is_copy || input == InputKind::ToolResult {
                    continue;
                }
                ("user", input.name(), None, None, 0, self.input_text(idx))
            } else {
                continue;
            };
            let (role, kind, message_id, model, calls, text) = row;
            let at = self.session.timestamp(idx);
            let [bytes, text] = self.text(text);
            let cells = vec![
                at.into(),
                TableCell::text(self.id),
                self.agent.map(str::to_owned).into(),
                entry.at().line_no.into(),
                uuid.map(Cow::into_owned).into(),
                message_id.into(),
                TableCell::text(role),
                TableCell::text(kind),
                model.into(),
                calls.into(),
                bytes,
                text,
            ];
            rows.push(DatedRow { table: TableKind::Messages, at, cells });
        }
    }

    fn input_text(&self, idx: EntryIndex) -> Option<Cow<'_, str>> {
        let content = || Some(self.session.entries()[idx].message()?.content()?.text());
        self.session.steering_prompt(idx).or_else(content)
    }

    fn add_tool_calls(&self, rows: &mut Vec<DatedRow>) {
        for call in self.session.tool_calls().iter().filter(|call| !self.is_of_agent(call.entry_idx)) {
            let at = self.session.timestamp(call.entry_idx);
            let input = call.block(self.session).and_then(|block| block.input());
            let [input_bytes, input] = self.text(input.map(|input| Cow::Borrowed(input.raw())));
            let result = call.result(self.session).and_then(|block| block.content());
            let [result_bytes, result] = self.text(result.map(|content| content.text()));
            let cells = vec![
                at.into(),
                TableCell::text(self.id),
                self.agent.map(str::to_owned).into(),
                self.session.entries()[call.entry_idx].at().line_no.into(),
                TableCell::text(&call.id),
                self.session.replies()[call.reply].id.clone().into(),
                TableCell::text(&call.name),
                TableCell::text(call.outcome(self.session).name()),
                call.duration(self.session).into(),
                input_bytes,
                result_bytes,
                input,
                result,
            ];
            rows.push(DatedRow { table: TableKind::ToolCalls, at, cells });
        }
    }

    fn add_turns(&self, rows: &mut Vec<DatedRow>) {
        for turn in self.session.turns().iter() {
            let span = turn.span(self.session);
            let at = span.map(|(start, _)| start);
            let calls = turn.tool_calls(self.session);
            let is_failed =
                |call: &&CallIndex| self.session.tool_calls()[**call].outcome(self.session).is_error();
            let [_, prompt] = self.text(turn.prompt.and_then(|idx| self.input_text(idx)));
            let cells = vec![
                at.into(),
                TableCell::text(self.id),
                turn.number.into(),
                TableCell::text(turn.round.name()),
                span.map(|(start, end)| end - start).into(),
                turn.replies(self.session).len().into(),
                calls.len().into(),
                calls.iter().filter(is_failed).count().into(),
                turn.is_open(self.session).into(),
                prompt,
            ];
            rows.push(DatedRow { table: TableKind::Turns, at, cells });
        }
    }
}
