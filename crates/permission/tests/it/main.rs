//! Decisions about hostile calls and their harmless counterparts.

mod cases;
mod security;
