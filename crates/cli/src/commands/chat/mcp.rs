//! MCP servers of a chat: their configuration, and their start.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use threadline_agent::{AgentConfig, AgentPaths};
use threadline_cancel::CancelToken;
use threadline_mcp_client::{McpOptions, McpProgram, McpServerConfig, McpServers, parse_servers};
use threadline_settings::{SettingsStack, config_file};
use threadline_term::text;

use super::config::{CREDENTIALS, ca_certificates, number, proxy};
use super::{ChatArgs, ChatError};
use crate::context::Context;
use crate::error::CommandError;
use crate::{env, ui};

/// The servers of a chat, which are not started yet.
pub(super) struct McpSetup {
    servers: Vec<McpServerConfig>,
    connect_timeout: Duration,
    call_timeout: Duration,
    ca_certificates: Option<Vec<u8>>,
}

/// The part of Claude Code's state file with the servers of the user.
#[derive(serde::Deserialize)]
struct StateFile {
    #[serde(default, rename = "mcpServers")]
    servers: Option<Box<RawValue>>,
    #[serde(default)]
    projects: std::collections::BTreeMap<String, ProjectState>,
}

#[derive(serde::Deserialize)]
struct ProjectState {
    #[serde(default, rename = "mcpServers")]
    servers: Option<Box<RawValue>>,
}

impl McpSetup {
    /// Reads the configuration of the user, the project and the flags; later ones replace earlier ones of the
    /// same name.
    pub(super) fn read(
        cx: &Context,
        args: &ChatArgs,
        settings: &SettingsStack,
        paths: &AgentPaths,
    ) -> Result<Self, ChatError> {
        let timeout = |variable, default| {
            Ok::<_, CommandError>(number(variable)?.map_or(default, Duration::from_millis))
        };
        let mut setup = Self {
            servers: Vec::new(),
            connect_timeout: timeout(env::MCP_TIMEOUT, McpOptions::CONNECT_TIMEOUT)?,
            call_timeout: timeout(env::MCP_TOOL_TIMEOUT, McpOptions::CALL_TIMEOUT)?,
            ca_certificates: ca_certificates()?,
        };
        if cx.is_demo {
            return Ok(setup);
        }
        if !args.strict_mcp_config {
            setup.add_files(settings, paths);
        }
        for value in &args.mcp_config {
            match flag_servers(value) {
                Ok(servers) => setup.add(servers),
                Err(reason) => {
                    return Err(ChatError::refused(format!("Error: Invalid MCP configuration:\n{reason}")));
                }
            }
        }
        Ok(setup)
    }

    /// Adds the servers of the user's state file and of `.mcp.json`. A file that is not valid is reported.
    fn add_files(&mut self, settings: &SettingsStack, paths: &AgentPaths) {
        let state = config_file(&paths.claude_home, paths.user_home.as_deref());
        let (user, local) = state_servers(&state, &paths.cwd);
        self.add(user);
        let project = paths.cwd.join(".mcp.json");
        if settings.is_trusted()
            && let Ok(text) = threadline_settings::read_text(&project)
        {
            // A project may not send our credentials to its servers.
            let variable = |name: &str| env::get(name).filter(|_| !CREDENTIALS.contains(&name));
            match parse_servers(&text, &variable) {
                Ok(mut servers) => {
                    servers.retain(|server| settings.is_project_server_enabled(&server.name) == Some(true));
                    self.add(servers);
                }
                Err(error) => {
                    report(&format!("cannot use the MCP servers in `{}`: {error}", project.display()))
                }
            }
        }
        self.add(local);
    }

    /// Adds servers, which replace others of the same name.
    pub(super) fn add(&mut self, servers: Vec<McpServerConfig>) {
        for server in servers {
            self.servers.retain(|other| other.name != server.name);
            self.servers.push(server);
        }
    }

    /// Starts the servers.
    pub(super) fn start(
        &self,
        agent: &AgentConfig,
        program: Option<Arc<dyn McpProgram>>,
        cancel: &CancelToken,
    ) -> McpServers {
        let mut options = McpOptions::new(agent.paths.cwd.clone(), agent.environment.clone());
        options.connect_timeout = self.connect_timeout;
        options.call_timeout = self.call_timeout;
        options.http.proxy = proxy;
        options.http.ca_certificates = self.ca_certificates.clone();
        options.program = program;
        McpServers::connect(self.servers.clone(), &options, cancel)
    }

    /// Starts the servers. Those that cannot be used are reported.
    pub(super) fn connect(
        &self,
        agent: &AgentConfig,
        program: Option<Arc<dyn McpProgram>>,
        cancel: &CancelToken,
    ) -> McpServers {
        let servers = self.start(agent, program, cancel);
        for status in servers.statuses() {
            if let Some(error) = &status.error {
                report(&format!("cannot use the MCP server `{}`: {error}", status.name));
            }
        }
        servers
    }
}

/// Returns the servers of a value of `--mcp-config`.
fn flag_servers(value: &str) -> Result<Vec<McpServerConfig>, String> {
    if value.trim_start().starts_with('{') {
        return parse_servers(value, &env::get).map_err(|error| error.to_string());
    }
    let text = std::fs::read_to_string(value).map_err(|error| format!("cannot read `{value}`: {error}"))?;
    parse_servers(&text, &env::get).map_err(|error| format!("`{value}`: {error}"))
}

/// Returns the servers that the user added for all projects, and those for this one.
fn state_servers(file: &Path, cwd: &Path) -> (Vec<McpServerConfig>, Vec<McpServerConfig>) {
    let Ok(text) = threadline_settings::read_text(file) else { return Default::default() };
    let Ok(mut state) = serde_json::from_str::<StateFile>(&text) else { return Default::default() };
    let parse = |servers: Option<Box<RawValue>>| {
        let Some(servers) = servers else { return Vec::new() };
        let parsed = parse_servers(&format!("{{\"mcpServers\":{servers}}}"), &env::get);
        parsed.unwrap_or_else(|error| {
            report(&format!("cannot use the MCP servers in `{}`: {error}", file.display()));
            Vec::new()
        })
    };
    let local = cwd.to_str().and_then(|cwd| state.projects.remove(cwd));
    (parse(state.servers), parse(local.and_then(|project| project.servers)))
}

fn report(message: &str) {
    ui::write_stderr(&text!("{message}\n"));
}
