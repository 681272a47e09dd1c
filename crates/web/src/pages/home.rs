//! Home: the sessions there are.

use std::time::UNIX_EPOCH;

use threadline_html::{Frame, Listed, Tab};

use crate::answer::{Answer, Problem};
use crate::ask::Ask;
use crate::state::State;

pub(crate) fn page(state: &State, _ask: &Ask) -> Result<Answer, Problem> {
    let listing = state.store.list();
    let listed: Vec<Listed> = listing
        .found
        .iter()
        .map(|(file, glance)| Listed {
            href: format!("/s/{}", file.id),
            project: glance.cwd.clone().or_else(|| file.folder.clone()).unwrap_or_default(),
            title: glance.heading().unwrap_or(&file.id).to_owned(),
            first_prompt: glance.first_prompt.clone(),
            git_branch: glance.git_branch.clone(),
            modified: glance.modified.duration_since(UNIX_EPOCH).ok().map(|since| since.as_millis() as i64),
            size: glance.size,
        })
        .collect();
    let body = threadline_html::list(&listed, &state.zone);
    let frame = Frame { title: "Sessions", tab: Tab::Home, class: "list", scripts: &[] };
    Ok(Answer::Html(threadline_html::site(&frame, &body)))
}
