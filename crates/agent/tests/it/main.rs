//! Tests of the loop against the scripted API.

mod faults;
mod harness;
mod turns;
