//! A connection to one server.

use std::future::Future;
use std::time::Duration;

use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams, Prompt, Tool};
use rmcp::serve_client;
use rmcp::service::{ClientInitializeError, Peer, RoleClient, RunningService, ServiceError};
use rmcp::transport::IntoTransport;
use threadline_cancel::CancelToken;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::listing;

/// The service of a connection. Dropping it closes the connection.
pub(crate) type Service = RunningService<RoleClient, InitializeRequestParams>;

/// A connection, and the lists of the server.
pub(crate) struct OpenConnection {
    pub(crate) service: Service,
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) has_resources: bool,
}

/// Says hello to a server and lists its tools and prompts.
pub(crate) async fn open<T, E, A>(transport: T) -> Result<OpenConnection, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let client = Implementation::new("threadline", env!("CARGO_PKG_VERSION"));
    let params = InitializeRequestParams::new(ClientCapabilities::default(), client);
    let service = serve_client(params, transport).await.map_err(|error| start_error_text(&error))?;
    let capabilities = service.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
    let mut tools = Vec::new();
    if capabilities.tools.is_some() {
        tools = listing::list_tools(&service).await.map_err(|error| error_text(&error))?;
    }
    let mut prompts = Vec::new();
    if capabilities.prompts.is_some() {
        // The tools of a server can be used without its prompts.
        prompts = listing::list_prompts(&service).await.unwrap_or_default();
    }
    Ok(OpenConnection { service, tools, prompts, has_resources: capabilities.resources.is_some() })
}

/// The message for a server that is gone.
pub(crate) const CLOSED: &str = "MCP error -32000: Connection closed";

/// Sends a request and blocks until the result is available, the token is cancelled or the time is over.
/// Dropping the future of the request cancels it at the server.
///
/// # Errors
/// Returns the message for the model.
pub(crate) fn request<T, F: Future<Output = Result<T, ServiceError>>>(
    runtime: &Handle,
    request: F,
    cancel: &CancelToken,
    timeout: Duration,
) -> Result<T, RequestError> {
    let request = async {
        match tokio::time::timeout(timeout, request).await {
            Ok(result) => result.map_err(|error| RequestError::from(&error)),
            Err(_) => Err(RequestError::new("MCP error -32001: Request timed out")),
        }
    };
    // The agent replaces the results of a turn that was cancelled.
    let cancelled = || Err(RequestError::new("The call was cancelled"));
    runtime.block_on(until_cancelled(cancel, request)).unwrap_or_else(cancelled)
}

/// A request without a result.
pub(crate) struct RequestError {
    /// The message for the model.
    pub(crate) message: String,
    /// The number of an error of the server.
    pub(crate) code: Option<i32>,
}

impl RequestError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None }
    }
}

impl From<&ServiceError> for RequestError {
    fn from(error: &ServiceError) -> Self {
        let code = match error {
            ServiceError::McpError(error) => Some(error.code.0),
            _ => None,
        };
        Self { message: error_text(error), code }
    }
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
        ServiceError::UnexpectedResponse => {
            "MCP error -32603: the server asked for something that is not supported".to_owned()
        }
        error => format!("MCP error -32603: {error}"),
    }
}

/// The peer of a connection.
pub(crate) type ServerPeer = Peer<RoleClient>;
