//! The stores, each with a clock that a test sets.

use super::*;

pub(super) struct InModel(ModelStore);

impl InModel {
    pub(super) fn new() -> Self {
        Self(ModelStore::new())
    }
}

impl Fixture for InModel {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn now(&self) -> StoreTime {
        self.0.now()
    }

    fn set_clock(&self, to: StoreTime) {
        self.0.set_clock(to);
    }
}

/// Keys and values.
pub(super) struct InMemory(MemoryKv);

impl InMemory {
    pub(super) fn new() -> Self {
        Self(MemoryKv::new(ModelStore::new().now()))
    }
}

impl Fixture for InMemory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(KvStore::new(self.0.clone()))
    }

    fn now(&self) -> StoreTime {
        self.0.now()
    }

    fn set_clock(&self, to: StoreTime) {
        self.0.set_clock(to);
    }
}

/// A clock that stands still until it is set.
pub(crate) struct TurnedClock(Mutex<StoreTime>);

impl TurnedClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ModelStore::new().now()))
    }

    pub(crate) fn set(&self, to: StoreTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

impl Clock for TurnedClock {
    fn now(&self) -> StoreTime {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

pub(super) struct InSqlite {
    directory: tempfile::TempDir,
    clock: Arc<TurnedClock>,
}

impl InSqlite {
    pub(super) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            clock: Arc::new(TurnedClock::new()),
        }
    }
}

impl Fixture for InSqlite {
    fn store(&self) -> Box<dyn Store> {
        let path = self.directory.path().join("tokens.db");
        let clock = Box::new(Arc::clone(&self.clock));
        Box::new(SqliteStore::open_with_clock(&path, Duration::from_secs(10), clock).unwrap())
    }

    fn now(&self) -> StoreTime {
        self.clock.now()
    }

    fn set_clock(&self, to: StoreTime) {
        self.clock.set(to);
    }
}

pub(super) struct InPostgres {
    database: Database<'static>,
    clock: TurnedClock,
}

/// The table that [`InPostgres`] takes its time from.
pub(super) const TURNED: &str = "SELECT now, now_epoch FROM public.turned LIMIT 1";

impl InPostgres {
    pub(super) fn new() -> Self {
        let this = Self {
            database: Server::shared().database(),
            clock: TurnedClock::new(),
        };
        this.database
            .sql("CREATE TABLE turned (now timestamptz NOT NULL, now_epoch text NOT NULL)");
        this.set_clock(this.clock.now());
        this
    }
}

impl Fixture for InPostgres {
    fn store(&self) -> Box<dyn Store> {
        let settings = settings(&self.database.url(), "conformance").unwrap();
        let mut store = PostgresStore::new(settings, Duration::from_secs(10)).with_clock(TURNED);
        store.init().unwrap();
        Box::new(store)
    }

    fn now(&self) -> StoreTime {
        self.clock.now()
    }

    fn set_clock(&self, to: StoreTime) {
        let wall = to.stamp.wall.0;
        let epoch = to.epoch.0.replace('\'', "''");
        self.clock.set(StoreTime {
            stamp: self.as_kept(to.stamp),
            ..to
        });
        self.database.sql(&format!(
            "BEGIN; DELETE FROM turned; INSERT INTO turned
             VALUES ('epoch'::timestamptz + {wall} * interval '1 ms', '{epoch}'); COMMIT"
        ));
    }

    fn as_kept(&self, stamp: Stamp) -> Stamp {
        Stamp {
            tick_ms: stamp.wall.0,
            ..stamp
        }
    }
}

pub(super) struct InMysql {
    database: mysql::test_server::Database<'static>,
    clock: TurnedClock,
}

impl InMysql {
    /// On MariaDB or MySQL.
    pub(super) fn on(server: &'static mysql::test_server::Server) -> Self {
        let this = Self {
            database: server.database(),
            clock: TurnedClock::new(),
        };
        this.database.sql(
            "CREATE TABLE turned (now datetime(6) NOT NULL, now_epoch varchar(300) NOT NULL)
             COLLATE utf8mb4_bin",
        );
        this.set_clock(this.clock.now());
        this
    }
}

impl Fixture for InMysql {
    fn store(&self) -> Box<dyn Store> {
        let settings = mysql::settings(&self.database.url(), "conformance").unwrap();
        let mut store = MysqlStore::new(settings, Duration::from_secs(10)).with_clock("turned");
        store.init().unwrap();
        Box::new(store)
    }

    fn now(&self) -> StoreTime {
        self.clock.now()
    }

    fn set_clock(&self, to: StoreTime) {
        let wall = to.stamp.wall.0;
        let epoch = to.epoch.0.replace('\'', "''");
        self.clock.set(StoreTime {
            stamp: self.as_kept(to.stamp),
            ..to
        });
        self.database.sql(&format!(
            "BEGIN; DELETE FROM turned; INSERT INTO turned
             VALUES (TIMESTAMP'1970-01-01 00:00:00' + INTERVAL {wall} * 1000 MICROSECOND, '{epoch}');
             COMMIT"
        ));
    }

    fn as_kept(&self, stamp: Stamp) -> Stamp {
        Stamp {
            tick_ms: stamp.wall.0,
            ..stamp
        }
    }
}

pub(super) struct InRedis {
    prefix: String,
    clock: TurnedClock,
}

/// A clock that a key sets.
const TURNED_IN_REDIS: &str = "
local function clock()
  local turned = redis.call('HMGET', ARGV[1] .. 'turned', 'now', 'epoch')
  return turned[1], turned[2]
end
";

impl InRedis {
    pub(super) fn new() -> Self {
        let this = Self {
            prefix: RedisServer::prefix(),
            clock: TurnedClock::new(),
        };
        this.set_clock(this.clock.now());
        this
    }
}

impl Fixture for InRedis {
    fn store(&self) -> Box<dyn Store> {
        let url = format!("{}?prefix={}", RedisServer::shared().url(), self.prefix);
        let settings = RedisSettings::read(&url, |_| None).unwrap();
        let kv = RedisKv::new(settings, Duration::from_secs(10), "conformance");
        Box::new(KvStore::new(kv.with_clock(TURNED_IN_REDIS)))
    }

    fn now(&self) -> StoreTime {
        self.clock.now()
    }

    fn set_clock(&self, to: StoreTime) {
        let key = format!("{{{}}}:turned", self.prefix);
        let wall = to.stamp.wall.0.to_string();
        let words = ["HSET", &key, "now", &wall, "epoch", &to.epoch.0];
        RedisServer::shared().cli(&words);
        self.clock.set(StoreTime {
            stamp: self.as_kept(to.stamp),
            ..to
        });
    }

    fn as_kept(&self, stamp: Stamp) -> Stamp {
        Stamp {
            tick_ms: stamp.wall.0,
            ..stamp
        }
    }

    /// As long as the server has been up.
    fn when_new(&self) -> (Served, Doubt) {
        let info = RedisServer::shared().cli(&[
            "HGET",
            &format!("{{{}}}:incarnation", self.prefix),
            "document",
        ]);
        let note: serde_json::Value = serde_json::from_str(&info).unwrap();
        let served = Duration::from_millis(note["served"].as_u64().unwrap());
        (Served::For(served), Doubt::Unnoted)
    }
}

/// A cluster, which cannot prove that it has no past.
pub(super) struct InCluster {
    /// A store, with this clock.
    open: Box<dyn Fn(Turned) -> Box<dyn Store> + Send + Sync>,
    clock: Arc<TurnedClock>,
}

impl InCluster {
    pub(super) fn of_etcd() -> Self {
        let url = EtcdCluster::shared().url();
        Self::new(move |clock| {
            let settings = EtcdSettings::read(&url, |_| None).unwrap();
            let kv = EtcdKv::over(settings, Duration::from_secs(10));
            Box::new(KvStore::new(kv.with_clock(clock)))
        })
    }

    pub(super) fn of_zookeeper() -> Self {
        let url = ZkCluster::shared().url();
        Self::new(move |clock| {
            let settings = ZkSettings::read(&url).unwrap();
            let kv = ZkKv::over(settings, Duration::from_secs(10));
            Box::new(KvStore::new(kv.with_clock(clock)))
        })
    }

    /// Three independent servers of Redis.
    pub(super) fn of_quorum() -> Self {
        let url = Quorum::shared().url(&RedisServer::prefix());
        Self::new(move |clock| {
            let settings = RedisSettings::read(&url, |_| None).unwrap();
            let limit = Duration::from_secs(10);
            let kv = QuorumKv::new(settings, limit, "conformance").unwrap();
            Box::new(KvStore::new(kv.with_clock(clock)))
        })
    }

    fn new(open: impl Fn(Turned) -> Box<dyn Store> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            clock: Arc::new(TurnedClock::new()),
        }
    }
}

impl Fixture for InCluster {
    fn store(&self) -> Box<dyn Store> {
        let clock = Arc::clone(&self.clock);
        (self.open)(Arc::new(move || clock.now()))
    }

    fn now(&self) -> StoreTime {
        self.clock.now()
    }

    fn set_clock(&self, to: StoreTime) {
        self.clock.set(to);
    }

    fn when_new(&self) -> (Served, Doubt) {
        (Served::NOTHING, Doubt::Unnoted)
    }
}
