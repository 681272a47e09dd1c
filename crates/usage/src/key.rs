//! What makes two lines the same call: 96 bits that stand for ids of any length.

use rayon::prelude::*;

/// The identity of a call. Two calls have the same key by chance about once in 10²⁸ pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key([u32; 3]);

/// A key in the making.
struct Mixer(u64, u64);

impl Key {
    /// The key of these parts, in this order.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut key = Mixer(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
        for part in parts {
            let mut chunks = part.chunks_exact(8);
            for chunk in chunks.by_ref() {
                key.mix(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
            }
            let rest = chunks.remainder();
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            key.mix(u64::from_le_bytes(last));
            // Where a part ends is part of the key: `ab`, `c` is not `a`, `bc`.
            key.mix(part.len() as u64);
        }
        Self([key.0 as u32, (key.0 >> 32) as u32, key.1 as u32])
    }

    /// The key of the `n`th thing inside the call that has this key.
    pub(crate) fn step(self, n: u64) -> Self {
        let [a, b, c] = self.0.map(u32::to_le_bytes);
        Self::of(&[&a, &b, &c, &n.to_le_bytes()])
    }

    /// Two thirds of it, where less is enough.
    pub(crate) fn short(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

/// The keys that were there before: the place where each stood first, and where it stands again, in the order of the latter.
///
/// Many are looked at on all cores, each at its share of them.
pub(crate) fn repeats(keys: &[Key]) -> Vec<(u32, u32)> {
    const MANY: usize = 1 << 14;
    let n_shares = if keys.len() < MANY { 1 } else { rayon::current_num_threads() as u64 };
    let share_of = |key: &Key| (u64::from(key.0[2]) * n_shares) >> 32;
    let shares = (0..n_shares).into_par_iter().map(|share| repeats_in(keys, |key| share_of(key) == share));
    let mut found = shares.collect::<Vec<_>>().concat();
    found.sort_unstable_by_key(|(_, again)| *again);
    found
}

/// The same, of the keys of one share.
fn repeats_in(keys: &[Key], is_in_share: impl Fn(&Key) -> bool) -> Vec<(u32, u32)> {
    const FREE: u32 = u32::MAX;
    // A quarter of the places stays free at least, so one is found soon.
    let count = keys.iter().filter(|key| is_in_share(key)).count();
    let mut table = vec![FREE; (count + count / 3 + 1).next_power_of_two()];
    let last = table.len() - 1;
    let mut found = Vec::new();
    for (key, place) in keys.iter().zip(0..).filter(|(key, _)| is_in_share(key)) {
        let mut slot = key.0[0] as usize & last;
        while table[slot] != FREE && keys[table[slot] as usize] != *key {
            slot = (slot + 1) & last;
        }
        match table[slot] {
            FREE => table[slot] = place,
            first => found.push((first, place)),
        }
    }
    found
}

impl Mixer {
    fn mix(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, 0xa076_1d64_78bd_642f);
        self.1 = fold(self.1.rotate_left(23) ^ word, 0xe703_7ed1_a0b4_28db);
    }
}

/// Both halves of a product, one over the other.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::{Key, repeats};

    #[test]
    fn parts_are_told_apart() {
        let key = |parts: &[&str]| Key::of(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>());
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
    fn what_was_there_before_is_found_among_few_and_among_many() {
        assert_eq!(repeats(&[]), []);
        for count in [1u32, 2, 100, 40_000] {
            let mut keys: Vec<_> = (0..count).map(|n| Key::of(&[&n.to_le_bytes()])).collect();
            assert_eq!(repeats(&keys), []);
            let again = [count / 2, 0, count / 2, count - 1];
            keys.extend(again.map(|n| keys[n as usize]));
            assert_eq!(repeats(&keys), [0, 1, 2, 3].map(|n| (again[n], count + n as u32)), "{count}");
        }
    }
}
