//! Slow clients, silent clients, and many of them.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use threadline_testkit::TestHome;
use threadline_web::Limits;

use crate::support::Served;

fn limits() -> Limits {
    Limits { headers: Duration::from_millis(300), stalled: Duration::from_millis(300), connections: 64 }
}

#[test]
fn half_a_request_is_cut_off() {
    let home = TestHome::new();
    let served = Served::within(home.root(), 0, limits());
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
fn headers_that_trickle_in_are_cut_off() {
    let home = TestHome::new();
    let served = Served::within(home.root(), 0, limits());
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
fn a_connection_that_is_kept_and_not_used_is_closed() {
    let home = TestHome::new();
    let served = Served::within(home.root(), 0, limits());
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
    let served = Served::within(home.root(), 0, Limits { connections: 2, ..limits() });
    let begun = Instant::now();
    let silent: Vec<_> = (0..2).map(|_| served.connect()).collect();
    // The third connection is queued, and is answered once the first two were closed.
    assert_eq!(served.get("/").status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn an_answer_that_nobody_reads_is_given_up() {
    let home = TestHome::new();
    let served = Served::within(home.root(), 0, Limits { connections: 1, ..limits() });
    let size = served.ask("GET", "/assets/x/page.js", &[]).body.len();
    assert!(size * 400 > 10_000_000, "{size} bytes fit into the buffers of the system");
    let mut deaf = served.connect();
    let request =
        format!("GET /assets/x/page.js HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", served.port).repeat(400);
    deaf.write_all(request.as_bytes()).unwrap();
    // Only one connection is allowed, so this is answered after the first was closed.
    assert_eq!(served.get("/").status, 200);
    drop(deaf);
}
