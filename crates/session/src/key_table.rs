//! Numbers for ids, in the order in which they are first seen.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The ids of one log after another. Adding one allocates nothing most of the time: a uuid is stored and
/// compared as six words.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    keys: Vec<PackedId>,
    /// A part of the hash of an id, which is never zero, at or after the index that the rest of its hash
    /// selects; zero if there is none. The length is a power of two, and at most half of the slots are in
    /// use. They are small because most of them are not in the processor's nearest cache.
    tags: Vec<u16>,
    /// The number of the id in each slot.
    numbers: Vec<u32>,
    /// Ids that cannot be packed, and those for which no slot is free near the one that their hash selects:
    /// the function is known, so the ids of a log may be chosen to have the same hash.
    others: BTreeMap<Box<[u8]>, usize>,
}

/// The bytes of an id, then bytes that are not ASCII.
type PackedId = [u64; 6];

/// The place of an id without a slot.
const OTHER: PackedId = [u64::MAX; 6];

/// The number of slots for a log with few ids.
const MIN_SLOTS: usize = 1 << 10;

/// The number of slots that are searched for an id. Ids that were not chosen need a few dozen at most.
const MAX_PROBES: usize = 512;

/// The result of a search for an id in the slots.
enum SlotSearch {
    /// The id has this number.
    Found(usize),
    /// The id has no slot; this one is free.
    Free(usize),
    /// The id has no slot, and none is free.
    Crowded,
}

impl KeyTable {
    /// Returns the number of an id, and whether it is new.
    pub(crate) fn add(&mut self, id: &[u8]) -> (usize, bool) {
        if 2 * self.keys.len() >= self.tags.len() {
            self.grow();
        }
        let Some(key) = pack(id) else { return self.add_other(id) };
        let hash = hash(&key);
        match self.find(&key, hash) {
            SlotSearch::Found(number) => (number, false),
            SlotSearch::Free(slot) if self.others.is_empty() || !self.others.contains_key(id) => {
                let number = self.keys.len();
                self.tags[slot] = tag(hash);
                self.numbers[slot] = number as u32;
                self.keys.push(key);
                (number, true)
            }
            SlotSearch::Free(_) | SlotSearch::Crowded => self.add_other(id),
        }
    }

    /// Returns the number of an id.
    pub(crate) fn get(&self, id: &[u8]) -> Option<usize> {
        if let Some(key) = pack(id).filter(|_| !self.tags.is_empty())
            && let SlotSearch::Found(number) = self.find(&key, hash(&key))
        {
            return Some(number);
        }
        self.others.get(id).copied()
    }

    /// Removes all ids, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.tags.clear();
        self.numbers.clear();
        self.others.clear();
    }

    /// Searches the slots for an id.
    #[inline(always)]
    fn find(&self, key: &PackedId, hash: u64) -> SlotSearch {
        let mask = self.tags.len() - 1;
        let mut slot = hash as usize & mask;
        for _ in 0..MAX_PROBES {
            let content = self.tags[slot];
            if content == 0 {
                return SlotSearch::Free(slot);
            }
            if content == tag(hash) && self.keys[self.numbers[slot] as usize] == *key {
                return SlotSearch::Found(self.numbers[slot] as usize);
            }
            slot = (slot + 1) & mask;
        }
        SlotSearch::Crowded
    }

    #[cold]
    fn add_other(&mut self, id: &[u8]) -> (usize, bool) {
        match self.others.entry(id.into()) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(free) => {
                let number = self.keys.len();
                free.insert(number);
                self.keys.push(OTHER);
                (number, true)
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let n_slots = (2 * self.keys.len()).next_power_of_two().max(MIN_SLOTS / 4) * 4;
        self.tags.clear();
        self.tags.resize(n_slots, 0);
        self.numbers.resize(n_slots, 0);
        for number in 0..self.keys.len() {
            let key = self.keys[number];
            // No packed id begins with a byte that is not ASCII.
            if key[0] == OTHER[0] {
                continue;
            }
            let hash = hash(&key);
            match self.find_free(hash) {
                Some(slot) => {
                    self.tags[slot] = tag(hash);
                    self.numbers[slot] = number as u32;
                }
                None => {
                    self.others.insert(unpack(&key), number);
                    self.keys[number] = OTHER;
                }
            }
        }
    }

    /// Returns a free slot for an id with this hash, if there is one near the one that the hash selects.
    fn find_free(&self, hash: u64) -> Option<usize> {
        let mask = self.tags.len() - 1;
        let slots = (0..MAX_PROBES).map(|n| (hash as usize + n) & mask);
        slots.into_iter().find(|&slot| self.tags[slot] == 0)
    }
}

/// Returns an id as words; `None` if it is too long, empty or not ASCII.
#[inline(always)]
fn pack(id: &[u8]) -> Option<PackedId> {
    const UUID: usize = 36;
    let mut key = [u64::MAX; _];
    // Words that are read from the id at once are not stored and loaded again.
    if let Ok(uuid) = <&[u8; UUID]>::try_from(id) {
        let (words, rest) = uuid.as_chunks::<8>();
        for (place, word) in key.iter_mut().zip(words) {
            *place = u64::from_le_bytes(*word);
        }
        let &[a, b, c, d] = rest else { return None };
        key[4] = u64::from(u32::from_le_bytes([a, b, c, d])) | u64::MAX << 32;
        let is_ascii = key[..4].iter().fold(key[4] << 32, |bits, word| bits | word) & NOT_ASCII == 0;
        return is_ascii.then_some(key);
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
    Some(key)
}

/// The bits that no ASCII text has.
const NOT_ASCII: u64 = 0x8080_8080_8080_8080;

/// Returns the id that was packed.
fn unpack(key: &PackedId) -> Box<[u8]> {
    let bytes = key.iter().flat_map(|word| word.to_le_bytes());
    bytes.take_while(u8::is_ascii).collect()
}

/// Returns the tag of an id with this hash.
#[inline(always)]
fn tag(hash: u64) -> u16 {
    (hash >> 48) as u16 | 1
}

/// Returns the hash of an id.
#[inline(always)]
fn hash(key: &PackedId) -> u64 {
    // Odd numbers with random bits. The products do not depend on each other, so that they are computed at
    // the same time.
    const FACTORS: PackedId = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xd6e8_feb8_6659_fd93,
        0xa076_1d64_78bd_642f,
        0xe703_7ed1_a0b4_28db,
    ];
    let products = key.iter().zip(FACTORS).map(|(word, factor)| word.wrapping_mul(factor));
    // The upper bits of a product depend on all bits of the word.
    let mixed = products.fold(0u64, |mixed, product| mixed ^ product ^ (product >> 32));
    let mixed = mixed.wrapping_mul(FACTORS[0]);
    // The upper half has the better bits. Both halves need them.
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_like_hashes_are_found_in_few_steps() {
        // The hashes of these ids select one of the first slots of every table.
        let is_alike = |id: &String| pack(id.as_bytes()).is_some_and(|key| hash(&key) & 0x3fff < 4);
        let ids: Vec<String> = (0..u64::MAX).map(|n| n.to_string()).filter(is_alike).take(2000).collect();
        let mut table = KeyTable::default();
        table.add(&[0; 50]);
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(table.get(id.as_bytes()), None);
            assert_eq!(table.add(id.as_bytes()), (number + 1, true));
        }
        assert!(table.others.len() > 1000);
        assert_eq!((table.add(&[1; 50]), table.add(b"x")), ((2001, true), (2002, true)));
        for (number, id) in ids.iter().enumerate() {
            let id = id.as_bytes();
            assert_eq!((table.get(id), table.add(id)), (Some(number + 1), (number + 1, false)));
        }
        table.clear();
        assert_eq!((table.get(b"x"), table.add(b"x"), table.add(b"y")), (None, (0, true), (1, true)));
    }

    #[test]
    fn ordinary_ids_have_slots() {
        let mut table = KeyTable::default();
        for number in 0..300_000_u64 {
            table.add(format!("{number:08x}-0000-4000-8000-{:012x}", number * 7919).as_bytes());
        }
        assert!(table.others.is_empty());
    }

    #[test]
    fn an_id_has_one_number() {
        let mut table = KeyTable::default();
        for _ in 0..2 {
            assert_eq!(table.get(b"1"), None);
            let id = |n: usize| match n % 4 {
                0 => format!("{n:0>36}"),
                1 => format!("{n:0<48}"),
                2 => format!("{n:0>49}"),
                _ => n.to_string(),
            };
            let ids: Vec<String> = (0..5000).map(id).collect();
            for (number, id) in ids.iter().enumerate() {
                assert_eq!(table.get(id.as_bytes()), None);
                assert_eq!(table.add(id.as_bytes()), (number, true));
            }
            for (number, id) in ids.iter().enumerate() {
                assert_eq!(table.add(id.as_bytes()), (number, false));
                assert_eq!(table.get(id.as_bytes()), Some(number));
            }
            // A zero at the end is a part of the id.
            assert_eq!((table.get(b"x"), table.add(b"")), (None, (5000, true)));
            assert_eq!((table.add(b"\0"), table.add(b"\0\0")), ((5001, true), (5002, true)));
            assert_eq!((table.add(b"\0"), table.add(&[u8::MAX; 48])), ((5001, false), (5003, true)));
            assert_eq!((table.add(b"x"), table.add(b"x\xff")), ((5004, true), (5005, true)));
            assert_eq!((table.add(b""), table.add(&[u8::MAX; 48])), ((5000, false), (5003, false)));
            table.clear();
        }
    }
}
