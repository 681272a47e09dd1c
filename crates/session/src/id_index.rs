//! Finds equal ids in a list of them.

use std::collections::HashMap;

use threadline_entry::MAX_NAME;

/// The bytes of an id, then bytes that are not ASCII. Most ids fit, and are stored and compared without an
/// allocation. Others have a number, see [`IdPacker`].
#[derive(Clone, Copy, Debug, Eq)]
pub(crate) struct PackedId([u64; 6]);

impl PartialEq for PackedId {
    /// Compares all words without a branch and without a call.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// Packs the ids of a log. Equal ids become equal words.
#[derive(Debug, Default)]
pub(crate) struct IdPacker {
    /// The numbers of ids that do not fit, or are not ASCII.
    others: HashMap<Box<[u8]>, u64>,
}

impl IdPacker {
    /// Returns an id as words; `None` if it is empty or not UTF-8.
    #[inline(always)]
    pub(crate) fn pack(&mut self, id: &[u8]) -> Option<PackedId> {
        pack(id).or_else(|| self.add_other(id))
    }

    #[cold]
    fn add_other(&mut self, id: &[u8]) -> Option<PackedId> {
        if id.is_empty() || id.len() > MAX_NAME || std::str::from_utf8(id).is_err() {
            return None;
        }
        let number = match self.others.get(id) {
            Some(number) => *number,
            None => {
                let number = self.others.len() as u64;
                self.others.insert(id.into(), number);
                number
            }
        };
        // No packed text begins with a byte that is not ASCII.
        Some(PackedId([u64::MAX, number, 0, 0, 0, 0]))
    }

    /// Forgets all ids, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.others.clear();
    }
}

/// The places of different ids in a list. It is filled when the list is complete: the accesses to memory
/// then follow each other, and the processor waits for several at once.
#[derive(Debug, Default)]
pub(crate) struct IdIndex {
    /// At or after the slot that the hash of an id selects: the upper half of the hash, then its place in the
    /// list plus one. Zero if there is none. The length is a power of two, and at most half of the slots are
    /// in use.
    slots: Vec<u64>,
}

/// The number of slots that are searched for an id. Ids that were not chosen to have the same hash need a few
/// dozen at most.
const MAX_PROBES: usize = 512;

impl IdIndex {
    /// Fills the index for a list of ids. Calls `on_repeat` with the place of each id that occurred before,
    /// and the place where it first did.
    ///
    /// Returns `false` if too many ids have similar hashes. The hash function is known, so the ids of a log
    /// may be chosen like that.
    pub(crate) fn fill(&mut self, ids: &[PackedId], mut on_repeat: impl FnMut(usize, usize)) -> bool {
        self.slots.clear();
        self.slots.resize((2 * ids.len()).next_power_of_two(), 0);
        for (place, id) in ids.iter().enumerate() {
            match self.find(ids, id) {
                Some(Ok(first)) => on_repeat(place, first),
                Some(Err(free)) => self.slots[free] = hash(id) & TAG | (place + 1) as u64,
                None => return false,
            }
        }
        true
    }

    /// Returns the first place of an id in the list for which the index was filled.
    pub(crate) fn get(&self, ids: &[PackedId], id: &PackedId) -> Option<usize> {
        self.find(ids, id)?.ok()
    }

    /// Searches the slots for an id. Returns its place in the list, or a free slot if it has none.
    #[inline(always)]
    fn find(&self, ids: &[PackedId], id: &PackedId) -> Option<Result<usize, usize>> {
        let hash = hash(id);
        let mask = self.slots.len().checked_sub(1)?;
        for n in 0..MAX_PROBES {
            let slot = (hash as usize).wrapping_add(n) & mask;
            let content = self.slots[slot];
            if content == 0 {
                return Some(Err(slot));
            }
            let place = (content & !TAG) as usize - 1;
            if content & TAG == hash & TAG && ids[place] == *id {
                return Some(Ok(place));
            }
        }
        None
    }
}

/// The bits of a slot that are those of the hash.
const TAG: u64 = u64::MAX << 32;

/// Returns an id as words; `None` if it is too long, empty or not ASCII.
#[inline(always)]
fn pack(id: &[u8]) -> Option<PackedId> {
    const UUID: usize = 36;
    let mut key = [u64::MAX; 6];
    // Words that are read from the id at once are not stored and loaded again.
    if let Ok(uuid) = <&[u8; UUID]>::try_from(id) {
        let (words, rest) = uuid.as_chunks::<8>();
        for (place, word) in key.iter_mut().zip(words) {
            *place = u64::from_le_bytes(*word);
        }
        let &[a, b, c, d] = rest else { return None };
        key[4] = u64::from(u32::from_le_bytes([a, b, c, d])) | u64::MAX << 32;
        let is_ascii = key[..4].iter().fold(key[4] << 32, |bits, word| bits | word) & NOT_ASCII == 0;
        return is_ascii.then_some(PackedId(key));
    }
    if id.is_empty() || id.len() > size_of::<PackedId>() || !id.is_ascii() {
        return None;
    }
    let (words, rest) = id.as_chunks::<8>();
    for (place, word) in key.iter_mut().zip(words) {
        *place = u64::from_le_bytes(*word);
    }
    if !rest.is_empty() {
        let n_bits = 8 * rest.len() as u32;
        // The last bytes with some before them, which are shifted out.
        let bits = match id.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last) >> (64 - n_bits),
            None => rest.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)),
        };
        key[words.len()] = bits | u64::MAX << n_bits;
    }
    Some(PackedId(key))
}

/// The bits that no ASCII text has.
const NOT_ASCII: u64 = 0x8080_8080_8080_8080;

/// Returns the hash of an id.
#[inline(always)]
fn hash(id: &PackedId) -> u64 {
    // Odd numbers with random bits. The products do not depend on each other, so that they are computed at
    // the same time.
    const FACTORS: [u64; 6] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xd6e8_feb8_6659_fd93,
        0xa076_1d64_78bd_642f,
        0xe703_7ed1_a0b4_28db,
    ];
    let products = id.0.iter().zip(FACTORS).map(|(word, factor)| word.wrapping_mul(factor));
    // The upper bits of a product depend on all bits of the word.
    let mixed = products.fold(0u64, |mixed, product| mixed ^ product ^ (product >> 32));
    let mixed = mixed.wrapping_mul(FACTORS[0]);
    // The upper half has the better bits. Both halves need them.
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(ids: impl IntoIterator<Item = String>) -> Vec<PackedId> {
        ids.into_iter().map(|id| pack(id.as_bytes()).unwrap()).collect()
    }

    #[test]
    fn ids_with_like_hashes_are_refused_after_few_steps() {
        // The hashes of these ids select one of the first slots of every index.
        let is_alike = |id: &String| pack(id.as_bytes()).is_some_and(|id| hash(&id) & 0x3fff < 4);
        let ids = packed((0..u64::MAX).map(|n| n.to_string()).filter(is_alike).take(2000));
        assert!(IdIndex::default().fill(&ids[..100], |_, _| panic!("no id is repeated")));
        assert!(!IdIndex::default().fill(&ids, |_, _| panic!("no id is repeated")));
    }

    #[test]
    fn ordinary_ids_have_slots() {
        let id = |number: u64| format!("{number:08x}-0000-4000-8000-{:012x}", number * 7919);
        let ids = packed((0..300_000).map(id));
        assert!(IdIndex::default().fill(&ids, |_, _| panic!("no id is repeated")));
    }

    #[test]
    fn repeated_ids_are_found() {
        let id = |n: usize| match n % 3 {
            0 => format!("{n:0>36}"),
            1 => format!("{n:x<40}"),
            _ => n.to_string(),
        };
        let mut index = IdIndex::default();
        assert_eq!(index.get(&[], &PackedId([7; 6])), None);
        for n in [5000, 7, 0] {
            let ids = packed((0..n).map(id).chain((0..n).map(id)));
            let mut repeats = Vec::new();
            assert!(index.fill(&ids, |place, first| repeats.push((place, first))));
            assert_eq!(repeats, (0..n).map(|first| (n + first, first)).collect::<Vec<_>>());
            for (place, id) in ids[..n].iter().enumerate() {
                assert_eq!(index.get(&ids, id), Some(place));
            }
            assert_eq!(index.get(&ids, &pack(b"x").unwrap()), None);
        }
    }

    #[test]
    fn different_ids_are_packed_differently() {
        let x = |n: usize| "x".repeat(n);
        let short =
            ["\0", "\0\0", "x", "x\0", &x(8), &x(9), &x(36), &x(40), &x(47), &x(48)].map(String::from);
        let other = ["é", "éé", &x(49), &x(490), &"é".repeat(18), &(x(34) + "é")].map(String::from);
        let mut packer = IdPacker::default();
        let ids = short.iter().chain(&other).map(|id| id.as_bytes());
        let packed: Vec<PackedId> = ids.clone().map(|id| packer.pack(id).unwrap()).collect();
        assert!(IdIndex::default().fill(&packed, |_, _| panic!("no id is repeated")));
        for (id, packed) in ids.zip(packed) {
            assert_eq!(packer.pack(id), Some(packed));
        }
        assert!(other.iter().all(|id| pack(id.as_bytes()).is_none()));
        assert_eq!((packer.pack(b""), packer.pack(b"\xff")), (None, None));
    }
}
