//! Errors of the archive, with hints.

use std::io;
use std::path::PathBuf;

use threadline_app::edit::EditError;

/// An error of the archive. [`ArchiveError::hints`] returns suggestions for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The text is not the address of an archive.
    #[error("`{text}` is not the address of an archive: {reason}")]
    Location {
        /// The text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// An action of the storage failed.
    #[error("the archive cannot {action} {object}: {source}")]
    Storage {
        /// The action, as a verb.
        action: &'static str,
        /// The object.
        object: String,
        /// The reason.
        source: object_store::Error,
    },
    /// An action of the database failed.
    #[error("cannot {action} the database: {reason}")]
    Database {
        /// The action, as a verb.
        action: &'static str,
        /// The answer of the server, or the reason why there is none.
        reason: String,
        /// Whether another process changed the same rows, so that it can be tried again.
        is_conflict: bool,
    },
    /// The database contains no archive.
    #[error("there is no archive in this database")]
    NoDatabase,
    /// The tables were made by a newer version.
    #[error("the archive in this database was made by a newer version of threadline")]
    NewerDatabase,
    /// An object of the archive is damaged.
    #[error("{object} is damaged: {reason}")]
    Damaged {
        /// The object.
        object: String,
        /// The reason.
        reason: String,
    },
    /// The archive is encrypted, and no key was given.
    #[error("the archive is encrypted, and needs its key file")]
    KeyNeeded,
    /// The archive is encrypted for other keys.
    #[error("the archive is encrypted for other keys than those in {}", path.display())]
    WrongKey {
        /// The path of the key file.
        path: PathBuf,
    },
    /// A key was given to write to an archive that is not encrypted.
    #[error("the archive is not encrypted, and nothing is written to it while a key file is given")]
    NotEncrypted,
    /// A key file cannot be read or created.
    #[error("{}: {reason}", path.display())]
    KeyFile {
        /// The path of the key file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Another process wrote the archive again and again.
    #[error("other processes keep writing this archive")]
    Busy,
    /// The archive contains no session with this name.
    #[error("the archive has no session `{name}`")]
    NoSession {
        /// The name.
        name: String,
    },
    /// The archive contains copies of a session that no manifest names, which would not be erased.
    #[error("some copies of `{name}` are in no manifest; nothing was erased")]
    Unlisted {
        /// The session.
        name: String,
    },
    /// The name matches several sessions of the archive.
    #[error("`{name}` matches {count} sessions of the archive")]
    Ambiguous {
        /// The name.
        name: String,
        /// The number of sessions.
        count: usize,
    },
    /// A file would be replaced that differs from the archived one.
    #[error("{path} exists and differs from the archived copy; nothing was written")]
    Differs {
        /// The path of the file.
        path: String,
    },
    /// A folder, a link or something else is in the place of a file to restore.
    #[error("{path} is not a regular file; nothing was written")]
    NotRegular {
        /// The path.
        path: String,
    },
    /// The files of a session could not be put in their place.
    #[error(transparent)]
    Write(#[from] EditError),
    /// Reading or writing a local file failed; the message contains the path.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ArchiveError {
    /// Returns suggestions for the user, best first.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Location { .. } => "use file:DIRECTORY, s3://BUCKET/PREFIX, gs://…, az://… or postgres://…",
            Self::Storage { source: object_store::Error::NotFound { .. }, .. } => {
                "check the address: does the bucket exist?"
            }
            Self::Storage { .. } | Self::Database { .. } => {
                "run the command again: it continues where it stopped"
            }
            Self::Damaged { .. } => "`threadline archive verify` lists everything that is damaged",
            Self::KeyNeeded => {
                "name it with --key FILE, THREADLINE_ARCHIVE_KEY or `archive_key` in config.toml"
            }
            Self::WrongKey { .. } => "name the key file that the archive was created with: --key FILE",
            Self::NotEncrypted => "use another address for an encrypted archive, or name no key",
            Self::KeyFile { .. } => "`threadline archive key FILE` creates a key file",
            Self::NoDatabase => "create it: `threadline archive push --to postgres://…`",
            Self::NewerDatabase => "update threadline",
            Self::Busy => "run the command again when they have finished",
            Self::NoSession { .. } => "`threadline archive status` lists the archived sessions",
            Self::Ambiguous { .. } => "give more characters of the id",
            Self::Unlisted { .. } => "`threadline archive rebuild` adds them; then run the command again",
            Self::Differs { .. } => "move the file away, or use --force to replace it",
            Self::NotRegular { .. } => "move it away",
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
