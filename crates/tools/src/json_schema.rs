//! A small JSON Schema validator for structured output.
//!
//! It supports the keywords that describe data (types, enumerations, ranges, lengths, patterns, objects,
//! arrays, combinations, local references) and writes the messages of the reference, so that models correct
//! themselves in the same way. Unknown keywords and formats are ignored, as JSON Schema demands. General
//! validators bring dozens of crates for remote references and formats that do not occur here.

use std::cell::Cell;

use indexmap::IndexMap;
use regex::Regex;

use crate::json::OrderedJson;

/// A schema to validate against.
#[derive(Debug)]
pub(crate) struct JsonSchema {
    root: OrderedJson,
}

/// The deepest nesting of schemas that is followed, so that recursive references end.
const MAX_DEPTH: usize = 64;

/// The most schemas that are applied to one value, so that alternatives which refer to each other end.
const MAX_STEPS: usize = 100_000;

impl JsonSchema {
    /// Returns a schema; `None` if it is neither an object nor a boolean.
    pub(crate) fn new(root: OrderedJson) -> Option<Self> {
        matches!(root, OrderedJson::Object(_) | OrderedJson::Bool(_)).then_some(Self { root })
    }

    /// Returns a message for each violation: `/path: must be integer`.
    pub(crate) fn violations(&self, value: &OrderedJson) -> Vec<String> {
        let steps = Cell::new(0);
        let mut check = Check { root: &self.root, steps: &steps, messages: Vec::new() };
        check.schema(&self.root, value, &Place::root());
        check.messages
    }
}

/// The path to a value, and the depth of schemas.
struct Place {
    path: String,
    depth: usize,
}

impl Place {
    fn root() -> Self {
        Self { path: String::new(), depth: 0 }
    }

    fn child(&self, step: &str) -> Self {
        let step = step.replace('~', "~0").replace('/', "~1");
        Self { path: format!("{}/{step}", self.path), depth: self.depth + 1 }
    }

    fn same(&self) -> Self {
        Self { path: self.path.clone(), depth: self.depth + 1 }
    }
}

struct Check<'a> {
    root: &'a OrderedJson,
    steps: &'a Cell<usize>,
    messages: Vec<String>,
}

impl Check<'_> {
    fn fail(&mut self, place: &Place, message: &str) {
        if self.messages.len() < 50 {
            let path = if place.path.is_empty() { "root" } else { &place.path };
            self.messages.push(format!("{path}: {message}"));
        }
    }

    fn schema(&mut self, schema: &OrderedJson, value: &OrderedJson, place: &Place) {
        self.steps.set(self.steps.get() + 1);
        if place.depth > MAX_DEPTH || self.steps.get() > MAX_STEPS {
            return;
        }
        if *schema == OrderedJson::Bool(false) {
            self.fail(place, "boolean schema is false");
        }
        if let Some(target) =
            schema.get("$ref").and_then(OrderedJson::as_str).and_then(|name| self.resolve(name))
        {
            let target = target.clone();
            self.schema(&target, value, &place.same());
        }
        if let Some(types) = schema.get("type")
            && !matches_type(types, value)
        {
            let names: Vec<_> = match types {
                OrderedJson::Array(names) => names.iter().filter_map(OrderedJson::as_str).collect(),
                name => name.as_str().into_iter().collect(),
            };
            self.fail(place, &format!("must be {}", names.join(",")));
            return;
        }
        match value {
            OrderedJson::Number(_) => self.number(schema, value, place),
            OrderedJson::String(text) => self.text(schema, text, place),
            OrderedJson::Array(items) => self.array(schema, items, place),
            OrderedJson::Object(members) => self.object(schema, members, value, place),
            OrderedJson::Null | OrderedJson::Bool(_) => {}
        }
        self.any_type(schema, value, place);
    }

    /// Returns the schema that a local reference names.
    fn resolve(&self, reference: &str) -> Option<&OrderedJson> {
        let pointer = reference.strip_prefix('#')?;
        pointer.split('/').skip(1).try_fold(self.root, |json, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match json {
                OrderedJson::Array(items) => items.get(step.parse::<usize>().ok()?),
                json => json.get(&step),
            }
        })
    }

    fn number(&mut self, schema: &OrderedJson, value: &OrderedJson, place: &Place) {
        let Some(number) = value.as_f64() else { return };
        let limit = |name: &str| schema.get(name).and_then(OrderedJson::as_f64);
        for (name, sign) in
            [("maximum", "<="), ("minimum", ">="), ("exclusiveMaximum", "<"), ("exclusiveMinimum", ">")]
        {
            let holds = |limit: &f64| match sign {
                "<=" => number <= *limit,
                ">=" => number >= *limit,
                "<" => number < *limit,
                _ => number > *limit,
            };
            if let Some(limit) = limit(name).filter(|limit| !holds(limit)) {
                self.fail(place, &format!("must be {sign} {limit}"));
            }
        }
        let divisor = limit("multipleOf").filter(|divisor| *divisor > 0.0);
        if let Some(divisor) = divisor.filter(|divisor| (number / divisor).fract() != 0.0) {
            self.fail(place, &format!("must be multiple of {divisor}"));
        }
    }

    fn text(&mut self, schema: &OrderedJson, text: &str, place: &Place) {
        self.length(schema, ("maxLength", "minLength"), text.chars().count(), "characters", place);
        let pattern = schema.get("pattern").and_then(OrderedJson::as_str);
        // A pattern that this syntax does not know is not enforced.
        let is_violated = |pattern: &&str| Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text));
        if let Some(pattern) = pattern.filter(is_violated) {
            self.fail(place, &format!("must match pattern \"{pattern}\""));
        }
    }

    fn length(
        &mut self,
        schema: &OrderedJson,
        (max, min): (&str, &str),
        length: usize,
        noun: &str,
        place: &Place,
    ) {
        let limit = |name: &str| schema.get(name).and_then(OrderedJson::as_f64);
        if let Some(max) = limit(max).filter(|max| length as f64 > *max) {
            self.fail(place, &format!("must NOT have more than {max} {noun}"));
        }
        if let Some(min) = limit(min).filter(|min| (length as f64) < *min) {
            self.fail(place, &format!("must NOT have fewer than {min} {noun}"));
        }
    }

    fn array(&mut self, schema: &OrderedJson, items: &[OrderedJson], place: &Place) {
        self.length(schema, ("maxItems", "minItems"), items.len(), "items", place);
        if schema.get("uniqueItems") == Some(&OrderedJson::Bool(true)) {
            let twin = (1..items.len()).rev().find_map(|last| {
                (0..last).rev().find(|first| items[*first] == items[last]).map(|first| (first, last))
            });
            if let Some((first, last)) = twin {
                let message =
                    format!("must NOT have duplicate items (items ## {last} and {first} are identical)");
                self.fail(place, &message);
            }
        }
        // Schemas by position: `prefixItems`, or a list of `items` in older drafts.
        let by_position = [schema.get("prefixItems"), schema.get("items")];
        let first = by_position.into_iter().flatten().find_map(OrderedJson::as_array).unwrap_or_default();
        for (index, (schema, item)) in first.iter().zip(items).enumerate() {
            self.schema(schema, item, &place.child(&index.to_string()));
        }
        let rest = match schema.get("items") {
            Some(OrderedJson::Array(_)) => schema.get("additionalItems"),
            items => items,
        };
        match rest {
            Some(OrderedJson::Bool(false)) if items.len() > first.len() => {
                self.fail(place, &format!("must NOT have more than {} items", first.len()));
            }
            Some(rest @ OrderedJson::Object(_)) => {
                for (index, item) in items.iter().enumerate().skip(first.len()) {
                    self.schema(rest, item, &place.child(&index.to_string()));
                }
            }
            _ => {}
        }
        self.contains(schema, items, place);
    }

    fn contains(&mut self, schema: &OrderedJson, items: &[OrderedJson], place: &Place) {
        let Some(wanted) = schema.get("contains") else { return };
        let mut messages = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let found = self.try_schema(wanted, item, &place.child(&index.to_string()));
            if found.is_empty() {
                return;
            }
            messages.extend(found);
        }
        self.messages.extend(messages);
        self.fail(place, "must contain at least 1 valid item(s)");
    }

    fn object(
        &mut self,
        schema: &OrderedJson,
        members: &IndexMap<String, OrderedJson>,
        value: &OrderedJson,
        place: &Place,
    ) {
        self.length(schema, ("maxProperties", "minProperties"), members.len(), "properties", place);
        let required = schema.get("required").and_then(OrderedJson::as_array).unwrap_or_default();
        for name in required.iter().filter_map(OrderedJson::as_str).filter(|name| value.get(name).is_none()) {
            self.fail(place, &format!("must have required property '{name}'"));
        }
        if let Some(names) = schema.get("propertyNames") {
            for (name, _) in members {
                let messages = self.try_schema(names, &name.as_str().into(), &place.same());
                if !messages.is_empty() {
                    self.messages.extend(messages);
                    self.fail(place, "property name must be valid");
                }
            }
        }
        let properties = schema.get("properties");
        let patterns: Vec<_> = schema
            .members("patternProperties")
            .filter_map(|(pattern, schema)| Some((Regex::new(pattern).ok()?, schema)))
            .collect();
        let is_known = |name: &str| {
            properties.is_some_and(|properties| properties.get(name).is_some())
                || patterns.iter().any(|(pattern, _)| pattern.is_match(name))
        };
        let others = || members.iter().filter(|(name, _)| !is_known(name));
        match schema.get("additionalProperties") {
            Some(OrderedJson::Bool(false)) => {
                for _ in others() {
                    self.fail(place, "must NOT have additional properties");
                }
            }
            Some(additional @ OrderedJson::Object(_)) => {
                others().for_each(|(name, value)| self.schema(additional, value, &place.child(name)));
            }
            _ => {}
        }
        if let Some(OrderedJson::Object(properties)) = properties {
            for (name, schema) in properties {
                if let Some(value) = value.get(name) {
                    self.schema(schema, value, &place.child(name));
                }
            }
        }
        for (pattern, schema) in &patterns {
            for (name, value) in members.iter().filter(|(name, _)| pattern.is_match(name)) {
                self.schema(schema, value, &place.child(name));
            }
        }
    }

    fn any_type(&mut self, schema: &OrderedJson, value: &OrderedJson, place: &Place) {
        if let Some(allowed) = schema.get("enum").and_then(OrderedJson::as_array)
            && !allowed.contains(value)
        {
            self.fail(place, "must be equal to one of the allowed values");
        }
        if schema.get("const").is_some_and(|constant| constant != value) {
            self.fail(place, "must be equal to constant");
        }
        if let Some(not) = schema.get("not")
            && self.try_schema(not, value, &place.same()).is_empty()
        {
            self.fail(place, "must NOT be valid");
        }
        self.alternatives(schema, value, place);
        for all in schema.get("allOf").and_then(OrderedJson::as_array).unwrap_or_default() {
            self.schema(all, value, &place.same());
        }
        if let Some(condition) = schema.get("if") {
            let holds = self.try_schema(condition, value, &place.same()).is_empty();
            let branch = if holds { "then" } else { "else" };
            if let Some(schema) = schema.get(branch) {
                let messages = self.try_schema(schema, value, &place.same());
                if !messages.is_empty() {
                    self.messages.extend(messages);
                    self.fail(place, &format!("must match \"{branch}\" schema"));
                }
            }
        }
    }

    fn alternatives(&mut self, schema: &OrderedJson, value: &OrderedJson, place: &Place) {
        for (name, message) in
            [("anyOf", "must match a schema in anyOf"), ("oneOf", "must match exactly one schema in oneOf")]
        {
            let Some(choices) = schema.get(name).and_then(OrderedJson::as_array) else { continue };
            let results: Vec<_> =
                choices.iter().map(|choice| self.try_schema(choice, value, &place.same())).collect();
            match results.iter().filter(|messages| messages.is_empty()).count() {
                0 => {
                    self.messages.extend(results.concat());
                    self.fail(place, message);
                }
                1 => {}
                _ if name == "oneOf" => self.fail(place, message),
                _ => {}
            }
        }
    }

    /// Validates apart, and returns the messages.
    fn try_schema(&self, schema: &OrderedJson, value: &OrderedJson, place: &Place) -> Vec<String> {
        let mut check = Check { root: self.root, steps: self.steps, messages: Vec::new() };
        check.schema(schema, value, place);
        check.messages
    }
}

fn matches_type(types: &OrderedJson, value: &OrderedJson) -> bool {
    let is = |name: &str| match (name, value) {
        ("integer", value) => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        (name, value) => name == value.type_name(),
    };
    match types {
        OrderedJson::String(name) => is(name),
        OrderedJson::Array(names) => names.iter().filter_map(OrderedJson::as_str).any(is),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, value: &str) -> String {
        let schema = JsonSchema::new(serde_json::from_str(schema).unwrap()).unwrap();
        schema.violations(&serde_json::from_str(value).unwrap()).join(", ")
    }

    #[test]
    fn messages_are_those_of_the_reference() {
        for (schema, value, message) in [
            (r#"{"type": "object", "required": ["a"]}"#, "{}", "root: must have required property 'a'"),
            (r#"{"properties": {"a": {"type": "integer"}}}"#, r#"{"a": 1.5}"#, "/a: must be integer"),
            (r#"{"type": ["string", "null"]}"#, "5", "root: must be string,null"),
            (r#"{"minimum": 1}"#, "0", "root: must be >= 1"),
            (r#"{"maximum": 9}"#, "10", "root: must be <= 9"),
            (r#"{"exclusiveMinimum": 0}"#, "0", "root: must be > 0"),
            (r#"{"multipleOf": 0.5}"#, "0.3", "root: must be multiple of 0.5"),
            (r#"{"minLength": 2}"#, r#""a""#, "root: must NOT have fewer than 2 characters"),
            (r#"{"maxLength": 1}"#, r#""ab""#, "root: must NOT have more than 1 characters"),
            (r#"{"pattern": "^[a-z]+$"}"#, r#""AB""#, "root: must match pattern \"^[a-z]+$\""),
            (r#"{"minItems": 1}"#, "[]", "root: must NOT have fewer than 1 items"),
            (r#"{"maxItems": 1}"#, "[1, 2]", "root: must NOT have more than 1 items"),
            (
                r#"{"uniqueItems": true}"#,
                r#"["a", "a"]"#,
                "root: must NOT have duplicate items (items ## 1 and 0 are identical)",
            ),
            (r#"{"items": {"type": "string"}}"#, "[1]", "/0: must be string"),
            (r#"{"enum": ["a"]}"#, r#""z""#, "root: must be equal to one of the allowed values"),
            (r#"{"const": "k"}"#, r#""z""#, "root: must be equal to constant"),
            (r#"{"not": {"type": "string"}}"#, r#""z""#, "root: must NOT be valid"),
            (
                r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#,
                "5",
                "root: must be string, root: must be null, root: must match a schema in anyOf",
            ),
            (
                r#"{"oneOf": [{"type": "number"}, {"type": "integer"}]}"#,
                "3",
                "root: must match exactly one schema in oneOf",
            ),
            (r#"{"allOf": [{"minimum": 5}, {"maximum": 6}]}"#, "4", "root: must be >= 5"),
            (r##"{"$ref": "#/$defs/p", "$defs": {"p": {"type": "string"}}}"##, "4", "root: must be string"),
            (r#"{"patternProperties": {"^x": {"type": "number"}}}"#, r#"{"x1": "s"}"#, "/x1: must be number"),
            (
                r#"{"propertyNames": {"maxLength": 3}}"#,
                r#"{"long": 1}"#,
                "root: must NOT have more than 3 characters, root: property name must be valid",
            ),
            (r#"{"minProperties": 1}"#, "{}", "root: must NOT have fewer than 1 properties"),
            (
                r#"{"contains": {"type": "number"}}"#,
                r#"["a"]"#,
                "/0: must be number, root: must contain at least 1 valid item(s)",
            ),
            (
                r#"{"prefixItems": [{"type": "string"}], "items": false}"#,
                r#"["a", 1]"#,
                "root: must NOT have more than 1 items",
            ),
            (
                r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}"#,
                r#"{"a": "x", "z": 1}"#,
                "root: must NOT have additional properties, /a: must be integer",
            ),
        ] {
            assert_eq!(check(schema, value), message, "{schema} {value}");
        }
    }

    #[test]
    fn valid_values_have_no_messages() {
        let schema = r#"{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}"#;
        assert_eq!(check(schema, r#"{"n": 3.0, "other": null}"#), "");
        assert_eq!(check("true", "5"), "");
    }

    #[test]
    fn recursive_schemas_end() {
        assert_eq!(check(r##"{"$ref": "#"}"##, "5"), "");
        assert_eq!(check(r##"{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}"##, "5"), "");
    }
}
