//! Usage, messages, tool calls and turns as Parquet tables, for DuckDB, ClickHouse, Spark and others.
//!
//! [`write_tables`] writes each table as one file per day (UTC), to a folder or to object storage:
//! `usage/day=2026-11-16/data.parquet`. A file is replaced as a whole, so readers see the old or the new one,
//! and running it again gives the same files. [`TableKind::schema`] returns the columns.

#![warn(missing_docs)]

mod export;
mod partition;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

pub use export::{SessionOrigin, TablesError, TablesOptions, TablesReport, write_tables};
pub use schema::TableKind;
