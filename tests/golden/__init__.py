"""The golden record: what the program says, kept in `recorded/`, so that nothing moves unnoticed.

`python -m tests.golden` compares, `--record` records anew; `test_golden.py` compares in the suite.
"""

from tests.golden import data, ids, mistakes, reports, rows, verdicts

_ALL = (ids.PART, rows.PART, rows.REAL, reports.PART, data.PART, mistakes.PART, verdicts.PART)
PARTS = {part.name: part for part in _ALL}
