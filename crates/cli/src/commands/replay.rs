use threadline_session::ReplayMessage;
use threadline_term::Label;
use threadline_view::wire;

use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::load;
use crate::ui::Answer;

/// Print the messages that Claude Code would send if it resumed a session
///
/// The messages are those of the active branch, as Claude Code 2.1.197 builds them, less what it adds
/// by itself (reminders, fillers, cache marks). Exits with 1 if it would refuse to resume.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,
}

pub(crate) fn run(cx: &Context, args: &ReplayArgs) -> Result<Outcome, CommandError> {
    let file = load::find(cx, &args.session)?;
    let session = load::session(&file.path, &file.id)?;
    let replay = session.replay();
    let messages = replay.as_deref().unwrap_or_default();
    if cx.json {
        let mut answer = cx.ui.answer();
        answer.json_text(&wire::replay(session.id().as_deref(), messages))?;
        answer.finish()?;
    } else {
        let mut answer = cx.ui.long_answer();
        for message in messages {
            write_message(cx, &mut answer, message)?;
        }
        answer.finish()?;
    }
    if replay.is_none() {
        cx.ui.note("Claude Code would refuse to resume this: there is no conversation in it");
        return Ok(Outcome::No);
    }
    Ok(Outcome::Done)
}

/// A message for people: who speaks, and the first line of each block.
fn write_message(cx: &Context, out: &mut Answer, message: &ReplayMessage<'_>) -> std::io::Result<()> {
    let page = cx.ui.page();
    for block in &message.content {
        let json = block.json();
        let told = ["text", "thinking", "name", "tool_use_id", "data"];
        let about = told.iter().find_map(|key| json.get(key)?.as_str()).unwrap_or_default();
        let first = about.trim_start().lines().next().unwrap_or_default().to_owned();
        let role = page.paint(Label::Strong, format!("{:<9}", message.role.name()));
        let line = format!("{:<17} {}", block.kind(), first);
        let line = page.wrap(&line, 9).into_iter().next().unwrap_or_default();
        writeln!(out, "{role} {line}")?;
    }
    Ok(())
}
