//! Runs the picker on a terminal, and restores the terminal at the end.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
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
use threadline_app::App;
use threadline_search::Query;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

use super::super::Sort;
use super::background_search::BackgroundSearch;
use super::{MatchPreview, Picker, PickerAction, PickerPurpose, SearchMessage, preview};

/// The interval at which messages of the search are polled while no key is pressed.
const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// Runs the picker and opens the selected match. The screen is drawn on stderr, because stdout may be a pipe.
/// In that case the selected reference is printed instead.
pub(crate) fn run(
    cx: &Context,
    query: &str,
    sort: Sort,
    project: Option<&str>,
) -> Result<CommandOutcome, CommandError> {
    if !io::stderr().is_terminal() || !io::stdin().is_terminal() {
        return Err(CommandError::new("--interactive needs a terminal")
            .hint("without a terminal, use `threadline search QUERY`"));
    }
    match pick_match(&cx.app, query, sort, PickerPurpose::Show, project, &|| false)? {
        Some((path, anchor, query)) => open_match(cx, &path, anchor.as_deref(), &query),
        None => Ok(CommandOutcome::Negative),
    }
}

/// Lets the person choose a match, or a session without a query, until `should_leave` returns true.
pub(crate) fn pick_match(
    app: &Arc<App>,
    query: &str,
    sort: Sort,
    purpose: PickerPurpose,
    project: Option<&str>,
    should_leave: &dyn Fn() -> bool,
) -> io::Result<Option<PickedMatch>> {
    let (hunt, news) = BackgroundSearch::start(Arc::clone(app), project.map(str::to_owned));
    let mut screen = PickerScreen::open()?;
    pick(app, &mut screen, Picker::new(query, sort, purpose), hunt, &news, should_leave)
}

/// A selected log, an anchor in it, and the query.
pub(crate) type PickedMatch = (std::path::PathBuf, Option<String>, String);

fn pick(
    app: &App,
    screen: &mut PickerScreen,
    mut picker: Picker,
    mut hunt: BackgroundSearch,
    news: &Receiver<(usize, SearchMessage)>,
    should_leave: &dyn Fn() -> bool,
) -> io::Result<Option<PickedMatch>> {
    let mut number = hunt.request(&picker.input, picker.sort);
    let mut fresh = true;
    let mut dirty = true;
    loop {
        if dirty {
            screen.terminal.draw(|frame| picker.draw(frame))?;
            dirty = false;
        }
        let mut action = PickerAction::Nothing;
        if event::poll(POLL_INTERVAL)? {
            dirty = true;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                action = picker.handle_key(key);
            }
        } else if should_leave() || is_terminal_gone() {
            return Ok(None);
        }
        match action {
            PickerAction::Nothing => {}
            PickerAction::Quit => return Ok(None),
            PickerAction::Open(path, anchor) => return Ok(Some((path, anchor, picker.input))),
            PickerAction::Copy(text) => copy_to_clipboard(&text)?,
            PickerAction::LoadPreview => load_preview(app, &mut picker),
            PickerAction::Search => {
                picker.start_search();
                number = hunt.request(&picker.input, picker.sort);
                fresh = true;
            }
        }
        while let Ok((of, message)) = news.try_recv() {
            // Ignores messages of earlier searches.
            if of != number {
                continue;
            }
            dirty = true;
            let bad = matches!(message, SearchMessage::Bad(_));
            if picker.receive(message, fresh) == PickerAction::LoadPreview {
                load_preview(app, &mut picker);
            }
            fresh &= bad;
        }
    }
}

/// Returns whether the terminal was closed. Then there are no more keys, and nothing to draw on.
fn is_terminal_gone() -> bool {
    #[cfg(unix)]
    return rustix::termios::tcgetattr(io::stdin()).is_err();
    #[cfg(not(unix))]
    false
}

/// Loads the preview of the selected match.
fn load_preview(app: &App, picker: &mut Picker) {
    let logs = picker.selected_row().map(|row| row.logs.clone()).unwrap_or_default();
    let mask = |text: &str| app.masked_in(&logs, text).into_owned();
    let query = Query::parse(&picker.input, &jiff::Zoned::now()).ok();
    let text_offset = picker.selected_match().map_or(0, |found| found.text_offset);
    let read = picker
        .preview_position()
        .map(|(path, offset, block)| preview::read(&path, offset, block, text_offset, query.as_ref(), &mask));
    picker.preview = match read {
        Some(Ok(preview)) => preview,
        _ => MatchPreview::default(),
    };
}

/// Copies a text to the clipboard through the terminal (OSC 52), which also works over SSH.
fn copy_to_clipboard(text: &str) -> io::Result<()> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let mut out = io::stderr();
    write!(out, "\u{1b}]52;c;{encoded}\u{7}")?;
    out.flush()
}

/// Opens the match with `show`, or the whole session if the anchor cannot be shown.
fn open_match(
    cx: &Context,
    path: &Path,
    anchor: Option<&str>,
    query: &str,
) -> Result<CommandOutcome, CommandError> {
    let place = match anchor {
        Some(anchor) => format!("{}#{anchor}", path.display()),
        None => path.display().to_string(),
    };
    if !io::stdout().is_terminal() {
        let mut answer = cx.ui.output();
        answer.data(&format!("{place}\n"))?;
        answer.finish()?;
        return Ok(CommandOutcome::Done);
    }
    let program = std::env::current_exe()?;
    let show = |place: &OsStr| {
        let mut command = Command::new(&program);
        command.arg("show").arg(place);
        if cx.app.config().mask.is_on() {
            command.arg("--redact");
        }
        // The home of the session contains the sessions that it may be a fork of.
        cx.named_homes.iter().for_each(|home| {
            command.arg("--home").arg(home);
        });
        command
    };
    let mut command = show(place.as_ref());
    if anchor.is_some() {
        command.args(["--find", query]);
    }
    let shown = command.stderr(Stdio::null()).status()?;
    if !shown.success() && anchor.is_some() {
        show(path.as_os_str()).status()?;
    }
    Ok(CommandOutcome::Done)
}

/// The terminal in raw mode on the alternate screen. It is restored when dropped, and after a panic.
struct PickerScreen {
    terminal: Terminal<CrosstermBackend<io::Stderr>>,
}

impl PickerScreen {
    fn open() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_terminal();
            before(panic);
        }));
        enable_raw_mode()?;
        execute!(io::stderr(), EnterAlternateScreen).inspect_err(|_| restore_terminal())?;
        let terminal =
            Terminal::new(CrosstermBackend::new(io::stderr())).inspect_err(|_| restore_terminal())?;
        Ok(Self { terminal })
    }
}

impl Drop for PickerScreen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        restore_terminal();
    }
}

fn restore_terminal() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stderr(), LeaveAlternateScreen, ratatui::crossterm::cursor::Show);
}
