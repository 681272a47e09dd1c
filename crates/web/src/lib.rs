//! The local HTTP server: pages, live updates, JSON twins.
//!
//! A [`Server`] reads sessions and shows them; no request changes anything on disk. A page is one file in `pages`:
//! a plain function from an `Ask` to an `Answer`, run apart from the tasks that talk
//! to clients, so that a page that takes long or panics costs the others nothing. Who may ask is decided in
//! `guard` alone, before any page is looked for.

#![warn(missing_docs)]

mod answer;
mod ask;
mod cards;
mod connection;
mod counter;
mod guard;
mod held;
mod log;
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
