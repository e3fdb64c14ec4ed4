"""The hidden Markov task: its chains, its heads, and the features of its subnetworks."""

from __future__ import annotations

import numpy as np
import pytest

from chapters.paths.attention_paths import path_features
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.posterior import hidden_markov as hm
from chapters.paths.posterior.network import SIGMA_PERP, VARIANTS, parse, path_names, reduced

TOKENS = 30


def sequences(n: int, sigma_perp: float = 1.0, tokens: int = TOKENS) -> hm.Sequences:
    return hm.sample(0, n, tokens, sigma_perp, "train")


def maps(data: hm.Sequences, heads: str, seed: int = 0) -> list[Floats]:
    return hm.attention(data.inputs, parse(heads), seed)


def test_states_stay_as_the_labels_say():
    data = sequences(1000)
    stays = data.states[:, 1:] == data.states[:, :-1]
    for label, probability in hm.STAY.items():
        share = stays[data.labels == label]
        error = np.sqrt(0.21 / share.size)
        assert share.mean() == pytest.approx(probability, abs=4 * error)
    assert (data.states[:, 0] == 1).mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(1000))
    assert data.labels.sum() == 0


@pytest.mark.parametrize("sigma_perp", [0.0, 5.0])
def test_tokens_show_their_states_in_noise(sigma_perp):
    data = sequences(40, sigma_perp)
    assert data.inputs.shape == (40, 231, 31)
    assert not data.inputs[:, : hm.VISIBLE, 0].any()  # BOS
    np.testing.assert_array_equal(data.inputs[7, hm.VISIBLE :], np.eye(31))
    halves = data.inputs[:, : hm.VISIBLE, 1:].reshape(40, 2, 100, TOKENS)
    means = halves.mean(axis=2)  # (n, half, T)
    shown = np.stack([data.states == 1, data.states == -1], axis=1)
    assert (10 * (means - np.sqrt(2) * shown)).std() == pytest.approx(1, rel=0.1)  # inside
    outside = (halves - means[:, :, None]).std() * np.sqrt(100 / 99)
    assert outside == pytest.approx(sigma_perp, rel=0.02)


def test_the_good_head_attends_to_an_equal_previous_state_or_else_to_bos():
    data = sequences(50)
    ((found,),) = maps(data, "good")
    same = data.states[:, 1:] == data.states[:, :-1]
    queries = np.arange(2, TOKENS + 1)
    previous, bos = found[:, queries - 1, queries], found[:, 0, queries]
    assert np.median(previous[same]) > 0.9
    assert np.median(bos[~same]) > 0.8  # other tokens of the query's state take some
    assert ((previous > bos) == same).mean() > 0.99


def test_random_heads_differ():
    data, text = sequences(3, tokens=6), "random+good+random/uniform+random"
    first, second = maps(data, text)
    for other in (first[2], second[1], maps(data, text, seed=1)[0][0]):
        assert not np.allclose(first[0], other)
    np.testing.assert_allclose(second[0], 1 / 7)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_subnetwork_has_the_paths_of_the_whole(variant):
    """Up to the factor 1 / sqrt(D), since D counts its own paths."""
    data = sequences(4, SIGMA_PERP[variant], tokens=8)
    network = parse(VARIANTS[variant])
    names = path_names(network)
    whole = hm.features(data.inputs, network, seed=3)
    expected = {"all": names, "good": ["good"], "good+denoising": ["good", "denoising"]}
    for paths, kept in expected.items():
        part = reduced(network, paths)
        assert path_names(part) == kept
        own = hm.features(data.inputs, part, seed=3) * np.sqrt(len(kept) / len(names))
        np.testing.assert_allclose(own, whole[:, [names.index(name) for name in kept]])


def test_features_in_chunks_are_the_features(monkeypatch):
    data, text = sequences(7, tokens=6), VARIANTS["plain"]
    whole = path_features(data.inputs, maps(data, text))
    monkeypatch.setattr(hm, "_CHUNK_BYTES", 2 * 6 * 8 * 49)
    np.testing.assert_allclose(hm.features(data.inputs, parse(text), 0), whole, rtol=1e-12)
