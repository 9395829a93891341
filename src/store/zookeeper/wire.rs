//! ZooKeeper's protocol: requests and replies as bytes. Pure.
//!
//! Each frame is its length and a record; numbers are big-endian, and a text or a buffer has its length before it (jute).
//! The kinds and codes are those of `org.apache.zookeeper.ZooDefs` and `KeeperException`.

/// A request for a connection's session has no header.
const PROTOCOL: i32 = 0;

/// The number of a reply that answers no request: a watch has fired.
pub(super) const WATCH: i32 = -1;
/// The number of a ping, and of its reply.
pub(super) const PING: i32 = -2;
/// The number of a log-in, and of its reply.
pub(super) const LOGIN: i32 = -4;

const ALL_RIGHTS: i32 = 31;
const PERSISTENT: i32 = 0;
const CONTAINER: i32 = 4;
const ANY_VERSION: i32 = -1;

/// The codes of errors that are told apart.
pub(super) mod code {
    pub(in crate::store::zookeeper) const UNIMPLEMENTED: i32 = -6;
    pub(in crate::store::zookeeper) const NO_NODE: i32 = -101;
    pub(in crate::store::zookeeper) const NO_RIGHT: i32 = -102;
    pub(in crate::store::zookeeper) const BAD_VERSION: i32 = -103;
    pub(in crate::store::zookeeper) const NODE_EXISTS: i32 = -110;
    pub(in crate::store::zookeeper) const SESSION_EXPIRED: i32 = -112;
    pub(in crate::store::zookeeper) const BAD_RIGHTS: i32 = -114;
    pub(in crate::store::zookeeper) const LOGIN_FAILED: i32 = -115;
    pub(in crate::store::zookeeper) const SESSION_MOVED: i32 = -118;
    pub(in crate::store::zookeeper) const OVER_QUOTA: i32 = -125;
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// Makes a node, which this log-in alone may change if it has one.
    Create {
        path: String,
        data: Vec<u8>,
    },
    /// Makes a node that the server removes some time after its last child.
    CreateContainer {
        path: String,
    },
    Delete {
        path: String,
        version: Option<i32>,
    },
    Get {
        path: String,
    },
    Set {
        path: String,
        data: Vec<u8>,
        version: Option<i32>,
    },
    Children {
        path: String,
    },
    Rights {
        path: String,
    },
    Check {
        path: String,
        version: i32,
    },
    /// All of them, or none.
    Multi(Vec<Self>),
    /// Announces each change of a node, until the connection ends.
    Watch {
        path: String,
    },
    Ping,
    /// Logs in with `user:password`.
    LogIn {
        secret: String,
    },
    Close,
}

impl Request {
    const fn kind(&self) -> i32 {
        match self {
            Self::Create { .. } => 1,
            Self::Delete { .. } => 2,
            Self::Get { .. } => 4,
            Self::Set { .. } => 5,
            Self::Rights { .. } => 6,
            Self::Children { .. } => 8,
            Self::Ping => 11,
            Self::Check { .. } => 13,
            Self::Multi(_) => 14,
            Self::CreateContainer { .. } => 19,
            Self::LogIn { .. } => 100,
            Self::Watch { .. } => 106,
            Self::Close => -11,
        }
    }

    /// The node that it is about; empty without one.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Create { path, .. }
            | Self::CreateContainer { path }
            | Self::Delete { path, .. }
            | Self::Get { path }
            | Self::Set { path, .. }
            | Self::Children { path }
            | Self::Rights { path }
            | Self::Check { path, .. }
            | Self::Watch { path } => path,
            Self::Multi(all) => all.first().map_or("", Self::path),
            Self::Ping | Self::LogIn { .. } | Self::Close => "",
        }
    }

    /// The frame of this request. `owned`: new nodes belong to the log-in.
    pub(super) fn frame(&self, number: i32, owned: bool) -> Vec<u8> {
        let mut out = Out::default();
        out.int(number);
        out.int(self.kind());
        self.write(&mut out, owned);
        out.framed()
    }

    fn write(&self, out: &mut Out, owned: bool) {
        match self {
            Self::Create { path, data } => out.creation(path, data, owned, PERSISTENT),
            Self::CreateContainer { path } => out.creation(path, &[], owned, CONTAINER),
            Self::Delete { path, version } => {
                out.text(path);
                out.int(version.unwrap_or(ANY_VERSION));
            }
            Self::Get { path } | Self::Children { path } => {
                out.text(path);
                // Watches nothing.
                out.byte(0);
            }
            Self::Rights { path } => out.text(path),
            Self::Set {
                path,
                data,
                version,
            } => {
                out.text(path);
                out.buffer(data);
                out.int(version.unwrap_or(ANY_VERSION));
            }
            Self::Check { path, version } => {
                out.text(path);
                out.int(*version);
            }
            Self::Multi(all) => {
                for one in all {
                    out.header_in_multi(one.kind(), false);
                    one.write(out, owned);
                }
                out.header_in_multi(-1, true);
            }
            Self::Watch { path } => {
                out.text(path);
                // Persistent: it fires more than once.
                out.int(0);
            }
            Self::LogIn { secret } => {
                out.int(0);
                out.text("digest");
                out.buffer(secret.as_bytes());
            }
            Self::Ping | Self::Close => {}
        }
    }
}

/// The frame that asks for a session of so many milliseconds.
pub(super) fn greeting(timeout_ms: i32) -> Vec<u8> {
    let mut out = Out::default();
    out.int(PROTOCOL);
    out.long(0);
    out.int(timeout_ms);
    out.long(0);
    out.buffer(&[0; 16]);
    // A server without a quorum is of no use.
    out.byte(0);
    out.framed()
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn int(&mut self, number: i32) {
        self.0.extend(number.to_be_bytes());
    }

    fn long(&mut self, number: i64) {
        self.0.extend(number.to_be_bytes());
    }

    fn buffer(&mut self, bytes: &[u8]) {
        // Nothing that is sent is so long.
        self.int(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.0.extend(bytes);
    }

    fn text(&mut self, text: &str) {
        self.buffer(text.as_bytes());
    }

    fn creation(&mut self, path: &str, data: &[u8], owned: bool, kind: i32) {
        self.text(path);
        self.buffer(data);
        self.int(1);
        self.int(ALL_RIGHTS);
        let [scheme, id] = match owned {
            true => ["auth", ""],
            false => ["world", "anyone"],
        };
        self.text(scheme);
        self.text(id);
        self.int(kind);
    }

    fn header_in_multi(&mut self, kind: i32, is_last: bool) {
        self.int(kind);
        self.byte(is_last.into());
        self.int(-1);
    }

    fn framed(self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        [&length.to_be_bytes()[..], &self.0].concat()
    }
}

/// The data of a node that a reply tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// The transaction that made it.
    pub(super) created: i64,
    /// The transaction that changed it last.
    pub(super) changed: i64,
    /// When that was, by the leader's wall clock, in milliseconds.
    pub(super) at_ms: i64,
    /// Rises with each change of its data.
    pub(super) version: i32,
}

/// A reply's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: i32,
    pub(super) error: i32,
}

/// The answer to one request of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Done,
    Set(Stat),
    /// The transaction failed; 0: not by this request.
    Failed(i32),
}

/// Bytes that were received. Each method takes from the front; none: they are no reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct In<'a>(pub(super) &'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A buffer; one of length -1 is empty.
    pub(super) fn buffer(&mut self) -> Option<&'a [u8]> {
        let length = self.int()?.max(0);
        self.take(usize::try_from(length).ok()?)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.buffer()?).ok()
    }

    pub(super) fn header(&mut self) -> Option<Header> {
        let number = self.int()?;
        self.long()?;
        let error = self.int()?;
        Some(Header { number, error })
    }

    /// How long the session lives without a word, in milliseconds; 0: there is none.
    pub(super) fn session(&mut self) -> Option<i32> {
        self.int()?;
        self.int()
    }

    pub(super) fn stat(&mut self) -> Option<Stat> {
        let created = self.long()?;
        let changed = self.long()?;
        self.long()?;
        let at_ms = self.long()?;
        let version = self.int()?;
        // The rest of the record: versions of children and rights, owner, lengths.
        self.take(32)?;
        Some(Stat {
            created,
            changed,
            at_ms,
            version,
        })
    }

    /// The names of a node's children.
    pub(super) fn names(&mut self) -> Option<Vec<&'a str>> {
        let count = self.int()?.max(0);
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(self.text()?);
        }
        Some(names)
    }

    /// The scheme and id of each holder of rights, with the rights.
    pub(super) fn rights(&mut self) -> Option<Vec<(i32, &'a str, &'a str)>> {
        let count = self.int()?.max(0);
        let mut all = Vec::new();
        for _ in 0..count {
            all.push((self.int()?, self.text()?, self.text()?));
        }
        Some(all)
    }

    /// The answers to the requests of a transaction.
    pub(super) fn parts(&mut self) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        loop {
            let kind = self.int()?;
            let is_last = self.take(1)? != [0];
            self.int()?;
            if is_last {
                return Some(parts);
            }
            parts.push(match kind {
                -1 => Part::Failed(self.int()?),
                1 => {
                    self.text()?;
                    Part::Done
                }
                5 => Part::Set(self.stat()?),
                _ => Part::Done,
            });
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
