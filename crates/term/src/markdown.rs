//! Rendering of Markdown for the terminal.

use std::sync::Arc;

use anstyle::Style;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use crate::highlight::highlight;
use crate::page::{TermPage, TextLabel, truncate};
use crate::styled::StyledText;
use crate::text::TermText;
use crate::{text, visible};

/// Quotes and lists nested deeper than this get no further margin, since there is no space for one.
const MOST_MARGINS: usize = 40;

/// Renders Markdown as lines that fit the page after an indent. Raw HTML is shown as text.
pub(crate) fn render(text: &str, page: TermPage, indent: usize) -> Vec<TermText> {
    render_with(text, page, indent, true)
}

/// Renders a part of a Markdown text, which is not highlighted if its end is not known yet, since that can
/// take long.
pub(crate) fn render_part(text: &str, page: TermPage, is_finished: bool) -> Vec<TermText> {
    render_with(text, page, 0, is_finished)
}

fn render_with(text: &str, page: TermPage, indent: usize, highlights: bool) -> Vec<TermText> {
    let text = visible(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut setter = MarkdownFormatter::new(page, page.prose_width(indent));
    setter.highlights = highlights;
    for event in Parser::new_ext(&text, options) {
        setter.event(event);
    }
    setter.flush();
    setter.lines
}

struct MarkdownFormatter {
    page: TermPage,
    width: usize,
    /// Whether code is highlighted.
    highlights: bool,
    lines: Vec<TermText>,
    /// The current paragraph.
    text: StyledText,
    styles: Vec<Style>,
    /// The prefixes of the lines in the open containers: quotes and lists.
    margins: Vec<TermText>,
    /// Number of open containers without a margin.
    deeper: usize,
    /// The bullet that replaces the innermost margin of the next line.
    bullet: Option<TermText>,
    /// The next number of each open list. `None` for bullet lists.
    lists: Vec<Option<u64>>,
    code: Option<(String, String)>,
    link: Option<Arc<str>>,
    table: Option<MarkdownTable>,
}

#[derive(Default)]
struct MarkdownTable {
    aligns: Vec<Alignment>,
    rows: Vec<Vec<StyledText>>,
}

impl MarkdownFormatter {
    fn new(page: TermPage, width: usize) -> Self {
        Self {
            page,
            width,
            highlights: true,
            lines: Vec::new(),
            text: StyledText::default(),
            styles: vec![Style::new()],
            margins: Vec::new(),
            deeper: 0,
            bullet: None,
            lists: Vec::new(),
            code: None,
            link: None,
            table: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Appends text to the paragraph, as a link if it is inside one.
    fn push_text(&mut self, text: &str) {
        let style = self.style();
        match self.link.as_ref().filter(|url| is_clickable(url)) {
            Some(url) => self.text.push_link(style, text, url),
            None => self.text.push(style, text),
        }
    }

    /// Adds a label to the current style.
    fn enter(&mut self, label: TextLabel) {
        let (over, under) = (label.style(), self.style());
        let style = under.effects(under.get_effects() | over.get_effects());
        self.styles.push(style.fg_color(over.get_fg_color().or(under.get_fg_color())));
    }

    fn leave(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push_text(&text),
            },
            Event::Code(code) => {
                self.enter(TextLabel::Code);
                self.push_text(&code);
                self.leave();
            }
            Event::Html(html) | Event::InlineHtml(html) => self.text.push(TextLabel::Dim.style(), &html),
            Event::SoftBreak => self.text.push(self.style(), " "),
            Event::HardBreak => self.text.push(self.style(), "\n"),
            Event::Rule => {
                self.gap();
                let rule = self.page.paint(TextLabel::Dim, "─".repeat(self.room().min(40)));
                self.line(rule);
            }
            Event::TaskListMarker(done) => self.bullet = Some(if done { "☑ " } else { "☐ " }.into()),
            Event::FootnoteReference(name) => self.text.push(TextLabel::Dim.style(), &format!("[{name}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text.push(self.style(), &text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph if self.bullet.is_none() => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                self.enter(TextLabel::Strong);
                if level <= HeadingLevel::H2 {
                    self.text.push(TextLabel::Dim.style(), &"#".repeat(level as usize));
                    self.text.push(self.style(), " ");
                }
            }
            Tag::BlockQuote(_) => {
                self.gap();
                let margin = self.page.paint(TextLabel::Dim, "│ ");
                self.push_margin(margin);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.gap();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.push_margin(" ".repeat(bullet.width()).into());
                self.bullet = Some(self.page.paint(TextLabel::Dim, bullet));
            }
            Tag::Emphasis => self.enter(TextLabel::Emphasis),
            Tag::Strong => self.enter(TextLabel::Strong),
            Tag::Strikethrough => self.enter(TextLabel::Dim),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.enter(TextLabel::Link);
                self.link = Some(dest_url.into_string().into());
            }
            Tag::Table(aligns) => {
                self.gap();
                self.table = Some(MarkdownTable { aligns, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.leave();
                self.flush();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.pop_margin();
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                // An item without text still gets a bullet.
                if self.bullet.is_some() {
                    self.line("");
                }
                self.pop_margin();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.leave(),
            TagEnd::Link | TagEnd::Image => {
                self.leave();
                if let Some(url) = self.link.take().filter(|url| !self.page.links || !is_clickable(url)) {
                    self.text.push(TextLabel::Dim.style(), &format!(" ({url})"));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.draw_table(),
            _ => {}
        }
    }

    fn push_margin(&mut self, margin: TermText) {
        if self.margins.len() < MOST_MARGINS {
            self.margins.push(margin);
        } else {
            self.deeper += 1;
        }
    }

    fn pop_margin(&mut self) {
        match self.deeper.checked_sub(1) {
            Some(deeper) => self.deeper = deeper,
            None => drop(self.margins.pop()),
        }
    }

    /// Columns that remain next to the margins.
    fn room(&self) -> usize {
        let margins: usize = self.margins.iter().map(TermText::width).sum();
        self.width.saturating_sub(margins).max(10)
    }

    /// Ends the paragraph and adds an empty line, unless there is one already or no line precedes it.
    fn gap(&mut self) {
        self.flush();
        let outer = concat(&self.margins);
        if self.lists.is_empty() && self.lines.last().is_some_and(|line| !line.plain().trim().is_empty()) {
            self.lines.push(outer.trim_end());
        }
    }

    fn line(&mut self, text: impl Into<TermText>) {
        let bullet = self.bullet.take();
        let (last, outer) = match self.margins.split_last() {
            Some((last, outer)) => (bullet.unwrap_or_else(|| last.clone()), concat(outer)),
            None => (TermText::new(), TermText::new()),
        };
        let line = (outer + last + text).trim_end();
        self.lines.push(line);
    }

    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        text.wrap_each(self.page, self.room(), |line| self.line(line));
    }

    fn code_block(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let room = self.room().saturating_sub(2);
        let language = if self.highlights { language } else { String::new() };
        for line in highlight(&code, &language, self.page) {
            self.line(code_line(line, room));
        }
    }

    /// Renders a table. Columns have their natural width. If that is too wide, the widest ones are
    /// narrowed.
    fn draw_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in &table.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let room = self.room().saturating_sub(3 * columns.saturating_sub(1)).max(columns);
        narrow(&mut widths, room);
        for (i, row) in table.rows.iter().enumerate() {
            let wrap = |(cell, width): (&StyledText, &usize)| {
                let mut lines = Vec::new();
                cell.wrap_each(self.page, (*width).max(1), |line| lines.push(line));
                lines
            };
            let cells: Vec<Vec<TermText>> = row.iter().zip(&widths).map(wrap).collect();
            for part in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let cell = |(column, lines): (usize, &Vec<TermText>)| {
                    let text = lines.get(part).cloned().unwrap_or_default();
                    let gap = " ".repeat(widths[column].saturating_sub(text.width()));
                    match table.aligns.get(column) {
                        Some(Alignment::Right) => text!("{gap}{text}"),
                        _ => text + gap,
                    }
                };
                let line = TermText::join(cells.iter().enumerate().map(cell), &" │ ".into());
                self.line(line);
            }
            if i == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let rule = self.page.paint(TextLabel::Dim, rule.join("─┼─"));
                self.line(rule);
            }
        }
    }
}

/// Narrows the widest columns until all fit, the last of them first.
fn narrow(widths: &mut [usize], room: usize) {
    let total = |max: usize| widths.iter().map(|width| (*width).min(max)).sum::<usize>();
    let (mut fits, mut too_wide) = (0, widths.iter().copied().max().unwrap_or(0));
    if total(too_wide) <= room {
        return;
    }
    while fits + 1 < too_wide {
        let max = fits + (too_wide - fits) / 2;
        *(if total(max) <= room { &mut fits } else { &mut too_wide }) = max;
    }
    let mut rest = room.saturating_sub(total(fits));
    for width in widths.iter_mut().filter(|width| **width > fits) {
        let is_wider = rest > 0;
        *width = fits + usize::from(is_wider);
        rest -= usize::from(is_wider);
    }
}

/// Returns an indented line of code, truncated to `room` columns.
pub(crate) fn code_line(line: TermText, room: usize) -> TermText {
    let line = if line.width() > room { truncate(&line.plain(), room).into() } else { line };
    text!("  {line}").trim_end()
}

/// Returns whether a URL may become a clickable link.
fn is_clickable(url: &str) -> bool {
    let known = ["https://", "http://", "mailto:"].iter().any(|scheme| url.starts_with(scheme));
    // Terminals and browsers limit the length of a URL.
    known && url.len() <= 2000 && !url.chars().any(char::is_control)
}

fn concat(parts: &[TermText]) -> TermText {
    let mut out = TermText::new();
    parts.iter().for_each(|part| out.push(part));
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> String {
        let page = TermPage { width: Some(44), color: true, links: false, whole_lines: false };
        let lines = render_part(text, page, true);
        lines.iter().map(TermText::plain).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn all_elements_are_rendered() {
        insta::assert_snapshot!(set("# Title\n\nSome **bold** text that is long enough to be wrapped, with `code`.\n\n- one\n- two\n  1. inner\n  2. more inner text that goes on and on\n- [x] done\n\n> quoted\n> text\n\n```rust\nlet x = 1;\n```\n\n| a | number |\n|---|---:|\n| 错误 | 12 |\n| b | 3 |\n\n---\n[link](https://example.org) <b>raw</b>"), @r"
        # Title

        Some bold text that is long enough to be
        wrapped, with code.

        • one
        • two
          1. inner
          2. more inner text that goes on and on
        ☑ done

        │ quoted text

          let x = 1;

        a    │ number
        ─────┼───────
        错误 │     12
        b    │      3

        ────────────────────────────────────────

        link (https://example.org) <b>raw</b>
        ");
    }

    #[test]
    fn margins_are_limited_and_end_where_they_began() {
        let text = set(&format!("{}x\n\n- a\n- b", ">".repeat(10_000)));
        assert!(text.lines().all(|line| line.matches('│').count() <= MOST_MARGINS));
        assert!(text.contains("x") && text.ends_with("• a\n• b"), "{text}");
        let text = set(&format!("{}x\n\ny", "- ".repeat(1000)));
        assert!(text.ends_with("\n\ny"), "{text}");
    }

    #[test]
    fn columns_are_narrowed_as_one_column_at_a_time() {
        let one_by_one = |widths: &mut [usize], room: usize| {
            while widths.iter().sum::<usize>() > room {
                let Some(widest) = widths.iter_mut().max() else { break };
                *widest -= 1;
            }
        };
        for widths in [vec![], vec![3], vec![9, 1, 9, 9], vec![5, 7, 2, 7, 30], vec![0, 4, 4]] {
            for room in widths.len()..60 {
                let (mut found, mut expected) = (widths.clone(), widths.clone());
                narrow(&mut found, room);
                one_by_one(&mut expected, room);
                assert_eq!(found, expected, "{widths:?} in {room}");
            }
        }
    }

    #[test]
    fn hostile_markdown_emits_no_control_sequences() {
        let page = TermPage { width: Some(40), color: false, links: true, whole_lines: false };
        let lines = render_part("\u{1b}[31mred\u{1b}]0;title\u{7} [x](javascript:alert(1))", page, true);
        assert_eq!(lines, ["^[[31mred^[]0;title^G x", "(javascript:alert(1))"]);
        // Markdown decodes entities, so its output can contain control characters that its source does not.
        let lines = render_part("&#27;[31m `&#27;` &#x9b;2J [a&#7;](https://b&#27;c)", page, true);
        assert_eq!(lines, ["^[[31m &#27; <U+009B>2J a^G", "(https://b^[c)"]);
    }

    proptest! {
        #[test]
        fn any_markdown_renders_without_control_sequences(
            parts in prop::collection::vec(prop::sample::select(vec![
                "# ", "> ", "- ", "1. ", "```rust\n", "`", "**", "|", "|---|:-:|\n", "\n", "\n\n", "    ", "[", "](", ")", "<b>", "&#27;",
                "&#x9b;", "&#x202e;", "\u{1b}[2J", "\u{9b}", "\t", "\r", "https://a", "⚠\u{fe0f}", "错误", "word ", "e\u{301}", "\u{200d}",
            ]), 0..40),
            width in 1_usize..60,
            indent in 0_usize..30,
        ) {
            let page = TermPage { width: Some(width), color: true, links: true, whole_lines: false };
            for line in render(&parts.concat(), page, indent) {
                prop_assert!(!line.plain().contains(|ch: char| ch.is_control() && ch != '\t'), "{line:?}");
                let ours = line.as_str().replace("\u{1b}]8;;", "").replace("\u{1b}\\", "");
                prop_assert!(ours.split('\u{1b}').skip(1).all(|part| part.starts_with('[')), "{line:?}");
            }
        }
    }

    #[test]
    fn links_are_clickable_if_the_terminal_supports_them() {
        let page = TermPage { width: Some(40), color: false, links: true, whole_lines: false };
        let lines = render_part("see [the docs](https://example.org)", page, true);
        let link = "\u{1b}]8;;https://example.org\u{1b}\\the docs\u{1b}]8;;\u{1b}\\";
        assert_eq!(lines, [&*format!("see {link}")]);
        assert_eq!(lines[0].plain(), "see the docs");
    }
}
