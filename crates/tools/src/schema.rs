//! Parameters of tools: one table per tool yields the JSON Schema for the API and the validation of calls.

use indexmap::IndexMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::OrderedJson;
use crate::output::{ToolOutput, raw};

/// One parameter of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The name in the input object.
    pub name: &'static str,
    /// The accepted values.
    pub kind: Kind,
    /// Whether a call without it is invalid.
    pub required: bool,
    /// The JSON text of the value that is filled in if it is missing.
    pub default: Option<&'static str>,
    /// The explanation for the model.
    pub description: &'static str,
}

/// The values that a parameter accepts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A string of at least this many characters.
    Text(u32),
    /// An absolute URL.
    Url,
    /// A number, optionally within an inclusive range.
    Number(Option<(f64, f64)>),
    /// A whole number that is not negative.
    Offset,
    /// A positive whole number.
    Count,
    /// `true` or `false`.
    Flag,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// One of the strings of either list.
    EitherChoice(&'static [&'static str], &'static str),
    /// A list of strings.
    Texts,
    /// A list of objects with these members.
    Objects(&'static [Parameter]),
    /// A list of objects with these members, with a smallest and a largest number of items.
    ObjectsInRange(&'static [Parameter], usize, usize),
    /// An object with arbitrary members. Other values are ignored, as the reference does.
    Map,
}

/// Returns a required parameter.
pub(crate) const fn required(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter { name, kind, required: true, default: None, description }
}

/// Returns an optional parameter.
pub(crate) const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter { name, kind, required: false, default: None, description }
}

/// The largest integer that JavaScript represents exactly.
const MAX_SAFE_INTEGER: u64 = 9_007_199_254_740_991;

/// Returns the JSON Schema of an input object.
pub(crate) fn json_schema(parameters: &[Parameter]) -> Box<RawValue> {
    let mut members = members([("$schema", "https://json-schema.org/draft/2020-12/schema".into())]);
    members.extend(object_schema(parameters));
    raw(&OrderedJson::Object(members))
}

type Members = IndexMap<String, OrderedJson>;

fn members<const N: usize>(members: [(&str, OrderedJson); N]) -> Members {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn object_schema(parameters: &[Parameter]) -> Members {
    let properties = parameters.iter().map(|parameter| {
        let mut schema = Members::new();
        if let Some(default) = parameter.default.and_then(|text| serde_json::from_str(text).ok()) {
            schema.insert("default".to_owned(), default);
        }
        schema.extend(kind_schema(parameter.kind));
        if !parameter.description.is_empty() {
            schema.insert("description".to_owned(), parameter.description.into());
        }
        (parameter.name.to_owned(), OrderedJson::Object(schema))
    });
    let mut schema =
        members([("type", "object".into()), ("properties", OrderedJson::Object(properties.collect()))]);
    let required = parameters.iter().filter(|parameter| parameter.required);
    let required: Vec<OrderedJson> = required.map(|parameter| parameter.name.into()).collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), OrderedJson::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), OrderedJson::Bool(false));
    schema
}

fn kind_schema(kind: Kind) -> Members {
    let number =
        |value: f64| serde_json::Number::from_f64(value).map_or(OrderedJson::Null, OrderedJson::Number);
    let integer = |value: u64| OrderedJson::Number(value.into());
    let texts = |values: &[&str]| OrderedJson::Array(values.iter().map(|value| (*value).into()).collect());
    let object = |parameters| OrderedJson::Object(object_schema(parameters));
    match kind {
        Kind::Text(0) => members([("type", "string".into())]),
        Kind::Text(min) => members([("type", "string".into()), ("minLength", integer(min.into()))]),
        Kind::Url => members([("type", "string".into()), ("format", "uri".into())]),
        Kind::Number(None) => members([("type", "number".into())]),
        Kind::Number(Some((min, max))) => {
            members([("type", "number".into()), ("minimum", number(min)), ("maximum", number(max))])
        }
        Kind::Offset => members([
            ("type", "integer".into()),
            ("minimum", integer(0)),
            ("maximum", integer(MAX_SAFE_INTEGER)),
        ]),
        Kind::Count => members([
            ("type", "integer".into()),
            ("exclusiveMinimum", integer(0)),
            ("maximum", integer(MAX_SAFE_INTEGER)),
        ]),
        Kind::Flag => members([("type", "boolean".into())]),
        Kind::Choice(values) => members([("type", "string".into()), ("enum", texts(values))]),
        Kind::EitherChoice(values, other) => {
            let choice = members([("type", "string".into()), ("enum", texts(values))]);
            let constant = members([("type", "string".into()), ("const", other.into())]);
            let choices = [choice, constant].map(OrderedJson::Object).into();
            members([("anyOf", OrderedJson::Array(choices))])
        }
        Kind::Texts => {
            let items = OrderedJson::Object(members([("type", "string".into())]));
            members([("type", "array".into()), ("items", items)])
        }
        Kind::Objects(parameters) => members([("type", "array".into()), ("items", object(parameters))]),
        Kind::ObjectsInRange(parameters, min, max) => members([
            ("minItems", integer(min as u64)),
            ("maxItems", integer(max as u64)),
            ("type", "array".into()),
            ("items", object(parameters)),
        ]),
        Kind::Map => members([
            ("type", "object".into()),
            ("propertyNames", OrderedJson::Object(members([("type", "string".into())]))),
            ("additionalProperties", OrderedJson::Object(Members::new())),
        ]),
    }
}

/// A step of the path to an invalid value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum PathStep {
    Name(String),
    Index(usize),
}

/// One reason why an input is invalid, serialised as the reference does.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Issue {
    Type {
        expected: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<&'static str>,
        code: &'static str,
        path: Vec<PathStep>,
        message: String,
        #[serde(skip)]
        received: &'static str,
    },
    UnknownKeys {
        code: &'static str,
        keys: Vec<String>,
        path: Vec<PathStep>,
        message: String,
    },
    Value {
        code: &'static str,
        values: Vec<&'static str>,
        path: Vec<PathStep>,
        message: String,
    },
    TooSmall {
        origin: &'static str,
        code: &'static str,
        #[serde(serialize_with = "whole")]
        minimum: f64,
        inclusive: bool,
        path: Vec<PathStep>,
        message: String,
    },
    TooBig {
        origin: &'static str,
        code: &'static str,
        #[serde(serialize_with = "whole")]
        maximum: f64,
        inclusive: bool,
        path: Vec<PathStep>,
        message: String,
    },
    Format {
        code: &'static str,
        format: &'static str,
        path: Vec<PathStep>,
        message: &'static str,
    },
    Union {
        code: &'static str,
        errors: Vec<Vec<Self>>,
        path: Vec<PathStep>,
        message: &'static str,
    },
}

fn whole<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    OrderedJson::Number(serde_json::Number::from_f64(*value).unwrap_or_else(|| 0.into()))
        .serialize(serializer)
}

/// Converts strings to the numbers and booleans that parameters expect, in place, and returns the issues.
///
/// With `converts_text`, `"2"` is accepted for a number and `"true"` for a boolean.
struct Validator {
    converts_text: bool,
    issues: Vec<Issue>,
}

impl Validator {
    fn wrong_type(&mut self, expected: &'static str, received: &'static str, path: &[PathStep]) {
        self.issues.push(Issue::Type {
            expected,
            format: (expected == "int").then_some("safeint"),
            code: "invalid_type",
            path: path.to_vec(),
            message: format!("Invalid input: expected {expected}, received {received}"),
            received,
        });
    }

    fn object(&mut self, members: &mut Members, parameters: &[Parameter], path: &[PathStep]) {
        let at = |step: PathStep| [path, &[step]].concat();
        for parameter in parameters {
            let path = at(PathStep::Name(parameter.name.to_owned()));
            match members.get_mut(parameter.name) {
                Some(value) => self.value(value, parameter.kind, &path),
                None if parameter.required && parameter.default.is_none() => {
                    if let Kind::Choice(values) = parameter.kind {
                        self.issues.push(wrong_choice(values, path));
                    } else {
                        self.wrong_type(expected_type(parameter.kind), "undefined", &path);
                    }
                }
                None => {}
            }
        }
        let is_known = |key: &str| parameters.iter().any(|parameter| parameter.name == key);
        let unknown: Vec<_> = members.keys().filter(|key| !is_known(key)).cloned().collect();
        if !unknown.is_empty() {
            let quoted: Vec<_> = unknown.iter().map(|key| format!("\"{key}\"")).collect();
            let noun = if unknown.len() == 1 { "key" } else { "keys" };
            self.issues.push(Issue::UnknownKeys {
                code: "unrecognized_keys",
                keys: unknown,
                path: path.to_vec(),
                message: format!("Unrecognized {noun}: {}", quoted.join(", ")),
            });
        }
    }

    fn value(&mut self, value: &mut OrderedJson, kind: Kind, path: &[PathStep]) {
        if self.converts_text {
            convert_text(value, kind);
        }
        let received = value.type_name();
        match (kind, value) {
            (Kind::Text(min), OrderedJson::String(text)) => {
                if text.chars().map(char::len_utf16).sum::<usize>() < min as usize {
                    self.issues.push(Issue::TooSmall {
                        origin: "string",
                        code: "too_small",
                        minimum: f64::from(min),
                        inclusive: true,
                        path: path.to_vec(),
                        message: format!("Too small: expected string to have >={min} characters"),
                    });
                }
            }
            (Kind::Url, OrderedJson::String(text)) => {
                if !is_absolute_url(text) {
                    self.issues.push(Issue::Format {
                        code: "invalid_format",
                        format: "url",
                        path: path.to_vec(),
                        message: "Invalid URL",
                    });
                }
            }
            (Kind::Number(range), OrderedJson::Number(number)) => self.range(number, range, path),
            (Kind::Offset | Kind::Count, OrderedJson::Number(number)) => {
                if number.as_f64().is_some_and(|value| value.fract() != 0.0) {
                    self.wrong_type("int", "number", path);
                }
            }
            (Kind::Choice(values), value) => {
                if !value.as_str().is_some_and(|text| values.contains(&text)) {
                    self.issues.push(wrong_choice(values, path.to_vec()));
                }
            }
            (Kind::EitherChoice(values, other), value) => {
                if !value.as_str().is_some_and(|text| values.contains(&text) || text == other) {
                    let constant = Issue::Value {
                        code: "invalid_value",
                        values: vec![other],
                        path: Vec::new(),
                        message: format!("Invalid input: expected \"{other}\""),
                    };
                    self.issues.push(Issue::Union {
                        code: "invalid_union",
                        errors: vec![vec![wrong_choice(values, Vec::new())], vec![constant]],
                        path: path.to_vec(),
                        message: "Invalid input",
                    });
                }
            }
            (Kind::Texts, OrderedJson::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = [path, &[PathStep::Index(index)]].concat();
                    self.value(item, Kind::Text(0), &path);
                }
            }
            (Kind::Objects(parameters) | Kind::ObjectsInRange(parameters, ..), OrderedJson::Array(items)) => {
                if let Kind::ObjectsInRange(_, min, max) = kind {
                    self.length(items.len(), min, max, path);
                }
                for (index, item) in items.iter_mut().enumerate() {
                    let path = [path, &[PathStep::Index(index)]].concat();
                    match item {
                        OrderedJson::Object(members) => self.object(members, parameters, &path),
                        other => self.wrong_type("object", other.type_name(), &path),
                    }
                }
            }
            (Kind::Flag, OrderedJson::Bool(_)) | (Kind::Map, _) => {}
            _ => self.wrong_type(expected_type(kind), received, path),
        }
    }

    fn length(&mut self, length: usize, min: usize, max: usize, path: &[PathStep]) {
        if length < min {
            self.issues.push(Issue::TooSmall {
                origin: "array",
                code: "too_small",
                minimum: min as f64,
                inclusive: true,
                path: path.to_vec(),
                message: format!("Too small: expected array to have >={min} items"),
            });
        }
        if length > max {
            self.issues.push(Issue::TooBig {
                origin: "array",
                code: "too_big",
                maximum: max as f64,
                inclusive: true,
                path: path.to_vec(),
                message: format!("Too big: expected array to have <={max} items"),
            });
        }
    }

    fn range(&mut self, number: &serde_json::Number, range: Option<(f64, f64)>, path: &[PathStep]) {
        let (Some((min, max)), Some(value)) = (range, number.as_f64()) else { return };
        if value < min {
            self.issues.push(Issue::TooSmall {
                origin: "number",
                code: "too_small",
                minimum: min,
                inclusive: true,
                path: path.to_vec(),
                message: format!("Too small: expected number to be >={min}"),
            });
        }
        if value > max {
            self.issues.push(Issue::TooBig {
                origin: "number",
                code: "too_big",
                maximum: max,
                inclusive: true,
                path: path.to_vec(),
                message: format!("Too big: expected number to be <={max}"),
            });
        }
    }
}

fn wrong_choice(values: &'static [&'static str], path: Vec<PathStep>) -> Issue {
    let quoted: Vec<_> = values.iter().map(|value| format!("\"{value}\"")).collect();
    Issue::Value {
        code: "invalid_value",
        values: values.to_vec(),
        path,
        message: format!("Invalid option: expected one of {}", quoted.join("|")),
    }
}

fn expected_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Text(_) | Kind::Url | Kind::Choice(_) | Kind::EitherChoice(..) => "string",
        Kind::Number(_) | Kind::Offset | Kind::Count => "number",
        Kind::Flag => "boolean",
        Kind::Texts | Kind::Objects(_) | Kind::ObjectsInRange(..) => "array",
        Kind::Map => "object",
    }
}

fn convert_text(value: &mut OrderedJson, kind: Kind) {
    let OrderedJson::String(text) = &*value else { return };
    let converted = match kind {
        Kind::Number(_) | Kind::Offset | Kind::Count => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_number = digits.starts_with(|ch: char| ch.is_ascii_digit())
                && digits.ends_with(|ch: char| ch.is_ascii_digit())
                && digits.chars().all(|ch| ch.is_ascii_digit() || ch == '.')
                && digits.matches('.').count() <= 1;
            if !is_number {
                return;
            }
            let whole = text.parse::<i64>().ok().map(serde_json::Number::from);
            whole
                .or_else(|| text.parse().ok().and_then(serde_json::Number::from_f64))
                .map(OrderedJson::Number)
        }
        Kind::Flag => match text.as_str() {
            "true" => Some(OrderedJson::Bool(true)),
            "false" => Some(OrderedJson::Bool(false)),
            _ => None,
        },
        _ => None,
    };
    if let Some(converted) = converted {
        *value = converted;
    }
}

/// Returns whether `text` begins with a scheme and has something after it.
fn is_absolute_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme_char = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '+' | '-' | '.');
    let is_special =
        ["http", "https", "ftp", "ws", "wss"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    scheme.starts_with(|ch: char| ch.is_ascii_alphabetic())
        && scheme.chars().all(is_scheme_char)
        && (!is_special || !rest.trim_start_matches(['/', '\\']).is_empty())
        && !rest.split(['/', '?', '#']).find(|part| !part.is_empty()).is_some_and(|host| host.contains(' '))
}

/// Validates an input object and converts its values in place. The error is the result of the call.
pub(crate) fn validate_input(
    tool: &str,
    input: &mut OrderedJson,
    parameters: &[Parameter],
    converts_text: bool,
) -> Result<(), ToolOutput> {
    let mut validator = Validator { converts_text, issues: Vec::new() };
    match input {
        OrderedJson::Object(members) => validator.object(members, parameters, &[]),
        other => validator.wrong_type("object", other.type_name(), &[]),
    }
    if validator.issues.is_empty() {
        return Ok(());
    }
    let issues = serde_json::to_string_pretty(&validator.issues).unwrap_or_default();
    let message = describe(tool, &validator.issues).unwrap_or_else(|| issues.clone());
    Err(ToolOutput::error(
        format!("<tool_use_error>InputValidationError: {message}</tool_use_error>"),
        &format!("InputValidationError: {issues}"),
    ))
}

/// Describes missing, unknown and mistyped parameters in words; `None` if there are other issues only.
fn describe(tool: &str, issues: &[Issue]) -> Option<String> {
    let mut missing = Vec::new();
    let mut unknown = Vec::new();
    let mut mistyped = Vec::new();
    for issue in issues {
        match issue {
            Issue::Type { path, received: "undefined", .. } => {
                missing.push(format!("The required parameter `{}` is missing", show_path(path)));
            }
            Issue::Type { path, expected, received, .. } => mistyped.push(format!(
                "The parameter `{}` type is expected as `{expected}` but provided as `{received}`",
                show_path(path)
            )),
            Issue::UnknownKeys { keys, .. } => {
                unknown
                    .extend(keys.iter().map(|key| format!("An unexpected parameter `{key}` was provided")));
            }
            _ => {}
        }
    }
    let lines = [missing, unknown, mistyped].concat();
    if lines.is_empty() {
        return None;
    }
    let noun = if lines.len() == 1 { "issue" } else { "issues" };
    Some(format!("{tool} failed due to the following {noun}:\n{}", lines.join("\n")))
}

fn show_path(path: &[PathStep]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            PathStep::Name(name) if out.is_empty() => out.push_str(name),
            PathStep::Name(name) => {
                out.push('.');
                out.push_str(name);
            }
            PathStep::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        required("file_path", Kind::Text(0), "A path"),
        optional("limit", Kind::Count, "Lines"),
        optional("all", Kind::Flag, ""),
        optional("mode", Kind::Choice(&["a", "b"]), ""),
        optional("names", Kind::Texts, ""),
        optional("wait", Kind::Number(Some((0.0, 600_000.0))), ""),
        optional("status", Kind::EitherChoice(&["open"], "gone"), ""),
        optional("url", Kind::Url, ""),
    ];

    fn check(input: &str) -> Result<String, (String, String)> {
        let mut json: OrderedJson = serde_json::from_str(input).unwrap();
        match validate_input("Read", &mut json, PARAMETERS, true) {
            Ok(()) => Ok(serde_json::to_string(&json).unwrap()),
            Err(output) => {
                let record: String = serde_json::from_str(output.record.as_ref().unwrap().get()).unwrap();
                Err((output.text().to_owned(), record))
            }
        }
    }

    #[test]
    fn missing_and_unknown_parameters_are_described() {
        let (text, record) = check(r#"{"path": "x"}"#).unwrap_err();
        assert_eq!(
            text,
            "<tool_use_error>InputValidationError: Read failed due to the following issues:\n\
             The required parameter `file_path` is missing\n\
             An unexpected parameter `path` was provided</tool_use_error>"
        );
        assert_eq!(
            record,
            "InputValidationError: [\n  {\n    \"expected\": \"string\",\n    \"code\": \"invalid_type\",\n    \
             \"path\": [\n      \"file_path\"\n    ],\n    \"message\": \"Invalid input: expected string, \
             received undefined\"\n  },\n  {\n    \"code\": \"unrecognized_keys\",\n    \"keys\": [\n      \
             \"path\"\n    ],\n    \"path\": [],\n    \"message\": \"Unrecognized key: \\\"path\\\"\"\n  }\n]"
        );
    }

    #[test]
    fn mistyped_parameters_are_described() {
        let (text, _) = check(r#"{"file_path": 7, "limit": 1.5, "names": [1]}"#).unwrap_err();
        assert_eq!(
            text,
            "<tool_use_error>InputValidationError: Read failed due to the following issues:\n\
             The parameter `file_path` type is expected as `string` but provided as `number`\n\
             The parameter `limit` type is expected as `int` but provided as `number`\n\
             The parameter `names[0]` type is expected as `string` but provided as `number`</tool_use_error>"
        );
    }

    #[test]
    fn other_issues_are_shown_as_json() {
        let (text, record) = check(r#"{"file_path": "", "mode": "c"}"#).unwrap_err();
        let issue = "InputValidationError: [\n  {\n    \"code\": \"invalid_value\",\n    \"values\": [\n      \
                     \"a\",\n      \"b\"\n    ],\n    \"path\": [\n      \"mode\"\n    ],\n    \"message\": \
                     \"Invalid option: expected one of \\\"a\\\"|\\\"b\\\"\"\n  }\n]";
        assert_eq!(text, format!("<tool_use_error>{issue}</tool_use_error>"));
        assert_eq!(record, issue);
    }

    #[test]
    fn a_number_over_its_range_is_an_issue() {
        let (_, record) = check(r#"{"file_path": "", "wait": 700000}"#).unwrap_err();
        assert_eq!(
            record,
            "InputValidationError: [\n  {\n    \"origin\": \"number\",\n    \"code\": \"too_big\",\n    \
             \"maximum\": 600000,\n    \"inclusive\": true,\n    \"path\": [\n      \"wait\"\n    ],\n    \
             \"message\": \"Too big: expected number to be <=600000\"\n  }\n]"
        );
    }

    #[test]
    fn a_union_lists_the_issues_of_each_side() {
        let (_, record) = check(r#"{"file_path": "", "status": "x"}"#).unwrap_err();
        assert!(record.contains("\"code\": \"invalid_union\""), "{record}");
        assert!(record.contains("expected \\\"gone\\\""), "{record}");
    }

    #[test]
    fn text_is_converted_to_numbers_and_booleans() {
        let json = check(r#"{"file_path": "7", "limit": "2", "all": "true"}"#).unwrap();
        assert_eq!(json, r#"{"file_path":"7","limit":2,"all":true}"#);
    }

    #[test]
    fn an_input_that_is_no_object_is_an_issue() {
        let (text, _) = check("[1, 2]").unwrap_err();
        assert_eq!(
            text,
            "<tool_use_error>InputValidationError: Read failed due to the following issue:\n\
             The parameter `` type is expected as `object` but provided as `array`</tool_use_error>"
        );
    }

    #[test]
    fn urls_need_a_scheme_and_a_host() {
        for url in ["notaurl", "http://", "://x", "https://a b/"] {
            assert!(!is_absolute_url(url), "{url}");
        }
        for url in ["http://x", "https://x.org/a b", "file:///etc", "mailto:me"] {
            assert!(is_absolute_url(url), "{url}");
        }
    }

    #[test]
    fn the_schema_lists_types_and_required_names() {
        let schema = json_schema(&PARAMETERS[..2]);
        assert_eq!(
            schema.get(),
            "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"properties\":\
             {\"file_path\":{\"type\":\"string\",\"description\":\"A path\"},\"limit\":{\"type\":\"integer\",\
             \"exclusiveMinimum\":0,\"maximum\":9007199254740991,\"description\":\"Lines\"}},\
             \"required\":[\"file_path\"],\"additionalProperties\":false}"
        );
    }
}
