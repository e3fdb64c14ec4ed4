"""A study of posts, of which not all have a rationale: comparison, report, MLflow, repetition."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.comparison.compare import Comparison, compare, compare_results
from analysis.comparison.paper.claims import claims
from analysis.comparison.paper.published import TABLE_1, published, setting_differences
from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.data import data_notes, share_notes, share_sentences
from analysis.comparison.report.pictures import pictures
from analysis.comparison.report.section import section_title
from analysis.comparison.report.table_one import table_one_cells
from analysis.comparison.report.tables import further_cells
from analysis.comparison.report.text import section_text
from analysis.conclude import Conclusions, Question
from analysis.page.exports import exports
from analysis.report import main
from study.launch.repetition import compare_evaluations
from study.results import Results, ResultsError
from study.tasks import POSTS
from tests.conftest import not_drawn
from tests.made_up.comparisons import (
    OF_KNOWN,
    SHARES,
    make_cell,
    make_results,
    make_text_cell,
    write,
    write_text,
)

ARCHITECTURES = ("embedding", "self-attention")
SAIF = {"hard": 0.1, "soft": 0.2, "hybrid": 0.45, "lvml": 0.4, "lvml-logits": 0.35}
ALL = dict.fromkeys(SHARES, 1.0)
RATIONALES = ("foreground_share", *(measure.column for measure in POSTS.measures))
EVERY_TENTH = tuple(i / 10 for i in range(11))


def write_study(results: Results) -> None:
    """Two models; soft with two learning rates, hybrid with two switch points."""
    for number, architecture in enumerate(ARCHITECTURES):
        for paradigm in SAIF:
            for lr in (0.1, 0.3) if paradigm == "soft" else (0.1,):
                for point in (0.3, 0.6) if paradigm == "hybrid" else (0.5,):
                    for seed in range(6):
                        cell = make_text_cell(
                            *(paradigm, lr, seed),
                            switch_point=point,
                            architecture=architecture,
                            evaluation_points=EVERY_TENTH,
                        )
                        saif = SAIF[paradigm] * (1 + 0.01 * seed) + 0.05 * number + point / 50
                        accuracy = 0.62 + 0.002 * (seed * len(paradigm) % 7) - lr / 10
                        write_text(results, cell, accuracy, saif, 0.8, mosaics=6 * cell.n)


class _Study(NamedTuple):
    results: Results
    sections: list[Compared]
    folder: Path
    text: str
    """Of report.md, without the backslashes that Markdown needs."""

    @property
    def found(self) -> list[Comparison]:
        return [section.comparison for section in self.sections]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> _Study:
    folder = tmp_path_factory.mktemp("text")
    results = make_results(folder / "results")
    write_study(results)
    sections = [Compared(comparison) for comparison in compare_results(results)]
    drawn = [section.pictures for section in sections]
    # One of each sort is drawn, without a warning about its words; the others are as these.
    sorts = {picture.name.partition("-")[0]: picture for picture in drawn[0]}
    for picture in sorts.values():
        assert picture.png
    with not_drawn():
        for picture in [*drawn[0], *drawn[1]]:
            assert picture.pdf
            assert picture.png
    Conclusions(results.url, Question(), sections).write(folder / "out", "Posts")
    text = (folder / "out" / "report.md").read_text()
    return _Study(results, sections, folder / "out", re.sub(r"\\(.)", r"\1", text))


# --- what is missing where no post has a rationale


CUTS = (
    {},
    {"budget": 6e5},
    {"budget": 6.3e5, "interpolate": True},
    {"axis": "mosaics"},
    {"axis": "mosaics", "budget": 4_001.0, "interpolate": True, "threshold": 0.6},
    {"threshold": 0.2, "select": "saif"},
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """The same numbers, once without a train rationale and once with all of them."""
    made = []
    for name, share in (("none", 0.0), ("all", 1.0)):
        results = make_results(tmp_path_factory.mktemp(name))
        for paradigm in ("soft", "lvml"):
            for lr in (0.1, 0.2):
                for seed in range(2):
                    cell = make_text_cell(paradigm, lr, seed, evaluation_points=EVERY_TENTH)
                    saif = SAIF[paradigm] + lr / 10 + seed / 50
                    write_text(results, cell, 0.6 - lr, saif, shares=SHARES | {"train": share})
        lost = make_text_cell("hard", evaluation_points=EVERY_TENTH)
        write_text(results, lost, status="diverged", points=())
        made.append(results)
    return made[0], made[1]


class _Cut(NamedTuple):
    """The comparisons of `both` at one cut, and that of the first's table."""

    none: Comparison
    every: Comparison
    of_table: Comparison


@pytest.fixture(scope="module")
def table(both: tuple[Results, Results]) -> pd.DataFrame:
    return analysis.load(both[0])


@pytest.fixture(scope="module", params=CUTS, ids=str)
def cut(
    request: pytest.FixtureRequest, both: tuple[Results, Results], table: pd.DataFrame
) -> _Cut:
    (none,), (every,) = (compare_results(results, **request.param) for results in both)
    (of_table,) = compare(table, **request.param)
    return _Cut(none, every, of_table)


def test_nothing_but_train_metrics_depends_on_train_rationales(cut: _Cut) -> None:
    none, every = cut.none, cut.every
    for name in ("summary", "paired", "options", "choice"):
        pd.testing.assert_frame_equal(getattr(none, name), getattr(every, name))
    assert claims(none) == claims(every)
    tables = [each.at_budget.set_index(["cell_id", "split"]) for each in (none, every)]
    known = [name for name in OF_KNOWN if name in tables[0]]
    train = tables[0].xs("train", level="split")
    assert train[known].isna().all(axis=None)
    assert (train["foreground_share"].dropna() == 0).all()
    others = [table.drop("train", level="split") for table in tables]
    pd.testing.assert_frame_equal(*others)
    of_known = {*known, "foreground_share", "last_saif", *(f"between_{name}" for name in known)}
    rest = [table.drop(columns=of_known & set(table)) for table in tables]
    pd.testing.assert_frame_equal(*rest)


def test_a_table_and_a_directory_say_the_same(cut: _Cut) -> None:
    one, other = cut.none, cut.of_table
    for name in ("at_budget", "summary", "paired", "options"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))
    heatmaps = [
        each.chosen.loc[each.chosen["split"] == "train", "heatmap"] for each in (one, other)
    ]
    assert all(len(found) and found.isna().all() for found in heatmaps)


def test_values_between_evaluations_hold_the_measures_of_text(
    both: tuple[Results, Results],
) -> None:
    (comparison,) = compare_results(both[0], budget=6.5e5, interpolate=True)
    rows = comparison.at_budget[comparison.at_budget["weight"] > 0]
    rows = rows[rows["split"] == "test"]
    assert len(rows) == 8
    for part, name in enumerate(("token_f1", "iou_f1", "auprc"), start=1):
        np.testing.assert_allclose(rows[name], rows["saif"] / part)
    assert set(rows["foreground_share"]) == {SHARES["test"]}


def test_a_diverged_cell_has_a_saif_only_where_there_could_be_one(
    both: tuple[Results, Results],
) -> None:
    (comparison,) = compare_results(both[0])
    hard = comparison.at_budget[comparison.at_budget["paradigm"] == "hard"].set_index("split")
    assert hard["saif"].to_dict() == pytest.approx(
        {"train": math.nan, "validation": 0, "test": 0}, nan_ok=True
    )
    assert set(hard["accuracy"]) == {1 / 4}
    assert hard[["token_f1", "iou_f1", "auprc"]].isna().all(axis=None)


@pytest.mark.usefixtures("no_pictures")
def test_posts_without_any_rationale_are_compared_by_accuracy(
    results: Results, tmp_path: Path
) -> None:
    for paradigm in ("soft", "hard", "hybrid", "lvml"):
        for seed in range(6):
            cell = make_text_cell(paradigm, seed=seed)
            accuracy = 0.5 + (paradigm == "soft") * (10 + seed) / 100 + seed**2 / 500
            write_text(results, cell, accuracy, shares=dict.fromkeys(SHARES, 0.0))
    (comparison,) = compare_results(results)
    verdicts = comparison.paired.set_index(["metric", "first", "second"])["verdict"]
    assert verdicts["accuracy", "soft", "hard"] == "better"
    assert comparison.metrics == ("accuracy",)
    assert claims(comparison) == []
    assert "SAIF" not in section_text(comparison).replace("no SAIF on the", "")
    names = [picture.name for picture in pictures(comparison)]
    assert not [name for name in names if name.startswith("heatmaps")]
    assert share_sentences(comparison) == [
        f"No {split} post has a rationale: no SAIF on the {name} split."
        for name, split in (("train", "training"), ("validation", "validation"), ("test", "test"))
    ]
    assert further_cells(comparison.summary) == []
    assert main([results.url, "--out", str(tmp_path / "out"), "--published"]) == 0


# --- the words of a report


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("axis", ["flops", "mosaics"])
def test_posts_are_never_called_mosaics(
    results: Results, tmp_path: Path, axis: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for paradigm in ("soft", "hard"):
        for seed in range(2):
            write_text(results, make_text_cell(paradigm, seed=seed), mosaics=200_000)
    assert main([results.url, "--out", str(tmp_path / "out"), "--axis", axis]) == 0
    files = [tmp_path / "out" / name for name in ("report.md", "table1.tex", "paired.md")]
    (comparison,) = compare_results(results, axis=axis)  # type: ignore[arg-type]
    drawn = pictures(comparison)
    captions = " ".join(each.title + each.caption for each in drawn)
    for text in (capsys.readouterr().out, captions, *(file.read_text() for file in files)):
        assert "mosaic" not in text
    text = files[0].read_text()
    for words in ("test posts", "| training posts n | 15000 |", "| most tokens m | 64 |"):
        assert words in text
    labels = {panel.get_xlabel() for each in drawn for panel in each.figure.axes}
    assert ("training data seen ($10^{5}$ posts)" in labels) == (axis == "mosaics")


@pytest.mark.parametrize("shares", [None, ALL])
def test_where_all_is_known_nothing_is_said_about_rationales(
    results: Results, shares: Mapping[str, float] | None
) -> None:
    write(results, make_cell(), shares=shares, data_notes="")
    (comparison,) = compare_results(results)
    assert share_notes([comparison]) == data_notes([comparison]) == []
    assert further_cells(comparison.summary) == []
    assert not {"token_f1", "iou_f1", "auprc"} & set(comparison.summary)
    cells = pd.read_csv(io.BytesIO(exports([Compared(comparison)])["cells.csv"]))
    assert not {"label_rule", "min_count", "token_f1", "foreground_share"} & set(cells)


# --- two models of one task


def test_heat_maps_of_validation_and_test_and_of_train_where_there_are_any(
    study: _Study, results: Results
) -> None:
    for drawn in (section.pictures for section in study.sections):
        found = {each.name: each for each in drawn if each.name.startswith("heatmaps")}
        assert list(found) == ["heatmaps-test", "heatmaps-validation"]
        for picture in found.values():
            assert "in % of the posts that have a rationale" in picture.caption
            assert "% of the posts that have a rationale" in picture.figure.get_supxlabel()
    write_text(results, make_text_cell(), shares=dict.fromkeys(SHARES, 0.6))
    (comparison,) = compare_results(results)
    names = [each.name for each in pictures(comparison)]
    assert names[:3] == ["heatmaps-test", "heatmaps-validation", "heatmaps-train"]


def test_an_inference_that_all_share_is_in_every_name(results: Results) -> None:
    for settings in ({}, {"inference": "soft"}):
        write_text(results, make_text_cell(**settings))
    own, soft = sorted(compare_results(results), key=lambda each: each.name)
    assert own.name == "hatexplain embedding m=64"
    assert soft.name == "hatexplain embedding m=64 soft inference"
    assert "soft inference" in section_title(soft)
    assert "inference" not in section_title(own)
    labels = {row[0] for row in table_one_cells([own, soft])[1]}
    assert labels == {
        "hatexplain (1, embedding)",
        "hatexplain (1, embedding), soft inference",
    }
    (group,) = Compared(soft).summaries()
    assert group.params["inference"] == "soft"


# --- plausibility


def test_iou_f1_may_exceed_one_and_no_other(results: Results) -> None:
    """It is not a share: see `study.evaluate.plausibility`."""
    evaluations = analysis.load(_written(results))
    (comparison,) = compare(evaluations.assign(iou_f1=1.2))
    assert set(comparison.summary["iou_f1"]) == {1.2}
    with pytest.raises(ResultsError, match=r"token_f1 1\.2 .* no fraction"):
        compare(evaluations.assign(token_f1=1.2))


def _written(results: Results) -> Results:
    write_text(results, make_text_cell())
    return results


# --- the paper's numbers


def test_the_published_row_follows_the_model_at_any_m() -> None:
    for m in (16, 64):
        for number, model in enumerate(ARCHITECTURES, start=1):
            row = published("hatexplain", m, model)
            scores = TABLE_1[f"HateXplain-{number}"]
            assert row.label == f"hatexplain ({number}, {model})"
            assert {name: row.scores[name] for name in scores} == scores
            assert row.scores["lvml-logits"] == scores["lvml"]
    assert published("hatexplain", 64, "another").scores == {}
    assert published("cifar10", 5, "any").label == "cifar10"
    assert published("cifar10", 5, "any").scores == TABLE_1["CIFAR10 m=5"]
    assert published("cifar10", 6, "any").scores == published("digits", 5, "any").scores == {}


def test_the_settings_of_the_scripts_differ_by_the_vocabulary_alone() -> None:
    cell = make_text_cell(
        n=15_383, batch_size=256, label_rule="first", rationale_rule="first", min_count=1,
        inference="soft",
    )  # fmt: skip
    (difference,) = setting_differences(cell.to_dict(), 550.2, {"soft", "hard", "lvml-logits"})
    assert difference == (
        "a vocabulary of the words in the training split, not of all 28,041 in all splits"
    )
    halved = setting_differences(cell.to_dict() | {"width": 0.5}, math.nan, {"lvml"})
    assert "its hidden layers 0.5 times as wide" in halved
    assert halved[-1] == "lvml by averaged probabilities, not by averaged logits"


# --- claims


def test_claims_are_of_the_posts_that_have_a_rationale(study: _Study) -> None:
    """And their numbers are those of the same cells as mosaics, whose foreground is known."""
    for comparison in study.found:
        found = {claim.name: claim for claim in claims(comparison)}
        assert set(found) == {"C1", "C2", "C3", "C4", "C5", "C6", "C16", "C17"}
        for name in ("C1", "C2", "C3", "C4", "C5", "C17"):
            assert "test posts that have a rationale" in found[name].test
        assert all(claim.verdict != "not run" for claim in found.values())
        assert (found["C6"].verdict, found["C4"].verdict) == ("holds", "holds")
    assert study.text.count("test posts that have a rationale in the middle of soft's") == 4


# --- MLflow and repetition


def test_missing_equals_missing_in_a_repetition(results: Results) -> None:
    rows = _written(results).evaluations()
    assert compare_evaluations(rows, rows.iloc[::-1]) == (0.0, "", True)
    train = rows.index[rows["split"] == "train"][0]
    test = rows.index[rows["split"] == "test"][0]

    def changed(index: int, column: str, value: object) -> str:
        other = rows.copy()
        other.at[index, column] = value
        places = {compare_evaluations(*pair)[1] for pair in ((rows, other), (other, rows))}
        (place,) = places
        return place.partition(", ")[0]

    assert changed(train, "saif", 0.0) == "saif"
    assert changed(train, "heatmap", [0.0] * 25) == "heat map"
    assert changed(test, "heatmap", None) == "heat map"
    for name in RATIONALES:
        assert changed(test, name, 0.01) == name
        assert changed(test, name, math.nan) == name
