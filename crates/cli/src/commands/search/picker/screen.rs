//! The picker on a terminal: keys in, screens out, and the terminal as it was at the end.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use base64::Engine;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use threadline_search::Query;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::hunt::Hunt;
use super::{Action, News, Picker, Preview, preview};

/// How often the screen looks for news while nobody types.
const TICK: Duration = Duration::from_millis(30);

/// Lets the person pick, and opens what was picked. The screen is drawn on stderr: stdout may be a pipe,
/// and then gets the place instead.
pub(crate) fn run(cx: &Context, query: &str, project: Option<&str>) -> Result<Outcome, CommandError> {
    if !io::stderr().is_terminal() || !io::stdin().is_terminal() {
        return Err(CommandError::new("--interactive needs a terminal")
            .hint("without it, `threadline search QUERY` answers in a pipe too"));
    }
    let (hunt, news) = Hunt::start(cx.store.clone(), project.map(str::to_owned));
    let picked = {
        let mut screen = Screen::open()?;
        pick(&mut screen, Picker::new(query), hunt, &news)?
    };
    match picked {
        Some((path, anchor)) => show(cx, &path, anchor.as_deref()),
        None => Ok(Outcome::No),
    }
}

/// A place that was picked: a log, and a name in it.
type Place = (std::path::PathBuf, Option<String>);

fn pick(
    screen: &mut Screen,
    mut picker: Picker,
    mut hunt: Hunt,
    news: &Receiver<(usize, News)>,
) -> io::Result<Option<Place>> {
    let mut number = hunt.ask(&picker.input);
    let mut fresh = true;
    let mut dirty = true;
    loop {
        if dirty {
            screen.terminal.draw(|frame| picker.draw(frame))?;
            dirty = false;
        }
        let mut action = Action::Nothing;
        if event::poll(TICK)? {
            dirty = true;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                action = picker.update(key);
            }
        }
        match action {
            Action::Nothing => {}
            Action::Quit => return Ok(None),
            Action::Open(path, anchor) => return Ok(Some((path, anchor))),
            Action::Copy(text) => copy(&text)?,
            Action::Look => look(&mut picker),
            Action::Search => {
                picker.begin();
                number = hunt.ask(&picker.input);
                fresh = true;
            }
        }
        while let Ok((of, told)) = news.try_recv() {
            // What an older search says is of no interest any more.
            if of != number {
                continue;
            }
            dirty = true;
            let bad = matches!(told, News::Bad(_));
            if picker.take(told, fresh) == Action::Look {
                look(&mut picker);
            }
            fresh &= bad;
        }
    }
}

/// Reads the preview of what is selected.
fn look(picker: &mut Picker) {
    let query = Query::parse(&picker.input, &jiff::Zoned::now()).ok();
    let read =
        picker.place().map(|(path, offset, block)| preview::read(&path, offset, block, query.as_ref()));
    picker.preview = match read {
        Some(Ok(preview)) => preview,
        _ => Preview::default(),
    };
}

/// Asks the terminal to put the text on the clipboard, wherever that terminal is.
fn copy(text: &str) -> io::Result<()> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let mut out = io::stderr();
    write!(out, "\u{1b}]52;c;{encoded}\u{7}")?;
    out.flush()
}

/// Shows the place in the way of `show`; the whole session where the place cannot be shown by itself.
fn show(cx: &Context, path: &Path, anchor: Option<&str>) -> Result<Outcome, CommandError> {
    let place = match anchor {
        Some(anchor) => format!("{}#{anchor}", path.display()),
        None => path.display().to_string(),
    };
    if !io::stdout().is_terminal() {
        let mut answer = cx.ui.answer();
        answer.data(&format!("{place}\n"))?;
        answer.finish()?;
        return Ok(Outcome::Done);
    }
    let program = std::env::current_exe()?;
    let shown = Command::new(&program).args(["show", &place]).stderr(Stdio::null()).status()?;
    if !shown.success() && anchor.is_some() {
        Command::new(&program).arg("show").arg(path).status()?;
    }
    Ok(Outcome::Done)
}

/// The terminal while we draw on it. It is put back however we leave: also by a panic.
struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stderr>>,
}

impl Screen {
    fn open() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enable_raw_mode()?;
        execute!(io::stderr(), EnterAlternateScreen).inspect_err(|_| restore())?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr())).inspect_err(|_| restore())?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        restore();
    }
}

fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stderr(), LeaveAlternateScreen, ratatui::crossterm::cursor::Show);
}
