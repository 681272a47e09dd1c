//! Encryption of all objects of an archive, and the object that marks it as encrypted.

use ring::hmac;

use crate::age_file::{KeyBytes, decrypt, encrypt, public_key, random};
use crate::error::ArchiveError;
use crate::key_file::KeyFile;
use crate::objects::Objects;

/// The object that records whether an archive is encrypted. If it is, its content is encrypted, too, and
/// contains the key for the names of segments.
const FORMAT: &str = "format";

const PLAIN: &[u8] = b"threadline archive, not encrypted\n";
const ENCRYPTED: &[u8] = b"threadline archive, encrypted\n";

/// The keys of an encrypted archive.
pub(crate) struct ArchiveCipher {
    secrets: Vec<KeyBytes>,
    recipients: Vec<KeyBytes>,
    name_key: hmac::Key,
}

impl ArchiveCipher {
    fn new(key: &KeyFile, name_key: &[u8]) -> Self {
        Self {
            secrets: key.secrets().to_vec(),
            recipients: key.secrets().iter().map(public_key).collect(),
            name_key: hmac::Key::new(hmac::HMAC_SHA256, name_key),
        }
    }

    pub(crate) fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        encrypt(&self.recipients, plain)
    }

    pub(crate) fn decrypt(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        decrypt(&self.secrets, bytes)
    }

    /// Returns the name of a segment with this digest. Without the key, it reveals nothing about the content.
    pub(crate) fn segment_name(&self, digest: &str) -> String {
        const_hex::encode(hmac::sign(&self.name_key, digest.as_bytes()).as_ref())
    }
}

/// Prepares an archive for reading: finds out whether it is encrypted, and with which keys.
pub(crate) fn unlock(objects: &Objects, key: Option<&KeyFile>) -> Result<(), ArchiveError> {
    match objects.get_raw(FORMAT)? {
        None => Ok(()),
        Some(format) => set_format(objects, &format, key),
    }
}

fn set_format(objects: &Objects, format: &[u8], key: Option<&KeyFile>) -> Result<(), ArchiveError> {
    if format == PLAIN {
        objects.set_cipher(None);
        return Ok(());
    }
    let key = key.ok_or(ArchiveError::KeyNeeded)?;
    let plain = decrypt(key.secrets(), format)
        .ok_or_else(|| ArchiveError::WrongKey { path: key.path().to_owned() })?;
    let name_key = plain.strip_prefix(ENCRYPTED).ok_or_else(|| ArchiveError::Damaged {
        object: FORMAT.to_owned(),
        reason: "its content is not known".to_owned(),
    })?;
    objects.set_cipher(Some(ArchiveCipher::new(key, name_key)));
    Ok(())
}

/// Prepares an archive for writing. The first process that writes to it decides whether it is encrypted.
pub(crate) fn begin_writing(objects: &Objects, key: Option<&KeyFile>) -> Result<(), ArchiveError> {
    if !objects.has_format() {
        let format = match key {
            // Objects without this one are those of an earlier version, which did not encrypt.
            Some(_) if !objects.list("manifests")?.is_empty() => return Err(ArchiveError::NotEncrypted),
            Some(key) => {
                let name_key: Option<KeyBytes> = random();
                let recipients: Vec<_> = key.secrets().iter().map(public_key).collect();
                let format =
                    name_key.and_then(|name_key| encrypt(&recipients, &[ENCRYPTED, &name_key].concat()));
                format.ok_or_else(no_random_numbers)?
            }
            None => PLAIN.to_vec(),
        };
        objects.create_raw(FORMAT, format)?;
        // Another process may have been faster.
        if let Some(format) = objects.get_raw(FORMAT)? {
            set_format(objects, &format, key)?;
        }
    }
    match key.is_some() && objects.cipher().is_none() {
        true => Err(ArchiveError::NotEncrypted),
        false => Ok(()),
    }
}

pub(crate) fn no_random_numbers() -> ArchiveError {
    std::io::Error::other("the system has no random numbers").into()
}
