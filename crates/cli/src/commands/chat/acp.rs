//! The Agent Client Protocol on the standard streams, so that editors can use the client.
//!
//! This thread reads messages and answers at once. Each session runs on a thread of its own, which owns its
//! agent. The messages are written with [`RawObject`]: the crate of the protocol would change the order of
//! all other JSON in the binary (`preserve_order` of `serde_json`).

mod connection;
mod permission;
mod session;
mod translate;

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use threadline_api::RawObject;
use threadline_app::ListFilter;
use threadline_cancel::CancelToken;
use threadline_mcp_client::{McpHttpKind, McpServerConfig, McpTransport};
use threadline_permission::PermissionMode;

use self::connection::{Connection, ErrorCode, RpcError};
use self::session::{OpenedSession, SessionHandle, SessionOpening};
use super::config::ChatSetup;
use super::{ChatArgs, ChatError};
use crate::context::Context;
use crate::error::CommandError;

/// The version of the protocol.
const PROTOCOL_VERSION: u64 = 1;
/// The number of sessions in one page of a list.
const PAGE: usize = 100;

/// Answers the messages of an editor until it closes standard input.
pub(super) fn run(cx: &Context, args: &ChatArgs) -> Result<(), CommandError> {
    let cancel = CancelToken::new();
    super::cancel_on_signals(&cancel)?;
    let mut server =
        AcpServer { cx, args, connection: Arc::new(Connection::default()), sessions: HashMap::new(), cancel };
    let mut line = Vec::new();
    loop {
        line.clear();
        match std::io::stdin().lock().read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            server.receive(text.trim());
        }
    }
    server.connection.end();
    for (_, session) in server.sessions.drain() {
        session.close();
    }
    Ok(())
}

/// The agent's side of the protocol.
struct AcpServer<'a> {
    cx: &'a Context,
    args: &'a ChatArgs,
    connection: Arc<Connection>,
    sessions: HashMap<String, SessionHandle>,
    cancel: CancelToken,
}

/// The answer to a request; `None` if the session answers it later.
type Answer = Result<Option<RawObject>, RpcError>;

impl AcpServer<'_> {
    fn receive(&mut self, text: &str) {
        let Ok(message) = RawObject::parse(text) else {
            let error = RpcError::new(ErrorCode::Parse, "the message is not a JSON object");
            return self.connection.fail(RawValue::NULL, &error);
        };
        let id = message.get("id").filter(|id| id.get() != "null").map(ToOwned::to_owned);
        let Some(method) = message.get_str("method") else {
            if let Some(id) = id {
                self.connection.resolve(id.get(), message);
            }
            return;
        };
        let params = message.get_object("params").unwrap_or_default();
        let Some(id) = id else {
            if method == "session/cancel" {
                self.cancel_turn(&params);
            }
            return;
        };
        match self.answer(&method, &params, &id) {
            Ok(Some(result)) => self.connection.respond(&id, &result),
            Ok(None) => {}
            Err(error) => self.connection.fail(&id, &error),
        }
    }

    fn answer(&mut self, method: &str, params: &RawObject, id: &RawValue) -> Answer {
        match method {
            "initialize" => Ok(Some(capabilities())),
            // The key of the API comes from the environment or the settings.
            "authenticate" => Ok(Some(RawObject::new())),
            "session/new" => self.open(SessionOpening::New, params, id),
            "session/load" => self.open(SessionOpening::Load, params, id),
            "session/resume" => self.open(SessionOpening::Resume, params, id),
            "session/fork" => self.open(SessionOpening::Fork, params, id),
            "session/list" => self.list(params).map(Some),
            "session/prompt" => self.prompt(params, id),
            "session/set_mode" => self.set_mode(params).map(Some),
            "session/close" => {
                let session = self.sessions.remove(&params.get_str("sessionId").unwrap_or_default());
                session.ok_or_else(unknown_session)?.close();
                Ok(Some(RawObject::new()))
            }
            other => Err(RpcError::new(ErrorCode::MethodNotFound, format!("`{other}` is not supported"))),
        }
    }

    /// Starts the thread of a session, which answers the request.
    fn open(&mut self, opening: SessionOpening, params: &RawObject, id: &RawValue) -> Answer {
        let cwd = folder(params)?;
        let mut args = self.args.clone();
        args.add_dir.extend(texts(params, "additionalDirectories").into_iter().map(PathBuf::from));
        let given = params.get_str("sessionId");
        if opening != SessionOpening::New {
            let session_id = given.as_deref().filter(|id| uuid::Uuid::try_parse(id).is_ok());
            args.resume = Some(session_id.ok_or_else(unknown_session)?.to_owned());
            args.fork_session = opening == SessionOpening::Fork;
            args.continue_last = false;
        }
        // A session has one writer.
        if let Some(open) =
            given.filter(|_| opening != SessionOpening::Fork).and_then(|id| self.sessions.remove(&id))
        {
            open.close();
        }
        let mut setup = ChatSetup::new_in(self.cx, &args, &cwd).map_err(|error| match error {
            ChatError::Refused(message) if message.contains("API key") => {
                RpcError::new(ErrorCode::AuthRequired, message)
            }
            ChatError::Refused(message) => RpcError::new(ErrorCode::InvalidParams, message),
            ChatError::Command(error) => RpcError::internal(&error.to_string()),
        })?;
        setup.mcp.add(servers(params)?);
        let prices = self.cx.app.prices().map_err(|error| RpcError::internal(&error.to_string()))?;
        let opened = OpenedSession { opening, setup, prices: (*prices).clone(), request: id.to_owned() };
        let (session_id, handle) = opened.start(Arc::clone(&self.connection), self.cancel.child());
        self.sessions.insert(session_id, handle);
        Ok(None)
    }

    fn session(&self, params: &RawObject) -> Result<&SessionHandle, RpcError> {
        self.sessions.get(&params.get_str("sessionId").unwrap_or_default()).ok_or_else(unknown_session)
    }

    fn prompt(&self, params: &RawObject, id: &RawValue) -> Answer {
        let session = self.session(params)?;
        let blocks: Vec<RawObject> = parse(params, "prompt")?;
        session.prompt(id, translate::prompt(&blocks)?)?;
        Ok(None)
    }

    fn cancel_turn(&self, params: &RawObject) {
        if let Ok(session) = self.session(params) {
            session.cancel_turn();
        }
    }

    fn set_mode(&self, params: &RawObject) -> Result<RawObject, RpcError> {
        let session = self.session(params)?;
        let mode = params.get_str("modeId").and_then(|name| PermissionMode::parse(&name));
        let mode = mode.ok_or_else(|| RpcError::new(ErrorCode::InvalidParams, "there is no such mode"))?;
        let changed = session.permissions.change_mode(mode);
        changed.map_err(|reason| RpcError::new(ErrorCode::InvalidParams, reason))?;
        Ok(RawObject::new())
    }

    /// Returns the sessions of a folder, or of all, last active first.
    fn list(&self, params: &RawObject) -> Result<RawObject, RpcError> {
        let cwd = params.get_str("cwd");
        let offset = match params.get_str("cursor") {
            Some(cursor) => cursor
                .parse::<usize>()
                .map_err(|_| RpcError::new(ErrorCode::InvalidParams, "the cursor is not valid"))?,
            None => 0,
        };
        let sessions = self.cx.app.list(&ListFilter::default()).found;
        let wanted = sessions.iter().filter(|session| cwd.is_none() || session.preview.cwd == cwd);
        let mut page: Vec<RawObject> = Vec::new();
        let mut has_more = false;
        for session in wanted.skip(offset) {
            if page.len() == PAGE {
                has_more = true;
                break;
            }
            let Some(cwd) = &session.preview.cwd else { continue };
            let mut info = RawObject::new().with("sessionId", session.file.id.as_str()).with("cwd", cwd);
            if let Some(title) = session.title() {
                info.set("title", title);
            }
            if let Ok(time) = jiff::Timestamp::try_from(session.preview.last_active) {
                info.set("updatedAt", time.to_string());
            }
            page.push(info);
        }
        let mut result = RawObject::new().with("sessions", page);
        if has_more {
            result.set("nextCursor", (offset + PAGE).to_string());
        }
        Ok(result)
    }
}

/// Returns the answer to the first request.
fn capabilities() -> RawObject {
    let none = RawObject::new();
    let prompt = RawObject::new().with("image", true).with("audio", false).with("embeddedContext", true);
    let mcp = RawObject::new().with("http", true).with("sse", true);
    let sessions =
        ["list", "resume", "fork", "close"].iter().fold(none.clone(), |all, name| all.with(name, &none));
    let capabilities = RawObject::new()
        .with("loadSession", true)
        .with("promptCapabilities", prompt)
        .with("mcpCapabilities", mcp)
        .with("sessionCapabilities", sessions);
    let info = RawObject::new()
        .with("name", "threadline")
        .with("title", "threadline")
        .with("version", env!("CARGO_PKG_VERSION"));
    let no_methods: [&str; 0] = [];
    RawObject::new()
        .with("protocolVersion", PROTOCOL_VERSION)
        .with("agentCapabilities", capabilities)
        .with("agentInfo", info)
        .with("authMethods", no_methods)
}

fn unknown_session() -> RpcError {
    RpcError::new(ErrorCode::NotFound, "there is no such session")
}

/// Parses a parameter.
fn parse<T: serde::de::DeserializeOwned>(params: &RawObject, name: &str) -> Result<T, RpcError> {
    let value = params.get(name).and_then(|value| serde_json::from_str(value.get()).ok());
    value.ok_or_else(|| RpcError::new(ErrorCode::InvalidParams, format!("`{name}` is missing or not valid")))
}

fn texts(params: &RawObject, name: &str) -> Vec<String> {
    parse(params, name).unwrap_or_default()
}

/// Returns the working folder of a session.
fn folder(params: &RawObject) -> Result<PathBuf, RpcError> {
    let cwd: String = parse(params, "cwd")?;
    let invalid =
        || RpcError::new(ErrorCode::InvalidParams, format!("`{cwd}` is not an absolute path of a folder"));
    let path = Path::new(&cwd);
    let path = path.canonicalize().ok().filter(|found| path.is_absolute() && found.is_dir());
    path.ok_or_else(invalid)
}

/// Returns the MCP servers that the editor wants to be used.
fn servers(params: &RawObject) -> Result<Vec<McpServerConfig>, RpcError> {
    if params.get("mcpServers").is_none_or(|servers| servers.get() == "null") {
        return Ok(Vec::new());
    }
    let servers: Vec<RawObject> = parse(params, "mcpServers")?;
    let server = |server: &RawObject| {
        let pairs = |key: &str| -> Vec<(String, String)> {
            let entries: Vec<RawObject> = parse(server, key).unwrap_or_default();
            let pair = |entry: &RawObject| Some((entry.get_str("name")?, entry.get_str("value")?));
            entries.iter().filter_map(pair).collect()
        };
        let url = server.get_str("url").unwrap_or_default();
        let http = |kind| McpTransport::Http { url, headers: pairs("headers"), kind };
        let transport = match server.get_str("type").as_deref() {
            Some("http") => http(McpHttpKind::Streamable),
            Some("sse") => http(McpHttpKind::ServerSentEvents),
            None | Some("stdio") => McpTransport::Stdio {
                command: parse(server, "command")?,
                args: texts(server, "args"),
                env: pairs("env").into_iter().collect(),
            },
            Some(other) => McpTransport::Unusable(format!("servers of the type `{other}` are not supported")),
        };
        Ok(McpServerConfig { name: parse(server, "name")?, transport })
    };
    servers.iter().map(server).collect()
}

/// Returns a value as JSON. The values here cannot fail.
fn raw(value: &impl serde::Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
