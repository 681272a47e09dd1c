//! JSON objects whose members keep their order and their text.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON object. Members keep their order and the exact text of their values, known or not.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawObject {
    members: IndexMap<String, Box<RawValue>>,
}

impl RawObject {
    /// Creates an empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a JSON object.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Returns this object with another member; for building objects.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Serialize) -> Self {
        self.set(key, value);
        self
    }

    /// Returns the value of a member.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.members.get(key).map(|value| &**value)
    }

    /// Returns the value of a member that is a string.
    pub fn get_str(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Returns the value of a member that is a number that fits.
    pub fn get_u64(&self, key: &str) -> Option<u64> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Returns the value of a member that is an object.
    pub fn get_object(&self, key: &str) -> Option<Self> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Sets a member: replaces the value of an existing one, or adds it at the end. A value that has no JSON
    /// form (a map with keys that are not strings) becomes null.
    pub fn set(&mut self, key: &str, value: impl Serialize) {
        let value = to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.set_raw(key, value);
    }

    /// Sets a member to a value that is JSON already.
    pub fn set_raw(&mut self, key: &str, value: Box<RawValue>) {
        self.members.insert(key.to_owned(), value);
    }

    /// Removes a member.
    pub fn remove(&mut self, key: &str) -> Option<Box<RawValue>> {
        self.members.shift_remove(key)
    }

    /// Returns the members in order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members.iter().map(|(key, value)| (key.as_str(), &**value))
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the object as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_text() {
        let json = r#"{"z":1.50,"a":"\u00e9","unknown":{"y": [1, 2]}}"#;
        assert_eq!(RawObject::parse(json).unwrap().to_json(), json);
    }

    #[test]
    fn setting_replaces_in_place_or_appends() {
        let mut object = RawObject::parse(r#"{"a":1,"b":2}"#).unwrap();
        object.set("a", "x");
        object.set("c", [3]);
        assert_eq!(object.to_json(), r#"{"a":"x","b":2,"c":[3]}"#);
        object.remove("b");
        assert_eq!(object.to_json(), r#"{"a":"x","c":[3]}"#);
    }
}
