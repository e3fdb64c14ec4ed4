"""Closes a study: prints its results, writes the report and MLflow's summaries, lists failures."""

from __future__ import annotations

import contextlib
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from study import tasks, terminal
from study.cell import AnyCell, Cell
from study.drive.launcher import Trained
from study.launch.failures import say
from study.launch.workplace import Workplace
from study.plan.stages import unchosen
from study.request import Request
from study.results import report_files, report_folder
from study.terminal.command import DONE, FAILED, importing
from study.terminal.working import aside


def close(request: Request, place: Workplace, trained: Trained) -> int:
    """Reports the results and prints what failed.

    Returns:
        The exit status, see `study.terminal.command`.
    """
    if bug := trained.bug:
        trained.tracker.finish(None)
        say([bug])
        aside("the study stopped; what is done is kept: the same command goes on")
        return FAILED
    report(request, place, trained)
    say(trained.failures)
    for cell in unchosen(trained.plans[-1]):
        aside(
            f"not confirmed: {cell.paradigm} of {cell.task} m={cell.m}, as no option can be "
            "chosen: cells of each failed or were stopped early. The same command tries failed "
            "cells again; without --scheduler, those that were stopped run to their end."
        )
    if not trained.failed:
        return DONE
    failed = terminal.counted(len(trained.failed), "cell failed and is", "cells failed and are")
    aside(f"{failed} missing above, of {len(trained.cells)}; the same command tries again")
    return FAILED


def report(request: Request, place: Workplace, trained: Trained) -> None:
    """Writes the report, and prints comparisons, learning dynamics and where to see the runs.

    The report and MLflow's summaries show the whole study, as far as the directory holds it. Only
    settings in which this command has a cell are printed.

    Args:
        request: what was asked for.
        place: where it ran.
        trained: what became of its cells; its tracker logs the summaries and finishes.
    """
    with importing():
        from analysis.conclude import Conclusions, Question, conclude
        from analysis.page.files import Unwritable, link

    results, cells, failed = place.results, trained.cells, trained.failed
    study = request.space.name
    asked = {cell.id for cell in cells} - failed
    every = _of_the_study(study, cells, place.survey.cells)
    ids = every - failed
    # Those that failed are among them: no verdict is to wait for their seeds.
    question = Question(cell_ids=every, select=request.select)
    found = conclude(results, question) if ids else Conclusions(results.url, question)
    shown = found.of(asked)
    others = len(found.sections) - len(shown.sections)
    published = request.preset == "paper" and not request.departures and not others
    print()
    shown.print(published)
    changed = f", changed by {request.departures}" if request.departures else ""
    made = f"{request.preset}: {request.about}{changed}"
    print(terminal.fitted(f"preset {made}"))
    fresh = asked - place.held
    added = _added([cell for cell in cells if cell.id in fresh], len(ids))
    if added:
        print(terminal.fitted(added))
    if others:
        more = terminal.counted(others, "other setting")
        print(terminal.fitted(f"the report also shows {more} of the study"))
    notes = [
        f"The last command: preset {made}; {added}." if added else f"Preset {made}.",
        *(f"Skipped: {text}." for text in trained.skipped),
        *([f"{terminal.counted(len(failed), 'cell')} failed: no numbers."] * bool(failed)),
    ]
    page = None
    try:
        if found.sections:
            folder = report_folder(request.results, study)
            name = found.title(study)
            page = found.write(folder, name, notes, published, results=request.results)
            print(f"report: {link(page)}")  # before MLflow, which may take its time
    except Unwritable as error:
        command = f"python -m analysis.report {shlex.quote(request.results)} --study {study}"
        raise Unwritable(
            f"{error} All results are kept. Make room there, and the same command writes it; "
            f"`{command} --out DIR` writes it elsewhere."
        ) from error
    finally:
        attached = report_files(request.results, study)
        with attached if page else contextlib.nullcontext(list[Path]()) as files:
            trained.tracker.finish(found.answer(files))
    if trained.tracker.ui_command:
        print(f"runs:   {trained.tracker.ui_command}")
    if trained.tracker.view:
        print(f"view:   {trained.tracker.view}")
    if request.keep_weights:
        _tell_of_networks(request.results, place, cells)


def _tell_of_networks(results: str, place: Workplace, cells: Sequence[AnyCell]) -> None:
    """Prints where networks are kept, and how to ask the first of these cells that has one."""
    from study.models import kept

    names = {*place.results.storage.names(kept.FOLDER)}
    for cell in cells:
        if isinstance(cell, Cell) and kept.file_of(cell.id) in names:
            example = tasks.modality(cell.task).example
            print(
                f"networks: {len(names):,} in {results.rstrip('/')}/{kept.FOLDER}. Ask one:\n"
                "    from attention_study import load_network\n"
                f'    network = load_network("{results}", "{cell.id}")'
            )
            if example:
                print(
                    f"    print(network.predict({example}).T)\n"
                    f'    network.show({example}).save("where-it-looks.html")'
                )
            return


def _of_the_study(study: str, cells: Sequence[AnyCell], held: pd.DataFrame) -> set[str]:
    """Ids of the cells of a command, and of those that its directory held of the same study.

    Args:
        study: its name.
        cells: of the command.
        held: as `study.results.Survey` has them.
    """
    compared = held["comparison_id"].isin({cell.comparison_id for cell in cells})
    mine = held.loc[compared | (held["study"] == study), "cell_id"]
    return {cell.id for cell in cells} | set(mine)


def _added(new: Sequence[AnyCell], total: int) -> str:
    """What a command added to a study, for people; empty if it was nothing or everything."""
    if len(new) in (0, total):
        return ""
    counts = Counter(cell.label for cell in new)
    which = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f"new: {len(new)} of the study's {terminal.counted(total, 'cell')} ({which})"
