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
fn further_clients_wait_for_a_free_connection() {
    let home = TestHome::new();
    let served = TestServer::with_limits(home.root(), 0, ConnectionLimits { max_connections: 2, ..limits() });
    let begun = Instant::now();
    let silent: Vec<_> = (0..2).map(|_| served.connect()).collect();
    // The third connection is queued, and is answered once the first two were closed.
    assert_eq!(served.get("/").status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    drop(silent);
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
