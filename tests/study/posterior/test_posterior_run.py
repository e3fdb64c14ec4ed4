"""Cells that solve or sample, run: equal to the functions, and honest where they fail."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from study.cell.events import Ended
from study.cell.work import Work
from study.errors import RequestError
from study.posterior import hidden_markov
from study.posterior.cell import PosteriorCell
from study.posterior.run import run
from study.theory.attention_paths import gp_limit, sample, solve
from tests.study.posterior.test_cells import SAMPLED, make_cell

SMALL = {"n": 20, "width": 4}
CHAINS = SAMPLED | {"draws": 12, "warmup": 10, "thin": 1, "chains": 2}


def ended(*cells: PosteriorCell) -> list[Ended]:
    work = Work(study="x", kind="posterior", results="x", code_version="x")
    return run(cells, work)


@functools.cache
def split(name: str, size: int, paths: str = "all") -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of the small cells."""
    data = hidden_markov.sample(0, size, 30, 1.0, name)
    network = make_cell(paths=paths).network
    return hidden_markov.features(data.inputs, network, 0), data.labels


def test_theory_is_what_solve_gives() -> None:
    (found,) = ended(make_cell(**SMALL))
    features, labels = split("train", 20)
    solution = solve(features, labels, (2, 2), 4, 0.01)
    mean, variance = solution.predict(split("test", 20)[0])
    test = found.evaluations[-1]
    assert (found.status, test["split"]) == ("done", "test")
    np.testing.assert_allclose(test["predictor_mean"], mean, rtol=1e-9)
    np.testing.assert_allclose(test["predictor_variance"], variance, rtol=1e-9)
    order_parameter = solution.order_parameter.ravel()
    np.testing.assert_allclose(found.columns["order_parameter"], order_parameter, rtol=1e-9)
    assert found.columns["residual"] < 1e-9
    assert found.columns["path_names"][0] == "good"
    assert np.square(found.columns["overlaps"]).sum() == pytest.approx(1)


@pytest.mark.parametrize("paths", ["all", "good", "good+denoising"])
def test_the_limit_is_of_its_own_paths(paths: str) -> None:
    (found,) = ended(make_cell(**SMALL | {"width": None}, method="gp", paths=paths))
    limit = gp_limit(*split("train", 20, paths), 0.01)
    mean, _ = limit.predict(split("test", 20, paths)[0])
    assert found.evaluations[-1]["predictor_mean"] == mean.tolist()
    count = {"all": 4, "good": 1, "good+denoising": 2}[paths]
    assert found.columns["order_parameter"] == np.eye(count).ravel().tolist()
    assert found.evaluations[-1]["accuracy_diagonal"] == found.evaluations[-1]["accuracy"]


def test_samples_are_what_sample_gives() -> None:
    (found,) = ended(make_cell(**SMALL, **CHAINS))
    at = np.concatenate([split(name, 20)[0] for name in ("validation", "test")])
    sizes: dict[str, Any] = {name: CHAINS[name] for name in ("draws", "warmup", "thin", "chains")}
    samples = sample(*split("train", 20), (2, 2), 4, 0.01, seed=0, at=at, **sizes)
    train, validation, test = found.evaluations
    assert train["predictor_mean"] == samples.training_mean.mean.tolist()
    assert validation["predictor_mean"] == samples.mean.mean[:20].tolist()
    assert test["predictor_mean_error"] == samples.mean.error[20:].tolist()
    chains = np.sign(samples.mean.by_chain[:, 20:]) == split("test", 20)[1]
    error = np.std(chains.mean(axis=1), ddof=1) / np.sqrt(2)
    assert test["accuracy_error"] == pytest.approx(error)
    assert found.columns["r_hat"] == samples.r_hat
    assert found.evaluations[0]["compute_flops"] == int(samples.flops)


def test_chains_that_do_not_agree_are_recorded_with_their_r_hat() -> None:
    (found,) = ended(make_cell(**SMALL, **CHAINS | {"warmup": 1, "draws": 8}))
    assert found.status == "done"
    assert found.columns["r_hat"] > 1.01


def test_a_saddle_that_is_not_found_ends_as_diverged_with_its_residual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hasty = functools.partial(solve, iterations=1)
    monkeypatch.setattr("study.posterior.methods.solve", hasty)
    (found,) = ended(make_cell(**SMALL))
    assert found.status == "diverged"
    assert found.columns["status_reason"] == (
        f"the saddle point was not found: residual {found.columns['residual']:.2g}"
    )


@pytest.mark.parametrize("method", ["theory", "gp", "slice"])
@pytest.mark.parametrize("temperature", [1e-14, 1e-300])
def test_a_temperature_that_float64_does_not_hold_ends_a_cell_and_not_the_study(
    method: str, temperature: float
) -> None:
    """More samples than paths have features: the kernel alone has no inverse."""
    changes = CHAINS if method == "slice" else {}
    size = {"n": 300, "width": None if method == "gp" else 1, "paths": "good"}
    cell = make_cell(**{**changes, **size, "method": method, "temperature": temperature})
    (found,) = ended(cell)
    assert found.status in ("done", "diverged")
    if found.status == "diverged":
        assert found.columns["status_reason"]


def test_cells_of_one_work_do_not_mix() -> None:
    cells = [make_cell(**SMALL), make_cell(**SMALL, seed=1), make_cell(**SMALL, sigma_perp=5.0)]
    together = ended(*cells)
    for cell, one in zip(cells, together, strict=True):
        (alone,) = ended(cell)
        assert alone.evaluations[-1]["predictor_mean"] == one.evaluations[-1]["predictor_mean"]
    assert len({each.evaluations[-1]["loss"] for each in together}) == 3


def test_the_loss_is_the_negative_log_density_of_the_label() -> None:
    from scipy.stats import norm

    (found,) = ended(make_cell(**SMALL))
    test = found.evaluations[-1]
    spread = np.sqrt(np.array(test["predictor_variance"]) + 0.01)
    expected = -norm.logpdf(split("test", 20)[1], test["predictor_mean"], spread).mean()
    assert test["loss"] == pytest.approx(expected)


def test_data_of_another_generator_is_refused() -> None:
    with pytest.raises(RequestError, match="Run the command again to plan it anew"):
        ended(make_cell(data_digest="hidden-markov-0"))
