//! Hooks of threadline in Claude Code's settings.

use std::io;
use std::path::{Path, PathBuf};

use similar::TextDiff;
use threadline_settings::{HookCommand, SettingsChange, SettingsEditError};
use threadline_store::{FileUpdate, update_file};
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
    show_or_apply(cx, &path, args.apply, |before| hook.install(before, command))
}

/// Removes a hook, or shows how it would be removed.
pub(crate) fn uninstall(
    cx: &Context,
    args: &HookSettingsArgs,
    hook: HookCommand,
) -> Result<CommandOutcome, CommandError> {
    let path = settings_path(cx, args.scope)?;
    let program = program_word()?;
    show_or_apply(cx, &path, args.apply, |before| match before {
        Some(text) => hook.uninstall(text, &program),
        None => Ok(SettingsChange::None),
    })
}

/// Returns the path of this program as a word of a command line.
pub(crate) fn program_word() -> Result<String, CommandError> {
    let program = std::env::current_exe()?;
    let program =
        program.to_str().ok_or_else(|| CommandError::new("the path of this program is not valid UTF-8"))?;
    Ok(shell_word(program).into_owned())
}

/// Applies a change to a settings file if `apply` is set, and shows it. If another program saves the file
/// meanwhile, the change is made to the new content.
pub(crate) fn show_or_apply(
    cx: &Context,
    path: &Path,
    apply: bool,
    mut change: impl FnMut(Option<&str>) -> Result<SettingsChange, SettingsEditError>,
) -> Result<CommandOutcome, CommandError> {
    let mut change = |before: Option<&str>| change(before).map_err(|error| settings_error(path, &error));
    let (mut before, mut after);
    if apply {
        (before, after) = (None, None);
        update_file(path, |content| {
            let text = content.map(<[u8]>::to_vec).map(String::from_utf8).transpose();
            before = text.map_err(|_| CommandError::new(format!("{} is not UTF-8", path.display())))?;
            let change = change(before.as_deref())?;
            let update = match &change {
                SettingsChange::Write(text) => FileUpdate::Write(text.clone().into_bytes()),
                SettingsChange::None => FileUpdate::Keep,
                SettingsChange::Remove => FileUpdate::Remove,
            };
            after = changed_text(before.as_deref(), change);
            Ok::<_, CommandError>(update)
        })?;
    } else {
        before = read(path)?;
        after = changed_text(before.as_deref(), change(before.as_deref())?);
    }
    show_change(cx, path, before.as_deref(), after.as_deref(), apply)?;
    if before != after && !apply {
        cx.ui.note("dry run: nothing written; add --apply to write");
    }
    Ok(CommandOutcome::Done)
}

/// Returns the content of a file after a change; `None` if it does not exist then.
fn changed_text(before: Option<&str>, change: SettingsChange) -> Option<String> {
    match change {
        SettingsChange::Write(after) => Some(after),
        SettingsChange::None => before.map(str::to_owned),
        SettingsChange::Remove => None,
    }
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

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match threadline_settings::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::new(format!("cannot read {}: {error}", path.display()))),
    }
}

fn settings_error(path: &Path, error: &SettingsEditError) -> CommandError {
    CommandError::new(format!("{}: {error}", path.display())).hint("the file was not changed")
}
