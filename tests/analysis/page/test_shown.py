"""A comparison by itself: what `print` and a notebook show."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html import unescape

from analysis.digest.compare import compare_results
from analysis.page.pictures import pictures
from analysis.page.sentences import answer, setting_text
from analysis.page.tables import comparison_cells
from tests.made_up.comparisons import make_cell, write, write_seeds


def test_a_comparison_is_its_answer_and_its_table(results):
    write_seeds(results, {"soft": 0.3, "lvml": 0.6}, 6)
    (found,) = compare_results(results)
    header, rows = comparison_cells(found)
    for said in (*answer([found]), setting_text(found)):
        assert said in " ".join(str(found).split())
    shown = re.findall(r"<t[hd]>(.*?)</t[hd]>", found._repr_html_())
    assert [*map(unescape, shown)] == [*header, *itertools.chain(*rows)]
    assert repr(found).startswith("<Comparison of ")


def test_a_notebook_shows_text_of_results_as_text(results):
    write(results, make_cell())
    (found,) = compare_results(results)
    shown = replace(found, summary=found.summary.assign(paradigm="<b>soft"))._repr_html_()
    assert "&lt;b&gt;soft" in shown


def test_without_numbers_the_answer_is_alone(results):
    write(results, make_cell(), status="censored", points=())
    (found,) = compare_results(results)
    assert found.summary.empty
    assert pictures(found) == []
    assert "<table" not in found._repr_html_()
    assert str(found).startswith("No paradigm has an option that can be chosen")
