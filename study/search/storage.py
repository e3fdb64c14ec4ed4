"""Optuna's storage of a search: a SQLite file of one driver, or PostgreSQL for several at once.

Drivers that share a storage take turns: who looks for a suggestion or tells of one is alone. A
driver at work sends a heartbeat for each of its suggestions. Where none has come for
`GRACE_SECONDS`, Optuna fails the suggestion, and the next driver that looks takes it over.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from study.errors import RequestError
from study.storage.databases import (
    alone,
    is_postgresql,
    make_whole,
    reason,
    soon_connected,
    without_password,
)
from study.terminal.command import importing

if TYPE_CHECKING:
    import optuna

BEAT_SECONDS, GRACE_SECONDS = 20, 120
"""How often a driver says that it is alive, and after what silence it counts as dead."""

AWAY_SECONDS = 300.0
"""How long a driver waits for a shared database that does not answer, as while it restarts."""

PAUSE_SECONDS = 2.0
"""Before it asks again."""

T = TypeVar("T")


class SearchStorage:
    """Opens the Optuna study of a search and is the way to all that reads or changes it.

    Args:
        url: of SQLAlchemy. A PostgreSQL database may be shared by drivers, a SQLite file not.
        shown: how messages name it.
    """

    def __init__(self, url: str, shown: str) -> None:
        self.url = url
        self.shared = is_postgresql(url)
        self._shown = shown
        self._opened = False
        self._beating: Callable[[], Collection[int]] = tuple
        self._over = threading.Event()
        self._away_at = -math.inf

    def open(self, title: str, objective: Sequence[str]) -> optuna.Study:
        """The Optuna study of this title, made if it is missing.

        Raises:
            RequestError: the database cannot be used.
        """
        try:
            return self.act(lambda: self._open(title, objective))
        except ImportError as error:
            raise RequestError(self._refusal(reason(error))) from error
        except RuntimeError as error:  # Optuna's and MLflow's tables share a name
            why = (
                "it holds tables of MLflow or of another version of Optuna: take one of its own; "
                f"{reason(error)}"
            )
            raise RequestError(self._refusal(why)) from error

    def act(self, what: Callable[[], T]) -> T:
        """Does something with the study while no other driver does.

        Args:
            what: is done once more, from its start, where a shared database went away meanwhile.

        Raises:
            RequestError: the database is damaged or does not answer.
        """
        from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
        from sqlalchemy.exc import SQLAlchemyError

        away_since: float | None = None
        while True:
            try:
                with alone(self.url, "search") if self.shared else contextlib.nullcontext():
                    done = what()
                self._opened = True
                return done
            except (StorageInternalError, SQLAlchemyError, sqlite3.Error) as error:
                self._away_at = now = time.monotonic()
                waits = self.shared and self._opened and _may_pass(error)
                if not waits or now - (away_since or now) > AWAY_SECONDS:
                    raise RequestError(self._refusal(reason(error.__cause__ or error))) from error
                if away_since is None:
                    away_since = now
                    print(
                        f"warning: the search's database {self._shown} does not answer "
                        f"({reason(error.__cause__ or error)}); waiting for it",
                        file=sys.stderr,
                    )
                time.sleep(PAUSE_SECONDS)
            except UpdateFinishedTrialError:
                pass  # the lock broke off, and another driver was there: once more

    def ask(self, study: optuna.Study) -> optuna.Trial:
        """As Optuna's `ask`, which warns that heartbeats are ours to send."""
        with _without_warnings():
            return study.ask()

    def fail_stale(self, study: optuna.Study) -> None:
        """Fails the suggestions of drivers that are dead; they have no reason.

        Not where the database was away for this driver: then others may have had to be silent.
        """
        import optuna

        if self.shared and time.monotonic() - self._away_at > GRACE_SECONDS:
            with _without_warnings():
                optuna.storages.fail_stale_trials(study)

    def beat_for(self, trial_ids: Callable[[], Collection[int]]) -> None:
        """Sends heartbeats from now on, in a thread, until `close`.

        Args:
            trial_ids: those that this driver is at work on, asked for each time.
        """
        if self.shared:
            self._beating = trial_ids
            threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def beat(self, trial_id: int) -> None:
        """Sends one heartbeat; a trial with none never counts as left behind."""
        if self.shared:
            self.rdb.record_heartbeat(trial_id)

    def close(self) -> None:
        """Ends the heartbeats: what is still in training is left to other drivers."""
        self._over.set()

    def _beat(self) -> None:
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        while not self._over.wait(BEAT_SECONDS):
            with contextlib.suppress(Exception):  # such as of a trial that somebody deleted
                try:
                    for trial_id in self._beating():
                        self.rdb.record_heartbeat(trial_id)
                except (StorageInternalError, SQLAlchemyError):  # it may be back at the next one
                    self._away_at = time.monotonic()

    def _open(self, title: str, objective: Sequence[str]) -> optuna.Study:
        with importing():
            import optuna
            from sqlalchemy.pool import NullPool

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        # A dashboard may hold a file for a moment, and a server may restart: no connection stays
        # open in between.
        wait = soon_connected(self.url) if self.shared else {"timeout": 60}
        engine = {"poolclass": NullPool, "connect_args": wait}
        beats: dict[str, Any] = {}
        if self.shared:
            beats = {"heartbeat_interval": BEAT_SECONDS, "grace_period": GRACE_SECONDS}
        template = self.url.replace("{", "{{").replace("}", "}}")  # Optuna formats it
        make_whole(self.url, optuna.storages.RDBStorage)
        with _without_warnings():
            self.rdb = optuna.storages.RDBStorage(template, engine_kwargs=engine, **beats)
            study = optuna.create_study(
                storage=self.rdb,
                study_name=title,
                directions=["maximize"] * len(objective),
                load_if_exists=True,
            )
            study.set_metric_names([f"validation {metric}" for metric in objective])
        return study

    def _refusal(self, why: str) -> str:
        remedy = (
            "Correct --search-storage, or start the database: the same command goes on."
            if self.shared
            else "If it is damaged, move it away: the search then goes on from the results."
        )
        return f"cannot use the search's database {self._shown} ({why}). {remedy}"


def shared_storage(url: str) -> SearchStorage:
    """The storage at a URL that a person gave."""
    return SearchStorage(url, without_password(url))


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Hides that heartbeats and names of metrics are experimental in Optuna."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _may_pass(error: BaseException) -> bool:
    """Whether a database was away or broke the connection off, rather than refused something."""
    from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OperationalError | InterfaceError):
            return True
        if isinstance(cause, DBAPIError) and cause.connection_invalidated:
            return True
        cause = cause.__cause__
    return False
