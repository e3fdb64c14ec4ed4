"""What a comparison says on the terminal, and what must be said beside its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.comparison.compare import Comparison, short_id
from analysis.comparison.ineligible_options import barred_sentences
from analysis.comparison.report.answer import answer
from analysis.comparison.report.data import share_sentences
from analysis.comparison.report.tables import comparison_text
from analysis.comparison.report.verdicts import verdict_lines
from analysis.groups import AXES
from analysis.words import amount, made_equal
from study import terminal


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
    if comparison.interpolated:
        texts.append("Numbers are interpolated between the evaluations around the cut.")
    own = comparison.modality.saif_threshold
    if comparison.threshold != own:
        texts.append(f"SAIF is that of threshold {comparison.threshold:g}, not of {own:g}.")
    return texts


def lone_paradigm(comparison: Comparison) -> str:
    """Says that there is no pair of paradigms; empty where there is one."""
    names = list(comparison.summary["paradigm"])
    if len(names) > 1:
        return ""
    having = f"Only {names[0]} has results" if names else "No paradigm has results"
    return f"{having} that can be compared, so there are no paired differences."


def verdict_text(found: Sequence[Comparison]) -> str:
    """The verdict of every pair, and the answer in three sentences, for the terminal."""
    lines = []
    for comparison in found:
        if len(found) > 1:
            lines.append(f"{comparison.name} ({short_id(comparison)}):")
        lone = lone_paradigm(comparison)
        lines += [lone] if lone else verdict_lines(comparison.paired)
    return "\n".join([*lines, "", *map(terminal.sentence, answer(found))])


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
    notes = (unusual_cut, stopped_options, share_sentences)
    parts += [f"note: {sentence}" for note in notes for sentence in note(comparison)]
    return "\n\n".join(parts)
