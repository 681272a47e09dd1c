//! An archive at an address.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};

use crate::cipher;
use crate::error::ArchiveError;
use crate::http::UreqConnector;
use crate::key_file::KeyFile;
use crate::objects::Objects;
use crate::postgres::{PostgresArchive, PostgresLocation};

/// The address of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveLocation {
    /// A local folder: `file:DIRECTORY`.
    Folder(PathBuf),
    /// Object storage: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`.
    Bucket {
        /// The kind of storage.
        kind: StorageKind,
        /// The bucket or container.
        bucket: String,
        /// The beginning of the names of all objects; may be empty.
        prefix: String,
    },
    /// A database: `postgres://USER@HOST:PORT/DATABASE`.
    Postgres(Box<PostgresLocation>),
}

/// A kind of object storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// Amazon S3, and servers with the same interface.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

impl StorageKind {
    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

impl ArchiveLocation {
    /// Returns whether the archive is on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Folder(_))
    }

    /// Returns whether the address contains a password, so that it must not be stored.
    pub fn has_password(&self) -> bool {
        matches!(self, Self::Postgres(location) if location.has_password())
    }
}

impl FromStr for ArchiveLocation {
    type Err = ArchiveError;

    fn from_str(text: &str) -> Result<Self, ArchiveError> {
        // An address may contain credentials by mistake.
        let shown = match text.split_once('@') {
            Some((_, rest)) => format!("…@{rest}"),
            None => text.to_owned(),
        };
        let wrong = |reason: &str| ArchiveError::Location { text: shown.clone(), reason: reason.to_owned() };
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(wrong("it does not begin with `file:`, `s3:`, `gs:`, `az:` or `postgres:`"));
        };
        let kind = match scheme {
            "file" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() {
                    return Err(wrong("the folder is missing"));
                }
                return Ok(Self::Folder(Path::new(path).to_owned()));
            }
            "postgres" | "postgresql" => {
                return PostgresLocation::parse(text)
                    .map(|location| Self::Postgres(Box::new(location)))
                    .map_err(|reason| wrong(&reason));
            }
            "s3" => StorageKind::S3,
            "gs" => StorageKind::Google,
            "az" => StorageKind::Azure,
            _ => return Err(wrong(&format!("`{scheme}:` is not supported"))),
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(wrong("credentials belong into environment variables"));
        }
        if bucket.is_empty() {
            return Err(wrong("the name of the bucket is missing"));
        }
        Ok(Self::Bucket { kind, bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }
}

impl fmt::Display for ArchiveLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "file:{}", path.display()),
            Self::Bucket { kind, bucket, prefix } => write!(f, "{}://{bucket}/{prefix}", kind.scheme()),
            Self::Postgres(location) => location.fmt(f),
        }
    }
}

/// Options of object storage: credentials, region and address of the server, by the names of the environment
/// variables of the vendors, such as `AWS_ACCESS_KEY_ID` or `PGPASSWORD`. They are never stored.
pub type StorageOptions = BTreeMap<String, String>;

/// Opens a bucket.
fn open_bucket(
    kind: StorageKind,
    bucket: &str,
    prefix: &str,
    options: &StorageOptions,
) -> Result<Arc<dyn ObjectStore>, ArchiveError> {
    // A server that is gone is reported soon; the next run continues.
    let retry = RetryConfig { max_retries: 4, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let wrong = |error: object_store::Error| ArchiveError::Location {
        text: format!("{}://{bucket}/{prefix}", kind.scheme()),
        reason: error.to_string(),
    };
    let options = options.iter().map(|(name, value)| (name.to_lowercase(), value));
    let store: Arc<dyn ObjectStore> = match kind {
        StorageKind::S3 => {
            let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(retry);
            for (name, value) in options {
                if let Ok(key) = name.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Arc::new(builder.with_http_connector(UreqConnector).build().map_err(wrong)?)
        }
        StorageKind::Google => {
            let mut builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket).with_retry(retry);
            for (name, value) in options {
                if let Ok(key) = name.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Arc::new(builder.with_http_connector(UreqConnector).build().map_err(wrong)?)
        }
        StorageKind::Azure => {
            let mut builder = MicrosoftAzureBuilder::new().with_container_name(bucket).with_retry(retry);
            for (name, value) in options {
                if let Ok(key) = name.parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Arc::new(builder.with_http_connector(UreqConnector).build().map_err(wrong)?)
        }
    };
    Ok(match prefix {
        "" => store,
        prefix => Arc::new(PrefixStore::new(store, prefix)),
    })
}

/// Opens the objects at an address, and creates a local folder if `create` is set.
pub(crate) fn open_objects(
    location: &ArchiveLocation,
    options: &StorageOptions,
    create: bool,
) -> Result<Objects, ArchiveError> {
    match location {
        ArchiveLocation::Folder(folder) => Objects::in_folder(folder, create),
        ArchiveLocation::Bucket { kind, bucket, prefix } => {
            Objects::new(open_bucket(*kind, bucket, prefix, options)?)
        }
        ArchiveLocation::Postgres(_) => {
            let reason = "a database cannot contain these files".to_owned();
            Err(ArchiveError::Location { text: location.to_string(), reason })
        }
    }
}

const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// An archive: copies of the files of sessions, of one or more machines.
pub struct Archive {
    location: ArchiveLocation,
    backend: Backend,
    key: Option<KeyFile>,
}

/// Where the archive is stored.
enum Backend {
    Objects(Box<Objects>),
    Postgres(Box<PostgresArchive>),
}

impl Archive {
    /// Opens an archive to read it. A folder must exist.
    ///
    /// # Errors
    ///
    /// If the archive cannot be reached.
    pub fn open(location: &ArchiveLocation, options: &StorageOptions) -> Result<Self, ArchiveError> {
        Self::at(location, options, None, false)
    }

    /// Opens an archive to read it. One that is encrypted needs its key.
    ///
    /// # Errors
    ///
    /// Those of [`Archive::open`], and if the key is missing or wrong.
    pub fn open_with_key(
        location: &ArchiveLocation,
        options: &StorageOptions,
        key: Option<KeyFile>,
    ) -> Result<Self, ArchiveError> {
        Self::at(location, options, key, false)
    }

    /// Opens an archive to write it, and creates its folder.
    ///
    /// # Errors
    ///
    /// If the archive cannot be reached or created.
    pub fn create(location: &ArchiveLocation, options: &StorageOptions) -> Result<Self, ArchiveError> {
        Self::at(location, options, None, true)
    }

    /// Opens an archive to write it. With a key, a new one is encrypted.
    ///
    /// # Errors
    ///
    /// Those of [`Archive::create`], and if the key is missing or wrong.
    pub fn create_with_key(
        location: &ArchiveLocation,
        options: &StorageOptions,
        key: Option<KeyFile>,
    ) -> Result<Self, ArchiveError> {
        Self::at(location, options, key, true)
    }

    fn at(
        location: &ArchiveLocation,
        options: &StorageOptions,
        key: Option<KeyFile>,
        create: bool,
    ) -> Result<Self, ArchiveError> {
        let backend = match location {
            ArchiveLocation::Postgres(_) if key.is_some() => return Err(ArchiveError::NotEncrypted),
            ArchiveLocation::Postgres(database) => {
                Backend::Postgres(Box::new(PostgresArchive::open(database, options, create)?))
            }
            location => {
                let objects = open_objects(location, options, create)?;
                cipher::unlock(&objects, key.as_ref())?;
                Backend::Objects(Box::new(objects))
            }
        };
        Ok(Self { location: location.clone(), backend, key })
    }

    /// Must be called before the first object is written.
    pub(crate) fn begin_writing(&self) -> Result<(), ArchiveError> {
        cipher::begin_writing(self.objects(), self.key.as_ref())
    }

    /// Returns the address of the archive.
    pub fn location(&self) -> &ArchiveLocation {
        &self.location
    }

    /// Returns the objects of an archive that is not in a database.
    pub(crate) fn objects(&self) -> &Objects {
        match &self.backend {
            Backend::Objects(objects) => objects,
            Backend::Postgres(_) => unreachable!("every operation on a database is done by it"),
        }
    }

    /// Returns the database, if the archive is in one.
    pub(crate) fn database(&self) -> Option<&PostgresArchive> {
        match &self.backend {
            Backend::Objects(_) => None,
            Backend::Postgres(database) => Some(database),
        }
    }

    #[cfg(test)]
    pub(crate) fn objects_mut(&mut self) -> &mut Objects {
        match &mut self.backend {
            Backend::Objects(objects) => objects,
            Backend::Postgres(_) => unreachable!("every operation on a database is done by it"),
        }
    }
}
