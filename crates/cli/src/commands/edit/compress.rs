use std::path::PathBuf;
use std::str::FromStr;

use threadline_agent::summarize;
use threadline_app::edit::{CompressTarget, compressed_tokens};
use threadline_cancel::CancelToken;
use threadline_edit::{Compression, SummaryBand, SummaryLevel};
use threadline_session::ClientVersion;

use super::args::{TargetArgs, WriteArgs};
use super::finish::{finish, open};
use crate::commands::chat::{cancel_on_signals, client_and_model};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Summarise older turns behind a native compact boundary
///
/// The summary has prompts word for word, the main sentences of replies, and one line per tool call with its
/// target and result. It follows a compact boundary like those of Claude Code; the end of the conversation is
/// kept. A new session has the summary and the end; with --in-place the summarised lines stay in the log
/// before the boundary and are no longer sent.
///
/// Without --model, no model is used: the same session always gives the same summary. --print shows it, and
/// --summary replaces it.
#[derive(Debug, clap::Args)]
pub(crate) struct CompressArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Level of detail by part, oldest first, as LEVEL:PERCENT: `bare:30,short:60,long:90` summarises the
    /// first 30 % with a sentence or two per turn, up to 60 % briefly, up to 90 % in detail, and keeps the
    /// rest. By default `short:50,long:80`
    #[arg(long, value_name = "BANDS", conflicts_with = "budget")]
    bands: Option<Bands>,

    /// Summarise and keep as much as fits into this number of tokens
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u64>,

    /// Read the summary from this file, such as one that a model wrote; `-` is standard input
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,

    /// Let a model write the summary, by default that of `chat`. The older part of the session is sent to the
    /// API, which needs a key
    #[arg(
        long,
        value_name = "MODEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "summary"
    )]
    model: Option<String>,

    /// Print only the summary
    #[arg(long, conflicts_with_all = ["apply", "summary", "diff"])]
    print: bool,

    /// Title of the new session; by default that of the old one followed by “(fork)”
    #[arg(long, conflicts_with = "in_place")]
    title: Option<String>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    write: WriteArgs,
}

/// Bands as people type them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bands(Vec<SummaryBand>);

impl FromStr for Bands {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut bands: Vec<SummaryBand> = Vec::new();
        for part in text.split(',') {
            let (level, until) =
                part.split_once(':').ok_or_else(|| format!("`{part}` is not LEVEL:PERCENT"))?;
            let level = match level.trim() {
                "bare" => SummaryLevel::Bare,
                "short" => SummaryLevel::Short,
                "long" => SummaryLevel::Long,
                other => return Err(format!("`{other}` is not a level; use bare, short or long")),
            };
            let until =
                until.trim().trim_end_matches('%').parse().ok().filter(|until| (1..=100).contains(until));
            let until = until.ok_or_else(|| format!("`{part}` must end in a percentage from 1 to 100"))?;
            if bands.last().is_some_and(|last| last.until >= until) {
                return Err("each band must end after the previous one".to_owned());
            }
            bands.push(SummaryBand { level, until });
        }
        Ok(Self(bands))
    }
}

pub(crate) fn run(cx: &Context, args: &CompressArgs) -> Result<CommandOutcome, CommandError> {
    let session = open(cx, &args.session)?;
    let bands = args.bands.clone().map(|bands| bands.0).unwrap_or_default();
    let compression = session.choose_compression(bands, args.budget)?;
    let summary = match (&args.summary, &args.model) {
        (Some(path), _) => read(path)?,
        (None, Some(model)) => ask_model(cx, &compression, model)?,
        (None, None) => compression.summary(),
    };
    if args.print {
        let mut answer = cx.ui.paged_output();
        answer.text(&summary.into())?;
        answer.finish()?;
        return Ok(CommandOutcome::Done);
    }
    if let Some(budget) = args.budget {
        let tokens = compressed_tokens(&compression, &summary);
        if tokens > budget {
            cx.ui.warn(&format!(
                "about {tokens} tokens are more than {budget}: prompts and the last exchange are never cut"
            ));
        }
    }
    let target = if args.target.in_place {
        CompressTarget::InPlace
    } else {
        CompressTarget::NewSession { title: args.title.clone() }
    };
    finish(cx, &args.write, session.compress(compression, summary, &target))
}

/// Asks a model for the summary.
fn ask_model(cx: &Context, compression: &Compression<'_>, model: &str) -> Result<String, CommandError> {
    let (client, model) = client_and_model(cx, Some(model).filter(|model| !model.is_empty()))?;
    let cancel = CancelToken::new();
    cancel_on_signals(&cancel)?;
    let messages = compression.summarised_messages(ClientVersion::NEWEST);
    let messages = messages.iter().filter_map(|message| {
        let mut json = String::new();
        message.write_json(&mut json);
        serde_json::from_str(&json).ok()
    });
    cx.ui.note(&format!("asking {model} for a summary of {} messages", messages.clone().count()));
    summarize(&client, &model, messages.collect(), "", &cancel).map_err(|error| {
        CommandError::new("there is no summary; nothing was changed")
            .cause(error.to_string())
            .hint("without --model the summary is made without a model")
    })
}

fn read(path: &std::path::Path) -> Result<String, CommandError> {
    let read = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = read.map_err(|error| CommandError::new(format!("cannot read {}: {error}", path.display())))?;
    if text.trim().is_empty() {
        return Err(CommandError::new(format!("{} is empty: a summary needs text", path.display())));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_go_up() {
        let bands: Bands = "bare:10, short:50%,long:90".parse().unwrap();
        assert_eq!(
            bands.0.iter().map(|band| (band.level.name(), band.until)).collect::<Vec<_>>(),
            [("bare", 10), ("short", 50), ("long", 90)]
        );
        for wrong in ["", "short", "tiny:10", "short:0", "short:101", "short:50,long:50"] {
            assert!(wrong.parse::<Bands>().is_err(), "{wrong}");
        }
    }
}
