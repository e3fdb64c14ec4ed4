"""Features of attention paths: tokens, mixed by one head a layer.

That the network is the sum over them, test_attention_paths_model.py shows.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from chapters.paths.attention_paths import path_features
from tests.chapters.paths.path_networks import maps


@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("heads", [(1,), (2, 1, 3)])
def test_each_path_passes_the_tokens_on_through_its_heads(heads, readout):
    x = np.random.default_rng(1).normal(size=(4, 5, 6))
    attention = maps(heads, samples=4, tokens=6)
    features = path_features(x, attention, readout)
    assert features.shape == (4, math.prod(heads), 5)
    for number, path in enumerate(np.ndindex(*heads)):
        tokens = x / math.sqrt(5 * math.prod(heads))
        for layer, head in zip(attention, path, strict=True):
            tokens = tokens @ layer[head]
        expected = tokens[..., -1] if readout == "last" else tokens.mean(axis=2)
        np.testing.assert_allclose(features[:, number], expected, rtol=1e-12)
