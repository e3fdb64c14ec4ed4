"""The options of `python -m study.run`: what was typed becomes a request."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from search_spaces import SearchSpace, all_studies
from search_spaces.base import By, Values
from study import tasks
from study.cell.declared import NONE, Axis
from study.errors import RequestError, unknown
from study.kinds import KINDS
from study.parts import add_parts, load_parts
from study.plan.axes import as_assignments, resolve, tasks_in, tasks_of
from study.request import Request
from study.tasks.sources.places import Places
from study.terminal.command import Parser
from study.terminal.options import add_option, add_places, flags_of, places_of

_OPTIONS = {each.name: each for each in fields(Request) if "option" in each.metadata}
_FIRST = (
    "preset", "then", "changes", "results", "shard", "minutes", "select", "search",
    "num_samples", "tracking",
)  # fmt: skip
"""What most people need, in the order of `--help`; the rest follows."""


def requested(argv: Sequence[str] | None = None) -> Request:
    """Parses the command line into a request.

    Raises:
        RequestError: an option is unknown or wrong, options contradict each other, or a file of
            parts cannot be imported.
    """
    load_parts(argv)
    args = parser(argv).parse_args(argv)
    studies = all_studies()
    if args.study not in studies:
        raise unknown("study", args.study, studies)
    space, changes = studies[args.study], tuple(args.changes)
    for name, each in _OPTIONS.items():
        if space.kind in each.metadata["no_use"] and getattr(args, name) != each.default:
            raise RequestError(f"{flags_of(each)[0]} is of no use to {space.name}; leave it out.")
    _refuse_options_as_axes(space, changes)
    axes = resolve(space, args.preset, changes)
    asked = Places(*(getattr(args, place) for place in Places._fields))
    tasks.require_use(asked, tasks_of(axes), space.name)
    given = {name: getattr(args, name) for name in _OPTIONS}
    return Request(**{**given, "changes": changes}, places=places_of(args), space=space, axes=axes)


def shown(request: Request) -> Iterator[str]:
    """The axes that a preset of the study or --set names, which give these cells in any preset."""
    space = request.space
    known = KINDS[space.kind].axes(tasks_of(request.axes))
    named = {re.split("[@=]", change)[0] for change in request.changes}
    named |= {name for preset in space.presets.values() for name in preset.axes}
    yield f"study {space.name}, preset {request.preset}: {request.about}"
    yield "as --set takes it, with any preset (--help has the defaults of all others):"
    for line in as_assignments(known, request.axes, named):
        yield f" {line}"


def _refuse_options_as_axes(space: SearchSpace, changes: Sequence[str]) -> None:
    """Refuses --set with an option of the command."""
    axes = KINDS[space.kind].axes(tuple(tasks.TASKS))
    flags = {flag for each in _OPTIONS.values() for flag in flags_of(each)}
    flags |= {f"--{place.replace('_', '-')}" for place in Places._fields}
    for change in changes:
        name = re.split("[@=]", change)[0]
        flag = f"--{name.replace('_', '-')}"
        if flag in flags and name not in axes:
            raise RequestError(f"--set {change}: {name} is not an axis, but the option {flag}.")


def parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The options of the command; `--help` tells of the study that is typed with it."""
    studies = all_studies()
    words = sys.argv[1:] if argv is None else argv
    named = (word for before, word in zip(["", *words], words, strict=False) if word in studies
             and not before.startswith("-"))  # fmt: skip
    space = next((studies[word] for word in named), None)
    about = "Runs a study of attention paradigms at equal compute."
    axes = {axis for kind in KINDS.values() for axis in kind.axes(tuple(tasks.TASKS))}
    overview = _of_all(studies.values()) if space is None else _of_one(space)
    built = Parser("study.run", about, "\n".join([*overview, _EXAMPLES]), axes)
    built.add_argument("study", metavar="STUDY", help=", ".join(studies))
    further = built.add_argument_group("further options")
    for name in _FIRST:
        add_option(built, _OPTIONS[name])
        if name == "results":
            add_places(built, further)
    add_parts(further)
    for name, each in _OPTIONS.items():
        if name not in _FIRST:
            add_option(further, each)
    return built


def _presets(space: SearchSpace) -> Iterator[str]:
    yield f"  {space.name:<18} {space.about}"
    for name, preset in space.presets.items():
        yield f"    --preset {name:<8} {preset.about}"


def _of_all(spaces: Iterable[SearchSpace]) -> Iterator[str]:
    """All studies with their presets, which follow the options in `--help`."""
    yield "studies:"
    for space in spaces:
        yield from _presets(space)
    yield "\naxes: `python -m study.run STUDY --help` lists those of a study"


def _of_one(space: SearchSpace) -> Iterator[str]:
    """A study with its presets and axes."""
    yield "the study:"
    yield from _presets(space)
    yield "\nits axes, for --set AXIS=V,V, with values and defaults, which presets may change:"
    for name, axis in KINDS[space.kind].axes(tasks_in(space)).items():
        needed = name in space.needs
        words = [word for word in axis.words if not needed or word != axis.nothing]
        values = ", ".join([axis.takes.bounds, *words])
        usual = f"; default: {_default(axis)}" if axis.default and not needed else ""
        said = f"{axis.about} [{values}{usual}]"
        yield textwrap.fill(
            said,
            100,
            initial_indent=f"  {name:<21}",
            subsequent_indent=" " * 23,
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
"""
