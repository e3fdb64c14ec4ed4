"""Processes as /proc shows them: those below one, and this one's memory."""

from __future__ import annotations

from pathlib import Path


def below(pid: int) -> dict[int, str]:
    """Every process below one: its id -> its command line."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        if fields := _read(path).rpartition(")")[2].split():
            parents[int(path.parent.name)] = int(fields[1])
    found = {}
    for child in parents:
        above = parents[child]
        while above in parents and above != pid:
            above = parents[above]
        if above == pid:
            found[child] = _read(Path(f"/proc/{child}/cmdline")).replace("\0", " ")
    return found


def training(pid: int) -> list[int]:
    """The processes below one that train; Ray names its workers by what they run."""
    return [child for child, command in below(pid).items() if "ImplicitFunc" in command]


def is_gone(pid: int) -> bool:
    """Whether a process has ended, even if its parent has not waited for it."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return not fields or fields[0] == "Z"


def peak_bytes() -> int:
    """The largest resident size of this process so far (Linux: VmHWM).

    `ru_maxrss` of `getrusage` would not do: a new process inherits its parent's.
    """
    return 1024 * int(_read(Path("/proc/self/status")).partition("VmHWM:")[2].split()[0])


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:  # the process ended
        return ""
