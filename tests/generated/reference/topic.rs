//! A topic of the reference, independent of how it is shown.

/// A page: a title, and what stands below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) title: &'static str,
    /// What the page is about, in a line without a full stop.
    pub(crate) about: &'static str,
    pub(crate) parts: Vec<Part>,
}

/// A part of a page. In all texts code may stand between backticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Heading(String),
    Paragraph(String),
    /// Lines that are shown as they are.
    Example(&'static str),
    Table(Table),
}

/// What is explained, and its explanation. Columns between the two hold a word or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<&'static str>,
    /// As many texts as there are columns.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of two columns.
    pub(crate) fn of<T: Into<String>, U: Into<String>>(
        columns: [&'static str; 2],
        rows: impl IntoIterator<Item = (T, U)>,
    ) -> Part {
        let rows = rows.into_iter();
        let rows = rows.map(|(term, text)| vec![term.into(), text.into()]);
        Part::Table(Self {
            columns: columns.to_vec(),
            rows: rows.collect(),
        })
    }
}

pub(crate) fn heading(text: impl Into<String>) -> Part {
    Part::Heading(text.into())
}

pub(crate) fn paragraph(text: impl Into<String>) -> Part {
    Part::Paragraph(text.into())
}
