use threadline_app::SessionLabel;
use threadline_app::check_tag;
use threadline_term::text;
use threadline_view::humanize::short_id;
use threadline_view::wire::LabelObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Tag a session
///
/// Tags are kept in threadline's state folder, outside the log; `edit tag` writes one into it. Without TAG,
/// prints the tags. `list --tag` and the viewer show sessions by tag.
#[derive(Debug, clap::Args)]
pub(crate) struct TagArgs {
    /// Session id, unique prefix, title or `last`
    session: String,

    /// Tag (can be repeated)
    #[arg(value_name = "TAG")]
    tags: Vec<String>,

    /// Remove these tags; without TAG, all of them
    #[arg(long)]
    remove: bool,
}

/// Pin a session
///
/// Pins are kept in threadline's state folder; the logs are not changed. `list --pinned` and the viewer show
/// pinned sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct PinArgs {
    /// Session id, unique prefix, title or `last`
    session: String,

    /// Remove the pin
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(cx: &Context, args: &TagArgs) -> Result<CommandOutcome, CommandError> {
    for tag in args.tags.iter().filter(|_| !args.remove) {
        check_tag(tag).map_err(CommandError::new)?;
    }
    let id = cx.app.find(&args.session)?.id.to_string();
    if args.tags.is_empty() && !args.remove {
        let label = cx.app.labels()?.get(&id);
        return print(cx, &id, &label);
    }
    let label = cx.app.change_labels(&id, |label| match (args.remove, args.tags.is_empty()) {
        (true, true) => label.tags.clear(),
        (true, false) => label.tags.retain(|tag| !args.tags.contains(tag)),
        (false, _) => label.tags.extend(args.tags.iter().cloned()),
    })?;
    print(cx, &id, &label)
}

pub(crate) fn pin(cx: &Context, args: &PinArgs) -> Result<CommandOutcome, CommandError> {
    let id = cx.app.find(&args.session)?.id.to_string();
    let label = cx.app.change_labels(&id, |label| label.is_pinned = !args.remove)?;
    print(cx, &id, &label)
}

fn print(cx: &Context, id: &str, label: &SessionLabel) -> Result<CommandOutcome, CommandError> {
    let mut answer = cx.ui.output();
    if cx.json {
        let tags = label.tags.iter().map(|tag| &**tag).collect();
        answer.json(&LabelObject { id, pinned: label.is_pinned, tags })?;
    } else {
        let pinned = label.is_pinned.then_some("pinned");
        let words: Vec<&str> = pinned.into_iter().chain(label.tags.iter().map(|tag| &**tag)).collect();
        let words = if words.is_empty() { "no pin, no tags".to_owned() } else { words.join(", ") };
        answer.text(&text!("{}: {words}\n", short_id(id)))?;
    }
    answer.finish()?;
    Ok(CommandOutcome::Done)
}
