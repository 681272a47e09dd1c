//! Access control: only requests that were authorised by the token or the code and come from our own pages
//! are served.
//!
//! Sessions contain secrets, and any web page can send requests to the user's machine. Therefore the `Host`
//! of a request must be ours (against DNS rebinding), the page that sent it must be ours, and it must carry
//! the cookie that the token or the code was exchanged for.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;

use crate::connection::UntrustedConnection;
use crate::request::ResponseFormat;
use crate::response::PageError;

/// The content security policy: pages load resources from this server only, and run no inline scripts.
const PAGE_POLICY: &str = "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The checks applied to every request.
#[derive(Clone, Debug)]
pub(crate) struct AccessGuard {
    host: IpAddr,
    port: u16,
    keys: Arc<AccessKeys>,
    /// The time until which the code is valid; `None` once it was used.
    code_expires: Arc<Mutex<Option<Instant>>>,
}

/// The secrets that grant access. All three must be unguessable and different from each other, and consist of
/// letters and digits.
#[derive(Clone)]
pub struct AccessKeys {
    /// Part of the printed URL. Valid any number of times.
    pub token: String,
    /// Part of the URL passed to the browser, on a command line that other users of the machine can read.
    /// Valid once, soon after the start.
    pub code: String,
    /// The value of the cookie that the token or the code is exchanged for.
    pub cookie: String,
}

impl fmt::Debug for AccessKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// How long the code is valid.
const CODE_LIFETIME: Duration = Duration::from_secs(60);

impl AccessGuard {
    pub(crate) fn new(host: IpAddr, port: u16, keys: AccessKeys) -> Self {
        let code_until = Arc::new(Mutex::new(Instant::now().checked_add(CODE_LIFETIME)));
        Self { host, port, keys: Arc::new(keys), code_expires: code_until }
    }

    /// Returns the URL to print, with the token.
    pub(crate) fn token_url(&self) -> String {
        format!("{}/?token={}", self.origin(), self.keys.token)
    }

    /// Returns the URL to pass to a browser, with the code.
    pub(crate) fn browser_url(&self) -> String {
        format!("{}/?code={}", self.origin(), self.keys.code)
    }

    pub(crate) fn origin(&self) -> String {
        match self.host {
            IpAddr::V4(host) => format!("http://{host}:{}", self.port),
            IpAddr::V6(host) => format!("http://[{host}]:{}", self.port),
        }
    }

    /// Returns whether a host and port, as written by a browser, refer to this server.
    fn is_own_host(&self, authority: &str) -> bool {
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
            _ => (authority, "80"),
        };
        if port != self.port.to_string() {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let loopback =
            name.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        if self.host.is_loopback() {
            return loopback;
        }
        // DNS rebinding needs a host name, so any IP address is accepted.
        loopback || bare.parse::<IpAddr>().is_ok()
    }

    /// Checks a request before its credentials. Returns the reason if it is rejected.
    fn rejection(&self, request: &Request) -> Option<PageError> {
        if let Some(problem) = self.foreign_request(request) {
            return Some(problem);
        }
        match *request.method() {
            Method::GET | Method::HEAD => None,
            Method::POST if is_action(request.uri().path()) => {
                (!is_from_own_page(request.headers())).then(cross_site_error)
            }
            _ => Some(PageError::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")),
        }
    }

    /// Checks the host of a request, and the page that sent it.
    fn foreign_request(&self, request: &Request) -> Option<PageError> {
        let headers = request.headers();
        // Of several hosts, each program on the way may take another one: there must be one only. The target
        // of a request may be a whole URL with a host of its own.
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().filter(|_| hosts.next().is_none()).and_then(|host| host.to_str().ok());
        let target = request.uri().authority().map(|target| target.as_str());
        if !host.is_some_and(|host| self.is_own_host(host))
            || target.is_some_and(|target| !self.is_own_host(target))
        {
            let problem = PageError::new(StatusCode::MISDIRECTED_REQUEST, "Wrong host name");
            return Some(problem.with_hint(format!("Use {} instead.", self.origin())));
        }
        let is_own_origin = |origin: &HeaderValue| {
            let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            host.is_some_and(|host| self.is_own_host(host))
        };
        let foreign = !headers.get_all(header::ORIGIN).iter().all(is_own_origin);
        // A link on another site may lead here, but another site may not load our resources.
        let site = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let embedded = matches!(site("sec-fetch-site"), "cross-site" | "same-site")
            && !matches!(site("sec-fetch-mode"), "navigate" | "");
        if foreign || embedded {
            return Some(cross_site_error());
        }
        None
    }

    /// Returns whether a request has the token in its `Authorization` header.
    fn has_token(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.split_once(' '));
        given.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && constant_time_eq(token.trim(), &self.keys.token)
        })
    }

    fn cookie_name(&self) -> String {
        // Cookies are shared by all ports of a host, and several servers may be running.
        format!("threadline-{}", self.port)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut cookies =
            lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        cookies.any(|(key, value)| key == name && constant_time_eq(value, &self.keys.cookie))
    }

    /// Returns the path to redirect to, without the token or the code, if the request has a valid one.
    fn redirect_target(&self, request: &Request) -> Option<String> {
        let query = request.uri().query()?;
        let is_key = |part: &&str| part.starts_with("token=") || part.starts_with("code=");
        let (given, rest): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_key);
        let (key, value) = given.first()?.split_once('=')?;
        let path = request.uri().path();
        // A path that begins with two slashes would redirect to another host.
        let path = if path.starts_with("//") { "/" } else { path };
        let is_right = match key {
            "token" => constant_time_eq(value, &self.keys.token),
            _ => constant_time_eq(value, &self.keys.code) && self.take_code(),
        };
        is_right.then(|| match rest.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", rest.join("&")),
        })
    }

    /// Consumes the code and returns whether it was still valid.
    fn take_code(&self) -> bool {
        let until = self.code_expires.lock().take();
        until.is_some_and(|until| Instant::now() < until)
    }
}

fn cross_site_error() -> PageError {
    PageError::new(StatusCode::FORBIDDEN, "Cross-site request blocked")
}

/// Returns whether a path is that of a request that changes something.
fn is_action(path: &str) -> bool {
    let path = ResponseFormat::split_suffix(path).1;
    path.starts_with("/s/") && path.ends_with("/labels")
}

/// Returns whether a script of our own pages sent a request, which [`AccessGuard::foreign_request`] accepts.
/// Browsers name the origin of every request that is not a read; forms and links of other sites cannot.
fn is_from_own_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map_or(&b""[..], HeaderValue::as_bytes);
    headers.contains_key(header::ORIGIN) && matches!(site, b"" | b"same-origin")
}

/// Compares in constant time.
fn constant_time_eq(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Rejects, redirects or serves a request, and adds the security headers to every response.
pub(crate) async fn check_access(State(guard): State<AccessGuard>, request: Request, next: Next) -> Response {
    let form = ResponseFormat::split_suffix(request.uri().path()).0;
    let mut response = if let Some(problem) = guard.rejection(&request) {
        problem.to_response(form)
    } else if let Some(to) = guard.redirect_target(&request) {
        let cookie =
            format!("{}={}; HttpOnly; SameSite=Strict; Path=/", guard.cookie_name(), guard.keys.cookie);
        (StatusCode::SEE_OTHER, [(header::LOCATION, to), (header::SET_COOKIE, cookie)]).into_response()
    } else if !is_public(request.uri().path()) && !guard.has_cookie(request.headers()) {
        let problem = PageError::new(StatusCode::UNAUTHORIZED, "Not authorised");
        problem.with_hint("Open the URL printed by `threadline serve`; it ends in ?token=…").to_response(form)
    } else {
        if guard.has_cookie(request.headers()) {
            UntrustedConnection::trust(&request);
        }
        next.run(request).await
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Rejects or serves a request of a program, which has the token in its `Authorization` header. Browsers do
/// not send this header by themselves, and no cookie is accepted.
pub(crate) async fn check_token(State(guard): State<AccessGuard>, request: Request, next: Next) -> Response {
    let mut response = if let Some(problem) = guard.foreign_request(&request) {
        problem.to_response(ResponseFormat::Json)
    } else if !guard.has_token(request.headers()) {
        let problem = PageError::new(StatusCode::UNAUTHORIZED, "Not authorised");
        let mut response = problem
            .with_hint("Send the header Authorization: Bearer TOKEN")
            .to_response(ResponseFormat::Json);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        response
    } else {
        UntrustedConnection::trust(&request);
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Returns whether a path needs no cookie. Stylesheets and scripts contain no user data, and the page that
/// asks for the token uses them.
fn is_public(path: &str) -> bool {
    path.starts_with("/assets/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_host_names_are_recognised() {
        let keys = || AccessKeys { token: "t".to_owned(), code: "c".to_owned(), cookie: "k".to_owned() };
        let guard = AccessGuard::new(IpAddr::from([127, 0, 0, 1]), 4100, keys());
        for ours in ["127.0.0.1:4100", "localhost:4100", "LOCALHOST:4100", "[::1]:4100", "127.0.0.2:4100"] {
            assert!(guard.is_own_host(ours), "{ours}");
        }
        for foreign in [
            "evil.example:4100",
            "127.0.0.1",
            "127.0.0.1:4101",
            "localhost.evil.example:4100",
            "",
            ":4100",
            "192.168.0.9:4100",
        ] {
            assert!(!guard.is_own_host(foreign), "{foreign}");
        }
        let open = AccessGuard::new(IpAddr::from([0, 0, 0, 0]), 4100, keys());
        assert!(open.is_own_host("192.168.0.9:4100") && open.is_own_host("localhost:4100"));
        assert!(!open.is_own_host("evil.example:4100"));
    }
}
