"""The hidden Markov task: its chains, its heads, and the features of its subnetworks."""

from __future__ import annotations

import numpy as np
import pytest

from study.posterior import hidden_markov as hm
from study.posterior.network import SIGMA_PERP, VARIANTS, parse, path_names, reduced
from study.theory.attention_paths import path_features

TOKENS = 30


def test_states_stay_as_the_labels_say() -> None:
    data = hm.sample(0, 1000, TOKENS, 1.0, "train")
    stays = data.states[:, 1:] == data.states[:, :-1]
    for label, probability in hm.STAY.items():
        share = stays[data.labels == label]
        error = np.sqrt(0.21 / share.size)
        assert share.mean() == pytest.approx(probability, abs=4 * error)
    assert (data.states[:, 0] == 1).mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(1000))
    assert data.labels.sum() == 0


@pytest.mark.parametrize("sigma_perp", [0.0, 1.0, 5.0])
def test_tokens_show_their_states_in_noise(sigma_perp: float) -> None:
    data = hm.sample(0, 40, TOKENS, sigma_perp, "train")
    assert data.inputs.shape == (40, 231, 31)
    assert not data.inputs[:, : hm.VISIBLE, 0].any()  # BOS
    np.testing.assert_array_equal(data.inputs[7, hm.VISIBLE :], np.eye(31))
    halves = data.inputs[:, : hm.VISIBLE, 1:].reshape(40, 2, 100, TOKENS)
    means = halves.mean(axis=2)  # (n, half, T)
    shown = np.where(data.states == 1, 0, 1)[:, None] == np.arange(2)[:, None]
    inside = 10 * (means - np.sqrt(2) * shown)
    assert inside.std() == pytest.approx(1, rel=0.1)
    outside = (halves - means[:, :, None]).std() * np.sqrt(100 / 99)
    assert outside == pytest.approx(sigma_perp, rel=0.02)


def test_streams_are_named() -> None:
    data = hm.sample(0, 20, 6, 1.0, "train")
    np.testing.assert_array_equal(data.inputs, hm.sample(0, 50, 6, 1.0, "train").inputs[:20])
    for other in (hm.sample(1, 20, 6, 1.0, "train"), hm.sample(0, 20, 6, 1.0, "test")):
        assert not np.array_equal(data.states, other.states)
        assert not np.allclose(data.inputs, other.inputs)


def test_the_good_head_attends_to_an_equal_previous_state_or_else_to_bos() -> None:
    data = hm.sample(0, 50, TOKENS, 1.0, "train")
    ((maps,),) = hm.attention(data.inputs, "good", seed=0)
    same = data.states[:, 1:] == data.states[:, :-1]
    queries = np.arange(2, TOKENS + 1)
    previous, bos = maps[:, queries - 1, queries], maps[:, 0, queries]
    assert np.median(previous[same]) > 0.9
    assert np.median(bos[~same]) > 0.8  # other tokens of the query's state take some
    assert ((previous > bos) == same).mean() > 0.99


def test_uniform_heads_attend_to_all_tokens_alike() -> None:
    data = hm.sample(0, 3, 6, 1.0, "train")
    ((maps,),) = hm.attention(data.inputs, "uniform", seed=0)
    np.testing.assert_allclose(maps, 1 / 7)


def test_random_heads_differ_and_keep_their_weights_in_a_subnetwork() -> None:
    data = hm.sample(0, 3, 6, 1.0, "train")
    whole = parse("random+good+random/uniform+random")
    first, second = hm.attention(data.inputs, whole, seed=0)
    assert not np.allclose(first[0], first[2])
    assert not np.allclose(first[0], second[1])
    assert not np.allclose(first[0], hm.attention(data.inputs, whole, seed=1)[0][0])
    for layer in (first, second):
        np.testing.assert_allclose(layer.sum(axis=2), 1)
    part = hm.attention(data.inputs, (whole[0][2:], whole[1][1:]), seed=0)
    np.testing.assert_array_equal(part[0][0], first[2])
    np.testing.assert_array_equal(part[1][0], second[1])


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_subnetwork_has_the_paths_of_the_whole(variant: str) -> None:
    """Up to the factor 1 / sqrt(D), since D counts its own paths."""
    data = hm.sample(0, 4, 8, SIGMA_PERP[variant], "train")
    network = parse(VARIANTS[variant])
    names = path_names(network)
    whole = hm.features(data.inputs, network, seed=3)
    expected = {"all": names, "good": ["good"], "good+denoising": ["good", "denoising"]}
    for paths, kept in expected.items():
        part = reduced(network, paths)
        assert path_names(part) == kept
        own = hm.features(data.inputs, part, seed=3) * np.sqrt(len(kept) / len(names))
        np.testing.assert_allclose(own, whole[:, [names.index(name) for name in kept]])


def test_features_in_chunks_are_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    data = hm.sample(0, 7, 6, 1.0, "train")
    whole = path_features(data.inputs, hm.attention(data.inputs, VARIANTS["plain"], 0))
    monkeypatch.setattr(hm, "_CHUNK_BYTES", 2 * 6 * 8 * 49)
    chunked = hm.features(data.inputs, VARIANTS["plain"], 0)
    np.testing.assert_allclose(chunked, whole, rtol=1e-12)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="n >= 1, tokens >= 2"):
        hm.sample(0, 10, 1, 1.0, "train")
    with pytest.raises(ValueError, match=r"inputs must be \(n, 200 \+ T \+ 1, T \+ 1\)"):
        hm.attention(np.zeros((2, 30, 5)), "good", 0)
