//! The outline in the sidebar: one line per turn.

use threadline_view::{Money, OutlineLine};

use crate::markup::Markup;
use crate::text_format;

/// Returns the length of each turn's bar in percent of the longest, by cost or, if no cost is known, by
/// tokens.
pub(crate) fn bar_lengths(lines: &[OutlineLine]) -> Vec<u64> {
    let priced = lines.iter().any(|line| line.spent.cost > Money::ZERO);
    let fresh = |line: &OutlineLine| match priced {
        true => (line.spent.cost.to_f64() * 1e6) as u64,
        false => line.tokens.input + line.tokens.cache_write + line.tokens.output,
    };
    let most = lines.iter().map(fresh).max().unwrap_or(0).max(1);
    lines.iter().map(|line| fresh(line) * 100 / most).collect()
}

/// The maximum number of characters of the name of a turn.
pub(crate) const MAX_TITLE: usize = 140;

pub(crate) fn outline_line(out: &mut Markup, line: &OutlineLine, percent: u64) {
    out.lit("<li><a href=\"#").text(&line.anchor).lit("\"><span class=\"no\">").num(line.number as u64);
    out.lit("</span><span class=\"title\">");
    let title = text_format::excerpt(&line.title, MAX_TITLE);
    out.text(if title.is_empty() { "No prompt" } else { &title }).lit("</span>");
    let marks = [
        (
            line.errors,
            "<span class=\"m bad\" title=\"errors\"><i aria-hidden=\"true\">✗</i>",
            [" error", " errors"],
        ),
        (
            line.all_edits(),
            "<span class=\"m\" title=\"edits\"><i aria-hidden=\"true\">±</i>",
            [" edit", " edits"],
        ),
        (
            line.compactions,
            "<span class=\"m\" title=\"compactions\"><i aria-hidden=\"true\">⤓</i>",
            [" compaction", " compactions"],
        ),
    ];
    if marks.iter().any(|(count, ..)| *count > 0) || line.open || line.spent.calls > 0 {
        out.lit("<span class=\"marks\">");
        for (count, open, words) in marks {
            if count > 0 {
                let word = words[usize::from(count != 1)];
                out.lit(open).num(count as u64).lit("<span class=\"sr\">").lit(word);
                if word.starts_with(" edit") && line.shell_edits > 0 {
                    out.lit(", ").num(line.shell_edits as u64).lit(" by shell");
                }
                out.lit("</span></span>");
            }
        }
        if line.open {
            out.lit("<span class=\"m\">unfinished</span>");
        }
        if line.spent.calls > 0 {
            out.text_element("span class=\"m sum\"", &line.spent.short_cost());
        }
        out.lit("</span>");
    }
    out.lit("<svg viewBox=\"0 0 100 2\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect height=\"2\" width=\"");
    out.num(percent.clamp(1, 100)).lit("\"/></svg></a></li>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_a_singular_and_a_plural() {
        let line = OutlineLine { errors: 1, edits: 2, compactions: 1, ..OutlineLine::default() };
        let mut out = Markup::new();
        outline_line(&mut out, &line, 0);
        let html = out.into_string();
        for shown in
            ["1<span class=\"sr\"> error<", "2<span class=\"sr\"> edits<", "1<span class=\"sr\"> compaction<"]
        {
            assert!(html.contains(shown), "{shown}: {html}");
        }
        let mut out = Markup::new();
        outline_line(&mut out, &OutlineLine { edits: 1, shell_edits: 2, ..OutlineLine::default() }, 0);
        let html = out.into_string();
        assert!(html.contains("3<span class=\"sr\"> edits, 2 by shell<"), "{html}");
    }
}
