//! Tests with servers that are shell scripts.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests fail with a panic")]

mod http;
mod http_server;
mod program;
mod resources;
mod servers;
