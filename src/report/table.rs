//! Tables that fit a width: columns give way in an order, names are shortened in the middle. Every
//! text is made printable here. Pure.

use unicode_width::UnicodeWidthChar as _;

use super::printable::printable;
use super::screen::{Screen, Tint};

/// Stands for a value that is not there.
pub(super) const NONE: &str = "-";

/// Stands for what is cut.
const ELLIPSIS: char = '…';

/// In how many steps columns give way. Before the last, columns are left out.
const PHASES: usize = 3;

/// The blanks between two columns.
const GAP: usize = 2;

/// Where a text that is too wide is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Middle,
    End,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    head: &'static str,
    cut: Cut,
    /// How narrow it becomes where the table is too wide: first, then, and at the last.
    floors: [usize; PHASES],
    /// When it is left out, a lower number first; `None`: never.
    left_out: Option<u8>,
}

impl Column {
    /// A column that is never cut.
    pub(super) const fn whole(head: &'static str) -> Self {
        Self {
            head,
            cut: Cut::End,
            floors: [usize::MAX; PHASES],
            left_out: None,
        }
    }

    /// A column of names, which differ at both ends.
    pub(super) const fn names(head: &'static str, floors: [usize; PHASES]) -> Self {
        Self {
            cut: Cut::Middle,
            floors,
            ..Self::whole(head)
        }
    }

    /// A column of sentences.
    pub(super) const fn text(head: &'static str, floors: [usize; PHASES]) -> Self {
        Self {
            floors,
            ..Self::whole(head)
        }
    }

    /// The column, left out as the `rank`th where there is no room.
    pub(super) const fn left_out(self, rank: u8) -> Self {
        Self {
            left_out: Some(rank),
            ..self
        }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tint: Tint,
}

impl Cell {
    pub(super) fn tinted(text: impl Into<String>, tint: Tint) -> Self {
        let text = text.into();
        Self { text, tint }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::tinted(text, Tint::Plain)
    }
}

/// A line of a table.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// A cell for each column.
    Cells(Vec<Cell>),
    /// The first cells, and a text in place of all others.
    Spanning(Vec<Cell>, String),
}

/// Lays a table out: as wide as its cells, or as narrow as the screen.
pub(super) fn table(columns: &[Column], lines: Vec<Line>, screen: &Screen) -> String {
    let heads = columns.iter().map(|column| Cell::from(column.head));
    let mut all = vec![Line::Cells(heads.collect())];
    all.extend(lines.into_iter().map(shown));
    let natural = natural_widths(columns.len(), &all);
    let widths = widths(columns, &natural, screen.width);
    let mut text = String::new();
    for line in &all {
        text.push_str(&laid_out(columns, line, &widths, screen));
        text.push('\n');
    }
    text
}

/// Columns as wide as their widest cell, two blanks between them.
pub(super) fn aligned(heads: &[&'static str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns: Vec<Column> = heads.iter().copied().map(Column::whole).collect();
    let line = |row: Vec<String>| Line::Cells(row.into_iter().map(Cell::from).collect());
    table(&columns, rows.map(line).collect(), &Screen::plain())
}

/// A value, or [`NONE`].
pub(super) fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

fn shown(line: Line) -> Line {
    let cell = |cell: Cell| Cell::tinted(printable(&cell.text), cell.tint);
    match line {
        Line::Cells(cells) => Line::Cells(cells.into_iter().map(cell).collect()),
        Line::Spanning(cells, rest) => {
            Line::Spanning(cells.into_iter().map(cell).collect(), printable(&rest))
        }
    }
}

fn natural_widths(columns: usize, lines: &[Line]) -> Vec<usize> {
    let mut widths = vec![0; columns];
    for line in lines {
        let (Line::Cells(cells) | Line::Spanning(cells, _)) = line;
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(width_of(&cell.text));
        }
    }
    widths
}

/// The width of each column; `None`: it is left out.
fn widths(columns: &[Column], natural: &[usize], room: Option<usize>) -> Vec<Option<usize>> {
    let mut widths: Vec<_> = natural.iter().copied().map(Some).collect();
    let Some(room) = room else {
        return widths;
    };
    let floor = |at: usize, phase: usize| {
        let floors = columns.get(at).map(|column| column.floors);
        floors.and_then(|it| it.get(phase).copied()).unwrap_or(0)
    };
    loop {
        let least = widths.iter().enumerate();
        let least = least.map(|(at, width)| width.map(|width| width.min(floor(at, PHASES - 2))));
        if total(least) <= room {
            break;
        }
        let ranks = columns.iter().enumerate();
        let ranks = ranks.filter(|(at, _)| widths.get(*at).copied().flatten().is_some());
        let next = ranks.filter_map(|(at, it)| Some((it.left_out?, at))).min();
        match next.and_then(|(_, at)| widths.get_mut(at)) {
            Some(width) => *width = None,
            None => break,
        }
    }
    for phase in 0..PHASES {
        while total(widths.iter().copied()) > room {
            let wide = widths.iter_mut().enumerate();
            let wide = wide.filter_map(|(at, width)| {
                let width = width.as_mut()?;
                (*width > floor(at, phase)).then_some(width)
            });
            let Some(widest) = wide.max_by_key(|width| **width) else {
                break;
            };
            *widest -= 1;
        }
    }
    widths
}

fn total(widths: impl Iterator<Item = Option<usize>>) -> usize {
    let all = widths.flatten().map(|width| width + GAP).sum::<usize>();
    all.saturating_sub(GAP)
}

fn laid_out(columns: &[Column], line: &Line, widths: &[Option<usize>], screen: &Screen) -> String {
    let (Line::Cells(cells) | Line::Spanning(cells, _)) = line;
    let mut room = screen.width.unwrap_or(usize::MAX);
    let mut text = String::new();
    // The blanks before the next cell, once it is known that there is one.
    let mut blanks = 0;
    let mut put = |cell: &str, tint: Tint, width: usize, cut: Cut| {
        let cell = fitted(cell, width.min(room.saturating_sub(blanks)), cut);
        let filled = width_of(&cell);
        if filled > 0 {
            text.extend(std::iter::repeat_n(' ', blanks));
            text.push_str(&tint.paint(&cell, screen.colours));
            room = room.saturating_sub(blanks + filled);
            blanks = 0;
        }
        blanks += width.saturating_sub(filled).saturating_add(GAP);
    };
    for ((column, cell), width) in columns.iter().zip(cells).zip(widths) {
        if let Some(width) = width {
            put(&cell.text, cell.tint, *width, column.cut);
        }
    }
    if let Line::Spanning(_, rest) = line {
        put(rest, Tint::Plain, usize::MAX / 2, Cut::End);
    }
    text
}

/// A line cut to a width.
pub(super) fn cut(text: &str, width: Option<usize>) -> String {
    width.map_or_else(|| text.to_owned(), |width| fitted(text, width, Cut::End))
}

/// How many columns of a terminal a text takes.
pub(super) fn width_of(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

fn fitted(text: &str, width: usize, cut: Cut) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else {
        return String::new();
    };
    let tail = match cut {
        Cut::Middle => room / 2,
        Cut::End => 0,
    };
    let mut left = room - tail;
    let begin = text.chars().take_while(|c| taken(&mut left, *c));
    let begin: String = begin.collect();
    let mut left = tail;
    let end = text.chars().rev().take_while(|c| taken(&mut left, *c));
    let end: Vec<char> = end.collect();
    let end: String = end.into_iter().rev().collect();
    format!("{begin}{ELLIPSIS}{end}")
}

fn taken(left: &mut usize, c: char) -> bool {
    let rest = left.checked_sub(columns_of(c));
    *left = rest.unwrap_or(0);
    rest.is_some()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
