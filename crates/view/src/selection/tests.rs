use super::*;
use crate::session_card::LogTally;

fn card(id: &str, project: &str, last_active: Millis) -> SessionCard {
    SessionCard {
        id: id.to_owned(),
        project: project.to_owned(),
        title: format!("Title of {id}"),
        branch: Some("main".to_owned()),
        last_active,
        ..SessionCard::default()
    }
}

fn read(card: SessionCard, turns: u64, errors: u64, model: &str, tools: &[&str]) -> SessionCard {
    let tools = tools.iter().map(|tool| ((*tool).to_owned(), 1)).collect();
    let tally = LogTally { turns, errors, agents: 0 };
    let figures =
        SessionCardFigures { tally, models: vec![model.to_owned()], tools, ..SessionCardFigures::default() };
    SessionCard { figures: Some(figures.into()), ..card }
}

fn sample_cards() -> Vec<SessionCard> {
    vec![
        SessionCard { live: true, ..card("d", "/home/ada/loom", 40) },
        read(card("c", "/home/ada/loom", 30), 3, 0, "claude-opus-5", &["Bash"]),
        read(card("b", "/home/ada/dye", 20), 9, 2, "claude-sonnet-5", &["Bash", "Edit"]),
        SessionCard { branch: Some("a/b".to_owned()), ..card("a", "/home/ada/loom", 10) },
    ]
}

fn of(link: &str) -> Selection {
    let pairs = link.split('&').filter_map(|pair| pair.split_once('='));
    Selection::of(pairs, |text, end| Some(text.parse::<Millis>().ok()? + Millis::from(end)))
}

fn ids(link: &str) -> String {
    let cards = sample_cards();
    of(link).select(&cards).cards.iter().map(|card| &*card.id).collect()
}

#[test]
fn a_link_selects_sessions() {
    for (link, expected) in [
        ("", "dcba"),
        ("project=/home/ada/loom", "dca"),
        ("project=/home/ada/loom&branch=a/b", "a"),
        ("model=claude-opus-5", "c"),
        ("tool=Bash", "cb"),
        ("tool=Bash&errors=1", "b"),
        ("live=1", "d"),
        ("since=20", "dcb"),
        ("since=20&until=30", "cb"),
        ("words=TITLE+of", ""),
        ("words=title", "dcba"),
        ("sort=turns", "bcda"),
        ("sort=title", "abcd"),
        ("sort=nonsense&page=x&unknown=1&since=soon", "dcba"),
        ("page=7", "dcba"),
    ] {
        assert_eq!(ids(link), expected, "{link}");
    }
}

#[test]
fn a_selection_round_trips_through_a_link() {
    let link =
        "words=slow&project=/p&branch=a/b&model=m&tool=Bash&since=3&until=9&errors=1&live=1&sort=cost&page=2";
    let selection = of(link);
    let again: Vec<_> = selection.pairs().iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(again.join("&"), link);
    assert_eq!(of("").pairs(), []);
    assert!(selection.has_filter() && !of("sort=cost&page=3").has_filter());
}

#[test]
fn a_page_contains_a_hundred_sessions() {
    let cards: Vec<_> = (0..250).map(|n| card(&format!("{n:03}"), "/p", 1000 - n)).collect();
    let chosen = of("page=3").select(&cards);
    assert_eq!((chosen.total, chosen.page, chosen.pages, chosen.cards.len()), (250, 2, 3, 50));
    assert_eq!(chosen.cards[0].id, "200");
    let none = of("live=1").select(&cards);
    assert_eq!((none.total, none.pages, none.cards.len()), (0, 1, 0));
}

#[test]
fn choices_count_the_available_values() {
    let choices = FilterChoices::of(&sample_cards(), &of("project=/home/ada/loom"));
    assert_eq!(choices.projects, [("/home/ada/loom".to_owned(), 3), ("/home/ada/dye".to_owned(), 1)]);
    assert_eq!(choices.branches, [("main".to_owned(), 2), ("a/b".to_owned(), 1)]);
    assert_eq!(choices.tools[0], ("Bash".to_owned(), 2));
    assert_eq!((choices.live, choices.errors, choices.unread), (1, 1, 2));
}

#[test]
fn pins_and_tags_are_filters() {
    let cards = [
        SessionCard { pinned: true, ..card("a", "/x", 1) },
        SessionCard { tags: vec!["blue".to_owned()], ..card("b", "/x", 2) },
        SessionCard { tag: Some("blue".to_owned()), ..card("c", "/x", 3) },
    ];
    let ids = |query: &[(&str, &str)]| {
        let selection = Selection::of(query.iter().copied(), |_, _| None);
        assert_eq!(selection.pairs().len(), query.len());
        selection.sorted(&cards).iter().map(|card| card.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[("pinned", "1")]), ["a"]);
    assert_eq!(ids(&[("tag", "blue")]), ["c", "b"]);
    let choices = FilterChoices::of(&cards, &Selection::default());
    assert_eq!((choices.pinned, choices.tags), (1, vec![("blue".to_owned(), 2)]));
}
