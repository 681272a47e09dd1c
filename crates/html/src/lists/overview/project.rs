//! The part of the overview that only the page of a project has: its sessions, branches and worktrees.

use threadline_view::{ProjectDetails, humanize};

use super::{Figures, section, time};
use crate::lists::figure_table::{FigureCell, figure_table};
use crate::lists::link;
use crate::markup::Markup;
use crate::text_format;

pub(super) fn details(out: &mut Markup, figures: Figures<'_>, details: &ProjectDetails) {
    section(out, "Sessions", "last active first");
    let rows = details.sessions.iter().map(|session| {
        let prompts = [("kind", "prompts"), ("session", &*session.id)];
        let calls = [("kind", "calls"), ("session", &*session.id)];
        let at = text_format::relative_time(session.last_active, figures.page.now, figures.page.zone);
        vec![
            FigureCell::link(text_format::excerpt(&session.title, 90), link::session(&session.id)),
            FigureCell::plain(at),
            FigureCell::link(humanize::count(session.prompts), figures.records(&prompts)),
            FigureCell::link(humanize::count(session.calls), figures.records(&calls)),
            FigureCell::link(session.usage.short_cost(), figures.link("/usage", &[("session", &session.id)])),
            FigureCell::plain(time(session.active)),
        ]
    });
    let columns = [
        ("session", false),
        ("last active", true),
        ("prompts", true),
        ("tool calls", true),
        ("cost", true),
        ("active", true),
    ];
    figure_table(out, &columns, rows, None);
    out.lit("<p class=\"more-link\"><a href=\"").text(&figures.link("/sessions", &[]));
    out.lit("\">All sessions</a></p></section>\n<div class=\"pair\">");
    branches(out, figures, details);
    worktrees(out, figures, details);
    out.lit("</div>\n");
}

fn branches(out: &mut Markup, figures: Figures<'_>, details: &ProjectDetails) {
    section(out, "Branches", "sessions that ended on a branch; cost of the calls on it");
    let rows = details.branches.iter().map(|branch| {
        let name = if branch.branch.is_empty() { "(none)" } else { &branch.branch };
        let sessions = humanize::count(branch.sessions);
        let sessions = match branch.sessions {
            0 => FigureCell::plain(sessions),
            _ => FigureCell::link(sessions, figures.link("/sessions", &[("branch", &branch.branch)])),
        };
        let cost = branch.usage.short_cost();
        let cost = match &*branch.branch {
            "" => FigureCell::plain(cost),
            branch => FigureCell::link(cost, figures.link("/usage", &[("branch", branch)])),
        };
        vec![FigureCell::plain(name), sessions, cost]
    });
    figure_table(out, &[("branch", false), ("sessions", true), ("cost", true)], rows, None);
    out.lit("</section>\n");
}

fn worktrees(out: &mut Markup, figures: Figures<'_>, details: &ProjectDetails) {
    section(out, "Worktrees", "other working directories of its sessions");
    if details.worktrees.is_empty() {
        out.lit("<p class=\"quiet\">None</p></section>\n");
        return;
    }
    let rows = details.worktrees.iter().map(|(directory, sessions)| {
        let href = figures.records(&[("kind", "sessions"), ("directory", directory)]);
        vec![FigureCell::plain(figures.path(directory)), FigureCell::link(humanize::count(*sessions), href)]
    });
    figure_table(out, &[("directory", false), ("sessions", true)], rows, None);
    out.lit("</section>\n");
}
