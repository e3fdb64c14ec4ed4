"""The options of `python -m study.run`: what was typed becomes a request."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path

from search_spaces import STUDIES, SearchSpace
from search_spaces.base import By, Values
from study import tasks
from study.cell.axis import Rules
from study.cell.declared import NONE, Axis
from study.errors import RequestError, nearest, unknown
from study.kinds import KINDS
from study.parts import add_parts, load_parts, loaded
from study.plan.axes import as_assignments, resolve, tasks_in, tasks_of
from study.request import Request, add_places, named_places, places_of
from study.tasks.sources.places import FOLDERS, Places
from study.terminal.command import Parser
from study.terminal.options import add_option, flags_of
from study.terminal.width import readable

_OPTIONS = {each.name: each for each in fields(Request) if "option" in each.metadata}
_FIRST = ("preset", "changes", "verb", "results", "tracking", "shard")
"""What most people need, in the order of `--help`, beside `--data-dir` and `--with`."""


def requested(argv: Sequence[str] | None = None) -> Request:
    """Parses the command line into a request; in the place of `@FILE` stand the words in it.

    Raises:
        RequestError: an option is unknown or wrong, options contradict each other, or a file of
            options or parts cannot be read.
    """
    typed = sys.argv[1:] if argv is None else argv
    # Each is read once: it may be a pipe.
    files = {word: _words_in(word[1:]) for word in typed if word.startswith("@")}
    words = [each for word in typed for each in files.get(word, [word])]
    load_parts(words)
    args = parser(words).parse_args(words)
    studies = STUDIES
    if args.study not in studies:
        own = "" if nearest(args.study, [*studies]) else " One of your own needs --with FILE."
        raise RequestError(f"{unknown('study', args.study, studies)}{own}")
    space, in_files = studies[args.study], _given_in(files)
    if space.kind not in KINDS:
        raise unknown(f"kind of cell of the study {space.name}", space.kind, KINDS)
    if args.again:
        return _of_a_cell(space, args, files)
    changes = _over(in_files.changes, args.changes)
    for name, each in _OPTIONS.items():
        useless = each.metadata["of"] not in ("", *KINDS[space.kind].uses)
        if useless and getattr(args, name) != each.default:
            raise RequestError(f"{flags_of(each)[0]} is of no use to {space.name}; leave it out.")
    _refuse_options_as_axes(space, changes)
    axes = resolve(space, args.preset, changes)
    if files and args.preset != in_files.preset:
        others = resolve(space, in_files.preset, changes)
        if [*_assignments(space, axes)] == [*_assignments(space, others)]:
            raise RequestError(
                f"{' '.join(files)} names every value, so --preset {args.preset} would change "
                "none: leave one out."
            )
    tasks.require_use(Places.of(named_places(args)), tasks_of(axes), space.name)
    given = {name: getattr(args, name) for name in _OPTIONS}
    return Request(**{**given, "changes": changes}, places=places_of(args), space=space, axes=axes)


def _of_a_cell(space: SearchSpace, args: argparse.Namespace, files: Collection[str]) -> Request:
    """The request to train a recorded cell again, which has no axes; refuses further options."""
    useless = [*files] or [
        flags_of(each)[0]
        for name, each in _OPTIONS.items()
        if name not in ("again", "results") and getattr(args, name) not in (each.default, [])
    ]
    if useless:
        raise RequestError(
            f"{useless[0]} is of no use to --again, which trains a cell as it was recorded; leave "
            "it out."
        )
    places = places_of(args)
    return Request(space=space, axes={}, places=places, again=args.again, results=args.results)


def _words_in(file: str) -> list[str]:
    """What is typed in a file as in a shell; a line that begins with # is a comment."""
    try:
        lines = Path(file).read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise RequestError(f"@{file} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"@{file} is no text file.") from error
    words: list[str] = []
    for line in lines:
        try:
            words += [] if line.lstrip().startswith("#") else shlex.split(line)
        except ValueError as error:
            raise RequestError(f"@{file}: a line is {line!r} ({error}).") from error
    return words


def _given_in(files: Mapping[str, Sequence[str]]) -> argparse.Namespace:
    """The preset and the assignments that files name."""
    parser = Parser("study.run", add_help=False)
    for name in ("preset", "changes"):
        add_option(parser, _OPTIONS[name])
    return parser.parse_known_args([*chain(*files.values())])[0]


def _over(given: Sequence[str], every: Sequence[str]) -> tuple[str, ...]:
    """All assignments, without those given in files of an axis that the command itself sets."""
    own = [*(Counter(every) - Counter(given)).elements()]
    named = {*map(_axis_of, own)}
    return (*(each for each in given if _axis_of(each) not in named), *own)


def _axis_of(change: str) -> str:
    """The axis that an assignment names."""
    return re.split("[@=]", change)[0]


def shown(request: Request) -> Iterator[str]:
    """What `@FILE` takes to ask for the same: axes, which hold with any preset, then options."""
    space = request.space
    named = {*map(_axis_of, request.changes)}
    named |= {name for preset in space.presets.values() for name in preset.axes}
    yield f"# `study.run {space.name} @FILE` takes these lines; its --help has all other defaults"
    yield "--set"
    for line in _assignments(space, request.axes, named):
        yield f" {line}"
    for words in _other_options(request):
        yield shlex.join(words)


def _assignments(
    space: SearchSpace, axes: Mapping[str, Rules], named: Collection[str] | None = None
) -> Iterator[str]:
    """Axes as `--set` takes them: those with several values and those named; None: all."""
    known = KINDS[space.kind].axes(tasks_of(axes))
    return as_assignments(known, axes, known if named is None else named)


def _other_options(request: Request) -> Iterator[list[str]]:
    """The options, but for `--set`, that are not as they are by default."""
    yield ["--preset", request.preset]
    for file in loaded():
        yield ["--with", file.name]
    for place, given in request.places.given.items():
        yield [f"--{place.replace('_', '-')}", given]
    for name, each in _OPTIONS.items():
        value = getattr(request, name)
        if value != each.default and name not in ("preset", "verb", "changes"):
            text = ",".join(value) if name == "objective" else str(value)
            yield [*flags_of(each), *([] if isinstance(value, bool) else [text])]


def _refuse_options_as_axes(space: SearchSpace, changes: Sequence[str]) -> None:
    """Refuses --set with an option of the command."""
    axes = KINDS[space.kind].axes(tuple(tasks.TASKS))
    flags = {flag for each in _OPTIONS.values() for flag in flags_of(each)}
    flags |= {f"--{name.replace('_', '-')}" for name in (*FOLDERS, *tasks.places())}
    for change in changes:
        name = _axis_of(change)
        flag = f"--{name.replace('_', '-')}"
        if flag in flags and name not in axes:
            raise RequestError(f"--set {change}: {name} is not an axis, but the option {flag}.")


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The options of the command; `--help` tells of the study that is typed with it."""
    studies = STUDIES
    named = (word for before, word in zip(["", *words], words, strict=False) if word in studies
             and not before.startswith("-"))  # fmt: skip
    space = next((studies[word] for word in named), None)
    about = "Runs a study of attention paradigms at equal compute."
    axes = {axis for kind in KINDS.values() for axis in kind.axes(tuple(tasks.TASKS))}
    overview = _of_all(studies.values()) if space is None else _of_one(space)
    built = Parser("study.run", about, "\n".join(overview), axes)
    built.add_argument("study", metavar="STUDY", help=", ".join(studies))
    further = built.add_argument_group("further options")
    for name in _FIRST:
        add_option(built, _OPTIONS[name])
    add_parts(built)
    add_places(built, further)
    for name, each in _OPTIONS.items():
        if name not in _FIRST:
            add_option(further, each)
    if space is not None:
        first = [flag for name in _FIRST for flag in flags_of(_OPTIONS[name])]
        built.show_only(
            [*first, "--with", "--data-dir"],
            f"python -m study.run {space.name} [OPTION ...]; without {space.name}, --help lists "
            "all options",
        )
    return built


def _presets(space: SearchSpace) -> Iterator[str]:
    yield f"  {space.name:<18} {space.about}"
    for name, preset in space.presets.items():
        yield f"    --preset {name:<8} {preset.about}"


def _of_all(spaces: Iterable[SearchSpace]) -> Iterator[str]:
    """All studies with their presets, which follow the options in `--help`, and all axes."""
    yield "studies:"
    for space in spaces:
        yield from _presets(space)
    yield f"\naxes of all studies, {_WITH_VALUES}:"
    known: dict[str, Axis] = {}
    for kind in KINDS.values():
        known = {**known, **kind.axes(tuple(tasks.TASKS)), **known}  # of two, the first kind's
    for name, axis in known.items():
        yield _described(name, axis, axis.words)
    yield _EXAMPLES


def _of_one(space: SearchSpace) -> Iterator[str]:
    """A study with its presets, the axes that they name, and the defaults of the others."""
    yield "the study:"
    yield from _presets(space)
    yield f"\nits axes, {_WITH_VALUES}:"
    named = {name for preset in space.presets.values() for name in preset.axes}
    others = []
    for name, axis in KINDS[space.kind].axes(tasks_in(space)).items():
        if name in {*named, *space.needs}:
            words = [
                each for each in axis.words if each != axis.nothing or name not in space.needs
            ]
            yield _described(name, axis, words)
        else:
            others.append(f"{name}={_default(axis) or space.task}")
    rest = f"as `python -m study.run --help` describes them: {'; '.join(others)}"
    yield _filled("  the others", rest)


_WITH_VALUES = "for --set AXIS=V,V, [with values; default], which presets may change"


def _described(name: str, axis: Axis, words: Sequence[str]) -> str:
    """An axis with what it is, its values and its default."""
    values = ", ".join([axis.takes.bounds, *words])
    usual = f"; {_default(axis)}" if axis.default else ""
    return _filled(f"  {name}", f"{axis.about} [{values}{usual}]")


def _filled(name: str, text: str) -> str:
    return textwrap.fill(
        text,
        readable(),
        initial_indent=f"{name} ".ljust(21),
        subsequent_indent=" " * 21,
        break_on_hyphens=False,
    )


def _default(axis: Axis) -> str:
    """A default for people: ``256``; ``6 at method=slice, else none``."""

    def said(values: Values | By) -> str:
        if not isinstance(values, By):
            return ", ".join(axis.nothing if v is None else str(v) for v in values)
        rest = said(values.otherwise)
        there = {where or NONE: said(some) for where, some in values.values.items()}
        own = [
            f"{what} at {values.axis}={where}"
            for where, what in there.items()
            if what not in ("", rest)
        ]
        if own and rest:
            own.append(f"else {rest}")
        return ", ".join(own) or rest

    return said(axis.default)


_EXAMPLES = """
examples:
  python -m study.run digits
  python -m study.run cifar10 --data-dir ~/data/cifar10 --plan
  python -m study.run images --data-dir DIR --set foreground=heron+stork
  python -m study.run cifar10 --preset paper --set m=5 seed=0-5
  python -m study.run digits --set lr=0.01,0.05 m=5,10 paradigm=soft,hybrid
  python -m study.run digits --set lr=0.01,0.03 lr@hard=0.005 lr@hybrid=0.01 hard_lr=0.005
  python -m study.run cifar10 --preset paper --shard 3/16
  python -m study.run cifar10 --preset paper --shard 1/1 --minutes 30
  python -m study.run digits --with my_parts.py --set paradigm=soft,my-paradigm
  python -m study.run digits --search optuna --num-samples 20 --set lr=0.001,0.3 seed=0-2
  python -m study.run digits --again 3f2a
"""
