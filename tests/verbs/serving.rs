//! `serve`: what is served is what the verbs print.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use nix::sys::signal::Signal;

use crate::site::{GROUP, Site};
use crate::support::Run;

stories!(what_is_served_is_what_the_verbs_print);

/// The address that a server names in its first line.
fn address(server: &Run) -> String {
    let said = server.until_says("on http://");
    let (_, address) = said.split_once("on http://").unwrap();
    address.split('/').next().unwrap().to_owned()
}

/// The body of the answer with code 200.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n"),
        "{path}: {answer}"
    );
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Ages and times change from one look to the next.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn what_is_served_is_what_the_verbs_print(site: &Site) {
    site.short("node-a").end().with_code(0);
    site.run("node-a").job(&["false"]).end().with_code(1);
    let serve = ["serve", "--listen", "127.0.0.1:0", "-g", GROUP];
    let server = site.verb(&serve).start();
    let address = address(&server);
    let printed = |words: &[&str]| site.verb(words).end().with_code(0).stdout;
    for (path, words) in [
        ("/metrics", &["metrics", "-g", GROUP][..]),
        ("/status.json", &["status", "--json", "-g", GROUP]),
        ("/history.json", &["history", "--json", "-g", GROUP]),
    ] {
        let (served, printed) = (get(&address, path), printed(words));
        assert_eq!(
            without_numbers(&served),
            without_numbers(&printed),
            "{path}"
        );
        assert!(served.contains(GROUP), "{served}");
    }
    let page = get(&address, "/");
    assert!(page.contains("its last run failed (exit code 1)"), "{page}");
    assert!(
        page.contains("http-equiv=\"refresh\" content=\"30\""),
        "{page}"
    );
    assert_eq!(get(&address, "/healthz"), "ok\n");
    // What happens meanwhile is in the next answer.
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    assert!(get(&address, "/status.json").contains("\"paused_by\":\""));
    assert!(get(&address, "/metrics").contains("tokenrun_paused{group=\"job\"} 1"));
    server.signal(Signal::SIGTERM);
    server.end().with_code(0);
}
