use std::time::SystemTime;

use threadline_app::{ListFilter, SessionSummary};
use threadline_term::{ColumnAlign, TableColumn, TermText, table};
use threadline_view::humanize::bytes;
use threadline_view::wire::ListedSession;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// List sessions, last active first
///
/// Reads only the first and last lines of each log.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only sessions whose working directory or project folder contains this
    #[arg(long, short, value_name = "TEXT")]
    project: Option<String>,

    /// Maximum number of sessions
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,

    /// Include logs without a title or prompt
    #[arg(long, short)]
    all: bool,
}

pub(crate) fn run(cx: &Context, args: &ListArgs) -> Result<CommandOutcome, CommandError> {
    let filter = ListFilter { project: args.project.clone(), untitled: args.all, limit: args.limit };
    let listing = cx.app.list(&filter);
    let sessions = listing.found;
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        for session in &sessions {
            answer.json(&object(session))?;
        }
    } else if !sessions.is_empty() {
        answer.text(&render(cx, &sessions))?;
    }
    answer.finish()?;
    for error in &listing.errors {
        cx.ui.warn(&error.to_string());
    }
    if sessions.is_empty() {
        let homes: Vec<_> = cx.store().homes().iter().map(|home| home.root().display().to_string()).collect();
        cx.ui.note(&format!("no sessions in {}", homes.join(", ")));
        cx.ui.note("hint: use --home DIR for another folder, or --demo for sample sessions");
    }
    Ok(match (listing.errors.is_empty(), sessions.is_empty()) {
        (false, _) => CommandOutcome::Partial,
        (true, true) => CommandOutcome::Negative,
        (true, false) => CommandOutcome::Done,
    })
}

fn object(session: &SessionSummary) -> ListedSession {
    let SessionSummary { file, glance } = session;
    ListedSession {
        id: file.id.to_string(),
        path: file.path.to_string_lossy().into_owned(),
        project: file.folder.clone().unwrap_or_default(),
        cwd: glance.cwd.clone(),
        title: glance.title(),
        first_prompt: glance.first_prompt.clone(),
        git_branch: glance.git_branch.clone(),
        tag: glance.tag.clone(),
        started_at: glance.created.clone(),
        last_active_at: moment(glance.last_active).map(|moment| format!("{moment:.3}")),
        modified_at: moment(glance.modified).map(|moment| format!("{moment:.3}")),
        size_bytes: glance.size,
        version: glance.version.clone(),
        agents: glance.n_agents as u64,
    }
}

fn moment(time: SystemTime) -> Option<jiff::Timestamp> {
    jiff::Timestamp::try_from(time).ok()
}

fn render(cx: &Context, sessions: &[SessionSummary]) -> TermText {
    let text = |name: &'static str, gives_way: bool| TableColumn {
        name,
        align: ColumnAlign::Left,
        can_shrink: gives_way,
    };
    let columns = [
        text("id", false),
        text("last active", false),
        text("started", false),
        TableColumn { name: "size", align: ColumnAlign::Right, can_shrink: false },
        text("directory", true),
        text("branch", true),
        text("title", true),
    ];
    let zone = crate::env::time_zone();
    let one_line = |text: Option<&str>| text.unwrap_or("–").split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|session| {
            let SessionSummary { file, glance } = session;
            let shown = |moment: Option<jiff::Timestamp>| {
                let moment = moment.map(|moment| moment.to_zoned(zone.clone()));
                moment.map_or_else(String::new, |moment| moment.strftime("%Y-%m-%d %H:%M").to_string())
            };
            vec![
                file.id.chars().take(8).collect(),
                shown(moment(glance.last_active)),
                shown(glance.created.as_ref().and_then(|time| time.parse().ok())),
                bytes(glance.size),
                one_line(session.project()),
                one_line(glance.git_branch.as_deref()),
                session.title().unwrap_or_else(|| "–".to_owned()),
            ]
        })
        .collect();
    table(cx.ui.page(), &columns, &rows)
}
