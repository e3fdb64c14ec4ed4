"""What is said of comparisons: templates, in the folder `templates`, that read their facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.digest import published
from analysis.digest.compare import Comparison
from analysis.digest.limits import soft_epochs
from analysis.forms import listed
from analysis.groups import paradigm_order
from analysis.section.templates import paragraphs


def said(name: str, comparison: Comparison) -> list[str]:
    """The sentences of one template about a comparison; none where it has nothing to say.

    Args:
        name: `setting`, what its rows have in common, and `cut`, the same without its name, both
            of one that has numbers; `basis`, what these are of; `tuned`, what was tuned and
            confirmed; `two_sorts`, where seeds fall apart; `stages`, options that were chosen and
            tested on the same seeds or are not confirmed yet; `limits`, all that limits an answer,
            what weighs most first; `data`, what its cells record about their data.
        comparison: it.
    """
    of_pairs, of_means = comparison.paired, comparison.summary
    return paragraphs(f"{name}.j2", c=comparison, paired=of_pairs, summary=of_means)


def said_once(name: str, found: Sequence[Comparison]) -> list[str]:
    """What `said` says of each, each sentence once, with the settings it is not of all."""
    return _once({each: said(name, each) for each in found})


def _once(texts: Mapping[Comparison, Sequence[str]]) -> list[str]:
    of: dict[str, list[str]] = {}
    for comparison, mine in texts.items():
        for text in dict.fromkeys(mine):
            of.setdefault(text, []).append(comparison.name)
    return [
        text if len(names) == len(texts) else f"{listed(names)}: {text}"
        for text, names in of.items()
    ]


def answer(found: Sequence[Comparison]) -> list[str]:
    """Who beats whom, a sentence a comparison: only where a verdict of `Comparison.paired` does.

    Args:
        found: as `analysis.digest.compare.compare` gives them, at least one.
    """
    names = paradigm_order(name for each in found for name in each.choice["paradigm"])
    return paragraphs("answer.j2", found=found, names=names)


def setting_text(comparison: Comparison) -> str:
    """What the rows of a comparison have in common: setting, cut and split."""
    (text,) = said("setting", comparison)
    return text


def pair_notes(paired: pd.DataFrame) -> list[str]:
    """Why pairs are undecided where their row does not show it, few seeds, and later ones.

    Args:
        paired: as `analysis.digest.pairs` gives it, of one comparison; of kinds without a plan it
            lacks the seeds of that.
    """
    of_plan = ("ended_seeds", "planned_seeds", "later_seeds")
    columns = dict.fromkeys([*paired, *of_plan])
    return paragraphs("pairs.j2", paired=paired.reindex(columns=list(columns)))


def over_what(comparison: Comparison) -> str:
    """What the intervals and tests are over, and what is fixed."""
    (text,) = paragraphs("over.j2", paired=comparison.paired, of=comparison.modality)
    return text


def method(found: Sequence[Comparison]) -> list[str]:
    """How all was computed, a paragraph each."""
    known = [each.measures[name] for each in found for name in each.metrics]
    paired = pd.concat([each.paired for each in found])
    return paragraphs("method.j2", found=found, measures=known, paired=paired)


def saif(found: Sequence[Comparison]) -> list[str]:
    """What SAIF is: a sentence for what is classified, and one of each other modality."""
    return paragraphs("saif.j2", found=[each for each in found if "saif" in each.metrics])


def table_one_notes(found: Sequence[Comparison]) -> list[str]:
    """What must be said beside the table, above all where our settings are not the paper's."""
    return _once({each: _table_one_notes(each) for each in found})


def _table_one_notes(comparison: Comparison) -> list[str]:
    task, epochs = comparison.task, soft_epochs(comparison)
    row = published.row_of(task, comparison.m, comparison.architecture)
    return paragraphs(
        "table_one.j2",
        c=comparison,
        source=published.of(task).sources.get(task) if row.scores else None,
        differences=setting_differences(comparison.settings, epochs, comparison.cells),
    )


def setting_differences(
    settings: Mapping[str, Any], epochs: float, cells: pd.DataFrame
) -> list[str]:
    """How the cells of one comparison differ from the runs behind Table 1.

    Args:
        settings: what they share, as `study.cell.Cell.to_dict` gives it.
        epochs: passes over the training mosaics or posts that a soft cell got; NaN: not known.
        cells: that ran.

    Returns:
        One short phrase a difference; empty where Table 1 has no such task.
    """
    paper = published.of(settings["task"])
    source = paper.sources.get(settings["task"])
    if source is None:
        return []
    own = paragraphs("differences.j2", settings=settings, source=source, epochs=epochs)
    return own + paper.differences(settings, cells)


def conditions(found: Sequence[Comparison]) -> str:
    """Under which the numbers of a table were taken: ``at equal training compute``, and more.

    Where cells were cut is said if they were not at their own budget; then whether numbers are
    interpolated, how options were chosen if not by accuracy, and a threshold of SAIF that is not
    the usual one.
    """
    return "; ".join(said_once("conditions", found))
