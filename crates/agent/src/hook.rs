//! Hooks: commands of the settings that run at events of a session, and can block or change the action.

mod output;
mod run;
mod settings;

pub(crate) use output::{HookAnswer, HookDecision};
pub(crate) use run::HookCall;
pub use run::{HookOutcome, HookRun};
pub use settings::{HookCallbacks, HookEvent, HookSettings, HookSettingsError};
