"""Which fields are factors, which setting is the base, and what each other one is called."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest

from analysis.digest.compare import Comparison
from analysis.digest.factors.families import Family, families
from study.cell import Budget
from study.cell.network_settings import NetworkSettings
from tests.made_up.comparisons import make_cell

WIDTHS = (0.5, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Known:
    """What is asked of a comparison here."""

    task: str
    settings: dict[str, Any]
    name: str = "in full"


def setting(**fields: Any) -> Comparison:
    cell = make_cell(**fields)
    return Known(cell.task, cell.to_dict())


def network(**fields: Any) -> Comparison:
    return setting(network=NetworkSettings(**fields))


def one_at_a_time() -> list[Comparison]:
    """Around m=10: three sizes, two depths, a normalisation, and segments of the label's class."""
    return [
        setting(),
        *(setting(m=m, n=100 * m, budget=Budget(m)) for m in (2, 5, 20)),
        *(network(depth=depth) for depth in (-1, 2)),
        network(normalisation="batch"),
        setting(foregrounds=2),
    ]


def only(found: list[Comparison]) -> Family:
    (family,) = families(found)
    return family


def test_one_at_a_time():
    """In whatever order they are."""
    family = only(one_at_a_time()[::-1])
    assert [each.name for each in family.settings] == [
        "in full (base)", "m=2", "m=5", "m=20", "foregrounds 2", "depth -1", "depth 2",
        "normalisation batch",
    ]  # fmt: skip
    assert [each.values["m"] for each in family.levels("m")] == [2, 5, 20]
    assert [each.name for each in family.levels("depth")] == ["depth -1", "depth 2"]
    assert family.grids() == []


@pytest.mark.parametrize(
    ("found", "follows"),
    [
        (one_at_a_time(), {"m": ["n"], "foregrounds": [], "depth": [], "normalisation": []}),
        # n takes fewer values than m, and m is no function of it.
        ([setting(m=m, n=max(500, 100 * m)) for m in (2, 5, 20)], {"m": ["n"]}),
        ([setting(n=n) for n in (500, 2_000)], {"n": []}),  # with one m
        # Focus and classifier have the width of the cell, unless they have their own.
        (
            [setting(), setting(width=2.0), network(focus_width=0.5)],
            {"width": ["classifier_width"], "focus_width": ["classifier_width"]},
        ),
    ],
    ids=itertools.count(),
)
def test_what_is_a_function_of_another_is_no_factor(found, follows):
    assert only(found).follows == follows


def test_the_base_has_what_most_settings_have_in_common_then_what_is_usual():
    widths = (*WIDTHS[::-1], 1.0)
    grid = [network(focus_width=one, classifier_width=other) for one in widths for other in widths]
    family = only(grid)
    assert family.factors == ["focus_width", "classifier_width"]
    assert family.base.values == {"focus_width": 1.0, "classifier_width": 1.0}
    assert family.grids() == [("focus_width", "classifier_width")]
    assert len(family.plane(family.grids()[0])) == 16
    for factor in family.factors:
        assert [each.values[factor] for each in family.levels(factor)] == list(WIDTHS)
    assert family.settings[-1].name == "focus width 4, classifier width 4"
    deep = [network(depth=2), *(network(depth=2, focus_width=w) for w in WIDTHS)]
    family = only([*deep, setting()])
    assert family.base.values == {"focus_width": 1.0, "depth": 2}
    assert family.settings[-1].name == "depth 0"


def test_what_is_no_factor_makes_no_level():
    repeated = [setting(), setting(budget=Budget(7))]
    family = only([*repeated, setting(m=5)])
    assert family.factors == ["m"]
    assert [each.name for each in family.settings if each.repeats] == ["in full"]
    assert [each.name for each in family.levels("m")] == ["m=5"]
    nothing = only(repeated)
    assert (nothing.factors, len(nothing.plane([]))) == ([], 1)
    assert nothing.base.name == "in full"
