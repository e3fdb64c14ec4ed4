"""Shows that a command is alive: a bar while a long part of it runs, else a line now and then."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

BAR_AFTER = 0.5
"""Seconds after which a part is shown in a terminal; most parts end before."""

LINE_AFTER, LINE_EVERY = 1.0, 20.0
"""Seconds before the first line, and between two, where there is no terminal."""

WIDEST_BAR = 80
"""Columns of a bar with its texts; a longer one is no easier to read."""

T = TypeVar("T")

_stream: TextIO | None = None  # None: nobody asked to be told, as in a notebook or a worker
_parts: list[Part] = []  # that go on, each inside the one before


class Part:
    """A part of a command's work.

    Args:
        doing: what is done, e.g. ``reading results``.
        total: how much there is to do; None: unknown.
        unit: of `total` and `done`, e.g. ``files`` or ``MB``.
        measured: gives what is done so far; None: `step` and `each` count it.
    """

    def __init__(
        self,
        doing: str,
        total: float | None = None,
        unit: str = "",
        measured: Callable[[], float] | None = None,
    ) -> None:
        self.doing, self.total = doing, total
        self._unit, self._measured = unit, measured
        self._done = self._seen = self._seen_after = 0.0
        self._began = time.monotonic()

    def step(self, more: float = 1) -> None:
        """Notes that more is done."""
        self._done += more

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items; each counts as done when the next is asked for."""
        for item in items:
            yield item
            self.step()

    @property
    def done(self) -> float:
        return self._measured() if self._measured else self._done

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def far(self) -> str:
        """For example ``1,200 of 3,000 files, 12 s left`` or ``34 s so far``."""
        done, seconds = self.done, self.seconds
        if self.total and done:
            if done != self._seen:  # else the time left would grow until the next step
                self._seen, self._seen_after = done, seconds
            left = max(0.0, self._seen_after * self.total / done - seconds)
            return f"{done:,.0f} of {self.total:,.0f} {self._unit}, {duration(left)} left"
        count = f"{done:,.0f} {self._unit}, " if done else ""
        return f"{count}{duration(seconds)} so far"


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
    """Shows that the command is at work in its body, if it takes long; arguments as for `Part`.

    In a terminal that is a bar, which vanishes at the end. Elsewhere it is a line after
    `LINE_AFTER` seconds, and then every `LINE_EVERY`. Of parts inside each other, the innermost
    is shown. Nothing is outside `telling`, nor from a thread, as MLflow's.
    """
    part = Part(doing, total, unit, measured)
    if _stream is None or threading.current_thread() is not threading.main_thread():
        yield part
        return
    _parts.append(part)
    try:
        with contextlib.nullcontext() if len(_parts) > 1 else _shown(_stream):
            yield part
    finally:
        _parts.remove(part)


@contextlib.contextmanager
def _shown(stream: TextIO) -> Iterator[None]:
    if draws(stream):
        with live(stream, _innermost, kept=False):
            yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_tell, args=(stream, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tell(stream: TextIO, over: threading.Event) -> None:
    seconds = LINE_AFTER
    while not over.wait(seconds):
        part, seconds = _parts[-1], LINE_EVERY
        print(f"{part.doing}: {part.far}", file=stream, flush=True)


def _innermost() -> RenderableType:
    part = _parts[-1]
    if _parts[0].seconds < BAR_AFTER:
        return ""
    return bars([Bar(part.doing, part.done, part.total, part.far)])


# Drawing, by rich


class Bar(NamedTuple):
    """A line with a bar.

    Attributes:
        text: before the bar.
        done: how much is done.
        total: of how much; None: unknown, so that the bar pulses.
        far: after the bar.
    """

    text: str
    done: float
    total: float | None
    far: str


def draws(stream: TextIO | None) -> bool:
    """Whether bars can be drawn there: on a terminal that has their signs, with rich installed."""
    if os.environ.get("TERM") in ("dumb", "unknown") or not (stream and stream.isatty()):
        return False
    return stream.encoding.lower().startswith("utf") and bool(importlib.util.find_spec("rich"))


def live(stream: TextIO, view: Callable[[], RenderableType], kept: bool) -> Live:
    """A part of a terminal that is drawn again and again; what is printed goes above it.

    Args:
        stream: the terminal.
        view: what is drawn there, four times a second, by a thread.
        kept: whether the last state stays.
    """
    from rich.constrain import Constrain
    from rich.live import Live

    console = _console(stream)
    return Live(
        console=console,
        # With room for the ^C that a terminal echoes: on a full line, it would begin another.
        get_renderable=lambda: Constrain(view(), max(1, console.width - 3)),
        transient=not kept,
        redirect_stdout=bool(sys.stdout and sys.stdout.isatty()),  # it may be closed, and None
    )


@functools.lru_cache(maxsize=1)
def _console(stream: TextIO) -> Console:
    """The one console of a stream, so that what is drawn inside each other is drawn together."""
    from rich.console import Console

    return Console(file=stream, force_terminal=True, soft_wrap=True, highlight=False)


def bars(lines: Iterable[Bar], turns: bool = True) -> RenderableType:
    """Bars below each other.

    Args:
        lines: of the bars.
        turns: whether a sign before the first turns, as long as work goes on.
    """
    from rich.constrain import Constrain
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table.grid(padding=(0, 1), expand=True)
    for how in ({"width": 1}, {"overflow": "ellipsis"}, {"ratio": 1}, {"justify": "right"}):
        table.add_column(no_wrap=True, **how)
    sign: Any = _sign() if turns else ""
    for text, done, total, far in lines:
        table.add_row(sign, text, ProgressBar(total, done), far)
        sign = ""
    return Constrain(table, WIDEST_BAR)


@functools.cache
def _sign() -> RenderableType:
    """One, as it turns with the time since it was first drawn."""
    from rich.spinner import Spinner

    return Spinner("dots")


def duration(seconds: float) -> str:
    """Seconds for people: 42 s, 3 min, 2.5 h, 4 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
