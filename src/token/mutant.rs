//! The mutants of the protocol: deliberate errors, each of which was a counterexample.
//!
//! The code asks `is_mutant` where each error could creep in. Outside of tests the answer is the
//! constant `false`. A test turns a mutant on and shows that the simulation or the rule's table
//! then fails.

/// One way to get the protocol wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// After an unclear answer, the session id in the row counts as proof of the heartbeat.
    HeartbeatKnownBySession,
    /// Trust starts when the row was read again, not when the swap was sent.
    TrustFromReread,
    /// Versions count up, so that they repeat after a lost commit.
    VersionIsCounter,
    /// A dead supervisor alone counts as a dead run.
    DeathOfSupervisorAlone,
    /// A forced release claims that the old job can no longer be running.
    ForceClaimsNoOverlap,
    /// Ages are compared across clock epochs.
    AgesAcrossEpochs,
    /// A paused token is taken from a dead holder.
    PausedTakenFromDead,
    /// The expected client takes an idle token back in the slot that has just run.
    FailbackInSameSlot,
    /// An abandoned swap is carried out, however late it arrives.
    AbandonedSwapHappens,
    /// A job is started after trusted-until minus grace.
    LateStart,
    /// The token is released before the job's tree is gone.
    ReleaseBeforeReaped,
    /// The contender's takeover-after is used instead of the holder's.
    ContendersTakeoverAfter,
    /// A forgotten grant is granted again.
    ForgottenGrantGranted,
    /// The first incarnation that is seen is trusted, whatever the store's past.
    FirstIncarnationTrusted,
    /// The note is looked up by the incarnation, instead of the last one.
    NoteByIncarnation,
    /// A restart that loses nothing ends an observation that goes on.
    RestartEndsQuarantine,
    /// A holder whose last heartbeat was forgotten treats its token as lost.
    LostHeartbeatEndsHolder,
}

#[cfg(test)]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// True if the code acts on this mutant. Always `false` outside of tests.
#[cfg(not(test))]
#[inline]
pub(crate) const fn is_mutant(_: Mutant) -> bool {
    false
}

/// True if the code acts on this mutant: a test has turned it on, on this thread.
#[cfg(test)]
pub(crate) fn is_mutant(one: Mutant) -> bool {
    ACTIVE.get() == Some(one)
}

/// Turns one mutant on while `body` runs on this thread, and off again.
#[cfg(test)]
pub(crate) fn with_mutant<R>(one: Mutant, body: impl FnOnce() -> R) -> R {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            ACTIVE.set(None);
        }
    }
    let _reset = Reset;
    ACTIVE.set(Some(one));
    body()
}
