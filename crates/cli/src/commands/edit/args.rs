//! The options that all edits have.

use threadline_app::edit::{ApplyOptions, EditTarget};

/// Options for writing and showing a plan.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WriteArgs {
    /// Write the result; without this only the plan is shown
    #[arg(long)]
    pub(crate) apply: bool,

    /// Show the plan and write nothing (the default)
    #[arg(long = "dry-run", conflicts_with = "apply")]
    _dry_run: bool,

    /// Also edit or copy a session that is open
    #[arg(long)]
    pub(crate) force: bool,

    /// Show every removed, changed and added line
    #[arg(long)]
    pub(crate) diff: bool,
}

impl WriteArgs {
    pub(super) fn apply_options(&self) -> ApplyOptions {
        ApplyOptions { force: self.force, command: command_line() }
    }
}

/// Where the result goes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TargetArgs {
    /// Change the session itself instead of creating a new one
    #[arg(long)]
    pub(crate) in_place: bool,
}

impl TargetArgs {
    pub(super) fn target(&self) -> EditTarget {
        if self.in_place { EditTarget::InPlace } else { EditTarget::NewSession }
    }
}

/// The command as it was typed, for receipts.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}
