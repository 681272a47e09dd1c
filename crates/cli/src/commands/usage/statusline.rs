use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::Value;
use threadline_app::UsageLogs;
use threadline_entry::key;
use threadline_store::SessionFile;
use threadline_usage::{CallGroups, GroupBy, ScanOptions};

use super::Pricing;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Print one line for Claude Code's status line, from its JSON on stdin
///
/// Shows the model, the cost of the session and of today, and the use of the context window. Reads only the
/// session and the logs modified today. `threadline setup statusline` turns it on.
#[derive(Debug, clap::Args)]
pub(crate) struct StatuslineArgs {
    #[command(flatten)]
    pricing: Pricing,
}

pub(super) fn run(cx: &Context, args: &StatuslineArgs) -> Result<CommandOutcome, CommandError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let status: Value = serde_json::from_str(&text).map_err(|error| {
        CommandError::new(format!("stdin is not JSON: {error}"))
            .hint("this command is run by Claude Code; see `threadline usage statusline --help`")
    })?;
    let zone = args.pricing.zone()?;
    let book = args.pricing.book(&cx.app)?;
    let now = Timestamp::now();
    let midnight =
        now.to_zoned(zone.clone()).start_of_day().map_err(|error| CommandError::new(error.to_string()))?;
    let midnight = midnight.timestamp().as_millisecond();

    let day = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(midnight).unwrap_or(0));
    let mut logs = UsageLogs::from(cx.store().logs_since(day));
    let transcript = text_at(&status, "/transcript_path").map(Path::new).filter(|path| path.is_file());
    if let Some(path) = transcript {
        logs.append(UsageLogs::of_session(&SessionFile::at(path)));
    }
    let read = logs.unique().read(ScanOptions::default(), &|| ());
    let session = text_at(&status, "/session_id").unwrap_or_default();
    let of_session = CallGroups::of(&read.calls, GroupBy::Day, &book, &zone, |_, id| id == session).total;
    let of_today =
        CallGroups::of(&read.calls, GroupBy::Day, &book, &zone, |at, _| at.is_some_and(|at| at >= midnight))
            .total;

    let model =
        text_at(&status, "/model/display_name").or_else(|| text_at(&status, "/model/id")).unwrap_or("?");
    let mut line = threadline_term::visible(model).into_owned();
    let _ = write!(line, " · session {}", of_session.cost.short());
    let _ = write!(line, " · today {}", of_today.cost.short());
    let last = read.calls.iter().filter(|call| call.session == session && call.agent.is_none());
    let last = last.max_by_key(|call| call.at).map(|call| call.tokens.context());
    if let Some(context) = context_usage(&status, last) {
        let _ = write!(line, " · context {context}");
    }
    if of_session.unpriced_calls + of_today.unpriced_calls > 0 {
        line.push_str(" · some models unpriced");
    }
    let mut answer = cx.ui.output();
    writeln!(answer, "{line}")?;
    answer.finish()?;
    Ok(CommandOutcome::Done)
}

/// Returns how full the context is, from Claude Code's figures or else from the last call.
fn context_usage(status: &Value, last: Option<u64>) -> Option<String> {
    let window = status.pointer("/context_window");
    let size = window.and_then(|window| window.get("context_window_size")).and_then(Value::as_u64);
    let said = window.and_then(|window| window.get("used_percentage")).and_then(Value::as_f64);
    let usage = window.and_then(|window| window.get("current_usage")).filter(|usage| usage.is_object());
    let used = usage.map(|usage| {
        let counts = [key::INPUT_TOKENS, key::CACHE_CREATION_INPUT_TOKENS, key::CACHE_READ_INPUT_TOKENS];
        counts.iter().filter_map(|key| usage.get(key)?.as_u64()).sum::<u64>()
    });
    match (said, used.or(last), size) {
        (Some(percent), ..) => Some(format!("{percent:.0}%")),
        (None, Some(used), Some(size)) if size > 0 => {
            Some(format!("{:.0}%", used as f64 / size as f64 * 100.0))
        }
        (None, Some(used), _) => Some(format!("{} tokens", threadline_view::humanize::short_count(used))),
        _ => None,
    }
}

fn text_at<'a>(status: &'a Value, pointer: &str) -> Option<&'a str> {
    status.pointer(pointer)?.as_str()
}
