//! Growing sessions, a receiver that fails in every possible way, killed runs and concurrent runs: in the end
//! every complete turn has arrived, with the ids that a single undisturbed run would have produced.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span as Wire;
use threadline_store::SessionFile;
use threadline_testkit::{TestHome, session_uuid};
use threadline_trace::{
    DeliveryError, DeliverySummary, Exporter, HookInput, HttpSender, SpanCollector, SpanReceiver, StateDir,
    run_hook,
};
use threadline_usage::PriceBook;

use crate::receiver::{Fault, Receiver};
use crate::render::options;

/// A deterministic pseudo-random number generator.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A sender that can die right after the receiver accepted a request, before the progress is saved.
struct DyingSender<'a> {
    sender: &'a HttpSender,
    dies: AtomicBool,
}

impl SpanReceiver for DyingSender<'_> {
    fn receive_encoded(
        &self,
        spans: Vec<Wire>,
        tries: u32,
        until: Option<Instant>,
    ) -> Result<DeliverySummary, DeliveryError> {
        let result = self.sender.receive_encoded(spans, tries, until);
        assert!(!self.dies.load(Ordering::Relaxed), "killed");
        result
    }
}

/// Returns the lines of a session with tools, errors, compaction, continuations and sub-agents, to be written
/// one by one.
fn script(n: usize, turns: usize) -> String {
    let mut lines = String::new();
    let mut parent = String::new();
    for t in 1..=turns {
        let own = format!("{n}x{t}");
        let arrow = if parent.is_empty() { String::new() } else { format!("<- {parent} ") };
        lines += &format!("u{own} {arrow}user \"prompt {t}\"\n");
        lines += &format!("a{own} <- u{own} reply msg_{own}a text \"looking\"\n");
        lines += &format!("b{own} <- a{own} reply msg_{own}a tool t{own} Bash {{\"command\":\"true\"}}\n");
        let outcome = if t % 3 == 0 { " error" } else { "" };
        lines += &format!("r{own} <- b{own} result t{own} \"out\"{outcome}\n");
        if t % 4 == 0 {
            lines +=
                &format!("c{own} <- r{own} boundary auto\ns{own} <- c{own} compact-summary \"so far\"\n");
            lines += &format!("d{own} <- s{own} reply msg_{own}b text \"after\"\n");
        } else {
            lines += &format!("d{own} <- r{own} reply msg_{own}b text \"done\"\n");
        }
        lines += &format!("h{own} <- d{own} system stop_hook_summary {{\"hookCount\":1}}\n");
        if t % 5 == 0 {
            // A Stop hook that asks the model to continue.
            lines += &format!("m{own} <- h{own} user \"go on\" meta\n");
            lines += &format!("e{own} <- m{own} reply msg_{own}c text \"more\"\n");
        }
        parent = format!("h{own}");
    }
    lines
}

struct GrowingSession {
    path: PathBuf,
    bytes: Vec<u8>,
    written: usize,
}

impl GrowingSession {
    /// Writes a little more, possibly an incomplete line.
    fn grow(&mut self, dice: &mut SeededRandom) {
        let more = (dice.below(1200) as usize).min(self.bytes.len() - self.written);
        let mut file = fs::OpenOptions::new().append(true).open(&self.path).unwrap();
        file.write_all(&self.bytes[self.written..self.written + more]).unwrap();
        self.written += more;
    }
}

fn exporter<'a>(
    receiver: &'a dyn SpanReceiver,
    states: &'a StateDir,
    book: &'a PriceBook,
    now: i64,
) -> Exporter<'a> {
    Exporter {
        options: options(book),
        receiver,
        states: Some(states),
        use_spool: true,
        tries: 1,
        until: Some(Instant::now() + Duration::from_secs(60)),
        now,
    }
}

fn hook(path: &Path, event: &str, exporter: &Exporter<'_>, states: &StateDir) {
    let input = HookInput {
        session_id: SessionFile::at(path).id.into(),
        transcript_path: path.to_owned(),
        hook_event_name: event.to_owned(),
    };
    // The result is irrelevant: the next run must cope with any failure.
    let _ = run_hook(&input, exporter, states);
}

/// Runs hooks over growing sessions and returns the number of runs.
fn trial(seed: u64, runs: usize) -> u64 {
    let home = TestHome::new();
    let dir = tempfile::tempdir().unwrap();
    let mut dice = SeededRandom(seed);
    let receiver = Receiver::accepting();
    let target = receiver.target();
    let states = StateDir::open(dir.path(), &target);
    states.prepare(&target).unwrap();
    let sender = HttpSender::new(target);
    let book = PriceBook::embedded();
    let mut sessions: Vec<GrowingSession> = (0..3)
        .map(|n| {
            let path = home.session(&format!("s{seed}{n}"), &script(n, runs / 12 + 2));
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, "").unwrap();
            GrowingSession { path, bytes, written: 0 }
        })
        .collect();
    let mut fault_dice = SeededRandom(seed ^ 77);
    receiver.set_faults(move || match fault_dice.below(12) {
        0 => Fault::Hang,
        1 => Fault::Forget,
        2 if fault_dice.below(8) == 0 => Fault::Stall,
        3 => Fault::Status(500),
        4 => Fault::Busy(0),
        5 => Fault::AtMost(3),
        6 => Fault::Partial,
        7 => Fault::Broken,
        8 => Fault::Status(502),
        _ => Fault::None,
    });
    let count = AtomicU64::new(0);
    let mut now = 1_800_000_000_000;
    for _ in 0..runs {
        now += dice.below(20_000) as i64;
        let at = dice.below(3) as usize;
        sessions[at].grow(&mut dice);
        let path = sessions[at].path.clone();
        let event = if dice.below(9) == 0 { "SubagentStop" } else { "PreCompact" };
        count.fetch_add(1, Ordering::Relaxed);
        match dice.below(10) {
            // Killed after the receiver accepted, before the progress was saved.
            0 => {
                let mortal = DyingSender { sender: &sender, dies: AtomicBool::new(true) };
                let run = || hook(&path, event, &exporter(&mortal, &states, &book, now), &states);
                let _ = catch_unwind(AssertUnwindSafe(run));
            }
            // The receiver is unreachable.
            1 => {
                let mut gone = receiver.target();
                gone.url = "http://127.0.0.1:9/v1/traces".to_owned();
                let gone = HttpSender::new(gone);
                hook(&path, event, &exporter(&gone, &states, &book, now), &states);
            }
            // Several runs at once.
            2 => std::thread::scope(|scope| {
                for session in sessions.iter().take(2).chain([&sessions[at]]) {
                    count.fetch_add(1, Ordering::Relaxed);
                    let (sender, states, book) = (&sender, &states, &book);
                    scope.spawn(move || {
                        hook(&session.path, event, &exporter(sender, states, book, now), states);
                    });
                }
            }),
            // The saved state is lost.
            3 if dice.below(4) == 0 => {
                let key = SessionFile::at(&path).id;
                let _ = fs::write(states.dir().join("sessions").join(format!("{key}.json")), "{");
            }
            _ => hook(&path, event, &exporter(&sender, &states, &book, now), &states),
        }
    }
    // Finish without further faults.
    receiver.set_faults(|| Fault::None);
    for session in &mut sessions {
        let mut file = fs::OpenOptions::new().append(true).open(&session.path).unwrap();
        file.write_all(&session.bytes[session.written..]).unwrap();
        for _ in 0..2 {
            now += 3_600_000;
            hook(&session.path, "SessionEnd", &exporter(&sender, &states, &book, now), &states);
        }
    }
    let mut expected = Vec::new();
    for session in &sessions {
        let collector = SpanCollector::default();
        let undisturbed = Exporter { states: None, ..exporter(&collector, &states, &book, now) };
        undisturbed.session(&SessionFile::at(&session.path), Vec::new(), true).unwrap();
        expected.extend(collector.take().iter().map(|span| format!("{}/{}", span.trace, span.id)));
    }
    expected.sort();
    let missing: Vec<_> = expected.iter().filter(|id| !receiver.ids().contains(id)).take(5).collect();
    assert!(missing.is_empty(), "seed {seed}: missing {missing:?}");
    assert_eq!(receiver.ids(), expected, "seed {seed}");
    for session in &sessions {
        let state = states.load(&session_uuid(&SessionFile::at(&session.path).id));
        assert!(state.spool.is_empty() && state.error.is_none(), "seed {seed}: {state:?}");
    }
    count.into_inner()
}

#[test]
fn every_turn_arrives_once_despite_failures() {
    // Intended panics are not printed.
    std::panic::set_hook(Box::new(|info| {
        let text = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
        if !text.contains("killed") {
            eprintln!("{info}");
        }
    }));
    let (trials, runs) = if cfg!(debug_assertions) { (4, 60) } else { (24, 250) };
    let total: u64 = (1..=trials).map(|seed| trial(seed, runs)).sum();
    assert!(total as usize >= trials as usize * runs);
}
