//! A reader of messages that stopped reading.

use crate::support::{Store, until};

#[test]
fn dropped_messages_are_counted_and_reported_when_the_reader_returns() {
    let store = Store::new();
    // The job fills the pipe that tokenrun's messages go to.
    let job = "timeout 0.3 cat /dev/zero >&2; echo begin job $$ >> log; \
               until read -r status < go; do :; done; exit $status";
    let line = store.free_run("node-a").with(&["-v", "--heartbeat=100ms"]);
    let line = line.script(job);
    let reader = "{ \"$@\"; echo $? > status; } 2>&1 > /dev/null | \
                  { until test -e returned; do sleep 0.01; done; cat > messages; }";
    let run = line.under(&["sh", "-c", reader, "sh"]).start();
    store.until_begun("job");
    // More of them than tokenrun keeps: 256.
    let mut seen = std::collections::HashSet::new();
    until("many heartbeats are written", || {
        seen.insert(store.cell::<String>("stamped_at"));
        if seen.len() > 300 {
            Ok(())
        } else {
            Err(seen.len().to_string())
        }
    });
    std::fs::write(store.file("returned"), "").unwrap();
    until("the count is reported while the job runs", || {
        let bytes = std::fs::read(store.file("messages")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace('\0', "");
        let count = text
            .lines()
            .find_map(|line| line.strip_suffix(" messages dropped: stderr is not being read"));
        let count = count.and_then(|line| line.split_whitespace().last());
        match count.map(str::parse::<u64>) {
            Some(Ok(1..)) => Ok(()),
            _ => Err(text),
        }
    });
    store.go(5);
    run.end();
    let status = std::fs::read_to_string(store.file("status")).unwrap();
    assert_eq!(status, "5\n");
}

#[test]
fn a_stream_that_does_not_wait_loses_nothing_once_it_is_read() {
    let store = Store::new();
    // Another program made the pipe nonblocking, and it is full for a while.
    let surroundings = "
import fcntl, os, subprocess, sys
read, write = os.pipe()
fcntl.fcntl(write, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while True: os.write(write, b'x' * 4096)
except BlockingIOError: pass
run = subprocess.Popen(sys.argv[1:], stderr=write)
os.close(write)
while not os.path.exists('log'): pass
bytes = b''
while True:
    more = os.read(read, 65536)
    if not more: break
    bytes += more
print(bytes.replace(b'x', b'').decode())
sys.exit(run.wait())
";
    let line = store.free_run("node-a").with(&["-v"]);
    let line = line.script("echo began >> log; exit 5");
    let ended = line
        .under(&["python3", "-c", surroundings])
        .end()
        .with_code(5);
    for step in ["looked at \"job\"", "took \"job\"", "sh started", "sh e"] {
        assert!(ended.stdout.contains(step), "{step}: {ended:?}");
    }
}
