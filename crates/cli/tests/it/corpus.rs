//! Real sessions, where they are at hand: every one, with its sub-agents and the output that lies beside it, in every
//! format at every level.

use std::collections::BTreeSet;
use std::path::Path;

use rayon::prelude::*;
use serde_json::Value;

use crate::run::{Run, threadline};

/// Debug runs are slow: a few small ones are enough there.
const MOST: (usize, u64) = if cfg!(debug_assertions) { (8, 60_000) } else { (usize::MAX, u64::MAX) };

const LEVELS: [&str; 5] = ["prompts", "chat", "tools", "full", "raw"];

#[test]
fn every_session_in_every_format_at_every_level() {
    let mut sessions = threadline_testkit::shared_logs();
    sessions.retain(|path| !path.file_name().unwrap().to_string_lossy().starts_with("agent-"));
    sessions.retain(|path| std::fs::metadata(path).unwrap().len() <= MOST.1);
    // One from here and there, rather than many of the same project.
    let step = sessions.len().div_ceil(MOST.0).max(1);
    let sessions: Vec<_> = sessions.iter().step_by(step).collect();
    sessions.par_iter().for_each(|path| draw(path));
}

fn draw(path: &Path) {
    let name = path.to_str().unwrap();
    let run = |args: &[&str]| {
        let run = threadline(args);
        assert!(run.code == 0 && !run.out.is_empty(), "{args:?}: exit {}\n{}", run.code, run.err);
        run
    };
    for level in LEVELS {
        run(&["show", name, "--level", level]);
        assert!(run(&["export", "markdown", name, "--level", level]).out.starts_with("# "), "{name}");
        let page = run(&["export", "html", name, "--level", level, "-o", "-"]).out;
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name}");
    }
    check(&run(&["export", "json", name]), name);
}

/// Every line of our JSON has a type, the first one is the session, and the same item never comes twice.
fn check(run: &Run, name: &str) {
    let lines = run.json_lines();
    assert_eq!(lines[0]["type"], "session", "{name}");
    let items = lines.iter().filter(|line| line["type"] == "item");
    let mut seen = BTreeSet::new();
    for item in items {
        let text = |key: &str| item[key].as_str().map(str::to_owned);
        assert!(matches!(item["kind"], Value::String(_)), "{name}: {item}");
        assert!(seen.insert((text("agent"), text("anchor"))), "{name}: {item}");
    }
}
