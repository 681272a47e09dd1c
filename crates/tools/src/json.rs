//! JSON with the key order of its source, which `serde_json::Value` does not keep in this workspace.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Number;

/// A JSON value. Objects keep the order of their members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OrderedJson {
    Null,
    Bool(bool),
    Number(#[serde(serialize_with = "serialize_number")] Number),
    String(String),
    Array(Vec<Self>),
    Object(IndexMap<String, Self>),
}

impl OrderedJson {
    /// Returns an object with these members.
    pub(crate) fn object<'n>(members: impl IntoIterator<Item = (&'n str, Self)>) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns a member.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(members) => members.get_mut(name),
            _ => None,
        }
    }

    /// Returns the members of a member that is an object; none if it is something else.
    pub(crate) fn members(&self, name: &str) -> impl Iterator<Item = (&String, &Self)> {
        let object = match self.get(name) {
            Some(Self::Object(members)) => Some(members),
            _ => None,
        };
        object.into_iter().flatten()
    }

    /// Replaces a member, or appends it.
    pub(crate) fn set(&mut self, name: &str, value: Self) {
        if let Self::Object(members) = self {
            members.insert(name.to_owned(), value);
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the name of the type as JavaScript validators report it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Self::Object(members) = self {
            members.shift_remove(name);
        }
    }

    /// Returns the value as indented text.
    pub(crate) fn to_pretty(&self, indent: &[u8]) -> String {
        let mut out = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        // Writing to a vector cannot fail, and keys are strings.
        let _ = self.serialize(&mut serializer);
        String::from_utf8(out).unwrap_or_default()
    }
}

impl From<&str> for OrderedJson {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

/// Writes a number as JavaScript does: `1.0` as `1`.
fn serialize_number<S: Serializer>(number: &Number, serializer: S) -> Result<S::Ok, S::Error> {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < 1e15 => {
            serializer.serialize_i64(value as i64)
        }
        _ => number.serialize(serializer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_is_kept() {
        let text = r#"{"z":1,"a":{"y":[1.5,2.0,null],"b":"x"}}"#;
        let json: OrderedJson = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), r#"{"z":1,"a":{"y":[1.5,2,null],"b":"x"}}"#);
        assert_eq!(json.get("a").and_then(|a| a.get("b")).and_then(OrderedJson::as_str), Some("x"));
    }

    #[test]
    fn pretty_text_uses_the_given_indent() {
        let json: OrderedJson = serde_json::from_str(r#"{"a":[],"b":[1]}"#).unwrap();
        assert_eq!(json.to_pretty(b" "), "{\n \"a\": [],\n \"b\": [\n  1\n ]\n}");
    }
}
