"""The printed tables say what the summary says."""

from __future__ import annotations

import io
import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest

from analysis.comparison.compare import compare_results
from analysis.comparison.paper.published import TABLE_1
from analysis.comparison.report.chapter import LIMITS, Compared
from analysis.comparison.report.limits import of_seeds, two_sorts
from analysis.comparison.report.table_one import table_one, table_one_notes
from analysis.comparison.report.tables import comparison_cells, cut_text
from analysis.comparison.report.verdicts import (
    would_decide,
)
from analysis.page.exports import exports
from analysis.rendering import latex, markdown
from analysis.section.blocks import Table
from analysis.words import amount, interval, number, percent, points, three_decimals
from study.results import Results
from tests.made_up.comparisons import compared, make_cell, write


def test_paradigms_that_did_not_focus_are_named(results: Results) -> None:
    for seed in (0, 1):
        write(results, make_cell(seed=seed), saif=0.01 * seed)
        write(results, make_cell("lvml", seed=seed), saif=0.01 + 0.89 * seed)
        write(results, make_cell("hard", seed=seed), saif=0.6 + 0.01 * seed)
    found = compared(results)
    said = [*two_sorts(found), *of_seeds(found)]
    assert "No seed of soft focused (SAIF below 5 %)." in said
    assert any("1 of 2 seeds of lvml never focused (SAIF below 5 %)" in text for text in said)
    assert not any("hard" in text for text in said)


def test_where_nothing_limits_a_comparison_no_heading_says_so(results: Results) -> None:
    write(results, make_cell())
    assert LIMITS not in Compared(compared(results)).text()


def test_published_table_is_of_fractions() -> None:
    assert len(TABLE_1) == 7
    scores = [pair for groups in TABLE_1.values() for pair in groups.values()]
    assert all(0 < share < 1 for pair in scores for share in pair)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_is_a_dash(value: float) -> None:
    assert {percent(value), number(value), three_decimals(value), points(value)} == {"-"}
    row = {"num_seeds": 3, "saif_low": 0.1, "saif_high": value}
    assert interval(row, "saif") == "-"
    assert {amount(value, "mosaics"), amount(value, "seconds")} <= {"-", "- s of training"}


@pytest.mark.parametrize(
    ("axis", "cut_at", "text"),
    [
        ("flops", math.nan, "50 % of the budget (2.45e10 training FLOPs)"),
        ("flops", 2.5e10, "2.5e10 training FLOPs"),
        ("mosaics", 65_664.0, "65,664 mosaics"),
        ("seconds", 3.2, "3.2 s of training"),
        ("seconds", math.inf, "equal training time"),
    ],
)
def test_where_it_was_cut(axis: str, cut_at: float, text: str) -> None:
    row = {"task": "digits", "split": "test", "axis": axis, "cut": 0.5, "compute_flops": 2.4498e10}
    row |= {"budget_amount": 4.9e10, "budget_unit": "flops", "cut_at": cut_at, "num_diverged": 0}
    row |= {"num_seeds": 1}
    assert cut_text(pd.DataFrame([row])) == f"test split at {text}"


# --- verdicts


@pytest.mark.parametrize(
    ("far", "seen", "texts"),
    [
        ((12.0, math.nan), (math.inf, math.inf), ("12", "> 10,000")),
        ((11.2, math.nan), (39.5, math.nan), ("12", "40")),
        ((math.inf, 185.0), (math.inf, 3_400.0), ("185 images", "3,400 images")),
        ((math.nan, math.nan), (21.0, math.nan), ("-", "21")),  # of seeds that fall apart
        ((math.nan, math.nan), (math.nan, math.nan), ("more", "-")),
    ],
)
def test_what_would_decide_a_pair(
    far: tuple[float, float], seen: tuple[float, float], texts: tuple[str, str]
) -> None:
    names = ("needed_seeds", "needed_images", "seen_seeds", "seen_images")
    row = {"num_pairs": 6, **dict(zip(names, (*far, *seen), strict=True))}
    assert would_decide(row | {"verdict": "undecided"}) == texts
    assert would_decide(row | {"verdict": "better"}) == ("-", "-")


# --- the layout of the paper's Table 1


def _write_cifar(results: Results) -> None:
    for paradigm, saif in (("soft", 0.25), ("lvml", 0.45), ("hard-sampled", 0.1)):
        for seed in range(2):
            cell = make_cell(paradigm, seed=seed, task="cifar10", m=20)
            write(results, cell, accuracy=0.6, saif=saif + 0.01 * seed)


def test_published_numbers_stand_beside_ours_but_for_saif_at_another_threshold(
    results: Results,
) -> None:
    _write_cifar(results)
    _, rows = comparison_cells(compared(results), True)
    assert rows[1][-2:] == ["23.8", "65.2"]  # of soft, behind hard-sampled
    found = compare_results(results, threshold=0.6)
    (row,) = table_one(found).to_dict("records")
    of_saif = [
        value for name, value in row.items() if re.match("saif_.*(published|difference)", name)
    ]
    assert np.isnan(of_saif).all()
    assert len(of_saif) >= 8  # of four paradigms, and what was sampled
    assert row["accuracy_soft_published"] == 0.652
    assert any("SAIF is at threshold 0.8" in note for note in table_one_notes(found))


# --- files


def test_files_say_what_was_made_equal(results: Results) -> None:
    for paradigm, seed in itertools.product(("soft", "lvml"), range(2)):
        write(results, make_cell(paradigm, seed=seed))
    cut = {"axis": "mosaics", "budget": 4_000, "threshold": 0.6, "interpolate": True}
    usual, other = (
        exports([Compared(compared(results, **how))]) for how in ({}, cut | {"select": "saif"})
    )
    for name in ("table1.md", "table1.tex", "paired.md", "paired.tex"):
        assert b"at equal training compute." in usual[name]
        for words in (b"mosaics", b"4,000", b"interpolated", b"hidden foreground", b"0.6"):
            assert words in other[name], name
            assert words not in usual[name] or words == b"0.6"
    for name in (name for name in other if name.endswith(".csv")):
        table = pd.read_csv(io.BytesIO(other[name]))
        assert set(zip(table["axis"], table["threshold"], strict=True)) == {("mosaics", 0.6)}, name


@pytest.mark.parametrize("name", ["table1.tex", "paired.tex"])
def test_latex_is_balanced(results: Results, name: str) -> None:
    for paradigm in ("soft", "hard"):
        write(results, make_cell(paradigm))
    _write_cifar(results)
    text = exports([Compared(found) for found in compare_results(results)])[name].decode()
    bare = re.sub(r"\\.", "", text)  # without commands and escaped characters
    depths = np.cumsum([{"{": 1, "}": -1}.get(sign, 0) for sign in bare])
    assert depths.min() >= 0 == depths[-1]
    begun, ended = (sorted(re.findall(rf"\\{each}{{(.*?)}}", text)) for each in ("begin", "end"))
    assert begun == ended
    body = [line for line in bare.splitlines() if "sizebox" not in line]
    assert not set("#_^~<>|") & set("".join(body))
    (columns,) = set(re.findall(r"\\begin{tabular}{([lr]+)}", text))
    for line in re.findall(r".*\\\\$", text, flags=re.MULTILINE):
        spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn{(\d+)}", line))
        assert len(re.findall(r"(?<!\\)&", line)) + spans == len(columns) - 1


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
