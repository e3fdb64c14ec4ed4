"""What the benchmarks share: options, tables, processes of their own, timing in turns, memory.

It needs neither torch nor pandas, so that it adds nothing to the memory that they measure.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from study.cell import PRECISIONS
from study.terminal.options import positive

T = TypeVar("T")

Timer = Callable[[], float]
"""Does something once and returns how many seconds it took."""

CHOICES = {
    "device": ("cpu", "cuda"),
    "paradigm": ("soft", "hard", "lvml"),
    "precision": PRECISIONS,
}
JSON = {"type": Path, "metavar": "FILE", "help": "write the figures there, too"}


def options(about: str, **defaults: Any) -> argparse.ArgumentParser:
    """The options of a benchmark, each with what it is by default.

    Args:
        about: docstring of the benchmark, whose first line `--help` shows.
        defaults: a number that is counted, or a text; of a list, the option takes several; of a
            tuple, it takes one of these, by default the first; False makes a flag; all else is
            keywords of `add_argument`.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    for name, default in defaults.items():
        if isinstance(default, dict):
            how = default
        elif default is False:
            how = {"action": "store_true"}
        elif isinstance(default, tuple):
            how = {"choices": default, "default": default[0]}
        else:
            several = isinstance(default, list)
            of = default[0] if several else default
            how = {"default": default, "nargs": "+" if several else None}
            how |= {"type": positive if isinstance(of, int) else str, "choices": CHOICES.get(name)}
        if "default" in how:
            how = {"help": "default: %(default)s", **how}
        parser.add_argument(f"--{name.replace('_', '-')}", **how)
    return parser


def table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    """Prints a table in Markdown, each row as soon as it is there; all but names to the right."""
    widths = [max(len(each), 7) for each in head[1:]]
    for name, *cells in itertools.chain([head, ["---", *("---:" for _ in widths)]], rows):
        print("|", " | ".join([name.ljust(32), *map(str.rjust, cells, widths)]), "|", flush=True)


def side_by_side(functions: Mapping[T, Callable[[], Any]], rounds: int) -> dict[T, list[Any]]:
    """What each timer returns in each round; they take turns, so that conditions are equal."""
    for function in functions.values():  # a warm-up
        function()
    found: dict[T, list[Any]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            found[name].append(function())
    return found


def seconds_of(function: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


@contextlib.contextmanager
def in_a_process(
    prepare: Callable[..., Callable[[], T]], *arguments: object
) -> Iterator[Callable[[], T]]:
    """A function in a fresh process without this one's settings, which idles between calls.

    Args:
        prepare: called once in that process; returns the function that is called there. It is
            pickled with the arguments, so it has to be a module's function.
        arguments: of `prepare`.

    Yields:
        Calls it there. Raises BrokenProcessPool if the process has died; it printed why.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), _prepare, (prepare, arguments)) as pool:
        yield lambda: pool.submit(_call).result()


_prepared: Callable[[], Any]


def _prepare(prepare: Callable[..., Callable[[], Any]], arguments: tuple[object, ...]) -> None:
    global _prepared
    _prepared = prepare(*arguments)


def _call() -> Any:
    return _prepared()


class Ratio(NamedTuple):
    """Of seconds, over the rounds."""

    median: float
    least: float
    most: float

    @property
    def spread(self) -> str:
        return f"{self.least:.2f} to {self.most:.2f}"


def ratio(of: list[float], to: list[float]) -> Ratio:
    """Seconds in each round, relative to those of another way in the same round."""
    ratios = [a / b for a, b in zip(of, to, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def peak_bytes() -> int:
    """The largest resident size of this process so far (Linux: VmHWM).

    `ru_maxrss` of `getrusage` would not do: a new process inherits its parent's.
    """
    status = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def write(path: Path, text: str) -> None:
    """Replaces a file as a whole; one that a kill leaves is replaced by the next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(text)
    partial.replace(path)
