"""Features of attention paths, against the network whose paths they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from study.theory.attention_paths import kernel, kernels, path_features
from study.theory.attention_paths.features import pair_kernels
from tests.made_up.attention_paths import maps


@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("heads", [(1,), (3,), (2, 3), (2, 1, 3)])
def test_features_times_effective_weights_are_the_networks_output(
    heads: tuple[int, ...], readout: str
) -> None:
    """f = a . z^L of the whole network with weights, which never sees a path."""
    random = np.random.default_rng(1)
    samples, size, tokens, widths = 4, 5, 6, (7, 3, 5, 4)[: len(heads) + 1]
    x = random.normal(size=(samples, size, tokens))
    attention = maps(heads, samples, tokens)
    values = [random.normal(size=(widths[0], size))]
    values += [
        random.normal(size=(count, widths[layer + 1], widths[layer]))
        for layer, count in enumerate(heads)
    ]
    readout_weights = random.normal(size=widths[-1])

    state = values[0] @ x / math.sqrt(size)
    for layer, count in enumerate(heads):
        mixed = np.einsum(
            "hij,pjs,hpst->pit", values[layer + 1], state, attention[layer], optimize=True
        )
        state = mixed / math.sqrt(count * widths[layer])
    output = readout_weights @ state / math.sqrt(widths[-1])
    expected = output[:, -1] if readout == "last" else output.mean(axis=1)

    effective = []
    for path in np.ndindex(*heads):
        weights = values[0]
        for layer, head in enumerate(path):
            weights = values[layer + 1][head] @ weights / math.sqrt(widths[layer])
        effective.append(readout_weights @ weights / math.sqrt(widths[-1]))
    features = path_features(x, attention, readout)
    assert features.shape == (samples, math.prod(heads), size)
    np.testing.assert_allclose(np.einsum("pdf,df->p", features, effective), expected, rtol=1e-12)


def test_kernels_of_pairs_weighed_by_the_order_parameter_are_the_kernel() -> None:
    random = np.random.default_rng(2)
    one, other, root = (random.normal(size=(n, 4, 5)) for n in (3, 2, 1))
    order_parameter = root[0] @ root[0].T
    weights = order_parameter[np.triu_indices(4)]
    for left, right in ((one, other), (one, one)):
        found = sum(w * pair for w, pair in zip(weights, pair_kernels(left, right), strict=True))
        expected = np.einsum("paf,ab,qbf->pq", left, order_parameter, right)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_kernels_are_those_of_all_pairs() -> None:
    """So that, weighed by U, they sum to the kernel of the predictor."""
    random = np.random.default_rng(2)
    features, root = random.normal(size=(3, 4, 5)), random.normal(size=(4, 4))
    pairs = kernels(features)
    assert pairs.shape == (4, 4, 3, 3)
    expected = kernel(features, root @ root.T)
    np.testing.assert_allclose(np.tensordot(root @ root.T, pairs), expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"\(D, F\) differ"):
        kernels(features, features[:, :3])


def test_attention_in_float32_is_taken() -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 50)).astype(np.float32)
    attention = [layer.astype(np.float32) for layer in maps((2, 2), 2, 50)]
    assert path_features(x, attention).dtype == np.float64


X = np.ones((2, 3, 4))


def spoilt(layer: int, at: tuple[int, ...], value: float) -> list[np.ndarray]:
    attention = maps((2, 2), 2, 4)
    attention[layer][at] = value
    return attention


@pytest.mark.parametrize(
    ("inputs", "attention", "readout", "said"),
    [
        (np.where(X.cumsum() == 5, np.nan, X.ravel()).reshape(2, 3, 4), maps((2,), 2, 4), "last",
         r"finite, got nan at index \(0, 1, 0\) of the axes \(P, N, T\)"),
        (X, spoilt(1, (1, 0, 2, 3), 7.0), "last", "in layer 2, head 1, sample 0, column 3"),
        (X, spoilt(0, (0, 0, 0, 0), -1.0), "last", "layer 1 must be >= 0"),
        (X, spoilt(0, (0, 0, 0, 0), np.inf), "last", "layer 1 must be finite"),
        (X, [layer.swapaxes(2, 3) for layer in maps((2,), 2, 4)], "last", "softmax over s"),
        (X, maps((2,), 3, 4), "last", "2 samples of 4 tokens, got"),
        (X, [], "last", "a list of layers, at least one"),
        (X[0], maps((2,), 2, 4), "last", r"axes \(P, N, T\), none empty, got \(3, 4\)"),
        (X.astype(str), maps((2,), 2, 4), "last", "real numbers, got <U"),
        (X, maps((2,), 2, 4), "first", "'last' or 'mean', got 'first'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(
    inputs: np.ndarray, attention: list[np.ndarray], readout: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        path_features(inputs, attention, readout)
    assert "\n" not in str(raised.value)
