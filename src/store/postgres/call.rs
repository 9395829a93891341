//! A call of a server: every statement of the store goes through here, and carries its own limits.
//!
//! A client that has given up, or is dead, can't take its request back. Without a limit in the
//! server, a statement that waits for a lock would stay there as long as the lock does, and each
//! retry would add one more, until the server lets no client in. So a call is a transaction of
//! three requests, sent at once and answered together: a begin with limits that end with the
//! transaction, the statement, and the commit. It is one round trip, and leaves nothing in the
//! session, so that a pooler may give each call another server process.
//!
//! The server's limits end a bit before the client's own, so the client knows then that nothing has
//! happened, and keeps its connection. The commit itself has no limit there: it may wait for a
//! standby, and can't be taken back.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream as _;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row};

use super::cells::parameter;
use super::fault::{Fault, Said, of_answer};
use super::link::{Link, Session};
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::limit::{Allowance, LONGEST_ANSWER};
use crate::store::net::session::{self, Failed};
use crate::store::sql::cell::Cell;

/// How long the server waits for a lock at a time. A refused request is sent again while there is
/// time: so the requests of a killed client are soon gone, however long its calls may take.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

/// With less time than this a refused request is not sent again.
const LEAST: Duration = Duration::from_millis(100);

/// What a row, and each of its cells, takes besides its bytes.
const PER_ROW: usize = 160;
const PER_CELL: usize = 24;

/// The statements of a call.
pub(super) enum Question<'a> {
    /// One statement, with its values.
    Typed(&'a str, &'a [Cell]),
    /// Several statements without values.
    Batch(&'a str),
}

impl session::Ask<Question<'_>> for Link {
    /// Sends a question, and again while locks refuse it and there is time.
    async fn ask(
        &mut self,
        deadline: Deadline,
        question: &Question<'_>,
    ) -> Result<Vec<Row>, Fault> {
        self.notified.store(false, Ordering::Relaxed);
        loop {
            self.allowance.set(LONGEST_ANSWER);
            let answer = ask_once(self, deadline, question).await;
            match answer {
                Err(fault) if is_lock_refused(&fault) && deadline.left() > LEAST => {}
                answer => return answer,
            }
        }
    }
}

impl Session {
    /// Runs several statements in one transaction.
    pub(super) fn batch(&mut self, limit: Duration, statements: &str) -> Result<(), Failed> {
        self.ask(limit, &Question::Batch(statements)).map(drop)
    }

    /// Subscribes to a channel's notifications, unless this connection has.
    pub(super) fn listen(&mut self, limit: Duration, channel: &str) {
        if self.link().is_none_or(|link| link.listens) {
            return;
        }
        // If that is refused, regular looks are what is left.
        let asked = self.batch(limit, &format!("LISTEN \"{channel}\""));
        if let (Ok(()), Some(link)) = (asked, self.link_mut()) {
            link.listens = true;
        }
    }
}

/// True if the request has waited for a lock as long as it may.
fn is_lock_refused(fault: &Fault) -> bool {
    fault.said().and_then(Said::code) == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

async fn ask_once(
    link: &mut Link,
    deadline: Deadline,
    question: &Question<'_>,
) -> Result<Vec<Row>, Fault> {
    let opening = opening(deadline.left(), &link.search_path);
    let Link {
        client,
        wire,
        allowance,
        ..
    } = link;
    let mut asking = pin!(transaction(client, &opening, question, allowance));
    let both = poll_fn(|cx| {
        if let Poll::Ready(answer) = asking.as_mut().poll(cx) {
            return Poll::Ready(answer);
        }
        match wire.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // The connection is closed: the request fails with that.
            Poll::Ready(Ok(())) => asking.as_mut().poll(cx),
        }
    });
    let rows = deadline.bound(Activity::Asking, both).await?;
    rows.map_err(of_answer)
}

/// Begins a transaction that ends, or is refused, within this time, and that looks for tables in
/// the store's schema alone. If the rest of the call is lost on its way, the server ends the
/// transaction too: no other session waits for its locks.
fn opening(left: Duration, search_path: &str) -> String {
    // Zero would mean no limit.
    let ms = |limit: Duration| limit.as_millis().max(1);
    let whole = ms(left / 10 * 9);
    let lock = ms(LOCK_LIMIT.min(left / 10 * 8));
    format!(
        "BEGIN; SET LOCAL statement_timeout = {whole}; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL idle_in_transaction_session_timeout = {whole}; \
         SET LOCAL search_path = {search_path}"
    )
}

/// Sends all requests before it waits for any answer. Only the last answer says that the statement
/// has happened.
async fn transaction(
    client: &Client,
    opening: &str,
    question: &Question<'_>,
    allowance: &Allowance,
) -> Result<Vec<Row>, Error> {
    let mut opening = pin!(client.batch_execute(opening));
    let mut asking = pin!(asking(client, question, allowance));
    let mut closing = pin!(client.batch_execute("COMMIT"));
    let opened = send(opening.as_mut()).await;
    let asked = send(asking.as_mut()).await;
    let closed = send(closing.as_mut()).await;
    answer(opened, opening).await?;
    let rows = answer(asked, asking).await?;
    answer(closed, closing).await?;
    Ok(rows)
}

async fn asking(
    client: &Client,
    question: &Question<'_>,
    allowance: &Allowance,
) -> Result<Vec<Row>, Error> {
    match question {
        Question::Typed(statement, values) => {
            let values = values.iter().map(parameter);
            let mut coming = pin!(client.query_typed_raw(statement, values).await?);
            let mut rows = Vec::new();
            while let Some(row) = poll_fn(|cx| coming.as_mut().poll_next(cx)).await {
                let row = row?;
                // Where that is more than is left, the socket fails in place of the next rows.
                let _ = allowance.spend(PER_ROW + row.len().saturating_mul(PER_CELL));
                rows.push(row);
            }
            Ok(rows)
        }
        Question::Batch(statements) => client.batch_execute(statements).await.map(|()| Vec::new()),
    }
}

/// A request is sent when it is first polled.
async fn send<F: Future>(mut request: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx))).await
}

async fn answer<F: Future>(sent: Poll<F::Output>, request: Pin<&mut F>) -> F::Output {
    match sent {
        Poll::Ready(answer) => answer,
        Poll::Pending => request.await,
    }
}

#[cfg(test)]
mod tests {
    use super::super::played::{Called, done, message, refused};
    use super::super::test_server::Server;
    use super::*;
    use crate::store::Trouble;
    use crate::store::net::limit::LONGEST_LOGIN;

    const LIMIT: Duration = Duration::from_secs(20);

    /// How a question ends at a server that gives these answers, and how many calls the server has got.
    fn asked(answers: Vec<Vec<u8>>, limit: Duration) -> (Result<(), Failed>, usize) {
        let mut called = Called::with(answers);
        called.session.connect(LIMIT).unwrap();
        let answer = called.session.batch(limit, "SELECT 1");
        (answer, called.calls())
    }

    #[test]
    fn what_a_lock_has_refused_is_asked_again_while_there_is_time() {
        let locked = [done(), refused("ERROR 55P03 f"), done()].concat();
        let happens = [done(), done(), done()].concat();
        let (answer, calls) = asked(vec![locked.clone(), happens], LIMIT);
        answer.unwrap();
        assert_eq!(calls, 2);
        let (answer, calls) = asked(vec![locked], LEAST);
        answer.unwrap_err();
        assert!(calls <= 1, "{calls} calls");
    }

    /// Without its beginning the statement would have no limit, and without its end it has not happened.
    #[test]
    fn a_call_fails_with_each_of_its_requests() {
        for fails in 0..3 {
            let mut answers = [done(), done(), done()];
            answers[fails] = refused("ERROR 55000 f");
            let (answer, calls) = asked(vec![answers.concat()], LIMIT);
            assert_eq!(answer.unwrap_err().error.trouble, Trouble::Refused);
            assert_eq!(calls, 1);
        }
    }

    #[test]
    fn an_answer_may_be_longer_than_a_login_each_time() {
        let rows = 2 * LONGEST_LOGIN / PER_ROW;
        let row = message(b'D', &[0, 0]);
        let answer = [
            message(b'1', b""),
            message(b'2', b""),
            message(b'T', &[0, 0]),
            row.repeat(rows),
            done(),
        ];
        let answers = [done(), answer.concat(), done()].concat();
        let mut called = Called::with(vec![answers]);
        let question = Question::Typed("SELECT", &[]);
        for _ in 0..2 {
            let found = called.session.ask(LIMIT, &question).unwrap();
            assert_eq!(found.len(), rows);
        }
    }

    /// A waiter would look again and again.
    #[test]
    fn a_notification_counts_for_the_call_in_which_it_comes() {
        let notification = message(b'A', b"\0\0\0\x01channel\0\0");
        let quiet = [done(), done(), done()].concat();
        let notified = [notification, quiet.clone()].concat();
        let mut called = Called::with(vec![quiet.clone(), notified, quiet]);
        for expected in [false, true, false] {
            called.session.batch(LIMIT, "SELECT 1").unwrap();
            assert_eq!(called.session.notified(), expected);
        }
    }

    /// A client that disappears after it has sent a part of a call.
    #[test]
    fn a_call_whose_end_never_arrives_is_ended_by_the_server() {
        let database = Server::shared().database();
        database.sql("CREATE TABLE one (number int); INSERT INTO one VALUES (1)");
        let mut client = postgres::Client::connect(&database.tcp_url(), postgres::NoTls).unwrap();
        let begun = std::time::Instant::now();
        let limit = Duration::from_millis(200);
        client.batch_execute(&opening(limit, "public")).unwrap();
        client.batch_execute("UPDATE one SET number = 2").unwrap();
        // This statement waits for that transaction.
        database.sql("SET lock_timeout = '30s'; UPDATE one SET number = number + 2");
        assert!(begun.elapsed() >= limit / 2);
        assert_eq!(database.sql("SELECT number FROM one"), "3");
        assert!(client.batch_execute("COMMIT").is_err());
    }

    #[test]
    fn a_server_gives_up_before_its_client_and_a_lock_before_that() {
        assert_eq!(
            opening(Duration::from_secs(10), "\"t\", pg_temp"),
            "BEGIN; SET LOCAL statement_timeout = 9000; SET LOCAL lock_timeout = 1000; \
             SET LOCAL idle_in_transaction_session_timeout = 9000; \
             SET LOCAL search_path = \"t\", pg_temp"
        );
        let short = opening(Duration::from_millis(500), "t");
        assert!(short.contains("statement_timeout = 450;"), "{short}");
        assert!(short.contains("lock_timeout = 400;"), "{short}");
        // A limit of zero would wait for ever.
        assert!(!opening(Duration::ZERO, "t").contains("= 0"));
    }
}
