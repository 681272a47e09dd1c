//! Digests of contents.

use sha2::{Digest, Sha256};

/// The number of digits of a digest.
pub(crate) const DIGEST_LENGTH: usize = 64;

/// Returns the SHA-256 of some bytes in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex_digits(Sha256::new_with_prefix(bytes))
}

/// Returns a finished digest in hexadecimal digits.
pub(crate) fn hex_digits(hash: Sha256) -> String {
    const_hex::encode(hash.finalize())
}

/// Returns whether a text is a digest.
pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == DIGEST_LENGTH && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
