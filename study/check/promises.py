"""What a promise is: a sentence of the contract, and a check that says how a part breaks it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from study import tasks
from study.cell import Options
from study.errors import RequestError
from study.tasks.sources.places import Places
from study.tasks.task import Facts, FactsOf


class Broken(Exception):
    """A promise is broken; the message says how, in plain words."""


class Skipped(Exception):
    """A promise cannot be checked of this part; the message says why."""


State = Literal["ok", "skipped", "BROKEN"]
"""What is found of a promise, as it is printed."""


@dataclass(frozen=True)
class Promise:
    """One promise of a part.

    Attributes:
        text: what it promises, a sentence without its subject: ``has the gradient of its loss``.
        check: raises `Broken` if a part breaks it, `Skipped` if that cannot be told.
    """

    text: str
    check: Callable[[Any], None]


def promise(text: str, to: list[Promise]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a promise of its check, and adds it to a list; a decorator."""

    def add(check: Callable[..., None]) -> Callable[..., None]:
        to.append(Promise(text, check))
        return check

    return add


def require(condition: object, how: str) -> None:
    """Raises `Broken` unless a condition holds."""
    if not condition:
        raise Broken(how)


def skip_unless(condition: object, why: str) -> None:
    """Raises `Skipped` unless a condition holds."""
    if not condition:
        raise Skipped(why)


def facts_at_hand(places: Places) -> FactsOf:
    """Gives the facts of data; raises `Skipped` for a task whose data are not at hand."""

    def facts_of(task: str, options: Options) -> Facts:
        there = tasks.at_hand(task, places, options)
        skip_unless(there, f"the data of {task} is not at hand, give --data-dir DIR")
        return tasks.load(task, places, options).facts

    return facts_of


def require_equal(got: Tensor, expected: Tensor, what: str, rtol: float = 1e-7) -> None:
    """Raises `Broken` unless two tensors are equal up to rounding."""
    require(
        got.shape == expected.shape,
        f"{what} has shape {tuple(got.shape)}, must be {tuple(expected.shape)}",
    )
    off = (got - expected).abs().max().item() if got.numel() else 0.0
    bound = rtol * max(1.0, expected.abs().max().item() if got.numel() else 0.0)
    require(off <= bound, f"{what} is off by {off:.3g}")


def kept(promises: Sequence[Promise], part: Any, file: str) -> Iterator[tuple[State, str, str]]:
    """What is found of every promise, its text, and how it is broken or why it is skipped.

    Args:
        promises: of its sort of part.
        part: to check.
        file: that registered it; an error within says its line there.
    """
    for each in promises:
        try:
            each.check(part)
        except Skipped as skipped:
            yield "skipped", each.text, str(skipped)
        except (Broken, RequestError) as broken:
            yield "BROKEN", each.text, str(broken)
        except Exception as error:  # the part's own code may raise anything
            lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
            where = f", {file}, line {lines[-1].lineno}" if lines else ""
            text = " ".join(str(error).split())
            yield "BROKEN", each.text, f"{type(error).__name__}: {text}{where}"
        else:
            yield "ok", each.text, ""
