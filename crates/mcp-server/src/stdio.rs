//! The server on the standard streams of the process.

use std::io;

use rmcp::service::serve_server;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::server::HistoryServer;

/// Serves one client on stdin and stdout until it closes stdin. Nothing else may write to stdout.
///
/// # Errors
///
/// If the runtime cannot be started, or the client does not follow the protocol at the start.
pub fn serve_stdio(server: HistoryServer) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("mcp-server")
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(server, tokio::io::stdin(), tokio::io::stdout()));
    // A thread may still wait for input.
    runtime.shutdown_background();
    served
}

/// Serves one client until it closes its end.
pub(crate) async fn serve(
    server: HistoryServer,
    input: impl AsyncRead + Send + Sync + Unpin + 'static,
    output: impl AsyncWrite + Send + Sync + Unpin + 'static,
) -> io::Result<()> {
    use rmcp::service::ServerInitializeError;
    let running = match serve_server(server, (input, output)).await {
        Ok(running) => running,
        // The client went away before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    running.waiting().await.map(|_| ()).map_err(io::Error::other)
}
