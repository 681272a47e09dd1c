use std::collections::BTreeMap;

use threadline_app::SessionContext;
use threadline_term::{ColumnAlign, TableColumn, TermText, TextLabel, text, visible};
use threadline_view::humanize::{count, duration, plural, share, short_count};
use threadline_view::wire::{ContextObject, context_objects};
use threadline_view::{AgentContext, ContextCall, ContextLedger, WindowItem, WindowPart, short_model};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Show what filled the context window of a session, call by call
///
/// For each model call: the size of the window, what was added since the previous call, and the tokens that
/// were in the cache but not read from it, with the reason: expired, compaction, model switch, or unknown.
/// Then the parts of the largest window, tool output that is never quoted later, and one row per sub-agent,
/// which has a window of its own.
///
/// The log contains the sizes of windows, but not of their parts. Those are estimated from the lengths of
/// texts, scaled to the recorded growth. What no line explains is counted as `system and tools`.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Only calls that missed the cache
    #[arg(long)]
    misses: bool,

    /// The window of a sub-agent: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    agent: Option<String>,

    /// Maximum number of unused outputs
    #[arg(long, value_name = "N", default_value_t = 10)]
    unused: usize,
}

pub(crate) fn run(cx: &Context, args: &ContextArgs) -> Result<CommandOutcome, CommandError> {
    let file = cx.app.find(&args.session)?;
    let loaded = cx.app.load(&file)?;
    let SessionContext { ledger, agents, .. } = loaded.context(args.agent.as_deref())?;
    let lacks_misses = args.misses && ledger.calls.iter().all(|call| call.miss.is_none());
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        let objects = context_objects(&ledger).chain(agents.iter().map(ContextObject::from));
        for object in objects.filter(|object| !args.misses || object.is_miss()) {
            answer.json(&object)?;
        }
    } else if !ledger.calls.is_empty() && !lacks_misses {
        answer.text(&calls(cx, args, &ledger))?;
        answer.text(&largest_window(cx, &ledger))?;
        answer.text(&misses(cx, &ledger))?;
        answer.text(&unused(cx, args, &ledger))?;
    }
    if !cx.json && !agents.is_empty() && !lacks_misses {
        answer.text(&sub_agents(cx, &agents))?;
    }
    answer.finish()?;
    if ledger.calls.is_empty() && agents.iter().all(|agent| agent.n_calls == 0) {
        cx.ui.note("the session has no model call with recorded usage");
        return Ok(cx.warn_unread(&loaded.unread, CommandOutcome::Negative));
    }
    if lacks_misses {
        cx.ui.note("no cache misses");
        return Ok(cx.warn_unread(&loaded.unread, CommandOutcome::Negative));
    }
    if ledger.n_unrecorded > 0 {
        let calls = plural(ledger.n_unrecorded as u64, "call");
        cx.ui.note(&format!("{calls} without recorded usage left out"));
    }
    if !cx.json {
        cx.ui.note("sizes of windows are recorded; those of parts and items are estimates");
    }
    Ok(cx.warn_unread(&loaded.unread, CommandOutcome::Done))
}

/// Shows one row per sub-agent.
fn sub_agents(cx: &Context, agents: &[AgentContext]) -> TermText {
    let row = |agent: &AgentContext| {
        let task = [agent.agent_type.as_deref(), agent.description.as_deref()];
        let task: Vec<&str> = task.into_iter().flatten().collect();
        let missed = match agent.n_misses {
            0 => String::new(),
            n_misses => format!("{} in {}", short_count(agent.missed), plural(n_misses as u64, "call")),
        };
        vec![
            visible(&agent.id).into_owned(),
            count(agent.n_calls as u64),
            count(agent.peak),
            missed,
            agent.spent.short_cost(),
            visible(&task.join(": ")).into_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = agents.iter().map(row).collect();
    let columns = [
        TableColumn { can_shrink: false, ..TableColumn::text("sub-agent") },
        TableColumn::number("calls"),
        TableColumn::number("largest window"),
        TableColumn { can_shrink: false, drop_order: 2, ..TableColumn::text("cache miss") },
        TableColumn { drop_order: 3, ..TableColumn::number("cost") },
        TableColumn { min_width: 10, ..TableColumn::text("task") },
    ];
    text!("\n{}", cx.ui.table(&columns, &rows))
}

/// Returns an item in a few words.
fn item_text(item: &WindowItem) -> String {
    let label = visible(&item.label);
    let name = match &item.part {
        WindowPart::Results(tool) => visible(tool).into_owned(),
        part => part.label().into_owned(),
    };
    let separator = if label.is_empty() { "" } else { " " };
    format!("{name}{separator}{label} {}", short_count(item.tokens))
}

fn calls(cx: &Context, args: &ContextArgs, ledger: &ContextLedger) -> TermText {
    let largest = ledger.calls.iter().map(ContextCall::window).max().unwrap_or(0).max(1);
    let row = |call: &ContextCall| {
        let growth = match call.growth {
            growth if growth < 0 => format!("−{}", short_count(growth.unsigned_abs())),
            growth => format!("+{}", short_count(growth as u64)),
        };
        let bar = "█".repeat((call.window() * 10).div_ceil(largest) as usize);
        let missed = call
            .miss
            .map_or_else(String::new, |miss| format!("{} {}", short_count(miss.tokens), miss.reason.label()));
        let mut added: Vec<String> = call.added.iter().map(item_text).collect();
        if call.is_compacted {
            added.insert(0, "compacted".to_owned());
        }
        vec![
            call.anchor.clone(),
            call.turn.map(|turn| turn.to_string()).unwrap_or_default(),
            call.model.as_deref().map(|model| visible(short_model(model)).into_owned()).unwrap_or_default(),
            count(call.window()),
            growth,
            bar,
            missed,
            added.join(", "),
        ]
    };
    let wanted = ledger.calls.iter().filter(|call| !args.misses || call.miss.is_some());
    let rows: Vec<Vec<String>> = wanted.map(row).collect();
    let columns = [
        TableColumn { can_shrink: false, ..TableColumn::text("call") },
        TableColumn { drop_order: 3, ..TableColumn::number("turn") },
        TableColumn { can_shrink: false, drop_order: 4, ..TableColumn::text("model") },
        TableColumn::number("window"),
        TableColumn::number("growth"),
        TableColumn { can_shrink: false, drop_order: 2, ..TableColumn::text("") },
        TableColumn { min_width: 20, ..TableColumn::text("cache miss") },
        TableColumn { min_width: 20, good_width: 30, weight: 3, ..TableColumn::text("added") },
    ];
    cx.ui.table(&columns, &rows)
}

/// Returns a bar of up to `width` cells. The bar of a value that rounds to none is a thin line.
fn bar(value: u64, most: u64, width: u64) -> String {
    match (value.saturating_mul(width) + most / 2) / most {
        0 if value > 0 => "▏".to_owned(),
        cells => "█".repeat(cells as usize),
    }
}

/// Shows the parts of the largest window.
fn largest_window(cx: &Context, ledger: &ContextLedger) -> TermText {
    let Some(call) = ledger.largest() else { return TermText::default() };
    let mut parts: Vec<(&WindowPart, u64)> =
        call.parts.iter().map(|(part, tokens)| (part, *tokens)).collect();
    parts.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let window = call.window().max(1);
    let row = |(part, tokens): &(&WindowPart, u64)| {
        let share = share(*tokens as f64 / window as f64);
        vec![visible(&part.label()).into_owned(), count(*tokens), share, bar(*tokens, window, 30)]
    };
    let rows: Vec<Vec<String>> = parts.iter().map(row).collect();
    let columns = [
        TableColumn::text("part"),
        TableColumn::number("tokens"),
        TableColumn::number("share"),
        TableColumn { can_shrink: false, drop_order: 1, ..TableColumn::text("") },
    ];
    let title =
        format!("Largest window: {} tokens at {}, by part (estimate)", count(call.window()), call.anchor);
    let page = cx.ui.page();
    text!("\n{}\n{}", page.paint(TextLabel::Title, title), cx.ui.table(&columns, &rows))
}

fn misses(cx: &Context, ledger: &ContextLedger) -> TermText {
    let found = ledger.misses();
    if found.is_empty() {
        return TermText::default();
    }
    let mut pauses: BTreeMap<&str, i64> = BTreeMap::new();
    for miss in ledger.calls.iter().filter_map(|call| call.miss) {
        let pause = pauses.entry(miss.reason.name()).or_default();
        *pause = (*pause).max(miss.pause.unwrap_or(0));
    }
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|(reason, n_calls, tokens)| {
            let pause = duration(pauses.get(reason.name()).copied().unwrap_or(0));
            vec![reason.label().to_owned(), count(*n_calls as u64), count(*tokens), pause]
        })
        .collect();
    let columns = [
        TableColumn::text("cache miss"),
        TableColumn::number("calls"),
        TableColumn::number("tokens"),
        TableColumn { align: ColumnAlign::Right, ..TableColumn::number("longest pause") },
    ];
    text!("\n{}", cx.ui.table(&columns, &rows))
}

fn unused(cx: &Context, args: &ContextArgs, ledger: &ContextLedger) -> TermText {
    if ledger.unused.is_empty() || args.unused == 0 {
        return TermText::default();
    }
    let row = |item: &WindowItem| {
        let tool = match &item.part {
            WindowPart::Results(tool) => visible(tool).into_owned(),
            part => part.label().into_owned(),
        };
        vec![item.anchor.clone(), count(item.tokens), tool, visible(&item.label).into_owned()]
    };
    let rows: Vec<Vec<String>> = ledger.unused.iter().take(args.unused).map(row).collect();
    let columns = [
        TableColumn { can_shrink: false, ..TableColumn::text("result") },
        TableColumn::number("tokens"),
        TableColumn { can_shrink: false, ..TableColumn::text("tool") },
        TableColumn::text("call"),
    ];
    let title = format!(
        "Output of which no line recurs: {} with about {} tokens (estimate)",
        plural(ledger.unused.len() as u64, "result"),
        count(ledger.unused_tokens())
    );
    let page = cx.ui.page();
    text!("\n{}\n{}", page.paint(TextLabel::Title, title), cx.ui.table(&columns, &rows))
}
