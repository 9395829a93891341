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
        loop {
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
            if asks_late || alone.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            asks_late = true;
        }
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::Notify;
    use tokio::time::sleep;

    use super::*;
    use crate::store::net::session::event_loop;
    use crate::store::redis::quorum::fixtures;

    fn report() -> Answer {
        Ok(fixtures::report())
    }

    fn failure() -> Answer {
        Err(Failed::by(StoreError::unavailable("it is away")))
    }

    fn punctual<'a>(answer: impl Future<Output = Answer> + 'a) -> Option<Asked<'a>> {
        let answer = Box::pin(answer);
        let was_late = false;
        Some(Asked { answer, was_late })
    }

    fn late<'a>(answer: impl Future<Output = Answer> + 'a) -> Option<Asked<'a>> {
        let asked = punctual(answer)?;
        let was_late = true;
        Some(Asked { was_late, ..asked })
    }

    /// What becomes of these members, if two answers are enough: an answer, or why there is none.
    fn gathered(asked: Vec<Option<Asked<'_>>>, asks_late: bool) -> Vec<Option<String>> {
        let deadline = Deadline::after(Duration::from_secs(20));
        let enough = |answers: &Answers| answers.sure() >= 2;
        let answers = gather(asked, deadline, asks_late, enough);
        let answers = event_loop().unwrap().block_on(answers);
        let words = |answer: Answer| match answer {
            Ok(_) => "answers".to_owned(),
            Err(failed) => format!("{}, asked: {}", failed.words, failed.was_asked),
        };
        let all = answers.0.into_iter();
        all.map(|answer| answer.map(words)).collect()
    }

    fn expected<const N: usize>(words: [&str; N]) -> Vec<Option<String>> {
        let of = |word: &str| match word {
            "late" => Some("it does not answer in time, asked: true".to_owned()),
            "away" => Some("it is away, asked: false".to_owned()),
            "" => None,
            word => Some(word.to_owned()),
        };
        words.map(of).to_vec()
    }

    #[test]
    fn one_that_was_late_is_not_asked_while_the_others_are_enough() {
        let asked = vec![
            punctual(ready(report())),
            late(pending()),
            punctual(pending()),
            punctual(ready(report())),
            None,
        ];
        let answers = expected(["answers", "", "late", "answers", ""]);
        assert_eq!(gathered(asked, false), answers);
    }

    #[test]
    fn one_that_was_late_is_asked_once_another_one_does_not_answer() {
        let asked = vec![
            punctual(ready(report())),
            punctual(pending()),
            late(pending()),
            late(ready(report())),
        ];
        let answers = expected(["answers", "late", "late", "answers"]);
        assert_eq!(gathered(asked, false), answers);
    }

    #[test]
    fn one_that_was_late_is_waited_for_once_it_is_asked() {
        let is_asked = Notify::new();
        let fails = async {
            is_asked.notified().await;
            failure()
        };
        let answers_later = async {
            is_asked.notify_one();
            sleep(Duration::from_millis(20)).await;
            report()
        };
        let asked = vec![
            punctual(ready(report())),
            punctual(fails),
            late(answers_later),
        ];
        let answers = expected(["answers", "away", "answers"]);
        assert_eq!(gathered(asked, false), answers);
    }

    #[test]
    fn those_that_were_late_are_asked_at_once_where_the_others_are_too_few() {
        let asked = vec![
            punctual(ready(failure())),
            late(ready(report())),
            late(ready(report())),
        ];
        let answers = expected(["away", "answers", "answers"]);
        assert_eq!(gathered(asked, true), answers);
    }

    /// Where the others fail at once, the caller decides what is next.
    #[test]
    fn one_that_was_late_is_not_asked_after_all_others_have_answered() {
        let asked = vec![
            punctual(ready(report())),
            punctual(ready(failure())),
            late(ready(report())),
        ];
        let answers = expected(["answers", "away", ""]);
        assert_eq!(gathered(asked, false), answers);
    }

    #[test]
    fn one_more_has_as_long_again_as_the_others_took() {
        let after = async |ms: u64| {
            sleep(Duration::from_millis(ms)).await;
            report()
        };
        let asked = vec![
            punctual(ready(report())),
            punctual(after(60)),
            punctual(after(90)),
        ];
        let answers = expected(["answers", "answers", "answers"]);
        assert_eq!(gathered(asked, false), answers);
    }

    /// Those that were late have been asked from the start.
    #[test]
    fn a_member_is_waited_for_beyond_the_time_alone() {
        let slow = async {
            sleep(ALONE + Duration::from_millis(20)).await;
            report()
        };
        let asked = vec![punctual(ready(report())), punctual(slow)];
        assert_eq!(gathered(asked, true), expected(["answers", "answers"]));
    }
}
