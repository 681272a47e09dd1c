//! Questions about calls that a tool of an MCP server answers.

use std::sync::Arc;

use serde_json::value::RawValue;
use threadline_api::RawObject;
use threadline_cancel::CancelToken;
use threadline_mcp_client::McpServers;

use crate::agent::{Agent, tool_json};
use crate::permission::{PermissionAnswer, PermissionPrompt, PermissionRequest};

/// Asks a tool of a server.
struct ServerPrompt {
    servers: McpServers,
    /// The full name of the tool.
    tool: String,
}

impl PermissionPrompt for ServerPrompt {
    fn ask(&self, request: &PermissionRequest<'_>, cancel: &CancelToken) -> PermissionAnswer {
        let question = RawObject::new()
            .with("tool_name", request.tool)
            .with("input", request.input)
            .with("tool_use_id", request.tool_use_id);
        let answer = RawValue::from_string(question.to_json())
            .map_err(|error| error.to_string())
            .and_then(|question| self.servers.call_tool(&self.tool, &question, cancel))
            .and_then(|text| parse_answer(&text));
        match answer {
            _ if cancel.is_cancelled() => PermissionAnswer::Interrupt,
            Ok(answer) => answer,
            Err(reason) => {
                PermissionAnswer::Deny(format!("{} gave no answer about the call: {reason}", self.tool))
            }
        }
    }
}

/// Parses an answer: an object with `behavior`, and `updatedInput` or `message`.
fn parse_answer(text: &str) -> Result<PermissionAnswer, String> {
    let answer = RawObject::parse(text).map_err(|error| error.to_string())?;
    match answer.get_str("behavior").as_deref() {
        Some("allow") => {
            Ok(PermissionAnswer::Allow { input: answer.get("updatedInput").map(ToOwned::to_owned) })
        }
        Some("deny") if answer.get("interrupt").is_some_and(|value| value.get() == "true") => {
            Ok(PermissionAnswer::Interrupt)
        }
        Some("deny") => Ok(PermissionAnswer::Deny(answer.get_str("message").unwrap_or_default())),
        _ => Err("`behavior` is neither `allow` nor `deny`".to_owned()),
    }
}

impl Agent {
    /// Lets a tool of an MCP server answer questions about calls. The model is not given this tool.
    ///
    /// # Errors
    ///
    /// The reason if no connected server has the tool.
    pub fn set_prompt_tool(&mut self, name: &str) -> Result<(), String> {
        let servers = self.config.mcp.clone();
        if servers.tool(name).is_none() {
            let kind =
                if self.tools.exists(name) { "it is not a tool of an MCP server" } else { "not found" };
            let names: Vec<&str> = servers.tool_infos().map(|tool| tool.full_name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!(
                "MCP tool {name} (passed via --permission-prompt-tool): {kind}. Available MCP tools: {names}"
            ));
        }
        self.tools.remove(name);
        self.request.tools = self.tools.definitions().iter().map(tool_json).collect();
        self.prompt = Some(Arc::new(ServerPrompt { servers, tool: name.to_owned() }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_allow_refuse_or_end_the_turn() {
        let allow = parse_answer(r#"{"behavior":"allow","updatedInput":{"a":1}}"#).unwrap();
        assert!(
            matches!(allow, PermissionAnswer::Allow { input: Some(input) } if input.get() == r#"{"a":1}"#)
        );
        let deny = parse_answer(r#"{"behavior":"deny","message":"no"}"#).unwrap();
        assert!(matches!(deny, PermissionAnswer::Deny(message) if message == "no"));
        let stop = parse_answer(r#"{"behavior":"deny","message":"no","interrupt":true}"#).unwrap();
        assert!(matches!(stop, PermissionAnswer::Interrupt));
        for text in ["", "yes", "{}", r#"{"behavior":"maybe"}"#] {
            assert!(parse_answer(text).is_err(), "{text}");
        }
    }
}
