//! etcd, for `etcdctl lock`.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Folder;

/// A server of its own.
pub(crate) struct Etcd {
    child: Child,
    client: Client,
}

/// How it is asked.
#[derive(Clone)]
pub(crate) struct Client {
    endpoint: String,
}

impl Client {
    fn command(&self) -> Command {
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.endpoint]);
        command
    }

    /// `etcdctl lock`, before the command. The lease is as long as this.
    pub(crate) fn lock(&self, group: &str, lease: Duration) -> Command {
        let mut command = self.command();
        command.arg(format!("--ttl={}", lease.as_secs()));
        command.args(["lock", group, "--"]);
        command
    }
}

impl Etcd {
    /// None where etcd is not installed.
    pub(crate) fn start(folder: &Folder) -> Option<Self> {
        let (client, peer) = (free_port(), free_port());
        let endpoint = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(folder.file("etcd"))
            .args(["--listen-client-urls", &endpoint])
            .args(["--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let client = Client { endpoint };
        let etcd = Self { child, client };
        for _ in 0..100 {
            let health = etcd
                .client
                .command()
                .args(["endpoint", "health"])
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status();
            match health {
                Ok(status) if status.success() => return Some(etcd),
                Ok(_) => std::thread::sleep(Duration::from_millis(100)),
                Err(_) => return None,
            }
        }
        None
    }

    /// A store of tokenrun's on it.
    pub(crate) fn url(&self) -> String {
        self.client.endpoint.replacen("http", "etcd", 1)
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It is this bench's own child.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has one").port()
}
