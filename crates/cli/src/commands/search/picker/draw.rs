//! Renders the picker.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use threadline_term::{truncate, truncate_start, visible, without_colours};
use threadline_view::humanize::{count, plural};

use super::{Picker, PickerPurpose, PickerRow, PreviewStyle, SearchStatus};

impl PickerPurpose {
    /// Returns the text before the input.
    fn prompt(self) -> &'static str {
        match self {
            Self::Show => "search ",
            Self::Resume => "resume ",
        }
    }

    /// Returns the label of the Enter key.
    fn verb(self) -> &'static str {
        match self {
            Self::Show => "open",
            Self::Resume => "resume",
        }
    }
}

impl Picker {
    /// Renders the whole screen.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let [input, body, help] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        self.draw_input(frame, input);
        // A narrow screen shows the preview below the list.
        let (list, preview) = if body.width >= 80 {
            let [list, edge, preview] =
                Layout::horizontal([Constraint::Percentage(40), Constraint::Length(3), Constraint::Min(1)])
                    .areas(body);
            let lines: Vec<Line<'static>> = (0..edge.height).map(|_| Line::raw(" │")).collect();
            frame.render_widget(Paragraph::new(lines).style(dim()), edge);
            (list, preview)
        } else {
            let [list, _, preview] =
                Layout::vertical([Constraint::Percentage(40), Constraint::Length(1), Constraint::Min(1)])
                    .areas(body);
            (list, preview)
        };
        self.draw_list(frame, list);
        self.draw_preview(frame, preview);
        let text = self.message.clone().unwrap_or_else(|| self.key_help(help.width));
        frame.render_widget(Paragraph::new(single_line(&text)).style(dim()), help);
    }

    /// Returns the keys, without those that do not fit.
    fn key_help(&self, width: u16) -> String {
        let verb = format!("Enter {}", self.purpose.verb());
        let sort = format!("^S {}", self.sort.other().name());
        let copy = if self.purpose == PickerPurpose::Show { "^Y copy resume" } else { "^Y copy command" };
        // In the order of the line, and with the order in which they are left out.
        let mut keys = vec![
            ("↑↓ session", 0),
            ("Tab match", 1),
            ("PgUp/PgDn scroll", 5),
            (&*verb, 0),
            (&*sort, 3),
            (copy, 4),
            ("Esc", 2),
        ];
        loop {
            let text = keys.iter().map(|(key, _)| *key).collect::<Vec<_>>().join("  ");
            let last = keys.iter().map(|(_, order)| *order).max().filter(|order| *order > 0);
            match last {
                Some(last) if Line::raw(&*text).width() > usize::from(width) => {
                    keys.retain(|(_, order)| *order != last);
                }
                _ => return text,
            }
        }
    }

    fn draw_input(&self, frame: &mut Frame<'_>, area: Rect) {
        let status = self.status();
        let [left, right] =
            Layout::horizontal([Constraint::Min(20), Constraint::Length(Line::raw(&*status).width() as u16)])
                .areas(area);
        let line =
            Line::from(vec![Span::styled(self.purpose.prompt(), dim()), Span::raw(single_line(&self.input))]);
        frame.render_widget(Paragraph::new(line), left);
        let style =
            if matches!(self.status, SearchStatus::Bad(_)) { Style::new().fg(Color::Yellow) } else { dim() };
        frame.render_widget(Paragraph::new(status).style(style), right);
        let typed = Line::raw(single_line(&self.input[..self.cursor])).width();
        let column = (self.purpose.prompt().len() + typed).min(usize::from(left.width.saturating_sub(1)));
        frame.set_cursor_position(Position::new(left.x + column as u16, left.y));
    }

    fn status(&self) -> String {
        let found: usize = self.rows.iter().map(|row| row.match_count).sum();
        let sessions = plural(self.rows.len() as u64, "session");
        match &self.status {
            SearchStatus::Bad(problem) => single_line(problem).chars().take(60).collect(),
            SearchStatus::Searching => format!("{sessions} …"),
            SearchStatus::Done(Some(n_listed)) if *n_listed > self.rows.len() => {
                format!("{} of {}", count(self.rows.len() as u64), plural(*n_listed as u64, "session"))
            }
            SearchStatus::Done(Some(_)) => sessions,
            SearchStatus::Done(None) if found == 0 => "no matches".to_owned(),
            SearchStatus::Done(None) => format!("{} in {sessions}", plural(found as u64, "match")),
        }
    }

    fn draw_list(&self, frame: &mut Frame<'_>, area: Rect) {
        // Two lines per session; the selected one is always visible.
        let fits = usize::from(area.height / 2).max(1);
        let top = self.selected.saturating_sub(fits - 1);
        for (i, row) in self.rows.iter().enumerate().skip(top).take(fits) {
            let y = area.y + 2 * (i - top) as u16;
            let height = 2.min(area.bottom().saturating_sub(y));
            let lines = self.row_lines(row, i == self.selected, area.width);
            frame.render_widget(Paragraph::new(lines), Rect { y, height, ..area });
        }
    }

    fn row_lines(&self, row: &PickerRow, selected: bool, width: u16) -> Vec<Line<'static>> {
        let mark = if selected { "▌" } else { " " };
        let style = if selected { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        let found = match (row.match_count, row.matches.len()) {
            (0, _) => String::new(),
            (found, n) if selected && n > 1 => format!("{}/{}  ", self.match_idx + 1, count(found as u64)),
            (found, _) => format!("{}  ", count(found as u64)),
        };
        let project = row.project.as_deref().unwrap_or_default();
        let project = single_line(project);
        let name_width = Line::raw(project.rsplit(['/', '\\']).next().unwrap_or_default()).width() + 2;
        let before_project = |when: &str| {
            let about = format!("{mark} {found}{when}  ");
            let rest = usize::from(width).saturating_sub(Line::raw(&*about).width());
            (about, rest)
        };
        // The name of the project is more useful than the time of day.
        let (about, rest) = match before_project(&row.when) {
            (_, rest) if rest < name_width => before_project(row.when.split(' ').next().unwrap_or_default()),
            fitting => fitting,
        };
        let about = about + &truncate_start(&project, rest);
        let heading = truncate(&format!("{mark} {}", single_line(&row.heading)), usize::from(width));
        vec![Line::styled(heading, style), Line::styled(about, dim())]
    }

    fn draw_preview(&self, frame: &mut Frame<'_>, area: Rect) {
        let width = usize::from(area.width).max(1);
        let mut lines = Vec::new();
        let (mut found, mut marked) = (None, None);
        for line in &self.preview.lines {
            if line.in_match {
                found = found.or(Some(lines.len()));
            }
            if line.in_excerpt {
                marked = marked.or(Some(lines.len()));
            }
            wrap(&line.pieces, width, &mut lines);
        }
        // The match is a third of the way down.
        let focus = marked.or(found).unwrap_or(0).saturating_sub(usize::from(area.height) / 3);
        let last = lines.len().saturating_sub(1);
        let top = focus.saturating_add_signed(self.scroll).min(last);
        let seen: Vec<_> = lines.into_iter().skip(top).take(usize::from(area.height)).collect();
        frame.render_widget(Paragraph::new(seen), area);
    }
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn style(look: PreviewStyle) -> Style {
    match look {
        PreviewStyle::Plain => Style::new(),
        PreviewStyle::Label => Style::new().fg(Color::Blue),
        PreviewStyle::Match => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}

/// Escapes control characters and joins lines.
fn single_line(text: &str) -> String {
    visible(text).replace('\t', "    ").replace('\n', " ")
}

/// Wraps a line to a width, between words where possible.
fn wrap(pieces: &[(String, PreviewStyle)], width: usize, out: &mut Vec<Line<'static>>) {
    let chars: Vec<(char, PreviewStyle)> = pieces
        .iter()
        .flat_map(|(text, look)| without_colours(text).chars().map(|ch| (ch, *look)).collect::<Vec<_>>())
        .collect();
    let mut rest = &chars[..];
    loop {
        let mut used = 0;
        let fitting = rest.iter().take_while(|(ch, _)| {
            used += Span::raw(ch.encode_utf8(&mut [0; 4]).to_owned()).width();
            used <= width
        });
        let fitting = fitting.count();
        if fitting == rest.len() {
            out.push(styled_line(rest));
            return;
        }
        let is_space = |(ch, _): &(char, PreviewStyle)| *ch == ' ';
        let between = rest[..=fitting].iter().rposition(is_space).filter(|at| *at > fitting / 3);
        let (line, after) = rest.split_at(between.unwrap_or(fitting).max(1));
        out.push(styled_line(line));
        // The space at the break is dropped.
        rest = if between.is_some() { &after[1..] } else { after };
    }
}

/// Builds a line with one span per run of equal style.
fn styled_line(chars: &[(char, PreviewStyle)]) -> Line<'static> {
    let spans = chars.chunk_by(|(_, a), (_, b)| a == b);
    Line::from_iter(
        spans.map(|span| Span::styled(span.iter().map(|(ch, _)| ch).collect::<String>(), style(span[0].1))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words() {
        let wrapped = |text: &str| {
            let mut lines = Vec::new();
            let (start, end) = text.split_at(text.len() / 3 / 3 * 3);
            wrap(
                &[(start.to_owned(), PreviewStyle::Plain), (end.to_owned(), PreviewStyle::Match)],
                9,
                &mut lines,
            );
            lines.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(wrapped("the slow loom sleeps"), ["the slow", "loom", "sleeps"]);
        assert_eq!(wrapped("onelongwordalone"), ["onelongwo", "rdalone"]);
        assert_eq!(wrapped("织机织机织机"), ["织机织机", "织机"]);
        assert_eq!(wrapped("a"), ["a"]);
        assert_eq!(wrapped(""), [""]);
    }
}
