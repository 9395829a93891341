//! etcd: tokens for many hosts, in a cluster that loses no commit.

mod clock;
