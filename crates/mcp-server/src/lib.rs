//! The sessions as an MCP server: tools that search, list and read them, sessions as resources, prompts.
//!
//! A [`HistoryServer`] answers the requests of clients; [`serve_stdio`] connects it to the standard streams
//! of the process, [`serve_http`] to a port of this machine. The server is read-only. It answers about the
//! sessions of one [`ProjectScope`](threadline_app::ProjectScope), masks secrets if the configuration of its
//! application requires it, and shows control characters of logs as visible text.
//!
//! Every answer fits a budget of tokens, ends between two items, and contains a cursor if there is more. Each
//! item names its source, such as `3f2a…#m42`.
//!
//! The protocol is that of `rmcp`. Requests run on blocking threads.

#![warn(missing_docs)]

mod answer;
mod budget;
mod call;
mod completion;
mod error;
mod history;
mod http;
mod prompt;
mod resource;
mod server;
mod stdio;
#[cfg(test)]
mod tests;
mod tool;
mod tools;

pub use history::HistoryOptions;
pub use http::{HTTP_PATH, serve_http};
pub use server::HistoryServer;
pub use stdio::serve_stdio;
pub use tool::tool_names;
