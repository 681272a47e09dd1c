use std::borrow::Cow;
use std::path::Path;

use rayon::prelude::*;
use threadline_app::{InspectedLog, inspect_log, logs_of_agents};
use threadline_entry::Millis;
use threadline_term::{ColumnAlign, TableColumn, TermText, TextLabel, text, visible_name};
use threadline_view::humanize::{bytes, count, minute};
use threadline_view::{DriftCount, Inventory, NameCounts, SessionCounts, wire};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Count the contents of a session or a folder of logs
///
/// Counts lines by type, blocks, stop reasons, models, tools and versions, and lists unknown types and keys
/// with the versions that wrote them. Turns, errors, tool calls and sub-agents are those of `list`: the
/// session's, with its sub-agents.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// Session id, unique prefix, title, `last`, path to a log, or a folder with logs
    #[arg(value_name = "SESSION|FILE|DIR")]
    what: String,
}

pub(crate) fn run(cx: &Context, args: &InspectArgs) -> Result<CommandOutcome, CommandError> {
    let logs = if Path::new(&args.what).is_dir() {
        threadline_app::logs_below(Path::new(&args.what))?
    } else {
        vec![cx.app.find(&args.what)?.path]
    };
    let of_agents = logs_of_agents(&logs);
    let progress = cx.ui.progress("reading log", logs.len());
    let inspected: Vec<_> = logs
        .par_iter()
        .map(|path| {
            let inspected = inspect_log(path, of_agents.contains(path));
            progress.step();
            inspected
        })
        .collect();
    drop(progress);
    let mut outcome = CommandOutcome::Done;
    let mut found = Vec::new();
    for result in inspected {
        match result {
            Ok(inspected) => {
                outcome = cx.warn_unread(&inspected.unread, outcome);
                found.push(inspected);
            }
            Err(error) => outcome = cx.warn_unread(&[error], outcome),
        }
    }
    let whole = match &found[..] {
        [only] => Cow::Borrowed(&only.inventory),
        all => Cow::Owned(
            all.iter().map(|one| one.inventory.clone()).fold(Inventory::default(), Inventory::merge),
        ),
    };
    if cx.json {
        let mut answer = cx.ui.output();
        answer.json(&wire::InventoryObject::from(&*whole))?;
        answer.finish()?;
    } else {
        let mut answer = cx.ui.paged_output();
        answer.text(&render(cx, &found, &whole))?;
        answer.finish()?;
    }
    Ok(outcome)
}

/// Renders the tables: one of sessions, then one per group of counts.
fn render(cx: &Context, found: &[InspectedLog], whole: &Inventory) -> TermText {
    let page = cx.ui.page();
    let mut out = session_table(cx, found, whole);
    let no_tools = NameCounts::default();
    let families: [(&str, &NameCounts); 9] = [
        ("Types", &whole.types),
        ("System subtypes", &whole.system_subtypes),
        ("Progress types", &whole.progress_types),
        ("Attachment types", &whole.attachment_types),
        ("Content blocks", &whole.block_types),
        ("Stop reasons", &whole.stop_reasons),
        ("Models", &whole.models),
        ("Tools", whole.session.as_ref().map_or(&no_tools, |session| &session.tools)),
        ("Versions", &whole.versions),
    ];
    for (name, counts) in families.into_iter().filter(|(_, counts)| !counts.is_empty()) {
        out += text!("\n{}\n", page.paint(TextLabel::Title, name));
        let mut rows: Vec<_> = counts.iter().collect();
        rows.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
        for (name, n) in rows {
            out += text!("{:>12}  {}\n", count(*n), visible_name(name));
        }
    }
    for (title, unknown) in [("Unknown types", &whole.unknown_types), ("Unknown keys", &whole.unknown_keys)] {
        if unknown.is_empty() {
            continue;
        }
        out += text!("\n{}\n", page.paint(TextLabel::Warning, title));
        for (name, drift) in unknown {
            out += text!(
                "{:>12}  {}  {}\n",
                count(drift.count),
                visible_name(name),
                visible_name(&versions(drift))
            );
        }
    }
    out
}

fn versions(drift: &DriftCount) -> String {
    match (drift.versions.first(), drift.versions.last()) {
        (Some(first), Some(last)) if first != last => format!("({first} … {last})"),
        (Some(only), _) => format!("({only})"),
        _ => String::new(),
    }
}

fn session_table(cx: &Context, found: &[InspectedLog], whole: &Inventory) -> TermText {
    let number = |name: &'static str| TableColumn {
        name,
        align: ColumnAlign::Right,
        can_shrink: false,
        ..TableColumn::default()
    };
    let columns = [
        TableColumn { name: "session", align: ColumnAlign::Left, can_shrink: true, ..TableColumn::default() },
        TableColumn { drop_order: 6, ..TableColumn::text("versions") },
        TableColumn { can_shrink: false, drop_order: 7, ..TableColumn::text("started") },
        TableColumn { can_shrink: false, drop_order: 11, ..TableColumn::text("last active") },
        number("size"),
        number("lines"),
        TableColumn { drop_order: 3, ..number("bad") },
        TableColumn { drop_order: 5, ..number("user") },
        TableColumn { drop_order: 4, ..number("assistant") },
        number("turns"),
        TableColumn { drop_order: 1, ..number("errors") },
        number("tool calls"),
        TableColumn { drop_order: 10, ..number("results") },
        TableColumn { drop_order: 8, ..number("unanswered") },
        TableColumn { drop_order: 9, ..number("orphans") },
        TableColumn { drop_order: 2, ..number("branches") },
        TableColumn { drop_order: 7, ..number("compactions") },
        number("sub-agents"),
    ];
    let zone = cx.zone();
    let row = |name: &str, inventory: &Inventory| {
        let of = |name: &str| inventory.types.get(name).copied().unwrap_or(0);
        let versions: Vec<_> = inventory.versions.keys().map(|version| &**version).collect();
        let versions = match versions[..] {
            [] => "–".to_owned(),
            [first, .., last] if versions.len() > 2 => format!("{first} … {last}"),
            _ => versions.join(", "),
        };
        // The figures of a sub-agent's log are part of those of its session.
        let session = inventory.session.as_ref();
        let none = || "–".to_owned();
        let time = |at: fn((Millis, Millis)) -> Millis| {
            session.and_then(|session| session.active).map_or_else(none, |active| minute(at(active), &zone))
        };
        let figure = |value: fn(&SessionCounts) -> u64| session.map_or_else(none, |of| count(value(of)));
        vec![
            name.to_owned(),
            versions,
            time(|(started, _)| started),
            time(|(_, last_active)| last_active),
            bytes(inventory.bytes),
            count(inventory.lines),
            count(inventory.bad_lines),
            count(of("user")),
            count(of("assistant")),
            figure(|session| session.turns),
            figure(|session| session.errors),
            figure(SessionCounts::tool_calls),
            count(inventory.tool_results),
            count(inventory.unanswered_calls),
            count(inventory.orphan_results),
            count(inventory.branches),
            count(inventory.compactions),
            figure(|session| session.agents),
        ]
    };
    let mut rows: Vec<Vec<String>> = found.iter().map(|one| row(&one.name, &one.inventory)).collect();
    if found.len() != 1 {
        rows.push(row(&format!("{} files", count(whole.files)), whole));
    }
    cx.ui.table(&columns, &rows)
}
