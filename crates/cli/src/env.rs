//! Environment variables, which are named only here, and the time zone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use etcetera::BaseStrategy;
use jiff::tz::TimeZone;

/// The home of Claude Code, or several separated by commas.
pub(crate) const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// The folder that a session of Claude Code was started in, which hooks get.
pub(crate) const CLAUDE_PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";
/// Disables colours if set and not empty.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// The pager for long output; takes precedence over [`PAGER`].
pub(crate) const THREADLINE_PAGER: &str = "THREADLINE_PAGER";
/// The pager for long output.
pub(crate) const PAGER: &str = "PAGER";
/// The editor for `show --editor`; takes precedence over [`EDITOR`].
pub(crate) const VISUAL: &str = "VISUAL";
/// The editor for `show --editor`.
pub(crate) const EDITOR: &str = "EDITOR";
/// The output width, if the size of the terminal is unavailable.
pub(crate) const COLUMNS: &str = "COLUMNS";

/// The name of the user, on different systems.
pub(crate) const USER: &str = "USER";
pub(crate) const LOGNAME: &str = "LOGNAME";
pub(crate) const USERNAME: &str = "USERNAME";
/// The name of the machine on Windows.
#[cfg(not(unix))]
pub(crate) const COMPUTERNAME: &str = "COMPUTERNAME";

/// The key file of encrypted archives.
pub(crate) const THREADLINE_ARCHIVE_KEY: &str = "THREADLINE_ARCHIVE_KEY";

/// The user id in traces.
pub(crate) const LANGFUSE_USER_ID: &str = "LANGFUSE_USER_ID";
/// The environment name in traces.
pub(crate) const LANGFUSE_TRACING_ENVIRONMENT: &str = "LANGFUSE_TRACING_ENVIRONMENT";
/// The release name in traces.
pub(crate) const LANGFUSE_RELEASE: &str = "LANGFUSE_RELEASE";

/// The key of the API.
pub(crate) const ANTHROPIC_API_KEY: &str = "ANTHROPIC_API_KEY";
/// A token for the API, instead of a key.
pub(crate) const ANTHROPIC_AUTH_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
/// The address of the API.
pub(crate) const ANTHROPIC_BASE_URL: &str = "ANTHROPIC_BASE_URL";
/// Further headers of requests, one per line.
pub(crate) const ANTHROPIC_CUSTOM_HEADERS: &str = "ANTHROPIC_CUSTOM_HEADERS";
/// The model.
pub(crate) const ANTHROPIC_MODEL: &str = "ANTHROPIC_MODEL";
/// How long a request may be silent, in milliseconds.
pub(crate) const API_TIMEOUT_MS: &str = "API_TIMEOUT_MS";
/// The models of the families, for `--model opus` and its like.
pub(crate) const ANTHROPIC_DEFAULT_OPUS_MODEL: &str = "ANTHROPIC_DEFAULT_OPUS_MODEL";
pub(crate) const ANTHROPIC_DEFAULT_SONNET_MODEL: &str = "ANTHROPIC_DEFAULT_SONNET_MODEL";
pub(crate) const ANTHROPIC_DEFAULT_HAIKU_MODEL: &str = "ANTHROPIC_DEFAULT_HAIKU_MODEL";
/// The model for small tasks.
pub(crate) const ANTHROPIC_SMALL_FAST_MODEL: &str = "ANTHROPIC_SMALL_FAST_MODEL";
/// Further beta features of the API, separated by commas.
pub(crate) const ANTHROPIC_BETAS: &str = "ANTHROPIC_BETAS";
/// The time that a command may run if the model names none, and the longest time that it may name.
pub(crate) const BASH_DEFAULT_TIMEOUT_MS: &str = "BASH_DEFAULT_TIMEOUT_MS";
pub(crate) const BASH_MAX_TIMEOUT_MS: &str = "BASH_MAX_TIMEOUT_MS";
/// The length of output that the model gets directly.
pub(crate) const BASH_MAX_OUTPUT_LENGTH: &str = "BASH_MAX_OUTPUT_LENGTH";
/// How often a failed request is sent again.
pub(crate) const CLAUDE_CODE_MAX_RETRIES: &str = "CLAUDE_CODE_MAX_RETRIES";
/// The maximum number of output tokens of a reply.
pub(crate) const CLAUDE_CODE_MAX_OUTPUT_TOKENS: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
/// Whether a conversation that nearly fills the window is left as it is.
pub(crate) const DISABLE_AUTO_COMPACT: &str = "DISABLE_AUTO_COMPACT";
/// The maximum number of tokens for thinking.
pub(crate) const MAX_THINKING_TOKENS: &str = "MAX_THINKING_TOKENS";
/// Whether a chat without a screen keeps backups of changed files.
pub(crate) const CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING: &str =
    "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";
/// The folder for temporary files of a chat.
pub(crate) const CLAUDE_CODE_TMPDIR: &str = "CLAUDE_CODE_TMPDIR";
/// Settings of Claude Code for other services.
pub(crate) const CLAUDE_CODE_USE_BEDROCK: &str = "CLAUDE_CODE_USE_BEDROCK";
/// Settings of Claude Code for other services.
pub(crate) const CLAUDE_CODE_USE_VERTEX: &str = "CLAUDE_CODE_USE_VERTEX";
/// How long a key of the `apiKeyHelper` is used, in milliseconds.
pub(crate) const CLAUDE_CODE_API_KEY_HELPER_TTL_MS: &str = "CLAUDE_CODE_API_KEY_HELPER_TTL_MS";
/// A file with certificates that are trusted besides the usual ones.
pub(crate) const NODE_EXTRA_CA_CERTS: &str = "NODE_EXTRA_CA_CERTS";
/// How long an MCP server may take to start, in milliseconds.
pub(crate) const MCP_TIMEOUT: &str = "MCP_TIMEOUT";
/// How long a call of an MCP server may take, in milliseconds.
pub(crate) const MCP_TOOL_TIMEOUT: &str = "MCP_TOOL_TIMEOUT";

/// The size from which glibc allocates a block with `mmap`, and returns it to the system when freed.
pub(crate) const MALLOC_MMAP_THRESHOLD: &str = "MALLOC_MMAP_THRESHOLD_";

/// Variables set by terminals that support hyperlinks, and the one with which users enable them.
const HYPERLINK_VARIABLES: &[&str] =
    &["FORCE_HYPERLINK", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"];
/// The name of the terminal program, which some terminals set.
const TERM_PROGRAM: &str = "TERM_PROGRAM";

/// Returns whether the terminal supports hyperlinks.
pub(crate) fn supports_hyperlinks() -> bool {
    let program = get(TERM_PROGRAM).unwrap_or_default();
    HYPERLINK_VARIABLES.iter().any(|name| get(name).is_some_and(|value| value != "0"))
        || ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper"].contains(&&*program)
}

/// The time zone to use instead of the system's.
pub(crate) const TZ: &str = "TZ";
/// The system's time zone on Unix.
const LOCALTIME: &str = "/etc/localtime";

/// The state folder of a hook.
static STATE_DIR: OnceLock<PathBuf> = OnceLock::new();

/// Sets the state folder of threadline to use instead of the system's.
pub(crate) fn set_state_dir(folder: PathBuf) {
    // Later calls have no effect; there is one hook per process.
    let _ = STATE_DIR.set(folder);
}

/// Returns the state folder of threadline; `None` if there is no home folder.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let base = || {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(base.state_dir().unwrap_or_else(|| base.data_dir()).join("threadline"))
    };
    STATE_DIR.get().cloned().or_else(base)
}

/// Returns the state folder that applies if no variable names another one.
pub(crate) fn default_state_dir() -> Option<PathBuf> {
    let home = etcetera::home_dir().ok()?;
    // Elsewhere, no variable does.
    if cfg!(unix) { Some(home.join(".local/state/threadline")) } else { state_dir() }
}

/// The time zone of the configuration file.
static CONFIGURED_ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Sets the time zone to use unless `TZ` is set.
pub(crate) fn set_time_zone(zone: TimeZone) {
    // Later calls have no effect; there is one configuration per process.
    let _ = CONFIGURED_ZONE.set(zone);
}

/// Parses the name of a time zone.
pub(crate) fn parse_time_zone(name: &str) -> Result<TimeZone, String> {
    match name {
        name if name.eq_ignore_ascii_case("utc") => Ok(TimeZone::UTC),
        name => TimeZone::get(name).map_err(|_| format!("unknown time zone `{name}`")),
    }
}

/// Returns the time zone in which times are shown.
pub(crate) fn time_zone() -> TimeZone {
    if let Some(zone) = CONFIGURED_ZONE.get().filter(|_| std::env::var_os(TZ).is_none()) {
        return zone.clone();
    }
    // Reads the file directly: to find its name as well, `TimeZone::system` would search all zones.
    let file = std::env::var_os(TZ).is_none().then(|| std::fs::read(LOCALTIME).ok()).flatten();
    file.and_then(|file| TimeZone::tzif("local", &file).ok()).unwrap_or_else(TimeZone::system)
}

/// Variables of the settings files of a chat.
static SETTINGS_VARIABLES: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Sets variables that take precedence over those of the process.
pub(crate) fn set_variables(variables: BTreeMap<String, String>) {
    // Later calls have no effect; there is one chat per process.
    let _ = SETTINGS_VARIABLES.set(variables);
}

/// Returns the variables with which vendors of object storage and databases configure their clients.
pub(crate) fn storage_options() -> BTreeMap<String, String> {
    const PREFIXES: [&str; 4] = ["AWS_", "AZURE_", "GOOGLE_", "PG"];
    let mut options: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    if let Ok(home) = etcetera::home_dir() {
        let file = home.join(".pgpass").to_string_lossy().into_owned();
        options.entry("PGPASSFILE".to_owned()).or_insert(file);
    }
    options
}

/// Returns the value of a variable, if it is set and not empty.
pub(crate) fn get(name: &str) -> Option<String> {
    let own = SETTINGS_VARIABLES.get().and_then(|variables| variables.get(name)).cloned();
    own.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}
