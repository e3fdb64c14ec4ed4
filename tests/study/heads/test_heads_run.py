"""Networks taken apart: theory as its functions give it, heads removed from the network itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study import models, tasks
from study.cell.events import Ended
from study.cell.work import Job
from study.errors import RequestError
from study.heads.apart import Apart, take_apart
from study.heads.cell import TEMPERATURES, HeadsCell
from study.launch.run_job import run_job
from study.models import kept
from study.models.attention_paths import AttentionPaths
from study.results import Results
from study.storage.storage import Storage
from study.theory.attention_paths import Solution, head_scores, path_features, solve
from study.theory.heads import pruning, scores
from study.train.steps.loop import train, train_pack
from tests.made_up.small_networks import cells, work

RULES = ("weight-norm", "entropy", "sensitivity", "random", "greedy", "bound")
HEADS = (2, 2)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A directory in which the small study has trained its network."""
    made = Results(tmp_path_factory.mktemp("results"))
    made.prepare()
    network = cells("method=theory")[0].network
    assert run_job(Job(((network,),)), work(made.url, network)) == {network.id: "done"}
    return made


@pytest.fixture(scope="module")
def model(results: Results) -> AttentionPaths:
    network = cells("method=theory")[0].network
    shape = tasks.load(network.task, options=network.options).facts.input_shape
    built = models.build(
        "attention-paths", network.task, shape, 2, further=models.further_of(network)
    )
    built.load_state_dict(kept.load(results.storage, network.id))
    assert isinstance(built, AttentionPaths)
    return built


@pytest.fixture(scope="module")
def apart(model: AttentionPaths) -> Apart:
    network = cells("method=theory")[0].network
    task: Any = tasks.load(network.task, options=network.options)
    return take_apart(model, network, task, 30, "digest")


def ended(results: Results, *made: HeadsCell, **given: Any) -> list[Ended]:
    from study.heads.run import run

    return run(made, work(results.url, *made, **given))


def rows(found: Ended) -> dict[str, dict[str, Any]]:
    return {row["split"]: dict(row) for row in found.evaluations}


# The network


def test_what_is_kept_is_what_was_trained(results: Results) -> None:
    """And what a second training gives, bitwise; its last evaluation leaves out each head."""
    network = cells("method=theory")[0].network
    task = tasks.load(network.task, options=network.options)
    outcome = train(network, task)
    weights = kept.load(results.storage, network.id)
    assert outcome.weights is not None
    assert weights.keys() == outcome.weights.keys()
    assert all(torch.equal(weights[name], outcome.weights[name]) for name in weights)
    recorded = results.evaluations([network.id])
    known = recorded[recorded["accuracy_without_head"].notna()]
    assert known[["split", "budget_fraction"]].values.tolist() == [["test", 1.0]]
    assert len(known["accuracy_without_head"].iloc[0]) == 4


def test_a_kill_between_network_and_record_changes_nothing(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = cells("method=theory")[0].network
    killed = Results(tmp_path)
    killed.prepare()

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Results, "write_cell", kill)
        with pytest.raises(KeyboardInterrupt):
            run_job(Job(((network,),)), work(killed.url, network))
    assert killed.storage.exists(kept.file_of(network.id))
    assert run_job(Job(((network,),)), work(killed.url, network)) == {network.id: "done"}
    both = [each.cells([network.id]).iloc[0]["network_digest"] for each in (results, killed)]
    assert both[0] == both[1] == kept.digest(kept.load(killed.storage, network.id))


def test_a_pack_keeps_the_weights_of_each_network() -> None:
    found = cells("method=theory", "seed=0,1")
    networks = [cell.network for cell in found]
    task = tasks.load(networks[0].task, options=networks[0].options)
    packed = train_pack(networks, task)
    for network, outcome in zip(networks, packed, strict=True):
        alone = train(network, task)
        assert outcome.weights is not None
        assert alone.weights is not None
        assert kept.digest(outcome.weights) == kept.digest(alone.weights)
    assert packed[0].weights is not packed[1].weights


def test_apart_is_the_network(model: AttentionPaths, apart: Apart) -> None:
    """What paths add sums to the output, with features that the theory computes."""
    cell = cells("method=theory")[0]
    task: Any = tasks.load(cell.task, options=cell.options)
    test = task.splits(cell.network)["test"]
    episodes = test.batch(torch.arange(len(test)))
    with torch.no_grad():
        images = episodes.segments.double()
        expected = model.double()(images).numpy()
        tokens = model.encoder(images)
        maps = model.focus(tokens)
    np.testing.assert_allclose(apart.by_path["test"].sum(axis=1), expected, rtol=1e-9, atol=1e-12)
    assert apart.splits["test"].labels.tolist() == (2 * episodes.labels - 1).tolist()
    attention = [layer.transpose(0, 1).mT.numpy() for layer in maps]
    features = path_features(tokens.mT.numpy(), attention, readout="mean")
    np.testing.assert_allclose(apart.splits["test"].features, features, rtol=1e-12)


def test_examples_of_the_theory_are_other_episodes_than_those_trained_on(apart: Apart) -> None:
    cell = cells("method=theory")[0]
    task: Any = tasks.load(cell.task, options=cell.options)
    trained = {tuple(row) for row in task.splits(cell.network)["train"].index.tolist()}
    examples = task.drawn("train", 30, cell.seed, stream="theory").index.tolist()
    assert len({tuple(row) for row in examples} & trained) < 5
    assert apart.splits["train"].features.shape[:2] == (30, 4)


# Theory


def test_theory_is_what_solve_gives_at_the_best_validation_temperature(
    results: Results, apart: Apart
) -> None:
    (found,) = ended(results, *cells("method=theory"))
    held_out, training = apart.splits["validation"], apart.splits["train"]
    ranked = []
    for heat in TEMPERATURES:
        solution = solve(*training, HEADS, 5, heat)
        mean, variance = solution.predict(held_out.features)
        noise = variance + heat
        nats = np.mean(np.log(2 * np.pi * noise) + (held_out.labels - mean) ** 2 / noise) / 2
        right = (np.sign(mean) == held_out.labels).mean()
        ranked.append((right, -nats, heat, solution))
    *_, heat, best = max(ranked, key=lambda each: each[:2])
    assert found.columns["temperature"] == heat
    mean, _ = best.predict(apart.splits["test"].features)
    np.testing.assert_allclose(rows(found)["test"]["predictor_mean"], mean, rtol=1e-6, atol=1e-9)
    expected = np.concatenate(head_scores(best.order_parameter, HEADS))
    np.testing.assert_allclose(found.columns["head_scores"], expected, rtol=1e-6)
    order = pruning.by_score(expected.tolist(), HEADS)
    assert found.columns["removal_order"] == order
    test = apart.by_path["test"], apart.splits["test"].labels
    curve = pruning.curve(*test, order, HEADS)
    assert rows(found)["test"]["accuracy_pruned"] == curve.tolist()
    assert found.columns["path_names"] == ["1,1", "1,2", "2,1", "2,2"]


def test_the_published_choice_is_made_on_the_test_episodes(results: Results, apart: Apart) -> None:
    one, other = ended(results, *cells("method=theory", "temperature=published,validation"))
    accuracy = {}
    for heat in TEMPERATURES:
        mean, _ = solve(*apart.splits["train"], HEADS, 5, heat).predict(
            apart.splits["test"].features
        )
        accuracy[heat] = (np.sign(mean) == apart.splits["test"].labels).mean()
    assert rows(one)["test"]["accuracy"] == max(accuracy.values())
    assert rows(other)["test"]["accuracy"] <= rows(one)["test"]["accuracy"]


def test_the_limit_scores_all_heads_alike_and_so_gives_no_order(results: Results) -> None:
    (found,) = ended(results, *cells("method=gp"))
    assert found.columns.get("head_scores") is found.columns.get("removal_order") is None
    assert "accuracy_pruned" not in rows(found)["test"]
    assert found.columns["order_parameter"] == np.eye(4).ravel().tolist()


def test_no_temperature_without_a_solution_ends_as_diverged(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if no search came to its end."""
    from study.posterior import methods

    def unfinished(*given: Any, **named: Any) -> Solution:
        return dataclasses.replace(solve(*given, **named), converged=False)

    monkeypatch.setattr(methods, "solve", unfinished)
    (found,) = ended(results, *cells("method=theory"))
    assert found.status == "diverged"
    assert "saddle point was not found at temperature 1.5" in found.columns["status_reason"]
    assert found.evaluations == []


# Rules


def test_rules_are_their_functions(results: Results, apart: Apart) -> None:
    found = dict(zip(RULES, ended(results, *cells(f"method={','.join(RULES)}")), strict=True))
    train_outputs = apart.by_path["train"], apart.splits["train"].labels
    expected = {
        "weight-norm": scores.weight_norm(list(apart.values)),
        "entropy": apart.focus,
        "sensitivity": scores.sensitivity(*train_outputs, HEADS),
    }
    test = apart.by_path["test"], apart.splits["test"].labels
    for name, values in expected.items():
        np.testing.assert_allclose(found[name].columns["head_scores"], values, rtol=1e-12)
        curve = pruning.curve(*test, pruning.by_score(values.tolist(), HEADS), HEADS)
        assert rows(found[name])["test"]["accuracy_pruned"] == curve.tolist()
    held_out = apart.by_path["validation"], apart.splits["validation"].labels
    assert found["greedy"].columns["removal_order"] == pruning.greedy(*held_out, HEADS)
    for name, each in found.items():
        last = rows(each)["test"]
        assert last["accuracy"] == last["accuracy_pruned"][0]
        assert (name in ("random", "bound")) == (each.columns.get("removal_order") is None)
        bound = rows(found["bound"])["test"]["accuracy_pruned"]
        for curve in (last["accuracy_pruned"], last.get("accuracy_pruned_reverse", [])):
            assert all(a <= b for a, b in zip(curve, bound, strict=False))


def test_the_reverse_removes_high_scores_first(results: Results, apart: Apart) -> None:
    """Three heads a layer, so that the two that stay are not those that stay otherwise."""
    (cell,) = cells("method=weight-norm", "heads=3")
    run_job(Job(((cell.network,),)), work(results.url, cell.network))
    (found,) = ended(results, cell)
    heads, norms = (3, 3), found.columns["head_scores"]
    one, other = (sorted(part, reverse=True) for part in (norms[:3], norms[3:]))
    expected = sorted([*one[:2], *other[:2]], reverse=True)
    reverse = pruning.by_score([-score for score in norms], heads)
    assert [norms[head] for head in reverse] == expected
    task: Any = tasks.load(cell.task, options=cell.options)
    model = models.build(
        "attention-paths", cell.task, (1, 8, 8), 2, further=models.further_of(cell.network)
    )
    model.load_state_dict(kept.load(results.storage, cell.network.id))
    assert isinstance(model, AttentionPaths)
    own = take_apart(model, cell.network, task, 30, "digest")
    curve = pruning.curve(own.by_path["test"], own.splits["test"].labels, reverse, heads)
    assert rows(found)["test"]["accuracy_pruned_reverse"] == curve.tolist()


def test_flops_are_of_all_temperatures(results: Results, apart: Apart) -> None:
    """Of every search and every prediction, so more than those of each alone."""
    (found,) = ended(results, *cells("method=theory"))
    (alone,) = ended(results, *cells("method=theory", "temperature=0.5"))
    searched = solve(*apart.splits["train"], HEADS, 5, 0.5)
    assert alone.columns["steps"] == searched.iterations
    flops = rows(alone)["test"]["compute_flops"]
    assert searched.flops < flops < rows(found)["test"]["compute_flops"]
    assert found.columns["steps"] > 3 * searched.iterations
    assert found.columns["temperatures"] == list(TEMPERATURES)


# What can be wrong


def test_a_missing_or_damaged_network_is_named(results: Results, tmp_path: Path) -> None:
    elsewhere = Results(tmp_path)
    elsewhere.prepare()
    (cell,) = cells("method=entropy", "examples=29")
    with pytest.raises(RequestError, match=r"lacks the network networks/\w+\.safetensors\. Copy"):
        ended(elsewhere, cell)
    whole = results.storage.read(kept.file_of(cell.network.id))
    for damage in (whole[:-200], b"no archive", b""):
        elsewhere.storage.write(kept.file_of(cell.network.id), damage)
        with pytest.raises(RequestError, match=r"networks/\w+\.safetensors is damaged"):
            ended(elsewhere, cell)


def test_networks_may_lie_elsewhere(results: Results, tmp_path: Path) -> None:
    """As a repetition has it, which records in a directory of its own."""
    (cell,) = cells("method=entropy", "examples=28")
    elsewhere = Results(tmp_path)
    elsewhere.prepare()
    (found,) = ended(elsewhere, cell, networks=results.url)
    assert found.status == "done"


def test_a_dry_run_takes_an_untrained_network(tmp_path: Path) -> None:
    made = cells("method=theory,bound")
    assert run_job(Job((tuple(made),)), work(tmp_path, made[0], dry_run=True)) == {
        c.id: "done" for c in made
    }
    assert not list(tmp_path.iterdir())


def test_one_hot_heads_give_the_order_parameter_that_a_hand_makes() -> None:
    """Heads that each pick one token; the label is in the token that head 2 picks.

    One layer: U is diagonal but for what both tokens share, and the theory scores head 2 highest.
    """
    random = np.random.default_rng(0)
    labels = random.choice([-1.0, 1.0], 60)
    inputs = random.standard_normal((60, 4, 2))
    inputs[:, :, 1] = labels[:, None] + 0.1 * inputs[:, :, 1]
    picks = np.zeros((2, 60, 2, 2))
    picks[0, :, 0], picks[1, :, 1] = 1, 1  # [s, t]: every t takes token s
    features = path_features(inputs, [picks], readout="mean")
    np.testing.assert_allclose(features, inputs.transpose(0, 2, 1) / np.sqrt(4 * 2))
    solution = solve(features, labels, (2,), 5, 0.1)
    u = solution.order_parameter
    first, second = head_scores(u, (2,))[0]
    assert second == 1
    assert first == pytest.approx(
        (abs(u[0, 0]) + 2 * abs(u[0, 1])) / (abs(u[1, 1]) + 2 * abs(u[0, 1]))
    )
    # Heads are counted in any order: that of the scores follows.
    swapped = solve(features[:, ::-1], labels, (2,), 5, 0.1)
    np.testing.assert_allclose(swapped.order_parameter, u[::-1, ::-1], rtol=1e-6, atol=1e-9)


def test_storage_of_networks_is_whole(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.make(kept.FOLDER)
    weights = {"a.b": torch.arange(6.0).reshape(2, 3), "c": torch.tensor(1.5)}
    kept.keep(storage, "cell", weights)
    loaded = kept.load(storage, "cell")
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
