//! One connection and its session: requests go out together, and replies come in their order.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use tokio::io::{AsyncBufRead as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::fault::{Fault, Said};
use super::wire::{self, In, LOGIN, PING, Request, WATCH, code};
use crate::store::net::deadline::Activity;
use crate::store::net::dial::Stream;
use crate::store::net::limit::{LONGEST_ANSWER, LONGEST_LOGIN};

/// A connection.
pub(super) struct Channel {
    stream: BufReader<Box<dyn Stream>>,
    /// What goes out before the first request.
    unsent: Vec<u8>,
    /// True if new nodes belong to the log-in.
    owned: bool,
    number: i32,
    /// How long the session lives without a word, in milliseconds, once that is known.
    pub(super) lives_ms: Option<i32>,
    /// When the server was heard last.
    pub(super) heard_at: Instant,
}

/// The reply to a request.
pub(super) struct Reply {
    /// 0: it was carried out.
    pub(super) error: i32,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// What the reply holds. `None`: there is no such node.
    pub(super) fn found<'a, T>(
        &'a self,
        request: &Request,
        read: impl FnOnce(&mut In<'a>) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        match self.error {
            0 => read(&mut In(&self.body)).map(Some).ok_or_else(|| {
                let what = "a reply ends before its time";
                Fault::Said(Said::Nonsense(what))
            }),
            code::NO_NODE => Ok(None),
            code => Err(failed(code, request)),
        }
    }
}

/// The fault of a request that was refused.
pub(super) fn failed(code: i32, request: &Request) -> Fault {
    Fault::Said(Said::Failed {
        code,
        path: request.path().to_owned(),
    })
}

impl Channel {
    /// A connection whose session is asked for with its first requests. `secret`: the user with its password.
    pub(super) fn new(stream: Box<dyn Stream>, timeout_ms: i32, secret: Option<String>) -> Self {
        let mut unsent = wire::greeting(timeout_ms);
        let owned = secret.is_some();
        if let Some(secret) = secret {
            unsent.extend(Request::LogIn { secret }.frame(LOGIN, false));
        }
        Self {
            stream: BufReader::new(stream),
            unsent,
            owned,
            number: 0,
            lives_ms: None,
            heard_at: Instant::now(),
        }
    }

    /// Sends requests in one flight, and waits for their replies.
    pub(super) async fn flight(&mut self, requests: &[Request]) -> Result<Vec<Reply>, Fault> {
        let mut numbers = Vec::with_capacity(requests.len());
        for request in requests {
            let number = match request {
                Request::Ping => PING,
                _ => {
                    self.number = self.number.wrapping_add(1).max(1);
                    self.number
                }
            };
            numbers.push(number);
            self.unsent.extend(request.frame(number, self.owned));
        }
        self.send().await?;
        let (mut replies, mut most) = (Vec::with_capacity(requests.len()), LONGEST_ANSWER);
        for number in numbers {
            let reply = self.reply(number, most).await?;
            most = most.saturating_sub(reply.body.len());
            replies.push(reply);
        }
        Ok(replies)
    }

    async fn send(&mut self) -> Result<(), Fault> {
        let bytes = std::mem::take(&mut self.unsent);
        let sent = self.stream.write_all(&bytes).await;
        sent.map_err(Fault::io(Activity::Asking))?;
        let flushed = self.stream.flush().await;
        flushed.map_err(Fault::io(Activity::Asking))
    }

    /// Waits for the session.
    pub(super) async fn greet(&mut self) -> Result<(), Fault> {
        self.send().await?;
        self.welcome().await
    }

    async fn welcome(&mut self) -> Result<(), Fault> {
        if self.lives_ms.is_some() {
            return Ok(());
        }
        let frame = self.frame(LONGEST_LOGIN).await?;
        match In(&frame).session().filter(|ms| *ms > 0) {
            Some(ms) => self.lives_ms = Some(ms),
            None => return Err(Fault::Said(Said::NoSession)),
        }
        Ok(())
    }

    /// The reply with this number. What the server says without being asked is passed over.
    async fn reply(&mut self, number: i32, most: usize) -> Result<Reply, Fault> {
        self.welcome().await?;
        loop {
            let frame = self.frame(most).await?;
            let mut rest = In(&frame);
            let nonsense = |what| Fault::Said(Said::Nonsense(what));
            let header = rest.header().ok_or_else(|| nonsense("a short reply"))?;
            match header.number {
                LOGIN if header.error != 0 => {
                    return Err(Fault::Said(Said::Failed {
                        code: code::LOGIN_FAILED,
                        path: String::new(),
                    }));
                }
                it if it == number => {
                    return Ok(Reply {
                        error: header.error,
                        body: rest.0.to_vec(),
                    });
                }
                LOGIN | PING | WATCH => {}
                _ => return Err(nonsense("a reply to no request")),
            }
        }
    }

    async fn frame(&mut self, most: usize) -> Result<Vec<u8>, Fault> {
        let broken = Fault::io(Activity::Asking);
        let length = self.stream.read_u32().await.map_err(broken)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > most {
            return Err(Fault::nonsense("its answer is too long"));
        }
        let mut frame = Vec::new();
        // It grows with what comes, not with what is announced.
        let mut limited = (&mut self.stream).take(length as u64);
        limited.read_to_end(&mut frame).await.map_err(broken)?;
        if frame.len() < length {
            return Err(broken(io::ErrorKind::UnexpectedEof.into()));
        }
        self.heard_at = Instant::now();
        Ok(frame)
    }

    /// How much has come: none, if the connection is over.
    async fn waiting(&mut self) -> Option<usize> {
        for _ in 0..2 {
            let polled = poll_fn(|cx| {
                Poll::Ready(match Pin::new(&mut self.stream).poll_fill_buf(cx) {
                    Poll::Pending => Some(0),
                    Poll::Ready(Ok(bytes)) => Some(bytes.len()).filter(|count| *count > 0),
                    Poll::Ready(Err(_)) => None,
                })
            });
            match polled.await {
                Some(0) => {}
                other => return other,
            }
            // In between, the event loop looks at the socket.
            tokio::task::yield_now().await;
        }
        Some(0)
    }

    /// True if it is open, and nothing has come.
    pub(super) async fn is_silent(&mut self) -> bool {
        self.waiting().await == Some(0)
    }

    /// Reads and drops what has come. `false`: the connection is over.
    pub(super) async fn drain(&mut self) -> bool {
        loop {
            match self.waiting().await {
                None => return false,
                Some(0) => return true,
                Some(_) => {
                    if self.frame(LONGEST_LOGIN).await.is_err() {
                        return false;
                    }
                }
            }
        }
    }

    /// What the server says of itself, on a connection without a session; it ends then.
    pub(super) async fn words(mut self) -> Result<String, Fault> {
        self.unsent = b"srvr".to_vec();
        self.send().await?;
        let mut words = Vec::new();
        let mut limited = self.stream.take(LONGEST_LOGIN as u64);
        let read = limited.read_to_end(&mut words).await;
        read.map_err(Fault::io(Activity::Asking))?;
        Ok(String::from_utf8_lossy(&words).into_owned())
    }

    /// Ends the session without waiting for the answer.
    pub(super) async fn close(&mut self) {
        self.unsent.extend(Request::Close.frame(1, false));
        let _ = self.send().await;
    }
}
