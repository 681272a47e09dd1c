//! The servers of a session.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use threadline_cancel::CancelToken;
use threadline_tools::Tool as _;
use tokio::runtime::Builder;

use crate::config::{McpHttpKind, McpServerConfig, McpTransport};
use crate::connection::{self, OpenConnection};
use crate::exchange::{Exchange, ExchangeTransport};
use crate::http::{HttpClient, LegacyServer, McpHttpOptions, StreamableServer};
use crate::process::{ServerProcess, end_all};
use crate::program::{McpProgram, ProgramServer};
use crate::prompt::McpPromptInfo;
use crate::session::{Connection, ServerLink, Session};
use crate::tool::{McpTool, McpToolInfo};

/// Settings for all servers.
#[derive(Clone)]
pub struct McpOptions {
    /// The environment of the processes, without credentials.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder.
    pub cwd: PathBuf,
    /// How long a server may take to start and list its tools.
    pub connect_timeout: Duration,
    /// How long a call may take.
    pub call_timeout: Duration,
    /// Settings for servers over HTTP.
    pub http: McpHttpOptions,
    /// The program that has servers inside of it.
    pub program: Option<Arc<dyn McpProgram>>,
}

impl McpOptions {
    /// The time to connect, unless another one is set.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
    /// The time for a call, unless another one is set: more than a day.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(100_000);

    /// Returns the usual settings for servers that are started in a folder.
    #[must_use]
    pub fn new(cwd: PathBuf, environment: Vec<(OsString, OsString)>) -> Self {
        let user_agent = concat!("threadline/", env!("CARGO_PKG_VERSION")).to_owned();
        Self {
            environment,
            cwd,
            connect_timeout: Self::CONNECT_TIMEOUT,
            call_timeout: Self::CALL_TIMEOUT,
            http: McpHttpOptions { proxy: |_| None, ca_certificates: None, user_agent },
            program: None,
        }
    }
}

impl fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOptions").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// Whether a server can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerStatus {
    /// The name of the server.
    pub name: String,
    /// Why it cannot be used; `None` if it is connected.
    pub error: Option<String>,
    /// Whether it has resources.
    pub has_resources: bool,
}

/// The servers of a session. Clones share them; they end with the last clone.
#[derive(Clone, Default)]
pub struct McpServers {
    statuses: Arc<Vec<McpServerStatus>>,
    tools: Vec<Arc<McpToolInfo>>,
    prompts: Vec<Arc<McpPromptInfo>>,
    pub(crate) session: Option<Arc<Session>>,
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServers").field("statuses", &self.statuses).finish_non_exhaustive()
    }
}

/// A server after the attempt to connect.
enum Connected {
    Open(Box<OpenConnection>, ServerLink),
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
            let mut status = McpServerStatus { name: name.clone(), error: None, has_resources: false };
            match connected {
                Connected::Open(open, link) => {
                    servers.add_tools(&name, open.tools);
                    servers.prompts.extend(McpPromptInfo::of_server(&name, open.prompts).map(Arc::new));
                    status.has_resources = open.has_resources;
                    connections.push(Connection { name, service: open.service, link });
                }
                Connected::Failed(error, process) => {
                    failed.extend(process);
                    status.error = Some(error);
                }
            }
            statuses.push(status);
        }
        end_all(failed);
        servers.statuses = Arc::new(statuses);
        servers.session = Some(Arc::new(Session::new(runtime, options.call_timeout, connections)));
        servers
    }

    fn failed(configs: Vec<McpServerConfig>, error: &str) -> Self {
        let statuses = configs.into_iter().map(|config| McpServerStatus {
            name: config.name,
            error: Some(error.to_owned()),
            has_resources: false,
        });
        Self { statuses: Arc::new(statuses.collect()), ..Self::default() }
    }

    fn add_tools(&mut self, server: &str, tools: Vec<rmcp::model::Tool>) {
        for tool in tools.into_iter().filter_map(|tool| McpToolInfo::new(server, tool)) {
            if self.tool(&tool.full_name).is_none() {
                self.tools.push(Arc::new(tool));
            }
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

    /// Returns the descriptions of the tools.
    pub fn tool_infos(&self) -> impl Iterator<Item = &McpToolInfo> {
        self.tools.iter().map(|tool| &**tool)
    }

    /// Returns a tool by its full name.
    #[must_use]
    pub fn tool(&self, full_name: &str) -> Option<&McpToolInfo> {
        self.tool_infos().find(|tool| tool.full_name == full_name)
    }

    /// Calls a tool by its full name, and returns the text of its result.
    ///
    /// # Errors
    ///
    /// The reason if there is no such tool, or if it failed.
    pub fn call_tool(
        &self,
        full_name: &str,
        input: &RawValue,
        cancel: &CancelToken,
    ) -> Result<String, String> {
        let tool = self.tools().find(|tool| tool.name() == full_name);
        let result = tool.ok_or_else(|| format!("there is no tool {full_name}"))?.call(input, cancel)?;
        let texts = result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str()));
        let text = texts.collect::<Vec<_>>().join("\n");
        if result.is_error == Some(true) { Err(text) } else { Ok(text) }
    }

    /// Returns the prompts of all connected servers.
    pub fn prompts(&self) -> impl Iterator<Item = &McpPromptInfo> {
        self.prompts.iter().map(|prompt| &**prompt)
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
        transport => {
            return match exchange(config.name, transport, &options) {
                Ok(exchange) => connect_exchange(exchange, &options, &cancel).await,
                Err(reason) => Connected::Failed(reason, None),
            };
        }
    };
    let env = env.into_iter().map(|(name, value)| (name.into(), value.into()));
    let environment = options.environment.iter().cloned().chain(env);
    let (mut process, streams) = match ServerProcess::start(&command, &args, environment, &options.cwd) {
        Ok(started) => started,
        Err(error) => return Connected::Failed(format!("cannot start `{command}`: {error}"), None),
    };
    let opened = tokio::time::timeout(options.connect_timeout, connection::open(streams));
    let error = match connection::until_cancelled(&cancel, opened).await {
        Some(Ok(Ok(open))) => return Connected::Open(Box::new(open), ServerLink::Process(process)),
        Some(Ok(Err(error))) => match process.last_error_line().await {
            Some(line) => format!("{error} ({line})"),
            None => error,
        },
        Some(Err(_)) => no_answer(&options),
        None => "interrupted".to_owned(),
    };
    Connected::Failed(error, Some(process))
}

/// Returns the way to a server that is not a child process.
fn exchange(
    name: String,
    transport: McpTransport,
    options: &McpOptions,
) -> Result<Arc<dyn Exchange>, String> {
    match transport {
        McpTransport::Http { url, headers, kind } => {
            let client = HttpClient::new(&url, &headers, &options.http, options.connect_timeout)?;
            Ok(match kind {
                McpHttpKind::Streamable => Arc::new(StreamableServer::new(client)),
                McpHttpKind::ServerSentEvents => Arc::new(LegacyServer::new(client)),
            })
        }
        McpTransport::Program => {
            let program = options.program.clone();
            let program = program.ok_or("no program drives the session, so that it can have no servers")?;
            Ok(Arc::new(ProgramServer::new(name, program)))
        }
        McpTransport::Unusable(reason) => Err(reason),
        McpTransport::Stdio { .. } => Err("it is a process".to_owned()),
    }
}

async fn connect_exchange(
    exchange: Arc<dyn Exchange>,
    options: &McpOptions,
    cancel: &CancelToken,
) -> Connected {
    let transport = ExchangeTransport::new(Arc::clone(&exchange));
    let opened = tokio::time::timeout(options.connect_timeout, connection::open(transport));
    let error = match connection::until_cancelled(cancel, opened).await {
        Some(Ok(Ok(open))) => return Connected::Open(Box::new(open), ServerLink::Exchange(exchange)),
        Some(Ok(Err(error))) => error,
        Some(Err(_)) => no_answer(options),
        None => "interrupted".to_owned(),
    };
    Connected::Failed(error, None)
}

fn no_answer(options: &McpOptions) -> String {
    format!("no answer within {} ms", options.connect_timeout.as_millis())
}
