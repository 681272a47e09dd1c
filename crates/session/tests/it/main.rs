//! Tests of the session model: notation in, text out.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod agent;
mod compaction;
mod finding;
mod hygiene;
mod input;
mod lineage;
mod property;
mod render;
mod replay_path;
mod replay_version;
mod reply;
mod soundness;
mod structure;
mod tool_call;
mod truth;
