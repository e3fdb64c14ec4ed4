"""A results directory: made, locked, lost, moved, copied, whatever its name is."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from study.errors import RequestError
from study.results import Results, ResultsError, report_folder
from study.results.merging import compact
from study.storage.storage import Storage
from study.storage.urls import absolute
from study.tasks.sources.places import CACHE_VARIABLE, Places, default_cache_dir
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.tables import assert_same, frames, write_some

RUNNING = "another study is running with the results directory"


def test_one_driver_at_a_time(results):
    """That a killed one keeps nobody out, tests/faults/test_kills.py shows."""
    other = Results(results.url)
    assert not other.is_running()
    with results.lock():
        assert other.is_running()
        assert not results.is_running()  # it is its own
        with pytest.raises(ResultsError, match=f"^{RUNNING} {results.url}"), other.lock():
            pass
    assert not other.is_running()
    with pytest.raises(PermissionError), other.lock():  # no error of the lock
        raise PermissionError


def test_many_may_ask_at_once_whether_a_driver_runs(results):
    """As shards that begin together, on a slow file system; a driver waits for them."""
    with results.lock():
        pass
    taken: list[int] = []

    def slowly(file: BinaryIO, how: int) -> None:
        taken.append(how)
        flock(file, how)
        with open(f"{results.url}/.lock", "rb") as other:
            flock(other, how)  # who asks meanwhile

    flock = fcntl.flock
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", slowly)
        assert not results.is_running()
    assert len(taken) == 1
    with open(f"{results.url}/.lock", "rb") as asked:
        flock(asked, fcntl.LOCK_SH)
        threading.Timer(0.01, flock, (asked, fcntl.LOCK_UN)).start()
        with results.lock():
            pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_refused(number, results, monkeypatch):
    """As Lustre without its mount option, and NFS without lockd."""
    with results.lock():
        pass

    def none(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(ResultsError, match=r"^cannot lock .*mount option flock"), results.lock():
        pass
    assert not results.is_running()


def test_a_lost_directory_is_not_made_anew(results):
    origin = results.origin()
    shutil.rmtree(results.url)
    with pytest.raises(ResultsError, match="Bring the directory back"):
        write(results, make_cell())
    with pytest.raises(ResultsError, match=r"sees no results directory .*has its own"):
        results.require_origin(origin)
    assert not Path(results.url).exists()


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "Free space"), (errno.EROFS, "Make it writable")]
)
def test_a_directory_that_cannot_be_written_is_refused_and_read(
    number, remedy, results, monkeypatch
):
    write_some(results)
    before = frames(results)

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    for act in (
        results.prepare,
        lambda: write(results, make_cell(seed=9)),
        lambda: compact(results),
    ):
        with pytest.raises(ResultsError, match=rf"{os.strerror(number)}\). {remedy}"):
            act()
    assert results.origin() == results.origin()  # the place alone
    assert_same(frames(Results(results.url)), before)


@pytest.mark.parametrize(
    "name",
    ["#", "?", "%41", " a b ", "it's", '"', "résultats", "a\nb", "*[x]?", "a::b", "$HOME", "~x"],
)
def test_whatever_the_name_is(name, tmp_path):
    results = make_results(tmp_path / name)
    write_some(results)
    before = frames(results)
    with results.lock():
        assert Results(results.url).is_running()
    compact(results)
    assert_same(frames(Results(results.url)), before)
    assert Path(*results.files().paths).exists()
    results.require_origin(results.origin())
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_directory_is_moved_copied_and_merged_by_copying(tmp_path):
    one, other = (make_results(tmp_path / name) for name in ("one", "other"))
    write_some(one)
    write(other, make_cell(seed=7))
    write(other, make_cell(seed=0), 0.8)
    origin, expected = one.origin(), frames(one)
    assert other.origin() != origin
    assert str(tmp_path / "one") in origin  # people read it in MLflow
    moved = Results(shutil.move(one.url, tmp_path / "moved"))
    moved.require_origin(origin)
    assert_same(frames(moved), expected)
    with pytest.raises(ResultsError, match=r"sees another results directory at .*/other"):
        other.require_origin(origin)
    shutil.copytree(tmp_path / "moved" / "cells", tmp_path / "other" / "cells" / "deep" / "1")
    both = Results(other.url)
    assert both.disagreements() == []
    assert both.finished() == {*moved.finished(), make_cell(seed=7).id}
    assert_same(frames(both, moved.finished()), expected)


# --- without a home


def cache_of(cache_dir: str) -> object:
    return Places(cache_dir=cache_dir).cache


@pytest.mark.parametrize("opens", [absolute, cache_of, report_folder, Storage])
def test_an_unknown_home_is_refused_and_no_folder_is_named_after_it(
    opens,
):
    with pytest.raises(RequestError, match=r"^~nobody-of-this-name/results is in a home"):
        opens("~nobody-of-this-name/results")


@pytest.mark.usefixtures("homeless")
def test_without_a_home_the_cache_has_no_place_of_its_own(monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    with pytest.raises(RequestError, match="set HOME"):
        default_cache_dir()
