//! Settings of a chat, from flags and the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use threadline_agent::{
    AgentConfig, AgentDefinition, AgentPaths, CustomCommand, HookSettings, MemoryPaths, SessionStart,
    read_memory,
};
use threadline_api::{ApiConfig, Auth, Client, full_model_name};
use threadline_app::App;
use threadline_mcp_client::McpServers;
use threadline_permission::PermissionMode;
use threadline_settings::{SettingsInput, SettingsStack};
use threadline_store::{SessionFile, encode_project, read_last_active};
use threadline_tools::{Limits, Profile};

use super::control::SessionFacts;
use super::key_helper::{self, KeyHelper};
use super::mcp::McpSetup;
use super::{ChatArgs, ChatError};
use crate::context::Context;
use crate::env;
use crate::error::CommandError;

/// The settings of a chat.
pub(super) struct ChatSetup {
    pub(super) agent: AgentConfig,
    pub(super) client: Client,
    /// The MCP servers, which are not started yet.
    pub(super) mcp: McpSetup,
    /// The model that is used if no flag names one.
    pub(super) default_model: String,
    /// Where the key comes from, as the output names it.
    pub(super) api_key_source: &'static str,
    /// The user's status-line command.
    pub(super) status_line: Option<String>,
}

/// The model that is used if none is named.
const DEFAULT_MODEL: &str = "opus";
/// The value of `entrypoint` in session lines.
const ENTRYPOINT: &str = "threadline";

/// Variables with credentials, which commands of the model do not get.
pub(super) const CREDENTIALS: &[&str] =
    &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN"];

impl ChatSetup {
    pub(super) fn new(cx: &Context, args: &ChatArgs) -> Result<Self, ChatError> {
        Self::new_in(cx, args, &current_dir()?)
    }

    /// Reads the settings of a chat in a folder.
    pub(super) fn new_in(cx: &Context, args: &ChatArgs, cwd: &Path) -> Result<Self, ChatError> {
        let profile = profile(&args.session_format)?;
        let mut paths = paths(cx, &args.add_dir, cwd)?;
        let input = SettingsInput { settings: args.settings.clone(), sources: args.setting_sources.clone() };
        let settings = super::settings::load(cx, &input, &paths.claude_home, &paths.cwd)?;
        let home = paths.user_home.clone();
        let further = super::permissions::additional_directories(&settings, &paths.cwd, home.as_deref());
        paths.additional_dirs.extend(further);
        let permissions =
            super::permissions::permissions(args, &settings, &paths, cx.is_demo && !args.is_interactive())?;
        let (client, api_key_source) = client(cx, args.is_interactive(), &settings)?;
        let start = session_start(cx, args, &paths)?;
        let default_name = default_model(&settings);
        let default_model = with_suffix(&default_name);
        let chosen = args.model.as_ref().unwrap_or(&default_name);
        let (model, plan_model) = (with_suffix(chosen), plan_model(chosen));
        let environment = child_environment(&settings);
        let mcp = McpSetup::read(cx, args, &settings, &paths)?;
        let agent = AgentConfig {
            profile,
            start,
            is_persistent: !args.no_session_persistence && !cx.is_demo,
            has_file_history: env::get(env::CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING).is_some(),
            model,
            plan_model,
            fallback_model: args.fallback_model.as_deref().map(model_name),
            small_model: env::get(env::ANTHROPIC_SMALL_FAST_MODEL)
                .or_else(|| env::get(env::ANTHROPIC_DEFAULT_HAIKU_MODEL)),
            betas: betas(args),
            limits: limits()?,
            effort: args.effort.clone(),
            max_output_tokens: number(env::CLAUDE_CODE_MAX_OUTPUT_TOKENS)?,
            max_thinking_tokens: number(env::MAX_THINKING_TOKENS)?,
            system_prompt: args.system_prompt.clone(),
            append_system_prompt: args.append_system_prompt.clone(),
            tools: (!args.tools.is_empty()).then(|| split_names(&args.tools)),
            disallowed_tools: split_names(&args.disallowed_tools),
            agents: agent_definitions(args, &paths)?,
            json_schema: args.json_schema.clone(),
            permissions,
            max_turns: args.max_turns,
            max_budget_usd: args.max_budget_usd,
            memory: if cx.is_demo { Vec::new() } else { read_memory(&memory_paths(&paths)) },
            commands: CustomCommand::read_all(&paths.claude_home, &paths.cwd, settings.is_trusted()),
            has_auto_compact: env::get(env::DISABLE_AUTO_COMPACT).is_none(),
            has_slash_commands: !args.disable_slash_commands,
            hooks: hooks(&settings)?,
            hook_environment: hook_environment(&environment, &paths.cwd),
            environment,
            mcp: McpServers::default(),
            sandbox: super::sandbox::sandbox(args, &settings, &paths)?,
            is_interactive: false,
            entrypoint: ENTRYPOINT.to_owned(),
            prompt_source: Some("sdk".to_owned()),
            platform: std::env::consts::OS.to_owned(),
            today: jiff::Zoned::now().date().to_string(),
            shell_observer: super::file_copies::observer(cx, args, &settings),
            paths,
        };
        let status_line = settings.status_line().and_then(status_line_command);
        Ok(Self { agent, client, mcp, default_model, api_key_source, status_line })
    }

    /// Returns the settings of a chat at a screen, which continues the session in `resumed` if one is given.
    pub(super) fn new_interactive(
        cx: &Context,
        args: &ChatArgs,
        resumed: Option<&Path>,
    ) -> Result<Self, ChatError> {
        let mut setup = Self::new(cx, args)?;
        if let Some(log) = resumed {
            setup.agent.start = SessionStart::Resume { log: log.to_owned() };
        }
        setup.agent.is_interactive = true;
        setup.agent.has_file_history = true;
        setup.agent.prompt_source = Some("typed".to_owned());
        Ok(setup)
    }

    /// Returns the facts that programs ask for.
    pub(super) fn facts(&self, cx: &Context) -> SessionFacts {
        let commands = self.agent.commands.iter();
        let agents = AgentDefinition::all(&self.agent.agents);
        let agents = agents.iter();
        SessionFacts {
            commands: commands.map(|command| (command.name.clone(), command.description.clone())).collect(),
            agents: agents.map(|agent| (agent.name.clone(), agent.description.clone())).collect(),
            default_model: self.default_model.clone(),
            model_name: with_suffix,
            plan_model,
            may_bypass: self.agent.permissions.mode() == PermissionMode::BypassPermissions,
            api_key_source: self.api_key_source,
            app: App::new(cx.app.config().clone()),
            now: || jiff::Timestamp::now().as_millisecond(),
        }
    }
}

/// Returns the command of a `statusLine` setting.
fn status_line_command(setting: &serde_json::value::RawValue) -> Option<String> {
    let setting = threadline_api::RawObject::parse(setting.get()).ok()?;
    setting.get_str("command").filter(|command| !command.trim().is_empty())
}

/// Returns a client of the API and the model for another command than `chat`.
pub(in crate::commands) fn client_and_model(
    cx: &Context,
    model: Option<&str>,
) -> Result<(Client, String), CommandError> {
    let paths = paths(cx, &[], &current_dir()?)?;
    let settings = super::settings::load(cx, &SettingsInput::default(), &paths.claude_home, &paths.cwd);
    let settings = settings.map_err(ChatError::into_command_error)?;
    let (client, _) = client(cx, false, &settings).map_err(ChatError::into_command_error)?;
    let model = model.map_or_else(|| with_suffix(&default_model(&settings)), with_suffix);
    let model = model.strip_suffix("[1m]").map_or_else(|| model.clone(), str::to_owned);
    Ok((client, model))
}

/// Returns the name of the model of the environment, of the settings, or the default.
fn default_model(settings: &SettingsStack) -> String {
    let model = env::get(env::ANTHROPIC_MODEL).or_else(|| settings.model().map(str::to_owned));
    model.unwrap_or_else(|| DEFAULT_MODEL.to_owned())
}

fn profile(version: &str) -> Result<&'static Profile, CommandError> {
    Profile::find(version).ok_or_else(|| {
        CommandError::new(format!("there is no session format for version `{version}`"))
            .hint(format!("known versions: {}", Profile::versions().join(", ")))
    })
}

/// Returns the kinds of sub-agents of the user, the project and the flag, in this order.
fn agent_definitions(args: &ChatArgs, paths: &AgentPaths) -> Result<Vec<AgentDefinition>, CommandError> {
    // The files of the user may be links to other folders of theirs.
    let mut definitions = AgentDefinition::read_folder(&paths.claude_home.join("agents"), None);
    definitions.extend(AgentDefinition::read_folder(&paths.cwd.join(".claude/agents"), Some(&paths.cwd)));
    if let Some(json) = &args.agents {
        let named = AgentDefinition::parse_json(json)
            .map_err(|reason| CommandError::new("--agents is not valid").cause(reason))?;
        definitions.extend(named);
    }
    Ok(definitions)
}

/// Returns the name of a model; a suffix such as `[1m]` stays.
pub(super) fn with_suffix(name: &str) -> String {
    let suffix = if name.ends_with("[1m]") { "[1m]" } else { "" };
    format!("{}{suffix}", model_name(name))
}

/// Returns the model in plan mode for a name that means two models.
pub(super) fn plan_model(name: &str) -> Option<String> {
    let rest = name.strip_prefix("opusplan")?;
    ["", "[1m]"].contains(&rest).then(|| with_suffix(&format!("opus{rest}")))
}

/// Returns the full name of a model. A variable can set the model of a family.
fn model_name(name: &str) -> String {
    let variable = match name.trim_end_matches("[1m]") {
        "opus" => env::ANTHROPIC_DEFAULT_OPUS_MODEL,
        "sonnet" | "opusplan" => env::ANTHROPIC_DEFAULT_SONNET_MODEL,
        "haiku" => env::ANTHROPIC_DEFAULT_HAIKU_MODEL,
        _ => return full_model_name(name),
    };
    env::get(variable).unwrap_or_else(|| full_model_name(name))
}

/// Returns the beta features of the flag and of the environment.
fn betas(args: &ChatArgs) -> Vec<String> {
    let variable = env::get(env::ANTHROPIC_BETAS).unwrap_or_default();
    let lists = args.betas.iter().flat_map(|list| list.split(',')).chain(variable.split(','));
    lists.map(str::trim).filter(|beta| !beta.is_empty()).map(str::to_owned).collect()
}

/// Returns the limits of tools, with those of the environment.
fn limits() -> Result<Limits, CommandError> {
    let mut limits = Limits::default();
    if let Some(time) = number(env::BASH_MAX_TIMEOUT_MS)? {
        limits.bash_timeout_max = Duration::from_millis(time);
    }
    if let Some(time) = number(env::BASH_DEFAULT_TIMEOUT_MS)? {
        limits.bash_timeout = Duration::from_millis(time);
        limits.bash_timeout_max = limits.bash_timeout_max.max(limits.bash_timeout);
    }
    if let Some(length) = number(env::BASH_MAX_OUTPUT_LENGTH)? {
        limits.bash_output_bytes = length;
    }
    Ok(limits)
}

/// Returns the client of the API, and where its key comes from.
fn client(
    cx: &Context,
    is_interactive: bool,
    settings: &SettingsStack,
) -> Result<(Client, &'static str), ChatError> {
    if cx.is_demo {
        return Ok((super::demo::client(is_interactive), "none"));
    }
    let (api, source) = api_config(settings)?;
    let client = Client::new(api).map_err(|error| CommandError::new(error.to_string()))?;
    Ok((client, source))
}

/// Reads the address and the key of the API from the environment.
fn api_config(settings: &SettingsStack) -> Result<(ApiConfig, &'static str), ChatError> {
    for (variable, service) in
        [(env::CLAUDE_CODE_USE_BEDROCK, "Bedrock"), (env::CLAUDE_CODE_USE_VERTEX, "Vertex AI")]
    {
        if env::get(variable).is_some() {
            return Err(CommandError::new(format!("{service} is not supported directly"))
                .hint("put a gateway in front of it and name that with ANTHROPIC_BASE_URL")
                .into());
        }
    }
    let (auth, source) = if let Some(token) = env::get(env::ANTHROPIC_AUTH_TOKEN) {
        (Auth::Bearer(token), "none")
    } else if let Some(key) = env::get(env::ANTHROPIC_API_KEY) {
        (Auth::ApiKey(key), env::ANTHROPIC_API_KEY)
    } else if let Some(command) = settings.api_key_helper() {
        let lifetime = number(env::CLAUDE_CODE_API_KEY_HELPER_TTL_MS)?.map(Duration::from_millis);
        let helper = KeyHelper::new(command.to_owned(), lifetime.unwrap_or(key_helper::DEFAULT_LIFETIME));
        (Auth::Source(Arc::new(helper)), "apiKeyHelper")
    } else {
        return Err(ChatError::refused(
            "Error: no API key. Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or an apiKeyHelper in settings.json.\n\
             A Claude subscription cannot be used here, and stored credentials of Claude Code are never read; \
             `threadline resume --with claude` continues a session with Claude Code itself.\n\
             To try it without a key: threadline --demo chat",
        ));
    };
    let mut api = ApiConfig::new(auth);
    if let Some(url) = env::get(env::ANTHROPIC_BASE_URL) {
        api.base_url = url;
    }
    if let Some(headers) = env::get(env::ANTHROPIC_CUSTOM_HEADERS) {
        api.headers = custom_headers(&headers)?;
    }
    if let Some(retries) = number(env::CLAUDE_CODE_MAX_RETRIES)? {
        api.retry.max_retries = u32::try_from(retries).unwrap_or(u32::MAX);
    }
    if let Some(timeout) = number(env::API_TIMEOUT_MS)? {
        api.idle_timeout = Duration::from_millis(timeout);
    }
    api.proxy = proxy(&api.base_url);
    api.ca_certificates = ca_certificates()?;
    Ok((api, source))
}

/// Reads the certificates that are trusted besides the usual ones.
pub(super) fn ca_certificates() -> Result<Option<Vec<u8>>, CommandError> {
    let Some(file) = env::get(env::NODE_EXTRA_CA_CERTS) else { return Ok(None) };
    let pem = std::fs::read(&file).map_err(|error| {
        CommandError::new(format!("cannot read the certificates in `{file}`")).cause(error.to_string())
    })?;
    Ok(Some(pem))
}

/// Parses `Name: value` lines.
fn custom_headers(text: &str) -> Result<Vec<(String, String)>, CommandError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':').ok_or_else(|| {
                CommandError::new(format!("`{line}` in ANTHROPIC_CUSTOM_HEADERS is not a header"))
                    .hint("write `Name: value`, one per line")
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

/// Returns the proxy for an address, unless `NO_PROXY` names its host.
pub(super) fn proxy(url: &str) -> Option<String> {
    let names: &[&str] = if url.starts_with("https:") {
        &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    } else {
        &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
    };
    let host = url.split_once("://")?.1.split(['/', ':']).next().unwrap_or_default();
    let excluded = env::get("NO_PROXY").or_else(|| env::get("no_proxy")).unwrap_or_default();
    let is_excluded = excluded
        .split(',')
        .map(|name| name.trim().trim_start_matches('.'))
        .any(|name| name == "*" || !name.is_empty() && (host == name || host.ends_with(&format!(".{name}"))));
    if is_excluded { None } else { names.iter().find_map(|name| env::get(name)) }
}

pub(super) fn number(variable: &str) -> Result<Option<u64>, CommandError> {
    let Some(value) = env::get(variable) else { return Ok(None) };
    let parsed = value
        .trim()
        .parse()
        .map_err(|_| CommandError::new(format!("`{value}` in {variable} is not a number")))?;
    Ok(Some(parsed))
}

/// Splits lists such as `Read,Bash(git status) Edit` at commas and spaces outside of parentheses.
pub(super) fn split_names(lists: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for list in lists {
        let mut depth = 0usize;
        let mut name = String::new();
        for ch in list.chars().chain([',']) {
            match ch {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' | ' ' if depth == 0 => {
                    if !name.is_empty() {
                        names.push(std::mem::take(&mut name));
                    }
                    continue;
                }
                _ => {}
            }
            name.push(ch);
        }
        if !name.is_empty() {
            names.push(name);
        }
    }
    names
}

/// Returns the environment of commands: without our credentials, and with the marks of Claude Code that
/// scripts look for.
fn child_environment(settings: &SettingsStack) -> Vec<(OsString, OsString)> {
    let own = settings.env().into_iter().map(|(name, value)| (name.into(), value.into()));
    let all = std::env::vars_os().chain(own);
    let kept = all.filter(|(name, _)| !CREDENTIALS.iter().any(|secret| name == secret));
    // A command that opens an editor would never end.
    let marks = [("CLAUDECODE".into(), "1".into()), ("GIT_EDITOR".into(), "true".into())];
    let mut environment = kept.chain(marks).collect();
    refuse_bare_repositories(&mut environment);
    environment
}

/// Makes git refuse repositories that are folders of a project and not its `.git`: their configuration can
/// run commands. A value of the user's environment is kept, also a different one.
fn refuse_bare_repositories(environment: &mut Vec<(OsString, OsString)>) {
    const KEY: &str = "safe.bareRepository";
    let is_key = |(name, value): &(OsString, OsString)| {
        name.to_string_lossy().starts_with("GIT_CONFIG_KEY_") && value.eq_ignore_ascii_case(KEY)
    };
    let last = environment.iter().rev().find(|(name, _)| name == "GIT_CONFIG_COUNT");
    let count = last.map_or(Some(0), |(_, count)| count.to_str()?.parse::<usize>().ok());
    // git refuses to run with another count.
    let Some(count) = count.filter(|_| !environment.iter().any(is_key)) else { return };
    environment.retain(|(name, _)| name != "GIT_CONFIG_COUNT");
    environment.extend([
        ("GIT_CONFIG_COUNT".into(), (count + 1).to_string().into()),
        (format!("GIT_CONFIG_KEY_{count}").into(), KEY.into()),
        (format!("GIT_CONFIG_VALUE_{count}").into(), "explicit".into()),
    ]);
}

/// Returns the environment of hooks: that of commands, with the values that Claude Code gives to hooks.
fn hook_environment(environment: &[(OsString, OsString)], cwd: &Path) -> Vec<(OsString, OsString)> {
    let own = [
        ("CLAUDE_PROJECT_DIR".into(), cwd.into()),
        // By this value, hooks distinguish headless and interactive sessions.
        ("CLAUDE_CODE_ENTRYPOINT".into(), "sdk-cli".into()),
    ];
    environment.iter().cloned().chain(own).collect()
}

fn memory_paths(paths: &AgentPaths) -> MemoryPaths {
    MemoryPaths {
        claude_home: paths.claude_home.clone(),
        user_home: paths.user_home.clone(),
        cwd: paths.cwd.clone(),
    }
}

fn hooks(settings: &SettingsStack) -> Result<HookSettings, CommandError> {
    let mut hooks = HookSettings::default();
    for (source, json) in settings.hooks() {
        hooks.add(json).map_err(|error| {
            CommandError::new(format!("cannot use the hooks of the {} settings", source.name()))
                .cause(error.to_string())
        })?;
    }
    Ok(hooks)
}

pub(super) fn current_dir() -> Result<PathBuf, CommandError> {
    let dir = std::env::current_dir().and_then(|dir| dir.canonicalize());
    dir.map_err(|error| CommandError::new("cannot find the current folder").cause(error.to_string()))
}

pub(super) fn paths(cx: &Context, add_dir: &[PathBuf], cwd: &Path) -> Result<AgentPaths, CommandError> {
    let homes = &cx.app.config().homes;
    let claude_home = homes.first().cloned().ok_or_else(|| CommandError::new("no home of Claude Code"))?;
    let additional_dirs: Result<Vec<PathBuf>, CommandError> = add_dir
        .iter()
        .map(|dir| {
            dir.canonicalize().map_err(|error| {
                CommandError::new(format!("cannot open the folder `{}`", dir.display()))
                    .cause(error.to_string())
            })
        })
        .collect();
    let temp = env::get(env::CLAUDE_CODE_TMPDIR).map_or_else(std::env::temp_dir, PathBuf::from);
    Ok(AgentPaths {
        cwd: cwd.to_owned(),
        additional_dirs: additional_dirs?,
        claude_home,
        user_home: cx.app.config().home_dir.clone(),
        temp_dir: temp.join(temp_name()),
    })
}

/// Returns the name of the folder for temporary files of this user.
fn temp_name() -> String {
    #[cfg(unix)]
    return format!("claude-{}", rustix::process::getuid().as_raw());
    #[cfg(not(unix))]
    return "claude".to_owned();
}

fn session_start(cx: &Context, args: &ChatArgs, paths: &AgentPaths) -> Result<SessionStart, ChatError> {
    let new_id = match &args.session_id {
        Some(id) => match uuid::Uuid::try_parse(id) {
            Ok(_) => id.to_lowercase(),
            Err(_) => return Err(ChatError::refused("Error: Invalid session ID. Must be a valid UUID.")),
        },
        None => uuid::Uuid::new_v4().to_string(),
    };
    let log = match (&args.resume, args.continue_last) {
        (Some(reference), _) => Some(resumed_log(cx, reference, paths)?),
        (None, true) => newest_log(&project_dir(paths)),
        (None, false) => None,
    };
    Ok(match log {
        Some(log) if args.fork_session => SessionStart::Fork { log, session_id: new_id },
        Some(log) => SessionStart::Resume { log },
        None => {
            if project_dir(paths).join(format!("{new_id}.jsonl")).exists() {
                let message = format!("Error: Session ID {new_id} is already in use.");
                return Err(ChatError::refused(message));
            }
            SessionStart::New { session_id: new_id, title: args.name.clone() }
        }
    })
}

fn project_dir(paths: &AgentPaths) -> PathBuf {
    paths.claude_home.join("projects").join(encode_project(&paths.cwd.to_string_lossy()))
}

/// Finds the log of a session by its id, title or path.
fn resumed_log(cx: &Context, reference: &str, paths: &AgentPaths) -> Result<PathBuf, ChatError> {
    let path = Path::new(reference);
    if reference.ends_with(".jsonl") && path.is_file() {
        return Ok(path.canonicalize()?);
    }
    if uuid::Uuid::try_parse(reference).is_ok() {
        let log = project_dir(paths).join(format!("{reference}.jsonl"));
        if log.is_file() {
            return Ok(log);
        }
        let file = cx.store().session(reference);
        let missing = || ChatError::refused(format!("No conversation found with session ID: {reference}"));
        return file.map(|file| file.path).ok_or_else(missing);
    }
    cx.app.find(reference).map(|file| file.path).map_err(|_| {
        ChatError::refused(format!(
            "Error: --resume requires a valid session ID or session title when used with --print. Usage: \
             threadline chat -p --resume <session-id|title>. Provided value \"{reference}\" is not a UUID and does \
             not match any session title."
        ))
    })
}

/// Returns the log in a folder whose session was last active, by its messages.
fn newest_log(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let mut dated: Vec<_> = logs.filter_map(|path| Some((read_last_active(&path).ok()?, path))).collect();
    dated.sort();
    let is_session = |path: &PathBuf| !SessionFile::at(path.clone()).is_sidechain().unwrap_or(true);
    dated.into_iter().rev().map(|(_, path)| path).find(is_session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_lists_are_split_outside_of_parentheses() {
        let lists = ["Read,Bash(git commit -m x, y) Edit".to_owned(), "Write".to_owned()];
        assert_eq!(split_names(&lists), ["Read", "Bash(git commit -m x, y)", "Edit", "Write"]);
        assert_eq!(split_names(&[String::new()]), Vec::<String>::new());
    }
}
