//! A SQLite store's clock: the host's.
//!
//! Ages are measured by CLOCK_BOOTTIME: it goes on in suspend, and stepping the wall clock does not
//! affect it. It restarts with each boot, so the clock epoch is the boot's id. A time namespace
//! shifts it; the shift is subtracted, so that the containers of a host agree.

use std::fs;
use std::io;
use std::sync::{Arc, OnceLock};

use crate::sys::clock::{boot_millis, wall_millis};
use crate::sys::{procfs, random};
use crate::token::WallTime;
use crate::token::{ClockEpoch, Stamp, StoreTime};

/// The clock of a store.
pub trait Clock: Send {
    /// The time now.
    fn now(&self) -> StoreTime;
}

impl<C: Clock + Sync + ?Sized> Clock for Arc<C> {
    fn now(&self) -> StoreTime {
        self.as_ref().now()
    }
}

/// The host's clock.
#[derive(Debug, Clone)]
pub struct HostClock {
    origin: &'static Origin,
}

/// The facts that do not change while a process lives.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    epoch: ClockEpoch,
    /// The offset that the time namespace adds to CLOCK_BOOTTIME.
    offset_ms: i64,
}

/// The number of the initial time namespace: `PROC_TIME_INIT_INO` in Linux's
/// `include/linux/proc_ns.h`.
const INITIAL_NAMESPACE: &str = "time:[4026531834]";

impl Default for HostClock {
    fn default() -> Self {
        Self::new()
    }
}

impl HostClock {
    /// The clock of the host that this process runs on. It reads `/proc` once per process.
    pub fn new() -> Self {
        static ORIGIN: OnceLock<Origin> = OnceLock::new();
        Self {
            origin: ORIGIN.get_or_init(read_origin),
        }
    }
}

impl Clock for HostClock {
    fn now(&self) -> StoreTime {
        let tick_ms = boot_millis().saturating_sub(self.origin.offset_ms);
        StoreTime {
            epoch: self.origin.epoch.clone(),
            stamp: Stamp {
                tick_ms,
                wall: WallTime(wall_millis()),
            },
        }
    }
}

fn read_origin() -> Origin {
    let link = |name: &str| {
        fs::read_link(format!("/proc/self/ns/{name}")).map(|l| l.to_string_lossy().into_owned())
    };
    let offsets = procfs::read_short("/proc/self/timens_offsets");
    let boot = procfs::read_short("/proc/sys/kernel/random/boot_id").ok();
    let offset_ms = offset(&offsets, || (link("time"), link("time_for_children")));
    origin(boot.as_deref(), offset_ms, own_number)
}

/// The shift of this process's CLOCK_BOOTTIME; `None` if unknown. `links` returns the names of this
/// process's namespace and of its children's: the file describes the latter.
fn offset(
    file: &io::Result<String>,
    links: impl FnOnce() -> (io::Result<String>, io::Result<String>),
) -> Option<i64> {
    match file {
        Ok(text) => {
            let offset_ms = boottime_offset(text)?;
            if offset_ms == 0 {
                return Some(0);
            }
            let (mine, of_children) = links();
            (mine.ok()? == of_children.ok()?).then_some(offset_ms)
        }
        Err(_) => match links().0 {
            Ok(mine) => (mine == INITIAL_NAMESPACE).then_some(0),
            // A kernel without time namespaces.
            Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some(0),
        },
    }
}

/// The line `boottime SECONDS NANOSECONDS` of `/proc/self/timens_offsets`, in
/// milliseconds; see `time_namespaces(7)`.
fn boottime_offset(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        // Old kernels and `lsns` use the clock's number, 7.
        matches!(words.next(), Some("boottime" | "7")).then_some(words)
    });
    let mut words = line?;
    let secs: i64 = words.next()?.parse().ok()?;
    let nanos: i64 = words.next()?.parse().ok()?;
    secs.checked_mul(1_000)?.checked_add(nanos / 1_000_000)
}

/// The clock epoch `boot:ID`. Where the boot or the shift is unknown it is private to this process,
/// so that every age is observed and none compared.
fn origin(boot: Option<&str>, offset_ms: Option<i64>, random: impl FnOnce() -> u128) -> Origin {
    let boot = boot.map(str::trim).filter(|id| !id.is_empty());
    match (boot, offset_ms) {
        (Some(id), Some(offset_ms)) => Origin {
            epoch: ClockEpoch(format!("boot:{id}")),
            offset_ms,
        },
        _ => Origin {
            epoch: ClockEpoch(format!("process:{:032x}", random())),
            offset_ms: 0,
        },
    }
}

/// A number that no other process has.
fn own_number() -> u128 {
    random::bits128().unwrap_or_else(|_| {
        // Unlikely to match another process's, which is all that is needed.
        let pid = u128::from(std::process::id());
        (pid << 64) | u128::from(wall_millis().unsigned_abs())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(offset: &str) -> io::Result<String> {
        Ok(format!("monotonic           5         0\n{offset}\n"))
    }

    fn named(name: &str) -> io::Result<String> {
        Ok(name.to_owned())
    }

    fn missing() -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn refused() -> io::Result<String> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn unasked() -> (io::Result<String>, io::Result<String>) {
        panic!("the links are not needed")
    }

    #[test]
    fn the_offset_of_a_time_namespace_is_read_in_milliseconds() {
        let same = || (named("time:[7]"), named("time:[7]"));
        let seven_days = text("boottime       604800  500000000");
        assert_eq!(offset(&seven_days, same), Some(604_800_500));
        let back = text("boottime       -10  250000000");
        assert_eq!(offset(&back, same), Some(-9_750));
        assert_eq!(offset(&text("boottime 0 0"), unasked), Some(0));
    }

    #[test]
    fn an_offset_that_applies_to_children_only_is_unknown() {
        let other = || (named("time:[7]"), named("time:[8]"));
        assert_eq!(offset(&text("boottime 10 0"), other), None);
    }

    #[test]
    fn without_offsets_only_the_initial_namespace_is_known() {
        let initial = || (named(INITIAL_NAMESPACE), missing());
        assert_eq!(offset(&missing(), initial), Some(0));
        let none = || (missing(), missing());
        assert_eq!(offset(&missing(), none), Some(0));
        let container = || (named("time:[7]"), named("time:[7]"));
        assert_eq!(offset(&refused(), container), None);
        assert_eq!(offset(&text("boottime ten 0"), container), None);
        assert_eq!(offset(&Ok(String::new()), container), None);
    }

    #[test]
    fn an_unknown_boot_or_offset_is_an_epoch_of_its_own() {
        let known = origin(Some("b-1\n"), Some(5), || 7);
        assert_eq!(known.epoch, ClockEpoch("boot:b-1".into()));
        assert_eq!(known.offset_ms, 5);
        for unknown in [
            origin(None, Some(5), || 7),
            origin(Some("b-1"), None, || 7),
            origin(Some(" \n"), Some(5), || 7),
        ] {
            assert_eq!(unknown.epoch, ClockEpoch(format!("process:{:032x}", 7)));
        }
    }

    /// Two processes without a known boot must not compare their clocks.
    #[test]
    fn a_number_of_ones_own_is_no_others() {
        let (one, other) = (own_number(), own_number());
        assert_ne!(one, other);
        assert!(one > u128::from(u32::MAX), "{one}");
    }

    #[test]
    fn the_host_clock_goes_on_and_its_epoch_is_the_boot() {
        let clock = HostClock::new();
        let first = clock.now();
        let second = HostClock::new().now();
        assert_eq!(first.epoch, second.epoch);
        assert!(second.stamp.tick_ms >= first.stamp.tick_ms);
        assert!(first.stamp.wall > WallTime(1_700_000_000_000));
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(first.epoch.0, format!("boot:{}", boot.trim()));
    }
}
