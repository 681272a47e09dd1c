use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn press(picker: &mut Picker, code: KeyCode) -> PickerAction {
    picker.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn press_control(picker: &mut Picker, ch: char) -> PickerAction {
    picker.handle_key(KeyEvent::new(KeyCode::Char(ch), KeyModifiers::CONTROL))
}

fn screen(picker: &Picker, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| picker.draw(frame)).unwrap();
    terminal.backend().to_string()
}

fn row(id: &str, heading: &str, n_finds: usize) -> PickerRow {
    let find = |i: usize| PickerMatch {
        path: format!("/logs/{id}.jsonl").into(),
        anchor: format!("m{}", i + 1),
        byte_offset: i as u64 * 100,
        block_idx: 0,
        text_offset: 0,
    };
    PickerRow {
        path: format!("/logs/{id}.jsonl").into(),
        logs: Vec::new(),
        heading: heading.to_owned(),
        when: "2026-01-01 10:00".to_owned(),
        project: Some("/home/ada/loom".to_owned()),
        resume: format!("cd /home/ada/loom && claude --resume {id}"),
        match_count: n_finds,
        matches: (0..n_finds).map(find).collect(),
    }
}

fn sample_picker() -> Picker {
    let mut picker = Picker::new("slow", Sort::Relevance, PickerPurpose::Show);
    assert_eq!(
        picker.receive(SearchMessage::Row(row("one", "Slow loom", 3)), true),
        PickerAction::LoadPreview
    );
    assert_eq!(
        picker.receive(SearchMessage::Row(row("two", "Not \u{1b}[31mslow", 1)), false),
        PickerAction::Nothing
    );
    assert_eq!(picker.receive(SearchMessage::Done(None), false), PickerAction::Nothing);
    let line = |text: &str| PreviewLine {
        pieces: vec![(text.to_owned(), PreviewStyle::Plain)],
        ..PreviewLine::default()
    };
    let label = |text: &str| PreviewLine {
        pieces: vec![(text.to_owned(), PreviewStyle::Label)],
        ..PreviewLine::default()
    };
    let marked = PreviewLine {
        pieces: vec![
            ("why is it ".to_owned(), PreviewStyle::Plain),
            ("slow".to_owned(), PreviewStyle::Match),
            ("?\u{7}".to_owned(), PreviewStyle::Plain),
        ],
        in_match: true,
        in_excerpt: true,
    };
    let before = (0..30).map(|i| line(&format!("line {i}")));
    picker.preview.lines = before.chain([label("prompt"), marked, line(""), line("and more")]).collect();
    picker
}

#[test]
fn the_match_is_visible_and_control_characters_are_escaped() {
    assert_snapshot!(screen(&sample_picker(), 90, 12), @r#"
    "search slow                                                        4 matches in 2 sessions"
    "▌ Slow loom                          │ line 28                                            "
    "▌ 1/3  2026-01-01 10:00  …/ada/loom  │ line 29                                            "
    "  Not ^[[31mslow                     │ prompt                                             "
    "  1  2026-01-01 10:00  …/ada/loom    │ why is it slow?^G                                  "
    "                                     │                                                    "
    "                                     │ and more                                           "
    "                                     │                                                    "
    "                                     │                                                    "
    "                                     │                                                    "
    "                                     │                                                    "
    "↑↓ session  Tab match  PgUp/PgDn scroll  Enter open  ^S newest  ^Y copy resume  Esc       "
    "#);
}

#[test]
fn a_narrow_screen_shows_the_preview_below_the_list() {
    assert_snapshot!(screen(&sample_picker(), 50, 14), @r#"
    "search slow                4 matches in 2 sessions"
    "▌ Slow loom                                       "
    "▌ 1/3  2026-01-01 10:00  /home/ada/loom           "
    "  Not ^[[31mslow                                  "
    "  1  2026-01-01 10:00  /home/ada/loom             "
    "                                                  "
    "                                                  "
    "line 29                                           "
    "prompt                                            "
    "why is it slow?^G                                 "
    "                                                  "
    "and more                                          "
    "                                                  "
    "↑↓ session  Tab match  Enter open  ^S newest  Esc "
    "#);
}

#[test]
fn keys_select_sessions_and_matches() {
    let mut picker = sample_picker();
    let open = |picker: &mut Picker| match press(picker, KeyCode::Enter) {
        PickerAction::Open(path, anchor) => format!("{} {}", path.display(), anchor.unwrap_or_default()),
        other => format!("{other:?}"),
    };
    assert_eq!(open(&mut picker), "/logs/one.jsonl m1");
    assert_eq!(press(&mut picker, KeyCode::Tab), PickerAction::LoadPreview);
    assert_eq!(open(&mut picker), "/logs/one.jsonl m2");
    assert_eq!(press(&mut picker, KeyCode::BackTab), PickerAction::LoadPreview);
    assert_eq!(press(&mut picker, KeyCode::BackTab), PickerAction::LoadPreview);
    assert_eq!(open(&mut picker), "/logs/one.jsonl m3");
    assert_eq!(press(&mut picker, KeyCode::Down), PickerAction::LoadPreview);
    assert_eq!(open(&mut picker), "/logs/two.jsonl m1");
    assert_eq!(press_control(&mut picker, 'n'), PickerAction::Nothing, "that was the last");
    assert_eq!(press_control(&mut picker, 'p'), PickerAction::LoadPreview);
    assert_eq!(open(&mut picker), "/logs/one.jsonl m1");
    assert_eq!(press(&mut picker, KeyCode::Up), PickerAction::Nothing);
    assert_eq!(press(&mut picker, KeyCode::Esc), PickerAction::Quit);
    assert_eq!(press_control(&mut picker, 'c'), PickerAction::Quit);
}

#[test]
fn typing_searches_and_editing_keys_work_as_in_a_shell() {
    let mut picker = Picker::new("", Sort::Relevance, PickerPurpose::Show);
    for ch in "错 loom".chars() {
        assert_eq!(press(&mut picker, KeyCode::Char(ch)), PickerAction::Search);
    }
    assert_eq!(press(&mut picker, KeyCode::Home), PickerAction::Nothing);
    assert_eq!(press(&mut picker, KeyCode::Backspace), PickerAction::Nothing, "there is nothing before");
    press(&mut picker, KeyCode::Right);
    press(&mut picker, KeyCode::Char('x'));
    assert_eq!(picker.input, "错x loom");
    assert_eq!(press(&mut picker, KeyCode::Delete), PickerAction::Search);
    press(&mut picker, KeyCode::End);
    press(&mut picker, KeyCode::Left);
    press(&mut picker, KeyCode::Backspace);
    assert_eq!(picker.input, "错xlom");
    press(&mut picker, KeyCode::End);
    assert_eq!(press_control(&mut picker, 'w'), PickerAction::Search);
    assert_eq!(picker.input, "");
    picker = Picker::new("a b", Sort::Relevance, PickerPurpose::Show);
    press_control(&mut picker, 'u');
    assert_eq!((&*picker.input, picker.cursor), ("", 0));
}

#[test]
fn the_resume_command_is_copied() {
    let mut picker = sample_picker();
    assert_eq!(
        press_control(&mut picker, 'y'),
        PickerAction::Copy("cd /home/ada/loom && claude --resume one".to_owned())
    );
    assert!(picker.message.as_deref().unwrap().starts_with("copied: cd "));
}

#[test]
fn an_unfinished_query_keeps_the_results() {
    let mut picker = sample_picker();
    press(&mut picker, KeyCode::Char('"'));
    picker.start_search();
    picker.receive(SearchMessage::Bad("the phrase has no closing quote".to_owned()), true);
    assert_eq!(picker.rows.len(), 2);
    assert!(screen(&picker, 90, 5).contains("no closing quote"));
    picker.start_search();
    picker.receive(SearchMessage::Done(None), true);
    assert!(picker.rows.is_empty(), "nothing was found");
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerAction::Nothing);
    assert_eq!(press_control(&mut picker, 'y'), PickerAction::Nothing);
}

#[test]
fn the_preview_is_at_the_excerpt_and_not_at_the_first_match() {
    let home = threadline_testkit::TestHome::new();
    let filler = "nothing\\n".repeat(60);
    let notation = format!("u1 user \"slow\\n{filler}slow and fast\"");
    let path = home.session("loom", &notation);
    let query = threadline_search::Query::parse("slow fast", &jiff::Zoned::default()).unwrap();
    let text = format!("slow\n{}slow and fast", "nothing\n".repeat(60));
    let excerpt = text.len() - "slow and fast".len();
    let preview = preview::read(&path, 0, 0, excerpt, Some(&query), &|text| text.into()).unwrap();
    let shown: Vec<String> = preview
        .lines
        .iter()
        .filter(|line| line.in_excerpt)
        .map(|line| line.pieces.iter().map(|(text, _)| &**text).collect())
        .collect();
    assert_eq!(shown, ["slow and fast"]);
}

#[test]
fn sessions_are_sorted_by_relevance_or_newest_first() {
    let home = threadline_testkit::TestHome::new();
    home.session("often", "u1 user \"loom loom\" @2026-01-01T10:00:00Z\nu2 <- u1 user \"the loom again\"");
    home.session("later", "u1 user \"hello\" @2026-01-03T10:00:00Z\na1 <- u1 reply m1 text \"a loom\"");
    // A log without a conversation has the time of its file, and is last active.
    std::fs::write(home.session("empty", "u1 user \"x\""), "").unwrap();
    let config = threadline_app::AppConfig { homes: vec![home.root().to_owned()], ..Default::default() };
    let app = std::sync::Arc::new(threadline_app::App::new(config));
    let (mut search, results) = background_search::BackgroundSearch::start(app, None);
    let mut ids = |text: &str, sort: Sort| {
        let number = search.request(text, sort);
        let mut ids = Vec::new();
        for (of, message) in results.iter().filter(|(of, _)| *of == number) {
            assert_eq!(of, number);
            match message {
                SearchMessage::Row(row) => {
                    ids.push(row.path.file_stem().unwrap().to_string_lossy().into_owned());
                }
                SearchMessage::Done(_) => break,
                SearchMessage::Bad(problem) => panic!("{problem}"),
            }
        }
        ids
    };
    let (often, later) =
        (threadline_testkit::session_uuid("often"), threadline_testkit::session_uuid("later"));
    assert_eq!(ids("loom", Sort::Relevance), [often.clone(), later.clone()]);
    assert_eq!(ids("loom", Sort::Newest), [later.clone(), often.clone()]);
    assert_eq!(ids("", Sort::Newest), [later, often]);
}

#[test]
fn an_empty_query_counts_the_sessions_of_lists() {
    let home = threadline_testkit::TestHome::new();
    home.session("titled", "u1 user \"hello\"");
    home.session("untitled", "a1 reply m1 text \"hello\"");
    let config = threadline_app::AppConfig { homes: vec![home.root().to_owned()], ..Default::default() };
    let app = std::sync::Arc::new(threadline_app::App::new(config));
    let (mut search, results) = background_search::BackgroundSearch::start(app, None);
    search.request("", Sort::Newest);
    let mut picker = Picker::new("", Sort::Newest, PickerPurpose::Resume);
    for (_, message) in results {
        let is_done = matches!(message, SearchMessage::Done(_));
        picker.receive(message, false);
        if is_done {
            break;
        }
    }
    assert_eq!(picker.rows.len(), 1);
    assert_eq!(picker.status, SearchStatus::Done(Some(1)));
    assert!(screen(&picker, 90, 5).contains(" 1 session"));
}

#[test]
fn long_titles_and_projects_are_cut_visibly() {
    let mut picker = Picker::new("", Sort::Newest, PickerPurpose::Resume);
    let long = PickerRow {
        project: Some("/home/ada/projects/weaving/loom".to_owned()),
        ..row("one", "Why does the loom of the weaving project stop?", 0)
    };
    picker.receive(SearchMessage::Row(long), true);
    picker.receive(SearchMessage::Done(Some(1)), false);
    assert_snapshot!(screen(&picker, 80, 4), @r#"
    "resume                                                                 1 session"
    "▌ Why does the loom of the weav… │                                              "
    "▌ 2026-01-01 10:00  …/loom       │                                              "
    "↑↓ session  Tab match  Enter resume  ^S relevance  ^Y copy command  Esc         "
    "#);
    // The name of the project takes the place of the time of day.
    picker.rows[0].project = Some("/home/ada/projects/weaving-machines".to_owned());
    assert!(
        screen(&picker, 80, 4).contains("▌ 2026-01-01  …/weaving-machines"),
        "{}",
        screen(&picker, 80, 4)
    );
}

#[test]
fn control_s_changes_the_order() {
    let mut picker = sample_picker();
    assert_eq!(press_control(&mut picker, 's'), PickerAction::Search);
    assert_eq!(picker.sort, Sort::Newest);
    assert!(screen(&picker, 90, 5).contains("^S relevance"));
}

#[test]
fn the_preview_masks_secrets() {
    let home = threadline_testkit::TestHome::new();
    let path = home.session("loom", "u1 user \"slow hush\"");
    let mask = |text: &str| text.replace("hush", "[secret]");
    let preview = preview::read(&path, 0, 0, 0, None, &mask).unwrap();
    let shown: String = preview.lines.iter().flat_map(|line| &line.pieces).map(|(text, _)| &**text).collect();
    assert!(shown.contains("slow [secret]") && !shown.contains("hush"), "{shown}");
}
