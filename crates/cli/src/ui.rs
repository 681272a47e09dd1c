//! Output: results on stdout, notes and errors on stderr.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clap::CommandFactory;
use rayon::prelude::*;
use threadline_app::Mask;
use threadline_term::{TableColumn, TermPage, TermText, TextLabel, table, text};
use threadline_view::is_hidden;

use crate::error::CommandError;
use crate::{Cli, env};

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The output streams and their capabilities.
pub(crate) struct Ui {
    color: bool,
    paging: bool,
    quiet: bool,
    /// The pager of the configuration file.
    pager: Option<String>,
    /// Masks secrets in everything that is printed, except for data for programs.
    mask: Mask,
}

/// The pager if nothing else is set.
pub(crate) const DEFAULT_PAGER: &str = "less -FRX";

impl Ui {
    pub(crate) fn new(
        color: ColorChoice,
        paging: bool,
        quiet: bool,
        pager: Option<String>,
        mask: Mask,
    ) -> Self {
        let terminal = io::stdout().is_terminal();
        let color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && env::get(env::NO_COLOR).is_none(),
        };
        Self { color, paging: paging && terminal, quiet, pager, mask }
    }

    /// Renders a table. Secrets are masked before cells are truncated.
    pub(crate) fn table(&self, columns: &[TableColumn], rows: &[Vec<String>]) -> TermText {
        if !self.mask.is_on() {
            return table(self.page(), columns, rows);
        }
        let masked = |row: &Vec<String>| {
            row.iter().map(|cell| self.mask.text(cell).into_owned()).collect::<Vec<String>>()
        };
        table(self.page(), columns, &rows.iter().map(masked).collect::<Vec<_>>())
    }

    /// Returns the page format: as wide as the terminal, or unwrapped if stdout is not a terminal.
    pub(crate) fn page(&self) -> TermPage {
        let asked = || env::get(env::COLUMNS).and_then(|columns| columns.parse().ok());
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = io::stdout().is_terminal().then(|| terminal().or_else(asked)).flatten();
        TermPage {
            width,
            color: self.color,
            links: self.color && io::stdout().is_terminal() && env::supports_hyperlinks(),
            whole_lines: false,
        }
    }

    /// Returns the stream for results.
    pub(crate) fn output(&self) -> OutputStream {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let mask = self.mask.clone();
        let is_terminal = io::stdout().is_terminal();
        OutputStream { out: Some(Box::new(out)), pager: None, is_terminal, mask }
    }

    /// Returns the stream for results that contain no text of a log, but a key of ours that the reader needs:
    /// nothing is masked.
    pub(crate) fn unmasked_output(&self) -> OutputStream {
        OutputStream { mask: Mask::default(), ..self.output() }
    }

    /// Returns the stream for results of a command that also calls [`write_stdout_line`]. Nothing is masked,
    /// since the command does not show a log.
    pub(crate) fn shared_output(&self) -> OutputStream {
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        let is_terminal = io::stdout().is_terminal();
        OutputStream { out: Some(Box::new(out)), pager: None, is_terminal, mask: Mask::default() }
    }

    /// Returns the stream for long results: a pager, if stdout is a terminal.
    pub(crate) fn paged_output(&self) -> OutputStream {
        self.paged_output_at(None)
    }

    /// Returns the stream for long results, which the pager opens at this place.
    pub(crate) fn paged_output_at(&self, start: Option<&PagerStart>) -> OutputStream {
        let pager = self.paging.then(|| start_pager(self.pager.as_deref(), start)).flatten();
        match pager {
            Some(mut pager) => {
                let out = pager.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn Write>);
                let mask = self.mask.clone();
                OutputStream { out, pager: Some(pager), is_terminal: true, mask }
            }
            None => self.output(),
        }
    }

    /// Writes a note to stderr, unless `--quiet` is set.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            let text = with_source_options(&self.mask.text(text));
            write_stderr(&text!("{}\n", text.replace('\n', "\n  ")));
        }
    }

    /// Writes a warning to stderr, about a failure of a part of the work.
    pub(crate) fn warn(&self, text: &str) {
        write_stderr(&text!("warning: {}\n", self.mask.text(text).replace('\n', "\n  ")));
    }

    /// Reports the result of printing a change that was made: if it cannot be printed, the command has
    /// succeeded all the same, since repeating it would make the change twice.
    pub(crate) fn report_unprinted(&self, printed: Result<(), CommandError>, receipt: &str) {
        if let Err(error) = printed
            && !error.is_closed_pipe()
        {
            self.warn(&format!(
                "the change was made, but stdout cannot be written: {}; receipt: `threadline op show {receipt}`",
                error.message()
            ));
        }
    }

    /// Asks a question on the terminal. Returns whether the answer is yes; `false` without a terminal.
    pub(crate) fn confirm(&self, question: &str) -> io::Result<bool> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(false);
        }
        write_stderr(&text!("{question}"));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Starts a progress line, which is shown on a terminal only, for more than 20 steps that take a while.
    pub(crate) fn progress(&self, what: &'static str, total: usize) -> ProgressLine {
        let shown = !self.quiet && io::stderr().is_terminal();
        let done = std::sync::atomic::AtomicUsize::new(0);
        ProgressLine { label: what, total, shown, done, started: Instant::now() }
    }

    /// Starts a progress line that counts bytes, which is shown on a terminal only.
    pub(crate) fn byte_progress(&self, label: &'static str) -> ByteProgress {
        let now = Instant::now();
        let shown = !self.quiet && io::stderr().is_terminal();
        ByteProgress { label, shown, state: parking_lot::Mutex::new((0, now)), started: now }
    }
}

/// The progress of copying bytes. The line is erased when dropped.
pub(crate) struct ByteProgress {
    label: &'static str,
    shown: bool,
    state: parking_lot::Mutex<(u64, Instant)>,
    started: Instant,
}

impl ByteProgress {
    /// Counts more bytes as done.
    pub(crate) fn add(&self, size: u64) {
        const INTERVAL: Duration = Duration::from_millis(100);
        let mut state = self.state.lock();
        state.0 += size;
        if self.shown && self.started.elapsed() > PROGRESS_DELAY && state.1.elapsed() > INTERVAL {
            state.1 = Instant::now();
            let size = threadline_view::humanize::bytes(state.0);
            let _ = write!(io::stderr().lock(), "\r{} {size}\u{1b}[K", self.label);
        }
    }
}

impl Drop for ByteProgress {
    fn drop(&mut self) {
        if self.shown && self.started.elapsed() > PROGRESS_DELAY {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}

/// The options that suggested commands need, as given: `--home`, `--demo`, `--from`, `--redact`.
static SOURCE_OPTIONS: OnceLock<String> = OnceLock::new();

/// Sets the options that suggested commands need to find the same sessions.
pub(crate) fn set_source_options(options: String) {
    let _ = SOURCE_OPTIONS.set(options);
}

/// Adds the options that select the sessions to the commands that a text suggests, in backticks.
pub(crate) fn with_source_options(text: &str) -> String {
    add_source_options(text, SOURCE_OPTIONS.get().map_or("", |options| options))
}

fn add_source_options(text: &str, options: &str) -> String {
    const START: &str = "`threadline ";
    if options.is_empty() || !text.contains(START) {
        return text.to_owned();
    }
    let cli = Cli::command();
    let mut parts = text.split(START);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        out.push_str(START);
        let command = rest.split('`').next().unwrap_or_default();
        let name = command.split(' ').next().unwrap_or_default();
        if cli.find_subcommand(name).is_some() && !command.contains("--help") {
            out.push_str(options);
            out.push(' ');
        }
        out.push_str(rest);
    }
    out
}

/// Writes to stderr. A failure cannot be reported anywhere, and is ignored.
pub(crate) fn write_stderr(text: &TermText) {
    let _ = io::stderr().lock().write_all(text.as_str().as_bytes());
}

/// Writes a line of JSON to standard output at once, from any thread.
pub(crate) fn write_stdout_line(json: &str) {
    let mut out = io::stdout().lock();
    // A reader that is gone ends the command at its next result.
    let _ = out.write_all(format!("{json}\n").as_bytes()).and_then(|()| out.flush());
}

/// Lines that a pager shows above the line that it is opened at.
const LINES_ABOVE: usize = 8;

/// The place where a pager opens a text.
pub(crate) struct PagerStart {
    /// The line, from 0.
    pub(crate) line: usize,
    /// The regular expression that the pager searches for. May be empty.
    pub(crate) pattern: String,
}

fn start_pager(configured: Option<&str>, start: Option<&PagerStart>) -> Option<Child> {
    let command = env::get(env::THREADLINE_PAGER).or_else(|| configured.map(str::to_owned));
    let command = command.or_else(|| env::get(env::PAGER)).unwrap_or_else(|| DEFAULT_PAGER.to_owned());
    let mut words = command.split_whitespace();
    let program = words.next().filter(|program| *program != "cat")?;
    let mut command = Command::new(program);
    let has_options = words.clone().next().is_some();
    command.args(words);
    if let Some(start) = start.filter(|_| program.ends_with("less")) {
        // The target line of jumps and searches is below the lines above it.
        command.arg(format!("-j{}", LINES_ABOVE + 1));
        // Ctrl-K sets the pattern without a jump, so that `n` goes to the match after this line.
        let search = match &*start.pattern {
            "" => String::new(),
            pattern => format!("/\u{b}{pattern}"),
        };
        // The first lines are on the first screen anyway; a jump would leave empty lines above them.
        let jump = match start.line {
            0..LINES_ABOVE => String::new(),
            line => format!("{}g", line + 1),
        };
        command.arg("-I").arg(format!("+{jump}{search}"));
    }
    // As git does: without options, less prints the sequences of colours as text.
    for (name, options) in PAGER_OPTIONS {
        if env::get(name).is_none() && !has_options {
            command.env(name, options);
        }
    }
    command.stdin(Stdio::piped()).spawn().ok()
}

/// The variables with the options of a pager that are set unless the user has chosen options. On some
/// systems, `more` is a name of less, and has a variable of its own.
const PAGER_OPTIONS: &[(&str, &str)] = if cfg!(any(target_vendor = "apple", target_os = "freebsd")) {
    &[("LESS", "FRX"), ("MORE", "FRX")]
} else {
    &[("LESS", "FRX")]
};

/// A stream for results. It must be finished to detect write errors.
///
/// `write!` and `writeln!` format [`TermText`], in which control characters are escaped. Raw bytes can be
/// written only as [data](Self::data) for programs.
pub(crate) struct OutputStream {
    out: Option<Box<dyn Write>>,
    pager: Option<Child>,
    /// Whether the output is shown on a terminal, directly or in a pager.
    is_terminal: bool,
    /// Masks secrets in text and JSON.
    mask: Mask,
}

impl OutputStream {
    /// Supports `write!` and `writeln!`.
    pub(crate) fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        self.text(&TermText::format(args))
    }

    pub(crate) fn text(&mut self, text: &TermText) -> io::Result<()> {
        let masked = self.mask.text(text.as_str()).into_owned();
        self.write_bytes(masked.as_bytes())
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> Result<(), CommandError> {
        if self.mask.is_on() {
            return Ok(self.json_text(&serde_json::to_string(value)?)?);
        }
        let mut out = JsonSink::new(self);
        value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, EscapingJsonFormatter))?;
        Ok(out.finish()?)
    }

    /// Writes the object of each item as one line of JSON.
    pub(crate) fn json_lines<'i, T: Sync, O: serde::Serialize>(
        &mut self,
        items: &'i [T],
        object: impl Fn(&'i T) -> O + Sync,
    ) -> Result<(), CommandError> {
        /// The number of items that one task formats.
        const N_ITEMS: usize = 64;
        if self.mask.is_on() {
            return items.iter().try_for_each(|item| self.json(&object(item)));
        }
        let format = |items: &'i [T]| -> Result<Vec<u8>, serde_json::Error> {
            let mut lines = Vec::new();
            for item in items {
                let formatter = EscapingJsonFormatter;
                object(item).serialize(&mut serde_json::Serializer::with_formatter(&mut lines, formatter))?;
                lines.push(b'\n');
            }
            Ok(lines)
        };
        // A few batches at a time, so that the first lines are written soon and few are in memory.
        for batch in items.chunks(N_ITEMS * 16) {
            let formatted: Vec<_> = batch.par_chunks(N_ITEMS).map(format).collect();
            for lines in formatted {
                self.write_bytes(&lines?)?;
            }
        }
        Ok(())
    }

    /// Writes JSON text as one line.
    pub(crate) fn json_text(&mut self, json: &str) -> io::Result<()> {
        let masked = self.mask.json(json).into_owned();
        let mut out = JsonSink::new(self);
        write_escaped(&mut out, &masked)?;
        out.finish()
    }

    /// Writes data for a program, such as a patch or a page, unchanged to a pipe or a file. On a terminal,
    /// control characters are escaped.
    pub(crate) fn data(&mut self, data: &str) -> io::Result<()> {
        if self.is_terminal { self.text(&data.into()) } else { self.write_bytes(data.as_bytes()) }
    }

    /// Writes a patch: coloured on a terminal or if colours are enabled, else as [data](Self::data).
    pub(crate) fn patch(&mut self, page: TermPage, patch: &str) -> io::Result<()> {
        if !self.is_terminal && !page.color {
            return self.write_bytes(patch.as_bytes());
        }
        for line in patch.split_inclusive('\n') {
            let (line, newline) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            let label = match line.as_bytes().first() {
                _ if line.starts_with("--- ") || line.starts_with("+++ ") => TextLabel::Strong,
                Some(b'@') => TextLabel::Dim,
                Some(b'+') => TextLabel::Added,
                Some(b'-') => TextLabel::Removed,
                _ => {
                    write!(self, "{line}{newline}")?;
                    continue;
                }
            };
            write!(self, "{}{newline}", page.paint(label, line))?;
        }
        Ok(())
    }

    /// Writes [data](Self::data) that `work` generates piece by piece.
    pub(crate) fn data_from(
        &mut self,
        work: impl FnOnce(&mut dyn Write) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        if !self.is_terminal {
            return work(self.out.as_mut().map_or(&mut io::sink(), |out| &mut **out));
        }
        let mut bytes = Vec::new();
        work(&mut bytes)?;
        self.text(&String::from_utf8_lossy(&bytes).into())?;
        Ok(())
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |out| out.flush())
    }

    /// Flushes the stream, and waits until the pager exits if there is one.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let flushed = self.flush();
        self.out = None;
        if let Some(mut pager) = self.pager.take() {
            pager.wait()?;
        }
        flushed
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |out| out.write_all(bytes))
    }
}

/// An adapter for serializers, which write very short pieces. Other code must not use it, since it does not
/// escape text.
struct JsonSink<'a> {
    stream: &'a mut OutputStream,
    pending: Vec<u8>,
}

impl<'a> JsonSink<'a> {
    /// Pieces are collected up to this size.
    const MAX_PENDING: usize = 8 << 10;

    fn new(stream: &'a mut OutputStream) -> Self {
        Self { stream, pending: Vec::with_capacity(Self::MAX_PENDING) }
    }

    /// Ends the line.
    fn finish(mut self) -> io::Result<()> {
        self.pending.push(b'\n');
        self.stream.write_bytes(&self.pending)
    }
}

impl Write for JsonSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.pending.len() + bytes.len() > Self::MAX_PENDING {
            self.stream.write_bytes(&self.pending)?;
            self.pending.clear();
            if bytes.len() > Self::MAX_PENDING {
                return self.stream.write_bytes(bytes);
            }
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formats JSON with control characters escaped, which changes nothing for a parser.
struct EscapingJsonFormatter;

impl serde_json::ser::Formatter for EscapingJsonFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        write_escaped(out, text)
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, out: &mut W, json: &str) -> io::Result<()> {
        write_escaped(out, json)
    }
}

/// Writes JSON text or a part of a string in it. Characters below U+0020 must be escaped already.
fn write_escaped<W: ?Sized + Write>(out: &mut W, json: &str) -> io::Result<()> {
    let may_hide = |any: bool, byte: u8| any | (byte >= 0x7f);
    // Most text is short ASCII, so a loop without early exit is faster.
    if !json.bytes().fold(false, may_hide) {
        return out.write_all(json.as_bytes());
    }
    let mut rest = json;
    while let Some(at) = rest.find(|ch| ch >= '\u{7f}' && is_hidden(ch)) {
        let (before, after) = rest.split_at(at);
        out.write_all(before.as_bytes())?;
        let ch = after.chars().next().unwrap_or_default();
        for unit in ch.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}")?;
        }
        rest = &after[ch.len_utf8()..];
    }
    out.write_all(rest.as_bytes())
}

/// The progress of a long operation. The line is erased when dropped.
pub(crate) struct ProgressLine {
    label: &'static str,
    total: usize,
    shown: bool,
    done: std::sync::atomic::AtomicUsize,
    started: Instant,
}

/// A progress line is shown after this time.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

impl ProgressLine {
    /// Counts one more step as done.
    pub(crate) fn step(&self) {
        self.step_of(self.total);
    }

    /// Does the same for a total that is known only now.
    pub(crate) fn step_of(&self, total: usize) {
        let done = self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if self.shown && total > 20 && done.is_multiple_of(16) && self.started.elapsed() > PROGRESS_DELAY {
            self.draw(&format!("\r{} {done} of {total}", self.label));
        }
    }
}

impl ProgressLine {
    /// Writes to stderr. Errors are ignored.
    fn draw(&self, line: &str) {
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown && self.started.elapsed() > PROGRESS_DELAY {
            self.draw("\r\u{1b}[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_commands_name_the_home() {
        let options = "--home practice";
        let add = |text: &str| add_source_options(text, options);
        assert_eq!(add("see `threadline show x` or `y`"), "see `threadline --home practice show x` or `y`");
        assert_eq!(add("`threadline list`"), "`threadline --home practice list`");
        assert_eq!(add("`threadline op undo 1`"), "`threadline --home practice op undo 1`");
        assert_eq!(add("`threadline blame x`"), "`threadline --home practice blame x`");
        for same in ["`threadline search --help`", "`threadline shower`", "list it"] {
            assert_eq!(add(same), same);
        }
        assert_eq!(add_source_options("`threadline list`", ""), "`threadline list`");
    }

    /// Returns the text that `work` writes, to a terminal or to a pipe.
    fn output_of(is_terminal: bool, work: impl FnOnce(&mut OutputStream)) -> String {
        masked_output_of(Mask::default(), is_terminal, work)
    }

    fn masked_output_of(mask: Mask, is_terminal: bool, work: impl FnOnce(&mut OutputStream)) -> String {
        #[derive(Clone, Default)]
        struct SharedBuffer(std::sync::Arc<parking_lot::Mutex<Vec<u8>>>);
        impl Write for SharedBuffer {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let shared = SharedBuffer::default();
        let out: Option<Box<dyn Write>> = Some(Box::new(shared.clone()));
        let mut answer = OutputStream { out, pager: None, is_terminal, mask };
        work(&mut answer);
        answer.finish().unwrap();
        let bytes = shared.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn secrets_are_masked_in_text_and_in_strings_and_keys_of_json() {
        let secrets = threadline_testkit::secrets(1);
        let token = &secrets.iter().find(|secret| secret.kind == "github-token").unwrap().secret;
        let masked = |work: &dyn Fn(&mut OutputStream)| masked_output_of(Mask::built_in(), true, work);
        let text = masked(&|answer| writeln!(answer, "on branch {token}").unwrap());
        assert_eq!(text, "on branch [secret:github-token]\n");
        let value = serde_json::json!({ token: [format!("\"\\ \n{token}"), "\\", 1], "b": "\u{202e}" });
        let json = masked(&|answer| answer.json(&value).unwrap());
        let name = "[secret:github-token]";
        let expected = serde_json::json!({ name: [format!("\"\\ \n{name}"), "\\", 1], "b": "\u{202e}" });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), expected);
        assert!(json.contains("\\u202e"), "{json}");
    }

    #[test]
    fn only_data_for_programs_is_written_unescaped() {
        let evil = "a\u{1b}[2J\u{9b}b\u{202e}";
        let shown = "a^[[2J<U+009B>b<U+202E>";
        for is_terminal in [false, true] {
            assert_eq!(output_of(is_terminal, |answer| write!(answer, "{evil}").unwrap()), shown);
            assert_eq!(output_of(is_terminal, |answer| answer.text(&evil.into()).unwrap()), shown);
            let json = output_of(is_terminal, |answer| answer.json(&evil).unwrap());
            assert_eq!(json, "\"a\\u001b[2J\\u009bb\\u202e\"\n");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), evil);
            let data = if is_terminal { shown } else { evil };
            let plain = TermPage { width: None, color: false, links: false, whole_lines: false };
            assert_eq!(output_of(is_terminal, |answer| answer.patch(plain, evil).unwrap()), data);
            let colored = TermPage { color: true, ..plain };
            assert_eq!(output_of(is_terminal, |answer| answer.patch(colored, evil).unwrap()), shown);
            assert_eq!(output_of(is_terminal, |answer| answer.data(evil).unwrap()), data);
            let piecewise =
                |out: &mut dyn Write| Ok(evil.bytes().try_for_each(|byte| out.write_all(&[byte]))?);
            assert_eq!(output_of(is_terminal, |answer| answer.data_from(piecewise).unwrap()), data);
        }
        let tag = "\u{e0041}";
        assert_eq!(output_of(true, |answer| answer.json(&tag).unwrap()), "\"\\udb40\\udc41\"\n");
    }
}
