//! The server over streamable HTTP, on this machine.

use std::io;
use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use threadline_web::TokenServer;

use crate::server::HistoryServer;

/// The path of the endpoint.
pub const HTTP_PATH: &str = "/mcp";

/// Serves clients over streamable HTTP at [`HTTP_PATH`] until interrupted by Ctrl-C.
///
/// There are no sessions of the protocol: every request is answered by itself.
///
/// # Errors
///
/// If the listening socket cannot be registered.
pub fn serve_http(listener: TokenServer, server: HistoryServer) -> io::Result<()> {
    listener.run(move || {
        let mut config = StreamableHttpServerConfig::default();
        config.legacy_session_mode = false;
        config.json_response = true;
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        Router::new().route_service(HTTP_PATH, service)
    })
}
