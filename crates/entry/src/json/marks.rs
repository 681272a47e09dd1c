//! Marks: where the quotes and backslashes of a text stand, a bit for a byte.
//!
//! Most of a line is strings, and most of the work is to find where each ends. A bit for every quote makes that a
//! matter of counting zeros, and costs about as much as a copy of the text. There is no `unsafe` here: the loops
//! are of a shape that the compiler turns into vectors by itself.

/// Where the quotes and backslashes of up to 1024 bytes stand: a bit for a byte, 64 to a word.
///
/// Many words are made at a time, since each takes a while but none waits for another.
#[derive(Default)]
pub(super) struct Marks {
    quotes: [u64; Self::WORDS],
    pub(super) backslashes: [u64; Self::WORDS],
}

impl Marks {
    const WORDS: usize = 16;

    /// Marks the first bytes of `text`, as many as there is room for. Returns how many, and whether a control
    /// character is among them.
    pub(super) fn fill(&mut self, text: &[u8]) -> (usize, bool) {
        let text = &text[..text.len().min(Self::WORDS * 64)];
        let (blocks, rest) = text.as_chunks::<64>();
        let words = self.quotes.iter_mut().zip(&mut self.backslashes);
        let mut control = false;
        for ((quotes, backslashes), block) in words.zip(blocks) {
            (*quotes, *backslashes) = marks(block);
            control |= has_control(block);
        }
        if !rest.is_empty() {
            let mut block = [b' '; 64];
            block[..rest.len()].copy_from_slice(rest);
            (self.quotes[blocks.len()], self.backslashes[blocks.len()]) = marks(&block);
            control |= has_control(&block);
        }
        (text.len(), control)
    }
}

/// Whether there is a control character. Without an early exit, so that the compiler makes vectors of it.
#[inline(always)]
fn has_control(block: &[u8; 64]) -> bool {
    block.iter().fold(false, |any, &byte| any | (byte < 0x20))
}

/// Where the quotes and the backslashes of 64 bytes stand: the first byte's bit is the lowest.
#[inline(always)]
fn marks(block: &[u8; 64]) -> (u64, u64) {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    // Written so that the compiler makes vectors of it, from here to the end.
    let mut marks = [0u8; 64];
    for (mark, &byte) in marks.iter_mut().zip(block) {
        *mark = u8::from(byte == b'"') | u8::from(byte == b'\\') << 1;
    }
    // Two bits a byte are in use, so four words fit into one; then bytes of bits become bits of bytes.
    let (words, _) = marks.as_chunks::<8>();
    let word = |i: usize| u64::from_le_bytes(words[i]);
    let low = transpose(word(0) | word(2) << 2 | word(4) << 4 | word(6) << 6);
    let high = transpose(word(1) | word(3) << 2 | word(5) << 4 | word(7) << 6);
    ((low & EVEN) | (high & EVEN) << 8, (low >> 8 & EVEN) | (high & !EVEN))
}

/// Swaps rows and columns of eight bytes of eight bits.
#[inline(always)]
fn transpose(mut word: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let swap = (word ^ (word >> shift)) & mask;
        word ^= swap ^ (swap << shift);
    }
    word
}

/// The quotes of a text that begin and end strings, from left to right.
///
/// With marks for all quotes, finding the end of a string is a matter of counting zeros, however long it
/// is and whatever is escaped in it. Escapes are checked on the way. Outside of strings a backslash is no
/// JSON, and what comes behind it may be told wrong.
pub(super) struct Quotes<'a> {
    bytes: &'a [u8],
    /// The quotes of the current word that were not handed out yet, and where that word's bytes begin.
    left: u64,
    block: usize,
    /// The words of quotes ahead, escaped ones left out: those of `next..end` are still to come.
    marks: Marks,
    next: usize,
    end: usize,
    /// Where the marked bytes begin, and where they end.
    marked: std::ops::Range<usize>,
    /// Whether the first byte behind the marked ones is escaped.
    carry: u64,
    /// Whether a control character or a bad escape stands in what was marked so far: then each string
    /// must be looked at by itself.
    pub(super) odd: bool,
    /// Whether an escape was met that may be half of a surrogate pair.
    pub(super) surrogates: bool,
}

impl<'a> Quotes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            left: 0,
            block: 0,
            marks: Marks::default(),
            next: 0,
            end: 0,
            marked: 0..0,
            carry: 0,
            odd: false,
            surrogates: false,
        }
    }

    /// Where the next quote stands.
    #[inline(always)]
    fn pop(&mut self) -> Option<usize> {
        while self.left == 0 {
            if self.next == self.end && !self.mark() {
                return None;
            }
            self.left = self.marks.quotes[self.next % Marks::WORDS];
            self.block = self.marked.start + self.next * 64;
            self.next += 1;
        }
        let at = self.block + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some(at)
    }

    /// Where the string ends whose opening quote stands at `start`.
    #[inline(always)]
    pub(super) fn pop_two(&mut self, start: usize) -> Option<usize> {
        let first = self.left;
        let second = first & first.wrapping_sub(1);
        if second != 0 && self.block + first.trailing_zeros() as usize == start {
            // Both stand in the current word.
            self.left = second & (second - 1);
            return Some(self.block + second.trailing_zeros() as usize);
        }
        if self.pop()? == start { self.pop() } else { None }
    }

    /// Whether a backslash stands between `start` and the quote before `end` that was handed out last.
    #[inline(always)]
    pub(super) fn is_escaped(&self, start: usize, end: usize) -> bool {
        let word = self.next - 1;
        if start < self.block {
            return self.bytes[start..end].iter().fold(false, |any, &byte| any | (byte == b'\\'));
        }
        let span = u64::MAX << (start - self.block) & u64::MAX >> (63 - (end - 1 - self.block) % 64);
        self.marks.backslashes[word % Marks::WORDS] & span != 0
    }

    /// Marks what comes next; `false` at the end of the text.
    #[inline(never)]
    fn mark(&mut self) -> bool {
        let start = self.marked.end;
        let (marked, control) = self.marks.fill(&self.bytes[start..]);
        self.marked = start..start + marked;
        self.next = 0;
        self.end = marked.div_ceil(64);
        self.odd |= control;
        let any = self.marks.backslashes[..self.end].iter().fold(self.carry, |any, word| any | word);
        if any != 0 {
            self.leave_out_escaped(start);
        }
        self.end > 0
    }

    /// Leaves out the quotes that are escaped, and looks at the other escapes.
    #[inline(always)]
    fn leave_out_escaped(&mut self, start: usize) {
        let mut others = [0; Marks::WORDS];
        let mut carry = self.carry;
        let marks = self.marks.quotes.iter_mut().zip(&self.marks.backslashes);
        for ((quotes, backslashes), others) in marks.zip(&mut others).take(self.end) {
            let escaped = escaped(*backslashes, &mut carry);
            // Quotes and backslashes may always be escaped; the others need a look.
            *others = escaped & !(*quotes | *backslashes);
            *quotes &= !escaped;
        }
        self.carry = carry;
        // Nearly all are escapes of one letter: only if one is not, they are looked at one by one.
        let others = &others[..self.end];
        if !each_bit(others).fold(true, |all, at| all & is_short_escape(self.bytes, start + at)) {
            for at in each_bit(others).map(|at| start + at) {
                if !is_short_escape(self.bytes, at) {
                    self.check_unicode_escape(at);
                }
            }
        }
    }

    fn check_unicode_escape(&mut self, at: usize) {
        match self.bytes.get(at..at + 5) {
            Some([b'u', digits @ ..]) if all_hex(digits) => {
                self.surrogates |= matches!(digits[0], b'd' | b'D');
            }
            _ => self.odd = true,
        }
    }
}

/// The places of the bits that are set.
#[inline(always)]
pub(super) fn each_bit(words: &[u64]) -> impl Iterator<Item = usize> {
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

/// The bytes that stand behind a backslash which is not escaped itself.
///
/// In a run of backslashes every second one counts, beginning with the first. Adding a run's first bit to
/// the run carries through to the bit behind it, which tells odd runs from even ones; `carry` is whether the
/// word's first byte is escaped, and then the next word's. This is how simdjson does it.
#[inline(always)]
fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let fresh = backslashes & !*carry;
    let behind = fresh << 1 | *carry;
    let odd_starts = fresh & !EVEN & !behind;
    let from_even = odd_starts.wrapping_add(fresh);
    // Told from the last run alone, so that no word waits for the one before.
    if backslashes != u64::MAX {
        *carry = u64::from(backslashes.leading_ones() % 2);
    }
    (EVEN ^ (from_even << 1)) & behind
}

/// The bytes that may follow a backslash by themselves. A table, since nothing is asked more often.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The quotes that stand behind an even number of backslashes, found one byte at a time.
    fn plainly(bytes: &[u8]) -> Vec<usize> {
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

    proptest! {
        #[test]
        fn quotes_are_those_that_are_not_escaped(bytes in prop::collection::vec(
            prop_oneof![4 => Just(b'\\'), 2 => Just(b'"'), 1 => Just(b'n'), 1 => any::<u8>()], 0..3000)
        ) {
            let mut quotes = Quotes::new(&bytes);
            let found: Vec<_> = std::iter::from_fn(|| quotes.pop()).collect();
            prop_assert_eq!(found, plainly(&bytes));
        }

        #[test]
        fn long_runs_of_backslashes_are_followed(runs in prop::collection::vec(0usize..200, 0..20)) {
            let text: String = runs.iter().map(|&run| "\\".repeat(run) + "\"").collect();
            let mut quotes = Quotes::new(text.as_bytes());
            let found: Vec<_> = std::iter::from_fn(|| quotes.pop()).collect();
            prop_assert_eq!(found, plainly(text.as_bytes()));
        }
    }
}
