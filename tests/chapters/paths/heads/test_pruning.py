"""Heads removed by mask are heads left out; orders, their bound, and scores made by hand."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from chapters.paths.heads import pruning, scores
from tests.chapters.paths.one_shot.test_attention_paths_model import images, network, plain

HEADS = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)


def outputs(heads: tuple[int, ...], seed: int = 0, count: int = 40) -> pruning.Outputs:
    """Of paths whose sum predicts the labels better than chance."""
    random = np.random.default_rng(seed)
    labels = random.choice([-1.0, 1.0], count)
    paths = int(np.prod(heads))
    by_path = random.standard_normal((count, paths)) + labels[:, None] * random.random(paths)
    return pruning.Outputs(by_path, labels, heads)


def test_removed_by_mask_is_left_out_with_the_rescale():
    """A network without these heads, its layers scaled by the heads that they have left."""
    model = network().double()
    tokens = model.encoder(images())
    by_path = model.by_path(images()).detach().numpy()
    whole = model.classifier.values.detach().clone()
    for layers in itertools.product([(True, True), (True, False), (False, True)], repeat=3):
        kept = np.array(layers)
        with torch.no_grad():
            mask = torch.from_numpy(kept).double()
            scale = (2 / mask.sum(dim=1, keepdim=True)).sqrt() * mask
            model.classifier.values.copy_(whole * scale[:, :, None, None])
            expected = plain(model, tokens).numpy()
        found = by_path @ pruning.path_weights(kept.reshape(1, -1), (2, 2, 2))[0]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_an_output_of_zero_is_a_guess():
    outputs = np.array([2.0, -1.0, 0.0, 0.0])
    assert pruning.accuracy(outputs, np.array([1.0, 1.0, 1.0, -1.0])) == 0.5
    assert pruning.accuracy(outputs[:1], np.ones(1)) == 1.0


def test_orders_keep_a_head_in_each_layer():
    assert pruning.by_score([0.1, 0.2, 0.9, 0.8], (2, 2)) == [0, 3]
    assert pruning.by_score([5, 5, 1, 1, 1], (2, 3)) == [2, 3, 0]
    assert pruning.by_score([3.0, 2.0, 1.0], (3,)) == [2, 1]
    assert pruning.by_score([1.0, 2.0], (1, 1)) == []


@given(HEADS, st.integers(0, 100))
def test_curves_are_accuracies_of_sets_of_heads(heads, seed):
    """The bound is the best set of each size, and greedy the best next step."""
    made = outputs(heads, seed)
    every, layers = range(sum(heads)), np.repeat(range(len(heads)), heads)
    without = {}
    for kept in itertools.product([True, False], repeat=sum(heads)):
        if set(layers[list(kept)]) == set(layers):
            (weights,) = pruning.path_weights(np.array([kept]), heads)
            removed = frozenset(head for head in every if not kept[head])
            without[removed] = pruning.accuracy(made.by_path @ weights, made.labels)
    best = [
        max(found for removed, found in without.items() if len(removed) == count)
        for count in range(sum(heads) - len(heads) + 1)
    ]
    assert made.best_curve().tolist() == best
    greedy = made.greedy()
    scored = pruning.by_score(np.random.default_rng(seed).random(sum(heads)), heads)
    for order in (greedy, scored):
        expected = [without[frozenset(order[:count])] for count in range(len(best))]
        assert made.curve(order).tolist() == expected
    for step, head in enumerate(greedy):
        next_sets = [frozenset([*greedy[:step], each]) for each in every]
        tried = [without[each] for each in next_sets if len(each) > step and each in without]
        assert without[next_sets[head]] == max(tried)
    alone = [without.get(frozenset([head]), 0.5) for head in every]  # without any, it guesses
    assert made.without_each_head().tolist() == alone


def test_random_orders_are_all_orders_in_the_mean():
    """Of two layers of two heads: the mean over all orders, which many draws approach."""
    heads = (2, 2)
    made = outputs(heads, count=200)
    curves = [
        made.curve(pruning.by_score(list(each), heads))
        for each in itertools.permutations(range(4))
    ]
    found = made.random_curve(5_000, 0)
    np.testing.assert_allclose(found, np.mean(curves, axis=0), atol=0.01)
    np.testing.assert_array_equal(found, made.random_curve(5_000, 0))


# Rules


def test_sensitivity_is_the_gradient_of_a_factor_on_each_head():
    """By autograd, one of each sample; each layer has norm 1."""
    heads = (2, 3)
    made = outputs(heads)
    found = scores.sensitivity(made)
    by_path, labels = torch.from_numpy(made.by_path), torch.from_numpy(made.labels)
    factors = torch.ones(len(labels), 5, dtype=torch.float64, requires_grad=True)
    products = (factors[:, :2, None] * factors[:, None, 2:]).flatten(1)
    ((by_path * products).sum(dim=1) - labels).square().sum().backward()
    means = factors.grad.abs().mean(dim=0).split(heads)
    expected = torch.cat([each / each.norm() for each in means])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
