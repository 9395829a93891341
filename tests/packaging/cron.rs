//! `examples/cron/`, run by Debian's own cron on two machines that share a database.

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::libraries::library;
use crate::machine::{Machine, shared_folder};
use crate::server::Server;
use crate::support::{Store, alive, children, signal, until, until_dead};

/// Short durations, as lines of a crontab. A busy machine may take a second to make the tables.
pub(crate) const HASTY: &str = "TOKENRUN_HEARTBEAT=1s\nTOKENRUN_TAKEOVER_AFTER=14s\n\
    TOKENRUN_KILL_GRACE=300ms\nTOKENRUN_STORE_TIMEOUT=5s\nTOKENRUN_HEAD_START=2s\n\
    TOKENRUN_KEEP=1s\n";

/// Two machines with the example in /etc/cron.d, and the database.
struct Site {
    store: Store,
    url: String,
}

/// The clock of a machine's cron.
const CLOCK: &str = "/run/clock";

/// A file that exists once cron has begun.
const BOOTED: &str = "/run/booted";

/// A night on a machine: its cron, started before the hour.
pub(crate) struct Night<'a> {
    machine: &'a Machine,
    cron: Cron,
}

/// The process that has started cron on a machine.
struct Cron(Child);

impl Site {
    /// A machine with a user, the job, the example, and a sendmail that writes down.
    fn machine(&self, name: &str) -> Machine {
        let folder = shared_folder(&self.store);
        let shared = folder.display();
        let machine = Machine::start(name, &folder);
        machine.shell(
            "useradd --uid 1234 --create-home etl
             rm -rf /etc/cron.d/* /etc/crontab /var/spool/cron/crontabs/*",
        );
        let job = format!(
            "#!/bin/sh
             cd {shared}
             env > environment
             echo begin $TOKENRUN_CLIENT_ID $TOKENRUN_GRANT $* $(id -un) $$ >> log
             read -r status < go
             echo end $TOKENRUN_CLIENT_ID >> log
             exit $status\n"
        );
        machine.write("/opt/etl/run.sh", "0755", &job);
        let sendmail = format!("#!/bin/sh\ncat >> {shared}/mail-{name}\n");
        machine.write("/usr/sbin/sendmail", "0755", &sendmail);
        machine.write("/etc/tokenrun/store", "0400", &self.url);
        machine.shell("chown etl /etc/tokenrun/store");
        let example = fs::read_to_string(crate::repository("examples/cron/nightly")).unwrap();
        let report = format!("TOKENRUN_REPORT={shared}/report-{name}\n");
        let entry = format!("{HASTY}{report}{example}");
        machine.write("/etc/cron.d/nightly", "0644", &entry);
        machine
    }

    /// All that was written by machines, for the message of a test that failed.
    fn written(&self) -> String {
        let files = fs::read_dir(self.store.path()).unwrap().flatten();
        let shown = |name: &str| name.starts_with("mail") || name.starts_with("report");
        files
            .filter(|file| file.file_name().to_str().is_some_and(shown))
            .filter_map(|file| fs::read_to_string(file.path()).ok())
            .collect()
    }

    fn mail(&self, machine: &Machine) -> String {
        let file = self.store.file(&format!("mail-{}", machine.name()));
        fs::read_to_string(file).unwrap_or_default()
    }

    /// Waits for what became of an entry, and forgets it.
    fn report(&self, machine: &Machine) -> Value {
        let file = self.store.file(&format!("report-{}", machine.name()));
        let text = until("the entry has been run", || {
            fs::read_to_string(&file).map_err(|error| format!("{error}; {:?}", self.store.log()))
        });
        fs::remove_file(file).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn status(&self) -> Value {
        let line = self.store.bare(&["status", "--json", "-s", &self.url]);
        line.end().with_code(0).json()[0].take()
    }

    /// Waits for a job's begin, and forgets it.
    fn begun(&self) -> (String, String) {
        let line = until("a job begins", || {
            let log = self.store.log();
            let line = log.iter().find(|line| line.starts_with("begin "));
            line.cloned().ok_or_else(|| self.written())
        });
        fs::remove_file(self.store.file("log")).unwrap();
        let mut words = line.split(' ').skip(1).map(str::to_owned);
        let client = words.next().unwrap();
        (client, words.collect::<Vec<_>>().join(" "))
    }
}

impl<'a> Night<'a> {
    /// The night before this day of March, on these machines. It is one second to two until each cron has read its
    /// table, since a cron that comes late runs nothing before the next night. Only cron gets another time, not the
    /// programs that it starts.
    pub(crate) fn begin<const N: usize>(machines: [&'a Machine; N], day: u8) -> [Self; N] {
        let set = |machine: &Machine, time: &str| {
            let (clock, new) = (machine.path(CLOCK), machine.path("/run/clock.new"));
            // Never read half-written.
            fs::write(&new, format!("2026-03-{day:02} {time}\n")).unwrap();
            fs::rename(new, clock).unwrap();
        };
        let nights = machines.map(|machine| {
            set(machine, "01:59:59");
            Self::start(machine)
        });
        for night in &nights {
            until("cron has read its table", || {
                fs::metadata(night.machine.path(BOOTED)).map_err(|error| error.to_string())
            });
        }
        for night in &nights {
            set(night.machine, "02:00:00");
            // It sleeps, and looks at its clock when a signal comes.
            signal(night.cron(), Signal::SIGHUP);
        }
        nights
    }

    /// Starts cron with the clock of the file.
    fn start(machine: &'a Machine) -> Self {
        for file in [BOOTED, "/run/crond.reboot"] {
            let _ = fs::remove_file(machine.path(file));
        }
        // Cron does this once it knows the time.
        let entry = format!("@reboot root touch {BOOTED}\n");
        machine.write("/etc/cron.d/booted", "0644", &entry);
        let library = library("faketime/libfaketime.so.1");
        let mut cron = machine.command("env");
        cron.arg(format!("LD_PRELOAD={}", library.display()));
        cron.arg(format!("FAKETIME_TIMESTAMP_FILE={CLOCK}"));
        cron.args(["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]);
        let cron = cron
            .args(["cron", "-f"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let cron = Cron(cron);
        Self { machine, cron }
    }

    /// The process of cron, which nsenter has started.
    fn cron(&self) -> i32 {
        children(i32::try_from(self.cron.0.id()).unwrap())[0]
    }

    /// Ends when cron has nothing more to do, and so no mail more to write.
    pub(crate) fn end(mut self) {
        let cron = self.cron();
        until("cron's entry has ended", || match &children(cron)[..] {
            [] => Ok(()),
            all => Err(format!("{all:?} on {}", self.machine.name())),
        });
        signal(cron, Signal::SIGTERM);
        self.cron.0.wait().unwrap();
    }
}

impl Drop for Cron {
    /// Shows what cron has started, and what a failed test has waited for in vain.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let fields = "pid,ppid,stat,wchan:20,etimes,args";
        // A panic here would end the other tests of this program.
        let Ok(ps) = Command::new("ps")
            .args(["-eo", fields, "--forest"])
            .output()
        else {
            return;
        };
        let all = String::from_utf8_lossy(&ps.stdout);
        let cron = format!("{} ", self.0.id());
        let below = all
            .lines()
            .skip_while(|line| !line.trim_start().starts_with(&cron));
        let below: Vec<_> = below.take(12).collect();
        eprintln!("cron:\n{}", below.join("\n"));
    }
}

#[test]
fn needs_root_two_machines_share_a_nightly_entry() {
    let database = Server::shared().database();
    let (store, url) = (Store::new(), crate::url_from_elsewhere(&database));
    let site = Site { store, url };
    let machines = [site.machine("vm-1"), site.machine("vm-2")];

    // The first night: one runs, the other is refused. No mail is sent.
    let nights = Night::begin(machines.each_ref(), 2);
    let (holder, words) = site.begun();
    assert!(words.starts_with("bind --full etl "), "{words}");
    let [first, second] = &machines;
    let [holder, other] = if holder == "vm-1" {
        [first, second]
    } else {
        [second, first]
    };
    let refused = site.report(other);
    assert_eq!(refused["outcome"], "refused", "{refused}");
    site.store.go(0);
    assert_eq!(site.report(holder)["outcome"], "succeeded");
    nights.into_iter().for_each(Night::end);
    assert_eq!((site.mail(holder), site.mail(other)), Default::default());
    assert_bare_environment(&fs::read_to_string(site.store.file("environment")).unwrap());

    // The second night: it stays where it was. A job that fails is a mail, from its node alone.
    let nights = Night::begin([holder, other], 3);
    let (client, words) = site.begun();
    assert_eq!(client, holder.name());
    assert!(words.starts_with("renew "), "{words}");
    assert_eq!(site.report(other)["outcome"], "refused");
    site.store.go(3);
    assert_eq!(site.report(holder)["exit_code"], 3);
    nights.into_iter().for_each(Night::end);
    let mail = site.mail(holder);
    assert!(mail.contains("run.sh exited with 3 after "), "{mail}");
    assert!(
        mail.ends_with(&format!(" on {}\n", holder.name())),
        "{mail}"
    );
    assert_eq!(site.mail(other), "");
}

#[test]
fn needs_root_a_machine_that_died_is_taken_over_by_the_next_entry() {
    let database = Server::shared().database();
    let (store, url) = (Store::new(), crate::url_from_elsewhere(&database));
    let site = Site { store, url };
    let holder = site.machine("vm-1");
    let other = site.machine("vm-2");
    let [night] = Night::begin([&holder], 2);
    assert_eq!(site.begun().0, "vm-1");
    let job = sleeping_job(&night);
    holder.die();
    until_dead(job);

    // In the same night the other is refused still: the holder may only be slow.
    let [night] = Night::begin([&other], 2);
    assert_eq!(site.report(&other)["outcome"], "refused");
    night.end();
    until("the holder has been silent for long enough", || {
        let status = site.status();
        let left = status["takeover_in_ms"].as_i64();
        if left.is_none_or(|left| left <= 0) {
            Ok(())
        } else {
            Err(status.to_string())
        }
    });

    let [night] = Night::begin([&other], 3);
    let (client, words) = site.begun();
    assert_eq!(client, "vm-2");
    assert!(words.starts_with("takeover "), "{words}");
    site.store.go(0);
    assert_eq!(site.report(&other)["outcome"], "succeeded");
    night.end();
    assert_eq!(site.mail(&other), "");
}

/// The job's process, as this machine counts: the last of the line that begins with cron.
fn sleeping_job(night: &Night) -> i32 {
    let mut pid = i32::try_from(night.cron.0.id()).unwrap();
    while let [child, ..] = children(pid)[..] {
        pid = child;
    }
    assert!(alive(pid));
    pid
}

/// The job's environment is cron's few variables and tokenrun's.
fn assert_bare_environment(environment: &str) {
    let mut others: Vec<&str> = environment
        .lines()
        .filter(|line| !line.starts_with("TOKENRUN_"))
        .filter(|line| !line.starts_with("PWD=") && !line.starts_with("OLDPWD="))
        .collect();
    others.sort_unstable();
    let expected = [
        "HOME=/home/etl",
        "LOGNAME=etl",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "SHELL=/bin/sh",
    ];
    assert_eq!(others, expected);
}
