//! The page of the context window of a session.

use threadline_app::SessionContext;
use threadline_html::{ContextPage, PageFrame, ViewerTab};
use threadline_view::wire::{ContextObject, context_objects};

use crate::pages::session_text::MAX_LOADED_BYTES;
use crate::request::{PageRequest, ResponseFormat};
use crate::response::{PageError, PageResponse};
use crate::state::ServerState;

pub(crate) fn page(state: &ServerState, request: &PageRequest) -> Result<PageResponse, PageError> {
    let id = request.path_param(0);
    let file = state.app.session(id)?;
    if file.logs().found.iter().map(|log| log.size).sum::<u64>() > MAX_LOADED_BYTES {
        return Err(PageError::failed("Session too large to analyse here")
            .with_hint(format!("Run `threadline context {id}` in a terminal.")));
    }
    let loaded = state.app.load(&file)?;
    let SessionContext { agent, ledger, agents } = loaded.context(request.query_param("agent"))?;
    let read_errors: Vec<String> = loaded.unread.iter().map(ToString::to_string).collect();
    match request.format {
        ResponseFormat::Json => {
            let objects = context_objects(&ledger).chain(agents.iter().map(ContextObject::from));
            PageResponse::json_lines_and_errors(objects, &read_errors)
        }
        ResponseFormat::Markdown => Err(PageError::not_found("Page not found")
            .with_hint("The context window is available as HTML and JSON.")),
        ResponseFormat::Html => {
            let title = state.app.title_of(file);
            let title = title.as_deref().unwrap_or(id);
            let name = format!("Context window · {title}");
            let frame = PageFrame {
                title: &name,
                tab: ViewerTab::None,
                class: "lists",
                scripts: &["lists.js"],
                settings: state.settings,
            };
            let agent = agent.map(|agent| &loaded.family.agents[agent]);
            let agent = agent.map(|agent| (&*agent.id, agent.description.as_deref().unwrap_or(&agent.id)));
            let page =
                ContextPage { id, title, agent, ledger: &ledger, agents: &agents, read_errors: &read_errors };
            Ok(super::list_page(&frame, &threadline_html::context(&page)))
        }
    }
}
