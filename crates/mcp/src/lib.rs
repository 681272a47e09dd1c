//! MCP servers of the client: programs that offer tools over the Model Context Protocol.
//!
//! [`McpServers::connect`] starts the servers of a session at the same time. Each tool of a server is a
//! [`McpTool`]. The connections run on one thread of this crate; all functions here block.
//!
//! A server that cannot be started, dies or does not answer costs only its own calls.

mod config;
mod connection;
mod content;
mod process;
mod servers;
mod tool;

pub use config::{McpConfigError, McpServerConfig, McpTransport, parse_servers};
pub use servers::{McpOptions, McpServerStatus, McpServers};
pub use tool::{McpTool, McpToolInfo, display_name};
