//! A hostile user who may write to a directory that tokenrun uses reaches no file of other users.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use crate::programs::build;
use crate::shared::{GROUP, by, shared};
use crate::support::{Line, Store};

const HOSTILE: u32 = 61_002;

/// How long an attack lasts.
const ATTACK: Duration = Duration::from_secs(4);

/// tests/programs/hostile.c as a member of the group, until this is dropped.
struct Attack(Child);

impl Attack {
    fn start(store: &Store, mode: &str, one: &Path, other: &Path) -> Self {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        let program = store.file("hostile");
        // The build's folder may be closed to others.
        fs::copy(BUILT.get_or_init(|| build("hostile")), &program).unwrap();
        let (user, group) = (format!("--reuid={HOSTILE}"), format!("--regid={HOSTILE}"));
        let child = Command::new("setpriv")
            .args([&user, &group, &format!("--groups={GROUP}")])
            .arg(program)
            .arg(mode)
            .args([one, other])
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Repeats it as long as the attack lasts.
fn repeat(mut victim: impl FnMut()) {
    let begun = Instant::now();
    while begun.elapsed() < ATTACK {
        victim();
    }
}

/// A private file of root's, in a directory, with the group that files there get.
fn key(directory: &Path) -> PathBuf {
    let path = directory.join("key");
    fs::write(&path, "private").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

fn assert_untouched(found: &fs::Metadata) {
    let mode = found.mode() & 0o7777;
    assert_eq!((found.uid(), mode, found.len()), (0, 0o600, 7), "{mode:o}");
}

/// Checks the private file, wherever the hostile user has left it.
fn assert_private(paths: [&Path; 2]) {
    let found = paths
        .iter()
        .find(|path| fs::read(path).is_ok_and(|text| text == b"private"));
    let found = found.unwrap_or_else(|| panic!("{paths:?}: it was written to, or removed"));
    assert_untouched(&fs::metadata(found).unwrap());
}

fn run(store: &Store) -> Line {
    store.free_run("node-a").job(&["true"])
}

#[test]
fn needs_root_a_directory_that_is_moved_away_while_it_is_made_leads_nowhere() {
    let store = shared(0o2770);
    let private = store.file("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    let _attack = Attack::start(&store, "plant", &store.locks(), &private);
    repeat(|| {
        // Without its locks a run has a warning. That is not the point.
        run(&store).end();
        let mode = fs::metadata(&private).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o700, "{mode:o}");
        assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
    });
}

#[test]
fn needs_root_a_private_file_under_the_name_of_the_mark_of_a_sweep_stays_private() {
    let old = SystemTime::now() - Duration::from_hours(48);
    for name in ["swept", "swept-0"] {
        let store = shared(0o2770);
        run(&store).end().with_code(0);
        let key = key(&store.file("state"));
        File::options()
            .write(true)
            .open(&key)
            .unwrap()
            .set_modified(old)
            .unwrap();
        let mark = store.locks().join(name);
        fs::rename(&key, &mark).unwrap();
        run(&store).end().with_code(0);
        assert_untouched(&fs::metadata(&mark).unwrap());
        assert_eq!(fs::metadata(&mark).unwrap().modified().unwrap(), old);
    }
}

/// The companions of a database of this user's, of whom SQLite makes the owner of what lies beside it.
fn of_the_hostile_user(store: &Store) -> PathBuf {
    by(run(store), HOSTILE, "007").end().with_code(0);
    for end in ["-wal", "-shm"] {
        fs::remove_file(beside(store, end)).unwrap();
    }
    key(&store.file("state"))
}

fn beside(store: &Store, end: &str) -> PathBuf {
    store.file(&format!("state/tokens.db{end}"))
}

#[test]
fn needs_root_a_private_file_beside_the_database_is_neither_given_away_nor_written_to() {
    for end in ["-wal", "-shm", "-journal"] {
        let store = shared(0o2770);
        let key = of_the_hostile_user(&store);
        let planted = beside(&store, end);
        fs::rename(&key, &planted).unwrap();
        for line in [run(&store), store.verb(&["status"])] {
            line.end().with_code(78).says(&[&format!("tokens.db{end}")]);
            assert_private([&key, &planted]);
        }
        // Nor does it matter that a group may write to it, if it is another.
        chown(&planted, Some(0), Some(0)).unwrap();
        fs::set_permissions(&planted, Permissions::from_mode(0o660)).unwrap();
        run(&store).end().with_code(78);
        assert_eq!(fs::read(&planted).unwrap(), b"private");
        assert_eq!(fs::metadata(&planted).unwrap().uid(), 0);
    }
}

#[test]
fn needs_root_doctor_opens_no_private_file_beside_the_database() {
    let store = shared(0o2770);
    run(&store).end().with_code(0);
    let (key, log) = (key(&store.file("state")), beside(&store, "-wal"));
    fs::rename(&key, &log).unwrap();
    let refused = store.verb(&["doctor"]).end().with_code(78);
    assert!(refused.stdout.contains("tokens.db-wal"), "{refused:?}");
    assert_private([&key, &log]);
}

#[test]
fn needs_root_a_private_file_that_comes_and_goes_beside_the_database_stays_private() {
    let store = shared(0o2770);
    let key = of_the_hostile_user(&store);
    let log = beside(&store, "-wal");
    let attack = Attack::start(&store, "swap", &key, &log);
    repeat(|| drop(run(&store).end()));
    drop(attack);
    assert_private([&key, &log]);
}

#[test]
fn needs_root_a_link_beside_the_database_is_refused() {
    for end in ["-wal", "-shm"] {
        let store = shared(0o2770);
        let key = of_the_hostile_user(&store);
        fs::hard_link(&key, beside(&store, end)).unwrap();
        run(&store).end().with_code(78);
        assert_private([&key, &key]);
    }
}

#[test]
fn needs_root_doctor_advises_the_sticky_bit_for_a_shared_directory() {
    let store = shared(0o2770);
    run(&store).end().with_code(0);
    let advice = format!("chmod 3770 {}", store.file("state").display());
    let doctor = || store.verb(&["doctor"]).end().with_code(0).stdout;
    assert!(doctor().contains(&advice), "{}", doctor());
    fs::set_permissions(store.file("state"), Permissions::from_mode(0o3770)).unwrap();
    assert!(!doctor().contains("chmod"), "{}", doctor());
}

/// A directory of root's that the group may not enter.
fn private_directory(path: &Path) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o2700)).unwrap();
}

#[test]
fn needs_root_a_private_directory_under_the_name_of_the_locks_stays_as_it_is() {
    let store = shared(0o2770);
    let locks = store.locks();
    private_directory(&locks);
    let ended = run(&store).with(&["-v"]).end().with_code(0);
    let said = "does not belong to the users of the directory";
    assert!(ended.stderr.contains(said), "{ended:?}");
    assert_eq!(fs::read_dir(&locks).unwrap().count(), 0);
    let mode = fs::metadata(&locks).unwrap().mode() & 0o7777;
    assert_eq!(mode, 0o2700, "{mode:o}");
}

#[test]
fn needs_root_what_root_makes_beside_a_users_database_is_the_users() {
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(HOSTILE), Some(HOSTILE)).unwrap();
    let by_user = || run(&store).with_user_in(HOSTILE, None);
    let made = store.verb(&["init"]).with_user_in(HOSTILE, None);
    made.end().with_code(0);
    for end in ["-wal", "-shm"] {
        // It may not have made them.
        let _ = fs::remove_file(beside(&store, end));
    }
    run(&store).end().with_code(0);
    for end in ["-wal", "-shm"] {
        let found = fs::metadata(beside(&store, end)).unwrap();
        let owned = (found.uid(), found.gid(), found.mode() & 0o7777);
        assert_eq!(owned, (HOSTILE, HOSTILE, 0o600), "{end}");
    }
    by_user().end().with_code(0);
}

#[test]
fn needs_root_the_draft_of_a_database_leads_nowhere() {
    let store = shared(0o2770);
    let empty = store.file("empty");
    File::create(&empty).unwrap();
    let draft = store.file("state/.tokens.db.new");
    let _attack = Attack::start(&store, "plant", &draft, &empty);
    repeat(|| {
        // It may fail.
        store.verb(&["init"]).end();
        assert_eq!(fs::metadata(&empty).unwrap().len(), 0);
        for end in ["", "-wal", "-shm", "-locks"] {
            let path = beside(&store, end);
            let _ = fs::remove_file(&path);
        }
    });
}

/// A directory that every user may write to, such as /tmp, with a link of the hostile user's.
fn sticky(store: &Store, name: &str, target: &Path) -> PathBuf {
    let directory = store.file("sticky");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o1777)).unwrap();
    let link = directory.join(name);
    symlink(target, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(HOSTILE), Some(HOSTILE)).unwrap();
    link
}

#[test]
fn needs_root_nothing_is_written_through_another_users_link() {
    let store = Store::new();
    run(&store).end().with_code(0);
    let key = key(store.path());
    let link = sticky(&store, "file", &key);
    let link = link.to_str().unwrap();
    let report = run(&store).with(&["--report", link]).end();
    assert!(report.stderr.contains("link of another user"), "{report:?}");
    for line in [
        store.verb(&["page", "-o", link]),
        store.verb(&["metrics", "--textfile", link]),
    ] {
        let refused = line.end();
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(
            refused.stderr.contains("link of another user"),
            "{refused:?}"
        );
    }
    assert_private([&key, &key]);
}

#[test]
fn needs_root_a_link_to_a_directory_is_judged_as_one_to_a_file_is() {
    let store = Store::new();
    run(&store).end().with_code(0);
    let private = store.file("private");
    fs::create_dir(&private).unwrap();
    let link = sticky(&store, "to", &private);
    let page = link.join("page.html");
    let refused = store.verb(&["page", "-o", page.to_str().unwrap()]).end();
    assert!(
        refused.stderr.contains("link of another user"),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
    // Root's own is followed, and so is that of the directory's owner.
    for owner in [0, HOSTILE] {
        let directory = store.file(&format!("of-{owner}"));
        fs::create_dir(&directory).unwrap();
        let link = directory.join("to");
        symlink(&private, &link).unwrap();
        for path in [&directory, &link] {
            std::os::unix::fs::lchown(path, Some(owner), Some(owner)).unwrap();
        }
        let page = link.join("page.html");
        let made = store.verb(&["page", "-o", page.to_str().unwrap()]).end();
        made.with_code(0);
        fs::remove_file(private.join("page.html")).unwrap();
    }
}

#[test]
fn needs_root_a_store_behind_another_users_link_is_refused() {
    let store = Store::new();
    run(&store).end().with_code(0);
    let link = sticky(&store, "tokens.db", &store.database());
    let link = link.to_str().unwrap();
    let line = store
        .bare(&["-s", link, "-g", "job"])
        .job(&["touch", "ran"]);
    line.end().with_code(77).says(&["link of another user"]);
    assert!(!store.file("ran").exists());
    let status = store.bare(&["status", "-s", link]).end().with_code(77);
    status.says(&["link of another user"]);
}

#[test]
fn needs_root_a_database_that_another_user_has_put_into_an_open_directory_is_refused() {
    let store = Store::new();
    run(&store).end().with_code(0);
    let (database, directory) = (store.database(), store.file("state"));
    chown(&database, Some(HOSTILE), Some(HOSTILE)).unwrap();
    let open = |mode| fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
    open(0o755);
    run(&store).end().with_code(0);
    open(0o1777);
    run(&store)
        .end()
        .with_code(78)
        .says(&["belongs to another user", "every user may put one there"]);
    chown(&database, Some(0), Some(0)).unwrap();
    run(&store).end().with_code(0);
}

#[test]
fn needs_root_no_setting_is_read_behind_another_users_link() {
    for option in ["--store-file", "--config"] {
        let store = Store::new();
        let file = store.file("file");
        let text = match option {
            "--config" => "[defaults]\nkeep = \"1s\"".to_owned(),
            _ => store.database().to_str().unwrap().to_owned(),
        };
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let link = sticky(&store, option, &file);
        let given = |path: &Path| {
            let option = format!("{option}={}", path.to_str().unwrap());
            let line = store.bare(&[&option, "-g", "job"]);
            line.job(&["touch", store.file("ran").to_str().unwrap()])
        };
        given(&link)
            .end()
            .with_code(77)
            .says(&["link of another user"]);
        assert!(!store.file("ran").exists());
        given(&file).end().with_code(0);
    }
}

#[test]
fn needs_root_a_report_is_not_written_to_another_users_pipe() {
    let store = Store::new();
    let directory = store.file("sticky");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o1777)).unwrap();
    let pipe = directory.join("report");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    chown(&pipe, Some(HOSTILE), Some(HOSTILE)).unwrap();
    let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
    let ended = run(&store)
        .with(&["--report", pipe.to_str().unwrap()])
        .end();
    assert!(ended.stderr.contains("another user"), "{ended:?}");
    use std::io::{Read as _, Write as _};
    writeln!(reader, "end").unwrap();
    let mut first = [0; 4];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"end\n");
}

#[test]
fn a_store_behind_a_link_of_its_own_user_is_used() {
    let store = Store::new();
    fs::create_dir(store.file("data")).unwrap();
    symlink("data", store.file("state")).unwrap();
    run(&store).end().with_code(0);
    assert!(store.file("data/tokens.db-locks").is_dir());
    // A disk that is not mounted: no second store is made in its place.
    fs::remove_file(store.file("state")).unwrap();
    symlink("none", store.file("state")).unwrap();
    let refused = run(&store).end().with_code(78);
    assert!(!store.file("none").exists(), "{refused:?}");
}
