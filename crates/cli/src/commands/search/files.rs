//! The files to search, and the session that each belongs to.

use std::io::{self, Read};
use std::path::Path;

use threadline_search::Searched;
use threadline_store::{SessionFile, SessionLogs, Store, open_regular};

/// The sessions of the store, the last modified first, and what could not be listed.
pub(super) fn sessions(store: &Store) -> (Vec<Searched>, Vec<io::Error>) {
    let listing = store.session_logs();
    (listing.found.into_iter().map(searched).collect(), listing.unread)
}

fn searched(session: SessionLogs) -> Searched {
    let (modified, SessionLogs { file, own, agents }) = (session.modified(), session);
    let logs = own.into_iter().chain(agents).map(|log| log.path).collect();
    Searched { id: file.id.into(), folder: file.folder.unwrap_or_default(), path: file.path, modified, logs }
}

pub(super) fn file(session: &Searched) -> SessionFile {
    SessionFile::at(&session.path)
}

/// Opens a log.
pub(super) fn open(log: &Path) -> io::Result<Box<dyn Read>> {
    Ok(Box::new(open_regular(log)?))
}
