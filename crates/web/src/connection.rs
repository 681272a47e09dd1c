//! Connections: how many there may be, and how long a client may take.
//!
//! Anybody who can reach the port can connect, before any key is asked for. A client that sends half a request, that
//! sends nothing more on a connection that it keeps, or that does not read its answer is cut off.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep};

use crate::server::ended;

/// How long clients may take, and how many there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long the headers of a request may take, counted from when the connection is ready for it. A connection on
    /// which no request follows is closed after this time, too.
    pub headers: Duration,
    /// How long a client may leave an answer unread.
    pub stalled: Duration,
    /// How many connections there may be at a time; further ones wait.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { headers: Duration::from_secs(15), stalled: Duration::from_secs(60), connections: 256 }
    }
}

/// Answers until the server is about to end, and then finishes what it is answering.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    ending: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    loop {
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            () = ended(ending.clone()) => break,
            accepted = accepted => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // No more files can be opened, or the client went away: others may be luckier in a moment.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (router, ending) = (router.clone(), ending.clone());
        tokio::spawn(async move {
            answer(stream, router, limits, ending).await;
            drop(slot);
        });
    }
    // All connections have ended when all slots are free.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = slots.acquire_many(all).await;
}

/// Answers the requests of one connection. Errors are the client's.
async fn answer(stream: TcpStream, router: Router, limits: Limits, ending: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(Impatient::new(stream, limits.stalled));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .serve_connection(stream, TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = ended(ending) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// A stream whose writes fail when nothing was taken for a while.
struct Impatient {
    stream: TcpStream,
    patience: Duration,
    /// When to give up, while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, deadline: None }
    }

    /// Notes whether a write went through, and gives up on one that has waited too long.
    fn timed<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.deadline = None;
            return result;
        }
        let until = Instant::now() + self.patience;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Impatient {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let written = Pin::new(&mut own.stream).poll_write(cx, bytes);
        own.timed(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let written = Pin::new(&mut own.stream).poll_write_vectored(cx, bytes);
        own.timed(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let flushed = Pin::new(&mut own.stream).poll_flush(cx);
        own.timed(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
