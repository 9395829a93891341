//! Checks, while a job runs, whether another server of the list accepts writes as well.
//!
//! No client can prevent two writable servers: it uses the first. So the holder of a token checks the
//! others from time to time, each over a separate connection that is closed afterwards. Only if one of
//! them accepts writes, the server in use is checked too, last: after a switch-over it does not accept
//! them any more by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::host::{Host, Settings};
use crate::store::Lookout;

/// The longest wait for a server: a late one is not reported.
const LONGEST: Duration = Duration::from_secs(3);

/// Settings whose server can be asked which one it is.
pub(in crate::store) trait Identify: Settings {
    /// The server's own id if it accepts writes, else an empty text. `None`: it does not answer in time.
    fn writable(self, limit: Duration) -> Option<String>;
}

/// The servers of a store, one of them in use.
pub(in crate::store) struct OtherServers<S> {
    settings: S,
    /// The index of the host in use.
    used: Arc<AtomicUsize>,
    limit: Duration,
}

impl<S: Identify> OtherServers<S> {
    /// `None` if the list has one server only.
    pub(in crate::store) fn of(
        settings: &S,
        used: Arc<AtomicUsize>,
        timeout: Duration,
    ) -> Option<Self> {
        (settings.servers().hosts.len() > 1).then(|| Self {
            settings: settings.clone(),
            used,
            limit: timeout.min(LONGEST),
        })
    }

    fn writable(&self, host: &Host) -> Option<String> {
        self.settings.only(host).writable(self.limit)
    }
}

impl<S: Identify + Send + Sync> Lookout for OtherServers<S> {
    fn primaries(&self) -> Option<Vec<String>> {
        let used = self.used.load(Ordering::Relaxed);
        let hosts = &self.settings.servers().hosts;
        // Their ids and names: two names may lead to one server.
        let mut writable: Vec<(String, String)> = Vec::new();
        let mut are_known = true;
        for (_, host) in hosts.iter().enumerate().filter(|(index, _)| *index != used) {
            match self.writable(host) {
                Some(id) if id.is_empty() || writable.iter().any(|(known, _)| *known == id) => {}
                Some(id) => writable.push((id, host.to_string())),
                None => are_known = false,
            }
        }
        if writable.is_empty() {
            return are_known.then(Vec::new);
        }
        let own = hosts.get(used)?;
        let id = self.writable(own)?;
        // The server in use may have another name in the list.
        writable.retain(|(other, _)| *other != id);
        if id.is_empty() || writable.is_empty() {
            return are_known.then(Vec::new);
        }
        let others = writable.into_iter().map(|(_, name)| name);
        Some([own.to_string()].into_iter().chain(others).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::net::host::Servers;

    /// Servers whose names are their ids; one whose name begins with `r` is read-only, and `x` is silent.
    #[derive(Clone)]
    struct Named(Servers);

    impl Settings for Named {
        fn servers(&self) -> &Servers {
            &self.0
        }

        fn servers_mut(&mut self) -> &mut Servers {
            &mut self.0
        }

        fn name(&self) -> String {
            "named".into()
        }
    }

    impl Identify for Named {
        fn writable(self, _: Duration) -> Option<String> {
            let name = self.0.hosts[0].to_string();
            match name.as_str() {
                "x" => None,
                name if name.starts_with('r') => Some(String::new()),
                name => Some(name.to_owned()),
            }
        }
    }

    fn primaries(names: &[&str], used: usize) -> Option<Vec<String>> {
        let hosts = names.iter().map(|name| Host::unix(*name)).collect();
        let settings = Named(Servers::new(hosts));
        OtherServers::of(&settings, Arc::new(used.into()), LONGEST)?.primaries()
    }

    #[test]
    fn another_primary_is_found_and_another_name_is_none() {
        let found = |names: &[&str]| Some(names.iter().map(|it| (*it).to_owned()).collect());
        for (names, used, expected) in [
            (&["a", "b"][..], 0, found(&["a", "b"])),
            (&["a", "b"], 1, found(&["b", "a"])),
            (&["a", "a", "b"], 0, found(&["a", "b"])),
            (&["a", "b", "b"], 0, found(&["a", "b"])),
            (&["a", "x", "b"], 0, found(&["a", "b"])),
            (&["a", "a"], 0, found(&[])),
            (&["a", "r"], 0, found(&[])),
            (&["r", "a"], 0, found(&[])),
            (&["a", "x"], 0, None),
            (&["x", "a"], 0, None),
            (&["a"], 0, None),
        ] {
            assert_eq!(primaries(names, used), expected, "{names:?}");
        }
    }
}
