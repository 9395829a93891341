//! `tokenrun serve`: what the store says now, over HTTP.

mod answers;
mod http;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use self::answers::{Answer, Route};
use super::history::History;
use super::metrics;
use super::page::PageOptions;
use super::shared::failure::{Failure, reported};
use super::shared::groups::memory;
use super::shared::options::{GroupsOptions, LogOptions, StoreOptions};
use super::shared::stores::{open_quietly, store_url};
use super::shared::{Action, Context};
use super::status::Status;
use crate::cli::{Unusable, values};
use crate::exit::{self, Exit};
use crate::report::log::Style;
use crate::report::serve::{not_listening, reachable, serving};
use crate::store::Store;
use crate::store::url::StoreUrl;
use crate::sys::service_manager::ServiceManager;

/// How many sessions with the store there are at most: threads that look at it at a time.
const SESSIONS: usize = 4;

/// How long a call of the store may take.
const STORE_TIME: Duration = Duration::from_secs(10);

/// Serve the page, the metrics and the state as JSON over HTTP, read only
///
/// / is the page of tokenrun page, which loads itself again; /metrics what tokenrun metrics prints;
/// /status.json and /history.json what status and history print with --json; /healthz is 200 while the
/// store answers, /livez while this process does. Each request looks at the store; if the store does not
/// answer, the response is 503 with the reason. There is no TLS and no log-in.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The address and the port to listen on
    ///
    /// The default is reachable from this host alone. On another address, every host that reaches it can
    /// read what the store says of its groups.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9187", value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    groups: GroupsOptions,
    #[command(flatten)]
    store: StoreOptions,
    /// Times on the page in UTC instead of the local time zone
    #[arg(long)]
    utc: bool,
    /// A browser loads the page again after this time
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    refresh: Duration,
    #[command(flatten)]
    log: LogOptions,
}

/// An address with a port, in numbers: a name may stand for several.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "is no address with a port; give for example 127.0.0.1:9187, [::1]:9187 or 0.0.0.0:9187"
            .to_owned()
    })
}

impl Action for Serve {
    fn check(&self) -> Result<(), Unusable> {
        self.page_options().check()
    }

    fn style(&self) -> Style {
        self.log.style()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let url = store_url(&self.store)?;
        let listener = TcpListener::bind(self.listen).map_err(|error| {
            let text = not_listening(self.listen, &error);
            Failure::new(exit::SYSTEM, "not_listening", text)
        })?;
        let address = listener.local_addr().unwrap_or(self.listen);
        let shown = url.shown();
        let looks = Looks {
            url,
            page: self.page_options(),
            idle: Mutex::new(Vec::new()),
        };
        let look: Arc<http::Look> = Arc::new(move |route| looks.answer(route));
        let (log, inherited) = (&mut *context.log, &context.inherited);
        // Only now: a stop signal from here on ends the server in order.
        let ready = || {
            log.write(&serving(address, &shown), false);
            if !address.ip().is_loopback() {
                log.write(&reachable(address), false);
            }
            if let Some(mut manager) = ServiceManager::of_environment() {
                manager.at_work();
            }
        };
        http::serve(listener, SESSIONS, look, inherited, ready)?;
        Ok(Exit::OK)
    }
}

impl Serve {
    fn page_options(&self) -> PageOptions {
        PageOptions {
            groups: self.groups.clone(),
            utc: self.utc,
            refresh: Some(self.refresh),
        }
    }
}

/// Looks at the store.
struct Looks {
    url: StoreUrl,
    page: PageOptions,
    /// Sessions that no look uses.
    idle: Mutex<Vec<Box<dyn Store>>>,
}

impl Looks {
    /// The answer of the store, or why there is none. A session whose look failed is closed: the next look opens
    /// another.
    fn answer(&self, route: Route) -> Answer {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let session = idle().pop();
        let session = session.map_or_else(|| open_quietly(&self.url, STORE_TIME), Ok);
        let looked = session.and_then(|mut store| {
            let body = self.look(route, store.as_mut())?;
            idle().push(store);
            Ok(body)
        });
        match looked {
            Ok(body) => Answer::of(route, body),
            Err(error) => Answer::line(503, &reported(&error).message.text),
        }
    }

    fn look(&self, route: Route, store: &mut dyn Store) -> Result<String> {
        let groups = &self.page.groups;
        match route {
            Route::Page => self.page.text(store).map(|looked| looked.text),
            Route::Metrics => metrics::text_of(store, &groups.groups()).map(|looked| looked.text),
            Route::Status => Status::json_of(groups, store),
            Route::History => History::json_of(groups, store),
            Route::Health | Route::Alive => memory(store).map(|_| "ok\n".to_owned()),
        }
    }
}
