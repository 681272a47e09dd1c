//! Compressed parts: what a page carries along and draws only when it is looked at.

use std::cell::RefCell;
use std::io::{self, Read, Seek, Write};

use flate2::{Compress, Compression, FlushCompress, Status};
use rayon::prelude::*;

use crate::markup::Markup;

/// Parts are packed together until they are about as large as this, so that small ones compress well too.
const BLOB: usize = 128 << 10;

/// So many packs are compressed at a time, on all cores.
const BATCH: usize = 4;

/// Where packs wait for the page that they belong to: written first, and read once from the start.
pub trait Spool: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Spool for T {}

/// Parts in the order they came, several to a pack, each pack compressed by itself.
pub(crate) struct Pack {
    /// What packs are named by, with their number behind it.
    prefix: &'static str,
    /// What stands behind each part, and in none.
    end: char,
    open: String,
    full: Vec<String>,
    /// Room that was used and can be again.
    spare: Vec<String>,
    /// How many packs are in the spool.
    n_done: usize,
    spool: Box<dyn Spool>,
    /// What the spool said when it could not take any more.
    failed: Option<io::Error>,
    /// For each pack the number of its first part.
    starts: Vec<usize>,
    n_parts: usize,
}

impl Pack {
    /// Nothing yet. `end` stands behind each part, and in none.
    pub(crate) fn new(prefix: &'static str, end: char, spool: Box<dyn Spool>) -> Self {
        Self {
            prefix,
            end,
            open: String::new(),
            full: Vec::new(),
            spare: Vec::new(),
            n_done: 0,
            spool,
            failed: None,
            starts: Vec::new(),
            n_parts: 0,
        }
    }

    /// Adds a part and returns its number.
    pub(crate) fn add(&mut self, parts: [&str; 2]) -> usize {
        if self.open.is_empty() {
            self.starts.push(self.n_parts);
            self.open = self.spare.pop().unwrap_or_default();
        }
        for part in parts {
            self.open.push_str(part);
        }
        self.open.push(self.end);
        self.n_parts += 1;
        if self.open.len() >= BLOB {
            self.close();
        }
        self.n_parts - 1
    }

    /// Whether the next part begins a pack.
    pub(crate) fn is_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// How many packs there are before the next one.
    pub(crate) fn n_packs(&self) -> usize {
        self.starts.len() - usize::from(!self.open.is_empty())
    }

    /// Lets the next part begin a pack.
    pub(crate) fn close(&mut self) {
        if !self.open.is_empty() {
            self.full.push(std::mem::take(&mut self.open));
        }
        if self.full.len() >= BATCH {
            self.compress();
        }
    }

    /// Compresses what is full and puts it into the spool, as elements that nothing runs.
    fn compress(&mut self) {
        let element = |(i, text): (usize, &String)| {
            let mut out = Markup::new();
            out.lit("<script type=\"application/octet-stream\" id=\"").lit(self.prefix);
            out.num((self.n_done + i) as u64).lit("\">");
            deflate(text.as_bytes(), |packed| {
                out.base64(packed);
            });
            out.lit("</script>\n");
            out
        };
        let elements: Vec<Markup> = self.full.par_iter().enumerate().map(element).collect();
        for element in &elements {
            if self.failed.is_none() {
                self.failed = self.spool.write_all(element.as_str().as_bytes()).err();
            }
        }
        self.n_done += elements.len();
        for mut room in self.full.drain(..) {
            room.clear();
            // A part that was far larger than a pack has no room to give to others.
            if room.capacity() <= 4 * BLOB {
                self.spare.push(room);
            }
        }
    }

    /// Ends the last pack and returns them all, with the number of each one's first part.
    pub(crate) fn finish(mut self) -> (Packs, Vec<usize>) {
        self.close();
        self.compress();
        (Packs { count: self.n_done, spool: self.spool, failed: self.failed }, self.starts)
    }
}

/// All packs of a kind, on their way to a page.
pub(crate) struct Packs {
    pub(crate) count: usize,
    spool: Box<dyn Spool>,
    failed: Option<io::Error>,
}

impl Packs {
    /// Writes them.
    pub(crate) fn write(mut self, to: &mut dyn Write) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.spool.rewind()?;
        io::copy(&mut self.spool, to).map(|_| ())
    }
}

/// Gives the bytes compressed to `sink`.
fn deflate(bytes: &[u8], sink: impl FnOnce(&[u8])) {
    thread_local! {
        /// A compressor has large tables, and they can be used again.
        static COMPRESSOR: RefCell<(Compress, Vec<u8>)> =
            RefCell::new((Compress::new(Compression::fast(), false), Vec::new()));
    }
    COMPRESSOR.with_borrow_mut(|(compressor, out)| {
        compressor.reset();
        out.clear();
        loop {
            out.reserve(BLOB / 2);
            let rest = &bytes[compressor.total_in() as usize..];
            // What is in memory can be compressed; an error here would be one of the library.
            match compressor.compress_vec(rest, out, FlushCompress::Finish) {
                Ok(Status::Ok | Status::BufError) => {}
                Ok(Status::StreamEnd) | Err(_) => break,
            }
        }
        sink(out);
    });
}

/// Adds numbers as a JSON array.
pub(crate) fn numbers(out: &mut Markup, numbers: impl IntoIterator<Item = u64>) {
    out.lit("[");
    for (i, number) in numbers.into_iter().enumerate() {
        if i > 0 {
            out.lit(",");
        }
        out.num(number);
    }
    out.lit("]");
}
