//! The rules of a replay that depend on the version of Claude Code.
//!
//! Everything else about a replay is the same in all known versions. A rule is one row of [`RULES`]: the first known
//! version that follows it, and the last one if a later version gave it up.

use super::version::ClientVersion;

/// Something that some versions of Claude Code do when they resume a log, and others do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReplayRule {
    /// The conversation ends with the line of the newest timestamp, not with the last line of the file.
    NewestLeaf,
    /// Lines of a reply, and results of its calls, that are not on the way up from the leaf are put back.
    RecoverBeside,
    /// Attachments below such lines are put back, too.
    RecoverAttachments,
    /// Where a parent is missing, the walk goes on from the line that was written just before.
    BridgeMissingParent,
    /// A compaction may keep the tail of the conversation before it.
    PreservedTail,
    /// A message without content is passed over; other versions then refuse to resume.
    AcceptMissingContent,
    /// `system` lines of subtype `local_command` are user texts.
    LocalCommands,
    /// Within a reply, calls come last, unless the model thought again right after one.
    CallsLast,
    /// Results that answer no call are left out.
    DropOrphanResults,
    /// `fallback` blocks, which tell that another model took over, are left out.
    DropFallback,
    /// A log whose last line has no time is refused.
    NeedTimestamp,
    /// Calls of tools that were renamed are sent with the new name.
    RenamedTools,
    /// The input of `ExitPlanMode` is sent without the plan, which Claude Code itself added.
    BareExitPlanMode,
    /// Thinking of another model than the one that answered last is left out.
    DropForeignThinking,
    /// Blocks of the advisor, a tool on the server, are left out.
    DropAdvisor,
    /// Fields that Claude Code itself added to the input of `SendMessage` are left out.
    BareSendMessage,
    /// Notices about background tasks are sent as system reminders.
    TaskNoticeReminders,
    /// Calls of the last reply that nobody answered are kept, each with an error result.
    KeepInterruptedCalls,
    /// For models that take no system messages, reminders of attachments are folded into the tool result before them.
    FoldReminders,
    /// They are folded into results whose content is a list of blocks, too.
    FoldIntoBlocks,
    /// The reminder that an attachment holds as rendered text is sent as it was rendered.
    RenderedReminders,
    /// A prompt that a person queued during a turn is user text.
    QueuedPromptText,
    /// A result that refers to tools which the session still has is followed by a text of Claude Code's own.
    ToolLoadedText,
    /// `system` lines with `isDisplayOnly` are not sent.
    HideDisplayOnly,
}

/// The versions that follow a rule.
struct Span {
    rule: ReplayRule,
    first: ClientVersion,
    last: Option<ClientVersion>,
}

const fn only(rule: ReplayRule, version: ClientVersion) -> Span {
    Span { rule, first: version, last: Some(version) }
}

const fn since(rule: ReplayRule, first: ClientVersion) -> Span {
    Span { rule, first, last: None }
}

const V20: ClientVersion = ClientVersion::new(2, 1, 20);
const V197: ClientVersion = ClientVersion::new(2, 1, 197);
const V220: ClientVersion = ClientVersion::new(2, 1, 220);
const V250: ClientVersion = ClientVersion::new(2, 1, 250);
const V300: ClientVersion = ClientVersion::new(2, 1, 300);
const V325: ClientVersion = ClientVersion::new(2, 1, 325);

/// Which versions follow which rule.
static RULES: &[Span] = &[
    only(ReplayRule::NewestLeaf, V20),
    only(ReplayRule::BareExitPlanMode, V20),
    since(ReplayRule::RecoverBeside, V197),
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
    since(ReplayRule::BareSendMessage, V220),
    since(ReplayRule::TaskNoticeReminders, V250),
    since(ReplayRule::AcceptMissingContent, V300),
    since(ReplayRule::KeepInterruptedCalls, V300),
    since(ReplayRule::RecoverAttachments, V300),
    since(ReplayRule::FoldIntoBlocks, V300),
    since(ReplayRule::RenderedReminders, V300),
    since(ReplayRule::QueuedPromptText, V300),
    since(ReplayRule::ToolLoadedText, V325),
    since(ReplayRule::HideDisplayOnly, V325),
];

/// The rules that one version follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules(u32);

impl Rules {
    /// The rules of a version: those of the nearest known one at or before it, or of the oldest.
    pub(super) fn of(version: ClientVersion) -> Self {
        let version = version.known().unwrap_or(ClientVersion::OLDEST);
        let follows = |span: &&Span| span.first <= version && span.last.is_none_or(|last| version <= last);
        Self(RULES.iter().filter(follows).fold(0, |bits, span| bits | 1 << span.rule as u8))
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
        let between = Rules::of(ClientVersion::new(2, 1, 299));
        assert!(between.has(ReplayRule::TaskNoticeReminders));
        assert!(!between.has(ReplayRule::KeepInterruptedCalls));
        assert!(Rules::of(ClientVersion::new(1, 0, 0)).has(ReplayRule::NewestLeaf));
        assert!(Rules::of(ClientVersion::new(9, 0, 0)).has(ReplayRule::HideDisplayOnly));
    }
}
