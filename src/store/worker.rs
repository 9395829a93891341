//! A store on a thread of its own: a process with a deadline never waits for a database. One
//! request is out at a time. Without a deadline, a store that can answer without waiting does so on
//! the caller's thread, so that a short run needs no second thread.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Answer, Notifier, Request, Store, StoreError};
use crate::sys::events::EventFlag;

/// After how long without a request a store is idle. A short run ends earlier, with the connection that
/// it began with.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// A store, and the thread that it moves to when a request might have to wait. Dropping it does not
/// wait for the store.
pub struct Worker {
    /// `Some` until it moves.
    store: Option<Box<dyn Store>>,
    thread: Option<Thread>,
    /// An answer that came at once.
    early: Option<Answer>,
    /// The store's notifier.
    notifier: Arc<Mutex<Option<Notifier>>>,
}

impl Worker {
    /// A store that has no thread yet.
    #[must_use]
    pub fn new(store: Box<dyn Store>) -> Self {
        Self {
            store: Some(store),
            thread: None,
            early: None,
            notifier: Arc::default(),
        }
    }

    /// Sends a request. `may_block`: there is no deadline, so the request may be carried out here
    /// if that takes no waiting.
    ///
    /// If the system cannot create a thread (a job may use up its user's limit), the answer reports
    /// that, and the next request tries again.
    pub fn send(&mut self, request: Request, may_block: bool) {
        if let (Some(store), true) = (&mut self.store, may_block) {
            self.early = store.at_once(&request);
            if self.early.is_some() {
                update_notifier(&self.notifier, &request, store.as_mut());
                return;
            }
        }
        let notifier = Arc::clone(&self.notifier);
        match self.thread(notifier) {
            Ok(thread) => thread.send(request),
            Err(error) => {
                let text = format!("cannot create a thread: {error}");
                self.early = Some(request.failed(StoreError::refused(text)));
            }
        }
    }

    /// The thread, with the store on it.
    fn thread(&mut self, notifier: Arc<Mutex<Option<Notifier>>>) -> std::io::Result<&mut Thread> {
        match &mut self.thread {
            Some(thread) => Ok(thread),
            none => {
                let (thread, door) = Thread::start(notifier)?;
                if let Some(store) = self.store.take() {
                    // A thread that has ended at once does not answer either, which is reported.
                    let _ = door.send(store);
                }
                Ok(none.insert(thread))
            }
        }
    }

    /// The answer, if it has come.
    pub fn answer(&mut self) -> Option<Answer> {
        let early = self.early.take();
        early.or_else(|| self.thread.as_mut()?.answer())
    }

    /// Whether an answer came at once: then the descriptor does not announce it.
    #[must_use]
    pub const fn has_early_answer(&self) -> bool {
        self.early.is_some()
    }

    /// Readable when the token that is waited for may have become free, if the store can notify.
    #[must_use]
    pub fn notifier(&self) -> Option<Notifier> {
        self.notifier.lock().ok()?.clone()
    }

    /// Readable when an answer has come; `None` while there is no thread.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|thread| thread.ready.as_fd())
    }
}

/// Fetches the notifier after a call for the queue, and after a look: either may find that the
/// notifier's connection is over, which would notify for ever.
fn update_notifier(notifier: &Mutex<Option<Notifier>>, request: &Request, store: &mut dyn Store) {
    if matches!(request, Request::Join(..) | Request::Read(..)) {
        *notifier.lock().unwrap_or_else(PoisonError::into_inner) = store.notifier();
    }
}

struct Thread {
    requests: Sender<Request>,
    answers: Receiver<Answer>,
    ready: Arc<EventFlag>,
    /// The request that is out.
    out: Option<Request>,
}

impl Thread {
    /// Starts a thread, and returns the channel for its store.
    fn start(
        queue: Arc<Mutex<Option<Notifier>>>,
    ) -> std::io::Result<(Self, Sender<Box<dyn Store>>)> {
        let (door, entrance) = channel::<Box<dyn Store>>();
        let (requests, inbox) = channel::<Request>();
        let (outbox, answers) = channel();
        let ready = Arc::new(EventFlag::new()?);
        let notifier = Arc::clone(&ready);
        thread::Builder::new()
            .name("store".into())
            .stack_size(512 * 1024)
            .spawn(move || {
                let Ok(mut store) = entrance.recv() else {
                    return;
                };
                while let Some(request) = next(&inbox, store.as_mut()) {
                    let answer = request.carry_out(store.as_mut());
                    update_notifier(&queue, &request, store.as_mut());
                    // The caller may be gone by now.
                    if outbox.send(answer).is_err() || notifier.notify().is_err() {
                        break;
                    }
                }
            })?;
        let this = Self {
            requests,
            answers,
            ready,
            out: None,
        };
        Ok((this, door))
    }

    fn send(&mut self, request: Request) {
        self.out = Some(request.clone());
        if self.requests.send(request).is_err() {
            // The thread is gone; the answer reports that. Writing can't fail in a way that
            // matters: the counter is far from full.
            let _ = self.ready.notify();
        }
    }

    fn answer(&mut self) -> Option<Answer> {
        // The value does not matter; the counter is reset for the next poll.
        self.ready.clear();
        match self.answers.try_recv() {
            Ok(answer) => {
                self.out = None;
                Some(answer)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let error = StoreError::unavailable("the store's thread is gone, which is a bug");
                self.out.take().map(|request| request.failed(error))
            }
        }
    }
}

/// The next request; `None` if no more can come. The store learns once that it is idle.
fn next(inbox: &Receiver<Request>, store: &mut dyn Store) -> Option<Request> {
    match inbox.recv_timeout(IDLE_AFTER) {
        Err(RecvTimeoutError::Timeout) => {
            store.idle();
            inbox.recv().ok()
        }
        request => request.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::ModelStore;
    use crate::sys::poll::Sources;

    #[test]
    fn an_answer_is_announced_on_the_descriptor() {
        let mut worker = Worker::new(Box::new(ModelStore::new()));
        assert!(worker.answer().is_none());
        let request = Request::Read(crate::token::GroupName::new("g").unwrap(), None);
        worker.send(request, true);
        let sources = Sources::new().and((), worker.fd().unwrap());
        assert!(sources.wait(None).unwrap().has(&()));
        assert!(matches!(worker.answer(), Some(Answer::Read(Ok(_)))));
        assert!(worker.answer().is_none());
    }
}
