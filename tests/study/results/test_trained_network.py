"""What a kept network says of pictures is what it was evaluated by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from study import tasks
from study.cell import Options, Schedule
from study.errors import RequestError
from study.hardware import PASS_BYTES
from study.results import TrainedNetwork, load_network
from study.tasks.mosaics.mosaics import Mosaics
from study.tasks.sources.places import Places
from tests.conftest import lasting, tiny_cell
from tests.made_up.comparisons import make_results
from tests.made_up.images import SIDE, write_folders
from tests.made_up.jobs import trained

OPTIONS: Mapping[str, Options] = {
    "digits": Options(),
    "images": Options(foreground="heron+stork", pixels=SIDE),
}


class Asked(NamedTuple):
    """A network, its test mosaics as files, and what it makes of them as tensors."""

    network: TrainedNetwork
    pictures: list[list[str]]
    attention: NDArray[np.float32]
    scores: NDArray[np.float32]


@pytest.fixture(scope="module", params=["digits", "images"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Of grey images of 8 pixels in 0..16, and of coloured ones."""
    folder = tmp_path_factory.mktemp("network")
    data_dir = str(write_folders(folder / "data")) if request.param == "images" else None
    options = OPTIONS[request.param]
    task = tasks.load(request.param, Places(data_dir), options)
    cell = tiny_cell(task, Schedule.hybrid(0.1, 0.1, 0.5), options=options, test_size=12)
    results = make_results(folder / "results")
    done = trained(results, (lasting(cell, task, 4),), keep_weights=True, places=(data_dir,))
    network = load_network(results.url, *done, data_dir=data_dir)
    test = network.task.splits(network.cell)["test"]
    assert isinstance(test, Mosaics)
    attention, scores = network.outputs(test.batch(torch.arange(len(test))).segments)
    return Asked(network, written(test, folder), attention.numpy(), scores.numpy())


def written(test: Mosaics, folder: Path) -> list[list[str]]:
    """The files, PNG, of the segments of each mosaic."""
    names = []
    for row in test.index.tolist():
        names.append([str(folder / f"{image}.png") for image in row])
        for image, name in zip(row, names[-1], strict=True):
            pixels = test.images[image].numpy() * (255 / (test.max_value or 1))
            Image.fromarray(pixels.round().astype(np.uint8).squeeze()).save(name)
    return names


def numbers(frame: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Attention (n, m) and class probabilities (n, C) of a frame."""
    return np.array([*frame["attention"]]), frame.filter(like="p_").to_numpy()


def test_it_predicts_of_files_what_it_was_evaluated_by(asked, monkeypatch):
    """Whatever goes through it at a time; digits are rounded, as files have 256 greys."""
    near = 2e-2 if asked.network.cell.task == "digits" else 1e-6
    frame = asked.network.predict(asked.pictures)
    monkeypatch.setitem(PASS_BYTES, "cpu", 1)
    one_by_one = asked.network.predict(asked.pictures)
    for each in (frame, one_by_one):
        for found, expected in zip(numbers(each), asked[2:], strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=near)
    names = np.array(asked.network.task.splits(asked.network.cell)["test"].classes)
    assert frame["segments"].tolist() == asked.pictures
    assert frame["input"].tolist() == [*range(12)]
    assert frame.columns[3:-2].tolist() == [f"p_{name}" for name in names]
    best = asked.scores.argmax(axis=1)
    assert frame["predicted"].tolist() == names[best].tolist()
    np.testing.assert_allclose(frame["score"], asked.scores.max(axis=1), rtol=0, atol=near)


def test_mosaics_of_several_sizes_are_each_of_them_alone(asked):
    few, one, *_ = asked.pictures
    mosaics: Sequence[list[str]] = [few, one[:1], few[:3]]
    together = asked.network.predict(mosaics)
    assert [len(each) for each in together["attention"]] == [4, 1, 3]
    for row, mosaic in enumerate(mosaics):
        alone = asked.network.predict(mosaic)
        for found, expected in zip(numbers(together.iloc[[row]]), numbers(alone), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_a_network_whose_attention_was_held_is_not_asked(asked):
    held = replace(asked.network, cell=replace(asked.network.cell, alpha=0.5))
    with pytest.raises(RequestError, match="its attention was held"):
        held.predict(asked.pictures)


def test_a_page_shows_where_it_looks(asked, tmp_path):
    frame = asked.network.predict(asked.pictures[:2])
    shown = asked.network.show(asked.pictures[:2])
    shown.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for share in frame["attention"].explode():
        assert f'title="{100 * share:.0f} %"' in page
    for predicted, score in zip(frame["predicted"], frame["score"], strict=True):
        assert f'<p class="said">{predicted}, {100 * score:.0f} %</p>' in page
    assert page.count("data:image/") == shown._repr_html_().count("data:image/") == 2
