"""Shows that a command is alive: a bar while a long part of it runs, else a line now and then."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

BAR_AFTER = 0.5
"""Seconds after which a part is shown in a terminal; most parts end before."""

LINE_AFTER, LINE_EVERY = 1.0, 20.0
"""Seconds before the first line, and between two, where there is no terminal."""

T = TypeVar("T")

Rows = Sequence[tuple[str, float, float | None]]
"""Lines of text, each with how much is done, and of how much; None: unknown."""

_stream: TextIO | None = None  # None: nobody asked to be told, as in a notebook or a worker
_parts: list[Part] = []  # that go on, each inside the one before


@dataclass(eq=False)
class Part:
    """A part of a command's work, as `working` describes it."""

    doing: str
    total: float | None
    unit: str
    measured: Callable[[], float] | None
    counted: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def step(self, more: float = 1) -> None:
        """Notes that more is done."""
        self.counted += more

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items; each counts as done when the next is asked for."""
        for item in items:
            yield item
            self.step()

    @property
    def done(self) -> float:
        return self.measured() if self.measured else self.counted

    @property
    def far(self) -> str:
        """For example ``1,200 of 3,000 files, 12 s left`` or ``34 s so far``."""
        done, seconds = self.done, time.monotonic() - self.began
        if self.total and done:
            left = duration(max(0.0, seconds * (self.total / done - 1)))
            return f"{done:,.0f} of {self.total:,.0f} {self.unit}, {left} left"
        return f"{f'{done:,.0f} {self.unit}, ' if done else ''}{duration(seconds)} so far"


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Lets `working` show on stderr what goes on in its body; without it nothing is shown."""
    global _stream
    before, _stream = _stream, sys.stderr
    try:
        yield
    finally:
        _stream = before


@contextlib.contextmanager
def working(
    doing: str,
    total: float | None = None,
    unit: str = "",
    measured: Callable[[], float] | None = None,
) -> Iterator[Part]:
    """Shows that the command is at work in its body, if it takes long.

    In a terminal that is a bar, which vanishes at the end. Elsewhere it is a line after
    `LINE_AFTER` seconds, and then every `LINE_EVERY`. Of parts inside each other, the innermost
    is shown. Nothing is outside `telling`, nor from a thread, as MLflow's.

    Args:
        doing: what is done, e.g. ``reading results``.
        total: how much there is to do; None: unknown.
        unit: of `total` and of what is done, e.g. ``files`` or ``MB``.
        measured: gives what is done so far; None: `Part.step` and `Part.each` count it.
    """
    part = Part(doing, total, unit, measured)
    if threading.current_thread() is not threading.main_thread():
        yield part
        return
    _parts.append(part)
    try:
        with contextlib.nullcontext() if len(_parts) > 1 else shown(_innermost):
            yield part
    finally:
        _parts.remove(part)


def _innermost() -> Rows:
    part = _parts[-1]
    return [(f"{part.doing}: {part.far}", part.done, part.total)]


def say(text: str) -> None:
    """Prints a line on stderr, above the bars if there are any."""
    if _stream:
        aside(text)  # to which rich listens, as it draws


def aside(text: str) -> None:
    """Prints what is no result, on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def shown(rows: Callable[[], Rows], kept: bool = False) -> Iterator[None]:
    """Shows in its body how far something is, as `working` describes it.

    Args:
        rows: gives it; called by a thread. A terminal shows all, else there is the first.
        kept: whether the last state stays, or is the last line.
    """
    if not _stream:
        yield
        return
    show = _drawn if _stream.isatty() and _console(_stream).is_interactive else _printed
    with show(rows, kept, _stream):
        yield


@contextlib.contextmanager
def _printed(rows: Callable[[], Rows], kept: bool, stream: TextIO) -> Iterator[None]:
    over, last = threading.Event(), ""

    def tell() -> None:
        nonlocal last
        seconds = LINE_AFTER
        while not over.wait(seconds):
            last, seconds = rows()[0][0], LINE_EVERY
            print(last, file=stream, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if kept and (line := rows()[0][0]) != last:
            print(line, file=stream, flush=True)


@functools.lru_cache(maxsize=1)
def _console(stream: TextIO) -> Console:
    """The one console of a terminal: what is drawn inside each other is drawn together."""
    from rich.console import Console

    return Console(file=stream, markup=False, emoji=False, highlight=False)


@contextlib.contextmanager
def _drawn(rows: Callable[[], Rows], kept: bool, stream: TextIO) -> Iterator[None]:
    from rich.constrain import Constrain
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    console = _console(stream)

    def table() -> Constrain:
        grid = Table.grid(padding=(0, 1))
        for text, done, total in rows():
            grid.add_row(ProgressBar(total, done, console.width // 5), text)
        # With room for the ^C that a terminal echoes: on a full line, it would begin another.
        return Constrain(grid, console.width - 3)

    live = Live(
        console=console,
        get_renderable=table,
        transient=not kept,
        redirect_stdout=bool(sys.stdout and sys.stdout.isatty()),  # it may be closed, and None
    )
    late = threading.Timer(0 if kept else BAR_AFTER, live.start)
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()
        live.stop()


def duration(seconds: float) -> str:
    """Seconds for people: 42 s, 3 min, 2.5 h, 4 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
