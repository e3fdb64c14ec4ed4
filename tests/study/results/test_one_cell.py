"""Networks that `--keep-weights` keeps: whose, and that one is loaded as it was tested."""

from __future__ import annotations

import pkgutil
import shutil
import textwrap
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import save

from study import paradigms, run, tasks
from study.cell import Cell, NetworkSettings, Schedule
from study.errors import RequestError
from study.models import kept
from study.results import FURTHER, METRICS, Results, TrainedNetwork, load_network
from study.results.merging import compact
from study.terminal.command import DONE
from study.train.run_training import opened_task
from tests.chapters.texts.post_files import load, text_cell, write_posts
from tests.conftest import tiny_cell
from tests.made_up.commands import called
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
    attention, scores = network.outputs(segments, mask)
    known = foreground.any(dim=1)
    a_z = (attention * foreground).sum(dim=1)[known].mean()
    assert a_z == pytest.approx(row["foreground_attention_mean"], abs=1e-6)
    assert (scores.argmax(dim=1) == test.labels).double().mean() == row["accuracy"]


@pytest.mark.usefixtures("no_pictures")
def test_the_command_keeps_the_networks_of_confirming_cells_each_of_a_pack(
    tmp_path, monkeypatch, capsys, digits
):
    """And the lines that it ends with ask one of them about a picture."""
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
    alone = STUDY.replace("--shard 1/1", "--tracking none")
    status, printed, errors = called(run.main, capsys, *alone.split(), "--results", str(tmp_path))
    assert status == DONE, errors
    said, *lines = printed[printed.index("networks: ") :].splitlines()
    assert said == f"networks: 4 in {tmp_path}/networks. Ask one:"
    monkeypatch.chdir(tmp_path)
    Image.new("L", (30, 10)).save("picture.png")
    code = textwrap.dedent("\n".join(lines)).replace("from attention_study", "from study.results")
    exec(code, {})
    assert "picture.png" in (tmp_path / "where-it-looks.html").read_text()
    assert "predicted" in capsys.readouterr().out


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


def test_a_network_needs_no_data_but_one_that_an_earlier_version_kept_does(results, tmp_path):
    """What is missing is said as an argument of Python, too."""
    data_dir = str(write_posts(tmp_path / "posts"))
    cell = text_cell(load(tmp_path / "posts"))
    train(results, cell, places=(data_dir,))
    weights = kept.load(results.storage, cell.id)
    carrying = load_network(results.url, cell.id, data_dir=data_dir)
    expected = carrying.predict("a red fruit1")
    results.storage.write(kept.file_of(cell.id), save(weights))
    without = load_network(results.url, cell.id, data_dir=data_dir)
    pd.testing.assert_frame_equal(without.predict("a red fruit1"), expected)
    with pytest.raises(RequestError, match=r"^tiles= cuts pictures, and hatexplain has none"):
        carrying.predict("a red fruit1", tiles=2)
    shutil.rmtree(data_dir)
    opened_task.cache_clear()
    pd.testing.assert_frame_equal(carrying.predict("a red fruit1"), expected)
    missing = "posts does not exist. Pass the directory that holds HateXplain with --data-dir"
    with pytest.raises(RequestError, match=missing):
        _ = carrying.task
    with pytest.raises(RequestError, match=missing):
        load_network(results.url, cell.id, data_dir=data_dir)
    with pytest.raises(RequestError, match=r"^--folder is of no use to hatexplain"):
        load_network(results.url, cell.id, folder=data_dir)


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
