"""The place where a command trains: its results directory, locked, and what it holds."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from study.errors import RequestError
from study.launch.nodes import Cluster
from study.results import ENDED, Results, ResultsError, Survey, merging
from study.storage.urls import absolute
from study.terminal.working import working


@dataclass
class Workplace:
    """Where a study runs.

    Attributes:
        results: its results directory.
        survey: of the directory, as it was last looked at.
        held: ids of the cells that it held before this command trained anything.
        cluster: to train on; None: this machine.
        accepts_censored: whether cells that a scheduler stopped early need no run; for a study
            without a scheduler they are no results.
    """

    results: Results
    survey: Survey
    cluster: Cluster | None = None
    accepts_censored: bool = False
    _locks: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    held: frozenset[str] = frozenset()
    _unmerged: list[str] = field(default_factory=list)

    @property
    def finished(self) -> dict[str, str]:
        """Id -> status of the cells that need no run."""
        over = (*ENDED, "censored") if self.accepts_censored else ENDED
        return {id: status for id, status in self.survey.statuses.items() if status in over}

    def merge(self, cell_ids: Sequence[str], note: Callable[[str], None]) -> None:
        """Merges the files of recorded cells once there are many.

        Args:
            cell_ids: of cells that have ended.
            note: told why files cannot be merged; the study goes on with small ones.
        """
        self._unmerged += cell_ids
        try:
            while len(self._unmerged) >= merging.MOST_SMALL_FILES:
                merging.merge(self.results, self._unmerged[: merging.MOST_SMALL_FILES])
                del self._unmerged[: merging.MOST_SMALL_FILES]
        except ResultsError as error:
            self._unmerged.clear()
            note(f"files of results are not merged: {error}")

    def prepare(self) -> None:
        """Makes the directory if it is missing, keeps other commands out, sets damage aside.

        Raises:
            RequestError: another command runs there, or the directory cannot be written.
        """
        self.results.prepare()
        self._locks.enter_context(self.results.lock())
        self.survey = self.results.survey()  # another command may have been faster
        self.held = frozenset(self.survey.statuses)
        self.results.sweep()
        _set_aside_damage(self.results, self.survey)
        with working("merging files"):
            self.merge(self.survey.small, lambda text: print(f"note: {text}", file=sys.stderr))


def beside_others(url: str) -> Workplace:
    """Prepares the place for one of several commands that train at once, each its own cells.

    Raises:
        RequestError: the directory cannot be read or written, or a study that does not share it
            runs there.
    """
    results = results_in(url)
    if results.is_running():
        raise results.in_use()
    results.prepare()
    survey = results.survey()
    _set_aside_damage(results, survey)
    return Workplace(results, survey)


def looked_at(url: str) -> Workplace:
    """The place for a command that only looks, while others may train there.

    Raises:
        RequestError: the directory cannot be read.
    """
    results = results_in(url)
    return Workplace(results, results.survey())


def _set_aside_damage(results: Results, survey: Survey) -> None:
    if survey.damaged:
        names = ", ".join(results.set_aside(survey.damaged))
        print(
            f"set aside damaged files ({names}); this study's cells in them run again, those "
            "of another one with its own command",
            file=sys.stderr,
        )


def results_in(url: str) -> Results:
    """The results directory of a command, local path or URL.

    Raises:
        RequestError: it is a file.
    """
    results = Results(absolute(url))
    if results.storage.local and os.path.isfile(results.url):
        raise RequestError(f"{results.url} is a file. Name a directory with --results DIR.")
    return results
