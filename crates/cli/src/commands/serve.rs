use std::io::{ErrorKind, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;

use threadline_app::Mask;
use threadline_web::{AccessKeys, ConnectionLimits, Server, ServerOptions};

use crate::context::Context;
use crate::env;
use crate::error::{CommandError, CommandOutcome};

/// Show sessions in the browser, live
///
/// Prints an address with a token that gives read access to your sessions while the server runs. The
/// browser is opened with a one-time code instead. The server changes nothing but your pins and tags, and
/// accepts connections from this machine only, unless --host and --allow-remote are given. Ctrl-C stops it.
///
/// "Mask secrets" on a page masks secrets on all pages; with --redact, they are always masked.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Accept connections from other machines, without encryption
    #[arg(long)]
    allow_remote: bool,

    /// Do not open the browser
    #[arg(long)]
    no_open: bool,
}

pub(crate) fn run(cx: &Context, args: &ServeArgs) -> Result<CommandOutcome, CommandError> {
    if !args.host.is_loopback() && !args.allow_remote {
        return Err(CommandError::new(format!("{} is reachable from other machines", args.host)).hint(
            "sessions may contain secrets; add --allow-remote to accept connections from other machines",
        ));
    }
    let options = ServerOptions {
        host: args.host,
        port: args.port,
        keys: AccessKeys { token: random_key()?, code: random_key()?, cookie: random_key()? },
        limits: ConnectionLimits::default(),
        zone: crate::env::time_zone(),
        mask: Mask::new(cx.secret_rules()?),
        sharing_mask: Mask::for_sharing(cx.secret_rules()?),
        theme: cx.theme(),
    };
    // Reports an error in the price list before the server starts.
    cx.app.prices()?;
    let server = Server::bind(Arc::clone(&cx.app), options).map_err(|error| {
        let place = SocketAddr::new(args.host, args.port);
        let refused = CommandError::new(format!("cannot listen on {place}: {error}"));
        match error.kind() {
            ErrorKind::AddrInUse => refused.hint("the port is in use; omit --port to use any free port"),
            _ => refused,
        }
    })?;
    let mut answer = cx.ui.unmasked_output();
    writeln!(answer, "{}", server.token_url())?;
    answer.flush()?;
    if !args.no_open && std::io::stdout().is_terminal() {
        open_browser(&server.browser_url());
    }
    server.run()?;
    answer.finish()?;
    Ok(CommandOutcome::Done)
}

/// Re-executes this process with `MALLOC_MMAP_THRESHOLD_` set, unless it is set already.
///
/// When a large block is freed, glibc raises this threshold and keeps later blocks of that size in its heap.
/// A server that opens and closes large sessions then grows to several times the size of its data. glibc
/// reads the variable only at startup. If this fails, the server uses more memory but works the same.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn set_malloc_threshold() {
    use std::os::unix::process::CommandExt;
    if env::get(env::MALLOC_MMAP_THRESHOLD).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    // Returns only if it fails.
    let _ = command.args(std::env::args_os().skip(1)).env(env::MALLOC_MMAP_THRESHOLD, "131072").exec();
}

/// Other allocators need no setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn set_malloc_threshold() {}

/// Returns 128 random bits in hexadecimal.
pub(crate) fn random_key() -> Result<String, CommandError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| CommandError::new(format!("cannot generate random numbers: {error}")))?;
    Ok(const_hex::encode(bytes))
}

/// Opens a URL in the browser. Errors are ignored, since the URL was printed.
fn open_browser(address: &str) {
    let opener = if cfg!(target_os = "macos") {
        &["open"][..]
    } else if cfg!(windows) {
        &["rundll32", "url.dll,FileProtocolHandler"][..]
    } else {
        &["xdg-open"][..]
    };
    let mut command = Command::new(opener[0]);
    command.args(&opener[1..]).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The allocator setting is not for the browser.
    let _ = command.env_remove(env::MALLOC_MMAP_THRESHOLD).spawn();
}
