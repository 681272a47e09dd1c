//! Bitmasks of the quotes and backslashes of a text, one bit per byte.
//!
//! Most of a line is strings, and most of the work is to find their ends. With a bit for every quote, that is
//! a matter of counting zeros. The masks are computed with the widest vectors of the CPU, selected at run
//! time; a portable fallback computes the same masks. There is no `unsafe` code here: `fearless_simd`
//! contains it. Closures that use vectors are always inlined, because a function of its own would be compiled
//! for the oldest CPU, and call a function for each instruction.

use fearless_simd::{Level, Simd, SimdBase, SimdMask, dispatch, u8x64};

/// The quotes and backslashes of up to 1024 bytes: one bit per byte, 64 per word.
///
/// Many words are computed at a time because they are independent, and their latencies overlap.
#[derive(Default)]
struct QuoteMasks {
    quotes: [u64; Self::WORDS],
    backslashes: [u64; Self::WORDS],
    letters: [u64; Self::WORDS],
}

impl QuoteMasks {
    const WORDS: usize = 16;

    /// Fills the masks for the first bytes of `text`, as many as fit, by calling `masks` for each block.
    ///
    /// Returns the number of bytes, and whether they contain a control character.
    #[inline(always)]
    fn fill_by(&mut self, text: &[u8], marks: impl Fn(&[u8; 64]) -> BlockMasks) -> (usize, bool) {
        let text = &text[..text.len().min(Self::WORDS * 64)];
        let words = self.quotes.iter_mut().zip(&mut self.backslashes).zip(&mut self.letters);
        let mut controls = 0;
        for (((quotes, backslashes), letters), block) in words.zip(blocks(text)) {
            let marks = marks(&block);
            (*quotes, *backslashes, *letters) = (marks.quotes, marks.backslashes, marks.letters);
            controls |= marks.controls;
        }
        (text.len(), controls != 0)
    }
}

/// The offsets of the backslashes of a text, for up to 512 bytes at a time.
pub(super) struct BackslashFinder {
    /// The offsets. Elements after the last offset may be overwritten as well.
    offsets: [u16; Self::MAX_BYTES + Self::BATCH],
}

impl BackslashFinder {
    const MAX_BYTES: usize = 512;

    /// The number of offsets written at once. Writing a fixed number is faster than checking for the end.
    const BATCH: usize = 4;

    pub(super) fn new() -> Self {
        Self { offsets: [0; _] }
    }

    /// Returns the offsets of the backslashes in the first bytes, and the number of bytes searched.
    pub(super) fn find(&mut self, text: &[u8]) -> (&[u16], usize) {
        let text = &text[..text.len().min(Self::MAX_BYTES)];
        let count = match simd_level() {
            Some(level) => dispatch!(level, simd => self.find_by(text, #[inline(always)] |block| {
                u8x64::from_slice(simd, block).simd_eq(b'\\').to_bitmask()
            })),
            None => self.find_by(text, |block| quote_masks_portable(block).1),
        };
        (&self.offsets[..count], text.len())
    }

    #[inline(always)]
    fn find_by(&mut self, text: &[u8], marks: impl Fn(&[u8; 64]) -> u64) -> usize {
        let mut count = 0;
        for (i, block) in blocks(text).enumerate() {
            let word = marks(&block);
            let (mut left, mut to) = (word, count);
            while left != 0 {
                for place in &mut self.offsets[to..][..Self::BATCH] {
                    *place = (i * 64) as u16 + left.trailing_zeros() as u16;
                    left &= left.wrapping_sub(1);
                }
                to += Self::BATCH;
            }
            count += word.count_ones() as usize;
        }
        count
    }
}

/// Splits the text into blocks of 64 bytes, with the last one padded with spaces.
#[inline(always)]
fn blocks(text: &[u8]) -> impl Iterator<Item = [u8; 64]> {
    let (blocks, rest) = text.as_chunks::<64>();
    let mut last = [b' '; 64];
    last[..rest.len()].copy_from_slice(rest);
    blocks.iter().copied().chain((!rest.is_empty()).then_some(last))
}

/// The bitmasks of 64 bytes; the lowest bit is the first byte.
struct BlockMasks {
    quotes: u64,
    backslashes: u64,
    /// Letters that may follow a backslash: the most frequent ones, not all of them.
    letters: u64,
    /// Not zero if the block contains a control character.
    controls: u64,
}

/// Returns the vector instructions to use; `None` if the fallback is as fast.
#[inline(always)]
fn simd_level() -> Option<Level> {
    #[cfg(test)]
    if let Some(chosen) = tests::forced_level() {
        return chosen;
    }
    Some(Level::new()).filter(|level| !level.is_fallback())
}

/// Computes the masks of a block with vectors.
#[inline(always)]
fn block_masks_simd<S: Simd>(simd: S, block: &[u8; 64]) -> BlockMasks {
    let bytes = u8x64::from_slice(simd, block);
    BlockMasks {
        quotes: bytes.simd_eq(b'"').to_bitmask(),
        backslashes: bytes.simd_eq(b'\\').to_bitmask(),
        letters: (bytes.simd_eq(b'n') | bytes.simd_eq(b't') | bytes.simd_eq(b'r')).to_bitmask(),
        controls: bytes.simd_lt(0x20).to_bitmask(),
    }
}

/// Computes the masks of a block without explicit vectors, in a form that the compiler can vectorize.
fn block_masks_portable(block: &[u8; 64]) -> BlockMasks {
    let (quotes, backslashes) = quote_masks_portable(block);
    BlockMasks { quotes, backslashes, letters: 0, controls: u64::from(has_control(block)) }
}

/// Returns whether the block contains a control character. Without an early exit, so that it is vectorized.
#[inline(always)]
fn has_control(block: &[u8; 64]) -> bool {
    block.iter().fold(false, |any, &byte| any | (byte < 0x20))
}

/// Returns the masks of the quotes and the backslashes of 64 bytes; the lowest bit is the first byte.
#[inline(always)]
fn quote_masks_portable(block: &[u8; 64]) -> (u64, u64) {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    // The whole function is written so that the compiler vectorizes it.
    let mut marks = [0u8; 64];
    for (mark, &byte) in marks.iter_mut().zip(block) {
        *mark = u8::from(byte == b'"') | u8::from(byte == b'\\') << 1;
    }
    // Each byte uses two bits, so four words fit into one; the transposition then collects equal bits.
    let (words, _) = marks.as_chunks::<8>();
    let word = |i: usize| u64::from_le_bytes(words[i]);
    let low = transpose(word(0) | word(2) << 2 | word(4) << 4 | word(6) << 6);
    let high = transpose(word(1) | word(3) << 2 | word(5) << 4 | word(7) << 6);
    ((low & EVEN) | (high & EVEN) << 8, (low >> 8 & EVEN) | (high & !EVEN))
}

/// Transposes a matrix of eight by eight bits.
#[inline(always)]
fn transpose(mut word: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let swap = (word ^ (word >> shift)) & mask;
        word ^= swap ^ (swap << shift);
    }
    word
}

/// The quotes of a text that open and close strings, from left to right.
///
/// With a mask of all quotes, finding the end of a string is a matter of counting zeros, whatever its length
/// and its escapes. Escapes are validated at the same time. A backslash outside of strings is invalid JSON,
/// and the quotes after it may be wrong.
pub(crate) struct QuoteScanner<'a> {
    bytes: &'a [u8],
    /// The remaining quotes of the current word, and the offset of the first byte of that word.
    remaining: u64,
    block: usize,
    /// The words of unescaped quotes; those in `next..end` are still to be read.
    marks: QuoteMasks,
    next: usize,
    end: usize,
    /// The range of bytes that `masks` describes.
    marked: std::ops::Range<usize>,
    /// Whether the first byte after the marked range is escaped.
    carry: u64,
    /// Whether the text marked so far contains a control character or an invalid escape. If so, each string
    /// must be validated separately.
    pub(crate) has_invalid: bool,
    /// Whether an escape was found that may be a surrogate.
    pub(crate) may_have_surrogates: bool,
}

impl<'a> QuoteScanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            remaining: 0,
            block: 0,
            marks: QuoteMasks::default(),
            next: 0,
            end: 0,
            marked: 0..0,
            carry: 0,
            has_invalid: false,
            may_have_surrogates: false,
        }
    }

    /// Returns the offset of the next quote.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<usize> {
        while self.remaining == 0 {
            if self.next == self.end && !self.fill_masks() {
                return None;
            }
            self.remaining = self.marks.quotes[self.next % QuoteMasks::WORDS];
            self.block = self.marked.start + self.next * 64;
            self.next += 1;
        }
        let at = self.block + self.remaining.trailing_zeros() as usize;
        self.remaining &= self.remaining - 1;
        Some(at)
    }

    /// Returns the offset of the closing quote of the string that opens at `start`.
    #[inline(always)]
    pub(super) fn pop_string_end(&mut self, start: usize) -> Option<usize> {
        let first = self.remaining;
        let second = first & first.wrapping_sub(1);
        if second != 0 && self.block + first.trailing_zeros() as usize == start {
            // Both quotes are in the current word.
            self.remaining = second & (second - 1);
            return Some(self.block + second.trailing_zeros() as usize);
        }
        if self.pop()? == start { self.pop() } else { None }
    }

    /// Returns whether there is a backslash between `start` and the quote at `end - 1`, which `pop` returned
    /// last.
    #[inline(always)]
    pub(super) fn is_escaped(&self, start: usize, end: usize) -> bool {
        let word = self.next - 1;
        if start < self.block {
            return self.bytes[start..end].iter().fold(false, |any, &byte| any | (byte == b'\\'));
        }
        let span = u64::MAX << (start - self.block) & u64::MAX >> (63 - (end - 1 - self.block) % 64);
        self.marks.backslashes[word % QuoteMasks::WORDS] & span != 0
    }

    /// Computes the marks of the next bytes; returns `false` at the end of the text.
    #[inline(never)]
    fn fill_masks(&mut self) -> bool {
        match simd_level() {
            Some(level) => {
                dispatch!(level, simd => self.fill_masks_by(
                    #[inline(always)]
                    |block| block_masks_simd(simd, block),
                ))
            }
            None => self.fill_masks_by(block_masks_portable),
        }
    }

    #[inline(always)]
    fn fill_masks_by(&mut self, marks: impl Fn(&[u8; 64]) -> BlockMasks) -> bool {
        let start = self.marked.end;
        let (marked, control) = self.marks.fill_by(&self.bytes[start..], marks);
        self.marked = start..start + marked;
        self.next = 0;
        self.end = marked.div_ceil(64);
        self.has_invalid |= control;
        let any = self.marks.backslashes[..self.end].iter().fold(self.carry, |any, word| any | word);
        if any != 0 {
            self.remove_escaped_quotes(start);
        }
        self.end > 0
    }

    /// Removes escaped quotes from the marks, and validates the other escapes.
    #[inline(always)]
    fn remove_escaped_quotes(&mut self, start: usize) {
        let mut others = [0; QuoteMasks::WORDS];
        let mut carry = self.carry;
        let marks = self.marks.quotes.iter_mut().zip(&self.marks.backslashes).zip(&self.marks.letters);
        for (((quotes, backslashes), letters), others) in marks.zip(&mut others).take(self.end) {
            let escaped = escaped_mask(*backslashes, &mut carry);
            // These bytes may always be escaped; the others must be checked.
            *others = escaped & !(*quotes | *backslashes | *letters);
            *quotes &= !escaped;
        }
        self.carry = carry;
        for at in each_bit(&others[..self.end]).map(|at| start + at) {
            if !is_short_escape(self.bytes, at) {
                self.check_unicode_escape(at);
            }
        }
    }

    fn check_unicode_escape(&mut self, at: usize) {
        match self.bytes.get(at..at + 5) {
            Some([b'u', digits @ ..]) if all_hex(digits) => {
                self.may_have_surrogates |= matches!(digits[0], b'd' | b'D');
            }
            _ => self.has_invalid = true,
        }
    }
}

/// Counts the escaped line breaks in a part of a string that does not begin within an escape.
pub(crate) fn count_escaped_breaks(text: &[u8]) -> usize {
    match simd_level() {
        Some(level) => dispatch!(level, simd => count_escaped_breaks_by(text, #[inline(always)] |block| {
            let bytes = u8x64::from_slice(simd, block);
            (bytes.simd_eq(b'n').to_bitmask(), bytes.simd_eq(b'\\').to_bitmask())
        })),
        None => count_escaped_breaks_by(text, |block| {
            let letters = block.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(byte == b'n'));
            (letters, quote_masks_portable(block).1)
        }),
    }
}

#[inline(always)]
fn count_escaped_breaks_by(text: &[u8], marks: impl Fn(&[u8; 64]) -> (u64, u64)) -> usize {
    let (mut count, mut carry) = (0, 0);
    for block in blocks(text) {
        let (letters, backslashes) = marks(&block);
        count += (letters & escaped_mask(backslashes, &mut carry)).count_ones() as usize;
    }
    count
}

/// Returns the end of the object or array that begins at `start` of valid text.
pub(super) fn end_of_container(bytes: &[u8], start: usize) -> usize {
    match simd_level() {
        Some(level) => {
            dispatch!(level, simd => end_of_container_by(
                bytes,
                start,
                #[inline(always)]
                |block| bracket_masks_simd(simd, block),
                #[inline(always)]
                |at| end_of_string_by(bytes, at, #[inline(always)] |block| quote_masks_simd(simd, block)),
            ))
        }
        None => end_of_container_by(bytes, start, bracket_masks_portable, |at| {
            end_of_string_by(bytes, at, quote_masks_portable)
        }),
    }
}

/// Returns the offset after the quote that closes a string, searching from `start` inside it.
///
/// The byte at `start` must not be escaped. Returns the length of the text if there is no such quote.
pub(super) fn end_of_string(bytes: &[u8], start: usize) -> usize {
    match simd_level() {
        Some(level) => {
            dispatch!(level, simd => end_of_string_by(
                bytes,
                start,
                #[inline(always)]
                |block| quote_masks_simd(simd, block),
            ))
        }
        None => end_of_string_by(bytes, start, quote_masks_portable),
    }
}

/// Computes the masks of the quotes and backslashes of 64 bytes with vectors.
#[inline(always)]
fn quote_masks_simd<S: Simd>(simd: S, block: &[u8; 64]) -> (u64, u64) {
    let bytes = u8x64::from_slice(simd, block);
    (bytes.simd_eq(b'"').to_bitmask(), bytes.simd_eq(b'\\').to_bitmask())
}

#[inline(always)]
fn end_of_string_by(bytes: &[u8], start: usize, marks: impl Fn(&[u8; 64]) -> (u64, u64)) -> usize {
    let (blocks, rest) = bytes[start..].as_chunks::<64>();
    let mut before = 0;
    for (i, block) in blocks.iter().enumerate() {
        if let Some(end) = end_in_block(bytes, start, i, marks(block), &mut before) {
            return end;
        }
    }
    let missing = 64 - rest.len() as u32;
    let last = match bytes.last_chunk() {
        // The last bytes with some before them, which are shifted out. This is faster than a copy.
        Some(last) => {
            let (quotes, backslashes) = marks(last);
            (quotes.unbounded_shr(missing), backslashes.unbounded_shr(missing))
        }
        None => {
            let mut last = [b' '; 64];
            last[..rest.len()].copy_from_slice(rest);
            marks(&last)
        }
    };
    end_in_block(bytes, start, blocks.len(), last, &mut before).unwrap_or(bytes.len())
}

/// Returns whether a text ends in an even number of backslashes.
#[inline(always)]
fn has_even_run_before(text: &[u8]) -> bool {
    text.iter().rev().take_while(|&&byte| byte == b'\\').count().is_multiple_of(2)
}

/// Returns the offset after the first unescaped quote of a block. `before` has the last two backslashes of
/// the block before in its lowest bits, the last one first, and is updated.
///
/// A quote after anything but a backslash is not escaped, and most quotes after a backslash are. So the
/// backslashes are counted only for a quote after two of them, and the loop over blocks of code, most of
/// which contain escapes, has no branch that depends on them.
#[inline(always)]
fn end_in_block(
    bytes: &[u8],
    start: usize,
    block: usize,
    (quotes, backslashes): (u64, u64),
    before: &mut u64,
) -> Option<usize> {
    let one_before = backslashes << 1 | *before & 1;
    let two_before = backslashes << 2 | (*before & 1) << 1 | *before >> 1;
    *before = backslashes >> 63 | (backslashes >> 62 & 1) << 1;
    let mut ends = quotes & (!one_before | two_before);
    while ends != 0 {
        let quote = start + block * 64 + ends.trailing_zeros() as usize;
        if has_even_run_before(&bytes[start..quote]) {
            return Some(quote + 1);
        }
        ends &= ends - 1;
    }
    None
}

/// The masks of the brackets, quotes and backslashes of 64 bytes.
struct BracketMasks {
    opening: u64,
    closing: u64,
    quotes: u64,
    backslashes: u64,
}

impl BracketMasks {
    /// Returns the masks without the first bytes, at most 63 of them.
    #[inline(always)]
    fn shifted(self, n: u32) -> Self {
        let Self { opening, closing, quotes, backslashes } = self;
        let shift = |mask: u64| mask >> n;
        Self {
            opening: shift(opening),
            closing: shift(closing),
            quotes: shift(quotes),
            backslashes: shift(backslashes),
        }
    }
}

#[inline(always)]
fn bracket_masks_simd<S: Simd>(simd: S, block: &[u8; 64]) -> BracketMasks {
    let bytes = u8x64::from_slice(simd, block);
    // `[` and `{` differ by a single bit, and so do `]` and `}`.
    let folded = bytes | 0x20;
    BracketMasks {
        opening: folded.simd_eq(b'{').to_bitmask(),
        closing: folded.simd_eq(b'}').to_bitmask(),
        quotes: bytes.simd_eq(b'"').to_bitmask(),
        backslashes: bytes.simd_eq(b'\\').to_bitmask(),
    }
}

fn bracket_masks_portable(block: &[u8; 64]) -> BracketMasks {
    let bits = |is: fn(u8) -> bool| block.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(is(byte)));
    let (quotes, backslashes) = quote_masks_portable(block);
    let opening = bits(|byte| matches!(byte, b'{' | b'['));
    let closing = bits(|byte| matches!(byte, b'}' | b']'));
    BracketMasks { opening, closing, quotes, backslashes }
}

#[inline(always)]
fn end_of_container_by(
    bytes: &[u8],
    start: usize,
    marks: impl Fn(&[u8; 64]) -> BracketMasks,
    end_of_string: impl Fn(usize) -> usize,
) -> usize {
    let mut depth = 0;
    let mut at = start;
    // Each block begins outside of strings.
    while at < bytes.len() {
        let rest = &bytes[at..];
        let BracketMasks { opening, closing, mut quotes, backslashes } =
            match (rest.first_chunk(), bytes.last_chunk()) {
                (Some(block), _) => marks(block),
                // The last bytes with some before them, which are shifted out.
                (None, Some(last)) => marks(last).shifted(64 - rest.len() as u32),
                (None, None) => {
                    let mut last = [b' '; 64];
                    last[..rest.len()].copy_from_slice(rest);
                    marks(&last)
                }
            };
        let mut carry = 0;
        if backslashes != 0 {
            quotes &= !escaped_mask(backslashes, &mut carry);
        }
        // A prefix XOR: each quote inverts all bits from there on, so that bits inside strings are set.
        let mut inside = quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            inside ^= inside << shift;
        }
        let (opening, mut closing) = (opening & !inside, closing & !inside);
        if depth <= closing.count_ones() {
            let mut closed = 0;
            while closing != 0 {
                let before = (1 << closing.trailing_zeros()) - 1;
                closed += 1;
                if depth + (opening & before).count_ones() <= closed {
                    return at + closing.trailing_zeros() as usize + 1;
                }
                closing &= closing - 1;
            }
            depth = (depth + opening.count_ones()).saturating_sub(closed);
        } else {
            depth = depth + opening.count_ones() - closing.count_ones();
        }
        at += 64;
        // Most of a container is long strings, which are skipped faster than they are searched for brackets.
        if inside >> 63 == 1 {
            at = end_of_string((at + carry as usize).min(bytes.len()));
        }
    }
    bytes.len()
}

/// Returns the indices of the bits that are set.
#[inline(always)]
fn each_bit(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(i, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let place = (left != 0).then(|| i * 64 + left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            place
        })
    })
}

#[inline(always)]
fn is_short_escape(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|&byte| SHORT_ESCAPE[usize::from(byte)])
}

/// Returns the mask of the escaped bytes: those that follow an unescaped backslash.
///
/// In a run of backslashes every second one escapes, beginning with the first. Adding the first bit of a run
/// to the run carries into the bit after it, which distinguishes odd runs from even ones. `carry` is whether
/// the first byte of the word is escaped, and is updated for the next word. The algorithm is that of
/// simdjson.
#[inline(always)]
fn escaped_mask(backslashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let fresh = backslashes & !*carry;
    let behind = fresh << 1 | *carry;
    let odd_starts = fresh & !EVEN & !behind;
    let from_even = odd_starts.wrapping_add(fresh);
    // Computed from the last run alone, so that words do not depend on each other.
    if backslashes != u64::MAX {
        *carry = u64::from(backslashes.leading_ones() % 2);
    }
    (EVEN ^ (from_even << 1)) & behind
}

/// The bytes that form an escape with a backslash alone. A table, because this lookup is the most frequent
/// one.
pub(super) const SHORT_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"\"\\/bfnrt";
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
};

pub(super) fn all_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        static FORCED_LEVEL: Cell<Option<Option<Level>>> = const { Cell::new(None) };
    }

    pub(super) fn forced_level() -> Option<Option<Level>> {
        FORCED_LEVEL.get()
    }

    /// Runs a test three times: without vectors, with those of every CPU of the target, and with the widest
    /// available.
    pub(in crate::json) fn with_each_simd_level<T>(mut test: impl FnMut() -> T) -> [T; 3] {
        [None, Some(Level::baseline()), Some(Level::new())].map(|way| {
            FORCED_LEVEL.set(Some(way));
            let result = test();
            FORCED_LEVEL.set(None);
            result
        })
    }

    #[test]
    fn escaped_line_breaks_are_counted_at_each_simd_level() {
        let text = format!(r"\n{}\n\\n{}\\\n n\tn\u000an\n", "x".repeat(61), r"\\".repeat(40));
        for length in 0..=text.len() {
            let (mut at, mut expected) = (0, 0);
            while let Some(hit) = text[at..length].find('\\') {
                expected += usize::from(text.as_bytes()[..length].get(at + hit + 1) == Some(&b'n'));
                at = length.min(at + hit + 2);
            }
            let counts = with_each_simd_level(|| count_escaped_breaks(&text.as_bytes()[..length]));
            assert_eq!(counts, [expected; 3], "{length}");
        }
    }

    #[test]
    fn masks_are_the_same_at_each_simd_level() {
        for byte in 0..=u8::MAX {
            let block: [u8; 64] = std::array::from_fn(|i| byte.wrapping_add((i as u8).wrapping_mul(37)));
            let plain = |byte: u8| block.iter().rev().fold(0u64, |bits, &b| bits << 1 | u64::from(b == byte));
            let has_control = block.iter().any(|&byte| byte < 0x20);
            let tell = |marks: BlockMasks| (marks.quotes, marks.backslashes, marks.controls != 0);
            let expected = (plain(b'"'), plain(b'\\'), has_control);
            assert_eq!(tell(block_masks_portable(&block)), expected);
            for level in [Level::baseline(), Level::new()] {
                assert_eq!(tell(dispatch!(level, simd => block_masks_simd(simd, &block))), expected);
            }
        }
    }

    /// The quotes after an even number of backslashes, found one byte at a time.
    fn quotes_bytewise(bytes: &[u8]) -> Vec<usize> {
        let mut quotes = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'"' => quotes.push(at),
                b'\\' => at += 1,
                _ => {}
            }
            at += 1;
        }
        quotes
    }

    /// The end of a container, found one byte at a time.
    fn container_end_bytewise(bytes: &[u8], start: usize) -> usize {
        let (mut depth, mut in_string, mut at) = (0, false, start);
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if in_string => at += 1,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => {
                    depth -= 1;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        bytes.len()
    }

    /// JSON with long strings that contain brackets, quotes and backslashes.
    fn any_container() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "a",
            "{",
            "}]",
            "\\\\",
            "\\\"",
            "\\n",
            ",",
            "\u{e9}",
            "long stretches of nothing much",
        ]);
        let string =
            prop::collection::vec(pieces, 0..40).prop_map(|pieces| format!("\"{}\"", pieces.concat()));
        let leaf = prop_oneof![string, Just("12.5".to_owned()), Just("null".to_owned())];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(inner, 0..6).prop_map(|items| {
                    let members: Vec<_> = items.iter().map(|item| format!("\"k}}\\\"\":{item}")).collect();
                    format!("{{{}}}", members.join(" , "))
                }),
            ]
        })
    }

    fn all(bytes: &[u8]) -> Vec<usize> {
        let mut quotes = QuoteScanner::new(bytes);
        std::iter::from_fn(|| quotes.pop()).collect()
    }

    proptest! {
        #[test]
        fn only_unescaped_quotes_are_returned(bytes in prop::collection::vec(
            prop_oneof![4 => Just(b'\\'), 2 => Just(b'"'), 1 => Just(b'n'), 1 => any::<u8>()], 0..3000)
        ) {
            for found in with_each_simd_level(|| all(&bytes)) {
                prop_assert_eq!(found, quotes_bytewise(&bytes));
            }
        }

        #[test]
        fn the_end_of_a_container_is_found_at_each_simd_level(inner in any_container(), before in "[a-z ]{0,70}", behind in "[\\]},\"a ]{0,70}") {
            let text = format!("{before}[{inner}]{behind}");
            let expected = container_end_bytewise(text.as_bytes(), before.len());
            prop_assert_eq!(expected, text.len() - behind.len());
            prop_assert_eq!(with_each_simd_level(|| end_of_container(text.as_bytes(), before.len())), [expected; 3]);
            // A truncated container ends with the text.
            for cut in before.len() + 1..expected {
                let torn = &text.as_bytes()[..cut];
                prop_assert_eq!(with_each_simd_level(|| end_of_container(torn, before.len())), [cut; 3]);
            }
        }

        #[test]
        fn the_end_of_a_string_is_found_at_each_simd_level(inner in "(\\PC|\\\\[\"\\\\nu]){0,300}", behind in "[\",\\\\x]{0,70}") {
            let inner = inner.replace('"', "");
            let mut plainly = 0;
            let text = format!("{inner}\"{behind}");
            let bytes = text.as_bytes();
            while plainly < bytes.len() && bytes[plainly] != b'"' {
                plainly += if bytes[plainly] == b'\\' { 2 } else { 1 };
            }
            let expected = (plainly + 1).min(bytes.len());
            prop_assert_eq!(with_each_simd_level(|| end_of_string(bytes, 0)), [expected; 3]);
            prop_assert_eq!(crate::json::skip_value(format!("\"{text}").as_bytes(), 0), expected + 1);
        }

        #[test]
        fn long_runs_of_backslashes_are_handled(runs in prop::collection::vec(0usize..200, 0..20)) {
            let text: String = runs.iter().map(|&run| "\\".repeat(run) + "\"").collect();
            for found in with_each_simd_level(|| all(text.as_bytes())) {
                prop_assert_eq!(found, quotes_bytewise(text.as_bytes()));
            }
        }
    }
}
