//! A connection to one server.

use std::future::Future;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, Implementation,
};
use rmcp::model::{InitializeRequestParams, JsonObject};
use rmcp::serve_client;
use rmcp::service::{ClientInitializeError, Peer, RoleClient, RunningService, ServiceError};
use threadline_cancel::CancelToken;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::process::Streams;

/// The service of a connection. Dropping it closes the connection.
pub(crate) type Service = RunningService<RoleClient, InitializeRequestParams>;

/// Says hello to a server and lists its tools.
pub(crate) async fn open(streams: Streams) -> Result<(Service, Vec<rmcp::model::Tool>), String> {
    let client = Implementation::new("threadline", env!("CARGO_PKG_VERSION"));
    let params = InitializeRequestParams::new(ClientCapabilities::default(), client);
    let service = serve_client(params, streams).await.map_err(|error| start_error_text(&error))?;
    let has_tools = service.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
    let tools = if has_tools {
        service.list_all_tools().await.map_err(|error| error_text(&error))?
    } else {
        Vec::new()
    };
    Ok((service, tools))
}

/// The message for a server that is gone.
pub(crate) const CLOSED: &str = "MCP error -32000: Connection closed";

/// Calls a tool and blocks until the result is available, the token is cancelled or the time is over.
///
/// # Errors
/// Returns the message for the model.
pub(crate) fn call(
    runtime: &Handle,
    peer: &Peer<RoleClient>,
    (tool, arguments): (&str, JsonObject),
    cancel: &CancelToken,
    timeout: Duration,
) -> Result<CallToolResult, String> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let call = async {
        match tokio::time::timeout(timeout, peer.call_tool_once(params)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => Ok(result),
            Ok(Ok(_)) => {
                Err("MCP error -32603: the server asked for something that is not supported".to_owned())
            }
            Ok(Err(error)) => Err(error_text(&error)),
            Err(_) => Err("MCP error -32001: Request timed out".to_owned()),
        }
    };
    // The agent replaces the results of a turn that was cancelled.
    let cancelled = || Err("The call was cancelled".to_owned());
    runtime.block_on(until_cancelled(cancel, call)).unwrap_or_else(cancelled)
}

/// Returns the value of a future; `None` if the token is cancelled first.
pub(crate) async fn until_cancelled<T>(cancel: &CancelToken, future: impl Future<Output = T>) -> Option<T> {
    let (sender, cancelled) = oneshot::channel::<()>();
    let _guard = cancel.on_cancel(move || {
        // The receiver is gone if the value came first.
        let _ = sender.send(());
    });
    tokio::select! {
        biased;
        Ok(()) = cancelled => None,
        value = future => Some(value),
    }
}

fn start_error_text(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            "the server closed the connection".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("MCP error {}: {}", error.code.0, error.message)
        }
        error => error.to_string(),
    }
}

fn error_text(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("MCP error {}: {}", error.code.0, error.message),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => CLOSED.to_owned(),
        error => format!("MCP error -32603: {error}"),
    }
}
