"""The command `prune`: scores of brought heads, their orders, and every bad file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from chapters.paths.attention_paths import head_scores, path_features, solve
from chapters.paths.prune import main
from chapters.paths.prune.prune_options import SCORES
from study.terminal.command import DONE, UNUSABLE
from tests.made_up.commands import called

SAMPLES, HEADS, TOKENS, FEATURES = 24, (2, 3), 4, 5

Arrays = dict[str, Any]
Prune = Callable[..., tuple[int, str, str]]


@pytest.fixture
def prune(capsys: pytest.CaptureFixture[str]) -> Prune:
    """Calls the command with arguments."""
    return lambda *args: called(main, capsys, *map(str, args))


@pytest.fixture
def refused(prune: Prune, tmp_path: Path) -> Callable[[Path], str]:
    """What the command says of a file that is wrong; it leaves nothing behind."""

    def refused(file: Path) -> str:
        status, printed, errors = prune(file)
        assert (status, printed) == (UNUSABLE, "")
        assert list(tmp_path.iterdir()) == [file]
        return errors

    return refused


def network(*, of_heads: bool = True) -> Arrays:
    """Arrays of a network of two layers, whose labels depend on the last token."""
    random = np.random.default_rng(3)
    inputs = random.standard_normal((SAMPLES, TOKENS, FEATURES))
    arrays: Arrays = {"inputs": inputs, "labels": np.tile([-1, 1], SAMPLES // 2)}
    inputs[:, -1, 0] += arrays["labels"]
    for layer, heads in enumerate(HEADS, start=1):
        arrays[f"attention.{layer}"] = random.dirichlet(np.ones(TOKENS), (SAMPLES, heads, TOKENS))
        if of_heads:
            for name in ("outputs", "gradients"):
                values = random.standard_normal((SAMPLES, heads, TOKENS, 3))
                arrays[f"{name}.{layer}"] = values * np.arange(1, heads + 1)[:, None, None]
    return arrays


A = network()
MAPS, INPUTS = A["attention.1"], A["inputs"]


def npz(folder: Path, arrays: Arrays, name: str = "network.npz") -> Path:
    np.savez(folder / name, **arrays)
    return folder / name


def written(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """scores.csv, and order.json but for its file; there is nothing else."""
    assert sorted(path.name for path in folder.iterdir()) == ["order.json", "scores.csv"]
    order = json.loads((folder / "order.json").read_text())
    assert Path(order.pop("file")).is_file()
    return pd.read_csv(folder / "scores.csv"), order


# --- scores and orders


def test_scores_and_the_order_that_a_hand_can_check(prune, tmp_path):
    """Two layers: heads that attend to one token, to half of them, and to all alike."""
    one, half, alike = np.eye(4), np.kron(np.eye(2), np.full((2, 2), 0.5)), np.full((4, 4), 0.25)
    outputs = np.zeros((2, 3, 2))
    outputs[:, 0], outputs[0, 1], outputs[:, 2] = 3, 2, 1
    gradients = np.ones((2, 3, 2))
    gradients[1, 2] = -1  # the mean of absolute values, not the absolute value of the mean
    arrays = {
        "attention.1": np.stack([[half, alike, one]] * 2),
        "attention.2": np.stack([[one, alike]] * 2),
        "outputs.1": outputs,
        "outputs.2": np.ones((2, 2, 2)),
        "gradients.1": gradients,
        "gradients.2": np.zeros((2, 2, 2)),
    }
    status, printed, _ = prune(npz(tmp_path, arrays), "--by", "norm")
    assert status == DONE
    shown = ["".join(line.split()[:2]) for line in printed.splitlines()[1:6]]
    assert shown == ["13", "21", "12", "11", "22"]  # as they are removed
    rows, order = written(tmp_path / "network-heads")
    assert (10 * rows["layer"] + rows["head"]).tolist() == [11, 12, 13, 21, 22]
    np.testing.assert_allclose(rows["entropy"], [0.5, 0, 1, 1, 0], atol=1e-15)
    np.testing.assert_allclose(rows["norm"], [3, np.sqrt(2), 1, 1, 1])
    expected = [*np.array([6, 2, 2]) / np.sqrt(44), 0, 0]
    np.testing.assert_allclose(rows["sensitivity"], expected)
    assert order["order"] == {
        "norm": [[1, 3], [2, 1], [1, 2]],
        "sensitivity": [[2, 1], [1, 2], [1, 3]],
        "entropy": [[1, 2], [2, 2], [1, 1]],
    }
    assert (order["by"], order["theory"]) == ("norm", None)
    assert "No theory: it needs inputs and labels; the file has no inputs and no" in printed


def test_the_theory_is_that_of_the_project(prune, tmp_path):
    arrays = network()
    arrays["held_out"] = np.arange(SAMPLES) < 6
    options = ("--temperature", 0.3, "--width", 7, "--readout", "last")
    assert prune(npz(tmp_path, arrays), *options)[0] == DONE
    rows, order = written(tmp_path / "network-heads")
    maps = [arrays[f"attention.{layer}"].transpose(1, 0, 3, 2) for layer in (1, 2)]
    features = path_features(arrays["inputs"].transpose(0, 2, 1), maps, "last")
    solution = solve(features[6:], arrays["labels"][6:], HEADS, 7, 0.3)
    expected = np.concatenate(head_scores(solution.order_parameter, HEADS))
    np.testing.assert_allclose(rows["theory"], expected, rtol=1e-9)
    right = (np.sign(solution.predict(features[:6])[0]) == arrays["labels"][:6]).mean()
    told = order["theory"]
    assert (told["temperature"], told["accuracy_held_out"], told["num_paths"]) == (0.3, right, 6)
    assert told["residual"] < 1e-9
    assert order["missing"] == {}


def test_the_temperature_is_chosen_on_the_last_quarter(prune, tmp_path):
    """To choose on a quarter that is named is to choose the same."""
    arrays = network(of_heads=False)
    _, printed, _ = prune(npz(tmp_path, arrays))
    assert "of the 6 held-out samples, which chose the temperature." in " ".join(printed.split())
    table, order = written(tmp_path / "network-heads")
    prune(npz(tmp_path, arrays | {"held_out": np.arange(SAMPLES) >= 18}))
    again, other = written(tmp_path / "network-heads")
    pd.testing.assert_frame_equal(again, table)
    assert other == order


# --- files


def test_what_says_the_same_gets_the_same_scores(prune, tmp_path):
    """In bfloat16, which NumPy has not; with labels 0 and 1, and rows that sum to about 1."""
    arrays = network() | {"labels": A["labels"] > 0}
    tensors = {name: torch.tensor(array).to(torch.bfloat16) for name, array in arrays.items()}
    save_file(tensors, tmp_path / "tensors.safetensors")
    same = {name: tensor.double().numpy() for name, tensor in tensors.items()}
    same |= {"attention.2": same["attention.2"] * 1.005, "labels": A["labels"]}
    npz(tmp_path, same).rename(tmp_path / "arrays.NPZ")
    found = []
    for name in ("tensors.safetensors", "arrays.NPZ"):
        assert prune(tmp_path / name, "--temperature", 1)[0] == DONE
        rows, _ = written(tmp_path / f"{name.partition('.')[0]}-heads")
        found.append(rows[[*SCORES]])
    np.testing.assert_allclose(*found, rtol=1e-5)


def damaged(change: Callable[[bytes], bytes]) -> Callable[[Path, Arrays], Any]:
    """Writes a file of arrays, of either kind, and changes its bytes."""

    def write(file: Path, arrays: Arrays) -> None:
        if file.suffix == ".npz":
            np.savez(file, **arrays)
        else:
            save_file({name: torch.tensor(array) for name, array in arrays.items()}, file)
        file.write_bytes(change(file.read_bytes()))

    return write


UNREADABLE: dict[str, Callable[[Path, Arrays], Any]] = {
    "changed.npz": damaged(lambda data: data[:5_000] + bytes([data[5_000] ^ 255]) + data[5_001:]),
    "pickle.npz": lambda file, _: file.write_bytes(b"\x80\x04K\x01."),
    "objects.npz": lambda file, a: np.savez(file, **a | {"inputs": np.array([{}, []], object)}),
    "cut.safetensors": damaged(lambda data: data[:-40]),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_named(refused, tmp_path, name):
    """Nor is anything loaded that is pickled."""
    UNREADABLE[name](tmp_path / name, network())
    message = refused(tmp_path / name)
    assert f"{tmp_path / name} cannot be read (" in message
    assert (f"inputs in {tmp_path / name}" in message) == (name == "objects.npz")


def test_what_has_no_role_is_named_and_not_read_and_the_last_head_stays(prune, tmp_path):
    arrays = {"attention.1": MAPS[:, :1], "input": np.array([{}, []], object)}
    _, printed, _ = prune(npz(tmp_path, arrays))
    assert "Ignored, as they have no role: input." in printed
    assert written(tmp_path / "network-heads")[1]["order"] == {"entropy": []}


# --- wrong arrays


def changed(name: str, index: Any, value: float) -> Arrays:
    """One array with a wrong entry."""
    array = A[name].astype(np.float64)
    array[index] = value
    return {name: array}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {"attention.4": MAPS},
            "must be named attention.1, attention.2, attention.3; .*attention.4",
        ),
        ({"attention.1": MAPS[:, :, :2]}, r"\(samples, .*, tokens, tokens\).*got \(24, 2, 2, 4\)"),
        ({"inputs": INPUTS.swapaxes(1, 2)}, r"\(24, 4, features\).*24, 5, 4"),
        ({"outputs.2": A["outputs.1"]}, r"outputs.2 must .*\(24, 3, .*\), .*got \(24, 2, 4, 3\)"),
        ({"gradients.2": A["outputs.2"][..., 0]}, r"gradients.2 .*\(24, 3, 4, 3\)"),
        (changed("attention.2", (5, 1, 2, 3), -0.1), r"entry -0.1 at \(5, 1, 2\) of .* query\)"),
        (changed("attention.2", (5, 1, 2), 0.5), r"attention.2 must .* sum 2 .* at \(5, 1, 2\)"),
        ({"attention.1": MAPS.swapaxes(2, 3)}, "transpose the last two axes"),
        (changed("attention.1", (3, 0, 1, 2), np.nan), r"finite, got nan at index \(3, 0, 1, 2\)"),
        ({"labels": np.full(SAMPLES, "cat")}, "labels must be real numbers, got <U3"),
        ({"held_out": np.arange(SAMPLES) % 3}, "held_out must be true of some"),
    ],
)
def test_a_wrong_array_is_named(refused, tmp_path, arrays, words):
    assert re.search(words, refused(npz(tmp_path, A | arrays)))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"maps": MAPS}, "attention must be named attention.1; the file holds maps)"),
        ({"attention.1": MAPS[:1]}, "at least 2 samples and 2 tokens"),
        ({"attention.1": np.ones((5, 2, 1, 1))}, "at least 2 samples and 2 tokens"),
    ],
)
def test_a_file_needs_maps_of_two_samples_and_two_tokens(refused, tmp_path, arrays, words):
    assert words in refused(npz(tmp_path, arrays))


# --- the theory cannot be had


def unsolved(prune: Prune, file: Path, *args: object) -> str:
    """Why there is no theory; the other scores are there."""
    status, printed, _ = prune(file, *args)
    assert status == DONE
    rows, order = written(file.with_name(f"{file.stem}-heads"))
    assert "entropy" in rows
    assert "theory" not in rows
    reason = order["missing"]["theory"]
    assert f"No theory: {reason}." in " ".join(printed.split())
    return reason


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (A | {"labels": np.arange(SAMPLES) % 3}, "-1 and +1, or 0 and 1, got [0.0, 1.0, 2.0]"),
        (A | {"labels": np.arange(SAMPLES) >= 18}, "(n=18) are of class -1: shuffle"),
        (A | {"labels": np.arange(SAMPLES) >= 12}, "all held-out samples (n=6) are of class +1"),
        (A | {"inputs": 1e200 * A["inputs"]}, "its numbers overflow"),
        (
            {"inputs": np.ones((8, 2, 3)), "labels": [0, 1] * 4}
            | {f"attention.{layer}": np.full((8, 17, 2, 2), 0.5) for layer in (1, 2, 3)},
            "17 x 17 x 17 heads make 4,913 paths, at most 4,096 can be solved",
        ),
    ],
)
def test_a_network_without_theory_gets_the_other_scores(prune, tmp_path, arrays, words):
    assert words in unsolved(prune, npz(tmp_path, arrays))


def test_a_theory_that_memory_does_not_hold_is_said(prune, tmp_path, monkeypatch):
    monkeypatch.setattr("chapters.paths.attention_paths.size.Size.memory", 10**18)
    file = npz(tmp_path, network())
    words = "solving for 18 samples of 6 paths needs 1,000,000,000,000,"
    assert words in unsolved(prune, file)
    status, _, errors = prune(file, "--by", "theory")
    assert status == UNUSABLE
    assert f"--by theory is not possible: {words}" in errors


# --- the order, and the folder


def test_a_score_or_a_folder_that_cannot_be_is_refused_before_the_theory(
    prune, tmp_path, monkeypatch
):
    monkeypatch.setattr("chapters.paths.prune.scoring._theory", lambda *_: pytest.fail("solved"))
    file = npz(tmp_path, network(of_heads=False))
    (tmp_path / "taken").touch()
    for words, *args in (
        ("--by sensitivity is not possible: it needs outputs and", "--by", "sensitivity"),
        (f"the folder of the scores {tmp_path / 'taken'}", "--out", tmp_path / "taken"),
        ("cannot write to the folder of the scores /proc", "--out", "/proc/scores"),
    ):
        status, printed, errors = prune(file, *args)
        assert (status, printed) == (UNUSABLE, "")
        assert words in errors
        assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, "taken"]
