//! A session shown while it is written.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use threadline_session::{Family, Outcome as CallOutcome, Session};
use threadline_store::{Change, Follower, SessionFile};
use threadline_term::{render_end, render_items, render_running};
use threadline_view::{Body, Item, Spending, Telling, TurnView};

use super::{ShowArgs, style, transcript};
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::ui::Answer;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// When nothing was written for so long, a call is said to be running and a turn to have ended.
const QUIET: Duration = Duration::from_secs(2);

/// Shows what a session holds, and then what is written to it.
pub(super) fn run(cx: &Context, args: &ShowArgs, file: &SessionFile) -> Result<Outcome, CommandError> {
    let mut family = Family::default();
    let mut follower = Follower::open(&file.path);
    let mut following = Following::default();
    let mut quiet_since = Instant::now();
    loop {
        let mut fresh = Vec::new();
        let change = follower.poll(|entry, findings| fresh.push((entry, findings)))?;
        let mut answer = cx.ui.answer();
        if matches!(change, Change::Appended | Change::Replaced) {
            quiet_since = Instant::now();
            let mut main = std::mem::take(&mut family.main);
            if change == Change::Replaced {
                main = Session::with_id(&*file.id);
                following = Following::default();
                cx.ui.note("the log was replaced; showing it from its start");
            }
            for (entry, findings) in fresh {
                main.push(entry, findings);
            }
            family = Family::new(main, threadline_app::read_agents(file)?);
            let spending = Spending::of(&family, &*cx.app.prices()?);
            let kept = |path: &str| threadline_app::kept_output(file, path);
            let telling = Telling { family: &family, kept: &kept, spending: Some(&spending) };
            following.take(transcript(args, telling, &|_, _| true).turns, cx, args, &mut answer)?;
        } else if quiet_since.elapsed() >= QUIET {
            following.rest(cx, args, &mut answer)?;
        }
        match answer.finish() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Outcome::Done),
            done => done?,
        }
        std::thread::sleep(LOOK);
    }
}

/// What was shown, and what waits to be.
#[derive(Default)]
struct Following {
    /// The names of what was shown, or is not wanted.
    shown: HashSet<String>,
    /// The turns that were there when it began are behind us.
    begun: bool,
    /// The last turn that has a head.
    headed: usize,
    /// The last turn whose end was told, and how many calls it had then.
    ended: (usize, u64),
    /// The turn under way, with the calls in it that nothing came of yet.
    last: Option<TurnView>,
    /// The calls that were said to be running.
    running: HashSet<String>,
    /// Whether what was shown last ends without an empty line.
    tight: bool,
}

impl Following {
    /// Takes in the turns as they are now.
    fn take(
        &mut self,
        turns: Vec<TurnView>,
        cx: &Context,
        args: &ShowArgs,
        answer: &mut Answer,
    ) -> io::Result<()> {
        let count = turns.last().map_or(0, |turn| turn.number);
        for mut turn in turns {
            let is_last = turn.number == count;
            if !self.begun && args.turns.is_some_and(|range| !range.contains(turn.number, count)) {
                self.shown.extend(turn.items.drain(..).map(|item| item.anchor));
                self.ended = (turn.number, turn.spent.calls);
                continue;
            }
            // What waits for its result is shown with it.
            let waits = |item: &Item| is_last && turn.open && is_waiting(item);
            let (waiting, fresh): (Vec<Item>, Vec<Item>) = std::mem::take(&mut turn.items)
                .into_iter()
                .filter(|item| !self.shown.contains(&item.anchor))
                .partition(waits);
            self.shown.extend(fresh.iter().map(|item| item.anchor.clone()));
            if !fresh.is_empty() && turn.number > self.headed {
                self.headed = turn.number;
                writeln!(answer, "\n── {} · {}", turn.number, turn.anchor)?;
                self.tight = false;
            }
            let told = render_items(&fresh, cx.ui.page(), &style(args));
            // What is said stands apart from what was done.
            let speaks =
                fresh.first().is_some_and(|item| matches!(item.body, Body::Text(_) | Body::Input { .. }));
            if self.tight && speaks && !told.is_empty() {
                writeln!(answer)?;
            }
            if !told.is_empty() {
                self.tight = !told.as_str().ends_with("\n\n");
            }
            answer.text(&told)?;
            if is_last {
                self.last = Some(TurnView { items: waiting, ..turn });
            } else {
                self.end(&turn, cx, answer)?;
            }
        }
        self.begun = true;
        Ok(())
    }

    /// Nothing was written for a while.
    fn rest(&mut self, cx: &Context, args: &ShowArgs, answer: &mut Answer) -> io::Result<()> {
        let Some(mut turn) = self.last.take() else { return Ok(()) };
        for item in turn.items.drain(..).filter(|item| self.running.insert(item.anchor.clone())) {
            answer.text(&render_running(&item, cx.ui.page(), &style(args)))?;
        }
        if !turn.open {
            self.end(&turn, cx, answer)?;
        }
        Ok(())
    }

    /// Tells what a turn took, once.
    fn end(&mut self, turn: &TurnView, cx: &Context, answer: &mut Answer) -> io::Result<()> {
        if turn.spent.calls > 0 && (turn.number, turn.spent.calls) > self.ended {
            self.ended = (turn.number, turn.spent.calls);
            answer.text(&render_end(turn, cx.ui.page()))?;
        }
        Ok(())
    }
}

fn is_waiting(item: &Item) -> bool {
    matches!(&item.body, Body::Call(call) if call.outcome == CallOutcome::Missing)
}
