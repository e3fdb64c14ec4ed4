"""What analysis hands over to MLflow: the report's numbers, all of them finite, none invented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.comparison.compare import Comparison, compare
from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.summaries import summary_metrics
from analysis.reading import load
from analysis.section.summary import GroupSummary
from tests.made_up.comparisons import BUDGET, make_cell, make_results, write

SAIF = {"hard": 0.3, "soft": 0.4, "lvml": 0.8}


def comparisons(
    folder: Path, seeds: int = 6, saif: Mapping[str, float] = SAIF, ms: tuple[int, ...] = (10,)
) -> list[Comparison]:
    results = make_results(folder)
    for m in ms:
        for place, (paradigm, score) in enumerate(saif.items()):
            for lr, accuracy in ((0.1, 0.9), (0.3, 0.8)):
                for seed in range(seeds):
                    cell = make_cell(paradigm, lr, seed=seed, m=m)
                    noise = (seed + place) % seeds  # another one a paradigm: differences vary
                    write(results, cell, accuracy + noise**2 / 900, score + noise / 100)
    return compare(load(results))


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    (comparison,) = comparisons(tmp_path_factory.mktemp("usual"))
    return comparison


@pytest.fixture(scope="module")
def groups(usual: Comparison) -> dict[str, GroupSummary]:
    return by_paradigm(usual)


def by_paradigm(comparison: Comparison) -> dict[str, GroupSummary]:
    return {group.params["paradigm"]: group for group in Compared(comparison).summaries()}


def test_metrics_are_those_of_the_summary(
    usual: Comparison, groups: dict[str, GroupSummary]
) -> None:
    for row in usual.summary.to_dict("records"):
        group = groups[str(row["paradigm"])]
        for metric in ("saif", "accuracy", "loss", "foreground_attention_mean"):
            for name in (metric, f"{metric}_low", f"{metric}_high"):
                assert group.metrics[name] == pytest.approx(row[name], abs=5e-5)
        assert (group.metrics["n_seeds"], group.metrics["n_diverged"]) == (6, 0)
        assert float(group.params["lr"]) == row["lr"] == 0.1
        assert group.params["options_tried"] == "2"
        assert "Not known" not in group.note


def test_an_option_is_named_by_what_it_has(tmp_path: Path) -> None:
    (comparison,) = comparisons(tmp_path, 1, {"soft": 0.4, "hybrid": 0.5})
    groups = by_paradigm(comparison)
    assert {"last_lr", "switch_point"}.isdisjoint(groups["soft"].params)
    assert groups["hybrid"].params["switch_point"] == "0.5"
    assert groups["hybrid"].params["last_lr"] == "0.05"


def test_curves_end_at_the_metrics(groups: dict[str, GroupSummary]) -> None:
    for group in groups.values():
        assert len(group.curves) == 2 * 3
        for metric in ("saif", "accuracy"):
            for end in ("", "_low", "_high"):
                curve = group.curves[f"test/{metric}{end}"]
                flops = [x for x, _ in curve]
                assert flops == sorted(flops)
                np.testing.assert_allclose(flops, np.linspace(0.25, 1, 4) * BUDGET, atol=1)
                assert curve[-1][1] == pytest.approx(group.metrics[f"{metric}{end}"], abs=5e-5)


def test_what_is_not_known_is_named_and_never_a_number(tmp_path: Path) -> None:
    """One seed has no interval; a diverged one no loss."""
    results = make_results(tmp_path)
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"), status="diverged", points=())
    (comparison,) = compare(load(results))
    groups = by_paradigm(comparison)
    for group, unknown in ((groups["soft"], {"saif_low"}), (groups["lvml"], {"saif_low", "loss"})):
        assert not unknown & {*group.metrics, *(name.partition("/")[2] for name in group.curves)}
        (line,) = (line for line in group.note.splitlines() if line.startswith("Not known"))
        assert unknown <= set(re.findall(r"\w+", line))
    assert (groups["lvml"].metrics["saif"], groups["lvml"].metrics["n_diverged"]) == (0, 1)


def test_verdicts_are_seen_from_both_sides(
    usual: Comparison, groups: dict[str, GroupSummary]
) -> None:
    assert len(usual.paired)
    for row in usual.paired.to_dict("records"):
        first, second = groups[row["first"]].params, groups[row["second"]].params
        seen = {
            "better": ("better_than", "worse_than"),
            "worse": ("worse_than", "better_than"),
            "undecided": ("undecided_against", "undecided_against"),
        }[row["verdict"]]
        assert row["second"] in first[f"{row['metric']}_{seen[0]}"].split(", ")
        assert row["first"] in second[f"{row['metric']}_{seen[1]}"].split(", ")
    assert {"better", "undecided"} <= set(usual.paired["verdict"])


def test_the_digest_follows_the_numbers_of_its_comparison(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    for m in (5, 10):
        for paradigm, score in SAIF.items():
            for seed in range(2):
                write(results, make_cell(paradigm, seed=seed, m=m), saif=score)
    evaluations = load(results)

    def digests(table: pd.DataFrame) -> dict[str, str]:
        return {g.name: g.digest for c in compare(table) for g in Compared(c).summaries()}

    first = digests(evaluations)
    assert len(set(first.values())) == len(first)
    assert digests(evaluations.sample(frac=1, random_state=1)) == first
    one = (evaluations["m"] == 5) & (evaluations["paradigm"] == "soft")
    one &= (evaluations["seed"] == 0) & (evaluations["split"] == "test")
    changed = digests(evaluations.assign(saif=evaluations["saif"].where(~one, 0.123)))
    assert {name for name in first if changed[name] != first[name]} == {
        name for name in first if "m=5" in name
    }


def test_a_paradigm_without_an_option_has_no_summary(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"), status="censored", points=(0.25,))
    assert list(by_paradigm(compare(load(results))[0])) == ["soft"]
    alone = make_results(tmp_path / "alone")
    write(alone, make_cell("lvml"), status="censored", points=(0.25,))
    assert Compared(compare(load(alone))[0]).summaries() == []


def test_summary_metrics_name_each_paradigm_of_each_comparison() -> None:
    row = {"task": "digits", "m": 4, "comparison_id": "0123456789", "paradigm": "soft"}
    table = pd.DataFrame([{**row, "saif": 0.25, "accuracy": 0.5, "n": 3}]).assign(
        saif_seed_se=0.1, accuracy_seed_se=0.1
    )
    other = table.assign(m=5, saif=0.75)
    assert summary_metrics([table, other]) == {
        "digits/m4/01234567/soft/saif": 0.25,
        "digits/m4/01234567/soft/accuracy": 0.5,
        "digits/m5/01234567/soft/saif": 0.75,
        "digits/m5/01234567/soft/accuracy": 0.5,
    }
