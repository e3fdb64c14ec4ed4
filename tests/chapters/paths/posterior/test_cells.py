"""Cells that solve or sample: their networks, their identity, and what the study makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from chapters.paths.attention_paths.samples import LEAST
from chapters.paths.posterior import network
from chapters.paths.posterior.hidden_markov import DIGEST
from chapters.paths.posterior.network import VARIANTS
from chapters.paths.posterior.posterior_cell import LEAST_DRAWS, PosteriorCell
from chapters.paths.studies import ATTENTION_PATHS as SPACE
from study.errors import RequestError
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.plan.plan import Plan
from study.tasks.task import Facts


def make_cell(**changes: Any) -> PosteriorCell:
    values = {
        "task": "hidden-markov", "data_digest": DIGEST, "heads": VARIANTS["plain"],
        "paths": "all", "sigma_perp": 1.0, "tokens": 30, "n": 100, "validation_size": 20,
        "test_size": 20, "temperature": 0.01, "method": "theory", "width": 10, "seed": 0,
    }  # fmt: skip
    return PosteriorCell(**{**values, **changes})


def plan(*assignments: str) -> Plan:
    def facts_of(*_: Any) -> Facts:
        raise AssertionError("the data is made up")

    return make_plan(SPACE, "quick", resolve(SPACE, "quick", assignments), facts_of)


SAMPLED = {"method": "slice", "draws": 500, "warmup": 4_000, "thin": 5, "chains": 4}


@pytest.mark.parametrize(
    ("changes", "compared"),
    [
        ({"seed": 1, "width": 30}, True),
        ({"method": "gp", "width": None, "paths": "good"}, True),
        (SAMPLED, True),
        ({"sigma_perp": 5.0}, False),
        ({"heads": VARIANTS["noisy"]}, False),
        ({"temperature": 0.02}, False),
        ({"test_size": 22}, False),
    ],
)
def test_methods_widths_paths_and_seeds_of_one_setting_are_compared(changes, compared):
    one, other = make_cell(), make_cell(**changes)
    assert one.id != other.id
    assert (one.comparison_id == other.comparison_id) == compared


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": None}, "width must be given for theory, got None"),
        ({"method": "gp"}, "width must be none for gp"),
        ({"n": 99}, "half of each class"),
        ({"method": "guess"}, "method must be one of theory, gp, slice"),
        ({"draws": 500}, "draws must be none for theory"),
        (SAMPLED | {"draws": 7}, "draws must be an integer >= 8"),
        ({"heads": "god+random"}, "head in layer 1 of 'god[+]random': 'god'. Did you mean 'good'"),
        ({"heads": "good/"}, "unknown head in layer 2 of 'good/': ''"),
        ({"heads": "random/uniform", "paths": "good"}, "a good head in layer 1, which has random"),
        ({"heads": "good/uniform", "paths": "good+denoising"}, "random head in layer 1"),
    ],
)
def test_what_no_cell_can_be_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        make_cell(**changes)


def test_paths_have_names():
    plain = network.parse(VARIANTS["plain"])
    assert network.path_names(plain) == ["good", "good, random", "denoising", "random, random"]
    assert network.path_names(network.parse(VARIANTS["noisy"])) == ["good", "denoising"]


def test_what_memory_does_not_hold_is_refused_with_the_number():
    with pytest.raises(RequestError, match=r"needs about 1,900 GB of memory"):
        plan("n=200000", "method=gp", "paths=all", "seed=0")


def test_the_fewest_draws_are_those_that_chains_need():
    assert LEAST["draws"] == LEAST_DRAWS  # said twice, so that a cell is known without NumPy
