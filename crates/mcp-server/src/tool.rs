//! The tools: name, schemas and implementation of each.

use std::sync::Arc;

use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::call::{PageRequestState, ToolCallState};
use crate::error::HistoryError;
use crate::history::History;
use crate::tools::{
    CheckSession, FindEdits, ListSessions, ReadSession, SearchSessions, SessionChanges, UsageCount,
};

/// An answer of a tool: as data, and as text with the same content.
pub(crate) struct ToolAnswer<T> {
    pub(crate) data: T,
    pub(crate) text: String,
}

/// A tool of the server.
pub(crate) trait HistoryTool {
    const NAME: &'static str;
    const TITLE: &'static str;
    const DESCRIPTION: &'static str;
    type Arguments: DeserializeOwned + JsonSchema + 'static;
    type Answer: Serialize + JsonSchema + 'static;

    fn run(
        history: &History,
        arguments: Self::Arguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<Self::Answer>, HistoryError>;
}

type RunTool = fn(&History, Map<String, Value>, ToolCallState) -> Result<(Value, String), HistoryError>;

/// A row of the table of tools.
pub(crate) struct ToolRow {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    input: fn() -> Result<Arc<JsonObject>, String>,
    output: fn() -> Arc<JsonObject>,
    run: RunTool,
}

impl ToolRow {
    const fn of<T: HistoryTool>() -> Self {
        Self {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            input: schema_for_input::<T::Arguments>,
            output: schema_for_output::<T::Answer>,
            run: run_tool::<T>,
        }
    }

    /// Returns the definition that clients see.
    pub(crate) fn definition(&self) -> Tool {
        // The schemas are made from our own types; a test creates all of them.
        let input = plain_schema(&(self.input)().unwrap_or_default(), true);
        let output = plain_schema(&(self.output)(), false);
        let hints =
            ToolAnnotations::with_title(self.title).read_only(true).idempotent(true).open_world(false);
        Tool::new(self.name, self.description, input)
            .with_title(self.title)
            .with_raw_output_schema(output)
            .with_annotations(hints)
    }

    /// Runs the tool. Errors that the model can correct are results.
    pub(crate) fn call(
        &self,
        history: &History,
        arguments: Map<String, Value>,
        state: ToolCallState,
    ) -> CallToolResult {
        match (self.run)(history, arguments, state) {
            Ok((mut data, text)) => {
                history.mask_value(&mut data);
                let mut result = CallToolResult::structured(data);
                result.content = vec![ContentBlock::text(history.mask(&text))];
                result
            }
            Err(error) => CallToolResult::error(vec![ContentBlock::text(history.mask(&error.text()))]),
        }
    }
}

impl ToolRow {
    /// Runs the tool for a resource or a prompt, and returns the text of its answer.
    pub(crate) fn text(
        &self,
        history: &History,
        arguments: Map<String, Value>,
    ) -> Result<String, HistoryError> {
        let state = ToolCallState::naming_next_call();
        let (_, text) = (self.run)(history, arguments, state)?;
        Ok(history.mask(&text))
    }
}

/// Removes from a schema the sizes of Rust's numbers, defaults that are `null`, and, if `is_input` is set,
/// that optional arguments may be `null`. Models read these schemas, so their size matters.
fn plain_schema(schema: &JsonObject, is_input: bool) -> Arc<JsonObject> {
    let mut schema = schema.clone();
    schema.remove("$schema");
    schema.values_mut().for_each(|value| make_plain(value, is_input));
    Arc::new(schema)
}

fn make_plain(value: &mut Value, is_input: bool) {
    match value {
        Value::Object(members) => {
            members.remove("format");
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            if let Some(Value::Array(types)) = members.get_mut("type").filter(|_| is_input) {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    members.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = members.get_mut("anyOf").filter(|_| is_input) {
                choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
                if let [Value::Object(only)] = &choices[..] {
                    let only = only.clone();
                    members.remove("anyOf");
                    members.extend(only);
                }
            }
            members.values_mut().for_each(|member| make_plain(member, is_input));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| make_plain(item, is_input)),
        _ => {}
    }
}

fn run_tool<T: HistoryTool>(
    history: &History,
    arguments: Map<String, Value>,
    state: ToolCallState,
) -> Result<(Value, String), HistoryError> {
    let request = PageRequestState::new(T::NAME, &arguments, state)?;
    let arguments = serde_json::from_value(Value::Object(arguments))
        .map_err(|error| HistoryError::new(format!("invalid arguments: {error}")))?;
    let answer = T::run(history, arguments, &request)?;
    let data = serde_json::to_value(&answer.data).map_err(|error| HistoryError::new(error.to_string()))?;
    Ok((data, answer.text))
}

/// The tools, in the order in which clients list them.
pub(crate) static TOOLS: [ToolRow; 7] = [
    ToolRow::of::<SearchSessions>(),
    ToolRow::of::<ListSessions>(),
    ToolRow::of::<ReadSession>(),
    ToolRow::of::<SessionChanges>(),
    ToolRow::of::<FindEdits>(),
    ToolRow::of::<UsageCount>(),
    ToolRow::of::<CheckSession>(),
];

/// Returns the names of the tools.
pub fn tool_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// Returns the tool with a name.
pub(crate) fn tool_named(name: &str) -> Option<&'static ToolRow> {
    TOOLS.iter().find(|tool| tool.name == name)
}
