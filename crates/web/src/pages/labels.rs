//! Changes the pin and the tags of a session: the only request that writes, and only to threadline's state
//! folder.

use threadline_app::check_tag;
use threadline_html::LabelControls;
use threadline_view::wire::LabelObject;

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

/// Applies `pin=1`, `pin=0`, `add=TAG` and `remove=TAG`, and returns the new pin and tags.
pub(crate) fn change(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let id = state.app.session(request.path_param(0))?.id.to_string();
    let [pin, add, remove] = ["pin", "add", "remove"].map(|name| request.query_param(name));
    if let Some(tag) = add {
        check_tag(tag).map_err(PageError::bad_request)?;
    }
    if pin.is_none() && add.is_none() && remove.is_none() {
        return Err(PageError::bad_request("Nothing to change").with_hint("Use pin, add or remove."));
    }
    let label = state.app.change_labels(&id, |label| {
        if let Some(pin) = pin {
            label.is_pinned = pin == "1";
        }
        label.tags.extend(add.map(str::to_owned));
        label.tags.retain(|tag| Some(&**tag) != remove);
    })?;
    state.changes.notify();
    match request.format {
        ResponseFormat::Json => {
            let tags = label.tags.iter().map(|tag| &**tag).collect();
            PageResponse::json_lines([LabelObject { id: &id, pinned: label.is_pinned, tags }])
        }
        ResponseFormat::Html | ResponseFormat::Markdown => {
            let tags: Vec<String> = label.tags.into_iter().collect();
            let controls = LabelControls { id: &id, is_pinned: label.is_pinned, tags: &tags };
            Ok(PageResponse::Html(controls.render()))
        }
    }
}
