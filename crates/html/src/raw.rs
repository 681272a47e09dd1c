//! The lines of the log themselves, carried along compressed and shown on demand.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::lump::{Lumps, lumps_in};
use crate::markup::Markup;
use crate::pack::{self, BLOB, Press, Spool};

/// A line of a log.
pub struct RawLine {
    /// Its number.
    pub line_no: u64,
    /// Something that the line is a part of. It is shared with those who read the line, so that nothing is copied.
    pub whole: Arc<String>,
    /// Where in that it stands.
    pub range: Range<usize>,
}

/// A line in a pack, without its lumps.
pub(crate) struct PackedLine {
    line: RawLine,
    /// Where in `whole` each lump stands, and its number.
    lumps: Vec<(Range<usize>, usize)>,
}

/// The lines of a session and its sub-agents, compressed while they come.
#[derive(Default)]
pub struct RawLines {
    press: Option<Arc<Press>>,
    /// The lines of the next pack, and how many bytes they are.
    open: Vec<PackedLine>,
    n_bytes: usize,
    n_packs: usize,
    pub(crate) lumps: Lumps,
    /// Each log's name, and for each of its packs its number and its first line.
    logs: Vec<(String, Vec<(usize, u64)>)>,
    last: u64,
}

impl RawLines {
    /// None yet; once compressed they wait in `spool` for the page to be written.
    pub fn new(spool: Box<dyn Spool>) -> Self {
        Self { press: Some(Arc::new(Press::new("r", spool))), ..Self::default() }
    }

    /// Begins a log: that of the session itself, which has no name, or that of a sub-agent, by its id.
    pub fn begin(&mut self, name: &str) {
        self.close();
        self.logs.push((name.to_owned(), Vec::new()));
    }

    /// Adds the next line of the log that was begun last.
    pub fn add(&mut self, line: RawLine) {
        let Some((_, starts)) = self.logs.last_mut().filter(|_| self.press.is_some()) else { return };
        if self.open.is_empty() && (line.line_no != self.last || starts.is_empty()) {
            starts.push((self.n_packs, line.line_no));
        }
        self.last = line.line_no;
        let digits = line.line_no.checked_ilog10().unwrap_or(0) as usize + 1;
        let found = lumps_in(&line.whole, line.range.clone());
        let lumps: Vec<_> =
            found.into_iter().map(|range| (range.clone(), self.lumps.number(&line.whole, range))).collect();
        let n_apart: usize = lumps.iter().map(|(range, _)| range.len()).sum();
        self.n_bytes += digits + line.range.len() - n_apart + 2;
        self.open.push(PackedLine { line, lumps });
        if self.n_bytes >= BLOB {
            self.close();
        }
    }

    /// Lets the next line begin a pack. What there is goes to be compressed.
    pub fn close(&mut self) {
        let lines = std::mem::take(&mut self.open);
        if let Some(press) = self.press.as_ref().filter(|_| !lines.is_empty()) {
            press.push_lines(self.n_packs, lines, self.n_bytes);
            self.n_packs += 1;
        }
        self.n_bytes = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.n_packs == 0 && self.open.is_empty()
    }

    /// Adds `{"log":[[pack, first line], …], …}`.
    pub(crate) fn write_index(&self, out: &mut Markup) {
        out.lit("{");
        for (i, (name, packs)) in self.logs.iter().enumerate() {
            if i > 0 {
                out.lit(",");
            }
            out.json(name).lit(":[");
            for (j, (pack, line_no)) in packs.iter().enumerate() {
                if j > 0 {
                    out.lit(",");
                }
                pack::numbers(out, [*pack as u64, *line_no]);
            }
            out.lit("]");
        }
        out.lit("}");
    }

    pub(crate) fn write(mut self, to: &mut dyn Write) -> io::Result<()> {
        self.close();
        self.press.map_or(Ok(()), |press| press.write(to))?;
        self.lumps.write(to)
    }
}

/// Adds lines as a pack holds them: each with its number before it and, behind that, where its lumps belong: `:at=lump,…`,
/// in units of UTF-16, as the script counts.
pub(crate) fn join(lines: &[PackedLine], out: &mut String) {
    for PackedLine { line, lumps } in lines {
        let _ = write!(out, "{}", line.line_no);
        let (mut from, mut at) = (line.range.start, 0);
        for (i, (range, number)) in lumps.iter().enumerate() {
            at += line.whole[from..range.start].chars().map(char::len_utf16).sum::<usize>();
            let _ = write!(out, "{}{at}={number}", if i == 0 { ':' } else { ',' });
            from = range.end;
        }
        out.push(' ');
        let mut from = line.range.start;
        for (range, _) in lumps {
            out.push_str(&line.whole[from..range.start]);
            from = range.end;
        }
        out.push_str(&line.whole[from..line.range.end]);
        out.push('\n');
    }
}
