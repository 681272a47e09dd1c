//! The server: from an address to answers, until somebody stops it.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jiff::tz::TimeZone;
use threadline_store::Store;
use threadline_usage::Book;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::connection::{Limits, serve};
use crate::guard::{self, Guard, Keys};
use crate::pages;
use crate::state::State;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen at.
    pub host: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// What lets a person in.
    pub keys: Keys,
    /// How long clients may take, and how many there may be.
    pub limits: Limits,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// What calls cost.
    pub book: Book,
}

/// A server that listens, and answers once it is [run](Server::run).
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    router: Router,
    guard: Guard,
    limits: Limits,
    stop: Arc<Notify>,
    state: State,
}

/// Stops a server from another thread.
#[derive(Clone)]
pub struct Stop(Arc<Notify>);

impl Stop {
    /// Lets the server finish what it is answering, and end.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

impl Server {
    /// Listens at the address. Nothing is answered yet.
    ///
    /// # Errors
    ///
    /// If the address is taken, or is none of this machine's.
    pub fn bind(store: Store, options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(options.host, options.port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let guard = Guard::new(options.host, port, options.keys);
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(BLOCKING)
            .thread_name("serve")
            .enable_all()
            .build()?;
        let state = State::new(store, options.zone, options.book);
        let router = pages::router(state.clone())
            .layer(axum::middleware::from_fn_with_state(guard.clone(), guard::guard));
        let limits = options.limits;
        Ok(Self { runtime, listener, router, guard, limits, stop: Arc::new(Notify::new()), state })
    }

    /// The address to pass to a browser: it works once, soon after the start.
    pub fn opening_address(&self) -> String {
        self.guard.opening_address()
    }

    /// The address to print, with the token.
    pub fn address(&self) -> String {
        self.guard.address()
    }

    /// The address without the token.
    pub fn origin(&self) -> String {
        self.guard.origin()
    }

    /// What stops it.
    pub fn stop(&self) -> Stop {
        Stop(Arc::clone(&self.stop))
    }

    /// Answers until it is stopped or interrupted.
    ///
    /// # Errors
    ///
    /// Those of the listening socket.
    pub fn run(self) -> io::Result<()> {
        let Self { runtime, listener, router, stop, state, limits, .. } = self;
        let ending = state.ending.subscribe();
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let serving = serve(listener, router, limits, ending);
            let end = async {
                tokio::select! {
                    () = stop.notified() => {}
                    _ = tokio::signal::ctrl_c() => {}
                }
                state.ending.send_replace(true);
                // What is being answered is given a moment, and then cut.
                tokio::time::sleep(GRACE).await;
            };
            tokio::select! {
                // Before anything is answered, somebody listens for Ctrl-C.
                biased;
                () = end => Ok(()),
                () = serving => Ok(()),
            }
        });
        runtime.shutdown_background();
        served
    }
}

/// So many pages are made at a time; the others wait.
const BLOCKING: usize = 8;

/// How long answers may take that were begun before the server was stopped.
const GRACE: Duration = Duration::from_millis(1500);

/// Waits until the server is about to end.
pub(crate) async fn ended(mut ending: tokio::sync::watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}
