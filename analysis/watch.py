"""Renews a report while a study runs, until Ctrl-C."""

from __future__ import annotations

import time

from analysis.conclude import Conclusions, Question, conclude
from analysis.page.files import Unwritable, link
from analysis.page.opening import partial_note, shown_cells
from analysis.section.section import by_chapter
from study import terminal
from study.results import Results, ResultsError
from study.terminal import counted
from study.terminal.command import terminating

_RESTS = 4
"""Times as long as a renewal computed until the next one: it has a core of a study that trains."""


def watch(
    results: Results, folder: str, question: Question, published: bool, interval: float
) -> None:
    """Writes the report when a cell is recorded, and when a study begins or ends, until Ctrl-C.

    Its page says how far the study is, and loads itself again. Ctrl-C writes it once more, as any
    other report. Results that are not there yet, or cannot be read or answer nothing, are waited
    for, with a line that says so.

    Args:
        results: the directory.
        folder: path or URL of the folder for the report.
        question: what is asked.
        published: show published numbers beside the measured ones.
        interval: seconds between two looks at the directory, at least.

    Raises:
        Unwritable: the folder takes no report.
    """
    found: Conclusions | None = None
    seen: tuple[list[str], bool] | None = None
    said = line = ""
    try:
        with terminating():
            while True:
                began = time.process_time()
                try:
                    there = results.storage.names("cells"), results.is_running()
                    if not there[0]:
                        line = f"waiting for the first cell in {results.url}"
                    elif there != seen:
                        found = conclude(results, question)
                        found.require(published)
                        so_far = _so_far(found, results, running=there[1])
                        partial = f"{so_far} This page loads itself again."
                        path = found.write(
                            folder, published=published, partial=partial, reload=interval
                        )
                        line, seen = f"{so_far} Report: {link(path)}", there
                except Unwritable:
                    raise
                except ResultsError as error:
                    line = f"waiting: {error}"
                if line != said:
                    print(terminal.fitted(line), flush=True)
                    said = line
                time.sleep(max(interval, _RESTS * (time.process_time() - began)))
    except KeyboardInterrupt:
        if found is None:
            raise
        partial = partial_note(results)  # before they are read
        path = conclude(results, question).write(folder, published=published, partial=partial)
        print(f"\nstopped watching; report: {link(path)}")


def _so_far(found: Conclusions, results: Results, running: bool) -> str:
    """What can be known of how far a study is: nothing in a directory says what it will record."""
    if running:
        more = "a command is running with them, so that more may come"
    elif results.storage.local:
        more = "no command is running with them now"
    else:
        more = "an object store does not tell whether a study is running"
    so_far = counted(len(shown_cells(found.sections)), "cell is", "cells are")
    left = sum(chapter.cells_left(mine) for chapter, mine in by_chapter(found.sections))
    lacking = f" and {counted(left, 'is', 'are')} left" * bool(left)
    return f"So far {so_far} recorded{lacking}; {more}."
