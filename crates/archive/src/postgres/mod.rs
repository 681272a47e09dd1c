//! An archive in a PostgreSQL database.
//!
//! The lines of logs and the chunks of other files are rows, byte for byte. Messages, tool calls and the
//! figures of model calls are derived from the lines when they are copied, so that search and usage run in
//! the database. A push copies some files per transaction; an interrupted one leaves the committed files.

mod connection;
mod copy_format;
mod derive;
mod file_copier;
mod line_batch;
mod location;
mod maintain;
mod push;
mod query;
mod read;
mod schema;
mod seal;
mod stored_file;
mod tls;

#[cfg(test)]
mod tests;

pub use location::PostgresLocation;

pub(crate) use connection::PostgresArchive;
