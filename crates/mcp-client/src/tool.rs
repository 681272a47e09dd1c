//! A tool of a server.

use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject};
use rmcp::service::ServiceError;
use serde_json::value::{RawValue, to_raw_value};
use threadline_cancel::CancelToken;
use threadline_tools::{InputSchema, Permit, Tool, ToolContext, ToolInput, ToolOutput};

use crate::content::output;
use crate::session::Session;

/// The longest name of a tool that the API accepts.
const MAX_NAME: usize = 128;
/// The longest explanation of a tool that is sent to the model, in characters.
const MAX_DESCRIPTION: usize = 16_000;
/// The longest JSON Schema of a tool, in bytes.
const MAX_SCHEMA: usize = 256 << 10;

/// A tool as its server describes it.
#[derive(Clone, Debug)]
pub struct McpToolInfo {
    /// The name for the model: `mcp__server__tool`.
    pub full_name: String,
    /// The name of the server.
    pub server: String,
    /// The name at the server.
    pub tool: String,
    /// The title for people, if it has one.
    pub title: Option<String>,
    /// The explanation for the model.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Box<RawValue>,
    /// Whether the server says that the tool changes nothing.
    pub is_read_only: bool,
}

impl McpToolInfo {
    /// Describes a tool of a server; `None` if the API would refuse every request that contains it.
    pub(crate) fn new(server: &str, tool: rmcp::model::Tool) -> Option<Self> {
        let full_name = full_name(server, &tool.name);
        let input_schema = to_raw_value(&*tool.input_schema).ok()?;
        let is_object = tool.input_schema.get("type").is_none_or(|kind| kind == "object");
        if full_name.len() > MAX_NAME || input_schema.get().len() > MAX_SCHEMA || !is_object {
            return None;
        }
        let annotations = tool.annotations.as_ref();
        let mut description = tool.description.unwrap_or_default().into_owned();
        if let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION) {
            description.truncate(end);
        }
        Some(Self {
            full_name,
            server: server.to_owned(),
            title: tool.title.clone().or_else(|| annotations?.title.clone()),
            description,
            input_schema,
            is_read_only: annotations.and_then(|hints| hints.read_only_hint).unwrap_or_default(),
            tool: tool.name.into_owned(),
        })
    }

    /// Returns the name for people: the title, or the name with a capital first letter.
    #[must_use]
    pub fn display_name(&self) -> String {
        self.title.clone().unwrap_or_else(|| display_name(&self.tool))
    }
}

/// Returns the name of a tool for people: `Add` for `add` and for `mcp__desk__add`.
#[must_use]
pub fn display_name(name: &str) -> String {
    let server_and_tool = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    let name = server_and_tool.map_or(name, |(_, tool)| tool);
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns the name of a tool for the model.
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    format!("mcp__{}__{}", plain_name(server), plain_name(tool))
}

/// Replaces characters that the API does not accept in names.
pub(crate) fn plain_name(name: &str) -> String {
    let plain = |ch: char| if ch.is_ascii_alphanumeric() || "_-".contains(ch) { ch } else { '_' };
    name.chars().map(plain).collect()
}

/// A tool of a server, for the model.
pub struct McpTool {
    info: Arc<McpToolInfo>,
    session: Arc<Session>,
}

impl McpTool {
    pub(crate) fn new(info: Arc<McpToolInfo>, session: Arc<Session>) -> Self {
        Self { info, session }
    }

    pub(crate) fn call(&self, input: &RawValue, cancel: &CancelToken) -> Result<CallToolResult, String> {
        let arguments: JsonObject = serde_json::from_str(input.get())
            .map_err(|error| format!("The input is not an object: {error}"))?;
        let params = CallToolRequestParams::new(self.info.tool.clone()).with_arguments(arguments);
        let call = self.session.request(&self.info.server, cancel, |peer| async move {
            match peer.call_tool_once(params).await? {
                CallToolResponse::Complete(result) => Ok(result),
                _ => Err(ServiceError::UnexpectedResponse),
            }
        });
        call.map_err(|error| error.message)
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.info.full_name
    }

    fn description(&self) -> String {
        self.info.description.clone()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Json(&self.info.input_schema)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        self.info.is_read_only
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        match self.call(input.raw(), context.cancel) {
            Ok(result) => output(&result, &self.info.server, context),
            Err(message) => ToolOutput::failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_plain_characters() {
        assert_eq!(full_name("my desk.io", "add/now"), "mcp__my_desk_io__add_now");
        assert_eq!(full_name("a-b_c", "d"), "mcp__a-b_c__d");
    }

    #[test]
    fn tools_that_the_api_would_refuse_are_left_out() {
        let tool = |name: &str, schema: serde_json::Value| {
            let tool =
                serde_json::json!({"name": name, "description": "é".repeat(20_000), "inputSchema": schema});
            McpToolInfo::new("s", serde_json::from_value(tool).unwrap())
        };
        let object = || serde_json::json!({"type": "object"});
        let kept = tool("add", object()).unwrap();
        assert_eq!(kept.description.chars().count(), MAX_DESCRIPTION);
        assert!(tool(&"n".repeat(MAX_NAME), object()).is_none());
        assert!(tool("add", serde_json::json!({"type": "string"})).is_none());
        let large = serde_json::json!({"type": "object", "title": "x".repeat(MAX_SCHEMA)});
        assert!(tool("add", large).is_none());
    }

    #[test]
    fn names_for_people_begin_with_a_capital() {
        assert_eq!(display_name("mcp__desk__add_up"), "Add_up");
        assert_eq!(display_name("add"), "Add");
        assert_eq!(display_name(""), "");
    }
}
