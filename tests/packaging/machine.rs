//! A machine that is thrown away: this one's files, and whatever is written to them in
//! memory. It ends with the process that started it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{TOKENRUN, children, until};

/// Makes the root in a mount namespace: the folder for it, the host's name, tokenrun's
/// binary or nothing, and the folder that is shared with the test. The rest is what runs there.
const MAKE: &str = r#"
set -e
mount -t tmpfs machine "$1"
cd "$1"
mkdir upper work root
# What root's runs on this machine keep is not seen there, nor what they write meanwhile.
mkdir -p upper/var/lib
mknod upper/var/lib/tokenrun c 0 0
mount -t overlay machine -o lowerdir=/,upperdir=upper,workdir=work root
rm -f root/usr/local/bin/tokenrun
# Else each installation indexes all manual pages anew, for ten seconds.
rm -f root/var/lib/man-db/auto-update
if [ -n "$3" ]; then
    touch root/usr/local/bin/tokenrun
    chmod 755 root/usr/local/bin/tokenrun
    mount --bind "$3" root/usr/local/bin/tokenrun
fi
"#;

/// A process that waits for the end of the test, and the root that it sees.
const PLAIN: &str = r#"
mount -t proc proc root/proc
mount --rbind /dev root/dev
mount -t tmpfs shm root/dev/shm
mount -t tmpfs run root/run
mount -t tmpfs tmp root/tmp
mkdir -p "root$4"
mount --bind "$4" "root$4"
hostname "$2"
cd root
exec chroot . sh -c 'echo ready; read -r line'
"#;

/// The same with systemd as the first process. The groups that its processes are in
/// are removed when it has gone.
const SYSTEMD: &str = r#"
# Newer versions refuse the first version of control groups.
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
own=tokenrun-${1##*/}
tree=/sys/fs/cgroup
mkdir "$tree/$own"
echo $$ > "$tree/$own/cgroup.procs"
rm -rf root/etc/systemd/system/*
echo "$2" > root/etc/hostname
systemd-nspawn -q -D root --register=no --keep-unit --hostname="$2" --bind="$4" \
    --link-journal=no --console=pipe -b systemd.unit=basic.target systemd.show_status=no \
    < /dev/null > "$4/console" 2>&1 &
nspawn=$!
echo ready
read -r line || true
kill -9 $(cat "/proc/$nspawn/task/$nspawn/children") || true
wait
echo $$ > "$tree/cgroup.procs"
find "$tree/$own" -depth -type d -exec rmdir {} \;
"#;

/// A machine that runs.
pub(crate) struct Machine {
    process: Child,
    /// Its first process.
    init: i32,
    name: String,
    folder: tempfile::TempDir,
}

impl Machine {
    /// Starts a machine with this host name that shares a folder with the test.
    pub(crate) fn start(name: &str, shared: &Path) -> Self {
        Self::start_with(TOKENRUN, name, shared)
    }

    /// The same without tokenrun.
    pub(crate) fn start_bare(name: &str, shared: &Path) -> Self {
        Self::start_with("", name, shared)
    }

    fn start_with(tokenrun: &str, name: &str, shared: &Path) -> Self {
        let (mut process, folder) = Self::make(name, tokenrun, shared, PLAIN, true);
        Self::until_ready(&mut process);
        let init = Self::only_child(&process);
        Self {
            process,
            init,
            name: name.to_owned(),
            folder,
        }
    }

    /// Starts a machine that systemd runs.
    pub(crate) fn boot(name: &str, shared: &Path) -> Self {
        let (mut process, folder) = Self::make(name, TOKENRUN, shared, SYSTEMD, false);
        Self::until_ready(&mut process);
        let nspawn = Self::only_child(&process);
        let console = shared.join("console");
        let mut machine = Self {
            process,
            init: nspawn,
            name: name.to_owned(),
            folder,
        };
        until("systemd is up", || {
            // nspawn's first child is not it, but starts it and ends.
            let Some(init) = children(nspawn).into_iter().find(|it| is_first(*it)) else {
                return Err(format!("{:?}", std::fs::read_to_string(&console)));
            };
            machine.init = init;
            let words = ["is-active", "basic.target"];
            let output = machine.command("systemctl").args(words).output().unwrap();
            if output.status.success() {
                Ok(())
            } else {
                let said = std::fs::read_to_string(&console);
                Err(format!("{output:?} {said:?}"))
            }
        });
        machine
    }

    fn make(
        name: &str,
        tokenrun: &str,
        shared: &Path,
        rest: &str,
        plain: bool,
    ) -> (Child, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]);
        if plain {
            command.args(["--uts", "--pid", "--fork", "--kill-child"]);
        }
        command
            .args(["sh", "-c", &format!("{MAKE}{rest}"), "sh"])
            .arg(folder.path())
            .arg(name)
            .arg(tokenrun)
            .arg(shared)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let process = command
            .spawn()
            .expect("unshare is missing: install util-linux");
        (process, folder)
    }

    fn until_ready(process: &mut Child) {
        let output = process.stdout.take().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        assert_eq!(line, "ready\n", "the machine can't be made: see above");
    }

    fn only_child(process: &Child) -> i32 {
        let pid = i32::try_from(process.id()).unwrap();
        until("the machine has a first process", || {
            match children(pid)[..] {
                [one] => Ok(one),
                ref all => Err(format!("{all:?}")),
            }
        })
    }

    /// Its host name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A file there, as this machine's programs name it.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{file}", self.init))
    }

    /// A command there, as root, with next to no environment.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.init.to_string()])
            .args(["--mount", "--pid", "--uts", "--root", "--wdns=/"])
            .arg("--")
            .arg(program)
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            );
        command
    }

    /// Runs a shell script there, and gives what it prints.
    #[track_caller]
    pub(crate) fn shell(&self, script: &str) -> String {
        crate::output_of(self.command("sh").args(["-ec", script]))
    }

    /// The files that were written there, or hide one of this machine's: what others write
    /// to this machine's meanwhile is seen there too, and is none of them.
    pub(crate) fn written(&self) -> BTreeSet<String> {
        let mut command = Command::new("nsenter");
        let upper = self.folder.path().join("upper");
        command
            .args(["--target", &self.init.to_string(), "--mount", "find"])
            .arg(upper)
            .args(["-printf", "/%P\n"]);
        crate::output_of(&mut command)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Writes a file there.
    #[track_caller]
    pub(crate) fn write(&self, path: &str, mode: &str, text: &str) {
        let script = r#"mkdir -p "$(dirname "$0")" && cat > "$0" && chmod "$1" "$0""#;
        let mut command = self.command("sh");
        command.args(["-ec", script, path, mode]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success(), "{path} can't be written");
    }

    /// Its power fails.
    pub(crate) fn die(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// True for the first process of a pid namespace.
fn is_first(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pids.is_some_and(|pids| pids.split_whitespace().next_back() == Some("1"))
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

/// A folder that the users of machines may write to.
pub(crate) fn shared_folder(store: &crate::support::Store) -> PathBuf {
    let folder = store.path().to_owned();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&folder, mode).unwrap();
    folder
}
