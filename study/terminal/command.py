"""What all commands share: their options, exit statuses and last words.

A command imports slow modules late and inside `guarded`, so that it can refuse bad options first.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any, NoReturn, TextIO

from study.errors import RequestError, nearest
from study.terminal.working import telling

DONE, FAILED, UNUSABLE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit statuses. FAILED: cells failed, numbers differ or runs are missing."""


_PROXIES = {"http_proxy", "https_proxy", "all_proxy"}
_LOOPBACK = "localhost,127.0.0.1,::1"


class Terminated(KeyboardInterrupt):
    """SIGTERM, which batch systems and containers send; it stops a study like Ctrl-C."""


def guarded(name: str, command: Callable[[], int], stopped: str) -> int:
    """Runs a command; an unusable request or Ctrl-C ends it with one line for people.

    Args:
        name: of the command, for that line.
        command: returns its exit status.
        stopped: printed after Ctrl-C: what is kept, and how to go on.
    """
    if os.path.expanduser("~") == "~":  # no HOME, and a user id without a name, as in containers
        os.environ["HOME"] = "/"  # Docker's for them; libraries end in a traceback without one
    _spare_loopback()
    try:
        with contextlib.redirect_stdout(sys.stdout and Unheard(sys.stdout)), telling():
            return command()
    except RequestError as error:
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt as stop:
        print(f"\n{stopped}", file=sys.stderr)
        return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _spare_loopback() -> None:
    """Keeps a proxy of the environment from servers of this machine, which it cannot reach."""
    kept = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    proxies = {name.lower() for name, value in os.environ.items() if value} & _PROXIES
    if proxies and kept != "*" and not kept.endswith(_LOOPBACK):
        both = ",".join(filter(None, [kept, _LOOPBACK]))
        os.environ.update(no_proxy=both, NO_PROXY=both)  # some read the one, some the other


class Unheard:
    """A stream whose reader may leave, as `head` does: what follows is lost, the rest goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._while_heard(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        self._while_heard(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _while_heard(self, act: Callable[[], int | None]) -> int | None:
        try:
            return act()
        except BrokenPipeError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())
            return None


def run_as_command(main: Callable[[], int]) -> NoReturn:
    """Runs a command and ends the process with its exit status; warnings are one line each.

    After Ctrl-C the process ends at once: threads in MLflow's or Ray's C++ code could crash an
    interpreter that shuts down.
    """
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    _settle()
    status = main()
    if status in (INTERRUPTED, TERMINATED):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


def _settle() -> None:
    """Makes this process independent of what a user has set for other programs."""
    # Figures have settings of their own; a broken one of the user would end the import.
    os.environ |= {"MPLBACKEND": "agg", "MATPLOTLIBRC": os.devnull}
    if os.path.isfile("matplotlibrc"):  # read before all others, once, at the import
        with contextlib.chdir(os.path.dirname(__file__)), contextlib.suppress(ImportError):
            importlib.import_module("matplotlib")
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may be closed, and None
        # As stderr has it: a name may have letters that the encoding of a terminal or a log lacks.
        sys.stdout.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Holds Ctrl-C back while modules are imported.

    An extension that is interrupted while it initialises loses the KeyboardInterrupt, or turns it
    into an ImportError that blames the installation.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield  # SIGINT is ignored, or goes to another thread
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


@contextlib.contextmanager
def terminating() -> Iterator[None]:
    """Lets SIGTERM stop what runs like Ctrl-C; Ray's own handler would abort the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:  # Tune raises its own in place of ours
        if received:
            raise Terminated from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


class Parser(argparse.ArgumentParser):
    """Parses the options of a command; a wrong one raises RequestError.

    Args:
        name: of the module that `python -m` runs.
        about: what the command does.
        more: text after the options, such as examples.
        axes: names that people may take for options, but that follow --set.
    """

    def __init__(self, name: str, about: str, more: str, axes: Collection[str] = ()) -> None:
        super().__init__(
            prog=f"python -m {name}",
            description=about,
            epilog=more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._axes = axes

    def add_results_dir(self) -> None:
        """Adds the results directory as the first argument."""
        self.add_argument("results_dir", metavar="RESULTS_DIR", help="local path or fsspec URL")

    def parse_args(self, *args: Any, **more: Any) -> Any:
        """Parses, and refuses an empty value, such as that of a shell variable that is not set."""
        parsed = super().parse_args(*args, **more)
        for action in self._actions:
            value = getattr(parsed, action.dest, None)
            empty = value == "" or (isinstance(value, list) and "" in value)
            if empty and value != action.default:
                self.error(str(argparse.ArgumentError(action, "must not be empty")))
        return parsed

    def error(self, message: str) -> NoReturn:
        hint = ""
        if wrong := re.match(r"unrecognized arguments: (?:[^-].*? )?(--[\w-]+)", message):
            options = re.findall(r"--[\w-]+", self.format_usage())
            if near := nearest(wrong[1], [*options, *self._axes]):
                near = f"--set {near}=VALUE" if near in self._axes else near
                hint = f" Did you mean {near}?"
        raise RequestError(f"{message.rstrip('.')}.{hint} See `{self.prog} --help`.")
