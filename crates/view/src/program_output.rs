//! Output of programs: text, and the colours requested from the terminal.

/// A part of a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPart<'a> {
    /// Text. Other control sequences are still in it; the caller must make them visible.
    Text(&'a str),
    /// The colours of the following text: the parameters of a sequence, separated by `;` or `:`.
    Colours(&'a str),
}

/// Splits a program's output into text and colours.
///
/// Of hyperlinks only the text is kept. Sequences that erase a line are dropped.
pub fn output_parts(text: &str) -> impl Iterator<Item = OutputPart<'_>> {
    let mut rest = text;
    // The colours of a sequence, emitted after the text that precedes it.
    let mut next = None;
    std::iter::from_fn(move || {
        loop {
            if let Some(colours) = next.take() {
                return Some(OutputPart::Colours(colours));
            }
            if rest.is_empty() {
                return None;
            }
            let (before, command, after) = first_sequence(rest).unwrap_or((rest, None, ""));
            rest = after;
            next = command;
            if !before.is_empty() {
                return Some(OutputPart::Text(before));
            }
        }
    })
}

/// Returns the text without colours.
pub fn strip_colours(text: &str) -> String {
    let text = output_parts(text).filter_map(|part| match part {
        OutputPart::Text(text) => Some(text),
        OutputPart::Colours(_) => None,
    });
    text.collect()
}

/// Returns the text before the first known sequence, its colour parameters if it sets any, and the rest.
fn first_sequence(text: &str) -> Option<(&str, Option<&str>, &str)> {
    text.match_indices('\u{1b}').find_map(|(at, _)| {
        let (before, escape) = text.split_at(at);
        if let Some(body) = escape.strip_prefix("\u{1b}[") {
            let end = body.find(|ch: char| !matches!(ch, '0'..='9' | ';' | ':'))?;
            return match body.as_bytes()[end] {
                b'm' => Some((before, Some(&body[..end]), &body[end + 1..])),
                b'K' => Some((before, None, &body[end + 1..])),
                _ => None,
            };
        }
        let link = escape.strip_prefix("\u{1b}]8;")?;
        let end = link.find(['\u{7}', '\u{1b}', '\n'])?;
        let after = link[end..].strip_prefix('\u{7}').or_else(|| link[end..].strip_prefix("\u{1b}\\"))?;
        Some((before, None, after))
    })
}

#[cfg(test)]
mod tests {
    use super::OutputPart::{Colours, Text};
    use super::*;

    #[test]
    fn colours_are_split_off_and_links_keep_their_text() {
        let all = |text| output_parts(text).collect::<Vec<_>>();
        assert_eq!(all("\u{1b}[1;31mred\u{1b}[m!"), [Colours("1;31"), Text("red"), Colours(""), Text("!")]);
        assert_eq!(all("a\u{1b}[2Kb\u{1b}[K"), [Text("a"), Text("b")]);
        assert_eq!(
            strip_colours("see \u{1b}]8;;http://x/\u{1b}\\the \u{1b}[4mloom\u{1b}[0m\u{1b}]8;;\u{7}."),
            "see the loom."
        );
        // Unknown or truncated sequences stay.
        for text in [
            "",
            "plain",
            "\u{1b}[2J",
            "\u{1b}[31",
            "\u{1b}]8;;http://x\n",
            "\u{1b}]0;t\u{7}",
            "\u{1b}",
            "\u{1b}[é",
        ] {
            assert_eq!(strip_colours(text), text);
        }
        assert_eq!(all("\u{1b}[2J\u{1b}[1mx"), [Text("\u{1b}[2J"), Colours("1"), Text("x")]);
    }
}
