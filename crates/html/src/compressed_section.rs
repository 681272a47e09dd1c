//! Compressed sections: parts of a page that are stored deflated and drawn only when they are needed.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::sync::Arc;

use flate2::{Compress, Compression, FlushCompress, Status};
use parking_lot::{Condvar, Mutex};

use crate::markup::Markup;
use crate::raw::{self, SectionLine};

/// Parts are collected into one section until it has about this size, so that small parts also compress well.
pub(crate) const SECTION_SIZE: usize = 128 << 10;

/// A section that one part made larger than this is compressed in pieces, so that several cores share the
/// work.
const PIECE_SIZE: usize = 256 << 10;

/// Compressed sections stay in memory up to this size. Beyond it, all of them are written to the spool.
const MAX_IN_MEMORY: usize = 3 << 20;

/// Temporary storage for compressed sections: written first, then read once from the start.
pub trait Spool: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Spool for T {}

/// Parts in order, several per section. Each section is compressed separately on the thread pool.
pub(crate) struct SectionWriter {
    /// The terminator of each part, which occurs in none.
    end: &'static str,
    buffer: String,
    queue: Arc<CompressionQueue>,
    /// The number of the first part of each section.
    starts: Vec<usize>,
    n_parts: usize,
}

impl SectionWriter {
    /// Creates a writer without parts. `end` terminates each part and occurs in none. The id of a section is
    /// `prefix` and its number.
    pub(crate) fn new(prefix: &'static str, end: &'static str, spool: Box<dyn Spool>) -> Self {
        let queue = Arc::new(CompressionQueue::new(prefix, spool));
        Self { end, buffer: String::new(), queue, starts: Vec::new(), n_parts: 0 }
    }

    /// Adds a part that consists of `prefix` and `body`, and returns its number. A large one has a section of
    /// its own.
    pub(crate) fn add(&mut self, prefix: &str, body: &Markup) -> usize {
        if body.len() >= SECTION_SIZE {
            self.close();
        }
        if self.buffer.is_empty() {
            self.starts.push(self.n_parts);
        }
        self.buffer.extend([prefix, body.as_str(), self.end]);
        self.n_parts += 1;
        if self.buffer.len() >= SECTION_SIZE {
            self.close();
        }
        self.n_parts - 1
    }

    /// Returns the number of the first part of each section.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Ends the current section and queues it for compression.
    pub(crate) fn close(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        self.queue.push_markup(self.starts.len() - 1, std::mem::take(&mut self.buffer));
        // If the queue is long, the producer compresses a section itself.
        while self.queue.state.lock().queue.len() > 8 && self.queue.compress_one() {}
    }

    /// Writes all sections.
    pub(crate) fn write(mut self, to: &mut dyn Write) -> io::Result<()> {
        self.close();
        self.queue.write(to)
    }
}

/// The compression queue and its results.
pub(crate) struct CompressionQueue {
    /// The prefix of section ids.
    prefix: &'static str,
    state: Mutex<QueueState>,
    /// Signalled when no compression is running.
    idle: Condvar,
}

/// A complete section, or a piece of it.
enum QueuedSection {
    /// A piece of the markup of a section.
    Markup(Arc<String>, Range<usize>),
    Lines(Vec<SectionLine>),
}

struct QueueState {
    /// The queue.
    queue: VecDeque<(usize, QueuedSection)>,
    /// The number of pieces taken from the queue, and of those being compressed.
    n_started: usize,
    n_running: usize,
    /// Pieces that finished before an earlier one, by sequence number.
    out_of_order: BTreeMap<usize, Markup>,
    n_done: usize,
    /// Compressed pieces in order that are not in the spool.
    in_memory: Vec<Markup>,
    n_memory_bytes: usize,
    is_spooled: bool,
    spool: Box<dyn Spool>,
    /// The first write error of the spool, or a panic while compressing.
    failed: Option<io::Error>,
}

impl CompressionQueue {
    pub(crate) fn new(prefix: &'static str, spool: Box<dyn Spool>) -> Self {
        let state = QueueState {
            queue: VecDeque::new(),
            n_started: 0,
            n_running: 0,
            out_of_order: BTreeMap::new(),
            n_done: 0,
            in_memory: Vec::new(),
            n_memory_bytes: 0,
            is_spooled: false,
            spool,
            failed: None,
        };
        Self { prefix, state: Mutex::new(state), idle: Condvar::new() }
    }

    /// Queues a section.
    fn push_markup(self: &Arc<Self>, number: usize, section: String) {
        let section = Arc::new(section);
        let mut start = 0;
        while start < section.len() {
            let end = section.floor_char_boundary(start + PIECE_SIZE);
            self.push(number, QueuedSection::Markup(Arc::clone(&section), start..end));
            start = end;
        }
    }

    /// Queues a section of lines that has `n_bytes` once they are joined.
    pub(crate) fn push_lines(self: &Arc<Self>, number: usize, lines: Vec<SectionLine>, n_bytes: usize) {
        if n_bytes > PIECE_SIZE {
            let mut section = String::with_capacity(n_bytes);
            raw::join_lines(&lines, &mut section);
            self.push_markup(number, section);
        } else {
            self.push(number, QueuedSection::Lines(lines));
        }
    }

    fn push(self: &Arc<Self>, number: usize, section: QueuedSection) {
        self.state.lock().queue.push_back((number, section));
        let queue = Arc::clone(self);
        rayon::spawn(move || {
            queue.compress_one();
        });
    }

    /// Compresses the first piece of the queue. Returns `false` if the queue is empty.
    fn compress_one(&self) -> bool {
        let mut state = self.state.lock();
        let Some((number, section)) = state.queue.pop_front() else { return false };
        let turn = state.n_started;
        state.n_started += 1;
        state.n_running += 1;
        drop(state);
        let _running = RunningGuard(self);
        let element = self.element(number, section);
        self.state.lock().put(turn, element);
        true
    }

    /// Returns the markup of a section, or of a piece of it.
    fn element(&self, number: usize, section: QueuedSection) -> Markup {
        match section {
            QueuedSection::Markup(section, piece) => {
                let (is_first, is_last) = (piece.start == 0, piece.end == section.len());
                self.part(number, section[piece].as_bytes(), is_first, is_last)
            }
            QueuedSection::Lines(lines) => {
                let mut joined = String::new();
                raw::join_lines(&lines, &mut joined);
                self.part(number, joined.as_bytes(), true, true)
            }
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
        let mut state = self.state.lock();
        self.idle.wait_while(&mut state, |state| state.n_running > 0);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        for element in &state.in_memory {
            element.write_to(to)?;
        }
        if state.is_spooled {
            state.spool.rewind()?;
            io::copy(&mut io::BufReader::with_capacity(SECTION_SIZE, &mut state.spool), to)?;
        }
        Ok(())
    }
}

/// Counts a compression as finished when dropped, also after a panic.
struct RunningGuard<'a>(&'a CompressionQueue);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.n_running -= 1;
        if std::thread::panicking() {
            // The pieces after this one are never stored, so the page would be incomplete.
            state.failed.get_or_insert_with(|| io::Error::other("compressing a section failed"));
        }
        if state.n_running == 0 {
            self.0.idle.notify_all();
        }
    }
}

impl QueueState {
    /// Stores a compressed piece once all earlier ones are stored.
    fn put(&mut self, turn: usize, element: Markup) {
        self.out_of_order.insert(turn, element);
        while let Some(element) = self.out_of_order.remove(&self.n_done) {
            self.n_done += 1;
            self.n_memory_bytes += element.len();
            self.in_memory.push(element);
        }
        self.is_spooled |= self.n_memory_bytes > MAX_IN_MEMORY;
        if self.is_spooled && self.failed.is_none() {
            let mut elements = self.in_memory.drain(..);
            self.failed = elements.find_map(|element| element.write_to(&mut self.spool).err());
        }
    }
}

/// Passes the compressed bytes to `sink`. Unless `is_last`, they end at a byte boundary and their number is a
/// multiple of three, so that the base64 of consecutive pieces can be concatenated.
fn deflate(bytes: &[u8], is_last: bool, sink: impl FnOnce(&[u8])) {
    thread_local! {
        /// Reused, because a compressor has large tables.
        static COMPRESSOR: RefCell<(Compress, Vec<u8>)> =
            RefCell::new((Compress::new(Compression::fast(), false), Vec::new()));
    }
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    COMPRESSOR.with_borrow_mut(|(compressor, out)| {
        compressor.reset();
        out.clear();
        loop {
            out.reserve(SECTION_SIZE / 2);
            let rest = &bytes[compressor.total_in() as usize..];
            // Compressing from memory to memory does not fail.
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

/// An empty stored block of deflate, as whole bytes.
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
    fn sections_are_written_in_order_from_memory_and_spool() {
        let mut writer = SectionWriter::new("q", "\n", Box::new(io::Cursor::new(Vec::new())));
        // Random text does not compress, so the sections exceed the memory limit.
        let mut random = 1_u64;
        let mut part = || {
            let words = std::iter::repeat_with(|| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{random:016x}")
            });
            words.take(SECTION_SIZE / 16).collect::<String>()
        };
        let markup = |text: &str| {
            let mut markup = Markup::new();
            markup.text(text);
            markup
        };
        let mut parts: Vec<String> = (0..40).map(|_| part()).collect();
        for (i, part) in parts.iter().enumerate() {
            assert_eq!(writer.add("", &markup(part)), i);
        }
        parts.extend([parts.concat(), "the last".to_owned()]);
        writer.add("", &markup(&parts[40]));
        writer.add("the ", &markup("last"));
        assert_eq!(writer.starts(), (0..42).collect::<Vec<_>>());
        let mut page = Vec::new();
        writer.write(&mut page).unwrap();
        assert!(page.len() > MAX_IN_MEMORY + SECTION_SIZE);
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

    #[test]
    fn a_panic_while_compressing_is_reported() {
        let queue = CompressionQueue::new("q", Box::new(io::Cursor::new(Vec::new())));
        // The offset is beyond the end of the text.
        queue.state.lock().queue.push_back((0, QueuedSection::Markup(Arc::default(), 1..2)));
        let compress = std::panic::AssertUnwindSafe(|| queue.compress_one());
        assert!(std::panic::catch_unwind(compress).is_err());
        assert_eq!(queue.state.lock().n_running, 0);
        assert!(queue.write(&mut Vec::new()).is_err());
    }
}
