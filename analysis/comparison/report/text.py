"""What a comparison says on the terminal, and what must be said beside its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.comparison.compare import Comparison, short_id
from analysis.comparison.cut import EARLY
from analysis.comparison.option_warnings import barred_sentences, edge_warnings
from analysis.comparison.report.answer import answer, lone_paradigm
from analysis.comparison.report.data import share_sentences
from analysis.comparison.report.tables import comparison_text
from analysis.comparison.report.verdicts import pair_text
from analysis.comparison.stages import given
from analysis.groups import AXES
from analysis.overstated import optimism
from analysis.words import amount, listed, made_equal, span
from study import terminal

_LEVEL = 0.05  # of the test that `optimism` simulates


def stages(comparison: Comparison) -> list[str]:
    """What was tuned and confirmed; or that options were chosen and tested on the same seeds."""
    if not comparison.staged:
        return _one_stage(comparison)
    without = given(comparison.at_budget)
    tuned = comparison.options[~comparison.options["paradigm"].isin(without)]
    n = span(comparison.summary.get("num_seeds", ()))
    fresh = f"n={terminal.counted(n, 'fresh seed')}"
    texts = [f"All numbers are of {fresh}: no option had to be tuned."]
    if len(tuned):
        texts = [
            f"{terminal.counted(len(tuned), 'option was', 'options were')} tuned on "
            f"{terminal.counted(span(tuned['num_seeds']), 'seed')}; all numbers are of the "
            f"chosen ones on {fresh}."
        ]
    texts += [
        f"{name} was not tuned: one of {count} options was chosen and tested on the same seeds."
        for name, count in without.items()
        if count > 1
    ]
    if names := comparison.unconfirmed:
        texts.append(
            f"Not confirmed yet, so without numbers: {listed(names)}. Run the study again to "
            f"confirm the chosen option{'s' * (len(names) > 1)}."
        )
    return texts


def _one_stage(comparison: Comparison) -> list[str]:
    """The optimism of a choice among several options on the seeds that test it, if any."""
    counts = comparison.choice["num_options"]
    if counts.max() < 2 or comparison.summary.empty:
        return []
    text = "Options were chosen and tested on the same seeds, so numbers are optimistic"
    n, most, fewest = comparison.summary["num_seeds"].min(), counts.max(), counts.min()
    if n < 2:
        return [f"{text}."]
    found = optimism(int(n), int(most), int(fewest))
    text += (
        f": in simulations with n={n}, the best of {most} equal options looks {found.sds:.1f} "
        "standard deviations of a run over seeds too good"
    )
    if found.false_verdicts > _LEVEL:
        text += (
            f", and a test at 5 % tells equal paradigms with {most} and {fewest} options apart in "
            f"{100 * found.false_verdicts:.0f} % of studies"
        )
    return [f"{text}. Confirming seeds cure that."]


def stopped_options(comparison: Comparison) -> list[str]:
    """One sentence for each paradigm and reason that bars some of its options."""
    return barred_sentences(comparison.options, comparison.cells, comparison.select)


def unusual_cut(comparison: Comparison) -> list[str]:
    """What must be said where cells are not cut at equal FLOPs, or SAIF is not the usual one."""
    texts = []
    asked, axis, noun = comparison.asked, comparison.axis, comparison.noun
    if axis != "flops":
        equal, usual = made_equal(axis, noun), made_equal("flops")
        where = f" ({comparison.where})" if comparison.where != equal else ""
        texts.append(f"Cells are cut at {equal}{where}, not at {usual}.")
    if asked is not None and (comparison.budget is None or comparison.budget < asked):
        spent = amount(comparison.summary[AXES[axis]].max(), axis, noun)
        texts.append(
            f"Asked for: {amount(asked, axis, noun)}. Cut at: {comparison.where}, the last that "
            f"all cells have of it; at most {spent} are spent there."
        )
    reach = min(comparison.reach, math.inf if asked is None else asked)
    together = comparison.budget if comparison.recorded else None
    if together is not None and together < EARLY * reach < math.inf:
        between = "" if comparison.interpolated else " --interpolate compares between evaluations."
        texts.append(
            f"All runs go on to {amount(reach, axis, noun)}, but are cut at {comparison.where}, "
            "the last moment up to which all were measured on the test split. Leave out runs that "
            f"were not measured later.{between}"
        )
    if comparison.unconfirmed and not comparison.staged:
        names = listed(comparison.unconfirmed)
        texts.append(f"Without evaluations on the test split, so without numbers: {names}.")
    if comparison.interpolated:
        texts.append("Numbers are interpolated between the evaluations around the cut.")
    own = comparison.modality.saif_threshold
    if comparison.threshold != own:
        texts.append(f"SAIF is that of threshold {comparison.threshold:g}, not of {own:g}.")
    return texts


def edges(comparison: Comparison) -> list[str]:
    """What is chosen at an end of its axis, so that a better option may lie beyond."""
    return edge_warnings(comparison.options, comparison.choice)


def verdict_text(found: Sequence[Comparison]) -> str:
    """The verdict of every pair, and the answer, for the terminal."""
    parts = []
    for comparison in found:
        head = f"{comparison.name} ({short_id(comparison)}):\n" if len(found) > 1 else ""
        table = lone_paradigm(comparison) or pair_text(
            comparison.paired, set(comparison.summary["paradigm"])
        )
        parts.append(head + table)
    return "\n\n".join([*parts, "\n".join(map(terminal.sentence, answer(found)))])


def section_text(comparison: Comparison, published: bool = False) -> str:
    """The table of a comparison and what must be said beside it, for the terminal.

    Args:
        comparison: one comparison.
        published: show the paper's Table 1 beside the measured numbers.
    """
    parts = []
    if len(comparison.summary):
        shown = (comparison.summary, published, comparison.threshold, comparison.name)
        parts.append(comparison_text(*shown))
    notes = (stages, unusual_cut, stopped_options, edges, share_sentences)
    parts += [f"note: {sentence}" for note in notes for sentence in note(comparison)]
    return "\n\n".join(parts)
