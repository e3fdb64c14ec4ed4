"""A study of posts, of which not all have a rationale: comparison and MLflow."""

from __future__ import annotations

import itertools
import math

import pandas as pd
import pytest

import analysis
from analysis.digest.claims import claims
from analysis.digest.compare import compare, compare_results
from analysis.page.pictures import pictures
from analysis.page.table_one import table_one_cells
from analysis.page.tables import further_cells
from chapters.texts.modality import POSTS
from study.results import METRICS, ResultsError
from study.tracking.cells import of_cell
from tests.chapters.texts.text_results import SHARES, make_text_cell, write_text
from tests.made_up.comparisons import compared, make_results

# --- what is missing where no post has a rationale


def test_nothing_but_train_metrics_depends_on_train_rationales(tmp_path):
    """The same numbers, without a train rationale and with all of them, also between evaluations.

    The budget lies between two of them.
    """
    found = []
    for share in (0.0, 1.0):
        results = make_results(tmp_path / f"{share}")
        for paradigm, lr, seed in itertools.product(("soft", "lvml"), (0.1, 0.2), range(2)):
            saif = 0.3 + len(paradigm) / 100 + lr / 10 + seed / 50
            cell = make_text_cell(paradigm, lr, seed)
            write_text(results, cell, 0.6 - lr, saif, shares=SHARES | {"train": share})
        write_text(results, make_text_cell("hard"), status="diverged", points=())
        found.append(compared(results, axis="mosaics", budget=4_001.0, threshold=0.6))
    for name in ("summary", "paired", "options", "choice"):
        pd.testing.assert_frame_equal(*(getattr(each, name) for each in found))
    assert claims(found[0]) == claims(found[1])


def test_posts_without_any_rationale_are_compared_by_accuracy(results):
    for paradigm, seed in itertools.product(("soft", "hard"), range(6)):
        accuracy = 0.5 + (paradigm == "soft") * (10 + seed) / 100 + seed**2 / 500
        cell = make_text_cell(paradigm, seed=seed)
        write_text(results, cell, accuracy, shares=dict.fromkeys(SHARES, 0.0))
    found = compared(results)
    assert found.metrics == ("accuracy",)
    assert found.paired["verdict"].tolist() == ["better"]
    assert claims(found) == []
    assert not any(picture.name.startswith("heatmaps") for picture in pictures(found))
    assert not any("F1" in header[1] for header, _ in further_cells(found))


# --- the words of a report


def test_an_inference_that_all_share_is_in_every_name(results):
    for settings in ({}, {"inference": "soft"}):
        write_text(results, make_text_cell(**settings))
    found = compare_results(results)
    labels = [*table_one_cells(found)["", "task"]]
    for names in ([each.name for each in found], labels):
        assert sum("soft inference" in name for name in names) == 1


def test_iou_f1_may_exceed_one_and_no_other(results):
    """It is not a share: see `chapters.texts.plausibility`."""
    write_text(results, make_text_cell())
    evaluations = analysis.load(results)
    (found,) = compare(evaluations.assign(iou_f1=1.2))
    assert set(found.summary["iou_f1"]) == {1.2}
    with pytest.raises(ResultsError, match=r"token_f1 1\.2 .* not a fraction"):
        compare(evaluations.assign(token_f1=1.2))


# --- MLflow


OF_FOREGROUND = {*METRICS, *(each.column for each in POSTS.measures)} - {"loss", "accuracy"}


def test_mlflow_is_given_what_is_known(results):
    write_text(results, make_text_cell())  # without a training rationale
    (cell,) = results.cells().to_dict("records")
    logged = {p.name: p.value for p in of_cell(cell, results.evaluations(), "done").points}
    assert all(math.isfinite(value) for value in logged.values())
    for split, known in (("train", False), ("test", True)):
        of_split = {name.partition("/")[2] for name in logged if name.startswith(f"{split}/")}
        assert {"loss", "accuracy", "foreground_share"} <= of_split
        assert of_split & OF_FOREGROUND == (OF_FOREGROUND if known else set())
