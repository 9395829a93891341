//! What the facts about a file mean, and what to do, step by step: the first rule of a step that holds gives its
//! check.

use super::super::file::SCHEMA_VERSION;
use crate::store::checkup::rules::{Rule, on, otherwise};

pub(super) const RULES: &[Rule] = &[
    on("file", |f| f.has("other")).wrong(
        "this is not a file but a directory, a device or a socket",
        "give the path of a file",
    ),
    on("file", |f| f.number("names") > 1).wrong(
        "it has {names} names (hard links), and a log and locks for each",
        "remove all but one, or use symbolic links",
    ),
    on("file", |f| f.has("closed")).denied("{closed}", "{opened}"),
    on("file", |f| f.has("empty")).fine("it is empty: the first run makes a store of it"),
    on("file", |f| f.has("open")).warn("{owned}; every user may write to it", "chmod o-w"),
    otherwise("file").fine("{owned}, {size} KiB"),

    on("clock", |f| f.text("epoch").starts_with("boot:"))
        .fine("CLOCK_BOOTTIME, {epoch}: a step of the wall clock changes nothing"),
    otherwise("clock").warn(
        "this boot, or what a time namespace adds to its clock, is unknown: no age is compared, and each is \
         waited for instead",
        "mount /proc for this process",
    ),

    on("journal_mode", |f| f.has("wal")).fine("wal, as it should be"),
    otherwise("journal_mode").warn(
        "the log (WAL) was taken off the file",
        "nothing: the next write of a run puts it back; find out who did it",
    ),

    on("schema", |f| f.number("version") <= 0).wrong(
        "version {version}, and this tokenrun knows {knows}: no tokenrun ever made that",
        "move the file away, or put a backup back",
    ),
    on("schema", |f| f.number("version") < SCHEMA_VERSION)
        .fine("version {version}, and this tokenrun knows {knows}; the next run adds what is new"),
    on("schema", |f| f.number("version") > SCHEMA_VERSION && f.number("oldest_reader") > SCHEMA_VERSION).wrong(
        "version {version}, and this tokenrun knows {knows}; it is for programs that know version {oldest_reader}",
        "install a newer tokenrun",
    ),
    otherwise("schema").fine("version {version}, and this tokenrun knows {knows}"),

    on("writer", |f| f.has("owner")).fine("at this moment it is {owner}"),
    otherwise("writer").fine("no process is writing at this moment"),
];
