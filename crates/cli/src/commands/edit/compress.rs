use std::path::PathBuf;
use std::str::FromStr;

use threadline_app::edit::{CompressTarget, compressed_tokens};
use threadline_edit::{SummaryBand, SummaryLevel};

use super::args::{TargetArgs, WriteArgs};
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Summarise older turns behind a native compact boundary
///
/// The summary has prompts word for word, the main sentences of replies, and one line per tool call with its
/// target and result. It follows a compact boundary like those of Claude Code; the end of the conversation is
/// kept. A new session has the summary and the end; with --in-place the summarised lines stay in the log
/// before the boundary and are no longer sent.
///
/// No model is used: the same session always gives the same summary. --print shows it, and --summary replaces
/// it.
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
    let summary = match &args.summary {
        Some(path) => read(path)?,
        None => compression.summary(),
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
    finish(cx, &args.write, session.compress(&compression, &summary, &target))
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
