//! The kinds of operations, states and actions, and their names in receipts.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Defines an enum with variants that receipts contain by name. An unknown name is an error.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident, $what:literal {
            $($(#[$variant_meta:meta])* $Variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Enum {
            $($(#[$variant_meta])* $Variant,)*
        }

        impl $Enum {
            /// Every variant.
            pub const ALL: &[Self] = &[$(Self::$Variant),*];

            /// The name in receipts and in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)*
                }
            }
        }

        impl fmt::Display for $Enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl Serialize for $Enum {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for $Enum {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = String::deserialize(deserializer)?;
                let known = Self::ALL.iter().find(|known| known.name() == name);
                known.copied().ok_or_else(|| D::Error::custom(format!(concat!("unknown ", $what, " `{}`"), name)))
            }
        }
    };
}

named_enum! {
    /// The kind of an operation.
    pub enum Operation, "operation" {
        /// Copies a session, or its beginning, to a new one.
        Clone = "clone",
        /// Replaces older turns with a summary.
        Compress = "compress",
        /// Removes a session with its side files.
        Delete = "delete",
        /// Moves a session to another project.
        Move = "move",
        /// Replaces secrets with placeholders.
        Redact = "redact",
        /// Repairs faults of a session.
        Repair = "repair",
        /// Writes files of a project as they were at a prompt.
        Restore = "restore",
        /// Puts the files of an archived session in their place.
        RestoreSession = "restore-session",
        /// Changes the settings of Claude Code.
        Setup = "setup",
        /// Removes tool calls, thinking and other content.
        Strip = "strip",
        /// Adds a tag.
        Tag = "tag",
        /// Adds a title.
        Title = "title",
    }
}

impl Operation {
    /// Whether the files do not depend on each other, so that some can be undone without the rest.
    pub fn has_independent_files(self) -> bool {
        self == Self::Restore
    }
}

named_enum! {
    /// The progress of an operation.
    ///
    /// `begun` → `applying` → `done` ⇄ `undone`, through `undoing` and `redoing`. An operation that is found
    /// in any state other than `done` and `undone` was interrupted; it can be undone and redone.
    pub enum OperationState, "state" {
        /// New content is being staged. No file has been changed.
        Begun = "begun",
        /// The receipt has the digest of every new file, and the files are being changed.
        Applying = "applying",
        /// The operation was applied or redone.
        Done = "done",
        /// The operation is being undone.
        Undoing = "undoing",
        /// The operation was undone.
        Undone = "undone",
        /// The operation is being redone.
        Redoing = "redoing",
    }
}

impl OperationState {
    /// Whether the process ended before the operation did.
    pub fn is_interrupted(self) -> bool {
        !matches!(self, Self::Done | Self::Undone)
    }
}

named_enum! {
    /// The change of an operation to a file.
    pub enum FileAction, "action" {
        /// Created it.
        Create = "create",
        /// Replaced its content.
        Replace = "replace",
        /// Appended lines.
        Append = "append",
        /// Removed it.
        Remove = "remove",
        /// Removed it and created another file with other content.
        Move = "move",
        /// Removed a symbolic link, and not the file that it points to.
        Unlink = "unlink",
    }
}
