//! The clock of an etcd store, and the signs that the store has lost a part of its past. Pure.
//!
//! No answer of etcd has a time. Its clock is a lease that never ends: the time that has passed of it, in whole
//! seconds of the leader's own monotonic clock. It begins again at 0 with each leader, so a clock epoch is a
//! leader's term of office. A cluster that was restored counts its terms anew, and its *generation* tells it
//! from the cluster before.

/// How far a reading may lie behind one that was noted: both are rounded.
const SLACK: i64 = 2;

/// The time in which one leader's clock counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Epoch {
    /// A random number, drawn for a new store and for one that has lost a part of its past.
    pub(super) generation: u64,
    /// The leader's term.
    pub(super) term: u64,
}

/// A rule of the clock, which a test takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A mark never falls within an epoch.
    MarkRises,
    /// The term is that of the read.
    TermOfRead,
    /// The clock is that of the same term.
    ClockOfTerm,
    /// A lower term is the sign of a restore.
    TermRises,
    /// A shorter log is.
    LogGrows,
    /// A clock that was set back is.
    ClockRises,
    /// Clock and log are a sign only if they were asked for after the mark was read.
    SignsAreLate,
    /// An epoch begins with a mark of its own.
    EpochHasMark,
}

/// The rules: all of them, outside of tests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    pub(super) without: Option<Rule>,
}

impl Rules {
    fn have(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// How far a cluster had come when something was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    /// The clock, in seconds.
    pub(super) seconds: i64,
    /// The length of the cluster's log.
    pub(super) index: u64,
}

impl Epoch {
    pub(super) fn text(self) -> String {
        format!("{:016x}/{}", self.generation, self.term)
    }

    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let (generation, term) = std::str::from_utf8(text).ok()?.split_once('/')?;
        Some(Self {
            generation: u64::from_str_radix(generation, 16).ok()?,
            term: term.parse().ok()?,
        })
    }
}

impl Mark {
    /// Two numbers of fixed width, so that they are compared as texts.
    pub(super) fn text(self) -> Vec<u8> {
        format!("{:020} {:020}", self.seconds, self.index).into_bytes()
    }

    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let (seconds, index) = std::str::from_utf8(text).ok()?.split_once(' ')?;
        Some(Self {
            seconds: seconds.parse().ok()?,
            index: index.parse().ok()?,
        })
    }
}

/// What the store keeps of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Kept {
    /// The last epoch in which something was written.
    pub(super) epoch: Epoch,
    /// How far the cluster had come in it.
    pub(super) mark: Mark,
}

/// The answers of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sight {
    /// The term in the answer of the read, which a majority has confirmed.
    pub(super) term: u64,
    /// The term in the answer with the clock. An old leader that was frozen answers with its own.
    pub(super) term_of_clock: u64,
    pub(super) mark: Mark,
    /// True if clock and log were asked for when the read was answered.
    pub(super) is_late: bool,
}

/// What a look is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// The clock is that of this epoch.
    Certain(Epoch),
    /// Clock and log must be asked for again, after the read.
    AskLater,
    /// The leader changed between the answers.
    StartOver,
    /// This epoch begins: it is to be written, with the mark of this look, before anything else.
    Begins(Epoch),
}

impl Rules {
    /// Judges a look. `drawn`: a random number, for a new generation.
    pub(super) fn judge(self, kept: Option<Kept>, sight: &Sight, drawn: u64) -> Judged {
        let term = match self.have(Rule::TermOfRead) {
            true => sight.term,
            false => sight.term_of_clock,
        };
        let new = Judged::Begins(Epoch {
            generation: drawn,
            term,
        });
        if sight.term_of_clock != term && self.have(Rule::ClockOfTerm) {
            return Judged::StartOver;
        }
        let Some(Kept { epoch, mark }) = kept else {
            return new;
        };
        if term < epoch.term && self.have(Rule::TermRises) {
            return new;
        }
        let is_shorter = sight.mark.index < mark.index && self.have(Rule::LogGrows);
        let is_set_back = term == epoch.term
            && sight.mark.seconds < mark.seconds - SLACK
            && self.have(Rule::ClockRises);
        if is_shorter || is_set_back {
            // Another client may have written the mark after this clock was read.
            let is_sign = sight.is_late || !self.have(Rule::SignsAreLate);
            return if is_sign { new } else { Judged::AskLater };
        }
        match term <= epoch.term {
            true => Judged::Certain(epoch),
            false => Judged::Begins(Epoch { term, ..epoch }),
        }
    }

    /// The mark after a commit: the highest values.
    pub(super) fn marked(self, before: Mark, now: Mark) -> Mark {
        match self.have(Rule::MarkRises) {
            true => Mark {
                seconds: before.seconds.max(now.seconds),
                index: before.index.max(now.index),
            },
            false => now,
        }
    }

    /// What is kept when an epoch begins.
    pub(super) fn begun(self, before: Option<Kept>, epoch: Epoch, now: Mark) -> Kept {
        let mark = match before {
            Some(kept) if !self.have(Rule::EpochHasMark) => kept.mark,
            _ => now,
        };
        Kept { epoch, mark }
    }
}

#[cfg(test)]
#[path = "clock_model.rs"]
mod model;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_kept_is_read_as_written(generation: u64, term: u64, seconds in 0..i64::MAX, index: u64) {
            let epoch = Epoch { generation, term };
            prop_assert_eq!(Epoch::read(epoch.text().as_bytes()), Some(epoch));
            let mark = Mark { seconds, index };
            prop_assert_eq!(Mark::read(&mark.text()), Some(mark));
        }

        /// etcd compares marks as texts.
        #[test]
        fn a_later_mark_is_a_greater_text(one in 0..i64::MAX, other in 0..i64::MAX, index: u64) {
            let text = |seconds| Mark { seconds, index }.text();
            prop_assert_eq!(text(one).cmp(&text(other)), one.cmp(&other));
        }

        #[test]
        fn no_bytes_that_are_kept_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (Epoch::read(&bytes), Mark::read(&bytes));
        }
    }

    #[test]
    fn a_look_is_judged_by_what_the_store_has_kept() {
        let epoch = Epoch {
            generation: 7,
            term: 3,
        };
        let kept = Kept {
            epoch,
            mark: Mark {
                seconds: 100,
                index: 50,
            },
        };
        let judge = |rules: Rules, term: u64, (seconds, index): (i64, u64), is_late: bool| {
            let sight = Sight {
                term,
                term_of_clock: term,
                mark: Mark { seconds, index },
                is_late,
            };
            rules.judge(Some(kept), &sight, 9)
        };
        let certain = Judged::Certain(epoch);
        let elected = Judged::Begins(Epoch { term: 4, ..epoch });
        let new = |term| {
            Judged::Begins(Epoch {
                generation: 9,
                term,
            })
        };
        for (term, mark, early, late) in [
            (3, (100, 50), certain, certain),
            (3, (98, 50), certain, certain),
            (3, (97, 50), Judged::AskLater, new(3)),
            (3, (100, 49), Judged::AskLater, new(3)),
            (4, (0, 50), elected, elected),
            (4, (0, 49), Judged::AskLater, new(4)),
            (2, (100, 50), new(2), new(2)),
        ] {
            for (is_late, expected) in [(false, early), (true, late)] {
                let judged = judge(Rules::default(), term, mark, is_late);
                assert_eq!(judged, expected, "{term} {mark:?} {is_late}");
            }
        }
        // The search for worlds takes this rule away.
        let without = Some(Rule::TermRises);
        assert_eq!(judge(Rules { without }, 2, (100, 50), true), certain);
    }
}
