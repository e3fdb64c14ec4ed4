"""Runs of another training loop: recorded as plain numbers, they are compared as our own are."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis import report
from analysis.conclude import conclude
from analysis.digest.compare import compare_results
from analysis.page.exports import cell_rows, comparison_tables
from analysis.section.templates import paragraphs
from study import run as command
from study.results import Results, ResultsError, is_taken
from study.tracking.cells import of_cell
from tests.conftest import not_drawn
from tests.made_up.commands import called, one_line
from tests.made_up.comparisons import compared, make_cell, write, write_seeds
from tests.made_up.tables import contents

ENOUGH = range(6)
"""Seeds that a verdict takes."""
METRICS = ("saif", "accuracy", "loss")


def runs(
    scores: Mapping[str, float] | None = None, seeds: range = range(2), **columns: Any
) -> pd.DataFrame:
    """Runs of two evaluations on two splits; scores grow in proportion to what was spent."""
    normal = np.random.default_rng(0).normal
    ends = [
        (paradigm, seed, score + normal(0, 0.01))
        for paradigm, score in (scores or {"a": 0.4, "b": 0.6}).items()
        for seed in seeds
    ]
    table = pd.DataFrame(ends, columns=["paradigm", "seed", "dice"])
    at = itertools.product((500, 1_000), ("validation", "test"))
    table = table.merge(pd.DataFrame(at, columns=["compute", "split"]), how="cross")
    return table.assign(dice=table["dice"] * table["compute"] / 1_000, **columns)


def record(results: Results | Path, table: Any, options: Sequence[str] = ()) -> list[str]:
    return analysis.record(results, table, options=options, measures=["dice"])


def dicts(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict("records")


# --- as our own


def test_recorded_runs_have_the_verdicts_of_the_same_cells(results, tmp_path):
    random = np.random.default_rng(1)
    for seed, paradigm, lr in itertools.product(ENOUGH, ("soft", "hard"), (0.1, 0.2)):
        score = 0.5 + lr + random.normal(0, 0.02)
        write(results, make_cell(paradigm, lr, seed), accuracy=score, saif=score / 2)
    write(results, make_cell("lvml", 0.1, 0), status="diverged", points=(0.25,))
    table = analysis.load(results).rename(columns={"compute_flops": "compute"})
    names = ["paradigm", "seed", "lr", "split", "compute", *METRICS, "status", "num_classes", "m"]
    elsewhere = Results(tmp_path / "elsewhere")
    runs = table[[*names, "task"]].dropna(subset="compute")
    analysis.record(elsewhere, runs, options=["lr"])
    ours, theirs = compared(results), compared(elsewhere)
    of_pairs = ["metric", "first", "second", "num_pairs", "difference", "low", "high", "verdict"]
    of_groups = [f"{name}{end}" for name in METRICS for end in ("", "_low", "_high")]
    of_groups += ["paradigm", "lr", "num_seeds"]
    for name, same in (("paired", of_pairs), ("summary", of_groups)):
        pd.testing.assert_frame_equal(*(getattr(each, name)[same] for each in (theirs, ours)))


@pytest.mark.parametrize(
    ("rows", "near", "budget"),
    [
        ("paradigm == 'b' and compute == 1_000", None, 1_000),
        ("paradigm == 'b' and compute == 1_000", 950, 950),
        ("paradigm == 'b' or seed > 0 or compute > 500", None, 1_000),
    ],
)
def test_a_measure_that_is_not_known_at_the_cut_is_not_known(results, rows, near, budget):
    """Unless all are known nearby."""
    table = runs(accuracy=0.5)
    whole = [table[table["compute"] == 500].assign(compute=near)] if near else []
    table = pd.concat([table.assign(dice=table["dice"].mask(table.eval(rows))), *whole])
    record(results, table)
    found = compared(results, select="accuracy")
    assert found.budget == budget
    at_cut = table.query(f"split == 'test' and compute == {budget}").groupby("paradigm")["dice"]
    expected = at_cut.agg(lambda dice: dice.mean(skipna=False))
    means = found.summary.set_index("paradigm").reindex(columns=["dice"])["dice"]
    pd.testing.assert_series_equal(means.astype(float), expected, check_names=False)


def test_an_unusual_cut_is_said(results, tmp_path):
    """One run was evaluated a little later; one paradigm has no test split."""
    late, untested = runs(), runs().query("paradigm == 'a' or split == 'validation'")
    late["compute"] += 50 * late.eval("seed == 0 and compute == 1_000")
    other = Results(tmp_path / "other")
    for where, table, budget, said in (
        (results, late, 500, "--interpolate"),
        (other, untested, 1_000, "so without numbers: b"),
    ):
        record(where, table)
        found = compared(where)
        assert found.budget == budget
        assert said in "".join(paragraphs("unusual_cut.j2", c=found))


@pytest.mark.parametrize(("axis", "column"), [("seconds", "seconds"), ("mosaics", "examples")])
def test_any_cost_is_an_axis_and_equal_amounts_are_one_moment(results, axis, column):
    table = runs().rename(columns={"compute": column})
    scale = table["paradigm"].map({"a": 1_529, "b": 1.1 * 1_390})  # 1.1 * 1390 > 1529
    record(results, table.assign(**{column: scale * table[column]}))
    found = compared(results, axis=axis)
    assert (found.budget, found.interpolated) == (1_529_000, False)
    assert found.summary["dice"].notna().all()
    assert compare_results(results)[0].axis == axis  # the only one that there is
    with pytest.raises(ResultsError, match=f"recorded without compute. .*--axis .*{column}"):
        compare_results(results, axis="flops")


def test_a_run_without_an_evaluation_in_what_all_have_spent_is_named(results):
    late = runs().query("paradigm == 'a' or compute == 1_000")
    record(results, late.assign(compute=late["compute"] + 200 * late["paradigm"].eq("b")))
    with pytest.raises(ResultsError, match=r"b, seed 0\) has no .* within the 1,000 FLOPs"):
        compare_results(results)


# --- measures


def test_measures_are_chosen_and_tested_by_name(results, tmp_path):
    table = runs(accuracy=0.5, width=1)
    better = pd.concat([table, table.assign(width=2, dice=table["dice"] + 0.1)])
    record(results, better, ["width"])
    usual = compared(results)
    assert (usual.select, tuple(usual.metrics)) == ("accuracy", ("accuracy", "dice"))
    asked = compared(results, select="dice", test=["dice"])
    assert asked.choice["schedule"].tolist() == ["width 2"] * 2
    assert asked.paired["metric"].unique().tolist() == ["dice"]
    without = Results(tmp_path / "without")
    several = table.drop(columns=["accuracy", "width"]).assign(iou=0.5)
    analysis.record(without, several, measures=["dice", "iou"])
    with pytest.raises(ResultsError, match=r"no accuracy to choose .*--select dice"):
        compare_results(without)


# --- the directory


def test_what_is_there_stays(results):
    table = runs({"a": 0.4})
    ids = record(results, table)
    files = contents(results)
    assert len(files) == len(ids) == 2
    more = pd.concat([runs({"b": 0.3}), table.sample(frac=1, random_state=0)])
    assert set(ids) < set(record(results, more))
    changed = pd.concat([runs({"c": 0.3}), table.assign(dice=table["dice"] / 2)])
    with pytest.raises(ResultsError, match=r"a, seed \d is in .* with other numbers \(run"):
        record(results, changed)
    assert files.items() <= contents(results).items()
    assert set(results.cells()["paradigm"]) == {"a", "b"}


def test_other_commands_that_record_are_waited_for_and_studies_are_not(results, capsys):
    other = Results(results.url)
    with ThreadPoolExecutor() as pool, other.lock():
        with other.recording():
            recorded = pool.submit(record, results, runs())
            said = ""
            while not said:
                said = capsys.readouterr().err
                time.sleep(0.01)
            assert not contents(results)
        assert set(recorded.result()) == results.finished()
    assert said == f"waiting for other commands that record runs in {results.url}\n"


def test_recorded_runs_stand_beside_trained_cells(results, capsys):
    write_seeds(results, {"soft": 0.4, "hard": 0.5})
    before = compared(results)
    (run, *_) = record(results, runs())
    mine, others = compare_results(results)
    assert (mine.recorded, others.recorded) == (False, True)
    pd.testing.assert_frame_equal(mine.paired, before.paired)
    status, line = one_line(
        command.main, capsys, "digits", "--results", results.url, "--again", run
    )
    assert (status, run in line, "recorded by analysis.record" in line) == (2, True, True)
    (cell,) = results.cells([run]).to_dict("records")
    logged = of_cell(cell, results.evaluations([run]), "done").points
    last = analysis.load(results, [run]).query("split == 'test'")["dice"].iloc[-1]
    assert [point.value for point in logged if point.name == "test/dice"] == [last]


def test_the_report_speaks_of_what_was_recorded(results, capsys, tmp_path):
    table = pd.concat([runs(seeds=ENOUGH, lr=lr) for lr in (0.1, 0.2)])
    record(results, table, ["lr"])
    with not_drawn():
        status, _, _ = called(report.main, capsys, results.url, "--out", str(tmp_path))
    text = (tmp_path / "report.md").read_text()
    assert status == 0
    assert "b beats a in dice." in text
    for word in ("SAIF", "accuracy", "mosaic", "None", "nan", "m=0", "--again", "batch size"):
        assert word not in text, word
    assert list((tmp_path / "figures").glob("compute-dice-*.png"))
    assert not (tmp_path / "claims.csv").exists()


def test_files_stay_in_the_folder_whatever_a_task_is_called(results, tmp_path):
    for n in (100, 200):
        table = runs(task="../../scans/β", n=n)
        record(results, table)
    with not_drawn():
        conclude(results).write(tmp_path / "out" / "report")
    across = [path for path in tmp_path.rglob("*.png") if "across" in path.name]
    assert [path.parent for path in across] == [tmp_path / "out" / "report" / "figures"]


def test_names_that_look_alike_are_one(results, tmp_path):
    table = runs({"soft": 0.4, "lvml \xe9": 0.6}, task="a b")
    expected = record(tmp_path / "plain", table)
    odd = table.replace({"soft": "soft ", "lvml \xe9": "lvml\xa0e\u0301", "test": " test"})
    odd = odd.rename(columns={"paradigm": "\ufeffparadigm", "dice": " dice "})
    mixed = pd.concat([table[:8], odd.set_axis(table.columns, axis=1)[8:]])
    for rows in (odd, mixed.to_dict("records")):
        assert record(results, rows) == expected


# --- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compute": None}, r"no column compute \(training FLOPs, or else seconds or examples\)"),
        ({"step": 3}, "record knows no column 'step'. Name it in options"),
        ({"dice": 87.2}, r"row 0 \(a, seed 0\): dice must be a fraction .*87 % is .87.*got 87.2"),
        ({"seed": [None, *range(7)]}, "row 0 .*: seed must be a number or text, got nan"),
        ({"compute": 1.5}, "compute must be a whole number from 0 to 9e18 .* got 1.5"),
        ({"compute": pd.Timedelta(5)}, "compute must be a whole number .* got 0 days"),
        ({"seconds": pd.Timestamp(2026, 1, 1)}, "seconds must be a number >= 0, or a duration"),
        ({"dice": 0.5 + 0.1j}, r"dice must be a fraction .* got '\(0.5\+0.1j\)'"),
        ({"seconds": range(8, 0, -1)}, "seconds fall where compute rises"),
        ({"dice": np.nan}, "dice has no value in any row"),
        ({"split": "validation"}, "no row of the test split has a value"),
        ({"compute": 0}, "compute is 0 in all rows of this run, which has spent nothing"),
        ({"compute": 1_000}, "a second row at compute 1000 on the validation split"),
        ({"split": "val"}, r"row 0 \(a, seed 0\): unknown split 'val'. Did you mean 'validation'"),
        ({"paradigm": ""}, "paradigm must be a name of at most 60 printable characters"),
        ({"stage": ["tune", "confirm"] * 4}, "the rows of this run differ in stage"),
        (
            {"run": ["x", "x", "y", "y"] * 2},
            r"row 0 \(a, seed 0\): the runs x and y are both this",
        ),
        ({"status": "diverged", "accuracy": 0.5}, "it diverged and counts as accuracy 1/C: give"),
        ([], "the table has no rows"),
        (lambda table: pd.concat([table, table[["seed"]]], axis=1), "two columns 'seed'"),
    ],
)
def test_bad_rows_are_told_and_nothing_is_written(tmp_path, changes, message):
    table: Any = changes
    if callable(changes):
        table = changes(runs({"a": 0.4}))
    elif isinstance(changes, dict):
        gone = [name for name, value in changes.items() if value is None]
        table = runs({"a": 0.4}).assign(**changes).drop(columns=gone)
    with pytest.raises(ResultsError, match=message):
        record(tmp_path / "results", table)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("values", [(1, "1"), (1, 2)])
def test_options_that_cannot_be_told_apart_are_refused(results, values):
    """They look alike, or there is no validation split to choose by; one option needs none."""
    table = runs(seeds=ENOUGH)
    if values == (1, 2):
        table = table.query("split == 'test'").drop(columns="split")
        record(results, table)
        assert compared(results).paired["verdict"].tolist() == ["better"]
    several = pd.concat([table.assign(width=width) for width in values])
    with pytest.raises(ResultsError, match=r"look alike|several options and no validation split"):
        record(results, several, ["width"])


def test_no_measure_can_be_called_as_a_column_of_a_comparison(results):
    record(results, runs())
    found = compare_results(results)
    tables = [*comparison_tables(found).values(), cell_rows(*found), found[0].at_budget]
    columns = {name for table in tables for name in table if "dice" not in name}
    assert [name for name in columns - set(METRICS) if not is_taken(name)] == []
    for name in ("top-1", "dice_low", "step", "seed", "num_images"):
        odd = runs({"a": 0.4}).assign(**{name: 0})
        with pytest.raises(ResultsError, match=f"'{name}' cannot be an option|be called '{name}'"):
            analysis.record(results, odd, measures=["dice", name])


BIG = 2**53 + 1
"""No float."""
WHOLE = {"code": "Int64", "seed": "int64"}


@pytest.mark.parametrize(
    "form", [dicts, lambda table: table.to_dict("list"), lambda table: table.astype(WHOLE)]
)
def test_whole_numbers_stay_as_they_are(results, form):
    """Beside missing ones, and as seeds and counts, too."""
    table = runs().assign(seed=lambda t: t["seed"] + BIG, examples=lambda t: t["compute"] + BIG)
    for code in (BIG, BIG - 1):
        rows = [row | {"code": code if row["paradigm"] == "a" else None} for row in dicts(table)]
        record(results, form(pd.DataFrame(rows, dtype=object)), ["code"])
    found = analysis.load(results)
    assert set(found["schedule"]) == {"", f"code {BIG}", f"code {BIG - 1}"}
    assert set(found["seed"]) == set(table["seed"])
    assert set(found["mosaics_seen"].dropna()) == set(table["examples"])


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_durations_are_seconds_whatever_their_unit(results, unit):
    table = runs().assign(warmup=pd.Timedelta(minutes=5))
    durations = pd.to_timedelta(table.pop("compute"), unit="s").astype(f"timedelta64[{unit}]")
    table = table.assign(seconds=durations)
    record(results, table, ["warmup"])
    rows = [row | {"seconds": row["seconds"].to_timedelta64()} for row in dicts(table)]
    record(results, rows, ["warmup"])
    found = analysis.load(results)
    assert set(found["train_seconds"]) == {500.0, 1_000.0}
    assert set(found["schedule"]) == {"warmup 300"}
