//! Fingerprints: detect whether a file still begins with the bytes read before.

use std::io::{self, Read, Seek, SeekFrom};

/// The number of bytes hashed at each end.
const END_BYTES: usize = 4 << 10;

/// A fingerprint of the first `length` bytes of a file.
///
/// It consists of hashes of the first and the last 4 KiB of these bytes. They are stable between releases and
/// machines, so they may be stored on disk. A change in the middle of a long prefix is not detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The length of the prefix in bytes.
    pub length: u64,
    /// The hash of its first bytes.
    pub head: u64,
    /// The hash of its last bytes.
    pub tail: u64,
}

impl Fingerprint {
    /// Whether `file` begins with a prefix that has this fingerprint.
    pub(crate) fn matches(&self, file: &mut (impl Read + Seek)) -> io::Result<bool> {
        Ok(PrefixEnds::read(file, self.length)?.is_some_and(|ends| ends.fingerprint() == *self))
    }
}

/// The bytes that a [`Fingerprint`] is computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixEnds {
    length: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl PrefixEnds {
    /// Reads the ends of the first `length` bytes of `file`; `None` if it is shorter.
    pub(crate) fn read(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<Self>> {
        let span = length.min(END_BYTES as u64);
        let mut piece = |from: u64| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            file.by_ref().take(span).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let ends = Self { length, head: piece(0)?, tail: piece(length - span)? };
        Ok((ends.head.len() as u64 == span && ends.tail.len() as u64 == span).then_some(ends))
    }

    /// Returns the length of the prefix.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Extends the prefix by `bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let missing = END_BYTES - self.head.len();
        self.head.extend(&bytes[..missing.min(bytes.len())]);
        let last = &bytes[bytes.len().saturating_sub(END_BYTES)..];
        let spare = (self.tail.len() + last.len()).saturating_sub(END_BYTES);
        self.tail.drain(..spare);
        self.tail.extend(last);
    }

    /// Whether `file` still begins with this prefix.
    pub(crate) fn is_prefix_of(&self, file: &mut (impl Read + Seek)) -> io::Result<bool> {
        Ok(Self::read(file, self.length)?.is_some_and(|ends| ends == *self))
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint { length: self.length, head: fnv(&self.head), tail: fnv(&self.tail) }
    }
}

/// Returns the FNV-1a hash, which is the same in every release.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_changed_or_shorter_file_does_not_match() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        let print = PrefixEnds::read(&mut Cursor::new(&bytes), 9_000).unwrap().unwrap().fingerprint();
        assert!(print.matches(&mut Cursor::new(&bytes)).unwrap());
        assert!(!print.matches(&mut Cursor::new(&bytes[..8_999])).unwrap());
        for at in [0, END_BYTES - 1, 9_000 - END_BYTES, 8_999] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(!print.matches(&mut Cursor::new(&other)).unwrap(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn pushing_pieces_equals_reading_the_whole(pieces in prop::collection::vec(0usize..6_000, 0..8)) {
            let mut whole = Vec::new();
            let mut ends = PrefixEnds::default();
            for length in pieces {
                let piece: Vec<u8> = (0..length).map(|i| (whole.len() + i * 7) as u8).collect();
                ends.push(&piece);
                whole.extend(piece);
                prop_assert_eq!(&ends, &PrefixEnds::read(&mut Cursor::new(&whole), whole.len() as u64).unwrap().unwrap());
                prop_assert!(ends.is_prefix_of(&mut Cursor::new(&whole)).unwrap());
            }
        }
    }
}
