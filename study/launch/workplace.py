"""The place where a command trains: its results directory, and what it holds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from study.errors import RequestError
from study.launch.nodes import Cluster
from study.results import ENDED, Results, ResultsError, Survey, merging
from study.storage.urls import absolute
from study.terminal.working import aside, working


@dataclass
class Workplace:
    """Where a study runs.

    Attributes:
        results: its results directory.
        cluster: to train on; None: this machine.
        accepts_censored: whether cells that a scheduler stopped early need no run; for a study
            without a scheduler they are no results.
        shared: whether other commands train there at the same time, each its own cells.
        survey: of the directory, as it was last looked at, by `look` or `prepare`.
        held: ids of the cells that it held before this command trained anything.
    """

    results: Results
    cluster: Cluster | None = None
    accepts_censored: bool = False
    shared: bool = False
    survey: Survey = field(init=False)
    held: frozenset[str] = frozenset()
    _locks: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _unmerged: list[str] = field(default_factory=list)

    @property
    def finished(self) -> dict[str, str]:
        """Id -> status of the cells that need no run."""
        over = (*ENDED, "censored") if self.accepts_censored else ENDED
        return {id: status for id, status in self.survey.statuses.items() if status in over}

    def look(self) -> None:
        """Looks at what the directory holds.

        Raises:
            ResultsError: it cannot be read.
        """
        self.survey = self.results.survey()

    def prepare(self) -> None:
        """Makes the directory if it is missing, looks at it, and sets damage aside.

        Unless it is shared, other commands are kept out, and what killed ones left is removed.

        Raises:
            RequestError: another command runs there, or the directory cannot be written.
        """
        if self.shared and self.results.is_running():
            raise self.results.in_use()
        self.results.prepare()
        if not self.shared:
            self._locks.enter_context(self.results.lock())
        self.look()
        self.held = frozenset(self.survey.statuses)
        self._set_aside_damage()
        if not self.shared:
            self.results.sweep()
            with working("merging files"):
                self.merge(self.survey.small, lambda text: aside(f"note: {text}"))

    def close(self) -> None:
        """Lets other commands in."""
        self._locks.close()

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

    def _set_aside_damage(self) -> None:
        if self.survey.damaged:
            names = ", ".join(self.results.set_aside(self.survey.damaged))
            aside(
                f"set aside damaged files ({names}); this study's cells in them run again, those "
                "of another one with its own command"
            )


def looked_at(url: str) -> Workplace:
    """The place for a command that only looks, while others may train there.

    Raises:
        RequestError: the directory cannot be read.
    """
    place = Workplace(results_in(url))
    place.look()
    return place


def results_in(url: str) -> Results:
    """The results directory of a command, local path or URL.

    Raises:
        RequestError: it is a file.
    """
    results = Results(absolute(url))
    if results.storage.local and os.path.isfile(results.url):
        raise RequestError(f"{results.url} is a file. Name a directory with --results DIR.")
    return results
