"""Where cells are cut on every axis, and that nothing but what is within the cut counts."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import analysis
from analysis.comparison.compare import Comparison, compare, compare_results
from analysis.comparison.cut import saif_at
from analysis.comparison.report.limits import unusual_cut
from analysis.groups import AXES
from study.cell import Budget, Cell
from study.evaluate import saif_and_heat_map
from study.models.flops import ModelFlops
from study.results import SPLITS, Results, ResultsError
from study.results.merging import compact
from study.tasks import CAPTIONS, MOSAICS
from study.tasks.base import Modality
from study.train.budget import cost
from study.train.budget.timeline import timeline
from tests.made_up.comparisons import (
    BUDGET,
    at_the_cut,
    compared,
    make_cell,
    make_results,
    make_text_cell,
    write,
    write_text,
)

PARADIGMS = ("soft", "hard", "lvml", "hybrid")


def write_study(results: Results) -> None:
    """Paradigms of different speed, two rates, a diverged and a censored cell."""
    random = np.random.default_rng(1)
    lost = {("hard", 0.2, 0): "diverged", ("lvml", 0.2, 1): "censored"}
    for seconds, paradigm in enumerate(("hard", "lvml"), 2):
        for lr, seed in itertools.product((0.1, 0.2), range(2)):
            status = lost.get((paradigm, lr, seed), "done")
            write(
                results,
                make_cell(paradigm, lr, seed),
                *random.uniform(0.3, 0.9, 2).round(3),
                status=status,
                points=None if status == "done" else (0.25, 0.5),
                seconds=float(seconds),
                mosaics=1_000 * seconds,
            )


def assert_same(one: list[Comparison], other: list[Comparison]) -> None:
    """Equal to the last bit, in all that a comparison holds."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for field in dataclasses.fields(Comparison):
            x, y = getattr(a, field.name), getattr(b, field.name)
            if isinstance(x, pd.DataFrame):
                by = [n for n in ("cell_id", "split", "budget_fraction") if n in x]
                x, y = (t.sort_values(by, ignore_index=True) if by else t for t in (x, y))
                pd.testing.assert_frame_equal(x[sorted(x)], y[sorted(y)], check_exact=True)
            else:
                assert x == y, field.name


# --- equal compute

FLOPS = ModelFlops(focus=100, classifier=10)  # hard and lvml cost 1.09 times soft


def step_cost(cell: Cell, axis: str) -> float:
    if axis == "mosaics":
        return cell.batch_size
    names = {phase.paradigm for phase in cell.schedule.phases}
    return cell.batch_size * float(max(cost.training_flops(name, FLOPS, cell.m) for name in names))


@pytest.fixture(scope="module", params=["few steps", "many steps", "budget of mosaics"])
def timed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pd.DataFrame, dict[str, Cell]]:
    """Every paradigm, evaluated when it is due; one cell diverged, one was censored."""
    results = make_results(tmp_path_factory.mktemp("timed"))
    epochs = 2 if request.param == "few steps" else 30
    in_mosaics = request.param == "budget of mosaics"
    points = tuple(i / 10 for i in range(11))
    settings = {
        "n": 50,
        "batch_size": 8,
        "budget": cost.epochs(epochs, n=50)
        if in_mosaics
        else cost.soft_epochs(epochs, FLOPS, m=10, n=50),
        "evaluation_points": points,
    }
    cells, stops = {}, {}
    for paradigm, seed in itertools.product(PARADIGMS, range(2)):
        status = {("hard", 1): "diverged", ("lvml", 1): "censored"}.get((paradigm, seed))
        lost = {"status": status, "points": points[:6]} if status else {}
        cell = write(results, make_cell(paradigm, seed=seed, **settings), **lost)
        cells[cell.id] = cell
        for stop in timeline(cell, FLOPS):
            stops |= {
                (cell.id, at): (stop.steps_done, stop.compute_flops) for at in stop.evaluate_at
            }
    table = analysis.load(results).drop(columns="heatmap")
    at = [stops[each] for each in zip(table["cell_id"], table["budget_fraction"], strict=True)]
    table[["step", "compute_flops"]] = pd.DataFrame(at, table.index, dtype="Int64")
    table["mosaics_seen"] = 8 * table["step"]
    table["train_seconds"] = table["step"] * table["paradigm"].map(len) / 1e3
    return table, cells


@settings(max_examples=15)
@given(
    axis=st.sampled_from(["flops", "mosaics", "seconds"]),
    interpolate=st.booleans(),
    place=st.floats(0, 1.2),
    near=st.sampled_from([None, -1, 0, 1]),
)
def test_what_is_compared_differs_by_less_than_a_step(
    timed: tuple[pd.DataFrame, dict[str, Cell]],
    axis: str,
    interpolate: bool,
    place: float,
    near: int | None,
) -> None:
    """At any budget: tiny, huge, between evaluations, and at or beside a recorded cost."""
    evaluations, cells = timed
    column = AXES[axis]
    recorded = np.sort(evaluations[column].unique().astype(float))
    budget = place * recorded[-1]
    if near is not None:
        smallest = 1e-3 if axis == "seconds" else 1
        budget = recorded[int(place / 1.2 * (len(recorded) - 1))] + near * smallest
    budget = max(budget, 1e-9)
    done = evaluations[evaluations["status"] == "done"]
    budgeted = evaluations["budget_unit"].iloc[0] == axis
    steps = done.groupby("budget_fraction")["step"].min()
    dearest = evaluations.groupby("budget_fraction")[column].max()
    usable = dearest.index[(dearest <= budget) & (steps > 0)]
    try:
        rows = analysis.equal_compute(evaluations, budget, axis, interpolate=interpolate)
    except ResultsError:
        reached = done.groupby("cell_id")[column].max().min()
        starts = done[done["step"] > 0].groupby("cell_id")[column].min().max()
        late = budget > (done["budget_amount"].iloc[0] if budgeted else reached)
        assert late or budget < starts or (usable.empty and budget < dearest[steps > 0].min())
        return
    last = rows[(rows["status"] == "done") | (rows["status"].eq("diverged") & ~rows["diverged"])]
    assert last.groupby("cell_id").size().eq(len(SPLITS)).all()
    assert set(done["cell_id"]) <= set(last["cell_id"])
    spent = last[column].to_numpy(float)
    assert spent.min() > 0
    assert spent.max() <= budget + (1e-12 if axis == "seconds" else 0.5)  # counts are whole
    if axis == "seconds":
        assert np.ptp(spent) <= 1e-12
    else:
        assert np.ptp(spent) < max(step_cost(cell, axis) for cell in cells.values())
    if budgeted and not interpolate and len(usable):
        assert set(last["budget_fraction"]) == {usable.max()}


# --- equal curves

EPOCHS = 10
_PAIRS = 8
_RATES = (0.1, 0.2)
EVALUATED = st.lists(st.sets(st.integers(1, EPOCHS), min_size=2), min_size=4, max_size=4)


@pytest.fixture(scope="module", params=["trained", "recorded"])
def alike(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> pd.DataFrame:
    """Runs of two paradigms and rates of equal cost, evaluated on two splits every epoch."""
    results = make_results(tmp_path_factory.mktemp("alike"))
    runs = [*itertools.product(("soft", "hard"), _RATES, range(_PAIRS))]
    points = tuple(k / EPOCHS for k in range(1, EPOCHS + 1))
    if request.param == "trained":
        for paradigm, lr, seed in runs:
            write(results, make_cell(paradigm, lr, seed, evaluation_points=points))
    else:
        shared = {"accuracy": 0.5, "saif": 0.5, "num_classes": 4}
        rows = [
            {"paradigm": paradigm, "lr": lr, "seed": seed, "split": split, **shared}
            | {"compute": int(share * BUDGET), "seconds": 2.5 * share, "examples": 6_400 * share}
            for paradigm, lr, seed in runs
            for split in ("validation", "test")
            for share in points
        ]
        analysis.record(results, rows, options=["lr"])
    table = analysis.load(results)
    return table[table["split"] != "train"].reset_index(drop=True)


@settings(max_examples=25)
@given(
    evaluated=EVALUATED,
    axis=st.sampled_from(["flops", "mosaics", "seconds"]),
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
    alike: pd.DataFrame,
    evaluated: list[set[int]],
    axis: str,
    share: float | None,
    interpolate: bool,
    falling: bool,
    apart: int,
    lost: tuple[int, int] | None,
    seed: int,
) -> None:
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
        diverged = table["seed"] < lost[0]
        table.loc[diverged, "status"] = "diverged"
        after = (diverged & (epoch > lost[1])).to_numpy()
        next_epoch = [min((k for k in each if k > lost[1]), default=0) for each in evaluated]
        table.loc[after, ["loss", "accuracy", "saif"]] = np.nan
        gone = after & (epoch.to_numpy() != np.array(next_epoch)[place])
        table, kept = table[~gone], kept[~gone]
    if table["kind"].eq("recorded").all():
        table.loc[~kept, ["accuracy", "saif"]] = np.nan
    else:
        table = table[kept]
    budget = None if share is None else share * spent[-1]
    try:
        (found,) = compare(table, budget, axis=axis, interpolate=interpolate)
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


def test_a_run_without_evaluations_makes_no_difference_sure(results: Results) -> None:
    for seed in range(8):
        write(results, make_cell("hard", seed=seed), points=(0.2, 1.0))
        lost = {"status": "diverged", "points": ()}
        write(
            results,
            make_cell("soft", seed=seed),
            **(lost if seed == 7 else {"points": (0.3, 0.7)}),
        )
    (found,) = compare(analysis.load(results))
    assert found.paired["num_pairs"].eq(8).all()
    assert found.paired["reason"].str.contains("evaluations lie").all()


def test_options_that_tie_where_nothing_is_interpolated_are_no_doubt(results: Results) -> None:
    """Whatever else is in the directory."""
    random = np.random.default_rng(0)
    for seed in range(8):
        for paradigm, lr, saif in (("soft", 0.1, 0.3), ("soft", 0.2, 0.6), ("hard", 0.1, 0.7)):
            noise = random.normal(0, 0.01)
            write(results, make_cell(paradigm, lr, seed), accuracy=0.8, saif=saif + noise)
        write(results, make_cell("soft", seed=seed, m=20), points=(0.3, 0.7))
        write(results, make_cell("hard", seed=seed, m=20), points=(0.2, 1.0))
    found, between = compare(analysis.load(results))
    assert between.interpolated
    assert not found.interpolated
    assert found.paired.set_index("metric").at["saif", "verdict"] != "undecided"


# --- axes


def test_a_cell_that_diverged_in_less_time_than_the_cut_counts_as_nothing(
    results: Results,
) -> None:
    """It got further in its budget than a slow cell did in that time, and yet was lost by then."""
    write(results, make_cell("soft", seed=0), seconds=2.0)
    write(results, make_cell("soft", seed=1), seconds=8.0)
    write(results, make_cell("hard"), status="diverged", points=(0.25, 0.5), seconds=2.0)
    rows = at_the_cut(results, axis="seconds")
    assert rows.groupby("paradigm")["diverged"].all().to_dict() == {"hard": True, "soft": False}
    assert set(rows["cut"]) == {0.25}
    assert rows["train_seconds"].max() == 2.0


# --- interpolation


def test_values_lie_between_the_evaluations_where_that_is_asked_for(results: Results) -> None:
    write(results, make_cell("soft"), accuracy=0.8, saif=0.4)
    budget = 0.3 * BUDGET - 1  # a fifth of the way from one evaluation to the next
    plain, between = (at_the_cut(results, budget, interpolate=each) for each in (False, True))
    assert set(plain["accuracy"]) == {0.8 * 0.25}
    assert between["accuracy"].to_numpy() == pytest.approx(0.8 * 0.3)
    assert between["saif"].to_numpy() == pytest.approx(0.4 * 0.3)
    assert [heatmap[-1] for heatmap in between["heatmap"]] == pytest.approx([0.4 * 0.3] * 3)
    assert set(between["budget_fraction"]) == {0.25}
    lacking = analysis.load(results)
    lacking["heatmap"] = lacking["heatmap"].mask(lacking["budget_fraction"] == 0.5, None)
    assert analysis.equal_compute(lacking, budget, interpolate=True)["heatmap"].isna().all()


# --- threshold


@given(
    st.integers(0, 2**32),
    st.sampled_from([MOSAICS, CAPTIONS]),
    st.integers(1, 3),
    st.integers(1, 50),
)
def test_saif_at_another_threshold_is_that_of_the_instances(
    seed: int, task: Modality, place: int, size: int
) -> None:
    edges = task.heatmap_edges
    threshold = edges[:-1][place % (len(edges) - 1) or 1]
    a_z, s_y = np.random.default_rng(seed).uniform(0, 1, (2, size))
    heatmap = saif_and_heat_map.heatmap(a_z, s_y, edges).ravel()
    known, unknown = saif_at(pd.Series([heatmap, None]), threshold, edges)
    assert known == pytest.approx(saif_and_heat_map.saif(a_z, s_y, threshold), abs=1e-12)
    assert np.isnan(unknown)


def test_the_threshold_counts_everywhere(results: Results) -> None:
    heatmap = np.zeros(25)
    heatmap[[24, 18]] = 0.6, 0.3  # a_z and s_y from .8 on, and from .6 to .8
    write(results, make_cell("soft"), saif=0.6, heatmap=heatmap.tolist())
    for threshold, saif in ((0.8, 0.6), (0.6, 0.9)):
        found = compared(results, threshold=threshold)
        assert found.threshold == threshold
        values = [*found.summary["saif"], *found.options["validation_saif"]]
        assert values == pytest.approx([saif, saif])
        assert found.evaluations["saif"].iloc[-1] == pytest.approx(saif)


# --- what does not matter


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"axis": "seconds"},
        {"axis": "mosaics", "budget": 1_900.0, "interpolate": True},
        {"budget": 0.6 * BUDGET, "threshold": 0.6, "select": "saif"},
    ],
    ids=str,
)
def test_a_directory_gives_what_its_table_gives_in_any_order(
    results: Results, how: dict[str, Any]
) -> None:
    write_study(results)
    write(results, make_cell("hybrid", m=5))
    write_text(results, make_text_cell(), shares={"train": 0.0, "validation": 0.5, "test": 1.0})
    evaluations = analysis.load(results).sample(frac=1, random_state=1)
    found = compare_results(results, **how)
    assert_same(found, compare(evaluations, **how))
    for whole, lean in zip(found, compare_results(results, details=False, **how), strict=True):
        for name in ("summary", "paired"):
            pd.testing.assert_frame_equal(getattr(lean, name), getattr(whole, name))
        assert lean.evaluations.empty
        assert lean.chosen["heatmap"].isna().all()


def test_records_that_do_not_count_and_files_that_vanish_change_nothing(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(2):
        status = "done" if seed else "censored"
        write(results, make_cell(seed=seed), status=status, points=None if seed else (0.25,))
    compact(results)
    write(results, make_cell(seed=0))  # goes on; the merged file keeps what was censored
    files = results.files()
    assert files.left_out
    gone = files._replace(paths=["gone.parquet"])
    answers = iter([gone, files])
    monkeypatch.setattr(Results, "files", lambda *_: next(answers))
    assert_same(compare_results(results), compare(analysis.load(results)))


# --- bad input


@pytest.mark.parametrize("axis", ["flops", "mosaics", "seconds"])
@pytest.mark.parametrize("interpolate", [False, True])
def test_the_budgets_that_are_advised_are_usable_and_none_beyond(
    results: Results, axis: str, interpolate: bool
) -> None:
    """Untrained networks are compared at no budget."""
    for paradigm in ("soft", "hard"):
        cell = make_cell(paradigm, evaluation_points=(0.0, 0.25, 1.0))
        write(results, cell, mosaics=8_000, seconds=4.0)
    evaluations = analysis.load(results)
    how = {"axis": axis, "interpolate": interpolate}
    smallest, largest = {
        "flops": (249_999, BUDGET), "mosaics": (2_000, 8_000), "seconds": (1, 4),
    }[axis]  # fmt: skip
    for end, budget, beyond, at in (
        ("smallest", smallest, 0.999 * smallest, 0.25),
        ("largest", largest, 1.001 * largest, 1),
    ):
        with pytest.raises(ResultsError, match=f"{end} usable budget is {budget:,} "):
            analysis.equal_compute(evaluations, beyond, **how)
        rows = analysis.equal_compute(evaluations, budget, **how)
        assert set(rows["budget_fraction"]) == {at}
    untrained = evaluations[evaluations["budget_fraction"] == 0]
    with pytest.raises(ResultsError, match="no evaluation of a trained network"):
        analysis.equal_compute(untrained, **how)


def test_the_smallest_usable_budget_counts_cells_that_were_lost(results: Results) -> None:
    every = {"evaluation_points": (0.0, 0.25, 0.5, 1.0)}
    write(results, make_cell("soft", **every))
    write(results, make_cell("hard", **every), status="diverged", points=(0.0, 0.25, 0.5))
    evaluations = analysis.load(results)
    dearer = evaluations["paradigm"] == "hard"
    evaluations.loc[dearer, "compute_flops"] = evaluations["compute_flops"][dearer] * 109 // 100
    with pytest.raises(ResultsError) as refusal:  # soft's own cost there is not enough
        analysis.equal_compute(evaluations, 249_999)
    (smallest,) = re.findall(r"smallest usable budget is ([\d,]+) ", str(refusal.value))
    rows = analysis.equal_compute(evaluations, float(smallest.replace(",", "")))
    assert set(rows["budget_fraction"]) == {0.25}


def test_each_comparison_has_a_cut_of_its_own_and_says_which(results: Results) -> None:
    for m, amount in ((10, BUDGET), (20, 10 * BUDGET)):
        for paradigm in ("soft", "hard"):
            write(results, make_cell(paradigm, m=m, budget=Budget(amount)))
    for found, share, spent in zip(
        compare_results(results, budget=6e6), (1.0, 0.5), ("1e6", "5e6"), strict=True
    ):
        assert found.cut == share
        (note,) = unusual_cut(found)
        for fact in ("6e6 training FLOPs", f"{share:.0%}".replace("%", " %"), spent):
            assert fact in note
    assert [unusual_cut(each) for each in compare_results(results)] == [[], []]


def _without_time(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(train_seconds=table["train_seconds"].where(table["split"] != "test"))


@pytest.mark.parametrize(
    ("change", "how", "fact"),
    [
        ({"pack": 2}, {"axis": "seconds"}, r"1 of 2 cells .*--pack none --no-share"),
        ({"shared_prefix": True}, {"axis": "seconds"}, r"1 of 2 cells .*--pack none --no-share"),
        ({"device": "cuda"}, {"axis": "seconds"}, "device .*seconds are not comparable"),
        ({"threads": 2}, {"axis": "seconds"}, "threads .*seconds are not comparable"),
        (_without_time, {"axis": "seconds"}, "has evaluations without train_second"),
        (lambda table: table.drop(columns="heatmap"), {"threshold": 0.6}, "no column heatmap"),
        (lambda table: table.drop(columns=["saif", "status"]), {}, "no columns saif, status"),
        (lambda table: table.assign(split="valid"), {}, "one of train, validation, test, got"),
        (lambda table: table.assign(saif=1.7), {}, r"has saif 1\.7 on the"),
        (lambda table: table.iloc[:0], {}, "no finished cell"),
        ({}, {"threshold": 0.7}, r"\(0.2, 0.4, 0.6, 0.8\), got 0.7"),
        ({}, {"threshold": 1.0}, r"\(0.2, 0.4, 0.6, 0.8\), got 1.0"),
        ({}, {"budget": float("nan")}, "FLOPs > 0, got nan"),
        ({}, {"budget": float("inf")}, "FLOPs > 0, got inf"),
        ({}, {"budget": 0.0}, "FLOPs > 0, got 0"),
        ({}, {"budget": "x"}, "FLOPs > 0, got x"),
        ({}, {"budget": True}, "FLOPs > 0, got True"),
        ({}, {"budget": -1.0, "axis": "seconds"}, "seconds > 0"),
        ({}, {"axis": "epochs"}, "flops, seconds, mosaics, got 'epochs'"),
    ],
)
def test_what_cannot_be_cut_is_refused(
    results: Results,
    change: dict[str, Any] | Callable[[pd.DataFrame], pd.DataFrame],
    how: dict[str, Any],
    fact: str,
) -> None:
    write(results, make_cell("soft"))
    write(results, make_cell("hard"), **({} if callable(change) else change))
    table = analysis.load(results)
    if how.get("axis") == "seconds" and "budget" not in how:
        assert len(analysis.equal_compute(table, axis="mosaics")) == 6
    with pytest.raises(ResultsError, match=fact):
        analysis.equal_compute(change(table) if callable(change) else table, **how)


def test_unknown_measures_are_told(results: Results) -> None:
    write(results, make_cell(), loss=np.inf)  # what is not finite is not known
    for how in ({"select": "bogus"}, {"test": ["accuracy", "bogus"]}):
        with pytest.raises(
            ResultsError, match=f"--{next(iter(how))}: unknown measure of digits 'bogus'"
        ):
            compare_results(results, **how)
    with pytest.raises(ValueError, match="select must be accuracy, saif or a recorded measure"):
        analysis.choose(at_the_cut(results), "bogus")
    found = compared(results)
    assert found.summary["loss"].isna().all()
    assert found.options["validation_loss"].isna().all()


def test_columns_of_others_are_those_of_the_evaluation_at_the_cut(results: Results) -> None:
    write_study(results)
    evaluations = analysis.load(results)
    plain = analysis.equal_compute(evaluations, 0.6 * BUDGET)
    more = evaluations.assign(mine=10 * evaluations["budget_fraction"])
    rows = analysis.equal_compute(more, 0.6 * BUDGET)
    assert set(rows.pop("mine")) == {5.0}
    pd.testing.assert_frame_equal(rows, plain)
    again = analysis.equal_compute(rows)  # a table that is cut may be cut again
    pd.testing.assert_frame_equal(again[plain.columns.drop("cut")], plain.drop(columns="cut"))
