//! `threadline chat` on a terminal: the interactive screen, and the operations that it needs.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempPath;
use threadline_agent::{AgentConfig, MemoryFile, MemoryPaths, read_memory};
use threadline_app::App;
use threadline_app::restore::{FileRestore, RestoreAction, RestorePlan};
use threadline_cancel::CancelToken;
use threadline_mcp_client::McpServers;
use threadline_permission::RuleEffect;
use threadline_store::SessionFile;
use threadline_tui::{RulePlace, ScreenConfig, ScreenEnd, ScreenHost, ScreenRule, Theme, run_screen};
use threadline_view::humanize::plural;
use threadline_view::{DetailLevel, TranscriptFilter, markdown};

use super::config::ChatSetup;
use super::files::{create_file, resolve_inside, update_text};
use super::limited_process::output_of;
use super::mcp::McpSetup;
use super::rule_files::RuleFiles;
use super::{ChatArgs, ChatError, clipboard, trust};
use crate::commands::search;
use crate::context::Context;
use crate::env;
use crate::error::CommandError;

/// The timeout of the user's status-line command.
const STATUS_LINE_TIME: Duration = Duration::from_secs(5);
/// The longest output of that command that is read.
const STATUS_LINE_BYTES: u64 = 4096;

/// Runs the screen until the person leaves.
/// Returns whether the session failed.
pub(super) fn run(cx: &mut Context, args: &ChatArgs) -> Result<bool, ChatError> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandError::new("the interactive screen needs a terminal")
            .hint("use -p to print the answer: threadline chat -p \"…\"")
            .into());
    }
    if !cx.is_demo {
        trust::ask(cx, args.setting_sources.as_deref())?;
    }
    let mut resumed = None;
    loop {
        let setup = ChatSetup::new_interactive(cx, args, resumed.as_deref())?;
        let is_first = resumed.is_none();
        match run_screen(screen_config(cx, args, setup, is_first)?)? {
            ScreenEnd::Left => return Ok(false),
            ScreenEnd::Failed => return Ok(true),
            ScreenEnd::Resume(log) => resumed = Some(log),
        }
    }
}

fn screen_config(
    cx: &Context,
    args: &ChatArgs,
    setup: ChatSetup,
    is_first: bool,
) -> Result<ScreenConfig, CommandError> {
    let page = cx.ui.page();
    let paths = setup.agent.paths.clone();
    let editor = env::get(env::VISUAL).or_else(|| env::get(env::EDITOR)).unwrap_or_else(|| "vi".to_owned());
    let theme = cx.user.file.theme.map(|theme| theme.name().to_owned());
    Ok(ScreenConfig {
        client: Arc::new(setup.client),
        prices: (*cx.app.prices()?).clone(),
        color: page.color,
        links: page.links,
        theme: theme.and_then(|name| Theme::parse(&name)).unwrap_or_default(),
        history: (!cx.is_demo).then(|| paths.claude_home.join("history.jsonl")),
        prompt: args.prompt.clone().filter(|_| is_first),
        editor,
        has_vi_keys: false,
        is_plain: args.screen_reader,
        is_demo: cx.is_demo,
        may_bypass: args.dangerously_skip_permissions,
        has_bell: true,
        notes: Vec::new(),
        host: Arc::new(ChatHost {
            app: Arc::clone(&cx.app),
            mcp: setup.mcp,
            status_line: setup.status_line,
            environment: setup.agent.environment.clone(),
            settings: RuleFiles::new(&paths, args, cx.is_demo),
            cwd: paths.cwd,
            claude_home: paths.claude_home,
            user_home: paths.user_home,
        }),
        agent: setup.agent,
    })
}

/// The operations of the screen.
struct ChatHost {
    app: Arc<App>,
    mcp: McpSetup,
    /// The user's status-line command.
    status_line: Option<String>,
    /// The environment of that command, without our credentials.
    environment: Vec<(OsString, OsString)>,
    settings: RuleFiles,
    cwd: PathBuf,
    claude_home: PathBuf,
    user_home: Option<PathBuf>,
}

impl ScreenHost for ChatHost {
    fn connect_mcp(&self, config: &AgentConfig, cancel: &CancelToken) -> McpServers {
        self.mcp.start(config, None, cancel)
    }

    fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        for rule in rules {
            self.add_rule(&ScreenRule::new(rule, RuleEffect::Allow, RulePlace::Local))?;
        }
        Ok(())
    }

    fn rules(&self) -> Vec<ScreenRule> {
        self.settings.rules()
    }

    fn add_rule(&self, rule: &ScreenRule) -> Result<PathBuf, String> {
        self.settings.change(rule, |entry, old| entry.add(old))
    }

    fn remove_rule(&self, rule: &ScreenRule) -> Result<(), String> {
        self.settings.change(rule, |entry, old| entry.remove(old.unwrap_or("{}"))).map(drop)
    }

    fn restore_files(&self, log: &Path, prompt: &str) -> Result<String, String> {
        let plan = self.app.plan_rewind(log, prompt).map_err(|error| error.to_string())?;
        let Some(plan) = plan else {
            return Ok("No tool changed a file; there is nothing to restore.".to_owned());
        };
        let command = ["threadline".to_owned(), "chat".to_owned(), "/rewind".to_owned()];
        let receipt = plan.apply(&self.app, false, &command).map_err(|error| error.to_string())?;
        let needs_permission =
            |file: &&FileRestore| file.action.writes() && !RestorePlan::writes(file, false);
        let not_written = plan.files.iter().filter(needs_permission).count();
        let blocked = plan.files.iter().filter(|file| file.action == RestoreAction::Blocked).count();
        let mut text = match receipt {
            Some(receipt) => format!("Restored {}. Undo: threadline op undo {}", receipt.summary, receipt.id),
            None if not_written + blocked > 0 => String::new(),
            None => "The files are as they were.".to_owned(),
        };
        if not_written > 0 {
            let files = plural(not_written as u64, "file");
            let _ = write!(text, " Not restored: {files}, which need `threadline restore --outside`.");
        }
        if blocked > 0 {
            let files = plural(blocked as u64, "file");
            let _ = write!(text, " {files} cannot be written; `threadline restore` lists the reasons.");
        }
        Ok(text.trim_start().to_owned())
    }

    fn export(&self, log: &Path, file: Option<&Path>) -> Result<PathBuf, String> {
        let session = SessionFile::at(log);
        let loaded = threadline_app::load_unpriced(&session).map_err(|error| error.to_string())?;
        let mut transcript = loaded.transcript();
        TranscriptFilter::up_to_level(DetailLevel::Tools).apply(&mut transcript);
        let file = match file {
            Some(file) => self.cwd.join(file),
            None => self.cwd.join(format!("{}.md", session.id)),
        };
        let text = markdown(&transcript, DetailLevel::Tools);
        create_file(&file, &text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        Ok(file)
    }

    fn remember(&self, note: &str) -> Result<(PathBuf, Vec<MemoryFile>), String> {
        let file = self.cwd.join("CLAUDE.md");
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
        let target = self.target(&file).map_err(failed)?;
        update_text(&target, |old| {
            let old = old.unwrap_or_default();
            let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
            Ok(Some(format!("{old}{gap}- {note}\n")))
        })?;
        let memory = read_memory(&MemoryPaths {
            claude_home: self.claude_home.clone(),
            user_home: self.user_home.clone(),
            cwd: self.cwd.clone(),
        });
        Ok((file, memory))
    }

    fn pick_session(&self) -> Option<PathBuf> {
        // The thread that handles signals runs after the picker, so a flag takes its place here.
        let is_stopped = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        let handlers = {
            use signal_hook::consts::{SIGHUP, SIGTERM};
            [SIGHUP, SIGTERM].map(|signal| signal_hook::flag::register(signal, Arc::clone(&is_stopped)))
        };
        let should_leave = || is_stopped.load(Ordering::Relaxed);
        let picked = search::pick_session(&self.app, self.cwd.to_str(), &should_leave);
        #[cfg(unix)]
        for handler in handlers.into_iter().flatten() {
            signal_hook::low_level::unregister(handler);
        }
        picked.ok().flatten()
    }

    fn show_session(&self, log: &Path) {
        let Ok(program) = std::env::current_exe() else { return };
        let mut command = Command::new(program);
        // The pager needs no credentials. It stays open, also if the session fits on the screen.
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg("show").arg(log).args(["--level", "full"]).env(env::THREADLINE_PAGER, "less -RX");
        let _ = command.status();
    }

    fn plan_model(&self, name: &str) -> Option<String> {
        super::config::plan_model(name)
    }

    fn model_name(&self, name: &str) -> String {
        super::config::with_suffix(name)
    }

    fn clipboard_image(&self) -> Result<TempPath, String> {
        clipboard::save_image(&self.environment)
    }

    fn status_line(&self, facts: &str) -> Option<String> {
        let mut command = Command::new("sh");
        command.args(["-c", self.status_line.as_deref()?]).current_dir(&self.cwd);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = output_of(&mut command, facts, STATUS_LINE_BYTES, STATUS_LINE_TIME)?;
        String::from_utf8_lossy(&output).lines().next().map(str::to_owned)
    }
}

impl ChatHost {
    /// Returns the file to which a write goes. A link may lead to the project or the home folder only.
    fn target(&self, file: &Path) -> std::io::Result<PathBuf> {
        let home = self.user_home.as_deref().unwrap_or(&self.claude_home);
        resolve_inside(file, &[&self.cwd, home, &self.claude_home])
    }
}
