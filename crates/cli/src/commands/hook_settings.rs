//! Hooks of threadline in Claude Code's settings.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use similar::TextDiff;
use threadline_settings::{HookCommand, SettingsChange, SettingsEditError};
use threadline_view::shell_word;
use threadline_view::wire::InstallObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Which settings to change, and whether to write them.
#[derive(Debug, clap::Args)]
pub(crate) struct HookSettingsArgs {
    /// Settings file to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: SettingsScope,

    /// Write the change
    #[arg(long)]
    apply: bool,
}

impl HookSettingsArgs {
    /// Returns whether to write the change.
    pub(crate) fn applies(&self) -> bool {
        self.apply
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SettingsScope {
    /// Your settings for all projects: settings.json in Claude Code's folder
    User,
    /// Shared settings of the project: .claude/settings.json
    Project,
    /// Your settings for this project: .claude/settings.local.json
    Local,
}

/// Adds a hook with this command line, or shows how it would be added.
pub(crate) fn install(
    cx: &Context,
    args: &HookSettingsArgs,
    hook: HookCommand,
    command: &str,
) -> Result<CommandOutcome, CommandError> {
    let path = settings_path(cx, args.scope)?;
    let before = read(&path)?;
    let change = hook.install(before.as_deref(), command).map_err(|error| settings_error(&path, &error))?;
    show_or_apply(cx, &path, before.as_deref(), &change, args.apply)
}

/// Removes a hook, or shows how it would be removed.
pub(crate) fn uninstall(
    cx: &Context,
    args: &HookSettingsArgs,
    hook: HookCommand,
) -> Result<CommandOutcome, CommandError> {
    let path = settings_path(cx, args.scope)?;
    let before = read(&path)?;
    let change = match &before {
        Some(text) => hook.uninstall(text).map_err(|error| settings_error(&path, &error))?,
        None => SettingsChange::None,
    };
    show_or_apply(cx, &path, before.as_deref(), &change, args.apply)
}

/// Returns the path of this program as a word of a command line.
pub(crate) fn program_word() -> Result<String, CommandError> {
    let program = std::env::current_exe()?;
    let program =
        program.to_str().ok_or_else(|| CommandError::new("the path of this program is not valid UTF-8"))?;
    Ok(shell_word(program).into_owned())
}

/// Shows a change, and applies it if `apply` is set.
pub(crate) fn show_or_apply(
    cx: &Context,
    path: &Path,
    before: Option<&str>,
    change: &SettingsChange,
    apply: bool,
) -> Result<CommandOutcome, CommandError> {
    let after = match change {
        SettingsChange::Write(after) => Some(&**after),
        SettingsChange::None => before,
        SettingsChange::Remove => None,
    };
    let changed = *change != SettingsChange::None;
    show_change(cx, path, before, after, apply)?;
    if changed && apply {
        match after {
            Some(after) => replace_file(path, after)?,
            None => std::fs::remove_file(path)?,
        }
    } else if changed {
        cx.ui.note("dry run: nothing written; add --apply to write");
    }
    Ok(CommandOutcome::Done)
}

/// Shows the difference between two versions of a file; `None` is a file that does not exist.
pub(crate) fn show_change(
    cx: &Context,
    path: &Path,
    before: Option<&str>,
    after: Option<&str>,
    apply: bool,
) -> Result<(), CommandError> {
    let changed = before != after;
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&InstallObject { path, changed, applied: changed && apply, settings: after })?;
    } else if changed {
        writeln!(answer, "{}", path.display())?;
        let difference = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
        answer.patch(cx.ui.page(), &difference.unified_diff().context_radius(2).to_string())?;
    } else {
        writeln!(answer, "{}: no changes", path.display())?;
    }
    Ok(answer.finish()?)
}

fn settings_path(cx: &Context, scope: SettingsScope) -> Result<PathBuf, CommandError> {
    Ok(match scope {
        SettingsScope::User => {
            let home = cx
                .store()
                .homes()
                .first()
                .ok_or_else(|| CommandError::new("no Claude Code home found").hint("use --home DIR"))?;
            home.root().join("settings.json")
        }
        SettingsScope::Project => std::env::current_dir()?.join(".claude/settings.json"),
        SettingsScope::Local => std::env::current_dir()?.join(".claude/settings.local.json"),
    })
}

pub(crate) fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match threadline_settings::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::new(format!("cannot read {}: {error}", path.display()))),
    }
}

pub(crate) fn settings_error(path: &Path, error: &SettingsEditError) -> CommandError {
    CommandError::new(format!("{}: {error}", path.display())).hint("the file was not changed")
}

/// Replaces a file atomically, following links and keeping its permissions.
fn replace_file(path: &Path, text: &str) -> Result<(), CommandError> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".settings").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(&real) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&real).map_err(|error| error.error)?;
    Ok(())
}
