"""The page of several settings: figures, verdicts side by side, effects; their files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.comparison.across.across_blocks import effect_blocks
from analysis.comparison.across.factors import families
from analysis.comparison.across.family_pictures import family_pictures
from analysis.comparison.report.chapter import COMPARISONS, MOST_IN_FULL, Compared
from analysis.conclude import Conclusions, conclude
from analysis.section.blocks import Details, Table
from analysis.section.picture import FILE_STEM
from study.cell.network_settings import NetworkSettings
from tests.made_up.comparisons import make_cell, make_results, write

ACROSS = ("Across settings", "Does the order of paradigms hold?", "What each factor changes")


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
        for paradigm in ("soft", "lvml"):
            write(results, make_cell(paradigm, **fields), saif=0.4 + 0.1 * (paradigm == "lvml"))
    return [each for each in conclude(results).sections if isinstance(each, Compared)]


def headings(folder: Path) -> list[str]:
    return re.findall(r"^##+ (.*)$", (folder / "report.md").read_text(), re.MULTILINE)


@pytest.mark.usefixtures("no_pictures")
def test_one_comparison_says_nothing_across(three: Conclusions, tmp_path: Path) -> None:
    alone = three.of(three.sections[0].cells["cell_id"])
    alone.write(tmp_path)
    assert not {*ACROSS} & {*headings(tmp_path)}
    assert not list(tmp_path.rglob("across-*"))
    assert COMPARISONS.pictures(alone.sections) == []


def test_many_show_their_heat_maps_alone_and_are_told_together(seven: list[Compared]) -> None:
    assert len(seven) == MOST_IN_FULL + 1
    assert all(section.one_of_many for section in seven)
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
    for picture in (factors, grid):
        assert FILE_STEM.fullmatch(picture.name)
        assert picture.png.startswith(b"\x89PNG")


def test_a_level_without_a_measure_says_nothing_of_it(seven: list[Compared]) -> None:
    found = [section.comparison for section in seven]
    found = [replace(each, metrics=("accuracy",)) if each.m == 5 else each for each in found]
    (details,) = effect_blocks(found)
    assert isinstance(details, Details)
    tables = [block for block in details.blocks if isinstance(block, Table)]
    of_m = next(table.rows for table in tables if table.rows[0][0] in ("5", "50"))
    assert {"5", "50", "-"} <= {cell for row in of_m for cell in row}
    assert "nan" not in {cell for row in of_m for cell in row}


def test_titles_tell_settings_apart(seven: list[Compared]) -> None:
    """Without their keys, which mean nothing to people."""
    titles = {section.title for section in seven}
    assert len(titles) == len(seven)
    assert any("classifier width 3.0, focus width 2.0" in title for title in titles)
