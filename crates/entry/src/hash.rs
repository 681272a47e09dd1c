//! Hashes of the ids and texts of a log.

use std::hash::{BuildHasher, Hash};
use std::sync::LazyLock;

use foldhash::fast::RandomState;

/// Returns a hash with a key that differs in each process, so that no log can contain values that were
/// computed to have equal hashes. Hash tables use [`RandomState`] for the same reason. The hash means nothing
/// to another process, so it must not be stored.
pub fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    KEY.hash_one(value)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::hash_of;

    #[test]
    fn repeated_characters_have_different_hashes_for_each_length() {
        let texts: Vec<String> = (0..200).map(|length| "-".repeat(length)).collect();
        let hashes: HashSet<u64> = texts.iter().map(|text| hash_of(&**text)).collect();
        assert_eq!(hashes.len(), texts.len());
        assert_eq!(hash_of("weft"), hash_of(&String::from("weft")));
    }
}
