//! The context of a command: the application, and the streams it writes to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy;
use threadline_app::{App, AppConfig, AppError};
use threadline_store::Store;

use crate::error::{CommandError, CommandOutcome};
use crate::ui::{ColorChoice, Ui};
use crate::{demo, env};

/// Arguments that every command takes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Folder with Claude Code's sessions (can be repeated)
    ///
    /// The default is $CLAUDE_CONFIG_DIR, else ~/.claude and ~/.config/claude.
    #[arg(long, global = true, value_name = "DIR")]
    home: Vec<PathBuf>,

    /// Use the built-in sample sessions
    #[arg(long, global = true, conflicts_with = "home")]
    demo: bool,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,

    /// Do not use a pager
    #[arg(long, global = true)]
    no_pager: bool,

    /// Print only the result
    #[arg(long, short, global = true)]
    quiet: bool,
}

/// The application and the streams, for every command.
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    pub(crate) ui: Ui,
    pub(crate) json: bool,
    /// Whether the built-in samples are used.
    pub(crate) is_demo: bool,
}

impl Context {
    /// Resolves flags and environment.
    pub(crate) fn new(args: &GlobalArgs) -> Result<Self, CommandError> {
        let homes = if args.demo { vec![demo::unpack_home()?] } else { roots(&args.home)? };
        let base = etcetera::choose_base_strategy().ok();
        let base = base.as_ref();
        let config = AppConfig {
            homes,
            state_dir: base
                .map(|base| base.state_dir().unwrap_or_else(|| base.data_dir()).join("threadline")),
            cache_dir: base.map(|base| base.cache_dir().join("threadline")),
            prices_file: base
                .map(|base| base.config_dir().join("threadline/prices.json"))
                .filter(|file| file.is_file()),
            current_dir: std::env::current_dir().ok(),
            home_dir: etcetera::home_dir().ok(),
        };
        let ui = Ui::new(args.color, !args.no_pager && !args.json, args.quiet);
        Ok(Self { app: Arc::new(App::new(config)), ui, json: args.json, is_demo: args.demo })
    }

    /// Returns the sessions on disk.
    pub(crate) fn store(&self) -> &Store {
        self.app.store()
    }

    /// Returns the time zone in which times are shown.
    pub(crate) fn zone(&self) -> jiff::tz::TimeZone {
        env::time_zone()
    }

    /// Prints a warning for each error. Returns [`CommandOutcome::Partial`] if there are any, else `outcome`.
    pub(crate) fn warn_unread(&self, unread: &[AppError], outcome: CommandOutcome) -> CommandOutcome {
        for error in unread {
            self.ui.warn(&error.to_string());
        }
        if unread.is_empty() { outcome } else { CommandOutcome::Partial }
    }
}

/// Returns the folders with sessions: those given with `--home`, else those that Claude Code uses.
fn roots(asked: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    if let Some(missing) = asked.iter().find(|home| !home.is_dir()) {
        return Err(CommandError::new(format!("folder not found: `{}`", missing.display()))
            .hint("--home takes the folder that contains `projects`"));
    }
    if !asked.is_empty() {
        return Ok(asked.to_vec());
    }
    if let Some(list) = env::get(env::CLAUDE_CONFIG_DIR) {
        // A folder name may contain a comma, so the value is a list only if it is not a folder itself.
        if Path::new(&list).is_dir() {
            return Ok(vec![list.into()]);
        }
        return Ok(list.split(',').map(|part| part.trim().into()).collect());
    }
    let base = etcetera::choose_base_strategy()
        .map_err(|_| CommandError::new("cannot find your home folder").hint("set it with --home DIR"))?;
    Ok(vec![base.home_dir().join(".claude"), base.config_dir().join("claude")])
}
