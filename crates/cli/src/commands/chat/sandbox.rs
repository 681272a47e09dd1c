//! The sandbox of shell commands: the client starts itself again, restricts itself, and becomes the shell.

use std::ffi::OsString;
use std::path::PathBuf;

use threadline_agent::{AgentPaths, SandboxConfig};
use threadline_sandbox::{SandboxPolicy, SandboxSupport};
use threadline_settings::SettingsStack;
use threadline_tools::CommandLauncher;

use super::ChatArgs;
use crate::error::CommandError;
use crate::sandbox_exec;

/// Folders for temporary files that every program may use.
const TEMP_DIRS: &[&str] = &["/tmp", "/var/tmp"];

/// Returns the sandbox, if flags or settings ask for one.
pub(super) fn sandbox(
    args: &ChatArgs,
    settings: &SettingsStack,
    paths: &AgentPaths,
) -> Result<Option<SandboxConfig>, CommandError> {
    if !args.sandbox && !settings.is_sandbox_enabled() {
        return Ok(None);
    }
    let program = std::env::current_exe()
        .map_err(|error| CommandError::new("cannot start the sandbox").cause(error.to_string()))?;
    let temp = TEMP_DIRS.iter().map(PathBuf::from).chain([std::env::temp_dir(), paths.temp_dir.clone()]);
    let writable: Vec<PathBuf> =
        std::iter::once(paths.cwd.clone()).chain(paths.additional_dirs.iter().cloned()).chain(temp).collect();
    let domains = settings.value(|settings| {
        let domains = &settings.sandbox.network.allowed_domains;
        (!domains.is_empty()).then_some(domains)
    });
    // The sandbox cannot distinguish hosts, so only `*` allows the network.
    let allows_network = domains.is_some_and(|domains| domains.iter().any(|domain| domain == "*"));
    let policy = SandboxPolicy { writable, allows_network };
    let missing = SandboxSupport::probe().missing(&policy).map(str::to_owned);
    let arguments: Vec<OsString> = sandbox_exec::arguments(&policy);
    Ok(Some(SandboxConfig { launcher: CommandLauncher { program, arguments }, missing }))
}
