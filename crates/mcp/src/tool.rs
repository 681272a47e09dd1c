//! A tool of a server.

use std::sync::Arc;

use serde_json::value::RawValue;
use threadline_tools::{InputSchema, Permit, Tool, ToolContext, ToolInput, ToolOutput};

use crate::content::output;
use crate::servers::Session;

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
        match self.session.call(&self.info, input.raw(), context.cancel) {
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
    fn names_for_people_begin_with_a_capital() {
        assert_eq!(display_name("mcp__desk__add_up"), "Add_up");
        assert_eq!(display_name("add"), "Add");
        assert_eq!(display_name(""), "");
    }
}
