//! A set of texts that are searched at once, with little memory per text.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The number of bytes of each text that are hashed. No text is shorter.
pub(crate) const MIN_PIECE: usize = 8;

/// Texts of at least [`MIN_PIECE`] bytes with their names.
///
/// A Bloom filter of the first bytes rejects almost all positions of a searched text; at the others, the
/// longest text of the set is found by binary search. The filter also contains the first bytes of each text
/// in base64 and hex, so that only their positions need to be decoded. An automaton would need several
/// kilobytes per text.
pub(crate) struct PieceSet {
    /// The texts, sorted, without separators.
    text: String,
    /// The end of each text in `text`.
    ends: Vec<u32>,
    /// The longest other text that a text begins with, or [`NONE`].
    parents: Vec<u32>,
    /// The number of the name of each text.
    name_numbers: Vec<u32>,
    names: String,
    name_ends: Vec<u32>,
    filter: PrefixFilter,
    longest: usize,
}

/// A Bloom filter for [`MIN_PIECE`] bytes.
struct PrefixFilter {
    bits: Vec<u64>,
    /// The number of bits of a hash that are not used.
    shift: u32,
}

/// The number of bits of the filter per beginning of a text, and the minimum of all bits.
const BITS_PER_PREFIX: usize = 32;
const MIN_BITS: usize = 1 << 15;

impl PrefixFilter {
    fn new(n_prefixes: usize) -> Self {
        let n_bits = (n_prefixes * BITS_PER_PREFIX).next_power_of_two().max(MIN_BITS);
        Self { bits: vec![0; n_bits / 64], shift: u64::BITS - n_bits.trailing_zeros() }
    }

    fn insert(&mut self, text: &[u8]) {
        if let Some(start) = text.first_chunk() {
            let hash = hash(start);
            for place in [hash >> self.shift, rehash(hash) >> self.shift] {
                self.bits[place as usize / 64] |= 1 << (place % 64);
            }
        }
    }

    fn contains(&self, start: &[u8; MIN_PIECE]) -> bool {
        let has = |place: u64| self.bits[place as usize / 64] >> (place % 64) & 1 == 1;
        let hash = hash(start);
        has(hash >> self.shift) && has(rehash(hash) >> self.shift)
    }
}

fn hash(start: &[u8; MIN_PIECE]) -> u64 {
    u64::from_le_bytes(*start).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn rehash(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Calls `visit` with the beginning of a text, and with those of its encodings: base64 at each offset, also
/// in the URL-safe alphabet and encoded twice, and hex.
fn each_prefix(piece: &[u8], mut visit: impl FnMut(&[u8])) {
    visit(piece);
    let head = &piece[..piece.len().min(3 * MIN_PIECE)];
    for encode in [|bytes: &[u8]| STANDARD_NO_PAD.encode(bytes), |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes)]
    {
        let once = encode(head);
        for text in [head, once.as_bytes()] {
            for offset in 0..3 {
                let mut shifted = vec![0; offset];
                shifted.extend(text);
                // The first digits also encode the bytes before the text.
                visit(&encode(&shifted).as_bytes()[(offset * 8).div_ceil(6)..]);
            }
        }
    }
    visit(head[..MIN_PIECE / 2].iter().map(|byte| format!("{byte:02x}")).collect::<String>().as_bytes());
    visit(head[..MIN_PIECE / 2].iter().map(|byte| format!("{byte:02X}")).collect::<String>().as_bytes());
}

const NONE: u32 = u32::MAX;

impl PieceSet {
    /// Creates a set of texts with the numbers of their names. Of equal texts, the one with the first name is
    /// kept.
    pub(crate) fn new(mut pieces: Vec<(Cow<'_, str>, u32)>, names: &[String]) -> Self {
        pieces.retain(|(piece, _)| piece.len() >= MIN_PIECE);
        let name = |number: u32| &names[number as usize];
        pieces.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| name(a.1).cmp(name(b.1))));
        pieces.dedup_by(|next, first| next.0 == first.0);
        // Most texts have letters and digits only, so that both alphabets of base64 encode them alike.
        const PREFIXES_PER_PIECE: usize = 9;
        let mut set = Self {
            text: String::with_capacity(pieces.iter().map(|(piece, _)| piece.len()).sum()),
            ends: Vec::with_capacity(pieces.len()),
            parents: Vec::with_capacity(pieces.len()),
            name_numbers: Vec::with_capacity(pieces.len()),
            names: names.concat(),
            name_ends: names
                .iter()
                .scan(0, |end, name| {
                    *end += name.len() as u32;
                    Some(*end)
                })
                .collect(),
            filter: PrefixFilter::new(pieces.len() * PREFIXES_PER_PIECE),
            longest: pieces.iter().map(|(piece, _)| piece.len()).max().unwrap_or(0),
        };
        // The texts that the current one may begin with, each a beginning of the next.
        let mut open: Vec<usize> = Vec::new();
        for (number, (piece, name)) in pieces.iter().enumerate() {
            while open.last().is_some_and(|last| !piece.starts_with(&*pieces[*last].0)) {
                open.pop();
            }
            set.parents.push(open.last().map_or(NONE, |parent| *parent as u32));
            open.push(number);
            set.text.push_str(piece);
            set.ends.push(set.text.len() as u32);
            set.name_numbers.push(*name);
            each_prefix(piece.as_bytes(), |prefix| set.filter.insert(prefix));
        }
        set
    }

    /// Returns the texts with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.ends.len()).map(|number| (self.piece(number), self.name_of(number)))
    }

    /// Returns the length of the longest text.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Finds the longest text at each position that is accepted, from left to right and without overlaps.
    /// Calls `on_encoded` with the other positions at which an encoded text may begin.
    pub(crate) fn find<'s>(
        &'s self,
        bytes: &[u8],
        accepts: impl Fn(&Range<usize>) -> bool,
        mut found: impl FnMut(Range<usize>, &'s str),
        mut on_encoded: impl FnMut(usize),
    ) {
        let mut at = 0;
        while let Some(next) = bytes[at..].array_windows().position(|start| self.filter.contains(start)) {
            at += next;
            match self.longest_at(&bytes[at..]) {
                Some(number) if accepts(&(at..at + self.piece(number).len())) => {
                    let range = at..at + self.piece(number).len();
                    at = range.end;
                    found(range, self.name_of(number));
                }
                _ => {
                    on_encoded(at);
                    at += 1;
                }
            }
        }
    }

    /// Returns the number of the longest text that some bytes begin with.
    fn longest_at(&self, bytes: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.piece(middle).as_bytes() <= bytes {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        // The last text that is not greater, or one that it begins with.
        let mut number = low.checked_sub(1)?;
        while !bytes.starts_with(self.piece(number).as_bytes()) {
            number = usize::try_from(self.parents[number]).ok().filter(|parent| *parent != NONE as usize)?;
        }
        Some(number)
    }

    fn piece(&self, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[number] as usize]
    }

    fn name_of(&self, number: usize) -> &str {
        self.name(self.name_numbers[number] as usize)
    }

    fn name(&self, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.name_ends[before] as usize);
        &self.names[start..self.name_ends[number] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::PieceSet;

    #[test]
    fn the_longest_text_is_found_at_each_position() {
        let texts = ["abcdefgh", "abcdefghij", "abcdefghijkl", "abcdefghzz", "cdefghijxxx"];
        let names = texts.map(str::to_owned);
        let set = PieceSet::new(texts.iter().zip(0..).map(|(text, n)| ((*text).into(), n)).collect(), &names);
        let found = |text: &str| {
            let mut all = Vec::new();
            set.find(text.as_bytes(), |_| true, |range, name| all.push((range, name.to_owned())), |_| {});
            all
        };
        for (text, expected) in [
            ("abcdefghijklm", vec![(0..12, "abcdefghijkl")]),
            ("abcdefghijkz", vec![(0..10, "abcdefghij")]),
            ("-abcdefgha-abcdefghzz", vec![(1..9, "abcdefgh"), (11..21, "abcdefghzz")]),
            ("abcdefgabcdefgh", vec![(7..15, "abcdefgh")]),
            ("abcdefghijxxx", vec![(0..10, "abcdefghij")]),
            ("cdefghijxxx", vec![(0..11, "cdefghijxxx")]),
            ("abcdefg", vec![]),
            ("", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(at, name)| (at, name.to_owned())).collect();
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
