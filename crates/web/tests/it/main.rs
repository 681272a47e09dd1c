//! The server from outside: asked over loopback, as a browser or an attacker would.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod guard;
mod lists;
mod pages;
mod support;
