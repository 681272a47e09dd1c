//! Tests of view data, from small logs and from real ones.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cards;
mod changes;
mod samples;
mod spending;
mod transcript;
