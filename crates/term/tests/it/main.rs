//! View data of real sessions as terminal text.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod corpus;
