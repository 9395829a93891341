//! The variables that are read, and those that the job and hooks get.

use clap::{Arg, Command};

use super::options::described;
use super::topic::{Table, Topic, heading, paragraph};
use tokenrun::run::environment::{CHANGE, HOOK_VARIABLES, JOB_VARIABLES};
use tokenrun::store::net::options::Fate;
use tokenrun::store::postgres::conninfo::text::ALL;

/// Variables that are read, other than options and those of libpq.
const READ: [(&str, &str); 15] = [
    (
        "CLIENT_ID",
        "The name of this node, if neither --client-id nor TOKENRUN_CLIENT_ID gives one. Without it the name is the host name.",
    ),
    (
        "HOME",
        "The place of the state directory and of the configuration file, if the XDG variables are not set.",
    ),
    (
        "XDG_STATE_HOME",
        "The state directory of a user other than root is `$XDG_STATE_HOME/tokenrun`, or ~/.local/state/tokenrun. Root's is /var/lib/tokenrun.",
    ),
    (
        "XDG_CONFIG_HOME",
        "The user's configuration file is `$XDG_CONFIG_HOME/tokenrun/config.toml`, or ~/.config/tokenrun/config.toml.",
    ),
    (
        "XDG_RUNTIME_DIR",
        "`tokenrun hold` writes its runtime file to `$XDG_RUNTIME_DIR/tokenrun`, root's to /run/tokenrun.",
    ),
    ("PATH", "Where the job's program is looked for."),
    ("TZ", "The time zone of the times that are given and shown."),
    (
        "NO_COLOR",
        "If it is not empty, tables have no colours. --color overrules it.",
    ),
    ("TERM", "If it is `dumb`, tables have no colours."),
    (
        "COLUMNS",
        "The width of tables, instead of the width of the terminal.",
    ),
    (
        "KUBERNETES_SERVICE_HOST",
        "In a pod there is no default store: --store must name one.",
    ),
    (
        "SUDO_USER",
        "Recorded beside the user's name when an operator changes a token.",
    ),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR",
        "The certificates that a database server's certificate is checked against, instead of those of the system.",
    ),
    (
        "NOTIFY_SOCKET",
        "systemd is informed when the service is ready. The job does not get this variable from `tokenrun hold`.",
    ),
    (
        "WATCHDOG_USEC, WATCHDOG_PID",
        "systemd's watchdog gets its signs of life.",
    ),
];

/// Variables of the clients of MySQL and MariaDB.
const OF_MYSQL: [(&str, &str); 5] = [
    ("MYSQL_HOST", "The host, if the URL names none."),
    (
        "MYSQL_TCP_PORT",
        "The port of each host without one. Without it the port is 3306.",
    ),
    (
        "MYSQL_UNIX_PORT",
        "The Unix socket, for `localhost` without a port. Without it the socket is /run/mysqld/mysqld.sock.",
    ),
    (
        "MYSQL_PWD",
        "The password. Other processes of the user can read it.",
    ),
    ("HOME", "The option file ~/.my.cnf is there."),
];

/// Variables of the clients of Redis and Valkey.
const OF_REDIS: [(&str, &str); 1] = [(
    "REDISCLI_AUTH, VALKEYCLI_AUTH",
    "The password, if the URL has none. If both are set, the one of the URL's own name counts. Other processes of the user can read it.",
)];

/// Variables of etcdctl.
const OF_ETCD: [(&str, &str); 4] = [
    ("ETCDCTL_ENDPOINTS", "The servers, if the URL names none."),
    (
        "ETCDCTL_USER",
        "The user, if the URL names none; with `:` and the password behind it, if that is here too.",
    ),
    (
        "ETCDCTL_PASSWORD",
        "The password, if the URL has none. Other processes of the user can read it.",
    ),
    (
        "ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY",
        "The files of TLS that the URL does not name.",
    ),
];

/// In the order of [`JOB_VARIABLES`].
const OF_THE_JOB: [&str; JOB_VARIABLES.len()] = [
    "The group.",
    "The name of this node.",
    "The session: this run and no other. A tokenrun that the job calls for the same group runs under the lease of this session.",
    "The fencing token: a number that rises with every grant. Give it to the system that the job writes to, and let that system refuse smaller numbers.",
    "How the token was granted: `bind`, `renew`, `takeover`, `failback` or `handoff`.",
    "The client that had the token before, if it was another one.",
    "The key of --once.",
];

/// In the order of [`HOOK_VARIABLES`].
const OF_A_HOOK: [&str; HOOK_VARIABLES.len()] = [
    "How the run ended, as `outcome` in the file of --report.",
    "The exit code of tokenrun. It is empty for the run of a holder that went silent.",
    "The cause in a word, as `reason` in the messages of --log-format json.",
    "A file with what --capture has caught. Each command of the hook can read it from its begin; stdin has the same once. It is empty if nothing was caught.",
];

pub(crate) fn topic(command: &Command) -> Topic {
    let job = JOB_VARIABLES.into_iter().zip(OF_THE_JOB);
    let hook = HOOK_VARIABLES.into_iter().zip(OF_A_HOOK);
    let change = (
        CHANGE,
        "For --on-change of `tokenrun hold`: `gain` or `loss`.",
    );
    Topic {
        title: "Environment variables",
        about: "the environment variables of tokenrun",
        parts: vec![
            heading("Options"),
            paragraph(
                "Every option of a run but --group can be given as a variable. An option on the command line wins over its variable, and a variable wins over a configuration file. A switch takes `true` or `false`. A variable that begins with `TOKENRUN_` and is unknown has no effect, and a warning names it.",
            ),
            Table::of(["variable", "option"], options(command)),
            heading("Other variables that are read"),
            Table::of(["variable", "effect"], READ),
            heading("PostgreSQL"),
            paragraph(format!(
                "A PostgreSQL store is found with the variables of libpq, as with psql. The connection string wins over them. These are read: {}, PGSERVICEFILE and PGSYSCONFDIR.",
                of_postgres(Fate::Used)
            )),
            paragraph(format!(
                "These have no effect: {}. These are refused if they are set, because to ignore them would make the connection less secure: {}.",
                of_postgres(Fate::Harmless),
                of_postgres(Fate::Refused)
            )),
            heading("MySQL and MariaDB"),
            paragraph(
                "A store of MySQL or MariaDB is found with the option files and variables of the database's own client. The connection string wins over the files, and the files win over these variables.",
            ),
            Table::of(["variable", "effect"], OF_MYSQL),
            heading("Redis and Valkey"),
            Table::of(["variable", "effect"], OF_REDIS),
            heading("etcd"),
            Table::of(["variable", "effect"], OF_ETCD),
            heading("Variables of the job"),
            paragraph(
                "The job finds these in its environment. `tokenrun fence` and `tokenrun check` read them.",
            ),
            Table::of(["variable", "value"], job),
            heading("Variables of a hook"),
            paragraph(
                "The commands of --on-success, --on-failure and --on-refused have the variables of the job as far as they are known, and these. Their own hooks are switched off.",
            ),
            Table::of(["variable", "value"], hook.chain([change])),
        ],
    }
}

/// The variables of options, each with its option.
fn options(command: &Command) -> Vec<(String, String)> {
    let hold = command.find_subcommand("hold");
    let all = command.get_arguments();
    let all = all.chain(hold.into_iter().flat_map(Command::get_arguments));
    let mut found: Vec<(String, String)> = Vec::new();
    for (variable, long) in all.filter_map(variable_of) {
        if found.iter().all(|(other, _)| *other != variable) {
            found.push((variable, format!("--{long}: {}.", described(command, long))));
        }
    }
    found
}

fn variable_of(option: &Arg) -> Option<(String, &str)> {
    let variable = option.get_env()?.to_string_lossy().into_owned();
    Some((variable, option.get_long()?))
}

fn of_postgres(fate: Fate) -> String {
    let all = ALL
        .iter()
        .filter(|it| it.fate == fate && !it.variable.is_empty());
    all.map(|it| it.variable).collect::<Vec<_>>().join(", ")
}
