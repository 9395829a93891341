#!/usr/bin/env python3
"""What kazoo's lock recipe and tokenrun do on ZooKeeper when something goes wrong, as redis.py has it.

    benches/comparison/zookeeper.py --tokenrun PATH [--kazoo PYTHON]

PYTHON is an interpreter with kazoo. The server is one of its own, on 127.0.0.1.
"""
import os, socket, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from redis import FAULTS, Trial, compare, failed_over, on_two_hosts, until

# The recipe as kazoo's guide shows it, around a command.
KAZOO = """
import subprocess, sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1], timeout=5)
client.start()
with client.Lock("/job", sys.argv[2]):
    subprocess.call(sys.argv[3:])
"""


class ZooKeeper:
    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.config = os.path.join(folder, "zoo.cfg")
        with open(self.config, "w") as config:
            config.write(f"tickTime=500\ndataDir={folder}/data\nclientPort={self.port}\n"
                         "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n")
        self.start()

    def start(self):
        words = ["java", "-cp", "/usr/share/java/zookeeper.jar",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.config]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self.answers)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port)) as client:
                client.sendall(b"srvr")
                return b"Mode" in b"".join(iter(lambda: client.recv(4096), b""))
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()


class OnZooKeeper(Trial):
    def serve(self):
        self.master = ZooKeeper(self.folder)
        self.servers = (self.master,)

    def port(self):
        return self.master.port

    def prepare(self, fault):
        pass


def tokenrun(program):
    def store(port):
        return f"zk://127.0.0.1:{port}"

    def command(port, name, job):
        return on_two_hosts(program, store(port), name, job)

    command.settle = lambda port: subprocess.run([program, "init", "-s", store(port)], check=True,
                                                 stdout=subprocess.DEVNULL)
    return command


def kazoo(python):
    def command(port, name, job):
        return [python, "-c", KAZOO, f"127.0.0.1:{port}", name, *job]

    command.settle = None
    return command


compare(OnZooKeeper, {"tokenrun": tokenrun, "kazoo": kazoo}, [it for it in FAULTS if it[1] is not failed_over])
