use std::path::PathBuf;

use super::*;
use crate::file_window::WINDOW_BYTES;

const PROMPT: &str = r#"{"parentUuid":null,"isSidechain":false,"cwd":"/w","version":"2.1.1","gitBranch":"main","type":"user","message":{"role":"user","content":"hello"},"timestamp":"T1"}"#;

fn preview_of_text(text: &str) -> SessionPreview {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs_err::write(&path, text).unwrap();
    let preview = read_session_preview(&SessionFile::at(path)).unwrap();
    let mut reader = PreviewReader::default();
    for length in [text.len().max(1), 1000, WINDOW_BYTES, WINDOW_BYTES + 1, 3 * WINDOW_BYTES] {
        reader.begin(text.len() as u64);
        for (n, piece) in text.as_bytes().chunks(length).enumerate() {
            reader.add((n * length) as u64, piece);
        }
        let in_pieces = reader.finish(preview.modified);
        // Some logs have no prompt at their ends.
        assert!(in_pieces.is_some() || text.len() > 2 * WINDOW_BYTES);
        assert_eq!(in_pieces.unwrap_or_else(|| preview.clone()), preview);
    }
    preview
}

#[test]
fn pieces_with_a_gap_have_no_preview() {
    let mut reader = PreviewReader::default();
    let text = format!("{PROMPT}\n");
    let size = text.len() as u64;
    for pieces in [
        &[(0, &text[..9])][..],
        &[(1, &text[1..])],
        &[(0, &text), (size, "{}")],
        &[(9, &text[..9]), (0, &text[9..])],
    ] {
        reader.begin(size);
        pieces.iter().for_each(|(offset, piece)| reader.add(*offset, piece.as_bytes()));
        assert_eq!(reader.finish(SystemTime::UNIX_EPOCH), None);
    }
    reader.begin(size);
    reader.add(0, text.as_bytes());
    assert!(reader.finish(SystemTime::UNIX_EPOCH).is_some());
}

fn of(lines: &[&str]) -> SessionPreview {
    preview_of_text(&(lines.join("\n") + "\n"))
}

/// Returns a line without relevant values, with this length including its newline.
fn filler(length: usize) -> String {
    let empty = r#"{"type":"queue-operation","content":""}"#;
    empty.replace("\"\"", &format!("\"{}\"", "x".repeat(length - empty.len() - 1))) + "\n"
}

#[test]
fn a_small_session_is_previewed() {
    let preview = of(&[
        r#"{"type":"file-history-snapshot","snapshot":{"timestamp":"T0"}}"#,
        PROMPT,
        r#"{"parentUuid":"1","cwd":"/else","version":"2.1.2","gitBranch":"dev","type":"assistant","timestamp":"T2"}"#,
        r#"{"type":"tag","tag":"red","sessionId":"s"}"#,
        r#"{"type":"tag","tag":"blue","sessionId":"s"}"#,
        r#"{"type":"last-prompt","lastPrompt":"bye","sessionId":"s"}"#,
    ]);
    let texts = [&preview.cwd, &preview.version, &preview.git_branch, &preview.tag, &preview.first_prompt];
    assert_eq!(texts.map(|text| text.as_deref().unwrap()), ["/w", "2.1.2", "dev", "blue", "hello"]);
    assert_eq!(preview.title().as_deref(), Some("bye"));
    assert!(preview.is_listed());
    assert!(preview.size > 0);
}

#[test]
fn a_session_starts_at_its_earliest_line_before_the_first_reply() {
    let at = |second: u32| format!("2026-01-01T10:00:{second:02}.000Z");
    let preview = of(&[
        &format!(r#"{{"type":"file-history-snapshot","snapshot":{{"timestamp":"{}"}}}}"#, at(1)),
        &format!(r#"{{"type":"queue-operation","timestamp":"{}"}}"#, at(9)),
        &PROMPT.replace("\":", "\": ").replace("T1", &at(5)),
        &format!(r#"{{"parentUuid":null,"type":"attachment","timestamp":"{}"}}"#, at(6)),
        &format!(r#"{{"parentUuid":"1","type":"assistant","timestamp":"{}"}}"#, at(7)),
        &format!(r#"{{"parentUuid":"1","type":"user","timestamp":"{}"}}"#, at(2)),
    ]);
    assert_eq!(preview.started, threadline_entry::parse_timestamp(&at(5)));
    assert_eq!(of(&[PROMPT]).started, None, "no valid time");
    let late = PROMPT.replace("hello", &"x".repeat(200_000)).replace("T1", &at(5));
    let title = r#"{"type":"custom-title","customTitle":"Mine","sessionId":"s"}"#;
    assert_eq!(of(&[title, &late]).started, preview.started, "beyond the first window");
}

#[test]
fn summaries_of_very_many_other_sessions_are_not_the_title() {
    let foreign = |i| format!(r#"{{"type":"summary","summary":"no","leafUuid":"{i}"}}"#);
    let own = r#"{"type":"summary","summary":"Own","leafUuid":"own"}"#.to_owned();
    let prompt = PROMPT.replace("\"type\":\"user\"", "\"uuid\": \"own\",\"type\":\"user\"");
    let filler = filler(2 * WINDOW_BYTES);
    let titled = r#"{"title":1}"#.to_owned();
    let lines: Vec<String> = [titled, own].into_iter().chain((0..40_000).map(foreign)).collect();
    let preview = preview_of_text(&format!("{}\n{prompt}\n{filler}", lines.join("\n")));
    assert_eq!(preview.ai_title, None);
    assert_eq!((preview.summary, preview.first_prompt.as_deref()), (None, Some("hello")));
    let preview = preview_of_text(&format!("{prompt}\n{}\n", lines[1..900].join("\n")));
    assert_eq!(preview.title().as_deref(), Some("Own"));
}

#[test]
fn titles_have_an_order_of_precedence() {
    let custom = r#"{"type":"custom-title","customTitle":"Mine","sessionId":"s"}"#;
    let later = r#"{"type":"custom-title","customTitle":"Later","sessionId":"s"}"#;
    let ai = r#"{"type":"ai-title","aiTitle":"Theirs","sessionId":"s"}"#;
    let summary = r#"{"type":"summary","summary":"Old","leafUuid":"1"}"#;
    let cleared = r#"{"type":"custom-title","customTitle":"","sessionId":"s"}"#;
    let foreign = r#"{"sessionId": "s", "customTitle": "Foreign", "type": "custom-title"}"#;
    let nested = r#"{"type":"attachment","attachment":{"customTitle":"no","summary":"no","tag":"no"}}"#;
    let quoted =
        r#"{"parentUuid":"1","type":"assistant","x":"{\"type\":\"custom-title\",\"customTitle\":\"no\"}"}"#;
    let shell = PROMPT.replace("hello", "<bash-input>git switch main</bash-input>");
    let told = PROMPT.replace("\"type\":\"user\"", "\"uuid\":\"1\",\"type\":\"user\"");
    for (lines, title) in [
        (&[&*shell][..], Some("!git switch main")),
        (&[PROMPT, custom, later, ai, nested, quoted][..], Some("Later")),
        (&[PROMPT, ai, summary], Some("Theirs")),
        (&[&*told, summary], Some("Old")),
        (&[PROMPT, summary], Some("hello")),
        (&[PROMPT, custom, cleared, ai], Some("Theirs")),
        (&[PROMPT, foreign], Some("Foreign")),
        (&[PROMPT, nested, quoted], Some("hello")),
        (&[summary], None),
        (&[nested], None),
        (&[], None),
    ] {
        let preview = of(lines);
        assert_eq!(preview.title().as_deref(), title, "{lines:?}");
        assert_eq!(preview.is_listed(), title.is_some());
    }
}

#[test]
fn a_sub_agent_log_is_not_listed() {
    let side = PROMPT.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let preview = of(&[&side]);
    assert!(preview.is_sidechain && !preview.is_listed());
    assert!(!of(&[PROMPT, &side]).is_sidechain, "only the first line counts");
}

#[test]
fn both_ends_of_a_long_file_are_read() {
    let prompt = PROMPT.replace("T1", "2026-01-01T10:00:00.000Z");
    let custom = r#"{"type":"custom-title","customTitle":"Head","sessionId":"s"}"#;
    let ai = r#"{"type":"ai-title","aiTitle":"Tail","sessionId":"s"}"#;
    let hidden = r#"{"type":"custom-title","customTitle":"Middle","sessionId":"s"}"#;
    let last = r#"{"parentUuid":"9","version":"2.1.9","gitBranch":"late","type":"assistant"}"#;
    let middle = filler(WINDOW_BYTES) + &filler(WINDOW_BYTES);
    let preview = preview_of_text(&format!("{prompt}\n{custom}\n{middle}{hidden}\n{middle}{last}\n{ai}\n"));
    assert_eq!(preview.title().as_deref(), Some("Head"), "a custom title takes precedence wherever it is");
    assert_eq!((preview.version.as_deref(), preview.git_branch.as_deref()), (Some("2.1.9"), Some("late")));
    let preview = preview_of_text(&format!("{prompt}\n{middle}{hidden}\n{middle}"));
    assert_eq!(preview.title().as_deref(), Some("hello"));
    assert_eq!((preview.version.as_deref(), preview.git_branch.as_deref()), (Some("2.1.1"), Some("main")));
}

#[test]
fn a_line_cut_by_a_window_is_not_read() {
    let prompt = PROMPT.replace("T1", "2026-01-01T10:00:00.000Z");
    // The title begins before the last 64 KiB and ends within them.
    let title = format!(r#"{{"type":"custom-title","customTitle":"Cut{}"}}"#, "x".repeat(200));
    let preview = preview_of_text(&format!(
        "{prompt}\n{}{title}\n{}",
        filler(3 * WINDOW_BYTES),
        filler(WINDOW_BYTES - 100)
    ));
    assert_eq!(preview.title().as_deref(), Some("hello"));
    // The file is being written: its last line is incomplete.
    assert_eq!(preview_of_text(&format!("{prompt}\n{}", &title[..100])).title().as_deref(), Some("hello"));
    // Its last line is complete; only the newline is missing.
    assert_eq!(
        preview_of_text(&format!("{prompt}\n{}", title.trim_end())).title().map(|title| title.len()),
        Some(203)
    );
}

#[test]
fn a_title_does_not_end_the_search_for_the_first_prompt() {
    let title = r#"{"type":"custom-title","customTitle":"Website","sessionId":"s"}"#;
    let hook = r#"{"parentUuid":null,"isSidechain":false,"cwd":"/w","type":"progress","timestamp":"2026-01-01T10:00:00.000Z"}"#;
    let long = PROMPT.replace("hello", &"long ".repeat(60_000));
    for before in [format!("{title}\n{hook}\n"), format!("{title}\n{hook}\n{}", filler(3 * WINDOW_BYTES))] {
        let preview = preview_of_text(&format!("{before}{long}\n{}", filler(2 * WINDOW_BYTES)));
        assert_eq!(preview.title().as_deref(), Some("Website"));
        assert!(preview.first_prompt.as_deref().is_some_and(|prompt| prompt.starts_with("long long")));
    }
}

#[test]
fn a_long_first_line_does_not_hide_the_session() {
    let long = PROMPT.replace("hello", &"long ".repeat(60_000));
    let preview = preview_of_text(&format!("{long}\n{}", filler(2 * WINDOW_BYTES)));
    assert!(preview.first_prompt.as_deref().is_some_and(|prompt| prompt.starts_with("long long")));
    assert_eq!(preview.cwd.as_deref(), Some("/w"));
    // The same after a line with a working directory, which alone would not make it listed.
    let hook = r#"{"parentUuid":null,"isSidechain":false,"cwd":"/w","type":"progress"}"#;
    let preview = preview_of_text(&format!("{hook}\n{long}\n{}", filler(2 * WINDOW_BYTES)));
    assert!(preview.is_listed());
    // The first line of a sub-agent is recognised even if it exceeds the limit.
    let side =
        long.replace("\"isSidechain\":false", "\"isSidechain\":true").replace("long ", &"long ".repeat(40));
    assert!(side.len() > crate::file_window::MAX_HEAD_BYTES);
    assert!(preview_of_text(&side).is_sidechain);
}

#[test]
fn agents_are_counted_wherever_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| -> PathBuf {
        let path = dir.path().join("projects/-p").join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        path
    };
    let path = put("s.jsonl", PROMPT);
    put("t.jsonl", PROMPT);
    put("agent-1.jsonl", "{\"isSidechain\":true,\"sessionId\":\"s\"}\n");
    put("subagents/agent-2.jsonl", "{\"isSidechain\":true,\"sessionId\":\"s\"}\n");
    put("s/subagents/agent-3.jsonl", "");
    put("s/subagents/workflows/wf_1/agent-4.jsonl", "");
    assert_eq!(read_session_preview(&SessionFile::at(path)).unwrap().n_agents, 4);
    let list = Store::open([dir.path().to_owned()]).list();
    let mut counts: Vec<_> = list.found.iter().map(|(file, preview)| (&*file.id, preview.n_agents)).collect();
    counts.sort_unstable();
    assert_eq!(counts, [("s", 4), ("t", 0)]);
}

#[test]
fn a_list_is_newest_first_and_has_each_session_once() {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, seconds: u64| {
        let path = dir.path().join("projects").join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, PROMPT).unwrap();
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    };
    put("-p/old.jsonl", 1);
    put("-p/twice.jsonl", 2);
    put("-q/new.jsonl", 3);
    put("-q/twice.jsonl", 4);
    fs_err::write(dir.path().join("projects/-q/empty.jsonl"), "").unwrap();
    let list = Store::open([dir.path().to_owned()]).list();
    let texts: Vec<_> =
        list.found.iter().map(|(file, _)| (&*file.id, file.folder.as_deref().unwrap())).collect();
    assert_eq!(texts, [("twice", "-q"), ("new", "-q"), ("old", "-p")]);
}

#[test]
fn a_missing_file_does_not_affect_others() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("s.jsonl");
    fs_err::write(&there, PROMPT).unwrap();
    let files = [SessionFile::at(dir.path().join("gone.jsonl")), SessionFile::at(there)];
    let previews = preview_all(&files);
    assert_eq!(previews[0].as_ref().unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(previews[1].as_ref().unwrap().is_listed());
}

#[test]
fn a_title_appended_to_an_incomplete_line_is_found() {
    let preview = of(&[
        PROMPT,
        r#"{"parentUuid":"1","type":"assistant","message":{"role":"assis{"type":"custom-title","customTitle":"Loom","sessionId":"s"}"#,
    ]);
    assert_eq!(preview.custom_title.as_deref(), Some("Loom"));
    // An object inside a line is not a record.
    let preview = of(&[
        r#"{"parentUuid":null,"type":"user","message":{"role":"user","content":[{"type":"text","text":"custom-title"}]}}"#,
    ]);
    assert_eq!(preview.custom_title, None);
}

#[test]
fn the_last_message_decides_when_a_session_was_active() {
    let at = |seconds: u64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let message = PROMPT.replace("T1", "1970-01-01T01:00:00.000Z");
    let later = message.replace("T01:00", "T02:00");
    let title = r#"{"type":"custom-title","customTitle":"New","sessionId":"s"}"#;
    let snapshot = r#"{"type":"file-history-snapshot","snapshot":{"timestamp":"1970-01-01T09:00:00.000Z"}}"#;
    let long = later.replace("hello", &"long ".repeat(60_000));
    let far = filler(5 << 20);
    for (text, expected) in [
        (message.clone(), Some(3600)),
        (format!("{message}\n{title}\n{snapshot}\n"), Some(3600)),
        (format!("{message}\n{later}\n"), Some(7200)),
        (format!("{message}\n{long}\n{title}\n"), Some(7200)),
        (format!("{message}\n{{\"type\":\"user\",\"timest"), Some(3600)),
        (format!("{}{message}\n{}", filler(1 << 20), filler(1 << 20)), Some(3600)),
        (format!("{message}\n{far}"), None),
        (PROMPT.to_owned(), None),
        (String::new(), None),
    ] {
        let preview = preview_of_text(&text);
        let shown = &text[..text.len().min(100)];
        assert_eq!(preview.last_active, expected.map_or(preview.modified, at), "{shown}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs_err::write(&path, &text).unwrap();
        let modified = fs_err::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(crate::read_last_active(&path).unwrap(), expected.map_or(modified, at), "{shown}");
    }
}
