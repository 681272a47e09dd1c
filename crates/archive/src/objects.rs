//! The objects of an archive: immutable, named by their content or by a serial number.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use futures_util::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::Runtime;

use crate::cipher::{ArchiveCipher, no_random_numbers};
use crate::digest::digest;
use crate::error::ArchiveError;

/// A flat folder of objects. The methods block.
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
    /// Encrypts all objects. Not set if nothing was written to the archive yet.
    cipher: OnceLock<Option<ArchiveCipher>>,
    #[cfg(test)]
    pub(crate) faults: Faults,
}

/// Makes writing fail, for tests.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Faults {
    /// The number of the operation that fails, with all that follow; 0 for none. Odd operations fail before
    /// they take effect, even ones after that.
    pub(crate) from: std::sync::atomic::AtomicU64,
    pub(crate) done: std::sync::atomic::AtomicU64,
}

#[cfg(test)]
impl Faults {
    /// Runs an operation that writes, unless it fails.
    fn run<T>(&self, write: impl FnOnce() -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        use std::sync::atomic::Ordering::SeqCst;
        let number = self.done.fetch_add(1, SeqCst) + 1;
        let from = self.from.load(SeqCst);
        let failed = || std::io::Error::other("injected fault").into();
        match from == 0 || number < from {
            true => write(),
            false if number.is_multiple_of(2) && number == from => write().and_then(|_| Err(failed())),
            false => Err(failed()),
        }
    }
}

/// An object in a listing.
pub(crate) struct ObjectInfo {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// When it was written, in seconds since 1970.
    pub(crate) written: i64,
}

impl Objects {
    /// Opens a local folder, and creates it if `create` is set.
    pub(crate) fn in_folder(folder: &Path, create: bool) -> Result<Self, ArchiveError> {
        if create {
            create_private_folder(folder)?;
        }
        let location = |error: object_store::Error| ArchiveError::Location {
            text: format!("file:{}", folder.display()),
            reason: error.to_string(),
        };
        if !folder.is_dir() {
            let text = format!("file:{}", folder.display());
            return Err(ArchiveError::Location { text, reason: "the folder does not exist".to_owned() });
        }
        // Tests interrupt no machine.
        let store = LocalFileSystem::new_with_prefix(folder).map_err(location)?.with_fsync(!cfg!(test));
        Self::new(Arc::new(store))
    }

    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Result<Self, ArchiveError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self {
            store,
            runtime,
            cipher: OnceLock::new(),
            #[cfg(test)]
            faults: Faults::default(),
        })
    }

    /// Sets whether and how objects are encrypted.
    pub(crate) fn set_cipher(&self, cipher: Option<ArchiveCipher>) {
        // Two processes that begin at the same time agree: the object is never changed.
        let _ = self.cipher.set(cipher);
    }

    pub(crate) fn has_format(&self) -> bool {
        self.cipher.get().is_some()
    }

    pub(crate) fn cipher(&self) -> Option<&ArchiveCipher> {
        self.cipher.get()?.as_ref()
    }

    /// Returns the name of a segment with this uncompressed content.
    pub(crate) fn segment_name(&self, content: &[u8]) -> String {
        self.name_of_digest(digest(content))
    }

    /// Returns the name of the segment with this digest of its content.
    pub(crate) fn name_of_digest(&self, digest: String) -> String {
        match self.cipher() {
            Some(cipher) => cipher.segment_name(&digest),
            None => digest,
        }
    }

    /// Returns the name of an object in the storage.
    fn stored_name(&self, name: &str) -> String {
        match self.cipher() {
            Some(_) => format!("{name}{ENCRYPTED_SUFFIX}"),
            None => name.to_owned(),
        }
    }

    /// Returns the content of an object; `None` if it does not exist.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let bytes = self.get_raw(&self.stored_name(name))?;
        self.decrypted(name, bytes)
    }

    fn decrypted(&self, name: &str, bytes: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some((cipher, bytes)) = self.cipher().zip(bytes.as_ref()) else { return Ok(bytes) };
        let plain = cipher.decrypt(bytes).ok_or_else(|| ArchiveError::Damaged {
            object: name.to_owned(),
            reason: "it cannot be decrypted".to_owned(),
        })?;
        Ok(Some(plain))
    }

    /// Returns the contents of objects in their order, like [`Objects::get`]. Several are read at a time.
    pub(crate) fn get_many(&self, names: &[String]) -> Vec<Result<Option<Vec<u8>>, ArchiveError>> {
        const AT_ONCE: usize = 32;
        let stored: Vec<String> = names.iter().map(|name| self.stored_name(name)).collect();
        let reads = futures_util::stream::iter(stored.iter().map(|name| self.read_stored(name)));
        let read: Vec<_> = self.runtime.block_on(reads.buffered(AT_ONCE).collect());
        read.into_iter().zip(names).map(|(bytes, name)| self.decrypted(name, bytes?)).collect()
    }

    /// Returns the content of an object as it is stored.
    pub(crate) fn get_raw(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        self.runtime.block_on(self.read_stored(name))
    }

    async fn read_stored(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let read = async { self.store.get(&ObjectPath::from(name)).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(storage("read", name, source)),
        }
    }

    /// Creates an object. Returns `false` if one of this name exists, which is not changed.
    pub(crate) fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool, ArchiveError> {
        let bytes = self.encrypted(bytes)?;
        let name = self.stored_name(name);
        #[cfg(test)]
        return self.faults.run(|| self.create_raw(&name, bytes));
        #[cfg(not(test))]
        self.create_raw(&name, bytes)
    }

    /// Creates an object with content that is stored as it is.
    pub(crate) fn create_raw(&self, name: &str, bytes: Vec<u8>) -> Result<bool, ArchiveError> {
        let options = PutOptions::from(PutMode::Create);
        let path = ObjectPath::from(name);
        let put = self.store.put_opts(&path, PutPayload::from(bytes), options);
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(storage("write", name, source)),
        }
    }

    /// Creates or replaces an object.
    pub(crate) fn replace(&self, name: &str, bytes: Vec<u8>) -> Result<(), ArchiveError> {
        let bytes = self.encrypted(bytes)?;
        let path = ObjectPath::from(self.stored_name(name));
        let put = self.store.put_opts(&path, PutPayload::from(bytes), PutOptions::default());
        self.runtime.block_on(put).map(|_| ()).map_err(|source| storage("write", name, source))
    }

    fn encrypted(&self, bytes: Vec<u8>) -> Result<Vec<u8>, ArchiveError> {
        match self.cipher() {
            Some(cipher) => cipher.encrypt(&bytes).ok_or_else(no_random_numbers),
            None => Ok(bytes),
        }
    }

    /// Returns when an object was written, in seconds since 1970; `None` if it does not exist.
    pub(crate) fn written(&self, name: &str) -> Result<Option<i64>, ArchiveError> {
        match self.runtime.block_on(self.store.head(&ObjectPath::from(self.stored_name(name)))) {
            Ok(object) => Ok(Some(object.last_modified.timestamp())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(storage("read", name, source)),
        }
    }

    /// Deletes an object, if it exists.
    pub(crate) fn delete(&self, name: &str) -> Result<(), ArchiveError> {
        let name = self.stored_name(name);
        #[cfg(test)]
        return self.faults.run(|| self.delete_object(&name));
        #[cfg(not(test))]
        self.delete_object(&name)
    }

    fn delete_object(&self, name: &str) -> Result<(), ArchiveError> {
        match self.runtime.block_on(self.store.delete(&ObjectPath::from(name))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(storage("delete", name, source)),
        }
    }

    /// Returns the name of an object from that in the storage.
    fn plain_name(&self, stored: &str) -> String {
        match self.cipher() {
            Some(_) => {
                stored.strip_suffix(ENCRYPTED_SUFFIX).map_or_else(|| format!("{stored}?"), str::to_owned)
            }
            None => stored.to_owned(),
        }
    }

    /// Returns the objects with names that begin with `prefix` and a slash, sorted by name.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, ArchiveError> {
        let path = ObjectPath::from(prefix);
        let listed: Result<Vec<_>, _> = self.runtime.block_on(self.store.list(Some(&path)).try_collect());
        let mut objects: Vec<_> = listed
            .map_err(|source| storage("list", prefix, source))?
            .into_iter()
            .map(|object| ObjectInfo {
                name: self.plain_name(object.location.as_ref()),
                size: object.size,
                written: object.last_modified.timestamp(),
            })
            .collect();
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }
}

/// The end of the names of encrypted objects.
const ENCRYPTED_SUFFIX: &str = ".age";

/// Creates a folder that only the user can read. One that exists is not changed.
fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn storage(action: &'static str, name: &str, source: object_store::Error) -> ArchiveError {
    ArchiveError::Storage { action, object: name.to_owned(), source }
}
