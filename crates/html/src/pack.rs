//! Compressed parts: what a page carries along and draws only when it is looked at.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rayon::prelude::*;

use crate::markup::Markup;

/// Parts are packed together until they are about as large as this, so that small ones compress well too.
const BLOB: usize = 128 << 10;

/// So many packs are compressed at a time, on all cores.
const BATCH: usize = 8;

/// Parts in the order they came, several to a pack, each pack compressed by itself.
pub(crate) struct Pack {
    /// What stands behind each part, and in none.
    end: char,
    open: String,
    full: Vec<String>,
    done: Vec<Vec<u8>>,
    /// For each pack the number of its first part.
    starts: Vec<usize>,
    n_parts: usize,
}

impl Pack {
    /// Nothing yet. `end` stands behind each part, and in none.
    pub(crate) fn new(end: char) -> Self {
        Self { end, open: String::new(), full: Vec::new(), done: Vec::new(), starts: Vec::new(), n_parts: 0 }
    }

    /// Adds a part and returns its number.
    pub(crate) fn add(&mut self, parts: [&str; 2]) -> usize {
        if self.open.is_empty() {
            self.starts.push(self.n_parts);
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

    fn compress(&mut self) {
        self.done.par_extend(self.full.par_iter().map(|text| deflate(text.as_bytes())));
        self.full.clear();
    }

    /// Ends the last pack and returns them all, with the number of each one's first part.
    pub(crate) fn finish(mut self) -> (Vec<Vec<u8>>, Vec<usize>) {
        self.close();
        self.compress();
        (self.done, self.starts)
    }
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    // Writing into memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Writes packs as elements that nothing runs, named by `prefix` and their number.
pub(crate) fn write(to: &mut dyn Write, prefix: &'static str, packs: &[Vec<u8>]) -> io::Result<()> {
    for (i, pack) in packs.iter().enumerate() {
        let mut out = Markup::new();
        out.lit("<script type=\"application/octet-stream\" id=\"").lit(prefix).num(i as u64).lit("\">");
        out.base64(pack).lit("</script>\n");
        to.write_all(out.as_str().as_bytes())?;
    }
    Ok(())
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
