"""Runs of W&B, MLflow and TensorBoard are taken by the names that these give their columns.

MLflow's and TensorBoard's are made by their own writers. W&B makes its exports on its server, so
those here are made as its documents and the source of its public API (0.31) describe them.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

import analysis
from study.results import ResultsError
from tests.conftest import PROJECT

PAGE = PROJECT / "docs" / "your-own" / "runs.md"
START = 1_700_000_000
STEPS = (1, 2, 3)
RUNS = [*itertools.product(("adam", "sgd"), range(2))]
WANDB = {"columns": {"paradigm": "config.optimizer"}}
MLFLOW = {"columns": {"paradigm": "params.optimizer"}}


def score(optimizer: str, seed: int, step: int) -> float:
    return 0.25 * step + {"adam": 0.125, "sgd": 0}[optimizer] + seed / 64


def logged(optimizer: str, seed: int, step: int, sep: str = "/") -> dict[str, float]:
    accuracy = score(optimizer, seed, step)
    values = {"train loss": 1 / step, "val acc": accuracy, "test acc": accuracy - 0.125}
    return {name.replace(" ", sep): value for name, value in values.items()}


def expected(splits: tuple[str, ...] = ("validation", "test")) -> pd.DataFrame:
    rows = [
        (
            optimizer,
            seed,
            split,
            float(step),
            score(optimizer, seed, step) - 0.125 * (split == "test"),
        )
        for optimizer, seed in RUNS
        for step in STEPS
        for split in splits
    ]
    return pd.DataFrame(rows, columns=["paradigm", "seed", "split", "train_seconds", "accuracy"])


def found(results: Any) -> pd.DataFrame:
    table = analysis.load(results).dropna(subset="accuracy")[[*expected()]]
    return table.sort_values([*expected()], ignore_index=True)


def check(results: Any, rows: pd.DataFrame | None = None) -> None:
    rows = expected() if rows is None else rows
    rows = rows.sort_values([*rows], ignore_index=True)
    pd.testing.assert_frame_equal(found(results), rows, check_dtype=False)


# --- W&B


def wandb_runs() -> list[Any]:
    """As `wandb.Api().runs` gives them."""
    runs = []
    for optimizer, seed in RUNS:
        history = [
            {"_step": step, "_runtime": float(step), "_timestamp": START + step}
            | logged(optimizer, seed, step)
            for step in STEPS
        ]
        runs.append(
            types.SimpleNamespace(
                id=f"{optimizer}{seed}",
                name=f"bright-sun-{len(runs)}",
                state="finished",
                config={"optimizer": optimizer, "seed": seed, "lr": 1e-3},
                summary=history[-1] | {"_wandb": {"runtime": 3}},
                scan_history=lambda history=history: iter(history),
            )
        )
    return runs


def histories() -> pd.DataFrame:
    return pd.concat(
        pd.DataFrame(run.scan_history()).assign(
            run_id=run.id, **{f"config.{name}": value for name, value in run.config.items()}
        )
        for run in wandb_runs()
    )


def runs_table() -> pd.DataFrame:
    """The CSV of W&B's table of runs: configuration and summary have no prefix."""
    rows = [
        {"Name": run.name, "State": run.state, "Notes": "-", "User": "me", "Runtime": 3}
        | run.config
        | {name: value for name, value in run.summary.items() if name[0] != "_"}
        for run in wandb_runs()
    ]
    lost = [rows[0] | {"Name": state, "State": state} for state in ("crashed", "failed", "failed")]
    return pd.DataFrame([*rows, *lost])


def test_histories_of_wandb(results):
    analysis.record(results, histories(), **WANDB)
    check(results)


def test_the_table_of_runs_of_wandb(results, tmp_path, capsys):
    file = tmp_path / "wandb_export.csv"
    runs_table().to_csv(file, index=False)
    analysis.record(results, file, columns={"paradigm": "optimizer"})
    check(results, expected().query("train_seconds == 3"))
    said = capsys.readouterr().out
    assert "Runs left out: 2 failed, 1 crashed. A crash is no divergence." in said
    assert re.search(r"^loss, train +train/loss +0\.333333$", said, re.MULTILINE)


@pytest.mark.parametrize("written", [False, True])
def test_summaries_and_configurations_of_wandb_are_dictionaries_or_their_text(
    results, tmp_path, written
):
    names = ("summary", "config", "name", "state")
    runs: Any = pd.DataFrame(
        [{name: getattr(run, name) for name in names} for run in wandb_runs()]
    )
    runs["summary"] = [row | {"test/loss": float("nan")} for row in runs["summary"]]
    if written:
        runs.to_csv(tmp_path / "project.csv")
        runs = tmp_path / "project.csv"
    analysis.record(results, runs, **WANDB)
    check(results, expected().query("train_seconds == 3"))


def test_a_metric_of_wandb_may_be_called_value(results):
    analysis.record(results, histories().assign(value=1), **WANDB)
    check(results)


def test_what_was_not_a_number_is_not_taken_for_what_was_not_measured(results):
    """W&B writes it as text, and does not tell whether the run diverged."""
    table = histories().astype({"test/acc": object})
    last = len(STEPS) - 1
    table.iloc[last, table.columns.get_loc("test/acc")] = "NaN"
    with pytest.raises(ResultsError, match=r"accuracy must be a fraction .* got inf"):
        analysis.record(results, table, **WANDB)
    first = table["run_id"].eq(table["run_id"].iloc[0])
    table = table.assign(status=first.map({True: "diverged", False: "done"}), num_classes=4)
    analysis.record(results, table, **WANDB)
    assert analysis.load(results)["status"].eq("diverged").any()


# --- MLflow


@pytest.fixture(scope="module")
def experiment(tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'runs.db'}")
    client = mlflow.MlflowClient()
    mine = client.create_experiment("optimisers", artifact_location=folder.as_uri())
    for number, (optimizer, seed) in enumerate(RUNS):
        start = 1_000 * START + number
        run = client.create_run(mine, start_time=start).info.run_id
        for name, value in {"optimizer": optimizer, "seed": seed, "lr": 1e-3, "epochs": 3}.items():
            client.log_param(run, name, value)
        for step in STEPS:
            for name, value in logged(optimizer, seed, step, "_").items():
                client.log_metric(run, name, value, timestamp=start + 1_000 * step, step=step)
        client.set_terminated(run, end_time=start + 3_000)
    run = client.create_run(mine).info.run_id
    client.log_param(run, "optimizer", "adam")
    client.set_terminated(run, "FAILED")
    yield mine
    mlflow.set_tracking_uri(None)
    os.environ.pop("MLFLOW_TRACKING_URI", None)  # which MLflow has set


@pytest.mark.parametrize("form", ["frame", "CSV"])
def test_runs_of_mlflow(results, experiment, tmp_path, capsys, form):
    runs: Any = mlflow.search_runs([experiment])
    if form == "CSV":
        runs.to_csv(tmp_path / "runs.csv", index=False)
        runs = tmp_path / "runs.csv"
    analysis.record(results, runs, options=["lr"], **MLFLOW)
    check(results, expected().query("train_seconds == 3"))
    assert set(analysis.load(results)["lr"]) == {0.001}
    assert "Runs left out: 1 failed." in capsys.readouterr().out


@pytest.mark.parametrize("joined", ["params|run_id|start_time", "params|run_id|metrics|status"])
def test_histories_of_mlflow(results, experiment, joined):
    """Without the start of a run, its first value is taken for it."""
    client = mlflow.MlflowClient()
    runs = mlflow.search_runs([experiment])
    history = [
        dict(metric) | {"run_id": run}
        for run in runs["run_id"]
        for name in client.get_run(run).data.metrics
        for metric in client.get_metric_history(run, name)
    ]
    table = pd.DataFrame(history).merge(runs.filter(regex=joined), on="run_id")
    analysis.record(results, table, **MLFLOW)
    check(
        results,
        expected().assign(train_seconds=lambda t: t["train_seconds"] - ("status" in joined)),
    )


# --- TensorBoard


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tensorboard") / "logs"
    for optimizer, seed in RUNS:
        writer = SummaryWriter(folder / f"{optimizer}-{seed}")
        writer.add_scalar("lr", 0.1, 0, walltime=START)
        for step in STEPS:
            for place, (tag, value) in enumerate(logged(optimizer, seed, step).items()):
                writer.add_scalar(tag, value, step, walltime=START + step - place / 8)
        writer.close()
    return folder


def scalars(logs: Path) -> pd.DataFrame:
    """As TensorBoard's own reader gives them."""
    rows = []
    for folder in sorted(logs.iterdir()):
        events = EventAccumulator(str(folder)).Reload()
        optimizer, seed = folder.name.split("-")
        for tag in events.Tags()["scalars"]:
            of = {"run": folder.name, "paradigm": optimizer, "seed": seed, "tag": tag}
            rows += [of | vars(event) for event in events.Scalars(tag)]
    return pd.DataFrame(rows)


PAGE_NAMES = {"wall_time": "Wall time", "step": "Step", "value": "Value"}


@pytest.mark.parametrize("names", [{}, PAGE_NAMES], ids=["events", "CSV of its page"])
def test_scalars_of_tensorboard(results, logs, names):
    """Tags of one step are one evaluation, at the last of their times."""
    analysis.record(results, scalars(logs).rename(columns=names))
    check(results)


def test_steps_are_examples_where_that_is_told(results, logs):
    table = scalars(logs).drop(columns="wall_time")
    with pytest.raises(ResultsError, match=r"no column compute .*or else seconds or examples"):
        analysis.record(results, table)
    analysis.record(results, table, columns={"examples": "step"})
    table = analysis.load(results).dropna(subset="accuracy")
    assert set(table["mosaics_seen"]) == {*STEPS}
    assert table["train_seconds"].isna().all()


# --- any table


def test_names_are_told_for_any_table_and_nothing_of_it_is_lost(results, capsys):
    table = pd.DataFrame(
        {"net": ["a", "b"], "fold": [0, 0], "flops": [10, 10], "top1": [0.5, 0.75], "m": 5}
    )
    columns = {"paradigm": "net", "seed": "fold", "compute": "flops", "accuracy": "top1"}
    with pytest.raises(ResultsError, match="record knows no column 'lr'"):
        analysis.record(results, table.assign(lr=0.1), columns=columns)
    analysis.record(results, table, columns=columns)
    found = analysis.load(results).query("split == 'test'").set_index("paradigm")
    assert found["accuracy"].to_dict() == {"a": 0.5, "b": 0.75}
    assert found["m"].eq(5).all()
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "asked", "message"),
    [
        ({"test_acc": 0.5}, {}, "accuracy, test may be test/acc or test_acc. Say which, columns="),
        (
            {},
            {"columns": {"paradigm": "config.optimizer", "saif": "_step", "lr": "_step"}},
            "twice",
        ),
    ],
)
def test_what_may_be_either_is_asked(results, changes, asked, message):
    with pytest.raises(ResultsError, match=message):
        analysis.record(results, histories().assign(**changes), **{**WANDB, **asked})


def test_runs_that_nothing_names_are_told_apart_by_their_settings(results):
    table = histories().drop(columns="run_id")
    other = table.assign(**{"config.lr": 0.5}, _runtime=table["_runtime"] + 0.5)
    with pytest.raises(ResultsError, match=r"are both this\. What tells them apart"):
        analysis.record(results, pd.concat([table, other]), **WANDB)


def test_what_has_not_finished_is_left_out_whatever_else_there_is(results, capsys):
    states = histories()["run_id"].map({"adam0": "crashed", "sgd1": "preempting"})
    analysis.record(results, histories().assign(state=states.fillna("finished")), **WANDB)
    assert "Runs left out: 1 crashed, 1 preempting." in capsys.readouterr().out
    assert analysis.load(results)["cell_id"].nunique() == len(RUNS) - 2


def test_runs_that_were_tested_once_at_different_moments_are_refused(results):
    table = pd.DataFrame(
        {"_runtime": [60.2, 61.4], "config.optimizer": ["a", "b"], "config.seed": 0}
    )
    with pytest.raises(ResultsError, match="each run was tested once, at seconds of its own"):
        analysis.record(results, table.assign(**{"test/acc": 0.5}), **WANDB)


def test_a_table_with_columns_of_its_own_is_taken_without_a_word(results, capsys):
    row = {"paradigm": "a", "seed": 0, "compute": 1, "accuracy": 0.5, "key": 1, "config": "x"}
    analysis.record(results, [row], options=["key", "config"])
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("metrics", "splits"),
    [
        ({"accuracy": 0.25, "val_accuracy": 0.5, "test_accuracy": 0.75}, [0.25, 0.5, 0.75]),
        ({"acc": 0.75}, [None, None, 0.75]),
        ({"Accuracy/Valid": 0.5, "Accuracy/Test": 0.75}, [None, 0.5, 0.75]),
        ({"eval.acc": 0.5, "metrics.test.accuracy": 0.75}, [None, 0.5, 0.75]),
        ({"test_size": 100, "test_acc": 0.75}, [None, None, 0.75]),
    ],
)
def test_names_of_metrics_tell_their_split(results, metrics, splits):
    row = {"paradigm": "a", "seed": 0, "examples": 1, "_step": 1, **metrics}
    analysis.record(results, [row])
    table = analysis.load(results).set_index("split")["accuracy"]
    values = table[["train", "validation", "test"]].astype(object)
    assert values.where(values.notna(), None).tolist() == splits


def test_a_run_is_told_to_have_diverged_where_nothing_was_measured(results):
    table = histories().assign(status="done", num_classes=10)
    lost = table["run_id"].eq("sgd1")
    table.loc[lost, "status"] = "diverged"
    table.loc[lost & table["_step"].eq(3), ["train/loss", "val/acc", "test/acc"]] = float("nan")
    analysis.record(results, table, **WANDB)
    assert results.cells()["status"].value_counts().to_dict() == {"done": 3, "diverged": 1}
    rows = expected()
    check(
        results,
        rows[~(rows["paradigm"].eq("sgd") & rows["seed"].eq(1) & rows["train_seconds"].eq(3))],
    )


def test_a_split_of_its_own_stays(results):
    rows = [
        {"method": "a", "seed": 0, "compute": 1, "acc": value, "split": split}
        for split, value in {"validation": 0.25, "test": 0.5}.items()
    ]
    analysis.record(results, rows, columns={"paradigm": "method"})
    table = analysis.load(results).dropna(subset="accuracy").set_index("split")["accuracy"]
    assert table.to_dict() == {"validation": 0.25, "test": 0.5}


def test_a_logged_learning_rate_is_not_the_option(results):
    analysis.record(results, histories().assign(lr=0.5), options=["lr"], **WANDB)
    assert set(analysis.load(results)["lr"]) == {0.001}


# --- what is asked for


TWO = histories().query("run_id in ['adam0', 'adam1']").assign(**{"config.seed": 0})


@pytest.mark.parametrize(
    ("runs", "told", "message"),
    [
        (
            histories(),
            {},
            r"these are runs of W&B. Say which column is what, columns={'paradigm': '...'}, or .*"
            r"What varies between runs is config.optimizer; there are _step, _timestamp",
        ),
        (
            runs_table(),
            {"measures": "f1"},
            "{'paradigm': '...', 'f1': '...'}, or .* What varies between runs is optimizer; there",
        ),
        (histories(), {"columns": {"paradigm": "config.optimiser"}}, "unknown column 'config.opt"),
        (histories(), {**WANDB, "measures": ["f1"]}, "columns={'f1': '...'}, .*_step, _timestamp"),
        (histories().drop(columns="test/acc"), WANDB, "no row of the test split has a value"),
        (
            histories().filter(regex="^[^t]").drop(columns="val/acc"),
            WANDB,
            "columns={'accuracy': '...'}",
        ),
        (
            TWO.assign(**{"config.width": TWO["run_id"]}),
            WANDB,
            r"row 0 \(adam, seed 0\): the runs adam0 and adam1 are both this. What tells them",
        ),
        (runs_table().assign(State="failed"), {}, "the table has no rows"),
        (histories()[:0], WANDB, "the table has no rows"),
        ({"config": ["{'a': b'"], "summary": ["{}"]}, {}, "config is no JSON: while"),
        ({"Wall time": [1], "Step": [1], "Value": [0.5]}, {}, "Add the columns run and tag"),
        (histories().assign(note="x").rename(columns={"note": "_step"}), WANDB, "two columns"),
    ],
)
def test_what_cannot_be_known_is_asked_for(tmp_path, runs, told, message):
    with pytest.raises(ResultsError, match=message) as refused:
        analysis.record(tmp_path / "results", runs, **told)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "results").exists()


# --- the page


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
def test_the_page_says_what_is_printed(tmp_path, monkeypatch, capsys, experiment, logs):
    monkeypatch.chdir(tmp_path)
    Path("logs").symlink_to(logs)
    api = types.SimpleNamespace(runs=lambda path: wandb_runs())
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(Api=lambda: api))
    monkeypatch.setitem(sys.modules, "attention_study", sys.modules["analysis"])
    page = PAGE.read_text()
    snippets = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    outputs = re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    said = []
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), {})
        said.append(capsys.readouterr().out)
    assert len(said) == 3
    assert [*outputs] == said[: len(outputs)]
