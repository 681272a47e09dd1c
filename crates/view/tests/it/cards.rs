//! Cards: renders the call of every tool from its input and result.

use threadline_session::{Session, SessionFamily};
use threadline_testkit::log;
use threadline_view::{CommandCard, CommandOutput, DiffChange, ItemBody, ToolCard, transcript};

/// Renders a call of `tool`: its line, then its card.
fn card(tool: &str, input: &str, result: &str) -> String {
    let notation =
        format!("u1 user \"go\"\na1 <- u1 reply m1 tool t1 {tool} {input}\nr1 <- a1 result t1 {result}\n");
    let family = SessionFamily::new(Session::from_bytes(&log(&notation)), Vec::new());
    let transcript =
        transcript(&family, &|path| path.ends_with("kept.txt").then(|| "the whole output".to_owned()));
    let call = transcript.turns[0].items.iter().find_map(|item| match &item.body {
        ItemBody::Call(call) => Some(call),
        _ => None,
    });
    let call = call.unwrap();
    format!(
        "{} | {} | {} | {}\n{}",
        call.name,
        call.subject,
        call.gist,
        call.outcome.name(),
        shown(&call.card, &call.result)
    )
}

fn shown(card: &ToolCard, result: &str) -> String {
    match card {
        ToolCard::Command(command) => {
            let output = CommandOutput::Text(command.output.text(result).to_owned());
            format!("{:?}", ToolCard::Command(CommandCard { output, ..command.clone() }))
        }
        ToolCard::Diff { hunks, created, .. } => {
            let mut out = format!("created: {created}\n");
            for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
                let sign = match line.change {
                    DiffChange::Kept => ' ',
                    DiffChange::Added => '+',
                    DiffChange::Removed => '-',
                };
                out.push_str(&format!("{sign}{}\n", line.text));
            }
            out
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn a_failed_command_shows_its_exit_code() {
    insta::assert_snapshot!(card("Bash", r#"{"command":"cargo test\nls","description":"Run"}"#, r#""Exit code 101\nboom" error "Error: Exit code 101\nboom""#), @r#"
    Bash | cargo test … | exit 101 | error
    Command(CommandCard { command: "cargo test\nls", description: "Run", output: Text("boom"), errors: "", exit_code: Some(101), background: None, kept_at: None, changes: CommandChanges { files: [], n_unnamed: 0, is_skipped: false } })
    "#);
}

#[test]
fn bash_in_the_background_and_with_output_in_a_file() {
    insta::assert_snapshot!(card("Bash", r#"{"command":"serve"}"#, r#""started" {"stdout":"","stderr":"","interrupted":false,"backgroundTaskId":"b1"}"#), @r#"
    Bash | serve | in the background as b1 | ok
    Command(CommandCard { command: "serve", description: "", output: Text(""), errors: "", exit_code: None, background: Some("b1"), kept_at: None, changes: CommandChanges { files: [], n_unnamed: 0, is_skipped: false } })
    "#);
    let kept = card(
        "Bash",
        r#"{"command":"big"}"#,
        r#""cut" {"stdout":"cut","stderr":"","persistedOutputPath":"/x/kept.txt"}"#,
    );
    assert!(kept.contains("the whole output"), "{kept}");
    let gone = card(
        "Bash",
        r#"{"command":"big"}"#,
        r#""cut" {"stdout":"cut","stderr":"","persistedOutputPath":"/x/gone.txt"}"#,
    );
    assert!(gone.contains("kept_at: Some(\"/x/gone.txt\")"), "{gone}");
}

#[test]
fn files_are_read_in_part() {
    insta::assert_snapshot!(card("Read", r#"{"file_path":"/home/ada/loom/src/a.rs"}"#, r#""1\tfn" {"type":"text","file":{"filePath":"/home/ada/loom/src/a.rs","content":"fn","numLines":1,"startLine":3,"totalLines":9}}"#), @r#"
    Read | src/a.rs | 1 line of 9 | ok
    File { path: "/home/ada/loom/src/a.rs", text: "fn", start_line: 3, total_lines: Some(9) }
    "#);
}

#[test]
fn edits_are_diffs() {
    insta::assert_snapshot!(card("Edit", r#"{"file_path":"a.rs","old_string":"x","new_string":"y"}"#, r#""ok" {"filePath":"a.rs","oldString":"x","newString":"y","structuredPatch":[{"oldStart":3,"oldLines":2,"newStart":3,"newLines":2,"lines":[" k","-x","+y"]}]}"#), @r"
    Edit | a.rs | +1 −1 | ok
    created: false
     k
    -x
    +y
    ");
    insta::assert_snapshot!(card("Edit", r#"{"file_path":"a.rs","old_string":"x","new_string":"y"}"#, r#""no such text" error "Error: no such text""#), @r"
    Edit | a.rs |  | error
    created: false
    -x
    +y
    ");
    insta::assert_snapshot!(card("Write", r#"{"file_path":"b.rs","content":"1\n2\n"}"#, r#""ok" {"type":"create","filePath":"b.rs","content":"1\n2\n","structuredPatch":[],"originalFile":null}"#), @r"
    Write | b.rs | new, 2 lines | ok
    created: true
    +1
    +2
    ");
    insta::assert_snapshot!(card("MultiEdit", r#"{"file_path":"c.rs","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}"#, "\"ok\""), @r"
    MultiEdit | c.rs | +2 −2 | ok
    created: false
    -a
    +b
    -c
    +d
    ");
    insta::assert_snapshot!(card("NotebookEdit", r#"{"notebook_path":"n.ipynb","new_source":"x = 1","cell_type":"code"}"#, r#""ok" {"new_source":"x = 1","cell_type":"code"}"#), @r#"
    NotebookEdit | n.ipynb | cell replaced, 1 line | ok
    created: false
    +x = 1
    "#);
}

#[test]
fn searches_show_the_number_of_matches() {
    insta::assert_snapshot!(card("Grep", r#"{"pattern":"foo","path":"src"}"#, r#""a:1:foo" {"mode":"content","numFiles":0,"filenames":[],"content":"a:1:foo\nb:2:foo","numLines":2}"#), @r#"
    Grep | foo | 2 lines | ok
    Matches { pattern: "foo", place: "src", files: [], lines: "a:1:foo\nb:2:foo" }
    "#);
    insta::assert_snapshot!(card("Glob", r#"{"pattern":"**/*.rs"}"#, r#""a.rs" {"filenames":["a.rs","b.rs"],"numFiles":2,"durationMs":3,"truncated":false}"#), @r#"
    Glob | **/*.rs | 2 files | ok
    Matches { pattern: "**/*.rs", place: "", files: ["a.rs", "b.rs"], lines: "" }
    "#);
    insta::assert_snapshot!(card("ToolSearch", r#"{"query":"select:WebFetch"}"#, r#"[ref WebFetch] {"matches":["WebFetch"],"query":"select:WebFetch","total_deferred_tools":41}"#), @r#"
    ToolSearch | select:WebFetch | 1 tool | ok
    Matches { pattern: "select:WebFetch", place: "", files: ["WebFetch"], lines: "" }
    "#);
}

#[test]
fn todo_lists_show_their_changes() {
    insta::assert_snapshot!(card("TodoWrite", r#"{"todos":[]}"#, r#""ok" {"oldTodos":[{"content":"a","status":"pending"}],"newTodos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]}"#), @r#"
    TodoWrite | b | 1 of 2 done | ok
    Todos([Todo { text: "a", status: "completed", before: Some("pending"), is_new: false, detail: "" }, Todo { text: "b", status: "in_progress", before: None, is_new: true, detail: "" }])
    "#);
    insta::assert_snapshot!(card("TaskUpdate", r#"{"taskId":"3","status":"completed"}"#, r#""ok" {"success":true,"taskId":"3","updatedFields":["status"],"statusChange":{"from":"in_progress","to":"completed"}}"#), @r##"
    TaskUpdate | #3 | in progress → completed | ok
    Todos([Todo { text: "#3", status: "completed", before: Some("in_progress"), is_new: false, detail: "" }])
    "##);
    insta::assert_snapshot!(card("TaskCreate", r#"{"subject":"Weave","description":"All of it"}"#, r#""ok" {"task":{"id":"1","subject":"Weave"}}"#), @r##"
    TaskCreate | #1 Weave |  | ok
    Todos([Todo { text: "#1 Weave", status: "pending", before: None, is_new: false, detail: "All of it" }])
    "##);
}

#[test]
fn web_and_question_cards() {
    insta::assert_snapshot!(card("WebFetch", r#"{"url":"https://example.org","prompt":"what?"}"#, r#""It says." {"bytes":9,"code":200,"codeText":"OK","result":"It says.","durationMs":5,"url":"https://example.org"}"#), @r#"
    WebFetch | https://example.org | 200 OK | ok
    Page { url: "https://example.org", status: "200 OK", prompt: "what?", text: "It says." }
    "#);
    insta::assert_snapshot!(card("WebSearch", r#"{"query":"loom"}"#, r#""Links" {"query":"loom","results":[{"tool_use_id":"s","content":[{"title":"Loom","url":"https://l"}]},"text"],"durationSeconds":1.5}"#), @r#"
    WebSearch | loom | 1 result | ok
    Links { query: "loom", links: [("Loom", "https://l")], text: "text" }
    "#);
    insta::assert_snapshot!(card("AskUserQuestion", r#"{"questions":[{"question":"Which?","header":"H","options":[{"label":"A"},{"label":"B","description":"the other"}],"multiSelect":false}]}"#, r#""answered" {"questions":[],"answers":{"Which?":"B"},"annotations":{"Which?":{"notes":"but not today"}}}"#), @r#"
    AskUserQuestion | Which? | B | ok
    Questions([Question { text: "Which?", options: [Choice { label: "A", description: "" }, Choice { label: "B", description: "the other" }], answer: Some("B"), notes: Some("but not today") }])
    "#);
    insta::assert_snapshot!(card("SendMessage", r#"{"to":"weaver","message":"Go on."}"#, r#""ok" {"success":true,"message":"sent"}"#), @r#"
    SendMessage | weaver | Go on. | ok
    Message { to: "weaver", text: "Go on." }
    "#);
}

#[test]
fn plans_and_agents() {
    insta::assert_snapshot!(card("ExitPlanMode", r##"{"plan":"# Plan: weave\n\nSteps"}"##, r##""User has approved your plan" {"plan":"# Plan: weave\n\nSteps","isAgent":false}"##), @r##"
    ExitPlanMode | Plan: weave | approved | ok
    Plan("# Plan: weave\n\nSteps")
    "##);
    insta::assert_snapshot!(card("Agent", r#"{"description":"look","prompt":"Look.","subagent_type":"Explore"}"#, r#"[text "Found."] {"status":"completed","agentId":"a1","content":[{"type":"text","text":"Found."}],"totalToolUseCount":12,"totalTokens":48211}"#), @r#"
    Agent | look | 12 calls · 48k tokens | ok
    Agent { description: "look", agent_type: "Explore", prompt: "Look.", answer: "Found.", background: false }
    "#);
}

#[test]
fn unknown_tools_get_a_generic_card() {
    insta::assert_snapshot!(card("mcp__weaver__knot", r#"{"deep":{"a":[1]},"name":"reef"}"#, "\"tied\""), @r#"
    mcp__weaver__knot | reef | tied | ok
    Fields([("deep", "{\"a\":[1]}"), ("name", "reef")])
    "#);
    insta::assert_snapshot!(card("Bash", "{}", "\"\" error"), @r#"
    Bash |  |  | error
    Command(CommandCard { command: "", description: "", output: Text(""), errors: "", exit_code: None, background: None, kept_at: None, changes: CommandChanges { files: [], n_unnamed: 0, is_skipped: false } })
    "#);
}

#[test]
fn a_very_long_command_is_in_its_card() {
    let command = "é".repeat(50_000);
    let text = card("Bash", &format!(r#"{{"command":"{command}"}}"#), r#""ok""#);
    let (line, card) = text.split_once('\n').unwrap();
    assert_eq!(line, format!("Bash | {}… |  | ok", "é".repeat(1 << 15)));
    assert!(card.contains(&command));
}

/// Renders the line of a call, without its card.
fn summary_line(tool: &str, input: &str, result: &str) -> String {
    card(tool, input, result).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn cards_fall_back_to_the_result_text() {
    insta::assert_snapshot!(card("Glob", r#"{"pattern":"*.rs"}"#, r#""/home/ada/loom/a.rs\n/home/ada/loom/b.rs\n(Results are truncated.)""#), @r#"
    Glob | *.rs | 2 files | ok
    Matches { pattern: "*.rs", place: "", files: ["a.rs", "b.rs"], lines: "" }
    "#);
    insta::assert_snapshot!(card("Grep", r#"{"pattern":"warp"}"#, r#""Found 1 file\nsrc/a.rs""#), @r#"
    Grep | warp | 1 file | ok
    Matches { pattern: "warp", place: "", files: ["src/a.rs"], lines: "" }
    "#);
    assert_eq!(
        summary_line("Grep", r#"{"pattern":"x"}"#, r#""No matches found""#),
        "Grep | x | no matches | ok"
    );
    assert_eq!(summary_line("Grep", r#"{"pattern":"x"}"#, r#""a:1:x\nb:2:x""#), "Grep | x | 2 lines | ok");
    insta::assert_snapshot!(card("WebSearch", r#"{"query":"loom"}"#, r#""Web search results for query: \"loom\"\n\nLinks: [{\"title\":\"Loom\",\"url\":\"https://l\"}]\n\nIt weaves.""#), @r#"
    WebSearch | loom | 1 result | ok
    Links { query: "loom", links: [("Loom", "https://l")], text: "It weaves." }
    "#);
    insta::assert_snapshot!(card("BashOutput", r#"{"bash_id":"b7"}"#, r#""<status>completed</status>\n<exit_code>2</exit_code>\n<stdout>\nhello\n</stdout>\n<stderr>oh</stderr>""#), @r#"
    BashOutput | b7 | completed, exit 2 | ok
    Command(CommandCard { command: "", description: "", output: Text("hello"), errors: "oh", exit_code: Some(2), background: Some("b7"), kept_at: None, changes: CommandChanges { files: [], n_unnamed: 0, is_skipped: false } })
    "#);
    insta::assert_snapshot!(card("TaskOutput", r#"{"task_id":"b7"}"#, r#""<status>running</status>\n<output>\nhello\n</output>""#), @r#"
    TaskOutput | b7 | running | ok
    Command(CommandCard { command: "", description: "", output: Text("hello"), errors: "", exit_code: None, background: Some("b7"), kept_at: None, changes: CommandChanges { files: [], n_unnamed: 0, is_skipped: false } })
    "#);
    insta::assert_snapshot!(card("AskUserQuestion", r#"{"questions":[{"question":"Which?","options":[{"label":"A"}]},{"question":"When?","options":[]}]}"#, r#""User has answered your questions: \"Which?\"=\"A\", \"When?\"=\"now, or soon\". You can now continue.""#), @r#"
    AskUserQuestion | Which? | A; now, or soon | ok
    Questions([Question { text: "Which?", options: [Choice { label: "A", description: "" }], answer: Some("A"), notes: None }, Question { text: "When?", options: [], answer: Some("now, or soon"), notes: None }])
    "#);
    assert_eq!(
        summary_line("TaskList", "{}", r##""#1 [completed] warp\n#2 [pending] weave""##),
        "TaskList |  | 1 of 2 done | ok"
    );
    assert_eq!(
        summary_line("TaskList", "{}", r#""Error: No such tool available" error"#),
        "TaskList |  |  | error"
    );
    assert_eq!(summary_line("TaskCreate", r#"{"subject":"Weave"}"#, r#""ok""#), "TaskCreate | Weave |  | ok");
}

#[test]
fn read_results_are_named_by_kind() {
    let read = |result: &str| summary_line("Read", r#"{"file_path":"x"}"#, &format!("\"ok\" {result}"));
    assert_eq!(
        read(r#"{"type":"pdf","file":{"base64":"JVBERg==","originalSize":7}}"#),
        "Read | x | PDF | ok"
    );
    assert_eq!(
        read(r#"{"type":"image","file":{"base64":"iVBORw==","type":"image/png"}}"#),
        "Read | x | image | ok"
    );
    assert_eq!(read(r#"{"type":"parts","file":{"count":3}}"#), "Read | x | 3 pages | ok");
    assert_eq!(read(r#"{"type":"notebook","file":{"cells":[{},{}]}}"#), "Read | x | 2 cells | ok");
    assert_eq!(read(r#"{"type":"file_unchanged","file":{"filePath":"x"}}"#), "Read | x | unchanged | ok");
}

#[test]
fn writing_the_same_text_is_shown_as_unchanged() {
    let written = r#""ok" {"type":"update","filePath":"a.rs","content":"1\n2\n","structuredPatch":[]}"#;
    let line = summary_line("Write", r#"{"file_path":"a.rs","content":"1\n2\n"}"#, written);
    assert_eq!(line, "Write | a.rs | unchanged | ok");
}

#[test]
fn small_results_are_summarised() {
    let line = "mcp__loom__look | warp | 3 lines | ok";
    assert_eq!(summary_line("mcp__loom__look", r#"{"name":"warp"}"#, r#""a\nb\nc""#), line);
    let called_off = r#""ok" {"scheduledFor":0,"clampedDelaySeconds":0,"stopped":true,"cancelledWakeups":1}"#;
    assert_eq!(summary_line("ScheduleWakeup", "{}", called_off), "ScheduleWakeup |  | cancelled | ok");
    let script = r#"{"script":"await agent('weave')","description":"weave"}"#;
    let launched = r#""launched" {"status":"async_launched","taskId":"w1"}"#;
    assert_eq!(summary_line("Workflow", script, launched), "Workflow | weave | in the background as w1 | ok");
    let kept =
        r#""<persisted-output>\nOutput too large (9KB). Full output saved to: /x/kept.txt\n\nPreview""#;
    assert_eq!(
        summary_line("mcp__loom__look", r#"{"name":"warp"}"#, kept),
        "mcp__loom__look | warp | the whole output | ok"
    );
}

#[test]
fn the_first_of_equal_questions_has_the_answer() {
    let input = format!(r#"{{"questions":[{}]}}"#, vec![r#"{"question":"Which?"}"#; 64].join(","));
    let answer = "A".repeat(3_000);
    let results = [
        format!(
            r#""answered" {{"answers":{{"Which?":"{answer}"}},"annotations":{{"Which?":{{"notes":"{answer}B"}}}}}}"#
        ),
        format!(r#""User has answered your questions: \"Which?\"=\"{answer}\".""#),
    ];
    for result in results {
        let shown = card("AskUserQuestion", &input, &result);
        assert_eq!(shown.matches("Which?").count(), 65);
        assert!(shown.len() < 16_000, "{}", shown.len());
    }
}

#[test]
fn the_gist_of_a_long_line_is_truncated() {
    let line = summary_line("mcp__loom__weave", "{}", &format!("\"{}\"", "warp ".repeat(100_000)));
    let gist = line.split(" | ").nth(2).unwrap();
    assert_eq!((gist.len(), gist.ends_with('…')), (threadline_view::MAX_SUBJECT + "…".len(), true));
}

#[test]
fn answers_are_found_among_very_many_others() {
    let others: Vec<String> = (0..1000).map(|idx| format!("\"q{idx}\":\"no\"")).collect();
    let result = format!(r#""ok" {{"answers":{{{},"Which?":"A"}}}}"#, others.join(","));
    let line = summary_line("AskUserQuestion", r#"{"questions":[{"question":"Which?"}]}"#, &result);
    assert_eq!(line, "AskUserQuestion | Which? | A | ok");
}

/// Renders the changes in the result of a command: its gist, those of its files, and the rest.
fn changes(tool: &str, diff: &str) -> String {
    let notation = format!(
        r#"
u1 user "go"
a1 <- u1 reply m1 tool t1 {tool} {{"command":"x"}}
r1 <- a1 result t1 "" {{"stdout":"","bashEditDiff":{diff}}}
"#
    );
    let family = SessionFamily::new(Session::from_bytes(&log(&notation)), Vec::new());
    let transcript = transcript(&family, &|_| None);
    let ItemBody::Call(call) = &transcript.turns[0].items[1].body else { panic!("a call") };
    let Some(changes) = call.command_changes() else { return "none".to_owned() };
    let files = changes.detailed().map(|file| format!("{} {}", file.short_path, file.gist()));
    let parts: Vec<String> =
        std::iter::once(call.short_result().into_owned()).chain(files).chain(changes.rest()).collect();
    parts.join("\n")
}

/// Returns a changed file in the notation of logs.
fn changed_file(path: &str, lines: &str, flags: &str) -> String {
    format!(
        r#"{{"filePath":"/home/ada/loom/{path}","hunks":[{{"oldStart":1,"newStart":1,"lines":[{lines}]}}]{flags}}}"#
    )
}

#[test]
fn the_changes_of_a_command_are_described() {
    let edited = changed_file("src/a.rs", r#"" a","-b","+c","+d""#, "");
    let created = changed_file("new.txt", r#""+a""#, r#","created":true"#);
    let created_empty = r#"{"filePath":"/tmp/empty","hunks":[],"created":true}"#;
    let deleted = changed_file("old.txt", r#""-a","-b""#, r#","deleted":true"#);
    let binary = r#"{"filePath":"/home/ada/loom/a.png","hunks":[]}"#;
    let names = r#""/home/ada/loom/src/a.rs","/home/ada/loom/b.png","/tmp/c.png""#;
    for (files, rest, expected) in [
        (&*edited, "", "edited a.rs, +2 −1\nsrc/a.rs +2 −1"),
        (&created, "", "created new.txt, 1 line\nnew.txt created, 1 line"),
        (created_empty, "", "created empty\n/tmp/empty created"),
        (&deleted, "", "deleted old.txt, 2 lines\nold.txt deleted, 2 lines"),
        (binary, "", "edited a.png\n1 file changed (lines not recorded): a.png"),
        (
            &format!("{edited},{created}"),
            "",
            "changed 2 files, +3 −1\nsrc/a.rs +2 −1\nnew.txt created, 1 line",
        ),
        (
            &format!("{created},{created_empty}"),
            "",
            "created 2 files, +1\nnew.txt created, 1 line\n/tmp/empty created",
        ),
        (
            &edited,
            &format!(r#","moreFiles":2,"changedFiles":[{names}]"#),
            "changed 3 files, +2 −1\nsrc/a.rs +2 −1\n2 more files changed (lines not recorded): b.png, /tmp/c.png",
        ),
        (
            "",
            &format!(r#","moreFiles":5,"changedFiles":[{names}]"#),
            "changed 5 files\n5 files changed (lines not recorded; 2 without a name): src/a.rs, b.png, /tmp/c.png",
        ),
        (
            &edited,
            r#","moreFiles":4"#,
            "changed 5 files, +2 −1\nsrc/a.rs +2 −1\n4 more files changed (lines not recorded; Claude Code did not record which)",
        ),
        ("", r#","skipped":true"#, "changed files\nchanged files; Claude Code did not record which"),
        ("", "", "none"),
        // A file that is listed twice counts once.
        (&format!("{edited},{edited}"), "", "edited a.rs, +2 −1\nsrc/a.rs +2 −1"),
    ] {
        let diff = format!(r#"{{"files":[{files}]{rest}}}"#);
        assert_eq!(changes("Bash", &diff), expected, "{diff}");
        assert_eq!(changes("PowerShell", &diff), expected, "{diff}");
    }
    assert_eq!(changes("Monitor", r#"{"files":[],"skipped":true}"#), "none");
    for odd in ["null", "[]", r#"{"files":{}}"#, r#"{"files":[1,{}],"changedFiles":[null]}"#] {
        assert_eq!(changes("Bash", odd), "none", "{odd}");
    }
}
