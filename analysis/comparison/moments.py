"""Recorded runs: which of their evaluations count, and at which moments all were measured.

Another training loop may measure a run on one split, or by one measure, more often than by
another. An evaluation of a split counts if it has every measure that all done runs of the
comparison have on that split; or, where these meet too early, the main one. Of a run whose
measures never meet, all that was measured counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from analysis.groups import is_recorded
from study.results import SPLITS

MEASURED = ("accuracy", "saif", "measures")
"""Columns by which an evaluation of a recorded run says what was measured."""

EARLY = 0.9
"""Cut below this share of where it could be, a comparison is cut early."""

_VALUES = r":[^,}]*"  # in the JSON of `measures`
_NO_ROWS = pd.DataFrame({"cell": [], "split": [], "x": [], "key": []}).astype(
    {"cell": int, "split": int, "x": float, "key": int}
)


class Moments:
    """What was measured when, of the recorded runs among some cells.

    Args:
        cells: one row a cell, see `analysis.comparison.cut.cut_cells`.
        parts: all evaluations, with `cell_id`, `split`, the column of the axis and `MEASURED`.
        column: of the axis.
        budget: the largest value of the axis that may be shared; infinite: any.

    Attributes:
        shared: (cells, splits) the last value of the axis, above 0 and within the budget, at which
            every done run of the comparison has an evaluation of the split that counts; infinite:
            there is none.
    """

    def __init__(
        self, cells: pd.DataFrame, parts: Iterator[pa.Table], column: str, budget: float
    ) -> None:
        self._runs = pa.array(cells["cell_id"][is_recorded(cells)])
        self._keys = {"": 0}  # sets of measures, as text, and their numbers
        done = (cells["status"] == "done").to_numpy(bool)
        comparison = pd.factorize(cells["comparison_id"])[0]
        found = [self._rows(cells, part, column) for part in parts]
        rows = pd.concat([_NO_ROWS, *found], ignore_index=True)
        rows = rows[rows["key"] > 0]
        rows = rows.assign(of=comparison[rows["cell"]], done=done[rows["cell"]])
        names = [frozenset(re.findall(r"\w+", text)) for text in self._keys]
        some = np.array([bool(each) for each in names])  # untrained, it is told elsewhere
        self._counted = np.tile(some, (len(cells), len(SPLITS), 1))
        self.shared = np.full((len(cells), len(SPLITS)), np.inf)
        for _, of_all in rows.groupby(["of", "split"]):
            of, split = (int(of_all[name].iloc[0]) for name in ("of", "split"))
            counted, last = _best(of_all, names, budget)
            for cell, sets in counted.items():
                self._counted[cell, split] = sets
            self.shared[comparison == of, split] = last

    def counted(
        self, part: pa.Table, cell: NDArray[np.int64], split: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """(rows,) whether each evaluation counts.

        Args:
            part: evaluations of recorded runs.
            cell, split: (rows,) positions of theirs.
        """
        return self._counted[cell, split, self._key(part)]

    def _rows(self, cells: pd.DataFrame, part: pa.Table, column: str) -> pd.DataFrame:
        """Positions of cell and split, value of the axis, and what was measured, of each row."""
        part = part.filter(pc.is_in(part["cell_id"], self._runs))
        cell = pd.Index(cells["cell_id"]).get_indexer(pd.Index(part["cell_id"].to_pandas()))
        split = pd.Index(SPLITS).get_indexer(pd.Index(part["split"].to_pandas()))
        x = part[column].to_numpy().astype(float)
        return pd.DataFrame({"cell": cell, "split": split, "x": x, "key": self._key(part)})

    def _key(self, part: pa.Table) -> NDArray[np.int64]:
        """(rows,) a number for the set of measures that each row has; 0: none."""
        own = pc.fill_null(part["measures"].cast(pa.string()), "")
        texts = [pc.replace_substring_regex(own, _VALUES, "")]
        for name in ("accuracy", "saif"):
            known = pc.fill_null(pc.is_finite(part[name].cast(pa.float64())), False)
            texts.append(pc.if_else(known, f" {name}", ""))
        sets = pc.binary_join_element_wise(*texts, "").combine_chunks().dictionary_encode()
        keys = [self._keys.setdefault(t, len(self._keys)) for t in sets.dictionary.to_pylist()]
        return np.array(keys, np.int64)[sets.indices.to_numpy()]


def _best(
    rows: pd.DataFrame, names: list[frozenset[str]], budget: float
) -> tuple[dict[int, NDArray[np.bool_]], float]:
    """Which sets of measures count, by cell, and the last moment that all done runs share.

    Args:
        rows: of one comparison and split.
        names: the sets of measures.
        budget: the largest value that may be shared.
    """
    trained = rows[rows["x"] > 0].drop_duplicates(["cell", "key"])
    sets = {cell: [names[key] for key in keys] for cell, keys in _by_cell(trained).items()}
    ever = {cell: frozenset[str]().union(*own) for cell, own in sets.items()}
    done = trained.loc[trained["done"], "cell"].unique().tolist()
    common = frozenset[str]().union(*ever.values()).intersection(*(ever[cell] for cell in done))
    main = [name for name in ("accuracy", "saif", *sorted(common)) if name in common][:1]
    found = []
    for needed in (common, frozenset(main)):
        counted = {}
        for cell, own in sets.items():
            wanted = ever[cell] & needed
            met = any(wanted <= each for each in own)
            counted[cell] = np.array([bool(n) and (wanted <= n or not met) for n in names])
        found.append((counted, _last_shared(rows, counted, budget)))
    by_all, by_main = (0.0 if math.isinf(last) else last for _, last in found)
    return found[by_all < EARLY * by_main]


def _last_shared(
    rows: pd.DataFrame, counted: dict[int, NDArray[np.bool_]], budget: float
) -> float:
    """The last moment of training at which every done run has what counts; else infinite."""
    done = rows[rows["done"] & (rows["x"] > 0)]
    if done.empty:
        return math.inf
    place, cells = pd.factorize(done["cell"])
    done = done[np.array([counted[cell] for cell in cells])[place, done["key"]]]
    met = done[done["x"] <= budget].groupby("x")["cell"].nunique()
    shared = met.index[met == done["cell"].nunique()]
    return float(max(shared, default=math.inf))


def _by_cell(rows: pd.DataFrame) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for cell, key in zip(rows["cell"].tolist(), rows["key"].tolist(), strict=True):
        found.setdefault(cell, []).append(key)
    return found
