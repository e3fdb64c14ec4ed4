"""What the commands have in common: how they end, and what they say then.

A command imports what takes seconds late, where it is guarded, so that what was typed can be
refused before.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import NoReturn

from study.errors import RequestError

DONE, FAILED, UNUSABLE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit statuses; FAILED: cells failed, numbers differ or runs are missing."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, as batch systems and containers send it: stops a study like Ctrl-C."""


def guarded(name: str, command: Callable[[], int], stopped: str) -> int:
    """Runs a command; an unusable request and Ctrl-C end it with one line for people.

    Args:
        name: of the command, for that line.
        command: returns its exit status.
        stopped: what is said of Ctrl-C: what is kept, how to go on.
    """
    try:
        return command()
    except RequestError as error:
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt as stop:
        print(f"\n{stopped}", file=sys.stderr)
        return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def run_as_command(main: Callable[[], int]) -> NoReturn:
    """Runs a command and ends the process with its exit status; warnings are one line each.

    After Ctrl-C it ends at once: threads that are still in MLflow's or Ray's C++ code can crash an
    interpreter that takes itself apart.
    """
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    status = main()
    if status in (INTERRUPTED, TERMINATED):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Holds Ctrl-C back while modules are imported.

    Extensions that are interrupted while they initialise lose the KeyboardInterrupt, or turn it
    into an ImportError that blames the installation.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield  # ignored, or not for this thread
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


class Parser(argparse.ArgumentParser):
    """The options of a command; a wrong one is an unusable request.

    Args:
        name: of the module that `python -m` runs.
        about: what it does.
        more: what follows the options: examples.
    """

    def __init__(self, name: str, about: str, more: str) -> None:
        super().__init__(
            prog=f"python -m {name}",
            description=about,
            epilog=more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def add_results_dir(self) -> None:
        """The results directory, as the first argument."""
        self.add_argument("results_dir", metavar="RESULTS_DIR", help="local path or fsspec URL")

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message.rstrip('.')}. See `{self.prog} --help`.")
