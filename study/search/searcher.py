"""A search as Ray Tune asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray.tune.search import Searcher

from study.cell.work import Job
from study.errors import RequestError
from study.search.search import Search


class Suggestions(Searcher):
    """Hands Tune the options of a search as trials.

    Args:
        search: gives them.
        statuses: cell id -> how it ended, of the cells of the running stage.
        announce: told of each job.
        refuse: told why the search cannot go on.
    """

    def __init__(
        self,
        search: Search,
        statuses: Mapping[str, str],
        announce: Callable[[Job], object],
        refuse: Callable[[RequestError], object],
    ) -> None:
        super().__init__()
        self._search, self._statuses = search, statuses
        self._announce, self._refuse = announce, refuse

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles it, and never reads that

    def suggest(self, trial_id: str) -> Any:
        try:
            job = self._search.next(trial_id)
        except RequestError as error:
            self._refuse(error)
            return Searcher.FINISHED
        if job is None:
            return Searcher.FINISHED
        self._announce(job)
        return {"job": job.to_config()}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        self._search.ended(trial_id, self._statuses, {} if error else result or {})

    def save(self, checkpoint_path: str) -> None:
        pass

    def restore(self, checkpoint_path: str) -> None:
        pass
