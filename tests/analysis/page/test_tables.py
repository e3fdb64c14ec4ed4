"""The printed tables say what the summary says."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.digest.compare import compare_results
from analysis.forms import amount, interval, number, percent, points, three_decimals
from analysis.page import latex
from analysis.page.comparisons import section_of
from analysis.page.exports import exports
from analysis.page.sentences import said, table_one_notes
from analysis.page.table_one import table_one
from analysis.page.tables import comparison_cells, would_decide
from analysis.section.picture import Shown
from analysis.section.templates import Table, markdown_table, paragraphs
from study.results import Results
from tests.made_up.comparisons import compared, write_seeds
from tests.made_up.pages import page_of


def test_a_paradigm_that_did_not_focus_is_named(results: Results) -> None:
    write_seeds(results, {"soft": 0.0})
    assert "No seed of soft focused (SAIF below 5 %)." in said("limits", compared(results))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_is_a_dash(value: float) -> None:
    assert {percent(value), number(value), three_decimals(value), points(value)} == {"-"}
    row = {"num_seeds": 3, "saif_low": 0.1, "saif_high": value}
    assert interval(row, "saif") == "-"
    assert {amount(value, "mosaics"), amount(value, "seconds")} <= {"-", "- s of training"}


@pytest.mark.parametrize(
    ("cut_at", "text"), [(3.2, "3.2 s of training"), (math.inf, "equal training time")]
)
def test_where_it_was_cut_in_time(cut_at: float, text: str) -> None:
    row = {"task": "digits", "split": "test", "axis": "seconds", "budget_unit": "flops"}
    (said_of,) = paragraphs("cut.j2", summary=pd.DataFrame([row | {"cut_at": cut_at}]))
    assert said_of == f"test split at {text}"


def test_no_name_parts_rows_or_cells(results: Results) -> None:
    write_seeds(results, {"soft": 0.4})
    found = compared(results)
    odd = replace(found, summary=found.summary.assign(paradigm="a \u00a6 b\n\nc"))
    header, (row,) = comparison_cells(odd)
    assert row[0] == "a \u00a6 b c"
    assert len(row) == len(header)


# --- verdicts


@pytest.mark.parametrize(
    ("far", "seen", "texts"),
    [
        (11.2, math.inf, ("12", "> 10,000")),
        (math.nan, math.nan, ("more", "-")),
    ],
)
def test_what_would_decide_a_pair(far: float, seen: float, texts: tuple[str, str]) -> None:
    row = {"num_pairs": 6, "needed_seeds": far, "seen_seeds": seen, "reason": ""}
    assert would_decide(row | {"verdict": "undecided"}) == texts
    assert would_decide(row | {"verdict": "better"}) == ("-", "-")


# --- the layout of the paper's Table 1


def _write_cifar(results: Results) -> None:
    saif = {"soft": 0.25, "lvml": 0.45, "hard-sampled": 0.1}
    write_seeds(results, saif, task="cifar10", m=20)


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
    write_seeds(results, {"soft": 0.4, "lvml": 0.5})
    found = compared(results, axis="mosaics", budget=4_000, threshold=0.6, select="saif")
    files = exports([section_of(found)])
    for name in ("table1.md", "table1.tex", "paired.md", "paired.tex"):
        for words in (b"mosaics", b"4,000", b"interpolated", b"hidden foreground", b"0.6"):
            assert words in files[name], name
    for name in (name for name in files if name.endswith(".csv")):
        table = pd.read_csv(io.BytesIO(files[name]))
        assert set(zip(table["axis"], table["threshold"], strict=True)) == {("mosaics", 0.6)}, name


def test_latex_escapes_what_latex_reads() -> None:
    """In cells, in both levels of the header, and in the texts around."""
    typed = "50 % of a_z & {x} $1 #2 ~ ^ \\ <>| \u00b11\n\n2"
    cells = pd.DataFrame([[typed, typed]], columns=[[typed, typed], [typed, "m"]])
    text = latex.table(cells, typed, "tab:typed", [typed], left=2)
    escaped = (
        r"50 \% of a\_z \& \{x\} \$1 \#2 \textasciitilde{} \textasciicircum{} "
        r"\textbackslash{} \textless{}\textgreater{}\textbar{} $\pm$1 2"
    )
    assert text.splitlines()[3:] == [
        rf"\caption{{{escaped}}}",
        r"\label{tab:typed}",
        r"\small",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        r"\begin{tabular}{ll}",
        r"\toprule",
        rf"\multicolumn{{2}}{{c}}{{{escaped}}} \\",
        rf"{escaped} & m \\",
        r"\midrule",
        rf"{escaped} & {escaped} \\",
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\par\smallskip\footnotesize {escaped}",
        r"\end{table*}",
    ]


def test_html_escapes_what_browsers_read() -> None:
    hostile = "<b>&amp;</b>"
    every = [
        *((name, hostile) for name in ("heading", "text", "code", "details")),
        ("points", [hostile]),
        ("table", Table([hostile], [[hostile]])),
        ("pictures", [Shown(hostile, hostile, "<svg>", "")]),
    ]
    page = page_of(every, hostile)
    assert "<b>" not in page
    assert page.count("&lt;b&gt;&amp;amp;&lt;/b&gt;") == 12


def test_markdown_escapes_what_markdown_reads() -> None:
    text = markdown_table(Table(["a|b", "c"], [["<script>", "x_y*z`\n1"], ["&lt;", "01.50"]]))
    assert re.sub("([ -])+", r"\1", text).splitlines() == [
        r"| a\|b | c |",
        "|:-|-:|",
        r"| \<script\> | x\_y\*z\` 1 |",
        "| &amp;lt; | 01.50 |",
    ]
