"""Settings of one-shot images: trained networks, what scores their heads, and what it removes.

A *setting* is all cells of the kind ``heads`` with one `comparison_id` and one way to choose the
temperature, rules included, and the networks whose heads they score. A *scorer* is a method with a
width: theory at N = 10, the limit, or a simple rule. A seed draws characters,
episodes and weights; all is paired by it. Networks whose heads nobody has scored yet are a setting
of their own.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.attention_paths import settings as attention_paths
from analysis.attention_paths.networks import ALL, THEORY
from analysis.attention_paths.settings import OF_EVALUATION
from analysis.heads.measures import area, vector
from analysis.heads.methods import (
    FIXED,
    PUBLISHED,
    SCORER,
    SOLVED,
    VALIDATION,
    in_order,
    of_scorer,
)
from study.results import SPLITS, Results, ResultsError

_OF_TRAINED = ["cell_id", "seed", "lr", "schedule", "status", "status_reason"]
_OF_ORDER = ["cell_id", *SCORER, "seed", "network", "head_scores"]
_LISTS = {
    "accuracy_without_head": "without_head",
    "accuracy_pruned": "pruned",
    "accuracy_pruned_reverse": "pruned_reverse",
}
_PREPOSITIONS = {VALIDATION: "by ", PUBLISHED: "as "}
_UNLESS = {"scored": ""}
"""Facts that tell a setting apart from those that do not have them."""

_READ = [*dict.fromkeys([*OF_EVALUATION, "budget_fraction", *_LISTS])]


@dataclass(frozen=True, eq=False)
class Setting:
    """One setting.

    Attributes:
        id: the `comparison_id` of the cells that score; without any, that of the networks; of a
            second way to choose the temperature a hash of both.
        name: tells it apart, e.g. ``omniglot`` or ``omniglot, P=300``.
        recorded: the rows of `cells` that it rests on, and networks of other learning rates.
            Networks and rules that several settings share are counted with the first of them.
        cells: those that score, one a method, width and seed. Without `outdated`.
        outdated: those that took other weights apart than their network has now.
        trained: one row a network: `cell_id`, `seed`, `lr`, `schedule`, `status`,
            `status_reason`, `accuracy_<split>` (fractions) and `loss_<split>` (mean squared
            error) at the end, NaN unless it is done, and `without_head`: array (heads,) of the
            test accuracy without each head, empty where unknown.
        solved: theory and limit as a setting of attention paths.
        orders: one row a finished cell that scores: `cell_id`, `method`, `network_width`, `seed`,
            `network`, arrays on the test split, empty where unknown: `scores` (heads,), `pruned`
            and `pruned_reverse` (K + 1,); and `area` and `area_reverse`, see
            `analysis.heads.measures.area`.
        heads: H of each layer.
        num_classes: C.
        facts: what may tell it apart from others, name -> text.
    """

    id: str
    name: str
    recorded: pd.DataFrame
    cells: pd.DataFrame
    outdated: pd.DataFrame
    trained: pd.DataFrame
    solved: attention_paths.Setting
    orders: pd.DataFrame
    heads: Sequence[int]
    num_classes: int
    facts: Mapping[str, str]

    @property
    def task(self) -> str:
        """omniglot or digits-one-shot."""
        return str(self.recorded["task"].iloc[0])

    @property
    def reference(self) -> float:
        """Smallest finite width of theory, even if all of its cells diverged; NaN: no theory."""
        widths = self.cells.loc[self.cells["method"] == THEORY, "network_width"]
        return float(widths.min()) if len(widths) else math.nan

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
        """Whether theory's temperature was chosen on the test episodes, as published."""
        return bool((self.cells["temperature_choice"] == PUBLISHED).any())

    @property
    def networks(self) -> pd.DataFrame:
        """The rows of `trained` that are done, by `cell_id`."""
        return self.trained[self.trained["status"] == "done"].set_index("cell_id")

    def of(self, method: str, width: float = math.inf) -> pd.DataFrame:
        """The rows of `orders` of one scorer, by seed."""
        return of_scorer(self.orders, method, width).set_index("seed")


def read(results: Results, cells: pd.DataFrame) -> list[Setting]:
    """The settings of a directory, by name.

    Args:
        results: the directory.
        cells: rows of `cells`, of both kinds. Networks that they name are read, too.

    Raises:
        ResultsError: unreadable results, or a finished cell without what all have.
    """
    named = set(cells["network"].dropna()) - set(cells["cell_id"])
    others = [results.cells(named)] if named else []
    known = pd.concat([cells, *others], ignore_index=True) if others else cells
    done = known.loc[known["status"] == "done", "cell_id"]
    found = results.evaluations(done, _READ) if len(done) else pd.DataFrame(columns=_READ)
    last = found.sort_values("budget_fraction").drop_duplicates(["cell_id", "split"], keep="last")
    shown, drafts = set(cells["cell_id"]), []
    for key, scored, trained, kin in _parts(known):
        mine = [part[part["cell_id"].isin(shown)] for part in (kin, scored)]
        recorded = pd.concat([part for part in mine if len(part)], ignore_index=True)
        shown -= set(recorded["cell_id"])
        drafts.append(_setting(key, recorded, scored, trained, last))
    return _named(drafts)


def _parts(
    known: pd.DataFrame,
) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame, pd.DataFrame]]:
    """Id, cells that score, networks, and these with those of other learning rates.

    Networks that nothing scores come last.
    """
    scores = known["kind"] == "heads"
    scored, networks = known[scores], known[~scores]
    group_of = dict(zip(networks["cell_id"], networks["comparison_id"], strict=True))
    used: set[str] = set()
    for key, cells in scored.groupby("comparison_id"):
        groups = {group_of[each] for each in cells["network"] if each in group_of}
        used |= groups
        kin = networks[networks["comparison_id"].isin(groups)]
        # Networks of other learning rates were not meant to be scored: they are not lost.
        schedules = kin.loc[kin["cell_id"].isin(cells["network"]), "schedule"]
        trained = kin[kin["schedule"].isin(schedules)]
        for number, (choice, chosen) in enumerate(_by_choice(cells)):
            of_choice = hashlib.sha256(f"{key} {choice}".encode()).hexdigest()
            yield str(key) if number == 0 else of_choice, chosen, trained, kin
    rest = networks[~networks["comparison_id"].isin(used)]
    for key, trained in rest.groupby("comparison_id"):
        yield str(key), scored.iloc[:0], trained, trained


def _by_choice(cells: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Each way to choose the temperature with its cells, and with those that need none."""
    choices = [_choice(row) for row in cells.to_dict("records")]
    of_choice = pd.Series(choices, cells.index, dtype=object)
    names = sorted(set(choices) - {""}, key=lambda name: (name != VALIDATION, name))
    return [(name, cells[of_choice.isin([name, ""])]) for name in names] or [("", cells)]


def _choice(row: Mapping[Any, Any]) -> str:
    """``validation``, ``published``, ``fixed at 0.1``; empty for a rule."""
    choice = row["temperature_choice"]
    if not isinstance(choice, str):
        return ""
    if choice != FIXED:
        return choice
    return f"{choice} at {json.loads(row['cell']).get('temperature', row['temperature']):g}"


def _setting(
    key: str,
    recorded: pd.DataFrame,
    scored: pd.DataFrame,
    trained: pd.DataFrame,
    last: pd.DataFrame,
) -> Setting:
    test = last[last["split"] == "test"]
    own = dict(zip(trained["cell_id"], trained["network_digest"], strict=True))
    theirs = scored["network"].map(own)
    mine = scored["network_digest"]
    other = theirs.notna() & mine.notna() & (theirs != mine)
    outdated, scored = scored[other], scored[~other]
    cells = in_order(scored)
    of_paths = scored[scored["method"].isin(SOLVED)].assign(paths=ALL)
    solved = attention_paths.setting_of(key, "", of_paths, test[[*OF_EVALUATION]])
    orders = _orders(cells, test)
    heads = _heads(scored, trained)
    networks = _trained(trained, last)
    _require_equal_lengths(orders, networks, heads)
    classes = pd.concat([trained, scored])["num_classes"].dropna()
    return Setting(
        id=key,
        name="",
        recorded=recorded,
        cells=cells,
        outdated=outdated,
        trained=networks,
        solved=solved,
        orders=orders,
        heads=heads,
        num_classes=int(classes.iloc[0]) if len(classes) else 2,
        facts=_facts(cells, trained, heads),
    )


def _orders(cells: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    lists = test[["cell_id", "accuracy_pruned", "accuracy_pruned_reverse"]]
    rows = cells.loc[cells["status"] == "done", _OF_ORDER].merge(lists, on="cell_id", how="left")
    rows = rows.rename(columns={"head_scores": "scores", **_LISTS})
    for name in ("scores", "pruned", "pruned_reverse"):
        rows[name] = rows[name].astype(object).map(vector)
    for name, column in (("area", "pruned"), ("area_reverse", "pruned_reverse")):
        rows[name] = rows[column].map(area).astype(np.float64)
    return rows.reset_index(drop=True)


def _trained(cells: pd.DataFrame, last: pd.DataFrame) -> pd.DataFrame:
    rows = cells.sort_values(["schedule", "seed", "cell_id"])[_OF_TRAINED]
    rows = rows.reset_index(drop=True)
    for split in SPLITS:
        of_split = last[last["split"] == split].set_index("cell_id").reindex(rows["cell_id"])
        for name in ("accuracy", "loss"):
            rows[f"{name}_{split}"] = of_split[name].to_numpy(np.float64)
        if split == "test":
            rows["without_head"] = pd.Series(
                [vector(value) for value in of_split["accuracy_without_head"]], dtype=object
            )
    lost = rows[(rows["status"] == "done") & ~np.isfinite(rows["accuracy_test"])]
    for cell_id in lost["cell_id"]:
        raise ResultsError(
            f"cell {cell_id} of one-shot images has no finite accuracy on the test split. Move "
            "its files away and run its study again."
        )
    return rows


def _require_equal_lengths(
    orders: pd.DataFrame, trained: pd.DataFrame, heads: Sequence[int]
) -> None:
    """Refuses lists that are not of all heads, or not of all numbers of removed ones."""
    total = sum(heads)
    lengths = {
        "scores": total,
        "without_head": total,
        "pruned": total - len(heads) + 1,
        "pruned_reverse": total - len(heads) + 1,
    }
    for table in (orders, trained):
        for name, length in ((n, length) for n, length in lengths.items() if n in table):
            for cell_id, values in zip(table["cell_id"], table[name], strict=True):
                if len(values) not in (0, length):
                    raise ResultsError(
                        f"cell {cell_id} of one-shot images has {len(values)} values of "
                        f"{name.replace('_', ' ')} instead of {length}. Move its files away and "
                        "run its study again."
                    )


def _heads(scored: pd.DataFrame, trained: pd.DataFrame) -> list[int]:
    for text in scored["heads"].dropna():
        return [int(number) for number in str(text).split("/")]
    for sizes in map(_sizes, trained["cell"]):
        return [int(sizes["heads"])] * int(sizes["layers"])
    return []


def _facts(cells: pd.DataFrame, trained: pd.DataFrame, heads: Sequence[int]) -> dict[str, str]:
    """What may tell a setting apart from others of its task."""
    facts = {"heads": f"heads {'/'.join(map(str, heads))}"}
    for text in trained["cell"].iloc[:1]:
        settings = json.loads(text)
        sizes = _sizes(text)
        facts |= {"d_model": f"d_model {sizes['d_model']}", "pixels": f"{settings['pixels']} px"}
        facts |= {"episodes": f"n={settings['n']}"}
    if cells.empty:
        return facts | {"scored": "not scored"}
    facts["n"] = f"P={cells['n'].iloc[0]:g}"
    for choice in {_choice(row) for row in cells.to_dict("records")} - {""}:
        facts["temperature_choice"] = f"temperature {_PREPOSITIONS.get(choice, '')}{choice}"
    return facts


def _sizes(cell: str) -> Mapping[str, Any]:
    return dict(json.loads(cell)["transformer"])


def _named(drafts: Sequence[Setting]) -> list[Setting]:
    """The settings with names: the task and, where several have it, what they differ in."""
    found: dict[str, Setting] = {}
    for task in sorted({each.task for each in drafts}):
        group = [each for each in drafts if each.task == task]
        for each in sorted(group, key=lambda setting: (setting.cells.empty, setting.id)):
            unlike = [
                fact
                for name, fact in each.facts.items()
                if any(other.facts.get(name, _UNLESS.get(name, fact)) != fact for other in group)
            ]
            name = ", ".join([task, *unlike])
            name = f"{name} ({each.id[:8]})" if name in found else name
            found[name] = replace(each, name=name)
    return list(found.values())
