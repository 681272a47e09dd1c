//! The lines of the log themselves, carried along compressed and shown on demand.

use std::io::{self, Write};

use crate::markup::Markup;
use crate::pack::{self, Pack, Spool};

/// The lines of a session and its sub-agents, compressed while they come.
#[derive(Default)]
pub struct RawLines {
    pack: Option<Pack>,
    /// Each log's name, and for each of its packs its number and its first line.
    logs: Vec<(String, Vec<(usize, u64)>)>,
    last: u64,
}

impl RawLines {
    /// None yet; once compressed they wait in `spool` for the page to be written.
    pub fn new(spool: Box<dyn Spool>) -> Self {
        Self { pack: Some(Pack::new("r", '\n', spool)), ..Self::default() }
    }

    /// Begins a log: that of the session itself, which has no name, or that of a sub-agent, by its id.
    pub fn begin(&mut self, name: &str) {
        self.logs.push((name.to_owned(), Vec::new()));
        self.pack.as_mut().map(Pack::close);
    }

    /// Adds the next line of the log that was begun last.
    pub fn add(&mut self, line_no: u64, text: &str) {
        let (Some(pack), Some((_, starts))) = (&mut self.pack, self.logs.last_mut()) else { return };
        if pack.is_closed() && (line_no != self.last || starts.is_empty()) {
            starts.push((pack.starts().len(), line_no));
        }
        self.last = line_no;
        pack.add([&format!("{line_no} "), text]);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pack.as_ref().is_none_or(|pack| pack.starts().is_empty())
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

    pub(crate) fn write(self, to: &mut dyn Write) -> io::Result<()> {
        self.pack.map_or(Ok(()), |pack| pack.write(to))
    }
}
