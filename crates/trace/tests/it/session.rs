//! Export of sessions from log to receiver: only new turns are sent.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use threadline_store::SessionFile;
use threadline_testkit::{TestHome, session_uuid};
use threadline_trace::{
    ExportError, ExportSummary, Exporter, HookInput, HookRun, HttpSender, Protocol, SpanCollector,
    SpanReceiver, StateDir, run_hook,
};
use threadline_usage::PriceBook;

use crate::receiver::{Fault, Receiver};
use crate::render::options;

const ONE: &str = "u1 user \"one\"\na1 <- u1 reply msg_1 text \"eins\"\n";
const TWO: &str = "u2 <- a1 user \"two\" @10:01:00\na2 <- u2 reply msg_2 text \"zwei\"\n";

/// A home, a receiver, and the export states.
pub(crate) struct TraceFixture {
    pub(crate) home: TestHome,
    pub(crate) receiver: Receiver,
    pub(crate) states: StateDir,
    _dir: tempfile::TempDir,
    sender: HttpSender,
    book: PriceBook,
}

impl TraceFixture {
    pub(crate) fn new() -> Self {
        let receiver = Receiver::accepting();
        let dir = tempfile::tempdir().unwrap();
        let states = StateDir::open(dir.path(), &receiver.target());
        states.prepare(&receiver.target()).unwrap();
        let sender = HttpSender::new(receiver.target());
        Self { home: TestHome::new(), receiver, states, _dir: dir, sender, book: PriceBook::embedded() }
    }

    fn exporter(&self) -> Exporter<'_> {
        Exporter {
            options: options(&self.book),
            receiver: &self.sender,
            states: Some(&self.states),
            use_spool: true,
            tries: 1,
            until: Some(Instant::now() + Duration::from_secs(60)),
            now: 1_800_000_000_000,
        }
    }

    /// Exports a session with secrets replaced, and returns everything that was received so far.
    fn send_redacted(&self, path: &Path) -> String {
        let rules = threadline_secret::Rules::new();
        let mut exporter = self.exporter();
        exporter.options.redact = Some((&rules).into());
        let file = SessionFile::at(path);
        exporter.session(&file, file.agents().found, false).unwrap();
        let received = self.receiver.received.lock();
        format!("{:?}", received.spans)
    }

    pub(crate) fn send(&self, path: &Path) -> Result<ExportSummary, ExportError> {
        let file = SessionFile::at(path);
        self.exporter().session(&file, file.agents().found, false)
    }

    pub(crate) fn hook(&self, path: &Path, event: &str) -> HookRun {
        let input = HookInput {
            session_id: SessionFile::at(path).id.into(),
            transcript_path: path.to_owned(),
            hook_event_name: event.to_owned(),
        };
        run_hook(&input, &self.exporter(), &self.states).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let received = self.receiver.received.lock();
        let mut spans: Vec<_> = received.spans.values().collect();
        spans.sort_by_key(|span| (span.start_time_unix_nano, span.parent_span_id.len(), span.name.clone()));
        spans.iter().map(|span| span.name.clone()).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.receiver.received.lock().count
    }
}

pub(crate) fn append(path: &Path, notation: &str) {
    // The notation resolves only parents in its own lines; `?` marks parents from elsewhere.
    let bytes = threadline_testkit::log_of(&SessionFile::at(path).id, &notation.replace("<- ", "<- ?"));
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(&bytes).unwrap();
}

fn error(result: Result<ExportSummary, ExportError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn only_new_turns_are_sent() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    let first = world.send(&path).unwrap();
    assert_eq!((first.turns, first.spans), (1, 2));
    assert_eq!(world.send(&path).unwrap().spans, 0);
    append(&path, TWO);
    let second = world.send(&path).unwrap();
    assert_eq!((second.turns, second.spans), (1, 2));
    assert!(second.bytes < fs::metadata(&path).unwrap().len());
    assert_eq!(world.names(), ["Turn 1", "claude-opus-4-8", "Turn 2", "claude-opus-4-8"]);
    assert_eq!(world.count(), 4);
}

#[test]
fn an_unfinished_turn_is_not_sent() {
    let world = TraceFixture::new();
    let path = world.home.session("s", &format!("{ONE}u2 <- a1 user \"two\"\n"));
    let sent = world.send(&path).unwrap();
    assert_eq!((sent.turns, sent.is_open), (1, true));
    append(&path, "a2 <- u2 reply msg_2 tool t1 Bash {}\n");
    assert!(world.send(&path).unwrap().is_open);
    append(&path, "r2 <- a2 result t1 \"ok\"\n");
    assert!(world.send(&path).unwrap().is_open);
    append(&path, "a3 <- r2 reply msg_3 text \"done\"\n");
    assert_eq!(world.send(&path).unwrap().spans, 4);
    assert_eq!(world.count(), 6);
}

#[test]
fn an_incomplete_line_is_not_sent() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    assert_eq!(world.send(&path).unwrap().spans, 0);
    fs::write(&path, &whole).unwrap();
    assert_eq!(world.send(&path).unwrap().spans, 2);
}

#[test]
fn a_turn_continued_after_it_was_sent_gets_further_spans() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.send(&path).unwrap();
    append(&path, "s1 <- a1 system stop_hook_summary {\"hookCount\":1}\n");
    assert_eq!(world.send(&path).unwrap().spans, 0, "lines written by hooks do not continue a turn");
    append(&path, "u2 <- s1 user \"not yet\" meta @+1m\na2 <- u2 reply msg_2 text \"still\" @+1m\n");
    assert_eq!(world.send(&path).unwrap().spans, 2);
    let received = world.receiver.received.lock();
    assert_eq!(received.spans.len(), 3);
    let root = received.spans.values().find(|span| span.parent_span_id.is_empty()).unwrap();
    let input =
        root.attributes.iter().find(|attribute| attribute.key == "langfuse.observation.input").unwrap();
    assert!(format!("{input:?}").contains("one"));
    assert_eq!((root.end_time_unix_nano - root.start_time_unix_nano) / 1_000_000_000, 121);
}

#[test]
fn a_lost_or_malformed_state_only_costs_time() {
    let world = TraceFixture::new();
    let path = world.home.session("s", &format!("{ONE}{TWO}"));
    world.send(&path).unwrap();
    let ids = world.receiver.ids();
    let state = world.states.dir().join("sessions").join(format!("{}.json", session_uuid("s")));
    for odd in [None, Some("[]"), Some("{\"mark\":7}"), Some("{\"turns\":\"x\"}"), Some("\"\""), Some("{")] {
        match odd {
            Some(text) => fs::write(&state, text).unwrap(),
            None => fs::remove_file(&state).unwrap(),
        }
        assert_eq!(world.send(&path).unwrap().spans, 4, "{odd:?}");
        assert_eq!(world.receiver.ids(), ids);
    }
}

#[test]
fn a_rewritten_log_sends_nothing_twice() {
    let world = TraceFixture::new();
    let path = world.home.session("s", &format!("{ONE}{TWO}"));
    world.send(&path).unwrap();
    let ids = world.receiver.ids();
    let text = fs::read_to_string(&path).unwrap().replace("eins", "uno");
    let other = path.with_extension("new");
    fs::write(&other, text).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(world.send(&path).unwrap().spans, 0);
    assert_eq!(world.receiver.ids(), ids);
    assert_eq!(world.count(), 4);
}

/// The edit removes the first reply, which the trace id is derived from; the remaining uuids are unchanged.
#[test]
fn a_turn_without_its_first_reply_is_not_sent_again_and_keeps_its_trace() {
    let world = TraceFixture::new();
    let log = r#"
u1 user "one"
a1 <- u1 reply msg_1 tool t1 Bash {"command":"ls"}
r1 <- a1 result t1 "ok"
a2 <- r1 reply msg_2 text "eins"
u2 <- a2 user "two" @10:01:00
a3 <- u2 reply msg_3 tool t2 Bash {"command":"ls"}
r2 <- a3 result t2 "ok"
a4 <- r2 reply msg_4 text "zwei"
"#;
    let path = world.home.session("s", log);
    assert_eq!(world.send(&path).unwrap().turns, 2);
    let ids = world.receiver.ids();
    let kept = ["msg_1", "msg_3", "t1\"", "t2\""];
    let text = fs::read_to_string(&path).unwrap();
    let stripped: String =
        text.split_inclusive('\n').filter(|line| !kept.iter().any(|gone| line.contains(gone))).collect();
    let other = path.with_extension("new");
    fs::write(&other, stripped).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(world.send(&path).unwrap().spans, 0);
    assert_eq!(world.receiver.ids(), ids);
    assert_eq!(world.send(&path).unwrap().spans, 0);
    append(&path, "n1 <- a4 user \"more\" meta @10:05:00\nb1 <- n1 reply msg_5 text \"still\"\n");
    assert_eq!(world.send(&path).unwrap().spans, 2);
    // The root again, and one new generation in the same trace.
    assert_eq!(world.receiver.ids().len(), ids.len() + 1);
    append(&path, "u3 <- b1 user \"three\" @10:09:00\na5 <- u3 reply msg_6 text \"drei\"\n");
    assert_eq!(world.send(&path).unwrap().turns, 1);
}

#[test]
fn turns_copied_by_a_fork_are_sent_by_the_original_session() {
    let world = TraceFixture::new();
    let first = world.home.session("s", ONE);
    world.send(&first).unwrap();
    let origin = session_uuid("s");
    let copied = ONE.replace(
        "\"one\"",
        &format!("\"one\" +{{\"forkedFrom\":{{\"sessionId\":\"{origin}\",\"messageUuid\":\"u1\"}}}}"),
    );
    let fork = world.home.session("f", &format!("{copied}{TWO}"));
    assert_eq!(world.send(&fork).unwrap().spans, 2);
    assert_eq!(world.names().len(), 4);
    // If the first session's log is gone, the fork sends its turns, under the original session id.
    fs::remove_file(&first).unwrap();
    fs::remove_file(world.states.dir().join("sessions").join(format!("{}.json", session_uuid("f")))).unwrap();
    let ids = world.receiver.ids();
    assert_eq!(world.send(&fork).unwrap().spans, 4);
    assert_eq!(world.receiver.ids(), ids);
}

#[test]
fn the_state_advances_only_after_the_receiver_accepted() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    for fault in [
        Fault::Hang,
        Fault::Stall,
        Fault::Status(500),
        Fault::Status(503),
        Fault::Busy(60),
        Fault::Status(401),
    ] {
        world.receiver.set_faults(move || fault);
        let file = SessionFile::at(&path);
        let exporter = Exporter { use_spool: false, ..world.exporter() };
        exporter.session(&file, Vec::new(), false).unwrap_err();
        assert_eq!(world.states.load(&session_uuid("s")).turns, 0, "{fault:?}");
    }
    world.receiver.set_faults(|| Fault::None);
    assert_eq!(world.send(&path).unwrap().spans, 2);
    assert_eq!(world.states.load(&session_uuid("s")).error, None);
}

#[test]
fn undelivered_spans_survive_deletion_of_the_log() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.receiver.set_faults(|| Fault::Status(503));
    assert_eq!(error(world.send(&path)), "the receiver returned 503 no");
    assert_eq!(world.states.load(&session_uuid("s")).spool.len(), 1);
    world.receiver.set_faults(|| Fault::None);
    let other = world.home.session("other", TWO.replace("<- a1 ", "").as_str());
    fs::write(&path, "").unwrap();
    let HookRun::Done(exports) = world.hook(&other, "Stop") else { panic!() };
    assert_eq!(exports.len(), 2);
    assert_eq!(world.names(), ["Turn 1", "claude-opus-4-8", "Turn 1", "claude-opus-4-8"]);
    assert_eq!(fs::read_dir(world.states.spool_dir()).unwrap().count(), 0);
    assert!(world.states.load(&session_uuid("s")).spool.is_empty());
}

#[test]
fn turns_delivered_from_the_spool_are_counted() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.receiver.set_faults(|| Fault::Status(503));
    world.send(&path).unwrap_err();
    world.receiver.set_faults(|| Fault::None);
    let exported = world.send(&path).unwrap();
    assert_eq!((exported.turns, exported.spans), (1, 2));
}

#[test]
fn a_lost_or_broken_spool_is_rebuilt_from_the_log() {
    for broken in [true, false] {
        let world = TraceFixture::new();
        let path = world.home.session("s", ONE);
        world.receiver.set_faults(|| Fault::Status(503));
        world.send(&path).unwrap_err();
        let file = fs::read_dir(world.states.spool_dir()).unwrap().next().unwrap().unwrap().path();
        if broken {
            fs::write(&file, "x").unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        world.receiver.set_faults(|| Fault::None);
        assert_eq!(world.send(&path).unwrap().spans, 2);
    }
}

#[test]
fn a_failed_receiver_is_not_contacted_for_a_while() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.receiver.set_faults(|| Fault::Busy(60));
    assert!(matches!(world.hook(&path, "Stop"), HookRun::Done(_)));
    let HookRun::Backoff(until) = world.hook(&path, "Stop") else { panic!() };
    assert_eq!(until, 1_800_000_060_000, "as long as it asked for");
}

#[test]
fn a_request_that_is_too_large_is_split() {
    let world = TraceFixture::new();
    let many: String =
        (1..40).map(|n| format!("u{n} user \"{n}\"\na{n} <- u{n} reply msg_{n} text \"{n}\"\n")).collect();
    let path = world.home.session("s", &many);
    world.receiver.set_faults(|| Fault::AtMost(7));
    let sent = world.send(&path).unwrap();
    assert_eq!((sent.spans, sent.received.refused), (78, 0));
    assert_eq!(world.receiver.ids().len(), 78);
}

/// Returns a turn of 1202 spans: 601 replies, 600 calls, and the turn itself.
fn long_turn() -> String {
    let mut log = "u1 user \"one\"\n".to_owned();
    let mut parent = "u1".to_owned();
    for n in 0..600 {
        log += &format!("a{n} <- {parent} reply msg_{n} tool t{n} Bash {{\"command\":\"true\"}}\n");
        log += &format!("r{n} <- a{n} result t{n} \"out\"\n");
        parent = format!("r{n}");
    }
    log + &format!("z <- {parent} reply msg_z text \"done\"\n")
}

#[test]
fn a_long_turn_is_sent_in_several_requests() {
    let world = TraceFixture::new();
    let path = world.home.session("s", &long_turn());
    let sent = world.send(&path).unwrap();
    assert_eq!((sent.spans, sent.turns, sent.received.requests), (1202, 1, 3));
    assert_eq!(world.receiver.ids().len(), 1202);
    assert_eq!(world.send(&path).unwrap().spans, 0);
}

#[test]
fn a_failure_within_a_turn_loses_no_span() {
    for (fail_at, use_spool) in [0, 1, 2].into_iter().flat_map(|at| [(at, true), (at, false)]) {
        let world = TraceFixture::new();
        let path = world.home.session("s", &long_turn());
        let mut n_requests = 0;
        world.receiver.set_faults(move || {
            n_requests += 1;
            if n_requests > fail_at { Fault::Status(503) } else { Fault::None }
        });
        let exporter = Exporter { use_spool, ..world.exporter() };
        exporter.session(&SessionFile::at(&path), Vec::new(), false).unwrap_err();
        let state = world.states.load(&session_uuid("s"));
        assert_eq!((state.turns > 0, state.spool.is_empty()), (use_spool, !use_spool), "{fail_at}");
        world.receiver.set_faults(|| Fault::None);
        if use_spool {
            // All that was not delivered is in the spool.
            fs::write(&path, "").unwrap();
        }
        let sent = world.send(&path).unwrap();
        assert_eq!(sent.turns, 1, "{fail_at} {use_spool}");
        assert_eq!(world.receiver.ids().len(), 1202, "{fail_at} {use_spool}");
    }
}

#[test]
fn a_span_that_is_never_accepted_is_counted_and_reported() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.receiver.set_faults(|| Fault::AtMost(0));
    let sent = world.send(&path).unwrap();
    assert_eq!((sent.received.refused, sent.spans, sent.turns), (2, 0, 0));
    let state = world.states.load(&session_uuid("s"));
    assert_eq!((state.refused, state.error.as_deref()), (2, Some("the receiver returned 413")));
}

#[test]
fn a_partial_success_is_reported() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.receiver.set_faults(|| Fault::Partial);
    let sent = world.send(&path).unwrap();
    assert_eq!((sent.received.refused, sent.received.complaint.as_deref()), (1, Some("not that one")));
}

#[test]
fn a_cut_off_response_is_a_success_and_no_response_is_a_failure() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.receiver.set_faults(|| Fault::Broken);
    assert_eq!(world.send(&path).unwrap().spans, 2);
    let path = world.home.session("t", ONE);
    world.receiver.set_faults(|| Fault::Forget);
    world.send(&path).unwrap_err();
}

#[test]
fn json_and_protobuf_requests_are_equivalent() {
    let world = TraceFixture::new();
    let path = world.home.session("s", ONE);
    world.send(&path).unwrap();
    let before = world.receiver.received.lock().spans.clone();
    let mut target = world.receiver.target();
    target.protocol = Protocol::Json;
    target.gzip = false;
    let sender = HttpSender::new(target);
    let exporter = Exporter { receiver: &sender, states: None, ..world.exporter() };
    exporter.session(&SessionFile::at(&path), Vec::new(), false).unwrap();
    let received = world.receiver.received.lock();
    assert_eq!(received.spans, before);
    assert!(received.heads[1].contains("application/json"));
    assert!(received.heads[0].contains("content-encoding: gzip") && received.heads[0].contains("x-test: 1"));
}

#[test]
fn the_previous_session_is_sent_first_and_its_failure_is_not_fatal() {
    let world = TraceFixture::new();
    let before = world.home.session("before", ONE);
    let first = ONE.replace("\"one\"", &format!("\"one\" session={}", session_uuid("before")));
    let path = world.home.session("s", &format!("{}{TWO}", first.replace("msg_1", "msg_9")));
    let HookRun::Done(exports) = world.hook(&path, "Stop") else { panic!() };
    let sessions: Vec<_> = exports.iter().map(|exports| exports.session.clone()).collect();
    assert_eq!(sessions, [session_uuid("before"), session_uuid("s")]);
    assert_eq!(world.receiver.ids().len(), 6);
    // A directory in place of the log cannot be read.
    fs::remove_file(&before).unwrap();
    fs::create_dir(&before).unwrap();
    append(&path, "u3 <- a2 user \"three\"\na3 <- u3 reply msg_3 text \"drei\"\n");
    let HookRun::Done(exports) = world.hook(&path, "Stop") else { panic!() };
    assert!(exports[0].result.is_err());
    assert_eq!(exports[1].result.as_ref().unwrap().spans, 2);
}

#[test]
fn a_session_that_ends_sends_its_unfinished_turn() {
    let world = TraceFixture::new();
    let path = world.home.session("s", "u1 user \"one\"\na1 <- u1 reply msg_1 tool t1 Bash {}\n");
    world.hook(&path, "SessionEnd");
    assert_eq!(world.names(), ["Turn 1", "claude-opus-4-8", "Bash"]);
}

fn agents(world: &TraceFixture) -> PathBuf {
    let path = world.home.session(
        "s",
        "u1 user \"go\"\na1 <- u1 reply msg_1 tool t1 Agent {\"prompt\":\"look\"}\n\
         r1 <- a1 result t1 \"started\" {\"status\":\"async_launched\",\"isAsync\":true,\"agentId\":\"x1\"}\n\
         a2 <- r1 reply msg_2 text \"it runs\"\n",
    );
    let running = "x1 user \"look\" @10:00:02\nx2 <- x1 reply msg_x1 tool t9 Grep {} @10:00:03\n";
    world.home.agent("s", "x1", running, Some("{\"agentType\":\"Explore\",\"toolUseId\":\"t1\"}"));
    path
}

#[test]
fn a_sub_agent_in_the_background_is_sent_when_it_is_done() {
    let world = TraceFixture::new();
    let path = agents(&world);
    assert_eq!(world.send(&path).unwrap().spans, 4);
    assert_eq!(world.states.load(&session_uuid("s")).pending.len(), 1);
    assert_eq!(world.send(&path).unwrap().spans, 0);
    let log = path.with_extension("").join("subagents/agent-x1.jsonl");
    append(&log, "x3 <- x2 result t9 \"hit\" @10:01:00\nx4 <- x3 reply msg_x2 text \"found\"\n");
    // The agent, two messages and a tool call.
    assert_eq!(world.send(&path).unwrap().spans, 4);
    assert_eq!(world.states.load(&session_uuid("s")).pending.len(), 0);
    assert_eq!(world.send(&path).unwrap().spans, 0);
    let received = world.receiver.received.lock();
    let agent = received.spans.values().find(|span| span.name == "Explore").unwrap();
    let call = received.spans.values().find(|span| span.name == "Agent").unwrap();
    assert_eq!((&agent.parent_span_id, &agent.trace_id), (&call.span_id, &call.trace_id));
    // Exporting the finished session in one run gives the same ids.
    let collector = SpanCollector::default();
    let exporter = Exporter { receiver: &collector as &dyn SpanReceiver, states: None, ..world.exporter() };
    let file = SessionFile::at(&path);
    exporter.session(&file, file.agents().found, true).unwrap();
    let mut whole: Vec<_> =
        collector.take().iter().map(|span| (span.trace.0.to_vec(), span.id.0.to_vec())).collect();
    whole.sort();
    assert_eq!(whole, received.spans.keys().cloned().collect::<Vec<_>>());
}

#[test]
fn a_resumed_sub_agent_has_another_run() {
    let world = TraceFixture::new();
    let path = agents(&world);
    let log = path.with_extension("").join("subagents/agent-x1.jsonl");
    append(&log, "x3 <- x2 result t9 \"hit\" @10:00:03\nx4 <- x3 reply msg_x2 text \"found\"\n");
    assert_eq!(world.send(&path).unwrap().spans, 8);
    append(&path, "u2 <- a2 user \"more\" @10:05:00\na3 <- u2 reply msg_3 text \"so be it\" @10:06:00\n");
    append(&log, "x5 <- x4 user \"more\" @10:05:30\nx6 <- x5 reply msg_x3 text \"more\" @10:05:40\n");
    assert_eq!(world.send(&path).unwrap().spans, 4);
    assert_eq!(world.names().iter().filter(|name| *name == "Explore").count(), 2);
}

#[test]
fn a_compaction_agent_belongs_to_the_compacted_turn() {
    let world = TraceFixture::new();
    // `/compact` is logged after the boundary, with the time it was typed.
    let path = world.home.session(
        "s",
        "u1 user \"one\"\na1 <- u1 reply msg_1 text \"eins\"\nb1 <- a1 boundary manual @10:02:00\n\
         s1 <- b1 compact-summary \"so far\" @10:02:00\nc1 <- s1 user \"<command-name>/compact</command-name>\" @10:00:30\n\
         u2 <- c1 user \"two\" @10:05:00\na2 <- u2 reply msg_2 text \"zwei\"\n",
    );
    let summing = "x0 user \"<system-reminder>old</system-reminder>\" @09:00:00\n\
                   x1 <- x0 user \"sum up\" @10:01:00\nx2 <- x1 reply msg_x text \"so far\" @10:01:50\n";
    world.home.agent("s", "acompact-1", summing, None);
    world.send(&path).unwrap();
    let received = world.receiver.received.lock();
    let named = |name: &str| received.spans.values().find(|span| span.name == name).unwrap();
    let (agent, first) = (named("compaction"), named("Turn 1"));
    assert_eq!((&agent.trace_id, &agent.parent_span_id), (&first.trace_id, &first.span_id));
    let start = agent.start_time_unix_nano - first.start_time_unix_nano;
    assert_eq!(start / 1_000_000_000, 60);
}

#[test]
fn concurrent_runs_send_nothing_twice() {
    let world = TraceFixture::new();
    let path = world.home.session("s", &format!("{ONE}{TWO}"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| world.send(&path).unwrap());
        }
    });
    assert_eq!(world.count(), 4);
}

#[test]
fn a_secret_is_replaced_in_all_turns_of_an_export() {
    let fixture = TraceFixture::new();
    let path = fixture.home.session(
        "loom",
        r#"u1 user "connect with Hunter22secret"
a1 <- u1 reply msg_1 tool t1 Bash {"command":"mysql -u root -pHunter22secret"}
r1 <- a1 result t1 "ok"
a2 <- r1 reply msg_2 text "done"
u2 <- a2 user "and with Heddle42weft?" @10:01:00
a3 <- u2 reply msg_3 text "not with Hunter22secret"
u3 <- a3 user "it is in .env" @10:02:00
a4 <- u3 reply msg_4 text "DB_PASSWORD=Heddle42weft"
"#,
    );
    let received = fixture.send_redacted(&path);
    assert!(received.contains("Turn 3"), "{received}");
    assert!(received.contains("and with [secret:assignment]?"), "{received}");
    assert!(!received.contains("Hunter22secret") && !received.contains("Heddle42weft"), "{received}");
}

#[test]
fn a_secret_of_an_earlier_export_is_replaced_without_being_stored() {
    let fixture = TraceFixture::new();
    let path = fixture.home.session(
        "loom",
        r#"u1 user "go"
a1 <- u1 reply msg_1 tool t1 Bash {"command":"mysql -u root -pHunter22secret"}
r1 <- a1 result t1 "ok"
a2 <- r1 reply msg_2 text "done"
"#,
    );
    let agent = "x1 user \"p\"\nx2 <- x1 reply msg_9 text \"curl -u ada:8fj2Lq0Zx71P https://cloth\"\n";
    fixture.home.agent("loom", "a1b2c3d", agent, None);
    fixture.send_redacted(&path);
    append(&path, "u2 <- a2 user \"again with Hunter22secret and 8fj2Lq0Zx71P\" @10:01:00\n");
    append(&path, "a3 <- u2 reply msg_3 text \"zwei\"\n");
    let received = fixture.send_redacted(&path);
    assert!(received.contains("again with [secret:password] and [secret:password]"), "{received}");
    for file in walk(fixture.states.dir()) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains("Hunter22secret") && !text.contains("8fj2Lq0Zx71P"), "{}", file.display());
    }
    // A state of an earlier version has no offsets, so the lines that were sent are read again.
    for file in walk(fixture.states.dir()).into_iter().filter(|file| file.extension().is_some()) {
        let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert!(state.as_object_mut().unwrap().remove("secrets").is_some_and(|lines| lines.is_object()));
        fs::write(&file, state.to_string()).unwrap();
    }
    append(&path, "u3 <- a3 user \"once more with Hunter22secret\" @10:02:00\n");
    append(&path, "a4 <- u3 reply msg_4 text \"drei\"\n");
    let received = fixture.send_redacted(&path);
    assert!(received.contains("once more with [secret:password]"), "{received}");
    assert!(!received.contains("Hunter22secret"), "{received}");
}

/// Returns the files below a folder.
fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
