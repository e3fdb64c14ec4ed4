"""What a study says when it ends: comparisons and dynamics, the report, MLflow's summaries."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Sequence

from study import terminal
from study.cell import Cell
from study.plan.plan import Plan
from study.relog import summaries
from study.request import Request
from study.results import Results, ResultsError, Survey, report_files, report_folder
from study.storage.urls import absolute
from study.terminal.command import importing
from study.tracking.tracker import Tracker


def report(
    request: Request,
    plan: Plan,
    cells: Sequence[Cell],
    failed: Collection[str],
    survey: Survey,
    before: Collection[str],
    tracker: Tracker,
) -> int:
    """Prints comparisons and learning dynamics, the path of the report, how to see the runs.

    The report and MLflow's summaries are of the whole study, as far as the directory holds it;
    what is printed is what this command has a cell in.

    Args:
        request: what was asked for.
        plan: of the study.
        cells: of this command, those of a search included.
        failed: ids of those that are missing.
        survey: of the directory, before this command trained anything.
        before: ids of its cells that needed no run.
        tracker: is told the summaries, and finished.

    Returns:
        How many settings the report shows.
    """
    with importing():
        from analysis.comparison.compare import compare_results
        from analysis.comparison.report.pictures import pictures
        from analysis.comparison.report.text import print_comparisons
        from analysis.conclude import print_dynamics, write_page
        from analysis.kinds import find
        from analysis.page.files import Unwritable
        from analysis.page.frame import title

    results = absolute(request.results)
    asked = {cell.id for cell in cells} - set(failed)
    ids = _of_the_study(Results(results), plan.study, cells, survey) - set(failed)
    comparisons = compare_results(results, cell_ids=ids, select=request.select) if ids else []
    dynamics = find(results, cell_ids=ids) if ids else []
    shown = [each for each in comparisons if asked & set(each.cells["cell_id"])]
    shown_dynamics = [each for each in dynamics if asked & set(each.cells["cell_id"])]
    others = len(comparisons) + len(dynamics) - len(shown) - len(shown_dynamics)
    published = plan.preset == "paper" and not request.changes and not others
    print()
    print_comparisons(shown, published)
    print_dynamics(shown_dynamics)
    about = request.space.presets[plan.preset].about
    changed = f", changed by --set {' '.join(request.changes)}" if request.changes else ""
    made = f"{plan.preset}: {about}{changed}"
    print(terminal.fitted(f"preset {made}"))
    new = [cell for cell in cells if cell.id in asked - set(before)]
    added = _added(new, len(ids))
    for sentence in added:
        print(terminal.fitted(sentence))
    if others:
        what = "setting" if others == 1 else "settings"
        print(terminal.fitted(f"the report also shows {others} other {what} of the study"))
    last = f"The last command: preset {made}; {'; '.join(added)}."
    notes = [
        last if added else f"Preset {made}.",
        *(f"Skipped: {skip.what}: {skip.reason}." for skip in plan.skipped),
        *([f"{len(failed)} cells failed and are missing."] * bool(failed)),
    ]
    page = None
    drawn = [pictures(comparison) for comparison in comparisons]
    try:
        if comparisons or dynamics:
            folder = report_folder(request.results, plan.study)
            name = title(comparisons, dynamics, plan.study)
            page = write_page(
                comparisons, folder, name, request.results, notes, published, drawn, dynamics
            )
            print(f"report: {page}")
    except Unwritable as error:
        command = f"python -m analysis.report {shlex.quote(request.results)} --study {plan.study}"
        raise Unwritable(
            f"{error} All results are kept. Make room there, and the same command writes it; "
            f"`{command} --out DIR` writes it elsewhere."
        ) from error
    finally:
        metrics, groups = summaries(comparisons, dynamics, drawn)
        with contextlib.ExitStack() as stack:
            attached = report_files(request.results, plan.study) if page else None
            tracker.finish(metrics, stack.enter_context(attached) if attached else [], groups)
    if tracker.ui_command:
        print(f"runs:   {tracker.ui_command}")
    return len(comparisons) + len(dynamics)


def _of_the_study(results: Results, study: str, cells: Sequence[Cell], survey: Survey) -> set[str]:
    """Ids of all cells of a study, and of those that others recorded in its comparisons."""
    ids = {cell.id for cell in cells}
    if survey.statuses.keys() <= ids:  # nothing else is there
        return ids
    try:
        held = results.cells(columns=["cell_id", "study", "comparison_id"])
    except ResultsError as error:  # of cells that are not this command's, or it is said again
        print(f"note: the report shows the cells of this command alone: {error}", file=sys.stderr)
        return ids
    compared = held["comparison_id"].isin({cell.comparison_id for cell in cells})
    return set(held.loc[compared | (held["study"] == study), "cell_id"])


def _added(new: Sequence[Cell], total: int) -> list[str]:
    """What a command added to a study, in a sentence; none where that is all of it or nothing."""
    if len(new) in (0, total):
        return []
    counts = Counter(cell.paradigm for cell in new)
    which = ", ".join(f"{name} {count}" for name, count in counts.items())
    return [f"new: {len(new)} of the study's {total} cells ({which})"]
