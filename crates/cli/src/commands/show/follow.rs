//! `show --follow`: a session while it is written.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use threadline_app::{AppError, LiveChange, LiveError, LiveSession, Mask, SessionSelector, TurnSpan};
use threadline_session::{EntryIndex, ToolOutcome as CallOutcome, TurnIndex};
use threadline_store::SessionFile;
use threadline_term::{render_items, render_running, render_turn_summary};
use threadline_view::{
    ItemBody, TranscriptFilter, TranscriptHeader, TranscriptItem, TranscriptLayout, TurnView, wire,
};

use super::{ShowArgs, filter, style};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::ui::OutputStream;

/// Interval between two polls of a followed log.
const INTERVAL: Duration = Duration::from_millis(200);

/// After this time without a change, calls without a result are shown, and a turn as ended.
const QUIET: Duration = Duration::from_secs(2);

/// Shows a session, and then every change to it.
pub(super) fn run(cx: &Context, args: &ShowArgs, file: &SessionFile) -> Result<CommandOutcome, CommandError> {
    let mut session = LiveSession::open(file.clone(), cx.app.prices()?, Mask::default())
        .map_err(|source| AppError::Read { path: file.path.clone(), source })?;
    let mut shown = Shown::default();
    let mut changed_at = Instant::now();
    let mut change = LiveChange::Changed;
    // Whether the last change could not be shown.
    let mut is_behind = false;
    loop {
        if change == LiveChange::Replaced && is_reopened(&mut session)? {
            shown = Shown::default();
            change = LiveChange::Changed;
            cx.ui.note("the log was replaced; showing it from its start");
        }
        let mut answer = cx.ui.output();
        if change == LiveChange::Changed {
            changed_at = Instant::now();
            is_behind = match shown.update(&mut session, cx, args, &mut answer) {
                // The file was replaced or deleted after the refresh; the next one will notice.
                Err(LiveError::Io(error)) if is_vanished(&error) => true,
                done => done.map(|()| false).map_err(live_error)?,
            };
        } else if changed_at.elapsed() >= QUIET {
            shown.rest(&mut session, cx, args, &mut answer).map_err(live_error)?;
        }
        match answer.finish() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(CommandOutcome::Done),
            done => done?,
        }
        std::thread::sleep(INTERVAL);
        change = session.refresh()?;
        if is_behind && change == LiveChange::Same {
            change = LiveChange::Changed;
        }
    }
}

/// Opens a session again after its log was replaced; `false` if there is no log at the moment.
fn is_reopened(session: &mut LiveSession) -> Result<bool, CommandError> {
    match session.reopen() {
        Ok(()) => Ok(true),
        Err(error) if is_vanished(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_vanished(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
}

/// The parts of a conversation that have been shown, and those that are pending.
#[derive(Default)]
struct Shown {
    /// First entry and number of entries of each turn.
    turns: Vec<(Option<EntryIndex>, usize)>,
    /// Entries that have been read, by index.
    entries: HashSet<EntryIndex>,
    /// Anchors of items that have been shown or are not wanted.
    items: HashSet<String>,
    /// Lines of calls without a result.
    pending_lines: HashSet<u64>,
    /// Whether the turns that existed at the start have been shown.
    has_begun: bool,
    /// Number of the last turn with a shown heading.
    headed: usize,
    /// Number and model calls of the last turn with a shown end.
    ended: (usize, u64),
    /// The last turn, with its calls without a result.
    last: Option<TurnView>,
    /// Anchors of calls that were shown without a result.
    running: HashSet<String>,
    /// Whether the last output did not end with an empty line.
    is_tight: bool,
}

impl Shown {
    /// Shows the added lines. Reads only the lines of new entries and of pending calls.
    fn update(
        &mut self,
        session: &mut LiveSession,
        cx: &Context,
        args: &ShowArgs,
        answer: &mut OutputStream,
    ) -> Result<(), LiveError> {
        let (selector, filter) = (SessionSelector::default(), filter(args, args.level()));
        let (layout, turns) = self.changed_turns(session);
        if cx.json && !self.has_begun {
            let header = TranscriptHeader { n_turns: turns.len(), ..layout.header.clone() };
            answer.json(&wire::session(&header)).map_err(unwritten)?;
        }
        for (i, turn) in layout.turns.enumerated() {
            let number = turn.turn.number;
            if !self.has_begun && args.turns.is_some_and(|range| !range.contains(number, turns.len())) {
                self.entries.extend(&turn.entries);
                self.ended = (number, turn.turn.spent.calls);
                continue;
            }
            let items = self.read(session, &selector, &layout, i)?;
            let is_last = number == turns.len();
            self.show(TurnView { items, ..turn.turn.clone() }, is_last, &filter, cx, args, answer)?;
        }
        self.turns = turns;
        self.has_begun = true;
        Ok(())
    }

    /// Returns the layout of the turns that changed and of the previous last turn, which may have ended, and
    /// the extents of all turns.
    fn changed_turns(
        &self,
        session: &mut LiveSession,
    ) -> (TranscriptLayout, Vec<(Option<EntryIndex>, usize)>) {
        let was_last = self.turns.len().saturating_sub(1);
        let mut turns = Vec::new();
        let layout = session.layout_turns(&mut |turn| {
            let (at, extent) = (turns.len(), (turn.entries.first().copied(), turn.entries.len()));
            turns.push(extent);
            at == was_last || self.turns.get(at) != Some(&extent)
        });
        (layout, turns)
    }

    /// Reads the new entries of a turn, and those of pending calls.
    fn read(
        &mut self,
        session: &mut LiveSession,
        selector: &SessionSelector,
        layout: &TranscriptLayout,
        turn: TurnIndex,
    ) -> Result<Vec<TranscriptItem>, LiveError> {
        let entries = &layout.turns[turn].entries;
        let log = session.log(selector)?.1;
        let is_pending = |idx: EntryIndex| self.pending_lines.contains(&log.entries()[idx].at().line_no);
        let mut spans: Vec<TurnSpan> = Vec::new();
        for (at, &idx) in entries.iter().enumerate() {
            if self.entries.contains(&idx) && !is_pending(idx) {
                continue;
            }
            match spans.last_mut() {
                Some(span) if span.entries.end == at => span.entries.end += 1,
                _ => spans.push(TurnSpan { turn, entries: at..at + 1 }),
            }
        }
        let read = session.read(selector, layout, &spans)?;
        let items = (0..spans.len()).flat_map(|span| read.items(layout, span));
        let mut items: Vec<TranscriptItem> =
            items.filter(|item| !self.items.contains(&item.anchor)).collect();
        session.read_agents(&mut items)?;
        self.entries.extend(entries);
        Ok(items)
    }

    /// Shows new items of a turn.
    fn show(
        &mut self,
        mut turn: TurnView,
        is_last: bool,
        filter: &TranscriptFilter,
        cx: &Context,
        args: &ShowArgs,
        answer: &mut OutputStream,
    ) -> io::Result<()> {
        // A call of the last turn is shown together with its result.
        let is_pending = |item: &TranscriptItem| is_last && turn.open && is_without_result(item);
        let (pending, fresh): (Vec<TranscriptItem>, Vec<TranscriptItem>) =
            std::mem::take(&mut turn.items).into_iter().partition(is_pending);
        self.items.extend(fresh.iter().map(|item| item.anchor.clone()));
        if is_last {
            self.pending_lines = pending.iter().map(|item| item.line_no).collect();
        }
        let filtered = |items: Vec<TranscriptItem>| {
            let mut turn = TurnView { items, ..turn.clone() };
            if filter.keep_turn(&mut turn) { turn.items } else { Vec::new() }
        };
        let (pending, fresh) = (filtered(pending), filtered(fresh));
        if cx.json {
            self.write_json(&turn, &fresh, filter, answer)?;
        } else {
            self.write_text(&turn, &fresh, cx, args, answer)?;
        }
        if is_last {
            self.last = Some(TurnView { items: pending, ..turn });
        } else if turn.number <= self.headed {
            self.end(&turn, cx, answer)?;
        }
        Ok(())
    }

    /// Writes new items of a turn as text.
    fn write_text(
        &mut self,
        turn: &TurnView,
        fresh: &[TranscriptItem],
        cx: &Context,
        args: &ShowArgs,
        answer: &mut OutputStream,
    ) -> io::Result<()> {
        if !fresh.is_empty() && turn.number > self.headed {
            self.headed = turn.number;
            writeln!(answer, "\n── {} · {}", turn.number, turn.anchor)?;
            self.is_tight = false;
        }
        let text = render_items(fresh, cx.ui.page(), &style(args.level()));
        // An empty line separates prose from tool calls.
        let is_prose =
            fresh.first().is_some_and(|item| matches!(item.body, ItemBody::Text(_) | ItemBody::Input { .. }));
        if self.is_tight && is_prose && !text.is_empty() {
            writeln!(answer)?;
        }
        if !text.is_empty() {
            self.is_tight = !text.as_str().ends_with("\n\n");
        }
        answer.text(&text)
    }

    /// Writes new items of a turn as JSON.
    fn write_json(
        &mut self,
        turn: &TurnView,
        fresh: &[TranscriptItem],
        filter: &TranscriptFilter,
        answer: &mut OutputStream,
    ) -> io::Result<()> {
        if !fresh.is_empty() && turn.number > self.headed {
            self.headed = turn.number;
            answer.json(&wire::turn(turn)).map_err(unwritten)?;
        }
        let mut result = Ok(());
        wire::items(fresh, turn.number, &mut |object| {
            if result.is_ok() && !object.is_call_around(filter) {
                result = answer.json(&object);
            }
        });
        result.map_err(unwritten)
    }

    /// Shows calls without a result, and the end of a turn, after a while without a change.
    fn rest(
        &mut self,
        session: &mut LiveSession,
        cx: &Context,
        args: &ShowArgs,
        answer: &mut OutputStream,
    ) -> Result<(), LiveError> {
        let Some(mut turn) = self.last.take() else { return Ok(()) };
        let is_live = !turn.items.is_empty() && session.is_live();
        for item in std::mem::take(&mut turn.items) {
            if !self.running.insert(item.anchor.clone()) {
                continue;
            }
            if cx.json {
                self.write_json(&turn, &[item], &filter(args, args.level()), answer)?;
                continue;
            }
            let (page, style) = (cx.ui.page(), style(args.level()));
            answer.text(&match is_live {
                true => render_running(&item, page, &style),
                false => render_items(&[item], page, &style),
            })?;
        }
        if !turn.open && turn.number <= self.headed {
            self.end(&turn, cx, answer)?;
        }
        Ok(())
    }

    /// Shows time and costs of a turn, once. In JSON, this is the turn again, as it ended.
    fn end(&mut self, turn: &TurnView, cx: &Context, answer: &mut OutputStream) -> io::Result<()> {
        if turn.spent.calls > 0 && (turn.number, turn.spent.calls) > self.ended {
            self.ended = (turn.number, turn.spent.calls);
            if cx.json {
                return answer.json(&wire::turn(turn)).map_err(unwritten);
            }
            answer.text(&render_turn_summary(turn, cx.ui.page()))?;
        }
        Ok(())
    }
}

fn is_without_result(item: &TranscriptItem) -> bool {
    matches!(&item.body, ItemBody::Call(call) if call.outcome == CallOutcome::Missing)
}

/// Converts an error of writing an object.
fn unwritten(error: CommandError) -> io::Error {
    let kind = if error.is_closed_pipe() { io::ErrorKind::BrokenPipe } else { io::ErrorKind::Other };
    io::Error::new(kind, error.to_string())
}

fn live_error(error: LiveError) -> CommandError {
    match error {
        LiveError::Io(error) => error.into(),
        error => CommandError::new(error.to_string()),
    }
}
