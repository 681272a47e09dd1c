//! MCP servers of the client: programs that offer tools, resources and prompts over the Model Context
//! Protocol.
//!
//! [`McpServers::connect`] starts the servers of a session at the same time: as processes, over HTTP, or
//! inside of the program that drives the session. Each tool of a server is a [`McpTool`]. The connections
//! run on one thread of this crate; all functions here block.
//!
//! A server that cannot be started, dies or does not answer costs only its own calls.

mod config;
mod connection;
mod content;
mod exchange;
mod http;
mod listing;
mod process;
mod program;
mod prompt;
mod resource;
mod servers;
mod session;
mod tool;

pub use config::{McpConfigError, McpHttpKind, McpServerConfig, McpTransport, parse_servers};
pub use http::McpHttpOptions;
pub use program::{McpMessageSink, McpProgram};
pub use prompt::McpPromptInfo;
pub use resource::{ListResources, ReadResource};
pub use servers::{McpOptions, McpServerStatus, McpServers};
pub use tool::{McpTool, McpToolInfo, display_name};
