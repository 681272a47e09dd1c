//! Edits of logs in `testkit` notation, with the resulting lines.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clone;
mod compress;
mod corpus;
mod over_limit;
mod property;
mod redact;
mod repair;
mod strip;
mod support;
