"""The command `python -m study.check FILE`: checks parts of your own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from study import parts
from study.errors import RequestError
from study.request import add_places, places_of
from study.terminal import counted
from study.terminal.command import DONE, FAILED, Parser, guarded, importing

if TYPE_CHECKING:
    from study.check.promises import State
    from study.tasks.sources.places import Places


_PROMISING = ("paradigm", "model", "task", "measure", "study")
"""Sorts of parts that promise something."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 none broken, 1 some broken or 2 unusable request."""
    return guarded("study.check", lambda: _run(argv), "stopped")


def _run(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    places = places_of(args)
    parts.load(args.files)
    files = {file.name for file in parts.loaded()}
    found = [
        (*key, origin.file)
        for key, origin in parts.ORIGINS.items()
        if key[0] in _PROMISING and (not args.files or origin.file in files)
    ]
    if not found:
        kinds = f"{', '.join(_PROMISING[:-1])} or {_PROMISING[-1]}"
        raise RequestError(f"no {kinds} is registered here. Name a file that registers one.")
    faults: list[str] = []  # one a broken promise
    count: Counter[State] = Counter()
    for sort, name, file in found:
        print(f"{sort} {name} ({file})")
        for state, text, why in _checked(sort, name, file, places):
            count[state] += 1
            if why:
                text += f": {'as above' if why in faults else why}"
            if state == "BROKEN":
                faults.append(why)
            print(f"  {state:<7} {text}", flush=True)
    total = count["ok"] + count["BROKEN"]
    skipped = f"; {count['skipped']} skipped" if count["skipped"] else ""
    if not faults:
        print(f"all {total} promises{' that were checked' * bool(skipped)} are kept{skipped}")
        return DONE
    by = counted(len(set(faults)), "fault")
    print(f"broken: {len(faults)} of {total} promises, by {by}{skipped}")
    return FAILED


def _checked(sort: str, name: str, file: str, places: Places) -> Iterator[tuple[State, str, str]]:
    """As `study.check.promises.kept`, of all that a part promises."""
    with importing():
        from search_spaces import STUDIES
        from study import models, paradigms, tasks
        from study.check import of_models, of_paradigms, of_studies, of_tasks
        from study.check.promises import Promise, facts_at_hand, kept

    paradigm, task, architecture = "soft", "digits", "perceptron"
    if sort == "study":
        study = of_studies.Study(STUDIES[name], facts_at_hand(places))
        yield from kept(of_studies.PROMISES, study, file)
        return
    if sort == "paradigm":
        yield from kept(of_paradigms.PROMISES, paradigms.get(name), file)
        paradigm = name
    if sort == "model":
        known = [each for each in models.ARCHITECTURES[name] if each in tasks.TASKS]
        at_hand = [each for each in known if tasks.at_hand(each, places)]
        task, architecture = next(iter([*at_hand, *known]), task), name
        model = of_models.Architecture(name, task, facts_at_hand(places))
        yield from kept(of_models.PROMISES, model, file)
    if sort == "task":
        yield from kept(of_tasks.PROMISES, of_tasks.Loaded(name, places), file)
        task, architecture = name, next(iter(models.names(name)), "")
    how = f"{paradigm} and {architecture}" if architecture else f"{paradigm}, for want of a model"
    tiny = Promise(
        f"trains a tiny study of {task} with {how} to its end",
        lambda _: of_studies.tiny_study(paradigm, task, architecture, places),
    )
    yield from kept([tiny], None, file)


def _parser() -> Parser:
    parser = Parser("study.check", _ABOUT, _EXAMPLES)
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="of parts; default: those of installed packages"
    )
    add_places(parser)
    return parser


_ABOUT = """Checks that paradigms, models, tasks and studies of your own keep what the project
promises of its own: losses against their gradients, masks, costs against the calls that are made,
seeds, shapes, and a tiny study to its end. What cannot be checked of a part is skipped, and the
line says why. Exit status: 0 none is broken; 1 some are; 2 unusable request."""

_EXAMPLES = """
examples:
  python -m study.check my_parts.py
  python -m study.check my_task.py --data-dir ~/data/mine
"""
