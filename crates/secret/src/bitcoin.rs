//! Private keys of Bitcoin in the wallet import format: base58 with a checksum, without a fixed prefix.

use sha2::{Digest, Sha256};

/// The length of a key. One with the mark of a compressed public key has a character more.
pub(crate) const MIN_LENGTH: usize = 51;

const NONE: u8 = 0xFF;

/// The values of base58 digits.
static DIGITS: [u8; 256] = {
    let mut digits = [NONE; 256];
    let alphabet = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut at = 0;
    while at < alphabet.len() {
        digits[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    digits
};

/// Returns whether a word is a key of the main network or of a test network.
pub(crate) fn is_key(word: &[u8]) -> bool {
    if !matches!(word.len(), MIN_LENGTH | 52) || !matches!(word[0], b'5' | b'K' | b'L' | b'9' | b'c') {
        return false;
    }
    // The network, 32 bytes of the key, the mark of a compressed public key, and four bytes of the checksum.
    let length = if word.len() == MIN_LENGTH { 37 } else { 38 };
    let mut key = vec![0_u8; length];
    for digit in word.iter().map(|byte| DIGITS[usize::from(*byte)]) {
        if digit == NONE {
            return false;
        }
        let mut carry = u32::from(digit);
        for byte in key.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return false;
        }
    }
    let (payload, checksum) = key.split_at(length - 4);
    matches!(payload[0], 0x80 | 0xEF) && Sha256::digest(Sha256::digest(payload))[..4] == *checksum
}

#[cfg(test)]
mod tests {
    use super::is_key;

    #[test]
    fn only_a_word_with_a_valid_checksum_is_a_key() {
        // The published example of the format, in two parts.
        for key in [
            ["5HueCGU8rMjxEXxiPuD5BDku", "4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"].concat(),
            ["KwdMAjGmerYanjeui5SHS7J", "kmpZvVipYvB2LJGU1ZxJwYvP98617"].concat(),
        ] {
            assert!(is_key(key.as_bytes()));
            assert!(!is_key(key.replacen('u', "v", 1).as_bytes()));
            assert!(!is_key(&key.as_bytes()[1..]) && !is_key(format!("{key}1").as_bytes()));
        }
    }
}
