//! The page that lists others: projects, and the sessions of each.

use jiff::tz::TimeZone;

use threadline_view::figure;

use crate::asset;
use crate::markup::Markup;
use crate::words;

/// A session on the list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The name of its page, beside the list.
    pub href: String,
    /// Where it ran, or the name of its project.
    pub project: String,
    /// What it is called.
    pub title: String,
    /// What was typed first.
    pub first_prompt: Option<String>,
    /// The branch it ended on.
    pub git_branch: Option<String>,
    /// When it was last written to, in milliseconds.
    pub modified: Option<i64>,
    /// The length of its log in bytes.
    pub size: u64,
}

/// A page that lists sessions by project, the project that was worked on last first.
pub fn index(sessions: &[Listed], zone: &TimeZone) -> Markup {
    let mut out = Markup::new();
    asset::head(&mut out, "Sessions", false);
    out.lit("<body class=\"list\">\n<main id=\"main\"><header class=\"opening\"><h1>Sessions</h1><p class=\"facts\">");
    let mut projects: Vec<(&str, Vec<&Listed>)> = Vec::new();
    let mut sessions: Vec<&Listed> = sessions.iter().collect();
    sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.href.cmp(&b.href)));
    for session in sessions {
        match projects.iter_mut().find(|(project, _)| *project == session.project) {
            Some((_, of_project)) => of_project.push(session),
            None => projects.push((&session.project, vec![session])),
        }
    }
    let count: usize = projects.iter().map(|(_, sessions)| sessions.len()).sum();
    out.text(&figure::plural(count as u64, "session"))
        .lit(" <span>·</span> ")
        .text(&figure::plural(projects.len() as u64, "project"));
    out.lit("</p></header>\n");
    for (project, sessions) in projects {
        out.lit("<section class=\"project\"><h2>").text(project).lit("</h2>\n<ul>");
        for session in sessions {
            row(&mut out, session, zone);
        }
        out.lit("</ul></section>\n");
    }
    out.lit("</main>\n</body>\n</html>\n");
    out
}

fn row(out: &mut Markup, session: &Listed, zone: &TimeZone) {
    out.lit("<li><a href=\"")
        .text(&session.href)
        .lit("\">")
        .text(&words::first_words(&session.title, 160))
        .lit("</a>");
    if let Some(prompt) = session.first_prompt.as_deref().filter(|prompt| *prompt != session.title) {
        out.lit("<p class=\"first\">").text(&words::first_words(prompt, 200)).lit("</p>");
    }
    out.lit("<p class=\"facts\">");
    if let Some((shown, exact)) = session.modified.and_then(|at| words::moment(at, zone, "%-d %b %Y, %H:%M"))
    {
        out.lit("<time datetime=\"").text(&exact).lit("\">").text(&shown).lit("</time> <span>·</span> ");
    }
    if let Some(branch) = &session.git_branch {
        out.text(branch).lit(" <span>·</span> ");
    }
    out.text(&figure::bytes(session.size)).lit("</p></li>\n");
}
