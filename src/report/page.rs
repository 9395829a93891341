//! The output of `page`: one HTML file that shows every group's state and its last month. It needs
//! no script and requests nothing. Text that comes from others is made printable, and escaped by
//! the templates.

mod calendar;
mod days;
#[cfg(test)]
mod fixture;
mod group;
mod html;
mod marks;
mod plots;
mod section;
mod svg;
mod timeline;
mod view;

#[cfg(test)]
mod tests;

pub use self::calendar::Calendar;
pub use self::group::{Group, Known};
pub use self::html::POLICY;
pub use self::timeline::Past;
pub use self::view::{Detail, Facts, View};

/// The page, as the text of a file.
pub fn page(facts: &Facts<'_>, groups: &[Group], view: &View) -> String {
    let mut text = html::document(facts, groups, view).into_string();
    text.push('\n');
    text
}
