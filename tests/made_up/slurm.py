"""A Slurm of this machine's own: a controller and two nodes, which share its cores."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.support.processes import free_ports
from tests.conftest import PROJECT
from tests.made_up.waiting import until

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel", "srun")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

SETTINGS = """
ClusterName=tests
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# For so long a job that is queued again waits, too.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1
MpiDefault=none
SlurmdParameters=config_overrides
KillWait=15
ReturnToService=2
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={first} CPUs=4 State=UNKNOWN
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={second} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def there() -> bool:
    """Whether Slurm is installed, and may start jobs of this user: as root alone."""
    return os.geteuid() == 0 and all(shutil.which(tool, path=PATH) for tool in TOOLS)


class Slurm:
    """A running Slurm.

    Args:
        folder: for its files.
        environment: of what is called.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = {
            **environment,
            "PATH": PATH,
            "SLURM_CONF": str(folder / "slurm.conf"),
        }

    def call(self, *words: str, cwd: Path = PROJECT) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(
            words, cwd=cwd, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr, self.logs())
        return done.stdout.strip()

    def told(self, job: str, name: str) -> set[str]:
        """What Slurm tells of a job, or of each job of an array, such as JobState or Restarts."""
        printed = self.call("scontrol", "show", "job", job)
        return set(re.findall(rf"\b{name}=(\S+)", printed))

    def wait_for(self, job: str) -> None:
        """Until a job, or each of an array, is complete; none may fail."""
        until(
            lambda: not self.told(job, "JobState") & {"PENDING", "RUNNING", "COMPLETING"},
            lambda: self.call("scontrol", "show", "job", job),
        )
        assert self.told(job, "JobState") == {"COMPLETED"}

    def logs(self) -> str:
        return "\n".join(path.read_text()[-4000:] for path in self._folder.glob("*.log"))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Starts the daemons, and stops them at the end."""
        ports = free_ports(3)
        values = dict(zip(("port", "first", "second"), ports, strict=True))
        for name in ("munge", "state", "node1", "node2"):
            (self._folder / name).mkdir()
        (self._folder / "munge").chmod(0o711)  # its socket is for all
        key = self._folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        conf = self._folder / "slurm.conf"
        conf.write_text(SETTINGS.format(folder=self._folder, **values))
        (self._folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        munge = [
            f"--{name}-file={self._folder}/munge/{name}" for name in ("key", "pid", "log", "seed")
        ]
        daemons = [
            ["munged", "-F", "-f", f"--socket={self._folder}/munge/socket", *munge],
            ["slurmctld", "-D", "-c", "-f", str(conf)],
            *(["slurmd", "-D", "-N", name, "-f", str(conf)] for name in ("node1", "node2")),
        ]
        with contextlib.ExitStack() as stack:
            for words in daemons:
                with (self._folder / f"{words[0]}.err.log").open("ab") as said:
                    process = subprocess.Popen(
                        words, env=self._environment, stdout=said, stderr=said
                    )
                stack.callback(_end, process)
                if words[0] == "munged":
                    until((self._folder / "munge" / "socket").exists, self.logs)
            until(lambda: self._idle() == 2, self.logs)
            yield
            subprocess.run(
                ["scancel", "--user=root"], env=self._environment, check=False, timeout=30
            )

    def _idle(self) -> int:
        done = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--states=idle"],
            env=self._environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return len(done.stdout.splitlines())


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
