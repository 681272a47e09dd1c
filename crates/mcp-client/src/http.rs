//! Servers over HTTP: the streamable transport, and the older one with a stream of server-sent events.

mod client;
mod legacy;
mod streamable;

pub(crate) use client::HttpClient;
pub use client::McpHttpOptions;
pub(crate) use legacy::LegacyServer;
pub(crate) use streamable::StreamableServer;
