//! Home, search, usage and check pages, requested over loopback.

use serde_json::Value;
use threadline_testkit::{TestHome, session_uuid};

use crate::support::TestServer;

const LOOM: &str = r#"
u1        user   "why is the loom slow?" branch=main
a1 <- u1  reply  msg_1 tool t1 Bash {"command":"make"} model=claude-opus-5 branch=main usage={"input_tokens":1000,"output_tokens":100}
r1 <- a1  result t1 "exit 2: tangled warp" error
a2 <- r1  reply  msg_2 text "The warp is tangled." model=claude-opus-5 branch=main usage={"input_tokens":10,"cache_read_input_tokens":9000}
u2 <- a2  user   "untangle it" branch=main
a3 <- u2  reply  msg_3 tool t2 Edit {"file_path":"/home/ada/loom/warp.rs","old_string":"a","new_string":"b"} model=claude-opus-5 branch=main
r2 <- a3  result t2 "done"
title "Slow loom"
"#;

const DYE: &str = r#"
u1        user   "dye it blue" branch=feature/blue @2026-02-03T10:00:00Z
a1 <- u1  reply  msg_9 text "It is blue." model=claude-haiku-4-5 branch=feature/blue usage={"input_tokens":500}
"#;

fn home() -> TestHome {
    let home = TestHome::new();
    let loom = home.session("loom", LOOM);
    let dye = home.session_in("/home/ada/dye works", "dye", DYE);
    // Old enough that neither session is live.
    for (path, day) in [(loom, 20), (dye, 30)] {
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(day * 86_400 + 1_750_000_000);
        std::fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
    }
    home
}

fn objects(served: &TestServer, path: &str) -> Vec<Value> {
    let reply = served.get(path);
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/x-ndjson"), "{}", reply.body);
    reply.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn titles(served: &TestServer, path: &str) -> Vec<String> {
    objects(served, path).iter().map(|card| card["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn home_shows_the_figures_of_each_session() {
    let home = home();
    let served = TestServer::new(&home);
    let all = objects(&served, "/index.json");
    assert_eq!(all.len(), 2);
    let loom = &all[1];
    assert_eq!(loom["id"], session_uuid("loom"));
    assert_eq!(
        (&loom["title"], &loom["first_prompt"]),
        (&"Slow loom".into(), &"why is the loom slow?".into())
    );
    assert_eq!((&loom["turns"], &loom["errors"], &loom["live"]), (&2.into(), &1.into(), &false.into()));
    assert_eq!((&loom["tools"]["Bash"], &loom["tools"]["Edit"]), (&1.into(), &1.into()));
    assert_eq!(loom["models"], serde_json::json!(["claude-opus-5"]));
    assert_eq!((&loom["tokens"]["input"], &loom["tokens"]["cache_read"]), (&1010.into(), &9000.into()));
    let cost = loom["cost_usd"].as_f64().unwrap();
    assert!((cost - 0.012_05).abs() < 1e-9, "{cost}");
    // The page shows the same figures once they are counted.
    let page = served.get("/sessions").body;
    for text in
        ["Slow loom", "why is the loom slow?", "feature/blue", "dye works", "1 error", "opus-5", "$0.01"]
    {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert!(page.contains(">1<span class=\"unit\"> turn</span>"), "{page}");
    assert!(page.contains(">2<span class=\"unit\"> turns</span>"), "{page}");
    assert!(page.contains("<a href=\"/sessions?sort=turns\">turns</a>"), "{page}");
    let markdown = served.get("/index.md");
    assert_eq!(markdown.header("content-type"), "text/markdown; charset=utf-8");
    assert!(markdown.body.contains("- [Slow loom](/s/"), "{}", markdown.body);
}

#[test]
fn every_filter_is_in_the_url() {
    let home = home();
    let served = TestServer::new(&home);
    for (link, expected) in [
        ("", &["dye it blue", "Slow loom"][..]),
        ("?project=/home/ada/dye%20works", &["dye it blue"]),
        ("?branch=feature/blue", &["dye it blue"]),
        ("?model=claude-opus-5", &["Slow loom"]),
        ("?tool=Edit", &["Slow loom"]),
        ("?errors=1", &["Slow loom"]),
        ("?live=1", &[]),
        ("?since=2020-01-01&until=2026-01-31", &["Slow loom"]),
        ("?since=2030-01-01", &[]),
        ("?words=BLUE", &["dye it blue"]),
        ("?sort=cost", &["Slow loom", "dye it blue"]),
        ("?sort=title", &["dye it blue", "Slow loom"]),
        ("?project=nowhere&unknown=%00%ff", &[]),
    ] {
        assert_eq!(titles(&served, &format!("/index.json{link}")), expected, "{link}");
        let page = served.get(&format!("/sessions{link}"));
        assert_eq!(page.status, 200, "{link}");
        assert_eq!(page.body.matches("<tr class=\"s").count(), expected.len(), "{link}");
    }
}

#[test]
fn a_live_session_is_marked_and_listed_first() {
    let home = home();
    let served = TestServer::new(&home);
    assert_eq!(titles(&served, "/index.json"), ["dye it blue", "Slow loom"]);
    let path = home.root().join("projects/-home-ada-loom").join(format!("{}.jsonl", session_uuid("loom")));
    let now = jiff::Timestamp::now();
    let line = format!(
        "{{\"type\":\"custom-title\",\"customTitle\":\"Faster loom\",\"sessionId\":\"x\"}}\n\
         {{\"type\":\"user\",\"timestamp\":\"{now:.3}\"}}\n"
    );
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(line.as_bytes());
    std::fs::write(&path, bytes).unwrap();
    let cards = objects(&served, "/index.json");
    assert_eq!((&cards[0]["title"], &cards[0]["live"]), (&"Faster loom".into(), &true.into()));
    assert!(served.get("/sessions").body.contains("<span class=\"live-badge\">Live</span>"));
    // Its page has the mark before the next line arrives.
    let page = |name: &str| served.get(&format!("/s/{}", session_uuid(name))).body;
    assert!(page("loom").contains("<span id=\"live\">Live</span>"));
    assert!(page("dye").contains("<span id=\"live\" hidden>Live</span>"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(titles(&served, "/index.json"), ["dye it blue"]);
}

#[test]
fn open_pages_are_notified_of_changes() {
    use std::io::{BufRead, BufReader, Write};
    let home = home();
    let served = TestServer::new(&home);
    let mut stream = served.connect();
    let (port, cookie) = (served.port, served.cookie());
    write!(stream, "GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next_event =
        || lines.by_ref().find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
    // The first event is sent immediately.
    let before = next_event();
    home.session("new", "u1 user \"hello\"");
    assert_ne!(next_event(), before);
}

#[test]
fn an_empty_home_shows_its_path() {
    let home = TestHome::new();
    let served = TestServer::new(&home);
    let page = served.get("/sessions");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("No sessions found") && page.body.contains(home.root().to_str().unwrap()));
    assert!(served.get("/usage").body.contains("No model calls"));
    assert!(served.get("/search?q=x").body.contains("No matches"));
}

#[test]
fn usage_adds_up_and_every_figure_links_to_its_records() {
    let home = home();
    let served = TestServer::new(&home);
    let days = objects(&served, "/usage.json");
    assert_eq!(days.len(), 2);
    let sum = |objects: &[Value]| {
        objects.iter().map(|object| object["cost_usd"].as_f64().unwrap_or(0.0)).sum::<f64>()
    };
    for by in ["week", "month", "session", "project", "model", "tool", "branch", "window"] {
        let other = objects(&served, &format!("/usage.json?by={by}"));
        assert!((sum(&other) - sum(&days)).abs() < 1e-12, "{by}");
    }
    for day in &days {
        let day_name = day["day"].as_str().unwrap();
        let records = objects(&served, &format!("/usage/explain.json?since={day_name}&until={day_name}"));
        assert!((sum(&records) - day["cost_usd"].as_f64().unwrap()).abs() < 1e-12, "{day_name}");
        assert!(records.iter().all(|record| record["line"].as_u64().unwrap() > 0));
    }
    let opus = objects(&served, "/usage/explain.json?model=claude-opus-5");
    assert_eq!(opus.iter().filter(|record| record["counted"] == true).count(), 3);
    let page = served.get("/usage").body;
    assert_eq!(page.matches("<svg class=\"chart").count(), 4, "days, calendar, cache, windows");
    assert_eq!(page.matches("<ul class=\"bars\"").count(), 1, "projects");
    assert!(page.contains("/usage/explain?since=2026-01-01&amp;until=2026-01-01"), "{page}");
    let why = served.get("/usage/explain?project=/home/ada/dye%20works").body;
    assert!(why.contains(&format!("/s/{}#m2", session_uuid("dye"))), "{why}");
    assert!(served.get("/usage.md").body.contains("| claude-opus-5 | 3 |"));
    assert_eq!(served.get("/usage?since=soon").status, 400);
    assert_eq!(served.get("/usage.json?by=moon").status, 400);
}

#[test]
fn records_of_a_branch_leave_out_other_branches_of_its_log() {
    let home = TestHome::new();
    let usage = r#"usage={"input_tokens":1000}"#;
    home.session(
        "loom",
        &format!(
            "u1 user \"weave\"\na1 <- u1 reply m1 text \"x\" branch=main {usage}\n\
             a2 <- a1 reply m2 text \"y\" branch=blue {usage}"
        ),
    );
    let records = objects(&TestServer::new(&home), "/usage/explain.json?branch=blue");
    let messages: Vec<_> = records.iter().map(|record| record["message_id"].as_str().unwrap()).collect();
    assert_eq!(messages, ["m2"]);
}

#[test]
fn an_overview_without_activity_names_the_last_active_day() {
    let home = home();
    let served = TestServer::new(&home);
    let page = |link: &str| {
        // The logs are read by another thread.
        let pages = (0..1000).map(|_| served.get(link).body);
        pages.into_iter().find(|page| !page.contains("indexing\">")).expect("the logs are read")
    };
    let month = page("/?range=30d");
    let message = "No activity in the last 30 days. Last active 3 February 2026. <a href=\"/?range=all\">";
    assert!(month.contains(message) && !month.contains("<dl class=\"totals\">"), "{month}");
    assert!(page("/?range=all").contains("<dl class=\"totals\">"));
}

#[test]
fn a_model_has_one_colour_on_all_pages() {
    let home = TestHome::new();
    home.session(
        "loom",
        r#"
u1        user   "weave" @2026-01-01T10:00:00Z
a1 <- u1  reply  msg_1 text "x" model=claude-opus-5 usage={"input_tokens":7000000} @2026-01-01T10:00:01Z
a2 <- a1  reply  msg_2 text "x" model=claude-haiku-4-5 usage={"input_tokens":2000} @2026-03-01T10:00:00Z
a3 <- a2  reply  msg_3 text "x" model=claude-sonnet-5 usage={"input_tokens":2000} @2026-03-01T10:00:01Z
"#,
    );
    let served = TestServer::new(&home);
    let colours = |link: &str| -> Vec<(String, String)> {
        // The logs are read by another thread.
        let pages = (0..1000).map(|_| served.get(link).body);
        let page = pages.into_iter().find(|page| !page.contains("indexing\">")).expect("the logs are read");
        let legend = page.split_once("<ul class=\"legend\">").unwrap().1.split_once("</ul>").unwrap().0;
        let colour = |key: &str| key.split_once("<rect class=\"").unwrap().1[..2].to_owned();
        let model = |key: &str| {
            key.split_once("</svg>").unwrap().1.split('>').nth(1).unwrap().trim_end_matches("</a").to_owned()
        };
        let mut all: Vec<_> = legend.split("<li>").skip(1).map(|key| (model(key), colour(key))).collect();
        all.sort();
        all
    };
    let all = colours("/usage");
    assert_eq!(
        all.iter().map(|(model, _)| &**model).collect::<Vec<_>>(),
        ["haiku-4-5", "opus-5", "sonnet-5"]
    );
    assert_eq!(colours("/?range=all"), all);
    // Also where the most expensive model is not shown.
    let late: Vec<_> = all.iter().filter(|(model, _)| model != "opus-5").cloned().collect();
    for link in [
        "/usage?since=2026-03-01",
        "/?range=custom&since=2026-03-01",
        "/project?name=/home/ada/loom&range=custom&since=2026-03-01",
    ] {
        assert_eq!(colours(link), late, "{link}");
    }
}

#[test]
fn sessions_of_an_ambiguous_name_can_be_told_apart() {
    let home = TestHome::new();
    for (id, cwd, day) in [("one", "/home/ada/loom", "2026-01-01"), ("two", "/home/ada/dye", "2026-01-02")] {
        home.session_in(cwd, id, &format!("u1 user \"weave\" @{day}T10:00:00Z\ntitle \"Weaving\""));
    }
    let page = TestServer::new(&home).get("/s/Weaving");
    assert_eq!(page.status, 404);
    for (id, detail) in [("one", "loom · 2026-01-01"), ("two", "dye · 2026-01-02")] {
        let id = session_uuid(id);
        let link = format!("<a href=\"/s/{id}\">Weaving</a> <span>{detail} · {}</span>", &id[..8]);
        assert!(page.body.contains(&link), "{link}\n{}", page.body);
    }
}

#[test]
fn an_average_of_a_minimum_is_a_minimum() {
    let home = TestHome::new();
    let usage = r#"usage={"input_tokens":1000000}"#;
    home.session(
        "loom",
        &format!(
            "u1 user \"weave\"\na1 <- u1 reply m1 text \"x\" model=claude-haiku-4-5 {usage}\n\
             a2 <- a1 reply m2 text \"y\" model=of-nobody {usage}"
        ),
    );
    let page = TestServer::new(&home).get("/usage").body;
    let totals = page.split_once("<dl class=\"totals\">").unwrap().1.split_once("</dl>").unwrap().0;
    assert_eq!(totals.matches(">≥ $1.00</a>").count(), 2, "{totals}");
}

#[test]
fn the_legend_of_a_chart_sums_all_of_it() {
    let home = TestHome::new();
    home.session(
        "loom",
        r#"
u1        user   "weave" @2026-01-01T10:00:00Z
a1 <- u1  reply  msg_1 text "x" model=claude-haiku-4-5 usage={"input_tokens":7000000} @2026-01-01T10:00:01Z
a2 <- a1  reply  msg_2 text "x" model=claude-haiku-4-5 usage={"input_tokens":2000000} @2026-09-01T10:00:00Z
"#,
    );
    let served = TestServer::new(&home);
    let page = served.get("/usage").body;
    let legend = page.split_once("<ul class=\"legend\">").unwrap().1.split_once("</ul>").unwrap().0;
    assert!(legend.contains(">$9.00</a>"), "{legend}");
    assert!(
        legend.contains("since=2026-01-01&amp;until=2026-09-01"),
        "the figure links to its records: {legend}"
    );
}

#[test]
fn usage_leaves_out_lines_that_are_too_long_and_says_so() {
    let home = TestHome::new();
    let log = home.session("loom", LOOM);
    let text = "x".repeat(40 << 20);
    let mut log = std::fs::File::options().append(true).open(log).unwrap();
    std::io::Write::write_all(
        &mut log,
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"u\",\"timestamp\":\"2026-01-01T10:00:05.000Z\",\"message\":{{\"id\":\"msg_long\",\"model\":\"claude-opus-5\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"usage\":{{\"input_tokens\":1000,\"output_tokens\":0}}}}}}\n"
        )
        .as_bytes(),
    )
    .unwrap();
    let served = TestServer::new(&home);
    let groups = objects(&served, "/usage.json?by=model");
    assert_eq!(groups[0]["input_tokens"], 1010, "{groups:?}");
    let page = served.get("/usage.md").body;
    assert!(page.contains(" skipped: ") && page.contains(" long."), "{page}");
}

#[test]
fn figures_equal_those_of_a_direct_scan() {
    use threadline_usage::{CallGroups, CallLedger, GroupBy, LogSource, PriceBook, ScanOptions, UsageScan};
    use threadline_view::wire::GroupObject;
    let root = threadline_testkit::demo();
    let mut ledger = CallLedger::default();
    for log in threadline_app::Store::open([root.clone()]).logs().found {
        let source = LogSource {
            path: log.path.to_string_lossy().into_owned(),
            session: log.session.clone().map(Into::into),
            folder: Some(log.folder()),
            agent: log.agent().map(|agent| (agent.id, agent.kind)),
        };
        let mut scan = UsageScan::new(source, ScanOptions { tools: true, ..ScanOptions::default() });
        let bytes = std::fs::read(&log.path).unwrap();
        let mut lines = threadline_entry::LineReader::new(&bytes[..]);
        while let Some(block) = lines.next_block().unwrap() {
            scan.block(&block);
        }
        ledger.add(scan.finish());
    }
    let calls = ledger.finish();
    let inherited = calls.inherited();
    let served = TestServer::with_root(&root);
    for (by, name) in [
        (GroupBy::Day, "day"),
        (GroupBy::Week, "week"),
        (GroupBy::Month, "month"),
        (GroupBy::Session, "session"),
        (GroupBy::Project, "project"),
        (GroupBy::Model, "model"),
        (GroupBy::Tool, "tool"),
        (GroupBy::Branch, "branch"),
    ] {
        let groups =
            CallGroups::of(&calls, by, &PriceBook::embedded(), &jiff::tz::TimeZone::UTC, |_, _| true);
        let plain = groups
            .groups
            .iter()
            .map(|group| serde_json::to_value(GroupObject::new(group, by, &inherited)).unwrap());
        let plain: Vec<Value> = plain.collect();
        assert!(!plain.is_empty());
        assert_eq!(objects(&served, &format!("/usage.json?by={name}")), plain, "{name}");
    }
    // The figures of each session on the home page are the same too.
    let groups =
        CallGroups::of(&calls, GroupBy::Session, &PriceBook::embedded(), &jiff::tz::TimeZone::UTC, |_, _| {
            true
        });
    let cards = objects(&served, "/index.json");
    assert!(!cards.is_empty());
    for card in &cards {
        let group = groups.groups.iter().find(|group| match &group.key {
            threadline_usage::CallGroupKey::Session { session, .. } => *session == card["id"],
            _ => false,
        });
        let cost = group.map_or("0".to_owned(), |group| group.totals.cost.to_string());
        assert_eq!(
            card["cost_usd"].to_string().parse::<f64>().unwrap(),
            cost.parse::<f64>().unwrap(),
            "{card}"
        );
    }
}

#[test]
fn matches_link_to_their_blocks() {
    let home = home();
    let served = TestServer::new(&home);
    let page = served.get("/search?q=tangled+-untangle").body;
    let id = session_uuid("loom");
    assert!(page.contains(&format!("href=\"/s/{id}?q=tangled%20-untangle#m2\"")), "{page}");
    assert!(page.contains("<mark>tangled</mark>") && page.contains("2 matches in 1 session"), "{page}");
    let hits = objects(&served, "/search.json?q=tangled");
    assert_eq!((hits.len(), &hits[0]["anchor"]), (2, &"m2".into()));
    let wrong = served.get("/search?q=%2F(%2F");
    assert!(wrong.status == 200 && wrong.body.contains("class=\"error-message\""), "{}", wrong.body);
    assert_eq!(served.get("/search.json?q=%2F(%2F").status, 400);
    assert!(served.get("/search").body.contains("Search syntax"));
}

#[test]
fn lists_show_what_they_are_about() {
    let home = TestHome::new();
    let text = "weave a twill ".repeat(200);
    home.session("large", &format!("u1 user \"{text}\" @2026-01-01T10:00:00Z\nu2 <- u1 user \"dye it\""));
    home.session("small", "x1 user \"spin\" @2026-01-01T11:00:00Z");
    let served = TestServer::new(&home);
    let page = served.get("/sessions?sort=size").body;
    assert!(page.contains("aria-sort=\"descending\"><a href=\"/sessions?sort=size\">Size</a>"), "{page}");
    let rows: Vec<&str> = page.split("<tr class=\"s").skip(1).collect();
    assert!(rows[0].contains(">3.4 kB<") && rows[1].contains(">302 B<"), "{rows:#?}");
    assert!(!served.get("/sessions").body.contains(">Size</a>"));
    // The newest prompt is the first.
    let page = served.get("/records?kind=prompts").body;
    let cells = page.split("<td").filter(|cell| cell.contains("#m"));
    let texts: Vec<&str> =
        cells.filter_map(|cell| cell.rsplit_once("\">")?.1.split_once("</a>")).map(|text| text.0).collect();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert_eq!((texts[1], texts[3]), ("spin", "dye it"));
    assert!(texts[5].starts_with("weave a twill weave") && texts[5].ends_with('…'), "{texts:?}");
}

#[test]
fn search_counts_all_matches_and_names_those_that_it_does_not_show() {
    let home = TestHome::new();
    // A session with very many matches does not hide the others.
    let many: String = (0..2500).map(|n| format!("u{n} user \"tangled {n}\"\n")).collect();
    home.session("many", &many);
    for n in 0..54 {
        home.session(&format!("few{n}"), "u1 user \"tangled\"");
    }
    let served = TestServer::new(&home);
    for (sort, others) in [("", "less relevant"), ("&sort=newest", "last active earlier")] {
        let page = served.get(&format!("/search?q=tangled{sort}")).body;
        let text =
            |start: &str, end: &str| page.split_once(start).unwrap().1.split_once(end).unwrap().0.to_owned();
        assert_eq!(text("id=\"count\">", "<"), "2,554 matches in 55 sessions");
        assert_eq!(page.matches("<section class=\"hits\">").count(), 50);
        assert_eq!(page.matches("<li class=\"s\">").count(), 54, "five of the first session");
        assert!(page.contains("2,495 more in this session"));
        let hidden = format!("Not shown: 5 matches in 5 more sessions, {others}.");
        assert!(text("<p class=\"note\">", "</p>").starts_with(&hidden), "{hidden}");
    }
    assert_eq!(objects(&served, "/search.json?q=tangled&sort=relevance").len(), 2554);
}

#[test]
fn the_chart_of_a_long_period_contains_all_of_it() {
    let call = |n: u32, day: &str| {
        let usage = format!("usage={{\"input_tokens\":{}}}", 1000 / n);
        format!("a{n} reply msg_{n} text \"x\" model=claude-opus-5 {usage} @{day}T10:00:00Z\n")
    };
    let chart = |days: &[&str]| -> Vec<String> {
        let home = TestHome::new();
        home.session("loom", &(1..).zip(days).map(|(n, day)| call(n, day)).collect::<String>());
        let page = TestServer::new(&home).get("/usage?since=all").body;
        assert!(!page.contains("Chart: ") && page.contains("aria-current=\"true\">all</a>"), "{page}");
        let section = page.split_once("and model</h2>").unwrap().1.split_once("</section>").unwrap().0;
        section.split("<title>").skip(1).map(|title| title.split_once(':').unwrap().0.to_owned()).collect()
    };
    assert_eq!(chart(&["2026-01-05", "2026-01-07"]), ["Monday, 5 January 2026", "Wednesday, 7 January 2026"]);
    assert_eq!(
        chart(&["2025-12-30", "2026-01-01", "2026-06-01"]),
        ["29 December to 4 January 2026", "1 June to 7 June 2026"]
    );
    assert_eq!(chart(&["2024-02-10", "2024-02-29", "2026-06-01"]), ["February 2024", "June 2026"]);
}

#[test]
fn the_usage_page_notes_calls_without_a_time() {
    let home = TestHome::new();
    let call = "a7 reply msg_7 text \"x\" model=claude-opus-5 usage={\"input_tokens\":1} -timestamp";
    home.session("undated", call);
    let served = TestServer::new(&home);
    let page = served.get("/usage.md").body;
    assert!(page.contains("1 call without a timestamp, not in any window"), "{page}");
}

#[test]
fn check_shows_findings_and_a_repair_plan() {
    let home = home();
    home.session(
        "broken",
        "u1 user \"x\"\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"ls\"}\na2 <- a1 reply m2 text \"on\"\nraw {\"type\":\"us",
    );
    let served = TestServer::new(&home);
    let id = session_uuid("broken");
    let page = served.get(&format!("/s/{id}/check"));
    assert_eq!(page.status, 200);
    for text in [
        "orphan-call",
        "the call of Bash has no result",
        &format!("/s/{id}#m2"),
        "Repair: add an error result",
    ] {
        assert!(page.body.contains(text), "{text}\n{}", page.body);
    }
    assert!(page.body.contains("line 2 removed: tool call without a result"), "{}", page.body);
    assert!(page.body.contains("--apply</code> writes a repaired copy"), "{}", page.body);
    let found = objects(&served, &format!("/s/{id}/check.json"));
    assert!(found.iter().any(|finding| finding["name"] == "orphan-call" && finding["line"] == 2));
    assert!(served.get(&format!("/s/{id}/check.md")).body.contains("orphan-call"));
    let sound = served.get(&format!("/s/{}/check", session_uuid("dye"))).body;
    assert!(sound.contains("No automatic repairs"), "{sound}");
    assert!(sound.contains("No problems found"), "{sound}");
    for unknown in ["none", "..%2F..%2Fetc%2Fpasswd", "%2e%2e", "x%00y"] {
        assert_eq!(served.get(&format!("/s/{unknown}/check")).status, 404, "{unknown}");
    }
}

#[test]
fn check_leaves_out_notes_in_json_and_markdown() {
    let home = home();
    home.session("moved", "u1 user \"x\"\na1 <- u1 reply m1 text \"y\" cwd=/elsewhere");
    let served = TestServer::new(&home);
    let id = session_uuid("moved");
    assert_eq!(objects(&served, &format!("/s/{id}/check.json")).len(), 0);
    assert_eq!(objects(&served, &format!("/s/{id}/check.json?notes=1"))[0]["severity"], "note");
    let markdown = served.get(&format!("/s/{id}/check.md")).body;
    assert!(markdown.contains("1 log checked, no problems found"), "{markdown}");
}

#[test]
fn check_names_unreadable_sub_agents_and_shows_the_rest() {
    let home = home();
    let broken =
        "u1 user \"x\"\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"ls\"}\na2 <- a1 reply m2 text \"on\"";
    home.session("broken", broken);
    let id = session_uuid("broken");
    // A file in the place of the folder.
    home.file(format!("projects/-home-ada-loom/{id}/subagents"), "");
    let served = TestServer::new(&home);
    let page = served.get(&format!("/s/{id}/check"));
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("orphan-call") && page.body.contains("/subagents"), "{}", page.body);
    let objects = objects(&served, &format!("/s/{id}/check.json"));
    let last = objects.last().unwrap();
    assert_eq!((&objects[0]["name"], &last["type"]), (&"orphan-call".into(), &"error".into()));
    assert!(last["message"].as_str().unwrap().contains("/subagents"), "{last}");
    let markdown = served.get(&format!("/s/{id}/check.md")).body;
    assert!(markdown.contains("orphan-call") && markdown.contains("/subagents"), "{markdown}");
}

#[test]
fn every_page_of_a_session_names_unreadable_sub_agents() {
    let home = home();
    home.session("team", "u1 user \"hi\"\na1 <- u1 reply m1 text \"yes\"");
    let id = session_uuid("team");
    // A file in the place of the folder.
    home.file(format!("projects/-home-ada-loom/{id}/subagents"), "");
    let served = TestServer::new(&home);
    for page in ["", "/context", "/context.json", "/changes", "/changes.json", "/export", "/check"] {
        let page = served.get(&format!("/s/{id}{page}"));
        assert!(page.body.contains("/subagents"), "{page:?}");
    }
    let compared = served.get(&format!("/compare.json?a={id}&b={id}")).body;
    assert!(compared.contains("/subagents"), "{compared}");
}

#[test]
fn repairs_that_would_be_refused_are_not_offered() {
    let home = TestHome::new();
    home.session("call", "a1 reply m1 tool t1 Bash {\"command\":\"ls\"}\nraw {\"type\":\"us");
    let served = TestServer::new(&home);
    let page = served.get(&format!("/s/{}/check", session_uuid("call"))).body;
    for text in
        ["No repair is possible: the result would not be sound", "<li>no conversation would remain</li>"]
    {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert!(!page.contains("writes a repaired copy"), "{page}");
}

#[test]
fn repair_plan_includes_sub_agents() {
    let home = home();
    home.agent("dye", "x1", "b1 user \"look\"\nraw {\"type\":\"us", None);
    let served = TestServer::new(&home);
    let page = served.get(&format!("/s/{}/check", session_uuid("dye"))).body;
    assert!(page.contains("agent-x1.jsonl: unreadable line (line 2)"), "{page}");
}

#[test]
fn log_text_is_escaped() {
    const EVIL: &str = "\\\"><script>document.title='pwned'</script><img src=x onerror=alert(1)>";
    let home = TestHome::new();
    let log = format!(
        "u1 user \"{EVIL}\" branch=\"{EVIL}\"\na1 <- u1 reply m1 {{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"{EVIL}\",\"input\":{{}}}} model=\"{EVIL}\" branch=\"{EVIL}\" usage={{\"input_tokens\":5}}\ntitle \"{EVIL}\"\ntag \"{EVIL}\""
    );
    home.session_in("/home/ada/<b>\"loom", "evil", &log);
    let served = TestServer::new(&home);
    assert_eq!(objects(&served, "/index.json").len(), 1);
    let id = session_uuid("evil");
    let attack = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    for path in [
        "/".to_owned(),
        "/sessions".to_owned(),
        "/records".to_owned(),
        format!("/records?tool={attack}&command={attack}&file={attack}&session={attack}&weekday={attack}"),
        format!(
            "/sessions?project={attack}&branch={attack}&model={attack}&tool={attack}&since={attack}&words={attack}&sort={attack}"
        ),
        format!("/search?q={attack}"),
        "/search?q=pwned".to_owned(),
        "/usage".to_owned(),
        format!("/usage?project={attack}&model={attack}"),
        "/usage/explain".to_owned(),
        format!("/usage/explain?session={attack}"),
        format!("/s/{id}/check"),
    ] {
        let page = served.get(&path);
        assert_eq!(page.status, 200, "{path}");
        let scripts = page.body.matches("<script").count();
        assert_eq!(scripts, page.body.matches("<script defer src=\"/assets/").count(), "{path}");
        assert!(!page.body.contains("<img") && !page.body.contains("<b>\"loom"), "{path}");
    }
}

#[test]
fn search_results_are_sorted_by_relevance_or_newest_first() {
    let home = TestHome::new();
    home.session("often", "u1 user \"loom loom\" @2026-01-01T10:00:00Z\nu2 <- u1 user \"the loom again\"");
    home.session("later", "u1 user \"hello\" @2026-01-03T10:00:00Z\na1 <- u1 reply m1 text \"a loom\"");
    let served = TestServer::new(&home);
    let is_first = |page: &str, name: &str| {
        let body = served.get(page).body;
        let at = |name: &str| body.find(&format!("<h2><a href=\"/s/{}", session_uuid(name))).unwrap();
        let other = if name == "often" { "later" } else { "often" };
        at(name) < at(other)
    };
    assert!(is_first("/search?q=loom", "often"));
    assert!(is_first("/search?q=loom&sort=newest", "later"));
}
