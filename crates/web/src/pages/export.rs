//! A session as one HTML file to save, as `threadline export html` writes it.

use std::io::Cursor;

use threadline_html::{PageBuilder, RawLines, RenderOptions, write_page};
use threadline_view::{DetailLevel, FindingSummary, TranscriptEnd, TranscriptFilter};

use crate::request::PageRequest;
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// Returns the file. `?redact=share` masks everything that should not be shared, `?redact=secrets` secrets
/// only, `?redact=none` nothing, unless the server always masks secrets. The default is what the pages do.
pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let app = match request.query_param("redact") {
        None => &state.app,
        Some("none") => &state.plain_app,
        Some("secrets") => &state.masked_app,
        Some("share") => &state.sharing,
        Some(_) => {
            return Err(PageError::bad_request("Invalid parameter: redact must be share, secrets or none"));
        }
    };
    let file = app.session(request.path_param(0))?;
    let loaded = app.load(&file)?;
    let options = RenderOptions { theme: state.settings.theme, ..RenderOptions::new(state.zone.clone()) };
    let kept = |path: &str| loaded.kept_output(path);
    let mut parts = loaded.transcript_builder(&kept).parts();
    let header = parts.take_header().unwrap_or_default();
    let unread = loaded.unread.iter().map(|error| app.masked(&error.to_string()).into_owned()).collect();
    let end = TranscriptEnd { unread, ..TranscriptEnd::default() };
    let spool = Box::new(Cursor::new(Vec::new()));
    let page = PageBuilder::new(&options, header.cwd.as_deref(), RawLines::default(), spool);
    // The default level of `export html`.
    let filter = TranscriptFilter::up_to_level(DetailLevel::Full);
    let mut out = Vec::new();
    write_page(page, (&header, end), parts, &filter, || FindingSummary::of(&loaded.family.main), &mut out)?;
    Ok(PageResponse::Download(format!("{}.html", file.id), out))
}
