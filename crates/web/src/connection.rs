//! Connections: their number, and the timeouts of clients.
//!
//! Any process that can reach the port can connect before it is authenticated. A client is disconnected if it
//! sends half a request, keeps a connection idle, or does not read its response. If there are too many
//! connections, the oldest one without an authorised request is closed for the newest.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep};

use crate::server::shutdown_started;

/// Timeouts and the maximum number of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Maximum time for the headers of a request, counted from when the connection is ready for it. An idle
    /// connection is closed after this time too.
    pub header_timeout: Duration,
    /// Maximum time for which a client may leave a response unread.
    pub write_timeout: Duration,
    /// Maximum number of open connections. A further one replaces the oldest one without an authorised
    /// request, and is queued if all have sent one.
    pub max_connections: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(15),
            write_timeout: Duration::from_secs(60),
            max_connections: 256,
        }
    }
}

/// Accepts and serves connections until shutdown starts, then waits for those that are open.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    ending: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.max_connections));
    let untrusted = UntrustedConnections::default();
    loop {
        let accepted = async {
            let accepted = listener.accept().await;
            if slots.available_permits() == 0 {
                untrusted.close_oldest();
            }
            (Arc::clone(&slots).acquire_owned().await, accepted)
        };
        let (slot, accepted) = tokio::select! {
            () = shutdown_started(ending.clone()) => break,
            accepted = accepted => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // The process is out of file descriptors, or the client disconnected. Both are temporary.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (router, ending, untrusted) = (router.clone(), ending.clone(), Arc::new(untrusted.add()));
        tokio::spawn(async move {
            serve_connection(stream, router, limits, untrusted, ending).await;
            drop(slot);
        });
    }
    // All connections have ended once all slots are free.
    let all = u32::try_from(limits.max_connections).unwrap_or(u32::MAX);
    let _ = slots.acquire_many(all).await;
}

/// The connections that have not sent an authorised request yet.
#[derive(Clone, Default)]
struct UntrustedConnections(Arc<Mutex<BTreeMap<u64, Arc<Notify>>>>);

impl UntrustedConnections {
    /// Adds a connection.
    fn add(&self) -> UntrustedConnection {
        let mut connections = self.0.lock();
        let number = connections.last_key_value().map_or(0, |(last, _)| last + 1);
        let close = Arc::new(Notify::new());
        connections.insert(number, Arc::clone(&close));
        UntrustedConnection { connections: self.clone(), number, close }
    }

    /// Closes the connection that was added first.
    fn close_oldest(&self) {
        if let Some((_, close)) = self.0.lock().pop_first() {
            close.notify_one();
        }
    }
}

/// An entry of [`UntrustedConnections`], which is removed when it is dropped.
pub(crate) struct UntrustedConnection {
    connections: UntrustedConnections,
    number: u64,
    close: Arc<Notify>,
}

impl UntrustedConnection {
    /// Trusts the connection of an authorised request: it is not closed for another one.
    pub(crate) fn trust(request: &Request) {
        if let Some(connection) = request.extensions().get::<Arc<Self>>() {
            connection.remove();
        }
    }

    fn remove(&self) {
        let mut connections = self.connections.0.lock();
        // After the entry was removed, another one can have its number.
        if connections.get(&self.number).is_some_and(|close| Arc::ptr_eq(close, &self.close)) {
            connections.remove(&self.number);
        }
    }
}

impl Drop for UntrustedConnection {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Serves the requests of one connection. Errors are caused by the client and ignored.
async fn serve_connection(
    stream: TcpStream,
    router: Router,
    limits: ConnectionLimits,
    untrusted: Arc<UntrustedConnection>,
    ending: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(WriteTimeoutStream::new(stream, limits.write_timeout));
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .serve_connection(
            stream,
            service_fn(|mut request| {
                request.extensions_mut().insert(Arc::clone(&untrusted));
                service.call(request)
            }),
        );
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = untrusted.close.notified() => {}
        () = shutdown_started(ending) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// A stream whose writes time out if the client accepts no data.
struct WriteTimeoutStream {
    stream: TcpStream,
    timeout: Duration,
    /// The deadline of the pending write.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    fn new(stream: TcpStream, timeout: Duration) -> Self {
        Self { stream, timeout, deadline: None }
    }

    /// Clears the deadline if the write is done, and returns a timeout error once it has passed.
    fn check_deadline<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.deadline = None;
            return result;
        }
        let until = Instant::now() + self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let written = Pin::new(&mut own.stream).poll_write(cx, bytes);
        own.check_deadline(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let written = Pin::new(&mut own.stream).poll_write_vectored(cx, bytes);
        own.check_deadline(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let flushed = Pin::new(&mut own.stream).poll_flush(cx);
        own.check_deadline(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
