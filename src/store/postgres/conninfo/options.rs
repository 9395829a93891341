//! Every option of libpq, and its treatment here.

use crate::store::net::options::{Known, options};

/// The option that names the schema that the tables are in.
pub const SCHEMA: &str = "tokenrun_schema";

pub const ALL: &[Known] = options![
    "service" "PGSERVICE" Used,
    "host" "PGHOST" Used,
    "hostaddr" "PGHOSTADDR" Used,
    "port" "PGPORT" Used,
    "dbname" "PGDATABASE" Used,
    "user" "PGUSER" Used,
    "password" "PGPASSWORD" Used,
    "passfile" "PGPASSFILE" Used,
    "channel_binding" "PGCHANNELBINDING" Used,
    "connect_timeout" "PGCONNECT_TIMEOUT" Used,
    "options" "PGOPTIONS" Used,
    "application_name" "PGAPPNAME" Used,
    "fallback_application_name" "" Used,
    "keepalives" "" Used,
    "keepalives_idle" "" Used,
    "keepalives_interval" "" Used,
    "keepalives_count" "" Used,
    "tcp_user_timeout" "" Used,
    "sslmode" "PGSSLMODE" Used,
    "sslrootcert" "PGSSLROOTCERT" Used,
    "sslcert" "PGSSLCERT" Used,
    "sslkey" "PGSSLKEY" Used,
    "sslsni" "PGSSLSNI" Used,
    "ssl_min_protocol_version" "PGSSLMINPROTOCOLVERSION" Used,
    "ssl_max_protocol_version" "PGSSLMAXPROTOCOLVERSION" Used,
    "target_session_attrs" "PGTARGETSESSIONATTRS" Used,
    "gssencmode" "PGGSSENCMODE" Used,
    "load_balance_hosts" "PGLOADBALANCEHOSTS" Used,
    "tokenrun_schema" "" Used,
    "client_encoding" "PGCLIENTENCODING" Harmless,
    "sslcompression" "PGSSLCOMPRESSION" Harmless,
    "krbsrvname" "PGKRBSRVNAME" Harmless,
    "gsslib" "PGGSSLIB" Harmless,
    "sslpassword" "" Refused,
    "sslcrl" "PGSSLCRL" Refused,
    "sslcrldir" "PGSSLCRLDIR" Refused,
    "sslcertmode" "PGSSLCERTMODE" Refused,
    "sslnegotiation" "PGSSLNEGOTIATION" Refused,
    "requirepeer" "PGREQUIREPEER" Refused,
    "require_auth" "PGREQUIREAUTH" Refused,
    "gssdelegation" "PGGSSDELEGATION" Refused,
    "replication" "" Refused,
];

#[must_use]
pub fn known(name: &str) -> Option<&'static Known> {
    ALL.iter().find(|known| known.name == name)
}
