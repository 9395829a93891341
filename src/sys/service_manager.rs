//! The messages of a service to its manager, as in sd_notify(3): datagrams to the socket that the
//! environment names. They never block: what the manager does not take at once is dropped.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use super::process;

/// Variables of the manager that a program started by the service must not use.
pub const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// The manager of this service.
#[derive(Debug)]
pub struct ServiceManager {
    address: SocketAddr,
    /// How often the manager expects a sign that the service is at work.
    watchdog: Option<Duration>,
    /// When the last such sign was sent.
    heard_at: Option<Instant>,
}

impl ServiceManager {
    /// The manager that the environment names, if there is one.
    pub fn of_environment() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name);
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_ours = variable("WATCHDOG_PID").is_none()
            || number("WATCHDOG_PID") == u64::try_from(process::pid()).ok();
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_ours);
        Some(Self {
            address: address(&variable("NOTIFY_SOCKET")?)?,
            // Half of it, as sd_watchdog_enabled(3) recommends.
            watchdog: watchdog.map(|limit| Duration::from_micros(limit / 2)),
            heard_at: None,
        })
    }

    /// Reports that the service is at work: that it is ready, the first time, and then the
    /// watchdog's sign, when due. To be called every second.
    pub fn at_work(&mut self) {
        let due = match (self.heard_at, self.watchdog) {
            (None, _) => true,
            (Some(heard_at), Some(every)) => heard_at.elapsed() >= every,
            (Some(_), None) => false,
        };
        if due {
            let ready = if self.heard_at.is_none() {
                "READY=1\n"
            } else {
                ""
            };
            self.tell(&format!("{ready}WATCHDOG=1"));
            self.heard_at = Some(Instant::now());
        }
    }

    /// Reports what the service is doing, in a line for people.
    pub fn status(&self, text: &str) {
        let line: String = text.chars().filter(|c| !c.is_control()).collect();
        self.tell(&format!("STATUS={line}"));
    }

    fn tell(&self, message: &str) {
        // A new socket each time: messages are rare, and there is no socket to lose.
        let sent = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.send_to_addr(message.as_bytes(), &self.address)
        });
        // A manager that does not listen gets no message.
        drop(sent);
    }
}

/// A path, or a name without a file after an `@`.
fn address(socket: &OsStr) -> Option<SocketAddr> {
    match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(socket).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(address: SocketAddr, watchdog: Option<Duration>) -> ServiceManager {
        ServiceManager {
            address,
            watchdog,
            heard_at: None,
        }
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 200];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_hears_that_the_service_is_ready_once_and_at_work_when_due() {
        let name = format!("tokenrun-test-{}", process::pid());
        let address = address(OsStr::new(&format!("@{name}"))).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut manager = manager(address.clone(), Some(Duration::ZERO));
        manager.at_work();
        assert_eq!(heard(&socket), "READY=1\nWATCHDOG=1");
        manager.at_work();
        assert_eq!(heard(&socket), "WATCHDOG=1");
        manager.watchdog = None;
        manager.at_work();
        manager.status("waits\nin line");
        assert_eq!(heard(&socket), "STATUS=waitsin line");
        assert!(socket.recv(&mut [0; 9]).is_err());
        // Without a listener nothing happens.
        drop(socket);
        manager.status("alone");
    }

    #[test]
    fn other_kinds_of_sockets_are_ignored() {
        assert!(address(OsStr::new("vsock:2:3")).is_none());
        assert!(address(OsStr::new("")).is_none());
        assert!(address(OsStr::new("/run/x")).is_some());
    }
}
