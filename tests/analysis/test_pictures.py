"""Captions say what pictures show: n, split and interval."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

import pytest

import analysis
from analysis.comparison.compare import Comparison, compare
from analysis.comparison.report.pictures import pictures
from analysis.figures import figure_png
from analysis.section.picture import Picture
from study.results import Results
from tests.made_up.comparisons import make_cell, make_results, write


def _pictures(results: Results, **cut: object) -> tuple[Comparison, dict[str, Picture]]:
    (comparison,) = compare(analysis.load(results), **cut)
    found = pictures(comparison)
    assert len({picture.name for picture in found}) == len(found)
    return comparison, {picture.name: picture for picture in found}


def _write_searched(results: Results) -> None:
    """Two options of soft and lvml, four of hybrid; two seeds."""
    for seed in range(2):
        for i, paradigm in enumerate(("soft", "lvml", "hybrid")):
            for lr in (0.1, 0.2):
                for point in (0.2, 0.6) if paradigm == "hybrid" else (0.5,):
                    cell = make_cell(paradigm, lr, seed, switch_point=point)
                    score = 0.5 + 0.1 * i + lr / 2 + point / 100
                    write(results, cell, score, score - 0.1 + 0.02 * seed)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, dict[str, Picture]]:
    results = make_results(tmp_path_factory.mktemp("searched"))
    _write_searched(results)
    return _pictures(results)


def test_all_pictures_in_the_order_of_the_report(
    searched: tuple[Comparison, dict[str, Picture]],
) -> None:
    _, found = searched
    assert list(found) == [
        "differences-saif", "differences-accuracy", "heatmaps-test", "heatmaps-train",
        "compute-saif", "compute-accuracy", "switch-point-saif", "switch-point-accuracy",
        "learning-rate-saif", "learning-rate-accuracy",
    ]  # fmt: skip
    for name, picture in found.items():
        assert re.search(r"\bn(=|: \w+ )2\b", picture.caption), picture.caption
        response = name.startswith(("switch-point", "learning-rate"))
        split = "train" if name == "heatmaps-train" else "validation" if response else "test"
        assert f"{split} split" in picture.caption


def test_names_are_shown_as_typed(results: Results) -> None:
    """Without mathematics, whatever they begin with, and with letters that the font lacks."""
    names = {"soft": r"$\bm{x}$", "hard": "_soft", "lvml": "α-<b>", "lvml-logits": "注意"}
    for paradigm, lr, seed in itertools.product(names, (0.1, 0.2), range(2)):
        write(results, make_cell(paradigm, lr, seed), 0.5 + lr, 0.5)
    (comparison,) = compare(analysis.load(results).replace({"paradigm": names}))
    found = pictures(comparison)
    assert len(found) >= 7
    for picture in found:  # that they are in it as typed, tests/contracts/test_sections.py shows
        assert figure_png(picture.figure, dpi=20)


def test_paradigms_without_a_common_seed_have_no_differences(results: Results) -> None:
    for paradigm, seed in (("soft", 0), ("soft", 1), ("lvml", 1), ("hybrid", 2)):
        write(results, make_cell(paradigm, 0.1, seed), 0.5, 0.4)
    panel, *_ = _pictures(results)[1]["differences-saif"].figure.axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["lvml − soft"]


def test_without_an_option_that_can_be_chosen_there_is_no_picture(results: Results) -> None:
    write(results, make_cell())
    (comparison,) = compare(analysis.load(results))
    nothing = {name: getattr(comparison, name).iloc[:0] for name in ("choice", "summary")}
    assert pictures(dataclasses.replace(comparison, **nothing)) == []


def test_what_a_figure_cannot_show_is_said_and_no_false_reason(results: Results) -> None:
    write(results, make_cell())
    _, found = _pictures(results)  # neither differences nor responses
    assert list(found) == ["heatmaps-test", "heatmaps-train", "compute-saif", "compute-accuracy"]
    write(results, make_cell("hard"), status="diverged", points=(0.25,))
    for lr, accuracy in ((0.1, 0.9), (0.2, math.nan)):
        write(results, make_cell("lvml", lr), accuracy)
    _, found = _pictures(results)
    assert "No heat map: hard." in found["heatmaps-test"].caption
    assert "No line" not in found["compute-saif"].caption
    caption = found["learning-rate-saif"].caption
    assert "1 mark is missing" in caption
    assert "censored" not in caption
