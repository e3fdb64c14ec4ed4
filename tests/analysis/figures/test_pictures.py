"""Captions say what pictures show: n, split and interval."""

from __future__ import annotations

import itertools
import math
import re

import analysis
from analysis.digest.compare import compare
from analysis.figures import figure_png
from analysis.page.pictures import pictures
from analysis.section.picture import Picture
from study.results import Results
from tests.made_up.comparisons import compared, make_cell, write, write_seeds

PARADIGMS = ("soft", "lvml", "hybrid")


def _pictures(results: Results) -> dict[str, Picture]:
    return {picture.name: picture for picture in pictures(compared(results))}


def test_all_pictures_in_the_order_of_the_report(results):
    for i, (paradigm, lr, seed) in enumerate(itertools.product(PARADIGMS, (0.1, 0.2), range(2))):
        for point in (0.2, 0.6):  # which only the hybrid has
            cell = make_cell(paradigm, lr, seed, switch_point=point)
            write(results, cell, 0.5 + i / 30, 0.4)
    found = _pictures(results)
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


def test_names_are_shown_as_typed(results):
    """Without mathematics, whatever they begin with, and with letters that the font lacks."""
    names = {"soft": r"$\bm{x}$", "hard": "_soft", "lvml": "α-<b>", "lvml-logits": "注意"}
    write_seeds(results, dict.fromkeys(names, 0.5), 1)
    (comparison,) = compare(analysis.load(results).replace({"paradigm": names}))
    for picture in pictures(comparison):  # tests/contracts/test_sections.py: they are as typed
        assert figure_png(picture.figure)


def test_what_a_figure_cannot_show_is_said(results):
    write(results, make_cell())
    found = _pictures(results)  # neither differences nor responses
    assert list(found) == ["heatmaps-test", "heatmaps-train", "compute-saif", "compute-accuracy"]
    write(results, make_cell("hard"), status="diverged", points=(0.25,))
    for lr, accuracy in ((0.1, 0.9), (0.2, math.nan)):
        write(results, make_cell("lvml", lr), accuracy)
    found = _pictures(results)
    assert "No heat map: hard." in found["heatmaps-test"].caption
    assert "No line" not in found["compute-saif"].caption
    assert "1 mark is missing" in found["learning-rate-saif"].caption
