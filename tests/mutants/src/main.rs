//! `cargo run --release --manifest-path tests/mutants/Cargo.toml -- src/token src/store/redis/script.rs`, from the project's
//! root: which small change of these files does no unit test notice?
//!
//! A copy of the project gets all mutants at once, each behind a switch. Each unit test runs once to see which switches it
//! reaches; then each mutant meets the tests that reach it, the quick ones first, until one fails or hangs. A survivor that is
//! in `tests/mutants/equivalent.txt` is explained: it changes nothing. More than 2 % of others is a failure.
//!
//! `--since COMMIT` takes the files under `src` that have changed since then. `--tests PREFIX` and `--skip PREFIX` choose the
//! tests; `--sample N` takes every Nth mutant.

mod instrument;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use instrument::{Mutant, instrument};

/// Where the copy is.
const COPY: &str = "target/mutants/project";

/// Most tests of one mutant take no longer together.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Options {
    files: Vec<PathBuf>,
    tests: Vec<String>,
    skip: Vec<String>,
    sample: usize,
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
            "--tests" => options.tests.push(value()),
            "--skip" => options.skip.push(value()),
            "--since" => options.files.extend(changed_since(&value())),
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
        .args(["diff", "--name-only", "--diff-filter=d", commit, "--", "src"])
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

/// Builds the unit tests; or the numbers of mutants that do not compile.
fn build() -> Result<PathBuf, BTreeSet<usize>> {
    let output = Command::new("cargo")
        .args([
            "test",
            "--lib",
            "--no-run",
            "--locked",
            "--message-format=json",
        ])
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
    let (mut program, mut bad) = (None, BTreeSet::new());
    for message in messages {
        if message["target"]["kind"][0] == "lib" && message["executable"].is_string() {
            program = message["executable"].as_str().map(PathBuf::from);
        }
        if message["message"]["level"] == "error" {
            bad.extend(blamed(&message["message"]));
        }
    }
    match (output.status.success(), program) {
        (true, Some(program)) => Ok(program),
        _ => {
            assert!(
                !bad.is_empty(),
                "the build fails, and no mutant is to blame"
            );
            Err(bad)
        }
    }
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

/// The test's status: `None` if it hangs.
fn run(program: &Path, test: &str, limit: Duration, variable: (&str, &str)) -> Option<bool> {
    let mut child = Command::new(program)
        .args(["--exact", test, "--test-threads=1", "-q"])
        .current_dir(COPY)
        .env(variable.0, variable.1)
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

fn tests(program: &Path, options: &Options) -> Vec<String> {
    let listed = Command::new(program)
        .arg("--list")
        .current_dir(COPY)
        .output();
    let listed = listed.expect("the tests are listed").stdout;
    let text = String::from_utf8_lossy(&listed).into_owned();
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let wanted = |name: &&str| {
        let begins = |these: &[String]| these.iter().any(|it| name.starts_with(it.as_str()));
        (options.tests.is_empty() || begins(&options.tests)) && !begins(&options.skip)
    };
    names.filter(wanted).map(str::to_owned).collect()
}

/// Carries out work on all processors, item by item.
fn in_parallel<'a, T: Sync>(items: &'a [T], work: impl Fn(&'a T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
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

/// The tests that reach each mutant, each with its time.
fn reach(program: &Path, tests: &[String]) -> HashMap<usize, Vec<(Duration, String)>> {
    let reached: Mutex<HashMap<usize, Vec<(Duration, String)>>> = Mutex::default();
    in_parallel(tests, |test| {
        let trace = std::env::temp_dir().join(format!("mutants-{}", test.replace("::", "-")));
        let _ = fs::remove_file(&trace);
        let begun = Instant::now();
        let path = trace.display().to_string();
        let passed = run(program, test, PATIENCE, ("MUTANT_TRACE", &path));
        let took = begun.elapsed();
        let text = fs::read_to_string(&trace).unwrap_or_default();
        let _ = fs::remove_file(&trace);
        if passed != Some(true) {
            eprintln!("left out: {test} does not pass within {PATIENCE:?}");
            return;
        }
        let mut reached = reached.lock().expect("no panic");
        for number in text.lines().filter_map(|line| line.parse().ok()) {
            reached
                .entry(number)
                .or_default()
                .push((took, test.clone()));
        }
    });
    let mut reached = reached.into_inner().expect("no panic");
    reached.values_mut().for_each(|tests| tests.sort());
    reached
}

/// True if one of these tests fails or hangs.
fn is_killed(program: &Path, number: usize, tests: &[(Duration, String)]) -> bool {
    let mut spent = Duration::ZERO;
    for (took, test) in tests {
        if spent > PATIENCE {
            break;
        }
        let limit = *took * 10 + Duration::from_secs(5);
        if run(program, test, limit, ("MUTANT", &number.to_string())) != Some(true) {
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
    let (program, mutants) = loop {
        let mutants = write(&options.files, &without);
        eprintln!(
            "{} mutants; {} do not compile",
            mutants.len(),
            without.len()
        );
        match build() {
            Ok(program) => break (program, mutants),
            Err(bad) => without.extend(bad),
        }
    };
    let mutants: Vec<Mutant> = mutants.into_iter().step_by(options.sample).collect();
    let tests = tests(&program, &options);
    let reached = reach(&program, &tests);
    eprintln!("{} tests reach {} mutants", tests.len(), reached.len());
    let survivors: Mutex<Vec<(&Mutant, bool)>> = Mutex::default();
    let done = AtomicUsize::new(0);
    in_parallel(&mutants, |mutant| {
        let tests = reached.get(&mutant.number);
        if !tests.is_some_and(|tests| is_killed(&program, mutant.number, tests)) {
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
