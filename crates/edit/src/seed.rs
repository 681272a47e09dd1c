//! New ids and the current time, which are inputs of a plan.

use sha2::{Digest, Sha256};
use threadline_entry::Millis;
pub use threadline_entry::write::timestamp as moment;

/// The inputs of a plan that vary: a unique seed and the current time.
///
/// All new ids are derived from the seed, so the same seed produces the same plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSeed {
    /// A unique text, preferably a random uuid; the id of a new session can be used.
    pub seed: String,
    /// The current time.
    pub now: Millis,
}

impl PlanSeed {
    /// Derives a uuid from the seed and a name. A name has the same uuid in every file of a plan.
    pub fn uuid(&self, name: &str) -> String {
        let digest = Sha256::new().chain_update(&self.seed).chain_update([0]).chain_update(name).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut uuid = String::with_capacity(36);
        for (i, byte) in bytes.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                uuid.push('-');
            }
            for digit in [byte >> 4, byte & 15] {
                uuid.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        uuid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_uuid_per_seed() {
        let plan_seed = |seed: &str| PlanSeed { seed: seed.to_owned(), now: 0 };
        let uuid = plan_seed("a").uuid("x");
        assert_eq!(uuid, plan_seed("a").uuid("x"));
        assert_ne!(uuid, plan_seed("b").uuid("x"));
        assert_ne!(uuid, plan_seed("a").uuid("y"));
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"));
        assert!(uuid.bytes().enumerate().all(|(i, byte)| {
            if matches!(i, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() }
        }));
        assert_eq!(moment(1_767_261_600_007), "2026-01-01T10:00:00.007Z");
    }
}
