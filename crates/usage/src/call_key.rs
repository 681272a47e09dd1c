//! The identity of a call: a 96-bit hash over ids of any length.

use std::collections::hash_map::Entry;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

/// The identity of a call. The probability that two calls have the same key is about 10⁻²⁸.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CallKey([u32; 3]);

/// The state of the hash function.
struct CallKeyHasher(u64, u64);

impl CallKey {
    /// Returns the key of these parts, in this order.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut key = CallKeyHasher(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
        for part in parts {
            let mut chunks = part.chunks_exact(8);
            for chunk in chunks.by_ref() {
                key.mix(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
            }
            let rest = chunks.remainder();
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            key.mix(u64::from_le_bytes(last));
            // Lengths are included: `ab`, `c` differs from `a`, `bc`.
            key.mix(part.len() as u64);
        }
        Self([key.0 as u32, (key.0 >> 32) as u32, key.1 as u32])
    }

    /// Returns the key as three words.
    pub(crate) fn words(self) -> [u32; 3] {
        self.0
    }

    /// Returns the key with these words.
    pub(crate) fn from_words(words: [u32; 3]) -> Self {
        Self(words)
    }

    /// Returns the key of item `n` within the call with this key.
    pub(crate) fn step(self, n: u64) -> Self {
        let [a, b, c] = self.0.map(u32::to_le_bytes);
        Self::of(&[&a, &b, &c, &n.to_le_bytes()])
    }

    /// Returns 64 bits of the key, for smaller sets.
    pub(crate) fn short(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

/// Returns the repeated keys, as pairs of the index of the first occurrence and the index of the repetition,
/// in order of the latter.
pub(crate) fn find_repeats(keys: &[CallKey]) -> Vec<(u32, u32)> {
    let mut first = HashMap::with_capacity_and_hasher(keys.len(), RandomState::default());
    let repeats = keys.iter().zip(0..).filter_map(|(key, place)| match first.entry(*key) {
        Entry::Vacant(free) => {
            free.insert(place);
            None
        }
        Entry::Occupied(first) => Some((*first.get(), place)),
    });
    repeats.collect()
}

impl CallKeyHasher {
    fn mix(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, 0xa076_1d64_78bd_642f);
        self.1 = fold(self.1.rotate_left(23) ^ word, 0xe703_7ed1_a0b4_28db);
    }
}

/// Returns the exclusive or of both halves of the product.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::{CallKey, find_repeats};

    #[test]
    fn keys_depend_on_the_boundaries_of_parts() {
        let key = |parts: &[&str]| CallKey::of(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>());
        assert_eq!(key(&["msg_1"]), key(&["msg_1"]));
        let mut all: Vec<_> = (0..20_000).map(|n| key(&[&format!("msg_{n}")])).collect();
        all.extend([
            key(&["ab", "c"]),
            key(&["a", "bc"]),
            key(&["abc"]),
            key(&["abc", ""]),
            key(&["\0"]),
            key(&[""]),
        ]);
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn repeats_are_found_among_few_and_many_keys() {
        assert_eq!(find_repeats(&[]), []);
        for count in [1u32, 2, 100, 40_000] {
            let mut keys: Vec<_> = (0..count).map(|n| CallKey::of(&[&n.to_le_bytes()])).collect();
            assert_eq!(find_repeats(&keys), []);
            let again = [count / 2, 0, count / 2, count - 1];
            keys.extend(again.map(|n| keys[n as usize]));
            assert_eq!(find_repeats(&keys), [0, 1, 2, 3].map(|n| (again[n], count + n as u32)), "{count}");
        }
    }
}
