"""What tests of MLflow share: answers with chosen numbers, what a store must hold, lost calls."""

from __future__ import annotations

import functools
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run as Logged

from study.cell import Cell
from study.results import Results
from study.tracking.runs import Answer, Point, Run
from study.tracking.store import Store
from study.tracking.tracker import Tracker, open_tracker
from tests.made_up.comparisons import make_cell, make_results, write

COUNTS = {"cells done": 3.0}


def summary(paradigm: str, saif: float, comparison: str = "0123") -> Run:
    """As `analysis.section.summary` makes them."""
    return Run(
        key=f"{comparison}/{paradigm}",
        state=str(saif),
        name=f"{paradigm} n=6",
        tags={"role": "summary", "mlflow.note.content": "the answer"},
        params={"paradigm": paradigm},
        points=[
            Point("saif", saif), Point("n", 6.0),
            Point("test/saif", 0.1), Point("test/saif", saif, step=2),
        ],
        files=lambda: {"a.png": b"png", "tables/b.csv": f"saif\n{saif}\n".encode()},
    )  # fmt: skip


SUMMARIES = (summary("hard", 0.25), summary("soft", 0.5), summary("lvml", 0.75))


def answer(summaries: Sequence[Run] = SUMMARIES) -> Answer:
    return Answer("the answer", summaries, COUNTS)


def write_cells(results: Results) -> list[Cell]:
    """Three cells: a hybrid, one that diverged, and soft of another seed."""
    return [
        write(results, make_cell("hybrid", 0.1)),
        write(results, make_cell("lvml", 1e20), status="diverged", loss=float("inf")),
        write(results, make_cell("soft", seed=3), accuracy=0.7),
    ]


def statuses(cells: Sequence[Cell], results: Results) -> dict[str, str]:
    held = results.cells(cell.id for cell in cells)
    return dict(zip(held["cell_id"], held["status"], strict=True))


def start(results: Results, uri: str | None = None, study: str = "digits") -> Tracker:
    return open_tracker(results, study, uri)


def track(results: Results, cells: Sequence[Cell], of: Answer | None = None) -> Store:
    """Brings the results' own store up to some cells and an answer."""
    store = Store(results, "digits", None)
    store.sync(statuses(cells, results), of or answer())
    return store


def connected(folder: Path, uri: str | None = None) -> None:
    """Opens a store, and makes it if it is missing."""
    Store(make_results(folder), "digits", uri).connect()


def in_a_process(target: Callable[..., None], *args: Any) -> BaseProcess:
    """Begins a process of its own, which finds the libraries imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "mlflow.store.tracking.sqlalchemy_store"])
    process = context.Process(target=target, args=args)
    process.start()
    return process


def exit_of(process: BaseProcess) -> int | None:
    """Waits for the end of a process; its exit status."""
    process.join()
    return process.exitcode


def assert_two_drivers_log(folder: Path, uri: str, study: str) -> None:
    """Of 12 cells each, 4 of them the same; both begin and end at about the same time."""
    cells: list[Cell] = []
    summaries = [summary("soft", number / 10, comparison=str(number)) for number in (1, 2)]
    trackers: list[Tracker] = []
    for number in range(2):
        results = make_results(folder / str(number))
        seeds = range(8 * number, 8 * number + 12)
        own = [write(results, make_cell(seed=seed), study=study) for seed in seeds]
        cells += own
        trackers.append(start(results, uri, study))
        trackers[-1].log_cells(statuses(own, results))
    ends = [
        threading.Thread(target=tracker.finish, args=(answer([mine]), 120))
        for tracker, mine in zip(trackers, summaries, strict=True)
    ]
    for end in ends:
        end.start()
    for end in ends:
        end.join()
    assert [tracker.missing for tracker in trackers] == [0, 0]
    every = make_results(folder / "every")
    unique = {cell.id: cell for cell in cells}
    for cell in unique.values():
        write(every, cell, study=study)
    store = Store(every, study, uri)
    store.sync(statuses([*unique.values()], every))  # what both logged at once is left once
    assert_holds(every, [*unique.values()], answer(summaries), MlflowClient(uri), study)


def client_of(results: Results) -> MlflowClient:
    return MlflowClient(tracking_uri=f"sqlite:///{results.url}/mlflow.db")


def runs_of(client: MlflowClient, study: str = "digits") -> dict[str, list[Logged]]:
    """Role -> runs, the newest first; those of cells are `cell`."""
    experiment = client.get_experiment_by_name(study)
    found: dict[str, list[Logged]] = {"cell": [], "summary": [], "study": []}
    for run in client.search_runs([experiment.experiment_id]):
        found.setdefault(run.data.tags.get("role", "cell"), []).append(run)
    return found


def assert_holds(
    results: Results,
    cells: Sequence[Cell],
    of: Answer | None = None,
    client: MlflowClient | None = None,
    study: str = "digits",
) -> None:
    """One finished run a cell and summary, with all that it shows, and one of the study."""
    of, client = of or answer(), client or client_of(results)
    found = runs_of(client, study)
    (parent,) = found["study"]
    assert {run.info.status for runs in found.values() for run in runs} == {"FINISHED"}
    assert parent.data.metrics == of.counts
    ids = [run.data.tags["cell_id"] for run in found["cell"]]
    assert sorted(ids) == sorted(cell.id for cell in cells)
    evaluations = results.evaluations(ids).groupby("cell_id")
    for run in found["cell"]:
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        mine = evaluations.get_group(run.data.tags["cell_id"])
        accuracy = mine.loc[mine["split"] == "test", "accuracy"]
        assert sorted(values(client, run, "test/accuracy")) == sorted(accuracy)
        looks = {"where-it-looks.html"} if mine["examples"].notna().any() else set()
        assert files(client, run) == {"heatmap.svg", "cell.json"} | looks
    assert sorted(run.data.tags["key"] for run in found["summary"]) == sorted(
        each.key for each in of.summaries
    )
    by_key = {each.key: each for each in of.summaries}
    for run in found["summary"]:
        made = by_key[run.data.tags["key"]]
        assert run.data.params == made.params
        assert run.data.metrics == {point.name: point.value for point in made.points}
        assert files(client, run) == {"a.png", "tables"}


def values(client: MlflowClient, run: Logged, name: str) -> list[float]:
    return [entry.value for entry in client.get_metric_history(run.info.run_id, name)]


def files(client: MlflowClient, run: Logged) -> set[str]:
    return {file.path for file in client.list_artifacts(run.info.run_id)}


class Failing:
    """Makes methods of MLflow's client raise, before or after they did what they were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.failures = 0

    def patch(self, name: str, fails: Callable[[int], str | None]) -> None:
        """`fails` is asked for each call, by its number from 1: "before", "after" or None."""
        original = getattr(MlflowClient, name)
        calls = 0

        @functools.wraps(original)
        def call(client: MlflowClient, *args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            when = fails(calls)
            self.failures += when is not None
            if when == "before":
                raise ConnectionError("the request was lost")
            found = original(client, *args, **kwargs)
            if when == "after":
                raise ConnectionError("the answer was lost")
            return found

        self._patch.setattr(MlflowClient, name, call)
