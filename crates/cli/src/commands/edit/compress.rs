use std::path::PathBuf;
use std::str::FromStr;

use threadline_edit::{Band, Compress, Compression, Level};

use super::job::{Job, TargetArgs, WriteArgs};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Tell the older part of a session in short
///
/// Prompts stay word for word, replies are cut to their main sentences, and tool calls become a line each: what ran,
/// on what, and what came of it. This summary stands behind a boundary, so that Claude Code takes the session for one
/// that it has compacted itself; the end of the conversation stays as it is. A new session holds the summary and the
/// end; with --in-place the lines that are told stay in the log, above the boundary, and are not sent any more.
///
/// No model is asked: the same session always gives the same summary. --print shows it, and --summary takes another.
#[derive(Debug, clap::Args)]
pub(crate) struct CompressArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// How much to tell of which part, the oldest first, as LEVEL:PERCENT: `bare:30,short:60,long:90` tells the first
    /// 30 % in a sentence or two a turn, up to 60 % in short, up to 90 % at length, and keeps the rest. By default
    /// `short:50,long:80`
    #[arg(long, value_name = "BANDS", conflicts_with = "budget")]
    bands: Option<Bands>,

    /// Tell and keep as much as fits into so many tokens
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u64>,

    /// Take the summary from this file, such as one that a model wrote; `-` is standard input
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,

    /// Print the summary, and nothing else
    #[arg(long, conflicts_with_all = ["apply", "summary", "diff"])]
    print: bool,

    /// The title of the new session; by default that of the old one with “(fork)” behind it
    #[arg(long, conflicts_with = "in_place")]
    title: Option<String>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    write: WriteArgs,
}

/// Bands as people type them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bands(Vec<Band>);

impl FromStr for Bands {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut bands: Vec<Band> = Vec::new();
        for part in text.split(',') {
            let (level, until) =
                part.split_once(':').ok_or_else(|| format!("`{part}` is not LEVEL:PERCENT"))?;
            let level = match level.trim() {
                "bare" => Level::Bare,
                "short" => Level::Short,
                "long" => Level::Long,
                other => return Err(format!("`{other}` is no level; there are bare, short and long")),
            };
            let until =
                until.trim().trim_end_matches('%').parse().ok().filter(|until| (1..=100).contains(until));
            let until = until.ok_or_else(|| format!("`{part}` must end in a percentage from 1 to 100"))?;
            if bands.last().is_some_and(|last| last.until >= until) {
                return Err("each band must end behind the one before".to_owned());
            }
            bands.push(Band { level, until });
        }
        Ok(Self(bands))
    }
}

pub(crate) fn run(cx: &Context, args: &CompressArgs) -> Result<Outcome, CommandError> {
    let job = Job::open(cx, &args.session)?;
    let options = Compress {
        bands: args.bands.clone().map(|bands| bands.0).unwrap_or_default(),
        budget: args.budget,
        original: Some(job.file.path.to_string_lossy().into_owned()),
    };
    let compression = Compression::choose(&job.session, &options).map_err(|error| {
        CommandError::new(error.to_string()).hint("`edit strip` takes out tool output and more")
    })?;
    let summary = match &args.summary {
        Some(path) => read(path)?,
        None => compression.summary(),
    };
    if args.print {
        let mut answer = cx.ui.long_answer();
        answer.text(&summary.into())?;
        answer.finish()?;
        return Ok(Outcome::Done);
    }
    let mut draft = job.draft();
    compression.apply(&mut draft, &summary, args.target.in_place);
    if !args.target.in_place {
        // Without a cut this gives the new session its title and nothing else.
        threadline_edit::clone(&mut draft, None, args.title.as_deref())
            .map_err(|error| CommandError::new(error.to_string()))?;
    }
    if let Some(budget) = args.budget {
        let tokens = summary.len() as u64 / 4 + compression.kept_tokens();
        if tokens > budget {
            cx.ui.warn(&format!(
                "about {tokens} tokens are more than {budget}: prompts and the last exchange are never cut"
            ));
        }
    }
    let target = args.target.target();
    job.copy_beside(&mut draft, &target)?;
    job.finish(cx, &args.write, "compress", draft, target)
}

fn read(path: &std::path::Path) -> Result<String, CommandError> {
    let read = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = read.map_err(|error| CommandError::new(format!("cannot read {}: {error}", path.display())))?;
    if text.trim().is_empty() {
        return Err(CommandError::new(format!("{} is empty: a summary must say something", path.display())));
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
