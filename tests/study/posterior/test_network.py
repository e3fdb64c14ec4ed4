"""Networks declared as text: their paths and their parts."""

from __future__ import annotations

import pytest

from study.posterior import network


def test_paths_have_names() -> None:
    plain = network.parse(network.VARIANTS["plain"])
    assert network.path_names(plain) == ["good", "good, random", "denoising", "random, random"]
    assert network.path_names(network.parse(network.VARIANTS["noisy"])) == ["good", "denoising"]


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ("god+random", "unknown head in layer 1 of 'god[+]random': 'god'. Did you mean 'good'"),
        ("good/", "layer 2 of 'good/' has no head"),
        ("good+/uniform", "unknown head in layer 1"),
        ("", "layer 1 of '' has no head"),
    ],
)
def test_heads_that_are_none_are_refused(heads: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        network.parse(heads)


@pytest.mark.parametrize(
    ("heads", "paths", "said"),
    [
        ("good", "goood", "unknown paths: 'goood'. Did you mean 'good'"),
        ("random/uniform", "good", "needs a good head in layer 1, which has random"),
        ("good/random", "good", "needs a uniform head in layer 2"),
        ("good/uniform", "good+denoising", "needs a head in layer 1 that is not good"),
    ],
)
def test_paths_that_a_network_does_not_have_are_refused(heads: str, paths: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        network.reduced(network.parse(heads), paths)
