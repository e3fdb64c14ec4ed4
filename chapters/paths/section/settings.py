"""Settings of attention paths: which cells belong together, and what is known of each network.

A *setting* is all cells with one `comparison_id`: one task, one set of heads, one number of
training inputs. In it a *network* is a method with a width and a set of paths: the theory's
network of N = 10, a sampled one, or the limit of infinite width with the good path alone. The
seeds of a network draw its data and its random heads; networks are paired by seed. Settings of
trained networks (`chapters.paths.section.heads.heads_settings`) are the same and more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from chapters.paths.attention_paths import CONVERGED
from chapters.paths.heads.heads_cell import SOLVED
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE, THEORY
from chapters.paths.section.networks import NETWORK, in_order, line, of_network
from study.results import Results, ResultsError

Vector = NDArray[np.float64]

UNCONVERGED = "unconverged"
"""`status` of a sampled network whose chains have not converged."""

LONGER_CHAINS = "raise --set warmup=... draws=..."
"""What to do about such chains."""

LEADING = 30
"""Principal components that count as leading: those that figure 2d of the paper shows."""

_NUMBERS = ["accuracy", "accuracy_diagonal", "loss"]
_VECTORS_OF_SPLIT = [
    "predictor_mean", "predictor_mean_error", "accuracy_pruned", "accuracy_pruned_reverse",
]  # fmt: skip
_VECTORS = ["order_parameter", "overlaps", "head_scores", *_VECTORS_OF_SPLIT]
_OF_EVALUATION = ["cell_id", *_NUMBERS, *_VECTORS_OF_SPLIT]
_READ = [*_OF_EVALUATION, "split", "budget_fraction", "accuracy_without_head"]

once = functools.lru_cache(maxsize=64)
"""Makes a table of a setting when it is first asked for. Whoever changes it takes a copy."""


@dataclass(frozen=True, eq=False)
class Setting:
    """One setting.

    Attributes:
        id: its `comparison_id`.
        name: tells it apart, e.g. ``plain`` or ``plain, P=50``.
        variant: plain, noisy or own; of trained networks their task.
        recorded: all its rows of `cells`.
        cells: of these one row a network and seed, see `with_numbers`.
        facts: what may tell it apart from others, name -> text.
    """

    id: str
    name: str
    variant: str
    recorded: pd.DataFrame
    cells: pd.DataFrame
    facts: Mapping[str, str]

    @functools.cached_property
    def rows(self) -> pd.DataFrame:
        """The rows of `cells` that means rest on."""
        return self.cells[self.cells["status"] == "done"]

    @property
    def seeds(self) -> list[int]:
        """Every seed that it has."""
        return sorted(set(self.recorded["seed"]))

    @property
    def reference(self) -> float:
        """Smallest finite width of theory, even if all of its cells diverged; NaN: no theory."""
        return min(self.widths_of(THEORY), default=math.nan)

    @property
    def reference_text(self) -> str:
        """``theory N=10``: the network of that width."""
        return f"{THEORY} N={self.reference:g}"

    def widths_of(self, method: str) -> list[float]:
        """The widths of a method with all paths, rising, with those that diverged in all seeds."""
        return [*map(float, line(self.cells, method)["network_width"].unique())]

    def of(self, *network: Any) -> pd.DataFrame:
        """The rows of a network, by seed; arguments as of `networks.of_network`."""
        return of_network(self.rows, *network).set_index("seed")


AnySetting = TypeVar("AnySetting", bound=Setting)


def last_evaluations(results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """The last evaluation of every finished cell on every split: `_READ`."""
    done = cells.loc[cells["status"] == "done", "cell_id"]
    found = results.evaluations(done, _READ)
    return found.sort_values("budget_fraction").drop_duplicates(["cell_id", "split"], keep="last")


def with_numbers(cells: pd.DataFrame, last: pd.DataFrame) -> pd.DataFrame:
    """What is known of the networks of a setting.

    Args:
        cells: its rows of `cells`.
        last: see `last_evaluations`.

    Returns:
        One row a network and seed, in the order of tables; of several cells that differ in the
        length of their chains, the one with the most draws. Besides the columns of `cells`, on
        the test split: `accuracy` and `accuracy_diagonal` (fractions) and `loss` (nats); arrays,
        empty where unknown: `order_parameter` (D^2,), row by row, `overlaps` (P,),
        `predictor_mean` and `predictor_mean_error` (test inputs,), `head_scores` (heads,),
        `accuracy_pruned` and `accuracy_pruned_reverse` (K + 1,); and what follows from them, see
        `_measures`. `status` may be `UNCONVERGED`. NaN: not known.

    Raises:
        ResultsError: a finished cell without an accuracy, a predictor or an order parameter.
    """
    ordered = cells.sort_values(["steps", "cell_id"], ascending=[False, True])
    kept = in_order(ordered.drop_duplicates([*NETWORK, "seed"]))
    test = last.loc[last["split"] == "test", _OF_EVALUATION]
    table = kept.merge(test, on="cell_id", how="left").astype(dict.fromkeys(_NUMBERS, np.float64))
    table = table.assign(**{column: vectors(table[column]) for column in _VECTORS})
    solved = table[(table["status"] == "done") & table["method"].isin([*SOLVED, SLICE])]
    require(solved, np.isfinite(solved["accuracy"]), "no finite accuracy on the test split")
    means = solved["predictor_mean"].map(lambda mean: len(mean) > 0 and np.isfinite(mean).all())
    require(solved, means, "no finite mean predictor on the test split")
    paths = solved["path_names"].map(lambda names: 0 if names is None else len(names))
    whole = (paths > 0) & (solved["order_parameter"].map(len) == paths**2)
    require(solved, whole, "no order parameter for all pairs of its paths")
    converged = solved["r_hat"].astype(np.float64) < CONVERGED  # not if it is NaN
    table.loc[solved.index[(solved["method"] == SLICE) & ~converged], "status"] = UNCONVERGED
    return table.assign(**_measures(table))


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


def _measures(table: pd.DataFrame) -> dict[str, pd.Series]:
    """What follows from the numbers of each network.

    Returns:
        `largest_overlap`: the largest overlap with the labels of one of the `LEADING` principal
        components of the kernel; `interplay`: accuracy minus that without the off-diagonal of U;
        `gain`: accuracy minus that of the limit with all paths of the same seed; `distance`: root
        mean square distance of the mean predictor from that limit's, as a share of the limit's.
        NaN: not known.
    """
    limit = of_network(table, LIMIT).set_index("seed").reindex(table["seed"])
    limit = limit.set_axis(table.index)
    both = zip(table["predictor_mean"], limit["predictor_mean"], strict=True)
    overlaps = (max(each[:LEADING], default=math.nan) for each in table["overlaps"])
    distances = (relative_distance(mine, other) for mine, other in both)
    return {
        "largest_overlap": pd.Series(overlaps, table.index, np.float64),
        "interplay": table["accuracy"] - table["accuracy_diagonal"],
        "gain": table["accuracy"] - limit["accuracy"],
        "distance": pd.Series(distances, table.index, np.float64),
    }


def relative_distance(values: Vector, reference: Vector) -> float:
    """Root mean square of values - reference (n,), as a share of that of the reference.

    NaN where there is no such reference, or all of it is 0.
    """
    if np.shape(values) != np.shape(reference) or not np.any(reference):
        return math.nan
    return float(np.sqrt(np.mean((values - reference) ** 2) / np.mean(reference**2)))


def named(drafts: Sequence[AnySetting]) -> list[AnySetting]:
    """The settings with names: the variant and, where several have it, what they differ in.

    A fact that one lacks tells nothing apart; `scored`, which only those have that are not, does.
    """
    found: dict[str, AnySetting] = {}
    for each in drafts:
        group = [other.facts for other in drafts if other.variant == each.variant]
        unlike = [
            fact
            for name, fact in each.facts.items()
            if any(facts.get(name, "" if name == "scored" else fact) != fact for facts in group)
        ]
        name = ", ".join([each.variant, *unlike])
        name = f"{name} ({each.id[:8]})" if name in found else name
        found[name] = replace(each, name=name)
    return list(found.values())
