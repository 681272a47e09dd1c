//! The server: binds an address and serves requests until it is stopped.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jiff::tz::TimeZone;
use threadline_app::{App, Mask};
use threadline_html::PageTheme;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::connection::{ConnectionLimits, serve};
use crate::guard::{self, AccessGuard, AccessKeys};
use crate::pages;
use crate::state::{ServerState, ServerStates};

/// Options of the server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The IP address to listen on.
    pub host: IpAddr,
    /// The port; 0 picks any free port.
    pub port: u16,
    /// The secrets that grant access.
    pub keys: AccessKeys,
    /// Timeouts and the maximum number of connections.
    pub limits: ConnectionLimits,
    /// The time zone in which times are shown.
    pub zone: TimeZone,
    /// Masks secrets, for the switch on the pages. Not used if the application masks secrets itself.
    pub mask: Mask,
    /// Also masks what should not be shared, for exported pages.
    pub sharing_mask: Mask,
    /// The colours of the pages.
    pub theme: PageTheme,
}

/// A server that is bound to an address. It serves requests once it is [run](Server::run).
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    router: Router,
    guard: AccessGuard,
    limits: ConnectionLimits,
    stop: Arc<Notify>,
    state: ServerState,
}

/// Stops a server from another thread.
#[derive(Clone)]
pub struct StopHandle(Arc<Notify>);

impl StopHandle {
    /// Starts a graceful shutdown.
    pub fn shut_down(&self) {
        self.0.notify_one();
    }
}

impl Server {
    /// Binds the address. Requests are not served before [`Server::run`].
    ///
    /// # Errors
    ///
    /// If the address is in use or does not belong to this machine, or if the price list cannot be read.
    pub fn bind(app: Arc<App>, options: ServerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(options.host, options.port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let guard = AccessGuard::new(options.host, port, options.keys);
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            // Further pages are queued.
            .max_blocking_threads(8)
            .thread_name("serve")
            .enable_all()
            .build()?;
        let states =
            ServerStates::new(app, options.zone, (options.mask, options.sharing_mask), options.theme)
                .map_err(io::Error::other)?;
        let state = states.plain().clone();
        let router = pages::router(states)
            .layer(axum::middleware::from_fn_with_state(guard.clone(), guard::check_access));
        let limits = options.limits;
        Ok(Self { runtime, listener, router, guard, limits, stop: Arc::new(Notify::new()), state })
    }

    /// Returns the URL to pass to a browser. It works once, soon after the start.
    pub fn browser_url(&self) -> String {
        self.guard.browser_url()
    }

    /// Returns the URL to print, with the token.
    pub fn token_url(&self) -> String {
        self.guard.token_url()
    }

    /// Returns the URL without the token.
    pub fn origin(&self) -> String {
        self.guard.origin()
    }

    /// Returns a handle that stops the server.
    pub fn stop(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.stop))
    }

    /// Serves requests until stopped or interrupted by Ctrl-C.
    ///
    /// # Errors
    ///
    /// If the listening socket cannot be registered.
    pub fn run(self) -> io::Result<()> {
        let Self { runtime, listener, router, stop, state, limits, .. } = self;
        let ending = state.shutdown.subscribe();
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let serving = serve(listener, router, limits, ending);
            let end = async {
                tokio::select! {
                    () = stop.notified() => {}
                    _ = tokio::signal::ctrl_c() => {}
                }
                state.shutdown.send_replace(true);
                // Requests in progress get a grace period, and are then aborted.
                tokio::time::sleep(SHUTDOWN_GRACE).await;
            };
            tokio::select! {
                // Registers the Ctrl-C handler before the first request is served.
                biased;
                () = end => Ok(()),
                () = serving => Ok(()),
            }
        });
        runtime.shutdown_background();
        served
    }
}

/// Grace period for requests in progress at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(1500);

/// Waits until shutdown starts.
pub(crate) async fn shutdown_started(mut ending: tokio::sync::watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}
