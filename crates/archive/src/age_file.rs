//! Encrypts in the format of `age` (<https://age-encryption.org/v1>) for X25519 keys, so that its programs
//! can decrypt the objects of an archive.
//!
//! The crate `age` would add some 70 crates; this uses the primitives of `ring` and `x25519-dalek`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

/// A secret or public key of X25519.
pub(crate) type KeyBytes = [u8; 32];

const VERSION: &str = "age-encryption.org/v1";
const FILE_KEY_LENGTH: usize = 16;
const NONCE_LENGTH: usize = 16;
const CHUNK: usize = 64 << 10;

/// The maximum length of a header, which is a few lines of text.
const MAX_HEADER: usize = 64 << 10;

/// Returns the public key of a secret key.
pub(crate) fn public_key(secret: &KeyBytes) -> KeyBytes {
    x25519(*secret, X25519_BASEPOINT_BYTES)
}

/// Fills a new array with random bytes; `None` if the system has none.
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

/// Encrypts for all recipients; `None` if the system has no random numbers.
pub(crate) fn encrypt(recipients: &[KeyBytes], plain: &[u8]) -> Option<Vec<u8>> {
    let file_key: [u8; FILE_KEY_LENGTH] = random()?;
    let mut header = format!("{VERSION}\n");
    for recipient in recipients {
        let secret: KeyBytes = random()?;
        let share = public_key(&secret);
        let wrap = wrap_key(&x25519(secret, *recipient), &share, recipient)?;
        let mut body = file_key.to_vec();
        seal(&wrap, Nonce::assume_unique_for_key([0; NONCE_LEN]), &mut body)?;
        header.push_str(&format!(
            "-> X25519 {}\n{}\n",
            STANDARD_NO_PAD.encode(share),
            STANDARD_NO_PAD.encode(body)
        ));
    }
    header.push_str("---");
    let tag = header_tag(&file_key, &header)?;
    let mut out = format!("{header} {}\n", STANDARD_NO_PAD.encode(tag.as_ref())).into_bytes();
    let nonce: [u8; NONCE_LENGTH] = random()?;
    out.extend(nonce);
    let key = payload_key(&file_key, &nonce)?;
    out.reserve(plain.len() + (plain.len() / CHUNK + 1) * CHACHA20_POLY1305.tag_len());
    let mut chunks = plain.chunks(CHUNK).peekable();
    let mut counter = 0_u64;
    loop {
        let mut chunk = chunks.next().unwrap_or_default().to_vec();
        let is_last = chunks.peek().is_none();
        seal(&key, chunk_nonce(counter, is_last), &mut chunk)?;
        out.extend(chunk);
        if is_last {
            return Some(out);
        }
        counter += 1;
    }
}

/// Decrypts with any of these secret keys; `None` if the file is damaged, or was encrypted for others.
pub(crate) fn decrypt(secrets: &[KeyBytes], bytes: &[u8]) -> Option<Vec<u8>> {
    let head = &bytes[..bytes.len().min(MAX_HEADER)];
    let end = head.windows(5).position(|window| window == b"\n--- ")? + 1;
    let line_end = end + bytes.get(end..)?.iter().position(|byte| *byte == b'\n')?;
    let header = std::str::from_utf8(&bytes[..end + 3]).ok()?;
    let tag = STANDARD_NO_PAD.decode(&bytes[end + 4..line_end]).ok()?;
    let mut lines = header.lines();
    if lines.next() != Some(VERSION) {
        return None;
    }
    let lines: Vec<&str> = lines.collect();
    let file_key = lines.windows(2).find_map(|lines| unwrap_file_key(secrets, lines[0], lines[1]))?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &derive::<32>(&file_key, &[], "header")?);
    hmac::verify(&key, header.as_bytes(), &tag).ok()?;
    let (nonce, mut payload) = bytes.get(line_end + 1..)?.split_at_checked(NONCE_LENGTH)?;
    let key = payload_key(&file_key, nonce)?;
    let mut plain = Vec::with_capacity(payload.len());
    let mut counter = 0_u64;
    loop {
        let length = payload.len().min(CHUNK + CHACHA20_POLY1305.tag_len());
        let (chunk, rest) = payload.split_at(length);
        let mut chunk = chunk.to_vec();
        let opened =
            key.open_in_place(chunk_nonce(counter, rest.is_empty()), Aad::empty(), &mut chunk).ok()?;
        // Only an empty file has an empty chunk.
        if opened.is_empty() && counter > 0 {
            return None;
        }
        plain.extend_from_slice(opened);
        if rest.is_empty() {
            return Some(plain);
        }
        payload = rest;
        counter += 1;
    }
}

/// Returns the key of a file from the two lines for one recipient, if one of the secret keys is the
/// recipient's.
fn unwrap_file_key(secrets: &[KeyBytes], stanza: &str, body: &str) -> Option<Vec<u8>> {
    let share: KeyBytes = STANDARD_NO_PAD.decode(stanza.strip_prefix("-> X25519 ")?).ok()?.try_into().ok()?;
    let body = STANDARD_NO_PAD.decode(body).ok()?;
    secrets.iter().find_map(|secret| {
        let wrap = wrap_key(&x25519(*secret, share), &share, &public_key(secret))?;
        let mut body = body.clone();
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        let file_key = wrap.open_in_place(nonce, Aad::empty(), &mut body).ok()?;
        (file_key.len() == FILE_KEY_LENGTH).then(|| file_key.to_vec())
    })
}

fn wrap_key(shared: &KeyBytes, share: &KeyBytes, recipient: &KeyBytes) -> Option<LessSafeKey> {
    // A recipient that makes the shared secret predictable.
    if shared.iter().all(|byte| *byte == 0) {
        return None;
    }
    aead_key(&derive(shared, &[&share[..], recipient].concat(), "age-encryption.org/v1/X25519")?)
}

fn payload_key(file_key: &[u8], nonce: &[u8]) -> Option<LessSafeKey> {
    aead_key(&derive(file_key, nonce, "payload")?)
}

fn header_tag(file_key: &[u8], header: &str) -> Option<hmac::Tag> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &derive::<32>(file_key, &[], "header")?);
    Some(hmac::sign(&key, header.as_bytes()))
}

fn derive<const N: usize>(secret: &[u8], salt: &[u8], label: &str) -> Option<[u8; N]> {
    let mut key = [0; N];
    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    prk.expand(&[label.as_bytes()], KeyLength(N)).ok()?.fill(&mut key).ok()?;
    Some(key)
}

struct KeyLength(usize);

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        self.0
    }
}

fn aead_key(key: &KeyBytes) -> Option<LessSafeKey> {
    Some(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).ok()?))
}

fn seal(key: &LessSafeKey, nonce: Nonce, bytes: &mut Vec<u8>) -> Option<()> {
    key.seal_in_place_append_tag(nonce, Aad::empty(), bytes).ok()
}

fn chunk_nonce(counter: u64, is_last: bool) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[3..11].copy_from_slice(&counter.to_be_bytes());
    nonce[11] = u8::from(is_last);
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [KeyBytes; 2] = [[7; 32], [9; 32]];

    #[test]
    fn every_length_comes_back_for_every_recipient() {
        let recipients = SECRETS.map(|secret| public_key(&secret));
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7] {
            let plain: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let file = encrypt(&recipients, &plain).unwrap();
            for secret in SECRETS {
                assert!(decrypt(&[secret], &file).as_ref() == Some(&plain), "{length}");
            }
            assert!(decrypt(&[[1; 32]], &file).is_none());
        }
    }

    #[test]
    fn any_change_is_noticed() {
        let recipients = [public_key(&SECRETS[0])];
        let file = encrypt(&recipients, &[b'x'; CHUNK + 100]).unwrap();
        let ends = (0..300).chain((300..file.len()).step_by(997)).chain(file.len() - 120..file.len());
        for at in ends.clone() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert!(decrypt(&SECRETS, &damaged).is_none(), "byte {at}");
        }
        for end in ends {
            assert!(decrypt(&SECRETS, &file[..end]).is_none(), "cut at {end}");
        }
    }

    #[test]
    fn a_recipient_without_a_secret_is_refused() {
        assert!(encrypt(&[[0; 32]], b"text").is_none());
    }
}
