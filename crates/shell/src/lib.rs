//! Shell commands as text: parsed, never run.
//!
//! [`command_line::parse`] (feature `command-line`) takes a command apart for a check before it runs: simple
//! commands, their words and redirections. It knows a closed list of syntax, and reports everything else.

#[cfg(feature = "command-line")]
pub mod command_line;
