//! Parses the colour sequences (SGR) in program output. They are rendered as styles; no sequence of the
//! output reaches the terminal.

use anstyle::{Ansi256Color, AnsiColor, Color, Effects, RgbColor, Style};

use threadline_view::{OutputPart, output_parts, strip_colours};

use crate::page::without_tabs;
use crate::styled::StyledText;
use crate::visible;

/// Calls `visit` with each line of a text, styled by the colour sequences in it.
///
/// The sequences modify `base` and stay in effect across lines. Tabs become spaces, and all other control
/// sequences are made visible.
pub(crate) fn each_line(text: &str, base: Style, mut visit: impl FnMut(StyledText)) {
    let mut line = StyledText::default();
    let mut style = base;
    for part in output_parts(text) {
        match part {
            OutputPart::Text(text) => {
                for piece in text.split_inclusive('\n') {
                    let (piece, ends) = match piece.strip_suffix('\n') {
                        Some(piece) => (piece.strip_suffix('\r').unwrap_or(piece), true),
                        None => (piece, false),
                    };
                    line.push(style, &without_tabs(visible(piece)));
                    if ends {
                        visit(std::mem::take(&mut line));
                    }
                }
            }
            OutputPart::Colours(codes) => style = apply(style, base, codes),
        }
    }
    visit(line);
}

/// Returns the text without colour sequences and trailing carriage returns, and with tabs as spaces. Other
/// control characters are made visible.
pub fn without_colours(text: &str) -> String {
    without_tabs(visible(&strip_colours(text.trim_end_matches('\r')))).into_owned()
}

/// Returns `style` changed by the codes of a colour sequence. Code 0 resets it to `base`.
fn apply(mut style: Style, base: Style, codes: &str) -> Style {
    let mut codes = codes.split([';', ':']).map(|code| code.parse::<u8>().unwrap_or(0));
    while let Some(code) = codes.next() {
        let add = |effect: Effects| style.effects(style.get_effects() | effect);
        style = match code {
            0 => base,
            1 => add(Effects::BOLD),
            2 => add(Effects::DIMMED),
            3 => add(Effects::ITALIC),
            4 => add(Effects::UNDERLINE),
            7 => add(Effects::INVERT),
            9 => add(Effects::STRIKETHROUGH),
            // Each of these ends one effect. Ending all of them is close enough.
            22..=29 => style.effects(base.get_effects()),
            30..=37 | 90..=97 => style.fg_color(basic_colour(code)),
            40..=47 | 100..=107 => style.bg_color(basic_colour(code - 10)),
            39 => style.fg_color(base.get_fg_color()),
            49 => style.bg_color(base.get_bg_color()),
            38 => style.fg_color(extended_colour(&mut codes)),
            48 => style.bg_color(extended_colour(&mut codes)),
            _ => style,
        };
    }
    style
}

fn basic_colour(code: u8) -> Option<Color> {
    const COLOURS: [AnsiColor; 8] = [
        AnsiColor::Black,
        AnsiColor::Red,
        AnsiColor::Green,
        AnsiColor::Yellow,
        AnsiColor::Blue,
        AnsiColor::Magenta,
        AnsiColor::Cyan,
        AnsiColor::White,
    ];
    let colour = COLOURS.get(usize::from(code % 10))?;
    Some(if code >= 90 { colour.bright(true) } else { *colour }.into())
}

/// Parses a colour of the 256-colour or RGB palette.
fn extended_colour(codes: &mut impl Iterator<Item = u8>) -> Option<Color> {
    match codes.next()? {
        5 => Some(Ansi256Color(codes.next()?).into()),
        2 => Some(RgbColor(codes.next()?, codes.next()?, codes.next()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::TermPage;

    #[test]
    fn colours_are_kept_and_other_sequences_are_made_visible() {
        let text = "\u{1b}[1;31merror\u{1b}[0m: \u{1b}[38;5;12mx\u{1b}[39m\u{1b}[2J\u{1b}]0;t\u{7}";
        let mut lines = Vec::new();
        each_line(text, Style::new(), |line| lines.push(line));
        let [styled] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(
            styled.paint(TermPage { width: None, color: false, links: false, whole_lines: false }).as_str(),
            "error: x^[[2J^[]0;t^G"
        );
        let painted = styled.paint(TermPage { width: None, color: true, links: false, whole_lines: false });
        assert!(
            painted.as_str().starts_with("\u{1b}[1m\u{1b}[31merror\u{1b}[0m: \u{1b}[38;5;12mx\u{1b}[0m^[["),
            "{painted:?}"
        );
    }
}
