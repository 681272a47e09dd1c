use clap::ArgAction;
use threadline_edit::{Preset, Strip, Target, Tools};

use super::job::{Job, TargetArgs, WriteArgs};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Take out of a session what makes it large
///
/// Calls go with their results, thinking goes whole, and what is left is a conversation that Claude Code resumes.
/// Without an option this is `--preset standard`.
#[derive(Debug, clap::Args)]
pub(crate) struct StripArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Tool calls and their results: all, or those of the tools named (`--tools=Bash,Read`)
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',', action = ArgAction::Append)]
    tools: Option<Vec<String>>,

    /// Only tool calls in turns before the last N
    #[arg(long, value_name = "N")]
    older_than: Option<usize>,

    /// Leave the tool calls of the last N turns that have any
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,

    /// Shorten long tool input and output, with a note where the whole text is, instead of taking calls out
    #[arg(long)]
    truncate: bool,

    /// Everything that the model thought
    #[arg(long)]
    thinking: bool,

    /// Images and documents; a word stays for each
    #[arg(long)]
    images: bool,

    /// What tools, hooks and agents reported while they ran
    #[arg(long)]
    progress: bool,

    /// Context that Claude Code attached
    #[arg(long)]
    attachments: bool,

    /// Which backups hold the files as they were; rewinding files will not work
    #[arg(long)]
    snapshots: bool,

    /// How much to take out; further options add to it
    ///
    /// light: progress, and long tool output but in the last 20 turns with tools is shortened. standard: thinking and
    /// images too, and output but in the last 10. heavy: attachments too, and calls but in the last 5 are gone.
    /// extreme: nothing is left but what was said.
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
    /// What the options come to.
    fn strip(&self) -> Strip {
        let tools =
            self.tools.is_some() || self.older_than.is_some() || self.keep_last.is_some() || self.truncate;
        let named =
            tools || self.thinking || self.images || self.progress || self.attachments || self.snapshots;
        let mut strip = match self.preset {
            Some(PresetArg::Light) => Preset::Light.strip(),
            Some(PresetArg::Standard) => Preset::Standard.strip(),
            Some(PresetArg::Heavy) => Preset::Heavy.strip(),
            Some(PresetArg::Extreme) => Preset::Extreme.strip(),
            None if named => Strip::default(),
            None => Preset::Standard.strip(),
        };
        if tools {
            let names = self.tools.iter().flatten().filter(|name| !name.is_empty()).cloned().collect();
            strip.tools = Some(Tools {
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

pub(crate) fn run(cx: &Context, args: &StripArgs) -> Result<Outcome, CommandError> {
    let job = Job::open(cx, &args.session)?;
    let mut draft = job.draft();
    let target = args.target.target();
    let origin = match &target {
        Target::New(_) => job.file.path.display().to_string(),
        Target::InPlace | Target::AsItStands => "the log as `threadline op show` keeps it".to_owned(),
    };
    threadline_edit::strip(&mut draft, &args.strip(), &origin);
    if draft.is_untouched() {
        cx.ui.note("there is nothing of the kind in the session");
        return Ok(Outcome::No);
    }
    job.copy_beside(&mut draft, &target)?;
    job.finish(cx, &args.write, "strip", draft, target)
}
