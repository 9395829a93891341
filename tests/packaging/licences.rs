//! What the binary is made of: its licences, and what must not be in it, by deny.toml.

use std::process::Command;

use crate::{output_of, repository};

/// Prints what deny.toml does not allow: all of Cargo.lock that is built for Linux, without
/// what only tests use.
const CHECK: &str = r#"
import json, re, subprocess, sys, tomllib
deny = tomllib.load(open("deny.toml", "rb"))
allowed = set(deny["licenses"]["allow"])
banned = {it["name"] for it in deny["bans"]["deny"]}
def fine(text):
    # An expression of SPDX's: names, WITH, AND, OR, parentheses; "/" is an old OR.
    text = text.replace("/", " OR ")
    names = lambda found: str(found.group(0).strip() in allowed)
    name = r"\b(?!(?:AND|OR)\b)[\w.+-]+(?: WITH [\w.+-]+)?"
    text = re.sub(name, names, text)
    return eval(text.replace("AND", "and").replace("OR", "or"), {})
words = ["cargo", "tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none",
         "--format", "{p}\t{l}"]
words += ["--target=x86_64-unknown-linux-gnu", "--target=x86_64-unknown-linux-musl"]
lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
crates = {line.split(" (")[0].split("\t")[0]: line.split("\t")[1].replace(" (*)", "") for line in lines if line}
for crate, licence in sorted(crates.items()):
    if not fine(licence) or crate.split(" ")[0] in banned:
        print(crate, licence)
assert not fine("GPL-3.0") and not fine("MIT AND GPL-3.0") and fine("GPL-2.0 OR (MIT AND ISC)")
assert len(crates) > 50, crates
"#;

#[test]
fn every_licence_is_allowed_and_nothing_is_banned() {
    let mut python = Command::new("python3");
    python.args(["-c", CHECK]).current_dir(repository(""));
    assert_eq!(output_of(&mut python), "", "not allowed by deny.toml");
}
