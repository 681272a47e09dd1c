//! Tests of the whole archive, on local folders.

mod encryption;
mod maintain;
mod push;
mod restore;
pub(crate) mod source_home;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use threadline_app::SourceSelection;

use self::source_home::{SESSION, SourceHome};
use crate::{Archive, ArchiveError, ArchiveLocation, KeyFile, PushReport, StorageOptions};

/// A home, and an archive in a folder.
struct Setup {
    home: SourceHome,
    key: Option<KeyFile>,
}

impl Setup {
    fn new() -> Self {
        Self { home: SourceHome::new(), key: None }
    }

    fn encrypted() -> Self {
        let mut setup = Self::new();
        setup.key = Some(KeyFile::create(&setup.dir.path().join("key")).unwrap());
        setup
    }

    /// Returns the folder of the archive.
    fn folder(&self) -> PathBuf {
        self.dir.path().join("archive")
    }

    fn archive(&self) -> Archive {
        self.open(self.key.clone()).unwrap()
    }

    fn open(&self, key: Option<KeyFile>) -> Result<Archive, ArchiveError> {
        Archive::create_with_key(&ArchiveLocation::Folder(self.folder()), &StorageOptions::new(), key)
    }

    fn push(&self) -> PushReport {
        self.push_to(&self.archive(), "laptop").unwrap()
    }

    fn fetch(&self) -> Vec<PathBuf> {
        self.fetch_from(&self.archive(), &SourceSelection::default())
    }
}

impl Deref for Setup {
    type Target = SourceHome;

    fn deref(&self) -> &SourceHome {
        &self.home
    }
}

impl DerefMut for Setup {
    fn deref_mut(&mut self) -> &mut SourceHome {
        &mut self.home
    }
}

/// A sub-agent of [`SESSION`] next to its log, as versions before 2.1.2 wrote it, and one of the other
/// session.
fn write_shared_agents(setup: &Setup) {
    for (name, session) in [("1", SESSION), ("2", "0b5b3a5e-0000-4000-8000-000000000002")] {
        let line = format!("{{\"isSidechain\":true,\"sessionId\":\"{session}\"}}\n");
        setup.write(&format!("projects/-p/agent-{name}.jsonl"), &line);
    }
}
