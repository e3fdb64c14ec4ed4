"""Settings of attention paths: which cells belong together, and what is known of each network.

A *setting* is all cells with one `comparison_id`: one task, one set of heads, one number of
training inputs. In it a *network* is a method with a width and a set of paths: the theory's
network of N = 10, a sampled one, or the limit of infinite width with the good path alone. The
seeds of a network draw its data and its random heads; networks are paired by seed. Settings of
trained networks (`chapters.paths.section.trained`) are the same and more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from chapters.paths.attention_paths import CONVERGED
from chapters.paths.heads.heads_cell import SOLVED
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE
from chapters.paths.section.networks import ALL, NETWORK, Vector, in_order, of_network
from study.results import Results, ResultsError

VARIANTS = ("plain", "noisy", "own")
"""In the order of the report."""

LEADING = 30
"""Principal components that count as leading: those that figure 2d of the paper shows."""

_OF_CELL = [
    "cell_id", *NETWORK, "seed", "network", "path_names", "order_parameter", "overlaps", "r_hat",
    "head_scores",
]  # fmt: skip
_NUMBERS = ["loss", "accuracy", "accuracy_diagonal", "r_hat"]
_VECTORS_OF_SPLIT = [
    "predictor_mean", "predictor_mean_error", "accuracy_pruned", "accuracy_pruned_reverse",
]  # fmt: skip
_VECTORS = ["order_parameter", "overlaps", "head_scores", *_VECTORS_OF_SPLIT]
_OF_EVALUATION = ["cell_id", *_NUMBERS[:3], *_VECTORS_OF_SPLIT]
_READ = [*_OF_EVALUATION, "split", "budget_fraction", "accuracy_without_head"]
_TOLD_APART = {
    "n": "P={:g}",
    "tokens": "T={:g}",
    "sigma_perp": "sigma_perp={:g}",
    "temperature": "temperature {:g}",
    "heads": "heads {}",
}
_UNLESS = {"scored": ""}
"""Facts that tell a setting apart from those that do not have them."""

AnySetting = TypeVar("AnySetting", bound="Setting")

once = functools.lru_cache(maxsize=64)
"""Makes a table of a setting when it is first asked for. Whoever changes it takes a copy."""


@dataclass(frozen=True, eq=False)
class Setting:
    """One setting.

    Attributes:
        id: its `comparison_id`.
        name: tells it apart, e.g. ``plain`` or ``plain, P=50``.
        recorded: all its rows of `cells`.
        cells: one of them a network and seed; of several that differ in the length of their
            chains, the one with the most draws.
        rows: of the cells that means rest on, on the test split: the columns `NETWORK`, `seed`,
            `network` (the trained one), `path_names`, `accuracy` and `accuracy_diagonal`
            (fractions), `loss` (nats), `r_hat`; arrays, empty where unknown: `order_parameter`
            (D, D), `overlaps` (P,), `predictor_mean` and `predictor_mean_error` (test inputs,),
            `head_scores` (heads,), `accuracy_pruned` and `accuracy_pruned_reverse` (K + 1,); and
            what follows from them, see `with_measures`. NaN: not known.
        unconverged: the same of sampled cells whose chains have not converged.
        facts: what may tell it apart from others, name -> text.
    """

    id: str
    name: str
    recorded: pd.DataFrame
    cells: pd.DataFrame
    rows: pd.DataFrame
    unconverged: pd.DataFrame
    facts: Mapping[str, str]

    @property
    def chosen_on_test(self) -> bool:
        """Whether theory's temperature was chosen on the test split: then nothing is decided."""
        return False

    @property
    def first(self) -> Mapping[str, Any]:
        """Its first cell, for what all of them share."""
        return dict(self.recorded.iloc[0])

    @property
    def task(self) -> str:
        """The task of its networks."""
        return str(self.first["task"])

    @property
    def variant(self) -> str:
        """plain, noisy or own; of trained networks their task."""
        return str(self.first["variant"])

    @property
    def label(self) -> str:
        """Tells it apart in tables of several sections."""
        return self.variant

    @property
    def said(self) -> str:
        """What all of its cells share, in words."""
        first = self.first
        return (
            f"P={first['n']} training inputs of T={first['tokens']} tokens, noise sigma_perp "
            f"{first['sigma_perp']:g}, temperature {first['temperature']:g}, heads "
            f"{first['heads']}"
        )

    @property
    def seeds(self) -> list[int]:
        """Every seed that it has."""
        return sorted(set(self.recorded["seed"]))

    @property
    def widths(self) -> list[float]:
        """The finite widths N, rising."""
        return sorted({float(width) for width in self.cells["network_width"]} - {math.inf})

    def widths_of(self, method: str) -> list[float]:
        """The widths of a method with all paths, rising, with those that diverged in all seeds."""
        mine = (self.cells["method"] == method) & (self.cells["paths"] == ALL)
        return [float(width) for width in self.cells.loc[mine, "network_width"].unique()]

    def of(self, method: str, width: float = math.inf, paths: str = ALL) -> pd.DataFrame:
        """The rows of one network, by seed."""
        return of_network(self.rows, method, width, paths).set_index("seed")

    def num_seeds(self, *methods: str) -> int:
        """How many seeds the networks of these methods have, lost ones among them."""
        return int(self.cells.loc[self.cells["method"].isin(methods), "seed"].nunique())


def read(results: Results, cells: pd.DataFrame) -> list[Setting]:
    """The settings of a directory: plain, noisy, own.

    Args:
        results: the directory.
        cells: rows of `cells`.

    Raises:
        ResultsError: unreadable results, or a finished cell without an accuracy, a predictor or
            a D x D order parameter.
    """
    last = last_evaluations(results, cells)
    drafts = []
    for key, recorded in cells.groupby("comparison_id"):
        first = recorded.iloc[0]
        facts = {name: text.format(first[name]) for name, text in _TOLD_APART.items()}
        kept = recorded.reset_index(drop=True)
        drafts.append(Setting(str(key), "", kept, *known_of(kept, last), facts))
    return named(sorted(drafts, key=lambda each: (VARIANTS.index(each.variant), each.id)))


def last_evaluations(results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """The last evaluation of every finished cell on every split: `_READ`."""
    done = cells.loc[cells["status"] == "done", "cell_id"]
    found = results.evaluations(done, _READ)
    return found.sort_values("budget_fraction").drop_duplicates(["cell_id", "split"], keep="last")


def known_of(
    cells: pd.DataFrame, last: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """What is known of the networks of a setting: its `cells`, `rows` and `unconverged`.

    Args:
        cells: its rows of `cells`.
        last: see `last_evaluations`.
    """
    ordered = cells.sort_values(["steps", "cell_id"], ascending=[False, True])
    kept = in_order(ordered.drop_duplicates([*NETWORK, "seed"]))
    test = last.loc[last["split"] == "test", _OF_EVALUATION]
    rows = kept.loc[kept["status"] == "done", _OF_CELL].merge(test, on="cell_id", how="left")
    rows[_NUMBERS] = rows[_NUMBERS].astype(np.float64)
    for column in _VECTORS:
        rows[column] = vectors(rows[column])
    solved = rows[rows["method"].isin([*SOLVED, SLICE])]
    require(solved, np.isfinite(solved["accuracy"]), "no finite accuracy on the test split")
    means = solved["predictor_mean"].map(lambda mean: len(mean) > 0 and np.isfinite(mean).all())
    require(solved, means, "no finite mean predictor on the test split")
    paths = solved["path_names"].map(lambda names: 0 if names is None else len(names))
    whole = (paths > 0) & (solved["order_parameter"].map(len) == paths**2)
    require(solved, whole, "no order parameter for all pairs of its paths")
    rows["order_parameter"] = rows["order_parameter"].map(
        lambda entries: entries.reshape(math.isqrt(len(entries)), -1) if len(entries) else entries
    )
    converged = (rows["method"] != SLICE) | (rows["r_hat"] < CONVERGED)  # not if it is NaN
    averaged, others = (rows[mine].reset_index(drop=True) for mine in (converged, ~converged))
    return kept, with_measures(averaged), others


def vectors(column: pd.Series) -> pd.Series:
    """A list column as arrays; empty where a value is missing."""
    missing = np.array([])
    arrays = [missing if np.ndim(each) == 0 else np.asarray(each, np.float64) for each in column]
    return pd.Series(arrays, column.index, dtype=object)


def require(rows: pd.DataFrame, sound: pd.Series, fault: str) -> None:
    """Refuses the first finished cell that is not sound: it is damaged, or of another program."""
    for cell_id in rows.loc[~sound.astype(bool), "cell_id"]:
        raise ResultsError(
            f"cell {cell_id} has {fault}. Move its files away and run its study again."
        )


def with_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what follows from them.

    Args:
        rows: `rows` of a `Setting`, without these columns.

    Returns:
        `largest_overlap`: the largest overlap with the labels of one of the `LEADING` principal
        components of the kernel; `interplay`: accuracy minus that without the off-diagonal of U;
        `gain`: accuracy minus that of the limit with all paths of the same seed; `distance`: root
        mean square distance of the mean predictor from that limit's, as a share of the limit's.
        NaN: not known.
    """
    limit = of_network(rows, LIMIT).set_index("seed").reindex(rows["seed"]).set_axis(rows.index)
    both = zip(rows["predictor_mean"], limit["predictor_mean"], strict=True)
    measures = {
        "largest_overlap": [max(each[:LEADING], default=math.nan) for each in rows["overlaps"]],
        "interplay": rows["accuracy"] - rows["accuracy_diagonal"],
        "gain": rows["accuracy"] - limit["accuracy"],
        "distance": [relative_distance(mine, other) for mine, other in both],
    }
    return rows.join(pd.DataFrame(measures, rows.index, dtype=np.float64))


def relative_distance(values: Vector, reference: Vector) -> float:
    """Root mean square of values - reference (n,), as a share of that of the reference.

    NaN where there is no such reference, or all of it is 0.
    """
    if np.shape(values) != np.shape(reference) or not np.any(reference):
        return math.nan
    return float(np.sqrt(np.mean((values - reference) ** 2) / np.mean(reference**2)))


def named(drafts: Sequence[AnySetting]) -> list[AnySetting]:
    """The settings with names: the variant and, where several have it, what they differ in."""
    found: dict[str, AnySetting] = {}
    for each in drafts:
        group = [other.facts for other in drafts if other.variant == each.variant]
        unlike = [
            fact
            for name, fact in each.facts.items()
            if any(facts.get(name, _UNLESS.get(name, fact)) != fact for facts in group)
        ]
        name = ", ".join([each.variant, *unlike])
        name = f"{name} ({each.id[:8]})" if name in found else name
        found[name] = replace(each, name=name)
    return list(found.values())
