"""Comparisons as sections of the report, and the chapter they make: answer, limits, method."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.comparison.report.limits import tuned
from analysis.comparison.report.table_one import (
    names_of,
)
from analysis.comparison.report.tables import chosen_text
from analysis.comparison.report.verdicts import sampled
from analysis.digest.compare import Comparison, metrics_of
from analysis.words import instances, listed, lost_scores, of_draws
from study import tasks

_OF_BUDGETS = (
    "Equal compute: all cells of a comparison are cut at one fraction of their budget, where "
    "their compute differs by less than a step. Where something else is made equal, values are "
    "taken between the evaluations around one amount of it."
)
_OF_RECORDED = (
    "Equal compute: recorded runs have no budget. They are cut at the amount that all of a "
    "comparison have spent, where values are taken between their evaluations."
)
_METHOD = (
    "A diverged cell counts as {lost}.",
    "Choice: {options} of each paradigm by the mean over seeds on validation {noun}, on the seeds "
    "that tune where there are such. All other numbers are of the test {noun}, on the seeds that "
    "confirm.",
    "Intervals, 95 %: {intervals}. Those of shares are on the logit scale.",
    "Verdicts: paired by seed{instance}. Better means: not of one law, and higher on average in "
    "these seeds. A pair is decided if there are at least 6 common seeds, the test holds after "
    "Holm's correction over all tests of its study here (p < 0.05), and so does the exact "
    "sign-flip test of its seeds, uncorrected. Where seeds fall apart into those that learned and "
    "those that did not, the mean has no interval; how often each learned is told, and decides "
    "nothing. No verdict is given before the planned seeds have ended, nor where fewer than 4 "
    "degrees of freedom say how much test images differ.",
)
_BY_IMAGE = (
    "of {scores} and their differences over {factors}, all as samples, where that is recorded of "
    "each instance; else, and of all other numbers, t intervals over seeds"
)


def _basis(comparison: Comparison) -> list[str]:
    """What the numbers of a comparison are of, in sentences; none without numbers."""
    if comparison.summary.empty:
        return []
    had_options = comparison.summary["num_options"].max() > 1
    chosen = [chosen_text(comparison)] if had_options or not comparison.recorded else []
    return [*chosen, *tuned(comparison)]


def _method(found: Sequence[Comparison]) -> list[str]:
    """How all was computed, a paragraph each."""
    recorded = {each.recorded for each in found}
    most = max(found, key=lambda each: len(sampled(each.paired)))
    factors, scores = sampled(most.paired), ", ".join(names_of(found))
    by_image, over = len(factors) > 1, of_draws(listed(factors), most.task)
    of_shares = _BY_IMAGE.format(scores=scores, factors=over)
    words = {
        "noun": _noun(found),
        "lost": lost_scores(*(each.task for each in found), metrics=metrics_of(found)),
        "options": "learning rate and switch point" if False in recorded else "one option",
        "intervals": of_shares if by_image else "t intervals over seeds",
        "instance": " and test instance" if by_image else "",
    }
    of_cuts = {False: _OF_BUDGETS, True: _OF_RECORDED}
    texts = [of_cuts[each] for each in sorted(recorded)]
    return [*texts, *(text.format(**words) for text in _METHOD)]


def _saif(found: Sequence[Comparison]) -> list[str]:
    """What SAIF is: a sentence for what is classified, and one of each other modality."""
    found = [each for each in found if "saif" in each.metrics]
    if found and all(each.recorded for each in found):
        return ["SAIF is as the runs recorded it."]
    classified = [each for each in found if not each.modality.saif_text]
    texts = []
    if classified:
        at = f"\u2265 {classified[0].threshold:g}"
        texts.append(
            f"SAIF is the share of test {_noun(classified)} with attention on the true "
            f"foreground{_foreground(classified)} a_z {at} and score of the true class s_y {at}."
        )
    texts += dict.fromkeys(
        each.modality.saif_text.format(at=f"\u2265 {each.threshold:g}")
        for each in found
        if each.modality.saif_text
    )
    return texts


def _foreground(found: Sequence[Comparison]) -> str:
    """What the foreground is, where that needs words; with several modalities, in each."""
    known = dict.fromkeys(tasks.modality(comparison.task) for comparison in found)
    of = {each: f"of {each.noun} " if len(known) > 1 else "" for each in known}
    return "".join(f", {of[each]}{each.foreground}," for each in known if each.foreground)


def _noun(found: Sequence[Comparison]) -> str:
    return instances(*(comparison.task for comparison in found))
