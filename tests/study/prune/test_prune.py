"""The command `study.prune`: scores of brought heads, their orders, and every bad file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from threadpoolctl import threadpool_limits

from study.prune import main
from study.storage.storage import Storage
from study.terminal.command import DONE, UNUSABLE
from study.theory.attention_paths import head_scores, path_features, solve
from study.theory.heads.scores import by_layer
from tests.made_up.commands import called

SAMPLES, HEADS, TOKENS, FEATURES = 24, (2, 3), 4, 5

Arrays = dict[str, Any]
Prune = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices only wait for further threads."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def prune(capsys: pytest.CaptureFixture[str]) -> Prune:
    """Calls the command with arguments."""
    return lambda *args: called(main, capsys, *map(str, args))


@pytest.fixture
def refused(prune: Prune, tmp_path: Path) -> Callable[..., str]:
    """What the command says of an array that is wrong, or of a file; it leaves nothing behind."""

    def refused(what: Arrays | Path, *args: object) -> str:
        file = what if isinstance(what, Path) else npz(tmp_path, what)
        before = sorted(tmp_path.rglob("*"))
        status, printed, errors = prune(file, *args)
        assert (status, printed) == (UNUSABLE, "")
        assert errors.startswith("study.prune: ")
        assert errors.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
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


def npz(folder: Path, arrays: Arrays, name: str = "network.npz") -> Path:
    np.savez(folder / name, **arrays)
    return folder / name


def written(folder: Path) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """Rows of scores.csv, and order.json; there is nothing else."""
    assert sorted(path.name for path in folder.iterdir()) == ["order.json", "scores.csv"]
    with open(folder / "scores.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return rows, json.loads((folder / "order.json").read_text())


def column(rows: list[dict[str, str]], name: str) -> list[float]:
    return [float(row[name]) for row in rows]


# --- scores and orders


def test_scores_and_the_order_that_a_hand_can_check(prune: Prune, tmp_path: Path) -> None:
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
    status, printed, errors = prune(npz(tmp_path, arrays))
    assert (status, errors) == (DONE, "")
    rows, order = written(tmp_path / "network-heads")
    places = [(int(row["layer"]), int(row["head"])) for row in rows]
    assert places == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    np.testing.assert_allclose(column(rows, "entropy"), [0.5, 0, 1, 1, 0], atol=1e-15)
    np.testing.assert_allclose(column(rows, "norm"), [3, np.sqrt(2), 1, 1, 1])
    expected = [*np.array([6, 2, 2]) / np.sqrt(44), 0, 0]
    np.testing.assert_allclose(column(rows, "sensitivity"), expected)
    assert [row["removed_entropy"] for row in rows] == ["3", "1", "", "", "2"]
    assert order["order"] == {
        "norm": [[1, 3], [2, 1], [1, 2]],
        "sensitivity": [[2, 1], [1, 2], [1, 3]],
        "entropy": [[1, 2], [2, 2], [1, 1]],
    }
    assert (order["by"], order["theory"]) == ("sensitivity", None)
    assert "Remove by sensitivity (layer.head): 2.1, 1.2, 1.3; each layer" in printed
    assert (
        "No theory: it takes inputs and labels; the file has no inputs and no labels." in printed
    )


@pytest.mark.parametrize("readout", ["mean", "last"])
def test_the_theory_is_that_of_the_project(prune: Prune, tmp_path: Path, readout: Any) -> None:
    arrays = network()
    arrays["held_out"] = np.arange(SAMPLES) < 6
    options = ("--temperature", 0.3, "--width", 7, "--readout", readout)
    assert prune(npz(tmp_path, arrays), *options)[0] == DONE
    rows, order = written(tmp_path / "network-heads")
    maps = [arrays[f"attention.{layer}"].transpose(1, 0, 3, 2) for layer in (1, 2)]
    features = path_features(arrays["inputs"].transpose(0, 2, 1), maps, readout)
    solution = solve(features[6:], arrays["labels"][6:], HEADS, 7, 0.3)
    expected = np.concatenate(head_scores(solution.order_parameter, HEADS))
    np.testing.assert_allclose(column(rows, "theory"), expected, rtol=1e-9)
    right = (np.sign(solution.predict(features[:6])[0]) == arrays["labels"][:6]).mean()
    assert order["theory"] == {
        "width": 7,
        "temperature": 0.3,
        "readout": readout,
        "residual": order["theory"]["residual"],
        "accuracy_held_out": right,
        "num_paths": 6,
    }
    assert order["theory"]["residual"] < 1e-9
    assert order["missing"] == {}
    slopes = [
        np.abs((arrays[f"outputs.{n}"] * arrays[f"gradients.{n}"]).sum((2, 3))).mean(0)
        for n in (1, 2)
    ]
    np.testing.assert_allclose(column(rows, "sensitivity"), by_layer(slopes))


def test_the_temperature_is_chosen_on_the_last_quarter(prune: Prune, tmp_path: Path) -> None:
    """And none of three others does better there."""
    arrays = network(of_heads=False)
    file = npz(tmp_path, arrays)
    status, printed, _ = prune(file)
    assert status == DONE
    chosen = written(tmp_path / "network-heads")[1]["theory"]
    assert "solved on 18 samples; right of 6 held out" in printed
    assert "(chosen on these)" in printed
    for temperature in (0.01, 0.3, 1.5):
        prune(file, "--temperature", temperature, "--out", tmp_path / "fixed")
        fixed = written(tmp_path / "fixed")[1]["theory"]
        assert fixed["accuracy_held_out"] <= chosen["accuracy_held_out"]


def test_labels_0_and_1_are_those_of_minus_1_and_1(prune: Prune, tmp_path: Path) -> None:
    arrays = network(of_heads=False)
    prune(npz(tmp_path, arrays, "signs.npz"), "--temperature", 1)
    arrays["labels"] = arrays["labels"] > 0
    prune(npz(tmp_path, arrays, "bits.npz"), "--temperature", 1)
    assert written(tmp_path / "signs-heads") == written(tmp_path / "bits-heads")


# --- files


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_both_kinds_of_file_give_equal_scores(
    prune: Prune, tmp_path: Path, dtype: torch.dtype
) -> None:
    """NumPy has no bfloat16: there, its values are cast to float32, and divided by their sums."""
    tensors = {name: torch.tensor(array) for name, array in network().items()}
    tensors = {n: t.to(dtype) if n != "labels" else t for n, t in tensors.items()}
    save_file(tensors, tmp_path / "tensors.safetensors")
    arrays = {n: (t.float() if dtype == torch.bfloat16 else t).numpy() for n, t in tensors.items()}
    if dtype == torch.bfloat16:
        for name in ("attention.1", "attention.2"):
            exact = arrays[name].astype(np.float64)
            arrays[name] = exact / exact.sum(axis=-1, keepdims=True)
    for file in (tmp_path / "tensors.safetensors", npz(tmp_path, arrays, "arrays.npz")):
        assert prune(file, "--temperature", 1)[0] == DONE
    assert written(tmp_path / "tensors-heads") == written(tmp_path / "arrays-heads")


def test_the_suffix_may_be_in_capitals(prune: Prune, tmp_path: Path) -> None:
    file = npz(tmp_path, network(of_heads=False))
    assert prune(file.rename(tmp_path / "network.NPZ"), "--temperature", 1)[0] == DONE
    assert written(tmp_path / "network-heads")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("keep", [0, 5, 300, -40])
def test_a_truncated_file_is_damaged(
    refused: Callable[..., str], tmp_path: Path, suffix: str, keep: int
) -> None:
    file = tmp_path / f"network{suffix}"
    arrays = network()
    if suffix == ".npz":
        np.savez_compressed(file, **arrays)
    else:
        save_file({name: torch.tensor(array) for name, array in arrays.items()}, file)
    file.write_bytes(file.read_bytes()[:keep])
    assert f"{file} is damaged (" in refused(file)


def test_bytes_that_changed_are_noticed(refused: Callable[..., str], tmp_path: Path) -> None:
    file = npz(tmp_path, network())
    data = bytearray(file.read_bytes())
    data[5_000] ^= 255
    file.write_bytes(data)
    assert f"{file} is damaged (" in refused(file)


@pytest.mark.parametrize("pickled", ["array", "file"])
def test_nothing_pickled_is_loaded(
    refused: Callable[..., str], tmp_path: Path, pickled: str
) -> None:
    if pickled == "array":
        text = refused({**network(), "inputs": np.array([{}, []], dtype=object)})
        assert "inputs in " in text
        assert "pickled objects, which are not loaded" in text
    else:
        (tmp_path / "network.npz").write_bytes(b"\x80\x04K\x01.")
        assert "is damaged" in refused(tmp_path / "network.npz")


def test_a_type_that_is_not_read_is_named(refused: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "network.safetensors"
    save_file({"attention.1": torch.zeros(2, 1, 2, 2).to(torch.float8_e4m3fn)}, file)
    assert "attention.1 in " in (text := refused(file))
    assert "float8_e4m3fn, which is not read. Save it as float32" in text


# --- wrong arrays


def changed(name: str, index: Any, value: float) -> Arrays:
    """A network with one wrong entry."""
    arrays = network()
    arrays[name] = arrays[name].astype(np.float64)
    arrays[name][index] = value
    return arrays


def replaced(**arrays: Any) -> Arrays:
    """A network with other arrays; `attention_1` stands for attention.1, None removes one."""
    named = {key.replace("__", "."): value for key, value in arrays.items()}
    return {n: a for n, a in {**network(), **named}.items() if a is not None}


A = network()
WRONG: dict[str, tuple[Arrays, str]] = {
    "no attention": ({"maps": np.ones(3)}, "attention.1 is missing: the file holds maps."),
    "nothing": ({}, "attention.1 is missing: the file holds no array."),
    "gap": (
        replaced(attention__4=A["attention.1"]),
        "attention.3 is missing: there is attention of layers 1, 2, 4 of 4.",
    ),
    "layer 0": (replaced(attention__0=A["attention.1"]), "attention.0 must end in the number"),
    "a huge layer": (
        {"attention.999999999999": A["attention.1"]},
        "attention.1 is missing: there is attention of layers 999999999999 of",
    ),
    "outputs of one layer": (replaced(outputs__1=None), "outputs.1 is missing: there is outputs"),
    "gradients of a third": (
        replaced(gradients__3=A["outputs.1"]),
        "gradients.3 has no attention",
    ),
    "axes of attention": (
        replaced(attention__2=A["attention.2"][0]),
        "attention.2 must have the axes (samples, heads, queries, keys), none empty, got",
    ),
    "axes of inputs": (replaced(inputs=A["inputs"][0]), "inputs must have the axes (samples, tok"),
    "axes of labels": (
        replaced(labels=A["labels"][:, None]),
        "labels must have the axes (samples",
    ),
    "axes of outputs": (
        replaced(outputs__1=np.ones((SAMPLES, 2))),
        "outputs.1 must have the axes",
    ),
    "an empty array": (replaced(inputs=A["inputs"][:, :, :0]), "inputs must have the axes"),
    "queries": (
        replaced(attention__1=A["attention.1"][:, :, :2]),
        "attention.1 must have as many queries as keys, got 2 and 4",
    ),
    "samples of a layer": (
        replaced(attention__2=A["attention.2"][1:]),
        "attention.2 has 23 samples of 4 tokens, but attention.1 has 24 of 4",
    ),
    "tokens of a layer": (
        replaced(attention__2=np.full((SAMPLES, 3, 2, 2), 0.5)),
        "attention.2 has 24 samples of 2 tokens, but attention.1 has 24 of 4",
    ),
    "tokens of inputs": (
        replaced(inputs=A["inputs"].swapaxes(1, 2)),
        "inputs must have 24 samples and 4 tokens, as attention has, got the shape (24, 5, 4)",
    ),
    "samples of labels": (replaced(labels=A["labels"][1:]), "labels must have 24 samples"),
    "samples of held_out": (replaced(held_out=np.ones(3, bool)), "held_out must have 24 samples"),
    "heads of outputs": (
        replaced(outputs__2=A["outputs.1"]),
        "outputs.2 must have 24 samples and 3 heads, as attention has",
    ),
    "shape of gradients": (
        replaced(gradients__2=A["gradients.2"][..., :1]),
        "gradients.2 must have the shape (24, 3, 4, 3) of outputs.2, got (24, 3, 4, 1)",
    ),
    "negative": (
        changed("attention.2", (5, 1, 2, 3), -0.1),
        "attention.2 must be >= 0, got -0.1 at [5, 1, 2, 3]",
    ),
    "sums": (
        changed("attention.2", (5, 1, 2), 0.5),
        "attention.2: every row must sum to 1 (to 1e-05), got 2 in sample 5, head 1, query 2. "
        "The axes are (samples, heads, queries, keys), with the softmax over the last one",
    ),
    "sums of halves": (
        replaced(attention__1=(A["attention.1"] * 1.02).astype(np.float16)),
        "attention.1: every row must sum to 1 (to 0.01), got 1.0",
    ),
    "columns": (
        replaced(attention__1=A["attention.1"].swapaxes(2, 3)),
        "Columns sum to 1 instead: transpose the last two axes.",
    ),
    "NaN in attention": (
        changed("attention.1", (3, 0, 1, 2), np.nan),
        "attention.1 must be finite, got nan at [3, 0, 1, 2]",
    ),
    "inf in inputs": (
        changed("inputs", (7, 0, 1), np.inf),
        "inputs must be finite, got inf at [7",
    ),
    "NaN in labels": (changed("labels", 2, np.nan), "labels must be finite, got nan at [2]"),
    "NaN in gradients": (changed("gradients.2", (1, 2, 3, 0), np.nan), "gradients.2 must be fini"),
    "three classes": (
        replaced(labels=np.arange(SAMPLES) % 3),
        "labels must be -1 and +1, or 0 and 1, got 0, 1, 2: the theory is of two classes.",
    ),
    "labels 0 and -1": (replaced(labels=-(A["labels"] > 0).astype(int)), "got -1, 0"),
    "held out 2": (replaced(held_out=np.arange(SAMPLES)), "held_out must be true or false"),
    "all held out": (
        replaced(held_out=np.ones(SAMPLES, bool)),
        "held_out must be true of some samples, got all",
    ),
    "whole numbers": (
        replaced(attention__1=np.zeros((SAMPLES, 2, 4, 4), int)),
        "attention.1 must be float16, bfloat16 (.safetensors), float32 or float64, got int64",
    ),
    "words": (replaced(labels=np.full(SAMPLES, "cat")), "or whole numbers, got <U3"),
    "one sample": ({"attention.1": np.ones((1, 2, 3, 3)) / 3}, "at least 2 samples, got 1"),
    "one token": ({"attention.1": np.ones((5, 2, 1, 1))}, "at least 2 tokens, got 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_array_is_named(refused: Callable[..., str], case: str) -> None:
    arrays, words = WRONG[case]
    assert words in refused(arrays)


# --- the theory cannot be had


def unsolved(prune: Prune, file: Path, *args: object) -> str:
    """Why there is no theory; the other scores are there."""
    status, printed, _ = prune(file, *args)
    assert status == DONE
    rows, order = written(file.with_name(f"{file.stem}-heads"))
    assert "entropy" in rows[0]
    assert "theory" not in rows[0]
    reason = order["missing"]["theory"]
    assert f"No theory: {reason}." in " ".join(printed.split())
    return reason


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {**A, "labels": np.arange(SAMPLES) >= 18},
            "the samples that it learns from are all of class -1: shuffle the samples",
        ),
        ({**A, "labels": np.arange(SAMPLES) >= 12}, "the held-out samples are all of class +1"),
        (
            {**A, "held_out": np.arange(SAMPLES) > 0},
            "the samples that it learns from are 1, at least 2 are needed",
        ),
        (
            {"inputs": np.ones((8, 2, 3)), "labels": [0, 1] * 4}
            | {f"attention.{layer}": np.full((8, 17, 2, 2), 0.5) for layer in (1, 2, 3)},
            "17 x 17 x 17 heads make 4,913 paths, at most 4,096 are solved",
        ),
    ],
)
def test_a_network_without_theory_gets_the_other_scores(
    prune: Prune, tmp_path: Path, arrays: Arrays, words: str
) -> None:
    assert words in unsolved(prune, npz(tmp_path, arrays))


def test_too_little_memory_and_no_saddle_point_are_said(
    prune: Prune,
    tmp_path: Path,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = npz(tmp_path, network())
    with monkeypatch.context() as patch:
        patch.setattr("study.prune.theory.memory", lambda *_: 10**18)
        words = "solving for 24 samples of 6 paths needs 1,000,000,000,000,"
        assert words in unsolved(prune, file)
    monkeypatch.setattr(
        "study.posterior.methods.solve",
        lambda *args, **options: solve(*args, **options, iterations=0),
    )
    monkeypatch.setattr("study.theory.attention_paths.solution.TOLERANCE", 0.0)
    assert "the saddle point was not found at temperature 0.3 (residual" in unsolved(
        prune, file, "--temperature", 0.3
    )
    text = refused(file, "--temperature", 0.3, "--by", "theory", "--out", tmp_path / "other")
    assert "--by theory is not possible: the saddle point was not found" in text


def test_a_long_theory_is_announced(
    prune: Prune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.prune.theory._LONG", 0.0)
    status, _, errors = prune(npz(tmp_path, network()))
    assert status == DONE
    assert errors.startswith("theory of 6 paths at 10 temperatures: about 0 s")


def test_a_score_that_the_file_cannot_give_is_refused(refused: Callable[..., str]) -> None:
    text = refused(network(of_heads=False), "--by", "sensitivity")
    assert "--by sensitivity is not possible: it takes outputs.1 to outputs.2 and" in text


def test_the_order_asked_for_comes_first(prune: Prune, tmp_path: Path) -> None:
    _, printed, _ = prune(npz(tmp_path, network()), "--by", "norm", "--temperature", 1)
    order = written(tmp_path / "network-heads")[1]
    assert order["by"] == "norm"
    first = [line.split()[:2] for line in printed.splitlines()[1:4]]
    assert [[int(number) for number in place] for place in first] == order["order"]["norm"]


def test_arrays_without_a_role_are_named(prune: Prune, tmp_path: Path) -> None:
    arrays = {"attention.1": A["attention.1"], "input": A["inputs"]}
    _, printed, _ = prune(npz(tmp_path, arrays))
    assert "Ignored, as they have no role: input." in printed


# --- the folder


def test_a_file_in_the_way_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "network-heads").touch()
    assert "network-heads is a file: nothing can be written" in refused(network())
    (tmp_path / "taken" / "scores.csv").mkdir(parents=True)
    assert "scores.csv is a directory." in refused(network(), "--out", tmp_path / "taken")


def test_a_folder_that_cannot_be_written_is_refused_before_the_file_is_read(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.prune.network.read", lambda _: pytest.fail("read"))
    text = refused(network(), "--out", "/proc/scores")
    assert "cannot write to the folder of the scores /proc" in text


def test_a_full_disk_leaves_no_half_file(
    prune: Prune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was there before stays."""
    file = npz(tmp_path, network(of_heads=False))
    prune(file, "--temperature", 1)
    before = written(tmp_path / "network-heads")

    def full(path: str, to: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    status, _, errors = prune(file, "--temperature", 0.1)
    assert status == UNUSABLE
    assert "No space left on device" in errors
    assert written(tmp_path / "network-heads") == before
    assert Storage(str(tmp_path / "network-heads")).names("") == ["order.json", "scores.csv"]


# --- large arrays


def test_scores_do_not_depend_on_how_many_samples_are_read_at_once(
    prune: Prune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = npz(tmp_path, network())
    prune(file, "--temperature", 1)
    whole, _ = written(tmp_path / "network-heads")
    monkeypatch.setattr("study.prune.checks._BYTES_AT_ONCE", 3_000)
    prune(file, "--temperature", 1)
    parts, _ = written(tmp_path / "network-heads")
    for name in ("theory", "norm", "sensitivity", "entropy"):
        np.testing.assert_allclose(column(parts, name), column(whole, name), rtol=1e-9)
    wrong = changed("attention.2", (20, 1, 2, 3), -0.1)
    assert "at [20, 1, 2, 3]" in prune(npz(tmp_path, wrong))[2]
