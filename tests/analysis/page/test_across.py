"""The page of several settings: what is told of them together, their figures and effects."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from analysis.conclude import conclude
from analysis.digest.compare import Comparison
from analysis.digest.factors.families import families
from analysis.page.across import across_facts, order_table
from analysis.page.comparisons import COMPARISONS, MOST_IN_FULL, Compared
from analysis.page.pictures import family_pictures
from study.cell.network_settings import NetworkSettings
from tests.made_up.comparisons import make_results, write_seeds


@pytest.fixture(scope="module")
def seven(tmp_path_factory) -> list[Compared]:
    """More settings than are shown in full, four of them a grid; one seed."""
    results = make_results(tmp_path_factory.mktemp("seven"))
    networks = [
        NetworkSettings(focus_width=2),
        NetworkSettings(classifier_width=3),
        NetworkSettings(focus_width=2, classifier_width=3),
        NetworkSettings(normalisation="layer"),
    ]
    for fields in ({}, {"m": 5}, {"m": 50}, *({"network": each} for each in networks)):
        write_seeds(results, {"soft": 0.4, "lvml": 0.5}, 1, **fields)
    return [*conclude(results).sections]


@pytest.fixture
def found(seven) -> list[Comparison]:
    return [section.subject for section in seven]


def test_many_show_their_heat_maps_alone_and_are_told_together(seven):
    assert len(seven) == MOST_IN_FULL + 1
    assert any("classifier width 3.0, focus width 2.0" in section.title for section in seven)
    assert [each.name for each in seven[0].pictures] == ["heatmaps-test", "heatmaps-train"]
    of_saif, of_accuracy = COMPARISONS.answer(seven)
    of_pair = "lvml is better than soft in 0 of 7 settings, worse in 0, undecided in 7."
    assert (of_saif, of_accuracy) == (f"In SAIF {of_pair}", f"In accuracy {of_pair}")


def test_what_varies_is_told_with_the_base(found):
    (varied,) = across_facts(found)["varied"]
    assert varied == (
        "digits, 7 settings: segments m 10 (base), 5, 50; focus width 1 (base), 2; "
        "classifier width 1 (base), 3; normalisation none (base), layer."
    )


def test_a_grid_is_a_picture_of_its_own(found):
    factors, grid = family_pictures(*families(found))
    assert [each.name for each in (factors, grid)] == [
        "across-factors-digits",
        "across-grid-digits-focus-width-classifier-width",
    ]
    numbers = [text.get_text() for text in grid.figure.axes[0].texts]
    assert numbers == ["+10.0\nundecided"] * 4
    of_m, *_ = factors.figure.axes
    assert of_m.get_xscale() == "log"
    names = [label.get_text() for label in factors.figure.axes[-1].get_xticklabels()]
    assert names == ["none", "layer"]


def test_every_verdict_is_a_cell_and_is_counted_once():
    verdicts = pd.DataFrame(
        [
            ("soft", "hard", 1, -0.02, "worse"),
            ("lvml", "soft", 0, 0.1, "better"),
            ("lvml", "soft", 1, math.nan, "undecided"),
        ],
        columns=["first", "second", "setting", "difference", "verdict"],
    )
    table = order_table(verdicts, ["digits m=10 (base)", "m=5"], "setting: SAIF")
    assert table.to_csv(index=False).splitlines() == [
        "setting: SAIF in points,soft - hard,lvml - soft",
        "digits m=10 (base),-,+10.0 better",
        "m=5,-2.0 worse,undecided",
        "better,0,1",
        "worse,1,0",
        "undecided,0,1",
    ]


def test_a_level_without_a_measure_says_nothing_of_it(found):
    found = [replace(each, metrics=("accuracy",)) if each.m == 5 else each for each in found]
    rows = across_facts(found)["effects"].rows
    of_5, of_50 = ([row for row in rows if row[1] == f"m={m}"] for m in (5, 50))
    assert len(of_50) == 2 * len(of_5) == 6
    assert "nan" not in {cell for row in rows for cell in row}
