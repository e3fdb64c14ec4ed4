"""Features of attention paths, against the network whose paths they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chapters.paths.attention_paths import path_features
from tests.chapters.paths.path_networks import maps


@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("heads", [(1,), (3,), (2, 3), (2, 1, 3)])
def test_features_times_effective_weights_are_the_networks_output(heads, readout):
    """f = a . z^L of the whole network with weights, which never sees a path."""
    random = np.random.default_rng(1)
    samples, size, tokens, widths = 4, 5, 6, (7, 3, 5, 4)[: len(heads) + 1]
    x = random.normal(size=(samples, size, tokens))
    attention = maps(heads, samples, tokens)
    first = random.normal(size=(widths[0], size))
    shapes = zip(heads, widths[1:], widths[:-1], strict=True)
    values = [random.normal(size=shape) / math.sqrt(shape[2]) for shape in shapes]
    last = random.normal(size=widths[-1]) / math.sqrt(widths[-1])

    state = first @ x / math.sqrt(size)
    for weights, layer in zip(values, attention, strict=True):
        mixed = np.einsum("hij,pjs,hpst->pit", weights, state, layer, optimize=True)
        state = mixed / math.sqrt(len(weights))
    output = last @ state
    expected = output[:, -1] if readout == "last" else output.mean(axis=1)

    effective = []
    for path in np.ndindex(*heads):
        product = first
        for weights, head in zip(values, path, strict=True):
            product = weights[head] @ product
        effective.append(last @ product)
    features = path_features(x, attention, readout)
    assert features.shape == (samples, math.prod(heads), size)
    np.testing.assert_allclose(np.einsum("pdf,df->p", features, effective), expected, rtol=1e-12)
