//! Tables of figures with links to what they count.

use crate::markup::Markup;

/// A column: its heading, and whether it contains numbers.
pub(super) type FigureColumn = (&'static str, bool);

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct FigureCell {
    text: String,
    href: Option<String>,
    title: Option<String>,
}

impl FigureCell {
    /// Returns a cell without a link.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns a cell with a link.
    pub(super) fn link(text: impl Into<String>, href: String) -> Self {
        Self { text: text.into(), href: Some(href), ..Self::default() }
    }

    /// Adds a tooltip.
    pub(super) fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// Adds a table. The first column names the rows. With a `summary`, it is collapsed.
pub(super) fn figure_table(
    out: &mut Markup,
    columns: &[FigureColumn],
    rows: impl IntoIterator<Item = Vec<FigureCell>>,
    summary: Option<&'static str>,
) {
    if let Some(summary) = summary {
        out.lit("<details class=\"figures\"><summary>").lit(summary).lit("</summary>");
    }
    out.lit("<div class=\"table\"><table class=\"numbers\"><thead><tr>");
    for (name, is_number) in columns {
        // A heading without text is none.
        if name.is_empty() {
            out.lit("<td></td>");
            continue;
        }
        out.lit(if *is_number { "<th scope=\"col\" class=\"n\">" } else { "<th scope=\"col\">" });
        out.lit(name).lit("</th>");
    }
    out.lit("</tr></thead><tbody>\n");
    for row in rows {
        out.lit("<tr>");
        for (place, (cell, (_, is_number))) in row.iter().zip(columns).enumerate() {
            out.lit(match (place, *is_number) {
                (0, false) => "<th scope=\"row\"",
                (0, true) => "<th scope=\"row\" class=\"n\"",
                (_, false) => "<td",
                (_, true) => "<td class=\"n\"",
            });
            if let Some(title) = &cell.title {
                out.lit(" title=\"").text(title).lit("\"");
            }
            out.lit(">");
            match &cell.href {
                Some(href) => out.lit("<a href=\"").text(href).lit("\">").text(&cell.text).lit("</a>"),
                None => out.text(&cell.text),
            };
            out.lit(if place == 0 { "</th>" } else { "</td>" });
        }
        out.lit("</tr>\n");
    }
    out.lit("</tbody></table></div>");
    out.lit(if summary.is_some() { "</details>\n" } else { "\n" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_without_a_name_has_no_heading() {
        let mut out = Markup::new();
        figure_table(&mut out, &[("", false), ("count", true)], [vec![FigureCell::plain("all")]], None);
        let table = out.into_string();
        assert!(table.contains("<tr><td></td><th scope=\"col\" class=\"n\">count</th></tr>"), "{table}");
    }
}
