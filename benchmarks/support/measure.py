"""What the benchmarks share: tables, processes of their own, files that are always whole.

It needs neither torch nor pandas, so that it adds nothing to the memory that they measure.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    """Prints a table in Markdown, each row as soon as it is there; all but names to the right."""

    def line(name: str, *cells: str) -> None:
        aligned = (cell.rjust(max(len(top), 7)) for top, cell in zip(head[1:], cells, strict=True))
        print("|", " | ".join([name.ljust(32), *aligned]), "|", flush=True)

    line(*head)
    line("---", *("---:" for _ in head[1:]))
    for row in rows:
        line(*row)


def seconds_of(function: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


@contextlib.contextmanager
def in_a_process(
    prepare: Callable[..., Callable[[], Any]], *arguments: object
) -> Iterator[Callable[[], Any]]:
    """A function in a fresh process without this one's settings, which idles between calls.

    Args:
        prepare: called once in that process; returns the function that is called there. It is
            pickled with the arguments, so it has to be a module's function.
        arguments: of `prepare`.

    Yields:
        Calls it there. Raises BrokenProcessPool if the process has died; it printed why.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), _prepare, (prepare, *arguments)) as pool:
        yield lambda: pool.submit(_call).result()


_prepared: Callable[[], Any]


def _prepare(prepare: Callable[..., Callable[[], Any]], *arguments: object) -> None:
    global _prepared
    _prepared = prepare(*arguments)


def _call() -> Any:
    return _prepared()


def write(path: Path, text: str) -> None:
    """Replaces a file as a whole; one that a kill leaves is replaced by the next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(text)
    partial.replace(path)
