//! Decisions about hostile calls and their harmless counterparts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![cfg(unix)]

mod cases;
mod security;
