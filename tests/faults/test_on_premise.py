"""The section "On-premise" of docs/cluster.md, carried out: its file and its commands.

Two hosts and a desk are made of namespaces (`tests/made_up/hosts.py`); the launcher on the desk
reaches the hosts over SSH, at the addresses that the document names.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from study.results import Results
from tests.conftest import PROJECT
from tests.made_up.hosts import PATH, TOOLS, Host, NoHosts, find, join
from tests.made_up.waiting import until

pytestmark = pytest.mark.timeout(600)

DOCUMENT = PROJECT / "docs" / "cluster.md"
GRID = (
    "--set n=400 m=4 epochs=200 lr=0.1 seed=0-3 confirm=none paradigm=soft batch_size=10 "
    "evaluations=1 train_metrics_size=20 validation_size=50 test_size=50 --threads 1 "
    "--tracking none"
)
CELLS = 4
"""Together they take longer than a worker to start: else the first host trains them all."""
BIN = Path(sys.prefix, "bin")


def section() -> str:
    text = f"\n{DOCUMENT.read_text()}".partition("\n## On-premise\n")[2]
    return text.partition("\n## ")[0]


def configuration() -> str:
    """The file, but hosts take the environment that runs this test, and one core."""
    config = yaml.safe_load((PROJECT / "examples" / "on-premise.yaml").read_text())
    installs = [command for command in config["setup_commands"] if "uv" in command]
    assert len(installs) == 2
    kept = [command for command in config["setup_commands"] if command not in installs]
    config["setup_commands"] = [*kept, f"ln -sfn {sys.prefix} ~/attention-study/.venv"]
    # Both hosts share this machine's cores.
    return yaml.safe_dump(config, width=1000).replace("ray start", "ray start --num-cpus=1")


def blocks() -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```", section(), re.DOTALL | re.MULTILINE)


def command(begin: str) -> str:
    """The one command of the document that begins so."""
    lines = [line for block in blocks() for line in block.splitlines()]
    (found,) = [line for line in lines if line.startswith(begin)]
    return found


@dataclass(frozen=True)
class Site:
    """A desk, from which the commands of the document are given, and the hosts of a cluster.

    Attributes:
        idle: what ran on the hosts before.
        shared: what the hosts see as /srv/study.
    """

    desk: Host
    head: Host
    worker: Host
    idle: list[list[str]]
    shared: Path

    @property
    def hosts(self) -> tuple[Host, Host]:
        return self.head, self.worker

    def run(self, line: str, timeout: float = 500.0) -> str:
        """Runs a command of the document."""
        done = self.desk.run(
            f"cd ~/attention-study && {command('export ')} && {line}",
            timeout,
            PATH=f"{BIN}:{PATH}",
            RAY_AUTH_MODE="token",
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def python(
        self, host: Host, words: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs the project's Python on a host, as its account would."""
        line = f". ~/study.env && cd ~/attention-study && python {words}"
        return host.run(line, 500.0, **environment)

    def are_idle(self) -> bool:
        return [host.commands() for host in self.hosts] == self.idle


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    if not all(map(find, TOOLS)):
        pytest.skip("needs sshd, rsync and ip, which .ci/run installs")
    folder = tmp_path_factory.mktemp("site")
    shared = folder / "shared"
    shared.mkdir()
    python = {path: Path(path) for path in {sys.prefix, str(Path(sys.prefix).resolve()),
              str(Path(sys.base_prefix).resolve())}}  # fmt: skip
    made = []
    try:
        for name, address, user, group, shows in [
            ("desk", "10.0.0.1", "you", 1000, {str(PROJECT): PROJECT}),
            ("head", "10.0.0.10", "study", 1001, {"/srv/study": shared}),
            ("worker", "10.0.0.11", "study", 1002, {"/srv/study": shared}),
        ]:
            made.append(Host(name, address, user, group, folder / name, python | shows))
        desk, head, worker = made
        join(desk, [head, worker])
        key = prepare(desk)
        for host in (head, worker):
            host.serve_ssh(key)
        yield Site(desk, head, worker, [head.commands(), worker.commands()], shared)
    except NoHosts:
        pytest.skip("needs the right to make namespaces")
    finally:
        for host in made:
            host.stop()


def prepare(desk: Host) -> str:
    """What the document asks for before its first command; gives the public key."""
    desk.write("~/attention-study/on-premise.yaml", configuration())
    desk.write("~/.ssh/config", "StrictHostKeyChecking accept-new\n")
    copied = yaml.safe_load(configuration())["file_mounts"].values()
    parts = " ".join(f"{PROJECT}/{name}" for name in copied if not name.startswith("~"))
    done = desk.run(
        f"cp -r {parts} ~/attention-study && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/study && "
        f"{BIN}/ray get-auth-token --generate >/dev/null && chmod 600 ~/.ray/auth_token"
    )
    assert done.returncode == 0, done.stdout
    return desk.run("cat ~/.ssh/study.pub").stdout


@pytest.fixture(scope="module")
def cluster(site) -> Site:
    """The cluster, up, with both hosts in it."""
    site.run(command("ray up"))
    until(lambda: any("raylet" in line for line in site.worker.commands()))

    def status():
        return site.run(command("ray exec on-premise.yaml 'ray status'"))

    # The autoscaler reports every few seconds, and not before it has started.
    until(lambda: "2 local.cluster.node" in status(), status)
    return site


def test_a_study_runs_on_both_hosts(cluster):
    study = command("ray exec on-premise.yaml 'cd ")
    with_grid = f"{study.removesuffix(chr(39))} {GRID}'"
    printed = cluster.run(with_grid)
    results = cluster.shared / "results"
    assert f"{CELLS}/{CELLS} cells" in printed  # with a bar: `ray` gives a terminal
    assert len(Results(results).finished()) == CELLS
    assert [*results.glob("checkpoints/*")] == []
    groups = [path.stat().st_gid for path in results.glob("cells/*")]
    assert set(groups) == {host.group for host in cluster.hosts}, groups


def test_the_dashboard_asks_for_the_token(cluster):
    cluster.run(f"{{ setsid {command('ray dashboard')} >/dev/null 2>&1 & echo $! >~/tunnel; }}")
    script = (
        "import sys, urllib.error, urllib.request\n"
        "request = urllib.request.Request(sys.argv[1] + '/api/version')\n"
        "if sys.argv[2:]: request.add_header('Authorization', 'Bearer ' + sys.argv[2])\n"
        "try: print(urllib.request.urlopen(request, timeout=10).status)\n"
        "except urllib.error.HTTPError as error: print(error.code)\n"
        "except OSError: print('nothing there')\n"
    )
    cluster.desk.write("~/ask.py", script)

    def asked(url, token=""):
        return cluster.desk.run(f"{BIN}/python ~/ask.py {url} {token}").stdout.strip()

    there = "http://127.0.0.1:8265"
    until(lambda: asked(there) != "nothing there")
    assert asked(there) == "401"
    assert asked(there, "$(cat ~/.ray/auth_token)") == "200"
    assert asked(f"http://{cluster.head.address}:8265") == "nothing there"  # from the network
    cluster.desk.run("kill -- -$(cat ~/tunnel)")


def test_results_that_are_not_shared_are_refused_before_any_cell(cluster):
    """Every host has a /tmp of its own."""
    done = cluster.python(
        cluster.head, f"-m study.run digits --address auto --results /tmp/own {GRID}"
    )
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stdout
    assert last.startswith("study.run: node worker (10.0.0.11)")
    assert "file system that all nodes share" in last
    assert cluster.head.run("ls /tmp/own/cells").stdout == ""


def test_taking_it_down_leaves_nothing_running(cluster):
    """The last one, for which the cluster comes up anew where it is called alone."""
    assert not cluster.are_idle()
    cluster.run(command("ray down"))
    cluster.run(command("ssh"))
    left = {line for host in cluster.hosts for line in host.commands()}.difference(*cluster.idle)
    # A connection of the head to the worker stays open for 10 s more.
    assert not [line for line in left if "ray" in line.lower() and "ray_ssh" not in line]
    until(cluster.are_idle, lambda: str(left), 30)
