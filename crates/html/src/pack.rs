//! Compressed parts: what a page carries along and draws only when it is looked at.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Seek, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use flate2::{Compress, Compression, FlushCompress, Status};

use crate::markup::Markup;
use crate::raw::{self, PackedLine};

/// Parts are packed together until they are about as large as this, so that small ones compress well too.
pub(crate) const BLOB: usize = 128 << 10;

/// A pack that one part alone made larger than this is compressed in pieces, so that no core has to do it alone.
const PIECE: usize = 256 << 10;

/// So many pieces of text may wait to be compressed; who makes more compresses one instead.
const AHEAD: usize = 8;

/// What is compressed waits in memory; if it is more than this, all of it waits in the spool.
const KEPT: usize = 3 << 20;

/// Where packs wait for the page that they belong to: written first, and read once from the start.
pub trait Spool: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Spool for T {}

/// Parts in the order they came, several to a pack, each pack compressed by itself, on whatever core is free.
pub(crate) struct Pack {
    /// What stands behind each part, and in none.
    end: char,
    open: String,
    press: Arc<Press>,
    /// For each pack the number of its first part.
    starts: Vec<usize>,
    n_parts: usize,
}

impl Pack {
    /// Nothing yet. `end` stands behind each part, and in none; a pack is named `prefix` and its number.
    pub(crate) fn new(prefix: &'static str, end: char, spool: Box<dyn Spool>) -> Self {
        let press = Arc::new(Press::new(prefix, spool));
        Self { end, open: String::new(), press, starts: Vec::new(), n_parts: 0 }
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

    /// For each pack the number of its first part.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Lets the next part begin a pack. What there is goes to be compressed.
    pub(crate) fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let pack = std::mem::take(&mut self.open);
        self.open = self.press.push_text(self.starts.len() - 1, pack);
        while self.press.state().full.len() > AHEAD && self.press.compress_one() {}
    }

    /// Writes all packs.
    pub(crate) fn write(mut self, to: &mut dyn Write) -> io::Result<()> {
        self.close();
        self.press.write(to)
    }
}

/// Where packs are compressed.
pub(crate) struct Press {
    /// What packs are named by, with their number behind it.
    prefix: &'static str,
    state: Mutex<State>,
    /// Nobody compresses any more.
    at_rest: Condvar,
}

/// A pack that is full, or a piece of it.
enum Full {
    /// What stands in a text from somewhere on.
    Text(Arc<String>, usize),
    Lines(Vec<PackedLine>),
}

struct State {
    /// What waits to be compressed.
    full: VecDeque<(usize, Full)>,
    /// Room that was used and can be again.
    spare: Vec<String>,
    /// How many were begun, and how many of those are being compressed.
    n_begun: usize,
    n_at_work: usize,
    /// Those that are compressed while one before them is not.
    early: BTreeMap<usize, Markup>,
    n_done: usize,
    /// What is compressed and not in the spool.
    kept: Vec<Markup>,
    n_kept_bytes: usize,
    is_spooled: bool,
    spool: Box<dyn Spool>,
    /// What the spool said when it could not take any more.
    failed: Option<io::Error>,
}

impl Press {
    pub(crate) fn new(prefix: &'static str, spool: Box<dyn Spool>) -> Self {
        let state = State {
            full: VecDeque::new(),
            spare: Vec::new(),
            n_begun: 0,
            n_at_work: 0,
            early: BTreeMap::new(),
            n_done: 0,
            kept: Vec::new(),
            n_kept_bytes: 0,
            is_spooled: false,
            spool,
            failed: None,
        };
        Self { prefix, state: Mutex::new(state), at_rest: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a pack that will be compressed, and returns room for another.
    fn push_text(self: &Arc<Self>, number: usize, pack: String) -> String {
        let pack = Arc::new(pack);
        for start in (0..pack.len()).step_by(PIECE) {
            self.push(number, Full::Text(Arc::clone(&pack), start));
        }
        self.state().spare.pop().unwrap_or_default()
    }

    /// Takes a pack of lines that will be compressed, so many bytes once they are joined.
    pub(crate) fn push_lines(self: &Arc<Self>, number: usize, lines: Vec<PackedLine>, n_bytes: usize) {
        if n_bytes > PIECE {
            let mut pack = String::with_capacity(n_bytes);
            raw::join(&lines, &mut pack);
            self.push_text(number, pack);
        } else {
            self.push(number, Full::Lines(lines));
        }
    }

    fn push(self: &Arc<Self>, number: usize, full: Full) {
        self.state().full.push_back((number, full));
        let press = Arc::clone(self);
        rayon::spawn(move || {
            press.compress_one();
        });
    }

    /// Compresses the first of those that wait, for an element that nothing runs. Answers `false` if none waits.
    fn compress_one(&self) -> bool {
        let mut state = self.state();
        let Some((number, full)) = state.full.pop_front() else { return false };
        let turn = state.n_begun;
        state.n_begun += 1;
        state.n_at_work += 1;
        drop(state);
        let (element, spare) = self.element(number, full);
        let mut state = self.state();
        state.n_at_work -= 1;
        state.put(turn, element);
        state.spare.extend(spare);
        if state.n_at_work == 0 {
            self.at_rest.notify_all();
        }
        true
    }

    /// The element of a pack, or a piece of it; and room that can be used again.
    fn element(&self, number: usize, full: Full) -> (Markup, Option<String>) {
        thread_local! {
            static JOINED: RefCell<String> = const { RefCell::new(String::new()) };
        }
        match full {
            Full::Text(pack, start) => {
                let end = (start + PIECE).min(pack.len());
                let out = self.part(number, &pack.as_bytes()[start..end], start == 0, end == pack.len());
                // A part that was far larger than a pack has no room to give to others.
                let mut spare = Arc::into_inner(pack).filter(|room| room.capacity() <= 4 * BLOB);
                spare.iter_mut().for_each(String::clear);
                (out, spare)
            }
            Full::Lines(lines) => JOINED.with_borrow_mut(|joined| {
                joined.clear();
                raw::join(&lines, joined);
                (self.part(number, joined.as_bytes(), true, true), None)
            }),
        }
    }

    fn part(&self, number: usize, bytes: &[u8], is_first: bool, is_last: bool) -> Markup {
        let mut out = Markup::new();
        if is_first {
            out.lit("<script type=\"application/octet-stream\" id=\"").lit(self.prefix);
            out.num(number as u64).lit("\">");
        }
        deflate(bytes, is_last, |packed| {
            out.base64(packed);
        });
        if is_last {
            out.lit("</script>\n");
        }
        out
    }

    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        while self.compress_one() {}
        let state = self.state();
        let mut state = self
            .at_rest
            .wait_while(state, |state| state.n_at_work > 0)
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        for element in &state.kept {
            to.write_all(element.as_str().as_bytes())?;
        }
        if state.is_spooled {
            state.spool.rewind()?;
            io::copy(&mut io::BufReader::with_capacity(BLOB, &mut state.spool), to)?;
        }
        Ok(())
    }
}

impl State {
    /// Puts what was compressed where it will be written from, in order.
    fn put(&mut self, turn: usize, element: Markup) {
        self.early.insert(turn, element);
        while let Some(element) = self.early.remove(&self.n_done) {
            self.n_done += 1;
            self.n_kept_bytes += element.len();
            self.kept.push(element);
        }
        self.is_spooled |= self.n_kept_bytes > KEPT;
        if self.is_spooled && self.failed.is_none() {
            let mut elements = self.kept.drain(..);
            self.failed =
                elements.find_map(|element| self.spool.write_all(element.as_str().as_bytes()).err());
        }
    }
}

/// Gives the bytes compressed to `sink`. Where others follow, what is given ends with a whole byte and comes in threes,
/// so that it may be joined with what follows in base 64 too.
fn deflate(bytes: &[u8], is_last: bool, sink: impl FnOnce(&[u8])) {
    thread_local! {
        /// A compressor has large tables, and they can be used again.
        static COMPRESSOR: RefCell<(Compress, Vec<u8>)> =
            RefCell::new((Compress::new(Compression::fast(), false), Vec::new()));
    }
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    COMPRESSOR.with_borrow_mut(|(compressor, out)| {
        compressor.reset();
        out.clear();
        loop {
            out.reserve(BLOB / 2);
            let rest = &bytes[compressor.total_in() as usize..];
            // What is in memory can be compressed; an error here would be one of the library.
            match compressor.compress_vec(rest, out, flush) {
                Ok(Status::StreamEnd) | Err(_) => break,
                Ok(_) if !is_last && out.len() < out.capacity() => break,
                Ok(_) => {}
            }
        }
        while !is_last && out.len() % 3 != 0 {
            out.extend(EMPTY_BLOCK);
        }
        sink(out);
    });
}

/// A stored block of nothing, in whole bytes.
const EMPTY_BLOCK: [u8; 5] = [0, 0, 0, 0xff, 0xff];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_come_in_order_from_memory_and_from_the_spool() {
        let mut pack = Pack::new("q", '\n', Box::new(io::Cursor::new(Vec::new())));
        // Drawn by lot, so that it does not become small and goes beyond what is kept in memory.
        let mut random = 1_u64;
        let mut part = || {
            let words = std::iter::repeat_with(|| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{random:016x}")
            });
            words.take(BLOB / 16).collect::<String>()
        };
        let mut parts: Vec<String> = (0..40).map(|_| part()).collect();
        for (i, part) in parts.iter().enumerate() {
            assert_eq!(pack.add([part, ""]), i);
        }
        parts.extend([parts.concat(), "the last".to_owned()]);
        pack.add([&parts[40], ""]);
        pack.add(["the ", "last"]);
        assert_eq!(pack.starts(), (0..42).collect::<Vec<_>>());
        let mut page = Vec::new();
        pack.write(&mut page).unwrap();
        assert!(page.len() > KEPT + BLOB);
        let page = String::from_utf8(page).unwrap();
        for (i, line) in page.lines().enumerate() {
            let (name, rest) = line.split_once("id=\"").unwrap().1.split_once("\">").unwrap();
            assert_eq!(name, format!("q{i}"));
            let base64 = rest.strip_suffix("</script>").unwrap();
            let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, base64).unwrap();
            let mut text = String::new();
            flate2::read::DeflateDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
            assert_eq!(text.trim_end(), parts[i]);
        }
        assert_eq!(page.lines().count(), parts.len());
    }
}
