"""What all commands share: their options, exit statuses and last words.

A command imports slow modules late and inside `guarded`, so that it can refuse bad options first.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.util
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

from study.door import Registry, packages
from study.errors import RequestError, nearest
from study.terminal.width import readable
from study.terminal.working import telling

DONE, FAILED, UNUSABLE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit statuses. FAILED: cells failed, numbers differ or runs are missing."""

COMMANDS: Registry[tuple[str, str]] = Registry(
    {
        "run": ("study.run", "runs a study"),
        "check": ("study.check", "checks parts of your own against what the project promises"),
        "compact": ("study.compact", "joins the files of a results directory"),
        "track": ("study.track", "logs recorded cells to MLflow"),
        "report": ("analysis.report", "compares recorded cells at equal compute"),
    }
)
"""Name -> module that `python -m` runs, and what it does; chapters and packages register more."""

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
    with _heard(name), telling():
        try:
            with terminating():
                return command()
        except RequestError as error:
            print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
            return UNUSABLE
        except (KeyboardInterrupt, SystemExit) as stop:
            # While Ray starts, its own handler of SIGTERM exits.
            terminated = isinstance(stop, Terminated) or stop.args == (signal.SIGTERM,)
            if isinstance(stop, SystemExit) and not terminated:
                raise
            print(f"\n{stopped}", file=sys.stderr)
            return TERMINATED if terminated else INTERRUPTED


def _spare_loopback() -> None:
    """Keeps a proxy of the environment from servers of this machine, which it cannot reach."""
    kept = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    proxies = {name.lower() for name, value in os.environ.items() if value} & _PROXIES
    if proxies and kept != "*" and not kept.endswith(_LOOPBACK):
        both = ",".join(filter(None, [kept, _LOOPBACK]))
        os.environ.update(no_proxy=both, NO_PROXY=both)  # some read the one, some the other


@contextlib.contextmanager
def _heard(name: str) -> Iterator[None]:
    """Lets a command go on whose words cannot be written; at the end it fails, and says why.

    Raises:
        SystemExit: words were lost otherwise than by a reader who left.
    """
    # What is printed on a closed stream, which is None, would go to stdout.
    out, errors = (Unheard(each or io.StringIO()) for each in (sys.stdout, sys.stderr))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            yield
    finally:
        for each in (out, errors):
            each.flush()
        if lost := out.lost or errors.lost:
            print(f"{name}: what it says cannot be written ({lost}).", file=errors, flush=True)
            raise SystemExit(UNUSABLE)


class Unheard:
    """A stream whose words may be lost: its reader leaves, as `head` does, or a disk is full.

    Attributes:
        lost: why words were lost; empty: they were not, or the reader left.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost = ""

    def write(self, text: str) -> int:
        return self._while_heard(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        self._while_heard(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _while_heard(self, act: Callable[[], int | None]) -> int | None:
        try:
            return act()
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.lost = error.strerror or str(error)
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
    status = guarded("attention-study", _require_own_names, "stopped") or main()
    if status in (INTERRUPTED, TERMINATED):
        os._exit(status)  # all is flushed
    sys.exit(status)


def _require_own_names() -> int:
    """Refuses a file or folder of the user's that would be imported in place of ours."""
    project = Path(__file__).parents[2]
    for name in ("analysis", "search_spaces", *sorted(packages())):
        spec = importlib.util.find_spec(name)
        if spec and spec.origin != str(project / name / "__init__.py"):
            where = spec.origin or next(iter(spec.submodule_search_locations or []), "")
            raise RequestError(
                f"{where} would be imported in place of this project's {name}. Rename it, or run "
                "the command in another folder."
            )
    return DONE


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
    """Holds Ctrl-C and SIGTERM back while modules are imported.

    An extension that is interrupted while it initialises loses the KeyboardInterrupt, or turns it
    into an ImportError that blames the installation.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to another thread
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    handlers = {each: handler for each, handler in before.items() if callable(handler)}
    received: list[int] = []
    for each in handlers:  # others are ignored, or end the process
        signal.signal(each, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    for number in received:
        handlers[signal.Signals(number)](number, None)


@contextlib.contextmanager
def terminating() -> Iterator[None]:
    """Lets SIGTERM stop its body like Ctrl-C, also where Ray has put a handler of its own."""
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


class _Version(argparse.Action):
    """Prints the version with its commit, and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from study.cell.version import code_version

        print(code_version())
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Parses the options of a command; a wrong one raises RequestError.

    Args:
        name: of the module that `python -m` runs.
        about: what the command does.
        more: text after the options, such as examples.
        axes: names that people may take for options, but that follow --set.
        how: for argparse.
    """

    def __init__(
        self,
        name: str,
        about: str = "",
        more: str = "",
        axes: Collection[str] = (),
        **how: Any,
    ) -> None:
        super().__init__(
            prog=f"python -m {name}",
            description=about,
            epilog=more,
            formatter_class=functools.partial(
                argparse.RawDescriptionHelpFormatter, width=readable()
            ),
            allow_abbrev=False,
            **how,
        )
        self._axes = axes
        self.add_argument(
            "--version",
            action=_Version,
            nargs=0,
            default=argparse.SUPPRESS,
            help="print the version with its commit",
        )

    def show_only(self, flags: Collection[str], usage: str) -> None:
        """Leaves all other options out of `--help`, and gives it a usage of its own."""
        self.usage = usage
        for action in self._actions:
            if not set(action.option_strings).intersection(flags):
                action.help = argparse.SUPPRESS

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
            options = [flag for each in self._actions for flag in each.option_strings]
            if near := nearest(wrong[1], [*options, *self._axes]):
                near = f"--set {near}=VALUE" if near in self._axes else near
                hint = f" Did you mean {near}?"
        raise RequestError(f"{message.rstrip('.')}.{hint} See `{self.prog} --help`.")
