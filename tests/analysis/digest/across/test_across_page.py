"""The page of several settings: what is told of them together, their figures and effects."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from analysis.comparison.across.across_blocks import effect_blocks
from analysis.comparison.across.family_pictures import family_pictures
from analysis.conclude import conclude
from analysis.digest.across.factors import families
from analysis.page.comparisons import COMPARISONS, MOST_IN_FULL, Compared
from study.cell.network_settings import NetworkSettings
from tests.made_up.comparisons import make_results, write_seeds
from tests.made_up.pages import page_of


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> list[Compared]:
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
    return [each for each in conclude(results).sections if isinstance(each, Compared)]


def test_many_show_their_heat_maps_alone_and_are_told_together(seven: list[Compared]) -> None:
    assert len(seven) == MOST_IN_FULL + 1
    assert all(section.one_of_many for section in seven)
    assert any("classifier width 3.0, focus width 2.0" in section.title for section in seven)
    assert [each.name for each in seven[0].pictures] == ["heatmaps-test", "heatmaps-train"]
    above = COMPARISONS.answer(seven)
    assert any("undecided in 7" in text for text in above)
    assert not any(section.comparison.name in text for section in seven for text in above)


def test_a_grid_is_a_picture_of_its_own(seven: list[Compared]) -> None:
    (family,) = families([section.comparison for section in seven])
    factors, grid = family_pictures(family)
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


def test_a_level_without_a_measure_says_nothing_of_it(seven: list[Compared]) -> None:
    found = [section.comparison for section in seven]
    found = [replace(each, metrics=("accuracy",)) if each.m == 5 else each for each in found]
    page = page_of(effect_blocks(found), form="markdown")
    of_5, of_50 = (re.findall(rf"^\| {m} +\|.*", page, re.MULTILINE)[0] for m in (5, 50))
    assert of_5.count(" - ") > of_50.count(" - ")
    assert "nan" not in page
