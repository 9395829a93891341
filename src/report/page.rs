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
mod words;

#[cfg(test)]
mod tests;

pub use self::calendar::Calendar;
pub use self::detail::Detail;
pub use self::group::{Group, Known, View};
pub use self::timeline::Past;
pub use self::words::Facts;

/// The page, as the text of a file.
#[must_use]
pub fn page(facts: &Facts<'_>, groups: &[Group], view: &View) -> String {
    let mut text = html::document(facts, groups, view).into_string();
    text.push('\n');
    text
}
