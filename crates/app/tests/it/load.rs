//! Finding and loading sessions.

use threadline_app::{
    App, AppConfig, AppError, MAX_KEPT_OUTPUT, Mask, SessionCache, SessionSelector, kept_output,
    load_unpriced,
};
use threadline_secret::Rules;
use threadline_testkit::{TestHome, session_uuid};

use crate::app;

#[test]
fn kept_output_refuses_links_and_large_files() {
    let home = TestHome::new();
    let log = home.session("kept", "u1 user \"hi\"");
    let folder = log.with_extension("").join("tool-results");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("short.txt"), "short").unwrap();
    std::fs::write(folder.join("limit.txt"), vec![b'x'; MAX_KEPT_OUTPUT as usize]).unwrap();
    std::fs::write(folder.join("large.txt"), vec![b'x'; MAX_KEPT_OUTPUT as usize + 1]).unwrap();
    let file = app(&home).find("last").unwrap();
    let length = |name: &str| kept_output(&file, &format!("/elsewhere/{name}")).map(|text| text.len() as u64);
    assert_eq!(length("short.txt"), Some(5));
    assert_eq!(length("limit.txt"), Some(MAX_KEPT_OUTPUT));
    assert_eq!(length("large.txt"), None);
    assert_eq!(length("none.txt"), None);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link.txt")).unwrap();
        assert_eq!(length("link.txt"), None);
    }
}

#[test]
fn a_sub_agent_that_cannot_be_read_does_not_hide_the_session() {
    let home = TestHome::new();
    home.session("team", "u1 user \"hi\"\na1 <- u1 reply m1 text \"yes\"");
    let meta = r#"{"agentType":"Explore","description":"look","toolUseId":"t1"}"#;
    home.agent("team", "one", "u1 user \"look\"", Some(meta));
    let second = home.agent("team", "two", "u1 user \"look too\"", None);
    // A folder in the place of the metadata cannot be read as a file.
    std::fs::create_dir(second.with_extension("meta.json")).unwrap();
    let app = app(&home);
    let file = app.find(&session_uuid("team")).unwrap();
    let loaded = app.load(&file).unwrap();
    let agents: Vec<_> =
        loaded.family.agents.iter().map(|agent| (&*agent.id, agent.agent_type.as_deref())).collect();
    assert_eq!(agents, [("one", Some("Explore")), ("two", None)]);
    assert_eq!(loaded.unread.len(), 1);
    assert_eq!(loaded.transcript().turns.len(), 1);
    assert!(loaded.complete().is_err());
    assert!(load_unpriced(&file).unwrap().spending.is_none());
    assert!(threadline_app::read_agents(&file).is_err());
}

#[test]
fn the_context_of_a_sub_agent_is_found_by_a_unique_prefix() {
    let home = TestHome::new();
    home.session("team", "u1 user \"hi\"");
    for id in ["a1", "a12", "b34"] {
        home.agent("team", id, "u1 user \"look\"", None);
    }
    let app = app(&home);
    let loaded = app.load(&app.find("last").unwrap()).unwrap();
    let found = |id: &str| {
        let agent = loaded.context(Some(id))?.agent.unwrap();
        Ok::<_, AppError>(loaded.family.agents[agent].id.clone())
    };
    assert_eq!(found("b").unwrap(), "b34");
    assert_eq!(found("a1").unwrap(), "a1", "an exact id wins");
    let many = found("a").unwrap_err();
    assert_eq!(
        (many.to_string(), many.hints()),
        ("`a` matches 2 sub-agents".to_owned(), vec!["a1".to_owned(), "a12".to_owned()])
    );
    assert_eq!(found("c").unwrap_err().to_string(), "no sub-agent matches `c`");
    assert_eq!(loaded.context(None).unwrap().agents.len(), 3);
    assert!(loaded.spending.is_some(), "the costs are kept");
}

#[test]
fn hints_name_the_nearest_sessions() {
    let home = TestHome::new();
    home.session("11111111-aaaa-4000-8000-000000000001", "u1 user \"first\"\ntitle \"Slow loom\"");
    home.session("11111111-bbbb-4000-8000-000000000002", "u1 user \"second\"");
    let app = app(&home);
    let hints = |needle: &str| app.find(needle).unwrap_err().hints();
    assert_eq!(
        hints("slow lom"),
        ["did you mean 11111111-aaaa-4000-8000-000000000001 \"Slow loom\" (2026-01-01)"]
    );
    assert_eq!(hints("1111").len(), 2);
    assert_eq!(hints("nothing like it"), ["list sessions: `threadline list`"]);
    assert!(app.session("11111111-aaaa-4000-8000-000000000001").is_ok());
    let error = app.session("1111").unwrap_err();
    assert_eq!(error.to_string(), "no session has the id `1111`");
    assert_eq!(error.hints().len(), 1);
}

#[test]
fn prices_of_ones_own_lie_over_the_built_in_ones() {
    let home = TestHome::new();
    let file = home.file(
        "prices.json",
        r#"{"prices":[{"model":"loom-1","input":1,"output":2,"write_5m":1,"write_1h":1,"read":1}]}"#,
    );
    let with = |file: Option<std::path::PathBuf>| {
        App::new(AppConfig { prices_file: file, ..AppConfig::default() }).prices()
    };
    assert!(with(None).unwrap().prices("loom-1").is_empty());
    assert_eq!(with(Some(file.clone())).unwrap().prices("loom-1").len(), 1);
    std::fs::write(&file, "[]").unwrap();
    assert!(with(Some(file)).unwrap_err().to_string().starts_with("cannot read "));
}

#[test]
fn the_description_of_a_sub_agent_is_masked_for_sharing() {
    let home = TestHome::new();
    home.session("team", "u1 user \"hi\"");
    let meta = r#"{"agentType":"Explore","description":"deploy /home/grace/p for grace@loomworks.dev"}"#;
    home.agent("team", "one", "u1 user \"look\"", Some(meta));
    let app = app(&home).with_mask(Mask::for_sharing(Rules::new()));
    let loaded = app.load(&app.find(&session_uuid("team")).unwrap()).unwrap();
    let description = loaded.family.agents.iter().next().unwrap().description.clone().unwrap();
    assert!(description.starts_with("deploy ~/p for "), "{description}");
    assert!(!description.contains("grace") && !description.contains("loomworks"), "{description}");
}

#[test]
fn calls_that_a_fork_copied_are_inherited() {
    let [first, fork] = ["11111111-aaaa-4000-8000-000000000001", "22222222-aaaa-4000-8000-000000000002"];
    let start = "00000000-0000-4000-8000-000000000001";
    let origin = format!(
        "{start} user \"start\"\na1 <- {start} reply m1 text \"One.\" usage={{\"output_tokens\":1000}}\n"
    );
    let more = "u2 <- a1 user \"go on\"\na2 <- u2 reply m2 text \"Two.\" usage={\"output_tokens\":3000}\n";
    let home = TestHome::new();
    home.session(first, &origin);
    let path = home.session(fork, &format!("{origin}{more}"));
    let app = || app(&home);
    assert_fork(&app(), first, fork);
    // Other programs write white space between the members of a line.
    let spaced = std::fs::read_to_string(&path).unwrap().replace("\":", "\": ").replace(",\"", ", \"");
    std::fs::write(&path, spaced).unwrap();
    assert_fork(&app(), first, fork);
    // A clone has uuids of its own, and names those of its origin.
    let copied = |message: &str| {
        format!("+{{\"forkedFrom\":{{\"sessionId\":\"{first}\",\"messageUuid\":\"{message}\"}}}}")
    };
    let clone_start = "00000000-0000-4000-8000-00000000000c";
    let clone = format!(
        "{clone_start} user \"start\" {}\nc1 <- {clone_start} reply m1 text \"One.\" usage={{\"output_tokens\":1000}} {}\n",
        copied(start),
        copied("a1")
    );
    home.session(fork, &format!("{clone}{}", more.replace("a1", "c1")));
    assert_fork(&app(), first, fork);
    // A clone belongs to the last working directory of its origin, such as a worktree.
    let folder = home.root().join("projects/-home-ada-loom-worktree");
    std::fs::create_dir(&folder).unwrap();
    std::fs::rename(&path, folder.join(path.file_name().unwrap())).unwrap();
    assert_fork(&app(), first, fork);
    // A link out of the home is not followed.
    #[cfg(unix)]
    {
        let outside = tempfile::tempdir().unwrap();
        let project = path.parent().unwrap();
        std::fs::rename(project, outside.path().join("logs")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("logs"), project).unwrap();
        let app = app();
        let fork = app.load(&app.find(fork).unwrap()).unwrap().transcript().header;
        assert_eq!((fork.spent.calls, fork.inherited), (2, None));
    }
}

fn assert_fork(app: &App, first: &str, fork: &str) {
    let header = |id: &str| app.load(&app.find(id).unwrap()).unwrap().transcript().header;
    let (origin, fork) = (header(first), header(fork));
    assert_eq!((origin.spent.calls, &origin.inherited), (1, &None));
    let inherited = fork.inherited.unwrap();
    assert_eq!((fork.spent.calls, inherited.usage.calls), (1, 1));
    assert_eq!((fork.spent.tokens.output, inherited.usage.tokens.output), (3000, 1000));
    assert_eq!(inherited.from.as_deref(), Some(first));
    assert!(inherited.label().ends_with(" inherited from 11111111"), "{}", inherited.label());
    let prices = app.prices().unwrap();
    let served =
        SessionCache::new(prices).with::<_, AppError>(app, "22222222-aaaa-4000-8000-000000000002", |live| {
            Ok(live.page_layout(&SessionSelector::default()).unwrap().layout.header.spent.clone())
        });
    assert_eq!(served.unwrap(), fork.spent);
}

#[test]
fn a_file_without_lines_of_a_session_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let home = TestHome::new();
    let load = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        app(&home)
            .load(&threadline_app::SessionFile::at(path))
            .map(|loaded| loaded.family.main.entries().len())
    };
    let error = load("passwd", "root:x:0:0:root:/root:/bin/sh\n").unwrap_err().to_string();
    assert!(error.ends_with("passwd` contains no session"), "{error}");
    assert!(load("package.json", "{\"name\":\"loom\"}\n").is_err());
    assert_eq!(load("empty.jsonl", "").unwrap(), 0);
    assert_eq!(load("torn.jsonl", "{\"type\":\"summary\",\"summary\":\"a\"}\n{\"type\"").unwrap(), 2);
}

#[test]
fn a_log_of_more_than_four_gigabytes_is_refused() {
    let home = TestHome::new();
    let log = home.session("large", "u1 user \"hi\"");
    let app = app(&home);
    // The file is sparse: it takes no space on the disk.
    std::fs::File::options().write(true).open(&log).unwrap().set_len((4 << 30) + 1).unwrap();
    let file = app.find(&session_uuid("large")).unwrap();
    let loaded = app.load(&file).map(drop);
    let opened = app.open_for_edit(file.clone()).map(drop);
    for result in [loaded, load_unpriced(&file).map(drop), opened] {
        assert!(matches!(result, Err(AppError::LogTooLarge { .. })), "{result:?}");
    }
}
