//! The page of a session with its subresources, and changes to the log while it is open.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

use threadline_app::{App, AppConfig};
use threadline_testkit::{TestHome, session_uuid};
use threadline_view::DetailLevel;

use crate::support::TestServer;

const LOOM: &str = r#"
u1        user   "why is the loom slow?"
a1 <- u1  reply  m1 thinking "Perhaps a sleep."
a2 <- a1  reply  m1 tool t1 Grep {"pattern":"sleep"} usage={"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":3000} model=claude-opus-4-6
r1 <- a2  result t1 "src/main.rs:9"
a3 <- r1  reply  m2 text "There is a **sleep** in `main.rs`."
u2 <- a3  user   "take it out"
a4 <- u2  reply  m3 tool t2 Edit {"file_path":"/home/ada/loom/src/main.rs","old_string":"sleep(1);\n","new_string":""}
r2 <- a4  result t2 "done" {"filePath":"/home/ada/loom/src/main.rs","oldString":"sleep(1);\n","newString":"","originalFile":"a();\nsleep(1);\nb();\n","structuredPatch":[{"oldStart":1,"oldLines":3,"newStart":1,"newLines":2,"lines":[" a();","-sleep(1);"," b();"]}]}
a5 <- r2  reply  m4 tool t3 Task {"description":"look again","prompt":"look again","subagent_type":"Explore"}
r3 <- a5  result t3 "nothing" {"agentId":"x1","totalToolUseCount":1,"totalTokens":900}
a6 <- r3  reply  m5 text "Done."
u3 <- a6  user   "and the warp?"
a7 <- u3  reply  m6 text "Left behind."
u4 <- a6  user   "and the weft?"
a8 <- u4  reply  m7 text "Kept."
title "The slow loom"
"#;

fn loom() -> (TestHome, String) {
    let home = TestHome::new();
    home.session("loom", LOOM);
    let agent = "b1 user \"look again\"\nb2 <- b1 reply n1 text \"I looked.\"";
    home.agent("loom", "x1", agent, Some(r#"{"agentType":"Explore","description":"look again"}"#));
    (home, session_uuid("loom"))
}

#[test]
fn a_session_is_readable_without_scripts() {
    let (home, id) = loom();
    let served = TestServer::new(&home);
    let page = served.get(&format!("/s/{id}"));
    assert_eq!(page.status, 200);
    for text in [
        "<h1>The slow loom</h1>",
        "why is the loom slow?",
        "There is a <strong>sleep</strong> in <code>main.rs</code>.",
        &format!("cd /home/ada/loom &amp;&amp; claude --resume {id}"),
        &format!("href=\"/s/{id}/changes\""),
        &format!("href=\"/s/{id}?branch=m13\""),
        &format!("data-src=\"/s/{id}/agent?agent=x1\""),
        "and the weft?",
        "id=\"m7\"",
    ] {
        assert!(page.body.contains(text), "{text}\n{}", page.body);
    }
    assert!(!page.body.contains("Left behind.<"), "a branch has its own page");
    let branch = served.get(&format!("/s/{id}?branch=m13")).body;
    assert!(
        branch.contains("Left behind.")
            && branch.contains("why is the loom slow?")
            && !branch.contains("and the weft?")
    );
    let agent = served.get(&format!("/s/{id}?agent=x1")).body;
    assert!(agent.contains("I looked.") && agent.contains("Sub-agent: look again."));
    let inside = served.get(&format!("/s/{id}/agent?agent=x1")).body;
    assert!(inside.contains("id=\"a-x1-m2\"") && inside.contains("I looked."), "{inside}");
    let changes = served.get(&format!("/s/{id}/changes")).body;
    assert!(changes.contains("src/main.rs") && changes.contains("sleep(1);"), "{changes}");
    let patch = served.get(&format!("/s/{id}/changes.md")).body;
    assert!(patch.contains("--- a/src/main.rs") && patch.contains("-sleep(1);"), "{patch}");
    let raw = served.get(&format!("/s/{id}/raw?line=1"));
    assert_eq!(raw.header("content-type"), "text/plain; charset=utf-8");
    assert!(raw.body.starts_with('{') && raw.body.contains("why is the loom slow?"));
    let found = served.get(&format!("/s/{id}/find?q=sleep")).body;
    assert!(found.contains("\"m3\"") && found.contains("\"m5\""), "{found}");
}

#[test]
fn json_and_markdown_have_the_same_content() {
    let (home, id) = loom();
    let served = TestServer::new(&home);
    let json = served.get(&format!("/s/{id}.json"));
    assert_eq!((json.status, json.header("content-type")), (200, "application/x-ndjson"));
    let lines: Vec<serde_json::Value> =
        json.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "session");
    assert_eq!(lines[0]["turns"], 3);
    let conversation = lines.iter().take_while(|line| line["type"] != "branch");
    let turns = conversation.filter(|line| line["type"] == "turn" && line["agent"].is_null()).count();
    assert_eq!(turns, 3);
    assert!(json.body.contains("I looked."), "sub-agents are included at their call");
    let text = served.get(&format!("/s/{id}.md"));
    assert_eq!(text.header("content-type"), "text/markdown; charset=utf-8");
    assert!(text.body.starts_with("# The slow loom\n") && text.body.contains("## 3\n"), "{}", text.body);
    let agent = served.get(&format!("/s/{id}.md?agent=x1")).body;
    assert!(agent.contains("I looked."), "{agent}");
}

#[test]
fn json_and_markdown_are_those_of_the_export() {
    let home = TestHome::new();
    // An abandoned branch, a sub-agent without a call, and an incomplete last line.
    let talk = "u1 user \"one\"\na1 <- u1 reply m1 text \"yes\"\nu2 <- a1 user \"left\"\na2 <- u2 reply m2 text \"gone\"\nu3 <- a1 user \"kept\"\na3 <- u3 reply m3 text \"here\"\nraw {\"type\":\"us";
    home.session("fork", talk);
    home.agent("fork", "x1", "b1 user \"look\"\nb2 <- b1 reply n1 text \"I looked.\"", None);
    let served = TestServer::new(&home);
    let id = session_uuid("fork");
    let app = App::new(AppConfig { homes: vec![home.root().to_owned()], ..AppConfig::default() });
    let loaded = app.load(&app.session(&id).unwrap()).unwrap();
    let (mut json, mut markdown) = (Vec::new(), Vec::new());
    loaded.write_json(&mut json).unwrap();
    loaded.write_markdown(DetailLevel::Tools, &mut markdown).unwrap();
    assert_eq!(served.get(&format!("/s/{id}.json")).body, String::from_utf8(json).unwrap());
    let text = served.get(&format!("/s/{id}.md")).body;
    assert_eq!(text, String::from_utf8(markdown).unwrap());
    assert!(text.contains("# Abandoned branch at m2") && text.contains("I looked."), "{text}");
    // The conversation of a branch is formatted in the same way.
    let branch = served.get(&format!("/s/{id}.md?branch=m4")).body;
    assert!(branch.contains("gone\n") && !branch.contains("\n\n\n") && !branch.contains("kept"), "{branch}");
}

#[test]
fn no_parameter_escapes_the_store() {
    let (home, id) = loom();
    let secret = "the password is warp";
    home.file("history.jsonl", format!("{secret}\n"));
    home.file("outside.jsonl", format!("{secret}\n"));
    home.file("projects/-home-ada-loom/note.txt", secret);
    let served = TestServer::new(&home);
    let root = home.root().display().to_string();
    let long = "a".repeat(6000);
    let evil = [
        "../history",
        "..%2f..%2fhistory",
        "%2e%2e/%2e%2e/history",
        "....//history",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "..\\history",
        "%00",
        "history%00.jsonl",
        "outside",
        "note.txt",
        &format!("{root}/history.jsonl"),
        &root.replace('/', "%2f"),
        "-home-ada-loom%2fnote.txt",
        "C:%5cWindows",
        "last",
        &id[..8],
        "*",
        "%ff%fe",
        "m99999999999999999999",
        "-1",
        "18446744073709551615",
        "<script>",
        &long,
    ];
    for bad in evil {
        for path in [
            format!("/s/{bad}"),
            format!("/s/{bad}.json"),
            format!("/s/{bad}.md"),
            format!("/s/{bad}/part?name=m1"),
            format!("/s/{bad}/raw?line=1"),
            format!("/s/{bad}/live"),
            format!("/s/{bad}/changes"),
            format!("/s/{bad}/find?q=warp"),
            format!("/{bad}"),
            format!("/assets/{bad}/page.css/x"),
            format!("/assets/x/{bad}"),
            format!("/s/{id}?agent={bad}"),
            format!("/s/{id}.json?agent={bad}"),
            format!("/s/{id}/part?name={bad}"),
            format!("/s/{id}/part?name=m1&agent={bad}"),
            format!("/s/{id}/raw?line={bad}"),
            format!("/s/{id}/raw?line=1&agent={bad}"),
            format!("/s/{id}/outline?number={bad}"),
            format!("/s/{id}/agent?agent={bad}"),
        ] {
            // A live stream responds before it looks up the session.
            let reply = if path.ends_with("/live") {
                continue;
            } else {
                served.get(&path.replace('<', "%3C").replace('>', "%3E"))
            };
            // A name that the command line accepts leads to a session of the store.
            let is_redirect =
                reply.status == 307 && reply.header("location").starts_with(&format!("/s/{id}"));
            assert!(is_redirect || matches!(reply.status, 303 | 400 | 404 | 414), "{path}: {}", reply.status);
            assert!(!reply.body.contains(secret) && !reply.body.contains("root:"), "{path}");
            assert!(!reply.body.contains("panicked"), "{path}");
        }
        for path in [
            format!("/s/{id}?at={bad}"),
            format!("/s/{id}?branch={bad}"),
            format!("/s/{id}/find?q={bad}"),
            format!("/sessions?project={bad}"),
            format!("/records?project={bad}"),
        ] {
            let reply = served.get(&path.replace('<', "%3C").replace('>', "%3E").replace('*', "%2A"));
            assert!(matches!(reply.status, 200 | 400 | 404 | 414), "{path}: {}", reply.status);
            assert!(!reply.body.contains(secret), "{path}");
        }
    }
    assert_eq!(served.get(&format!("/s/{id}")).status, 200);
}

#[test]
#[cfg(unix)]
fn saved_output_is_read_from_the_session_folder_and_not_through_links() {
    let home = TestHome::new();
    let call = |i: usize, above: &str, name: &str| {
        format!(
            "a{i} <- {above} reply m{i} tool t{i} Bash {{\"command\":\"x\"}}\nr{i} <- a{i} result t{i} \"short\" {{\"stdout\":\"short\",\"stderr\":\"\",\"persistedOutputPath\":\"/elsewhere/tool-results/{name}\"}}\n"
        )
    };
    home.session(
        "kept",
        &format!("u1 user \"go\"\n{}{}", call(1, "u1", "good.txt"), call(2, "r1", "link.txt")),
    );
    let id = session_uuid("kept");
    home.file(format!("projects/-home-ada-loom/{id}/tool-results/good.txt"), "all of the output");
    let secret = home.file("secret.txt", "nobody may read this");
    std::os::unix::fs::symlink(
        secret,
        home.root().join(format!("projects/-home-ada-loom/{id}/tool-results/link.txt")),
    )
    .unwrap();
    let page = TestServer::new(&home).get(&format!("/s/{id}")).body;
    assert!(page.contains("all of the output"));
    assert!(!page.contains("nobody may read this"));
}

#[test]
fn changes_to_a_log_are_shown_and_do_not_affect_others() {
    let (home, id) = loom();
    let path = home.session("other", "u1 user \"first words\"");
    let other = session_uuid("other");
    let served = TestServer::new(&home);
    assert!(served.get(&format!("/s/{other}")).body.contains("first words"));
    // The log grows, and ends in the middle of a line.
    let mut file = std::fs::File::options().append(true).open(&path).unwrap();
    file.write_all(b"{\"type\":\"user\",\"mess").unwrap();
    let page = served.get(&format!("/s/{other}")).body;
    assert!(
        page.contains("first words") && page.contains("The last line of the log is incomplete"),
        "{page}"
    );
    file.write_all(b"\xff\xfe\x00 not json\n").unwrap();
    let page = served.get(&format!("/s/{other}")).body;
    assert!(
        page.contains("unknown line") && !page.contains("The last line of the log is incomplete"),
        "{page}"
    );
    // The log is replaced, truncated and deleted.
    std::fs::rename(home.session("third", "u1 user \"other words\""), &path).unwrap();
    let page = served.get(&format!("/s/{other}")).body;
    assert!(page.contains("other words") && !page.contains("first words"), "{page}");
    std::fs::write(&path, "").unwrap();
    assert_eq!(served.get(&format!("/s/{other}")).status, 200);
    std::fs::remove_file(&path).unwrap();
    let gone = served.get(&format!("/s/{other}"));
    assert_eq!(gone.status, 404);
    assert!(gone.body.contains("Session not found"));
    assert_eq!(served.get(&format!("/s/{id}")).status, 200);
}

#[test]
fn a_huge_line_is_truncated_with_a_note() {
    let home = TestHome::new();
    let long = "warp and weft ".repeat(3 << 20);
    home.session(
        "huge",
        &format!("u1 user \"begin\"\na1 <- u1 reply m1 text \"{long}\"\nu2 <- a1 user \"end\""),
    );
    let id = session_uuid("huge");
    let served = TestServer::new(&home);
    let page = served.get(&format!("/s/{id}"));
    assert_eq!(page.status, 200);
    assert!(page.body.contains("begin") && page.body.len() < 8 << 20, "{}", page.body.len());
    let raw = served.get(&format!("/s/{id}/raw?line=2")).body;
    assert!(raw.len() < 2 << 20 && raw.ends_with("bytes in total"), "{}", raw.len());
    assert!(served.get(&format!("/s/{id}?at=m3")).body.contains("end"));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "two gigabytes take long without optimisation")]
fn a_session_of_two_gigabytes_and_a_line_of_a_hundred_megabytes_are_shown() {
    let home = TestHome::new();
    let path = home.session("huge", "u1 user \"the first of very many\"");
    let mut log = BufWriter::new(File::options().append(true).open(path).unwrap());
    let text = "woven ".repeat(4000);
    let (mut written, mut n) = (0, 1);
    while written < 2_050_000_000_u64 {
        n += 1;
        let line = prompt_line(n, &format!("{text} {n}")).to_string();
        written += line.len() as u64 + 1;
        writeln!(log, "{line}").unwrap();
    }
    drop(log);
    let path = home.session("wide", "u1 user \"before\"");
    let mut log = BufWriter::new(File::options().append(true).open(path).unwrap());
    writeln!(log, "{}\n{}", prompt_line(2, &"wide ".repeat(22_000_000)), prompt_line(3, "after")).unwrap();
    drop(log);
    let served = TestServer::new(&home);
    let page = served.get(&format!("/s/{}", session_uuid("huge")));
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Log too large: showing lines"));
    assert!(page.body.len() < 20 << 20);
    let last = served.get(&format!("/s/{}?at=m{n}", session_uuid("huge")));
    assert!(last.status == 200 && last.body.contains(&format!("id=\"m{n}\"")));
    let page = served.get(&format!("/s/{}", session_uuid("wide")));
    assert_eq!(page.status, 200);
    assert!(page.body.contains("before") && page.body.contains("after") && page.body.len() < 40 << 20);
    assert_eq!(served.get("/").status, 200);
}

/// Returns a prompt line that follows the previous one.
fn prompt_line(n: u64, text: &str) -> serde_json::Value {
    serde_json::json!({"type": "user", "uuid": format!("{n:08}-0000-4000-8000-000000000000"),
        "parentUuid": format!("{:08}-0000-4000-8000-000000000000", n - 1), "timestamp": "2026-02-01T10:00:00Z",
        "sessionId": "s", "cwd": "/home/ada/loom", "message": {"role": "user", "content": text}})
}

#[test]
fn followers_get_updates_and_stalled_clients_block_nothing() {
    let (home, id) = loom();
    let path = home.root().join(format!("projects/-home-ada-loom/{id}.jsonl"));
    let served = TestServer::new(&home);
    let follow = || {
        let mut stream = served.connect();
        let head = format!(
            "GET /s/{id}/live HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nCookie: {}\r\n\r\n",
            served.port,
            served.cookie()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let deaf: Vec<_> = (0..20).map(|_| follow()).collect();
    let mut events = BufReader::new(follow()).lines().map(|line| line.unwrap());
    let mut next =
        || events.by_ref().find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
    let first: serde_json::Value = serde_json::from_str(&next()).unwrap();
    assert_eq!(first["last"], 16);
    for i in 0..30 {
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        let lines = threadline_testkit::log_of(&id, &format!("n{i} <- ?a8 user \"more {i}\""));
        file.write_all(&lines).unwrap();
    }
    loop {
        let change: serde_json::Value = serde_json::from_str(&next()).unwrap();
        if change["last"] == 46 {
            break;
        }
    }
    std::fs::remove_file(&path).unwrap();
    assert!(events.by_ref().any(|line| line == "event: gone"));
    assert_eq!(served.get("/").status, 200);
    drop(deaf);
}

#[test]
fn prefixes_and_titles_redirect_to_the_session() {
    let (home, id) = loom();
    home.session("other", "u1 user \"another loom\"\ntitle \"The fast loom\"");
    let served = TestServer::new(&home);
    let location = |path: &str| {
        let answer = served.get(path);
        (answer.status, answer.header("location").to_owned())
    };
    let prefix = &id[..8];
    for (asked, target) in [
        (format!("/s/{prefix}"), format!("/s/{id}")),
        (format!("/s/{prefix}.md?at=m3"), format!("/s/{id}.md?at=m3")),
        (format!("/s/{prefix}/changes.json"), format!("/s/{id}/changes.json")),
        ("/s/the%20slow%20loom".to_owned(), format!("/s/{id}")),
        ("/s/slow".to_owned(), format!("/s/{id}")),
    ] {
        assert_eq!(location(&asked), (307, target), "{asked}");
    }
    assert_eq!(served.get(&format!("/s/{id}")).status, 200);
    assert_eq!(served.get("/s/nothing-like-it").status, 404);
    let several = served.get("/s/loom");
    assert_eq!(several.status, 404);
    assert!(several.body.contains("matches 2 sessions"), "{}", several.body);
    assert!(several.body.contains(&format!("<a href=\"/s/{id}\">The slow loom</a>")), "{}", several.body);
    // A path is never followed, even if it exists.
    let log = home.root().join("elsewhere.jsonl");
    std::fs::write(&log, "{}").unwrap();
    let path = log.to_str().unwrap().replace('/', "%2F");
    assert_eq!(served.get(&format!("/s/{path}")).status, 404);
}
