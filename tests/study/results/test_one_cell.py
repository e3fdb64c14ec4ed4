"""Networks that `--keep-weights` keeps: whose, and that one is loaded as it was tested."""

from __future__ import annotations

import pkgutil
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from study import paradigms, run, tasks
from study.cell import Cell, NetworkSettings, Schedule
from study.errors import RequestError
from study.models import kept
from study.results import FURTHER, METRICS, Results, TrainedNetwork, load_network
from study.results.merging import compact
from tests.chapters.texts.post_files import load, text_cell, write_posts
from tests.conftest import tiny_cell
from tests.made_up.jobs import trained

STUDY = """digits --shard 1/1 --threads 1 --pack seed,lr --keep-weights --set n=100 m=3 epochs=2
lr=0.1,0.2 seed=0,1 confirm=100,101 paradigm=soft,hybrid batch_size=10 evaluations=2
switch_point=0.4 train_metrics_size=20 validation_size=20 test_size=20"""


def train(results: Results, *cells: Cell, **given: Any) -> None:
    """As one pack, whose networks are kept."""
    results.prepare()
    assert set(trained(results, cells, keep_weights=True, **given).values()) == {"done"}


def files(results: Results) -> set[str]:
    return set(results.storage.names(kept.FOLDER))


def last(results: Results, cell_id: str) -> Mapping[str, Any]:
    """What was recorded of a cell on the test split, at its end."""
    rows = results.evaluations([cell_id]).query("split == 'test' and budget_fraction == 1")
    (row,) = rows.to_dict("records")
    return row


def assert_as_recorded(network: TrainedNetwork, row: Mapping[str, Any]) -> None:
    """Evaluated again it has the recorded numbers, bitwise, and predicts what they are made of."""
    test = network.task.splits(network.cell)["test"]
    trained = paradigms.get(paradigms.get(network.cell.schedule.phases[-1].paradigm).exact)
    evaluate = pkgutil.resolve_name(tasks.modality(network.cell.task).evaluation)
    again = evaluate(network.model, trained, test, inference=network.paradigm, last=True)
    for name in (*METRICS, *FURTHER, "heatmap", "instance_right", "instance_saif"):
        assert np.array_equal(again.get(name, np.nan), row[name], equal_nan="inst" not in name)
    segments, _, foreground, mask = test.batch(torch.arange(len(test)))
    attention, scores = network.predict(segments, mask)
    known = foreground.any(dim=1)
    a_z = (attention * foreground).sum(dim=1)[known].mean()
    assert a_z == pytest.approx(row["foreground_attention_mean"], abs=1e-6)
    assert (scores.argmax(dim=1) == test.labels).double().mean() == row["accuracy"]


def test_the_command_keeps_the_networks_of_confirming_cells_each_of_a_pack(
    tmp_path, monkeypatch, digits
):
    monkeypatch.setattr("study.plan.estimate.TIMED_FLOPS", {"cpu": 1})
    assert run.main([*STUDY.split(), "--results", str(tmp_path)]) == 0
    results = Results(tmp_path)
    cells = results.cells()
    confirming = cells[cells["stage"] == "confirm"]
    assert confirming["pack"].tolist() == [2] * 4
    assert files(results) == {*map(kept.file_of, confirming["cell_id"])}
    assert cells["network_digest"].notna().equals(cells["stage"] == "confirm")
    compact(results)
    for cell_id in confirming["cell_id"]:
        assert_as_recorded(load_network(tmp_path, cell_id[:12]), last(results, cell_id))


@pytest.mark.parametrize("architecture", ["embedding", "self-attention", "perceptron"])
def test_of_a_study_of_one_stage_all_are_kept_behind_a_url_too(architecture, tmp_path, digits):
    """With what a layer learned of its inputs."""
    results = Results(f"memory://{uuid.uuid4().hex}")
    data_dir = None if architecture == "perceptron" else str(write_posts(tmp_path))
    if data_dir is None:
        cell = tiny_cell(digits, network=NetworkSettings(normalisation="batch"))
    else:
        cell = text_cell(load(tmp_path), Schedule.hybrid(0.1, 0.1, 0.5), architecture)
    train(results, cell, places=(data_dir,))
    network = load_network(results.url, cell.id, data_dir=data_dir)
    assert_as_recorded(network, last(results, cell.id))


def test_written_twice_it_is_the_same_file(tmp_path, digits):
    """Packed or alone, and again by a worker that was killed before it recorded the cell."""
    cells = [tiny_cell(digits, seed=seed) for seed in (0, 1)]
    packed, alone = Results(tmp_path / "packed"), Results(tmp_path / "alone")
    train(packed, *cells)
    for cell in cells:
        train(alone, cell)
        name = kept.file_of(cell.id)
        assert packed.storage.read(name) == alone.storage.read(name)
    for recorded in (tmp_path / "packed" / "cells").iterdir():
        recorded.unlink()
    before = {name: packed.storage.read(name) for name in files(packed)}
    train(packed, *cells)
    assert {name: packed.storage.read(name) for name in files(packed)} == before


def test_a_network_that_was_not_kept_or_is_damaged_is_refused(results, digits):
    cell, other = tiny_cell(digits), tiny_cell(digits, seed=1)
    train(results, cell, other)
    name = kept.file_of(cell.id)
    damaged = bytearray(results.storage.read(name))
    damaged[-1] ^= 1
    results.storage.write(name, bytes(damaged))
    results.storage.remove(kept.file_of(other.id))
    with pytest.raises(RequestError, match=rf"{name} is damaged: its weights are not"):
        load_network(results.url, cell.id)
    with pytest.raises(RequestError, match=f"no network of cell {other.id}. .*--keep-weights"):
        load_network(results.url, other.id)
    with pytest.raises(RequestError, match="has no cell none"):
        load_network(results.url, "none")
