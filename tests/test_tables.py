"""The printed tables say what the summary says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import analysis
from analysis.published import TABLE_1
from analysis.tables import comparison_markdown, comparison_text, number, percent
from study.results import Results
from tests.synthetic_results import make_cell, make_results, write


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return make_results(tmp_path)


def _summary(results: Results, select: str = "accuracy") -> pd.DataFrame:
    at_budget = analysis.equal_compute(analysis.load(results))
    return analysis.summarise(at_budget, analysis.choose(at_budget, select))  # type: ignore[arg-type]


def _cells(text: str, paradigm: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(paradigm)]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_text_by_hand(results: Results) -> None:
    for seed, saif in enumerate((0.49, 0.50, 0.51)):
        write(results, make_cell("soft", 0.005, seed), accuracy=0.9, saif=saif)
        write(results, make_cell("hybrid", 0.1, seed, last_lr=0.02), accuracy=0.8, saif=saif)
    text = comparison_text(_summary(results))
    # half = t_2(.975) s / sqrt 3 = 4.3027 x .01 / 1.7321 = .0248
    spread = ["50.0", "47.5 to 52.5"]
    assert _cells(text, "soft") == [
        *("soft", *spread, "90.0", "90.0 to 90.0"),
        *("3", "0.005", "-", "1"),
    ]
    assert _cells(text, "hybrid") == [
        *("hybrid", *spread, "80.0", "80.0 to 80.0"),
        *("3", "0.1 > 0.02", "0.5", "1"),
    ]
    assert text.splitlines()[0] == (
        f"digits m=10 ({make_cell().comparison_id[:8]}): n=2000 mosaics, mlp, batch 64; "
        "test split at 100 % of the budget (1e6 training FLOPs)"
    )
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_columns_are_aligned(results: Results) -> None:
    write(results, make_cell("soft"))
    write(results, make_cell("hard"), status="diverged", points=(0.5,))
    header, rule, *rows = comparison_text(_summary(results)).splitlines()[2:6]
    starts = [i for i in range(len(rule)) if rule[i] == "-" and (i == 0 or rule[i - 1] == " ")]
    for line in (header, *rows):
        assert all(line[i] != " " and (i == 0 or line[i - 1] == " ") for i in starts)


def test_one_seed_has_no_interval(results: Results) -> None:
    write(results, make_cell())
    assert _cells(comparison_text(_summary(results)), "soft").count("no interval (n=1)") == 2


def test_diverged_and_missing_seeds_are_marked(results: Results) -> None:
    for seed in range(3):
        write(results, make_cell("soft", seed=seed))
    for seed in range(2):
        write(results, make_cell("hard", seed=seed), status="diverged", points=())
    text = comparison_text(_summary(results))
    assert "2 of 3, 2 diverged" in _cells(text, "hard")
    assert "A diverged seed counts as SAIF 0 and accuracy 1/C." in text
    assert "Seeds are missing" in text


def test_where_all_diverged_the_cut_is_still_said(results: Results) -> None:
    write(results, make_cell(), status="diverged", points=())
    heading = comparison_text(_summary(results)).splitlines()[0]
    assert heading.endswith("test split at 100 % of the budget")


def test_nothing_is_marked_where_all_is_well(results: Results) -> None:
    write(results, make_cell())
    assert comparison_text(_summary(results)).splitlines()[-1].startswith("soft")


def test_choice_by_saif_says_that_it_used_the_foreground(results: Results) -> None:
    write(results, make_cell())
    assert "uses the hidden foreground" in comparison_text(_summary(results, "saif"))
    assert "foreground" not in comparison_text(_summary(results))


def test_published_numbers_only_when_asked_and_where_there_are_any(results: Results) -> None:
    for task, m in (("cifar10", 20), ("digits", 10)):
        for paradigm in ("soft", "hard-sampled"):
            write(results, make_cell(paradigm, task=task, m=m))
    summary = _summary(results)
    assert "paper" not in comparison_text(summary)
    cifar, digits = comparison_text(summary, published=True).split("\n\ndigits")
    assert _cells(cifar, "soft")[-2:] == ["23.8", "65.2"]
    assert _cells(cifar, "hard-sampled")[-2:] == ["-", "-"]
    assert "paper" not in digits


def test_published_table_is_complete() -> None:
    assert set(TABLE_1) == {(task, m) for task in ("cifar10", "cifar100") for m in (5, 20)}
    for groups in TABLE_1.values():
        assert set(groups) == {"hard", "soft", "hybrid", "lvml"}
        assert all(0 < share < 1 for pair in groups.values() for share in pair)


def test_markdown_has_the_cells_of_the_text(results: Results) -> None:
    for seed in range(2):
        write(results, make_cell("soft", seed=seed), saif=0.4 + 0.1 * seed)
    summary = _summary(results)
    lines = [x for x in comparison_markdown(summary).splitlines() if x.startswith("|")]
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == _cells(
        comparison_text(summary), "soft"
    )
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.005, "0.005"), (1.25e12, "1.25e12"), (3.1e9, "3.1e9"), (0.1, "0.1"), (float("nan"), "-")],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_percent() -> None:
    assert percent(0.1234) == "12.3"
    assert percent(float("nan")) == "-"
