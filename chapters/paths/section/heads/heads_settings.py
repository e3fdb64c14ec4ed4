"""Settings of one-shot images: trained networks, what scores their heads, and what it removes.

A *setting* is all cells of the kind ``heads`` with one `comparison_id` and one way to choose the
temperature, rules included, and the networks whose heads they score. A *scorer* is a method with a
width: theory at N = 10, the limit, or a simple rule. A seed draws characters, episodes and
weights; all is paired by it. Networks whose heads nobody has scored yet are a setting of their
own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from chapters.paths.heads.heads_cell import FIXED, PUBLISHED, SOLVED, VALIDATION
from chapters.paths.section.means import in_bounds, over_seeds
from chapters.paths.section.networks import ALL, NETWORK
from chapters.paths.section.settings import (
    Setting,
    last_evaluations,
    named,
    once,
    require,
    vectors,
    with_numbers,
)
from study.results import SPLITS, Results

ON_TEST = "the temperature was chosen on the test episodes"
"""Why nothing is decided where it was chosen as published."""

MEASURES = ("accuracy", "accuracy_diagonal", "interplay", "gain", "loss")
"""Measures of theory and limit that have a mean and an interval, on the test split; see
`chapters.paths.section.settings.with_numbers`."""

_OF_TRAINED = ["cell_id", "seed", "lr", "schedule", "status", "status_reason"]
_PREPOSITIONS = {VALIDATION: "by ", PUBLISHED: "as "}


@dataclass(frozen=True, eq=False)
class Trained(Setting):
    """One setting of trained networks.

    `id` is the `comparison_id` of the cells that score; without any, that of the networks; of a
    second way to choose the temperature a hash of both. `recorded` has the networks of other
    learning rates, too; networks and rules that several settings share are counted with the first
    of them. `cells` are those that score, one a method, width and seed, without `outdated`.

    Attributes:
        outdated: those that took other weights apart than their network has now.
        trained: one row a network: `cell_id`, `seed`, `lr`, `schedule`, `status`,
            `status_reason`, `accuracy_<split>` (fractions) and `loss_<split>` (mean squared
            error) at the end, NaN unless it is done, and `without_head`: array (heads,) of the
            test accuracy without each head, empty where unknown.
        heads: H of each layer.
        num_classes: C.
    """

    outdated: pd.DataFrame
    trained: pd.DataFrame
    heads: Sequence[int]
    num_classes: int

    @property
    def seeds(self) -> list[int]:
        """Every seed that was scored here, or whose network did not train to its end.

        A network that nothing here has scored yet is not lost: other settings may have asked for
        it, or the study was stopped.
        """
        lost = self.trained.loc[self.trained["status"] != "done", "seed"]
        return sorted({*lost, *self.cells["seed"], *self.outdated["seed"]})

    @property
    def chosen_on_test(self) -> bool:
        """Whether theory's temperature was chosen on the test episodes: nothing is decided."""
        return bool((self.cells["temperature_choice"] == PUBLISHED).any())

    @property
    def networks(self) -> pd.DataFrame:
        """The rows of `trained` that are done."""
        return self.trained[self.trained["status"] == "done"]

    @property
    def num_removed(self) -> int:
        """K, the largest number of removed heads: every layer keeps one."""
        return sum(self.heads) - len(self.heads)


@once
def trained(setting: Trained) -> pd.DataFrame:
    """The networks that gradient descent trained, by learning rate.

    Returns:
        One row a schedule: `lr`, `schedule`, `num_seeds` that are done, `num_diverged`,
        `num_censored`, and `accuracy_<split>` (fractions) and `loss_test` (mean squared error)
        at the end, each with `_low` and `_high`.
    """
    measures = [*(f"accuracy_{split}" for split in SPLITS), "loss_test"]
    lost = ("diverged", "censored")
    return in_bounds(over_seeds(setting.trained, ["lr", "schedule"], measures, lost))


@once
def solved(setting: Trained) -> pd.DataFrame:
    """Theory and limit: what their mean predictors reach on the test split.

    Returns:
        One row a method and width: `NETWORK`, `num_seeds`, `num_diverged`, each of `MEASURES`
        with `_low` and `_high`, and the temperature over these seeds: `temperature_median`,
        `_least` and `_most`.
    """
    cells = setting.cells[setting.cells["method"].isin(SOLVED)]
    ends = setting.rows.groupby(NETWORK)["temperature"].agg(
        temperature_median="median", temperature_least="min", temperature_most="max"
    )
    table = in_bounds(over_seeds(cells, NETWORK, MEASURES, ["diverged"]))
    return table.join(ends, on=NETWORK)


def read(results: Results, cells: pd.DataFrame) -> list[Trained]:
    """The settings of a directory, by name.

    Args:
        results: the directory.
        cells: rows of `cells`, of both kinds. Networks that they name are read, too.

    Raises:
        ResultsError: unreadable results, or a finished cell without what all have.
    """
    others = set(cells["network"].dropna()) - set(cells["cell_id"])
    known = pd.concat([cells, results.cells(others)], ignore_index=True) if others else cells
    last = last_evaluations(results, known)
    shown, drafts = set(cells["cell_id"]), []
    for part in _parts(known.assign(paths=ALL)):
        mine = pd.concat([part.kin, part.scored]).drop(columns="paths")
        recorded = mine[mine["cell_id"].isin(shown)].reset_index(drop=True)
        shown -= set(recorded["cell_id"])
        drafts.append(_setting(part, recorded, last))
    return named(sorted(drafts, key=lambda each: (each.variant, each.cells.empty, each.id)))


class _Part(NamedTuple):
    """Cells that make a setting: those that score, their networks, these with those of other
    learning rates, and how the temperature was chosen.
    """

    id: str
    scored: pd.DataFrame
    trained: pd.DataFrame
    kin: pd.DataFrame
    choice: str = ""


def _parts(known: pd.DataFrame) -> Iterator[_Part]:
    """Every part; networks that nothing scores come last."""
    scores = known["kind"] == "heads"
    scored, rest = known[scores], known[~scores]
    choice_of = pd.Series(map(_choice, scored.to_dict("records")), scored.index, dtype=object)
    networks = rest
    for key, cells in scored.groupby("comparison_id"):
        mine = networks[networks["cell_id"].isin(cells["network"])]
        kin = networks[networks["comparison_id"].isin(mine["comparison_id"])]
        # Networks of other learning rates were not meant to be scored: they are not lost.
        trained = kin[kin["schedule"].isin(mine["schedule"])]
        rest = rest.drop(kin.index, errors="ignore")
        choices = choice_of[cells.index]
        ways = sorted(set(choices) - {""}, key=lambda name: (name != VALIDATION, name)) or [""]
        for number, choice in enumerate(ways):
            of_choice = hashlib.sha256(f"{key} {choice}".encode()).hexdigest()
            chosen = cells[choices.isin([choice, ""])]  # rules need no temperature
            yield _Part(of_choice if number else str(key), chosen, trained, kin, choice)
    for key, trained in rest.groupby("comparison_id"):
        yield _Part(str(key), scored.iloc[:0], trained, trained)


def _choice(row: Mapping[Any, Any]) -> str:
    """``validation``, ``published``, ``fixed at 0.1``; empty for a rule."""
    choice = row["temperature_choice"]
    if not isinstance(choice, str):
        return ""
    if choice != FIXED:
        return choice
    return f"{choice} at {json.loads(row['cell']).get('temperature', row['temperature']):g}"


def _setting(part: _Part, recorded: pd.DataFrame, last: pd.DataFrame) -> Trained:
    own = part.trained.set_index("cell_id")["network_digest"]
    theirs, mine = part.scored["network"].map(own), part.scored["network_digest"]
    other = theirs.notna() & mine.notna() & (theirs != mine)
    outdated, part = part.scored[other], part._replace(scored=part.scored[~other])
    trained, heads = _trained(part.trained, last), _heads(part)
    classes = pd.concat([part.trained, part.scored])["num_classes"].dropna()
    setting = Trained(
        id=part.id,
        name="",
        variant=str(recorded["task"].iloc[0]),
        recorded=recorded,
        cells=with_numbers(part.scored, last),
        facts=_facts(part, heads),
        outdated=outdated,
        trained=trained,
        heads=heads,
        num_classes=int(classes.iloc[0]) if len(classes) else 2,
    )
    for table, column, length in (
        (setting.rows, "head_scores", sum(heads)),
        (setting.rows, "accuracy_pruned", setting.num_removed + 1),
        (setting.rows, "accuracy_pruned_reverse", setting.num_removed + 1),
        (trained, "without_head", sum(heads)),
    ):
        fits = table[column].map(len).isin([0, length])
        require(table, fits, f"a list {column} that has not {length} values")
    return setting


def _trained(cells: pd.DataFrame, last: pd.DataFrame) -> pd.DataFrame:
    rows = cells.sort_values(["schedule", "seed", "cell_id"])[_OF_TRAINED].reset_index(drop=True)
    for split in SPLITS:
        of_cells = last[last["split"] == split].set_index("cell_id")
        found = of_cells.reindex(rows["cell_id"]).set_axis(rows.index)
        for name in ("accuracy", "loss"):
            rows[f"{name}_{split}"] = found[name].astype(np.float64)
        if split == "test":
            rows["without_head"] = vectors(found["accuracy_without_head"])
    sound = (rows["status"] != "done") | np.isfinite(rows["accuracy_test"])
    require(rows, sound, "no finite accuracy on the test split")
    return rows


def _heads(part: _Part) -> list[int]:
    for text in part.scored["heads"].dropna():
        return [int(number) for number in str(text).split("/")]
    sizes = json.loads(part.trained["cell"].iloc[0])["transformer"]
    return [int(sizes["heads"])] * int(sizes["layers"])


def _facts(part: _Part, heads: Sequence[int]) -> dict[str, str]:
    """What may tell a setting apart from others of its task."""
    facts = {"heads": f"heads {'/'.join(map(str, heads))}"}
    for cell in map(json.loads, part.trained["cell"].iloc[:1]):
        facts |= {
            "d_model": f"d_model {cell['transformer']['d_model']}",
            "pixels": f"{cell['pixels']} px",
            "episodes": f"n={cell['n']}",
        }
    if part.scored.empty:
        return facts | {"scored": "not scored"}
    facts["n"] = f"P={part.scored['n'].iloc[0]:g}"
    if part.choice:
        preposition = _PREPOSITIONS.get(part.choice, "")
        facts["temperature_choice"] = f"temperature {preposition}{part.choice}"
    return facts
