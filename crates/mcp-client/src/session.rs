//! The connections of a session.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::service::ServiceError;
use threadline_cancel::CancelToken;
use tokio::runtime::Runtime;

use crate::connection::{self, RequestError, ServerPeer, Service};
use crate::exchange::Exchange;
use crate::process::{ServerProcess, end_all};

/// The connections of a session. They end when it is dropped.
pub(crate) struct Session {
    runtime: Option<Runtime>,
    call_timeout: Duration,
    connections: Mutex<Vec<Connection>>,
}

/// A connection to a server.
pub(crate) struct Connection {
    pub(crate) name: String,
    pub(crate) service: Service,
    pub(crate) link: ServerLink,
}

/// The other end of a connection.
pub(crate) enum ServerLink {
    /// A child process.
    Process(ServerProcess),
    /// A server that runs elsewhere.
    Exchange(Arc<dyn Exchange>),
}

impl Session {
    pub(crate) fn new(runtime: Runtime, call_timeout: Duration, connections: Vec<Connection>) -> Self {
        Self { runtime: Some(runtime), call_timeout, connections: Mutex::new(connections) }
    }

    /// Sends a request to a server and blocks until it has a result.
    pub(crate) fn request<T, F: Future<Output = Result<T, ServiceError>>>(
        &self,
        server: &str,
        cancel: &CancelToken,
        request: impl FnOnce(ServerPeer) -> F,
    ) -> Result<T, RequestError> {
        let connections = self.connections.lock();
        let connection = connections.iter().find(|connection| connection.name == server);
        let peer = connection.map(|connection| connection.service.peer().clone());
        drop(connections);
        let (Some(peer), Some(runtime)) = (peer, &self.runtime) else {
            return Err(RequestError::new(connection::CLOSED));
        };
        connection::request(runtime.handle(), request(peer), cancel, self.call_timeout)
    }

    /// Ends all connections. Later requests fail.
    pub(crate) fn end(&self) {
        let connections = std::mem::take(&mut *self.connections.lock());
        let mut processes = Vec::new();
        std::thread::scope(|scope| {
            for connection in connections {
                // Closes the input of a process.
                drop(connection.service);
                match connection.link {
                    ServerLink::Process(process) => processes.push(process),
                    ServerLink::Exchange(exchange) => {
                        scope.spawn(move || exchange.close());
                    }
                }
            }
            end_all(processes);
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
