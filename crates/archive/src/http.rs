//! Sends the requests of the object storage with ureq, which all other requests use, too.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};

/// The time to wait for a connection, and for each answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// An object of the archive is far smaller.
const MAX_ANSWER: u64 = 256 << 20;

/// Creates clients that send requests with ureq.
#[derive(Debug, Default)]
pub(crate) struct UreqConnector;

#[derive(Clone, Debug)]
struct UreqService(Arc<ureq::Agent>);

impl HttpConnector for UreqConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .timeout_recv_body(Some(ANSWER_TIMEOUT))
            .user_agent(concat!("threadline/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Ok(HttpClient::new(UreqService(Arc::new(agent))))
    }
}

#[async_trait::async_trait]
impl HttpService for UreqService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let agent = self.0.clone();
        let run = move || {
            // An empty body would be sent with a length, which some servers refuse for GET.
            let answer = match body.is_empty() {
                true => agent.run(ureq::http::Request::from_parts(parts, ())),
                false => agent.run(ureq::http::Request::from_parts(parts, &*body)),
            };
            let (parts, body) = answer.map_err(http_error)?.into_parts();
            let mut bytes = Vec::new();
            let read = body.into_reader().take(MAX_ANSWER).read_to_end(&mut bytes);
            read.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
            Ok(ureq::http::Response::from_parts(parts, HttpResponseBody::from(bytes)))
        };
        let joined = tokio::task::spawn_blocking(run).await;
        joined.unwrap_or_else(|error| Err(HttpError::new(HttpErrorKind::Unknown, error)))
    }
}

fn http_error(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => HttpErrorKind::Connect,
        ureq::Error::Io(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Request,
    };
    HttpError::new(kind, error)
}
