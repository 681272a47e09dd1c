//! The index page of an export: projects and the sessions of each.

use jiff::tz::TimeZone;

use threadline_view::{UsageTotals, humanize};

use crate::asset;
use crate::markup::Markup;
use crate::site::PageTheme;
use crate::text_format;
use crate::turn::cost_summary;

/// A session on the index page.
#[derive(Clone, Debug)]
pub struct IndexedSession {
    /// The file name of its page, in the same folder as the index.
    pub href: String,
    /// The directory it ran in, or the name of its project.
    pub project: String,
    /// Its title.
    pub title: String,
    /// The first prompt.
    pub first_prompt: Option<String>,
    /// The last git branch.
    pub git_branch: Option<String>,
    /// Start and end in milliseconds since 1970.
    pub span: Option<(i64, i64)>,
    /// The number of turns.
    pub turns: u64,
    /// Tokens and cost.
    pub spent: UsageTotals,
    /// The size of its log in bytes.
    pub size: u64,
}

/// Renders a page that lists sessions by project, both in order of last activity, latest first.
pub fn index(sessions: &[IndexedSession], zone: &TimeZone, theme: PageTheme) -> Markup {
    let mut out = Markup::new();
    asset::head(&mut out, "Sessions", theme, false);
    out.lit("<body class=\"list\">\n<main id=\"main\"><header class=\"opening\"><h1>Sessions</h1>");
    let mut projects: Vec<(&str, Vec<&IndexedSession>)> = Vec::new();
    let mut sessions: Vec<&IndexedSession> = sessions.iter().collect();
    let ended = |session: &IndexedSession| session.span.map(|(_, end)| end);
    sessions.sort_by(|a, b| ended(b).cmp(&ended(a)).then_with(|| a.href.cmp(&b.href)));
    for session in &sessions {
        match projects.iter_mut().find(|(project, _)| *project == session.project) {
            Some((_, of_project)) => of_project.push(session),
            None => projects.push((&session.project, vec![session])),
        }
    }
    let count = humanize::plural(projects.len() as u64, "project");
    add_totals(&mut out, &sessions, Some(count), zone);
    out.lit("</header>\n");
    for (project, sessions) in projects {
        out.lit("<section class=\"project\"><h2>").text(project).lit("</h2>\n");
        add_totals(&mut out, &sessions, None, zone);
        out.lit("<ul>");
        for session in sessions {
            row(&mut out, session, zone);
        }
        out.lit("</ul></section>\n");
    }
    out.lit("<p class=\"note\">Costs are per session: calls copied by a fork count in both sessions. ");
    out.lit("<code>threadline usage</code> counts every call once.</p>\n</main>\n</body>\n</html>\n");
    out
}

/// Adds the totals of some sessions.
fn add_totals(out: &mut Markup, sessions: &[&IndexedSession], first: Option<String>, zone: &TimeZone) {
    let mut spent = UsageTotals::default();
    sessions.iter().for_each(|session| spent += &session.spent);
    let turns = sessions.iter().map(|session| session.turns).sum();
    let spans = || sessions.iter().filter_map(|session| session.span);
    let (start, end) = (spans().map(|(start, _)| start).min(), spans().map(|(_, end)| end).max());
    let day = |at: i64| text_format::format_time(at, zone, "%-d %b %Y").map(|(day, _)| day);
    let days = start.and_then(day).zip(end.and_then(day));
    let mut facts: Vec<String> = first.into_iter().collect();
    facts.push(humanize::plural(sessions.len() as u64, "session"));
    facts.push(humanize::plural(turns, "turn"));
    facts.extend(days.map(|(from, until)| if from == until { from } else { format!("{from} to {until}") }));
    out.lit("<p class=\"facts\">").text(&facts.join(" · "));
    cost(out, &spent);
    out.lit("</p>\n");
}

fn cost(out: &mut Markup, spent: &UsageTotals) {
    if spent.calls > 0 {
        out.lit(" · <b title=\"").text(&cost_summary(spent)).lit("\">").text(&spent.short_cost()).lit("</b>");
    }
}

fn row(out: &mut Markup, session: &IndexedSession, zone: &TimeZone) {
    out.lit("<li><a href=\"")
        .text(&session.href)
        .lit("\">")
        .text(&text_format::excerpt(&session.title, 160))
        .lit("</a>");
    if let Some(prompt) = session.first_prompt.as_deref().filter(|prompt| *prompt != session.title) {
        out.text_element("p class=\"first\"", &text_format::excerpt(prompt, 200));
    }
    out.lit("<p class=\"facts\">");
    if let Some((shown, exact)) =
        session.span.and_then(|span| text_format::format_span(span, zone, "%-d %b %Y"))
    {
        out.lit("<time datetime=\"").text(&exact).lit("\">").text(&shown).lit("</time> · ");
    }
    out.text(&humanize::plural(session.turns, "turn"));
    cost(out, &session.spent);
    if let Some(branch) = &session.git_branch {
        out.lit(" · ").text(branch);
    }
    out.lit(" · ").text(&humanize::bytes(session.size)).lit("</p></li>\n");
}
