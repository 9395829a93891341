//! The output of `page`: one HTML file that shows every group's state and its last month. It needs
//! no script and requests nothing. Text that comes from others is made printable, and escaped by
//! the templates.

mod attention;
mod calendar;
mod days;
mod detail;
mod details;
#[cfg(test)]
mod fixture;
mod group;
mod html;
mod marks;
mod plots;
mod svg;
mod timeline;
mod window;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::calendar::Calendar;
pub use self::detail::Detail;
pub use self::group::{Group, Known, View};
pub use self::timeline::Past;
pub use self::window::Window;

/// What a page says beside its groups.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub title: &'a str,
    /// The store's name.
    pub store: &'a str,
    /// The groups that can't be read, and what is wrong with them.
    pub unreadable: &'a [(String, String)],
    /// There are more refusals or acts than were read.
    pub is_shortened: bool,
    /// How often a browser loads it anew.
    pub refresh: Option<Duration>,
}

/// The page, as the text of a file.
#[must_use]
pub fn page(facts: &Facts<'_>, groups: &[Group], view: &View) -> String {
    let mut text = html::document(facts, groups, view).into_string();
    text.push('\n');
    text
}
