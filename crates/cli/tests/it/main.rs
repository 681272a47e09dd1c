//! Tests of the binary: arguments in, streams and exit code out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod acp;
mod archive;
#[cfg(unix)]
mod archive_postgres;
mod blame;
mod chat;
mod check;
mod compare;
mod compress;
mod config;
mod context;
mod control;
mod corpus;
mod docs;
mod edit;
mod export;
mod figures;
#[cfg(unix)]
mod guide;
mod inspect;
mod kill;
mod layers;
mod list;
mod masking;
mod mcp;
mod names;
mod other_writer;
mod overview;
#[cfg(unix)]
mod path_safety;
#[cfg(unix)]
mod pty;
mod readme;
mod redact;
mod repair;
mod replay;
mod restore;
mod run;
#[cfg(unix)]
mod screen;
mod search;
mod serve;
mod setup;
mod show;
mod stress;
mod tag;
mod trace;
mod usage;
