//! `edit redact`: removes secrets from a session and all its side files.

use std::path::{Path, PathBuf};

use threadline_testkit::{secrets, session_uuid};

use crate::edit::EditFixture;

fn token(seed: u64) -> String {
    secrets(seed).into_iter().find(|secret| secret.kind == "github-token").unwrap().secret
}

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap().flatten() {
        if entry.path().is_dir() { files(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

/// Creates a home in which every file of a session contains the token.
fn home_with_token(token: &str) -> EditFixture {
    let world = EditFixture::new();
    let id = session_uuid("loom");
    let path = world.home.session(
        "loom",
        &format!(
            "u1 user \"push with {token}\"\na1 <- u1 reply m1 tool t1 Agent {{\"prompt\":\"push\"}}\n\
             r1 <- a1 result t1 \"ok\" {{\"agentId\":\"a1b2c3d\",\"content\":\"{token}\"}}\na2 <- r1 reply m2 text \"Pushed.\"\ntitle \"{token}\"\n"
        ),
    );
    let folder = path.with_extension("");
    let below = |name: &str| folder.strip_prefix(world.home.root()).unwrap().join(name);
    world.home.agent(
        "loom",
        "a1b2c3d",
        &format!("x1 user \"push\"\nx2 <- x1 reply n1 [thinking \"with {token}\" \"c2ln\", text \"Yes.\"]\n"),
        Some(&format!("{{\"agentType\":\"pusher\",\"description\":\"{token}\"}}")),
    );
    world.home.file(below("tool-results/b1.txt"), format!("output\n{token}\n"));
    world.home.file(format!("file-history/{id}/0123456789abcdef@v1"), format!("KEY {token}\n"));
    let history = format!(
        "{{\"display\":\"{token}\",\"sessionId\":\"{id}\"}}\n{{\"display\":\"other\",\"sessionId\":\"x\"}}\n"
    );
    world.home.file("history.jsonl", history);
    world.home.file("paste-cache/0a1b.txt", format!("pasted {token}"));
    world
}

fn files_containing(world: &EditFixture, token: &str) -> Vec<String> {
    let mut found = Vec::new();
    files(world.home.root(), &mut found);
    found.retain(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(token));
    let mut names: Vec<String> =
        found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_plan_lists_secrets_without_revealing_them() {
    let token = token(1);
    let world = home_with_token(&token);
    let before = files_containing(&world, &token).len();
    for args in [
        &["edit", "redact", "loom"][..],
        &["edit", "redact", "loom", "--in-place", "--diff"],
        &["edit", "redact", "loom", "--json"],
    ] {
        let mut args = args.to_vec();
        let id = session_uuid("loom");
        args[2] = &id;
        let run = world.run(&args);
        assert_eq!(run.code, 0, "{run}");
        assert!(!run.to_string().contains(&token[8..]), "{run}");
        assert!(run.out.contains("[secret:github-token:1]"), "{run}");
    }
    assert_eq!(files_containing(&world, &token).len(), before);
}

#[test]
fn plans_are_masked_with_the_secrets_of_the_whole_session() {
    let world = EditFixture::new();
    let password = "kQ8zR4tVbN2xLm7pWs5d";
    world.home.session(
        "loom",
        &format!(
            "u1 user \"export SERVICE_PASSWORD={password}\"\na1 <- u1 reply m1 text \"ok\"\n\
             u2 <- a1 user \"it is {password}\"\na2 <- u2 reply m2 text \"{password}\"\ntitle \"{password}\"\n"
        ),
    );
    let id = session_uuid("loom");
    for args in [&["edit", "clone", &*id, "--diff"][..], &["edit", "clone", &id], &["edit", "delete", &id]] {
        let plain = world.run(args);
        let masked = world.run(&[&["--redact"], args].concat());
        assert_eq!((plain.code, masked.code), (0, 0), "{masked}");
        assert!(plain.to_string().contains(password), "{plain}");
        assert!(!masked.to_string().contains(password), "{args:?}: {masked}");
    }
}

#[test]
fn a_secret_that_is_a_key_is_not_printed() {
    let token = token(2);
    let world = EditFixture::new();
    world.home.session(
        "loom",
        &format!(
            "u1 user \"push\"\na1 <- u1 reply m1 tool t1 Push {{\"{token}\":\"curl -u ada:{token} x\"}}"
        ),
    );
    for args in [&["edit", "redact", "--check"][..], &["edit", "redact", "--check", "--json"]] {
        let run = world.run(args);
        assert_eq!(run.code, 1, "{run}");
        assert!(!run.to_string().contains(&token[8..]), "{run}");
    }
}

#[test]
fn in_place_redaction_removes_all_copies_and_can_be_undone() {
    let token = token(2);
    let world = home_with_token(&token);
    let id = session_uuid("loom");
    assert_eq!(files_containing(&world, &token).len(), 7);
    let run = world.run(&["edit", "redact", &id, "--in-place", "--apply"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(files_containing(&world, &token), [] as [String; 0]);
    assert_eq!(files_containing(&world, "\"display\":\"other\""), ["history.jsonl"]);
    let check = world.run(&["check", &id]);
    assert!(!check.out.contains("F26"), "{check}");
    assert_eq!(world.run(&["edit", "redact", "--check"]).code, 0);
    assert_eq!(world.run(&["edit", "redact", &id, "--in-place"]).code, 1, "there is nothing left to do");
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(files_containing(&world, &token).len(), 7);
}

#[test]
fn a_copy_is_redacted_and_the_session_unchanged() {
    let token = token(3);
    let world = home_with_token(&token);
    let run = world.run(&["edit", "redact", &session_uuid("loom"), "--apply", "--json"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(files_containing(&world, &token).len(), 7);
    let target = run.json()["target"].as_str().unwrap().to_owned();
    let check = world.run(&["check", &target]);
    assert!(!check.out.contains("F26"), "{check}");
    assert_eq!(world.run(&["edit", "redact", "--check", &target]).code, 0);
    // All side files were copied under the new id.
    let mut copied = Vec::new();
    files(world.home.root(), &mut copied);
    copied.retain(|path| path.to_string_lossy().contains(&target));
    assert_eq!(copied.len(), 5, "{copied:?}");
    let agent = copied.iter().find(|path| path.ends_with("agent-a1b2c3d.jsonl")).unwrap();
    let agent = std::fs::read_to_string(agent).unwrap();
    assert!(agent.contains(&target) && !agent.contains("thinking"), "{agent}");
}

#[test]
fn check_reports_secrets_with_its_exit_code() {
    let token = token(4);
    let world = home_with_token(&token);
    let id = session_uuid("loom");
    let run = world.run(&["edit", "redact", "--check", &id]);
    assert_eq!(run.code, 1, "{run}");
    assert!(
        run.out.contains(&format!("{id}.jsonl:1: a GitHub token: ghp_… (40 characters) in `content`")),
        "{run}"
    );
    assert!(run.out.contains("b1.txt: a GitHub token") && !run.out.contains(&token), "{run}");
    let lines = world.run(&["edit", "redact", "--check", "--json"]).json_lines();
    assert!(lines.len() >= 7 && lines.iter().all(|line| line["code"] == "F26"), "{lines:?}");
    let clean = EditFixture::new();
    clean.home.session("loom", "u1 user \"hi\"\n");
    assert_eq!(clean.run(&["edit", "redact", "--check"]).code, 0);
    let checked = clean.run(&["edit", "redact", "--check", "--json"]);
    assert_eq!(checked.json(), serde_json::json!({"sessions": 1, "reason": "no secrets found"}));
}

#[test]
fn personal_data_custom_rules_and_allow_list() {
    let world = EditFixture::new();
    let path =
        world.home.session("loom", "u1 user \"ask ada@loom.dev in /home/ada about LOOM-12, LOOM-13\"\n");
    let rules = world.home.file("rules", "ticket LOOM-[0-9]+\n");
    let allow = world.home.file("allow", "LOOM-13\n");
    let run = world.run(&[
        "edit",
        "redact",
        "last",
        "--emails",
        "--paths",
        "--rules",
        rules.to_str().unwrap(),
        "--allow",
        allow.to_str().unwrap(),
        "--in-place",
        "--apply",
    ]);
    assert_eq!(run.code, 0, "{run}");
    let text = std::fs::read_to_string(path).unwrap();
    let said = "ask [personal:email:1] in /home/[personal:user:1] about [secret:ticket:1], LOOM-13";
    assert!(text.contains(said) && text.contains("\"cwd\":\"/home/[personal:user:1]/loom\""), "{text}");
    let copy = EditFixture::new();
    copy.home.session("loom", "u1 user \"in /home/ada\"\na1 <- u1 reply m1 text \"Yes.\"\n");
    let run = copy.run(&["edit", "redact", "last", "--paths", "--apply"]);
    assert_eq!(run.code, 0, "{run}");
    let wrong = world.home.file("wrong", "one (");
    let run = world.run(&["edit", "redact", "last", "--rules", wrong.to_str().unwrap()]);
    assert!(run.code == 2 && run.err.contains("wrong: line 1: regex parse error"), "{run}");
}

#[test]
fn secrets_are_masked_in_everything_that_is_shown_and_exported() {
    let token = token(7);
    let world = home_with_token(&token);
    let id = session_uuid("loom");
    for args in [
        &["show", &*id][..],
        &["show", &id, "--level", "full"],
        &["show", &id, "--level", "raw"],
        &["show", &id, "--outline"],
        &["show", &id, "--json"],
        &["replay", &id, "--json"],
        &["search", "push"],
        &["search", &token],
        &["search", "push", "--json"],
        &["list"],
        &["list", "--json"],
        &["export", "html", &id, "--raw", "-o", "-"],
        &["export", "html", &id, "--share", "-o", "-"],
        &["export", "markdown", &id, "--level", "full"],
        &["export", "json", &id],
    ] {
        let plain = world.run(args);
        let masked = world.run(&[&["--redact"], args].concat());
        assert_eq!((plain.code, masked.code), (0, 0), "{args:?}: {masked}");
        assert!(!masked.out.contains(&token), "{args:?}: {masked}");
        let is_shared = args.contains(&"--share");
        assert!(is_shared || plain.out.contains(&token) || args.contains(&"html"), "{args:?}: {plain}");
    }
    let shown = world.run(&["--redact", "show", &id, "--level", "full"]);
    assert!(shown.out.contains("[secret:github-token"), "{shown}");
}

#[test]
fn a_shared_page_contains_no_secrets_local_paths_or_user_names() {
    let token = token(7);
    let world = EditFixture::new();
    world.home.session(
        "loom",
        &format!("u1 user \"ada: push /home/ada/loom/a.rs with {token}, ask ada@loom.example\"\na1 <- u1 reply m1 text \"See /home/ada/notes.\""),
    );
    let run = world.run(&["export", "html", "last", "--share", "-o", "-"]);
    assert_eq!(run.code, 0, "{run}");
    for private in [&*token, "/home/ada", "ada:", "ada@loom.example"] {
        assert!(!run.out.contains(private), "{private}: {run}");
    }
    assert!(run.out.contains("/project") && run.out.contains("\"raw\":null"), "{run}");
    assert!(run.err.contains("replaced: ") && run.err.contains("github-token (1)"), "{}", run.err);
    assert!(run.err.contains("local path") && run.err.contains("user name"), "{}", run.err);
    let page = world.home.root().join("page.html");
    let written = world.run(&["export", "html", "last", "--share", "--json", "-o", page.to_str().unwrap()]);
    let (object, size) = (written.json(), std::fs::metadata(&page).unwrap().len());
    assert_eq!((&object["format"], &object["size_bytes"]), (&"html".into(), &size.into()), "{written}");
    assert_eq!(object["path"], "[home]/page.html");
    assert_eq!(object["replaced"]["secrets"]["github-token"], 1, "{written}");
    let folder = world.home.root().join("pages");
    let all = world.run(&["export", "html", "--all", "--json", "-o", folder.to_str().unwrap()]);
    let expected = serde_json::json!({"path": "[home]/pages/index.html", "sessions": 1, "written": 1});
    assert_eq!(all.json(), expected);
}

#[test]
fn names_with_secrets_are_masked_in_every_command() {
    let (branch, model, tool, folder) = (token(5), token(6), token(7), token(8));
    let world = EditFixture::new();
    let session = |name: &str| {
        let log = format!(
            "u1 user \"go\" branch=\"fix/{branch}\" cwd=\"/home/ada/{folder}\" version=\"{branch}\"\n\
             a1 <- u1 reply m1-{name} tool t1 {tool} {{\"a\":1}} model={model} usage={{\"input_tokens\":9,\"output_tokens\":5}}\n\
             r1 <- a1 result t1 \"ok\"\n\
             a2 <- r1 reply m2-{name} text \"done\" model={model} usage={{\"input_tokens\":9,\"output_tokens\":5}}\n"
        );
        world.home.session_in(&format!("/home/ada/{folder}"), name, &log);
        session_uuid(name)
    };
    let (a, b) = (session("loom"), session("cloth"));
    let commands = [
        vec!["usage", "--by", "branch"],
        vec!["usage", "--by", "model"],
        vec!["usage", "--by", "tool"],
        vec!["usage", "--by", "project"],
        vec!["usage", "--by", "session"],
        vec!["usage", "--by", "branch", "--csv"],
        vec!["usage", "--by", "tool", "--csv"],
        vec!["usage", "--explain"],
        vec!["inspect", &a],
        vec!["overview", "--since", "all", "--no-cache"],
        vec!["compare", &a, &b],
        vec!["list"],
        vec!["list", "--all"],
        vec!["show", &a],
        vec!["context", &a],
        vec!["check", &a],
        vec!["search", "go"],
        vec!["search", "ok"],
        vec!["export", "markdown", &a],
        vec!["export", "json", &a],
        vec!["export", "html", &a, "--output", "-"],
        vec!["export", "html", &a, "--output", "-", "--share"],
    ];
    for command in &commands {
        for json in [false, true] {
            if json && (command.contains(&"--csv") || command[0] == "export") {
                continue;
            }
            let mut args = command.clone();
            args.push("--redact");
            args.extend(json.then_some("--json"));
            let run = world.run(&args);
            let text = run.to_string();
            for secret in [&branch, &model, &tool, &folder] {
                // The name of the folder of the project contains no underscores.
                assert!(!text.contains(&secret[2..]), "{args:?}: {run}");
            }
        }
    }
    // The same commands without the option show them, so the test above can fail.
    let shown: String = commands.iter().map(|command| world.run(command).to_string()).collect();
    for secret in [&branch, &model, &tool, &folder] {
        assert!(shown.contains(secret), "{secret}");
    }
}
