//! Runs a job on one node at a time, keeps it on that node while it is well, and
//! moves it by itself when the node dies, with nothing but a database.
//!
//! The modules by layer, each importing only from those below it:
//!
//! | layer | modules |
//! |---|---|
//! | wiring | [`run()`] here, [`wiring`] |
//! | commands | [`commands`] |
//! | command line | [`cli`] |
//! | configuration files | [`config`] |
//! | words | [`report`] |
//! | a run | [`mod@run`] |
//! | outside | [`store`], [`job`] |
//! | system calls | [`sys`] |
//! | pure | [`token`], [`duration`], [`exit`] |

pub mod cli;
pub mod commands;
pub mod config;
pub mod duration;
pub mod exit;
pub mod job;
pub mod report;
pub mod run;
pub mod store;
pub mod sys;
pub mod token;
pub mod wiring;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cli::{InitRequest, LogFormat, LogRequest, Request, RunRequest, StoreRequest};
use commands::Failure;
use commands::run::Run;
use exit::Exit;
use report::last_words;
use report::log::{Log, Style};
use report::messages::{Level, Message};
use run::ending::Ending;
use run::machine::Wait;
use store::Store;
use store::filesystem;
use store::open::{OpenError, Opening};
use store::url::{Place, StoreUrl, state_directory};
use sys::clock::LocalClock;
use sys::service_manager::ServiceManager;
use sys::signals::Inherited;
use sys::{process, random};
use token::{About, Claim, ClientId, SessionId};

/// How long a listing waits for a store.
const LISTING_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a store that can't be opened is left alone before the next try, and the least
/// time that a try is given.
const SHORTEST_OPENING: Duration = Duration::from_millis(20);

/// Does what the command line asks for, and says how the process ends. To be called
/// first of all, by the only thread.
#[must_use]
pub fn run(arguments: &[OsString]) -> Exit {
    last_words::install();
    let inherited = match process_set_up() {
        Ok(inherited) => inherited,
        Err(error) => {
            let failure = Failure::of_system("the operating system refused", &error);
            return told(failure, Log::new(style(LogRequest::default())));
        }
    };
    if let Some(version) = cli::version_alone(arguments) {
        return match commands::print(version) {
            Ok(exit) => exit,
            Err(failure) => told(failure, Log::new(style(LogRequest::default()))),
        };
    }
    sys::memory::touch_memory();
    let request = match cli::parse(arguments) {
        Ok(request) => request,
        Err(unusable) if unusable.asked_for => {
            return match commands::print(&unusable.text) {
                Ok(exit) => exit,
                Err(failure) => told(failure, Log::new(style(LogRequest::default()))),
            };
        }
        Err(unusable) if unusable.is_page => {
            commands::tell(&unusable.text);
            return Exit::Code(unusable.code);
        }
        Err(unusable) => {
            let failure = Failure::new(unusable.code, "usage", unusable.text);
            return told(failure, Log::new(style(LogRequest::default())));
        }
    };
    let style = style(request.log());
    last_words::in_style(style);
    let mut log = Log::new(style);
    warn_of_visible_password(arguments, &request, &mut log);
    match dispatch(request, arguments, inherited, &mut log) {
        Ok(exit) => {
            log.close();
            exit
        }
        Err(failure) => told(failure, log),
    }
}

fn process_set_up() -> std::io::Result<Inherited> {
    sys::fds::fill_standard()?;
    Inherited::look()
}

fn told(failure: Failure, mut log: Log) -> Exit {
    log.write(&failure.message, false);
    log.close();
    Exit::Code(failure.code)
}

fn style(log: LogRequest) -> Style {
    let least = match log {
        LogRequest { quiet: 2.., .. } => None,
        LogRequest { quiet: 1, .. } => Some(Level::Warning),
        LogRequest { verbose: true, .. } => Some(Level::Detail),
        _ => Some(Level::Info),
    };
    Style {
        least,
        json: log.format == LogFormat::Json,
    }
}

fn dispatch(
    request: Request,
    arguments: &[OsString],
    inherited: Inherited,
    log: &mut Log,
) -> Result<Exit, Failure> {
    match request {
        Request::Run(request) => {
            run_to_its_end(*request, inherited, None, log).map(|(_, exit)| exit)
        }
        Request::Hold(request) => wiring::hold::agent(*request, arguments, inherited, log),
        Request::StandIn(order) => wiring::hold::standing_in(&order, &inherited, log),
        Request::Status(list) => {
            let mut store = known_store(&list.store, log)?;
            commands::status::status(store.as_mut(), &list)
        }
        Request::History(list) => {
            let mut store = known_store(&list.store, log)?;
            commands::history::history(store.as_mut(), &list)
        }
        Request::OnceList(list) => {
            let mut store = known_store(&list.store, log)?;
            commands::once::list(store.as_mut(), list.group.as_ref(), list.json)
        }
        Request::Check(request) => wiring::check(&request, log),
        Request::Metrics(request) => {
            let mut store = known_store(&request.store, log)?;
            commands::metrics::metrics(store.as_mut(), &request)
        }
        Request::Explain(request) => wiring::explain(request, log),
        Request::Act(request) => wiring::act(request, log),
        Request::Judge(request) => wiring::judge(request, log),
        Request::Fence(request) => {
            let mut store = known_store(&request.store, log)?;
            commands::fence::fence(store.as_mut(), &request, log)
        }
        Request::Init(request) => init(&request, log),
        Request::Config(request) => wiring::config(request),
        Request::Groups(request) => wiring::groups(&request, log),
        Request::Doctor(request) => wiring::doctor::doctor(&request, log),
        Request::Print(text) => commands::print(&text),
        Request::Man(directory) => {
            let pages = cli::manual()
                .map_err(|error| Failure::of_system("the manual can't be made", &error))?;
            commands::manual::write(&directory, &pages)
        }
    }
}

/// A run, or what an agent makes of one: then it has a `manager` to tell.
fn run_to_its_end(
    request: RunRequest,
    inherited: Inherited,
    mut manager: Option<&mut ServiceManager>,
    log: &mut Log,
) -> Result<(Ending, Exit), Failure> {
    let clock = LocalClock::start();
    warn_of_unknown_variables(log);
    let url = store_url(&request.store)?;
    warn_of_overlay(&url, log);
    let claim = claim(&request)?;
    let application = format!("tokenrun:{}", request.group);
    let timeout = request.timing.store_timeout;
    let (store, lock_directory) = open_in_time(
        &url,
        timeout,
        &application,
        request.wait,
        clock,
        log,
        || {
            if let Some(manager) = manager.as_deref_mut() {
                manager.at_work();
            }
        },
    )?;
    let job = Run {
        claim,
        limits: run::machine::Limits {
            timeout: request.timeout,
            wait: request.wait,
            locks: lock_directory.is_some(),
            yields: request.yields,
        },
        codes: run::ending::Codes {
            not_now: request.conflict_exit_code,
            done: request.done_exit_code,
            once: request.once.is_some(),
        },
        report: request.report,
        outside: run::driver::Outside {
            clock,
            inherited,
            argv: request.command,
            leftovers: match request.leftovers {
                cli::LeftoversFlag::Kill => job::handle::Leftovers::Kill,
                cli::LeftoversFlag::Leave => job::handle::Leftovers::Leave,
            },
            retention: store::Retention {
                history: request.history_retain,
                once: request.once_retain,
            },
            locks: run::locking::LockSettings {
                directory: lock_directory,
                inherited: !request.close_lock,
                patience: url.file().is_none().then(|| patience_for(timeout)),
            },
        },
    };
    commands::run::run(job, store, manager, log)
}

/// How long a directory of locks is waited for, less than a call of the store: a wait in line
/// is to give its next sign of life.
fn patience_for(store_timeout: Duration) -> Duration {
    (store_timeout / 2).min(Duration::from_secs(1))
}

fn claim(request: &RunRequest) -> Result<Claim, Failure> {
    let bits = random::bits128().map_err(|e| Failure::of_system("no random numbers", &e))?;
    let host = process::host_name().ok();
    Ok(Claim {
        group: request.group.clone(),
        client: client_id(request.client_id.as_ref(), host.as_deref())?,
        session: SessionId::from_random(bits),
        expected: request.expected.clone(),
        failback: request.failback,
        nested_in: nested_in(),
        timing: request.timing,
        about: About {
            host,
            pid: Some(process::pid()),
            lock_file: None,
            label: request.label.clone(),
            program: commands::run::program_name(&request.command),
            once_key: request.once.as_ref().map(ToString::to_string),
        },
    })
}

fn client_id(given: Option<&ClientId>, host: Option<&str>) -> Result<ClientId, Failure> {
    if let Some(client) = given {
        return Ok(client.clone());
    }
    let variable = std::env::var("CLIENT_ID")
        .ok()
        .filter(|text| !text.is_empty());
    let (source, text) = match (variable, host) {
        (Some(text), _) => ("the variable CLIENT_ID", text),
        (None, host) => ("the host name", host.unwrap_or_default().to_owned()),
    };
    ClientId::given(&text).map_err(|error| {
        let text = format!("{source} {error}; give --client-id");
        Failure::new(exit::CONFIG, "no_client_id", text)
    })
}

/// The session that this process says it runs inside of. Whether that is so, the
/// row decides, and the ancestors.
fn nested_in() -> Option<SessionId> {
    let session = std::env::var(run::environment::SESSION).ok()?;
    SessionId::new(&session).ok()
}

fn place() -> Place {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    Place {
        is_pid_1: process::pid() == 1,
        in_kubernetes: set("KUBERNETES_SERVICE_HOST").is_some(),
        is_root: nix::unistd::geteuid().is_root(),
        xdg_state_home: set("XDG_STATE_HOME"),
        home: set("HOME"),
    }
}

/// A password on the command line is in every listing of processes; one in a file may be
/// open to all.
fn warn_of_visible_password(arguments: &[OsString], request: &Request, log: &mut Log) {
    let Some(StoreRequest { store, file }) = request.store() else {
        return;
    };
    if let Some(path) = file {
        wiring::store_file::warn_if_shared(path, log);
    }
    let visible = |text: &&String| {
        let own = arguments.iter().take_while(|word| *word != "--");
        own.into_iter()
            .any(|word| word.to_string_lossy().contains(text.as_str()))
    };
    let visible = store.as_ref().filter(visible);
    if visible.is_some_and(|text| store::open::has_password(text)) {
        let text = "the password on the command line can be read by everybody on this host; \
                    give TOKENRUN_STORE, --store-file or ~/.pgpass instead";
        warn(log, "visible_password", text.into());
    }
}

fn init(request: &InitRequest, log: &mut Log) -> Result<Exit, Failure> {
    let url = store_url(&request.store)?;
    let state = state_directory(&place()).ok();
    let opening = Opening {
        timeout: LISTING_TIMEOUT,
        limit: LISTING_TIMEOUT,
        application: "tokenrun",
        state: state.as_deref(),
    };
    let mut warn = |text: &str| warn(log, "store_settings", text.to_owned());
    if request.print_sql {
        let creation = url.creation(&opening, &mut warn);
        return commands::print(&creation.map_err(not_opened)?);
    }
    let name = url.make(&opening, &mut warn).map_err(not_opened)?;
    commands::init::made(&name)
}

/// What is after `--store`, or in the file after `--store-file`.
fn given(store: &StoreRequest) -> Result<Option<String>, Failure> {
    match &store.file {
        Some(path) => wiring::store_file::read(path).map(Some),
        None => Ok(store.store.clone()),
    }
}

fn store_url(store: &StoreRequest) -> Result<StoreUrl, Failure> {
    let url = match given(store)? {
        Some(text) => StoreUrl::parse(&text),
        None => StoreUrl::default_for(&place()),
    };
    url.map_err(|error| {
        let variable = match &store.file {
            Some(path) => cli::said_by_variable("store-file", Some(path)),
            None => cli::said_by_variable("store", store.store.as_ref()),
        };
        Failure::new(exit::CONFIG, "no_store", format!("{error}{variable}"))
    })
}

/// As [`open`]; who may wait in line waits for the store too. A stop ends this process by
/// itself meanwhile.
fn open_in_time(
    url: &StoreUrl,
    timeout: Duration,
    application: &str,
    wait: Wait,
    clock: LocalClock,
    log: &mut Log,
    mut at_work: impl FnMut(),
) -> Result<(Box<dyn Store>, Option<PathBuf>), Failure> {
    let left = || match wait {
        Wait::No => None,
        Wait::Forever => Some(Duration::MAX),
        Wait::For(limit) => Some(limit.saturating_sub(clock.now().0)),
    };
    loop {
        at_work();
        let opening = left().map_or(timeout, |left| timeout.min(left).max(SHORTEST_OPENING));
        let opened = open(url, timeout, opening, application, log);
        // Only now: the attempt has taken some of it.
        match (opened, left()) {
            (Err(failure), Some(left)) if failure.code == exit::UNAVAILABLE && !left.is_zero() => {
                std::thread::sleep(SHORTEST_OPENING.min(left));
            }
            (opened, _) => return opened,
        }
    }
}

/// A store, and the directory for the locks of its runs on this host.
fn open(
    url: &StoreUrl,
    timeout: Duration,
    limit: Duration,
    application: &str,
    log: &mut Log,
) -> Result<(Box<dyn Store>, Option<PathBuf>), Failure> {
    let state = state_directory(&place()).ok();
    let opening = Opening {
        timeout,
        limit,
        application,
        state: state.as_deref(),
    };
    let mut warn = |text: &str| warn(log, "store_settings", text.to_owned());
    let opened = url.open(&opening, &mut warn).map_err(not_opened)?;
    Ok((opened.store, opened.locks))
}

fn not_opened(error: OpenError) -> Failure {
    match error {
        OpenError::Store(error) => Failure::of_store(&error),
        OpenError::Settings { error, text } => {
            let variable = cli::said_by_variable("store", Some(&text.0));
            Failure::new(exit::CONFIG, "no_store", format!("{error}{variable}"))
        }
    }
}

/// A store that must be there already: what is asked of it makes none.
fn known_store(store: &StoreRequest, log: &mut Log) -> Result<Box<dyn Store>, Failure> {
    Ok(known_store_with_locks(store, LISTING_TIMEOUT, log)?.0)
}

/// The same, with the directory for the locks of its runs on this host.
fn known_store_with_locks(
    store: &StoreRequest,
    timeout: Duration,
    log: &mut Log,
) -> Result<(Box<dyn Store>, Option<PathBuf>), Failure> {
    let url = store_url(store)?;
    if let Some(path) = url.file()
        && !path.exists()
    {
        let text = format!(
            "there is no store {}: nothing has run with it yet, or --store names another",
            path.display()
        );
        return Err(Failure::new(exit::CONFIG, "no_store", text));
    }
    open(&url, timeout, timeout, "tokenrun", log)
}

fn warn_of_unknown_variables(log: &mut Log) {
    let ours = |name: &OsString| name.to_string_lossy().starts_with("TOKENRUN_");
    let mut names = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(ours)
        .peekable();
    if names.peek().is_none() {
        return;
    }
    let known = cli::variables();
    for name in names {
        let name = name.to_string_lossy();
        let is_known = known.iter().any(|known| *known == name)
            || run::environment::CHANGE == name
            || run::environment::JOB_VARIABLES.contains(&name.as_ref());
        if !is_known {
            warn(
                log,
                "unknown_variable",
                format!("the variable {name:?} is unknown and has no effect"),
            );
        }
    }
}

/// A file on overlayfs is gone with its container, and excludes no other container.
fn warn_of_overlay(url: &StoreUrl, log: &mut Log) {
    let Some(path) = url.file() else {
        return;
    };
    // On the first run the file is not there yet.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = absolute.ancestors().find(|path| path.exists());
    if existing.is_some_and(|path| filesystem::is_overlay(path).unwrap_or(false)) {
        let text = format!(
            "the store {} is on overlayfs: it excludes only what runs in this very container",
            path.display()
        );
        warn(log, "store_on_overlay", text);
    }
}

fn warn(log: &mut Log, event: &'static str, text: String) {
    let level = Level::Warning;
    log.write(&Message { level, event, text }, false);
}
