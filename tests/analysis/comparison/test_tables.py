"""The printed tables say what the summary says."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import pandas as pd
import pytest

import analysis
from analysis.comparison.compare import Comparison, compare_results
from analysis.comparison.paper.published import TABLE_1
from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.table_one import table_one, table_one_notes
from analysis.comparison.report.tables import (
    comparison_cells,
    comparison_text,
    cut_text,
)
from analysis.comparison.report.verdicts import (
    over_what,
    pair_notes,
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


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_is_a_dash(value: float) -> None:
    assert {percent(value), number(value), three_decimals(value), points(value)} == {"-"}
    row = {"num_seeds": 3, "saif_low": 0.1, "saif_high": value}
    assert interval(row, "saif") == "-"
    assert {amount(value, "mosaics"), amount(value, "seconds")} <= {"-", "- s of training"}


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


# --- verdicts


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


# --- the layout of the paper's Table 1


def _write_cifar(results: Results, **settings: Any) -> list[Comparison]:
    for paradigm, saif in (("soft", 0.25), ("lvml", 0.45), ("hard-sampled", 0.1)):
        for seed in range(2):
            cell = make_cell(paradigm, seed=seed, task="cifar10", m=20, **settings)
            write(results, cell, accuracy=0.6, saif=saif + 0.01 * seed)
    return compare_results(results)


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


def _read(files: dict[str, bytes], name: str) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(files[f"{name}.csv"]))


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
