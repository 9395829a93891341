//! Completions of groups, clients and the job's command, in real shells on a terminal: the key is pressed, and the line that
//! came of it is run.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::pty::openpty;

use crate::repository;
use crate::support::{TOKENRUN, until};

const PROMPT: &str = "READY> ";

/// An interactive shell, with a store that has groups.
struct Shell {
    folder: tempfile::TempDir,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    process: Child,
}

impl Shell {
    /// `line` starts the shell in the folder, where `rc` is read first.
    fn new(line: &[&str], name: &str, rc: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), rc).unwrap();
        let store = folder.path().join("tokens.db");
        for group in ["nightly", "week end"] {
            let mut run = Command::new(TOKENRUN);
            run.arg("-s").arg(&store).args(["--client-id", "vm-7"]);
            run.args(["-g", group, "--", "true"]);
            assert!(run.status().unwrap().success());
        }
        let size = nix::pty::Winsize {
            ws_row: 24,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let binaries = Path::new(TOKENRUN).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap_or_default();
        let process = Command::new("env")
            .args(["--default-signal", "setsid", "--ctty"])
            .args(line)
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", format!("{binaries}:{path}"))
            .env("HOME", folder.path())
            .env("ZDOTDIR", folder.path())
            .env("INPUTRC", "/dev/null")
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8")
            .env("TOKENRUN_CLIENT_ID", "vm-7")
            .env("TOKENRUN_STORE", &store)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap_or_else(|error| panic!("{line:?}: {error}"));
        let keyboard = File::from(pty.master);
        let screen = Arc::<Mutex<String>>::default();
        let (mut seen, written) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = seen.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                written.lock().unwrap().push_str(&text);
            }
        });
        let shell = Self {
            folder,
            keyboard,
            screen,
            process,
        };
        shell.until(PROMPT);
        shell
    }

    fn bash() -> Self {
        let script = repository("completions/tokenrun.bash");
        let rc = format!(
            "source '{}'\nbind 'set bell-style none' 'set show-all-if-ambiguous on'\nPS1='{PROMPT}'\n",
            script.display()
        );
        Self::new(&["bash", "--noprofile", "--rcfile", "rc", "-i"], "rc", &rc)
    }

    fn zsh() -> Self {
        let scripts = repository("completions");
        let rc = format!(
            "fpath=('{}' $fpath)\nautoload -U compinit\ncompinit -u -D\nunsetopt beep\nPS1='{PROMPT}'\n",
            scripts.display()
        );
        Self::new(&["zsh", "-d", "-i"], ".zshrc", &rc)
    }

    /// Waits until the screen shows this, and forgets all up to there.
    #[track_caller]
    fn until(&self, words: &str) {
        until(&format!("the terminal shows {words:?}"), || {
            let mut screen = self.screen.lock().unwrap();
            match screen.find(words) {
                Some(at) => {
                    screen.drain(..at + words.len());
                    Ok(())
                }
                None => Err(screen.clone()),
            }
        });
    }

    fn types(&self, keys: &str) {
        (&self.keyboard).write_all(keys.as_bytes()).unwrap();
    }

    fn other_store(&self) -> PathBuf {
        let store = self.folder.path().join("other.db");
        let mut run = Command::new(TOKENRUN);
        run.arg("-s")
            .arg(&store)
            .args(["-g", "other", "--", "true"]);
        assert!(run.status().unwrap().success());
        store
    }

    /// What every shell must do.
    fn completes_groups(&self) {
        for (keys, group) in [
            ("tokenrun status --json -g ni\t\r", "nightly"),
            ("tokenrun status --json --group we\t\r", "week end"),
            ("tokenrun status --json --group=ni\t\r", "nightly"),
            (
                "tokenrun --group ni\t -- echo 'ran <'$TOKENRUN_GROUP'>'\r",
                "",
            ),
        ] {
            self.types(keys);
            match group {
                "" => self.until("ran <>"),
                group => self.until(&format!("{{\"group\":\"{group}\",")),
            }
            self.until(PROMPT);
        }
        // Clients of the store, and commands of the system after --.
        self.types("tokenrun move -g nightly --to v\t\r");
        self.until("\"nightly\" in ");
        self.until("goes to vm-7");
        self.until(PROMPT);
        self.types("tokenrun -g nightly -- tokenr\t version\r");
        self.until(concat!("tokenrun ", env!("CARGO_PKG_VERSION"), "\r\n"));
        self.until(PROMPT);
        // All of them.
        self.types("tokenrun pause -g \t\t");
        self.until("nightly");
        self.until("week");
        self.types("\u{15}echo 'all of' them\r");
        self.until("all of them");
        self.until(PROMPT);
        // The store of the line counts, and is asked quietly.
        let other = self.other_store();
        self.types(&format!(
            "tokenrun status --json --store {} -g o\t\r",
            other.display()
        ));
        self.until("{\"group\":\"other\",");
        self.until(PROMPT);
        self.types("tokenrun status --store /nowhere/x.db -g xy\t");
        self.types("\u{15}echo 'it is' quiet\r");
        until("the line after is run", || {
            let screen = self.screen.lock().unwrap().clone();
            match screen.contains("it is quiet") {
                true if screen.contains("there is no store") => panic!("{screen}"),
                true => Ok(()),
                false => Err(screen),
            }
        });
        self.until("it is quiet");
        self.until(PROMPT);
        // The topics of help.
        self.types("tokenrun help exit-c\t\r");
        self.until("143 for TERM");
        self.until(PROMPT);
        // Other options and commands still complete.
        self.types("tokenrun hist\t --js\t\r");
        self.until("\"grant\":\"bind\"");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn bash_completes_groups() {
    Shell::bash().completes_groups();
}

#[test]
fn zsh_completes_groups() {
    Shell::zsh().completes_groups();
}

#[test]
fn fish_completes_groups() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tokens.db");
    let mut run = Command::new(TOKENRUN);
    run.arg("-s").arg(&store).args(["--client-id", "vm-7"]);
    run.args(["-g", "week end", "--", "true"]);
    assert!(run.status().unwrap().success());
    let script = repository("completions/tokenrun.fish");
    let binaries = Path::new(TOKENRUN).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    for (line, word) in [
        ("tokenrun status -g we", "week end"),
        ("tokenrun move --to v", "vm-7"),
        ("tokenrun help exit", "exit-codes"),
        ("tokenrun -g x -- tokenr", "tokenrun"),
        ("tokenrun -g x -- tokenrun stat", "status"),
    ] {
        let source = format!("source '{}'; complete -C '{line}'", script.display());
        let output = Command::new("fish")
            .args(["--no-config", "-c", &source])
            .env("PATH", format!("{binaries}:{path}"))
            .env("HOME", folder.path())
            .env("TOKENRUN_STORE", &store)
            .output()
            .expect("fish is missing: install fish");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text.lines().filter_map(|line| line.split('\t').next());
        assert!(words.any(|it| it == word), "{line}: {output:?}");
    }
}
