//! A session built part by part from an abridged log equals the session built from whole lines.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use threadline_app::{App, AppConfig, LiveSession, Mask, PriceBook, SessionFile, SessionSelector};
use threadline_testkit::TestHome;
use threadline_view::{ItemBody, Transcript, TranscriptItem, TurnView, outline};

fn open(file: SessionFile, prices: Arc<PriceBook>) -> io::Result<LiveSession> {
    LiveSession::open(file, prices, Mask::default())
}

/// A session with its sub-agents, read whole.
fn whole_transcript(file: &SessionFile) -> Transcript {
    App::new(AppConfig::default()).load(file).unwrap().transcript()
}

/// Returns the turns, assembled from the parts.
fn by_parts(live: &mut LiveSession, selector: &SessionSelector) -> Vec<TurnView> {
    let plan = live.page_layout(selector).unwrap();
    let mut turns: Vec<TurnView> = Vec::new();
    for (_, spans) in &plan.parts {
        let read = live.read(selector, &plan.layout, spans).unwrap();
        for (i, span) in spans.iter().enumerate() {
            let items = read.items(&plan.layout, i);
            if span.entries.start > 0 {
                turns.last_mut().unwrap().items.extend(items);
            } else {
                turns.push(TurnView { items, ..plan.layout.turns[span.turn].turn.clone() });
            }
        }
    }
    turns
}

/// Removes the turns of sub-agents, which have their own pages.
fn without_agents(turns: &[TurnView]) -> Vec<TurnView> {
    let strip = |item: &TranscriptItem| {
        let mut item = item.clone();
        if let ItemBody::Call(call) = &mut item.body {
            call.agents.iter_mut().for_each(|agent| agent.turns.clear());
        }
        item
    };
    turns
        .iter()
        .map(|turn| TurnView { items: turn.items.iter().map(strip).collect(), ..turn.clone() })
        .collect()
}

fn assert_same(path: &Path) {
    let book = Arc::new(PriceBook::embedded());
    let file = SessionFile::at(path);
    let expected = whole_transcript(&file);
    let mut live = open(file, book).unwrap();
    let plan = live.page_layout(&SessionSelector::default()).unwrap();
    let lines: Vec<_> = plan.layout.turns.iter().map(|turn| turn.line.clone()).collect();
    for (line, expected) in lines.iter().zip(outline(&expected.turns)) {
        // Long titles are truncated.
        assert!(
            line.title == expected.title
                || line.title.starts_with(&expected.title[..expected.title.floor_char_boundary(100)]),
            "{path:?}"
        );
        // Agents that appear only in progress lines have no results, and the abridged log contains only
        // the start of their input, so their edits cannot be counted.
        let family = live.family();
        let lines =
            if family.agents.len() > family.agents_with_log().len() { expected.lines } else { line.lines };
        assert_eq!(
            threadline_view::OutlineLine { title: expected.title.clone(), lines, ..line.clone() },
            expected,
            "{path:?}"
        );
    }
    let turns = by_parts(&mut live, &SessionSelector::default());
    for (turn, expected) in turns.iter().zip(without_agents(&expected.turns)) {
        for (item, expected) in turn.items.iter().zip(&expected.items) {
            assert_eq!(item, expected, "{path:?}");
        }
        // The titles were compared before.
        assert_eq!(TurnView { title: expected.title.clone(), ..turn.clone() }, expected, "{path:?}");
    }
    assert_eq!(turns.len(), expected.turns.len(), "{path:?}");
    assert_eq!(plan.layout.header.spent, expected.header.spent, "{path:?}");
    assert_eq!(plan.layout.header.title, expected.header.title, "{path:?}");
    assert_eq!(plan.layout.unattached_agents.len(), expected.end.agents.len(), "{path:?}");
    let plan = live.page_layout(&SessionSelector::default()).unwrap();
    let codes =
        |findings: &[threadline_view::Finding]| findings.iter().map(|f| (f.code, f.at)).collect::<Vec<_>>();
    assert_eq!(codes(&plan.layout.findings.first), codes(&expected.end.findings.first), "{path:?}");
}

#[test]
fn real_sessions_by_parts_equal_whole_ones() {
    let mut logs: Vec<PathBuf> = threadline_testkit::shared_logs();
    logs.retain(|log| {
        !log.to_string_lossy().contains("agent-")
            && log.file_name().is_some_and(|name| name != "journal.jsonl")
    });
    logs.iter().for_each(|log| assert_same(log));
}

#[test]
fn corpus_and_sample_sessions_by_parts_equal_whole_ones() {
    for folder in [threadline_testkit::corpus(), threadline_testkit::demo()] {
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() && path.file_name().is_some_and(|name| name != "subagents") {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "jsonl")
                    && !path.ends_with("history.jsonl")
                    && std::fs::read(&path).unwrap().ends_with(b"\n")
                {
                    assert_same(&path);
                }
            }
        }
    }
}

#[test]
fn titles_are_those_of_whole_lines() {
    let home = TestHome::new();
    let (long, far) = ("x".repeat(300), "x".repeat(3000));
    let notice = format!(
        "<task-notification>\\n<task-id>a1</task-id>\\n<output-file>/{far}</output-file>\\n<status>completed</status>\\n<summary>Agent finished</summary>\\n</task-notification>"
    );
    let command = "<command-name>/model</command-name>\\n<command-args>opus</command-args>";
    let path = home.session(
        "long",
        &format!(
            r#"
c0        user   "{command}"
c1 <- c0  user   "<local-command-stdout>opus</local-command-stdout>"
u1 <- c1  user   "What does it do?"
a1 <- u1  reply  m1 text "It weaves."
u2 <- a1  user   "{notice}"
a2 <- u2  reply  m2 text "Good."
"#
        ),
    );
    let no_prompt = home.session("none", &format!("a0 reply m0 text \"See **{long}** first.\""));
    let titles = |path: &Path| -> Vec<String> {
        assert_same(path);
        let mut live = open(SessionFile::at(path), Arc::new(PriceBook::embedded())).unwrap();
        let layout = live.layout(&SessionSelector::default()).unwrap();
        layout.turns.iter().map(|turn| turn.line.title.clone()).collect()
    };
    assert_eq!(titles(&path), ["What does it do?", "Background task finished: Agent finished"]);
    assert_eq!(titles(&no_prompt), [format!("See {long} first.")]);
}

/// Returns the names and stamps of the parts of a page.
fn part_stamps(live: &mut LiveSession) -> Vec<(String, String)> {
    let plan = live.page_layout(&SessionSelector::default()).unwrap();
    plan.parts.iter().map(|(part, _)| (part.name.clone(), part.stamp.clone())).collect()
}

#[test]
fn a_session_followed_line_by_line_equals_one_read_at_once() {
    let home = TestHome::new();
    let source = std::fs::read(demo_log()).unwrap();
    let path = home.file("projects/-p/live.jsonl", "");
    let book = Arc::new(PriceBook::embedded());
    let mut live = open(SessionFile::at(&path), Arc::clone(&book)).unwrap();
    let mut file = File::options().append(true).open(&path).unwrap();
    for (i, line) in source.split_inclusive(|byte| *byte == b'\n').enumerate() {
        // Pauses inside of lines, before the newline among other places.
        let cut = [line.len() / 2, line.len() - 1, 1][i % 3];
        for piece in [&line[..cut], &line[cut..]] {
            file.write_all(piece).unwrap();
            live.update().unwrap();
            let mut fresh = open(SessionFile::at(&path), Arc::clone(&book)).unwrap();
            assert_eq!(part_stamps(&mut live), part_stamps(&mut fresh), "line {}", i + 1);
            let (plan, other) = (
                live.page_layout(&SessionSelector::default()).unwrap(),
                fresh.page_layout(&SessionSelector::default()).unwrap(),
            );
            assert_eq!(
                (&plan.stamp, plan.torn, plan.lines),
                (&other.stamp, other.torn, other.lines),
                "line {}",
                i + 1
            );
        }
    }
    assert_eq!(
        by_parts(&mut live, &SessionSelector::default()),
        without_agents(&whole_transcript(&SessionFile::at(&path)).turns)
    );
}

#[test]
fn the_title_of_a_long_prompt_ends_with_an_ellipsis() {
    let home = TestHome::new();
    let path = home.session("one", &format!("u1 user \"{}\"", "weave the cloth ".repeat(40)));
    let mut live = open(SessionFile::at(&path), Arc::new(PriceBook::embedded())).unwrap();
    let layout = live.page_layout(&SessionSelector::default()).unwrap();
    let title = &layout.layout.turns.as_slice()[0].line.title;
    assert!(title.starts_with("weave the cloth") && title.ends_with('…'), "{title}");
}

#[test]
fn a_replaced_file_is_read_again() {
    let home = TestHome::new();
    let path = home.session("one", "u1 user \"first\"\na1 <- u1 reply m1 text \"a\"");
    let mut live = open(SessionFile::at(&path), Arc::new(PriceBook::embedded())).unwrap();
    let title = |live: &mut LiveSession| {
        live.page_layout(&SessionSelector::default()).unwrap().layout.turns.as_slice()[0].line.title.clone()
    };
    assert_eq!(title(&mut live), "first");
    let other = home.session("two", "u1 user \"second\"");
    std::fs::rename(other, &path).unwrap();
    let version = live.version();
    live.update().unwrap();
    assert_eq!(title(&mut live), "second");
    assert!(live.version() > version);
    std::fs::remove_file(&path).unwrap();
    live.update().unwrap();
    assert!(live.is_gone());
}

fn demo_log() -> PathBuf {
    let mut logs: Vec<PathBuf> = Vec::new();
    for folder in std::fs::read_dir(threadline_testkit::demo().join("projects")).unwrap() {
        for path in std::fs::read_dir(folder.unwrap().path()).unwrap().map(|entry| entry.unwrap().path()) {
            logs.extend(path.extension().is_some_and(|extension| extension == "jsonl").then_some(path));
        }
    }
    logs.into_iter().max_by_key(|log| std::fs::metadata(log).unwrap().len()).unwrap()
}
