"""Measures of one's own: recorded, tested where asked, and refused where they are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis import report
from analysis.page.tables import comparison_cells
from study import check, parts, run, tasks
from study.results import Results, ResultsError
from study.terminal.command import DONE, FAILED
from tests.made_up.commands import called, one_line
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.parts import forgotten

MEASURES = """
from study.parts import register_measure

@register_measure("unsure", "unsure of the class", larger_is_better=False)
def unsure(outputs):
    return outputs.probabilities.max(axis=1) < 0.9

@register_measure("margin", is_share=False)
def margin(outputs):
    return outputs.probabilities.max(axis=1) - outputs.probabilities.min(axis=1)

@register_measure("uneven")
def uneven(outputs):
    return float("nan") if outputs.mask.all() else outputs.mask.mean()
"""
TINY = ["n=100", "epochs=2", "paradigm=soft,lvml", "lr=0.1", "seed=0", "confirm=100", "m=4"]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


@pytest.fixture
def file(tmp_path: Path) -> str:
    file = tmp_path / "my_measures.py"
    file.write_text(MEASURES)
    return str(file)


@pytest.mark.usefixtures("without_ray", "no_pictures")
def test_every_evaluation_has_them_and_a_report_tests_those_that_are_asked_for(
    file, tmp_path, capsys
):
    place = str(tmp_path / "results")
    assert run.main(["digits", "--with", file, "--results", place, "--set", *TINY]) == DONE
    rows = Results(place).evaluations()
    found = [json.loads(text) for text in rows["measures"]]
    assert all({"unsure", "margin"} <= each.keys() for each in found)
    assert not any(
        "uneven" in each for each in found
    )  # where a number is not known, there is none
    last = rows.dropna(subset="instance_bits")
    for row in last.to_dict("records"):
        bits = np.frombuffer(dict(row["instance_bits"])["unsure"], np.uint8)
        unsure = np.unpackbits(bits, count=int(row["num_evaluated"]))
        assert unsure.mean() == pytest.approx(json.loads(row["measures"])["unsure"])
    (usual,) = analysis.compare_results(place)
    assert usual.metrics == ("saif", "accuracy")
    status, out, _ = called(report.main, capsys, place, "--with", file, "--test", "unsure")
    assert status == DONE
    assert "unsure of the class %" in out
    (of_margin,) = analysis.compare_results(place, test=["margin"])
    assert [*of_margin.paired["metric"].unique()] == ["margin"]
    header, _ = comparison_cells(of_margin)
    assert header[1] == "margin"  # in no per cent


def test_where_less_is_better_the_lower_is_better(file, tmp_path):
    parts.load([file])
    results = make_results(tmp_path / "results")
    for paradigm, mean in (("lvml", 0.2), ("soft", 0.5)):
        for seed in range(8):
            value = mean + 0.01 * (seed % 3) * (1 if paradigm == "soft" else 2)
            write(
                results,
                make_cell(paradigm, seed=seed),
                further=lambda _, value=value: {"measures": json.dumps({"unsure": value})},
            )
    (found,) = analysis.compare_results(results, test=["unsure"])
    (row,) = found.paired.to_dict("records")
    assert (row["first"], row["verdict"]) == ("lvml", "better")
    assert row["difference"] < 0
    assert "lvml beats soft in unsure of the class" in str(found)
    tasks.MEASURES.pop("unsure")
    with pytest.raises(ResultsError, match="name the file that registers it, --with"):
        analysis.compare_results(results, test=["unsure"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("return 'much'", "must be a number, or of each of the"),
        ("return outputs.attention", "must be a number, or of each of the"),
        ("return outputs.nothing", "nothing"),
    ],
)
def test_what_is_no_measure_is_found_by_the_check(text, said, tmp_path, capsys):
    file = tmp_path / "wrong.py"
    head = "from study.parts import register_measure\n\n@register_measure('mine')\n"
    file.write_text(f"{head}def mine(outputs):\n    {text}\n")
    status, out, _ = called(check.main, capsys, str(file))
    assert status == FAILED
    assert said in out


@pytest.mark.parametrize(
    "name", ["saif", "seed", "class", "focus", "saif_low", "token_f1", "follows", "no name"]
)
def test_a_name_that_is_taken_is_refused(name, tmp_path, capsys):
    file = tmp_path / "taken.py"
    head = f"from study.parts import register_measure\n\n@register_measure({name!r})\n"
    file.write_text(f"{head}def mine(outputs):\n    return 1.0\n")
    _, said = one_line(run.main, capsys, "digits", "--with", str(file), "--plan")
    assert name in said
