//! The token: who may run a group's job. Pure: no I/O, no clock.
//!
//! # The protocol
//!
//! One row per group, in a database that every node reaches, is the group's
//! *token*. A *session* (one invocation of tokenrun) that wants to run the group's
//! job reads the row, lets the *rule* decide, and, if it may, writes a new row in
//! which the token is its own. While its job runs it writes *heartbeats*. When no process of the
//! job is left it writes the run's outcome and releases the token, in one swap.
//!
//! ```text
//!             first look, another is expected            grant (clauses 8, 9, 15, 16)
//!   (no row) ───────────────────────────────▶ free ────────────────────────────────┐
//!      │                                        ▲                                  ▼
//!      │ grant (15)                             │ release, keep 0           ┌── running ◀─┐
//!      └──────────────────────────────────────▶ │ or revoked, or by force ──┤      │      │ heartbeat
//!                                               │                           │      └──────┘
//!                                               │ release by an operator    │ release
//!                                              idle ◀───────────────────────┘
//!                                               └──── grant (8, 9, 11, 15, 16) ─▶ running
//!                      running, silent or provably dead ── grant (8, 9, 15, 16) ─▶ running
//! ```
//!
//! # Who decides what
//!
//! - The **store** decides nothing. It carries out a [`Swap`] if the row's version
//!   is still the one that was read and the swap has not expired, and puts its own
//!   time into the stamps.
//! - The **rule** ([`decide`]) decides which session may have the token, from the row, the claim,
//!   the queue, the evidence and the store's time. It lives here once, never in SQL. Contenders
//!   honour the *holder's* terms, which the row carries.
//! - The **holder** decides until when it trusts its lease: until takeover-after,
//!   less a [margin](Timing::margin), after it *sent* the last swap that is known to
//!   have happened. By then the job is gone, with everything that it started.
//!   Takeover-after counts from when the store *stamped* that swap, which was later.
//!   So the job is gone before the token can be another's.
//! - An **operator** may pause, hand off, revoke or free a token. An operator's swap never stamps a
//!   heartbeat and never touches `session_version`, so that a holder can tell its own swaps from
//!   the operator's. The swap also records the act.
//!
//! # Three properties of a swap
//!
//! - *Versions are random.* After a lossy failover or a restored backup a counter
//!   repeats, and a heartbeat "from version 1" would overwrite another's grant.
//! - *A swap expires*, in the store's own time. One that was abandoned and arrives
//!   late changes nothing, so that no token is granted to a ghost.
//! - *`session_version` is the last version that the session itself wrote.* After an unclear answer
//!   the session reads the row: only that version says which of its swaps happened. The session's
//!   id in the row proves nothing about a heartbeat.
//!
//! # The rule
//!
//! The first clause that matches decides.
//!
//! | | the row | the claim is from | verdict |
//! |---|---|---|---|
//! | 0 | any, also absent, while the store may have forgotten a grant ([`incarnation`]) and has not been observed for the longer of the claimant's takeover-after and the group's longest ever | any, except in clause 1 | observe the store, write nothing to the token, then start over |
//! | 1 | running, and this process runs inside of it | a process under the session's guard | run under the outer lease |
//! | 2 | running, provably dead | a process on that host | *open*: go on at 6 |
//! | 3 | the verdict needs an unknown age: the stamp is of another clock epoch, or of the future | anyone | observe: that age counts as reached once the version stood unchanged for its whole length on the reader's own clock |
//! | 4 | running, silent for less than the holder's takeover-after (or, where that age is unknown, heard while the reader watched) | anyone | refused: held. The expected client with failback: handed off to itself besides, unless a hand-off is there |
//! | 5 | running, silent longer | anyone, unless a process of the run is alive on this host (then refused) | *open*: go on at 6 |
//! | 6 | paused; or any, also absent, while the claimant's client is paused | anyone, a paused client except in clause 1 | refused |
//! | 7 | free, idle or open, younger than not-before since its grant, however that run ended | anyone | refused: too soon |
//! | 8 | handed off, not running or open | the target | grant: handoff |
//! | 9 | the same | another, whom 10 and 12 to 14 would let in | wait the head start, then grant |
//! | 10 | others are before it in the queue | anyone | refused: behind |
//! | 11 | idle, bound to the claimant | the bound client | grant: renew |
//! | 12 | idle, younger than keep | the expected client with failback | refused, and handed off to itself |
//! | 13 | idle, younger than keep | another, unless first in the queue | refused: bound |
//! | 14 | never granted, younger than takeover-after, a client is expected | another | refused: reserved |
//! | 15 | open | the preferred client, the expected one with failback, the first in the queue, or anyone if no client is preferred | grant |
//! | 16 | open | another | wait the head start; if the version is unchanged then, grant: takeover |
//!
//! A pause of a client comes before every clause but 1: such a client has nothing to observe. It stands
//! beside the note of the [`incarnation`], which each look reads and each grant compares.
//!
//! After a failed run with `--move-on-failure`, and after an operator has moved the token away from a
//! client, that client *gives way*: no client is preferred, and it waits the head start in place of 11 and
//! 15, also as the first of the queue, where it delays no other waiter.
//!
//! The queue of clause 10 ([`mod@queue`]) holds the waiters by arrival. A waiter counts while its
//! last heartbeat is at most 2.5 seconds old by the store's clock (a heartbeat expires, as a swap
//! does), and while the rule would let it in if it came first: a waiter that the rule refuses
//! delays no other, and one that may have to observe delays none whose observation is over.
//!
//! *Open* is a token that is free, idle for longer than keep, silent for longer than
//! takeover-after, or whose holder is provably dead. The head start is counted from
//! the look that found the token open: after an observation it comes on top of it, so
//! that a preferred client that began to observe a little later still comes first.
//!
//! # What happens on each failure
//!
//! | failure | what follows |
//! |---|---|
//! | the answer to a grant is lost | read: the grant happened if `session_version` is the one that was drawn for it; trust counts from its sending. Until it expires it may still happen, so its version is remembered |
//! | the answer to a heartbeat is lost | the next starts from the same version, so that at most one of them happens; a conflict then means: read |
//! | a swap conflicts | read: ours, and `session_version` one that was sent: an operator wrote, go on; else the token is lost |
//! | a swap expires | neither conflict nor loss: take the store's time from the answer, try again |
//! | the store hangs or is gone | heartbeats are retried with pauses; at trusted-until less the grace the job's tree gets TERM, at trusted-until KILL |
//! | the token is lost | the job's tree is ended at once; the session closes its own record, truthfully |
//! | the success of a run with a key for `--once` can't be recorded | it is tried for as long as the lease can be trusted; then a message says so, and the exit code is 74 |
//! | the supervisor is killed | the guard ends the tree at once; the row stays until takeover-after, or until a claimant on that host finds both locks free |
//! | supervisor and guard are killed at once | what is left of the job holds its lock: no claimant on that host takes over while a process of the job lives; others do after takeover-after |
//! | the supervisor is stopped | the guard ends the tree at the deadline |
//! | the guard is killed, stopped or hung | the supervisor sends it CONT; if that does not help, it kills the guard and the tree |
//! | the host is suspended | the clocks count on; on wake-up the deadline is checked first |
//! | the store's clock restarts | ages are observed, not compared; a live holder's next heartbeat ends that |
//! | the store loses its last commits | nothing is granted until every lease is over that may be forgotten (clause 0). A holder whose grant was lost finds that at its next heartbeat and ends its job; one that finds a version of its own in the row, however old, goes on from there. Versions do not repeat, and the fence rises all the same |

pub mod claim;
pub mod clause;
pub mod document;
pub mod hidden;
pub mod incarnation;
pub mod mutant;
pub mod names;
pub mod operator;
pub mod outcome;
pub mod pattern;
pub mod queue;
pub mod record;
pub mod refusal;
pub mod row;
pub mod rule;
pub mod swap;
pub mod time;
pub mod timing;

pub use claim::{About, Claim, Evidence, Look, QueuePosition};
pub use clause::Clause;
pub use document::{Counters, Document, Handoff, Others, Pause, Run, StampOf};
pub use incarnation::{Doubt, IncarnationNote, Memory, NoteSwap, Observation, Served};
pub use names::{
    ClientId, Fence, GroupName, Incarnation, NameError, OnceKey, ResourceName, SessionId, Version,
};
pub use operator::Act;
pub use outcome::{GrantKind, Outcome};
pub use pattern::{GroupPattern, Groups};
pub use queue::{QueueEntry, Waiter};
pub use record::{
    ActRecord, Actor, OnceMark, OutputLimits, OutputRecord, Recorded, RunEnd, RunRecord,
};
pub use refusal::{Refusal, RefusalRecord, RefusalTotal};
pub use row::{Row, State};
pub use rule::{Decision, Verdict, decide};
pub use swap::{Swap, Swapped};
pub use time::{ClockEpoch, Stamp, StoreTime, Until, WallTime};
pub use timing::{Timing, TimingError, Wishes};
