//! The context of a command: the application, and the streams it writes to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy;
use threadline_app::time::TimeRange;
use threadline_app::{App, AppConfig, AppError, EMPTY_HINT, Mask, SessionSource, SourceSelection};
use threadline_archive::{Archive, ArchiveLocation, KeyFile};
use threadline_html::PageTheme;
use threadline_secret::Rules;
use threadline_store::Store;
use threadline_usage::ModelCalls;
use threadline_view::shell_word;

use crate::commands::UsageArgs;
use crate::config::{AppliedSetting, ConfigFile, SettingSource, UserConfig};
use crate::error::{CommandError, CommandOutcome};
use crate::ui::{ColorChoice, Ui, set_source_options};
use crate::{demo, env};

/// Arguments that every command takes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Folder with Claude Code's sessions (can be repeated)
    ///
    /// The default is $CLAUDE_CONFIG_DIR, else `homes` in config.toml, else ~/.claude and ~/.config/claude.
    #[arg(long, global = true, value_name = "DIR")]
    home: Vec<PathBuf>,

    /// Use the built-in sample sessions
    #[arg(long, global = true, conflicts_with = "home")]
    demo: bool,

    #[command(flatten)]
    source: SourceArgs,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,

    /// Do not use a pager
    #[arg(long, global = true)]
    no_pager: bool,

    /// Mask secrets in what is shown and exported
    ///
    /// The logs are not changed; `edit redact` does that.
    #[arg(long, global = true)]
    redact: bool,

    /// Print only the result
    #[arg(long, short, global = true)]
    quiet: bool,
}

impl GlobalArgs {
    /// Returns the options that commands to copy need: those that select the sessions, and `--redact`.
    fn source_options(&self) -> String {
        let mut options: Vec<String> = Vec::new();
        for home in &self.home {
            options.push(format!("--home {}", shell_word(&home.to_string_lossy())));
        }
        options.extend(self.demo.then(|| "--demo".to_owned()));
        // The address of a database may contain a password.
        let from = self.source.from.as_ref().filter(|from| !from.contains('@'));
        options.extend(from.map(|from| format!("--from {}", shell_word(from))));
        options.extend(self.redact.then(|| "--redact".to_owned()));
        options.join(" ")
    }
}

/// Which archive to read instead of the homes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct SourceArgs {
    /// Read the sessions of an archive: file:DIRECTORY, s3://BUCKET/PREFIX, gs://, az:// or postgres://
    #[arg(long, global = true, value_name = "URL", conflicts_with = "demo")]
    pub(crate) from: Option<String>,

    /// Key file of an encrypted archive [default: $THREADLINE_ARCHIVE_KEY, else `archive_key` in config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,

    /// Only archived sessions of this machine
    #[arg(long, global = true, value_name = "NAME", requires = "from")]
    pub(crate) machine: Option<String>,

    /// Only archived sessions of this user
    #[arg(long, global = true, value_name = "NAME", requires = "from")]
    pub(crate) user: Option<String>,
}

/// How a command uses the archive given with `--from`.
#[derive(Clone, Debug)]
pub(crate) enum SourceUse<'a> {
    /// It reads sessions: all, or those with ids that begin with a text.
    Sessions(Option<&'a str>),
    /// It searches sessions for lines that contain all of these texts; all sessions if there are none.
    Search(Vec<String>),
    /// It adds up model calls.
    Calls(&'a UsageArgs),
    /// It opens the archive itself.
    Archive,
    /// It cannot use an archive.
    None,
}

/// Model calls that an archive has counted, and their time range.
pub(crate) struct ArchivedCalls {
    pub(crate) calls: ModelCalls,
    pub(crate) range: TimeRange,
}

/// The application and the streams, for every command.
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    pub(crate) ui: Ui,
    pub(crate) json: bool,
    /// Whether the built-in samples are used.
    pub(crate) is_demo: bool,
    /// The folders given with `--home`.
    pub(crate) named_homes: Vec<PathBuf>,
    /// The archive given with `--from`.
    pub(crate) source: SourceArgs,
    /// The model calls that the archive has counted.
    pub(crate) archived_calls: Option<ArchivedCalls>,
    /// The configuration file.
    pub(crate) user: UserConfig,
    /// The settings that apply, with their sources.
    pub(crate) settings: Vec<AppliedSetting>,
}

impl Context {
    /// Resolves flags and environment.
    pub(crate) fn new(args: &GlobalArgs, source_use: SourceUse<'_>) -> Result<Self, CommandError> {
        set_source_options(args.source_options());
        let user = UserConfig::read()?;
        let file = &user.file;
        let (homes, homes_source) = match args.demo {
            true => (vec![demo::unpack_home()?], SettingSource::Option),
            false => roots(&args.home, file)?,
        };
        if let Some(zone) = &file.time_zone
            && let Ok(zone) = env::parse_time_zone(zone)
        {
            env::set_time_zone(zone);
        }
        let base = etcetera::choose_base_strategy().ok();
        let base = base.as_ref();
        let redacts = args.redact || file.redact.unwrap_or(false);
        let mask = if redacts { Mask::new(secret_rules(file)?) } else { Mask::default() };
        let own_prices = base.map(|base| base.config_dir().join("threadline/prices.json"));
        let settings = applied_settings(args, file, &homes, homes_source, own_prices.as_deref());
        let paging = !args.no_pager && !args.json;
        let ui = Ui::new(args.color, paging, args.quiet, file.pager.clone(), mask.clone());
        let cache_dir = base.map(|base| base.cache_dir().join("threadline"));
        let usage = match &source_use {
            SourceUse::Calls(usage) => Some(*usage),
            _ => None,
        };
        let archive = OpenArchive::new(&args.source, source_use, file, cache_dir.as_deref())?;
        // An archive that counts calls itself need not be copied for that.
        let can_count = archive.as_ref().is_some_and(|archive| archive.archive.counts_calls());
        let counts = usage.filter(|usage| can_count && usage.can_be_counted_by_archive(args.json));
        let homes = match (&archive, counts) {
            (None, _) => homes,
            (Some(archive), None) => archive.fetch(&ui)?,
            (Some(_), Some(_)) => Vec::new(),
        };
        let hook_state_dirs = homes.iter().filter_map(|home| hook_state_dir(home)).collect();
        let mut config = AppConfig {
            homes,
            hook_state_dirs,
            state_dir: env::state_dir(),
            cache_dir,
            prices_file: file.prices.clone().or(own_prices.filter(|file| file.is_file())),
            mask,
            current_dir: std::env::current_dir().ok(),
            home_dir: etcetera::home_dir().ok(),
            claude_homes: claude_homes(),
            build: crate::version::build_id(),
        };
        let mut app = Arc::new(App::new(config.clone()));
        let mut archived_calls = None;
        if let (Some(archive), Some(usage)) = (&archive, counts) {
            let (query, range) = usage.call_query(&app)?;
            match archive.archive.model_calls(&archive.selection, &query)? {
                Some(calls) => archived_calls = Some(ArchivedCalls { calls, range }),
                None => {
                    config.homes = archive.fetch(&ui)?;
                    app = Arc::new(App::new(config));
                }
            }
        }
        Ok(Self {
            app,
            ui,
            json: args.json,
            is_demo: args.demo,
            named_homes: args.home.clone(),
            source: args.source.clone(),
            archived_calls,
            user,
            settings,
        })
    }

    /// Returns the same application, with everything masked that should not be shared.
    ///
    /// # Errors
    ///
    /// If the rules of the configuration file cannot be read.
    pub(crate) fn for_sharing(&self) -> Result<App, CommandError> {
        Ok(self.app.with_mask(Mask::for_sharing(secret_rules(&self.user.file)?)))
    }

    /// Returns the rules for secrets with those of the configuration file.
    ///
    /// # Errors
    ///
    /// If a file with rules cannot be read.
    pub(crate) fn secret_rules(&self) -> Result<Rules, CommandError> {
        secret_rules(&self.user.file)
    }

    /// Reads the key file of the archive, if one is named.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub(crate) fn archive_key(&self) -> Result<Option<KeyFile>, CommandError> {
        archive_key(&self.source, &self.user.file)
    }

    /// Returns the colours of pages.
    pub(crate) fn theme(&self) -> PageTheme {
        self.user.file.theme.unwrap_or_default().into()
    }

    /// Returns the sessions on disk.
    pub(crate) fn store(&self) -> &Store {
        self.app.store()
    }

    /// Returns the time zone in which times are shown.
    pub(crate) fn zone(&self) -> jiff::tz::TimeZone {
        env::time_zone()
    }

    /// Prints a note with a hint if the homes have no sessions. Returns whether they have none.
    pub(crate) fn note_if_empty(&self) -> bool {
        let is_empty = self.store().logs().found.is_empty();
        if is_empty {
            let homes = self.store().homes().iter().map(|home| home.root().display().to_string());
            self.ui.note(&format!("no sessions in {}", homes.collect::<Vec<_>>().join(", ")));
            self.ui.note(&format!("hint: {EMPTY_HINT}"));
        }
        is_empty
    }

    /// Prints a warning for each error. Returns [`CommandOutcome::Partial`] if there are any, else `outcome`.
    pub(crate) fn warn_unread(&self, unread: &[AppError], outcome: CommandOutcome) -> CommandOutcome {
        for error in unread {
            self.ui.warn(&error.to_string());
        }
        if unread.is_empty() { outcome } else { CommandOutcome::Partial }
    }
}

/// The archive given with `--from`, and the part of it to read.
struct OpenArchive {
    archive: Archive,
    selection: SourceSelection,
    cache_dir: PathBuf,
}

impl OpenArchive {
    /// Opens the archive; `None` if there is none to read.
    fn new(
        source: &SourceArgs,
        source_use: SourceUse<'_>,
        file: &ConfigFile,
        cache_dir: Option<&Path>,
    ) -> Result<Option<Self>, CommandError> {
        let Some(from) = &source.from else { return Ok(None) };
        let (session, texts) = match source_use {
            SourceUse::Sessions(session) => (session.map(str::to_owned), None),
            SourceUse::Search(texts) => (None, Some(texts)),
            SourceUse::Calls(_) => (None, None),
            SourceUse::Archive => return Ok(None),
            SourceUse::None => {
                return Err(CommandError::new("this command cannot read an archive")
                    .hint("restore the session first: `threadline archive restore SESSION`"));
            }
        };
        let cache_dir =
            cache_dir.ok_or_else(|| CommandError::new("there is no folder for caches").hint("set HOME"))?;
        let location: ArchiveLocation = from.parse()?;
        let key = archive_key(source, file)?;
        let archive = Archive::open_with_key(&location, &env::storage_options(), key)?;
        let (machine, user) = (source.machine.clone(), source.user.clone());
        let selection = SourceSelection { machine, user, session, texts };
        Ok(Some(Self { archive, selection, cache_dir: cache_dir.join("archive") }))
    }

    /// Copies the sessions into the cache, and returns the folders to use as homes.
    fn fetch(&self, ui: &Ui) -> Result<Vec<PathBuf>, CommandError> {
        let progress = ui.byte_progress("fetched");
        Ok(self.archive.fetch(&self.selection, &self.cache_dir, &|size| progress.add(size))?)
    }
}

/// Reads the key file of the archive, if an option, the environment or the configuration file names one.
fn archive_key(source: &SourceArgs, file: &ConfigFile) -> Result<Option<KeyFile>, CommandError> {
    let in_environment = || env::get(env::THREADLINE_ARCHIVE_KEY).map(PathBuf::from);
    let path = source.key.clone().or_else(in_environment).or_else(|| file.archive_key.clone());
    Ok(path.map(|path| KeyFile::read(&path)).transpose()?)
}

/// Returns the rules for secrets with those of the configuration file.
pub(crate) fn secret_rules(file: &ConfigFile) -> Result<Rules, CommandError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| CommandError::new(format!("cannot read {}: {error}", path.display())))
    };
    let mut rules = Rules::new();
    let wrong = |path: &Path, error: threadline_secret::RuleError| {
        CommandError::new(format!("{}: {error}", path.display()))
    };
    if let Some(path) = &file.redact_rules {
        rules = rules.with_custom_rules(&read(path)?).map_err(|error| wrong(path, error))?;
    }
    if let Some(path) = &file.redact_allow {
        rules = rules.with_allowed(&read(path)?).map_err(|error| wrong(path, error))?;
    }
    Ok(rules)
}

/// Returns the settings as they apply, for `threadline config`.
fn applied_settings(
    args: &GlobalArgs,
    file: &ConfigFile,
    homes: &[PathBuf],
    homes_source: SettingSource,
    own_prices: Option<&Path>,
) -> Vec<AppliedSetting> {
    use SettingSource::{Default, Environment, File, Option as Flag};
    let path = |path: &Path| path.display().to_string();
    let from_env = |name: &'static str| env::get(name).map(|value| (value, Environment(name)));
    let in_file = |value: Option<String>| value.map(|value| (value, File));
    let zone = env::time_zone();
    let zone = zone.iana_name().unwrap_or("system").to_owned();
    let zone_source = match (env::get(env::TZ), &file.time_zone) {
        (Some(_), _) => Environment(env::TZ),
        (None, Some(_)) => File,
        (None, None) => Default,
    };
    let pager = from_env(env::THREADLINE_PAGER)
        .or_else(|| in_file(file.pager.clone()))
        .or_else(|| from_env(env::PAGER))
        .unwrap_or_else(|| (crate::ui::DEFAULT_PAGER.to_owned(), Default));
    let prices = in_file(file.prices.as_deref().map(path));
    let prices = prices
        .or_else(|| own_prices.filter(|file| file.is_file()).map(|file| (path(file), Default)))
        .unwrap_or_else(|| ("built-in".to_owned(), Default));
    let redact = match (args.redact, file.redact) {
        (true, _) => ("true".to_owned(), Flag),
        (false, Some(redact)) => (redact.to_string(), File),
        (false, None) => ("false".to_owned(), Default),
    };
    let set = |(value, source): (String, SettingSource)| (Some(value), source);
    let optional = |value: &Option<PathBuf>| in_file(value.as_deref().map(path)).map_or((None, Default), set);
    let homes = homes.iter().map(|home| path(home)).collect::<Vec<_>>().join(", ");
    let theme = file.theme.map(|theme| theme.name().to_owned());
    let theme = in_file(theme).unwrap_or_else(|| ("auto".to_owned(), Default));
    let resume = in_file(file.resume_with.map(|program| program.name().to_owned()))
        .unwrap_or_else(|| ("claude".to_owned(), Default));
    let archive_key = match &args.source.key {
        Some(key) => (Some(path(key)), Flag),
        None => from_env(env::THREADLINE_ARCHIVE_KEY).map_or_else(|| optional(&file.archive_key), set),
    };
    let settings = [
        ("homes", set((homes, homes_source))),
        ("time_zone", set((zone, zone_source))),
        ("prices", set(prices)),
        ("theme", set(theme)),
        ("pager", set(pager)),
        ("redact", set(redact)),
        ("redact_rules", optional(&file.redact_rules)),
        ("redact_allow", optional(&file.redact_allow)),
        ("resume_with", set(resume)),
        ("archive_key", archive_key),
    ];
    settings.into_iter().map(|(name, (value, source))| AppliedSetting { name, value, source }).collect()
}

/// Returns the homes that Claude Code uses if it is started without further settings.
fn claude_homes() -> Vec<PathBuf> {
    match (env::get(env::CLAUDE_CONFIG_DIR), etcetera::home_dir()) {
        (Some(named), _) => vec![named.into()],
        (None, Ok(home)) => [".claude", ".config/claude"].map(|name| home.join(name)).into(),
        (None, Err(_)) => Vec::new(),
    }
}

/// Returns the folders with sessions: those given with `--home`, else those of the configuration file, else
/// those that Claude Code uses.
fn roots(asked: &[PathBuf], file: &ConfigFile) -> Result<(Vec<PathBuf>, SettingSource), CommandError> {
    if let Some(missing) = asked.iter().find(|home| !home.is_dir()) {
        return Err(CommandError::new(format!("folder not found: `{}`", missing.display()))
            .hint("--home takes the folder that contains `projects`"));
    }
    if !asked.is_empty() {
        return Ok((asked.to_vec(), SettingSource::Option));
    }
    if let Some(list) = env::get(env::CLAUDE_CONFIG_DIR) {
        // A folder name may contain a comma, so the value is a list only if it is not a folder itself.
        if Path::new(&list).is_dir() {
            return Ok((vec![list.into()], SettingSource::Environment(env::CLAUDE_CONFIG_DIR)));
        }
        let homes = list.split(',').map(|part| part.trim().into()).collect();
        return Ok((homes, SettingSource::Environment(env::CLAUDE_CONFIG_DIR)));
    }
    if let Some(homes) = &file.homes {
        return Ok((homes.clone(), SettingSource::File));
    }
    let base = etcetera::choose_base_strategy()
        .map_err(|_| CommandError::new("cannot find your home folder").hint("set it with --home DIR"))?;
    let homes = vec![base.home_dir().join(".claude"), base.config_dir().join("claude")];
    Ok((homes, SettingSource::Default))
}

/// Returns the state folder that the hooks of a home were told to use, if it is not the default one.
fn hook_state_dir(home: &Path) -> Option<PathBuf> {
    let settings = threadline_store::read_regular(&home.join("settings.json")).ok()?;
    threadline_settings::HookFeature::state_dir(std::str::from_utf8(&settings).ok()?).map(PathBuf::from)
}
