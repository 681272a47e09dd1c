use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use threadline_app::edit::SecretHit;
use threadline_app::file_copies::RedactedCopies;
use threadline_secret::Rules;
use threadline_term::{TextLabel, visible, visible_name};
use threadline_view::humanize::plural;
use threadline_view::wire::{FindingObject, NoSecretsObject};

use super::args::{TargetArgs, WriteArgs};
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Replace secrets with placeholders
///
/// Searches messages, tool calls and results, sub-agents, stored tool output and file history. The same
/// secret gets the same placeholder everywhere. Thinking with a secret is removed, because it cannot be
/// changed. With --in-place, the prompt history of the home (history.jsonl) is redacted, too, and copies of
/// files (`setup files`) with these secrets are removed for good. The receipt contains the secrets until
/// `threadline op forget`.
#[derive(Debug, clap::Args)]
pub(crate) struct RedactArgs {
    /// Session id, unique prefix, title, `last`, or path to a log (with --check it can be repeated; without
    /// one, all sessions)
    #[arg(value_name = "SESSION", required_unless_present = "check")]
    sessions: Vec<String>,

    /// Only list secrets, and exit with 1 if there are any
    #[arg(long, conflicts_with_all = ["apply", "in_place", "diff", "force"])]
    check: bool,

    /// Also redact e-mail addresses
    #[arg(long)]
    emails: bool,

    /// Also redact user names in paths of home folders
    #[arg(long)]
    paths: bool,

    /// File with additional rules, one `NAME PATTERN` per line; the first group of a pattern is the secret
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Allow-list file: one entry per line, a text or /a pattern/
    #[arg(long, value_name = "FILE")]
    allow: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &RedactArgs) -> Result<CommandOutcome, CommandError> {
    let rules = rules(args)?;
    if args.check {
        return check(cx, args, &rules);
    }
    let [session] = &args.sessions[..] else {
        return Err(CommandError::new("one session is redacted at a time").hint("--check takes several"));
    };
    let session = open(cx, session)?;
    let planned = session.redact(&rules, args.target.target(), cx.json);
    if let Ok(redaction) = &planned
        && !cx.json
    {
        list(cx, &redaction.hits)?;
    }
    let known = planned.as_ref().ok().and_then(|redaction| redaction.known.as_ref());
    let copies = match args.target.in_place {
        true => cx.app.find_secret_copies(&session.file().id, |text| {
            known.is_some_and(|known| !known.find(text).is_empty()) || !rules.find(text).is_empty()
        })?,
        false => RedactedCopies::default(),
    };
    let finished = finish(cx, &args.write, planned.map(|redaction| redaction.edit))?;
    let outcome = redact_copies(cx, args, &copies, finished)?;
    if outcome == CommandOutcome::Done && args.write.apply && args.target.in_place {
        cx.ui.note("the receipt still contains the secrets: `threadline op forget` deletes it for good");
    }
    Ok(outcome)
}

/// Removes copies of files with secrets, or names them.
fn redact_copies(
    cx: &Context,
    args: &RedactArgs,
    copies: &RedactedCopies,
    finished: CommandOutcome,
) -> Result<CommandOutcome, CommandError> {
    let count = copies.contents.len();
    if count == 0 {
        return Ok(finished);
    }
    let verb = if args.write.apply { "removed" } else { "would be removed" };
    if args.write.apply {
        cx.app.redact_file_copies(copies)?;
    }
    cx.ui.note(&format!("copies of files around shell calls with these secrets {verb}, for good: {count}"));
    // Also if the log itself has none.
    Ok(CommandOutcome::Done)
}

fn rules(args: &RedactArgs) -> Result<Rules, CommandError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| CommandError::new(format!("cannot read {}: {error}", path.display())))
    };
    let mut rules = Rules::new();
    if args.emails {
        rules = rules.with_emails();
    }
    if args.paths {
        rules = rules.with_paths();
    }
    let wrong = |path: &Path| {
        let path = path.display().to_string();
        move |error: threadline_secret::RuleError| CommandError::new(format!("{path}: {error}"))
    };
    if let Some(path) = &args.rules {
        rules = rules.with_custom_rules(&read(path)?).map_err(wrong(path))?;
    }
    if let Some(path) = &args.allow {
        rules = rules.with_allowed(&read(path)?).map_err(wrong(path))?;
    }
    Ok(rules)
}

/// Lists the secrets, one line each: kind, masked text, first place, and placeholder.
fn list(cx: &Context, found: &[SecretHit]) -> Result<(), CommandError> {
    let mut secrets: Vec<&SecretHit> = found.iter().collect();
    secrets.sort_by(|a, b| a.hit.placeholder.cmp(&b.hit.placeholder));
    let page = cx.ui.page();
    let mut answer = cx.ui.output();
    for hits in secrets.chunk_by(|a, b| a.hit.placeholder == b.hit.placeholder) {
        let SecretHit { path, hit: first } = hits[0];
        let name = &first.placeholder;
        let files = hits.iter().map(|found| &found.path).collect::<BTreeSet<_>>().len();
        let line = first.at.map(|at| format!(", line {}", at.line_no)).unwrap_or_default();
        let others = match hits.len() {
            1 => String::new(),
            n if files == 1 => format!(", {n} times"),
            n => format!(", {n} times in {files} files"),
        };
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = page.paint(TextLabel::Title, &**name);
        let place = page.paint(TextLabel::Dim, format!("{}{line}{others}", visible(&file)));
        writeln!(answer, "{name}  {}: {}  {place}", first.description, visible(&first.masked))?;
    }
    answer.finish()?;
    Ok(())
}

/// Lists the secrets of the named sessions, or of all.
fn check(cx: &Context, args: &RedactArgs, rules: &Rules) -> Result<CommandOutcome, CommandError> {
    let mut files = Vec::new();
    for session in &args.sessions {
        files.push(cx.app.find(session)?);
    }
    let mut unread: Vec<String> = Vec::new();
    if args.sessions.is_empty() {
        let sessions = cx.store().sessions();
        unread.extend(sessions.errors.iter().map(ToString::to_string));
        files = sessions.found;
    }
    let n_sessions = files.len();
    let report = cx.app.find_secrets(files, rules);
    unread.extend(report.unread.iter().map(ToString::to_string));
    let page = cx.ui.page();
    let mut answer = cx.ui.paged_output();
    for found in &report.hits {
        let SecretHit { path, hit } = found;
        let path = path.to_string_lossy();
        if cx.json {
            answer.json(&FindingObject::new(&found.finding(), &path))?;
            continue;
        }
        let line = hit.at.map(|at| format!(":{}", at.line_no)).unwrap_or_default();
        let key = if hit.key.is_empty() { String::new() } else { format!(" in `{}`", hit.key) };
        let path = page.paint(TextLabel::Title, format!("{}{line}", visible_name(&path)));
        writeln!(answer, "{path}: {}: {}{}", hit.description, visible(&hit.masked), visible(&key))?;
    }
    if cx.json && report.hits.is_empty() {
        answer.json(&NoSecretsObject { sessions: n_sessions as u64, reason: "no secrets found" })?;
    }
    answer.finish()?;
    for error in &unread {
        cx.ui.warn(error.trim());
    }
    let sessions = plural(n_sessions as u64, "session");
    cx.ui.note(&match report.hits.len() as u64 {
        0 => format!("{sessions} checked, no secrets found"),
        n => format!("{sessions} checked, {} of secrets found", plural(n, "occurrence")),
    });
    Ok(match report.hits.is_empty() {
        _ if !unread.is_empty() => CommandOutcome::Partial,
        true => CommandOutcome::Done,
        false => CommandOutcome::Negative,
    })
}
