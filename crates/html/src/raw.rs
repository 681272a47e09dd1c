//! The lines of the log themselves, carried along compressed and shown on demand.

use std::io::{self, Write};

use crate::markup::Markup;
use crate::pack::{self, Pack, Packs, Spool};

/// One log: that of the session, or that of a sub-agent.
pub struct RawLog<'a> {
    /// The sub-agent's id; empty for the session itself.
    pub name: &'a str,
    /// The lines with their numbers, in order.
    pub lines: Box<dyn Iterator<Item = (u64, &'a str)> + 'a>,
}

/// The lines of a session and its sub-agents, compressed.
#[derive(Default)]
pub struct RawLines {
    packs: Option<Packs>,
    /// Each log's name, and for each of its packs its number and its first line.
    logs: Vec<(String, Vec<(usize, u64)>)>,
}

impl RawLines {
    /// Compresses logs, on all cores; they wait in `spool` for the page to be written.
    pub fn new<'a>(logs: impl IntoIterator<Item = RawLog<'a>>, spool: Box<dyn Spool>) -> Self {
        let mut pack = Pack::new("r", '\n', spool);
        let mut found = Vec::new();
        for log in logs {
            pack.close();
            let mut starts: Vec<(usize, u64)> = Vec::new();
            let mut last = 0;
            for (line_no, text) in log.lines {
                if pack.is_closed() && (line_no != last || starts.is_empty()) {
                    starts.push((pack.n_packs(), line_no));
                }
                last = line_no;
                pack.add([&format!("{line_no} "), text]);
            }
            found.push((log.name.to_owned(), starts));
        }
        Self { packs: Some(pack.finish().0), logs: found }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packs.as_ref().is_none_or(|packs| packs.count == 0)
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
        self.packs.map_or(Ok(()), |packs| packs.write(to))
    }
}
