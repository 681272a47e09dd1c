//! Settings files of a chat.

use std::path::Path;

use threadline_settings::{SettingsInput, SettingsPaths, SettingsStack, config_file};
use threadline_term::text;

use super::ChatError;
use crate::context::Context;
use crate::{env, ui};

/// Reads the settings files, and uses the variables that they set. A demonstration reads none.
pub(super) fn load(
    cx: &Context,
    input: &SettingsInput,
    claude_home: &Path,
    cwd: &Path,
) -> Result<SettingsStack, ChatError> {
    if cx.is_demo {
        return Ok(SettingsStack::default());
    }
    let paths = SettingsPaths {
        claude_home: claude_home.to_owned(),
        user_home: cx.app.config().home_dir.clone(),
        project: cwd.to_owned(),
        managed: SettingsPaths::managed_dir(),
    };
    let stack = SettingsStack::load(&paths, input).map_err(|error| ChatError::refused(error.to_string()))?;
    report_ignored(&stack, &paths);
    let variables = stack.env();
    env::set_variables(
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    );
    Ok(stack)
}

/// Reports settings that are not used because the folder is not trusted.
fn report_ignored(stack: &SettingsStack, paths: &SettingsPaths) {
    let config = config_file(&paths.claude_home, paths.user_home.as_deref());
    for ignored in stack.ignored() {
        let name = ignored.file.path.as_deref().and_then(|path| path.strip_prefix(&paths.project).ok());
        let name = name.unwrap_or(Path::new("the settings")).display();
        let count = ignored.count;
        let entries = if count == 1 && ignored.key != "allow" { "entry" } else { "entries" };
        ui::write_stderr(&text!(
            "Ignoring {count} permissions.{key} {entries} from {name}: this workspace has not been trusted. Run \
             Claude Code interactively here once and accept the trust dialog, or set \
             projects[\"{project}\"].hasTrustDialogAccepted: true in {config}.\n",
            key = ignored.key,
            project = paths.project.display(),
            config = config.display(),
        ));
    }
}
