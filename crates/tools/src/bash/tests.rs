#![cfg(unix)]

use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use crate::cancel::CancelToken;
use crate::output::ResultContent;
use crate::testing::Fixture;
use crate::tool::validate;

fn bash(fixture: &Fixture, command: &str) -> String {
    fixture.text("Bash", &serde_json::json!({ "command": command }).to_string())
}

fn record(fixture: &Fixture, command: &str) -> String {
    fixture.record("Bash", &serde_json::json!({ "command": command }).to_string())
}

/// Blocks until another process has made a condition true.
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not come true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn both_streams_are_merged_in_order() {
    let fixture = Fixture::new();
    assert_eq!(bash(&fixture, "echo out; echo err >&2; echo more"), "out\nerr\nmore");
    assert_eq!(
        record(&fixture, "echo out"),
        r#"{"stdout":"out","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}"#
    );
}

#[test]
fn a_failure_shows_the_exit_code_first() {
    let fixture = Fixture::new();
    assert_eq!(bash(&fixture, "echo out; echo err >&2; exit 3"), "ERR Exit code 3\nout\nerr");
    assert_eq!(bash(&fixture, "false"), "ERR Exit code 1");
    assert_eq!(record(&fixture, "exit 3"), r#""Error: Exit code 3""#);
    assert_eq!(
        bash(&fixture, "nonexistent-command-xyz"),
        "ERR Exit code 127\n/bin/bash: line 1: nonexistent-command-xyz: command not found"
    );
    assert_eq!(
        bash(&fixture, "echo 'unclosed"),
        "ERR Exit code 2\n/bin/bash: eval: line 1: unexpected EOF while looking for matching `''"
    );
    assert_eq!(bash(&fixture, "kill -TERM $$"), "ERR Exit code 144");
    assert_eq!(bash(&fixture, "kill -KILL $$"), "ERR Exit code 1");
}

#[test]
fn no_output_is_a_note() {
    let fixture = Fixture::new();
    assert_eq!(bash(&fixture, "true"), "(Bash completed with no output)");
    assert_eq!(bash(&fixture, ""), "(Bash completed with no output)");
    assert_eq!(
        record(&fixture, "mkdir a"),
        r#"{"stdout":"","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":true}"#
    );
}

#[test]
fn exit_codes_with_a_meaning_are_no_failures() {
    let fixture = Fixture::new();
    assert_eq!(bash(&fixture, "echo a | grep b"), "(Bash completed with no output)");
    assert_eq!(
        record(&fixture, "test -f nope"),
        r#"{"stdout":"","stderr":"","interrupted":false,"isImage":false,"returnCodeInterpretation":"Condition is false","noOutputExpected":false}"#
    );
}

#[test]
fn blank_lines_around_the_output_are_removed() {
    let fixture = Fixture::new();
    assert_eq!(bash(&fixture, r"printf '\n\n  padded  \n\n'"), "  padded");
    assert_eq!(bash(&fixture, r"printf '   \n  x\n'"), "  x");
    assert_eq!(bash(&fixture, r"printf 'a\n\n\nb'"), "a\n\n\nb");
}

#[test]
fn the_folder_persists_inside_the_project() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("sub")).unwrap();
    assert_eq!(bash(&fixture, "cd sub && pwd"), "$CWD/sub");
    assert_eq!(bash(&fixture, "pwd; export FOO=1"), "$CWD/sub");
    assert_eq!(bash(&fixture, "cd ..; false"), "ERR Exit code 1");
    assert_eq!(bash(&fixture, "pwd; echo \"FOO=$FOO\""), "$CWD/sub\nFOO=");
    assert_eq!(bash(&fixture, "cd / && echo out"), "out\nShell cwd was reset to $CWD");
    assert_eq!(bash(&fixture, "pwd"), "$CWD");
    assert_eq!(
        record(&fixture, "cd /"),
        r#"{"stdout":"","stderr":"\nShell cwd was reset to $CWD","interrupted":false,"isImage":false,"noOutputExpected":true}"#
    );
}

#[test]
fn a_removed_folder_is_replaced_by_the_project() {
    let fixture = Fixture::new();
    bash(&fixture, "mkdir sub && cd sub");
    std::fs::remove_dir(fixture.path("sub")).unwrap();
    assert_eq!(bash(&fixture, "pwd"), "$CWD");
}

#[test]
fn there_is_no_input() {
    let fixture = Fixture::new();
    assert_eq!(bash(&fixture, "read x; echo \"got: $x\""), "got:");
    assert_eq!(bash(&fixture, "cat <<EOF\nhi\nEOF"), "hi");
}

#[test]
fn a_large_output_is_kept_in_a_file() {
    let fixture = Fixture::new();
    let output = fixture.run("Bash", r#"{"command": "seq 1 20000"}"#);
    let text = fixture.masked(output.text());
    let start = "<persisted-output>\nOutput too large (106.3KB). Full output saved to: $ROOT/tool-results/b";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("\n\nPreview (first 2KB):\n1\n2\n3\n"), "{text}");
    assert!(text.ends_with("\n526\n527\n...\n</persisted-output>"), "{text}");
    let record: serde_json::Value = serde_json::from_str(output.record.unwrap().get()).unwrap();
    assert_eq!(record["stdout"].as_str().unwrap().len(), 30_000);
    assert_eq!(record["persistedOutputSize"], 108_894);
    let path = record["persistedOutputPath"].as_str().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().len(), 108_894);
    assert_eq!(std::fs::read_dir(fixture.outside("tasks")).unwrap().count(), 0);
}

#[test]
fn a_large_output_of_a_failure_is_cut() {
    let fixture = Fixture::new();
    let text = bash(&fixture, "seq 1 20000; exit 4");
    assert!(text.starts_with("ERR Exit code 4\n1\n2\n"), "{text}");
    assert!(text.contains("\n\n... [20012 characters truncated] ...\n\n"), "{text}");
    assert!(text.ends_with("\n6221\n62"), "{text}");
}

#[test]
fn an_image_as_a_data_url_is_shown() {
    let fixture = Fixture::new();
    let output = fixture.run("Bash", r#"{"command": "echo 'data:image/png;base64,AAAA'"}"#);
    let ResultContent::Blocks(blocks) = output.content else { panic!("no blocks") };
    assert_eq!(
        blocks[0].get(),
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#
    );
}

#[test]
fn the_rewritten_command_does_not_change_to_the_current_folder() {
    let fixture = Fixture::new();
    let input = serde_json::json!({
        "command": format!("cd {} && find . -exec x {{}} \\\\;", fixture.project.display()),
        "run_in_background": "false",
        "description": "d",
    });
    let raw = RawValue::from_string(input.to_string()).unwrap();
    let input = validate(fixture.tools.get("Bash").unwrap(), &raw, &fixture.project).unwrap();
    assert_eq!(
        input.raw().get(),
        r#"{"command":"find . -exec x {} \\;","description":"d","run_in_background":false}"#
    );
}

#[test]
fn a_command_over_its_time_moves_to_the_background() {
    let fixture = Fixture::new();
    let output = fixture.run("Bash", r#"{"command": "echo begun; sleep 0.6; echo ended", "timeout": 300}"#);
    let text = fixture.masked(output.text());
    assert!(text.starts_with("Command running in background with ID: b"), "{text}");
    let finished = fixture.background.wait_finished(Duration::from_secs(20), &fixture.cancel);
    assert_eq!(finished.len(), 1);
    let task = &finished[0];
    assert_eq!(
        text,
        format!(
            "Command running in background with ID: {0}. Output is being written to: $ROOT/tasks/{0}.output. You will be \
             notified when it completes. To check interim output, use Read on that file path.",
            task.id
        )
    );
    assert_eq!(std::fs::read_to_string(&task.output_file).unwrap(), "begun\nended\n");
    assert_eq!(
        fixture.masked(&task.notification()),
        format!(
            "<task-notification>\n<task-id>{0}</task-id>\n<tool-use-id>toolu_1</tool-use-id>\n\
             <output-file>$ROOT/tasks/{0}.output</output-file>\n<status>completed</status>\n\
             <summary>Background command \"echo begun; sleep 0.6; echo ended\" completed (exit code 0)</summary>\n\
             </task-notification>",
            task.id
        )
    );
    assert!(!fixture.background.has_running());
}

#[test]
fn a_command_that_sleeps_over_its_time_is_killed() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.text("Bash", r#"{"command": "sleep 60", "timeout": 50}"#),
        "ERR Exit code 143\nCommand timed out after 0s"
    );
    let text =
        fixture.text("Bash", r#"{"command": "for i in 1 2; do echo $i; sleep 60; done", "timeout": 1000}"#);
    assert!(text.starts_with("ERR Exit code 143\nCommand timed out after 1s"), "{text}");
    assert!(!fixture.background.has_running());
}

#[test]
fn a_failed_background_command_is_reported_with_its_description() {
    let fixture = Fixture::new();
    fixture.run("Bash", r#"{"command": "exit 7", "run_in_background": true, "description": "Fail it"}"#);
    let finished = fixture.background.wait_finished(Duration::from_secs(20), &fixture.cancel);
    let text = finished[0].notification();
    assert!(text.contains("<status>failed</status>"), "{text}");
    assert!(
        text.contains("<summary>Background command \"Fail it\" failed with exit code 7</summary>"),
        "{text}"
    );
    assert!(fixture.background.take_finished().is_empty());
}

#[test]
fn cancelling_ends_the_whole_process_group() {
    let fixture = Fixture::new();
    let ready = fixture.path("ready");
    let alive = fixture.path("alive");
    // Neither the shell nor its child reacts to SIGTERM.
    let command = format!(
        "trap '' TERM; (trap '' TERM; touch {}; sleep 60; touch {}) & wait",
        ready.display(),
        alive.display()
    );
    let cancel = fixture.cancel.clone();
    let waiter = std::thread::spawn(move || {
        wait_until(|| ready.exists());
        cancel.cancel();
    });
    let started = Instant::now();
    let output = fixture.run("Bash", &serde_json::json!({ "command": command }).to_string());
    waiter.join().unwrap();
    assert!(output.is_error);
    assert_eq!(output.text(), "<error>Command was aborted before completion</error>");
    assert!(output.record.unwrap().get().contains("\"interrupted\":true"));
    assert!(started.elapsed() < Duration::from_secs(30));
    let pattern = alive.display().to_string();
    let left = std::process::Command::new("pgrep").args(["-f", &pattern]).output().unwrap();
    assert!(left.stdout.is_empty(), "{left:?}");
}

#[test]
fn a_released_command_goes_on_in_the_background() {
    let fixture = Fixture::new();
    let (ready, go) = (fixture.path("ready"), fixture.path("go"));
    let made = std::process::Command::new("mkfifo").arg(&go).status().unwrap();
    assert!(made.success());
    let command = format!("touch {}; cat {}", ready.display(), go.display());
    let switch = fixture.background.switch();
    assert!(!switch.release_all(), "nothing runs yet");
    let waiter = std::thread::spawn(move || {
        wait_until(|| ready.exists());
        switch.release_all()
    });
    let output = fixture.run("Bash", &serde_json::json!({ "command": command }).to_string());
    assert!(waiter.join().unwrap());
    assert!(output.text().starts_with("Command was manually backgrounded by user with ID: b"), "{output:?}");
    assert!(output.record.unwrap().get().ends_with(r#","backgroundedByUser":true}"#));
    std::fs::write(&go, "written later").unwrap();
    let finished = fixture.background.wait_finished(Duration::from_secs(20), &fixture.cancel);
    assert_eq!(std::fs::read_to_string(&finished[0].output_file).unwrap(), "written later");
}

#[test]
fn a_command_that_the_person_stops_ends_at_once_and_is_not_reported() {
    let fixture = Fixture::new();
    let ready = fixture.path("ready");
    // It ignores the first signal.
    let command = format!("trap '' TERM; touch {}; while :; do sleep 0.1; done", ready.display());
    let input = serde_json::json!({ "command": command, "run_in_background": true });
    fixture.run("Bash", &input.to_string());
    wait_until(|| ready.exists());
    let switch = fixture.background.switch();
    let id = fixture.background.running().remove(0);
    assert!(!switch.stop("bother", Duration::ZERO), "there is no such task");
    assert!(switch.stop(&id, Duration::from_millis(10)));
    let finished = fixture.background.wait_finished(Duration::from_secs(20), &fixture.cancel);
    assert!(finished.is_empty() && !fixture.background.has_running(), "{finished:?}");
    assert!(!switch.stop(&id, Duration::ZERO), "it has ended");
}

#[test]
fn descendants_that_keep_the_output_open_do_not_block() {
    let fixture = Fixture::new();
    let started = Instant::now();
    assert_eq!(bash(&fixture, "sleep 30 & echo $! > pid; echo done"), "done");
    assert!(started.elapsed() < Duration::from_secs(20));
    bash(&fixture, "kill $(cat pid)");
}

#[test]
fn an_endless_output_is_stopped() {
    let mut fixture = Fixture::new();
    fixture.limits.bash_output_max = 1 << 20;
    let text = bash(&fixture, "yes");
    assert!(text.starts_with("ERR Exit code 1\ny\ny\n"), "{}", &text[..40]);
}

#[test]
fn dropping_the_list_kills_running_commands() {
    let fixture = Fixture::new();
    let marker = fixture.path("marker-of-this-test");
    let input = serde_json::json!({
        "command": format!("sleep 60; touch {}", marker.display()),
        "run_in_background": true,
    });
    fixture.run("Bash", &input.to_string());
    assert!(fixture.background.has_running());
    drop(fixture);
    let pattern = marker.display().to_string();
    let left = std::process::Command::new("pgrep").args(["-f", &pattern]).output().unwrap();
    assert!(left.stdout.is_empty(), "{left:?}");
}

#[test]
fn waiting_ends_when_the_token_is_cancelled() {
    let fixture = Fixture::new();
    fixture.run("Bash", r#"{"command": "sleep 60", "run_in_background": true}"#);
    let cancel = CancelToken::new();
    cancel.cancel();
    assert!(fixture.background.wait_finished(Duration::from_secs(60), &cancel).is_empty());
}

#[test]
fn the_record_lists_git_operations() {
    let fixture = Fixture::new();
    let output =
        fixture.run("Bash", r#"{"command": "gh() { echo https://github.com/o/r/pull/12; }; gh pr create"}"#);
    assert_eq!(
        output.record.unwrap().get(),
        r#"{"stdout":"https://github.com/o/r/pull/12","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false,"gitOperation":{"pr":{"number":12,"url":"https://github.com/o/r/pull/12","action":"created"}}}"#
    );
    assert_eq!(output.pull_request.unwrap().repository, "o/r");
}

#[test]
fn a_very_long_command_runs() {
    let fixture = Fixture::new();
    let text = "it's ".repeat(60_000);
    assert_eq!(bash(&fixture, &format!("cat > long.txt <<'EOF'\n{text}\nEOF\nwc -c < long.txt")), "300001");
    assert_eq!(std::fs::read_dir(fixture.outside("tasks")).unwrap().count(), 0);
}

#[test]
fn a_very_long_command_runs_in_the_background() {
    let fixture = Fixture::new();
    let command = format!("# {}\necho long", "x".repeat(100_000));
    let input = serde_json::json!({ "command": command, "run_in_background": true });
    fixture.run("Bash", &input.to_string());
    let finished = fixture.background.wait_finished(Duration::from_secs(20), &fixture.cancel);
    assert_eq!(std::fs::read_to_string(&finished[0].output_file).unwrap(), "long\n");
}
