//! The checksum CRC-64/NVME, with the interface of the crate `crc-fast` that `object_store` uses.
//!
//! `object_store` computes this checksum for uploads if `AWS_CHECKSUM_ALGORITHM` is `crc64nvme`. The original
//! crate contains tables and functions for many other checksums, 0.7 MB of the binary, since the algorithm is
//! chosen when the program runs. Cargo uses this package instead because of `[patch.crates-io]` in the
//! workspace.

/// The algorithms of [`Digest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcAlgorithm {
    /// CRC-64/NVME: reflected, starts with all bits set, and is inverted at the end.
    Crc64Nvme,
}

/// The polynomial 0xad93d23594c93659, with its bits in reverse order.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;

/// `TABLES[n][byte]` is the checksum of a byte followed by `n` zero bytes.
static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut byte = 0;
        while byte < 256 {
            let sum: u64 = tables[n - 1][byte];
            tables[n][byte] = (sum >> 8) ^ tables[0][(sum & 0xff) as usize];
            byte += 1;
        }
        n += 1;
    }
    tables
}

/// A checksum of bytes that are added in parts.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Digest {
    /// Returns the checksum of no bytes.
    pub fn new(algorithm: CrcAlgorithm) -> Self {
        match algorithm {
            CrcAlgorithm::Crc64Nvme => Self(u64::MAX),
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let sum = self.0 ^ u64::from_le_bytes(*word);
            let parts = sum.to_le_bytes().into_iter().zip(TABLES.iter().rev());
            self.0 = parts.fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)]);
        }
        for byte in rest {
            self.0 = (self.0 >> 8) ^ TABLES[0][usize::from(self.0 as u8 ^ byte)];
        }
    }

    /// Returns the checksum.
    pub fn finalize(&self) -> u64 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(parts: &[&[u8]]) -> u64 {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        parts.iter().for_each(|part| digest.update(part));
        digest.finalize()
    }

    /// The values of the NVM Express specification: the digits, and 4096 bytes of one kind.
    #[test]
    fn the_values_of_the_specification() {
        assert_eq!(sum(&[b"123456789"]), 0xae8b_1486_0a79_9888);
        assert_eq!(sum(&[&[0; 4096]]), 0x6482_d367_eb22_b64e);
        assert_eq!(sum(&[&[0xff; 4096]]), 0xc0dd_ba73_02ec_a3ac);
    }

    #[test]
    fn parts_make_no_difference() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for at in 0..20 {
            let (start, end) = bytes.split_at(at);
            assert_eq!(sum(&[start, end]), sum(&[&bytes]));
        }
        assert_eq!(sum(&[]), 0);
    }
}
