//! StructuredOutput: the answer as JSON that matches a schema.

use serde_json::value::RawValue;

use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::json_schema::JsonSchema;
use crate::output::{Failure, ToolOutput};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

/// The tool with which the model gives its answer for `--json-schema`. Its input is the answer.
#[derive(Debug)]
pub struct StructuredOutput {
    schema: JsonSchema,
    raw: Box<RawValue>,
}

impl StructuredOutput {
    /// Returns the tool for a schema; `None` if the schema is not a JSON object of type `object`.
    #[must_use]
    pub fn new(schema: &RawValue) -> Option<Self> {
        let json: OrderedJson = serde_json::from_str(schema.get()).ok()?;
        let is_object = json.get("type").and_then(OrderedJson::as_str) == Some("object");
        let schema_of_objects = JsonSchema::new(json).filter(|_| is_object)?;
        Some(Self { schema: schema_of_objects, raw: schema.to_owned() })
    }
}

impl Tool for StructuredOutput {
    fn name(&self) -> &str {
        "StructuredOutput"
    }

    fn description(&self) -> String {
        "Gives the final answer as data. Call it exactly once, at the end, with the answer as its input."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Json(&self.raw)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let violations = self.schema.violations(input.json());
        if !violations.is_empty() {
            let message = format!("Output does not match required schema: {}", violations.join(", "));
            return Failure::Failed(message).into_output(self.name());
        }
        let text = "Structured output provided successfully";
        ToolOutput { ends_turn: true, ..ToolOutput::success(text, &text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_valid_answer_ends_the_turn() {
        let schema = raw(r#"{"type": "object", "properties": {"answer": {"type": "integer"}}}"#);
        let mut fixture = Fixture::new();
        fixture.tools.push(Box::new(StructuredOutput::new(&schema).unwrap()));
        let wrong = fixture.run("StructuredOutput", r#"{"answer": "many"}"#);
        assert_eq!(wrong.text(), "Output does not match required schema: /answer: must be integer");
        assert!(wrong.is_error && !wrong.ends_turn);
        let right = fixture.run("StructuredOutput", r#"{"answer": 3}"#);
        assert_eq!(right.record.as_ref().unwrap().get(), r#""Structured output provided successfully""#);
        assert!(right.ends_turn && !right.is_error);
        let definition = fixture.tools.get("StructuredOutput").unwrap().definition();
        assert_eq!(definition.input_schema.get(), schema.get());
    }

    #[test]
    fn other_schemas_are_refused() {
        assert!(StructuredOutput::new(&raw("5")).is_none());
        assert!(StructuredOutput::new(&raw(r#"{"type": "string"}"#)).is_none());
    }
}
