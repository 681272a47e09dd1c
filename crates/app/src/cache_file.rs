//! Cache files: a key, a checksum and a value.
//!
//! The key names the format and the build of the program, since the value is stored as the build declares it.
//! A file that another build has written, or that is damaged, counts as missing.

use std::hash::BuildHasher;
use std::io;
use std::path::Path;

use foldhash::quality::FixedState;
use serde::Serialize;
use serde::de::DeserializeOwned;
use threadline_store::{read_file, replace_own_file};

/// Reads the value of a cache file. `None` if the file does not exist, has another key, or is damaged.
pub(crate) fn read<T: DeserializeOwned>(file: &Path, key: &str) -> Option<T> {
    let bytes = read_file(file).ok()?;
    let rest = bytes.strip_prefix(key.as_bytes())?.strip_prefix(b"\n")?;
    let (stored, value) = rest.split_first_chunk()?;
    (u64::from_le_bytes(*stored) == checksum(value)).then_some(())?;
    postcard::from_bytes(value).ok()
}

/// Writes a cache file. Another process may write it at the same time; the last one wins.
pub(crate) fn write<T: Serialize>(file: &Path, key: &str, value: &T) -> io::Result<()> {
    let value = postcard::to_stdvec(value).map_err(io::Error::other)?;
    let checksum = checksum(&value).to_le_bytes();
    replace_own_file(file, &[key.as_bytes(), b"\n", &checksum, &value].concat())
}

fn checksum(value: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_or_one_of_another_build_counts_as_missing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cache");
        let value = vec![("a\tb\n".to_owned(), Some(-7_i64)), (String::new(), None)];
        assert_eq!(read::<Vec<(String, Option<i64>)>>(&file, "key"), None);
        write(&file, "key", &value).unwrap();
        assert_eq!(read(&file, "key"), Some(value.clone()));
        assert_eq!(read::<Vec<(String, Option<i64>)>>(&file, "other key"), None);
        let whole = std::fs::read(&file).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert_eq!(read::<Vec<(String, Option<i64>)>>(&file, "key"), None, "{length}");
        }
        for at in "key\n".len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(read::<Vec<(String, Option<i64>)>>(&file, "key"), None, "{at}");
        }
    }
}
