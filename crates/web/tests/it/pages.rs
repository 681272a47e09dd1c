//! Error pages, and clients that disconnect.

use threadline_testkit::TestHome;

use crate::support::TestServer;

#[test]
fn not_found_is_rendered_in_the_requested_format() {
    let home = TestHome::new();
    let served = TestServer::new(&home);
    let page = served.get("/s/none");
    assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
    let json = served.get("/s/none.json");
    assert_eq!((json.status, json.header("content-type")), (404, "application/x-ndjson"));
    assert!(json.body.starts_with("{\"") && json.body.contains("\"type\":\"error\""), "{}", json.body);
    assert_eq!(served.get("/nowhere").status, 404);
    assert_eq!(served.get("/").status, 200);
}

#[test]
fn silent_and_disconnected_clients_block_nothing() {
    let home = TestHome::new();
    home.session("one", "u1 user \"hello\"");
    let served = TestServer::new(&home);
    let silent: Vec<_> = (0..50).map(|_| served.connect()).collect();
    for _ in 0..20 {
        use std::io::Write;
        let mut gone = served.connect();
        gone.write_all(
            format!(
                "GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nCookie: {}\r\n\r\n",
                served.port,
                served.cookie()
            )
            .as_bytes(),
        )
        .unwrap();
    }
    assert_eq!(served.get("/").status, 200);
    drop(silent);
}
