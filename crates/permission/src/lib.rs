//! Decides whether a tool call may run.
//!
//! A decision is a function of the mode, the rules, the working folders and the call. Nothing here asks a
//! person or runs anything: [`Permissions::decide`] returns [`Decision::Allow`], [`Decision::Ask`] or
//! [`Decision::Deny`], and the caller acts on it.
//!
//! Shell commands are parsed. A command runs without a question only if every part of it is understood and
//! permitted; syntax that the analysis does not know is a reason to ask.

mod bash;
mod decide;
mod files;
mod mode;
mod rule;

pub use decide::{
    AskBasis, AskReason, Call, CallTarget, Decision, Permissions, Refusal, RefusalBasis, Suggestion,
};
pub use files::{Access, Workspace, resolve_links};
pub use mode::PermissionMode;
pub use rule::{PermissionRule, RuleEffect, RuleSet, RuleSource};
