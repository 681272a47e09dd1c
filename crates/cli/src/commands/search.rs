mod files;
mod picker;
mod report;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use threadline_search::{Event, Query, QueryError, Scan, Searched, directories};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use self::report::Report;

/// Find text in all sessions and their sub-agents
///
/// Reads the logs as they are: there is no index to build or to wait for. What is searched is what a person
/// sees: prompts, replies, thinking, the input of tools, what tools returned, what commands printed, titles
/// and summaries. Copies of lines in forked sessions are told once, with the session they come from.
#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct SearchArgs {
    /// What to find: words, "phrases", /patterns/, fields such as tool:Bash, and -not
    ///
    /// Put quotes around it for the shell. An excluded word by itself goes behind `--`.
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// Pick from what is found while you type
    ///
    /// Enter shows the session at the find; Ctrl-Y copies the command that resumes it.
    #[arg(long, short, conflicts_with_all = ["list", "count", "lines", "json"])]
    interactive: bool,

    /// Only the ids of the sessions
    #[arg(long, short = 'l', conflicts_with = "count")]
    list: bool,

    /// Only how much was found in each session
    #[arg(long, short)]
    count: bool,

    /// One line a find, for fzf and its like: what `show` opens, when, what, and the text, set apart by tabs
    #[arg(long, conflicts_with_all = ["list", "count", "json", "context"])]
    lines: bool,

    /// Lines of text to show around what was found
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0)]
    context: usize,

    /// Stop after this much: finds, or sessions with --list and --count
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,

    /// Show at most this many finds of a session; 0 for all [default: 10, or all with --lines and --json]
    #[arg(long, short, value_name = "N")]
    max_count: Option<usize>,

    /// Only sessions whose working directory or project folder contains this
    #[arg(long, short, value_name = "TEXT")]
    project: Option<String>,

    /// Which session comes first
    #[arg(long, value_name = "ORDER", default_value = "time")]
    sort: Sort,
}

const HELP: &str = r#"Query:
  slow loom          Both words, in one block of a message. A word matches anywhere, also within
                     longer words; accents do not count, and case only if the word has a capital
  "slow loom"        Whole words one behind the other, whatever white space is between them;
                     _ . / - part words too; \" is a quote
  /slow(er)?/        A regular expression; ^ and $ are the ends of lines; /…/i whatever the case
  -loom  -"a b"      Must not occur in the block
  kind:prompt        prompt, reply, thinking, tool, result, output, task, summary, title, notice
  role:assistant     user (which tool results are too), assistant, system
  tool:Bash          Calls of the tool and their results; tool:mcp__* for many
  path:src/main.rs   Calls about a file, and their results
  command:"git push" Calls that run a command, and their results
  error:true         What failed; error:timeout what failed with this text
  branch: model:     The branch of the line, the model of the reply
  project: session:  The directory of the session, the beginning of its id
  since: until:      2026-03-01, 2026-03, 7d, 12h, today, yesterday
  Of a field that is given several times, one must hold; all else must hold together.

In a shell, put quotes around the whole: threadline search '"slow loom" tool:Bash -test'
or `--` before it all: threadline search --json -- slow -test
threadline show ID#m42 opens what was found at m42. With fzf:
threadline search --lines --color always loom |
  fzf --ansi -d '\t' --with-nth 2.. --preview 'threadline show {1}' --bind 'enter:become(threadline show {1})'

Exit codes: 0 found, 1 nothing found, 2 could not (or not all could be read)."#;

/// Which session comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// The last modified
    Time,
    /// One where a prompt was found, then a reply, then the rest; then the one with the most
    Rank,
}

pub(crate) fn run(cx: &Context, args: &SearchArgs) -> Result<Outcome, CommandError> {
    if args.interactive {
        return picker::run(cx, &args.query.join(" "), args.project.as_deref());
    }
    let query = parse(&args.query.join(" "))?;
    let (mut sessions, unread) = files::sessions(&cx.store);
    keep_wanted(&mut sessions, &query, args.project.as_deref());
    let cancelled = AtomicBool::new(false);
    let counting = args.list || args.count;
    let context = (!counting).then_some(args.context);
    let scan =
        Scan { query: &query, sessions: &sessions, open: &files::open, context, cancelled: &cancelled };
    let order: Vec<usize> = match args.sort {
        Sort::Time => (0..sessions.len()).collect(),
        Sort::Rank => ranked(scan)?,
    };
    let cancelled = AtomicBool::new(false);
    let mut report = Report::new(cx, args, &sessions);
    Scan { cancelled: &cancelled, ..scan }.run(&order, &mut |event| report.event(event))?;
    report.finish(&unread)
}

fn parse(text: &str) -> Result<Query, CommandError> {
    Query::parse(text, &jiff::Zoned::now()).map_err(|error| {
        let told = match error.span() {
            Some(span) => {
                let columns =
                    |text: &str| text.chars().map(|ch| if ch >= '\u{1100}' { 2 } else { 1 }).sum::<usize>();
                let (before, wrong) = (columns(&text[..span.start]), columns(&text[span]));
                let text = text.replace(['\n', '\t'], " ");
                format!("{error}\n{text}\n{}{}", " ".repeat(before), "^".repeat(wrong.max(1)))
            }
            None => error.to_string(),
        };
        CommandError::new(told).hint(match error {
            QueryError::Empty => "give a word to find, such as `threadline search timeout`",
            QueryError::OnlyExcluded => "add a word that must be there",
            _ => "`threadline search --help` tells what a query is made of",
        })
    })
}

/// Leaves the sessions that the query and the arguments ask for.
fn keep_wanted(sessions: &mut Vec<Searched>, query: &Query, project: Option<&str>) {
    threadline_search::keep_wanted(sessions, query, &files::open);
    keep_project(sessions, project);
}

/// Leaves the sessions whose directory or folder contains a text.
fn keep_project(sessions: &mut Vec<Searched>, project: Option<&str>) {
    let Some(text) = project else { return };
    let mut directories = directories(sessions, &files::open).into_iter();
    sessions.retain(|session| {
        let cwd = directories.next().flatten().unwrap_or_default();
        cwd.contains(text) || session.folder.contains(text)
    });
}

/// The sessions where something is found, the best first. What was found is counted, not kept.
fn ranked(scan: Scan<'_>) -> Result<Vec<usize>, CommandError> {
    let mut found: HashMap<usize, (usize, usize)> = HashMap::new();
    let order: Vec<usize> = (0..scan.sessions.len()).collect();
    Scan { context: None, ..scan }.run(&order, &mut |event| {
        if let Event::Hit(session, hit) = event {
            let (best, count) = found.entry(session).or_insert((usize::MAX, 0));
            *best = (*best).min(hit.kind.rank());
            *count += 1;
        }
        Ok::<_, CommandError>(ControlFlow::Continue(()))
    })?;
    let mut order: Vec<usize> = order;
    // What had trouble is asked again, so that the trouble is told.
    order.sort_by_key(|session| {
        let (best, count) = found.get(session).copied().unwrap_or((usize::MAX, 0));
        (best, std::cmp::Reverse(count), *session)
    });
    Ok(order)
}
