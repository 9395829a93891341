//! A person at a terminal: what they type and see is as without tokenrun.

use std::fs;

use nix::sys::signal::Signal;

use crate::support::{Store, Terminal, alive, ctrl, until, until_dead, until_stopped};

/// A heartbeat each second, in a lease that a slow disk does not end.
const BEATING: [&str; 1] = ["--heartbeat=1s"];

fn terminal(store: &Store) -> Terminal {
    Terminal::new(store, &store.free_run("node-a"))
}

/// The pid of the only tokenrun that the group's row knows.
fn supervisor(store: &Store) -> i32 {
    store.field("pid")
}

#[test]
fn an_interrupt_ends_a_shells_loop_around_tokenrun() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    let a_loop = "for i in 1 2 3; do t -- sh -c 'echo up; exec sleep 300'; done; echo over";
    for shell in ["bash", "dash"] {
        fs::write(store.file("script"), a_loop).unwrap();
        terminal.line(&format!("{shell} script"));
        terminal.until("up\r\n");
        terminal.key(ctrl('c'));
        let shown = terminal.prompt();
        assert!(!shown.contains("up") && !shown.contains("over"), "{shown}");
        assert_eq!(terminal.status(), 130, "{shell}");
    }
    // Typed at the prompt.
    terminal.line(a_loop);
    terminal.until("up\r\n");
    terminal.key(ctrl('c'));
    let shown = terminal.prompt();
    assert!(!shown.contains("up") && !shown.contains("over"), "{shown}");
    let history = store.history();
    assert_eq!(history.len(), 3);
    assert!(history.iter().all(|run| run["signal"] == 2), "{history:?}");
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_job_that_handles_the_interrupt_gets_it_once_and_goes_its_own_way() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    // For dash: bash loses about one signal in a thousand between two commands.
    fs::write(
        store.file("job"),
        r#"trap 'n=$((n+1)); : > interrupted' INT; trap 'done=1' USR1
           echo up; while [ -z "$done" ]; do sleep 0.01; done; echo "got $n"; exit 7"#,
    )
    .unwrap();
    terminal.line("t -- dash job");
    terminal.until("up\r\n");
    terminal.key(ctrl('c'));
    // The kernel handles the key in its own time, and discards what was shown until then. It signals all processes of
    // the foreground at once.
    until("the interrupt arrives", || {
        fs::metadata(store.file("interrupted")).map_err(|err| err.to_string())
    });
    // To tokenrun alone: what was passed on before it has arrived when it has.
    crate::support::signal(supervisor(&store), Signal::SIGUSR1);
    let shown = terminal.prompt();
    assert!(shown.contains("got 1\r\n"), "{shown}");
    assert_eq!(terminal.status(), 7);
}

#[test]
fn a_quit_is_the_jobs_and_tokenruns() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    terminal.line("ulimit -c 0; t -- sh -c 'echo up; exec sleep 300'");
    terminal.until("up\r\n");
    terminal.key(ctrl('\\'));
    assert!(terminal.prompt().contains("Quit"));
    assert_eq!(terminal.status(), 131);
    assert_eq!(store.history()[0]["signal"], 3);
}

#[test]
fn a_job_is_suspended_and_goes_on_in_the_foreground() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    terminal.line("t -- sh -c 'echo pid $$; read word; echo got $word; exit 4'");
    terminal.until("pid ");
    let job = terminal.until("\r\n").trim().parse().unwrap();
    terminal.key(ctrl('z'));
    terminal.until("Stopped");
    terminal.prompt();
    // The shell waits for tokenrun alone: a job that has not stopped yet may still read.
    until_stopped(job);
    terminal.line("fg");
    terminal.line("hello");
    terminal.until("got hello");
    terminal.prompt();
    assert_eq!(terminal.status(), 4);
}

#[test]
fn a_job_that_suspends_itself_is_seen_to() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    terminal.line("t -- sh -c 'kill -TSTP $$; echo back; exit 4'");
    terminal.until("Stopped");
    terminal.prompt();
    terminal.line("fg");
    terminal.until("back\r\n");
    terminal.prompt();
    assert_eq!(terminal.status(), 4);
}

#[test]
fn a_lease_that_ends_during_a_suspension_is_reported_in_the_foreground() {
    let store = Store::new();
    let mut terminal = Terminal::new(&store, &store.free_run("node-a").hasty());
    terminal.line("t -- sh -c 'echo pid $$; exec sleep 300'");
    terminal.until("pid ");
    let job = terminal.until("\r\n").trim().parse().unwrap();
    terminal.key(ctrl('z'));
    terminal.until("Stopped");
    terminal.prompt();
    until_dead(job);
    assert!(alive(supervisor(&store)));
    let shown = terminal.run("fg");
    assert!(shown.contains("could not be renewed"), "{shown}");
    assert!(!shown.contains("in 0s"), "{shown}");
    assert_eq!(terminal.status(), 76);
    assert_eq!(store.history()[0]["outcome"], "lost");
}

#[test]
fn a_resized_window_is_signalled_once() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    fs::write(
        store.file("job"),
        r#"trap 'n=$((n+1)); echo "resized $n"' WINCH; trap 'done=1' USR1
           echo up; while [ -z "$done" ]; do sleep 0.01; done; echo "all $n"; stty size"#,
    )
    .unwrap();
    terminal.line("t -- dash job");
    terminal.until("up\r\n");
    for (number, rows) in [(1, 30), (2, 31)] {
        terminal.resize(rows, 90);
        terminal.until(&format!("resized {number}\r\n"));
    }
    crate::support::signal(supervisor(&store), Signal::SIGUSR1);
    terminal.until("all 2\r\n");
    terminal.until("31 90\r\n");
    terminal.prompt();
}

#[test]
fn a_pager_in_the_pipeline_reads_the_keyboard() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    terminal.line("t -- seq 1000 | less");
    terminal.until("23\r\n");
    terminal.key(' ');
    terminal.until("46\r\n");
    terminal.key('q');
    terminal.prompt();
    assert_eq!(terminal.status(), 0);
}

#[test]
fn an_editor_works_and_is_suspended() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    terminal.line("t -- vi text");
    // It shows the file's name, and lines that are none.
    terminal.until("~");
    terminal.keys("ihello");
    terminal.until("hello");
    terminal.keys("\u{1b}");
    terminal.key(ctrl('z'));
    terminal.until("Stopped");
    terminal.prompt();
    terminal.line("fg");
    terminal.until("hello");
    terminal.keys(":wq\r");
    terminal.prompt();
    assert_eq!(terminal.status(), 0);
    let text = fs::read_to_string(store.file("text")).unwrap();
    assert_eq!(text, "hello\n");
}

#[test]
fn a_password_is_asked_for_without_an_echo() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    terminal.run("stty echo");
    terminal.line(
        "t -- sh -c 'stty -F /dev/tty -echo; printf pass; echo word:; read x < /dev/tty; \
         stty -F /dev/tty echo; test \"$x\" = secret && exit 9' < /dev/null",
    );
    terminal.until("password:\r\n");
    terminal.line("secret");
    let shown = terminal.prompt();
    assert!(!shown.contains("secret"), "{shown}");
    terminal.line("echo status=$?.");
    terminal.until("status=9.");
}

#[test]
fn messages_from_the_background_stop_nothing() {
    let store = Store::new();
    let mut terminal = Terminal::new(&store, &store.free_run("node-a").with(&BEATING));
    terminal.run("stty tostop");
    terminal.line("t -v -- sh -c 'read status < go; exit 5' &");
    terminal.until("the heartbeat of \"job\" was written");
    terminal.until("the heartbeat of \"job\" was written");
    assert!(terminal.run("jobs").contains("Running"));
    store.go(0);
    terminal.until("sh exited with 5");
    terminal.run("wait %1");
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_stopped_terminal_delays_no_heartbeat_and_no_deadline() {
    let store = Store::new();
    let line = store.free_run("node-a").with(&BEATING);
    let mut terminal = Terminal::new(&store, &line.with(&["--kill-grace=300ms"]));
    terminal.line("t -v --timeout 3s -- sh -c 'echo up; trap \"\" TERM; read x < go'");
    terminal.until("the heartbeat of \"job\" was written");
    terminal.key(ctrl('s'));
    let seen: String = store.cell("stamped_at");
    until("a heartbeat is written", || {
        let now: String = store.cell("stamped_at");
        if now == seen { Err(now) } else { Ok(()) }
    });
    // The job is ended and the token released.
    store.until_state("free");
    assert!(!terminal.shows().contains("longer than"));
    assert_eq!(store.history()[0]["outcome"], "timed_out");
    terminal.key(ctrl('q'));
    terminal.prompt();
    assert_eq!(terminal.status(), 124);
}

#[test]
fn the_job_has_tokenruns_terminal() {
    let store = Store::new();
    let mut terminal = terminal(&store);
    // Its group, session, terminal and the terminal's foreground group.
    let job = "sh -c 'set -- $(cat /proc/$$/stat); echo $6 $7; test $5 = $8; exit $?'";
    let plain = terminal.run(job);
    let under = terminal.run(&format!("t -- {job}"));
    assert_eq!(under, plain);
    assert_eq!(terminal.status(), 0);
}
