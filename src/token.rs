//! The token: who may run a group's job. Pure: no I/O, no clock.
//!
//! Protocol prose follows.

pub mod claim;
pub mod misreading;
pub mod names;
pub mod operator;
pub mod record;
pub mod row;
pub mod rule;
pub mod swap;
pub mod time;
pub mod timing;

pub use claim::{About, Claim, Evidence, Line, Look};
pub use names::{ClientId, Fence, GroupName, NameError, SessionId, Version};
pub use record::{GrantKind, Outcome, RunEnd, RunRecord};
pub use row::{Counters, Handoff, Pause, Row, State, Touch};
pub use rule::{Decision, Refusal, Verdict, decide};
pub use swap::{History, Swap, Swapped};
pub use time::{Domain, Moment, Stamp, StoreTime};
pub use timing::{Timing, TimingError, Wishes};
