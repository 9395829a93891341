//! What is on its way between a client and the store.

use std::time::Duration;

use super::world::{SECOND, World, name_of};
use crate::moment::Moment;
use crate::run::event::Event;
use crate::run::model::{carried_out, row_with_locks, unanswered, with_evidence};
use crate::store::Request;
use crate::token::{Evidence, Row, SessionId, Swap};

/// How long a swap may be adrift: longer than it may take to happen.
pub(super) const ADRIFT: Duration = Duration::from_secs(3);

/// A request that is out.
#[derive(Debug, Clone)]
pub(super) struct Out {
    pub(super) request: Request,
    pub(super) at: Moment,
    /// `None`: the request is on its way to the store; else this is on its way back.
    pub(super) answer: Option<Event>,
}

impl Out {
    /// A request that is sent now.
    pub(super) const fn sent(request: Request, now: Moment) -> Self {
        Self {
            request,
            at: now,
            answer: None,
        }
    }
}

/// Where a swap comes from.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    pub(super) client: usize,
    pub(super) session: SessionId,
    pub(super) died_at: Option<Moment>,
}

impl Sender {
    const fn alive(client: usize, session: SessionId) -> Self {
        Self {
            client,
            session,
            died_at: None,
        }
    }
}

/// A swap whose sender has stopped waiting, but that may still arrive.
#[derive(Debug, Clone)]
pub(super) struct Adrift {
    pub(super) swap: Swap,
    pub(super) sender: Sender,
    pub(super) sent_at: Moment,
}

impl World {
    /// True if time may pass: not while a request has been out for its whole time-out, nor while
    /// the network is fast.
    pub(super) fn may_pass(&self) -> bool {
        let overdue = |n: usize| {
            let client = &self.clients[n];
            let out = client.process.as_ref().and_then(|p| p.out.as_ref());
            let may_linger = |out| n == 0 && self.left.slow > 0 && !self.is_late(out);
            !client.frozen && out.is_some_and(|out| !may_linger(out))
        };
        !(0..2).any(overdue)
    }

    /// True if the request's sender may stop waiting for it.
    pub(super) fn is_late(&self, out: &Out) -> bool {
        self.moment() >= out.at.plus(SECOND)
    }

    pub(super) fn set_adrift(&mut self, client: usize, session: SessionId, out: Option<Out>) {
        if let Some(Out {
            request: Request::Swap(swap),
            at: sent_at,
            answer: None,
        }) = out
        {
            let (swap, sender) = (*swap, Sender::alive(client, session));
            self.clients[client].adrift = vec![Adrift {
                swap,
                sender,
                sent_at,
            }];
        }
    }

    /// The request's sender stops waiting, but the request may still arrive.
    pub(super) fn time_out(&mut self, client: usize) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let session = process.run.session().clone();
        let Some(out) = process.out.take() else {
            return;
        };
        let event = unanswered(&out.request);
        self.set_adrift(client, session, Some(out));
        self.tell(client, event);
    }

    /// The request reaches the store.
    pub(super) fn arrive(&mut self, client: usize) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        let session = process.run.session().clone();
        let Some(mut out) = process.out.take() else {
            return;
        };
        let answer = match &out.request {
            Request::Swap(swap) => {
                let sender = Sender::alive(client, session);
                Event::Swapped(Ok(self.swap(&sender, swap)))
            }
            Request::Note(swap) => Event::Swapped(Ok(self.note(swap))),
            other => {
                let (server, now) = (self.server(), self.store_time());
                carried_out(other, &mut self.store, &server, &now)
            }
        };
        self.forget_history();
        out.answer = Some(answer);
        if let Some(process) = &mut self.clients[client].process {
            process.out = Some(out);
        }
    }

    /// The answer reaches the supervisor, which then checks the locks.
    pub(super) fn deliver(&mut self, client: usize) {
        let Some(process) = &mut self.clients[client].process else {
            return;
        };
        if let Some(answer) = process.out.take().and_then(|out| out.answer) {
            let answer = with_evidence(answer, |row| self.evidence(client, row));
            self.tell(client, answer);
        }
    }

    pub(super) fn arrive_adrift(&mut self, client: usize) {
        if let Some(adrift) = self.clients[client].adrift.pop() {
            self.swap(&adrift.sender, &adrift.swap);
            self.forget_history();
        }
    }

    /// Drops swaps from a version that no longer exists: they conflict whenever they arrive.
    pub(super) fn forget_what_cannot_happen(&mut self) {
        let version = self.row().map(|row| row.version);
        for client in &mut self.clients {
            client.adrift.retain(|adrift| adrift.swap.from == version);
        }
    }

    fn evidence(&self, client: usize, row: Option<&Row>) -> Evidence {
        let Some(row) = row_with_locks(row) else {
            return Evidence::None;
        };
        if row.client_bound() != Some(&name_of(client)) {
            return Evidence::None;
        }
        let here = &self.clients[client];
        let run = here.process.as_ref();
        let run = run.filter(|p| Some(p.run.session()) == row.session());
        let orphan = here.orphan.as_ref();
        let orphan = orphan.is_some_and(|orphan| Some(&orphan.session) == row.session());
        let job = orphan || run.is_some_and(|process| process.run.job_alive());
        Evidence::of_locks(run.is_some(), job, vec![])
    }
}
