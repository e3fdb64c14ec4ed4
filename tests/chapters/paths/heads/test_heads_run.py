"""Networks taken apart: theory as its functions give it; of rules see the golden record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm

from chapters.paths.attention_paths import head_scores, solve
from chapters.paths.heads.apart import Apart, take_apart
from chapters.paths.heads.heads_cell import TEMPERATURES, HeadsCell
from chapters.paths.one_shot.model import AttentionPaths
from study import models, tasks
from study.cell import Cell
from study.cell.events import Ended
from study.cell.work import Job
from study.errors import RequestError
from study.launch.run_job import run_job
from study.models import kept
from study.results import Results
from tests.chapters.paths.small_networks import cells, work

HEADS = (2, 2)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, network: Cell) -> Results:
    """A directory in which the small study has trained its network."""
    made = Results(tmp_path_factory.mktemp("results"))
    made.prepare()
    assert run_job(Job(((network,),)), work(made.url, network)) == {network.id: "done"}
    return made


@pytest.fixture(scope="module")
def network() -> Cell:
    return cells("method=theory")[0].network


@pytest.fixture(scope="module")
def task(network: Cell) -> Any:
    return tasks.load(network.task, options=network.options)


@pytest.fixture(scope="module")
def model(results: Results, network: Cell, task: Any) -> AttentionPaths:
    built = models.model_of(network, task)
    built.load_state_dict(kept.load(results.storage, network.id))
    assert isinstance(built, AttentionPaths)
    return built


@pytest.fixture(scope="module")
def apart(model: AttentionPaths, network: Cell, task: Any) -> Apart:
    return take_apart(model, network, task, 30, "digest")


def ended(results: Results, *made: HeadsCell, **given: Any) -> list[Ended]:
    from chapters.paths.heads.run_heads import run

    return run(made, work(results.url, *made, **given))


def rows(found: Ended) -> dict[str, dict[str, Any]]:
    return {row["split"]: dict(row) for row in found.evaluations}


# The network


def test_a_kill_between_network_and_record_changes_nothing(
    results, network, tmp_path, monkeypatch
):
    killed = Results(tmp_path)
    killed.prepare()

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Results, "write_cell", kill)
        with pytest.raises(KeyboardInterrupt):
            run_job(Job(((network,),)), work(killed.url, network))
    assert killed.storage.exists(kept.file_of(network.id))
    assert run_job(Job(((network,),)), work(killed.url, network)) == {network.id: "done"}
    both = [each.cells([network.id]).iloc[0]["network_digest"] for each in (results, killed)]
    assert both[0] == both[1] == kept.digest(kept.load(killed.storage, network.id))


def test_apart_is_the_network(model, apart, network, task):
    """What paths add sums to the output; the theory learns from other episodes than it did."""
    splits = task.splits(network)
    episodes, first = (splits[name].batch(torch.arange(30)) for name in ("test", "train"))
    with torch.no_grad():
        expected = model.double()(episodes.segments.double()).numpy()
    found = apart.outputs["test"].by_path[:30].sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    labels = {name: each.labels.tolist() for name, each in apart.splits.items()}
    assert labels["test"][:30] == (2 * episodes.labels - 1).tolist()
    assert labels["train"] != (2 * first.labels - 1).tolist()
    assert apart.splits["train"].features.shape[:2] == (30, 4)


# Theory


@pytest.mark.parametrize(
    ("choice", "split"), [("validation", "validation"), ("published", "test")]
)
def test_theory_is_what_solve_gives_at_the_best_temperature(results, apart, choice, split):
    """By accuracy, then by the likelihood of the labels; as published, on the test episodes."""
    (found,) = ended(results, *cells("method=theory", f"temperature={choice}"))
    held_out, training = apart.splits[split], apart.splits["train"]
    ranked = []
    for heat in TEMPERATURES:
        solution = solve(*training, HEADS, 5, heat)
        mean, variance = solution.predict(held_out.features)
        nats = norm.logpdf(held_out.labels, mean, np.sqrt(variance + heat)).mean()
        right = (np.sign(mean) == held_out.labels).mean()
        ranked.append((right, nats, heat, solution))
    *_, heat, best = max(ranked, key=lambda each: each[:2])
    assert found.columns["temperature"] == heat
    last = rows(found)["test"]
    mean, _ = best.predict(apart.splits["test"].features)
    np.testing.assert_allclose(last["predictor_mean"], mean, rtol=1e-6, atol=1e-9)
    expected = np.concatenate(head_scores(best.order_parameter, HEADS))
    np.testing.assert_allclose(found.columns["head_scores"], expected, rtol=1e-6)


# What can be wrong


def test_a_missing_or_damaged_network_is_named(results, tmp_path):
    """Unless it lies elsewhere, as for a repetition, which records in a directory of its own."""
    elsewhere = Results(tmp_path)
    elsewhere.prepare()
    (cell,) = cells("method=entropy", "examples=29")
    with pytest.raises(RequestError, match=r"lacks the network networks/\w+\.safetensors\. Copy"):
        ended(elsewhere, cell)
    assert ended(elsewhere, cell, networks=results.url)[0].status == "done"
    whole = results.storage.read(kept.file_of(cell.network.id))
    for damage in (whole[:-200], b"no archive", b""):
        elsewhere.storage.write(kept.file_of(cell.network.id), damage)
        with pytest.raises(RequestError, match=r"networks/\w+\.safetensors is damaged"):
            ended(elsewhere, cell)
