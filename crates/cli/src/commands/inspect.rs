use std::borrow::Cow;
use std::path::Path;

use rayon::prelude::*;
use threadline_term::{ColumnAlign, TableColumn, TermText, TextLabel, text};
use threadline_view::humanize::{bytes, count};
use threadline_view::{DriftCount, Inventory, NameCounts, wire};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Count the contents of a session or a folder of logs
///
/// Counts lines by type, blocks, stop reasons, models, tools and versions, and lists unknown types and keys
/// with the versions that wrote them.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// Session id, unique prefix, title, `last`, path to a log, or a folder with logs
    #[arg(value_name = "SESSION|FILE|DIR")]
    what: String,
}

/// One log and its inventory.
struct InspectedLog {
    name: String,
    inventory: Inventory,
}

pub(crate) fn run(cx: &Context, args: &InspectArgs) -> Result<CommandOutcome, CommandError> {
    let logs = if Path::new(&args.what).is_dir() {
        threadline_app::logs_below(Path::new(&args.what))?
    } else {
        vec![cx.app.find(&args.what)?.path]
    };
    let progress = cx.ui.progress("reading log", logs.len());
    let inspected: Vec<_> = logs
        .par_iter()
        .map(|path| {
            let inspected = inspect(path);
            progress.step();
            inspected
        })
        .collect();
    drop(progress);
    let mut outcome = CommandOutcome::Done;
    let mut found = Vec::new();
    for result in inspected {
        match result {
            Ok(inspected) => found.push(inspected),
            Err(error) => {
                cx.ui.warn(error.to_string().trim_start_matches("error: ").trim_end());
                outcome = CommandOutcome::Partial;
            }
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

fn inspect(path: &Path) -> Result<InspectedLog, CommandError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let session = threadline_app::read_session(path, &name)?;
    let size = std::fs::metadata(path)?.len();
    Ok(InspectedLog { inventory: Inventory::of(&session, size), name })
}

/// Renders the tables: one of sessions, then one per group of counts.
fn render(cx: &Context, found: &[InspectedLog], whole: &Inventory) -> TermText {
    let page = cx.ui.page();
    let mut out = session_table(cx, found, whole);
    let families: [(&str, &NameCounts); 9] = [
        ("Types", &whole.types),
        ("System subtypes", &whole.system_subtypes),
        ("Progress types", &whole.progress_types),
        ("Attachment types", &whole.attachment_types),
        ("Content blocks", &whole.block_types),
        ("Stop reasons", &whole.stop_reasons),
        ("Models", &whole.models),
        ("Tools", &whole.tools),
        ("Versions", &whole.versions),
    ];
    for (name, counts) in families.into_iter().filter(|(_, counts)| !counts.is_empty()) {
        out += text!("\n{}\n", page.paint(TextLabel::Title, name));
        let mut rows: Vec<_> = counts.iter().collect();
        rows.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
        for (name, n) in rows {
            out += text!("{:>12}  {name}\n", count(*n));
        }
    }
    for (title, unknown) in [("Unknown types", &whole.unknown_types), ("Unknown keys", &whole.unknown_keys)] {
        if unknown.is_empty() {
            continue;
        }
        out += text!("\n{}\n", page.paint(TextLabel::Warning, title));
        for (name, drift) in unknown {
            out += text!("{:>12}  {name}  {}\n", count(drift.count), versions(drift));
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
        number("size"),
        number("lines"),
        TableColumn { drop_order: 3, ..number("bad") },
        TableColumn { drop_order: 5, ..number("user") },
        TableColumn { drop_order: 4, ..number("assistant") },
        number("turns"),
        number("calls"),
        TableColumn { drop_order: 10, ..number("results") },
        TableColumn { drop_order: 8, ..number("unanswered") },
        TableColumn { drop_order: 9, ..number("orphans") },
        TableColumn { drop_order: 2, ..number("branches") },
        TableColumn { drop_order: 7, ..number("compactions") },
        number("agents"),
    ];
    let row = |name: &str, inventory: &Inventory| {
        let of = |name: &str| inventory.types.get(name).copied().unwrap_or(0);
        let versions: Vec<_> = inventory.versions.keys().map(|version| &**version).collect();
        let versions = match versions[..] {
            [] => "–".to_owned(),
            [first, .., last] if versions.len() > 2 => format!("{first} … {last}"),
            _ => versions.join(", "),
        };
        let mut row = vec![name.to_owned(), versions, bytes(inventory.bytes)];
        let numbers = [
            inventory.lines,
            inventory.bad_lines,
            of("user"),
            of("assistant"),
            inventory.turns,
            inventory.tool_calls,
            inventory.tool_results,
            inventory.unanswered_calls,
            inventory.orphan_results,
            inventory.branches,
            inventory.compactions,
            inventory.agents.len() as u64,
        ];
        row.extend(numbers.into_iter().map(count));
        row
    };
    let mut rows: Vec<Vec<String>> = found.iter().map(|one| row(&one.name, &one.inventory)).collect();
    if found.len() != 1 {
        rows.push(row(&format!("{} files", count(whole.files)), whole));
    }
    cx.ui.table(&columns, &rows)
}
