"""`python -m study.check` finds planted faults in the example, and says in words what they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from study import check, tasks
from study.check import of_studies
from study.terminal.command import DONE, FAILED
from tests.made_up.commands import called
from tests.made_up.parts import EXAMPLE, forgotten

SAMPLED = """
from search_spaces.base import Preset, SearchSpace
from study.paradigms.hard_sampled import HardSampled
from study.parts import register_paradigm, register_study

@register_paradigm
class Drawn(HardSampled):
    name = "drawn"

axes = {"m": (5,), "n": (100,), "architecture": ("perceptron",), "batch_size": (10,)}
axes |= {"epochs": (1,), "paradigm": ("soft",), "lr": (0.1,), "seed": (0,)}
register_study(SearchSpace("single", "digits", "one stage", {"quick": Preset("one", axes)}))
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


def test_the_example_keeps_every_promise(capsys):
    status, printed, errors = called(check.main, capsys, str(EXAMPLE))
    assert (status, errors) == (DONE, "")
    assert "BROKEN" not in printed
    for part in ("paradigm sparsemax", "model tiny-convolutions", "task shapes", "study shapes"):
        assert f"{part} ({EXAMPLE})" in printed


def test_what_cannot_be_checked_is_skipped_and_the_line_says_why(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(of_studies, "tiny_study", lambda *_: None)
    file = tmp_path / "sampled.py"
    file.write_text(SAMPLED)
    status, printed, _ = called(check.main, capsys, str(file))
    skipped = [line for line in printed.splitlines() if line.startswith("  skipped ")]
    assert status == DONE, printed
    assert {line.partition(": ")[2] for line in skipped} == {
        "its loss is sampled, so this is asked of hard alone",
        "no preset confirms anything",
    }
    assert sum("has the gradient of its loss, by finite differences" in line for line in skipped)
    assert f"promises that were checked are kept; {len(skipped)} skipped" in printed


def test_a_model_of_data_that_are_not_at_hand_is_not_trained(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "at_hand", lambda *_: False)
    file = tmp_path / "model.py"
    file.write_text(EXAMPLE.read_text().split("@register_task")[0])
    status, printed, _ = called(check.main, capsys, str(file))
    assert status == DONE, printed
    assert "BROKEN" not in printed
    assert "to its end: the data of digits is not at hand, give --data-dir DIR" in printed


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ('reduction="none")', 'reduction="mean")', "losses() of 7 mosaics has shape ()"),
        (
            "attended.classifier(attended.mixture)\n        return functional",
            "attended.classifier(attended.mixture.detach())\n        return functional",
            "the gradient for the weights of focus and classifier is not that of the loss",
        ),
        (".clamp(min=0)\n\n    def cost", ".abs()\n\n    def cost", "the sum of attention (1) is"),
        (
            "return m * focus_flops + classifier_flops",
            "return focus_flops + classifier_flops",
            "cost() says 12 for 5 segments, but the loss makes 5 calls of f and 1 of g, 52",
        ),
        ("mixes = True", "mixes = False", "mixes = False, but the classifier saw more"),
        (".softmax(dim=1)\n\n    def attend", "\n\n    def attend", "probabilities is negative"),
        (
            'exact = "sparsemax"',
            'exact = "sparsmax"',
            "exact = 'sparsmax': unknown paradigm 'sparsmax'. Did you mean 'sparsemax'",
        ),
        ("initialise(focus, 2 * seed)", "initialise(focus, 2)", "the focus is the same for two"),
        (
            "initialise(classifier, 2 * seed + 1)\n",
            "initialise(classifier, torch.randint(99, ()).item())\n",
            "draws from PyTorch's global random stream",
        ),
        (", nn.Flatten(0), precision", ", precision", "the focus gives (6, 1) for 6 segments"),
        (
            "nn.Conv2d(channels, filters, kernel),",
            "nn.Conv2d(channels, filters, kernel), nn.PReLU(),",
            "no cost is known for a PReLU layer",
        ),
        (
            "nn.ReLU(),",
            "nn.BatchNorm2d(filters, track_running_stats=False), nn.ReLU(),",
            "the focus on a batch and one by one is off by",
        ),
        ("np.random.default_rng(0)", "np.random.default_rng()", "loaded twice, its data are not"),
        ('"disc", "square", "cross")', '"disc", "sqare", "cross")', "unknown class 'sqare'"),
        (
            'register_task(\n    "shapes",\n    of_images("shapes", ("disc", "square", "cross"), '
            "draw_shapes, SHAPES),\n)",
            "from study.tasks.task import OTHERS, Declaration\n"
            'info = of_images("shapes", ("disc", "cross"), draw_shapes, SHAPES).info\n'
            'register_task("shapes", Declaration(OTHERS, info))',
            "the modality of train is not the declared one",
        ),
        ("tuple(range(100, 108))", "tuple(range(1, 9))", "on seeds that it tunes on: [1]"),
        ('"n": (2_000,)', '"nn": (2_000,)', "unknown axis in preset quick of shapes 'nn'"),
        ('"quick": Preset', '"fast": Preset', "it has no preset quick"),
        (
            "excess = largest_first",
            "excess = largest",
            "NameError: name 'largest' is not defined, {file}, line {line}",
        ),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found_and_named(
    right,
    wrong,
    found,
    tmp_path,
    capsys,
    monkeypatch,
):
    monkeypatch.setattr(of_studies, "tiny_study", lambda *_: None)
    text = EXAMPLE.read_text()
    assert text.count(right) == 1
    file = tmp_path / "faulty.py"
    file.write_text(text.replace(right, wrong))
    status, printed, _ = called(check.main, capsys, str(file))
    found = found.format(file=file, line=1 + text[: text.index(right)].count("\n"))
    broken = [line for line in printed.splitlines() if "BROKEN" in line]
    assert status == FAILED, printed
    assert sum(found in line for line in broken) == 1, printed  # however many it breaks
