//! The commands, one file each: arguments, help and implementation.

mod archive;
mod blame;
mod chat;
mod check;
mod compare;
mod completions;
mod config;
mod context;
mod diff;
mod edit;
mod export;
mod hook;
mod hook_settings;
mod inspect;
mod list;
mod mcp;
mod op;
mod overview;
mod replay;
mod restore;
mod resume;
mod search;
pub(crate) mod serve;
mod setup;
mod show;
mod tag;
mod trace;
mod usage;

pub(crate) use self::hook::run_words as run_hook_words;
pub(crate) use self::usage::UsageArgs;
use crate::context::{Context, SourceUse};
use crate::error::{CommandError, CommandOutcome};

/// The length of the id of a session.
const UUID_LENGTH: usize = 36;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Overview(overview::OverviewArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Serve(serve::ServeArgs),
    Search(search::SearchArgs),
    Chat(Box<chat::ChatArgs>),
    Inspect(inspect::InspectArgs),
    Check(check::CheckArgs),
    Replay(replay::ReplayArgs),
    Resume(resume::ResumeArgs),
    Tag(tag::TagArgs),
    Pin(tag::PinArgs),
    Restore(restore::RestoreArgs),
    Blame(blame::BlameArgs),
    Diff(diff::DiffArgs),
    Compare(compare::CompareArgs),
    Context(context::ContextArgs),
    #[command(subcommand)]
    Export(export::ExportCommand),
    Usage(usage::UsageArgs),
    #[command(subcommand)]
    Edit(edit::EditCommand),
    #[command(subcommand)]
    Op(op::OpCommand),
    Setup(setup::SetupArgs),
    #[command(hide = true)]
    Hook(hook::HookArgs),
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    Mcp(mcp::McpArgs),
    Config(config::ConfigArgs),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
}

impl Command {
    /// Returns how the command uses an archive.
    pub(crate) fn source_use(&self) -> SourceUse<'_> {
        // Names other than ids can be titles, so that all sessions are needed.
        let one =
            |name: &str| name.len() == UUID_LENGTH && name.bytes().filter(|byte| *byte == b'-').count() == 4;
        match self {
            Self::Show(args) if one(args.session()) => SourceUse::Sessions(Some(args.session())),
            Self::Search(args) => SourceUse::Search(args.index_texts()),
            Self::Usage(args) => SourceUse::Calls(args),
            Self::List(_)
            | Self::Show(_)
            | Self::Serve(_)
            | Self::Inspect(_)
            | Self::Check(_)
            | Self::Replay(_)
            | Self::Export(_)
            | Self::Overview(_)
            | Self::Blame(_)
            | Self::Compare(_)
            | Self::Diff(_)
            | Self::Context(_)
            | Self::Trace(trace::TraceCommand::Push(_)) => SourceUse::Sessions(None),
            Self::Archive(command) if command.reads_sessions() => SourceUse::Sessions(None),
            // `config` shows the settings, which no archive changes.
            Self::Archive(_) | Self::Config(_) | Self::Setup(_) => SourceUse::Archive,
            Self::Mcp(args) => args.source_use(),
            _ => SourceUse::None,
        }
    }

    /// Returns whether the command answers requests until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        match self {
            Self::Serve(_) => true,
            Self::Mcp(args) => args.is_server(),
            _ => false,
        }
    }

    pub(crate) fn run(self, cx: &mut Context) -> Result<CommandOutcome, CommandError> {
        match self {
            Self::Overview(args) => overview::run(cx, &args),
            Self::List(args) => list::run(cx, &args),
            Self::Show(args) => show::run(cx, &args),
            Self::Serve(args) => serve::run(cx, &args),
            Self::Search(args) => search::run(cx, &args),
            Self::Chat(args) => chat::run(cx, &args),
            Self::Inspect(args) => inspect::run(cx, &args),
            Self::Check(args) => check::run(cx, &args),
            Self::Replay(args) => replay::run(cx, &args),
            Self::Resume(args) => resume::run(cx, &args),
            Self::Tag(args) => tag::run(cx, &args),
            Self::Pin(args) => tag::pin(cx, &args),
            Self::Restore(args) => restore::run(cx, &args),
            Self::Blame(args) => blame::run(cx, &args),
            Self::Diff(args) => diff::run(cx, &args),
            Self::Compare(args) => compare::run(cx, &args),
            Self::Context(args) => context::run(cx, &args),
            Self::Export(command) => export::run(cx, &command),
            Self::Usage(args) => usage::run(cx, &args),
            Self::Edit(command) => edit::run(cx, &command),
            Self::Op(command) => op::run(cx, &command),
            Self::Setup(args) => setup::run(cx, &args),
            Self::Hook(args) => hook::run(args),
            Self::Trace(command) => trace::run(cx, &command),
            Self::Archive(command) => archive::run(cx, &command),
            Self::Mcp(args) => mcp::run(cx, &args),
            Self::Config(args) => config::run(cx, &args),
            Self::Completions(args) => completions::run(cx, &args),
            Self::Man(args) => completions::man(cx, &args),
        }
    }
}
