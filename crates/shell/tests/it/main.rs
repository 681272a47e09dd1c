//! Effects of commands, compared with expectations and with the programs that run them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod apply;
mod bash;
mod hostile;
mod random;
mod sed;
mod table;
