//! A store's connection, to any of its servers. A call that overruns its time is dropped and its
//! socket closed; the next one connects again.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::Value;
use tokio::runtime::{Builder, Runtime};

use super::dial::{self, Link, dial};
use super::fault::Fault;
use super::login::Login;
use super::script::{Answer, Answered, answered};
use super::settings::{Host, Settings};
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::{StoreError, Trouble};

/// A command of the store's.
pub(super) struct Command {
    pub(super) bytes: Vec<u8>,
    /// Whether it changes nothing: then it is sent together with the login, which may fail.
    pub(super) only_reads: bool,
}

/// A connection, with everything needed to make one.
pub(super) struct Connection {
    pub(super) settings: Settings,
    store_name: String,
    /// The connection's name on the server.
    application: String,
    /// Made by the first call, on the thread that makes the calls.
    runtime: Option<Runtime>,
    link: Option<Link>,
    /// The host that the connection is to, or that is tried first.
    host: Arc<AtomicUsize>,
}

impl Connection {
    pub(super) fn new(settings: Settings, application: &str) -> Self {
        // The server takes neither blanks nor other than ASCII.
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
        Self {
            store_name: settings.name(),
            application: application.chars().map(plain).collect(),
            settings,
            runtime: None,
            link: None,
            host: Arc::default(),
        }
    }

    /// The servers, and the index of the one in use.
    pub(super) fn servers(&self) -> (&Settings, Arc<AtomicUsize>) {
        (&self.settings, Arc::clone(&self.host))
    }

    fn host(&self) -> usize {
        self.host.load(Ordering::Relaxed)
    }

    fn set_host(&self, index: usize) {
        self.host.store(index, Ordering::Relaxed);
    }

    pub(super) fn store_name(&self) -> &str {
        &self.store_name
    }

    /// Runs one of the store's scripts, whose answer must come within `limit`.
    pub(super) fn script(
        &mut self,
        limit: Duration,
        command: &Command,
    ) -> Result<Answer, StoreError> {
        let runtime = self.take_runtime().map_err(StoreError::refused)?;
        let answer = runtime.block_on(self.try_hosts(Deadline::after(limit), command));
        self.runtime = Some(runtime);
        let mut answer = answer?;
        let refuses = answer.evicts.take().map(Fault::Evicts);
        answer.found.refuses = refuses.map(|fault| self.error(self.host(), &fault));
        Ok(answer)
    }

    /// Sends a command over a new connection to the first server, in any state, and returns its
    /// answer. The connection stays for the next one.
    pub(super) fn ask(&mut self, limit: Duration, command: &redis::Cmd) -> Result<Value, Fault> {
        let runtime = self.take_runtime().map_err(Fault::Settings)?;
        let answer = runtime.block_on(self.ask_first(Deadline::after(limit), command));
        self.runtime = Some(runtime);
        answer
    }

    /// The addresses of the first server.
    pub(super) fn look_up(&mut self, limit: Duration) -> Result<Vec<SocketAddr>, Fault> {
        let runtime = self.take_runtime().map_err(Fault::Settings)?;
        let found = runtime.block_on(async {
            let host = self.settings.hosts.first().ok_or_else(no_server)?;
            dial::look_up(host, Deadline::after(limit)).await
        });
        self.runtime = Some(runtime);
        found
    }

    /// Subscribes to a channel over a connection of its own, to the server in use.
    pub(super) fn subscribe(&mut self, limit: Duration, channel: &str) -> Result<Link, Fault> {
        let runtime = self.take_runtime().map_err(Fault::Settings)?;
        let made = runtime.block_on(self.subscribed(Deadline::after(limit), channel));
        self.runtime = Some(runtime);
        made
    }

    /// Drops what a subscription has received. `false`: it is over.
    pub(super) fn drain(&mut self, link: &mut Link) -> bool {
        let Ok(runtime) = self.take_runtime() else {
            return false;
        };
        let is_there = runtime.block_on(link.drain());
        self.runtime = Some(runtime);
        is_there
    }

    /// Whether the connection goes by TLS.
    pub(super) fn is_secured(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.secured)
    }

    fn take_runtime(&mut self) -> Result<Runtime, String> {
        match self.runtime.take() {
            Some(runtime) => Ok(runtime),
            None => Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()
                .map_err(|error| format!("the operating system gave no event loop: {error}")),
        }
    }

    async fn ask_first(
        &mut self,
        deadline: Deadline,
        command: &redis::Cmd,
    ) -> Result<Value, Fault> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => {
                let host = self.settings.hosts.first().ok_or_else(no_server)?;
                let mut link = dial(&self.settings, host, deadline).await?;
                let login = self.log_in(&mut link);
                deadline.bound(Activity::LoggingIn, login).await??;
                link
            }
        };
        let asking = async {
            let bytes = command.get_packed_command();
            link.send(&bytes, Activity::Asking).await?;
            link.receive(Activity::Asking).await
        };
        let answer = deadline.bound(Activity::Asking, asking).await?;
        self.link = Some(link);
        answer
    }

    async fn subscribed(&self, deadline: Deadline, channel: &str) -> Result<Link, Fault> {
        let host = self.settings.hosts.get(self.host()).ok_or_else(no_server)?;
        let mut link = dial(&self.settings, host, deadline).await?;
        let channel = format!("{}{channel}", self.settings.prefix);
        let subscribing = async {
            self.log_in(&mut link).await?;
            let command = redis::cmd("SUBSCRIBE").arg(channel).get_packed_command();
            link.send(&command, Activity::Asking).await?;
            link.receive(Activity::Asking).await
        };
        deadline.bound(Activity::Asking, subscribing).await??;
        Ok(link)
    }

    /// Sends over the existing connection; otherwise over a new one to the first server that can be
    /// reached and accepts writes. Each has an equal share of the time that is left.
    async fn try_hosts(
        &mut self,
        deadline: Deadline,
        command: &Command,
    ) -> Result<Answer, StoreError> {
        let mut faults = Vec::new();
        if let Some(mut link) = self.link.take()
            && link.is_alive().await
        {
            let asked = ask(&mut link, command);
            match bound(deadline, asked).await {
                Ok(answer) => {
                    self.link = Some(link);
                    return Ok(answer);
                }
                Err(fault) if fault.is_elsewhere() => faults.push((self.host(), fault)),
                Err(fault) => return Err(self.answer_for(link, &fault)),
            }
        }
        let count = self.settings.hosts.len();
        let first = self.host();
        for step in 0..count {
            let index = (first + step) % count;
            let Some(host) = self.settings.hosts.get(index) else {
                continue;
            };
            let share = deadline.share(count - step);
            let mut link = match dial(&self.settings, host, share).await {
                Ok(link) => link,
                Err(fault) => {
                    faults.push((index, fault));
                    continue;
                }
            };
            self.set_host(index);
            let asked = self.log_in_and_ask(&mut link, share, command);
            match asked.await {
                Ok(answer) => {
                    self.link = Some(link);
                    return Ok(answer);
                }
                Err(Asked::Before(fault)) => faults.push((index, fault)),
                Err(Asked::Then(fault)) if fault.is_elsewhere() => faults.push((index, fault)),
                Err(Asked::Then(fault)) => return Err(self.answer_for(link, &fault)),
            }
        }
        Err(self.all_failed(&faults))
    }

    async fn log_in_and_ask(
        &self,
        link: &mut Link,
        deadline: Deadline,
        command: &Command,
    ) -> Result<Answer, Asked> {
        let login = Login::of(&self.settings, &self.application);
        if !command.only_reads {
            let done = deadline.bound(Activity::LoggingIn, self.log_in(link));
            done.await
                .map_err(Fault::from)
                .and_then(|done| done)
                .map_err(Asked::Before)?;
            return bound(deadline, ask(link, command))
                .await
                .map_err(Asked::Then);
        }
        // All at once: a read in a wrong database, or as a wrong user, is dropped.
        let all = async {
            let mut bytes = login.bytes();
            bytes.extend_from_slice(&command.bytes);
            link.send(&bytes, Activity::LoggingIn).await?;
            login.receive(link).await?;
            read_answer(link).await
        };
        bound(deadline, all).await.map_err(|fault| match fault {
            Fault::Said {
                doing: Activity::Asking,
                ..
            } => Asked::Then(fault),
            Fault::Evicts(_) => Asked::Then(fault),
            // A read that was not answered has no effect.
            fault => Asked::Before(fault),
        })
    }

    async fn log_in(&self, link: &mut Link) -> Result<(), Fault> {
        let login = Login::of(&self.settings, &self.application);
        link.send(&login.bytes(), Activity::LoggingIn).await?;
        login.receive(link).await
    }

    /// Handles a server's refusal or silence. A refusal leaves the connection usable; otherwise its
    /// state is unknown, and the next call tries another server.
    fn answer_for(&mut self, link: Link, fault: &Fault) -> StoreError {
        let error = self.error(self.host(), fault);
        if fault.is_refusal() {
            self.link = Some(link);
        } else {
            self.set_host((self.host() + 1) % self.settings.hosts.len().max(1));
        }
        error
    }

    fn error(&self, host: usize, fault: &Fault) -> StoreError {
        let host = self.settings.hosts.get(host);
        let host = host.map_or_else(String::new, Host::to_string);
        fault.store_error(&self.store_name, &host)
    }

    /// No server got the request, or none accepts writes: nothing has happened.
    fn all_failed(&self, faults: &[(usize, Fault)]) -> StoreError {
        let mut faults: Vec<&(usize, Fault)> = faults.iter().collect();
        // A server may give one error over the old connection and again over the new one.
        faults.sort_by_key(|(host, _)| *host);
        faults.dedup_by_key(|(host, _)| *host);
        let each = faults.iter().map(|(host, fault)| self.error(*host, fault));
        let mut each: Vec<StoreError> = each.map(StoreError::without_effect).collect();
        if each.len() == 1 {
            return each.remove(0);
        }
        let first = each.first().map(|error| error.trouble);
        let trouble = first.filter(|first| each.iter().all(|it| it.trouble == *first));
        let words = faults.iter().filter_map(|(host, fault)| {
            let host = self.settings.hosts.get(*host)?;
            Some(format!("{host}: {}", fault.words()))
        });
        let words: Vec<String> = words.collect();
        StoreError {
            trouble: trouble.unwrap_or(Trouble::Refused),
            what: format!(
                "the store {} can't be used: {}",
                self.store_name,
                words.join("; ")
            ),
            remedy: None,
            source: None,
        }
    }
}

/// A fault before the command was sent, or since.
enum Asked {
    Before(Fault),
    Then(Fault),
}

async fn bound<T>(
    deadline: Deadline,
    step: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    deadline
        .bound(Activity::Asking, step)
        .await
        .map_err(Fault::from)
        .and_then(|done| done)
}

async fn ask(link: &mut Link, command: &Command) -> Result<Answer, Fault> {
    link.send(&command.bytes, Activity::Asking).await?;
    read_answer(link).await
}

async fn read_answer(link: &mut Link) -> Result<Answer, Fault> {
    let value = link.receive(Activity::Asking).await?;
    match answered(&value) {
        Some(Answered::By(answer)) => Ok(answer),
        Some(Answered::Replica(master)) => Err(Fault::Replica(master)),
        Some(Answered::Evicts(policy)) => Err(Fault::Evicts(policy)),
        None => Err(Fault::Nonsense("the script's answer is another".into())),
    }
}

fn no_server() -> Fault {
    Fault::Settings("the store has no server".into())
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A name look-up may hang on a thread of its own, and is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
