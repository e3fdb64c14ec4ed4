"""Cells that solve or sample, run: equal to the functions, and honest where they fail."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.stats import norm

from chapters.paths.attention_paths import gp_limit, solve
from chapters.paths.posterior import hidden_markov
from chapters.paths.posterior.posterior_cell import PosteriorCell
from chapters.paths.posterior.run_posterior import run
from study.cell.events import Ended
from study.cell.work import Work
from study.errors import RequestError
from tests.chapters.paths.posterior.test_cells import SAMPLED, make_cell

CHAINS = SAMPLED | {"draws": 12, "warmup": 10, "thin": 1, "chains": 2}
small = functools.partial(make_cell, n=20, width=4)


def ended(*cells: PosteriorCell) -> list[Ended]:
    work = Work(study="x", kind="posterior", results="x", code_version="x")
    return run(cells, work)


@functools.cache
def split(name: str, paths: str = "all") -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of the small cells."""
    data = hidden_markov.sample(0, 20, 30, 1.0, name)
    return hidden_markov.features(data.inputs, make_cell(paths=paths).network, 0), data.labels


def test_theory_and_its_limit_are_what_the_functions_give():
    """On the paths of the cell alone."""
    theory, limit = ended(small(), small(width=None, method="gp", paths="good+denoising"))
    solution = solve(*split("train"), (2, 2), 4, 0.01)
    known = gp_limit(*split("train", "good+denoising"), 0.01)
    for found, expected, paths in ((theory, solution, "all"), (limit, known, "good+denoising")):
        features, labels = split("test", paths)
        mean, variance = expected.predict(features)
        test = found.evaluations[-1]
        assert (found.status, test["split"]) == ("done", "test")
        np.testing.assert_allclose(test["predictor_mean"], mean, rtol=1e-9)
        np.testing.assert_allclose(test["predictor_variance"], variance, rtol=1e-9)
        loss = -norm.logpdf(labels, mean, (variance + 0.01) ** 0.5).mean()
        assert test["loss"] == pytest.approx(loss)
        order_parameter = expected.order_parameter.ravel()
        np.testing.assert_allclose(found.columns["order_parameter"], order_parameter, rtol=1e-9)


def test_a_saddle_that_is_not_found_ends_as_diverged_with_its_residual(
    monkeypatch,
):
    hasty = functools.partial(solve, iterations=1)
    monkeypatch.setattr("chapters.paths.posterior.methods.solve", hasty)
    (found,) = ended(small())
    assert found.status == "diverged"
    residual = f"{found.columns['residual']:.2g}"
    assert f"not found: residual {residual}" in found.columns["status_reason"]


@pytest.mark.parametrize("method", ["theory", "gp", "slice"])
def test_a_temperature_that_float64_does_not_hold_ends_a_cell_and_not_the_study(
    method,
):
    """More samples than paths have features: the kernel alone has no inverse."""
    changes = CHAINS if method == "slice" else {"method": method}
    width = None if method == "gp" else 1
    (found,) = ended(make_cell(n=300, width=width, paths="good", temperature=1e-300, **changes))
    assert (found.status, found.evaluations) == ("diverged", [])
    assert "raise the temperature" in found.columns["status_reason"]


def test_cells_of_one_work_do_not_mix():
    cells = [small(), small(seed=1), small(sigma_perp=5.0)]
    together, alone = ended(*cells), [ended(cell)[0] for cell in cells]
    losses, others = (
        [each.evaluations[-1]["loss"] for each in made] for made in (together, alone)
    )
    assert losses == others
    assert len({*losses}) == 3


def test_data_of_another_generator_is_refused():
    with pytest.raises(RequestError, match="Run the command again to plan it anew"):
        ended(make_cell(data_digest="hidden-markov-0"))
