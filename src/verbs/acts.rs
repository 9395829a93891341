//! Acts of operators on tokens: `pause`, `resume`, `move`, `expect`, `revoke`, `release`,
//! `once forget` and `fence raise`.

mod awaiting;
mod client;
mod one;
pub(super) mod several;

use std::time::Duration;

use anyhow::Result;
use clap::{ArgGroup, Args};

use self::one::Wish;
use self::several::{Order, Patience, Target};
use super::shared::node::{about, actor};
use super::shared::options::RecordOptions;
use super::shared::stores::{LISTING_TIMEOUT, known_store_with_locks};
use super::shared::terminal::print_json;
use super::shared::{Action, Context};
use crate::cli::{Unusable, values};
use crate::exit::Exit;
use crate::report::log::Style;
use crate::run::machine::Wait;
use crate::store::open::Opened;
use crate::token::{Act, ClientId, Fence, GroupName, GroupPattern, Groups, OnceKey};

// An act on one group.
#[derive(Debug, Args)]
struct OneGroup {
    /// The group
    #[arg(short, long, value_name = "NAME", value_parser = values::group)]
    group: GroupName,
    #[command(flatten)]
    record: RecordOptions,
}

// An act on one or several groups.
#[derive(Debug, Args)]
struct SeveralGroups {
    /// The group, or a pattern such as 'etl-*'; can be repeated
    #[arg(short, long, value_name = "NAME", value_parser = values::pattern)]
    group: Vec<GroupPattern>,
    /// Every group of the store
    #[arg(long, conflicts_with = "group")]
    all: bool,
    /// Ask no question
    ///
    /// On a terminal, tokenrun asks before it acts on several groups that --all or a pattern has
    /// found, and before it gives a token to a client that was never seen. Without a terminal,
    /// --all and a pattern need --yes, and an unknown client causes a warning.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    record: RecordOptions,
}

/// Stop new grants, of groups or to a client; a running job goes on
#[derive(Debug, Args)]
#[command(group(which(["group", "all", "client"])))]
pub(super) struct Pause {
    #[command(flatten)]
    on: SeveralGroups,
    /// The client that gets no token of any group
    #[arg(long, value_name = "ID", value_parser = values::client, conflicts_with_all = ["group", "all"])]
    client: Option<ClientId>,
    /// How long the pause lasts [default: until tokenrun resume]
    #[arg(long = "for", value_name = "DURATION", value_parser = values::duration)]
    lasts: Option<Duration>,
}

/// Allow grants again
#[derive(Debug, Args)]
#[command(group(which(["group", "all", "client"])))]
pub(super) struct Resume {
    #[command(flatten)]
    on: SeveralGroups,
    /// The client that gets tokens again
    #[arg(long, value_name = "ID", value_parser = values::client, conflicts_with_all = ["group", "all"])]
    client: Option<ClientId>,
    /// End the pauses of other operators too; without it, resuming several groups leaves those
    #[arg(long)]
    force: bool,
}

/// Give tokens to a certain client now, or to any other than their own: end a job that runs elsewhere
///
/// The token is handed off to the client. If another client runs its job, the token is revoked
/// from it, unless --when-idle lets that job end. On a terminal the command then waits until the
/// client can have the token, and shows what it waits for.
#[derive(Debug, Args)]
#[command(group(which(["group", "all", "from"])), group(which(["to", "any"]).id("target").multiple(false)))]
pub(super) struct Move {
    #[command(flatten)]
    on: SeveralGroups,
    /// Every group whose token belongs to this client
    #[arg(long, value_name = "ID", value_parser = values::client, conflicts_with_all = ["group", "all"])]
    from: Option<ClientId>,
    /// The client that gets the token
    #[arg(long, value_name = "ID", value_parser = values::client)]
    to: Option<ClientId>,
    /// Any other client gets the token: the one that has it waits --head-start
    ///
    /// A job that runs is ended. The time of --at-least goes on.
    #[arg(long)]
    any: bool,
    /// Only hand it off: the client gets the token next, when it is idle; a running job goes on
    #[arg(long, conflicts_with_all = ["wait", "any"])]
    when_idle: bool,
    /// Wait until that client can have the token, at most this long; then exit code 75 [default: on
    /// a terminal, without a limit]
    #[arg(
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = values::FOREVER,
        value_parser = values::wait,
    )]
    wait: Option<Wait>,
}

/// Change the client that is expected to have the token
#[derive(Debug, Args)]
pub(super) struct Expect {
    #[command(flatten)]
    on: OneGroup,
    /// The client that is expected to have the token
    #[arg(value_name = "ID", value_parser = values::client_word, required_unless_present = "clear")]
    client: Option<ClientId>,
    /// Expect no client
    #[arg(long, conflicts_with = "client")]
    clear: bool,
}

/// Ask the holder to end its job and to free the token, without overlap
#[derive(Debug, Args)]
#[command(group(which(["group", "all"])))]
pub(super) struct Revoke {
    #[command(flatten)]
    on: SeveralGroups,
    /// Wait until the job has ended and the token is free, at most this long; then exit code 75
    /// [default: no; without a DURATION there is no limit]
    #[arg(
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = values::FOREVER,
        value_parser = values::wait,
    )]
    wait: Option<Wait>,
}

/// Free an idle token, although its --at-least is not over; a running one only by force
#[derive(Debug, Args)]
#[command(group(which(["group", "all"])))]
pub(super) struct Release {
    #[command(flatten)]
    on: SeveralGroups,
    /// Free the token although a job holds it: that job can go on for a while, beside the next one
    #[arg(long)]
    force: bool,
}

/// Forget a key: the next run with it runs the job again
#[derive(Debug, Args)]
pub(super) struct Forget {
    #[command(flatten)]
    on: OneGroup,
    /// The key
    #[arg(value_name = "KEY", value_parser = values::key_word)]
    key: OnceKey,
}

/// Raise the fencing token of a group that no run holds
#[derive(Debug, Args)]
pub(super) struct Raise {
    #[command(flatten)]
    on: OneGroup,
    /// The least value after the rise: the highest that a resource has seen [default: a rise by a
    /// minute]
    #[arg(long, value_name = "N", value_parser = values::fence)]
    to: Option<Fence>,
}

/// What a verb acts on, one way or another.
fn which<const N: usize>(options: [&'static str; N]) -> ArgGroup {
    ArgGroup::new("which")
        .args(options)
        .required(true)
        .multiple(true)
}

impl OneGroup {
    fn order(&self, verb: &'static str, act: Act) -> Order<'_> {
        Order {
            on: Target::Groups(self.group.clone().into()),
            yes: true,
            verb,
            wish: Wish::Act(act),
            patience: Patience::Given(Wait::No),
            record: &self.record,
        }
    }
}

impl SeveralGroups {
    fn order(&self, verb: &'static str, wish: Wish) -> Order<'_> {
        Order {
            on: Target::Groups(self.group.clone().into()),
            yes: self.yes,
            verb,
            wish,
            patience: Patience::Given(Wait::No),
            record: &self.record,
        }
    }
}

/// A verb that orders an act.
pub(super) trait Ordering {
    fn check(&self) -> Result<(), Unusable> {
        Ok(())
    }

    fn order(&self) -> Order<'_>;
}

impl Ordering for Pause {
    fn check(&self) -> Result<(), Unusable> {
        match self.lasts {
            Some(Duration::ZERO) => Err(Unusable::about(
                &["--for"],
                "--for must be longer than 0; leave it out for a pause until tokenrun resume",
            )),
            _ => Ok(()),
        }
    }

    fn order(&self) -> Order<'_> {
        let order = self.on.order("pause", Wish::Pause(self.lasts));
        order.or_on(self.client.as_ref(), Target::Client)
    }
}

impl Ordering for Resume {
    fn order(&self) -> Order<'_> {
        let is_single = Groups::from(self.on.group.clone()).single().is_some();
        let others = self.force || is_single;
        let order = self.on.order("resume", Wish::Resume { others });
        order.or_on(self.client.as_ref(), Target::Client)
    }
}

impl Ordering for Move {
    fn order(&self) -> Order<'_> {
        let (verb, wish) = match &self.to {
            Some(to) if self.when_idle => ("move --when-idle", Wish::Act(Act::Handoff(to.clone()))),
            Some(to) => ("move", Wish::Move(to.clone())),
            None => ("move --any", Wish::Act(Act::Away)),
        };
        let patience = match self.when_idle {
            true => Patience::Given(Wait::No),
            false => self.wait.map_or(Patience::OnTerminal, Patience::Given),
        };
        let order = Order {
            patience,
            ..self.on.order(verb, wish)
        };
        order.or_on(self.from.as_ref(), Target::TokensOf)
    }
}

impl Ordering for Expect {
    fn order(&self) -> Order<'_> {
        self.on.order("expect", Act::Expect(self.client.clone()))
    }
}

impl Ordering for Revoke {
    fn order(&self) -> Order<'_> {
        Order {
            patience: Patience::Given(self.wait.unwrap_or_default()),
            ..self.on.order("revoke", Wish::Act(Act::Revoke))
        }
    }
}

impl Ordering for Release {
    fn order(&self) -> Order<'_> {
        self.on
            .order("release", Wish::Act(Act::Release { force: self.force }))
    }
}

impl Ordering for Forget {
    fn order(&self) -> Order<'_> {
        self.on
            .order("once forget", Act::Forget(self.key.to_string()))
    }
}

impl Ordering for Raise {
    fn order(&self) -> Order<'_> {
        self.on.order("fence raise", Act::Raise(self.to))
    }
}

impl<T: Ordering> Action for T {
    fn check(&self) -> Result<(), Unusable> {
        Ordering::check(self)
    }

    fn style(&self) -> Style {
        self.order().record.log.style()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        carry_out(&self.order(), context)
    }
}

/// An operator's act on one or several groups.
fn carry_out(order: &Order<'_>, context: &mut Context<'_>) -> Result<Exit> {
    let log = &mut *context.log;
    several::check(order)?;
    if let Some(group) = order.on.single() {
        log.about(about(group));
    }
    let Opened { mut store, locks } =
        known_store_with_locks(&order.record.store, LISTING_TIMEOUT, log)?;
    let actor = actor(order.record.reason.as_ref());
    if let Target::Client(client) = &order.on {
        let record = client::act_on(store.as_mut(), client, &order.wish, &actor, log)?;
        let performed = record.as_deref().map(client::shown);
        return match order.record.json {
            true => print_json(performed.as_slice()),
            false => Ok(Exit::OK),
        };
    }
    several::act_on_each(store.as_mut(), order, &actor, locks.as_deref(), log)
}
