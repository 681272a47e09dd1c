//! `archive`: copies of sessions that survive the clean-up of Claude Code.

pub(crate) mod install;
mod maintain;
mod push;
mod restore;
mod status;
mod tables;
mod timer;

use threadline_archive::{Archive, ArchiveError, ArchiveLocation};

use crate::context::Context;
use crate::env;
use crate::error::{CommandError, CommandOutcome};

/// Keep copies of sessions, and bring them back
///
/// Claude Code deletes sessions after 30 days. An archive keeps every byte of them: logs, sub-agents, stored
/// tool output, backups of edited files, and the history of prompts. Reading commands show archived sessions
/// with --from.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ArchiveCommand {
    Push(push::PushArgs),
    Status(status::StatusArgs),
    Restore(restore::RestoreArgs),
    Verify(maintain::VerifyArgs),
    Rebuild(maintain::RebuildArgs),
    Gc(maintain::GcArgs),
    Remove(maintain::RemoveArgs),
    Tables(tables::TablesArgs),
    Key(maintain::KeyArgs),
    #[command(hide = true)]
    Install(install::InstallArgs),
    #[command(hide = true)]
    Uninstall(install::UninstallArgs),
}

impl ArchiveCommand {
    /// Returns whether the command reads the sessions of an archive, and not the archive itself.
    pub(crate) fn reads_sessions(&self) -> bool {
        matches!(self, Self::Tables(_))
    }
}

pub(crate) fn run(cx: &Context, command: &ArchiveCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        ArchiveCommand::Push(args) => push::run(cx, args),
        ArchiveCommand::Status(args) => status::run(cx, args),
        ArchiveCommand::Restore(args) => restore::run(cx, args),
        ArchiveCommand::Verify(args) => maintain::run_verify(cx, args),
        ArchiveCommand::Rebuild(args) => maintain::run_rebuild(cx, args),
        ArchiveCommand::Gc(args) => maintain::run_gc(cx, args),
        ArchiveCommand::Remove(args) => maintain::run_remove(cx, args),
        ArchiveCommand::Tables(args) => tables::run(cx, args),
        ArchiveCommand::Key(args) => maintain::run_key(cx, args),
        ArchiveCommand::Install(args) => install::run(cx, args),
        ArchiveCommand::Uninstall(args) => install::run_uninstall(cx, args),
    }
}

/// Returns the address of an archive; the default is a folder in the state folder.
fn location(cx: &Context, given: Option<&str>) -> Result<ArchiveLocation, CommandError> {
    match given {
        Some(text) => Ok(text.parse()?),
        None => Ok(ArchiveLocation::Folder(cx.app.state_dir()?.join("archive"))),
    }
}

/// Opens the archive given with `--from`, or the default one.
fn open(cx: &Context) -> Result<Archive, CommandError> {
    let location = location(cx, cx.source.from.as_deref())?;
    if let ArchiveLocation::Folder(folder) = &location
        && !folder.is_dir()
    {
        return Err(CommandError::new(format!("there is no archive at {}", folder.display()))
            .hint("create it: `threadline archive push`"));
    }
    Ok(Archive::open_with_key(&location, &env::storage_options(), cx.archive_key()?)?)
}

impl From<ArchiveError> for CommandError {
    fn from(error: ArchiveError) -> Self {
        let error = match error {
            ArchiveError::Write(error) => return error.into(),
            error => error,
        };
        let hints = error.hints();
        hints.into_iter().fold(Self::new(error.to_string()), Self::hint)
    }
}
