//! The fenced blocks of README.md and the guide, and the test that runs each.

use std::path::{Path, PathBuf};

/// The test that runs a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// `tests/guide/console.rs`: all `console` blocks without another test, those of a page in one shell.
    Console,
    /// `tests/guide/commands.rs`: on a file in a folder of the test's.
    Commands,
    /// `tests/postgres/guide.rs`: on real servers.
    Postgres,
    /// `tests/mysql/guide.rs`: on real servers of MariaDB.
    Mysql,
    /// `tests/redis/guide.rs`: on real servers.
    Redis,
    /// `tests/etcd/guide.rs`: on real servers.
    Etcd,
    /// `tests/zookeeper/guide.rs`: on real servers.
    Zookeeper,
    /// `tests/packaging/recipes.rs`: it is this example's text, which cron, systemd or a
    /// container runs in a test.
    Example(&'static str),
    /// `tests/packaging/release.rs`: on a machine that is thrown away.
    Release,
    /// `tests/packaging/shared.rs`: on a machine that is thrown away.
    Shared,
    /// The person who runs the tests.
    Tester,
}

/// How a block begins, including its fence, and the test that runs it.
const RUN: &[(&str, By)] = &[
    (
        "```sh\ntokenrun --store-file /etc/tokenrun/store --group nightly ",
        By::Commands,
    ),
    ("```sh\ntests/run-all\n", By::Tester),
    ("```text\nPATH=", By::Example("cron/nightly")),
    ("```ini\n[Unit]\n", By::Example("systemd/nightly.timer")),
    (
        "```ini\n[Service]\nLoadCredential=\n",
        By::Example("systemd/nightly.service.d/one-host.conf"),
    ),
    (
        "```ini\n[Service]\nType=notify\n",
        By::Example("systemd/scheduler.service"),
    ),
    (
        "```ini\n[Service]\n",
        By::Example("systemd/nightly.service"),
    ),
    (
        "```yaml\n              command:\n",
        By::Example("kubernetes/nightly.yaml"),
    ),
    (
        "```yaml\n          containers:\n",
        By::Example("kubernetes/nightly.yaml"),
    ),
    (
        "```yaml\n        - name: token\n",
        By::Example("kubernetes/scheduler.yaml"),
    ),
    (
        "```dockerfile\nFROM debian",
        By::Example("kubernetes/Dockerfile"),
    ),
    ("```sh\ncargo install ", By::Release),
    ("```sh\ngroupadd jobs\n", By::Shared),
    ("```toml\n[defaults]\n", By::Commands),
    ("```sh\nmariadb ", By::Mysql),
    ("```ini\n[client]\n", By::Mysql),
    ("```console\n$ export TOKENRUN_STORE=mysql://", By::Mysql),
    (
        "```sh\ntokenrun init --print-sql --store mysql://",
        By::Mysql,
    ),
    ("```console\n$ tokenrun doctor --store mysql://", By::Mysql),
    ("```console\n$ tokenrun --store mysql://", By::Mysql),
    ("```sql\nSTART TRANSACTION;\nCALL ", By::Mysql),
    ("```sh\ntokenrun --store postgres://", By::Postgres),
    ("```sh\ntokenrun init --print-sql ", By::Postgres),
    ("```console\n$ tokenrun doctor ", By::Postgres),
    ("```sh\ntokenrun hold ", By::Commands),
    ("```sh\ntokenrun serve ", By::Commands),
    ("```sql\nCREATE ROLE viewer ", By::Postgres),
    ("```text\n0 2 * * *  tokenrun ", By::Commands),
    ("```sh\ntokenrun --store redis://", By::Redis),
    ("```sh\nexport TOKENRUN_STORE='redis://", By::Redis),
    ("```sh\nredis-cli ", By::Redis),
    ("```console\n$ redis-cli ", By::Redis),
    ("```text\nredis://", By::Redis),
    ("```text\nmaxmemory-policy ", By::Redis),
    ("```lua\n", By::Redis),
    ("```sh\netcdctl ", By::Etcd),
    ("```sh\ntokenrun init --store etcd://", By::Etcd),
    ("```sh\ntokenrun --store etcd://", By::Etcd),
    ("```text\netcd://", By::Etcd),
    ("```sh\nprintf 'value(", By::Etcd),
    ("```sh\nexport TOKENRUN_STORE=zk://", By::Zookeeper),
    ("```text\nzk://", By::Zookeeper),
    ("```sql\nSELECT tokenrun.tokenrun_fence(", By::Postgres),
    ("```sql\nALTER ROLE app ", By::Postgres),
];

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// With its first fence, without its last.
    text: String,
    pub(crate) by: By,
}

impl Block {
    /// What is between the fences.
    pub(crate) fn text(&self) -> &str {
        self.text.split_once('\n').unwrap().1
    }

    /// Whether it begins like this.
    pub(crate) fn is(&self, begin: &str) -> bool {
        self.text().starts_with(begin)
    }

    /// The commands of a `console` block, each with the lines that are shown below it.
    pub(crate) fn steps(&self) -> Vec<(&str, Vec<&str>)> {
        let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in self.text().lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push((command, Vec::new())),
                (None, Some((_, shown))) => shown.push(line),
                (None, None) => panic!("output before any command: {line}"),
            }
        }
        steps
    }
}

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    /// From the repository's root: `docs/cron.md`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// README.md, and the pages of the guide by name.
pub(crate) fn pages() -> Vec<Page> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(root.join("docs")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    files.push(root.join("README.md"));
    files.sort();
    let page = |path: PathBuf| Page {
        name: path.strip_prefix(root).unwrap().display().to_string(),
        text: std::fs::read_to_string(&path).unwrap(),
    };
    files.into_iter().map(page).collect()
}

/// Whether a page has this text.
pub(crate) fn a_page_has(text: &str) -> bool {
    pages().iter().any(|page| page.text.contains(text))
}

impl Page {
    /// Its blocks, in their order. A block without a test is an error.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<String> = Vec::new();
        let mut inside = false;
        for line in self.text.lines() {
            match (inside, line.starts_with("```")) {
                (false, true) => {
                    blocks.push(format!("{line}\n"));
                    inside = true;
                }
                (true, true) => inside = false,
                (true, false) => {
                    let block = blocks.last_mut().unwrap();
                    block.push_str(line);
                    block.push('\n');
                }
                (false, false) => {}
            }
        }
        assert!(!inside, "{}: the last block has no end", self.name);
        let block = |text: String| Block {
            by: runner(&self.name, &text),
            text,
        };
        blocks.into_iter().map(block).collect()
    }

    /// What stands between backticks outside of its blocks.
    pub(crate) fn inline_code(&self) -> Vec<String> {
        let mut inside = false;
        let mut sentences = String::new();
        for line in self.text.lines() {
            if line.starts_with("```") {
                inside = !inside;
            } else if !inside {
                sentences.push_str(line);
                sentences.push(' ');
            }
        }
        let code = sentences.split('`').skip(1).step_by(2);
        code.map(str::to_owned).collect()
    }
}

/// The blocks of all pages.
pub(crate) fn all_blocks() -> Vec<Block> {
    pages().iter().flat_map(Page::blocks).collect()
}

fn runner(page: &str, block: &str) -> By {
    let listed = RUN.iter().find(|(begin, _)| block.starts_with(begin));
    match listed {
        Some((_, by)) => *by,
        None if block.starts_with("```console\n") => By::Console,
        None => panic!("no test runs this block of {page} (tests/support/guide.rs):\n{block}"),
    }
}

/// Those that this test runs. One that several pages show is there once.
pub(crate) fn blocks(by: By) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for block in all_blocks() {
        if block.by == by && blocks.iter().all(|other| other.text != block.text) {
            blocks.push(block);
        }
    }
    blocks
}

/// The first lines of blocks with another test than [`By::Console`].
pub(crate) fn listed() -> Vec<&'static str> {
    RUN.iter().map(|(begin, _)| *begin).collect()
}

/// Whether a line is as it is shown: `…` stands for anything, runs of blanks count as one.
pub(crate) fn matches(shown: &str, line: &str) -> bool {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, line) = (squeeze(shown), squeeze(line));
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = "";
    for part in parts {
        last = part;
        match rest.find(part.trim()) {
            Some(at) => rest = &rest[at + part.trim().len()..],
            None => return false,
        }
    }
    rest.is_empty() || (shown.contains('…') && last.is_empty())
}
