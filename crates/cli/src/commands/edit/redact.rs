use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use threadline_edit::{Digest, Hit, Redactor, SideFile, Target};
use threadline_entry::{Code, Finding, Position};
use threadline_secret::Rules;
use threadline_store::{Operation, SessionFile};
use threadline_term::{Label, visible};
use threadline_view::wire::FindingObject;

use super::beside;
use super::job::{Job, TargetArgs, WriteArgs};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Replace secrets with placeholders
///
/// Searches the whole session: messages, tool calls and results, sub-agents, stored output and file
/// history. The same secret gets the same placeholder everywhere. Thinking that contains a secret is
/// removed, because signed blocks cannot be changed. With --in-place, the prompt history of the home is
/// redacted too. The receipt keeps the original files until `threadline op forget`.
#[derive(Debug, clap::Args)]
pub(crate) struct RedactArgs {
    /// Session id, unique prefix, title, `last`, or path to a log (with --check: repeatable, default all
    /// sessions)
    #[arg(value_name = "SESSION", required_unless_present = "check")]
    sessions: Vec<String>,

    /// Only list secrets, with exit code 1 if there are any
    #[arg(long, conflicts_with_all = ["apply", "in_place", "diff", "force"])]
    check: bool,

    /// Also redact e-mail addresses
    #[arg(long)]
    emails: bool,

    /// Also redact user names in home directories
    #[arg(long)]
    paths: bool,

    /// File with additional rules, one per line: a name and a pattern; the secret is the first group, if any
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Allow-list file, one entry per line: literal text or /pattern/
    #[arg(long, value_name = "FILE")]
    allow: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    write: WriteArgs,
}

/// What was found, and in which file.
type Found = (PathBuf, Hit);

pub(crate) fn run(cx: &Context, args: &RedactArgs) -> Result<Outcome, CommandError> {
    let rules = rules(args)?;
    if args.check {
        return check(cx, args, &rules);
    }
    let [session] = &args.sessions[..] else {
        return Err(CommandError::new("one session is redacted at a time").hint("--check takes several"));
    };
    let job = Job::open(cx, session)?;
    let mut redactor = Redactor::new(&rules);
    let mut found: Vec<Found> = Vec::new();
    let mut note =
        |path: &Path, hits: Vec<Hit>| found.extend(hits.into_iter().map(|hit| (path.to_owned(), hit)));
    note(&job.file.path, redactor.learn(&job.session));
    let own = beside::own(&job.file)?;
    for path in &own {
        note(path, learn(&mut redactor, path)?);
    }
    if found.is_empty() {
        cx.ui.note("no secrets found: there is nothing to do");
        return Ok(Outcome::No);
    }
    redactor.know();
    let mut draft = job.draft();
    redactor.redact(&mut draft);
    let target = args.target.target();
    job.copy_beside(&mut draft, &target)?;
    if let Target::New(_) = &target {
        for file in draft.sides_mut() {
            clean_copy(&mut redactor, file)?;
        }
    } else {
        for path in own {
            let content = read(&path)?;
            let clean = if beside::is_log(&path) { redactor.log(&content) } else { redactor.file(&content) };
            if let Some(clean) = clean {
                draft.side(SideFile::Change { path, read: Digest::of(&content), content: clean });
            }
        }
        // What all sessions share is cleaned of what this one holds, and of its own prompts.
        for path in beside::shared(&job.file)? {
            let content = read(&path)?;
            if let Some(clean) = redactor.shared(&content, &job.file.id, beside::is_log(&path)) {
                draft.side(SideFile::Change { path, read: Digest::of(&content), content: clean });
            }
        }
    }
    if cx.json {
        for (path, hit) in &found {
            draft.finding(finding(hit, hit.at.filter(|_| *path == job.file.path)));
        }
    } else {
        list(cx, &found)?;
    }
    let outcome = job.finish(cx, &args.write, Operation::Redact, draft, target)?;
    if args.write.apply && args.target.in_place {
        cx.ui.note("the receipt still holds what was there: `threadline op forget` deletes it for good");
    }
    Ok(outcome)
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
        rules = rules.with_own(&read(path)?).map_err(wrong(path))?;
    }
    if let Some(path) = &args.allow {
        rules = rules.allowing(&read(path)?).map_err(wrong(path))?;
    }
    Ok(rules)
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    threadline_store::read_regular(path)
        .map_err(|error| CommandError::new(format!("cannot read {}: {error}", path.display())))
}

fn learn(redactor: &mut Redactor<'_>, path: &Path) -> Result<Vec<Hit>, CommandError> {
    let content = read(path)?;
    Ok(if beside::is_log(path) { redactor.learn_log(&content) } else { redactor.learn_file(&content) })
}

/// What goes along with a copy comes clean.
fn clean_copy(redactor: &mut Redactor<'_>, file: &mut SideFile) -> Result<(), CommandError> {
    let made = match file {
        SideFile::CopyLog { from, to } => {
            redactor.log(&read(from)?).map(|content| SideFile::MakeLog { path: to.clone(), content })
        }
        SideFile::Copy { from, to } => {
            redactor.file(&read(from)?).map(|content| SideFile::Create { path: to.clone(), content })
        }
        _ => None,
    };
    if let Some(made) = made {
        *file = made;
    }
    Ok(())
}

fn finding(hit: &Hit, at: Option<Position>) -> Finding {
    let place = if hit.key.is_empty() { String::new() } else { format!(" in `{}`", hit.key) };
    let message = format!("{}: {}{place}, {}", hit.what, hit.masked, hit.name);
    let mut finding = Finding::new(Code::Secret, at.unwrap_or(Position::START), message);
    finding.at = at;
    finding
}

/// A line a secret: what it is, a little of it, where it stands, and what stands for it from now on.
fn list(cx: &Context, found: &[Found]) -> Result<(), CommandError> {
    let mut secrets: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
    for hit in found {
        secrets.entry(&hit.1.name).or_default().push(hit);
    }
    let page = cx.ui.page();
    let mut answer = cx.ui.answer();
    for (name, hits) in secrets {
        let (path, first) = hits[0];
        let files = hits.iter().map(|(path, _)| path).collect::<std::collections::BTreeSet<_>>().len();
        let line = first.at.map(|at| format!(", line {}", at.line_no)).unwrap_or_default();
        let others = match hits.len() {
            1 => String::new(),
            n if files == 1 => format!(", {n} times"),
            n => format!(", {n} times in {files} files"),
        };
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = page.paint(Label::Title, name);
        let place = page.paint(Label::Dim, format!("{}{line}{others}", visible(&file)));
        writeln!(answer, "{name}  {}: {}  {place}", first.what, visible(&first.masked))?;
    }
    answer.finish()?;
    Ok(())
}

/// Tells where secrets are.
fn check(cx: &Context, args: &RedactArgs, rules: &Rules) -> Result<Outcome, CommandError> {
    let mut files = Vec::new();
    for session in &args.sessions {
        files.push(cx.app.find(session)?);
    }
    let mut unread: Vec<String> = Vec::new();
    if args.sessions.is_empty() {
        let sessions = cx.store().sessions();
        unread.extend(sessions.unread.iter().map(ToString::to_string));
        files = sessions.found;
    }
    let n_sessions = files.len();
    let looked: Vec<(Vec<Found>, Vec<String>)> =
        files.into_par_iter().map(|file| look(&file, rules)).collect();
    let mut found = Vec::new();
    for (hits, failed) in looked {
        found.extend(hits);
        unread.extend(failed);
    }
    let page = cx.ui.page();
    let mut answer = cx.ui.long_answer();
    for (path, hit) in &found {
        let path = path.to_string_lossy();
        if cx.json {
            answer.json(&FindingObject::new(&finding(hit, hit.at), &path))?;
            continue;
        }
        let line = hit.at.map(|at| format!(":{}", at.line_no)).unwrap_or_default();
        let place = if hit.key.is_empty() { String::new() } else { format!(" in `{}`", hit.key) };
        let path = page.paint(Label::Title, format!("{}{line}", visible(&path)));
        writeln!(answer, "{path}: {}: {}{}", hit.what, visible(&hit.masked), visible(&place))?;
    }
    answer.finish()?;
    for error in &unread {
        cx.ui.warn(error.trim());
    }
    let sessions = if n_sessions == 1 { "1 session".to_owned() } else { format!("{n_sessions} sessions") };
    cx.ui.note(&format!("{sessions} looked at, {} found", found.len()));
    Ok(match found.is_empty() {
        _ if !unread.is_empty() => Outcome::Partly,
        true => Outcome::Done,
        false => Outcome::No,
    })
}

/// What is found in a session and beside it, and what could not be read.
fn look(file: &SessionFile, rules: &Rules) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let mut redactor = Redactor::new(rules);
    let own = beside::own(file).unwrap_or_else(|error| {
        unread.push(error.to_string());
        Vec::new()
    });
    for path in std::iter::once(file.path.clone()).chain(own) {
        match learn(&mut redactor, &path) {
            Ok(hits) => found.extend(hits.into_iter().map(|hit| (path.clone(), hit))),
            Err(error) => unread.push(error.to_string()),
        }
    }
    (found, unread)
}
