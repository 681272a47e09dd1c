mod all;

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use threadline_app::{App, Mask, MaskReport};
use threadline_html::{
    ImageMode, PageBuilder, PageTheme, RawLine, RawLines, RenderOptions, Spool, write_page,
};
use threadline_session::SessionFamily;
use threadline_store::SessionFile;
use threadline_view::wire::{ExportObject, ReplacedObject};
use threadline_view::{DetailLevel, FindingSummary, TranscriptEnd, TranscriptFilter, TranscriptHeader};

use super::show::LevelChoice;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Export a session as HTML, Markdown or JSON
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ExportCommand {
    Html(HtmlArgs),
    Markdown(MarkdownArgs),
    Json(JsonArgs),
}

/// Export a session as one self-contained HTML file
///
/// The page works offline and makes no network requests.
#[derive(Debug, clap::Args)]
pub(crate) struct HtmlArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    session: Option<String>,

    /// Export every session with an index page; sessions unchanged since the last export are skipped
    #[arg(long, requires = "output")]
    all: bool,

    /// Output file, or `-` for stdout; with --all, the folder [default: SESSION_ID.html]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Level of detail
    #[arg(long, short, value_name = "LEVEL", default_value = "full")]
    level: LevelChoice,

    /// Include the lines of the log, compressed
    #[arg(long)]
    raw: bool,

    /// Prepare the page for other people: mask secrets, e-mail addresses, local paths and user names
    ///
    /// Prints what was replaced. Look at the page before you share it: no rule finds everything.
    #[arg(long, conflicts_with = "all")]
    share: bool,

    /// How to include images
    #[arg(long, value_name = "HOW", default_value = "inline")]
    images: ImagesChoice,

    /// Truncate tool output longer than this many bytes
    #[arg(long, value_name = "BYTES")]
    max_output: Option<usize>,
}

/// How to include images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ImagesChoice {
    /// Embed images in the page
    Inline,
    /// Leave images out
    None,
}

/// Export a session as Markdown
#[derive(Debug, clap::Args)]
pub(crate) struct MarkdownArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Level of detail
    #[arg(long, short, value_name = "LEVEL", default_value = "tools")]
    level: LevelChoice,
}

/// Export a session as JSON Lines, as in `show --json`
#[derive(Debug, clap::Args)]
pub(crate) struct JsonArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(cx: &Context, command: &ExportCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        ExportCommand::Html(args) if args.all => all::run(cx, args),
        ExportCommand::Html(args) => {
            let file = cx.app.find(args.session.as_deref().unwrap_or_default())?;
            let name = || PathBuf::from(format!("{}.html", file.id));
            // Uses this thread as a worker too, so that small jobs need not wake another one.
            let _ = rayon::ThreadPoolBuilder::new().use_current_thread().build_global();
            let outcome = Cell::new(CommandOutcome::Done);
            let replaced = Cell::new(None);
            let path = args.output.clone().unwrap_or_else(name);
            write_output(cx, &path, |out| {
                let page = write_html(cx, &file, args, out)?;
                outcome.set(page.outcome);
                replaced.set(page.replaced);
                Ok(())
            })?;
            print_object(cx, &file, "html", &path, replaced.take().as_ref())?;
            Ok(outcome.get())
        }
        ExportCommand::Markdown(args) => {
            let file = cx.app.find(&args.session)?;
            let loaded = cx.app.load(&file)?;
            let outcome = cx.warn_unread(&loaded.unread, CommandOutcome::Done);
            let path = args.output.as_deref().unwrap_or("-".as_ref());
            write_output(cx, path, |out| {
                Ok(write_masked(&cx.app, out, |out| loaded.write_markdown(args.level.into(), out))?)
            })?;
            print_object(
                cx,
                &file,
                "markdown",
                path,
                cx.app.config().mask.is_on().then_some(&loaded.masked),
            )?;
            // Freeing a large session takes longer than exiting.
            std::mem::forget(loaded);
            Ok(outcome)
        }
        ExportCommand::Json(args) => {
            let file = cx.app.find(&args.session)?;
            let loaded = cx.app.load(&file)?;
            let outcome = cx.warn_unread(&loaded.unread, CommandOutcome::Done);
            let path = args.output.as_deref().unwrap_or("-".as_ref());
            write_output(cx, path, |out| Ok(write_masked(&cx.app, out, |out| loaded.write_json(out))?))?;
            print_object(cx, &file, "json", path, cx.app.config().mask.is_on().then_some(&loaded.masked))?;
            std::mem::forget(loaded);
            Ok(outcome)
        }
    }
}

impl HtmlArgs {
    fn level(&self) -> DetailLevel {
        if self.raw { DetailLevel::Raw } else { self.level.into() }
    }

    fn options(&self, theme: PageTheme) -> RenderOptions {
        let images = match self.images {
            ImagesChoice::Inline => ImageMode::Inline,
            ImagesChoice::None => ImageMode::None,
        };
        RenderOptions {
            images,
            max_output: self.max_output,
            theme,
            ..RenderOptions::new(crate::env::time_zone())
        }
    }
}

/// A page that was written.
struct WrittenPage {
    header: TranscriptHeader,
    /// The replacements, if the page is masked.
    replaced: Option<MaskReport>,
    /// Whether the whole session could be read.
    outcome: CommandOutcome,
}

/// Prints the file that was written as JSON. An export to stdout is the output itself.
fn print_object(
    cx: &Context,
    session: &SessionFile,
    format: &'static str,
    path: &Path,
    replaced: Option<&MaskReport>,
) -> Result<(), CommandError> {
    if !cx.json || path == Path::new("-") {
        return Ok(());
    }
    let replaced = replaced.map(|replaced| ReplacedObject {
        secrets: replaced.secrets.iter().map(|(kind, count)| (kind.clone(), *count as u64)).collect(),
        paths: replaced.paths as u64,
        names: replaced.names as u64,
    });
    let mut answer = cx.ui.output();
    answer.json(&ExportObject {
        session: &session.id,
        format,
        path: std::path::absolute(path)?.to_string_lossy().into_owned(),
        size_bytes: std::fs::metadata(path)?.len(),
        replaced,
    })?;
    answer.finish()?;
    Ok(())
}

/// Writes the page of a session.
fn write_html(
    cx: &Context,
    file: &SessionFile,
    args: &HtmlArgs,
    out: &mut dyn Write,
) -> Result<WrittenPage, CommandError> {
    let level = args.level();
    let filter = TranscriptFilter::up_to_level(level);
    let shared = args.share.then(|| cx.for_sharing()).transpose()?;
    let app = shared.as_ref().unwrap_or(&*cx.app);
    let (read, options) = rayon::join(|| app.load(file), || args.options(cx.theme()));
    let loaded = read?;
    let raw = match level {
        DetailLevel::Raw => raw_lines(&loaded.family, &app.config().mask),
        _ => RawLines::default(),
    };
    let replaced = app.config().mask.is_on().then(|| loaded.masked.clone());
    if let Some(replaced) = replaced.as_ref().filter(|_| !args.all) {
        cx.ui.note(&format!("replaced: {replaced}"));
    }
    let outcome = cx.warn_unread(&loaded.unread, CommandOutcome::Done);
    let family = &loaded.family;
    let kept = |path: &str| loaded.kept_output(path);
    let mut parts = loaded.transcript_builder(&kept).parts();
    let header = parts.take_header().unwrap_or_default();
    // The messages contain paths, which are masked in a page to share.
    let unread = loaded.unread.iter().map(|error| app.masked(&error.to_string()).into_owned()).collect();
    let end = TranscriptEnd { unread, ..TranscriptEnd::default() };
    let page = PageBuilder::new(&options, header.cwd.as_deref(), raw, spool());
    write_masked(app, out, |out| {
        write_page(page, (&header, end), parts, &filter, || FindingSummary::of(&family.main), out)
    })?;
    if !args.all {
        // Freeing a large session takes longer than exiting.
        std::mem::forget(loaded);
    }
    Ok(WrittenPage { header, replaced, outcome })
}

/// Returns the lines of the session and its sub-agents, which are compressed while the page is written.
fn raw_lines(family: &SessionFamily, mask: &Mask) -> RawLines {
    let mut raw = RawLines::new(spool());
    let agents = family.agents.iter().map(|agent| (&*agent.id, &agent.session));
    for (name, session) in std::iter::once(("", &family.main)).chain(agents) {
        raw.begin(name);
        for entry in session.entries().iter() {
            let (mut source, mut range) = entry.shared_text();
            if let Cow::Owned(masked) = mask.markup(entry.text()) {
                range = 0..masked.len();
                source = masked.into();
            }
            raw.add(RawLine { line_no: entry.at().line_no, source, range });
        }
    }
    raw.close();
    raw
}

/// Writes an export, with tokens masked in each line if secrets are masked.
///
/// The log is masked when it is loaded, except for names of tools and models, which identify calls and
/// prices.
fn write_masked(
    app: &App,
    out: &mut dyn Write,
    work: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mask = &app.config().mask;
    if !mask.is_on() {
        return work(out);
    }
    let mut lines = MaskedLines { mask, rest: Vec::new(), out };
    work(&mut lines)?;
    let rest = std::mem::take(&mut lines.rest);
    lines.write_lines(&rest)
}

/// The length from which a line is masked in parts, and the length within which a part ends after a word.
const LONG_LINE: usize = 1 << 20;
const LONG_WORD: usize = 1 << 13;

/// Masks tokens in whole lines. A long line is masked in parts, since a page may have lines of megabytes.
struct MaskedLines<'a> {
    mask: &'a Mask,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
    out: &'a mut dyn Write,
}

impl MaskedLines<'_> {
    /// Returns the length of the beginning of the buffer that can be masked: it contains no part of a token.
    fn maskable_length(&self) -> usize {
        if let Some(newline) = memchr::memrchr(b'\n', &self.rest) {
            return newline + 1;
        }
        if self.rest.len() < LONG_LINE {
            return 0;
        }
        let start = self.rest.len() - LONG_WORD;
        let is_between_words = |byte: &u8| byte.is_ascii_whitespace() || b"<>\"'(),;".contains(byte);
        match self.rest[start..].iter().rposition(is_between_words) {
            Some(at) => start + at + 1,
            // No token is that long. A character that is written in several bytes is not split.
            None => self.rest[..start].iter().rposition(|byte| byte.is_ascii()).map_or(0, |at| at + 1),
        }
    }

    fn write_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        let lines = String::from_utf8_lossy(lines);
        self.out.write_all(self.mask.markup(&lines).as_bytes())
    }
}

impl Write for MaskedLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A part at a time, so that the buffer stays short.
        for part in bytes.chunks(LONG_LINE) {
            self.rest.extend_from_slice(part);
            if self.rest.len() >= LONG_LINE || memchr::memchr(b'\n', part).is_some() {
                let rest = self.rest.split_off(self.maskable_length());
                let lines = std::mem::replace(&mut self.rest, rest);
                self.write_lines(&lines)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Size in bytes up to which a spool is kept in memory.
const SPOOL_MEMORY: usize = 1 << 16;

/// Returns a temporary store for data that is appended to the page at the end.
fn spool() -> Box<dyn Spool> {
    Box::new(tempfile::spooled_tempfile(SPOOL_MEMORY))
}

/// A function that writes the exported data.
type WriteExport<'a> = &'a dyn Fn(&mut dyn Write) -> Result<(), CommandError>;

/// Writes the exported data to stdout or into a file.
fn write_output(
    cx: &Context,
    path: &Path,
    work: impl Fn(&mut dyn Write) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    if path == Path::new("-") {
        let mut answer = cx.ui.output();
        answer.data_from(work)?;
        answer.finish()?;
    } else {
        write_file(path, &work)?;
        cx.ui.note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Writes a file atomically. The file is private (0600 on Unix), as logs are. A device or a pipe is written
/// to, not replaced.
fn write_file(path: &Path, work: WriteExport<'_>) -> Result<(), CommandError> {
    let could_not = |error: io::Error| CommandError::new(format!("cannot write {}: {error}", path.display()));
    if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let device = std::fs::OpenOptions::new().write(true).open(path).map_err(could_not)?;
        let mut out = BufWriter::with_capacity(1 << 15, device);
        work(&mut out)?;
        return out.flush().map_err(could_not);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref());
    if !folder.is_dir() {
        let message = format!("cannot write {}: there is no folder {}", path.display(), folder.display());
        return Err(CommandError::new(message));
    }
    let file = tempfile::Builder::new().prefix(".threadline-").tempfile_in(folder).map_err(could_not)?;
    let mut out = BufWriter::with_capacity(1 << 15, file);
    work(&mut out)?;
    let file = out.into_inner().map_err(|error| could_not(error.into_error()))?;
    file.persist(path).map_err(|error| could_not(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_masked_in_long_lines_however_they_are_written() {
        let mask = Mask::new(threadline_secret::Rules::default());
        // Split, so that no scanner takes this file for one with a token.
        let token = ["ghp_", "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX"].concat();
        let image = "iVBORw0KGgoAAAANSUhEUgAA".repeat(100_000);
        let text =
            format!("{} {token} {} <{image}>é\n{token}", "weft ".repeat(300_000), "é ".repeat(500_000));
        for step in [1_000, 65_536, text.len()] {
            let mut out = Vec::new();
            let mut lines = MaskedLines { mask: &mask, rest: Vec::new(), out: &mut out };
            for part in text.as_bytes().chunks(step) {
                lines.write_all(part).unwrap();
                assert!(lines.rest.len() <= 2 * LONG_LINE);
            }
            let rest = std::mem::take(&mut lines.rest);
            lines.write_lines(&rest).unwrap();
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out, mask.markup(&text), "{step}");
            assert!(!out.contains(&token) && out.contains(&image));
        }
    }
}
