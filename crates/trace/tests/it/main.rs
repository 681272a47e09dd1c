//! Integration tests, through the public API.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod corpus;
mod docs;
mod fault;
mod langfuse;

mod receiver;
mod render;
mod session;
mod spans;
