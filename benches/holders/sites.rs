//! The stores that are held on, each with a server of the bench's own.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::processes::children;
use crate::common::{Folder, init, settle};

// The fixtures for the tests; not all of each is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../../src/store/etcd/test_server.rs"]
mod etcd_server;
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../../src/store/mysql/test_server.rs"]
mod mysql_server;
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../../src/store/postgres/test_server.rs"]
mod postgres_server;
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../../src/store/redis/test_server.rs"]
mod redis_server;
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../../src/store/zookeeper/test_server.rs"]
mod zookeeper_server;

/// How many holders are simulated.
const SIMULATED: usize = 10_000;

/// A store that is held on.
pub(crate) struct Site<'a> {
    pub(crate) name: &'static str,
    /// What the holders get.
    pub(crate) url: String,
    /// What the watch gets: past a pooler.
    pub(crate) direct: String,
    /// The pids of the server, and of what is in between.
    pub(crate) servers: Vec<Box<dyn Fn() -> Vec<u32>>>,
    /// How many connections the holders have, where they give them back between their calls.
    pub(crate) connections: Option<Box<dyn Fn() -> usize + 'a>>,
    /// How many holders are simulated in place of real ones.
    pub(crate) simulated: Option<usize>,
}

/// Has each wanted store's server run, and gives the store to `hold`.
pub(crate) fn with_each_site(
    folder: &Folder,
    wanted: impl Fn(&str) -> bool,
    mut hold: impl FnMut(&Site<'_>),
) {
    if wanted("sqlite") {
        let file = folder.file("holders.db").display().to_string();
        hold(&Site {
            name: "SQLite",
            direct: file.clone(),
            url: file,
            servers: Vec::new(),
            connections: None,
            simulated: None,
        });
    }
    if wanted("postgres") {
        through_pooler(
            "PostgreSQL, through PgBouncer with 20 connections",
            None,
            &mut hold,
        );
    }
    if wanted("mariadb") {
        // The tests' server does not wait for its disk.
        let limit = ["max_connections = 100", "innodb_flush_method = fsync"];
        let server = mysql_server::Server::start(&limit);
        let database = server.database();
        let url = database.url();
        let pid = server.pid().as_raw().cast_unsigned();
        // Without the one that counts, and that of the listings.
        let text = "SELECT COUNT(*) - 2 FROM information_schema.processlist WHERE user = 'root'";
        let connections = || database.sql(text).trim().parse().expect("a number");
        hold(&Site {
            name: "MariaDB with 100 connections",
            direct: url.clone(),
            url,
            servers: vec![Box::new(move || vec![pid])],
            connections: Some(Box::new(connections)),
            simulated: None,
        });
    }
    if wanted("redis") {
        let server = redis_server::Server::start(&["maxclients 2000"]);
        let url = server.url();
        settle(folder, &server.cli(&["INFO", "server"]), &url);
        let info = server.cli(&["INFO", "server"]);
        let pid = info
            .lines()
            .find_map(|line| line.strip_prefix("process_id:"));
        let pid: u32 = pid.and_then(|it| it.trim().parse().ok()).expect("a pid");
        hold(&Site {
            name: "Redis",
            direct: url.clone(),
            url,
            servers: vec![Box::new(move || vec![pid])],
            connections: None,
            simulated: None,
        });
    }
    let mut on_cluster = |name, url: String, pid| {
        init(folder, &url);
        hold(&Site {
            name,
            direct: url.clone(),
            url,
            servers: vec![Box::new(move || vec![pid])],
            connections: None,
            simulated: None,
        });
    };
    if wanted("etcd") {
        let cluster = etcd_server::Cluster::start(1);
        on_cluster("etcd", cluster.url(), cluster.pid(0));
    }
    if wanted("zookeeper") {
        // All thousand come from one address.
        let cluster = zookeeper_server::Cluster::start_with(1, "maxClientCnxns=0\n");
        on_cluster("ZooKeeper", cluster.url(), cluster.pid(0));
    }
    if wanted("simulated") {
        let name = "Simulated holders on PostgreSQL, through PgBouncer with 20 connections";
        through_pooler(name, Some(SIMULATED), &mut hold);
    }
}

fn through_pooler(name: &'static str, simulated: Option<usize>, hold: &mut impl FnMut(&Site<'_>)) {
    let server = postgres_server::Server::start(&["max_connections = 100", "fsync = on"]);
    let database = server.database();
    let pooler = Pooler::start(&server);
    let (pid, own) = (server.pid().cast_unsigned(), pooler.process.id());
    hold(&Site {
        name,
        url: pooler.url(&database.name),
        direct: database.url(),
        servers: vec![
            Box::new(move || with_children(pid)),
            Box::new(move || vec![own]),
        ],
        connections: None,
        simulated,
    });
}

fn with_children(pid: u32) -> Vec<u32> {
    let mut all = children(pid);
    all.push(pid);
    all
}

/// PgBouncer, with 20 connections to the server.
struct Pooler {
    process: Child,
    port: u16,
}

impl Pooler {
    fn start(server: &postgres_server::Server) -> Self {
        let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = probe.local_addr().unwrap().port();
        drop(probe);
        // In the server's own folder, which goes with it.
        let folder = server.socket();
        let file = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = user=postgres host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 20\nmax_client_conn = 12000\nlogfile = {}/pgbouncer.log\n",
            folder.display(),
            server.port(),
            folder.display()
        );
        std::fs::write(&file, text).expect("it is written");
        let programs = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let found = programs.into_iter().find(|path| Path::new(path).exists());
        let found = found.expect("pgbouncer is missing: install it");
        // The signal for a parent's death comes after the change of user, which clears it.
        let mut command = postgres_server::Server::command(Path::new("setpriv"));
        command.args([
            "--pdeathsig",
            "KILL",
            "prlimit",
            "--nofile=13000",
            found,
            "-q",
        ]);
        let quiet = command
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = quiet.spawn().expect("it starts");
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "the pooler does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, port }
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
