//! Kills the process while it changes a session: the file must be the complete old or the complete new
//! version, and an undo or a second run must succeed.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::edit::EditFixture;

/// Returns the notation of a session that is large enough to take a while to write.
fn large_session(turns: usize) -> String {
    let mut out = String::new();
    let mut tip = String::new();
    for t in 0..turns {
        let arrow = if t == 0 { String::new() } else { format!(" <- {tip}") };
        writeln!(out, "u{t}{arrow} user \"question {t}\"").unwrap();
        writeln!(out, "h{t} <- u{t} reply m{t} thinking \"hm\" \"sig\"").unwrap();
        writeln!(out, "c{t} <- h{t} reply m{t} tool t{t} Bash {{\"command\":\"ls\"}}").unwrap();
        writeln!(out, "r{t} <- c{t} result t{t} \"{}\"", "many words ".repeat(100)).unwrap();
        writeln!(out, "s{t} <- r{t} reply n{t} text \"Done {t}.\"").unwrap();
        tip = format!("s{t}");
    }
    out
}

const STRIP: &[&str] = &["edit", "strip", "last", "--preset", "extreme", "--in-place", "--apply", "--quiet"];

#[test]
fn a_killed_edit_leaves_the_session_complete() {
    let kills = if cfg!(debug_assertions) { 12 } else { 400 };
    let world = EditFixture::new();
    let path = world.home.session("loom", &large_session(300));
    let old = std::fs::read(&path).unwrap();
    let begin = Instant::now();
    assert_eq!(world.run(STRIP).code, 0);
    let whole = begin.elapsed();
    let new = std::fs::read(&path).unwrap();
    assert_ne!(old, new);
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(std::fs::read(&path).unwrap(), old);
    let (mut olds, mut news, mut begun) = (0, 0, 0);
    for i in 0..kills {
        // Kills at points spread over the whole run, in a scattered order.
        let part = (i * 7919 % kills) as f64 / kills as f64;
        let mut child = world
            .command(STRIP)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * part));
        let _ = child.kill();
        child.wait().unwrap();
        let now = std::fs::read(&path).unwrap();
        assert!(now == old || now == new, "neither the old nor the new one after {part}");
        if now == old {
            olds += 1
        } else {
            news += 1
        }
        let log = world.run(&["op", "log", "--json"]).json_lines();
        let open = log.iter().find(|receipt| receipt["state"] != "undone" && receipt["state"] != "begun");
        if open.is_some_and(|receipt| receipt["state"] == "applying") {
            begun += 1;
        }
        if i % 2 == 0 {
            // A second run either makes the change or finds it made.
            let again = world.run(STRIP);
            assert!(again.code == 0 || now == new, "{again}");
            assert_eq!(std::fs::read(&path).unwrap(), new);
            std::fs::write(&path, &old).unwrap();
        } else if open.is_some() {
            let undo = world.run(&["op", "undo", "--apply"]);
            assert_eq!(undo.code, 0, "{undo}");
            assert_eq!(std::fs::read(&path).unwrap(), old);
        }
        world.run(&["op", "forget", "--all", "--apply"]);
    }
    // Only the log remains in the folder.
    let left: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    println!(
        "{kills} kills: {olds} times the old file, {news} times the new one, {begun} receipts of work that died"
    );
}
