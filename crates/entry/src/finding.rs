//! Findings: problems of a line or a session, with code, severity, position and suggested repair.

use std::borrow::Cow;
use std::fmt;

use crate::Position;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Informational; no data is lost.
    Note,
    /// Data is missing, or would be lost on resume.
    Warning,
    /// The line or session is not usable.
    Error,
}

impl Severity {
    /// Returns the name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// Returns whether findings of this severity are problems. Notes are not: they are harmless, and not
    /// shown unless requested.
    pub fn is_problem(self) -> bool {
        self > Self::Note
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $id:literal $name:literal $severity:ident $repair:literal),* $(,)?) => {
        /// The kind of problem, as a code that is stable across releases.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable number, such as `F09`.
            pub fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// The stable name, such as `broken-line`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the default severity of such a finding.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// Returns the suggested repair.
            pub fn repair(self) -> &'static str {
                match self { $(Self::$variant => $repair,)* }
            }
        }
    };
}

codes! {
    /// A tool call without a result.
    OrphanCall = "F01" "orphan-call" Warning "add an error result for the interrupted call, or remove the call",
    /// A tool result without a call.
    OrphanResult = "F02" "orphan-result" Warning "remove the result",
    /// A parent that is not in the file.
    DanglingParent = "F03" "dangling-parent" Warning "reattach to the previous line",
    /// A parent that is written only later in the file.
    LateParent = "F04" "late-parent" Note "reattach to the nearest earlier conversation line",
    /// The conversation continues from a line that compaction had replaced.
    StaleTip = "F05" "stale-tip" Warning "reattach to the summary of the latest compaction",
    /// A prompt is a child of an API error instead of the retry that succeeded.
    LostRetry = "F06" "lost-retry" Warning "reattach the prompt to the end of the reply",
    /// A uuid that two lines share.
    DuplicateUuid = "F07" "duplicate-uuid" Warning "remove the duplicate, or give it a new uuid",
    /// Two processes wrote to the session at the same time.
    ForkedWriters = "F08" "forked-writers" Warning "choose a branch, or split the session",
    /// A line that is not a JSON object, or contains more than one.
    BrokenLine = "F09" "broken-line" Warning "move the line out of the log; split concatenated objects into separate lines",
    /// A thinking block with a signature but without text.
    HollowThinking = "F10" "hollow-thinking" Warning "remove the block",
    /// A thinking block without a signature.
    BadSignature = "F11" "bad-signature" Warning "remove the block",
    /// Half of a surrogate pair, which is not valid text.
    LoneSurrogate = "F12" "lone-surrogate" Warning "replace it with U+FFFD",
    /// An image larger than the API accepts.
    LargeImage = "F13" "large-image" Warning "resize it, or replace it with text",
    /// A message without content, or an empty text block.
    EmptyContent = "F14" "empty-content" Warning "remove the block; if the message becomes empty, remove the line and reattach its children",
    /// Lines that are too long, or have too many values, to be parsed.
    OverLimit = "F15" "over-limit" Warning "none: the lines are kept as they are",
    /// `sessions-index.json` does not match the session files.
    StaleIndex = "F16" "stale-index" Warning "delete the index; Claude Code rebuilds it",
    /// The first line is a `pr-link`, which hides the session from the picker.
    HiddenFromPicker = "F17" "hidden-from-picker" Warning "move the line after the first prompt",
    /// The name of the folder does not match the working directory in the lines.
    FolderMismatch = "F18" "folder-mismatch" Warning "move the session to the folder of its working directory",
    /// The working directory changes within the file.
    MovedCwd = "F19" "moved-cwd" Note "none needed",
    /// A backup that a snapshot refers to is missing.
    HistoryGap = "F20" "history-gap" Warning "none: the backup is lost, and rewinding to it will fail",
    /// Side data of a session that no longer exists.
    OrphanSideData = "F21" "orphan-side-data" Warning "delete it",
    /// Claude Code will soon delete the session.
    Retention = "F22" "retention" Note "raise `cleanupPeriodDays`, or copy the session",
    /// The session ends in an API error.
    ErrorTail = "F23" "error-tail" Note "remove the error lines at the end",
    /// A configuration file of Claude Code is truncated.
    TornConfig = "F24" "torn-config" Warning "restore it from a backup in the same folder",
    /// A conversation line without a timestamp or a uuid.
    MissingField = "F25" "missing-field" Warning "add the missing field",
    /// A secret in plain text.
    Secret = "F26" "secret" Warning "redact it",
    /// Parents that form a cycle.
    Cycle = "F27" "cycle" Error "reattach the first of them to the previous line",
    /// Bytes that do not belong in a log: a byte order mark, NUL, invalid UTF-8, carriage returns.
    OddBytes = "F28" "odd-bytes" Warning "rewrite the line as plain UTF-8",
    /// A key that occurs twice in an object.
    DuplicateKey = "F29" "duplicate-key" Warning "keep the last value",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id(), self.name())
    }
}

/// A problem of a line or a session, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of problem.
    pub code: Code,
    /// The severity in this case: a copy of a line is harmless, another line with its uuid is not.
    pub severity: Severity,
    /// The position of the line, if the finding concerns one line.
    pub at: Option<Position>,
    /// The description: one sentence, lower case, without a full stop.
    pub message: Cow<'static, str>,
}

impl Finding {
    /// Creates a finding about the line at `at`, with the default severity of its code.
    pub fn new(code: Code, at: Position, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, severity: code.severity(), at: Some(at), message: message.into() }
    }

    /// Returns the finding with its severity lowered to a note.
    #[must_use]
    pub fn as_note(mut self) -> Self {
        self.severity = Severity::Note;
        self
    }
}
