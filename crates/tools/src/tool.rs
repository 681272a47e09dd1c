//! The interface of tools, and the validation of calls.

use std::path::Path;

use serde_json::value::RawValue;

use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::output::{ToolOutput, raw, take_utf16};
use crate::schema::{Parameter, json_schema, validate_input};

/// A tool that the model can call.
pub trait Tool: Send + Sync {
    /// Returns the name that is sent to the API.
    fn name(&self) -> &str;

    /// Returns the explanation for the model.
    fn description(&self) -> String;

    /// Returns the parameters.
    fn schema(&self) -> InputSchema<'_>;

    /// Returns whether the call changes nothing. Such calls of one reply may run in parallel.
    fn is_read_only(&self, input: &ToolInput) -> bool;

    /// Rewrites a valid input to the form that is executed, logged and sent back to the model.
    fn rewrite(&self, input: &mut ToolInput, cwd: &Path) {
        let _ = (input, cwd);
    }

    /// Returns whether strings are accepted for numbers and booleans.
    fn converts_text(&self) -> bool {
        true
    }

    /// Returns the result of a call that would fail whether it is permitted or not, without changing
    /// anything.
    fn check(&self, input: &ToolInput, context: &ToolContext<'_>) -> Option<ToolOutput> {
        let _ = (input, context);
        None
    }

    /// Runs a call that is permitted. Failures are results too: this function does not panic on any input.
    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, permit: Permit) -> ToolOutput;

    /// Returns the definition that is sent to the API.
    fn definition(&self) -> ToolDefinition {
        let input_schema = match self.schema() {
            InputSchema::Parameters(parameters) => json_schema(parameters),
            InputSchema::Json(schema) => schema.to_owned(),
        };
        ToolDefinition { name: self.name().to_owned(), description: self.description(), input_schema }
    }
}

/// Permission to run one call.
///
/// Only the permission check of the agent issues it, so that no call runs without that check. A test of the
/// layers checks that there are no other places.
#[derive(Debug)]
pub struct Permit {
    _private: (),
}

impl Permit {
    /// Permits one call.
    #[must_use]
    pub fn issue() -> Self {
        Self { _private: () }
    }
}

/// The parameters of a tool.
#[derive(Debug, Clone, Copy)]
pub enum InputSchema<'a> {
    /// A table, from which calls are validated.
    Parameters(&'static [Parameter]),
    /// A JSON Schema from elsewhere; the tool validates its calls itself.
    Json(&'a RawValue),
}

/// A tool as it is sent to the API.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// The explanation for the model.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Box<RawValue>,
}

/// A valid input of a call.
#[derive(Debug, Clone)]
pub struct ToolInput {
    raw: Box<RawValue>,
    json: OrderedJson,
}

impl ToolInput {
    /// Returns the input as it is logged and sent back to the model.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Returns a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.json.get(name)?.as_str()
    }

    /// Returns a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.json.get(name)?.as_f64()
    }

    /// Returns a boolean; `false` if it is missing.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.json.get(name).and_then(OrderedJson::as_bool).unwrap_or_default()
    }

    /// Returns a list of strings; empty if it is missing.
    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<String> {
        let items = self.json.get(name).and_then(OrderedJson::as_array).unwrap_or_default();
        items.iter().filter_map(OrderedJson::as_str).map(str::to_owned).collect()
    }

    pub(crate) fn json(&self) -> &OrderedJson {
        &self.json
    }

    /// Replaces the input by these members, in this order; missing ones are left out.
    pub(crate) fn set_members(&mut self, members: Vec<(&str, Option<OrderedJson>)>) {
        self.json = OrderedJson::object(members.into_iter().filter_map(|(name, value)| Some((name, value?))));
        self.raw = raw(&self.json);
    }
}

/// Checks an input against the parameters of the tool and returns it in the form that is executed, logged and
/// sent back to the model.
///
/// # Errors
/// Returns the result of the call if the input is invalid.
pub fn validate(tool: &dyn Tool, raw_input: &RawValue, cwd: &Path) -> Result<ToolInput, ToolOutput> {
    let json: OrderedJson = match serde_json::from_str(raw_input.get()) {
        Ok(json) => json,
        Err(_) => return Err(unparsed_input(tool.name(), raw_input.get()).output),
    };
    let (mut json, kept) = match json {
        OrderedJson::Null => (OrderedJson::object([]), raw(&OrderedJson::object([]))),
        json => (json, raw_input.to_owned()),
    };
    if let InputSchema::Parameters(parameters) = tool.schema() {
        validate_input(tool.name(), &mut json, parameters, tool.converts_text())?;
        fill_defaults(&mut json, parameters);
    }
    let mut input = ToolInput { raw: kept, json };
    tool.rewrite(&mut input, cwd);
    Ok(input)
}

fn fill_defaults(json: &mut OrderedJson, parameters: &[Parameter]) {
    for parameter in parameters {
        let default = parameter.default.and_then(|text| serde_json::from_str(text).ok());
        if let Some(default) = default.filter(|_| json.get(parameter.name).is_none()) {
            json.set(parameter.name, default);
        }
    }
}

/// A call whose input is not JSON.
#[derive(Debug, Clone)]
pub struct UnparsedInput {
    /// The input that is logged and sent back to the model in place of the broken one.
    pub input: Box<RawValue>,
    /// The result of the call.
    pub output: ToolOutput,
}

/// The most characters of a broken input that are quoted.
const UNPARSED_QUOTE: usize = 200;

/// Returns the input and the result of a call whose input is not JSON, for example because it was cut off.
#[must_use]
pub fn unparsed_input(tool: &str, text: &str) -> UnparsedInput {
    // The reference counts UTF-16 units and calls them bytes.
    let units = |text: &str| text.chars().map(char::len_utf16).sum::<usize>();
    let length = units(text);
    let quote = take_utf16(text, UNPARSED_QUOTE);
    let message = format!(
        "InputValidationError: {tool} was called with input that could not be parsed as JSON.\n\
         You sent (first {} of {length} bytes): {quote}\n\
         Common causes: unescaped backslashes in file paths (use / or \\\\), unescaped control characters, or \
         truncated output. Retry with valid JSON.",
        units(quote)
    );
    let unparsed = OrderedJson::object([("raw", text.into()), ("len", OrderedJson::Number(length.into()))]);
    UnparsedInput {
        input: raw(&OrderedJson::object([("__unparsedToolInput", unparsed)])),
        output: ToolOutput::error(
            format!("<tool_use_error>{message}</tool_use_error>"),
            &format!("InputValidationError: JSON parse failed ({length} bytes)"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_input_is_quoted_and_kept() {
        let unparsed = unparsed_input("Bash", "{\"command\": \"echo");
        assert_eq!(
            unparsed.input.get(),
            r#"{"__unparsedToolInput":{"raw":"{\"command\": \"echo","len":17}}"#
        );
        assert_eq!(
            unparsed.output.text(),
            "<tool_use_error>InputValidationError: Bash was called with input that could not be parsed as JSON.\n\
             You sent (first 17 of 17 bytes): {\"command\": \"echo\n\
             Common causes: unescaped backslashes in file paths (use / or \\\\), unescaped control characters, or \
             truncated output. Retry with valid JSON.</tool_use_error>"
        );
        assert_eq!(
            unparsed.output.record.unwrap().get(),
            r#""InputValidationError: JSON parse failed (17 bytes)""#
        );
        let long = unparsed_input("Bash", &"é".repeat(300));
        assert!(long.output.text().contains("(first 200 of 300 bytes)"), "{}", long.output.text());
    }
}
