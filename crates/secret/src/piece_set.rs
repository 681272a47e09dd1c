//! A set of texts that are searched at once, with little memory per text.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::replacer::PlaceholderId;
use crate::secret_list::SecretList;

/// The number of bytes of each text that are hashed. No text is shorter.
pub(crate) const MIN_PIECE: usize = 8;

/// Texts of at least [`MIN_PIECE`] bytes with their placeholders.
///
/// A Bloom filter of the first bytes rejects almost all positions of a searched text; at the others, the
/// longest text of the set is found by binary search. The filter also contains the first bytes of each text
/// in base64 and hex, so that only their positions need to be decoded. An automaton would need several
/// kilobytes per text.
pub(crate) struct PieceSet {
    pieces: PieceList,
    /// The indexes of the texts, sorted by text.
    order: Vec<u32>,
    /// For each of them, the position of the longest other text that it begins with, or [`NONE`]. Empty if
    /// none begins with another.
    parents: Vec<u32>,
    filter: PrefixFilter,
    longest: usize,
}

/// Texts to search for: some of the secrets, and other texts.
pub(crate) struct PieceList {
    secrets: Arc<SecretList>,
    others: SecretList,
    /// The indexes of the texts. Those of the other texts follow those of the secrets.
    indexes: Vec<u32>,
}

impl PieceList {
    /// Creates an empty list.
    pub(crate) fn new(secrets: Arc<SecretList>) -> Self {
        Self { secrets, others: SecretList::default(), indexes: Vec::new() }
    }

    /// Adds one of the secrets, unless it is too short.
    pub(crate) fn push_secret(&mut self, index: u32) {
        if self.secrets.at(index).0.len() >= MIN_PIECE {
            self.indexes.push(index);
        }
    }

    /// Adds another text, unless it is too short.
    pub(crate) fn push(&mut self, piece: &str, placeholder: PlaceholderId) {
        let index = (self.secrets.len() + self.others.len()) as u32;
        if piece.len() >= MIN_PIECE && self.others.push(piece, placeholder) {
            self.indexes.push(index);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    fn at(&self, index: u32) -> (&str, PlaceholderId) {
        match index.checked_sub(self.secrets.len() as u32) {
            Some(other) => self.others.at(other),
            None => self.secrets.at(index),
        }
    }

    fn piece(&self, index: u32) -> &str {
        self.at(index).0
    }
}

/// A Bloom filter for [`MIN_PIECE`] bytes.
struct PrefixFilter {
    bits: Vec<u64>,
}

/// The number of bits of the filter per beginning of a text: for few texts, and for very many.
const BITS_PER_PREFIX: [usize; 2] = [32, 14];
/// The number of beginnings of few texts.
const FEW_PREFIXES: usize = 1 << 16;
/// The minimum of all bits.
const MIN_BITS: usize = 1 << 15;

impl PrefixFilter {
    fn new(n_prefixes: usize) -> Self {
        let n_bits = n_prefixes * BITS_PER_PREFIX[usize::from(n_prefixes > FEW_PREFIXES)];
        Self { bits: vec![0; n_bits.max(MIN_BITS).div_ceil(64)] }
    }

    fn insert(&mut self, text: &[u8]) {
        if let Some(start) = text.first_chunk() {
            let hash = hash(start);
            for place in [self.place(hash), self.place(rehash(hash))] {
                self.bits[place / 64] |= 1 << (place % 64);
            }
        }
    }

    fn contains(&self, start: &[u8; MIN_PIECE]) -> bool {
        let has = |place: usize| self.bits[place / 64] >> (place % 64) & 1 == 1;
        let hash = hash(start);
        has(self.place(hash)) && has(self.place(rehash(hash)))
    }

    /// Returns the number of a bit, in proportion to the hash.
    fn place(&self, hash: u64) -> usize {
        ((u128::from(hash) * (self.bits.len() as u128 * 64)) >> 64) as usize
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
    /// Creates a set of texts. Of equal texts, the one with the first placeholder is kept.
    pub(crate) fn new(mut pieces: PieceList) -> Self {
        let mut order = std::mem::take(&mut pieces.indexes);
        order.sort_unstable_by(|a, b| pieces.at(*a).cmp(&pieces.at(*b)));
        order.dedup_by(|next, first| pieces.piece(*next) == pieces.piece(*first));
        // Most texts have letters and digits only, so that both alphabets of base64 encode them alike.
        const PREFIXES_PER_PIECE: usize = 9;
        let mut filter = PrefixFilter::new(order.len() * PREFIXES_PER_PIECE);
        order.shrink_to_fit();
        let mut parents = Vec::new();
        // The texts that the current one may begin with, each a beginning of the next.
        let mut open: Vec<usize> = Vec::new();
        for (position, index) in order.iter().enumerate() {
            let piece = pieces.piece(*index);
            while open.last().is_some_and(|last| !piece.starts_with(pieces.piece(order[*last]))) {
                open.pop();
            }
            if let Some(parent) = open.last() {
                parents.resize(order.len(), NONE);
                parents[position] = *parent as u32;
            }
            open.push(position);
            each_prefix(piece.as_bytes(), |prefix| filter.insert(prefix));
        }
        let longest = order.iter().map(|index| pieces.piece(*index).len()).max().unwrap_or(0);
        Self { pieces, order, parents, filter, longest }
    }

    /// Returns the texts with their placeholders.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, PlaceholderId)> {
        self.order.iter().map(|index| self.pieces.at(*index))
    }

    /// Returns the length of the longest text.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Finds the longest text at each position that is accepted, from left to right and without overlaps.
    /// Calls `on_encoded` with the other positions at which an encoded text may begin.
    pub(crate) fn find(
        &self,
        bytes: &[u8],
        accepts: impl Fn(&Range<usize>) -> bool,
        mut found: impl FnMut(Range<usize>, PlaceholderId),
        mut on_encoded: impl FnMut(usize),
    ) {
        let mut at = 0;
        while let Some(next) = bytes[at..].array_windows().position(|start| self.filter.contains(start)) {
            at += next;
            match self.longest_at(&bytes[at..]) {
                Some(number) if accepts(&(at..at + self.piece(number).len())) => {
                    let range = at..at + self.piece(number).len();
                    at = range.end;
                    found(range, self.pieces.at(self.order[number]).1);
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
        let (mut low, mut high) = (0, self.order.len());
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
            number =
                self.parents.get(number).filter(|parent| **parent != NONE).map(|parent| *parent as usize)?;
        }
        Some(number)
    }

    /// Returns the text at a position in the sorted order.
    fn piece(&self, position: usize) -> &str {
        self.pieces.piece(self.order[position])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{PieceList, PieceSet, PlaceholderId};

    #[test]
    fn the_longest_text_is_found_at_each_position() {
        let texts = ["abcdefgh", "abcdefghij", "abcdefghijkl", "abcdefghzz", "cdefghijxxx"];
        let mut pieces = PieceList::new(Arc::default());
        texts.iter().zip(0..).for_each(|(text, number)| pieces.push(text, PlaceholderId { kind: 0, number }));
        let set = PieceSet::new(pieces);
        let found = |text: &str| {
            let mut all = Vec::new();
            let name = |placeholder: PlaceholderId| texts[placeholder.number as usize].to_owned();
            set.find(text.as_bytes(), |_| true, |range, found| all.push((range, name(found))), |_| {});
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
