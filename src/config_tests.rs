//! Configuration files, and the errors of bad ones.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;

use super::*;
use crate::cli::Options;
use crate::exit;
use crate::mutated::mutated_text;
use crate::verbs::settable;

fn keys() -> Options<'static> {
    Options::new(None, settable)
}

struct ConfigFiles(tempfile::TempDir);

impl ConfigFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("config.toml");
        fs::write(&path, text).unwrap();
        self.mode(&path, 0o600);
        path
    }

    fn mode(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn load(path: &Path) -> Result<Config, Refusal> {
    Config::load(Some(path.as_os_str()), &Home::default(), &keys())
}

#[track_caller]
fn refused(path: &Path) -> Refusal {
    let refusal = load(path).unwrap_err();
    assert!(!refusal.text.contains('\n'), "{refusal}");
    assert!(refusal.text.contains(path.to_str().unwrap()), "{refusal}");
    refusal
}

fn values<'c>(config: &'c Config, group: Option<&str>) -> Vec<(&'c str, Option<String>, usize)> {
    let settings = config.settings(group);
    let settings = settings.into_iter();
    let mut all: Vec<_> = settings
        .map(|it| (it.key.name.as_str(), it.value.clone(), it.source.line))
        .collect();
    all.sort_unstable();
    all
}

const EXAMPLE: &str = r#"# What all jobs have in common.
[defaults]
store = "postgres://etl@db/jobs"
keep = "10m"
conflict-exit-code = 0
quiet = true

[groups.nightly]
keep = 90
wait = true
expected = "node-a"

[groups."x y"]
store-file = "/etc/tokenrun/store"
wait = false
quiet = false
"#;

#[test]
fn a_groups_table_comes_before_the_defaults_key_by_key() {
    let files = ConfigFiles::new();
    let config = load(&files.file(EXAMPLE)).unwrap();
    let some = |text: &str| Some(text.to_owned());
    let defaults = [
        ("conflict-exit-code", some("0"), 5),
        ("keep", some("10m"), 4),
        ("quiet", some("1"), 6),
        ("store", some("postgres://etl@db/jobs"), 3),
    ];
    assert_eq!(values(&config, None), defaults);
    assert_eq!(values(&config, Some("unknown")), defaults);
    let nightly = [
        ("conflict-exit-code", some("0"), 5),
        ("expected", some("node-a"), 11),
        ("keep", some("90"), 9),
        ("quiet", some("1"), 6),
        ("store", some("postgres://etl@db/jobs"), 3),
        ("wait", some("forever"), 10),
    ];
    assert_eq!(values(&config, Some("nightly")), nightly);
    // A store file replaces the default store, and `false` replaces `true`.
    let spaced = [
        ("conflict-exit-code", some("0"), 5),
        ("keep", some("10m"), 4),
        ("quiet", None, 16),
        ("store-file", some("/etc/tokenrun/store"), 14),
        ("wait", None, 15),
    ];
    assert_eq!(values(&config, Some("x y")), spaced);
    let settings = config.settings(Some("x y"));
    let wait = settings.iter().find(|it| it.key.name == "wait").unwrap();
    assert!(
        wait.source
            .to_string()
            .ends_with("config.toml:15 [groups.\"x y\"]")
    );
}

#[test]
fn the_users_file_comes_before_the_systems_within_the_same_kind_of_table() {
    let files = ConfigFiles::new();
    let read = |name: &str, text: &str| {
        let path = files.path(name);
        fs::write(&path, text).unwrap();
        files.mode(&path, 0o644);
        let mut config = Config::default();
        config.add(&path, Missing::Refused, &keys()).unwrap();
        config.documents.remove(0)
    };
    let user = "[defaults]\nkeep = 1\nheartbeat = 2\n";
    let system = "[defaults]\nkeep = 3\nlabel = \"x\"\n[groups.g]\nheartbeat = 4\n";
    let config = Config {
        documents: vec![read("user", user), read("system", system)],
    };
    let some = |text: &str| Some(text.to_owned());
    let none = [
        ("heartbeat", some("2"), 3),
        ("keep", some("1"), 2),
        ("label", some("x"), 3),
    ];
    assert_eq!(values(&config, None), none);
    let group = [
        ("heartbeat", some("4"), 5),
        ("keep", some("1"), 2),
        ("label", some("x"), 3),
    ];
    assert_eq!(values(&config, Some("g")), group);
}

#[test]
fn an_error_in_a_file_is_one_line_with_its_place() {
    let files = ConfigFiles::new();
    for (text, line, words) in [
        (
            "[defaults]\ntakover-after = '5m'",
            2,
            vec!["\"takover-after\"", "did you mean takeover-after?"],
        ),
        (
            "[defaults]\n\ntakeover_after = '5m'",
            3,
            vec!["did you mean takeover-after?"],
        ),
        (
            "[defaults]\nxyzzy = 1",
            2,
            vec!["unknown key \"xyzzy\"", "long names"],
        ),
        (
            "\nkeep = 1",
            2,
            vec!["keep stands in no table", "[defaults]"],
        ),
        (
            "[groups]\nkeep = 1",
            2,
            vec!["keep stands in no group", "[groups.NAME]"],
        ),
        ("[groups]\nx = 1", 2, vec!["\"x\" must be a table"]),
        ("defaults = 1", 1, vec!["\"defaults\" must be a table"]),
        (
            "[default]\nkeep = 1",
            1,
            vec!["unknown table \"default\"", "[defaults]"],
        ),
        ("[[groups.x]]\nkeep = 1", 1, vec!["must be a table"]),
        ("[groups.\" \"]", 1, vec!["[groups.NAME]", "is empty"]),
        ("[groups.\"a\\u0007\"]", 1, vec!["control character"]),
        (
            "[defaults]\ngroup = 'x'",
            2,
            vec!["group can't stand in a file", "[groups.NAME]"],
        ),
        (
            "[defaults]\ncommand = 'x'",
            2,
            vec!["command can't", "after --"],
        ),
        (
            "[groups.x]\nreport = 'x'",
            2,
            vec!["report can't", "--report"],
        ),
        ("[defaults]\nonce = 'x'", 2, vec!["once can't", "--once"]),
        ("[defaults]\nconfig = 'x'", 2, vec!["config can't"]),
        ("[defaults]\nkeep = '5M'", 2, vec!["keep", "months"]),
        ("[defaults]\nkeep = -1", 2, vec!["keep must be a duration"]),
        ("[defaults]\nkeep = 1.5", 2, vec!["keep must be a duration"]),
        (
            "[defaults]\nkeep = true",
            2,
            vec!["keep must be a duration"],
        ),
        (
            "[defaults]\nkeep = 99999999999999999999",
            2,
            vec!["keep must be a duration"],
        ),
        ("[defaults]\nkeep = []", 2, vec!["keep must be a duration"]),
        (
            "[defaults]\nkeep = 2026-01-01",
            2,
            vec!["keep must be a duration"],
        ),
        (
            "[defaults]\nwait = 'for ever'",
            2,
            vec!["wait", "is not a duration"],
        ),
        (
            "[defaults]\nfailback = 'yes'",
            2,
            vec!["failback must be true or false"],
        ),
        (
            "[defaults]\nconflict-exit-code = 256",
            2,
            vec!["from 0 to 255"],
        ),
        (
            "[defaults]\nconflict-exit-code = '0'",
            2,
            vec!["from 0 to 255"],
        ),
        (
            "[defaults]\nleftovers = 'eat'",
            2,
            vec!["leftovers", "kill, leave"],
        ),
        ("[defaults]\nclient-id = ''", 2, vec!["client-id is empty"]),
        (
            "[defaults]\nlabel = \"a\\nb\"",
            2,
            vec!["label has a control character"],
        ),
        (
            "[defaults]\non-change = \"a\\u0000b\"",
            2,
            vec!["on-change has a NUL"],
        ),
        ("[defaults]\nstore-file = 'store'", 2, vec!["absolute path"]),
        ("[defaults]\nstore-file = \"/a\\u0000\"", 2, vec!["NUL"]),
        ("[defaults]\nstore = 'tokens.db'", 2, vec!["absolute path"]),
        ("[defaults]\nstore = ''", 2, vec!["store", "empty"]),
        ("[defaults]\nstore = 'mongodb://x'", 2, vec!["mongodb://"]),
        (
            "[defaults]\nstore = 'postgres://h/d?hots=x'",
            2,
            vec!["\"hots\""],
        ),
        (
            "[defaults]\nstore = '/a'\nstore-file = '/b'",
            3,
            vec!["store-file takes the place of store in line 2"],
        ),
        (
            "[groups.x]\nquiet = true\nverbose = true",
            3,
            vec!["line 2"],
        ),
        ("[defaults]\nquiet = 3", 2, vec!["quiet must be 0, 1 or 2"]),
        ("[defaults]\nquiet = -1", 2, vec!["quiet must be"]),
        ("[defaults]\nquiet = '1'", 2, vec!["quiet must be"]),
        ("[defaults]\nkeep = 1\nkeep = 2", 3, vec!["duplicate"]),
        ("[defaults]\nkeep = 1\n[defaults]", 3, vec!["duplicate"]),
        ("[defaults\nkeep = 1", 1, vec![]),
        ("[defaults]\nkeep 1", 2, vec![]),
        ("[defaults]\nlabel = \"a\0b\"", 2, vec![]),
        ("[defaults]\nlabel = 'a", 2, vec![]),
        (&"[".repeat(100_000), 1, vec![]),
    ] {
        let refusal = refused(&files.file(text));
        assert_eq!(refusal.code, exit::CONFIG, "{refusal}");
        let place = format!("config.toml:{line}: ");
        assert!(refusal.text.contains(&place), "{text:?}: {refusal}");
        for word in words {
            assert!(refusal.text.contains(word), "{text:?}: {refusal}");
        }
    }
}

#[test]
fn deep_nesting_and_many_keys_are_refused_soon() {
    let files = ConfigFiles::new();
    let deep = format!(
        "[defaults]\nkeep = {}{}",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    assert_eq!(refused(&files.file(deep)).code, exit::CONFIG);
    let long = format!("[defaults]\n{}", "a.".repeat(100_000));
    assert_eq!(refused(&files.file(long)).code, exit::CONFIG);
}

#[test]
fn a_file_that_is_not_text_is_refused() {
    let files = ConfigFiles::new();
    let refusal = refused(&files.file(b"[defaults]\nlabel = '\xff'\n"));
    assert!(
        refusal.text.contains("config.toml:2: is not UTF-8"),
        "{refusal}"
    );
    let file = files.file("");
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(100 << 20)
        .unwrap();
    assert!(refused(&file).text.contains("longer than 1 MiB"));
    let directory = files.path("directory");
    fs::create_dir(&directory).unwrap();
    assert!(refused(&directory).text.contains("no regular file"));
    let fifo = files.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(refused(&fifo).text.contains("no regular file"));
    assert!(refused(Path::new("/dev/null")).text.contains("--config ''"));
}

#[test]
fn a_file_that_is_named_must_be_there_and_others_need_not() {
    let files = ConfigFiles::new();
    let refusal = refused(&files.path("missing.toml"));
    assert_eq!(refusal.code, exit::CONFIG);
    let home = |path: PathBuf| Home {
        xdg_config_home: None,
        home: Some(path.into_os_string()),
    };
    let of_home = |home: &Home| {
        let mut config = Config::default();
        config.add(
            &home.file().unwrap(),
            Missing::FineAndUnreachableToo,
            &keys(),
        )?;
        Ok::<_, Refusal>(config)
    };
    assert!(
        of_home(&home(files.path("nowhere")))
            .unwrap()
            .settings(None)
            .is_empty()
    );
    // A file where a directory would be.
    fs::write(files.path("file"), "").unwrap();
    assert!(of_home(&home(files.path("file"))).is_ok());
    // A dangling link was meant to be a file.
    let directory = files.path("home/.config/tokenrun");
    fs::create_dir_all(&directory).unwrap();
    symlink("nothing", directory.join("config.toml")).unwrap();
    let refusal = of_home(&home(files.path("home"))).unwrap_err();
    assert_eq!(refusal.code, exit::CONFIG);
    fs::write(directory.join("nothing"), "[defaults]\nkeep = 1").unwrap();
    files.mode(&directory.join("nothing"), 0o644);
    assert_eq!(
        of_home(&home(files.path("home")))
            .unwrap()
            .settings(None)
            .len(),
        1
    );
    // None at all.
    let none = Config::load(Some(OsStr::new("")), &home(files.path("home")), &keys());
    assert!(none.unwrap().settings(None).is_empty());
}

#[test]
fn a_home_is_an_absolute_path() {
    let home = |xdg: Option<&str>, home: Option<&str>| Home {
        xdg_config_home: xdg.map(OsString::from),
        home: home.map(OsString::from),
    };
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(
        home(Some("/x"), Some("/h")).file(),
        path("/x/tokenrun/config.toml")
    );
    assert_eq!(
        home(Some("x"), Some("/h")).file(),
        path("/h/.config/tokenrun/config.toml")
    );
    assert_eq!(home(Some(""), Some("h")).file(), None);
    assert_eq!(home(None, None).file(), None);
}

#[test]
fn a_password_is_for_its_owner_alone() {
    let files = ConfigFiles::new();
    for store in [
        "postgres://etl:secret@db/jobs",
        "postgres://etl@db/jobs?password=secret",
        "host=db password = 'secret'",
        "postgres://db/jobs?sslpassword=secret",
    ] {
        let path = files.file(format!("[defaults]\n\n[groups.x]\nstore = \"{store}\""));
        assert!(load(&path).is_ok(), "{store}");
        for mode in [0o640, 0o604, 0o644] {
            files.mode(&path, mode);
            let refusal = refused(&path);
            assert_eq!(refusal.code, exit::CONFIG);
            for words in [":4: store holds a password", "chmod 600"] {
                assert!(refusal.text.contains(words), "{refusal}");
            }
            assert!(!refusal.text.contains("secret"), "{refusal}");
        }
    }
    let path = files.file("[defaults]\nstore = \"postgres://etl@db/jobs\"");
    files.mode(&path, 0o644);
    assert!(load(&path).is_ok());
}

#[test]
fn a_file_that_others_can_write_is_not_trusted() {
    let files = ConfigFiles::new();
    let path = files.file("[defaults]\nkeep = 1");
    for mode in [0o620, 0o602, 0o666] {
        files.mode(&path, mode);
        let refusal = refused(&path);
        assert_eq!(refusal.code, exit::CONFIG);
        assert!(refusal.text.contains("chmod go-w"), "{refusal}");
    }
}

#[test]
fn a_size_is_a_text_a_number_or_whether_to() {
    let files = ConfigFiles::new();
    for (text, value) in [
        ("true", Some("64KiB")),
        ("false", None),
        ("0", Some("0")),
        ("4096", Some("4096")),
        ("\"1M\"", Some("1M")),
    ] {
        let config = load(&files.file(format!("[defaults]\ncapture = {text}\n"))).unwrap();
        let expected = [("capture", value.map(str::to_owned), 2)];
        assert_eq!(values(&config, None), expected, "{text}");
    }
    for text in ["12", "\"2M\"", "\"soon\"", "1.5", "-1"] {
        let refusal = refused(&files.file(format!("[defaults]\ncapture = {text}\n")));
        let says = |words| refusal.text.contains(words);
        assert!(
            says("config.toml:2") && says("capture") && says("64k"),
            "{refusal}"
        );
    }
}

proptest! {
    #[test]
    fn no_file_panics_and_an_error_is_one_line(text in mutated_text(&[
        "# nightly\n[defaults]\nstore = 'postgres://etl@db/jobs'\ntakeover-after = '5m'\ncapture = true\n\n[groups.a]\nkeep = 0\n[groups.'b c']\nlabel = \"x\\u00e9\"\n",
    ])) {
        let files = ConfigFiles::new();
        if let Err(refusal) = load(&files.file(&text)) {
            prop_assert!(!refusal.text.contains('\n'), "{}", refusal.text);
        }
    }
}
