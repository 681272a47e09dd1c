//! Pages and fragments: notation in, markup out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "a test that does nothing should say so")]

mod browser;
mod card;
mod corpus;
mod hostile;
mod page;
mod samples;
mod support;
