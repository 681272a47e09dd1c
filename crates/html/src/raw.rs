//! The raw lines of a log, stored compressed in the page and shown on demand.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::attachment::{Attachments, find_attachments};
use crate::compressed_section::{self, CompressionQueue, SECTION_SIZE, Spool};
use crate::markup::Markup;

/// A line of a log.
pub struct RawLine {
    /// Its number.
    pub line_no: u64,
    /// The text that contains the line, shared with the caller to avoid a copy.
    pub source: Arc<String>,
    /// The byte range of the line in `source`.
    pub range: Range<usize>,
}

/// A line of a compressed section, without its attachments.
pub(crate) struct SectionLine {
    line: RawLine,
    /// The byte range in `source` and the number of each attachment.
    attachments: Vec<(Range<usize>, usize)>,
}

/// The raw lines of a session and its sub-agents, compressed as they are added.
#[derive(Default)]
pub struct RawLines {
    queue: Option<Arc<CompressionQueue>>,
    /// The lines of the current section, and their size in bytes.
    lines: Vec<SectionLine>,
    n_bytes: usize,
    n_sections: usize,
    pub(crate) attachments: Attachments,
    /// The name of each log, with the number and first line of each of its sections.
    logs: Vec<(String, Vec<(usize, u64)>)>,
}

impl RawLines {
    /// Creates an empty collection. Compressed sections are kept in `spool` until the page is written.
    pub fn new(spool: Box<dyn Spool>) -> Self {
        Self { queue: Some(Arc::new(CompressionQueue::new("r", spool))), ..Self::default() }
    }

    /// Begins a log. `name` is empty for the session itself, or the id of a sub-agent.
    pub fn begin(&mut self, name: &str) {
        self.close();
        self.logs.push((name.to_owned(), Vec::new()));
    }

    /// Adds the next line of the current log.
    pub fn add(&mut self, line: RawLine) {
        // Several objects on one line stay in one section: a lookup reads only one.
        let is_same_line = self.lines.last().is_some_and(|last| last.line.line_no == line.line_no);
        if self.n_bytes >= SECTION_SIZE && !is_same_line {
            self.close();
        }
        let Some((_, starts)) = self.logs.last_mut().filter(|_| self.queue.is_some()) else { return };
        if self.lines.is_empty() {
            starts.push((self.n_sections, line.line_no));
        }
        let digits = line.line_no.checked_ilog10().unwrap_or(0) as usize + 1;
        let found = find_attachments(&line.source, line.range.clone());
        let attachments: Vec<_> = found
            .into_iter()
            .map(|range| (range.clone(), self.attachments.number(&line.source, range)))
            .collect();
        let n_apart: usize = attachments.iter().map(|(range, _)| range.len()).sum();
        self.n_bytes += digits + line.range.len() - n_apart + 2;
        self.lines.push(SectionLine { line, attachments });
    }

    /// Ends the current section and queues it for compression.
    pub fn close(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if let Some(queue) = self.queue.as_ref().filter(|_| !lines.is_empty()) {
            queue.push_lines(self.n_sections, lines, self.n_bytes);
            self.n_sections += 1;
        }
        self.n_bytes = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.n_sections == 0 && self.lines.is_empty()
    }

    /// Adds the index as JSON: `{"log":[[section, first line], …], …}`.
    pub(crate) fn write_index(&self, out: &mut Markup) {
        out.lit("{");
        for (i, (name, sections)) in self.logs.iter().enumerate() {
            if i > 0 {
                out.lit(",");
            }
            out.json(name).lit(":[");
            for (j, (section, line_no)) in sections.iter().enumerate() {
                if j > 0 {
                    out.lit(",");
                }
                compressed_section::numbers(out, [*section as u64, *line_no]);
            }
            out.lit("]");
        }
        out.lit("}");
    }

    pub(crate) fn write(mut self, to: &mut dyn Write) -> io::Result<()> {
        self.close();
        self.queue.map_or(Ok(()), |queue| queue.write(to))?;
        self.attachments.write(to)
    }
}

/// Appends lines in the format of a section: the line number, then `:offset=attachment,…` for each attachment
/// removed, a space, and the rest of the line. Offsets are in UTF-16 code units, as JavaScript counts.
pub(crate) fn join_lines(lines: &[SectionLine], out: &mut String) {
    for SectionLine { line, attachments } in lines {
        let _ = write!(out, "{}", line.line_no);
        let (mut from, mut at) = (line.range.start, 0);
        for (i, (range, number)) in attachments.iter().enumerate() {
            at += line.source[from..range.start].chars().map(char::len_utf16).sum::<usize>();
            let _ = write!(out, "{}{at}={number}", if i == 0 { ':' } else { ',' });
            from = range.end;
        }
        out.push(' ');
        let mut from = line.range.start;
        for (range, _) in attachments {
            out.push_str(&line.source[from..range.start]);
            from = range.end;
        }
        out.push_str(&line.source[from..line.range.end]);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_one_line_share_a_section() {
        let mut raw = RawLines::new(Box::new(io::Cursor::new(Vec::new())));
        raw.begin("");
        for (line_no, n_bytes) in [(1, SECTION_SIZE), (1, 1), (2, 1)] {
            raw.add(RawLine { line_no, source: Arc::new(" ".repeat(n_bytes)), range: 0..n_bytes });
        }
        let mut index = Markup::new();
        raw.write_index(&mut index);
        assert_eq!(index.into_string(), r#"{"":[[0,1],[1,2]]}"#);
    }
}
