use threadline_entry::key;
use threadline_session::{ClientVersion, ReplayMessage};
use threadline_term::TextLabel;
use threadline_view::wire;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::ui::OutputStream;

/// Print the messages that Claude Code would send if it resumed a session
///
/// Prints the active branch, without texts that Claude Code adds at run time (reminders, fillers, cache
/// markers). Versions differ; --as selects one. Exit code 1 if that version would refuse to resume the
/// session.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Version of Claude Code that resumes the session, such as 2.1.197 [default: the newest known version]
    #[arg(long = "as", value_name = "VERSION", long_help = version_help())]
    client: Option<ClientVersion>,
}

fn version_help() -> String {
    format!(
        "Version of Claude Code that resumes the session, such as 2.1.197 [default: the newest known version]\n\n\
         Known versions: {}. A version between two of them follows the rules of the older one.",
        ClientVersion::known_list()
    )
}

pub(crate) fn run(cx: &Context, args: &ReplayArgs) -> Result<CommandOutcome, CommandError> {
    let file = cx.app.find(&args.session)?;
    let session = cx.app.read_session(&file)?;
    let asked = args.client.unwrap_or(ClientVersion::NEWEST);
    let version = asked.nearest_known().unwrap_or(ClientVersion::OLDEST);
    if asked < ClientVersion::OLDEST {
        cx.ui.note(&format!(
            "Claude Code {asked} is older than all known versions: using the rules of {version}"
        ));
    } else if asked > ClientVersion::NEWEST {
        cx.ui.note(&format!(
            "Claude Code {asked} is newer than all known versions: using the rules of {version}"
        ));
    }
    let replay = session.replay(version);
    let messages = replay.as_deref().unwrap_or_default();
    if cx.json {
        let mut answer = cx.ui.output();
        answer.json_text(&wire::replay(session.id().as_deref(), version, messages))?;
        answer.finish()?;
    } else {
        let mut answer = cx.ui.paged_output();
        for message in messages {
            write_message(cx, &mut answer, message)?;
        }
        answer.finish()?;
    }
    if replay.is_none() {
        cx.ui.note(&format!(
            "Claude Code {version} would refuse to resume this session: it contains no conversation"
        ));
        return Ok(CommandOutcome::Negative);
    }
    Ok(CommandOutcome::Done)
}

/// The maximum length of the first line of a block in bytes; `--json` prints the whole block.
const MAX_LINE: usize = 1 << 16;

/// Writes a message: one line per block, with its role and the first line of its content.
fn write_message(cx: &Context, out: &mut OutputStream, message: &ReplayMessage<'_>) -> std::io::Result<()> {
    let page = cx.ui.page();
    for block in &message.content {
        let json = block.json();
        let keys = [key::TEXT, key::THINKING, key::NAME, key::TOOL_USE_ID, key::DATA];
        let about = keys.iter().find_map(|key| json.get(key)?.as_str()).unwrap_or_default();
        let first_line = |text: &str| {
            let line = text.trim_start().lines().next().unwrap_or_default();
            line[..line.floor_char_boundary(MAX_LINE)].to_owned()
        };
        let role = page.paint(TextLabel::Strong, format!("{:<9}", message.role.name()));
        let line = format!("{:<17} {}", first_line(block.kind()), first_line(&about));
        let line = page.wrap(&line, 9).into_iter().next().unwrap_or_default();
        writeln!(out, "{role} {line}")?;
    }
    Ok(())
}
