pub(crate) mod install;

use std::path::Path;
use std::sync::Arc;

use threadline_app::{Mask, ProjectScope};
use threadline_mcp_server::{HTTP_PATH, HistoryOptions, HistoryServer, serve_http, serve_stdio};
use threadline_view::wire::McpAddressObject;
use threadline_web::TokenServer;

use crate::context::{Context, SourceUse};
use crate::error::{CommandError, CommandOutcome};

/// Serve the sessions to MCP clients, such as Claude Code
///
/// Speaks the Model Context Protocol on stdin and stdout, and changes nothing. Clients can search, list and
/// read sessions, see the changes they made, find the sessions that edited a file, count usage and check
/// sessions. Answers are about the repository of the working directory, and secrets in them are masked.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,

    #[command(flatten)]
    scope: ScopeArgs,

    /// Serve over HTTP on 127.0.0.1 instead, and print the address and a token
    ///
    /// Clients send the token as `Authorization: Bearer TOKEN`. Ctrl-C stops the server.
    #[arg(long)]
    http: bool,

    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, requires = "http")]
    port: u16,
}

#[derive(Debug, clap::Subcommand)]
enum McpCommand {
    #[command(hide = true)]
    Install(install::McpInstallArgs),
    #[command(hide = true)]
    Uninstall(install::McpUninstallArgs),
}

/// Which sessions to answer about, and whether secrets are masked.
#[derive(Debug, clap::Args)]
struct ScopeArgs {
    /// Answer about this project: a directory, or a part of its name [default: the repository of the working
    /// directory; all projects with --demo and --from]
    #[arg(long, short, value_name = "PROJECT", conflicts_with = "all")]
    project: Option<String>,

    /// Answer about all projects
    #[arg(long, short)]
    all: bool,

    /// Do not mask secrets
    #[arg(long, conflicts_with = "redact")]
    no_redact: bool,
}

impl McpArgs {
    /// Returns how the command uses an archive.
    pub(crate) fn source_use(&self) -> SourceUse<'_> {
        // `install` refuses an archive itself, with another hint.
        if self.command.is_some() { SourceUse::Archive } else { SourceUse::Sessions(None) }
    }

    /// Returns whether the command serves until the client ends it.
    pub(crate) fn is_server(&self) -> bool {
        self.command.is_none()
    }
}

impl ScopeArgs {
    fn scope(&self, cx: &Context) -> ProjectScope {
        let dir = cx.app.config().current_dir.as_deref().unwrap_or(Path::new("."));
        match &self.project {
            Some(project) => ProjectScope::named(project, dir),
            // Samples and archives are not about the working directory.
            None if self.all || cx.is_demo || cx.source.from.is_some() => ProjectScope::All,
            None => ProjectScope::of_repository(dir),
        }
    }
}

pub(crate) fn run(cx: &Context, args: &McpArgs) -> Result<CommandOutcome, CommandError> {
    match &args.command {
        Some(McpCommand::Install(args)) => return install::run(cx, args),
        Some(McpCommand::Uninstall(args)) => return install::uninstall(cx, args),
        None => {}
    }
    let mask = match args.scope.no_redact {
        true => Mask::default(),
        false => Mask::new(cx.secret_rules()?),
    };
    let app = Arc::new(cx.app.with_mask(mask));
    let options = HistoryOptions {
        scope: args.scope.scope(cx),
        zone: cx.zone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        client: client_process().filter(|_| !args.http),
    };
    let server = HistoryServer::new(app, options)?;
    if !args.http {
        serve_stdio(server)?;
        return Ok(CommandOutcome::Done);
    }
    let token = super::serve::random_key()?;
    let listener = TokenServer::bind(args.port, token.clone())
        .map_err(|error| CommandError::new(format!("cannot listen on port {}: {error}", args.port)))?;
    let url = format!("{}{HTTP_PATH}", listener.origin());
    let mut answer = cx.ui.unmasked_output();
    match cx.json {
        true => answer.json(&McpAddressObject { url: &url, token: &token })?,
        false => writeln!(answer, "{url}\nAuthorization: Bearer {token}")?,
    }
    answer.flush()?;
    serve_http(listener, server)?;
    answer.finish()?;
    Ok(CommandOutcome::Done)
}

/// Returns the process that started the server on its standard streams.
#[cfg(unix)]
fn client_process() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// Other systems have no parent process to ask for.
#[cfg(not(unix))]
fn client_process() -> Option<u32> {
    None
}
