//! The marks of resources: the highest fence that has used each.

use super::StoreError;
use crate::token::{Fence, ResourceName};

/// The answer of a resource's mark to a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// The mark is this fence now.
    Stored,
    /// The mark is this higher one.
    Behind(Fence),
}

/// Keeps the mark of each resource.
pub trait Marks {
    /// Sets a resource's mark, the highest fence that has used it, to this fence, unless it
    /// is higher already.
    ///
    /// # Errors
    /// If it is unknown whether the mark is set.
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError>;
}
