use clap::ArgAction;
use threadline_edit::{StripOptions, StripPreset, ToolStripOptions};

use super::args::{TargetArgs, WriteArgs};
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Remove tool calls, thinking, images and other content
///
/// Calls are removed with their results, and thinking as a whole, so that Claude Code can resume the result.
/// The default is `--preset standard`.
#[derive(Debug, clap::Args)]
pub(crate) struct StripArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Remove tool calls and their results: all, or those of some tools (`--tools=Bash,Read`)
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',', action = ArgAction::Append)]
    tools: Option<Vec<String>>,

    /// Only tool calls before the last N turns
    #[arg(long, value_name = "N")]
    older_than: Option<usize>,

    /// Keep the tool calls of the last N turns that have any
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,

    /// Shorten long tool input and output instead of removing calls; a note says where the whole text is
    #[arg(long)]
    truncate: bool,

    /// Remove all thinking
    #[arg(long)]
    thinking: bool,

    /// Remove images and documents; leaves a placeholder for each
    #[arg(long)]
    images: bool,

    /// Remove progress lines of tools, hooks and agents
    #[arg(long)]
    progress: bool,

    /// Remove context attached by Claude Code
    #[arg(long)]
    attachments: bool,

    /// Remove file history; files cannot be rewound or restored afterwards
    #[arg(long)]
    snapshots: bool,

    /// How much to remove; further options add to it
    ///
    /// light: removes progress and shortens long tool output, except in the last 20 turns with tools.
    /// standard: also removes thinking and images; shortens output except in the last 10. heavy: also removes
    /// attachments, and calls except in the last 5. extreme: leaves only prompts and replies.
    #[arg(long, value_name = "PRESET")]
    preset: Option<PresetArg>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    write: WriteArgs,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PresetArg {
    Light,
    Standard,
    Heavy,
    Extreme,
}

impl StripArgs {
    /// Returns the content to remove.
    fn strip(&self) -> StripOptions {
        let tools =
            self.tools.is_some() || self.older_than.is_some() || self.keep_last.is_some() || self.truncate;
        let named =
            tools || self.thinking || self.images || self.progress || self.attachments || self.snapshots;
        let mut strip = match self.preset {
            Some(PresetArg::Light) => StripPreset::Light.options(),
            Some(PresetArg::Standard) => StripPreset::Standard.options(),
            Some(PresetArg::Heavy) => StripPreset::Heavy.options(),
            Some(PresetArg::Extreme) => StripPreset::Extreme.options(),
            None if named => StripOptions::default(),
            None => StripPreset::Standard.options(),
        };
        if tools {
            let names = self.tools.iter().flatten().filter(|name| !name.is_empty()).cloned().collect();
            strip.tools = Some(ToolStripOptions {
                names,
                older_than: self.older_than,
                keep_last: self.keep_last,
                truncate: self.truncate,
            });
        }
        strip.thinking |= self.thinking;
        strip.images |= self.images;
        strip.progress |= self.progress;
        strip.attachments |= self.attachments;
        strip.snapshots |= self.snapshots;
        strip
    }
}

pub(crate) fn run(cx: &Context, args: &StripArgs) -> Result<CommandOutcome, CommandError> {
    let session = open(cx, &args.session)?;
    finish(cx, &args.write, session.strip(&args.strip(), args.target.target()))
}
