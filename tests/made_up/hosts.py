"""Hosts of a test's own on this machine, made of Linux namespaces and joined by a network.

A host has its own network, processes, host name, shared memory, /tmp, /home, /run and /srv; of
this machine it sees the rest. The network has no way out: its bridge lies in one of the hosts.
All of it ends with the process that made it, however that ends; nothing is left on the machine.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TOOLS = ("ip", "mount", "nsenter", "rsync", "ssh", "ssh-keygen", "sshd", "unshare")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PRIVATE = ("/tmp", "/home", "/run", "/srv")

# The first process of a host. It says under which id this machine knows it, and takes leave of
# processes that lost their parent, as `cat` waits for the end of its input.
# The folders that the host is shown wait in /dev/shm while what they may lie below is covered.
_FIRST_PROCESS = """
set -eu
read -r pid rest < /proc/self/stat
mount -t proc proc /proc
hostname "$NAME"
ip link set lo up
for file in group hosts passwd resolv.conf shadow; do
    if [ -e "/etc/$file" ]; then mount --bind "$ETC/$file" "/etc/$file"; fi
done
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
for pair in "$@"; do
    waiting="/dev/shm/$(echo "${pair#*:}" | tr / .)"
    mkdir "$waiting"
    mount --rbind "${pair%%:*}" "$waiting"
done
for folder in $PRIVATE; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
chmod 1777 /tmp
for pair in "$@"; do
    waiting="/dev/shm/$(echo "${pair#*:}" | tr / .)"
    mkdir -p "${pair#*:}"
    mount --move "$waiting" "${pair#*:}"
    rmdir "$waiting"
done
mkdir -p "$HOME" /run/sshd
cp -r /etc/skel/. "$HOME"
echo "$pid"
cat
"""


class NoHosts(Exception):
    """This machine cannot make hosts: the message is the reason."""


def find(tool: str) -> str | None:
    """The path of a program, also of those that only root has on its path."""
    return shutil.which(tool, path=PATH)


class Host:
    """One host; its only account has the rights of root.

    Args:
        name: host name.
        address: on the network that `join` makes; host names are not looked up anywhere.
        user: name of the account, whose home is /home/USER.
        group: number of its group, so that files in shared folders tell which host wrote them.
        folder: for the host's files in /etc.
        shows: path on the host, below /tmp, /home, /run or /srv -> folder of this machine that is
            seen there. Other paths are left out: what lies there is seen anyway.

    Raises:
        NoHosts: no right to make namespaces.
    """

    def __init__(
        self,
        name: str,
        address: str,
        user: str,
        group: int,
        folder: Path,
        shows: Mapping[str, Path],
    ) -> None:
        self.address = address
        self.group = group
        self.home = f"/home/{user}"
        folder.mkdir()
        for file, lines in {
            "hosts": ["127.0.0.1 localhost", f"{address} {name}"],
            "group": [f"{user}:x:{group}:"],
            "passwd": [
                f"{user}:x:0:{group}::{self.home}:/bin/bash",
                "sshd:x:100:65534::/:/bin/false",
            ],
            "resolv.conf": [],
            "shadow": [f"{user}:*:19000::::::", "sshd:*:19000::::::"],
        }.items():
            (folder / file).write_text("".join(f"{line}\n" for line in lines))
        self._folder = folder
        self._environment = {"HOME": self.home, "USER": user, "PATH": PATH, "LANG": "C.UTF-8"}
        covered = tuple(f"{folder}/" for folder in _PRIVATE)
        pairs = [f"{shows[path]}:{path}" for path in sorted(shows) if path.startswith(covered)]
        self._process = subprocess.Popen(
            ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child",
             "sh", "-c", _FIRST_PROCESS, "sh", *pairs],
            env=self._environment
            | {"NAME": name, "ETC": str(folder), "PRIVATE": " ".join(_PRIVATE)},
            cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert self._process.stdout
        self.pid = self._process.stdout.readline().strip()
        if not self.pid:
            self._process.kill()
            raise NoHosts(self._process.communicate()[1])

    def run(
        self, command: str, timeout: float = 60.0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command of the shell in the account's home; stdout holds what it printed."""
        return subprocess.run(
            ["nsenter", "--target", self.pid, "--mount", "--net", "--pid", "--uts", "--ipc",
             "bash", "-c", f"cd; {command}"],
            env=self._environment | environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
            check=False,
        )  # fmt: skip

    def commands(self) -> list[str]:
        """The command lines of all processes of the host."""
        listed = self.run("ps -e -o args=").stdout.splitlines()
        return [line for line in listed if not line.startswith(("ps ", "bash -c ps "))]

    def serve_ssh(self, public_key: str) -> None:
        """Starts an SSH server for the owner of a key."""
        key = self._folder / "host_key"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)],
            env={"PATH": PATH},
            check=True,
        )
        configuration = (
            f"ListenAddress {self.address}\nHostKey /run/host_key\nPidFile none\nUsePAM no\n"
            "AuthorizedKeysFile /run/authorized_keys\nPasswordAuthentication no\nStrictModes no\n"
        )
        for name, text in {
            "host_key": key.read_text(),
            "authorized_keys": public_key,
            "sshd_config": configuration,
        }.items():
            self.write(f"/run/{name}", text)
        started = self.run("/usr/sbin/sshd -f /run/sshd_config")
        assert started.returncode == 0, started.stdout

    def write(self, path: str, text: str) -> None:
        """Writes a file that only the account can read."""
        written = self.run(f'umask 077; mkdir -p "$(dirname {path})"; cat > {path} <<"@"\n{text}@')
        assert written.returncode == 0, written.stdout

    def stop(self) -> None:
        """Kills every process of the host; its mounts and its network go with them."""
        self._process.kill()
        self._process.communicate()


def join(middle: Host, others: Sequence[Host]) -> None:
    """Puts a bridge into one host, which gets its address, and links others to it: a /24 network.

    Packets to elsewhere go to `middle`, which passes nothing on.

    Raises:
        NoHosts: this machine has no such networks.
    """
    inside = ("nsenter", "--target", middle.pid, "--net", "ip")
    _run(*inside, "link", "add", "bridge", "type", "bridge")
    _run(*inside, "addr", "add", f"{middle.address}/24", "dev", "bridge")
    _run(*inside, "link", "set", "bridge", "up")
    for number, host in enumerate(others):
        link = ("dev", f"link{number}")
        _run(
            *inside, "link", "add", *link, "type", "veth",
            "peer", "name", "eth0", "netns", host.pid,
        )  # fmt: skip
        _run(*inside, "link", "set", *link, "master", "bridge", "up")
        there = ("nsenter", "--target", host.pid, "--net", "ip")
        _run(*there, "addr", "add", f"{host.address}/24", "dev", "eth0")
        _run(*there, "link", "set", "eth0", "up")
        _run(*there, "route", "add", "default", "via", middle.address)


def _run(*command: str) -> None:
    done = subprocess.run(command, env={"PATH": PATH}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoHosts(f"{' '.join(command)}: {done.stderr}")
