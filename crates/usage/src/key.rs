//! What makes two lines the same call: 96 bits that stand for ids of any length.

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

    /// The key with a number behind it: in the order of keys first, then of numbers.
    pub(crate) fn numbered(self, n: u32) -> u128 {
        let [a, b, c] = self.0.map(u128::from);
        a << 96 | b << 64 | c << 32 | u128::from(n)
    }

    /// Two thirds of it, where less is enough.
    pub(crate) fn short(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
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
    use super::Key;

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
}
