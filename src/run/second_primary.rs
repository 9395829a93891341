//! The check, while a job runs, if the store has become two. A separate thread makes each check and ends
//! with it; the driver picks up the answer when it comes by. So no heartbeat, signal, deadline or
//! end waits for a check, and a short run makes none.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use crate::moment::Moment;
use crate::store::Lookout;

/// How long a job runs at least before the first check.
const FIRST_AFTER: Duration = Duration::from_secs(1);

/// Checks the store's other servers, again and again.
pub(super) struct SecondPrimary {
    lookout: Option<Arc<dyn Lookout>>,
    every: Duration,
    /// When the next check begins; `None` until there is a job.
    next: Option<Moment>,
    /// The channel for the answer of a check under way.
    answer: Option<Receiver<Option<Vec<String>>>>,
    /// The last reported finding.
    found: Vec<String>,
}

impl SecondPrimary {
    pub(super) fn new(lookout: Option<Arc<dyn Lookout>>, takeover_after: Duration) -> Self {
        Self {
            lookout,
            every: takeover_after / 5,
            next: None,
            answer: None,
            found: Vec::new(),
        }
    }

    /// To be called regularly while a job runs. Returns the servers that accept writes, if there
    /// are several and the last report named others.
    pub(super) fn look(&mut self, now: Moment) -> Option<Vec<String>> {
        let lookout = self.lookout.as_ref()?;
        let next = *self
            .next
            .get_or_insert_with(|| now.plus(self.every.min(FIRST_AFTER)));
        if self.answer.is_none() && now >= next {
            self.next = Some(now.plus(self.every));
            self.answer = begin(lookout);
        }
        match self.answer.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.answer = None;
                None
            }
            Ok(found) => {
                self.answer = None;
                self.is_news(found?)
            }
        }
    }

    fn is_news(&mut self, found: Vec<String>) -> Option<Vec<String>> {
        let same = found == self.found;
        self.found.clone_from(&found);
        (!same && !found.is_empty()).then_some(found)
    }
}

/// If the system cannot create a thread, the next check may succeed.
fn begin(lookout: &Arc<dyn Lookout>) -> Option<Receiver<Option<Vec<String>>>> {
    let (tell, answer) = channel();
    let lookout = Arc::clone(lookout);
    let thread = thread::Builder::new()
        .name("lookout".into())
        .stack_size(512 * 1024)
        .spawn(move || {
            // The run may have ended meanwhile.
            let _ = tell.send(lookout.primaries());
        });
    thread.is_ok().then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Gives the answers in this order.
    struct Answers(Mutex<Vec<Option<Vec<String>>>>);

    impl Lookout for Answers {
        fn primaries(&self) -> Option<Vec<String>> {
            self.0.lock().unwrap().remove(0)
        }
    }

    fn found(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(ToString::to_string).collect())
    }

    /// The finding of the check that is due at this second.
    fn look(watch: &mut SecondPrimary, second: u64) -> Option<Vec<String>> {
        let now = Moment(Duration::from_secs(second));
        loop {
            let news = watch.look(now);
            if news.is_some() || watch.answer.is_none() {
                return news;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn a_finding_is_reported_once_until_it_is_over() {
        let both = found(&["a", "b"]);
        let answers = vec![
            found(&[]),
            both.clone(),
            both.clone(),
            None,
            both.clone(),
            found(&["a", "c"]),
            found(&[]),
            both.clone(),
        ];
        let lookout = Arc::new(Answers(Mutex::new(answers)));
        let mut watch = SecondPrimary::new(Some(lookout), Duration::from_secs(50));
        // The first check is not at the start, and none comes before its time.
        assert_eq!(watch.look(Moment::default()), None);
        assert!(watch.answer.is_none());
        assert_eq!(look(&mut watch, 1), None);
        assert_eq!(look(&mut watch, 10), None);
        assert_eq!(look(&mut watch, 11), both);
        assert_eq!(look(&mut watch, 21), None);
        assert_eq!(look(&mut watch, 31), None);
        assert_eq!(look(&mut watch, 41), None);
        assert_eq!(look(&mut watch, 51), found(&["a", "c"]));
        assert_eq!(look(&mut watch, 61), None);
        assert_eq!(look(&mut watch, 71), both);
    }

    #[test]
    fn a_store_of_one_server_is_not_checked() {
        let mut watch = SecondPrimary::new(None, Duration::from_secs(50));
        assert_eq!(watch.look(Moment::default()), None);
        assert!(watch.next.is_none());
    }
}
