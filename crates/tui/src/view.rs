//! The frame: a pure function of the model.

mod approval;

use std::time::Instant;

use threadline_permission::PermissionMode;
use threadline_term::{TermPage, TermText, TextLabel, render_tail, text, truncate, visible, without_colours};
use threadline_view::humanize::{duration, plural, short_count};
use threadline_view::{short_model, short_tool};
use unicode_width::UnicodeWidthStr;

use self::approval::approval_part;
use crate::composer::shown;
use crate::inline_screen::Frame;
use crate::message::{Phase, TodoStatus};
use crate::model::{Model, RunningCall, RunningTurn};

/// The rows of the list of things to do.
const MAX_TODO_ROWS: usize = 10;

/// Lines of the frame, and the cursor in them.
#[derive(Default)]
pub(crate) struct FramePart {
    pub(crate) lines: Vec<TermText>,
    pub(crate) cursor: Option<(usize, usize)>,
}

/// Returns the frame of a model.
pub(crate) fn frame(model: &Model, now: Instant) -> Frame {
    let rows = model.rows.max(3);
    let page = narrow(model.page.get());
    let bottom = match (model.approvals.front(), &model.dialog) {
        (Some(state), _) => approval_part(state, model.approvals.len(), page, rows),
        (None, Some(dialog)) => approval::dialog_part(dialog, page, rows),
        (None, None) => composer_part(model, page, rows, now),
    };
    let room = rows.saturating_sub(bottom.lines.len() + 1);
    let mut top = activity_part(model, page, room, now);
    top.drain(..top.len().saturating_sub(room));
    let mut lines = vec![TermText::new()];
    lines.extend(top);
    if lines.len() > 1 {
        lines.push(TermText::new());
    }
    let offset = lines.len();
    let cursor = bottom.cursor.map(|(row, column)| (row + offset, column));
    lines.extend(bottom.lines);
    // A terminal that is too small shows the end.
    let excess = lines.len().saturating_sub(rows);
    lines.drain(..excess);
    Frame { lines, cursor: cursor.map(|(row, column)| (row.saturating_sub(excess), column)) }
}

/// Returns the page of the frame: one column less than the terminal has, because the width of some
/// characters differs between terminals.
fn narrow(page: TermPage) -> TermPage {
    TermPage { width: page.width.map(|width| width.saturating_sub(1).max(1)), ..page }
}

fn fit(page: TermPage, text: &str) -> String {
    truncate(text, page.width.unwrap_or(80))
}

fn dim(page: TermPage, text: &str) -> TermText {
    page.paint(TextLabel::Dim, fit(page, text))
}

/// Returns the lines about the turn in progress, the list of things to do, and queued prompts.
fn activity_part(model: &Model, page: TermPage, room: usize, now: Instant) -> Vec<TermText> {
    let mut lines = Vec::new();
    let mut below = Vec::new();
    if let Some(turn) = &model.turn {
        let is_asked = |id: &str| model.approvals.iter().any(|state| state.approval.id == id);
        for call in turn.calls.iter().filter(|call| !is_asked(&call.id)) {
            let agent = turn.agents.iter().find(|agent| agent.id == call.id);
            match agent {
                Some(agent) => {
                    let figures = [
                        plural(agent.calls, "call"),
                        format!("{} tokens", short_count(agent.tokens)),
                        elapsed(call.start, now),
                    ];
                    let about = format!("{}  {}", agent.kind, agent.description);
                    below.push(call_line(page, "◦", &about, &figures.join(" · ")));
                    below.push(dim(page, &format!("    {}", visible(&agent.activity))));
                }
                None => below.extend(call_lines(call, page, room, now)),
            }
        }
        // Sub-agents in the background have no running call.
        for agent in turn.agents.iter().filter(|agent| !turn.calls.iter().any(|call| call.id == agent.id)) {
            let about = format!("{}  {}", agent.kind, agent.description);
            below.push(call_line(page, "◦", &about, &visible(&agent.activity)));
        }
        if model.approvals.is_empty() {
            below.push(phase_line(turn, page, now));
        }
    }
    if model.shows_todos && !model.todos.is_empty() {
        below.extend(todo_lines(model, page));
    }
    for prompt in model.queued.shown() {
        below.push(dim(page, &format!("> {} (queued)", visible(&prompt).replace('\n', " "))));
    }
    if let Some(turn) = &model.turn {
        let height = room.saturating_sub(below.len() + 1);
        lines = render_tail(&turn.tail, turn.tail_is_code, page, height);
        if !lines.is_empty() && !below.is_empty() {
            lines.push(TermText::new());
        }
    }
    lines.extend(below);
    lines
}

fn call_line(page: TermPage, mark: &str, about: &str, figures: &str) -> TermText {
    let width = page.width.unwrap_or(80);
    let room = width.saturating_sub(figures.width() + mark.width() + 4).max(8);
    let about = truncate(&visible(about), room);
    text!("{mark} {about}  {}", page.paint(TextLabel::Dim, figures))
}

fn call_lines(call: &RunningCall, page: TermPage, room: usize, now: Instant) -> Vec<TermText> {
    let about = format!("{}  {}", short_tool(&call.name), call.subject.replace('\n', " "));
    let mut lines = vec![call_line(page, "◦", &about, &elapsed(call.start, now))];
    let output = without_colours(&call.output);
    let output: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let height = 5.min(room / 2);
    for line in output.iter().skip(output.len().saturating_sub(height)) {
        lines.push(dim(page, &format!("    {line}")));
    }
    lines
}

fn phase_line(turn: &RunningTurn, page: TermPage, now: Instant) -> TermText {
    let activity = match &turn.phase {
        _ if turn.is_cancelled => "Interrupting".to_owned(),
        Phase::Requesting => "Waiting for the model".to_owned(),
        Phase::Thinking => "Thinking".to_owned(),
        Phase::Replying => "Replying".to_owned(),
        Phase::RunningTools => "Running tools".to_owned(),
        Phase::Compacting => "Compacting the conversation".to_owned(),
        Phase::Retrying { attempt, max_retries, delay, reason } => {
            let left = delay.saturating_sub(now.duration_since(turn.phase_start)).as_secs();
            format!("Retrying in {left} s: {reason}; attempt {attempt} of {max_retries}")
        }
    };
    let mut parts = vec![elapsed(turn.start, now)];
    if turn.output_tokens > 0 {
        parts.push(format!("{} tokens", short_count(turn.output_tokens)));
    }
    if !turn.is_cancelled {
        parts.push("Esc interrupts".to_owned());
        if turn.has_running_command() {
            parts.push("Ctrl-B: background".to_owned());
        }
    }
    let label =
        if matches!(turn.phase, Phase::Retrying { .. }) { TextLabel::Warning } else { TextLabel::Tool };
    let text = fit(page, &format!("· {activity}… {}", parts.join(" · ")));
    match text.split_once("… ") {
        Some((activity, rest)) => {
            page.paint(label, format!("{activity}…")) + " " + page.paint(TextLabel::Dim, rest)
        }
        None => page.paint(label, text),
    }
}

fn elapsed(start: Instant, now: Instant) -> String {
    let seconds = now.duration_since(start).as_secs();
    if seconds < 60 {
        return format!("{seconds} s");
    }
    duration(i64::try_from(seconds * 1000).unwrap_or(i64::MAX))
}

fn todo_lines(model: &Model, page: TermPage) -> Vec<TermText> {
    // Finished items scroll away first.
    let open = model.todos.iter().position(|todo| todo.status != TodoStatus::Completed).unwrap_or(0);
    let last = model.todos.len().saturating_sub(MAX_TODO_ROWS);
    let start = open.saturating_sub(2).min(last);
    let mut lines = Vec::new();
    for todo in model.todos.iter().skip(start).take(MAX_TODO_ROWS) {
        let (mark, label) = match todo.status {
            TodoStatus::Completed => ("☑", Some(TextLabel::Dim)),
            TodoStatus::InProgress => ("▣", Some(TextLabel::Strong)),
            TodoStatus::Pending => ("☐", None),
        };
        let line = fit(page, &format!("{mark} {}", visible(&todo.text)));
        lines.push(label.map_or_else(|| TermText::from(&*line), |label| page.paint(label, &*line)));
    }
    let more = model.todos.len().saturating_sub(start + MAX_TODO_ROWS);
    if more > 0 {
        lines.push(dim(page, &format!("  … {more} more")));
    }
    lines
}

fn composer_part(model: &Model, page: TermPage, rows: usize, now: Instant) -> FramePart {
    let composer = &model.composer;
    if let Some(search) = &composer.search {
        let label = format!("search: {}", visible(&search.words));
        let shown = truncate(search.shown(), page.width.unwrap_or(80).saturating_sub(2));
        let lines = vec![text!("> {shown}"), page.paint(TextLabel::Tool, fit(page, &label))];
        return FramePart { cursor: Some((1, label.width())), lines };
    }
    let mut part = FramePart::default();
    let area = &composer.area;
    let text_rows = area.rows(model.composer_width());
    let (row, column) = area.cursor_in(&text_rows);
    let height = 12.min((rows / 2).max(1));
    let first = row.saturating_sub(height - 1).min(text_rows.len().saturating_sub(height));
    let mark = match area.text().as_bytes().first() {
        Some(b'!') => page.paint(TextLabel::Warning, "> "),
        Some(b'#') => page.paint(TextLabel::Tool, "> "),
        _ => page.paint(TextLabel::Prompt, "> "),
    };
    for (i, range) in text_rows.iter().enumerate().skip(first).take(height) {
        let margin = if i == 0 { mark.clone() } else { "  ".into() };
        part.lines.push(margin + shown(&area.text()[range.clone()]));
    }
    if area.is_empty() {
        let hint = match &model.turn {
            Some(_) if !model.queued.is_empty() => "Up changes the queued prompts",
            Some(_) => "type to queue the next prompt",
            None => "",
        };
        part.lines = vec![mark + page.paint(TextLabel::Dim, hint)];
    }
    part.cursor = Some((row - first, column + 2));
    part.lines.extend(completion_lines(model, page, rows.saturating_sub(part.lines.len() + 2)));
    part.lines.push(status_line(model, page, now));
    part
}

fn completion_lines(model: &Model, page: TermPage, room: usize) -> Vec<TermText> {
    let Some(completion) = &model.composer.completion else { return Vec::new() };
    let height = 8.min(room.max(1));
    let first = completion.selected.saturating_sub(height - 1);
    let items = completion.items.iter().enumerate().skip(first).take(height);
    let width = completion.items.iter().map(|item| item.label.width()).max().unwrap_or(0).min(40);
    items
        .map(|(i, item)| {
            let (mark, label) =
                if i == completion.selected { ("❯", TextLabel::Tool) } else { (" ", TextLabel::Dim) };
            let gap = " ".repeat(width.saturating_sub(item.label.width()));
            let line = format!("{mark} {}{gap}  {}", visible(&item.label), visible(&item.detail));
            page.paint(label, fit(page, line.trim_end()))
        })
        .collect()
}

/// The line at the bottom: mode, model, context, cost.
pub(crate) fn status_line(model: &Model, page: TermPage, now: Instant) -> TermText {
    if let Some(notice) = model.notice(now) {
        return page.paint(TextLabel::Warning, fit(page, notice));
    }
    let mode = match model.permissions.mode() {
        PermissionMode::Default => None,
        PermissionMode::AcceptEdits => Some(("accept edits", TextLabel::Added)),
        PermissionMode::Plan => Some(("plan mode", TextLabel::Tool)),
        PermissionMode::BypassPermissions => Some(("bypass permissions", TextLabel::Error)),
        PermissionMode::DontAsk => Some(("don't ask", TextLabel::Warning)),
    };
    let mut parts = Vec::new();
    if let Some(vi) = &model.composer.vi {
        parts.push(if vi.is_normal { "NORMAL".to_owned() } else { "INSERT".to_owned() });
    }
    if model.stash.is_some() {
        parts.push("a draft is put aside (Ctrl-S)".to_owned());
    }
    if !model.tasks.is_empty() {
        parts.push(format!("{} in the background", plural(model.tasks.len() as u64, "command")));
    }
    if let Some(line) = &model.status_line {
        parts.push(without_colours(line));
    } else {
        parts.extend(facts(model));
    }
    let rest = parts.join(" · ");
    let width = page.width.unwrap_or(80);
    match mode {
        None => page.paint(TextLabel::Dim, truncate(&rest, width)),
        Some((name, label)) => {
            let room = width.saturating_sub(name.width() + 3);
            page.paint(label, name) + page.paint(TextLabel::Dim, format!(" · {}", truncate(&rest, room)))
        }
    }
}

/// Returns model, context and cost.
fn facts(model: &Model) -> Vec<String> {
    if !model.is_open {
        return vec!["opening the session…".to_owned()];
    }
    let name = if model.is_demo { "scripted model" } else { short_model(&model.facts.model) };
    let mut parts = vec![visible(name).into_owned()];
    let window = threadline_api::model_info(&model.facts.model).context_window.max(1);
    if model.context > 0 {
        let left = 100 - (model.context * 100 / window).min(100);
        parts.push(format!("{} tokens, {left} % left", short_count(model.context)));
    }
    if model.cost_usd > 0.0 {
        parts.push(format!("${:.2}", model.cost_usd));
    }
    if model.turn.is_none() && model.context == 0 {
        parts.push("/help".to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use threadline_agent::SharedPermissions;
    use threadline_permission::{Permissions, RuleSet, Workspace};

    use super::*;
    use crate::composer::PromptHistory;
    use crate::message::{AgentMessage, SessionFacts, SubAgentProgress, TodoLine};
    use crate::page::SharedPage;

    fn model(rows: usize, width: usize) -> Model {
        let permissions = Permissions {
            mode: PermissionMode::Default,
            rules: RuleSet::default(),
            workspace: Workspace::default(),
        };
        let page = Arc::new(SharedPage::new(width, false, false));
        let mut model = Model::new(page, rows, SharedPermissions::new(permissions), PromptHistory::default());
        let facts = SessionFacts { model: "claude-sonnet-4-5".to_owned(), ..SessionFacts::default() };
        model.receive(AgentMessage::Opened(facts), Instant::now());
        model
    }

    fn shown(model: &Model, now: Instant) -> String {
        let frame = frame(model, now);
        assert!(frame.lines.len() <= model.rows, "{frame:?}");
        let width = model.page.get().width.unwrap();
        assert!(frame.lines.iter().all(|line| line.width() < width), "{frame:?}");
        frame.lines.iter().map(|line| line.plain().into_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_turn_shows_its_calls_sub_agents_and_time() {
        let now = Instant::now();
        let mut model = model(24, 60);
        model.start_turn(None, now);
        let start = |id: &str, name: &str, subject: &str| AgentMessage::CallStart {
            id: id.to_owned(),
            name: name.to_owned(),
            subject: subject.to_owned(),
        };
        model.receive(start("a", "Agent", ""), now);
        model.receive(start("b", "Bash", "make test"), now);
        model.receive(AgentMessage::CallOutput { id: "b".to_owned(), text: "one\ntwo\n".to_owned() }, now);
        let progress = SubAgentProgress {
            id: "a".to_owned(),
            kind: "Explore".to_owned(),
            description: "find it".to_owned(),
            activity: "Grep sleep".to_owned(),
            calls: 3,
            tokens: 12_345,
            is_finished: false,
        };
        model.receive(AgentMessage::SubAgent(progress), now);
        let todo = TodoLine { text: "#1 Weave".to_owned(), status: TodoStatus::InProgress };
        model.receive(AgentMessage::Todos(vec![todo]), now);
        insta::assert_snapshot!(shown(&model, now + Duration::from_secs(75)), @"

        ◦ Explore  find it  3 calls · 12k tokens · 1 min 15 s
            Grep sleep
        ◦ Bash  make test  1 min 15 s
            one
            two
        · Running tools… 1 min 15 s · Esc interrupts · Ctrl-B: bac…
        ▣ #1 Weave

        > type to queue the next prompt
        sonnet-4-5
        ");
    }

    #[test]
    fn a_retry_counts_down() {
        let now = Instant::now();
        let mut model = model(24, 80);
        model.start_turn(None, now);
        let phase = Phase::Retrying {
            attempt: 2,
            max_retries: 10,
            delay: Duration::from_secs(8),
            reason: "rate limit (429)".to_owned(),
        };
        model.receive(AgentMessage::Phase(phase), now);
        let text = shown(&model, now + Duration::from_secs(3));
        assert!(text.contains("Retrying in 5 s: rate limit (429); attempt 2 of 10…"), "{text}");
        assert_eq!(model.next_change(now), Some(now + Duration::from_secs(1)));
    }

    #[test]
    fn small_terminals_show_the_end_of_everything() {
        let now = Instant::now();
        for (rows, width) in [(3, 10), (5, 20), (8, 30)] {
            let mut model = model(rows, width);
            model.start_turn(None, now);
            let text = "A long reply of several words.\n\nAnd a second paragraph that goes on.";
            model.receive(AgentMessage::Text(text.to_owned()), now);
            model.composer.area.insert("a prompt that is longer than the terminal is wide 错误错误");
            let text = shown(&model, now);
            assert!(text.contains("误\nsonnet"), "{text}");
        }
        assert_eq!(model(24, 80).next_change(now), None, "an idle screen does not change");
    }
}
