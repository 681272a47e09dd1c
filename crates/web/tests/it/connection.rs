//! Slow clients, silent clients, and many of them.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use threadline_testkit::TestHome;
use threadline_web::ConnectionLimits;

use crate::support::TestServer;

fn limits() -> ConnectionLimits {
    ConnectionLimits {
        header_timeout: Duration::from_millis(300),
        write_timeout: Duration::from_millis(300),
        max_connections: 64,
    }
}

#[test]
fn an_incomplete_request_times_out() {
    let home = TestHome::new();
    let served = TestServer::with_limits(home.root(), 0, limits());
    for half in ["", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "] {
        let mut stream = served.connect();
        stream.write_all(half.as_bytes()).unwrap();
        let mut rest = Vec::new();
        // The client would wait for a minute; the server closes the connection earlier.
        let ended = stream.read_to_end(&mut rest);
        assert!(ended.is_ok(), "{half:?}: {ended:?}");
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{half:?}");
    }
}

#[test]
fn slow_headers_time_out() {
    let home = TestHome::new();
    let served = TestServer::with_limits(home.root(), 0, limits());
    let mut stream = served.connect();
    stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let begun = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    // A byte from time to time does not extend the deadline.
    let mut byte = [0];
    loop {
        assert!(begun.elapsed() < Duration::from_secs(30), "still open");
        let closed = match stream.read(&mut byte) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        if closed || stream.write_all(b"a").is_err() {
            break;
        }
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let home = TestHome::new();
    let served = TestServer::with_limits(home.root(), 0, limits());
    let mut stream = served.connect();
    let request = format!("GET /assets/x/none HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", served.port);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 404"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn a_further_client_replaces_the_oldest_connection_without_an_authorised_request() {
    const NEVER: Duration = Duration::from_secs(3600);
    let home = TestHome::new();
    let limits = ConnectionLimits { max_connections: 3, header_timeout: NEVER, write_timeout: NEVER };
    let served = TestServer::with_limits(home.root(), 0, limits);
    let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", served.port);
    let authorised = format!("{head}Cookie: {}\r\n\r\n", served.cookie());
    let mut trusted = served.connect();
    let mut start = [0; 12];
    let mut is_answered = || {
        trusted.write_all(authorised.as_bytes()).unwrap();
        trusted.read_exact(&mut start).is_ok()
    };
    assert!(is_answered());
    // Half a request, a request without a key, and a large answer that is not read.
    let asset = format!("GET /assets/x/page.js HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", served.port);
    for request in [&head, &format!("{head}\r\n"), &asset.repeat(400)] {
        let silent: Vec<_> = (0..10).map(|_| served.connect()).collect();
        for mut stream in &silent {
            // Fails if the connection was closed for a newer one.
            let _ = stream.write_all(request.as_bytes());
        }
        assert_eq!(served.get("/").status, 200, "{}", &request[..request.len().min(200)]);
    }
    assert!(is_answered(), "the connection was closed");
}

#[test]
fn an_unread_response_times_out() {
    let home = TestHome::new();
    let served = TestServer::with_limits(home.root(), 0, ConnectionLimits { max_connections: 1, ..limits() });
    let size = served.request("GET", "/assets/x/page.js", &[]).body.len();
    assert!(size * 400 > 10_000_000, "{size} bytes fit into the buffers of the system");
    let mut deaf = served.connect();
    let request =
        format!("GET /assets/x/page.js HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", served.port).repeat(400);
    deaf.write_all(request.as_bytes()).unwrap();
    // Only one connection is allowed, so this is answered after the first was closed.
    assert_eq!(served.get("/").status, 200);
    drop(deaf);
}
