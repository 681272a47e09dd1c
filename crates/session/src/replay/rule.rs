//! The rules of a replay that depend on the version of Claude Code.
//!
//! Everything else is the same in all known versions. A rule is one row of [`RULES`]: the first known
//! version that follows it, and the last one if a later version abandoned it.

use super::version::ClientVersion;

/// A behavior in a resume that differs between versions of Claude Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReplayRule {
    /// The conversation ends with the line with the newest timestamp, not with the last line of the file.
    NewestLeaf,
    /// Lines of a reply, and results of its calls, that are not ancestors of the leaf are recovered.
    RecoverSiblingLines,
    /// Attachments below such lines are recovered too.
    RecoverAttachments,
    /// If a parent is missing, the walk continues with the line that was written just before.
    BridgeMissingParent,
    /// A compaction may preserve the tail of the conversation before it.
    PreservedTail,
    /// A message without content is skipped. Other versions refuse to resume.
    AcceptMissingContent,
    /// `system` lines of subtype `local_command` are sent as user text.
    LocalCommands,
    /// Calls are moved to the end of a reply, unless the model continued thinking directly after one of them.
    CallsLast,
    /// Results without a call are left out.
    DropOrphanResults,
    /// `fallback` blocks, which record that another model took over, are left out.
    DropFallback,
    /// A log is refused if its last line has no timestamp.
    NeedTimestamp,
    /// Calls of renamed tools are sent with the new name.
    RenamedTools,
    /// The input of `ExitPlanMode` is sent without the plan, which Claude Code added itself.
    StripExitPlanMode,
    /// As `StripExitPlanMode`, but only if the log shows that a tool search loaded that tool.
    StripLoadedExitPlanMode,
    /// Thinking of any model other than the last one is left out.
    DropForeignThinking,
    /// Blocks of the advisor, a server-side tool, are left out.
    DropAdvisor,
    /// Fields that Claude Code added to the input of `SendMessage` are left out.
    StripSendMessage,
    /// Notifications about background tasks are sent as system reminders.
    TaskNoticeReminders,
    /// Unanswered calls of the last reply are kept, each with an error result.
    KeepInterruptedCalls,
    /// For models that accept no system messages, reminders for attachments are appended to the preceding
    /// tool result.
    FoldReminders,
    /// Reminders are also appended to results with a list of blocks as content.
    FoldIntoBlocks,
    /// If an attachment contains its reminder as rendered text, that text is sent.
    RenderedReminders,
    /// A prompt that was queued during a turn is sent as user text.
    QueuedPromptText,
    /// A result that refers to available tools is followed by a generated text.
    ToolLoadedText,
    /// `system` lines with `isDisplayOnly` are not sent.
    HideDisplayOnly,
}

/// The range of versions that follow a rule.
struct RuleVersions {
    rule: ReplayRule,
    first: ClientVersion,
    last: Option<ClientVersion>,
}

const fn only(rule: ReplayRule, version: ClientVersion) -> RuleVersions {
    RuleVersions { rule, first: version, last: Some(version) }
}

const fn since(rule: ReplayRule, first: ClientVersion) -> RuleVersions {
    RuleVersions { rule, first, last: None }
}

// The versions whose behavior is known. A rule may begin between two of them.
const V20: ClientVersion = ClientVersion::new(2, 1, 20);
const V197: ClientVersion = ClientVersion::new(2, 1, 197);
const V220: ClientVersion = ClientVersion::new(2, 1, 220);
const V250: ClientVersion = ClientVersion::new(2, 1, 250);
const V300: ClientVersion = ClientVersion::new(2, 1, 300);
const V325: ClientVersion = ClientVersion::new(2, 1, 325);

/// The versions that follow each rule.
static RULES: &[RuleVersions] = &[
    only(ReplayRule::NewestLeaf, V20),
    only(ReplayRule::StripExitPlanMode, V20),
    since(ReplayRule::RecoverSiblingLines, V197),
    since(ReplayRule::BridgeMissingParent, V197),
    since(ReplayRule::PreservedTail, V197),
    since(ReplayRule::LocalCommands, V197),
    since(ReplayRule::CallsLast, V197),
    since(ReplayRule::DropOrphanResults, V197),
    since(ReplayRule::DropFallback, V197),
    since(ReplayRule::NeedTimestamp, V197),
    since(ReplayRule::DropForeignThinking, V197),
    since(ReplayRule::RenamedTools, V197),
    since(ReplayRule::DropAdvisor, V197),
    since(ReplayRule::FoldReminders, V197),
    since(ReplayRule::StripSendMessage, V220),
    since(ReplayRule::TaskNoticeReminders, V250),
    since(ReplayRule::AcceptMissingContent, V300),
    since(ReplayRule::KeepInterruptedCalls, V300),
    since(ReplayRule::RecoverAttachments, V300),
    since(ReplayRule::FoldIntoBlocks, V300),
    since(ReplayRule::RenderedReminders, V300),
    since(ReplayRule::QueuedPromptText, V300),
    since(ReplayRule::ToolLoadedText, V325),
    since(ReplayRule::HideDisplayOnly, V325),
    since(ReplayRule::StripLoadedExitPlanMode, V325),
];

/// The set of rules that one version follows, with one bit per rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionRules(u32);

impl VersionRules {
    /// Returns the rules of the nearest known version at or before `version`, or of the oldest known one.
    pub(super) fn of(version: ClientVersion) -> Self {
        let version = version.nearest_known().unwrap_or(ClientVersion::OLDEST);
        let follows =
            |span: &&RuleVersions| span.first <= version && span.last.is_none_or(|last| version <= last);
        Self(RULES.iter().filter(follows).fold(0, |bits, span| bits | 1 << span.rule as u8))
    }

    /// Returns the rules without one of them, for an estimate of what a resume with any model sends.
    pub(super) fn without(self, rule: ReplayRule) -> Self {
        Self(self.0 & !(1 << rule as u8))
    }

    pub(super) fn has(self, rule: ReplayRule) -> bool {
        self.0 & 1 << rule as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_begin_and_end_with_known_versions() {
        for span in RULES {
            assert!(ClientVersion::KNOWN.contains(&span.first), "{:?}", span.rule);
            assert!(span.last.is_none_or(|last| ClientVersion::KNOWN.contains(&last)), "{:?}", span.rule);
            assert!(span.last.is_none_or(|last| span.first <= last), "{:?}", span.rule);
        }
    }

    #[test]
    fn a_version_between_two_known_ones_follows_the_older() {
        let between = VersionRules::of(ClientVersion::new(2, 1, 299));
        assert!(between.has(ReplayRule::TaskNoticeReminders));
        assert!(!between.has(ReplayRule::KeepInterruptedCalls));
        assert!(VersionRules::of(ClientVersion::new(1, 0, 0)).has(ReplayRule::NewestLeaf));
        assert!(VersionRules::of(ClientVersion::new(9, 0, 0)).has(ReplayRule::HideDisplayOnly));
    }
}
