//! WebFetch: answers a question about a web page.

mod address;
mod html;

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use ureq::http::Uri;

use crate::background::random_text;
use crate::context::ToolContext;
use crate::limits::show_size;
use crate::output::{Failure, ToolOutput, take_utf16};
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, required};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

use address::{PrivateAddress, PublicAddresses, is_private};

/// The WebFetch tool. Pages are kept for a while, for further questions about them.
pub(crate) struct WebFetch {
    profile: &'static Profile,
    pages: Mutex<VecDeque<CachedPage>>,
}

struct CachedPage {
    url: String,
    fetched: Instant,
    page: Page,
}

/// The time that a page is kept.
const CACHE_TIME: Duration = Duration::from_secs(15 * 60);

/// The most pages that are kept.
const CACHE_PAGES: usize = 8;

const PARAMETERS: &[Parameter] = &[
    required("url", Kind::Url, "The address of the page"),
    required("prompt", Kind::Text(0), "The question about the page"),
];

/// The longest address.
const MAX_URL: usize = 2_000;

const USER_AGENT: &str = concat!("threadline/", env!("CARGO_PKG_VERSION"));

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebFetchRecord<'a> {
    bytes: usize,
    code: u16,
    code_text: &'a str,
    result: &'a str,
    duration_ms: u64,
    url: &'a str,
}

impl Tool for WebFetch {
    fn name(&self) -> &str {
        "WebFetch"
    }

    fn description(&self) -> String {
        "Fetches a public web page, converts it to Markdown and answers a question about it with a small model. A \
         redirect to another host is returned instead of followed. Pages that need a login cannot be fetched."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.answer(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl WebFetch {
    pub(crate) fn new(profile: &'static Profile) -> Self {
        Self { profile, pages: Mutex::default() }
    }

    /// Returns a page from the cache, or fetches it.
    fn page(&self, url: &str, context: &ToolContext<'_>) -> Result<Page, Failure> {
        let cached = {
            let mut pages = self.pages.lock();
            pages.retain(|entry| entry.fetched.elapsed() < CACHE_TIME);
            pages.iter().find(|entry| entry.url == url).map(|entry| entry.page.clone())
        };
        if let Some(page) = cached {
            return Ok(page);
        }
        let page = fetch(url, context)?;
        if matches!(page.content, PageContent::Body { .. }) {
            let mut pages = self.pages.lock();
            pages.truncate(CACHE_PAGES - 1);
            pages.push_front(CachedPage { url: url.to_owned(), fetched: Instant::now(), page: page.clone() });
        }
        Ok(page)
    }

    fn answer(&self, input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
        let started = Instant::now();
        let url = input.text("url").unwrap_or_default();
        let prompt = input.text("prompt").unwrap_or_default();
        let mut page = self.page(url, context)?;
        let result = match &page.content {
            PageContent::Moved(target) => {
                let text = format!(
                    "REDIRECT DETECTED: The URL redirects to a different host.\n\nOriginal URL: {url}\nRedirect URL: {target}\n\
                     Status: {} {}\n\nTo complete your request, I need to fetch content from the redirected URL. Please use \
                     WebFetch again with these parameters:\n- url: \"{target}\"\n- prompt: \"{prompt}\"",
                    page.code, page.code_text
                );
                page.bytes = text.len();
                text
            }
            PageContent::Failed => format!(
                "The server returned HTTP {} {}.\n\nThe response body was not retrieved. If this URL requires \
                 authentication, use an authenticated tool (e.g. `gh` for GitHub, or an MCP-provided fetch tool) instead of \
                 WebFetch.",
                page.code, page.code_text
            ),
            PageContent::Body { text, note } => {
                let max = context.limits.web_chars;
                let shown = take_utf16(text, max);
                let cut =
                    if shown.len() < text.len() { "\n\n[The rest of the page is left out]" } else { "" };
                let question = format!("{shown}{cut}");
                let summary = context.model.summarize(&question, prompt, context.cancel);
                format!("{}{note}", summary.map_err(Failure::Failed)?)
            }
        };
        let record = WebFetchRecord {
            bytes: page.bytes,
            code: page.code,
            code_text: &page.code_text,
            result: &result,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1),
            url,
        };
        Ok(ToolOutput::success(result.clone(), &record))
    }
}

/// A response.
#[derive(Clone)]
struct Page {
    code: u16,
    code_text: String,
    bytes: usize,
    content: PageContent,
}

#[derive(Clone)]
enum PageContent {
    /// A redirect to another host.
    Moved(String),
    /// A status of 400 or above.
    Failed,
    /// The text of the page, and a note for the model about where the original is kept.
    Body { text: String, note: String },
}

fn failed(message: impl Into<String>) -> Failure {
    Failure::Failed(message.into())
}

fn fetch(url: &str, context: &ToolContext<'_>) -> Result<Page, Failure> {
    let limits = context.limits;
    let mut target = parse_url(url, limits.web_allows_private)?;
    let agent = new_agent(context)?;
    let closer = agent.clone();
    let _guard = context.cancel.on_cancel(move || closer.shutdown());
    for _ in 0..=limits.web_redirects {
        refuse_private_literal(&target, limits.web_allows_private)?;
        let request = agent.get(target.clone()).header("accept", "text/markdown, text/html, */*");
        let response = request.call().map_err(|error| request_failed(&error, &target, context))?;
        let status = response.status();
        let (code, code_text) = (status.as_u16(), status.canonical_reason().unwrap_or_default().to_owned());
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        if status.is_redirection()
            && let Some(location) = header("location")
        {
            let next = join_url(&target, &location).ok_or_else(|| failed("Invalid redirect location"))?;
            if !is_same_site(&target, &next) {
                let content = PageContent::Moved(next.to_string());
                return Ok(Page { code, code_text, bytes: 0, content });
            }
            target = next;
            continue;
        }
        if code >= 400 {
            return Ok(Page { code, code_text, bytes: 0, content: PageContent::Failed });
        }
        let content_type = header("content-type").unwrap_or_default();
        let mut body = Vec::new();
        let mut reader = response.into_body().into_reader().take(limits.web_bytes + 1);
        reader.read_to_end(&mut body).map_err(|error| read_failed(&error, context))?;
        if body.len() as u64 > limits.web_bytes {
            return Err(failed(format!("maxContentLength size of {} exceeded", limits.web_bytes)));
        }
        let note = keep_binary(&body, &content_type, context);
        let text = page_text(&body, &content_type);
        return Ok(Page { code, code_text, bytes: body.len(), content: PageContent::Body { text, note } });
    }
    Err(failed(format!("Too many redirects (exceeded {})", limits.web_redirects)))
}

fn new_agent(context: &ToolContext<'_>) -> Result<ureq::Agent, Failure> {
    let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let proxy = names.iter().find_map(|name| context.variable(name)).filter(|value| !value.is_empty());
    let proxy = proxy
        .map(ureq::Proxy::new)
        .transpose()
        .map_err(|error| failed(format!("Invalid proxy address: {error}")))?;
    let resolver = PublicAddresses {
        allows_private: context.limits.web_allows_private,
        proxy_host: proxy.as_ref().map(|proxy| proxy.host().to_owned()),
    };
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent(USER_AGENT)
        .timeout_global(Some(context.limits.web_timeout))
        .proxy(proxy)
        .build();
    Ok(ureq::Agent::with_parts(config, ureq::unversioned::transport::DefaultConnector::default(), resolver))
}

/// Parses an address that may be fetched. Plain HTTP becomes HTTPS, except for private addresses where they
/// are allowed.
fn parse_url(url: &str, allows_private: bool) -> Result<Uri, Failure> {
    let invalid = || failed("Invalid URL");
    let uri: Uri = url.trim().parse().map_err(|_| invalid())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(invalid()) };
    let host = authority.host();
    let is_local = allows_private && (host == "localhost" || literal_address(&uri).is_some_and(is_private));
    let is_refused = url.len() > MAX_URL
        || authority.as_str().contains('@')
        || !(host.contains(['.', ':']) || is_local)
        || !matches!(scheme, "http" | "https");
    if is_refused {
        return Err(invalid());
    }
    if scheme == "https" || is_local {
        return Ok(uri);
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    format!("https://{authority}{path}").parse().map_err(|_| invalid())
}

/// Returns the address if the host is one.
fn literal_address(uri: &Uri) -> Option<IpAddr> {
    uri.host()?.trim_matches(['[', ']']).parse().ok()
}

fn refuse_private_literal(uri: &Uri, allows_private: bool) -> Result<(), Failure> {
    let host = uri.host().unwrap_or_default();
    if !allows_private && literal_address(uri).is_some_and(is_private) {
        return Err(private_host(host));
    }
    Ok(())
}

fn private_host(host: &str) -> Failure {
    failed(format!(
        "Refusing to fetch {host}: it is an address of a private network. Use a shell command such as curl if the user \
         wants this."
    ))
}

/// Resolves a redirect.
fn join_url(base: &Uri, location: &str) -> Option<Uri> {
    let scheme = base.scheme_str()?;
    let authority = base.authority()?;
    let location = location.split('#').next()?.trim();
    if location.contains("://") {
        return location.parse().ok();
    }
    let text = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    text.parse().ok()
}

/// Returns whether a redirect stays on the host. `www.` makes no difference.
fn is_same_site(from: &Uri, to: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().map(|host| host.trim_start_matches("www.").to_lowercase());
    let has_user = to.authority().is_some_and(|authority| authority.as_str().contains('@'));
    from.scheme() == to.scheme() && from.port_u16() == to.port_u16() && host(from) == host(to) && !has_user
}

fn request_failed(error: &ureq::Error, target: &Uri, context: &ToolContext<'_>) -> Failure {
    let host = target.host().unwrap_or_default();
    match error {
        _ if context.cancel.is_cancelled() => failed("Interrupted by user"),
        ureq::Error::HostNotFound => failed(format!("getaddrinfo ENOTFOUND {host}")),
        ureq::Error::Timeout(_) => timed_out(context),
        ureq::Error::Other(inner) if inner.is::<PrivateAddress>() => private_host(host),
        ureq::Error::Io(inner) if inner.kind() == io::ErrorKind::ConnectionRefused => {
            let port = target.port_u16().unwrap_or(443);
            failed(format!("connect ECONNREFUSED {host}:{port}"))
        }
        // A host name without an address is an error of the system's resolver.
        ureq::Error::Io(inner) if inner.raw_os_error().is_none() && inner.to_string().contains("lookup") => {
            failed(format!("getaddrinfo ENOTFOUND {host}"))
        }
        error => failed(error.to_string()),
    }
}

fn read_failed(error: &io::Error, context: &ToolContext<'_>) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
    match inner {
        _ if context.cancel.is_cancelled() => failed("Interrupted by user"),
        Some(ureq::Error::Timeout(_)) => timed_out(context),
        _ => failed(error.to_string()),
    }
}

fn timed_out(context: &ToolContext<'_>) -> Failure {
    failed(format!("timeout of {}ms exceeded", context.limits.web_timeout.as_millis()))
}

/// Returns the media type without parameters, in lower case.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_lowercase()
}

fn is_text(media_type: &str) -> bool {
    let (kind, subtype) = media_type.split_once('/').unwrap_or((media_type, ""));
    let textual = ["json", "xml", "javascript", "ecmascript", "yaml", "x-sh", "x-www-form-urlencoded"];
    kind.is_empty()
        || kind == "text"
        || subtype.ends_with("+json")
        || subtype.ends_with("+xml")
        || textual.contains(&subtype)
}

/// Decodes a body, and converts HTML to Markdown.
fn page_text(body: &[u8], content_type: &str) -> String {
    let charset = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    });
    let encoding = charset.and_then(|name| encoding_rs::Encoding::for_label(name.as_bytes()));
    let (text, _, _) = encoding.unwrap_or(encoding_rs::UTF_8).decode(body);
    match media_type(content_type).as_str() {
        "text/html" | "application/xhtml+xml" => html::to_markdown(&text),
        _ => text.into_owned(),
    }
}

/// Saves a body that is not text to the side files, and returns a note about it.
fn keep_binary(body: &[u8], content_type: &str, context: &ToolContext<'_>) -> String {
    let media_type = media_type(content_type);
    if is_text(&media_type) {
        return String::new();
    }
    let subtype = media_type.rsplit('/').next().unwrap_or_default();
    let is_plain =
        !subtype.is_empty() && subtype.len() <= 8 && subtype.bytes().all(|b| b.is_ascii_alphanumeric());
    let extension = if is_plain { subtype } else { "bin" };
    let Ok(id) = random_text(12) else { return String::new() };
    let path = context.side_files.join(format!("webfetch-{id}.{extension}"));
    match fs::create_dir_all(context.side_files).and_then(|()| fs::write(&path, body)) {
        Ok(()) => {
            let size = show_size(body.len() as u64);
            format!("\n\n[Binary content ({media_type}, {size}) also saved to {}]", path.display())
        }
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests;
