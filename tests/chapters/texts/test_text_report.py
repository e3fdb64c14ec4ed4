"""A study of posts, of which not all have a rationale: comparison and MLflow."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.digest.claims import claims
from analysis.digest.compare import compare, compare_results
from analysis.page.pictures import pictures
from analysis.page.table_one import table_one_cells
from analysis.page.tables import further_cells
from chapters.texts.modality import POSTS
from study.results import METRICS, Results, ResultsError
from study.tracking.cells import of_cell
from tests.chapters.texts.text_results import PLAUSIBILITY, SHARES, make_text_cell, write_text
from tests.made_up.comparisons import OF_KNOWN, compared, make_results

SAIF = {"hard": 0.1, "soft": 0.2, "hybrid": 0.45, "lvml": 0.4, "lvml-logits": 0.35}
EVERY_TENTH = tuple(i / 10 for i in range(11))


# --- what is missing where no post has a rationale


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """The same numbers, once without a train rationale and once with all of them."""
    made = []
    for share in (0.0, 1.0):
        results = make_results(tmp_path_factory.mktemp("shares"))
        for paradigm, lr, seed in itertools.product(("soft", "lvml"), (0.1, 0.2), range(2)):
            cell = make_text_cell(paradigm, lr, seed, evaluation_points=EVERY_TENTH)
            saif = SAIF[paradigm] + lr / 10 + seed / 50
            write_text(results, cell, 0.6 - lr, saif, shares=SHARES | {"train": share})
        lost = make_text_cell("hard", evaluation_points=EVERY_TENTH)
        write_text(results, lost, status="diverged", points=())
        made.append(results)
    return made[0], made[1]


@pytest.mark.parametrize(
    "how",
    [{"axis": "mosaics", "budget": 4_001.0, "threshold": 0.6}, {"budget": 6e5, "select": "saif"}],
    ids=str,
)
def test_nothing_but_train_metrics_depends_on_train_rationales(both, how):
    none, every = (compared(results, **how) for results in both)
    for name in ("summary", "paired", "options", "choice"):
        pd.testing.assert_frame_equal(getattr(none, name), getattr(every, name))
    assert claims(none) == claims(every)
    tables = [each.at_budget.set_index(["cell_id", "split"]) for each in (none, every)]
    known = [name for name in (*OF_KNOWN, *PLAUSIBILITY) if name in tables[0]]
    assert tables[0].xs("train", level="split")[known].isna().all(axis=None)
    rest = [table.drop("train", level="split") for table in tables]
    pd.testing.assert_frame_equal(*rest)
    trained = rest[0].query("paradigm != 'hard'")
    np.testing.assert_allclose(3 * trained["auprc"], trained["saif"])  # also in between
    of_known = {*known, "foreground_share", "last_saif", *(f"between_{name}" for name in known)}
    pd.testing.assert_frame_equal(*(t.drop(columns=of_known & set(t)) for t in tables))


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
