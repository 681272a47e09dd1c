//! Hooks of threadline in Claude Code's settings.

use std::io;
use std::path::{Path, PathBuf};

use similar::TextDiff;
use threadline_settings::{HookFeature, HookProgram, SettingsChange, SettingsEditError};
use threadline_store::{FileUpdate, update_file};
use threadline_view::shell_word;
use threadline_view::wire::InstallObject;

use crate::commands::edit::command_line;
use crate::context::Context;
use crate::env;
use crate::error::{CommandError, CommandOutcome};

/// Which settings to change, and whether to write them.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HookSettingsArgs {
    /// Settings file to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: SettingsScope,

    /// Write the change; `threadline op undo ID --apply` reverts this
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
pub(crate) enum SettingsScope {
    /// Your settings for all projects: settings.json in Claude Code's folder
    User,
    /// Shared settings of the project: .claude/settings.json
    Project,
    /// Your settings for this project: .claude/settings.local.json
    Local,
}

/// Turns a feature on, or shows how it would be. Without arguments, it keeps those that it has.
pub(crate) fn install(
    cx: &Context,
    args: &HookSettingsArgs,
    feature: HookFeature,
    arguments: &str,
) -> Result<CommandOutcome, CommandError> {
    let program = HookProgram { program: program_word()?, options: hook_options()? };
    let arguments = (!arguments.is_empty()).then_some(arguments);
    let summary = format!("turned on {}", feature.name);
    change_settings(cx, args, &summary, |before| feature.install(before, &program, arguments))
}

/// Turns a feature off, or shows how it would be.
pub(crate) fn uninstall(
    cx: &Context,
    args: &HookSettingsArgs,
    feature: HookFeature,
) -> Result<CommandOutcome, CommandError> {
    let program = program_word()?;
    let summary = format!("turned off {}", feature.name);
    change_settings(cx, args, &summary, |before| match before {
        Some(text) => feature.uninstall(text, &program),
        None => Ok(SettingsChange::None),
    })
}

/// Returns the options of the hook: the state folder, if Claude Code would use another one.
fn hook_options() -> Result<Vec<String>, CommandError> {
    let Some(folder) = env::state_dir().filter(|folder| Some(folder) != env::default_state_dir().as_ref())
    else {
        return Ok(Vec::new());
    };
    let folder = std::path::absolute(folder)?;
    let text = folder.to_str();
    let text = text.ok_or_else(|| CommandError::new("the path of the state folder is not valid UTF-8"))?;
    Ok(vec![format!("--state-dir={}", shell_word(text))])
}

/// The number of attempts while Claude Code saves its settings.
const ATTEMPTS: usize = 5;

/// Changes the settings, or shows how they would be changed. The change can be undone.
pub(crate) fn change_settings(
    cx: &Context,
    args: &HookSettingsArgs,
    summary: &str,
    change: impl Fn(Option<&str>) -> Result<SettingsChange, SettingsEditError>,
) -> Result<CommandOutcome, CommandError> {
    let path = settings_path(cx, args.scope)?;
    let mut attempts = 0;
    loop {
        let before = read(&path)?;
        let after = change(before.as_deref()).map_err(|error| settings_error(&path, &error))?;
        let after = changed_text(before.as_deref(), after);
        let mut operation = None;
        if args.apply && before != after {
            let summary = format!("{summary} in {}", path.display());
            let (before, after) = (before.as_deref(), after.as_deref());
            match cx.app.change_settings(&path, before, after, summary, &command_line()) {
                Ok(receipt) => operation = Some(receipt.id),
                Err(_) if attempts < ATTEMPTS && read(&path)?.as_deref() != before => {
                    attempts += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
        }
        show_change_of(cx, &path, before.as_deref(), after.as_deref(), args.apply, operation.as_deref())?;
        match operation {
            Some(id) => cx.ui.note(&format!("undo: `threadline op undo {id} --apply`")),
            None if before != after => cx.ui.note("dry run: nothing written; add --apply to write"),
            None => {}
        }
        return Ok(CommandOutcome::Done);
    }
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
    show_change_of(cx, path, before, after, apply, None)
}

/// Does the same for a change that was applied by an operation.
fn show_change_of(
    cx: &Context,
    path: &Path,
    before: Option<&str>,
    after: Option<&str>,
    apply: bool,
    operation: Option<&str>,
) -> Result<(), CommandError> {
    let changed = before != after;
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&InstallObject {
            path,
            changed,
            applied: changed && apply,
            settings: after,
            operation,
        })?;
    } else if changed {
        writeln!(answer, "{}", path.display())?;
        let difference = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
        answer.patch(cx.ui.page(), &difference.unified_diff().context_radius(2).to_string())?;
    } else {
        writeln!(answer, "{}: no changes", path.display())?;
    }
    Ok(answer.finish()?)
}

/// Returns the path of a settings file.
pub(crate) fn settings_path(cx: &Context, scope: SettingsScope) -> Result<PathBuf, CommandError> {
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

/// Reads a settings file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match threadline_settings::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::new(format!("cannot read {}: {error}", path.display()))),
    }
}

fn settings_error(path: &Path, error: &SettingsEditError) -> CommandError {
    CommandError::new(format!("{}: {error}", path.display())).hint("the file was not changed")
}
