"""The matrix of claims holds each section's verdicts, whatever chapters they are of."""

from __future__ import annotations

import re

import pytest

from analysis.conclude import Conclusions, conclude
from analysis.page.claim_matrix import claim_matrix, matrix_blocks
from analysis.section.blocks import Table
from tests.made_up import fixed_focus, trajectories
from tests.made_up.comparisons import make_results, write_seeds

MARKS = {"holds": "holds", "does not hold": "fails", "undecided": "open", "not run": "-"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Conclusions:
    """Two comparisons, a section of two settings with held attention, and trajectories."""
    results = make_results(tmp_path_factory.mktemp("claims"))
    for m in (5, 10):
        write_seeds(results, {"soft": 0.4, "lvml": 0.5}, 1, m=m)
        fixed_focus.record_all(results, seeds=1, m=m)
    trajectories.write_study(results, seeds=1)
    return conclude(results)


def test_each_verdict_of_each_section_is_there(found: Conclusions) -> None:
    matrix = claim_matrix(found.sections).set_index(["key", "setting"])
    every = 0
    for section in found.sections:
        rows = matrix.loc[section.key]
        for claim in section.claims:
            settings = [claim.setting] if claim.setting else list(rows.index)
            assert [rows.loc[each, claim.name] for each in settings] == [claim.verdict]
            every += 1
    claims = [name for name in matrix if re.fullmatch("C[0-9]+", name)]
    assert claims == [f"C{number}" for number in range(1, 18)]
    assert matrix[claims].notna().to_numpy().sum() == every


def test_the_tables_of_the_page_are_its_rows_with_a_count_below(found: Conclusions) -> None:
    rows = iter(claim_matrix(found.sections).to_dict("records"))
    for table in (block for block in matrix_blocks(found.sections) if isinstance(block, Table)):
        *settings, counts = table.rows
        for (name, *marks), mine in zip(settings, rows, strict=False):
            assert name.endswith(mine["setting"].removesuffix(" (base)"))
            assert marks == [MARKS.get(mine[claim], "") for claim in table.header[1:]]
        _, *columns = zip(counts, *settings, strict=True)
        for count, *marks in columns:
            assert count == " / ".join(str(marks.count(end)) for end in ("holds", "fails", "open"))
