//! `cargo run --release --manifest-path tests/mutants/Cargo.toml -- src/token src/store/redis/script.rs`, from the project's
//! root: which small change of these files does no unit test notice?
//!
//! A copy of the project gets all mutants at once, each behind a switch. Each unit test runs once to see which switches it
//! reaches; then each mutant meets the tests that reach it, the quick ones first, until one fails or hangs. A survivor that is
//! in `tests/mutants/equivalent.txt` is explained: it changes nothing. More than 2 % of others is a failure.
//!
//! `--since COMMIT` takes the files under `src` that have changed since then. `--tests PREFIX` chooses unit tests, `--only
//! PREFIX` tests of a suite, `--skip PREFIX` leaves tests out; `--sample N` takes every Nth mutant; `--again OUTPUT` takes the survivors that an earlier run
//! printed: first the quick tests of all mutants, then the slow ones of the survivors.
//! `--suite behaviour` adds the tests of a suite that runs the program (as root: each test gets namespaces of its own, so that
//! nothing outlives it). The tests of jobs that fork without end are for the mutants of `src/job` alone (`--skip guarding::`).

mod instrument;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use instrument::{Mutant, instrument};

/// Where the copy is.
const COPY: &str = "target/mutants/project";

/// Most tests of one mutant take no longer together.
const PATIENCE: Duration = Duration::from_secs(100);

/// Where the program under test finds its switch if a test of a suite clears the environment (switch.rs.txt).
const SWITCH: &str = "/run/mutants";

#[derive(Default)]
struct Options {
    files: Vec<PathBuf>,
    suites: Vec<String>,
    tests: Vec<String>,
    only: Vec<String>,
    skip: Vec<String>,
    sample: usize,
    /// The output of an earlier run.
    again: Option<String>,
}

fn options() -> Options {
    let mut options = Options {
        sample: 1,
        ..Options::default()
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value");
        match word.as_str() {
            "--suite" => options.suites.push(value()),
            "--tests" => options.tests.push(value()),
            "--only" => options.only.push(value()),
            "--skip" => options.skip.push(value()),
            "--since" => options.files.extend(changed_since(&value())),
            "--again" => {
                let output = fs::read_to_string(value()).expect("the output can be read");
                options.again = Some(output);
            }
            "--sample" => options.sample = value().parse().expect("a number"),
            path => {
                assert!(Path::new(path).exists(), "{path} does not exist");
                options.files.extend(sources(Path::new(path)));
            }
        }
    }
    options.files.sort();
    options.files.dedup();
    options
}

/// The product's files that have changed since this commit.
fn changed_since(commit: &str) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args([
            "diff",
            "--name-only",
            "--diff-filter=d",
            commit,
            "--",
            "src",
        ])
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git knows {commit}");
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let files = names.lines().flat_map(|name| sources(Path::new(name)));
    files.collect()
}

/// The files of the product at this path, without those of tests.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("the folder can be read");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        return paths.flat_map(|path| sources(&path)).collect();
    }
    let name = path.to_string_lossy();
    let is_test = [
        "test",
        "model",
        "simulation",
        "search",
        "mutant",
        "any_value",
        "conformance",
    ]
    .iter()
    .any(|word| name.contains(word));
    let is_source = name.ends_with(".rs") && !is_test;
    is_source.then(|| path.to_owned()).into_iter().collect()
}

fn copy() {
    fs::create_dir_all(COPY).expect("a folder");
    let script = format!(
        "git ls-files -co --exclude-standard | while read f; do [ -e \"$f\" ] && echo \"$f\"; done | \
         rsync -a --delete --files-from=- ./ {COPY}/ 2>/dev/null || \
         git ls-files -co --exclude-standard | while read f; do [ -e \"$f\" ] && cp --parents -u \"$f\" {COPY}/; done"
    );
    let done = Command::new("bash").args(["-c", &script]).status();
    assert!(done.is_ok_and(|it| it.success()), "the project is copied");
}

/// Writes the files with their mutants, except for these.
fn write(files: &[PathBuf], without: &[usize]) -> Vec<Mutant> {
    let mut all: Vec<Mutant> = Vec::new();
    let mut first = 0;
    for file in files {
        let text = fs::read_to_string(file).expect("the file can be read");
        let name = file.display().to_string();
        let (code, mutants) = instrument(&name, &text, first, without);
        first = (first + 1000).max(
            mutants
                .last()
                .map_or(0, |it| it.number / 1000 * 1000 + 1000),
        );
        fs::write(Path::new(COPY).join(file), code).expect("the file can be written");
        all.extend(mutants);
    }
    let switch = include_str!("switch.rs.txt");
    fs::write(Path::new(COPY).join("src/mutants.rs"), switch).expect("the file can be written");
    let root = fs::read_to_string("src/lib.rs").expect("the library");
    let at = root.find("\npub mod").expect("a module");
    let root = format!("{}\npub mod mutants;{}", &root[..at], &root[at..]);
    fs::write(Path::new(COPY).join("src/lib.rs"), root).expect("the library can be written");
    all
}

/// A program with tests.
struct Program {
    path: PathBuf,
    /// True if its tests run the product's program.
    is_suite: bool,
}

/// Builds the unit tests and the suites; or the numbers of mutants that do not compile.
fn build(suites: &[String]) -> Result<Vec<Program>, BTreeSet<usize>> {
    let output = Command::new("cargo")
        .args(["test", "--no-run", "--locked", "--message-format=json"])
        .arg("--lib")
        .args(suites.iter().flat_map(|name| ["--test", name]))
        .current_dir(COPY)
        .env("RUSTFLAGS", "--cap-lints allow")
        .env("CARGO_TARGET_DIR", "../target")
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let (mut programs, mut bad) = (Vec::new(), BTreeSet::new());
    for message in messages {
        let kind = message["target"]["kind"][0].as_str();
        if let Some(path) = message["executable"].as_str()
            && (kind == Some("lib") || kind == Some("test"))
        {
            programs.push(Program {
                path: path.into(),
                is_suite: kind == Some("test"),
            });
        }
        if message["message"]["level"] == "error" {
            bad.extend(blamed(&message["message"]));
        }
    }
    if output.status.success() {
        return Ok(programs);
    }
    assert!(
        !bad.is_empty(),
        "the build fails, and no mutant is to blame"
    );
    Err(bad)
}

/// The mutants nearest to an error.
fn blamed(message: &serde_json::Value) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let spans = message["spans"].as_array().cloned().unwrap_or_default();
    for span in spans {
        let file = Path::new(COPY).join(span["file_name"].as_str().unwrap_or_default());
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let lines: Vec<&str> = text.lines().collect();
        let line = |name: &str| usize::try_from(span[name].as_u64().unwrap_or(1)).unwrap_or(1);
        let (from, to) = (line("line_start"), line("line_end"));
        for margin in [0, 1, 2, 4, 8] {
            let begin = from.saturating_sub(1 + margin);
            let end = (to + margin).min(lines.len());
            let near = numbers(&lines[begin.min(end)..end].join("\n"));
            if !near.is_empty() {
                found.extend(near);
                break;
            }
        }
    }
    found
}

fn numbers(text: &str) -> BTreeSet<usize> {
    let calls = text.split("mutants::at(").skip(1);
    let number = |rest: &str| rest.split(')').next()?.trim().parse().ok();
    calls.filter_map(number).collect()
}

/// A test and its program.
struct Test<'a> {
    program: &'a Program,
    name: String,
    /// How many mutants it has ended.
    kills: AtomicUsize,
}

/// What a test has to switch on: nothing, but it writes what it reaches to this file; or one mutant.
enum Switch<'a> {
    Trace(&'a Path),
    On(usize),
}

impl Test<'_> {
    /// The command that runs the test alone.
    fn command(&self, switch: &Switch<'_>) -> Command {
        let mut command = match self.program.is_suite {
            true => Command::new("unshare"),
            false => Command::new(&self.program.path),
        };
        if self.program.is_suite {
            let files = match switch {
                Switch::Trace(path) => format!("ln -s {} trace", path.display()),
                Switch::On(number) => format!("echo {number} > on"),
            };
            let script = format!(
                "mount -t tmpfs mutants {SWITCH} && (cd {SWITCH} && {files}) && exec \"$@\""
            );
            command
                .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
                .args(["sh", "-c", &script, "sh"])
                .arg(&self.program.path);
        }
        command.args(["--exact", &self.name, "--test-threads=1", "-q"]);
        match switch {
            Switch::Trace(path) => command.env("MUTANT_TRACE", path),
            Switch::On(number) => command.env("MUTANT", number.to_string()),
        };
        command
    }

    /// The test's status: `None` if it hangs.
    fn run(&self, limit: Duration, switch: &Switch<'_>) -> Option<bool> {
        let mut child = self
            .command(switch)
            .current_dir(COPY)
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_CASES", "64")
            .env("PROPTEST_FAILURE_PERSISTENCE", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test runs");
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        while begun.elapsed() < limit {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status.success());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        let _ = child.kill();
        let _ = child.wait();
        None
    }
}

fn tests<'a>(programs: &'a [Program], options: &Options) -> Vec<Test<'a>> {
    let mut tests = Vec::new();
    for program in programs {
        let listed = Command::new(&program.path)
            .arg("--list")
            .current_dir(COPY)
            .output();
        let listed = listed.expect("the tests are listed").stdout;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let wanted = |name: &&str| {
            let begins = |these: &[String]| these.iter().any(|it| name.starts_with(it.as_str()));
            let chosen = match program.is_suite {
                true => &options.only,
                false => &options.tests,
            };
            (chosen.is_empty() || begins(chosen)) && !begins(&options.skip)
        };
        tests.extend(names.filter(wanted).map(|name| Test {
            program,
            name: name.to_owned(),
            kills: AtomicUsize::new(0),
        }));
    }
    tests
}

/// Carries out work on all processors, item by item; three items on each if most of the work is waiting.
fn in_parallel<'a, T: Sync>(items: &'a [T], is_waiting: bool, work: impl Fn(&'a T) + Sync) {
    let next = AtomicUsize::new(0);
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let threads = processors * if is_waiting { 3 } else { 1 };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

/// A test that reaches a mutant, with its time.
type Reaching<'a> = (Duration, &'a Test<'a>);

/// The tests that reach each mutant, the quick ones first.
fn reach<'a>(tests: &'a [Test<'a>], is_waiting: bool) -> HashMap<usize, Vec<Reaching<'a>>> {
    let reached: Mutex<HashMap<usize, Vec<Reaching<'a>>>> = Mutex::default();
    in_parallel(tests, is_waiting, |test| {
        let trace = std::env::temp_dir().join(format!("mutants-{}", test.name.replace("::", "-")));
        fs::write(&trace, "").expect("a file for the trace");
        // Tests run the program as other users, too.
        let all = fs::Permissions::from_mode(0o666);
        fs::set_permissions(&trace, all).expect("the file is ours");
        let begun = Instant::now();
        let passed = test.run(PATIENCE, &Switch::Trace(&trace));
        let took = begun.elapsed();
        let text = fs::read_to_string(&trace).unwrap_or_default();
        let _ = fs::remove_file(&trace);
        if passed != Some(true) {
            let name = &test.name;
            eprintln!("left out: {name} does not pass within {PATIENCE:?}");
            return;
        }
        let mut reached = reached.lock().expect("no panic");
        let numbers: BTreeSet<usize> = text.lines().filter_map(|line| line.parse().ok()).collect();
        for number in numbers {
            reached.entry(number).or_default().push((took, test));
        }
    });
    let mut reached = reached.into_inner().expect("no panic");
    let tests = reached.values_mut();
    tests.for_each(|tests| tests.sort_by_key(|(took, _)| *took));
    reached
}

/// True if one of these tests fails or hangs. Those come first that are named after the file or one of its folders, then
/// those that have ended many mutants in a short time.
fn is_killed(mutant: &Mutant, tests: &[Reaching<'_>]) -> bool {
    let own = Path::new(&mutant.file).with_extension("");
    let own: Vec<_> = own.iter().skip(2).filter_map(|it| it.to_str()).collect();
    let promise = |(took, test): &&Reaching<'_>| {
        let shared = test.name.split("::").filter(|word| own.contains(word));
        let kills = u32::try_from(test.kills.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        (Reverse(shared.count()), *took / kills.saturating_add(1))
    };
    let mut tests: Vec<&Reaching<'_>> = tests.iter().collect();
    tests.sort_by_cached_key(promise);
    let mut spent = Duration::ZERO;
    for (took, test) in tests {
        if spent > PATIENCE {
            break;
        }
        let limit = *took * 10 + Duration::from_secs(5);
        if test.run(limit, &Switch::On(mutant.number)) != Some(true) {
            test.kills.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        spent += *took;
    }
    false
}

fn key(mutant: &Mutant) -> String {
    format!("{} {}: {}", mutant.file, mutant.function, mutant.what)
}

fn main() -> ExitCode {
    let options = options();
    if options.files.is_empty() {
        println!("no file to change");
        return ExitCode::SUCCESS;
    }
    copy();
    let mut without: Vec<usize> = Vec::new();
    let (programs, mutants) = loop {
        let mutants = write(&options.files, &without);
        eprintln!(
            "{} mutants; {} do not compile",
            mutants.len(),
            without.len()
        );
        match build(&options.suites) {
            Ok(programs) => break (programs, mutants),
            Err(bad) => without.extend(bad),
        }
    };
    let is_wanted = |mutant: &Mutant| {
        let before = options.again.as_ref();
        before.is_none_or(|output| output.contains(&key(mutant)))
    };
    let mutants = mutants.into_iter().filter(is_wanted);
    let mutants: Vec<Mutant> = mutants.step_by(options.sample).collect();
    let is_waiting = !options.suites.is_empty();
    if is_waiting {
        fs::create_dir_all(SWITCH).expect("root makes a folder for the switch");
    }
    let tests = tests(&programs, &options);
    let reached = reach(&tests, is_waiting);
    eprintln!("{} tests reach {} mutants", tests.len(), reached.len());
    let survivors: Mutex<Vec<(&Mutant, bool)>> = Mutex::default();
    let done = AtomicUsize::new(0);
    in_parallel(&mutants, is_waiting, |mutant| {
        let tests = reached.get(&mutant.number);
        if !tests.is_some_and(|tests| is_killed(mutant, tests)) {
            survivors
                .lock()
                .expect("no panic")
                .push((mutant, tests.is_some()));
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done % 100 == 0 {
            eprintln!("{done} of {}", mutants.len());
        }
    });
    let mut survivors = survivors.into_inner().expect("no panic");
    survivors.sort_by_key(|(mutant, _)| mutant.number);
    report(&mutants, &survivors)
}

fn report(mutants: &[Mutant], survivors: &[(&Mutant, bool)]) -> ExitCode {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("equivalent.txt");
    let known = fs::read_to_string(list).unwrap_or_default();
    let known: BTreeSet<&str> = known
        .lines()
        .filter_map(|line| line.split(" # ").next())
        .collect();
    // All, and those that are survived, not reached and explained.
    let mut files: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for mutant in mutants {
        files.entry(&mutant.file).or_default()[0] += 1;
    }
    let mut unexplained = 0;
    for (mutant, is_reached) in survivors {
        let is_known = known.contains(key(mutant).as_str());
        let counts = files.entry(&mutant.file).or_default();
        counts[match (is_known, is_reached) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 2,
        }] += 1;
        if !is_known {
            unexplained += 1;
            let reached = if *is_reached { "" } else { " (not reached)" };
            println!(
                "{}:{}:{} {}{reached}",
                mutant.file,
                mutant.line,
                mutant.column,
                key(mutant)
            );
        }
    }
    println!("\n| file | mutants | survive | not reached | explained |\n|---|---|---|---|---|");
    for (file, [all, survive, unreached, explained]) in files {
        println!("| {file} | {all} | {survive} | {unreached} | {explained} |");
    }
    println!("\n{} mutants, {unexplained} unexplained", mutants.len());
    match unexplained * 50 <= mutants.len() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
