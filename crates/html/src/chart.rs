//! A small chart of context size and cost per turn.

use threadline_view::{TurnLayout, humanize};

use crate::markup::Markup;
use crate::text_format;

/// The size of each of the two charts.
const WIDTH: usize = 360;
const HEIGHT: u64 = 48;

/// The maximum number of bars. With more turns, one bar covers several.
const BARS: usize = 120;

/// Draws the context size at the last reply and the cost of each turn. Empty for sessions of fewer than three
/// turns.
pub(crate) fn growth_chart(turns: &[TurnLayout]) -> Markup {
    let mut out = Markup::new();
    if turns.len() < 3 {
        return out;
    }
    let per = turns.len().div_ceil(BARS);
    let bars: Vec<TurnBar> = turns.chunks(per).map(TurnBar::of).collect();
    let most = bars.iter().map(|bar| bar.context).max().unwrap_or(0);
    let dearest = bars.iter().map(|bar| bar.cost).fold(0.0, f64::max);
    if most == 0 && dearest == 0.0 {
        return out;
    }
    let per_bar = if per > 1 { "group of turns" } else { "turn" };
    out.lit("<div class=\"growth\">");
    if most > 0 {
        let axis = ChartAxis {
            label: format!("context in tokens, per {per_bar}"),
            top: humanize::short_count(most),
            has_compactions: bars.iter().any(|bar| bar.compacted),
        };
        let heights = bars
            .iter()
            .map(|bar| (bar.context as f64 / most as f64, humanize::short_count(bar.context) + " tokens"));
        row(&mut out, &bars, "g-context", &axis, heights);
    }
    if dearest > 0.0 {
        let axis = ChartAxis {
            label: format!("cost per {per_bar}"),
            top: format!("${dearest:.2}"),
            has_compactions: false,
        };
        let heights = bars.iter().map(|bar| (bar.cost / dearest, format!("${:.2}", bar.cost)));
        row(&mut out, &bars, "g-cost", &axis, heights);
    }
    out.lit("</div>\n");
    out
}

/// The labels of a chart.
struct ChartAxis {
    /// What the bars show.
    label: String,
    /// The value of the highest bar.
    top: String,
    /// Whether some bars are marked as compacted.
    has_compactions: bool,
}

/// One turn, or several consecutive ones.
struct TurnBar {
    anchor: String,
    numbers: (usize, usize),
    title: String,
    context: u64,
    cost: f64,
    compacted: bool,
}

impl TurnBar {
    fn of(turns: &[TurnLayout]) -> Self {
        let (first, last) = (&turns[0], &turns[turns.len() - 1]);
        Self {
            anchor: first.turn.anchor.clone(),
            numbers: (first.turn.number, last.turn.number),
            title: text_format::excerpt(&first.line.title, 60),
            context: turns.iter().map(|turn| turn.context).max().unwrap_or(0),
            cost: turns.iter().map(|turn| turn.turn.spent.cost.to_f64()).sum(),
            compacted: turns.iter().any(|turn| turn.line.compactions > 0),
        }
    }
}

fn row(
    out: &mut Markup,
    bars: &[TurnBar],
    class: &'static str,
    axis: &ChartAxis,
    heights: impl Iterator<Item = (f64, String)>,
) {
    let step = (WIDTH / bars.len()).clamp(3, 24);
    // The bars fill the axis, also if they are few.
    let width = (step * bars.len()) as u64;
    let step = step as u64;
    out.lit("<figure><p class=\"top-value\" aria-hidden=\"true\">")
        .text(&axis.top)
        .lit("</p><svg class=\"")
        .lit(class)
        .lit("\" role=\"group\" viewBox=\"0 0 ")
        .num(width)
        .lit(" ");
    out.num(HEIGHT)
        .lit("\" preserveAspectRatio=\"none\" aria-label=\"")
        .text(&axis.label)
        .lit(", up to ")
        .text(&axis.top)
        .lit("\">");
    for (i, (bar, (share, value))) in bars.iter().zip(heights).enumerate() {
        let height = ((share * HEIGHT as f64).round() as u64).min(HEIGHT).max(u64::from(share > 0.0));
        out.lit("<a href=\"#").text(&bar.anchor).lit("\"><title>");
        out.num(bar.numbers.0 as u64);
        if bar.numbers.1 > bar.numbers.0 {
            out.lit("–").num(bar.numbers.1 as u64);
        }
        out.lit(" ").text(&bar.title).lit(": ").text(&value).lit("</title>");
        // The whole height is clickable.
        let x = i as u64 * step;
        out.lit("<rect class=\"hit-area\" x=\"")
            .num(x)
            .lit("\" y=\"0\" width=\"")
            .num(step)
            .lit("\" height=\"")
            .num(HEIGHT);
        out.lit("\"/><rect class=\"bar")
            .lit(if bar.compacted && class == "g-context" { " compacted" } else { "" })
            .lit("\" x=\"")
            .num(x)
            .lit("\" y=\"");
        out.num(HEIGHT - height)
            .lit("\" width=\"")
            .num((step * 4 / 5).max(1))
            .lit("\" height=\"")
            .num(height);
        out.lit("\"/></a>");
    }
    out.lit("</svg><p class=\"turn-axis\" aria-hidden=\"true\"><span>turn 1</span><span>turn ");
    out.num(bars.last().map_or(1, |bar| bar.numbers.1) as u64)
        .lit("</span></p><figcaption>")
        .text(&axis.label);
    if axis.has_compactions {
        out.lit("; <span class=\"compaction-key\">compacted</span>");
    }
    out.lit("</figcaption></figure>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bars_fill_the_axis() {
        let bar = |number: usize| TurnBar {
            anchor: format!("m{number}"),
            numbers: (number, number),
            title: String::new(),
            context: 1,
            cost: 0.0,
            compacted: false,
        };
        let bars: Vec<TurnBar> = (1..=7).map(bar).collect();
        let axis = ChartAxis { label: String::new(), top: String::new(), has_compactions: false };
        let mut out = Markup::new();
        row(&mut out, &bars, "g-cost", &axis, bars.iter().map(|_| (1.0, String::new())));
        let svg = out.into_string();
        assert!(svg.contains("viewBox=\"0 0 168 48\"") && svg.contains("x=\"144\""), "{svg}");
    }
}
