//! Typed lenses: the known fields of each kind of line, read from its bytes on demand.
//!
//! A lens is a view of an object as a set of known fields. It owns nothing and validates nothing in advance:
//! a field that is missing or has an unexpected type is `None`. The tables in this folder are the only code
//! that names the keys of the format, so [`drift`] can report all other keys.

mod attachment;
mod envelope;
mod message;
mod progress;
mod record;
mod system;
mod tool;

use std::borrow::Cow;
use std::marker::PhantomData;

pub use attachment::*;
pub use envelope::*;
pub use message::*;
pub use progress::*;
pub use record::*;
pub use system::*;
pub use tool::*;

use crate::index::{IndexedBlocks, IndexedFields};
use crate::json::{Json, JsonKey, JsonKind};
use crate::kind::Kind;
use crate::timestamp::{self, Millis};
use crate::{Entry, JsonItems};

/// The keys under which a line refers to lines by uuid, at any depth outside of messages.
pub const REFERENCES: &[&str] = &[
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "leafUuid",
    "messageId",
    "messageUuid",
    "snapshotMessageId",
    "sourceToolAssistantUUID",
    "refusedUserMessageUuid",
    "headUuid",
    "anchorUuid",
    "tailUuid",
    "uuids",
    "allUuids",
    "clearedAttachmentUUIDs",
    "source_uuid",
];

/// An object to read fields from. The members of a line, its message and its blocks are indexed.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// `None` if it is a line, whose ends are searched for only if they are needed.
    json: Option<Json<'a>>,
    fields: Option<IndexedFields<'a>>,
    blocks: Option<IndexedBlocks<'a>>,
}

impl<'a> Object<'a> {
    /// Wraps an object inside a line.
    pub fn new(json: Json<'a>) -> Self {
        Self { json: Some(json), fields: None, blocks: None }
    }

    /// Wraps a line.
    pub(crate) fn of_line(fields: IndexedFields<'a>) -> Self {
        Self { json: None, fields: Some(fields), blocks: None }
    }

    /// Wraps an object with indexed members.
    pub(crate) fn indexed(json: Json<'a>, fields: IndexedFields<'a>) -> Self {
        Self { json: Some(json), ..Self::of_line(fields) }
    }

    /// Adds the indexed content blocks of a message.
    pub(crate) fn with_blocks(self, blocks: IndexedBlocks<'a>) -> Self {
        Self { blocks: Some(blocks), ..self }
    }

    /// Returns the object as JSON text.
    pub fn json(self) -> Json<'a> {
        let line = || self.fields.and_then(IndexedFields::object);
        self.json.or_else(line).unwrap_or(Json::from_valid("{}"))
    }

    /// Returns the value of `key`; `null` counts as missing.
    pub fn get(self, key: &str) -> Option<Json<'a>> {
        let value = match self.fields {
            Some(fields) => fields.get(key),
            None => self.json().get(key),
        };
        value.filter(|value| !value.is_null())
    }

    /// Returns the values of several keys, like [`Object::get`] for each. An object that is not indexed is
    /// read once for all of them.
    pub(crate) fn get_all<const N: usize>(self, keys: [&str; N]) -> [Option<Json<'a>>; N] {
        match self.fields {
            Some(_) => keys.map(|key| self.get(key)),
            None => self.json().get_all(keys).map(|value| value.filter(|value| !value.is_null())),
        }
    }
}

/// A set of known fields over an object.
pub trait Lens<'a>: Copy {
    /// The keys of the fields, as the format writes them.
    const KEYS: &'static [&'static str];

    /// Creates the lens over `object`.
    fn over(object: Object<'a>) -> Self;

    /// Returns the object that the lens reads.
    fn object(self) -> Object<'a>;

    /// Returns whether `key` is a field of this lens; if so, reports the unknown keys inside its value.
    fn knows(key: JsonKey<'_>, value: Json<'_>, drift: &mut Drift<'_>) -> bool;
}

/// A type that a lens can read from a field.
pub trait FromJson<'a>: Sized {
    /// The type that callers get; for most types the type itself.
    type Value;

    /// Returns the value in the form that callers get.
    fn value(self) -> Self::Value;

    /// Reads the value, if it has the expected kind.
    fn from_json(json: Json<'a>) -> Option<Self>;

    /// Reads a field, if it exists and has the expected kind.
    fn from_field(object: Object<'a>, key: &str) -> Option<Self> {
        Self::from_json(object.get(key)?)
    }

    /// Reports the unknown keys inside the value: by default all of them.
    fn drift(json: Json<'_>, drift: &mut Drift<'_>) {
        drift.members(json, &[]);
        for item in json.items() {
            Self::drift(item, drift);
        }
    }
}

impl<'a> FromJson<'a> for Cow<'a, str> {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        json.as_str()
    }
}

impl<'a> FromJson<'a> for u64 {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        json.as_u64()
    }
}

impl<'a> FromJson<'a> for f64 {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        json.as_f64()
    }
}

impl<'a> FromJson<'a> for bool {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        json.as_bool()
    }
}

/// A value of any kind. Its objects have no known keys: use [`Open`] and [`Map`] for objects with arbitrary
/// keys.
impl<'a> FromJson<'a> for Json<'a> {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Self) -> Option<Self> {
        Some(json)
    }
}

/// A value with arbitrary keys that are not part of the format, such as the input of a tool or a schema.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a>(Json<'a>);

impl<'a> FromJson<'a> for Open<'a> {
    type Value = Json<'a>;

    fn value(self) -> Json<'a> {
        self.0
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        Some(Self(json))
    }

    fn drift(_json: Json<'_>, _drift: &mut Drift<'_>) {}
}

/// A value of any kind. Its objects, including those in lists, have the fields of the lens `L`.
#[derive(Clone, Copy, Debug)]
pub struct Mixed<'a, L>(Json<'a>, PhantomData<fn() -> L>);

impl<'a, L: FromJson<'a>> FromJson<'a> for Mixed<'a, L> {
    type Value = Json<'a>;

    fn value(self) -> Json<'a> {
        self.0
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        Some(Self(json, PhantomData))
    }

    fn drift(json: Json<'_>, drift: &mut Drift<'_>) {
        match json.kind() {
            JsonKind::Object => L::drift(json, drift),
            _ => json.items().for_each(|item| Self::drift(item, drift)),
        }
    }
}

/// An object with arbitrary keys and values of one type, such as paths to backups.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a, T>(Json<'a>, PhantomData<fn() -> T>);

impl<'a, T: FromJson<'a>> FromJson<'a> for Map<'a, T> {
    type Value = Json<'a>;

    fn value(self) -> Json<'a> {
        self.0
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        json.is_object().then_some(Self(json, PhantomData))
    }

    fn drift(json: Json<'_>, drift: &mut Drift<'_>) {
        for (_, value) in json.members() {
            drift.at("*", |drift| T::drift(value, drift));
        }
    }
}

/// A timestamp, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Millis);

impl<'a> FromJson<'a> for Moment {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        timestamp::parse_timestamp(&json.as_str()?).map(Self)
    }
}

/// An array that is read one item at a time.
#[derive(Debug)]
pub struct List<'a, T>(Json<'a>, PhantomData<fn() -> T>);

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<'a, T: FromJson<'a>> List<'a, T> {
    /// Returns the items that have the expected kind.
    pub fn iter(self) -> impl Iterator<Item = T> + use<'a, T> {
        self.0.items().filter_map(T::from_json)
    }

    /// Returns all items as JSON values.
    pub fn items(self) -> JsonItems<'a> {
        self.0.items()
    }

    /// Returns the number of items.
    pub fn len(self) -> usize {
        self.0.items().count()
    }

    /// Returns whether the array is empty.
    pub fn is_empty(self) -> bool {
        self.0.items().next().is_none()
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for List<'a, T> {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        (json.kind() == JsonKind::Array).then_some(Self(json, PhantomData))
    }

    fn drift(json: Json<'_>, drift: &mut Drift<'_>) {
        drift.members(json, &[]);
        for item in json.items() {
            T::drift(item, drift);
        }
    }
}

/// Reports the keys of an entry that no lens defines.
pub struct Drift<'s> {
    path: String,
    sink: &'s mut dyn FnMut(&str),
}

impl Drift<'_> {
    /// Runs `inner` for a value inside of the current one, with `name` appended to the path.
    pub(crate) fn at(&mut self, name: &str, inner: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        inner(self);
        self.path.truncate(length);
    }

    /// Reports a key that is unknown at the current path.
    pub(crate) fn report(&mut self, name: &str) {
        self.at(name, |drift| (drift.sink)(&drift.path));
    }

    /// Reports the members of `json` that none of `lenses` defines.
    ///
    /// If several lenses define a key, they may read it as different types: the one with the fewest unknown
    /// keys counts.
    pub(crate) fn members(&mut self, json: Json<'_>, lenses: &[Knows]) {
        for (key, value) in json.members() {
            let mut fewest: Option<Vec<String>> = None;
            for knows in lenses {
                let mut found = Vec::new();
                let mut sink = |path: &str| found.push(path.to_owned());
                let mut inner = Drift { path: std::mem::take(&mut self.path), sink: &mut sink };
                let is_known = knows(key, value, &mut inner);
                self.path = std::mem::take(&mut inner.path);
                if is_known && fewest.as_ref().is_none_or(|fewest| found.len() < fewest.len()) {
                    fewest = Some(found);
                }
                if fewest.as_ref().is_some_and(Vec::is_empty) {
                    break;
                }
            }
            match fewest {
                Some(found) => found.iter().for_each(|path| (self.sink)(path)),
                None => self.report(&key.name()),
            }
        }
    }
}

/// The [`Lens::knows`] function of a lens.
pub(crate) type Knows = fn(JsonKey<'_>, Json<'_>, &mut Drift<'_>) -> bool;

/// Calls `sink` with the path of each key in `entry` that no lens defines, such as `user.message.mood`.
///
/// Entries of unknown type are skipped, because all their keys are unknown.
pub fn drift(entry: &Entry, sink: &mut dyn FnMut(&str)) {
    let (Some(object), Some(lenses)) = (entry.object(), lenses_of(entry.kind())) else { return };
    let path = entry.kind().name().unwrap_or_default().to_owned();
    let mut drift = Drift { path, sink };
    drift.members(object.json(), &lenses);
}

/// Returns the lenses that together define the fields of lines of a kind.
fn lenses_of(kind: Kind) -> Option<Vec<Knows>> {
    let own: &[Knows] = match kind {
        Kind::User => &[User::knows],
        Kind::Assistant => &[Assistant::knows],
        Kind::System => SYSTEM_LENSES,
        Kind::Progress => &[Progress::knows],
        Kind::Attachment => &[AttachmentLine::knows],
        _ => return record_lenses(kind).map(|own| vec![own, Record::knows]),
    };
    Some(own.iter().copied().chain([Envelope::knows as Knows]).collect())
}

/// Defines lenses: for each a type, its fields, their types, and their keys in the format.
macro_rules! lens {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty = $key:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a>(crate::lens::Object<'a>);

        #[expect(clippy::allow_attributes, reason = "not every lens has lifetimes that can be elided")]
        #[allow(missing_docs, reason = "a field is named after its key, or is documented")]
        impl<'a> $name<'a> {
            $(
                $(#[$field_meta])*
                pub fn $field(self) -> Option<<$type as crate::lens::FromJson<'a>>::Value> {
                    <$type as crate::lens::FromJson<'a>>::from_field(self.0, $key).map(crate::lens::FromJson::value)
                }
            )*
        }

        impl<'a> crate::lens::Lens<'a> for $name<'a> {
            const KEYS: &'static [&'static str] = &[$($key),*];

            fn over(object: crate::lens::Object<'a>) -> Self {
                Self(object)
            }

            fn object(self) -> crate::lens::Object<'a> {
                self.0
            }

            fn knows(key: crate::json::JsonKey<'_>, value: crate::json::Json<'_>, drift: &mut crate::lens::Drift<'_>) -> bool {
                match &*key.name() {
                    $($key => drift.at($key, |drift| <$type as crate::lens::FromJson<'_>>::drift(value, drift)),)*
                    _ => return false,
                }
                true
            }
        }

        impl<'a> crate::lens::FromJson<'a> for $name<'a> {
            type Value = Self;

            fn value(self) -> Self {
                self
            }

            fn from_json(json: crate::json::Json<'a>) -> Option<Self> {
                json.is_object().then(|| Self(crate::lens::Object::new(json)))
            }

            fn drift(json: crate::json::Json<'_>, drift: &mut crate::lens::Drift<'_>) {
                drift.members(json, &[<Self as crate::lens::Lens<'_>>::knows]);
            }
        }
    )*};
}
pub(crate) use lens;
