//! A server on this machine for programs that have a token.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use axum::Router;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::connection::{ConnectionLimits, serve};
use crate::guard::{AccessGuard, AccessKeys, check_token};

/// A server on a loopback address whose requests must have a token, as `Authorization: Bearer TOKEN`. Host
/// and origin are checked as for pages.
pub struct TokenServer {
    runtime: Runtime,
    listener: TcpListener,
    guard: AccessGuard,
}

impl TokenServer {
    /// Binds a port of 127.0.0.1; 0 picks any free port.
    ///
    /// # Errors
    ///
    /// If the port is in use.
    pub fn bind(port: u16, token: String) -> io::Result<Self> {
        let host = Ipv4Addr::LOCALHOST;
        let listener = TcpListener::bind(SocketAddr::new(host.into(), port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        // Neither a code nor a cookie grants access here.
        let keys = AccessKeys { token, code: String::new(), cookie: String::new() };
        let guard = AccessGuard::new(host.into(), port, keys);
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("serve").enable_all().build()?;
        Ok(Self { runtime, listener, guard })
    }

    /// Returns the address without a path, such as `http://127.0.0.1:4100`.
    pub fn origin(&self) -> String {
        self.guard.origin()
    }

    /// Answers requests with a router until interrupted by Ctrl-C. `make` runs inside the runtime.
    ///
    /// # Errors
    ///
    /// If the listening socket cannot be registered.
    pub fn run(self, make: impl FnOnce() -> Router) -> io::Result<()> {
        let Self { runtime, listener, guard } = self;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = make().layer(axum::middleware::from_fn_with_state(guard, check_token));
            let (_ending, ended) = watch::channel(false);
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => {}
                () = serve(listener, router, ConnectionLimits::default(), ended) => {}
            }
            Ok(())
        });
        runtime.shutdown_background();
        served
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use axum::routing::post;

    use super::*;

    #[test]
    fn only_requests_of_this_machine_with_the_token_are_served() {
        let server = TokenServer::bind(0, "secret".to_owned()).unwrap();
        let address = server.origin().strip_prefix("http://").unwrap().to_owned();
        // Ends with the test process: the server has no other end than Ctrl-C.
        std::thread::spawn(|| server.run(|| Router::new().route("/x", post(|| async { "served" }))));
        let ask = |headers: &str| {
            let mut stream = TcpStream::connect(&address).unwrap();
            let request =
                format!("POST /x HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split(' ').nth(1).unwrap_or_default().to_owned()
        };
        let host = format!("Host: {address}\r\n");
        for (headers, code) in [
            (format!("{host}Authorization: Bearer secret\r\n"), "200"),
            (format!("{host}authorization: bearer secret\r\n"), "200"),
            (host.clone(), "401"),
            (format!("{host}Authorization: Bearer other\r\n"), "401"),
            (format!("{host}Authorization: Basic secret\r\n"), "401"),
            (format!("{host}Cookie: threadline-{}=\r\n", address.rsplit(':').next().unwrap()), "401"),
            ("Host: evil.example\r\nAuthorization: Bearer secret\r\n".to_owned(), "421"),
            (format!("{host}Authorization: Bearer secret\r\nOrigin: https://evil.example\r\n"), "403"),
            (format!("{host}Authorization: Bearer secret\r\nOrigin: null\r\n"), "403"),
        ] {
            assert_eq!(ask(&headers), code, "{headers}");
        }
        assert!(
            TokenServer::bind(address.rsplit(':').next().unwrap().parse().unwrap(), String::new()).is_err()
        );
    }
}
