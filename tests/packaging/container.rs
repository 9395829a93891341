//! The container of `examples/kubernetes/` without a cluster: the binary alone in an empty
//! root that can only be read, as process 1 and a user without a name.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;

use crate::kubernetes::{Container, nightly, scheduler, sidecar};
use crate::programs::build;
use crate::server::{Database, Server};
use crate::support::{Line, Store, signal, until};

/// What a container runtime does: the image's files, those that the kubelet adds, and no
/// rights. The root's folder, tokenrun, the job, and the folder with the other files: those of
/// the image, and what containers of one pod share.
const RUNTIME: &str = r#"
set -e
mount -t tmpfs root "$1"
cd "$1"
mkdir -p etc/ssl/certs opt/etl proc run/secrets/tokenrun tmp usr/local/bin
mkdir -p run/tokenrun
cp "$2" usr/local/bin/tokenrun
cp "$3" opt/etl/run.sh
cp -a "$4/image/." .
[ ! -e bin/sh ] || { mkdir dev; touch dev/null; mount --bind /dev/null dev/null; }
cp "$4/hosts" "$4/resolv.conf" etc
cp "$4/ca.crt" etc/ssl/certs/ca-certificates.crt
cp "$4/store" run/secrets/tokenrun
chown -R 0:65532 run/secrets
chmod 0440 run/secrets/tokenrun/store
mount -t proc proc proc
mount -o remount,ro .
mount -t tmpfs tmp tmp
mount --bind "$4/runtime" run/tokenrun
shift 4
exec setpriv --no-new-privs chroot --userspec=65532:65532 --groups=65532 . "$@"
"#;

/// A name server that knows one name, as a cluster's does.
pub(crate) struct NameServer {
    address: String,
}

impl NameServer {
    pub(crate) fn start(name: &'static str) -> Self {
        // Addresses of this host are plenty: tests may run beside each other.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let id = std::process::id();
        let number = 53 + NUMBER.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.{number}.{}.{}", id >> 8 & 255, id & 255);
        let socket = UdpSocket::bind((address.as_str(), 53)).expect("a port 53 is free");
        std::thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, asker)) = socket.recv_from(&mut query) {
                let _ = socket.send_to(&answer(&query[..length], name), asker);
            }
        });
        Self { address }
    }

    /// As the kubelet writes it.
    pub(crate) fn resolv_conf(&self) -> String {
        let search = "default.svc.cluster.local svc.cluster.local cluster.local";
        format!(
            "search {search}\nnameserver {}\noptions ndots:5\n",
            self.address
        )
    }
}

/// The answer to a query (RFC 1035, section 4): 127.0.0.1, nothing, or that there is no such
/// name.
fn answer(query: &[u8], name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).unwrap();
        [&[length], label.as_bytes()].concat()
    });
    let wanted: Vec<u8> = labels.chain([0]).collect();
    let asked = &query[12..];
    let name_end = asked.iter().position(|byte| *byte == 0).unwrap() + 1;
    let question = &asked[..name_end + 4];
    let is_it = question[..name_end] == wanted;
    let has_address = is_it && question[name_end..][..2] == [0, 1];
    let mut answer = query[..2].to_vec();
    let code = if is_it { 0 } else { 3 };
    answer.extend([
        0x81,
        0x80 | code,
        0,
        1,
        0,
        u8::from(has_address),
        0,
        0,
        0,
        0,
    ]);
    answer.extend(question);
    if has_address {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    answer
}

/// An authority, and the server's certificate for this name.
pub(crate) fn certificates(folder: &Path, name: &str) {
    let script = format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=ca -keyout ca.key -out ca.crt
         openssl req -newkey rsa:2048 -nodes -subj /CN=db -keyout server.key -out server.csr
         echo subjectAltName=DNS:{name} > ext
         openssl x509 -req -days 9 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial \
             -extfile ext -out server.crt"
    );
    let mut command = Command::new("sh");
    crate::output_of(command.args(["-ec", &script]).current_dir(folder));
}

/// A server that speaks TLS with them.
fn server(folder: &Path) -> Server {
    let server = Server::start(&[]);
    for file in ["server.crt", "server.key"] {
        let to = server.data().join(file);
        fs::copy(folder.join(file), &to).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&to, mode).unwrap();
        let data = fs::metadata(server.data()).unwrap();
        let (user, group) = owner(&data);
        std::os::unix::fs::chown(&to, Some(user), Some(group)).unwrap();
    }
    server.sql("postgres", "ALTER SYSTEM SET ssl = on");
    server.ctl(&["-w", "restart"]);
    server.sql(
        "postgres",
        "CREATE ROLE etl LOGIN SUPERUSER PASSWORD 'secret'",
    );
    server
}

fn owner(metadata: &fs::Metadata) -> (u32, u32) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.uid(), metadata.gid())
}

/// Where containers run.
pub(crate) struct Site {
    store: Store,
}

impl Site {
    pub(crate) fn new() -> Self {
        let store = Store::new();
        fs::write(
            store.file("hosts"),
            "127.0.0.1\tlocalhost\n127.0.0.1\tdb-host\n",
        )
        .unwrap();
        fs::write(store.file("resolv.conf"), "").unwrap();
        fs::write(store.file("ca.crt"), "").unwrap();
        fs::create_dir(store.file("image")).unwrap();
        // As the kubelet makes an emptyDir of a pod that has an fsGroup.
        fs::create_dir(store.file("runtime")).unwrap();
        std::os::unix::fs::chown(store.file("runtime"), None, Some(65532)).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o2777);
        fs::set_permissions(store.file("runtime"), mode).unwrap();
        Self { store }
    }

    /// Where the test's own files are.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// This container, on the node of this name.
    pub(crate) fn run(&self, node: &str, url: &str, container: &Container) -> Line {
        fs::write(self.store.file("store"), url).unwrap();
        let root = self.store.file(&format!("root-{node}"));
        fs::create_dir_all(&root).unwrap();
        static JOB: OnceLock<PathBuf> = OnceLock::new();
        let job = JOB.get_or_init(|| build("contained"));
        let unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child"];
        let mut line = self.store.bare(&[]).under(&unshare);
        line = line.under(&["--propagation", "private", "sh", "-c", RUNTIME, "sh"]);
        line = line.under(&[root.to_str().unwrap(), crate::support::TOKENRUN]);
        line = line.under(&[job.to_str().unwrap(), self.store.path().to_str().unwrap()]);
        for (name, value) in &container.environment {
            line = line.env(name, value);
        }
        // As container runtimes set it for a user without a name.
        line = line
            .env("HOME", "/")
            .env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        let words: Vec<&str> = container.command.iter().map(String::as_str).collect();
        line.program(words[0]).with(&words[1..])
    }

    /// A shell in the image, for the commands of an agent, and one of these.
    pub(crate) fn add_shell(&self, command: &str, script: &str) {
        let image = self.store.file("image");
        let script_path = image.join(command.trim_start_matches('/'));
        let lines = "cd \"$1\"; mkdir -p bin \"$(dirname \"$2\")\"; cp /bin/dash bin/sh
             cp --parents -L $(ldd /bin/dash | grep -o '/[^ ]*') .
             cat > \"$2\"; chmod 755 \"$2\"";
        let mut make = Command::new("sh");
        make.args(["-ec", lines, "sh"]).args([&image, &script_path]);
        let input = self.store.file("script");
        fs::write(&input, script).unwrap();
        crate::output_of(make.stdin(fs::File::open(input).unwrap()));
    }
}

/// The container with other values of these options.
pub(crate) fn with(mut container: Container, options: &[&str]) -> Container {
    for option in options {
        let begin = &option[..=option.find('=').unwrap()];
        let end = container.command.iter().position(|word| word == "--");
        let end = end.unwrap_or(container.command.len());
        match container.command[..end]
            .iter()
            .position(|it| it.starts_with(begin))
        {
            Some(at) => container.command[at] = (*option).to_owned(),
            None => container.command.insert(end, (*option).to_owned()),
        }
    }
    container
}

/// The container with another job.
pub(crate) fn with_job(mut container: Container, job: &[&str]) -> Container {
    let end = container
        .command
        .iter()
        .position(|word| word == "--")
        .unwrap();
    container.command.truncate(end + 1);
    container
        .command
        .extend(job.iter().copied().map(str::to_owned));
    container
}

/// Durations with which a takeover takes some seconds.
const HASTY: [&str; 5] = [
    "--heartbeat=1s",
    "--takeover-after=10s",
    "--kill-grace=300ms",
    "--store-timeout=3s",
    "--head-start=100ms",
];

fn url(database: &Database<'_>, host: &str, rest: &str) -> String {
    let (port, name) = (database.server.port(), &database.name);
    format!("postgres://etl:secret@{host}:{port}/{name}?{rest}")
}

/// Zombies among the children of a process.
fn zombies(parent: i32) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
    let of_parent = |stat: &String| {
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.starts_with(&format!(" Z {parent} ")))
    };
    stats.filter(of_parent).collect()
}

#[test]
fn needs_root_two_clusters_run_the_manifests_container() {
    let site = Site::new();
    certificates(site.store.path(), "db.example.com");
    let names = NameServer::start("db.example.com");
    fs::write(site.store.file("resolv.conf"), names.resolv_conf()).unwrap();
    let server = server(site.store.path());
    let database = server.database();
    // Just as in store.yaml, but for the port and the database's name.
    let url = url(
        &database,
        "db.example.com",
        "sslmode=verify-full&sslrootcert=system",
    );

    let east = site.run("east", &url, &nightly("east")).start();
    let begun = east.until_says("job: begun");
    assert_eq!(begun, "job: begun east bind --full as 65532:65532");
    let first = east.guard();
    until("orphans are reaped", || {
        let left = crate::support::children(first)
            .into_iter()
            .chain([first])
            .flat_map(zombies)
            .collect::<Vec<_>>();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    });

    let hurried = with(nightly("west"), &["--wait=0"]);
    let west = site.run("west", &url, &hurried).end().with_code(0);
    let said = west.messages();
    assert_eq!(
        said.len(),
        2,
        "that it waits, and that it was refused: {said:?}"
    );
    for words in ["\"nightly\" is held by east", "db.example.com"] {
        assert!(said[1].contains(words), "{said:?}");
    }
    assert!(!west.stderr.contains("secret"), "{}", west.stderr);

    // The kubelet ends the pod.
    signal(first, Signal::SIGTERM);
    let ended = east.end().with_code(9);
    assert!(ended.stderr.contains("job: cleaned up"), "{}", ended.stderr);
    let row = database.sql("SELECT state, client_bound FROM tokenrun.tokens");
    assert_eq!(row, "idle|east");
}

#[test]
fn needs_root_host_names_are_found_in_an_empty_root() {
    let site = Site::new();
    let server = Server::start(&[]);
    server.sql("postgres", "CREATE ROLE etl LOGIN SUPERUSER");
    let database = server.database();
    let version = ["/usr/local/bin/tokenrun", "--version"];
    for host in ["localhost", "db-host", "127.0.0.1"] {
        let url = url(&database, host, "sslmode=disable");
        let keyed = with_job(
            with(nightly("east"), &[&format!("--once={host}")]),
            &version,
        );
        let ended = site.run("east", &url, &keyed).end().with_code(0);
        assert!(ended.stdout.starts_with("tokenrun "), "{ended:?}");
        assert_eq!(ended.stderr, "");
    }
    let url = url(&database, "no-such-host", "sslmode=disable");
    let hurried = with(nightly("east"), &["--wait=0"]);
    let ended = site.run("east", &url, &hurried).end().with_code(69);
    assert!(ended.stderr.contains("no-such-host"), "{}", ended.stderr);
}

#[test]
fn needs_root_a_night_runs_once_and_a_pod_that_died_is_made_up_for() {
    let site = Site::new();
    let server = Server::start(&[]);
    server.sql("postgres", "CREATE ROLE etl LOGIN SUPERUSER");
    let database = server.database();
    let url = url(&database, "127.0.0.1", "sslmode=disable");
    let in_time = |cluster| with(nightly(cluster), &HASTY);

    // The first pod dies in the middle, as when its memory is up. The Job starts another, of
    // the same client, while the token still looks held.
    let first = site.run("east", &url, &in_time("east")).start();
    first.until_says("job: begun east bind");
    signal(first.guard(), Signal::SIGKILL);
    first.end();
    let version = ["/usr/local/bin/tokenrun", "--version"];
    let second = site.run("east", &url, &with_job(in_time("east"), &version));
    let second = second.end().with_code(0);
    assert!(second.stdout.starts_with("tokenrun "), "{second:?}");

    // A cluster whose clock is late.
    let west = site.run("west", &url, &in_time("west")).end().with_code(0);
    west.says(&["nightly-29728920", "done"]);
    let runs = database.sql("SELECT count(*) FROM tokenrun.runs");
    assert_eq!(runs, "2");
}

#[test]
fn needs_root_an_agent_has_its_command_run_when_the_token_comes_and_goes() {
    let site = Site::new();
    site.add_shell(
        "/opt/scheduler/role.sh",
        "#!/bin/sh\necho \"role: $1\" >&2\n",
    );
    let server = Server::start(&[]);
    server.sql("postgres", "CREATE ROLE etl LOGIN SUPERUSER");
    let database = server.database();
    let url = url(&database, "127.0.0.1", "sslmode=disable");

    let agent = site.run("scheduler-0", &url, &scheduler()).start();
    agent.until_says("role: gain");
    signal(agent.guard(), Signal::SIGTERM);
    let ended = agent.end().with_code(0);
    assert!(ended.stderr.contains("role: loss"), "{}", ended.stderr);
    let row = database.sql("SELECT state FROM tokenrun.tokens");
    assert_eq!(row, "free");
}

#[test]
fn needs_root_a_service_asks_the_agent_in_the_container_beside_it() {
    let site = Site::new();
    let server = Server::start(&[]);
    server.sql("postgres", "CREATE ROLE etl LOGIN SUPERUSER");
    let database = server.database();
    let url = url(&database, "127.0.0.1", "sslmode=disable");
    let (agent, service) = sidecar();

    site.run("service", &url, &service).end().with_code(75);
    let agent = site.run("agent", &url, &agent).start();
    until("the service may act", || {
        match site.run("service", &url, &service).end() {
            ended if ended.code == Some(0) => Ok(()),
            ended => Err(format!("{ended:?} {}", agent.stderr())),
        }
    });
    signal(agent.guard(), Signal::SIGTERM);
    agent.end().with_code(0);
    site.run("service", &url, &service).end().with_code(75);
}
