//! `examples/hooks/`: each is run by a run, and reaches what it is for.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::thread::{JoinHandle, spawn};

use crate::support::{Line, Store, script};
use crate::{output_of, repository};

fn example(name: &str) -> String {
    let path = repository("examples/hooks").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_scripts_are_clean() {
    let scripts = ["ping.sh", "mail.sh", "chat.sh"].map(example);
    output_of(Command::new("shellcheck").args(scripts));
}

/// A server that takes one request. Gives its URL, and the request: its first line, then its body.
fn server() -> (String, JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/nightly", listener.local_addr().unwrap());
    let request = spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut first = String::new();
        reader.read_line(&mut first).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end().to_lowercase();
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (&stream)
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
        (first, String::from_utf8(body).unwrap())
    });
    (url, request)
}

fn run(store: &Store, script: &str, hooks: &[&str], script_name: &str) -> Line {
    let hook = example(script_name);
    let hooks = hooks.iter().map(|option| format!("--on-{option}={hook}"));
    let hooks: Vec<String> = hooks.collect();
    let hooks: Vec<&str> = hooks.iter().map(String::as_str).collect();
    store.free_run("vm-1").script(script).with(&hooks)
}

#[test]
fn the_ping_goes_to_one_address_or_the_other() {
    let store = Store::new();
    for (code, path) in [(0, "/nightly"), (3, "/nightly/fail")] {
        let (url, request) = server();
        let script = format!("exit {code}");
        let line = run(&store, &script, &["success", "failure"], "ping.sh");
        let ended = line.env("PING_URL", url).end().with_code(code);
        assert_eq!(ended.other_messages(), [""; 0]);
        let (first, _) = request.join().unwrap();
        assert_eq!(first.trim_end(), format!("POST {path} HTTP/1.1"));
    }
}

#[test]
fn ping_and_mail_both_get_the_output() {
    let store = Store::new();
    let (url, request) = server();
    let both = format!(
        "--on-failure={}; {}",
        example("ping.sh"),
        example("mail.sh")
    );
    let job = "echo 41 of 42 loaded; exit 3";
    let line = store
        .free_run("vm-1")
        .script(job)
        .with(&["--capture", &both]);
    let line = line.env("PING_URL", url).env("SENDMAIL", sendmail(&store));
    line.end().with_code(3);
    let (first, body) = request.join().unwrap();
    assert_eq!(first.trim_end(), "POST /nightly/fail HTTP/1.1");
    assert_eq!(body, "41 of 42 loaded\n");
    let mail = fs::read_to_string(store.file("mail")).unwrap();
    assert!(
        mail.ends_with("failed (3), reason: exit_status\n\n41 of 42 loaded\n"),
        "{mail}"
    );
}

/// A program that keeps the mail that it is to send.
fn sendmail(store: &Store) -> PathBuf {
    let sendmail = store.file("sendmail");
    script(&sendmail, "#!/bin/sh\ncat > mail\n");
    sendmail
}

#[test]
fn the_chat_gets_a_line() {
    let store = Store::new();
    let (url, request) = server();
    let line = run(&store, "exit 3", &["failure"], "chat.sh");
    let line = line.without(&["-g", "job"]);
    let line = line.with(&["--group=the \"job\"\\"]);
    line.env("CHAT_WEBHOOK", url).end().with_code(3);
    let (_, body) = request.join().unwrap();
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let text = "the \"job\"\\ on vm-1: failed (3), reason: exit_status";
    assert_eq!(body["text"], text);
}

#[test]
fn the_mail_says_how_it_ended() {
    let store = Store::new();
    let line = run(&store, "kill -9 $$", &["failure"], "mail.sh");
    line.env("SENDMAIL", sendmail(&store)).end().with_code(137);
    let mail = fs::read_to_string(store.file("mail")).unwrap();
    let expected = "To: root\n\
                    Subject: job on vm-1: killed\n\
                    Content-Type: text/plain; charset=UTF-8\n\
                    \n\
                    job on vm-1: killed (137), reason: signal\n\n";
    assert_eq!(mail, expected);
}
