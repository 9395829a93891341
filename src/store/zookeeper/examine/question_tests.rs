//! What `doctor` makes of the answers of a server in this process.

use super::super::super::test_peer::{Answer, int, over, text};
use super::super::super::wire::code;

#[test]
fn the_servers_of_an_ensemble_are_those_of_its_configuration() {
    let members = |answer: Answer| {
        let answered = move |_: &str| answer.clone();
        over(4_000, answered, async |link, _| {
            link.members().await.unwrap()
        })
    };
    let configuration = "server.1=a:1:2\nserver.2=b:1:2\nversion=0";
    assert_eq!(members((0, text(configuration))), 2);
    assert_eq!(members((code::NO_RIGHT, text(configuration))), 0);
}

#[test]
fn nodes_are_open_to_all_if_any_client_may_write_them() {
    let is_open = |rights: &[(i32, &str)]| {
        let count = int(rights.len().try_into().unwrap());
        let all = rights
            .iter()
            .flat_map(|(bits, scheme)| [int(*bits), text(scheme), text("x")].concat());
        let body: Vec<u8> = count.into_iter().chain(all).collect();
        let answered = move |_: &str| (0, body.clone());
        over(4_000, answered, async |link, _| {
            link.is_open_to_all().await.unwrap()
        })
    };
    assert!(is_open(&[(31, "digest"), (31, "world")]));
    assert!(!is_open(&[(31, "digest"), (1, "world")]));
    assert!(!is_open(&[]));
}
