//! The connections of `tokenrun serve`: a limit on their number, on the size of a request and on every step's
//! time.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::time::{sleep, timeout};

use super::answers::{Answer, ROUTES, Route, route};
use crate::report::serve::NO_ANSWER;
use crate::sys::poll::Sources;
use crate::sys::signals::{Inherited, SignalFd, asks_for_end};

/// Connections at a time. Further ones wait in the kernel's queue.
const CONNECTIONS: usize = 64;

/// The longest head of a request, in bytes: hyper's least.
const HEAD: usize = 8 * 1024;

/// The longest time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// The longest time of a connection: its head, a look at the store, and the response.
const WHOLE_TIME: Duration = Duration::from_secs(60);

/// How long a look at the store is waited for. Its own calls end earlier.
const LOOK_TIME: Duration = Duration::from_secs(15);

/// How long open connections may go on after a stop signal.
const LAST_TIME: Duration = Duration::from_secs(2);

/// The pause after a connection that could not be taken: out of file descriptors, say.
const PAUSE: Duration = Duration::from_millis(100);

/// What looks at a store, on a thread that may block.
pub(super) type Look = dyn Fn(Route) -> Answer + Send + Sync;

/// Serves until a stop signal arrives. `looks`: how many threads look at the store at a time.
///
/// # Errors
/// The operating system gives no thread, descriptor or event queue.
pub(super) fn serve(
    listener: TcpListener,
    looks: usize,
    look: Arc<Look>,
    inherited: &Inherited,
    ready: impl FnOnce(),
) -> Result<()> {
    inherited.block().context("cannot block signals")?;
    let signals = SignalFd::new(inherited).context("cannot read signals")?;
    let stop = Arc::new(Notify::new());
    watch_signals(signals, Arc::clone(&stop))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(looks)
        .build()
        .context("cannot start the server")?;
    listener.set_nonblocking(true).context("cannot listen")?;
    // The sessions with the store close after the runtime's end: they have one of their own.
    let lines = Arc::new(Lines::new(look));
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).context("cannot listen")?;
        ready();
        let free = Arc::new(Semaphore::new(CONNECTIONS));
        either(stop.notified(), accept(&listener, &free, &lines)).await;
        drop(listener);
        let all = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
        // Those that take longer are cut.
        let _ = timeout(LAST_TIME, free.acquire_many(all)).await;
        anyhow::Ok(())
    });
    // A look that hangs in a store must not hold up the end.
    runtime.shutdown_background();
    served
}

/// Ends with the first of both.
async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Pending => other.as_mut().poll(cx),
        ready => ready,
    })
    .await;
}

/// Tells `stop` of a stop signal, from a thread that waits for one.
fn watch_signals(signals: SignalFd, stop: Arc<Notify>) -> Result<()> {
    let watch = move || {
        loop {
            while let Some(received) = signals.read() {
                if asks_for_end(received.signal) {
                    stop.notify_one();
                }
            }
            let source = Sources::new().and((), signals.as_fd());
            if source.wait(None).is_err() {
                // Without signals nothing would end this process but a kill.
                return stop.notify_one();
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let started = thread.spawn(watch).context("cannot start a thread")?;
    drop(started);
    Ok(())
}

async fn accept(listener: &tokio::net::TcpListener, free: &Arc<Semaphore>, lines: &Arc<Lines>) {
    loop {
        let Ok(permit) = Arc::clone(free).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let lines = Arc::clone(lines);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &lines));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD)
                // One request each: no client keeps a connection that others wait for.
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // What goes wrong with a connection is its client's concern.
            let _ = timeout(WHOLE_TIME, connection).await;
            drop(permit);
        });
    }
}

/// The requests of each route. One look answers all requests that wait for it, and none that came after it began.
struct Lines {
    look: Arc<Look>,
    /// How many requests have come.
    arrivals: AtomicU64,
    /// For each route, how many had come before its last look, and the answer of that.
    last: [Mutex<(u64, Answer)>; ROUTES.len()],
}

impl Lines {
    fn new(look: Arc<Look>) -> Self {
        Self {
            look,
            arrivals: AtomicU64::new(0),
            last: std::array::from_fn(|_| Mutex::new((0, Answer::line(503, NO_ANSWER)))),
        }
    }

    /// The answer of a look that begins after this call.
    async fn answer(&self, route: Route) -> Answer {
        let own = self.arrivals.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = self.last[route as usize].lock().await;
        if last.0 < own {
            let before = self.arrivals.load(Ordering::Relaxed);
            let look = Arc::clone(&self.look);
            let looked = tokio::task::spawn_blocking(move || look(route)).await;
            let answer = looked.unwrap_or_else(|_| Answer::line(503, NO_ANSWER));
            *last = (before, answer);
        }
        last.1.clone()
    }
}

async fn answer(
    request: Request<Incoming>,
    lines: &Lines,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let answer = match route(request.method().as_str(), request.uri().path()) {
        Err(answer) => answer,
        Ok(Route::Alive) => Answer::line(200, "ok"),
        Ok(route) => {
            let answered = timeout(LOOK_TIME, lines.answer(route)).await;
            answered.unwrap_or_else(|_| Answer::line(503, NO_ANSWER))
        }
    };
    Ok(response(answer))
}

/// hyper leaves the body out of the response to HEAD.
fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers() {
        response = response.header(name, value);
    }
    // Each status and header is a constant, and valid.
    let body = Full::new(answer.body);
    response.body(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn requests_that_wait_share_a_look_that_begins_after_they_came() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (all_came, until_all_came) = mpsc::channel::<()>();
        let until_all_came = std::sync::Mutex::new(until_all_came);
        let looks = AtomicU64::new(0);
        let look: Arc<Look> = Arc::new(move |_| {
            let number = looks.fetch_add(1, Ordering::SeqCst) + 1;
            if number == 1 {
                until_all_came.lock().unwrap().recv().unwrap();
            }
            Answer::line(200, &number.to_string())
        });
        let lines = Arc::new(Lines::new(look));
        let answers = runtime.block_on(async {
            let ask = |route| {
                let lines = Arc::clone(&lines);
                tokio::spawn(async move { lines.answer(route).await.body })
            };
            let first = ask(Route::Page);
            // Its look has begun when this task is polled again.
            tokio::task::yield_now().await;
            let others = [(); 9].map(|()| ask(Route::Page));
            tokio::task::yield_now().await;
            all_came.send(()).unwrap();
            let mut answers = vec![first.await.unwrap()];
            for other in others {
                answers.push(other.await.unwrap());
            }
            answers.push(ask(Route::Page).await.unwrap());
            answers.push(ask(Route::Metrics).await.unwrap());
            answers
        });
        assert_eq!(answers[0], "1\n");
        assert!(answers[1..10].iter().all(|it| it == "2\n"), "{answers:?}");
        assert_eq!(answers[10..], ["3\n", "4\n"]);
    }
}
