//! JSON values of the client.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Serialises a value. The values of this crate cannot fail; an error would be serialised as null.
pub(crate) fn raw(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
