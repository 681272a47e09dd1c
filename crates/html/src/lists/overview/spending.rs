//! Cost and tokens: over time by model, by project, and by session.

use std::fmt::Write;

use threadline_view::{Money, UsageBin, UsageTotals, humanize, short_model};

use super::{Figures, section, time};
use crate::lists::chart::{self, ChartBar, ChartColumn, ColumnChart, SERIES};
use crate::lists::figure_table::{FigureCell, figure_table};
use crate::lists::link;
use crate::lists::model_colors::ModelColors;
use crate::lists::usage_table::{UsageTableRow, dollars, figures as totals_text, table};
use crate::markup::Markup;
use crate::text_format;

/// Adds the charts of cost and tokens, with their tables.
pub(super) fn over_time(out: &mut Markup, figures: Figures<'_>) {
    let overview = figures.overview;
    let total = &overview.selected.figures.usage;
    section(out, "Cost and tokens by model", &format!("per {}", overview.bin_size.name()));
    if total.calls == 0 {
        out.lit("<p class=\"quiet\">No model calls</p></section>\n");
        return;
    }
    legend(out, figures);
    if total.cost > Money::ZERO {
        let value = |totals: &UsageTotals| totals.cost.to_f64();
        columns(out, figures, "Cost, stacked by model", &value, &dollars);
    }
    let value = |totals: &UsageTotals| totals.tokens.total() as f64;
    let scale = |value: f64| humanize::short_count(value as u64);
    columns(out, figures, "Tokens, stacked by model", &value, &scale);
    let used: Vec<&UsageBin> = overview.bins.iter().filter(|bin| bin.totals.calls > 0).collect();
    table(
        out,
        (overview.bin_size.name(), None),
        used.iter().rev().map(|bin| UsageTableRow {
            name: bin.label.clone(),
            href: bin_link(figures, bin, "/usage"),
            explain_href: bin_link(figures, bin, "/usage/explain"),
            totals: &bin.totals,
            extra: None,
        }),
        total,
        used.len().max(9),
    );
    out.lit("<h3>By model</h3>\n");
    table(
        out,
        ("model", None),
        overview.models.iter().map(|(model, totals)| UsageTableRow {
            name: short_model(model).to_owned(),
            href: figures.link("/usage", &[("model", model)]),
            explain_href: figures.link("/usage/explain", &[("model", model)]),
            totals,
            extra: None,
        }),
        total,
        0,
    );
    out.lit("</section>\n");
}

/// Returns a link that is limited to a bin.
fn bin_link(figures: Figures<'_>, bin: &UsageBin, path: &str) -> String {
    figures.time_link(path, &bin.since, &bin.until, &[])
}

fn legend(out: &mut Markup, figures: Figures<'_>) {
    let colors = ModelColors(figures.page.models);
    let models = figures.overview.models.iter();
    let (mut others, mut own): (Vec<_>, Vec<_>) = models.partition(|(model, _)| colors.is_shared(model));
    // The name of a single one is as short as a count.
    if others.len() == 1 {
        own.append(&mut others);
    }
    out.lit("<ul class=\"legend\">");
    for (model, totals) in own {
        key(out, SERIES[colors.series(model)]);
        out.lit("<a href=\"").text(&figures.link("/usage", &[("model", model)])).lit("\">");
        out.text(short_model(model)).lit("</a> <span class=\"num\">").text(&totals.short_cost());
        out.lit("</span></li>");
    }
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|(model, _)| short_model(model)).collect();
        key(out, SERIES[SERIES.len() - 1]);
        out.lit("<span title=\"").text(&names.join(", ")).lit("\">");
        out.text(&humanize::plural(names.len() as u64, "other")).lit("</span></li>");
    }
    out.lit("</ul>\n");
}

/// Begins a legend entry with its colour swatch.
fn key(out: &mut Markup, colour: &'static str) {
    out.lit("<li><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"").lit(colour);
    out.lit("\" width=\"10\" height=\"10\"/></svg>");
}

fn columns(
    out: &mut Markup,
    figures: Figures<'_>,
    name: &str,
    value: &dyn Fn(&UsageTotals) -> f64,
    scale: &dyn Fn(f64) -> String,
) {
    let overview = figures.overview;
    let bins = &overview.bins;
    let colors = ModelColors(figures.page.models);
    // About ten labels.
    let every = bins.len().div_ceil(10).max(1);
    let columns: Vec<ChartColumn> = bins
        .iter()
        .enumerate()
        .map(|(place, bin)| {
            let mut title = format!("{}: {}", bin.label, totals_text(&bin.totals));
            let mut parts = Vec::new();
            for (model, totals) in &bin.models {
                let name = overview.models.get(*model).map_or("", |(name, _)| name);
                parts.push((colors.series(name), value(totals)));
                let _ = write!(title, "\n{}: {}", short_model(name), totals_text(totals));
            }
            let is_labelled = place % every == 0;
            ChartColumn {
                label: is_labelled.then(|| short_label(&bin.label)),
                href: (bin.totals.calls > 0).then(|| bin_link(figures, bin, "/usage")),
                title,
                parts,
            }
        })
        .collect();
    chart::columns(out, &ColumnChart { name, columns: &columns, scale, top: None });
}

/// Shortens a day to its day and month, as there is little space below a column.
fn short_label(label: &str) -> String {
    let day = label.parse::<jiff::civil::Date>();
    day.map_or_else(|_| label.to_owned(), |day| day.strftime("%-d %b").to_string())
}

pub(super) fn projects(out: &mut Markup, figures: Figures<'_>) {
    let overview = figures.overview;
    let more = match overview.n_projects.saturating_sub(overview.projects.len()) {
        0 => "highest cost first".to_owned(),
        rest => format!("highest cost first; {} more", humanize::count(rest as u64)),
    };
    section(out, "Projects", &more);
    let names = link::project_names(overview.projects.iter().map(|project| &*project.project));
    let bars: Vec<ChartBar> = overview
        .projects
        .iter()
        .map(|project| ChartBar {
            label: text_format::excerpt(names[&*project.project], 24),
            href: Some(project_link(&project.project)),
            title: format!("{}: {}", project.project, totals_text(&project.usage)),
            value: project.usage.cost.to_f64(),
            shown: project.usage.short_cost(),
        })
        .collect();
    chart::bars(out, "Cost by project", &bars);
    let rows = overview.projects.iter().map(|project| {
        let name = [("project", &*project.project)];
        let prompts = [("kind", "prompts"), ("project", &*project.project)];
        vec![
            FigureCell::link(figures.path(&project.project), project_link(&project.project)),
            FigureCell::link(humanize::count(project.sessions), figures.link("/sessions", &name)),
            FigureCell::link(humanize::count(project.prompts), figures.records(&prompts)),
            FigureCell::link(project.usage.short_cost(), figures.link("/usage", &name)),
            FigureCell::plain(time(project.active)),
        ]
    });
    let columns =
        [("project", false), ("sessions", true), ("prompts", true), ("cost", true), ("active", true)];
    figure_table(out, &columns, rows, None);
    out.lit("</section>\n");
}

/// Returns the link to the page of a project.
pub(super) fn project_link(project: &str) -> String {
    link::href("/project", [("name", project)])
}

pub(super) fn sessions(out: &mut Markup, figures: Figures<'_>) {
    section(out, "Top sessions", "highest cost in the period first");
    let rows = figures.overview.sessions.iter().map(|session| {
        let id = [("session", &*session.id)];
        let prompts = [("kind", "prompts"), ("session", &*session.id)];
        let calls = [("kind", "calls"), ("session", &*session.id)];
        vec![
            FigureCell::link(text_format::excerpt(&session.title, 70), link::session(&session.id))
                .titled(figures.path(&session.project)),
            FigureCell::link(humanize::count(session.prompts), figures.records(&prompts)),
            FigureCell::link(humanize::count(session.calls), figures.records(&calls)),
            FigureCell::link(session.usage.short_cost(), figures.link("/usage", &id)),
            FigureCell::plain(time(session.active)),
        ]
    });
    let columns =
        [("session", false), ("prompts", true), ("tool calls", true), ("cost", true), ("active", true)];
    figure_table(out, &columns, rows, None);
    out.lit("<p class=\"more-link\"><a href=\"").text(&figures.link("/sessions", &[("sort", "cost")]));
    out.lit("\">All sessions by cost</a></p></section>\n");
}
