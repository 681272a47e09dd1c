//! Tests of the server from outside, over loopback, as a browser or an attacker would use it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod browser;
mod browser_files;
mod browser_labels;
mod browser_layout;
mod browser_lists;
mod browser_navigation;
mod browser_overview;
mod browser_reader;
mod connection;
mod guard;
mod lists;
mod masking;
mod pages;
mod session;
mod support;
