"""The printed tables say what the summary says."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import analysis
from analysis.comparison.compare import Comparison, compare_results
from analysis.comparison.paper.published import TABLE_1
from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.table_one import table_one, table_one_cells, table_one_notes
from analysis.comparison.report.tables import (
    comparison_cells,
    comparison_markdown,
    comparison_text,
    cut_text,
)
from analysis.comparison.report.verdicts import (
    over_what,
    p_value,
    pair_notes,
    pair_text,
    paired_cells,
    would_decide,
)
from analysis.overstated import exaggeration
from analysis.page.exports import exports
from analysis.rendering import latex, markdown
from analysis.section.blocks import Table
from analysis.words import amount, interval, number, percent, points, three_decimals
from study.results import Results
from tests.made_up.comparisons import make_cell, make_results, write


def compared(results: Results, **cut: Any) -> list[Compared]:
    return [Compared(comparison) for comparison in compare_results(results, **cut)]


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
        *("soft", *spread, "90.0", "-"),  # three that agree say nothing of a fourth
        *("3", "0.005", "-", "1"),
    ]
    assert _cells(text, "hybrid") == [
        *("hybrid", *spread, "80.0", "-"),
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
    assert heading.endswith("test split at 100 % of the budget (1e6 training FLOPs)")


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
    images = {f"{task} m={m}" for task in ("CIFAR10", "CIFAR100") for m in (5, 20)}
    assert set(TABLE_1) == images | {"HateXplain-1", "HateXplain-2", "MSCOCO"}
    for name, groups in TABLE_1.items():
        own = {"hard-running", "soft", "hybrid-running"}  # nothing is said of lvml on captions
        assert set(groups) == (own if name == "MSCOCO" else {"hard", "soft", "hybrid", "lvml"})
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


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_is_a_dash(value: float) -> None:
    assert {percent(value), number(value), three_decimals(value), points(value)} == {"-"}
    row = {"num_seeds": 3, "saif_low": 0.1, "saif_high": value}
    assert interval(row, "saif") == "-"
    assert {amount(value, "mosaics"), amount(value, "seconds")} <= {"-", "- s of training"}


def test_an_interval_beyond_what_a_share_can_be_is_explained(results: Results) -> None:
    for seed, saif in enumerate((0.1, 0.9)):
        write(results, make_cell("soft", seed=seed), saif=saif)
    assert comparison_text(_summary(results)).count("too few seeds") == 1
    for seed in range(6):
        write(results, make_cell("hard", seed=seed, m=5), accuracy=1.0, saif=0.5)
    assert "too few seeds" not in comparison_text(_summary(results).query("m == 5"))


@pytest.mark.parametrize(
    ("axis", "cut_at", "text"),
    [
        ("flops", math.nan, "test split at 50 % of the budget (2.45e10 training FLOPs)"),
        ("flops", 2.5e10, "test split at 2.5e10 training FLOPs"),
        ("mosaics", 65_664.0, "test split at 65,664 mosaics"),
        ("seconds", 3.2, "test split at 3.2 s of training"),
        ("seconds", math.inf, "test split at equal training time"),
    ],
)
def test_where_it_was_cut(axis: str, cut_at: float, text: str) -> None:
    row = {"task": "digits", "split": "test", "axis": axis, "cut": 0.5, "compute_flops": 2.4498e10}
    row |= {"budget_amount": 4.9e10, "budget_unit": "flops", "num_diverged": 0, "num_seeds": 1}
    assert cut_text(pd.DataFrame([row | {"cut_at": cut_at}])) == text
    if math.isnan(cut_at):
        assert cut_text(pd.DataFrame([row])) == text


def test_what_was_given_and_what_whole_batches_spent_have_a_word_each() -> None:
    row = {"task": "digits", "split": "test", "axis": "flops", "cut": 1.0, "num_seeds": 2}
    row |= {"budget_amount": 2_049_024_000, "budget_unit": "flops", "num_diverged": 0}
    lost = row | {"compute_flops": 4e8, "num_diverged": 2}
    soft, hard = (row | {"compute_flops": spent} for spent in (1_639_219_200.0, 1_810_000_000.0))
    for rows, spent in (([soft, lost], "1.64e9"), ([hard, soft, lost], "1.64e9 to 1.81e9")):
        assert cut_text(pd.DataFrame(rows)) == (
            "test split at 100 % of the budget (2.05e9 training FLOPs), of which whole batches "
            f"spend {spent}"
        )


def test_a_number_that_is_not_known_is_a_dash_and_said(results: Results) -> None:
    for seed in range(3):
        write(results, make_cell("soft", seed=seed), saif=math.nan if seed else 0.5)
    text = comparison_text(_summary(results))
    assert _cells(text, "soft")[1:4] == ["-", "-", "90.0"]
    assert "a seed recorded no value" in text


# --- verdicts


PAIR = ("lvml", "soft")


def _pair(**changes: Any) -> dict[str, Any]:
    row = {
        "task": "digits",
        "m": 10,
        "comparison_id": "c",
        "metric": "saif",
        "first": "lvml",
        "second": "soft",
        "num_pairs": 6,
        "mean_first": 0.85,
        "mean_second": 0.752,
        "difference": 0.098,
        "low": 0.017,
        "high": 0.179,
        "p": 0.01,
        "p_holm": 0.0301,
        "num_images": 180,
        "seed_se": 0.021,
        "image_se": 0.0154,
        "verdict": "better",
        "reason": "",
        "needed_effect": math.nan,
        "needed_seeds": math.nan,
        "needed_images": math.nan,
        "needed_seeds_most": math.nan,
        "confidence": 0.95,
    }
    return row | changes


UNSURE = {"verdict": "undecided", "reason": "p", "p_holm": 0.2, "needed_effect": 0.179}


def test_verdict_table_by_hand() -> None:
    fixed = {"num_images": math.nan, "image_se": math.nan}
    paired = pd.DataFrame(
        [
            _pair(),
            _pair(metric="accuracy", verdict="worse", difference=-0.0123, p_holm=1e-5, **fixed),
            _pair(first="hybrid", **UNSURE, needed_seeds=11.2, needed_seeds_most=39.5),
        ]
    )
    header, rows = paired_cells(paired)
    assert len(header) == len(rows[0])
    spans = ["+1.7 to +17.9", "2.1", "1.5", "0.03", "6"]
    assert rows[0] == ["SAIF", "lvml vs soft", "lvml better", "+9.8", *spans, "-"]
    assert rows[1][:4] == ["accuracy", "lvml vs soft", "lvml worse", "-1.2"]
    assert rows[1][6:8] == ["images fixed", "< 0.001"]
    assert rows[2][1:3] == ["hybrid vs soft", "undecided"]
    assert rows[2][-1] == "12 to 40 seeds"
    both = "Intervals and verdicts are over seeds and 180 test images"
    assert over_what(paired[:1]) == f"{both}."
    assert over_what(paired) == f"{both}; where it says 'images fixed', over seeds alone."
    assert over_what(paired[1:2]).endswith("over seeds alone, with these test images.")


def test_verdict_table_without_intervals() -> None:
    missing = dict.fromkeys(["low", "high", "p", "p_holm", "seed_se", "image_se"], math.nan)
    lone = _pair(num_pairs=1, verdict="undecided", reason="n=1, fewer than 6 seeds", **missing)
    unknown = lone | {"metric": "accuracy", "num_pairs": 6, "reason": "a seed has no value"}
    unknown |= {"difference": math.nan}
    paired = pd.DataFrame([lone, unknown])
    rows = paired_cells(paired)[1]
    assert rows[0][3:7] == ["+9.8", "no interval (n=1)", "-", "-"]
    assert rows[1][3:] == ["-", "-", "-", "-", "-", "6", "-"]
    notes = [
        "Undecided: SAIF lvml/soft: n=1, fewer than 6 seeds.",
        "Undecided: accuracy lvml/soft: a seed has no value.",
    ]
    assert pair_notes(paired)[:2] == notes
    assert all(note in pair_text(paired, PAIR) for note in notes)
    assert pair_notes(paired[:1]) == [
        "Undecided: every pair: n=1, fewer than 6 seeds.",
    ]


def test_the_terminal_has_a_row_a_pair() -> None:
    paired = pd.DataFrame(
        [
            _pair(),
            _pair(first="hybrid", verdict="worse", difference=-0.05, low=-0.08, high=-0.02),
            _pair(metric="accuracy", **UNSURE),
            _pair(first="hybrid", metric="accuracy", **UNSURE),
        ]
    )
    header, _, *lines = pair_text(paired, {*PAIR, "hybrid"}).splitlines()
    rows, notes = lines[:2], lines[2:]
    assert _cells("\n".join(rows), "lvml - soft") == [
        *("lvml - soft", "+9.8", "+1.7 to +17.9", "lvml"),
        *("+9.8", "+1.7 to +17.9", "undecided"),
    ]
    assert _cells("\n".join(rows), "hybrid - soft")[1:4] == ["-5.0", "-8.0 to -2.0", "soft"]
    assert "SAIF" in header
    assert " ".join(notes) == " ".join([*pair_notes(paired), over_what(paired)])


@pytest.mark.parametrize(("n", "verdict"), [(6, "better"), (11, "undecided"), (12, "better")])
def test_beside_the_verdicts_it_says_how_far_they_are_overstated(n: int, verdict: str) -> None:
    paired = pd.DataFrame([_pair(num_pairs=n, verdict=verdict), _pair(num_pairs=n, **UNSURE)])
    (note,) = pair_notes(paired)
    assert note.startswith(f"With n={n} seeds")
    assert ("screening" in note) == (n < 12)
    assert f"by a factor of {exaggeration(n, 0.05 / 2):.1f} where" in note  # a family of two tests


@pytest.mark.parametrize(
    ("n", "verdict"), [(0, "better"), (5, "undecided"), (12, "undecided"), (99, "worse")]
)
def test_nothing_is_overstated_where_nothing_is_decided_or_seeds_are_many(
    n: int, verdict: str
) -> None:
    assert not [
        note
        for note in pair_notes(pd.DataFrame([_pair(num_pairs=n, verdict=verdict)]))
        if "overstated" in note
    ]


@pytest.mark.parametrize(
    ("seeds", "most", "images", "text"),
    [
        (12.0, math.inf, math.nan, "12 seeds or more"),
        (1234.0, 1e5, math.nan, "1,234 to > 10,000 seeds"),
        (11.2, 39.5, math.nan, "12 to 40 seeds"),
        (6.0, math.inf, math.nan, "-"),  # as many as there are
        (6.0, 40.0, math.nan, "up to 40 seeds"),
        (math.inf, math.inf, 900.0, "900 images or more"),
        (math.inf, math.inf, math.inf, "neither more seeds nor more images alone"),
        (math.nan, math.nan, math.nan, "-"),
    ],
)
def test_what_would_decide_a_pair(seeds: float, most: float, images: float, text: str) -> None:
    needed = {"needed_seeds": seeds, "needed_seeds_most": most, "needed_images": images}
    row = _pair(**UNSURE, **needed)
    assert would_decide(row) == text
    assert would_decide(row | {"verdict": "better"}) == "-"


def test_points_and_p() -> None:
    assert (points(0.1234), points(-0.05), points(math.nan)) == ("+12.3", "-5.0", "-")
    assert (p_value(0.0301), p_value(1.0), p_value(9e-4)) == ("0.03", "1", "< 0.001")
    assert p_value(math.nan) == "-"


# --- the layout of the paper's Table 1


def _write_cifar(results: Results, **settings: Any) -> list[Comparison]:
    for paradigm, saif in (("soft", 0.25), ("lvml", 0.45), ("hard-sampled", 0.1)):
        for seed in range(2):
            cell = make_cell(paradigm, seed=seed, task="cifar10", m=20, **settings)
            write(results, cell, accuracy=0.6, saif=saif + 0.01 * seed)
    return compare_results(results)


def test_table_one_by_hand(results: Results) -> None:
    found = _write_cifar(results)
    (row,) = table_one(found).to_dict("records")
    assert (row["task"], row["m"], row["n"]) == ("cifar10", 20, 2_000)
    assert row["saif_soft"] == pytest.approx(0.255)
    assert row["saif_soft_published"] == 0.238
    assert row["saif_soft_difference"] == pytest.approx(0.017)
    assert row["accuracy_lvml_difference"] == pytest.approx(0.6 - 0.71)
    assert math.isnan(row["saif_hard"])
    assert row["saif_hard_published"] == 0.019
    assert row["saif_hard-sampled"] == pytest.approx(0.105)
    assert math.isnan(row["saif_hard-sampled_published"])
    header, rows = table_one_cells(found)
    paradigms = ["hard", "hard-sampled", "soft", "hybrid", "lvml"]
    assert header == ["task", "m", *paradigms, *paradigms]
    assert rows[0][2:7] == [
        "- (1.9, -)",
        "10.5",
        "25.5 (23.8, +1.7)",
        "- (38.2, -)",
        "45.5 (47.2, -1.7)",
    ]


def test_table_one_says_what_differs_from_the_paper(results: Results, tmp_path: Path) -> None:
    *_, note = table_one_notes(_write_cifar(results))
    assert note == (
        "No reproduction, cifar10 m=20: ours have n=2,000 training mosaics, not 10,000; the "
        "compute of 3.2 epochs of soft, not 100 or more; the network 'mlp', not the paper's; "
        "batch 64, not 256."
    )
    other = make_results(tmp_path / "other")
    write(other, make_cell("soft"))
    (digits,) = compare_results(other)
    assert table_one_notes([digits])[-1] == "The paper's Table 1 has no row for this."
    assert table_one_cells([digits])[1] == [
        ["digits", "10", "-", "50.0", "-", "-", "-", "90.0", "-", "-"]
    ]


def test_another_threshold_has_no_published_saif(results: Results) -> None:
    _write_cifar(results)
    found = compare_results(results, threshold=0.6)
    (row,) = table_one(found).to_dict("records")
    assert (row["axis"], row["threshold"]) == ("flops", 0.6)
    for paradigm in ("hard", "soft", "hybrid", "lvml"):
        for end in ("published", "difference"):
            assert math.isnan(row[f"saif_{paradigm}_{end}"])
    assert row["accuracy_soft_published"] == 0.652
    assert any("SAIF is at threshold 0.8" in note for note in table_one_notes(found))
    header, rows = comparison_cells(found[0].summary, True, 0.6)
    assert header[1] == "SAIF at threshold 0.6 %"
    assert header[-1] == "paper accuracy %"
    assert "paper SAIF %" not in header
    assert {len(cells) for cells in rows} == {len(header)}
    assert rows[1][-1] == "65.2"  # of soft, behind hard-sampled


# --- files


def _write_ends(results: Results) -> None:
    """Every end state, an option that loses, a value that no decimal fraction has."""
    for seed in range(3):
        write(results, make_cell("soft", seed=seed), saif=0.1 + 1 / 3 * seed / 2)
        write(results, make_cell("soft", 0.2, seed=seed), accuracy=0.5)
    write(results, make_cell("hard"), status="diverged", points=())
    write(results, make_cell("lvml", 0.2), status="censored", points=(0.25,), accuracy=0.9)
    write(results, make_cell("lvml", 0.1), saif=2 / 3)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    results = make_results(tmp_path_factory.mktemp("ends"))
    _write_ends(results)
    (comparison,) = compare_results(results)
    return comparison


@pytest.fixture(scope="module")
def files(ends: Comparison) -> dict[str, bytes]:
    return exports([Compared(ends)])


def _read(files: dict[str, bytes], name: str) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(files[f"{name}.csv"]))


def test_every_cell_is_in_the_long_form(ends: Comparison, files: dict[str, bytes]) -> None:
    cells = _read(files, "cells").set_index("cell_id")
    assert set(cells.index) == set(ends.cells["cell_id"])
    assert sorted(cells["status"].unique()) == ["censored", "diverged", "done"]
    (hard,) = cells[cells["paradigm"] == "hard"].to_dict("records")
    assert (hard["saif"], hard["accuracy"]) == (0, 1 / 4)
    assert hard["counted_as_diverged"]
    assert math.isnan(hard["loss"])
    soft = cells[(cells["paradigm"] == "soft") & cells["chosen"]]
    assert sorted(soft["seed"]) == [0, 1, 2]
    assert set(soft["lr"]) == {0.1}
    censored = cells[cells["status"] == "censored"]
    assert not censored["chosen"].any()


def test_several_comparisons_stand_below_each_other(results: Results) -> None:
    for m in (5, 10):
        for paradigm in ("soft", "hard"):
            write(results, make_cell(paradigm, m=m))
    files = exports(compared(results))
    for name in ("table1", "comparison", "paired", "options", "cells", "claims"):
        assert set(_read(files, name)["m"]) == {5, 10}, name
    assert files["paired.tex"].count(rb"\begin{table*}") == 2
    labels = re.findall(rb"\\label{(.*?)}", files["paired.tex"])
    assert len(set(labels)) == 2


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The files of one directory, cut in several ways."""
    results = make_results(tmp_path_factory.mktemp("cuts"))
    for paradigm in ("soft", "lvml"):
        for seed in range(2):
            write(results, make_cell(paradigm, seed=seed))
    asked: dict[str, dict[str, Any]] = {
        "usual": {},
        "other": {
            "axis": "mosaics",
            "budget": 4_000,
            "threshold": 0.6,
            "interpolate": True,
            "select": "saif",
        },
        "half": {"budget": 5e5},
    }
    return {name: exports(compared(results, **cut)) for name, cut in asked.items()}


@pytest.mark.parametrize("name", ["table1.md", "table1.tex", "paired.md", "paired.tex"])
def test_captions_say_what_was_made_equal(cuts: dict[str, dict[str, bytes]], name: str) -> None:
    usual, other, half = (cuts[cut][name].decode() for cut in ("usual", "other", "half"))
    assert "at equal training compute." in usual
    assert not re.search("threshold|interpolated|cut at|hidden", usual)
    assert "training compute" not in other
    for words in (
        "at equal numbers of training mosaics",
        "cut at 4,000 mosaics",
        "interpolated between",
        "uses the hidden foreground",
        "SAIF at threshold 0.6",
    ):
        assert words in other
    words = "cut at 50 % of the budget (5e5 training FLOPs)"
    assert words in half.replace("\\%", "%")
    assert words not in usual


def test_every_csv_says_axis_and_threshold(results: Results) -> None:
    _write_ends(results)
    files = exports(compared(results, axis="mosaics", threshold=0.6))
    for name in files:
        if name.endswith(".csv"):
            table = _read(files, name.removesuffix(".csv"))
            assert set(table["axis"]) == {"mosaics"}, name
            assert set(table["threshold"]) == {0.6}, name


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of two comparisons."""
    results = make_results(tmp_path_factory.mktemp("two"))
    _write_ends(results)
    _write_cifar(results)
    return exports(compared(results))


@pytest.mark.parametrize("name", ["table1.tex", "paired.tex"])
def test_latex_is_balanced(of_two: dict[str, bytes], name: str) -> None:
    text = of_two[name].decode()
    bare = re.sub(r"\\.", "", text)  # without commands and escaped characters
    depth = 0
    for sign in bare:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    opened = re.findall(r"\\begin{(.*?)}", text)
    assert sorted(opened) == sorted(re.findall(r"\\end{(.*?)}", text))
    body = [line for line in bare.splitlines() if "sizebox" not in line]
    assert not set("#_^~<>|") & set("".join(body))
    for tabular in re.findall(r"\\begin{tabular}.*?\\end{tabular}", text, flags=re.DOTALL):
        columns = len(re.match(r"\\begin{tabular}{([lr]+)}", tabular)[1])  # type: ignore[index]
        for line in tabular.splitlines():
            if line.endswith(r"\\"):
                spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn{(\d+)}", line))
                assert len(re.findall(r"(?<!\\)&", line)) + spans == columns - 1


def test_latex_escapes_what_latex_reads() -> None:
    assert latex.escape("50 % of a_z & {x} $1 #2 ~ ^ \\ <>|") == (
        r"50 \% of a\_z \& \{x\} \$1 \#2 \textasciitilde{} \textasciicircum{} "
        r"\textbackslash{} \textless{}\textgreater{}\textbar{}"
    )
    assert latex.escape("\u22121\n\n2") == "$-$1 2"


def test_markdown_escapes_what_markdown_reads() -> None:
    text = markdown.table(Table(["a|b", "c"], [["<script>", "x_y*z`\n1"], ["&lt;", ""]]))
    assert text.splitlines() == [
        r"| a\|b | c |",
        "| --- | ---: |",
        r"| \<script\> | x\_y\*z\` 1 |",
        "| &amp;lt; |  |",
    ]
