//! Tests of the rendering of view data as terminal text.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod corpus;
mod property;
mod samples;
