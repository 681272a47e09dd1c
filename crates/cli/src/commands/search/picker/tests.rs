use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn press(picker: &mut Picker, code: KeyCode) -> Action {
    picker.update(KeyEvent::new(code, KeyModifiers::NONE))
}

fn control(picker: &mut Picker, ch: char) -> Action {
    picker.update(KeyEvent::new(KeyCode::Char(ch), KeyModifiers::CONTROL))
}

fn screen(picker: &Picker, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| picker.draw(frame)).unwrap();
    terminal.backend().to_string()
}

fn row(id: &str, heading: &str, n_finds: usize) -> Row {
    let find = |i: usize| Find {
        path: format!("/logs/{id}.jsonl").into(),
        anchor: format!("m{}", i + 1),
        byte_offset: i as u64 * 100,
        block_idx: 0,
    };
    Row {
        id: id.to_owned(),
        path: format!("/logs/{id}.jsonl").into(),
        heading: heading.to_owned(),
        when: "2026-01-01 10:00".to_owned(),
        directory: Some("/home/ada/loom".to_owned()),
        found: n_finds,
        finds: (0..n_finds).map(find).collect(),
    }
}

fn talk() -> Picker {
    let mut picker = Picker::new("slow");
    assert_eq!(picker.take(News::Row(row("one", "Slow loom", 3)), true), Action::Look);
    assert_eq!(picker.take(News::Row(row("two", "Not \u{1b}[31mslow", 1)), false), Action::Nothing);
    assert_eq!(picker.take(News::Done(12), false), Action::Nothing);
    let line = |text: &str| PreviewLine { pieces: vec![(text.to_owned(), Look::Plain)], found: false };
    let label = |text: &str| PreviewLine { pieces: vec![(text.to_owned(), Look::Label)], found: false };
    let marked = PreviewLine {
        pieces: vec![
            ("why is it ".to_owned(), Look::Plain),
            ("slow".to_owned(), Look::Mark),
            ("?\u{7}".to_owned(), Look::Plain),
        ],
        found: true,
    };
    let before = (0..30).map(|i| line(&format!("line {i}")));
    picker.preview.lines = before.chain([label("prompt"), marked, line(""), line("and more")]).collect();
    picker
}

#[test]
fn the_find_is_in_sight_and_nothing_commands_the_terminal() {
    assert_snapshot!(screen(&talk(), 90, 12), @r#"
    "search slow                                                  4 matches in 2 of 12 sessions"
    "▌ Slow loom                          line 28                                              "
    "▌ 1/3  2026-01-01 10:00  /home/ada/l line 29                                              "
    "  Not ^[[31mslow                     prompt                                               "
    "  1  2026-01-01 10:00  /home/ada/loo why is it slow?^G                                    "
    "                                                                                          "
    "                                     and more                                             "
    "                                                                                          "
    "                                                                                          "
    "                                                                                          "
    "                                                                                          "
    "↑↓ session  Tab match  PgUp/PgDn preview  Enter open  ^Y copy resume  Esc quit            "
    "#);
}

#[test]
fn a_narrow_screen_has_the_preview_below() {
    assert_snapshot!(screen(&talk(), 50, 14), @r#"
    "search slow          4 matches in 2 of 12 sessions"
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
    "↑↓ session  Tab match  PgUp/PgDn preview  Enter op"
    "#);
}

#[test]
fn keys_choose_sessions_and_finds() {
    let mut picker = talk();
    let open = |picker: &mut Picker| match press(picker, KeyCode::Enter) {
        Action::Open(path, anchor) => format!("{} {}", path.display(), anchor.unwrap_or_default()),
        other => format!("{other:?}"),
    };
    assert_eq!(open(&mut picker), "/logs/one.jsonl m1");
    assert_eq!(press(&mut picker, KeyCode::Tab), Action::Look);
    assert_eq!(open(&mut picker), "/logs/one.jsonl m2");
    assert_eq!(press(&mut picker, KeyCode::BackTab), Action::Look);
    assert_eq!(press(&mut picker, KeyCode::BackTab), Action::Look);
    assert_eq!(open(&mut picker), "/logs/one.jsonl m3");
    assert_eq!(press(&mut picker, KeyCode::Down), Action::Look);
    assert_eq!(open(&mut picker), "/logs/two.jsonl m1");
    assert_eq!(control(&mut picker, 'n'), Action::Nothing, "that was the last");
    assert_eq!(control(&mut picker, 'p'), Action::Look);
    assert_eq!(open(&mut picker), "/logs/one.jsonl m1");
    assert_eq!(press(&mut picker, KeyCode::Up), Action::Nothing);
    assert_eq!(press(&mut picker, KeyCode::Esc), Action::Quit);
    assert_eq!(control(&mut picker, 'c'), Action::Quit);
}

#[test]
fn typing_searches_and_editing_is_as_in_a_shell() {
    let mut picker = Picker::new("");
    for ch in "错 loom".chars() {
        assert_eq!(press(&mut picker, KeyCode::Char(ch)), Action::Search);
    }
    assert_eq!(press(&mut picker, KeyCode::Home), Action::Nothing);
    assert_eq!(press(&mut picker, KeyCode::Backspace), Action::Nothing, "there is nothing before");
    press(&mut picker, KeyCode::Right);
    press(&mut picker, KeyCode::Char('x'));
    assert_eq!(picker.input, "错x loom");
    assert_eq!(press(&mut picker, KeyCode::Delete), Action::Search);
    press(&mut picker, KeyCode::End);
    press(&mut picker, KeyCode::Left);
    press(&mut picker, KeyCode::Backspace);
    assert_eq!(picker.input, "错xlom");
    press(&mut picker, KeyCode::End);
    assert_eq!(control(&mut picker, 'w'), Action::Search);
    assert_eq!(picker.input, "");
    picker = Picker::new("a b");
    control(&mut picker, 'u');
    assert_eq!((&*picker.input, picker.cursor), ("", 0));
}

#[test]
fn the_resume_command_is_one_for_a_shell() {
    let mut picker = talk();
    assert_eq!(
        control(&mut picker, 'y'),
        Action::Copy("cd /home/ada/loom && claude --resume one".to_owned())
    );
    assert!(picker.message.as_deref().unwrap().starts_with("copied: cd "));
    picker.rows[0].directory = Some("/home/ada/it's here".to_owned());
    assert_eq!(
        control(&mut picker, 'y'),
        Action::Copy(r"cd '/home/ada/it'\''s here' && claude --resume one".to_owned())
    );
    picker.rows[0].id = "one;reboot".to_owned();
    picker.rows[0].directory = Some("/x\u{1b}[2J".to_owned());
    assert_eq!(
        control(&mut picker, 'y'),
        Action::Copy(r"cd $'/x\x1b[2J' && claude --resume 'one;reboot'".to_owned())
    );
}

#[test]
fn a_query_that_is_not_finished_keeps_what_was_found() {
    let mut picker = talk();
    press(&mut picker, KeyCode::Char('"'));
    picker.begin();
    picker.take(News::Bad("the phrase has no closing quote".to_owned()), true);
    assert_eq!(picker.rows.len(), 2);
    assert!(screen(&picker, 90, 5).contains("no closing quote"));
    picker.begin();
    picker.take(News::Done(12), true);
    assert!(picker.rows.is_empty(), "nothing was found");
    assert_eq!(press(&mut picker, KeyCode::Enter), Action::Nothing);
    assert_eq!(control(&mut picker, 'y'), Action::Nothing);
}
