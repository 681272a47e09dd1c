//! Runs the binary on a pseudo-terminal, over a home in which every key, value and file name is hostile. No
//! control sequence may reach the terminal except the styles and links that the program writes itself.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Map, Value};
use threadline_testkit::{TestHome, samples};

use crate::run::command;

/// Escape sequences (colours, clear, title, clipboard, link), their C1 forms, other control characters,
/// bidirectional controls and tag characters.
const HOSTILE_TEXT: &str = "\u{1b}[31;8mA\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}]52;c;eA==\u{7}\u{1b}]8;;http://x\u{1b}\\\u{9b}2J\u{9d}0;t\u{9c}\
                    \u{90}q\r\u{8}\u{7f}\u{0}\u{e}\u{85}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{e0041}⚠\u{fe0f}\t&#27;[2J";

/// The same for file names, which cannot contain NUL or path separators.
const HOSTILE_NAME: &str = "\u{1b}[31mA\u{1b}]0;t\u{7}\u{9b}2J\r\u{8}\u{7f}\u{202e}\u{2066}\n⚠\u{fe0f}";

/// Runs a command on a terminal of 80 columns. Returns its exit code and the bytes written.
fn on_terminal(args: &[&OsStr], env: &[(&str, String)]) -> (Option<i32>, Vec<u8>) {
    on_terminal_of(80, args, env)
}

/// Runs a command on a terminal of this width.
fn on_terminal_of(width: u16, args: &[&OsStr], env: &[(&str, String)]) -> (Option<i32>, Vec<u8>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
    tcsetwinsize(&slave, Winsize { ws_row: 50, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = command(args);
    command.env("PAGER", "cat").env("FORCE_HYPERLINK", "1").envs(env.iter().map(|(key, value)| (key, value)));
    command.stdin(Stdio::null()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // Closes our copies of the slave end, so that reading ends when the child exits.
    drop(command);
    let mut written = Vec::new();
    let mut master = File::from(master);
    let mut buffer = [0; 1 << 14];
    // End of file is an error on Linux and an empty read elsewhere.
    while let Ok(n @ 1..) = master.read(&mut buffer) {
        written.extend(&buffer[..n]);
    }
    (child.wait().unwrap().code(), written)
}

/// Returns the first sequence that a terminal would interpret and that the program does not write itself.
fn first_control_sequence(written: &[u8], color: bool) -> Option<String> {
    let around = |at: usize| {
        let piece = &written[at.saturating_sub(60)..written.len().min(at + 60)];
        Some(format!("byte {at}: {}", piece.escape_ascii()))
    };
    let text = match std::str::from_utf8(written) {
        Ok(text) => text,
        Err(error) => return around(error.valid_up_to()),
    };
    let mut at = 0;
    while let Some(ch) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match ch {
            // The terminal inserts a carriage return before each newline.
            '\r' if rest.starts_with("\r\n") => 2,
            '\r' => progress_length(rest).unwrap_or(0),
            '\n' | '\t' => 1,
            '\u{1b}' if color => style_length(rest).or_else(|| link_length(rest)).unwrap_or(0),
            ch if threadline_view::visible(&rest[..ch.len_utf8()]) == rest[..ch.len_utf8()] => ch.len_utf8(),
            _ => 0,
        };
        if length == 0 {
            return around(at);
        }
        at += length;
    }
    None
}

/// Returns the length of a progress message, or of the sequence that erases it.
fn progress_length(text: &str) -> Option<usize> {
    let wipe = "\r\u{1b}[K";
    if text.starts_with(wipe) {
        return Some(wipe.len());
    }
    let works = ["checking log ", "searching log ", "reading log "];
    let count = works.iter().find_map(|work| text[1..].strip_prefix(work))?;
    let rest = count.trim_start_matches(|ch: char| ch.is_ascii_digit()).strip_prefix(" of ")?;
    Some(text.len() - rest.trim_start_matches(|ch: char| ch.is_ascii_digit()).len())
}

/// Returns the length of a style sequence that the program may write. Hidden text (8) and blinking (5, 6) are
/// refused.
fn style_length(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find('m')?;
    let mut codes = codes[..end].split(';');
    while let Some(code) = codes.next() {
        match code.parse::<u8>().ok()? {
            38 | 48 => match codes.next()? {
                "5" => drop(codes.next()?),
                _ => drop((codes.next()?, codes.next()?, codes.next()?)),
            },
            0..=4 | 7 | 9 | 30..=37 | 40..=47 | 90..=97 | 100..=107 => {}
            _ => return None,
        }
    }
    Some(2 + end + 1)
}

/// Returns the length of the start or end of a hyperlink that the program may write.
fn link_length(text: &str) -> Option<usize> {
    let address = text.strip_prefix("\u{1b}]8;;")?;
    let end = address.find('\u{1b}')?;
    let is_plain = address[..end].is_empty()
        || ["https://", "http://", "mailto:"].iter().any(|s| address.starts_with(s));
    (is_plain && address[end..].starts_with("\u{1b}\\") && !address[..end].contains(char::is_control))
        .then_some(5 + end + 2)
}

/// Keys with values that determine the type of a line and its relation to other lines.
const STRUCTURAL_KEYS: [&str; 14] = [
    "type",
    "uuid",
    "parentUuid",
    "timestamp",
    "sessionId",
    "role",
    "id",
    "tool_use_id",
    "subtype",
    "isSidechain",
    "agentId",
    "version",
    "leafUuid",
    "status",
];

/// Appends the payload to every string value, to those of `STRUCTURAL_KEYS` only if `structure` is set. If
/// `keys` is set, it also adds a copy of every member under a poisoned key.
fn poison(value: Value, structure: bool, keys: bool) -> Value {
    match value {
        Value::String(text) => Value::String(text + HOSTILE_TEXT),
        Value::Array(items) => items.into_iter().map(|item| poison(item, structure, keys)).collect(),
        Value::Object(members) => {
            let mut out = Map::new();
            for (key, value) in members {
                let kept = !structure && STRUCTURAL_KEYS.contains(&&*key) && value.is_string();
                if keys {
                    out.insert(format!("{key}{HOSTILE_TEXT}"), poison(value.clone(), structure, keys));
                }
                out.insert(key, if kept { value } else { poison(value, structure, keys) });
            }
            Value::Object(out)
        }
        other => other,
    }
}

fn poisoned(log: &[u8], structure: bool, keys: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for line in log.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(value) => out.extend(poison(value, structure, keys).to_string().bytes()),
            Err(_) => out.extend(line),
        }
        out.push(b'\n');
    }
    // Lines that are not JSON and contain raw control bytes.
    out.extend(b"{\"type\":\"user\x1b[2J\x9b2J\n\x9b\x1b]0;x\x07\n");
    out
}

/// A hostile home and the paths of its session logs.
struct HostileHome {
    home: TestHome,
    logs: Vec<PathBuf>,
}

impl HostileHome {
    fn new() -> Self {
        let home = TestHome::new();
        let mut logs = Vec::new();
        for (i, sample) in samples().into_iter().enumerate() {
            let id = format!("00000000-0000-4000-8000-{i:012}");
            let folder = match i % 3 {
                0 => OsString::from("-home-ada-loom"),
                1 => OsString::from(format!("-p{HOSTILE_NAME}")),
                _ => OsString::from_vec(b"-p\x9b2J\x1b[2J".to_vec()),
            };
            let folder = Path::new("projects").join(folder);
            for (name, structure, keys) in [
                (id.clone(), false, false),
                (format!("a{i}{HOSTILE_NAME}"), false, true),
                (format!("b{i}"), true, true),
            ] {
                logs.push(
                    home.file(folder.join(format!("{name}.jsonl")), poisoned(&sample.log, structure, keys)),
                );
                for (agent, log) in &sample.agents {
                    let below = folder.join(&name).join("subagents");
                    home.file(below.join(format!("agent-{agent}.jsonl")), poisoned(log, structure, keys));
                    home.file(
                        below.join(format!("agent-{agent}{HOSTILE_NAME}.jsonl")),
                        poisoned(log, structure, keys),
                    );
                    let meta = serde_json::json!({"agentType": HOSTILE_TEXT, "description": HOSTILE_TEXT, HOSTILE_TEXT: HOSTILE_TEXT});
                    home.file(below.join(format!("agent-{agent}.meta.json")), meta.to_string());
                }
            }
        }
        home.file(Path::new("file-history").join(HOSTILE_NAME).join("x"), "x");
        home.file("settings.json", format!("{{\"x\": \"{HOSTILE_NAME}\"}}"));
        Self { home, logs }
    }

    /// Runs a command with every colour setting and checks its output.
    fn check(&self, args: &[&str]) {
        self.check_os(&args.iter().map(OsStr::new).collect::<Vec<_>>());
    }

    fn check_os(&self, args: &[&OsStr]) {
        self.check_with(args, &[]);
    }

    fn check_with(&self, args: &[&OsStr], env: &[(&str, String)]) {
        let state = self.home.root().join("state").to_str().unwrap().to_owned();
        let env = [env, &[("XDG_STATE_HOME", state)]].concat();
        for (color, is_colored) in [("auto", true), ("always", true), ("never", false)] {
            let before =
                [OsStr::new("--home"), self.home.root().as_os_str(), "--color".as_ref(), color.as_ref()];
            let (code, written) = on_terminal(&[&before, args].concat(), &env);
            let found = first_control_sequence(&written, is_colored);
            assert_eq!(found, None, "{args:?}, colours {color}");
            assert!(matches!(code, Some(0..=2)), "{args:?}: {code:?}: {}", String::from_utf8_lossy(&written));
            let may_be_empty = args.iter().any(|arg| *arg == "--patch" || *arg == "--diff");
            assert!(may_be_empty || !written.is_empty(), "{args:?}");
        }
    }
}

#[test]
fn the_checker_detects_control_sequences() {
    for evil in [
        "\u{1b}[2J",
        "\u{1b}[8m",
        "\u{9b}1m",
        "a\rb",
        "\u{8}",
        "\u{202e}",
        "\u{1b}]8;;javascript:x\u{1b}\\",
        "\u{7}",
    ] {
        assert!(first_control_sequence(evil.as_bytes(), true).is_some(), "{evil:?}");
    }
    assert!(first_control_sequence(b"\x9b", true).is_some());
    for fine in [
        "a\r\nb\té⚠\u{fe0f}",
        "\u{1b}[1m\u{1b}[38;5;12mx\u{1b}[0m",
        "\u{1b}]8;;https://x\u{1b}\\x\u{1b}]8;;\u{1b}\\",
    ] {
        assert_eq!(first_control_sequence(fine.as_bytes(), true), None, "{fine:?}");
    }
    assert!(first_control_sequence(b"\x1b[1m", false).is_some());
    // The terminal passes bytes through unchanged, except newlines.
    let (_, written) = on_terminal(&["--color".as_ref(), "always".as_ref(), "--help".as_ref()], &[]);
    assert!(written.starts_with(b"Read, show, search"), "{}", written.escape_ascii());
}

#[test]
fn lists_and_reports_are_safe() {
    let hostile = HostileHome::new();
    for args in [
        &["list"][..],
        &["list", "--all"],
        &["check", "--notes"],
        &["usage"],
        &["usage", "--by", "model"],
        &["usage", "--by", "session"],
        &["usage", "--by", "project"],
        &["usage", "--by", "branch"],
        &["usage", "--by", "tool"],
        &["usage", "--by", "model", "--csv"],
        &["usage", "--explain"],
        &["usage", "--blocks"],
        &["usage", "--reconcile"],
        &["search", "a"],
        &["search", "--lines", "a"],
        &["search", "-C", "2", "-m", "2", "a"],
        &["search", "-l", "a"],
        &["search", "-c", "a"],
        &["search", "-n", "40", "--json", "a"],
        &["list", "--json"],
        &["check", "--json"],
        &["overview", "--since", "2020-01-01"],
        &["overview", "--since", "2020-01-01", "--json"],
        &["archive", "push"],
        &["archive", "status", "--all"],
        &["archive", "verify"],
    ] {
        hostile.check(args);
    }
    let root = hostile.home.root().join("projects");
    hostile.check_os(&["inspect".as_ref(), root.as_os_str()]);
    hostile.check_os(&["check".as_ref(), root.as_os_str()]);
}

#[test]
fn session_output_is_safe() {
    let hostile = HostileHome::new();
    for (i, log) in hostile.logs.iter().enumerate() {
        // Runs a third of the commands on each log; every command runs on some log.
        let ways: [&[&str]; 17] = [
            &["show"],
            &["show", "--outline"],
            &["show", "--patch"],
            &["show", "--level", "full"],
            &["show", "--level", "raw"],
            &["show", "--json"],
            &["replay"],
            &["replay", "--json"],
            &["inspect"],
            &["restore"],
            &["export", "markdown"],
            &["export", "json"],
            &["export", "html", "-o", "-"],
            &["show", "--level", "chat"],
            &["context"],
            &["context", "--unused", "5"],
            &["context", "--json"],
        ];
        for way in ways.iter().skip(i % 3).step_by(3) {
            let way: Vec<&OsStr> = way.iter().map(OsStr::new).collect();
            hostile.check_os(&[&way[..], &[log.as_os_str()]].concat());
        }
        hostile.check_os(&["compare".as_ref(), hostile.logs[0].as_os_str(), log.as_os_str()]);
    }
}

#[test]
fn edit_output_is_safe() {
    let hostile = HostileHome::new();
    let ways: [&[&str]; 9] = [
        &["edit", "redact", "--diff"],
        &["edit", "repair", "--diff"],
        &["edit", "strip", "--diff"],
        &["edit", "clone"],
        &["edit", "compress"],
        &["edit", "delete"],
        &["edit", "move", "--cwd", "/tmp"],
        &["restore", "--at", "end", "--diff"],
        &["trace", "push", "--dry-run"],
    ];
    for (i, log) in hostile.logs.iter().enumerate() {
        for way in ways.iter().skip(i % 3).step_by(3) {
            let way: Vec<&OsStr> = way.iter().map(OsStr::new).collect();
            hostile.check_os(&[&way[..], &[log.as_os_str()]].concat());
        }
    }
    for log in hostile.logs.iter().take(3) {
        hostile.check_os(&[
            "edit".as_ref(),
            "title".as_ref(),
            log.as_os_str(),
            HOSTILE_NAME.as_ref(),
            "--apply".as_ref(),
            "--force".as_ref(),
        ]);
        hostile.check_os(&["edit".as_ref(), "clone".as_ref(), "--apply".as_ref(), log.as_os_str()]);
    }
    hostile.check(&["op", "log"]);
    hostile.check(&["op", "show"]);
    hostile.check(&["op", "undo", "--apply"]);
}

#[test]
fn errors_and_receiver_responses_are_safe() {
    let hostile = HostileHome::new();
    hostile.check(&["show", HOSTILE_NAME]);
    hostile.check(&["show", &format!("/none/{HOSTILE_NAME}.jsonl")]);
    hostile.check(&["search", &format!("/{HOSTILE_NAME}(/")]);
    hostile.check(&["op", "undo", "--apply", HOSTILE_NAME]);
    hostile.check(&[&format!("--{HOSTILE_NAME}")]);
    hostile.check(&[HOSTILE_NAME]);
    hostile.check(&["show", "--level", HOSTILE_NAME, "x"]);
    hostile.check_os(&["show".as_ref(), OsStr::from_bytes(b"\x9b\x1b[2J")]);
    hostile.check(&["restore", "last", "--at", HOSTILE_NAME]);
    hostile.check(&["trace", "install"]);
    hostile.check(&["trace", "status"]);
    hostile.check(&["usage", "--tz", HOSTILE_NAME]);

    // A receiver that rejects requests with a hostile message.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let body = format!("{{\"message\":{}}} {HOSTILE_TEXT}", Value::from(HOSTILE_TEXT));
            let mut request = [0; 1 << 16];
            let _ = stream.read(&mut request);
            let _ = write!(
                stream,
                "HTTP/1.1 400 Bad\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let log = hostile.logs[0].as_os_str();
    let env =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", address), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".to_owned())];
    hostile.check_with(&["trace".as_ref(), "push".as_ref(), log], &env);
    hostile.check_with(&["trace".as_ref(), "status".as_ref(), "--all".as_ref()], &env);
}

#[test]
fn usage_errors_and_help_have_no_colours_if_none_are_wanted() {
    for args in [&["--color", "never", "--nonsense"][..], &["--color=never", "list", "--help"]] {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let (_, written) = on_terminal(&args, &[]);
        assert!(!written.is_empty() && !written.contains(&b'\x1b'), "{args:?}");
    }
}

#[test]
fn an_unwritable_stderr_causes_no_panic() {
    let home = TestHome::new();
    let full = || File::options().write(true).open("/dev/full");
    for args in [&["list"][..], &["show", "none"], &["--nonsense"], &["check"]] {
        let Ok(full) = full() else { return };
        let args = [&["--home", home.root().to_str().unwrap()], args].concat();
        let done = command(&args).stderr(full).output().unwrap();
        assert!(matches!(done.status.code(), Some(0..=2)), "{args:?}: {:?}", done.status);
    }
}

/// Shows an item of the session `loom`, with `--find` if there is a query. Returns the arguments of the pager
/// and the line that it opens at.
fn opened_in_pager(home: &TestHome, anchor: &str, query: &str) -> (String, String) {
    use std::os::unix::fs::PermissionsExt;
    // The pager prints its arguments before the text.
    let pager = home.root().join("less");
    std::fs::write(&pager, "#!/bin/sh\nprintf '%s\\n' \"$*\"\nexec cat\n").unwrap();
    std::fs::set_permissions(&pager, std::fs::Permissions::from_mode(0o755)).unwrap();
    let env = [("PAGER", pager.to_str().unwrap().to_owned())];
    let item = format!("{}#{anchor}", threadline_testkit::session_uuid("loom"));
    let mut args = vec!["--home", home.root().to_str().unwrap(), "show", &item];
    if !query.is_empty() {
        args.extend(["--find", query]);
    }
    let args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
    let (code, written) = on_terminal(&args, &env);
    let written = String::from_utf8(written).unwrap().replace('\r', "");
    assert_eq!(code, Some(0), "{written}");
    let (arguments, text) = written.split_once('\n').unwrap();
    assert!(!text.lines().next().unwrap().contains("\u{1b}[7m"), "the header is not highlighted: {text}");
    let (_, line) = arguments.split_once('+').unwrap();
    let line: usize = line.split_once('g').unwrap().0.parse().unwrap();
    (arguments.to_owned(), text.lines().nth(line - 1).unwrap().to_owned())
}

#[test]
fn a_pager_without_options_gets_those_that_show_colours() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    let pager = home.root().join("less");
    std::fs::write(&pager, "#!/bin/sh\nprintf 'LESS=%s\\n' \"$LESS\"\n").unwrap();
    std::fs::set_permissions(&pager, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (less, expected) in [(None, "LESS=FRX"), (Some("-S"), "LESS=-S")] {
        let mut env = vec![("PAGER", pager.to_str().unwrap().to_owned())];
        env.extend(less.map(|less| ("LESS", less.to_owned())));
        let args: Vec<&OsStr> = ["--demo", "list", "-q"].iter().map(OsStr::new).collect();
        let (_, written) = on_terminal(&args, &env);
        assert_eq!(String::from_utf8_lossy(&written).trim(), expected);
    }
}

#[test]
fn the_pager_opens_at_the_match_in_the_item() {
    let home = TestHome::new();
    let filler = "One more line.\\n\\n".repeat(12);
    home.session(
        "loom",
        &format!(
            r#"
            u1        user   "the warp (c++)"
            a1 <- u1  reply  m1 text "{filler}First warp (c++)."
            a2 <- a1  reply  m2 text "{filler}Second Warp (C++)."
            a3 <- a2  reply  m3 tool t1 Read {{"file_path":"/loom.rs"}}
            r1 <- a3  result t1 "1\tweave"
            "#
        ),
    );
    // Without a query, the item itself is marked. A result is shown with its call.
    for (anchor, expected) in [("m3", "\u{1b}[7mOne more line."), ("m5", "\u{1b}[7m▸ ")] {
        let (arguments, line) = opened_in_pager(&home, anchor, "");
        assert!(arguments.ends_with('g'), "{arguments:?}");
        assert!(line.contains(expected), "{line}");
    }
    for (anchor, expected) in
        [("m2", "First \u{1b}[7mwarp (c++)\u{1b}[27m"), ("m3", "Second \u{1b}[7mWarp (C++)\u{1b}[27m")]
    {
        let (arguments, line) = opened_in_pager(&home, anchor, r#""warp (c++)""#);
        assert!(arguments.ends_with("g/\u{b}(warp \\(c\\+\\+\\))"), "{arguments:?}");
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn the_pager_opens_at_the_line_with_all_words_even_far_to_the_right() {
    let home = TestHome::new();
    let long = "x ".repeat(100);
    home.session(
        "loom",
        &format!(
            r#"
            u1        user   "read it"
            a1 <- u1  reply  m1 tool t1 Read {{"file_path":"/loom.rs"}}
            r1 <- a1  result t1 "1\twarp\n2\t\n3\t\n4\t\n5\t{long} the warp of the shuttle" {{"type":"text","file":{{"filePath":"/loom.rs","content":"warp\n\n\n\n{long} the warp of the shuttle","numLines":5,"startLine":1,"totalLines":5}}}}
            "#
        ),
    );
    let (_, line) = opened_in_pager(&home, "m3", "warp shuttle");
    assert!(line.contains("\u{1b}[7mshuttle\u{1b}[27m"), "{line}");
}

#[test]
fn a_narrow_list_has_the_column_that_it_is_sorted_by() {
    let home = TestHome::new();
    home.session("loom", &format!("u1 user \"{}\"", "weave the cloth ".repeat(8)));
    let root = home.root().to_str().unwrap();
    for (sort, heading) in [("errors", "errors"), ("size", "size"), ("started", "started"), ("cost", "cost")]
    {
        let args = ["--home", root, "--color", "never", "list", "--sort", sort];
        let (code, written) = on_terminal(&args.map(OsStr::new), &[]);
        let text = String::from_utf8(written).unwrap();
        assert_eq!(code, Some(0), "{text}");
        let head = text.lines().next().unwrap();
        assert!(head.split_whitespace().any(|word| word == heading), "{sort}: {text}");
        assert!(text.lines().all(|line| line.trim_end().chars().count() <= 80), "{sort}: {text}");
    }
}

#[test]
fn a_narrow_list_leaves_room_for_titles() {
    let home = TestHome::new();
    let title = "weave the blue cloth on the small loom in the shed before the rain comes";
    let log = |title: &str| {
        format!(
            r#"
u1        user   "{title}" @2026-01-02T10:00:00Z branch=feature/a-long-name
a1 <- u1  reply  m1 text "Woven." branch=feature/a-long-name model=claude-opus-4-8 usage={{"input_tokens":2600000}}
"#
        )
    };
    let project = "/home/ada/projects/a-rather-long-project-name";
    home.session_in(project, "loom", &log(title));
    home.session_in(
        project,
        "cjk",
        // Other ids, so that it is no fork.
        &log("修复织布机上的蓝色布料在雨来之前 🧵🧵🧵 and more words after that")
            .replace("u1", "v1")
            .replace("a1", "b1")
            .replace("m1", "n1"),
    );
    let list = |width: u16| {
        let args = ["--home", home.root().to_str().unwrap(), "--color", "never", "list", "-q"];
        let (code, written) = on_terminal_of(width, &args.map(OsStr::new), &[]);
        let text = String::from_utf8(written).unwrap();
        assert_eq!(code, Some(0), "{text}");
        for line in text.lines() {
            assert!(threadline_term::text!("{line}").width() <= usize::from(width), "{text}");
        }
        let heading = text.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let row = text.lines().find(|line| line.contains("weave")).unwrap();
        (heading, row[row.find("weave").unwrap()..].trim_end().chars().count())
    };
    assert_eq!(list(40), ("id active title".to_owned(), 18));
    assert_eq!(list(60), ("id active turns cost title".to_owned(), 23));
    assert_eq!(list(80), ("id active turns cost project title".to_owned(), 29));
    assert_eq!(list(100), ("id active turns errors cost project title".to_owned(), 41));
    assert_eq!(list(120), ("id last active turns errors cost project title".to_owned(), 43));
}
