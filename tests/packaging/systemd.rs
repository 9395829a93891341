//! `examples/systemd/`, checked by systemd-analyze and run by a real systemd.

use std::fs;

use crate::machine::{Machine, shared_folder};
use crate::server::Server;
use crate::support::{Store, until};

/// The unit, its timer, and what its job needs.
pub(crate) fn install(machine: &Machine, job: &str) {
    for file in [
        "nightly.service",
        "nightly.timer",
        "scheduler.service",
        "tokenrun-serve.service",
    ] {
        let path = format!("/etc/systemd/system/{file}");
        machine.write(&path, "0644", &example(file));
    }
    for unit in ["nightly", "scheduler"] {
        let path = format!("/etc/systemd/system/{unit}.service.d/one-host.conf");
        machine.write(&path, "0644", &example("nightly.service.d/one-host.conf"));
    }
    machine.shell("useradd --uid 1234 etl");
    machine.write("/opt/etl/run.sh", "0755", &format!("#!/bin/sh\n{job}\n"));
    for page in ["tokenrun.1", "tokenrun-hold.1", "tokenrun-serve.1"] {
        let manual = fs::read_to_string(crate::repository("man").join(page)).unwrap();
        machine.write(
            &format!("/usr/local/share/man/man1/{page}"),
            "0644",
            &manual,
        );
    }
}

fn example(file: &str) -> String {
    fs::read_to_string(crate::repository("examples/systemd").join(file)).unwrap()
}

/// The units as they are, with the address of a database.
pub(crate) fn install_database(machine: &Machine, url: &str) {
    machine.shell("rm -f /etc/systemd/system/*.service.d/one-host.conf");
    machine.write("/etc/tokenrun/store", "0400", url);
}

/// A property of the service.
pub(crate) fn property(machine: &Machine, name: &str) -> String {
    let script = format!("systemctl show --value -p {name} nightly.service");
    machine.shell(&script).trim().to_owned()
}

/// Waits until the service has run, and gives how it ended and its status.
pub(crate) fn until_over(machine: &Machine) -> (String, String) {
    until("the service has ended", || {
        let state = property(machine, "ActiveState");
        match state.as_str() {
            "inactive" | "failed" => Ok(()),
            _ => Err(state),
        }
    });
    (
        property(machine, "Result"),
        property(machine, "ExecMainStatus"),
    )
}

fn journal(machine: &Machine) -> String {
    machine.shell("journalctl --sync; journalctl -q -o cat -u nightly.service")
}

#[test]
fn needs_root_the_units_are_valid_and_well_confined() {
    let store = Store::new();
    let machine = Machine::start("node-a", &shared_folder(&store));
    install(&machine, "true");
    install_database(&machine, "postgres://db");
    let units = "/etc/systemd/system/nightly.service /etc/systemd/system/nightly.timer \
                 /etc/systemd/system/scheduler.service /etc/systemd/system/tokenrun-serve.service";
    assert_eq!(
        machine.shell(&format!("systemd-analyze verify {units}")),
        ""
    );
    // Less than 3.0, in tenths.
    let words = "systemd-analyze security --offline=true --no-pager --threshold=29";
    for unit in ["nightly", "scheduler", "tokenrun-serve"] {
        let rating = machine.shell(&format!("{words} /etc/systemd/system/{unit}.service"));
        assert!(rating.contains("Overall exposure level"), "{rating}");
    }
}

#[test]
fn needs_root_systemd_runs_stops_and_counts_the_service() {
    let store = Store::new();
    let folder = shared_folder(&store);
    let machine = Machine::boot("node-a", &folder);
    // PrivateTmp hides the folder, as it hides all of /tmp: it is shown again.
    let show = format!("[Service]\nBindPaths={}\n", folder.display());
    machine.write(
        "/etc/systemd/system/nightly.service.d/test.conf",
        "0644",
        &show,
    );
    let job = format!(
        "cd {} || exit
         (trap 'echo helper asked >> log' TERM; echo helper begun >> log; while :; do sleep 0.05; done) &
         helper=$!
         trap 'sleep 0.2; kill -0 $helper && echo clean >> log; kill -9 $helper; exit 0' TERM
         touch /usr/x 2> /dev/null && echo can write /usr >> log
         sed -n 's/^NoNewPrivs:\t/no new rights /p; s/^Seccomp:\t/filter /p' /proc/self/status >> log
         echo begin $TOKENRUN_CLIENT_ID $TOKENRUN_GRANT \"$*\" $(id -un) >> log
         read -r status < go & wait $!
         kill -9 $helper
         exit 0",
        folder.display()
    );
    install(&machine, &job);
    machine.shell("systemctl daemon-reload");

    // With a file of its own. The timer starts it, now as well as at two.
    let soon = "[Timer]\nOnActiveSec=1ms\nAccuracySec=1ms\n";
    machine.write(
        "/etc/systemd/system/nightly.timer.d/test.conf",
        "0644",
        soon,
    );
    machine.shell("systemctl daemon-reload; systemctl start nightly.timer");
    let times = machine.shell("systemctl show --value -p TimersCalendar nightly.timer");
    assert!(times.contains("OnCalendar=*-*-* 02:00:00"), "{times}");
    let begin = store.until_logged("begin ");
    assert_eq!(
        begin,
        "begin node-a bind --full etl",
        "{}",
        journal(&machine)
    );
    store.until_logged("helper begun");

    // From here on the timer waits for two: otherwise it would start the service again if the wall
    // clock were set.
    machine.shell(
        "rm -r /etc/systemd/system/nightly.timer.d
         systemctl daemon-reload; systemctl restart nightly.timer",
    );
    // It is stopped, and the job cleans up with the help of what it has started.
    machine.shell("systemctl stop nightly.service");
    let log = store.log();
    for line in ["clean", "no new rights 1", "filter 2"] {
        assert!(log.contains(&line.into()), "{line}: {log:?}");
    }
    assert!(!log.iter().any(|line| line.contains("asked")), "{log:?}");
    assert!(
        !log.iter().any(|line| line.contains("can write")),
        "{log:?}"
    );
    assert_eq!(until_over(&machine), ("success".into(), "0".into()));
    let state = "/var/lib/nightly/tokenrun";
    let mode = machine.shell(&format!("stat -c '%a %U' {state} {state}/tokenrun.db"));
    assert_eq!(mode, "700 etl\n600 etl\n");
    let history = machine.shell(&format!("tokenrun history -s {state}/tokenrun.db"));
    assert!(history.contains(" succeeded "), "{history}");

    // With a database, and another node that has the token: no failure.
    let database = Server::shared().database();
    let url = crate::url_from_elsewhere(&database);
    install_database(&machine, &url);
    machine.shell("systemctl daemon-reload");
    let line = store.bare(&[
        "-s",
        &url,
        "-g",
        "nightly",
        "--client-id=node-b",
        "--keep=0",
    ]);
    let other = line
        .script("echo other >> log; read -r status < go")
        .start();
    store.until_logged("other");
    machine.shell("systemctl start nightly.service || journalctl -q -u nightly.service");
    let over = until_over(&machine);
    assert_eq!(
        over,
        ("success".into(), "75".into()),
        "{}",
        journal(&machine)
    );
    let said = journal(&machine);
    assert!(said.contains("\"nightly\" is held by node-b"), "{said}");
    store.go(0);
    other.end().with_code(0);
    fs::remove_file(store.file("log")).unwrap();
    machine.shell("systemctl start --no-block nightly.service");
    store.until_logged("begin node-a ");
    store.until_logged("helper begun");

    // Killing tokenrun alone ends everything, and the failure shows.
    machine.shell("systemctl kill --kill-whom=main --signal=KILL nightly.service");
    assert_eq!(until_over(&machine).0, "signal");
    let left = machine.shell("pgrep -u etl || true");
    assert_eq!(left, "");
    let locks = machine.shell(&format!("stat -c '%a %U' {state}/locks"));
    assert_eq!(locks, "700 etl\n");
}

#[test]
fn needs_root_systemd_knows_what_the_agent_holds() {
    let store = Store::new();
    let machine = Machine::boot("node-a", &shared_folder(&store));
    install(&machine, "true");
    let role = "#!/bin/sh\necho $TOKENRUN_CHANGE $TOKENRUN_CLIENT_ID >> /var/lib/scheduler/log\n";
    machine.write("/opt/scheduler/role.sh", "0755", role);
    machine.shell("systemctl daemon-reload; systemctl start scheduler.service");
    let show = |name: &str| {
        let script = format!("systemctl show --value -p {name} scheduler.service");
        machine.shell(&script).trim().to_owned()
    };
    until("systemd knows that it has the token", || {
        match show("StatusText") {
            text if text.contains("node-a has the token of \"scheduler\"") => Ok(()),
            text => Err(text),
        }
    });
    assert_eq!(show("ActiveState"), "active");
    let pid = show("MainPID");
    // As a unit: in this machine the boot has another id for what sees the kernel's own.
    let check = "systemd-run -q --wait --pipe -p ProtectKernelTunables=yes -- sh -c \
                 'tokenrun check -q -g scheduler -s /var/lib/scheduler/tokenrun/tokenrun.db \
                 --runtime-file /run/scheduler/token.json && echo yes || true'";
    assert_eq!(machine.shell(check), "yes\n");

    // The watchdog gets its sign as long as the agent is at work, after a loss too.
    machine.shell("tokenrun revoke -g scheduler -s /var/lib/scheduler/tokenrun/tokenrun.db");
    until("it has lost it, and has it again", || {
        match machine.shell("cat /var/lib/scheduler/log") {
            log if log == "gain node-a\nloss node-a\ngain node-a\n" => Ok(()),
            log => Err(log),
        }
    });
    assert_eq!(show("MainPID"), pid);
    machine.shell("systemctl stop scheduler.service");
    assert_eq!(show("Result"), "success");
    let log = machine.shell("cat /var/lib/scheduler/log");
    assert!(log.ends_with("gain node-a\nloss node-a\n"), "{log}");
    assert!(!machine.shell(check).contains("yes"));
}
