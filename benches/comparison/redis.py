#!/usr/bin/env python3
"""What tools on Redis do when something goes wrong: two nodes want the same job, and each fault comes
once while the first one runs it.

    benches/comparison/redis.py --tokenrun PATH [--fredlock PATH] [--redlock PATH] [--redlock-cli PATH]
        [--cronlock PATH]

fredlock and redlock (of redlock-py) come from PyPI, redlock-cli is the program of boxdot/redlock-cli,
cronlock the script of kvz/cronlock. It prints a
table for docs/comparison.md. The servers are Redis servers of its own, without persistence, on
127.0.0.1; all ends with it. It has to be run as root, or where user namespaces are allowed.
"""
import argparse, os, shutil, signal, socket, subprocess, tempfile, threading, time

# The job takes longer than it is watched.
JOB = 'for i in $(seq 600); do echo "$0 $(date +%s.%N) $$" >> "$1"; sleep 0.1; done'
BEFORE, FROZEN, WATCHED = 2.0, 9.0, 20.0


class Redis:
    def __init__(self, folder, name):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.start()

    def start(self):
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                 "--dir", self.folder, "--repl-diskless-sync-delay", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        until(lambda: "PONG" in self.cli("ping"))

    def cli(self, *words):
        line = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(line, capture_output=True, text=True).stdout

    def kill(self):
        self.process.kill()
        self.process.wait()


class Proxy:
    """What a name or a virtual address does: its clients reach one server, and later another."""

    def __init__(self, to):
        self.to, self.links = to, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client = self.listener.accept()[0]
            try:
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                client.close()
                continue
            self.links += [client, server]
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=pump, args=(a, b), daemon=True).start()

    def switch(self, to):
        self.to = to
        for link in self.links:
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for end in (a, b):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def until(happened, limit=30.0):
    begun = time.time()
    while not happened():
        if time.time() - begun > limit:
            raise TimeoutError
        time.sleep(0.02)


class Trial:
    """Two nodes and a tool."""

    def __init__(self, tool):
        self.tool, self.runs = tool, []
        self.folder = tempfile.mkdtemp(prefix="tokenrun-comparison-")
        self.log = os.path.join(self.folder, "log")
        open(self.log, "w").close()
        self.serve()

    def serve(self):
        self.master = Redis(self.folder, "master")
        self.replica = Redis(self.folder, "replica")
        self.servers = (self.master, self.replica)
        self.proxy = Proxy(self.master.port)

    def node(self, name):
        job = ["sh", "-c", JOB, name, self.log]
        run = subprocess.Popen(self.tool(self.port(), name, job), start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.runs.append(run)
        return run

    def beats(self, name):
        with open(self.log) as log:
            lines = (line.split() for line in log)
            return [float(line[1]) for line in lines if len(line) == 3 and line[0] == name]

    def port(self):
        return self.proxy.port

    def prepare(self, fault):
        self.replica.cli("replicaof", "127.0.0.1", str(self.master.port))
        until(lambda: "master_link_status:up" in self.replica.cli("info", "replication"))
        # Its last writes are lost in the failover, as asynchronous replication may lose them.
        if fault is failed_over:
            os.kill(self.replica.process.pid, signal.SIGSTOP)
            self.master.cli("client", "kill", "type", "replica")

    def play(self, fault):
        if self.tool.settle:
            self.tool.settle(self.port())
        self.prepare(fault)
        first = self.node("a")
        until(lambda: self.beats("a"))
        self.node("b")
        time.sleep(BEFORE)
        begun = time.time()
        fault(self, first)
        time.sleep(max(0.0, begun + WATCHED - time.time()))
        return self.said(begun)

    def said(self, begun):
        a, b = self.beats("a"), self.beats("b")
        end = time.time()
        alive = end - a[-1] < 1.0
        if b and (alive or a[-1] > b[0] + 0.15):
            together = (end if alive else a[-1]) - b[0]
            more = ", and on" if alive else ""
            return f"**two jobs at once** from {b[0] - begun:.1f} s, for {together:.1f} s{more}"
        ended = "job goes on" if alive else f"job ended after {max(0.0, a[-1] - begun):.1f} s"
        return f"{ended}, " + (f"the next began after {b[0] - begun:.1f} s" if b else "no other begins")

    def close(self):
        for run in self.runs:
            run.send_signal(signal.SIGCONT)
            try:
                os.killpg(run.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            run.kill()
            run.wait()
        # The jobs that a wrapper has left behind.
        with open(self.log) as log:
            for job in {line.split()[2] for line in log if len(line.split()) == 3}:
                try:
                    os.kill(int(job), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for server in self.servers:
            server.process.send_signal(signal.SIGCONT)
            server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def killed(trial, first):
    trial.master.kill()
    trial.master.start()


def frozen(trial, first):
    os.kill(trial.master.process.pid, signal.SIGSTOP)
    time.sleep(FROZEN)
    os.kill(trial.master.process.pid, signal.SIGCONT)


def failed_over(trial, first):
    trial.master.kill()
    os.kill(trial.replica.process.pid, signal.SIGCONT)
    trial.replica.cli("replicaof", "no", "one")
    trial.proxy.switch(trial.replica.port)


def wrapper_killed(trial, first):
    first.kill()


def wrapper_stopped(trial, first):
    first.send_signal(signal.SIGSTOP)


FAULTS = [("the server is killed and started", killed), ("it freezes for 9 s", frozen),
          ("a replica without the lock is promoted", failed_over),
          ("the wrapper is killed", wrapper_killed), ("it is stopped", wrapper_stopped)]


def on_two_hosts(program, store, name, job):
    durations = ["--takeover-after=5s", "--heartbeat=1s", "--kill-grace=300ms", "--store-timeout=500ms",
                 "--head-start=100ms", "--keep=0"]

    line = [program, "-q", "-s", store, "-g", "job", "--client-id", name, "--wait", *durations, "--", *job]
    # As on two hosts: the locks of the other one say nothing.
    hidden = 'mount -t tmpfs none /var/lib && exec "$0" "$@"'
    return ["unshare", "-rm", "sh", "-ec", hidden, *line] if name == "b" else line


def tokenrun(program):
    def command(port, name, job):
        return on_two_hosts(program, f"redis://127.0.0.1:{port}", name, job)

    def settle(port):
        # The servers were started a moment ago, and have forgotten nothing.
        info = subprocess.run(["redis-cli", "-p", str(port), "info", "server"], capture_output=True, text=True)
        run = next(line[7:23] for line in info.stdout.splitlines() if line.startswith("run_id:"))
        subprocess.run([program, "settle", "--yes", run, "-s", f"redis://127.0.0.1:{port}"], check=True,
                       stderr=subprocess.DEVNULL)

    command.settle = settle
    return command


def fredlock(program):
    def command(port, name, job):
        return [program, "--name", "job", "--wait-timeout", "-1", "-p", str(port), "--auto-release-time", "60",
                "run", *job]

    command.settle = None
    return command


def redlock(program):
    script = ('key=$("$0" --quiet --redis "$1" lock job 60000 --retry-count -1 --retry-delay 300) || exit\n'
              'redlock=$0 url=$1; shift; "$@"; "$redlock" --quiet --redis "$url" unlock job "$key"')

    def command(port, name, job):
        return ["sh", "-c", script, program, f"redis://127.0.0.1:{port}/0", *job]

    command.settle = None
    return command


def redlock_cli(program):
    def command(port, name, job):
        return [program, "--server", f"127.0.0.1:{port}", "--lock-name", "job", "--ttl", "60", "--timeout", "600",
                "--", *job]

    command.settle = None
    return command


def cronlock(program):
    # It is refused, and comes again, as from cron.
    script = 'until "$0" "$@"; do sleep 0.3; done'

    def command(port, name, job):
        own = ["env", "CRONLOCK_HOST=127.0.0.1", f"CRONLOCK_PORT={port}", "CRONLOCK_RELEASE=60",
               "CRONLOCK_GRACE=0", "CRONLOCK_KEY=job", "CRONLOCK_RECONNECT_BACKOFF=1"]
        return [*own, program, *job] if name == "a" else [*own, "sh", "-c", script, program, *job]

    command.settle = None
    return command


def compare(trial, tools, all_faults):
    parser = argparse.ArgumentParser()
    for name in tools:
        parser.add_argument(f"--{name}")
    parser.add_argument("--fault", type=int, help="only this one, from 0")
    asked = parser.parse_args()
    faults = all_faults if asked.fault is None else [all_faults[asked.fault]]
    print("| | " + " | ".join(name for name, _ in faults) + " |")
    print("|---" * (len(faults) + 1) + "|")
    for name, tool in tools.items():
        program = getattr(asked, name.replace("-", "_"))
        if not program:
            continue
        cells = []
        for _, fault in faults:
            played = trial(tool(program))
            try:
                cells.append(played.play(fault))
            finally:
                played.close()
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    compare(Trial, {"tokenrun": tokenrun, "fredlock": fredlock, "redlock": redlock,
                    "redlock-cli": redlock_cli, "cronlock": cronlock}, FAULTS)
