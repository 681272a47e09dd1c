use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use parking_lot::Mutex;

use super::*;
use crate::cancel::CancelToken;
use crate::context::{ModelAccess, WebSearchReply, WebSearchRequest};
use crate::testing::Fixture;

/// Answers with the page and the question.
struct Echo;

impl ModelAccess for Echo {
    fn summarize(&self, page: &str, prompt: &str, _: &CancelToken) -> Result<String, String> {
        Ok(format!("{prompt} {page}"))
    }

    fn web_search(&self, _: &WebSearchRequest<'_>, _: &CancelToken) -> Result<WebSearchReply, String> {
        Err("unexpected".to_owned())
    }
}

/// Serves one response per path until the process ends, and returns the address.
fn serve(respond: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let _ = stream.write_all(&respond(&path));
        }
    });
    format!("http://{address}")
}

fn response(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.limits.web_allows_private = true;
    fixture.model = Box::new(Echo);
    fixture
}

fn fetch_text(fixture: &Fixture, url: &str) -> String {
    fixture.text("WebFetch", &format!(r#"{{"url": "{url}", "prompt": "Q:"}}"#))
}

#[test]
fn a_page_is_converted_and_summarised() {
    let base =
        serve(|_| response("200 OK\r\ncontent-type: text/html; charset=iso-8859-1", b"<h1>Caf\xe9</h1>"));
    let fixture = fixture();
    let output = fixture.run("WebFetch", &format!(r#"{{"url": "{base}/x", "prompt": "Q:"}}"#));
    assert_eq!(output.text(), "Q: # Café");
    let record = output.record.unwrap().get().to_owned();
    let start = r#"{"bytes":13,"code":200,"codeText":"OK","result":"Q: # Café","durationMs":"#;
    let end = format!(r#","url":"{base}/x"}}"#);
    assert!(record.starts_with(start) && record.ends_with(&end), "{record}");
}

#[test]
fn redirects_are_followed_on_the_same_host_only() {
    let base = serve(|path| match path {
        "/same" => response("302 Found\r\nlocation: page", b""),
        "/other" => response("301 Moved Permanently\r\nlocation: https://example.com/new", b""),
        "/loop" => response("302 Found\r\nlocation: /loop", b""),
        _ => response("200 OK\r\ncontent-type: text/plain", b"plain"),
    });
    let fixture = fixture();
    assert_eq!(fetch_text(&fixture, &format!("{base}/same")), "Q: plain");
    assert_eq!(
        fetch_text(&fixture, &format!("{base}/other")),
        format!(
            "REDIRECT DETECTED: The URL redirects to a different host.\n\nOriginal URL: {base}/other\nRedirect URL: \
             https://example.com/new\nStatus: 301 Moved Permanently\n\nTo complete your request, I need to fetch content \
             from the redirected URL. Please use WebFetch again with these parameters:\n- url: \
             \"https://example.com/new\"\n- prompt: \"Q:\""
        )
    );
    assert_eq!(fetch_text(&fixture, &format!("{base}/loop")), "ERR Too many redirects (exceeded 10)");
}

#[test]
fn error_statuses_are_reported_without_a_body() {
    let base = serve(|_| response("404 Not Found", b"nope"));
    assert_eq!(
        fetch_text(&fixture(), &base),
        "The server returned HTTP 404 Not Found.\n\nThe response body was not retrieved. If this URL requires \
         authentication, use an authenticated tool (e.g. `gh` for GitHub, or an MCP-provided fetch tool) instead of \
         WebFetch."
    );
}

#[test]
fn a_page_is_fetched_once_for_several_questions() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let base = serve(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        response("200 OK\r\ncontent-type: text/plain", format!("visit {number}").as_bytes())
    });
    let fixture = fixture();
    assert_eq!(fetch_text(&fixture, &format!("{base}/x")), "Q: visit 0");
    assert_eq!(fetch_text(&fixture, &format!("{base}/x")), "Q: visit 0");
    assert_eq!(fetch_text(&fixture, &format!("{base}/y")), "Q: visit 1");
}

#[test]
fn large_pages_are_refused() {
    let base = serve(|_| response("200 OK", &[b'x'; 3000]));
    let mut fixture = fixture();
    fixture.limits.web_bytes = 2000;
    assert_eq!(fetch_text(&fixture, &base), "ERR maxContentLength size of 2000 exceeded");
}

#[test]
fn binary_content_is_saved() {
    let base = serve(|_| response("200 OK\r\ncontent-type: application/pdf", b"%PDF-1.4 xx"));
    let fixture = fixture();
    let text = fetch_text(&fixture, &base);
    let start = "Q: %PDF-1.4 xx\n\n[Binary content (application/pdf, 11 bytes) also saved to $ROOT/tool-results/webfetch-";
    assert!(text.starts_with(start) && text.ends_with(".pdf]"), "{text}");
    let saved = std::fs::read_dir(fixture.outside("tool-results")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read(saved).unwrap(), b"%PDF-1.4 xx");
}

#[test]
fn private_addresses_are_refused_unless_allowed() {
    let mut fixture = fixture();
    fixture.limits.web_allows_private = false;
    for host in ["127.0.0.1:9", "192.168.1.1", "[::1]", "169.254.169.254"] {
        let text = fetch_text(&fixture, &format!("https://{host}/"));
        assert!(text.starts_with("ERR Refusing to fetch "), "{host}: {text}");
    }
}

/// Every way to write this machine, or a machine of this network.
#[test]
fn private_addresses_are_refused_however_they_are_written() {
    let fixture = Fixture::new();
    for host in [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "127.1",
        "127.0.1",
        "0",
        "0.0.0.0",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "2852039166",
        "192.168.0.1",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fe80::1]",
        "[fd00::1]",
        "user@127.0.0.1",
    ] {
        let url = format!("http://{host}:9/");
        let output = fixture.run("WebFetch", &format!(r#"{{"url": "{url}", "prompt": "x"}}"#));
        assert!(output.is_error, "{host}: {}", output.text());
        let text = output.text();
        let is_refused =
            text.contains("private network") || text.contains("ENOTFOUND") || text.contains("nvalid");
        assert!(is_refused, "{host}: {text}");
    }
}

#[test]
fn invalid_addresses_are_refused() {
    let fixture = fixture();
    let long = format!("https://example.com/{}", "a".repeat(2100));
    for url in ["https://user:pw@example.com/x", "https://nodots/x", "ftp://example.com/x", &long] {
        assert_eq!(fetch_text(&fixture, url), "ERR Invalid URL", "{url}");
    }
}

#[test]
fn plain_http_becomes_https() {
    let parsed = |url: &str| parse_url(url, false).map(|uri| uri.to_string());
    assert_eq!(parsed("http://example.com:8080/a?b=c").unwrap(), "https://example.com:8080/a?b=c");
    assert_eq!(parsed("https://example.com").unwrap(), "https://example.com/");
}

#[test]
fn a_refused_connection_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let text = fetch_text(&fixture(), &format!("http://127.0.0.1:{port}/"));
    assert_eq!(text, format!("ERR connect ECONNREFUSED 127.0.0.1:{port}"));
}

#[test]
fn cancelling_closes_the_connection() {
    let (started, requests) = std::sync::mpsc::channel();
    let started = Mutex::new(started);
    // A server that never answers.
    let base = serve(move |_| {
        started.lock().send(()).unwrap();
        std::thread::sleep(Duration::from_secs(60));
        Vec::new()
    });
    let fixture = fixture();
    let cancel = fixture.cancel.clone();
    std::thread::spawn(move || {
        requests.recv().unwrap();
        cancel.cancel();
    });
    let begun = Instant::now();
    assert_eq!(fetch_text(&fixture, &base), "ERR Interrupted by user");
    assert!(begun.elapsed() < Duration::from_secs(30));
}
