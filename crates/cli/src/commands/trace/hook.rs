//! `trace hook`: run by Claude Code when a turn ends.

use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use threadline_trace::{Exporter, HookInput, HookLog, HookRun, HttpSender, StateDir, run_hook};
use threadline_usage::PriceBook;
use threadline_view::humanize::plural;

use super::config::{ReceiverArgs, SpanArgs, SpanSettings, TraceVariables, state_root};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Send new turns; runs as a hook of Claude Code
///
/// Reads the hook's JSON from standard input. Writes nothing to standard output, and always exits with 0,
/// so that Claude Code is never interrupted. Results are written to a log file, which `threadline trace
/// status` names. Spans that could not be delivered are sent by a later run.
#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    timeout: f64,

    #[command(flatten)]
    target: ReceiverArgs,

    #[command(flatten)]
    shape: SpanArgs,
}

/// Maximum number of bytes read from stdin.
const MAX_INPUT: u64 = 16 << 20;

pub(crate) fn run(cx: &Context, args: &HookArgs) -> Result<CommandOutcome, CommandError> {
    if io::stdin().is_terminal() {
        return Err(CommandError::new("`trace hook` is run by Claude Code, with JSON on stdin")
            .hint("install the hook: `threadline setup trace`")
            .hint("send a session now: `threadline trace push last`"));
    }
    exit_after(args.timeout() + Duration::from_secs(1), HookLog::open(&state_root(cx)?));
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_INPUT).read_to_end(&mut bytes)?;
    run_with_input(cx, args, &bytes)
}

impl HookArgs {
    /// Returns the time after which the hook gives up.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.timeout).unwrap_or(Duration::from_secs(10))
    }
}

/// Sends the new turns of the session that the input of a hook names.
pub(crate) fn run_with_input(
    cx: &Context,
    args: &HookArgs,
    input: &[u8],
) -> Result<CommandOutcome, CommandError> {
    let root = state_root(cx)?;
    let diary = HookLog::open(&root);
    let (started, timeout) = (Instant::now(), args.timeout());
    let result = export_session(cx, args, input, &diary, started + timeout);
    let took = started.elapsed();
    if let Err(error) = &result {
        write_log(&diary, "ERROR", error);
    }
    if took > timeout {
        write_log(&diary, "WARN", &format!("slow run: {:.1} s", took.as_secs_f64()));
    }
    Ok(CommandOutcome::Done)
}

/// Exits the process after the timeout, even if it is blocked. Undelivered turns stay unsent in the saved
/// state.
fn exit_after(timeout: Duration, diary: HookLog) {
    std::thread::spawn(move || {
        std::thread::sleep(timeout);
        write_log(&diary, "WARN", "deadline exceeded");
        #[expect(clippy::exit, reason = "Claude Code waits for the hook")]
        std::process::exit(0);
    });
}

fn write_log(diary: &HookLog, level: &str, text: &str) {
    // There is nowhere to report a failure.
    let _ = diary.write(Timestamp::now().as_millisecond(), level, text);
}

fn export_session(
    cx: &Context,
    args: &HookArgs,
    input: &[u8],
    diary: &HookLog,
    until: Instant,
) -> Result<(), String> {
    let input = HookInput::parse(input).ok_or("stdin is not the JSON input of a hook")?;
    let variables = TraceVariables::read().map_err(|error| error.to_string())?;
    let target = variables.receiver(&args.target).map_err(|error| error.to_string())?;
    // A mistake in the person's price list is no reason to send nothing.
    let prices = cx.app.prices().unwrap_or_else(|error| {
        write_log(diary, "WARN", &format!("{error}; using the built-in prices"));
        Arc::new(PriceBook::embedded())
    });
    let settings = SpanSettings::new(&args.shape, &variables, prices);
    let states = StateDir::open(&state_root(cx).map_err(|error| error.to_string())?, &target);
    states.prepare(&target).map_err(|error| error.to_string())?;
    let sender = HttpSender::new(target);
    let exporter = Exporter {
        options: settings.span_options(sender.target().dialect),
        receiver: &sender,
        states: Some(&states),
        use_spool: true,
        tries: 2,
        until: Some(until),
        now: Timestamp::now().as_millisecond(),
    };
    match run_hook(&input, &exporter, &states).map_err(|error| error.to_string())? {
        HookRun::Backoff(at) => {
            let at = Timestamp::from_millisecond(at).unwrap_or_default();
            write_log(diary, "INFO", &format!("{}: backing off until {at:.0}", input.session_id));
        }
        HookRun::Done(export) => {
            for export in export {
                match export.result {
                    Ok(exported) if exported.spans > 0 => {
                        let turns = plural(exported.turns as u64, "turn");
                        let spans = plural(exported.spans, "span");
                        write_log(diary, "INFO", &format!("{}: {turns}, {spans}", export.session));
                        if let Some(complaint) = &exported.received.complaint {
                            let refused = plural(exported.received.refused, "span");
                            write_log(
                                diary,
                                "WARN",
                                &format!("{}: {refused} rejected: {complaint}", export.session),
                            );
                        }
                    }
                    Ok(_) => {}
                    Err(error) => write_log(diary, "WARN", &format!("{}: {error}", export.session)),
                }
            }
        }
    }
    Ok(())
}
