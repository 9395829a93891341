use proptest::prelude::*;

use super::*;

fn screen(width: usize) -> Screen {
    Screen {
        width: Some(width),
        ..Screen::plain()
    }
}

fn line(cells: &[&str]) -> Line {
    Line::Cells(cells.iter().copied().map(Cell::from).collect())
}

const COLUMNS: [Column; 3] = [
    Column::names("NAME", [10, 10, 4]),
    Column::whole("STATE").left_out(1),
    Column::text("NOTE", [8, 8, 3]),
];

fn drawn(width: Option<usize>) -> String {
    let screen = width.map_or_else(Screen::plain, screen);
    let lines = vec![
        line(&["a-very-long-name", "idle", "a long note of many words"]),
        line(&["b", "running", ""]),
        Line::Spanning(vec!["c".into()], "root: pause, for all of the night".into()),
    ];
    table(&COLUMNS, lines, &screen)
}

#[test]
fn without_a_width_a_table_is_as_wide_as_its_cells() {
    let expected = "\
NAME              STATE    NOTE
a-very-long-name  idle     a long note of many words
b                 running
c                 root: pause, for all of the night
";
    assert_eq!(drawn(None), expected);
    assert_eq!(drawn(Some(60)), expected);
}

#[test]
fn where_there_is_less_room_notes_are_cut_and_names_lose_their_middle() {
    let expected = "\
NAME           STATE    NOTE
a-very…g-name  idle     a long note …
b              running
c              root: pause, for all …
";
    assert_eq!(drawn(Some(37)), expected);
    let expected = "\
NAME        NOTE
a-ver…name  a long …
b
c           root: p…
";
    assert_eq!(drawn(Some(20)), expected);
    let expected = "\
NAME  NOTE
a-…e  a l…
b
c     roo…
";
    assert_eq!(drawn(Some(10)), expected);
}

#[test]
fn characters_count_as_wide_as_they_are_shown() {
    let lines = vec![line(&["夜夜", "1", "x"]), line(&["ä\u{308}", "2", "y"])];
    let text = table(&COLUMNS, lines, &Screen::plain());
    assert_eq!(
        text,
        "NAME  STATE  NOTE\n夜夜  1      x\nä\u{308}     2      y\n"
    );
    assert_eq!(fitted("夜夜夜夜", 5, Cut::Middle), "夜…夜");
    assert_eq!(fitted("夜夜夜夜", 4, Cut::Middle), "夜…");
    assert_eq!(fitted("abcdef", 4, Cut::Middle), "ab…f");
    assert_eq!(fitted("abcdef", 1, Cut::Middle), "…");
    assert_eq!(fitted("abcdef", 0, Cut::Middle), "");
    assert_eq!(cut("abcdef", Some(3)), "ab…");
    assert_eq!(cut("abc", None), "abc");
}

#[test]
fn a_colour_takes_no_width() {
    let cells = vec!["a".into(), Cell::tinted("idle", Tint::Bad), "x".into()];
    let colourful = Screen {
        colours: true,
        ..Screen::plain()
    };
    let text = table(&COLUMNS, vec![Line::Cells(cells)], &colourful);
    assert_eq!(
        text,
        "NAME  STATE  NOTE\na     \u{1b}[31midle\u{1b}[0m   x\n"
    );
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_screen(
        cells in proptest::collection::vec(any::<String>(), 3),
        rest in any::<String>(),
        width in 0_usize..100,
    ) {
        let cells: Vec<Cell> = cells.into_iter().map(Cell::from).collect();
        let first = cells.first().cloned().unwrap_or_default();
        let lines = vec![Line::Cells(cells), Line::Spanning(vec![first], rest)];
        let text = table(&COLUMNS, lines, &screen(width));
        prop_assert_eq!(text.lines().count(), 3);
        for line in text.lines() {
            prop_assert!(width_of(line) <= width, "{:?}", line);
        }
    }
}
