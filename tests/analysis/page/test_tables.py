"""The printed tables say what the summary says."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pandas as pd
import pytest

from analysis.forms import amount, interval, number, percent, points, three_decimals
from analysis.page import latex
from analysis.page.sentences import said
from analysis.page.tables import comparison_cells, would_decide
from analysis.section.picture import Shown
from analysis.section.templates import Table, markdown_table
from tests.made_up.comparisons import compared, write_seeds
from tests.made_up.pages import page_of


def test_a_paradigm_that_did_not_focus_is_named(results):
    write_seeds(results, {"soft": 0.0})
    assert "No seed of soft focused (SAIF below 5 %)." in said("limits", compared(results))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_is_a_dash(value):
    assert {percent(value), number(value), three_decimals(value), points(value)} == {"-"}
    row = {"num_seeds": 3, "saif_low": 0.1, "saif_high": value}
    assert interval(row, "saif") == "-"
    assert {amount(value, "mosaics"), amount(value, "seconds")} <= {"-", "- s of training"}


def test_no_name_parts_rows_or_cells(results):
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
def test_what_would_decide_a_pair(far, seen, texts):
    row = {"num_pairs": 6, "needed_seeds": far, "seen_seeds": seen, "reason": ""}
    assert would_decide(row | {"verdict": "undecided"}) == texts
    assert would_decide(row | {"verdict": "better"}) == ("-", "-")


# --- files


def test_latex_escapes_what_latex_reads():
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


def test_html_escapes_what_browsers_read():
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


def test_markdown_escapes_what_markdown_reads():
    text = markdown_table(Table(["a|b", "c"], [["<script>", "x_y*z`\n1"], ["&lt;", "01.50"]]))
    assert re.sub("([ -])+", r"\1", text).splitlines() == [
        r"| a\|b | c |",
        "|:-|-:|",
        r"| \<script\> | x\_y\*z\` 1 |",
        "| &amp;lt; | 01.50 |",
    ]
