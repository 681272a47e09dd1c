//! A session: its conversation.

use std::fs::File;

use threadline_entry::{Lines, parse_line};
use threadline_html::{Frame, Markup, Options, Tab};
use threadline_session::{Family, Session};
use threadline_store::SessionFile;
use threadline_view::{Level, Transcript, markdown, transcript, wire};

use crate::answer::{Answer, Problem};
use crate::ask::{Ask, Form};
use crate::state::State;

pub(crate) fn page(state: &State, ask: &Ask) -> Result<Answer, Problem> {
    let id = ask.part(0);
    let file = state.store.session(id).ok_or_else(|| {
        Problem::not_found("There is no such session").hint("It was deleted or moved, or its id is another.")
    })?;
    let told = told(&file)?;
    match ask.form {
        Form::Html => Ok(Answer::Html(html(state, &told))),
        Form::Markdown => Ok(Answer::Markdown(markdown(&told, Level::Tools))),
        Form::Json => {
            let mut objects = Vec::new();
            wire::show(&told, &mut |object| objects.push(serde_json::to_value(&object)));
            Answer::json(objects.into_iter().flatten())
        }
    }
}

fn told(file: &SessionFile) -> Result<Transcript, Problem> {
    let mut session = Session::with_id(&file.id);
    let mut lines = Lines::new(File::open(&file.path)?);
    while let Some(line) = lines.next()? {
        parse_line(&line, |entry, findings| session.push(entry, findings));
    }
    Ok(transcript(&Family::new(session, Vec::new()), &|_| None))
}

fn html(state: &State, told: &Transcript) -> Markup {
    let options = Options::new(state.zone.clone());
    let title = told.title.as_deref().or(told.id.as_deref()).unwrap_or("Session");
    let mut body = Markup::new();
    body.lit("<header class=\"opening\"><h1>").text(title).lit("</h1></header>");
    for turn in &told.turns {
        body.add(&threadline_html::turn(turn, told.cwd.as_deref(), &options));
    }
    threadline_html::site(&Frame { title, tab: Tab::None, class: "session", script: None }, &body)
}
