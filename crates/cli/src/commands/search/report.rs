//! Output of a search: matches grouped by session for people, one object per line for programs.

use std::collections::BTreeSet;
use std::io;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use threadline_app::SessionSummary;
use threadline_app::search::{is_incomplete, match_object, summary, trouble_message};
use threadline_search::{LogMatch, LogProblem, ScanEvent, SearchMatch, SearchedSession, unknown_field};
use threadline_term::{
    TermPage, TermText, TextLabel, text, truncate, visible, visible_name, without_colours,
};
use threadline_view::humanize::{count, minute, plural};
use threadline_view::shell_word;
use threadline_view::wire::SessionCountObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::ui::{OutputStream, ProgressLine};

use super::SearchArgs;

/// Default number of matches shown per session.
const DEFAULT_MAX_COUNT: usize = 10;

/// Writes matches as they are found, and counts them.
pub(super) struct SearchReport<'a> {
    cx: &'a Context,
    args: &'a SearchArgs,
    sessions: &'a [SearchedSession],
    page: TermPage,
    zone: jiff::tz::TimeZone,
    answer: Option<OutputStream>,
    progress: Option<ProgressLine>,
    /// Time of the last flush.
    last_flush: Option<Instant>,
    /// Number of matches in the current session, and those that are yet to be shown.
    session_matches: usize,
    pending: Vec<LogMatch>,
    n_shown: usize,
    n_matches: usize,
    n_sessions: usize,
    n_copies: usize,
    stopped: bool,
    /// The argument of `show` for the first match.
    first_match: Option<String>,
    incomplete: bool,
    problems: Vec<LogProblem>,
}

impl<'a> SearchReport<'a> {
    pub(super) fn new(cx: &'a Context, args: &'a SearchArgs, sessions: &'a [SearchedSession]) -> Self {
        Self {
            cx,
            args,
            sessions,
            page: cx.ui.page(),
            zone: crate::env::time_zone(),
            answer: None,
            progress: Some(cx.ui.progress("searching log", n_logs(sessions))),
            last_flush: None,
            session_matches: 0,
            pending: Vec::new(),
            n_shown: 0,
            n_matches: 0,
            n_sessions: 0,
            n_copies: 0,
            stopped: false,
            first_match: None,
            incomplete: false,
            problems: Vec::new(),
        }
    }

    pub(super) fn event(&mut self, event: ScanEvent) -> Result<ControlFlow<()>, CommandError> {
        match event {
            ScanEvent::Match(session, found) => return self.found(session, found),
            ScanEvent::Counted(session, count) => return self.counted(session, count),
            ScanEvent::Copy => self.n_copies += 1,
            ScanEvent::End(session) => return self.end_session(session),
            ScanEvent::Problem(trouble) => {
                self.incomplete |= is_incomplete(&trouble);
                self.problems.push(trouble);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn found(&mut self, session: usize, found: LogMatch) -> Result<ControlFlow<()>, CommandError> {
        if self.args.list || self.args.count || self.session_matches >= self.max_count() {
            return self.counted(session, 1);
        }
        self.session_matches += 1;
        self.n_matches += 1;
        if self.cx.json {
            let object = match_object(&self.sessions[session], &found);
            if let Some(object) = object {
                self.answer().json(&object)?;
                self.flush_periodically()?;
            }
        } else if self.args.lines {
            if let Some(line) = self.match_line(&self.sessions[session], &found) {
                self.answer().text(&line)?;
                self.flush_periodically()?;
            }
        } else {
            if self.first_match.is_none() {
                self.first_match = show_argument(&self.sessions[session], &found);
            }
            self.pending.push(found);
        }
        self.stop_at_limit(session)
    }

    /// Adds matches that are only counted.
    fn counted(&mut self, session: usize, count: usize) -> Result<ControlFlow<()>, CommandError> {
        let is_first = self.session_matches == 0;
        let is_counting = self.args.list || self.args.count;
        let limit = self.args.limit().filter(|_| !is_counting).unwrap_or(usize::MAX);
        let count = count.min(limit.saturating_sub(self.n_matches));
        self.session_matches += count;
        self.n_matches += count;
        if is_counting {
            return match self.args.list && is_first && !self.cx.json {
                true => self.write_session_id(session),
                false => Ok(ControlFlow::Continue(())),
            };
        }
        // The matches to show are known, so the group is written now.
        if !self.is_flat() {
            self.write_pending(session, None)?;
        }
        self.stop_at_limit(session)
    }

    /// Ends the output after the requested number of matches.
    fn stop_at_limit(&mut self, session: usize) -> Result<ControlFlow<()>, CommandError> {
        if self.args.limit() != Some(self.n_matches) {
            return Ok(ControlFlow::Continue(()));
        }
        self.stopped = true;
        let _stop = self.end_session(session)?;
        Ok(ControlFlow::Break(()))
    }

    /// Returns the maximum number of matches to show per session.
    pub(super) fn max_count(&self) -> usize {
        match self.args.max_count {
            Some(0) => usize::MAX,
            Some(most) => most,
            None if self.is_flat() => usize::MAX,
            None => DEFAULT_MAX_COUNT,
        }
    }

    /// Returns whether matches are written one by one instead of grouped by session.
    fn is_flat(&self) -> bool {
        self.cx.json || self.args.lines
    }

    /// Formats a time for display.
    fn format_time(&self, moment: jiff::Timestamp) -> String {
        minute(moment.as_millisecond(), &self.zone)
    }

    /// Formats a match as one line: a reference for `show`, the time, the kind and the text.
    fn match_line(&self, session: &SearchedSession, log_match: &LogMatch) -> Option<TermText> {
        let found = log_match.details.as_ref()?;
        let place = show_argument(session, log_match)?;
        let when = match_time(found).map(|moment| self.format_time(moment)).unwrap_or_default();
        let tool = found.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
        let what = self.page.paint(TextLabel::Tool, format!("{}{tool}", found.kind.name()));
        let text = highlight(&found.text.replace(['\n', '\t'], " "), &found.ranges, self.page);
        Some(text!("{place}\t{when}\t{what}\t{text}\n"))
    }

    /// Writes a session id for `--list`, which happens at the first match.
    fn write_session_id(&mut self, session: usize) -> Result<ControlFlow<()>, CommandError> {
        let id = &self.sessions[session].id;
        let line = text!("{id}\n");
        self.answer().text(&line)?;
        self.flush_periodically()?;
        Ok(ControlFlow::Continue(()))
    }

    fn end_session(&mut self, session: usize) -> Result<ControlFlow<()>, CommandError> {
        if let Some(progress) = &self.progress {
            self.sessions[session].logs.iter().for_each(|_| progress.step());
        }
        let found = std::mem::take(&mut self.session_matches);
        if found == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.n_sessions += 1;
        let searched = &self.sessions[session];
        if self.args.list || self.args.count {
            let path = searched.path.to_string_lossy().into_owned();
            if self.cx.json {
                self.answer().json(&SessionCountObject { session: &searched.id, path, count: found })?;
            } else if self.args.count {
                writeln!(self.answer(), "{}\t{found}", searched.id)?;
            }
            self.flush_periodically()?;
            if self.args.limit() == Some(self.n_sessions) {
                self.stopped = true;
                return Ok(ControlFlow::Break(()));
            }
        } else if !self.is_flat() {
            self.write_pending(session, Some(found))?;
            let shown = std::mem::take(&mut self.n_shown);
            if found > shown {
                let more = count((found - shown) as u64);
                // The rest of the session was not searched.
                let more = match self.stopped {
                    true => format!("  … at least {more} more\n"),
                    false => format!("  … {more} more ({} total)\n", count(found as u64)),
                };
                let more = self.page.paint(TextLabel::Dim, &more);
                self.answer().text(&more)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Writes the pending matches of a session, with their total if it is known.
    fn write_pending(&mut self, session: usize, found: Option<usize>) -> Result<(), CommandError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let shown = std::mem::take(&mut self.pending);
        self.n_shown = shown.len();
        let text = self.group(&self.sessions[session], &shown, found);
        self.answer().text(&text)?;
        self.flush_periodically()?;
        Ok(())
    }

    /// Formats the matches of one session.
    fn group(&self, session: &SearchedSession, matches: &[LogMatch], found: Option<usize>) -> TermText {
        let summary = summary(session);
        let page = self.page;
        let heading = summary.as_ref().and_then(SessionSummary::title);
        let heading = heading.unwrap_or_else(|| "(no title)".to_owned());
        let heading = self.cx.app.masked_in(&session.logs, &heading).into_owned();
        let mut out: TermText = if self.answer.is_some() { "\n" } else { "" }.into();
        out += wrapped(&heading, TextLabel::Title, page);
        let mut about = vec![session.id.clone()];
        if let Ok(active) = jiff::Timestamp::try_from(session.last_active()) {
            about.push(self.format_time(active));
        }
        let project = summary.as_ref().and_then(SessionSummary::project);
        about.push(visible_name(project.unwrap_or(&session.folder)).into_owned());
        about.extend(found.filter(|_| !self.stopped).map(|found| plural(found as u64, "match")));
        out += wrapped(&about.join(" · "), TextLabel::Dim, page);
        let mut log = 0;
        for log_match in matches {
            if log_match.log != log {
                log = log_match.log;
                let path = session.logs[log].clone();
                let agent = session.agent_of(&path).unwrap_or_default();
                let line = format!("  sub-agent {agent} · {}\n", visible_name(&path.to_string_lossy()));
                out += page.paint(TextLabel::Dim, line);
            }
            if let Some(found) = &log_match.details {
                render_match(found, log_match.copies, self.args.context > 0, page, &mut out);
            }
        }
        out
    }

    fn answer(&mut self) -> &mut OutputStream {
        // Erases the progress line first.
        self.progress = None;
        let (cx, args) = (self.cx, self.args);
        self.answer.get_or_insert_with(|| {
            let long = !(cx.json || args.list || args.count || args.lines);
            if long { cx.ui.paged_output() } else { cx.ui.output() }
        })
    }

    /// Flushes the first match immediately, later ones in batches.
    fn flush_periodically(&mut self) -> io::Result<()> {
        const PAUSE: Duration = Duration::from_millis(30);
        if self.last_flush.is_none_or(|flushed| flushed.elapsed() >= PAUSE) {
            self.last_flush = Some(Instant::now());
            self.answer().flush()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self, unread: &[io::Error]) -> Result<CommandOutcome, CommandError> {
        self.progress = None;
        if let Some(answer) = self.answer.take() {
            answer.finish()?;
        }
        for error in unread {
            self.cx.ui.warn(&error.to_string());
        }
        for trouble in &self.problems {
            self.cx.ui.warn(&trouble_message(trouble));
        }
        if !self.cx.json {
            self.cx.ui.note(&self.summary());
            let query = self.args.query.join(" ");
            if let Some(place) = &self.first_match {
                let (place, query) = (shell_word(place), shell_word(&query));
                self.cx.ui.note(&format!("show a match: `threadline show {place} --find {query}`"));
            }
            if let Some(name) = unknown_field(&query).filter(|_| self.n_matches == 0) {
                self.cx.ui.note(&format!("unknown field `{name}:`; searched for it as text"));
            }
            if self.n_matches == 0 {
                self.cx.note_if_empty();
            }
        }
        Ok(match self.n_matches {
            _ if self.incomplete || !unread.is_empty() => CommandOutcome::Partial,
            0 => CommandOutcome::Negative,
            _ => CommandOutcome::Done,
        })
    }

    fn summary(&self) -> String {
        let of = |n: usize, noun: &str| plural(n as u64, noun);
        if self.n_matches == 0 {
            return format!("no matches in {}", of(n_logs(self.sessions), "log"));
        }
        let mut text = format!("{} in {}", of(self.n_matches, "match"), of(self.n_sessions, "session"));
        if self.n_copies > 0 {
            let copies = if self.n_copies == 1 { "copy" } else { "copies" };
            text.push_str(&format!("; {} {copies} in forks omitted", count(self.n_copies as u64)));
        }
        if self.stopped {
            text.push_str("; limit reached");
        }
        text
    }
}

/// Returns the number of logs of some sessions.
fn n_logs(sessions: &[SearchedSession]) -> usize {
    sessions.iter().map(|session| session.logs.len()).sum()
}

/// Returns the argument with which `show` shows a match.
fn show_argument(session: &SearchedSession, found: &LogMatch) -> Option<String> {
    let log = &session.logs[found.log];
    let is_own = *log == session.path;
    let name = if is_own { session.id.clone() } else { log.to_string_lossy().into_owned() };
    Some(format!("{name}#{}", found.details.as_ref()?.anchor))
}

/// Returns the time of the entry that matched.
fn match_time(found: &SearchMatch) -> Option<jiff::Timestamp> {
    found.timestamp.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
}

/// Formats a text in lines that fit the page, without breaking words.
fn wrapped(text: &str, label: TextLabel, page: TermPage) -> TermText {
    let mut out = TermText::new();
    for line in page.wrap(&visible(text), 0) {
        out += page.paint(label, line) + "\n";
    }
    out
}

/// The columns before the text.
const INDENT: usize = 26;

/// Formats one match: its anchor, its kind, and the text with highlighted matches.
fn render_match(found: &SearchMatch, copies: usize, context: bool, page: TermPage, out: &mut TermText) {
    let what = match &found.tool {
        Some(tool) => format!("{} {tool}", found.kind.name()),
        None => found.kind.name().to_owned(),
    };
    let what = page.paint(TextLabel::Tool, format!("{:<15}", truncate(&what, 15)));
    *out += text!("  {:<7} {what} ", found.anchor);
    let mut at = 0;
    let last = found.text.matches('\n').count();
    for (i, line) in found.text.split('\n').enumerate() {
        if i > 0 {
            out.push(" ".repeat(INDENT));
        }
        let forks = if i == 0 && copies > 0 { format!("  (+{copies} in forks)") } else { String::new() };
        let width = page.width.map(|width| width.saturating_sub(INDENT + 2 + forks.len()));
        let (line, ranges) = truncate_around_match(line, at, &found.ranges, width);
        let more = |cut: bool, fitted: bool| if cut && !fitted { "…" } else { "" };
        out.push(more(i == 0 && found.cut[0], line.starts_with('…')));
        out.push(highlight(&line, &ranges, page));
        out.push(more(i == last && found.cut[1], line.ends_with('…')));
        out.push(page.paint(TextLabel::Dim, forks));
        out.push("\n");
        at += found.text[at..].find('\n').map_or(0, |newline| newline + 1);
    }
    if context {
        out.push("\n");
    }
}

/// Truncates a line to the width, around as many different matches as possible. `at` is the offset of the
/// line in the text that `ranges` refer to.
fn truncate_around_match(
    line: &str,
    at: usize,
    ranges: &[Range<usize>],
    width: Option<usize>,
) -> (String, Vec<Range<usize>>) {
    let end = at + line.len();
    let within = ranges.iter().filter(|range| range.start < end && range.end > at);
    let ranges: Vec<_> = within.map(|range| range.start.max(at) - at..range.end.min(end) - at).collect();
    let Some(width) = width.map(|width| width.max(20)).filter(|width| columns(line) > *width) else {
        return (line.to_owned(), ranges);
    };
    let (mut out, mut shown): (String, Vec<Range<usize>>) = (String::new(), Vec::new());
    let mut done = 0;
    for window in visible_windows(line, &ranges, width) {
        out.push_str(match (done, window.start) {
            (0, 0) => "",
            (0, _) => "…",
            _ => " … ",
        });
        let seen = ranges.iter().filter(|range| range.start < window.end && range.end > window.start);
        shown.extend(seen.map(|range| {
            let [start, end] = [range.start.max(window.start), range.end.min(window.end)];
            out.len() + start - window.start..out.len() + end - window.start
        }));
        out.push_str(&line[window.clone()]);
        done = window.end;
    }
    if done < line.len() {
        out.push('…');
    }
    (out, shown)
}

/// Returns the approximate width of a text: that of the scripts with wide characters, which follow symbols
/// such as the ellipsis.
fn columns(text: &str) -> usize {
    text.chars().map(|ch| if ch >= '\u{2e80}' { 2 } else { 1 }).sum()
}

/// Returns the parts of a line to show in `width` columns with the ellipses around them: the one with the
/// most different matches, or two if these contain more of them.
fn visible_windows(line: &str, ranges: &[Range<usize>], width: usize) -> Vec<Range<usize>> {
    let whole = width - 2;
    let half = (whole - " … ".chars().count()) / 2;
    let (only, in_only) = best_window(line, ranges, whole, &BTreeSet::new());
    let (first, in_first) = best_window(line, ranges, half, &BTreeSet::new());
    let (second, in_second) = best_window(line, ranges, half, &in_first);
    if in_first.len() + in_second.len() <= in_only.len() {
        return vec![extended(line, &only, whole)];
    }
    let mut both = [extended(line, &first, half), extended(line, &second, half)];
    both.sort_by_key(|window| window.start);
    let [first, second] = both;
    if second.start <= first.end {
        return std::iter::once(first.start..second.end).collect();
    }
    vec![first, second]
}

/// Returns the shortest part of a line, at most `width` columns, with the most different matches that are not
/// in `known`, and these matches.
fn best_window(
    line: &str,
    ranges: &[Range<usize>],
    width: usize,
    known: &BTreeSet<String>,
) -> (Range<usize>, BTreeSet<String>) {
    let mut best = (0..0, BTreeSet::new());
    for (i, first) in ranges.iter().enumerate().take(100) {
        let (mut window, mut texts) = (first.clone(), BTreeSet::new());
        for range in &ranges[i..] {
            if range != first && columns(&line[first.start..range.end]) > width {
                break;
            }
            let text = line[range.clone()].to_lowercase();
            if !known.contains(&text) && texts.insert(text) {
                window.end = range.end;
            }
        }
        let is_better = texts.len() > best.1.len()
            || texts.len() == best.1.len() && !texts.is_empty() && window.len() < best.0.len();
        if is_better {
            best = (window, texts);
        }
    }
    best
}

/// Extends a part of a line to a width: a third of the rest is before it, unless the line ends sooner. A
/// match that is longer than the width is truncated.
fn extended(line: &str, window: &Range<usize>, width: usize) -> Range<usize> {
    let rest = width.saturating_sub(columns(&line[window.clone()]));
    let start = window.start - last_columns(&line[..window.start], rest / 3);
    let stop = start + first_columns(&line[start..], width);
    let rest = width.saturating_sub(columns(&line[start..stop]));
    start - last_columns(&line[..start], rest)..stop
}

/// Returns the length in bytes of the beginning of a text that fits into `width` columns.
fn first_columns(text: &str, width: usize) -> usize {
    bytes_of_columns(text.chars(), width)
}

/// Returns the length in bytes of the end of a text that fits into `width` columns.
fn last_columns(text: &str, width: usize) -> usize {
    bytes_of_columns(text.chars().rev(), width)
}

fn bytes_of_columns(chars: impl Iterator<Item = char>, width: usize) -> usize {
    let (mut used, mut bytes) = (0, 0);
    for ch in chars {
        used += columns(ch.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        bytes += ch.len_utf8();
    }
    bytes
}

/// Highlights the ranges of a line, and escapes control characters.
fn highlight(line: &str, ranges: &[Range<usize>], page: TermPage) -> TermText {
    let mut out = TermText::new();
    let mut done = 0;
    for range in ranges {
        out.push(without_colours(&line[done..range.start]));
        // Matches are red, as in grep.
        out.push(page.paint(TextLabel::Error, without_colours(&line[range.clone()])));
        done = range.end;
    }
    out.push(without_colours(&line[done..]));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_wrapped_between_words() {
        let page = TermPage { width: Some(80), color: false, links: false, whole_lines: false };
        let text = wrapped(&"weaving ".repeat(20), TextLabel::Title, page);
        let lines = text.as_str().lines().collect::<Vec<_>>();
        assert_eq!(lines.len(), 2);
        assert!(
            lines.iter().all(|line| line.len() <= 80 && line.trim_end().ends_with("weaving")),
            "{lines:?}"
        );
    }

    fn fitted(line: &str, words: &[&str], width: usize) -> String {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for word in words {
            ranges.extend(line.match_indices(word).map(|(at, _)| at..at + word.len()));
        }
        ranges.sort_by_key(|range| range.start);
        let (text, shown) = truncate_around_match(line, 0, &ranges, Some(width));
        assert!(columns(&text) <= width, "{text}");
        shown.iter().for_each(|range| assert!(words.contains(&&text[range.clone()]), "{text}"));
        text
    }

    #[test]
    fn a_truncated_line_contains_as_many_different_matches_as_possible() {
        let line =
            "one svg here, then an encoder; svg again and again, as far as the encoder goes to the end";
        assert_eq!(fitted(line, &["svg", "encoder"], 40), "…then an encoder; svg again and again, …");
        assert_eq!(fitted(line, &["end"], 30), "… the encoder goes to the end");
        let far = format!("markdownlint {}$global {}", "filler ".repeat(40), "more ".repeat(20));
        let both = fitted(&far, &["markdownlint", "glob"], 52);
        assert!(
            both.contains("markdownlint fill") && both.contains(" … ") && both.contains("$global"),
            "{both}"
        );
        let long = "x".repeat(90);
        let range = 0..long.len();
        let (text, shown) = truncate_around_match(&long, 0, &[range], Some(20));
        assert_eq!((text, &*shown), ("x".repeat(18) + "…", &[Range { start: 0, end: 18 }][..]));
    }
}
