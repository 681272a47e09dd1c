//! Sessions that are followed while they are written.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use threadline_app::{AppError, LiveChange, LiveSession, Mask, SessionCache, SessionSelector, TurnSpan};
use threadline_secret::Rules;
use threadline_session::TurnIndex;
use threadline_store::SessionFile;
use threadline_testkit::{TestHome, log_of, session_uuid};
use threadline_usage::PriceBook;
use threadline_view::{ItemBody, Spending};

use crate::app;

const TALK: &str = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  m1 tool t1 Grep {"pattern":"sleep"} usage={"input_tokens":10,"output_tokens":5}
r1 <- a1  result t1 "src/main.rs:9"
a2 <- r1  reply  m2 text "A sleep." usage={"input_tokens":20,"output_tokens":7}
u2 <- a2  user   "take it out"
a3 <- u2  reply  m3 tool t2 Bash {"command":"sed"} usage={"input_tokens":30,"output_tokens":9}
r2 <- a3  result t2 "done"
"#;

fn open(path: &Path) -> LiveSession {
    let prices = Arc::new(PriceBook::embedded());
    LiveSession::open(SessionFile::at(path), prices, Mask::default()).unwrap()
}

fn open_masked(path: &Path) -> LiveSession {
    let prices = Arc::new(PriceBook::embedded());
    let mask = Mask::new(Rules::new());
    LiveSession::open(SessionFile::at(path), prices, mask).unwrap()
}

fn append(path: &Path, bytes: &[u8]) {
    File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_session_that_grows_is_the_session_that_is_loaded() {
    let home = TestHome::new();
    let bytes = log_of("live", TALK);
    let path = home.file("projects/-p/live.jsonl", "");
    let mut live = open(&path);
    assert_eq!(live.refresh().unwrap(), LiveChange::Same);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        append(&path, line);
        assert_eq!(live.refresh().unwrap(), LiveChange::Changed);
        let loaded = app(&home).load(live.file()).unwrap();
        let selector = SessionSelector::default();
        let layout = live.layout(&selector).unwrap();
        let turns: Vec<_> =
            layout.turns.indices().map(|turn| live.turn(&selector, &layout, turn).unwrap()).collect();
        assert_eq!(turns, loaded.transcript().turns);
        for turn in &layout.turns {
            let found = live.layout_turns(&mut |one| one.number == turn.turn.number).turns;
            let [alone] = found.as_slice() else { panic!() };
            assert_eq!((&alone.turn, &alone.entries), (&turn.turn, &turn.entries));
        }
        assert_eq!(layout.header.spent, *loaded.spending.as_deref().map(Spending::total).unwrap());
    }
}

#[test]
fn lines_that_were_read_are_not_read_again() {
    let home = TestHome::new();
    let mut talk = "u0 user \"start\"\n".to_owned();
    for i in 1..200 {
        talk.push_str(&format!("u{i} <- u{} user \"prompt {i:03}\"\n", i - 1));
    }
    let path = home.session("long", &talk);
    let mut live = open(&path);
    // A change in the middle goes unnoticed unless the line is read again.
    let bytes = std::fs::read(&path).unwrap();
    let at = memchr::memmem::find(&bytes, b"prompt 100").unwrap();
    let mut file = File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(b"PROMPT 100").unwrap();
    append(&path, &log_of("long", "n1 <- ?u199 user \"one more\""));
    assert_eq!(live.refresh().unwrap(), LiveChange::Changed);
    assert!(live.family().main.entries().as_slice()[100].text().contains("prompt 100"));
    // Only the spans that are asked for are read.
    let selector = SessionSelector::default();
    let layout = live.layout(&selector).unwrap();
    let text = |turn: usize| {
        let turn = TurnIndex::from_position(turn);
        let entries = 0..layout.turns[turn].entries.len();
        let read = live.read(&selector, &layout, &[TurnSpan { turn, entries }]).unwrap();
        let [item] = &read.items(&layout, 0)[..] else { panic!("one item") };
        let ItemBody::Input { text, .. } = &item.body else { panic!("{item:?}") };
        text.clone()
    };
    assert_eq!(text(layout.turns.len() - 1), "one more");
    assert_eq!(text(100), "PROMPT 100");
}

#[test]
fn a_replaced_log_is_reported_until_it_is_opened_again() {
    let home = TestHome::new();
    let path = home.session("one", TALK);
    let mut live = open(&path);
    let version = live.version();
    std::fs::rename(home.session("two", "u1 user \"second\""), &path).unwrap();
    assert_eq!(live.refresh().unwrap(), LiveChange::Replaced);
    assert_eq!(live.refresh().unwrap(), LiveChange::Replaced);
    live.reopen().unwrap();
    assert_eq!(live.refresh().unwrap(), LiveChange::Same);
    assert_eq!(live.layout(&SessionSelector::default()).unwrap().turns.len(), 1);
    assert!(live.version() > version);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(live.refresh().unwrap(), LiveChange::Changed);
    assert!(live.is_gone());
}

#[test]
fn a_session_that_was_opened_again_still_masks_secrets() {
    let home = TestHome::new();
    let secret = threadline_testkit::secrets(1).into_iter().next().unwrap().text;
    let notation = format!("u1 user \"the token is {secret}\"\na1 <- u1 reply m1 text \"Noted.\"");
    let path = home.session("one", "u1 user \"first\"");
    let mut live = open_masked(&path);
    std::fs::rename(home.session("two", &notation), &path).unwrap();
    live.update().unwrap();
    let selector = SessionSelector::default();
    let layout = live.layout(&selector).unwrap();
    let spans =
        [TurnSpan { turn: TurnIndex::FIRST, entries: 0..layout.turns[TurnIndex::FIRST].entries.len() }];
    let shown = format!("{:?}", live.read(&selector, &layout, &spans).unwrap().items(&layout, 0));
    assert!(shown.contains("[secret:"), "{shown}");
    assert!(!shown.contains(&secret) && !layout.turns[TurnIndex::FIRST].line.title.contains(&secret));
}

#[test]
fn a_secret_that_is_recognisable_in_one_line_is_masked_in_all_lines() {
    let home = TestHome::new();
    // Only the name in front of it shows that this is a password.
    let password = ["mVq3", "xT81", "pLz0"].concat();
    let body: Vec<String> =
        (0..4).map(|line| format!("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{line:032}")).collect();
    let key = [
        &["-----BEGIN", "PRIVATE KEY-----"].join(" "),
        &*body.join("\\n"),
        &["-----END", "PRIVATE KEY-----"].join(" "),
    ]
    .join("\\n");
    let notation = format!(
        "u1       user  \"export DB_PASSWORD={password}\"\n\
         a1 <- u1 reply m1 text \"I use {password} now, and line 2 of the key is {}\"\n\
         u2 <- a1 user  \"{key}\"\n",
        body[1]
    );
    let path = home.session("one", "u0 user \"hello\"");
    let mut live = open_masked(&path);
    // The lines are added while the session is open.
    let added = std::fs::read(home.session("two", &notation)).unwrap();
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut log, &added).unwrap();
    live.update().unwrap();
    let selector = SessionSelector::default();
    let layout = live.layout(&selector).unwrap();
    let mut shown = String::new();
    for turn in layout.turns.indices() {
        let view = live.turn(&selector, &layout, turn).unwrap();
        shown += &format!("{view:?} {}", layout.turns[turn].line.title);
    }
    assert!(shown.contains("[secret:"), "{shown}");
    let secrets = std::iter::once(&password).chain(&body);
    let leaked: Vec<&String> = secrets.filter(|secret| shown.contains(secret.as_str())).collect();
    assert!(leaked.is_empty(), "{leaked:?} in {shown}");
}

#[test]
fn the_secrets_of_a_large_log_are_masked() {
    let home = TestHome::new();
    // Only the name in front of it shows that this is a password. It is at the end of the log.
    let password = ["mVq3", "xT81", "pLz0"].concat();
    let padding = "warp and weft ".repeat(10_000);
    let padded = (1..40).map(|n| format!("u{n} <- u{} user \"{padding}\"\n", n - 1)).collect::<String>();
    let path = home.session(
        "one",
        &format!(
            "u0 user \"I use {password} now\"\n{padded}u40 <- u39 user \"export DB_PASSWORD={password}\"\n"
        ),
    );
    let log = std::fs::read(&path).unwrap();
    assert!(log.len() > 5 << 20);
    // Also if the last line has no newline.
    for length in [log.len(), log.len() - 1] {
        std::fs::write(&path, &log[..length]).unwrap();
        let mut live = open_masked(&path);
        let layout = live.layout(&SessionSelector::default()).unwrap();
        let titles: Vec<&str> = layout.turns.iter().map(|turn| &*turn.line.title).collect();
        assert!(titles[0].contains("[secret:") && titles[40].contains("[secret:"), "{titles:?}");
        assert!(!titles.concat().contains(&password));
    }
}

/// Returns the titles of the turns, first without the lines, and then with them, and the last prompt.
fn masked_titles(home: &TestHome, id: &str) -> ([Vec<String>; 2], String) {
    let app = app(home).with_mask(Mask::built_in());
    let cache = SessionCache::new(app.prices().unwrap());
    let selector = SessionSelector::default();
    let titles = |live: &mut LiveSession| {
        let layout = live.page_layout(&selector).unwrap();
        Ok::<_, AppError>(layout.layout.turns.iter().map(|turn| turn.line.title.clone()).collect())
    };
    let first = cache.with_file(&app, &app.session(id).unwrap(), titles).unwrap();
    let prompt = cache.with::<_, AppError>(&app, id, |live| {
        let layout = live.page_layout(&selector).unwrap();
        let turn = layout.layout.turns.last_index().unwrap();
        Ok(format!("{:?}", live.turn(&selector, &layout.layout, turn).unwrap()))
    });
    ([first, cache.with(&app, id, titles).unwrap()], prompt.unwrap())
}

#[test]
fn layouts_are_masked_with_the_secrets_of_all_lines() {
    let home = TestHome::new();
    let id = session_uuid("one");
    let password = ["mVq3", "xT81", "pLz0"].concat();
    let padding = "warp and weft ".repeat(40_000);
    let notation = format!(
        "u0 user \"I use {password} now\"\nu1 <- u0 user \"{padding}\"\n\
         u2 <- u1 user \"export DB_PASSWORD={password}\"\nu3 <- u2 user \"try {password}\"\n"
    );
    let path = home.session("one", &notation);
    let ([first, learnt], prompt) = masked_titles(&home, &id);
    assert_eq!(first, learnt);
    assert!(first[0].contains("[secret:") && first[3].contains("[secret:"), "{first:?}");
    assert!(!first.concat().contains(&password) && !prompt.contains(&password), "{prompt}");
    // If many lines contain words of the layout, the password is found all the same.
    let line = |n: usize| format!("{{\"type\":\"system\",\"content\":\"{n} Qz8x{}vK\"}}\n", n / 30);
    let mut log: Vec<u8> = (0..4500).flat_map(|n| line(n).into_bytes()).collect();
    let prompts = (1..150).map(|n| format!("w{n} <- w{} user \"Qz8x{n}vK\"\n", n - 1)).collect::<String>();
    let notation = notation.replacen("u0 user", "u0 <- w149 user", 1);
    log.extend(log_of(&id, &format!("w0 user \"Qz8x0vK\"\n{prompts}{notation}")));
    std::fs::write(&path, log).unwrap();
    let ([first, learnt], _) = masked_titles(&home, &id);
    assert_eq!(first, learnt);
    assert!(!first.concat().contains(&password), "{first:?}");
}

#[test]
fn the_description_of_a_sub_agent_is_masked() {
    let home = TestHome::new();
    let secret = threadline_testkit::secrets(1).into_iter().next().unwrap().text;
    let notation = format!(
        "u1       user   \"look\"\n\
         a1 <- u1 reply  m1 tool t1 Task {{\"description\":\"use {secret}\",\"prompt\":\"p\"}}\n\
         s1       user   \"p\" +{{\"isSidechain\":true}}\n\
         s2 <- s1 reply  m2 text \"found\" +{{\"isSidechain\":true}}\n\
         r1 <- a1 result t1 \"found\"\n"
    );
    let mut live = open_masked(&home.session("one", &notation));
    let selector = SessionSelector::default();
    let layout = live.layout(&selector).unwrap();
    let view = live.turn(&selector, &layout, TurnIndex::FIRST).unwrap();
    let shown = format!("{view:?} {:?}", layout.unattached_agents);
    assert!(!shown.contains(&secret), "{shown}");
}

#[test]
fn the_work_of_very_many_sub_agents_is_read_in_one_pass() {
    // Each sub-agent started one more.
    const N_AGENTS: usize = 1500;
    let home = TestHome::new();
    let call = |idx: usize| format!("tool t{idx} Task {{\"prompt\":\"p{idx}\"}}");
    let started =
        |idx: usize| format!("result t{idx} \"ok\" +{{\"toolUseResult\":{{\"agentId\":\"a{idx}\"}}}}");
    let mut lines = "u1 user \"go\"\n".to_owned();
    for idx in 0..N_AGENTS {
        let above = idx.checked_sub(1).map_or("u1".to_owned(), |before| format!("r{before}"));
        lines.push_str(&format!("c{idx} <- {above} reply m{idx} {}\n", call(idx)));
        lines.push_str(&format!("r{idx} <- c{idx} {}\n", started(idx)));
        let inner = N_AGENTS + idx;
        let log = |notation: String| log_of("live", &notation);
        let outer = format!(
            "x1 user \"p{idx}\"\nx2 <- x1 reply n{idx} {}\nx3 <- x2 {}\n",
            call(inner),
            started(inner)
        );
        home.file(format!("projects/-p/live/subagents/agent-a{idx}.jsonl"), log(outer));
        let log = log(format!("y1 user \"p{inner}\"\ny2 <- y1 reply n{inner} text \"done\"\n"));
        home.file(format!("projects/-p/live/subagents/agent-a{inner}.jsonl"), log);
    }
    let path = home.file("projects/-p/live.jsonl", log_of("live", &lines));
    let mut live = open(&path);
    let selector = SessionSelector::default();
    let layout = live.layout(&selector).unwrap();
    let mut n_read = 0;
    for turn in layout.turns.indices() {
        for item in live.turn(&selector, &layout, turn).unwrap().items {
            let ItemBody::Call(call) = item.body else { continue };
            let inner = |item: &threadline_view::TranscriptItem| match &item.body {
                ItemBody::Call(call) => call.agents.iter().filter(|agent| !agent.turns.is_empty()).count(),
                _ => 0,
            };
            let items = call.agents.iter().flat_map(|agent| &agent.turns).flat_map(|turn| &turn.items);
            n_read += call.agents.len() + items.map(inner).sum::<usize>();
        }
    }
    assert_eq!(n_read, 2 * N_AGENTS);
}
