"""The printed tables say what the summary says."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.comparison.compare import compare_results
from analysis.comparison.paper.published import TABLE_1
from analysis.comparison.report.chapter import Compared
from analysis.comparison.report.limits import of_seeds, pair_notes, two_sorts
from analysis.comparison.report.table_one import table_one, table_one_notes
from analysis.comparison.report.tables import comparison_cells, cut_text
from analysis.comparison.report.verdicts import (
    over_what,
    p_value,
    paired_cells,
    would_decide,
)
from analysis.page.exports import exports
from analysis.rendering import latex, markdown
from analysis.section.blocks import Table
from analysis.words import amount, interval, number, percent, points, three_decimals
from study.results import Results
from tests.made_up.comparisons import compared, make_cell, write

DOUBTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "no interval (n=1)": [{}],
    "A diverged seed counts as SAIF 0": [{"status": "diverged", "points": ()}] * 2,
    "a seed recorded no value": [{}, {"saif": math.nan}],
    "1 of 2 seeds of soft never focused (SAIF below 5 %)": [{"saif": 0.01}, {"saif": 0.9}],
}
"""Words of a table -> what is particular in each seed of its only paradigm."""


@pytest.mark.parametrize("seeds", [[{}, {"saif": 0.51}], *DOUBTS.values()])
def test_a_table_says_what_to_think_of_its_numbers(
    results: Results, seeds: Sequence[Mapping[str, Any]]
) -> None:
    for seed, columns in enumerate(seeds):
        write(results, make_cell(seed=seed), **columns)
    found = compared(results)
    text = "\n".join([*comparison_cells(found)[1][0], *two_sorts(found), *of_seeds(found)])
    assert {words: words in text for words in DOUBTS} == {
        words: made is seeds for words, made in DOUBTS.items()
    }
    assert "nan" not in text


def test_where_no_seed_focused_the_paradigm_is_named(results: Results) -> None:
    for seed in (0, 1):
        write(results, make_cell(seed=seed), saif=0.01 * seed)
        write(results, make_cell("hard", seed=seed), saif=0.6 + 0.01 * seed)
    assert "No seed of soft focused (SAIF below 5 %)." in [*of_seeds(compared(results))]


def test_published_table_is_complete() -> None:
    images = {f"{task} m={m}" for task in ("CIFAR10", "CIFAR100") for m in (5, 20)}
    assert set(TABLE_1) == images | {"HateXplain-1", "HateXplain-2", "MSCOCO"}
    for name, groups in TABLE_1.items():
        own = {"hard-running", "soft", "hybrid-running"}  # nothing is said of lvml on captions
        assert set(groups) == (own if name == "MSCOCO" else {"hard", "soft", "hybrid", "lvml"})
        assert all(0 < share < 1 for pair in groups.values() for share in pair)


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        (number, 0.005, "0.005"),
        (number, 1.25e12, "1.25e12"),
        (percent, 0.1234, "12.3"),
        (points, 0.1234, "+12.3"),
        (points, -0.05, "-5.0"),
        (p_value, 0.0301, "0.03"),
        (p_value, 1.0, "1"),
        (p_value, 9e-4, "< 0.001"),
        (p_value, math.nan, "-"),
    ],
)
def test_numbers_are_written_as_people_do(
    written: Callable[[float], str], value: float, text: str
) -> None:
    assert written(value) == text


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
    row |= {"budget_amount": 4.9e10, "budget_unit": "flops", "num_diverged": 0, "num_seeds": 1}
    assert cut_text(pd.DataFrame([row | {"cut_at": cut_at}])) == f"test split at {text}"


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
        "num_backgrounds": 300,
        "background_se": 0.0093,
        "verdict": "better",
        "reason": "",
        "needed_effect": math.nan,
        "needed_seeds": math.nan,
        "needed_images": math.nan,
        "seen_seeds": math.nan,
        "seen_images": math.nan,
        "num_tests": 12,
        "later_seeds": 0,
        "above": math.nan,
        "confidence": 0.95,
    }
    return row | changes


UNSURE = {"verdict": "undecided", "reason": "p", "p_holm": 0.2, "needed_effect": 0.179}
"""Of an undecided pair."""


def test_verdict_table_by_hand() -> None:
    fixed = dict.fromkeys(("num_images", "image_se", "num_backgrounds", "background_se"))
    apart = {"above": 0.3, "learned_first": 11, "learned_second": 2, "num_pairs": 12}
    paired = pd.DataFrame(
        [
            _pair(),
            _pair(metric="accuracy", verdict="worse", difference=-0.0123, p_holm=1e-5, **fixed),
            _pair(first="hybrid", **UNSURE, needed_seeds=11.2, seen_seeds=39.5),
            _pair(**apart),
        ]
    )
    header, rows = paired_cells(paired)
    assert {len(row) for row in rows} == {len(header)}
    spans = ["+1.7 to +17.9", "2.1 / 1.5 / 0.9", "0.03", "6"]
    assert rows[0] == ["SAIF", "lvml vs soft", "lvml better", "+9.8", *spans, "-", "-"]
    assert rows[1][:4] == ["accuracy", "lvml vs soft", "lvml worse", "-1.2"]
    assert rows[1][5:7] == ["2.1 / images fixed / -", "< 0.001"]
    assert rows[2][1:3] == ["hybrid vs soft", "undecided"]
    assert rows[2][-2:] == ["12", "40"]
    assert rows[3][2] == "lvml better, learns more often"
    assert rows[3][4] == "11 and 2 of 12 learned"
    for some, images, alone in ((paired[:1], 1, 0), (paired, 1, 1), (paired[1:2], 0, 1)):
        told = over_what(some)
        said = "180 foreground and 300 background" in told, "seeds alone" in told
        assert said == (images, alone)
    for n in (6, 11, 12):  # few seeds are a screening
        notes = pair_notes(paired.assign(num_pairs=n))
        assert sum("screening" in note for note in notes) == (n < 12)


@pytest.mark.parametrize(
    ("far", "seen", "texts"),
    [
        ((12.0, math.nan), (math.inf, math.inf), ("12", "> 10,000")),
        ((11.2, math.nan), (39.5, math.nan), ("12", "40")),
        ((math.inf, 185.0), (math.inf, 3_400.0), ("185 images", "3,400 images")),
        ((6.0, math.nan), (math.inf, 900.0), ("6", "900 images")),
        ((math.nan, math.nan), (21.0, math.nan), ("-", "21")),  # of seeds that fall apart
        ((math.nan, math.nan), (math.nan, math.nan), ("more", "-")),
    ],
)
def test_what_would_decide_a_pair(
    far: tuple[float, float], seen: tuple[float, float], texts: tuple[str, str]
) -> None:
    names = ("needed_seeds", "needed_images", "seen_seeds", "seen_images")
    row = _pair(**UNSURE, **dict(zip(names, (*far, *seen), strict=True)))
    assert would_decide(row) == texts
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
    header, rows = comparison_cells(compared(results), True)
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
    header, rows = comparison_cells(found[0], True)
    assert header[1] == "SAIF at threshold 0.6 %"
    assert {len(cells) for cells in rows} == {len(header)}
    assert rows[1][-1] == "65.2"
    assert {len(cells) for cells in comparison_cells(found[0], False)[1]} == {len(header) - 1}


# --- files


def test_files_say_what_was_made_equal(results: Results) -> None:
    for paradigm in ("soft", "lvml"):
        for seed in range(2):
            write(results, make_cell(paradigm, seed=seed))
    cut = {"axis": "mosaics", "budget": 4_000, "threshold": 0.6, "interpolate": True}
    usual, other = (
        exports([Compared(compared(results, **how))]) for how in ({}, cut | {"select": "saif"})
    )
    for name in ("table1.md", "table1.tex", "paired.md", "paired.tex"):
        assert b"at equal training compute." in usual[name]
        assert not re.search(b"threshold|interpolated|cut at|hidden", usual[name])
        for words in ("mosaics", "4,000", "interpolated", "hidden foreground", "threshold 0.6"):
            assert words in other[name].decode(), name
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
    labels = re.findall(r"\\label{(.*?)}", text)
    assert len(set(labels)) == len(labels) == text.count(r"\caption")
    begun, ended = (sorted(re.findall(rf"\\{each}{{(.*?)}}", text)) for each in ("begin", "end"))
    assert begun == ended
    body = [line for line in bare.splitlines() if "sizebox" not in line]
    assert not set("#_^~<>|") & set("".join(body))
    for columns, rows in re.findall(
        r"\\begin{tabular}{([lr]+)}(.*?)\\end{tabular}", text, flags=re.DOTALL
    ):
        for line in re.findall(r".*\\\\$", rows, flags=re.MULTILINE):
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
