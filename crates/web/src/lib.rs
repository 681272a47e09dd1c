//! The local HTTP server: pages, live updates, and the same content as JSON and Markdown.
//!
//! A [`Server`] reads sessions and shows them. Requests change nothing on disk, except the pins and tags in
//! threadline's state folder (`pages::labels`). A page is one file in `pages`: a function from a
//! `PageRequest` to a `PageResponse`. It runs on a blocking thread, so that a page that is slow or panics
//! does not affect others. `guard` checks every request before its page runs.

#![warn(missing_docs)]

mod change_notifier;
mod connection;
mod guard;
mod pages;
mod request;
mod response;
mod server;
mod state;
mod token_server;
mod watch;

pub use connection::ConnectionLimits;
pub use guard::AccessKeys;
pub use server::{Server, ServerOptions, StopHandle};
pub use token_server::TokenServer;
