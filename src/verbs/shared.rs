//! What several verbs share: their options, the store, this node, text for people.

pub(crate) mod action;
pub(crate) mod asking;
pub(crate) mod environment;
pub(crate) mod failure;
pub(crate) mod groups;
pub(crate) mod node;
pub(crate) mod options;
pub(crate) mod printing;
pub(crate) mod screen;
pub(crate) mod span;
mod store_file;
pub(crate) mod stores;
