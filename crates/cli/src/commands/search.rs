mod picker;
mod report;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadline_app::App;
use threadline_app::search::SearchLimits;
use threadline_app::time::TimeRange;
use threadline_search::{Query, QueryError};
use threadline_view::add_condition;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

use self::report::SearchReport;

/// Search all sessions and their sub-agents
///
/// Scans the logs without an index. Searches the visible text: prompts, replies, thinking, tool input and
/// output, command output, titles and summaries. Text that a fork copied is listed once, with its original
/// session.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_HELP, after_long_help = HELP)]
pub(crate) struct SearchArgs {
    /// Query: words, "phrases", /patterns/, fields such as tool:Bash, and -exclusions
    ///
    /// Quote the query for the shell. A query that starts with an exclusion must follow `--`.
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// Search as you type, with a preview
    ///
    /// Enter shows the session at the match; Ctrl-S changes the order; Ctrl-Y copies the command that resumes
    /// the session.
    #[arg(long, short, conflicts_with_all = ["list", "count", "lines", "json"])]
    interactive: bool,

    /// Print only session ids
    #[arg(long, short = 'l', conflicts_with = "count")]
    list: bool,

    /// Print only the number of matches per session
    #[arg(long, short)]
    count: bool,

    /// Print one line per match, for fzf: argument for `show`, time, kind and text, separated by tabs
    #[arg(long, conflicts_with_all = ["list", "count", "json", "context"])]
    lines: bool,

    /// Lines of context around each match
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0)]
    context: usize,

    /// Maximum number of matches, or of sessions with --list and --count; 0 for all
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,

    /// Maximum number of matches per session; 0 for all [default: 10, or all with --lines and --json]
    #[arg(long, short, value_name = "N")]
    max_count: Option<usize>,

    /// Only sessions whose working directory or project folder contains this
    #[arg(long, short, value_name = "TEXT")]
    project: Option<String>,

    /// Only messages at or after this time: 2026-11-01, 2026-11, `today`, `yesterday`, `7d`, `12h`,
    /// `all`
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only messages before the end of this day or time
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// Order of sessions [default: relevance, or newest with --lines and --json]
    #[arg(long, value_name = "ORDER")]
    sort: Option<Sort>,
}

impl SearchArgs {
    /// Returns the maximum number of matches or sessions, if there is one.
    fn limit(&self) -> Option<usize> {
        self.limit.filter(|limit| *limit > 0)
    }

    /// Returns the query with the conditions of the options that are fields, too.
    fn query_text(&self) -> String {
        let mut text = self.query.join(" ");
        let since = self.since.as_ref().filter(|since| *since != "all");
        for (field, value) in [("since", since), ("until", self.until.as_ref())] {
            if let Some(value) = value {
                add_condition(&mut text, field, value);
            }
        }
        text
    }

    /// Returns texts that every line with a match contains. Empty if sessions without them are needed, too.
    pub(crate) fn index_texts(&self) -> Vec<String> {
        // An invalid query is reported later.
        match parse(&self.query_text()) {
            Ok(query) if !self.interactive && self.project.is_none() && !query.selects_sessions() => {
                query.index_texts()
            }
            _ => Vec::new(),
        }
    }
}

/// The fields, for `-h`.
const SHORT_HELP: &str = "\
Fields of a query: kind: role: tool: path: command: error: branch: model: project: session: since: until:
--help describes them";

const HELP: &str = r#"Query syntax:
  slow loom          Both words in one block of a message. A word also matches inside longer words.
                     Accents are ignored, and case unless the word has a capital
  "slow loom"        Consecutive whole words with any white space between them; _ . / - separate
                     words too; \" is a quote
  /slow(er)?/        A regular expression; ^ and $ match at line ends; /…/i ignores case
  -loom  -"a b"      Must not occur in the block
  kind:prompt        prompt, reply, thinking, tool, result, output, task, summary, title, notice
  role:assistant     user (includes tool results), assistant, system
  tool:Bash          Calls of the tool and their results; tool:mcp__* for several
  path:src/main.rs   Calls that concern a file, and their results
  command:"git push" Calls that run a command, and their results
  error:true         Failures; error:timeout for failures with this text
  branch: model:     Git branch of the line, model of the reply
  project: session:  Directory of the session, prefix of its id
  since: until:      2026-03-01, 2026-03, 7d, 12h, today, yesterday
  A repeated field matches if any of its values does; everything else must match together.

In a shell, quote the query: threadline search '"slow loom" tool:Bash -test'
or put `--` before it: threadline search --json -- slow -test
`threadline show ID#m42 --find loom` opens the match at m42 and highlights it. With fzf:
threadline search --lines --color always loom |
  fzf --ansi -d '\t' --with-nth 2.. --preview 'threadline show {1}' --bind 'enter:become(threadline show {1})'

Exit codes: 0 matches found, 1 no matches, 2 error (or some logs could not be read)."#;

/// The order of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Many matches first; titles, prompts and recent sessions count more
    #[default]
    #[value(alias = "rank")]
    Relevance,
    /// Last active first, printed as they are found
    #[value(alias = "time")]
    Newest,
}

impl Sort {
    /// Returns the name of the order.
    fn name(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::Newest => "newest",
        }
    }

    /// Returns the other order.
    fn other(self) -> Self {
        match self {
            Self::Relevance => Self::Newest,
            Self::Newest => Self::Relevance,
        }
    }
}

/// Lets the person choose a session to resume on the whole screen, the newest first. Typing searches in them.
pub(crate) fn pick_session(
    app: &Arc<App>,
    project: Option<&str>,
    should_leave: &dyn Fn() -> bool,
) -> io::Result<Option<PathBuf>> {
    let purpose = picker::PickerPurpose::Resume;
    Ok(picker::pick_match(app, "", Sort::Newest, purpose, project, should_leave)?.map(|(path, ..)| path))
}

pub(crate) fn run(cx: &Context, args: &SearchArgs) -> Result<CommandOutcome, CommandError> {
    // The query reports the same, but in its own syntax.
    TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &jiff::Zoned::now())?;
    if args.interactive {
        let sort = args.sort.unwrap_or_default();
        return picker::run(cx, &args.query_text(), sort, args.project.as_deref());
    }
    let query = parse(&args.query_text())?;
    let scope = cx.app.search_scope(Some(&query), args.project.as_deref());
    let context = (!(args.list || args.count)).then_some(args.context);
    let sort = args.sort.unwrap_or(if args.lines || cx.json { Sort::Newest } else { Sort::Relevance });
    let mut report = SearchReport::new(cx, args, &scope.sessions);
    let limits = SearchLimits { context, max_shown: report.max_count(), ..SearchLimits::default() };
    let cancelled = AtomicBool::new(false);
    let mut on_event = |event| report.event(event);
    match sort {
        Sort::Newest => scope.search(&query, limits, &cancelled, &mut on_event)?,
        Sort::Relevance => scope.search_by_relevance(&query, limits, &cancelled, &mut on_event)?,
    }
    report.finish(&scope.unread)
}

pub(super) fn parse(text: &str) -> Result<Query, CommandError> {
    Query::parse(text, &jiff::Zoned::now()).map_err(|error| {
        let message = match error.span() {
            Some(span) => {
                let columns =
                    |text: &str| text.chars().map(|ch| if ch >= '\u{1100}' { 2 } else { 1 }).sum::<usize>();
                let (before, wrong) = (columns(&text[..span.start]), columns(&text[span]));
                let text = text.replace(['\n', '\t'], " ");
                format!("{error}\n{text}\n{}{}", " ".repeat(before), "^".repeat(wrong.max(1)))
            }
            None => error.to_string(),
        };
        CommandError::new(message).hint(match error {
            QueryError::Empty => "give a word to search for, such as `threadline search timeout`",
            QueryError::OnlyExcluded => "add a word that must match",
            QueryError::EmptyRange { .. } => "exchange the two times of since and until",
            _ => "query syntax: `threadline search --help`",
        })
    })
}
