//! `trace status`: spans sent, pending and failed.

use jiff::Timestamp;
use threadline_term::{ColumnAlign, TableColumn, TermText};
use threadline_trace::{ExportState, HookLog, StateDir};
use threadline_view::humanize::{bytes, plural};
use threadline_view::wire::SessionStatusObject;

use super::config::state_root;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Show sent, pending and failed spans
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Include completely sent sessions
    #[arg(long, short)]
    all: bool,
}

/// Returns the state of a session for one receiver.
fn session_status(receiver: &str, state: ExportState) -> SessionStatusObject {
    let size = std::fs::metadata(&state.path).map_or(0, |metadata| metadata.len());
    let read = state.mark().map_or(0, |mark| mark.at.byte_offset);
    SessionStatusObject {
        receiver: receiver.to_owned(),
        turns: state.turns,
        spans: state.spans,
        pending_bytes: size.saturating_sub(read),
        pending_spans: state.spool.iter().map(|spooled| spooled.spans).sum(),
        pending_agents: state.pending.len(),
        refused: state.refused,
        sent_at: state.sent_at.and_then(|at| Timestamp::from_millisecond(at).ok()).map(|at| at.to_string()),
        session: state.session,
        path: state.path,
        error: state.error,
    }
}

/// Returns whether the session has errors or pending data. A few bytes after the last turn are normal and do
/// not count.
fn is_notable(session: &SessionStatusObject) -> bool {
    session.error.is_some()
        || session.pending_spans > 0
        || session.pending_agents > 0
        || session.refused > 0
        || session.pending_bytes > 16 << 10
}

pub(crate) fn run(cx: &Context, args: &StatusArgs) -> Result<CommandOutcome, CommandError> {
    let root = state_root(cx)?;
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    let mut has_errors = false;
    for states in StateDir::all(&root) {
        let receiver = states.receiver().unwrap_or_default();
        let lines: Vec<SessionStatusObject> =
            states.sessions().into_iter().map(|state| session_status(&receiver, state)).collect();
        has_errors |= lines.iter().any(|line| line.error.is_some());
        if cx.json {
            for line in &lines {
                answer.json(line)?;
            }
            continue;
        }
        let (turns, spans) = lines.iter().fold((0, 0), |sum, line| (sum.0 + line.turns, sum.1 + line.spans));
        let sessions = plural(lines.len() as u64, "session");
        let (turns, spans) = (plural(turns as u64, "turn"), plural(spans, "span"));
        let refused: u64 = lines.iter().map(|line| line.refused).sum();
        let refused =
            if refused > 0 { format!(", {} rejected", plural(refused, "span")) } else { String::new() };
        writeln!(answer, "{receiver}: {sessions}, {turns}, {spans} sent{refused}")?;
        answer.text(&render(cx, &lines, args.all))?;
    }
    if !cx.json {
        let diary = HookLog::open(&root);
        let tail = diary.tail(5);
        if !tail.is_empty() {
            writeln!(answer, "\n{}:", diary.path().display())?;
            for line in tail {
                writeln!(answer, "  {line}")?;
            }
        }
    }
    answer.finish()?;
    if StateDir::all(&root).is_empty() {
        cx.ui.note("nothing sent yet");
        cx.ui.note("hint: send a session: `threadline trace push last`");
        cx.ui.note("hint: send every new turn: `threadline setup trace`");
    }
    Ok(if has_errors { CommandOutcome::Negative } else { CommandOutcome::Done })
}

fn render(cx: &Context, lines: &[SessionStatusObject], all: bool) -> TermText {
    let shown: Vec<&SessionStatusObject> = lines.iter().filter(|line| all || is_notable(line)).collect();
    if shown.is_empty() {
        return TermText::new();
    }
    let columns = [
        TableColumn {
            name: "session",
            align: ColumnAlign::Left,
            can_shrink: false,
            ..TableColumn::default()
        },
        TableColumn { name: "turns", align: ColumnAlign::Right, can_shrink: false, ..TableColumn::default() },
        TableColumn { name: "spans", align: ColumnAlign::Right, can_shrink: false, ..TableColumn::default() },
        TableColumn {
            name: "pending",
            align: ColumnAlign::Left,
            can_shrink: false,
            ..TableColumn::default()
        },
        TableColumn { name: "error", align: ColumnAlign::Left, can_shrink: true, ..TableColumn::default() },
    ];
    let row = |line: &&SessionStatusObject| {
        let mut waiting = Vec::new();
        if line.pending_spans > 0 {
            waiting.push(plural(line.pending_spans, "span"));
        }
        if line.pending_agents > 0 {
            waiting.push(plural(line.pending_agents as u64, "sub-agent"));
        }
        if line.pending_bytes > 0 {
            waiting.push(bytes(line.pending_bytes));
        }
        let error = line.error.clone().unwrap_or_default();
        let session = line.session.clone();
        vec![session, line.turns.to_string(), line.spans.to_string(), waiting.join(", "), error]
    };
    cx.ui.table(&columns, &shown.iter().map(row).collect::<Vec<_>>())
}
