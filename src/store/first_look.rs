//! The first requests of a process, on its only thread. It has no deadline, no job and no children
//! yet, so it may wait for a server of this host for a moment. A refused run ends with that.

use std::time::Duration;

use super::{Answer, Request, Store, StoreError, Trouble};

/// How long a look may take: for so long a stop signal may have to wait.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// How long the record of a refusal may take, which waits for the server's disk.
const RECORD: Duration = Duration::from_secs(1);

/// Checks that there is time for making a store's tables: a first look leaves that to the call that comes
/// after it.
///
/// # Errors
/// If there is not.
pub(super) fn check_time(limit: Duration, store: &str) -> Result<(), StoreError> {
    if limit <= LOOK {
        return Err(StoreError::unavailable(format!(
            "there was too little time to make the tables of the store {store}"
        )));
    }
    Ok(())
}

/// Carries a request out if that takes no waiting, or a moment's. `None`: the store gave no answer in
/// time, and nothing happened that matters.
pub fn ask(store: &mut dyn Store, request: &Request) -> Option<Answer> {
    let Some(&mut usual) = store.limit_of_near() else {
        return store.at_once(request);
    };
    let most = match request {
        Request::Read(..) => LOOK,
        Request::Refuse(_) => RECORD,
        // The result of a write must become known: it has the time of any call.
        _ => return None,
    };
    *store.limit_of_near()? = usual.min(most);
    let answer = request.carry_out(store);
    *store.limit_of_near()? = usual;
    let may_succeed_later = answer.error().is_some_and(|error| {
        let trouble = error.trouble;
        matches!(
            trouble,
            Trouble::Unavailable | Trouble::Refused | Trouble::Locked
        )
    });
    (!may_succeed_later).then_some(answer)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::store::kv::KvStore;
    use crate::store::mysql::test_server::{Kind, Server as MysqlServer};
    use crate::store::mysql::{self, MysqlStore};
    use crate::store::postgres::test_server::Server as PostgresServer;
    use crate::store::postgres::{self, PostgresStore};
    use crate::store::redis::RedisKv;
    use crate::store::redis::settings::Settings as RedisSettings;
    use crate::store::redis::test_server::Server as RedisServer;
    use crate::store::{Retention, Tokens as _};
    use crate::token::GroupName;
    use crate::token::OutputLimits;

    const LIMIT: Duration = Duration::from_secs(10);

    fn group() -> GroupName {
        GroupName::new("g").unwrap()
    }

    fn redis(url: &str) -> KvStore {
        let settings = RedisSettings::read(url, |_| None).unwrap();
        KvStore::new(RedisKv::new(settings, LIMIT, "test"))
    }

    #[test]
    fn a_server_of_this_host_is_asked_at_once_and_a_remote_one_never() {
        let server = RedisServer::shared();
        let prefix = RedisServer::prefix();
        let look = |url: &str| {
            let mut store = redis(&format!("{url}?prefix={prefix}"));
            ask(&mut store, &Request::Read(group(), None))
        };
        assert!(matches!(look(&server.url()), Some(Answer::Read(Ok(_)))));
        assert!(look(&server.tcp_url()).is_none());
    }

    #[test]
    fn a_server_that_is_silent_is_left_to_a_thread_with_the_time_that_it_had() {
        let server = RedisServer::start(&[]);
        let mut store = redis(&server.url());
        server.freeze();
        let begun = Instant::now();
        assert!(ask(&mut store, &Request::Read(group(), None)).is_none());
        assert!(begun.elapsed() < LIMIT / 2);
        assert_eq!(store.limit_of_near(), Some(&mut { LIMIT }));
        server.thaw();
        assert!(store.read(&group()).is_ok());
    }

    #[test]
    fn nothing_is_written_but_a_refusal() {
        let mut store = redis(&RedisServer::shared().url());
        let group = group();
        let retention = Retention {
            history: LIMIT,
            once: LIMIT,
            outputs: OutputLimits {
                retain: LIMIT,
                count: 100,
            },
        };
        let request = Request::Prune { group, retention };
        assert!(ask(&mut store, &request).is_none());
    }

    #[test]
    fn no_tables_are_made() {
        let database = PostgresServer::shared().database();
        let settings = postgres::settings(&database.url(), "test").unwrap();
        let mut store = PostgresStore::new(settings, LIMIT);
        assert!(ask(&mut store, &Request::Read(group(), None)).is_none());
        let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'tokenrun'";
        assert_eq!(database.sql(schemas).trim(), "0");

        let database = MysqlServer::shared_of(Kind::Mariadb).database();
        let settings = mysql::settings(&database.url(), "test").unwrap();
        let mut store = MysqlStore::new(settings, LIMIT);
        assert!(ask(&mut store, &Request::Read(group(), None)).is_none());
        assert_eq!(database.sql("SHOW TABLES").trim(), "");
    }
}
