//! Integration tests, through the public API.

#![allow(clippy::unwrap_used, reason = "tests say what they expect by failing")]

mod corpus;
mod docs;
mod fault;
mod langfuse;

mod receiver;
mod render;
mod session;
mod spans;
