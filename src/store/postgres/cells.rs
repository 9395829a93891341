//! Rows as cells, and cells as they are sent; the clock epoch, which is made of two of them.

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

use super::statements::FIRST_SEGMENT;
use crate::store::sql::cell::{BadColumn, Cell, Column, Kind, instant, stamp, wall};
use crate::token::{ClockEpoch, Until, WallTime};

/// The cells of a row in these columns. A clock epoch is in two: when the server was started, and the file name
/// that contains its timeline.
pub(super) fn cells(row: &Row, columns: &[Column]) -> Vec<Cell> {
    let mut next = 0;
    let mut cell = |column: &Column| {
        let at = next;
        next += if column.kind == Kind::Epoch { 2 } else { 1 };
        let found = match column.kind {
            Kind::Text => get(row, at).map(Cell::Text),
            Kind::Number => get(row, at).map(Cell::Number),
            Kind::Flag => get(row, at).map(|flag| Cell::Flag(flag == Some(true))),
            Kind::Time => time(row, at).map(|at| Cell::Time(at.map(|(_, wall)| wall))),
            Kind::Stamp => time(row, at).map(|at| Cell::Stamp(at.map(|(_, wall)| stamp(wall)))),
            Kind::Epoch => time(row, at).and_then(|started| {
                let started = started.map(|(instant, _)| instant);
                let name: Option<&str> = get(row, at + 1)?;
                Ok(Cell::Text(name.map(|name| epoch_of(started, name).0)))
            }),
        };
        found.unwrap_or_else(|what| Cell::Bad(Box::new(BadColumn::of(column.name, what))))
    };
    columns.iter().map(&mut cell).collect()
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<Option<T>, String> {
    row.try_get(at).map_err(|error| error.to_string())
}

/// The time in a column, to the microsecond and to the millisecond: one that can be written as RFC 3339.
fn time(row: &Row, at: usize) -> Result<Option<(SystemTime, WallTime)>, String> {
    let Some(at) = get::<SystemTime>(row, at)? else {
        return Ok(None);
    };
    let millis = match at.duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_millis()).unwrap_or(i128::MAX),
        Err(_) => -1,
    };
    Ok(Some((at, wall(millis)?)))
}

/// A value as the driver takes it: unnamed statements give their types themselves.
pub(super) fn parameter(cell: &Cell) -> (&(dyn ToSql + Sync), Type) {
    let type_of = match cell {
        Cell::Text(_) | Cell::Bad(_) => Type::TEXT,
        Cell::Number(_) => Type::INT8,
        Cell::Time(_) | Cell::Stamp(_) | Cell::Instant(_) => Type::TIMESTAMPTZ,
        Cell::Flag(_) => Type::BOOL,
    };
    (cell, type_of)
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.to_sql(of, out),
            Self::Number(number) => number.to_sql(of, out),
            Self::Flag(flag) => flag.to_sql(of, out),
            Self::Time(wall) => wall.map(instant).to_sql(of, out),
            Self::Stamp(stamp) => stamp.map(|stamp| instant(stamp.wall)).to_sql(of, out),
            Self::Instant(at) => at.to_sql(of, out),
            Self::Bad(_) => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// The expiry of a statement: the time, and the server incarnation in which alone it holds: its
/// start, the file name with its timeline, and the clock epoch made of the two.
pub(super) fn expiry_values(expiry: &Until) -> [Cell; 4] {
    let (started, timeline) = incarnation(expiry.epoch());
    [
        Cell::Time(Some(WallTime(expiry.tick_ms()))),
        Cell::Instant(started),
        Cell::text(&format!("{timeline}{FIRST_SEGMENT}")),
        Cell::text(expiry.epoch()),
    ]
}

/// The start and the timeline of a server, as [`epoch_of`] has combined them.
pub(super) fn incarnation(of: &ClockEpoch) -> (Option<SystemTime>, &str) {
    let parts = of.0.split_once(' ').and_then(|(started, timeline)| {
        let at = humantime::parse_rfc3339(started).ok()?;
        (epoch(Some(at), timeline) == *of).then_some((Some(at), timeline))
    });
    // Then it belongs to another kind of server.
    parts.unwrap_or((None, &of.0))
}

/// The clock epoch of a server with this start, in the years 1970 to 9999, and this timeline; the statements return the
/// timeline in a file name. It is composed here: its text would take a new server process 0.45 ms.
pub(super) fn epoch_of(started: Option<SystemTime>, name: &str) -> ClockEpoch {
    epoch(started, name.strip_suffix(FIRST_SEGMENT).unwrap_or(name))
}

fn epoch(started: Option<SystemTime>, timeline: &str) -> ClockEpoch {
    ClockEpoch(match started {
        Some(at) => format!("{} {timeline}", humantime::format_rfc3339_micros(at)),
        None => timeline.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::collection::vec;
    use proptest::option::weighted;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::store::postgres::played::{LOGGED_IN, message, queried};
    use crate::store::sql::cell::{flag, number, text};
    use crate::token::Stamp;

    /// 2000-01-01, from which the server counts, and a second later.
    const WALL: WallTime = WallTime(946_684_801_000);
    const SECOND: &[u8] = &1_000_000_i64.to_be_bytes();

    /// What a server answers with a row of these columns: the type's number, and the value.
    fn answer(row: &[(u32, Option<&[u8]>)]) -> Vec<u8> {
        let count = u16::try_from(row.len()).unwrap().to_be_bytes();
        let (mut columns, mut values) = (count.to_vec(), count.to_vec());
        for (kind, value) in row {
            // A name, no table, the type, its size and its modifier, in binary.
            columns.extend(b"c\0\0\0\0\0\0\0");
            columns.extend(kind.to_be_bytes());
            columns.extend(b"\xff\xff\xff\xff\xff\xff\0\x01");
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
            values.extend(length.to_be_bytes());
            values.extend(value.unwrap_or_default());
        }
        [
            message(b'1', b""),
            message(b'2', b""),
            message(b'T', &columns),
            message(b'D', &values),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ]
        .concat()
    }

    #[test]
    fn a_row_is_read_by_its_columns_and_an_epoch_from_two() {
        let columns = [
            text("t"),
            Column::new("epoch", Kind::Epoch),
            number("n"),
            flag("f"),
            flag("g"),
            Column::new("time", Kind::Time),
            Column::new("stamp", Kind::Stamp),
            Column::new("none", Kind::Time),
            number("bad"),
        ];
        let name = format!("00000002{FIRST_SEGMENT}");
        let row = answer(&[
            (25, Some(b"a")),
            (1184, Some(SECOND)),
            (25, Some(name.as_bytes())),
            (20, Some(&7_i64.to_be_bytes())),
            (16, Some(&[1])),
            (16, None),
            (1184, Some(SECOND)),
            (1184, Some(SECOND)),
            (1184, None),
            (25, Some(b"x")),
        ]);
        let values = [
            Cell::text("a"),
            Cell::number(1),
            Cell::Flag(true),
            Cell::Time(Some(WALL)),
        ];
        let rows = queried(&[LOGGED_IN, &row], &values).unwrap();
        let mut found = cells(&rows[0], &columns);
        let Some(Cell::Bad(bad)) = found.pop() else {
            panic!("{found:?}");
        };
        assert_eq!(bad.column, "bad");
        let stamp = Stamp {
            tick_ms: WALL.0,
            wall: WALL,
        };
        let expected = [
            Cell::text("a"),
            Cell::text("2000-01-01T00:00:01.000000Z 00000002"),
            Cell::number(7),
            Cell::Flag(true),
            Cell::Flag(false),
            Cell::Time(Some(WALL)),
            Cell::Stamp(Some(stamp)),
            Cell::Time(None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_time_that_can_not_be_written_is_wrong_in_each_column() {
        let name = format!("00000002{FIRST_SEGMENT}");
        let beyond_9999 = 9_000 * 365 * 86_400 * 1_000_000_i64;
        for (micros, what) in [
            (-beyond_9999, "lies before 1970"),
            (i64::MIN, "lies before 1970"),
            (beyond_9999, "lies beyond the year 9999"),
            (i64::MAX, "lies beyond the year 9999"),
        ] {
            let time = (1184, Some(&micros.to_be_bytes()[..]));
            let row = answer(&[time, (25, Some(name.as_bytes())), time, time]);
            let rows = queried(&[LOGGED_IN, &row], &[]).unwrap();
            let columns = [
                Column::new("epoch", Kind::Epoch),
                Column::new("time", Kind::Time),
                Column::new("stamp", Kind::Stamp),
            ];
            let bad = |column: &Column| Cell::Bad(Box::new(BadColumn::of(column.name, what)));
            assert_eq!(cells(&rows[0], &columns), columns.map(|it| bad(&it)));
        }
    }

    #[test]
    fn an_epoch_is_taken_apart_if_it_is_one_of_this_kind_of_server() {
        let started = UNIX_EPOCH + Duration::from_micros(1_790_000_000_000_001);
        let epoch = epoch_of(Some(started), &format!("0000000A{FIRST_SEGMENT}"));
        assert_eq!(incarnation(&epoch), (Some(started), "0000000A"));
        for other in ["another", "no time", "2026-01-01T00:00:00Z 0000000A"] {
            assert_eq!(incarnation(&ClockEpoch(other.into())), (None, other));
        }
    }

    const KINDS: [Kind; 6] = [
        Kind::Text,
        Kind::Number,
        Kind::Flag,
        Kind::Time,
        Kind::Stamp,
        Kind::Epoch,
    ];

    fn is_of(cell: &Cell, kind: Kind) -> bool {
        match cell {
            Cell::Text(_) => matches!(kind, Kind::Text | Kind::Epoch),
            Cell::Number(_) => kind == Kind::Number,
            Cell::Flag(_) => kind == Kind::Flag,
            Cell::Time(_) => kind == Kind::Time,
            Cell::Stamp(_) => kind == Kind::Stamp,
            Cell::Bad(_) => true,
            Cell::Instant(_) => false,
        }
    }

    /// The numbers of the types that a column of this kind has.
    fn types_of(kind: Kind) -> &'static [u32] {
        match kind {
            Kind::Text => &[25],
            Kind::Number => &[20],
            Kind::Flag => &[16],
            Kind::Time | Kind::Stamp => &[1184],
            Kind::Epoch => &[1184, 25],
        }
    }

    /// A type's number and a value.
    type Sent = (u32, Option<Vec<u8>>);

    /// Mostly of this type, and a value that fits it.
    fn any_value(of: u32) -> impl Strategy<Value = Sent> {
        let fitting = match of {
            16 => any::<u8>().prop_map(|byte| vec![byte]).boxed(),
            25 => ".{0,12}".prop_map(String::into_bytes).boxed(),
            _ => (any::<i64>(), 0..64_u32)
                .prop_map(|(number, shift)| (number >> shift).to_be_bytes().to_vec())
                .boxed(),
        };
        let bytes = prop_oneof![9 => fitting, 1 => vec(any::<u8>(), 0..12)];
        let types = prop_oneof![9 => Just(of), 1 => select(vec![16, 20, 23, 25, 1114, 1184])];
        (types, weighted(0.9, bytes))
    }

    fn any_column() -> impl Strategy<Value = (Kind, Vec<Sent>)> {
        select(&KINDS[..]).prop_flat_map(|kind| {
            let values: Vec<_> = types_of(kind).iter().map(|of| any_value(*of)).collect();
            (Just(kind), values)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Also one of fewer values than its columns take.
        #[test]
        fn any_row_is_read(columns in vec(any_column(), 1..8), fewer in 0..4_usize) {
            let (kinds, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
            let values = values.concat();
            let sent = values.len().saturating_sub(fewer).max(1);
            let row: Vec<_> = values[..sent]
                .iter()
                .map(|(of, value)| (*of, value.as_deref()))
                .collect();
            let columns: Vec<_> = kinds.iter().map(|kind| Column::new("c", *kind)).collect();
            let rows = queried(&[LOGGED_IN, &answer(&row)], &[]).unwrap();
            for (cell, kind) in cells(&rows[0], &columns).iter().zip(kinds) {
                prop_assert!(is_of(cell, kind), "{kind:?}: {cell:?}");
            }
        }
    }
}
