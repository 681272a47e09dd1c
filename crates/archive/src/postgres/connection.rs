//! The connection to the database.

use std::error::Error as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use postgres::error::SqlState;
use postgres::{Client, NoTls};

use crate::archive::StorageOptions;
use crate::error::ArchiveError;
use crate::postgres::location::PostgresLocation;
use crate::postgres::schema;
use crate::postgres::tls::RustlsConnector;

/// An archive in a database.
pub(crate) struct PostgresArchive {
    pub(super) location: PostgresLocation,
    options: StorageOptions,
    client: Mutex<Option<Client>>,
}

/// A server that has no free connection, or is starting, is tried again for this long.
const CONNECT_ATTEMPTS: Duration = Duration::from_secs(60);

/// The first pause between two attempts; the following ones are longer.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

impl PostgresArchive {
    /// Connects to the database. The tables are created if `create` is set.
    pub(crate) fn open(
        location: &PostgresLocation,
        options: &StorageOptions,
        create: bool,
    ) -> Result<Self, ArchiveError> {
        let archive = Self { location: location.clone(), options: options.clone(), client: Mutex::new(None) };
        schema::prepare(&mut archive.connect()?, create)?;
        Ok(archive)
    }

    /// Runs statements on the connection. It is opened again if it was lost.
    pub(super) fn run<T>(
        &self,
        statements: impl FnOnce(&mut Client) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let mut client = self.client.lock();
        if client.as_ref().is_none_or(Client::is_closed) {
            *client = Some(self.connect()?);
        }
        match client.as_mut() {
            Some(client) => statements(client),
            None => Err(ArchiveError::Busy),
        }
    }

    /// Opens a connection.
    fn connect(&self) -> Result<Client, ArchiveError> {
        let config = self.location.config(&self.options);
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let tls = match self.location.uses_tls() {
                true => Some(RustlsConnector::new(self.location.root_certificates.as_deref())?),
                false => None,
            };
            let config = config.clone();
            let connect = move || {
                let mut client = match tls {
                    Some(tls) => config.connect(tls)?,
                    None => config.connect(NoTls)?,
                };
                client.batch_execute(SETTINGS)?;
                Ok(client)
            };
            match answer_within(self.location.answer_timeout, connect) {
                None => return Err(silent()),
                Some(Ok(client)) => return Ok(client),
                Some(Err(error)) if is_busy(&error) && begun.elapsed() < CONNECT_ATTEMPTS => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Some(Err(error)) => return Err(database("connect to", &error)),
            }
        }
    }
}

/// Returns the result of a function; `None` if it takes longer than `limit`. The function then continues on
/// its own thread, and its result is dropped.
fn answer_within<T: Send + 'static>(
    limit: Duration,
    function: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(function()));
    receiver.recv_timeout(limit).ok()
}

fn silent() -> ArchiveError {
    let reason = "the server does not answer".to_owned();
    ArchiveError::Database { action: "connect to", reason, is_conflict: false }
}

/// A lock of another process is waited for, but not forever.
const SETTINGS: &str = "set lock_timeout = '60s'; set client_min_messages = 'warning'; set jit = off";

/// Returns whether the server has no free connection, or is starting or stopping.
fn is_busy(error: &postgres::Error) -> bool {
    let codes = [SqlState::TOO_MANY_CONNECTIONS, SqlState::CANNOT_CONNECT_NOW];
    error.code().is_some_and(|code| codes.contains(code))
}

/// Returns whether the statements can be repeated, because another process had changed the same rows.
pub(super) fn is_conflict(error: &ArchiveError) -> bool {
    matches!(error, ArchiveError::Database { is_conflict: true, .. })
}

/// Converts an error. The message contains the answer of the server, and nothing of the address.
pub(super) fn database(action: &'static str, error: &postgres::Error) -> ArchiveError {
    let reason = match error.as_db_error() {
        Some(answer) => match answer.detail() {
            Some(detail) => format!("{} ({detail})", answer.message()),
            None => answer.message().to_owned(),
        },
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    };
    let codes =
        [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::UNIQUE_VIOLATION];
    let is_conflict = error.code().is_some_and(|code| codes.contains(code));
    ArchiveError::Database { action, reason, is_conflict }
}

/// Converts errors of statements.
pub(super) trait DatabaseResult<T> {
    /// Names the action that failed, as a verb.
    fn action(self, action: &'static str) -> Result<T, ArchiveError>;
}

impl<T> DatabaseResult<T> for Result<T, postgres::Error> {
    fn action(self, action: &'static str) -> Result<T, ArchiveError> {
        self.map_err(|error| database(action, &error))
    }
}
