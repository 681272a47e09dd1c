//! The local HTTP server: pages, live updates, and the same content as JSON and Markdown.
//!
//! A [`Server`] reads sessions and shows them; no request changes anything on disk. A page is one file in
//! `pages`: a function from an `Ask` to an `Answer`. It runs on a blocking thread, so that a page that is
//! slow or panics does not affect others. `guard` checks every request before its page runs.

#![warn(missing_docs)]

mod answer;
mod ask;
mod connection;
mod guard;
mod held;
mod news;
mod pages;
mod plan;
mod server;
mod shelf;
mod state;
mod watch;

pub use connection::Limits;
pub use guard::Keys;
pub use server::{Options, Server, Stop};
