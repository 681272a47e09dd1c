//! Servers inside of the program that drives the session.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use threadline_cancel::CancelToken;
use threadline_mcp_client::{
    McpMessageSink, McpOptions, McpProgram, McpServerConfig, McpServers, McpTransport,
};

use crate::http_server::result;
use crate::servers::{blocks, call};

/// A program with a server that answers by the method.
#[derive(Default)]
struct Program {
    messages: Mutex<Vec<(String, Value)>>,
    sink: Mutex<Option<McpMessageSink>>,
}

impl McpProgram for Program {
    fn send(&self, server: &str, message: &RawValue, _: &CancelToken) -> Result<Box<RawValue>, String> {
        let message: Value = serde_json::from_str(message.get()).unwrap();
        self.messages.lock().push((server.to_owned(), message.clone()));
        match result(&message) {
            Some(result) => Ok(to_raw_value(&result).unwrap()),
            None if message.get("id").is_none() => Ok(to_raw_value(&()).unwrap()),
            None => Err("no such method".to_owned()),
        }
    }

    fn receive(&self, _: &str, sink: McpMessageSink) {
        *self.sink.lock() = Some(sink);
    }
}

fn servers(program: Option<Arc<dyn McpProgram>>) -> McpServers {
    let config = McpServerConfig { name: "calc".to_owned(), transport: McpTransport::Program };
    let mut options = McpOptions::new("/".into(), Vec::new());
    options.program = program;
    McpServers::connect(vec![config], &options, &CancelToken::new())
}

#[test]
fn messages_go_to_the_program_in_order() {
    let program = Arc::new(Program::default());
    let servers = servers(Some(program.clone()));
    assert_eq!(servers.statuses()[0].error, None);
    assert_eq!(blocks(&call(&servers, "mcp__calc__add")), r#"{"type":"text","text":"3"}"#);
    let messages = program.messages.lock();
    let methods: Vec<_> = messages.iter().map(|(_, message)| message["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
    assert!(messages.iter().all(|(server, _)| server == "calc"));
}

#[test]
fn messages_of_the_program_are_received() {
    let program = Arc::new(Program::default());
    let _servers = servers(Some(program.clone()));
    let sink = program.sink.lock().take().unwrap();
    let push = |json: &str| sink(serde_json::from_str(json).unwrap());
    assert_eq!(push(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#), Ok(()));
    assert!(push("{\"jsonrpc\":\"2.0\"}").is_err());
}

#[test]
fn a_server_of_no_program_has_failed() {
    assert!(servers(None).statuses()[0].error.as_ref().unwrap().contains("no program"));
}
