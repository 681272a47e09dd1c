use std::collections::BTreeSet;

use threadline_app::compare::{
    CompareError, ComparedConversation, ComparedFile, ComparedPrompt, Comparison, FileRelation,
};
use threadline_entry::Millis;
use threadline_term::{ColumnAlign, TableColumn, TermText, TextLabel, text, visible};
use threadline_view::humanize::{count, duration, line_change, minute, plural, short_id};
use threadline_view::{FileChange, Hunk, shell_word, short_model};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Compare two sessions, or two branches of one
///
/// Shows prompts, tools, files, tokens, cost and time side by side. `SESSION#m42` is the abandoned branch
/// that contains line 42, from the beginning of the session. --diff shows the differences between the files
/// that the two produced.
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Session id, unique prefix, title, `last`, or path to a log; append `#m42` for a branch
    a: String,

    /// The session or branch to compare it with
    b: String,

    /// Show the differences between the files that they produced
    ///
    /// For a file that only one of them changed, shows that change.
    #[arg(long)]
    diff: bool,
}

impl From<CompareError> for CommandError {
    fn from(error: CompareError) -> Self {
        match error {
            CompareError::App(error) => error.into(),
            CompareError::NoBranch { ref session, .. } => {
                let hint = format!("`threadline show {}` lists abandoned branches last", shell_word(session));
                Self::new(error.to_string()).hint(hint)
            }
            error => Self::new(error.to_string()),
        }
    }
}

pub(crate) fn run(cx: &Context, args: &CompareArgs) -> Result<CommandOutcome, CommandError> {
    let (a, b) = (cx.app.find_conversation(&args.a)?, cx.app.find_conversation(&args.b)?);
    let comparison = cx.app.compare([&a, &b])?;
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        answer.json(&comparison.object())?;
    } else if args.diff {
        for file in &comparison.files {
            answer.patch(cx.ui.page(), &file.patch())?;
        }
    } else {
        answer.text(&render(cx, &comparison))?;
    }
    answer.finish()?;
    for (letter, side) in ["A", "B"].iter().zip(&comparison.sides).filter(|_| !cx.json) {
        for note in side.notes() {
            cx.ui.note(&format!("{letter}: {note}"));
        }
    }
    if !cx.json && !args.diff && !comparison.files.is_empty() {
        cx.ui.note("--diff shows the differences between the files");
    }
    Ok(cx.warn_unread(&comparison.unread, CommandOutcome::Done))
}

fn render(cx: &Context, comparison: &Comparison) -> TermText {
    let page = cx.ui.page();
    let [a, b] = &comparison.sides;
    let mut out = TermText::default();
    for (letter, side) in [("A", a), ("B", b)] {
        let id = short_id(&side.session.id);
        let branch = match &side.branch {
            Some(anchor) => format!("#{anchor} (abandoned branch)"),
            None if side.n_other_branches > 0 => " (active branch)".to_owned(),
            None => String::new(),
        };
        let title = visible(side.title.as_deref().unwrap_or_default()).into_owned();
        let title = page.wrap(&title, 20).into_iter().next().unwrap_or_default();
        out += text!("{}  {id}{branch}  {title}\n", page.paint(TextLabel::Strong, letter));
    }
    out += text!("\n{}", figures(cx, comparison));
    out += tools(cx, a, b);
    out += files(cx, &comparison.files);
    out += prompts(cx, comparison);
    out
}

fn columns(first: &'static str) -> [TableColumn; 4] {
    [
        TableColumn::text(first),
        TableColumn::number("A"),
        TableColumn::number("B"),
        TableColumn::number("B − A"),
    ]
}

fn figures(cx: &Context, comparison: &Comparison) -> TermText {
    let [a, b] = &comparison.sides;
    let number = |name: &str, value: &dyn Fn(&ComparedConversation) -> u64| {
        let (a, b) = (value(a), value(b));
        vec![name.to_owned(), count(a), count(b), difference(a as i64, b as i64, &|n| count(n as u64))]
    };
    let time = |name: &str, value: &dyn Fn(&ComparedConversation) -> Millis| {
        let (a, b) = (value(a), value(b));
        vec![name.to_owned(), duration(a), duration(b), difference(a, b, &duration)]
    };
    let plain = |name: &str, value: &dyn Fn(&ComparedConversation) -> String| {
        vec![name.to_owned(), value(a), value(b), String::new()]
    };
    let models = |side: &ComparedConversation| {
        let names: Vec<&str> = side.models.iter().take(8).map(|model| short_model(model)).collect();
        match side.models.len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    };
    let started =
        |side: &ComparedConversation| side.started.map(|start| minute(start, &cx.zone())).unwrap_or_default();
    let rows = vec![
        plain("started", &started),
        plain("models", &models),
        number("turns", &|side| side.prompts.len() as u64),
        number("model calls", &|side| side.spent.calls),
        number("tool calls", &|side| side.n_calls() as u64),
        number("errors", &|side| side.errors as u64),
        number("sub-agents", &|side| side.n_agents as u64),
        number("compactions", &|side| side.compactions as u64),
        number("input tokens", &|side| side.spent.tokens.input),
        number("output tokens", &|side| side.spent.tokens.output),
        number("cache read", &|side| side.spent.tokens.cache_read),
        number("cache write", &|side| side.spent.tokens.cache_write()),
        vec!["cost".to_owned(), a.spent.short_cost(), b.spent.short_cost(), comparison.cost_difference()],
        time("elapsed", &ComparedConversation::elapsed),
        time("model", &|side| side.timing.model),
        time("tools", &|side| side.timing.tools),
        time("waiting for an answer", &|side| side.timing.user_response),
        time("idle", &|side| side.timing.idle),
    ];
    cx.ui.table(&columns(""), &rows)
}

fn difference(a: i64, b: i64, format: &dyn Fn(i64) -> String) -> String {
    match b - a {
        0 => String::new(),
        more if more > 0 => format!("+{}", format(more)),
        less => format!("−{}", format(-less)),
    }
}

fn tools(cx: &Context, a: &ComparedConversation, b: &ComparedConversation) -> TermText {
    let names: BTreeSet<&String> = a.tools.keys().chain(b.tools.keys()).collect();
    if names.is_empty() {
        return TermText::default();
    }
    let cell = |side: &ComparedConversation, name: &str| match side.tools.get(name) {
        None => "–".to_owned(),
        Some(tally) if tally.errors == 0 => count(tally.calls as u64),
        Some(tally) => format!("{} ({})", count(tally.calls as u64), plural(tally.errors as u64, "error")),
    };
    let calls =
        |side: &ComparedConversation, name: &str| side.tools.get(name).map_or(0, |tally| tally.calls as i64);
    let row = |name: &&String| {
        let change = difference(calls(a, name), calls(b, name), &|n| count(n as u64));
        vec![visible(name).into_owned(), cell(a, name), cell(b, name), change]
    };
    let rows: Vec<Vec<String>> = names.iter().map(row).collect();
    text!("\n{}", cx.ui.table(&columns("tool"), &rows))
}

fn files(cx: &Context, files: &[ComparedFile]) -> TermText {
    if files.is_empty() {
        return TermText::default();
    }
    let cell = |change: &Option<FileChange>| {
        change.as_ref().map_or_else(
            || "–".to_owned(),
            |change| {
                let (added, removed) = Hunk::counts(&change.hunks());
                line_change(added, removed)
            },
        )
    };
    let row = |file: &ComparedFile| {
        let relation = match file.relation() {
            FileRelation::Same => "same",
            FileRelation::Different => "different",
            FileRelation::OnlyA => "only A",
            FileRelation::OnlyB => "only B",
            FileRelation::Unknown => "unknown",
        };
        let [a, b] = &file.changes;
        vec![visible(&file.label).into_owned(), cell(a), cell(b), relation.to_owned()]
    };
    let columns = [
        TableColumn { keeps_end: true, ..TableColumn::text("file") },
        TableColumn::number("A"),
        TableColumn::number("B"),
        TableColumn { align: ColumnAlign::Left, can_shrink: false, ..TableColumn::text("result") },
    ];
    let rows: Vec<Vec<String>> = files.iter().map(row).collect();
    text!("\n{}", cx.ui.table(&columns, &rows))
}

fn prompts(cx: &Context, comparison: &Comparison) -> TermText {
    let row = |letter: &str, prompt: &ComparedPrompt| {
        vec![
            letter.to_owned(),
            prompt.turn.to_string(),
            prompt.spent.short_cost(),
            prompt.duration.map(duration).unwrap_or_default(),
            visible(&prompt.title).into_owned(),
        ]
    };
    let [a, b] = &comparison.sides;
    let mut rows: Vec<Vec<String>> = Vec::new();
    rows.extend(a.prompts.iter().take(comparison.shared_turns).map(|prompt| row("both", prompt)));
    for (letter, side) in [("A", a), ("B", b)] {
        rows.extend(side.prompts.iter().skip(comparison.shared_turns).map(|prompt| row(letter, prompt)));
    }
    let columns = [
        TableColumn { can_shrink: false, ..TableColumn::text("") },
        TableColumn::number("turn"),
        TableColumn { drop_order: 2, ..TableColumn::number("cost") },
        TableColumn { drop_order: 1, ..TableColumn::number("time") },
        TableColumn { min_width: 30, ..TableColumn::text("prompt") },
    ];
    text!("\n{}", cx.ui.table(&columns, &rows))
}
