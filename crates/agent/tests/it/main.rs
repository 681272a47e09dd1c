//! Tests of the loop against the scripted API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod compaction;
#[cfg(unix)]
mod failing_parts;
mod faults;
mod harness;
#[cfg(unix)]
mod hooks;
#[cfg(unix)]
mod interactive;
#[cfg(unix)]
mod mcp;
mod questions;
mod resume;
mod sub_agents;
#[cfg(unix)]
mod turn_input;
mod turns;
