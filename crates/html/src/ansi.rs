//! Terminal output as markup: SGR sequences become spans, all other control sequences are shown as text.

use threadline_view::{OutputPart, output_parts};

use crate::markup::Markup;

/// The current text attributes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct TextStyle {
    /// Foreground colour, 1 to 16; 0 is the default.
    fore: u8,
    /// Background colour, 1 to 16; 0 is the default.
    back: u8,
    bold: bool,
    dim: bool,
    italic: bool,
    underlined: bool,
}

/// Adds terminal output.
pub(crate) fn terminal(out: &mut Markup, text: &str) {
    let mut look = TextStyle::default();
    for part in output_parts(text) {
        match part {
            OutputPart::Text(text) => look.span(out, text),
            OutputPart::Colours(codes) => look.change(codes),
        }
    }
}

const FORE: [&str; 17] = [
    "", "f0 ", "f1 ", "f2 ", "f3 ", "f4 ", "f5 ", "f6 ", "f7 ", "f8 ", "f9 ", "f10 ", "f11 ", "f12 ", "f13 ",
    "f14 ", "f15 ",
];
const BACK: [&str; 17] = [
    "", "b0 ", "b1 ", "b2 ", "b3 ", "b4 ", "b5 ", "b6 ", "b7 ", "b8 ", "b9 ", "b10 ", "b11 ", "b12 ", "b13 ",
    "b14 ", "b15 ",
];

impl TextStyle {
    fn span(self, out: &mut Markup, text: &str) {
        if text.is_empty() {
            return;
        }
        if self == Self::default() {
            out.text(text);
            return;
        }
        out.lit("<span class=\"").lit(FORE[usize::from(self.fore)]).lit(BACK[usize::from(self.back)]);
        for (set, class) in
            [(self.bold, "bo "), (self.dim, "di "), (self.italic, "it "), (self.underlined, "un ")]
        {
            if set {
                out.lit(class);
            }
        }
        out.lit("\">").text(text).lit("</span>");
    }

    fn change(&mut self, codes: &str) {
        let mut codes = codes.split([';', ':']).map(|code| code.parse::<u8>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underlined = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underlined = false,
                30..=37 => self.fore = code - 29,
                40..=47 => self.back = code - 39,
                90..=97 => self.fore = code - 81,
                100..=107 => self.back = code - 91,
                39 => self.fore = 0,
                49 => self.back = 0,
                38 | 48 => {
                    let colour = match codes.next() {
                        Some(5) => codes.next().filter(|colour| *colour < 16).map_or(0, |colour| colour + 1),
                        Some(2) => codes.by_ref().take(3).map(|_| 0).last().unwrap_or(0),
                        _ => 0,
                    };
                    *(if code == 38 { &mut self.fore } else { &mut self.back }) = colour;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        let mut out = Markup::new();
        terminal(&mut out, text);
        out.into_string()
    }

    #[test]
    fn colours_become_spans() {
        let text = "\u{1b}[1;31merror\u{1b}[0m: <x> \u{1b}[38;5;10mok\u{1b}[38;2;1;2;3m rgb\u{1b}[m.";
        assert_eq!(
            rendered(text),
            "<span class=\"f1 bo \">error</span>: &lt;x&gt; <span class=\"f10 \">ok</span> rgb."
        );
    }

    #[test]
    fn other_control_sequences_are_shown() {
        assert_eq!(rendered("\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}["), "^[[2J^[]0;t^G^[[");
    }
}
