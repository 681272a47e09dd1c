//! Permission modes.

/// The permission mode of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionMode {
    /// Calls that only read run; the rest needs a rule or an answer.
    Default,
    /// Edits of files in the working folders run as well.
    AcceptEdits,
    /// Files are not changed.
    Plan,
    /// Everything runs that no rule refuses.
    BypassPermissions,
    /// Calls that would need an answer are refused.
    DontAsk,
}

impl PermissionMode {
    /// All modes with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("default", Self::Default),
        ("acceptEdits", Self::AcceptEdits),
        ("plan", Self::Plan),
        ("bypassPermissions", Self::BypassPermissions),
        ("dontAsk", Self::DontAsk),
    ];

    /// The name in flags and session lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }

    /// Returns the mode with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}
