//! The servers of a session.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{CallToolResult, JsonObject, Tool as ServerTool};
use serde_json::value::{RawValue, to_raw_value};
use threadline_cancel::CancelToken;
use tokio::runtime::{Builder, Runtime};

use crate::config::{McpServerConfig, McpTransport};
use crate::connection::{self, Service};
use crate::process::{ServerProcess, end_all};
use crate::tool::{McpTool, McpToolInfo, full_name};

/// Settings for all servers.
#[derive(Clone, Debug)]
pub struct McpOptions {
    /// The environment of the processes, without credentials.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder.
    pub cwd: PathBuf,
    /// How long a server may take to start and list its tools.
    pub connect_timeout: Duration,
    /// How long a call may take.
    pub call_timeout: Duration,
}

impl McpOptions {
    /// The time to connect, unless another one is set.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
    /// The time for a call, unless another one is set: more than a day.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(100_000);
}

/// Whether a server can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerStatus {
    /// The name of the server.
    pub name: String,
    /// Why it cannot be used; `None` if it is connected.
    pub error: Option<String>,
}

/// The servers of a session. Clones share them; they end with the last clone.
#[derive(Clone, Default)]
pub struct McpServers {
    statuses: Arc<Vec<McpServerStatus>>,
    tools: Vec<Arc<McpToolInfo>>,
    session: Option<Arc<Session>>,
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServers").field("statuses", &self.statuses).finish_non_exhaustive()
    }
}

/// The connections of a session.
pub(crate) struct Session {
    runtime: Option<Runtime>,
    call_timeout: Duration,
    connections: Mutex<Vec<Connection>>,
}

struct Connection {
    name: String,
    service: Service,
    process: ServerProcess,
}

/// A server after the attempt to connect.
enum Connected {
    Open(Box<(Service, ServerProcess, Vec<ServerTool>)>),
    Failed(String, Option<ServerProcess>),
}

impl McpServers {
    /// Starts servers at the same time, and waits until each is connected or has failed.
    #[must_use]
    pub fn connect(configs: Vec<McpServerConfig>, options: &McpOptions, cancel: &CancelToken) -> Self {
        if configs.is_empty() {
            return Self::default();
        }
        let builder = Builder::new_multi_thread().worker_threads(1).thread_name("mcp").enable_all().build();
        let runtime = match builder {
            Ok(runtime) => runtime,
            Err(error) => return Self::failed(configs, &error.to_string()),
        };
        let starts: Vec<_> = configs
            .into_iter()
            .map(|config| {
                (config.name.clone(), runtime.spawn(connect_one(config, options.clone(), cancel.clone())))
            })
            .collect();
        let mut servers = Self::default();
        let (mut statuses, mut connections, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (name, start) in starts {
            let connected =
                runtime.block_on(start).unwrap_or_else(|error| Connected::Failed(error.to_string(), None));
            let error = match connected {
                Connected::Open(open) => {
                    let (service, process, tools) = *open;
                    servers.add_tools(&name, tools);
                    connections.push(Connection { name: name.clone(), service, process });
                    None
                }
                Connected::Failed(error, process) => {
                    failed.extend(process);
                    Some(error)
                }
            };
            statuses.push(McpServerStatus { name, error });
        }
        end_all(failed);
        servers.statuses = Arc::new(statuses);
        servers.session = Some(Arc::new(Session {
            runtime: Some(runtime),
            call_timeout: options.call_timeout,
            connections: Mutex::new(connections),
        }));
        servers
    }

    fn failed(configs: Vec<McpServerConfig>, error: &str) -> Self {
        let statuses = configs
            .into_iter()
            .map(|config| McpServerStatus { name: config.name, error: Some(error.to_owned()) });
        Self { statuses: Arc::new(statuses.collect()), ..Self::default() }
    }

    fn add_tools(&mut self, server: &str, tools: Vec<ServerTool>) {
        for tool in tools {
            let full_name = full_name(server, &tool.name);
            if self.tool(&full_name).is_some() {
                continue;
            }
            let annotations = tool.annotations.as_ref();
            let title = tool.title.clone().or_else(|| annotations?.title.clone());
            self.tools.push(Arc::new(McpToolInfo {
                full_name,
                server: server.to_owned(),
                title,
                description: tool.description.unwrap_or_default().into_owned(),
                input_schema: to_raw_value(&*tool.input_schema).unwrap_or_else(|_| RawValue::NULL.to_owned()),
                is_read_only: annotations.and_then(|hints| hints.read_only_hint).unwrap_or_default(),
                tool: tool.name.into_owned(),
            }));
        }
    }

    /// Returns the servers in the order of their configuration.
    #[must_use]
    pub fn statuses(&self) -> &[McpServerStatus] {
        &self.statuses
    }

    /// Returns the tools of all connected servers, for the model.
    pub fn tools(&self) -> impl Iterator<Item = McpTool> {
        let session = self.session.iter();
        session.flat_map(|session| {
            self.tools.iter().map(|info| McpTool::new(Arc::clone(info), Arc::clone(session)))
        })
    }

    /// Returns a tool by its full name.
    #[must_use]
    pub fn tool(&self, full_name: &str) -> Option<&McpToolInfo> {
        self.tools.iter().find(|tool| tool.full_name == full_name).map(|tool| &**tool)
    }

    /// Ends all servers. Later calls of their tools fail.
    pub fn end(&self) {
        if let Some(session) = &self.session {
            session.end();
        }
    }
}

async fn connect_one(config: McpServerConfig, options: McpOptions, cancel: CancelToken) -> Connected {
    let (command, args, env) = match config.transport {
        McpTransport::Stdio { command, args, env } => (command, args, env),
        McpTransport::Unusable(reason) => return Connected::Failed(reason, None),
    };
    let env = env.into_iter().map(|(name, value)| (name.into(), value.into()));
    let environment = options.environment.iter().cloned().chain(env);
    let (mut process, streams) = match ServerProcess::start(&command, &args, environment, &options.cwd) {
        Ok(started) => started,
        Err(error) => return Connected::Failed(format!("cannot start `{command}`: {error}"), None),
    };
    let opened = tokio::time::timeout(options.connect_timeout, connection::open(streams));
    let error = match connection::until_cancelled(&cancel, opened).await {
        Some(Ok(Ok((service, tools)))) => return Connected::Open(Box::new((service, process, tools))),
        Some(Ok(Err(error))) => match process.last_error_line().await {
            Some(line) => format!("{error} ({line})"),
            None => error,
        },
        Some(Err(_)) => format!("no answer within {} ms", options.connect_timeout.as_millis()),
        None => "interrupted".to_owned(),
    };
    Connected::Failed(error, Some(process))
}

impl Session {
    /// Calls a tool and blocks until it has a result.
    ///
    /// # Errors
    /// Returns the message for the model.
    pub(crate) fn call(
        &self,
        tool: &McpToolInfo,
        input: &RawValue,
        cancel: &CancelToken,
    ) -> Result<CallToolResult, String> {
        let arguments: JsonObject = serde_json::from_str(input.get())
            .map_err(|error| format!("The input is not an object: {error}"))?;
        let connections = lock(&self.connections);
        let connection = connections.iter().find(|connection| connection.name == tool.server);
        let peer = connection.map(|connection| connection.service.peer().clone());
        drop(connections);
        let (Some(peer), Some(runtime)) = (peer, &self.runtime) else {
            return Err(connection::CLOSED.to_owned());
        };
        connection::call(runtime.handle(), &peer, (&tool.tool, arguments), cancel, self.call_timeout)
    }

    fn end(&self) {
        let connections = std::mem::take(&mut *lock(&self.connections));
        let processes = connections.into_iter().map(|connection| {
            // Closes the input of the process.
            drop(connection.service);
            connection.process
        });
        end_all(processes.collect());
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
