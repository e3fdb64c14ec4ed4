"""Where cells are cut on every axis, and that nothing but what is within the cut counts."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import analysis
from analysis.digest.at_cut import cut_cells
from analysis.digest.compare import Comparison, compare, compare_results
from analysis.digest.cut import Cut, saif_at
from analysis.digest.read import Source, cells_of
from analysis.groups import AXES
from study.cell import Budget
from study.evaluate import saif_and_heat_map
from study.results import KEY, SPLITS, Results, ResultsError
from study.results.merging import compact
from study.tasks import MOSAICS
from tests.chapters.texts.text_results import make_text_cell, write_text
from tests.made_up.comparisons import (
    BUDGET,
    at_the_cut,
    make_cell,
    make_results,
    write,
    write_comparisons,
    write_seeds,
)


def assert_same(found: Comparison, expected: Comparison) -> None:
    """Equal to the last bit, in any order of the rows that were read."""
    for name in ("cells", "at_budget", "options", "paired", "chosen", "evaluations"):
        one, other = getattr(found, name), getattr(expected, name)
        by = [each for each in KEY if each in one]
        tables = (each.sort_values(by, ignore_index=True) for each in (one, other))
        pd.testing.assert_frame_equal(*tables, check_like=True, check_exact=True)


# --- equal compute

STEP = {"flops": 1_089_999_999_997, "mosaics": 8, "seconds": 1e-9}
"""Axis -> the most that a step costs: so many digits that advice must not round them; seconds are
interpolated."""


@pytest.fixture(scope="module", params=["flops", "mosaics"])
def timed(request, tmp_path_factory) -> pd.DataFrame:
    """Cells at the last step within each tenth of a budget; one diverged, one was censored."""
    results = make_results(tmp_path_factory.mktemp("timed"))
    points = tuple(i / 10 for i in range(11))
    amount = 13 * STEP[request.param]
    lost = {("hard", 1): "diverged", ("lvml", 1): "censored"}
    for run in itertools.product(("soft", "hard", "lvml"), range(2)):
        status = lost.get(run, "done")
        cell = make_cell(
            run[0], seed=run[1], evaluation_points=points, budget=Budget(amount, request.param)
        )
        write(results, cell, status=status, points=points if status == "done" else points[:6])
    table = analysis.load(results).drop(columns="heatmap")
    flops = table["paradigm"].map({"soft": 10**12, "hard": STEP["flops"], "lvml": STEP["flops"]})
    of_budget = flops if request.param == "flops" else STEP["mosaics"]
    table["step"] = (table["budget_fraction"] * amount // of_budget).astype("Int64")
    table["compute_flops"] = table["step"] * flops
    table["mosaics_seen"] = table["step"] * STEP["mosaics"]
    table["train_seconds"] = table["step"] * table["paradigm"].map(len) / 1e3
    return table


@given(
    axis=st.sampled_from([*AXES]),
    interpolate=st.booleans(),
    place=st.floats(0, 1.2) | st.integers(0, 10),
    beside=st.sampled_from([-1, 0, 1]),
)
@example(axis="flops", interpolate=False, place=1.2, beside=0)
def test_what_is_compared_differs_by_less_than_a_step(timed, axis, interpolate, place, beside):
    """At any share of the whole, and at or beside the cost of any moment."""
    column = AXES[axis]
    dearest = timed.groupby("budget_fraction")[column].max().astype(float)
    if isinstance(place, int):
        budget = dearest.iloc[place] + beside * (1e-3 if axis == "seconds" else 1)
    else:
        budget = place * dearest.max()
    budget = max(budget, 1e-9)
    done = timed[timed["status"] == "done"]
    budgeted = timed["budget_unit"].iloc[0] == axis
    how = {"axis": axis, "interpolate": interpolate}
    try:
        rows = analysis.equal_compute(timed, budget, **how)
    except ResultsError as refusal:
        reached = done.groupby("cell_id")[column].max().min()
        starts = done[done["step"] > 0].groupby("cell_id")[column].min().max()
        late = budget > (done["budget_amount"].iloc[0] if budgeted else reached)
        assert late or budget < starts
        (advised,) = re.findall(r"usable budget is (\S+) ", str(refusal))
        assert len(analysis.equal_compute(timed, float(advised), **how))
        return
    last = rows[(rows["status"] == "done") | (rows["status"].eq("diverged") & ~rows["diverged"])]
    assert last.groupby("cell_id").size().eq(len(SPLITS)).all()
    assert set(done["cell_id"]) <= set(last["cell_id"])
    spent = last[column].to_numpy(float)
    assert spent.min() > 0
    assert spent.max() <= budget + (1e-9 if axis == "seconds" else 0.5)  # counts are whole
    assert np.ptp(spent) < STEP[axis]


# --- equal curves

EPOCHS = 10
_PAIRS = 8
_RATES = (0.1, 0.2)


@pytest.fixture(scope="module")
def alike(tmp_path_factory) -> pd.DataFrame:
    """Runs of two paradigms and rates of equal cost, evaluated on two splits every epoch."""
    results = make_results(tmp_path_factory.mktemp("alike"))
    points = tuple(k / EPOCHS for k in range(1, EPOCHS + 1))
    for run in itertools.product(("soft", "hard"), _RATES, range(_PAIRS)):
        write(results, make_cell(*run, evaluation_points=points))
    return analysis.load(results).query("split != 'train'").reset_index(drop=True)


@given(
    evaluated=st.lists(st.sets(st.integers(1, EPOCHS), min_size=2), min_size=4, max_size=4),
    axis=st.sampled_from([*AXES]),
    share=st.none() | st.floats(0.05, 1.1),
    interpolate=st.booleans(),
    falling=st.booleans(),
    apart=st.sampled_from([0, 1]),
    lost=st.none() | st.tuples(st.integers(1, _PAIRS // 2), st.integers(1, EPOCHS)),
    seed=st.integers(0, 2**32),
)
@example(  # lost after the last evaluation of the one, and between two of the other
    evaluated=[{2, 4, 6, 8}, {1, 3, 5, 7, 9}] * 2, axis="flops", share=None, interpolate=False,
    falling=False, apart=0, lost=(_PAIRS // 2, 8), seed=0,
)  # fmt: skip
def test_equal_curves_never_differ(
    alike,
    evaluated,
    axis,
    share,
    interpolate,
    falling,
    apart,
    lost,
    seed,
):
    """Whenever each paradigm was evaluated on each split: a value is off by what is said at most.

    Args:
        alike: see the fixture.
        evaluated: of each paradigm and split, the epochs at which it was evaluated.
        axis: what is made equal.
        share: of all that was spent, the budget; None: no budget is asked for.
        interpolate: see `analysis.compare`.
        falling: whether the curves fall steadily; else they rise.
        apart: whether the rates differ on the test split by a tenth.
        lost: how many seeds diverged, and after which epoch; it shows at their next evaluation.
        seed: of the curves.
    """
    table, column = alike.copy(), AXES[axis]
    epoch = table["budget_fraction"].rank(method="dense").astype(int)
    spent = table.groupby(epoch)[column].max().to_numpy(float)
    steps = np.random.default_rng(seed).exponential(size=(len(_RATES), _PAIRS, 2, EPOCHS)) ** 3
    curves = 0.6 * np.cumsum(steps, axis=-1) / steps.sum(axis=-1, keepdims=True)
    curves[:, :, 1] += apart * np.array(_RATES)[:, None, None]  # of equals on validation
    curves = 0.9 - curves if falling else 0.1 + curves
    of_test = table["split"].eq("test").astype(int)
    rate = table["lr"].map(_RATES.index)
    table["accuracy"] = table["saif"] = curves[rate, table["seed"], of_test, epoch - 1]
    place = table["paradigm"].eq("hard") + 2 * of_test
    kept = np.array([k in evaluated[at] for at, k in zip(place, epoch, strict=True)])
    if lost is not None:
        seeds, ended = lost
        diverged = table["seed"] < seeds
        table.loc[diverged, "status"] = "diverged"
        after = diverged & (epoch > ended)
        table.loc[after, ["loss", "accuracy", "saif"]] = np.nan
        next_epoch = [min((k for k in each if k > ended), default=0) for each in evaluated]
        seen = place.map(dict(enumerate(next_epoch)))
        gone = after & (epoch != seen)
        table, kept = table[~gone], kept[~gone]
    budget = None if share is None else share * spent[-1]
    try:
        (found,) = compare(table[kept], budget, axis=axis, interpolate=interpolate)
    except ResultsError:
        starts = max(map(min, evaluated)) if lost is None else EPOCHS
        assert starts > min(map(max, evaluated)) or budget is not None or lost is not None
        return
    rows = found.at_budget[~found.at_budget["diverged"] & found.at_budget["accuracy"].notna()]
    for split, of_split in rows.groupby("split"):
        at = of_split[column].to_numpy(float)
        assert np.ptp(at[of_split["status"] == "done"]) <= 1
        truth = [
            np.interp(x, spent, curves[_RATES.index(lr), seed, int(split == "test")])
            for x, lr, seed in zip(at, of_split["lr"], of_split["seed"], strict=True)
        ]
        between = of_split.get("between_accuracy", 0.0)
        assert (abs(of_split["accuracy"] - truth) <= between + 1e-4).all()
    assert found.paired["verdict"].eq("undecided").all()
    if not (rows["weight"] > 0).any():
        assert found.paired["difference"].dropna().eq(0).all()


def test_a_run_without_evaluations_makes_no_difference_sure(results):
    for seed in range(8):
        write(results, make_cell("hard", seed=seed), points=(0.2, 1.0))
        lost = {"status": "diverged", "points": ()} if seed == 7 else {"points": (0.3, 0.7)}
        write(results, make_cell("soft", seed=seed), **lost)
    (found,) = compare_results(results)
    assert found.paired["num_pairs"].eq(8).all()
    assert found.paired["reason"].str.contains("evaluations lie").all()


def test_options_that_tie_where_nothing_is_interpolated_are_no_doubt(results):
    """Whatever else is in the directory."""
    for seed in range(8):
        for paradigm, lr, saif in (("soft", 0.1, 0.3), ("soft", 0.2, 0.6), ("hard", 0.1, 0.7)):
            saif += seed * round(10 * saif) % 11 / 500
            write(results, make_cell(paradigm, lr, seed), accuracy=0.8, saif=saif)
        write(results, make_cell("soft", seed=seed, m=20), points=(0.3, 0.7))
        write(results, make_cell("hard", seed=seed, m=20), points=(0.2, 1.0))
    found, between = compare_results(results)
    assert (found.interpolated, between.interpolated) == (False, True)
    assert "undecided" not in found.paired.query("metric == 'saif'")["verdict"].tolist()


# --- axes and interpolation


def test_a_cell_that_diverged_in_less_time_than_the_cut_counts_as_nothing(
    results,
):
    """It got further in its budget than a slow cell did in that time, and yet was lost by then."""
    write(results, make_cell("soft", seed=0), seconds=2.0)
    write(results, make_cell("soft", seed=1), seconds=8.0)
    write(results, make_cell("hard"), status="diverged", points=(0.25, 0.5), seconds=2.0)
    rows = at_the_cut(results, axis="seconds")
    assert rows.groupby("paradigm")["diverged"].all().to_dict() == {"hard": True, "soft": False}
    assert (set(rows["cut"]), rows["train_seconds"].max()) == ({0.25}, 2.0)


def test_heat_maps_lie_between_those_of_the_evaluations(results):
    write(results, make_cell("soft"), saif=0.4)
    table = analysis.load(results)
    budget = 0.3 * BUDGET - 1  # a fifth of the way from one evaluation to the next
    rows = analysis.equal_compute(table, budget, interpolate=True)
    assert [heatmap[-1] for heatmap in rows["heatmap"]] == pytest.approx([0.4 * 0.3] * 3)
    assert set(rows["budget_fraction"]) == {0.25}
    table["heatmap"] = table["heatmap"].mask(table["budget_fraction"] == 0.5, None)
    assert analysis.equal_compute(table, budget, interpolate=True)["heatmap"].isna().all()


@pytest.mark.parametrize("edges", [MOSAICS.heatmap_edges, (0.0, 0.2, 0.3, 1.0)])
def test_saif_at_another_threshold_is_that_of_the_instances(edges):
    a_z, s_y = np.random.default_rng(0).uniform(0, 1, (2, 50))
    heatmap = saif_and_heat_map.heatmap(a_z, s_y, edges).ravel()
    for threshold in edges[1:-1]:
        known, unknown = saif_at(pd.Series([heatmap, None]), threshold, edges)
        assert known == pytest.approx(saif_and_heat_map.saif(a_z, s_y, threshold), abs=1e-12)
        assert np.isnan(unknown)


# --- what does not matter


def test_a_directory_gives_what_its_table_gives_in_any_order(results):
    """Interpolated, at another threshold, with lost cells, and posts without rationales."""
    write_comparisons(results)
    write_text(results, make_text_cell(), shares={"train": 0.0, "validation": 0.5, "test": 1.0})
    how = Cut(0.6 * BUDGET, interpolate=True, threshold=0.6)
    evaluations = analysis.load(results).sample(frac=1, random_state=1)
    found = compare_results(results, **vars(how))
    for one, other in zip(found, compare(evaluations, **vars(how)), strict=True):
        assert_same(one, other)
    for whole, lean in zip(
        found, compare_results(results, **vars(how), details=False), strict=True
    ):
        pd.testing.assert_frame_equal(lean.paired, whole.paired)
        assert lean.evaluations.empty
        assert lean.chosen["heatmap"].isna().all()


def test_records_that_do_not_count_and_files_that_vanish_change_nothing(results, monkeypatch):
    write(results, make_cell(seed=0), 0.9, status="censored", points=(0.25,))
    write(results, make_cell(seed=1), 0.7)
    compact(results)
    write(results, make_cell(seed=0), 0.8)  # goes on; the merged file keeps what was censored
    files = results.files()
    assert files.left_out
    answers = iter([files._replace(paths=["gone.parquet"]), files])
    monkeypatch.setattr(Results, "files", lambda *_: next(answers))
    table = cut_cells(Source(results, cells_of(results)), Cut(BUDGET / 4)).table.query(
        "split == 'test'"
    )
    assert table.set_index("seed")["accuracy"].to_dict() == {0: 0.8 / 4, 1: 0.7 / 4}


def test_columns_of_others_are_those_of_the_evaluation_at_the_cut(results):
    write_seeds(results, {"soft": 0.3, "hard": 0.6})
    evaluations = analysis.load(results)
    more = evaluations.assign(mine=10 * evaluations["budget_fraction"])
    rows = analysis.equal_compute(more, 0.6 * BUDGET)
    assert set(rows["mine"]) == {5.0}
    again = analysis.equal_compute(rows)  # a table that is cut may be cut again
    pd.testing.assert_frame_equal(again.drop(columns="cut"), rows.drop(columns="cut"))


# --- what is asked for


def test_each_comparison_has_a_cut_of_its_own(results):
    for m, amount in ((10, BUDGET), (20, 10 * BUDGET)):
        write_seeds(results, {"soft": 0.4}, 1, m=m, budget=Budget(amount))
    assert [found.cut for found in compare_results(results, budget=6e6)] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("change", "how", "fact"),
    [
        ({"pack": 2}, {"axis": "seconds"}, r"1 of 2 cells .*--pack none --no-share"),
        ({"threads": 2}, {"axis": "seconds"}, "threads .*seconds are not comparable"),
        (
            lambda table: table.assign(train_seconds=np.nan),
            {"axis": "seconds"},
            "has evaluations without train_second",
        ),
        (lambda table: table.drop(columns="heatmap"), {"threshold": 0.6}, "no column heatmap"),
        (lambda table: table.drop(columns=["saif", "status"]), {}, "no columns saif, status"),
        (lambda table: table.assign(split="valid"), {}, "one of train, validation, test, got"),
        (lambda table: table.assign(saif=1.7), {}, r"has saif 1\.7 on the"),
        (lambda table: table.iloc[:0], {}, "no finished cell"),
        (lambda table: table.assign(compute_flops=0), {}, "no evaluation of a trained network"),
        ({}, {"threshold": 1.0}, r"\(0.2, 0.4, 0.6, 0.8\), got 1.0"),
        ({}, {"budget": float("nan")}, "FLOPs > 0, got nan"),
        ({}, {"budget": True}, "FLOPs > 0, got True"),
        ({}, {"axis": "epochs"}, "flops, seconds, mosaics, got 'epochs'"),
    ],
)
def test_what_cannot_be_cut_is_refused(
    results,
    change,
    how,
    fact,
):
    write(results, make_cell("soft"))
    write(results, make_cell("hard"), **({} if callable(change) else change))
    table = analysis.load(results)
    with pytest.raises(ResultsError, match=fact):
        analysis.equal_compute(change(table) if callable(change) else table, **how)
