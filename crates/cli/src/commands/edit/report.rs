//! Renders a plan: removed, changed and added lines, and how much smaller the result is.

use std::collections::BTreeMap;

use threadline_app::Mask;
use threadline_app::edit::PlannedEdit;
use threadline_edit::{ChangeGroup, ChangeKind, EditPlan, SideFileOp};
use threadline_entry::{Entry, Finding, Kind, key, value};
use threadline_term::{
    ColumnAlign, TableColumn, TermPage, TermText, TextLabel, table, text, truncate, visible, visible_name,
};
use threadline_view::humanize::{bytes, count, short_count};
use threadline_view::line_title;
use threadline_view::wire::{EditObject, FindingObject};

use crate::context::Context;
use crate::error::CommandError;
use crate::ui::OutputStream;

/// Maximum number of turns and findings without --diff.
const SHOWN: usize = 12;

/// Shows a plan, or, with a receipt, the applied edit.
pub(super) fn show(
    cx: &Context,
    edit: &PlannedEdit<'_>,
    receipt: Option<&str>,
    diff: bool,
) -> Result<(), CommandError> {
    if cx.json {
        return json(cx, edit, receipt);
    }
    let page = cx.ui.page();
    let plan = edit.plan();
    let mut out = if diff { cx.ui.paged_output() } else { cx.ui.output() };
    let mask = cx.app.session_mask(&[edit.source_path().to_owned()]);
    write_head(&mut out, cx, edit, &mask)?;
    write_turns(&mut out, cx, plan, diff, &mask)?;
    write_reasons(&mut out, page, plan)?;
    write_side_files(&mut out, page, plan)?;
    write_findings(&mut out, page, edit.findings(), diff)?;
    if diff {
        super::diff::write(&mut out, cx, edit, &mask)?;
    }
    out.finish()?;
    Ok(())
}

fn json(cx: &Context, edit: &PlannedEdit<'_>, receipt: Option<&str>) -> Result<(), CommandError> {
    let plan = edit.plan();
    let log = edit.source_path().to_string_lossy();
    let [lines_removed, lines_changed, lines_added] = plan.counts();
    let source = plan.session().id().unwrap_or_default();
    let target = plan.target_id().unwrap_or_default();
    let path = edit.path().to_string_lossy();
    let findings: Vec<_> = edit.findings().collect();
    let mut answer = cx.ui.output();
    answer.json(&EditObject {
        operation: edit.operation().name(),
        source: &source,
        target: &target,
        path: &path,
        lines_removed,
        lines_changed,
        lines_added,
        tokens_before: plan.tokens_before(),
        tokens_after: plan.tokens_after(),
        compatible_versions: edit.claude_code_versions().iter().map(ToString::to_string).collect(),
        receipt,
        findings: findings.iter().map(|finding| FindingObject::new(finding, &log)).collect(),
    })?;
    answer.finish()?;
    Ok(())
}

fn write_head(
    out: &mut OutputStream,
    cx: &Context,
    edit: &PlannedEdit<'_>,
    mask: &Mask,
) -> std::io::Result<()> {
    let page = cx.ui.page();
    let plan = edit.plan();
    let session = plan.session();
    let source = session.id().unwrap_or_default();
    let title = session
        .title()
        .filter(|_| !edit.hides_content())
        .map(|title| format!(" “{}”", one_line(&mask.text(&title), 60)))
        .unwrap_or_default();
    let destination = match edit.new_session() {
        Some(id) if edit.path().parent() != edit.source_path().parent() => {
            let folder = edit.path().parent().unwrap_or(edit.path());
            format!("a new session {id} in {}", visible_name(&folder.to_string_lossy()))
        }
        Some(id) => format!("a new session {id}"),
        None if edit.path() != edit.source_path() => {
            visible_name(&edit.path().to_string_lossy()).into_owned()
        }
        None => "in place".to_owned(),
    };
    let name = page.paint(TextLabel::Title, format!("{} {source}{title}", edit.operation()));
    writeln!(out, "{name} {}", page.paint(TextLabel::Dim, format!("→ {destination}")))?;
    let [removed, changed, added] = plan.counts();
    let lines =
        |n: u64, word: &str, label| (n > 0).then(|| page.paint(label, format!("{} {word}", count(n))));
    let changes: Vec<TermText> = [
        lines(removed, "removed", TextLabel::Removed),
        lines(changed, "changed", TextLabel::Warning),
        lines(added, "added", TextLabel::Added),
    ]
    .into_iter()
    .flatten()
    .collect();
    let changes = match changes.is_empty() {
        true => TermText::new(),
        false => text!("  ({})", TermText::join(changes, &", ".into())),
    };
    writeln!(out, "  lines   {} → {}{changes}", count(plan.n_lines_before()), count(plan.len() as u64))?;
    let (before, after) = (plan.tokens_before(), plan.tokens_after());
    writeln!(out, "  tokens  ≈{} → ≈{}{}", count(before), count(after), share(page, before, after))?;
    let (before, after) = (edit.size_before(), plan.digest().length);
    writeln!(out, "  size    {} → {}{}", bytes(before), bytes(after), share(page, before, after))?;
    if let [oldest, .., newest] = edit.claude_code_versions() {
        let alike = format!("  resume  same in Claude Code {oldest} to {newest}");
        writeln!(out, "{}", page.paint(TextLabel::Dim, &alike))?;
    }
    Ok(())
}

/// The change in percent; nothing if it is small.
fn share(page: TermPage, before: u64, after: u64) -> TermText {
    if before == 0 || before == after {
        return TermText::new();
    }
    let share = (after as f64 / before as f64 - 1.0) * 100.0;
    if share.abs() < 0.5 {
        return TermText::new();
    }
    page.paint(TextLabel::Dim, format!("  ({share:+.0} %)"))
}

fn write_turns(
    out: &mut OutputStream,
    cx: &Context,
    plan: &EditPlan<'_>,
    all: bool,
    mask: &Mask,
) -> std::io::Result<()> {
    let page = cx.ui.page();
    let turns = plan.turns();
    if turns.is_empty() {
        return Ok(());
    }
    let right =
        |name| TableColumn { name, align: ColumnAlign::Right, can_shrink: false, ..TableColumn::default() };
    let columns = [
        right("turn"),
        right("lines"),
        right("tokens"),
        right("bytes"),
        TableColumn { name: "prompt", align: ColumnAlign::Left, can_shrink: true, ..TableColumn::default() },
    ];
    let shown = if all { turns.len() } else { SHOWN };
    let pair = |(before, after): (u64, u64), format: fn(u64) -> String| {
        if before == after { format(before) } else { format!("{} → {}", format(before), format(after)) }
    };
    let rows: Vec<Vec<String>> = turns
        .iter()
        .take(shown)
        .map(|turn| {
            let prompt = turn.prompt.clone().and_then(line_title).unwrap_or_default();
            vec![
                turn.number.to_string(),
                pair(turn.lines, count),
                pair(turn.tokens, short_count),
                pair(turn.bytes, bytes),
                one_line(&mask.text(&prompt), 80),
            ]
        })
        .collect();
    writeln!(out)?;
    write!(out, "{}", table(page, &columns, &rows))?;
    more(out, page, turns.len(), shown, "turns")
}

/// Writes how many are not shown.
fn more(out: &mut OutputStream, page: TermPage, all: usize, shown: usize, what: &str) -> std::io::Result<()> {
    if all <= shown {
        return Ok(());
    }
    writeln!(
        out,
        "{}",
        page.paint(TextLabel::Dim, format!("  and {} more {what}; --diff shows all", all - shown))
    )
}

/// Writes the changes by reason: the number of lines, and the first line numbers.
fn write_reasons(out: &mut OutputStream, page: TermPage, plan: &EditPlan<'_>) -> std::io::Result<()> {
    let groups = plan.changes_by_reason();
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for ChangeGroup { kind, why, count: n, line_nos: mut lines } in groups {
        lines.truncate(4);
        let (sign, label) = match kind {
            ChangeKind::Removed => ("-", TextLabel::Removed),
            ChangeKind::Changed => ("~", TextLabel::Warning),
            ChangeKind::Added => ("+", TextLabel::Added),
        };
        let named: Vec<String> = lines.iter().map(u64::to_string).collect();
        let dots = if n > lines.len() && !lines.is_empty() { ", …" } else { "" };
        let word = if lines.len() == 1 && n == 1 { "line" } else { "lines" };
        let place =
            if lines.is_empty() { String::new() } else { format!(" ({word} {}{dots})", named.join(", ")) };
        let head = page.paint(label, format!("  {sign} {:>6}", count(n as u64)));
        writeln!(out, "{head}  {}{}", visible(&why), page.paint(TextLabel::Dim, &place))?;
    }
    Ok(())
}

fn write_side_files(out: &mut OutputStream, page: TermPage, plan: &EditPlan<'_>) -> std::io::Result<()> {
    let mut files_by_folder: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for side in plan.side_files() {
        let (what, path) = match side {
            SideFileOp::Copy { to, .. } | SideFileOp::CopyLog { to, .. } => ("copied", to),
            SideFileOp::Change { path, .. } => ("changed", path),
            SideFileOp::Move { to, .. } => ("moved", to),
            SideFileOp::Create { path, .. } | SideFileOp::CreateLog { path, .. } => ("made", path),
            SideFileOp::Remove { path } => ("removed", path),
        };
        let folder = path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        *files_by_folder.entry((what, folder)).or_default() += 1;
    }
    for ((what, folder), n) in files_by_folder {
        let files = if n == 1 { "1 file".to_owned() } else { format!("{} files", count(n)) };
        writeln!(out, "  {files} {what} in {}", page.paint(TextLabel::Dim, visible(&folder)))?;
    }
    for note in plan.side_notes() {
        writeln!(out, "    {}", visible(note))?;
    }
    Ok(())
}

fn write_findings<'f>(
    out: &mut OutputStream,
    page: TermPage,
    findings: impl Iterator<Item = &'f Finding>,
    all: bool,
) -> std::io::Result<()> {
    let mut findings = findings.peekable();
    if findings.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "\n  {}", page.paint(TextLabel::Warning, "problems in the session"))?;
    let limit = if all { usize::MAX } else { SHOWN };
    let mut n_shown = 0;
    for finding in findings.by_ref().take(limit) {
        n_shown += 1;
        let place = finding.at.map_or(String::new(), |at| format!("line {}: ", at.line_no));
        writeln!(out, "    {place}{}: {}", finding.code, visible_name(&finding.message))?;
    }
    more(out, page, n_shown + findings.count(), n_shown, "findings")
}

/// A short description of a line.
pub(super) fn describe(entry: &Entry) -> String {
    let kind = entry.type_name().unwrap_or_else(|| "?".into()).into_owned();
    let message = entry.message();
    let block = message.and_then(|message| message.blocks().next());
    let (what, text) = match block {
        Some(block) => {
            let kind = block.kind().unwrap_or_default().into_owned();
            let text = match &*kind {
                value::TOOL_USE => block.name().unwrap_or_default().into_owned(),
                value::TOOL_RESULT => {
                    block.content().map(|content| content.text().into_owned()).unwrap_or_default()
                }
                "thinking" => block.thinking().unwrap_or_default().into_owned(),
                _ => block.text().unwrap_or_default().into_owned(),
            };
            (kind, text)
        }
        None if entry.kind() == Kind::Bad => (String::new(), entry.text().to_owned()),
        None => {
            let text =
                message.and_then(|message| message.content()).map(|content| content.text().into_owned());
            let keys = [
                key::CUSTOM_TITLE,
                key::AI_TITLE,
                key::TAG,
                key::SUMMARY,
                key::SUBTYPE,
                key::OPERATION,
                key::LAST_PROMPT,
            ];
            let label = || keys.iter().find_map(|key| entry.get(key)?.as_str()).map(Into::into);
            (String::new(), text.or_else(label).unwrap_or_default())
        }
    };
    format!("{kind} {what} {}", one_line(&text, 72)).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text on one line of at most `width` columns.
pub(super) fn one_line(text: &str, width: usize) -> String {
    truncate(&text.split_whitespace().take(width).collect::<Vec<_>>().join(" "), width)
}
