//! The answers of all members at once, until enough have answered. One that is late then is not waited for. One that was
//! late before is asked only if the others are not enough soon: one of them may be away since.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::answers::{Answer, Answers};
use crate::store::StoreError;
use crate::store::net::deadline::Deadline;
use crate::store::net::session::Failed;

/// How much longer than enough members the others may take, beside as long again.
const GRACE: Duration = Duration::from_millis(5);

/// How long the others may take until those are asked that were late, and the part of the time that is left which this is at
/// most.
const ALONE: Duration = Duration::from_millis(100);
const PART_ALONE: u32 = 4;

/// A member that is asked.
pub(super) struct Asked<'a> {
    /// Asks when it is polled first.
    pub(super) answer: Pin<Box<dyn Future<Output = Answer> + 'a>>,
    pub(super) was_late: bool,
}

/// The answers of these members; `asks_late`: also of those that were late, from the start.
pub(super) async fn gather(
    mut asked: Vec<Option<Asked<'_>>>,
    deadline: Deadline,
    mut asks_late: bool,
    enough: impl Fn(&Answers) -> bool,
) -> Answers {
    let began = Instant::now();
    let mut answers = Answers(asked.iter().map(|_| None).collect());
    let alone = ALONE.min(deadline.left() / PART_ALONE);
    let mut alone = Box::pin(sleep_until(began + alone));
    let mut grace = None;
    poll_fn(|context| {
        if !asks_late && !enough(&answers) {
            asks_late = alone.as_mut().poll(context).is_ready();
        }
        for (asked, answer) in asked.iter_mut().zip(&mut answers.0) {
            if let Some(it) = asked.as_mut().filter(|it| asks_late || !it.was_late)
                && let Poll::Ready(ready) = it.answer.as_mut().poll(context)
            {
                *answer = Some(ready);
                *asked = None;
            }
        }
        if asked.iter().flatten().all(|it| it.was_late && !asks_late) {
            return Poll::Ready(());
        }
        if enough(&answers) {
            let over = || {
                let now = Instant::now();
                Box::pin(sleep_until(now + (now - began) + GRACE))
            };
            return grace.get_or_insert_with(over).as_mut().poll(context);
        }
        Poll::Pending
    })
    .await;
    // The connections of the others are closed: what they may still answer is not read.
    for (asked, answer) in asked.into_iter().zip(&mut answers.0) {
        if asked.is_some_and(|it| asks_late || !it.was_late) {
            let late = StoreError::unavailable("it does not answer in time");
            *answer = Some(Err(Failed {
                was_asked: true,
                ..Failed::by(late)
            }));
        }
    }
    answers
}
