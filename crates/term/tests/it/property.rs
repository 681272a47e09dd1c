//! Properties that apply to any Unicode text: no line is too wide, and none controls the terminal.

use proptest::prelude::*;
use threadline_term::{ColumnAlign, TableColumn, TermPage, TermText, TextLabel, table, truncate};
use unicode_width::UnicodeWidthStr;

/// Generates text with many characters that change the width of their neighbours or control a terminal.
fn any_text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(
        "\t\n\r\0\u{1b}\u{7f}\u{85}\u{9b}\u{ad}\u{300}\u{200b}\u{200d}\u{202e}\u{2066}\u{fe0e}\u{fe0f}\u{20e3}⚠❤☎1#👩🚀🏽🇩🇪🏴\u{e0067}\u{e007f}错한각\u{644}\u{627}\u{a4fc}\u{a4fd}\u{17d2}\u{1780}क\u{94d}षि\u{ff9e}\u{fb2c}\u{3000}𒈙﷽"
            .chars()
            .collect::<Vec<_>>(),
    );
    let char = prop_oneof![4 => odd, 2 => prop::char::range(' ', '~'), 2 => any::<char>()];
    prop::collection::vec(char, 0..40).prop_map(String::from_iter)
}

fn is_quiet(text: &str) -> bool {
    !text.chars().any(|ch| ch.is_control() && ch != '\n')
}

proptest! {
    #[test]
    fn truncated_text_fits(text in any_text(), width in 0_usize..60) {
        let cut = truncate(&text, width);
        prop_assert!(cut.width() <= width, "{cut:?} is {} wide, of {width}", cut.width());
        prop_assert!(is_quiet(&cut) && !cut.contains('\n'), "{cut:?}");
    }

    #[test]
    fn rows_are_as_wide_as_their_columns(
        cells in prop::collection::vec(prop::collection::vec(any_text(), 3), 0..4),
        width in prop::option::of(1_usize..120),
        can_shrink in any::<[bool; 3]>(),
        right in any::<[bool; 3]>(),
        color in any::<bool>(),
    ) {
        let columns: Vec<TableColumn> = ["name", "n", "last"].iter().zip(can_shrink).zip(right).map(|((name, can_shrink), right)| {
            TableColumn { name, align: if right { ColumnAlign::Right } else { ColumnAlign::Left }, can_shrink, ..TableColumn::default() }
        }).collect();
        let table = table(TermPage { width, color, links: false, whole_lines: false }, &columns, &cells);
        let table = table.plain();
        let lines: Vec<&str> = table.lines().collect();
        prop_assert_eq!(lines.len(), cells.len() + 1);
        prop_assert!(is_quiet(&table), "{table:?}");
        // The natural width of a column, and the minimum width of the table.
        let natural = |i: usize| cells.iter().map(|row| truncate(&row[i], usize::MAX).width()).max().unwrap_or(0).max(columns[i].name.width());
        let least: usize = (0..3).map(|i| if can_shrink[i] { natural(i).min(12) } else { natural(i) }).sum::<usize>() + 4;
        let most = width.map_or(usize::MAX, |width| width.max(least));
        for line in lines {
            // The width of joined cells can be less than the sum, if letters form a ligature. It is never
            // more.
            prop_assert!(line.width() <= most, "{line:?} is {} wide, of {most}", line.width());
        }
    }

    #[test]
    fn wrapped_lines_fit(text in any_text(), width in 20_usize..60) {
        let page = TermPage { width: Some(width), color: false, links: false, whole_lines: false };
        for line in page.wrap(&text, 0) {
            prop_assert!(line.width() <= width, "{line:?} is {} wide, of {width}", line.width());
        }
    }

    #[test]
    fn painted_text_contains_only_our_control_sequences(text in any_text(), color in any::<bool>()) {
        let page = TermPage { width: Some(40), color, links: true, whole_lines: false };
        let painted = page.paint(TextLabel::Dim, &text);
        prop_assert!(is_quiet(&painted.plain().replace('\t', "")), "{painted:?}");
        let joined = threadline_term::text!("{text}{painted}{:>3}", text);
        let ours = if color && !painted.is_empty() { 2 } else { 0 };
        prop_assert_eq!(joined.as_str().matches('\u{1b}').count(), ours);
        let plain = joined.plain();
        let again = TermText::from(&plain);
        prop_assert_eq!(again.as_str(), &*plain);
    }
}
