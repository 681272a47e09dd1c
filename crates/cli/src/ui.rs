//! How threadline speaks: the answer on stdout, the conversation on stderr.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use threadline_term::Page;

use crate::env;

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

/// The streams, and what they can show.
pub(crate) struct Ui {
    color: bool,
    paging: bool,
    quiet: bool,
}

impl Ui {
    pub(crate) fn new(color: ColorChoice, paging: bool, quiet: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && env::get(env::NO_COLOR).is_none(),
        };
        Self { color, paging: paging && terminal, quiet }
    }

    /// How to write text: as wide as the terminal, or unwrapped where there is none.
    pub(crate) fn page(&self) -> Page {
        let asked = || env::get(env::COLUMNS).and_then(|columns| columns.parse().ok());
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = io::stdout().is_terminal().then(|| terminal().or_else(asked)).flatten();
        Page {
            width,
            color: self.color,
            links: self.color && io::stdout().is_terminal() && env::knows_links(),
        }
    }

    /// Where the answer goes.
    pub(crate) fn answer(&self) -> Answer {
        Answer { out: Some(Box::new(BufWriter::with_capacity(1 << 16, io::stdout().lock()))), pager: None }
    }

    /// Where a long answer goes: through a pager, if a person is reading.
    pub(crate) fn long_answer(&self) -> Answer {
        let pager = self.paging.then(start_pager).flatten();
        match pager {
            Some(mut pager) => {
                let out = pager.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn Write>);
                Answer { out, pager: Some(pager) }
            }
            None => self.answer(),
        }
    }

    /// Something worth knowing beside the answer.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// Something that went wrong with a part of the work.
    pub(crate) fn warn(&self, text: &str) {
        eprintln!("warning: {text}");
    }

    /// Tells a person at a terminal how far long work has come. The line is wiped at the end.
    pub(crate) fn progress(&self, what: &'static str, total: usize) -> Progress {
        let shown = !self.quiet && total > 20 && io::stderr().is_terminal();
        Progress { what, total, shown, done: std::sync::atomic::AtomicUsize::new(0) }
    }
}

fn start_pager() -> Option<Child> {
    let command = env::get(env::THREADLINE_PAGER).or_else(|| env::get(env::PAGER));
    let command = command.unwrap_or_else(|| "less -FRX".to_owned());
    let mut words = command.split_whitespace();
    let program = words.next().filter(|program| *program != "cat")?;
    Command::new(program).args(words).stdin(Stdio::piped()).spawn().ok()
}

/// A stream for the answer. Must be finished, so that what was written is known to have arrived.
pub(crate) struct Answer {
    out: Option<Box<dyn Write>>,
    pager: Option<Child>,
}

impl Answer {
    /// Writes one JSON object as a line.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> Result<(), crate::error::CommandError> {
        serde_json::to_writer(&mut *self, value)?;
        self.write_all(b"\n")?;
        Ok(())
    }

    /// Waits until everything is written, and read if a person reads it in a pager.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let flushed = self.out.as_mut().map_or(Ok(()), |out| out.flush());
        self.out = None;
        if let Some(mut pager) = self.pager.take() {
            pager.wait()?;
        }
        flushed
    }
}

impl Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |out| out.flush())
    }
}

/// How far long work has come.
pub(crate) struct Progress {
    what: &'static str,
    total: usize,
    shown: bool,
    done: std::sync::atomic::AtomicUsize,
}

impl Progress {
    /// One more is done.
    pub(crate) fn step(&self) {
        let done = self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if self.shown && done.is_multiple_of(16) {
            eprint!("\r{} {done} of {}", self.what, self.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\u{1b}[K");
        }
    }
}
