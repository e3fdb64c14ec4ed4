"""A directory of whole files, on a disk and in memory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.results import report_files, report_folder
from study.storage.storage import ResultsError, Storage
from study.storage.urls import absolute
from tests.conftest import PROJECT


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return Storage(tmp_path / "root")
    return Storage(f"memory://{uuid.uuid4().hex}")


def test_what_is_written_is_read(storage: Storage) -> None:
    storage.make("a")
    storage.write("a/x.bin", b"first")
    storage.write("a/x.bin", b"second")
    assert storage.read("a/x.bin") == b"second"
    with contextlib.closing(storage.open("a/x.bin")) as file:
        file.seek(2)
        assert file.read(3) == b"con"
        assert file.tell() == 5
    assert storage.exists("a/x.bin")
    assert storage.exists("a")
    assert not storage.exists("a/y.bin")
    for read in (storage.read, storage.open):
        with pytest.raises(FileNotFoundError):
            read("a/y.bin")


def test_names_are_those_of_all_files_below_a_folder(storage: Storage) -> None:
    assert storage.names("a") == []
    for folder in ("a/c/d", "ab"):
        storage.make(folder)
    for name in ("a/y.bin", "a/c/x.bin", "a/c/d/x.txt", "ab/x.bin"):
        storage.write(name, b"")
    assert storage.names("a") == ["a/c/d/x.txt", "a/c/x.bin", "a/y.bin"]
    assert storage.names("a", ".bin") == ["a/c/x.bin", "a/y.bin"]


def test_hidden_files_of_other_programs_are_none_of_ours(storage: Storage) -> None:
    names = ["a/.ipynb_checkpoints/x.bin", "a/._x.bin", "a/__MACOSX/x.bin", "a/x._.bin", "a/x.bin"]
    for name in names:
        storage.make(name.rpartition("/")[0])
        storage.write(name, b"")
    assert storage.names("a", ".bin") == ["a/x._.bin", "a/x.bin"]


def test_moving_overwrites_nothing(storage: Storage) -> None:
    storage.make("a")
    for content in (b"1", b"2", b"3"):
        storage.write("a/x.bin", content)
        storage.move("a/x.bin", "aside/a/x.bin")
    assert storage.names("a") == []
    names = ["aside/a/x-1.bin", "aside/a/x-2.bin", "aside/a/x.bin"]
    assert storage.names("aside") == names
    assert [storage.read(name) for name in names] == [b"2", b"3", b"1"]
    storage.write("a/x.bin", b"4")
    assert storage.move("a/x.bin", "b/x.bin") == "b/x.bin"
    with pytest.raises(FileNotFoundError):
        storage.move("a/x.bin", "b/x.bin")


def test_removing_twice_is_no_error(storage: Storage) -> None:
    storage.make("a")
    storage.write("a/x", b"")
    storage.remove("a/x")
    storage.remove("a/x")
    assert not storage.exists("a/x")


NAMES = st.sampled_from(["a/x", "a/y.bin", "b/c/x", "b/c/y.bin"])
ACTIONS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.binary(max_size=3)),
    st.tuples(st.just("remove"), NAMES, st.none()),
    st.tuples(st.just("move"), NAMES, NAMES),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(ACTIONS, max_size=12))
def test_no_content_is_ever_lost_but_by_writing_and_removing(
    tmp_path_factory: pytest.TempPathFactory, actions: list
) -> None:
    """Both kinds of storage behave as a dict from names to bytes does."""
    url = f"memory://{uuid.uuid4().hex}"
    storages = [Storage(tmp_path_factory.mktemp("root")), Storage(url)]
    for storage in storages:
        files: dict[str, bytes] = {}
        for folder in ("a", "b/c"):
            storage.make(folder)
        for action, name, argument in actions:
            if action == "write":
                storage.write(name, argument)
                files[name] = argument
            elif action == "remove":
                storage.remove(name)
                files.pop(name, None)
            elif name in files:
                to = storage.move(name, argument)
                assert to not in files
                files[to] = files.pop(name)
        names = sorted([*storage.names("a"), *storage.names("b")])
        assert {name: storage.read(name) for name in names} == files


def test_a_lost_directory_is_not_made_anew(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "root")
    with pytest.raises(ResultsError, match=r"root/a/x \(No such file.*Bring the directory back"):
        storage.write("a/x", b"")
    assert not (tmp_path / "root").exists()
    with pytest.raises(ResultsError, match="Bring the directory back"), storage.lock():
        pass


def test_a_full_disk_is_an_error_of_one_line_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(tmp_path)
    storage.write("x", b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ResultsError, match=r"/x \(No space left on device\)\. Free space"):
            storage.write("x", b"new")
    assert storage.read("x") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    storage = Storage(tmp_path)
    for act in (
        lambda: storage.make("file/a"),
        lambda: storage.probe("file"),
        lambda: storage.write("file/a", b""),
        lambda: storage.read("file/a"),
        lambda: storage.remove("file/a"),
    ):
        with pytest.raises(ResultsError, match=r"cannot (read|write).*file.*Not a directory"):
            act()
    assert storage.names("file") == storage.names("file/a") == []


def test_an_unreadable_folder_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all its cells would run again."""
    storage = Storage(tmp_path)
    storage.make("a")

    def refused(_: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(ResultsError, match=r"cannot read .*/a \(Permission denied\)"):
        storage.names("a")


@pytest.fixture
def left_over(tmp_path: Path) -> Path:
    """What a process leaves that is killed before it renames the file that it wrote."""
    code = f"""
import os
from study.storage.storage import Storage
storage = Storage({str(tmp_path)!r})
storage.make("a")
storage.write("a/x", b"old")
os.replace = lambda *_: os._exit(9)
storage.write("a/x", b"new")
"""
    project = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=project, check=False)
    assert run.returncode == 9
    (found,) = (tmp_path / "a").glob("*.part")
    return found


def test_what_a_killed_writer_leaves_is_not_read_and_swept(left_over: Path) -> None:
    storage = Storage(left_over.parents[1])
    other = left_over.with_name("other.part")
    other.write_text("not ours")
    assert storage.names("a") == ["a/other.part", "a/x"]
    assert storage.read("a/x") == b"old"
    with Storage(storage.url).lock():  # another driver, whose file this could be
        storage.sweep("a")
        assert left_over.exists()
    with storage.lock():
        storage.sweep()
    assert not left_over.exists()
    assert other.exists()
    left_over.write_bytes(b"")
    storage.sweep()
    assert not left_over.exists()


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    refused = pytest.raises(ResultsError, match="another study is running")
    with storage.lock(), refused, storage.lock():
        pass
    with pytest.raises(ZeroDivisionError), storage.lock():
        raise ZeroDivisionError
    with storage.lock():
        pass


def test_who_asks_for_the_lock_learns_of_others_and_is_in_nobodys_way(tmp_path: Path) -> None:
    storage, other = Storage(tmp_path), Storage(tmp_path)
    assert not storage.is_locked()
    assert not (tmp_path / ".lock").exists()
    with storage.lock():
        assert other.is_locked()
        assert not storage.is_locked()  # it is its own
    assert not other.is_locked()
    for takes in (other.lock, lambda: other.share(lambda: None), lambda: _asks(other)):
        with open(tmp_path / ".lock") as glance:
            fcntl.flock(glance, fcntl.LOCK_EX)
            threading.Timer(0.01, fcntl.flock, (glance, fcntl.LOCK_UN)).start()
            with takes():
                pass


@contextlib.contextmanager
def _asks(storage: Storage) -> Iterator[None]:
    """Another one asks at the same moment; neither takes the other for a study."""
    assert not storage.is_locked()
    yield


def test_some_share_what_others_keep_to_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever shares comes and goes; the first one begins alone, while the others wait."""
    monkeypatch.setattr("study.storage.storage._SOON", 0.1)
    first, second, driver = (Storage(tmp_path) for _ in range(3))
    began: list[str] = []
    shared = pytest.raises(ResultsError, match="shards of a study are running")
    alone = pytest.raises(ResultsError, match="another study is running")
    with first.share(lambda: began.append("first")):
        with second.share(lambda: began.append("second")):
            assert driver.is_locked()
            assert not first.is_locked()  # it is its own
        with shared, driver.lock():
            pass
        assert driver.is_locked()
        (tmp_path / f"x.{'0' * 32}.part").touch()
        first.sweep()
        driver.sweep()
    assert began == ["first"]
    assert not driver.is_locked()
    with driver.lock(), alone, first.share(lambda: began.append("again")):
        pass
    assert began == ["first"]
    assert (tmp_path / f"x.{'0' * 32}.part").exists()
    with first.share(first.sweep):
        assert not (tmp_path / f"x.{'0' * 32}.part").exists()


def test_who_shares_waits_for_one_that_begins(tmp_path: Path) -> None:
    """However long that takes: it reads all results."""
    first, second = Storage(tmp_path), Storage(tmp_path)
    events: list[str] = []
    begins, ended = threading.Event(), threading.Event()

    def begin() -> None:
        begins.set()
        time.sleep(0.3)
        events.append("began")

    def run() -> None:
        with first.share(begin):
            ended.wait(60)

    thread = threading.Thread(target=run)
    thread.start()
    assert begins.wait(60)
    with second.share(lambda: events.append("began again")):
        events.append("shares")
    ended.set()
    thread.join()
    assert events == ["began", "shares"]


def test_a_number_is_one_process_s(tmp_path: Path) -> None:
    code = f"""
from study.storage.storage import Storage
storage = Storage({str(tmp_path)!r})
with storage.lock_number(3) as third, storage.lock_number(2) as second:
    print(third, second)
"""
    with Storage(tmp_path).lock_number(3) as free:
        assert free
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
        )
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    "takes",
    [
        lambda storage: storage.lock(),
        lambda storage: storage.share(lambda: None),
        lambda storage: storage.lock_number(1),
    ],
)
def test_a_file_system_without_locks_is_refused(
    takes: Callable[[Storage], AbstractContextManager[object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Lustre without its mount option, and NFS without lockd."""

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    monkeypatch.setattr(fcntl, "lockf", none)
    storage = Storage(tmp_path)
    assert not storage.is_locked()
    with pytest.raises(ResultsError, match=r"No locks available.*mount option"), takes(storage):
        raise AssertionError("locked")
    assert not Storage(tmp_path).is_locked()


def test_errors_within_the_lock_are_not_those_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), Storage(tmp_path).lock():
        raise PermissionError


def test_a_name_that_no_report_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"r\\udce4s' has a name that is not UTF-8"):
        Storage(tmp_path / os.fsdecode(b"r\xe4s"))


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(ResultsError, match="nosuch"):
        Storage("nosuch://bucket/results")


@pytest.mark.parametrize(
    "url", ["sftp://user:secret@host/x", "https://user:sec/ret@host/x", "x::sftp://u:secret@h/"]
)
def test_a_url_with_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ResultsError, match="holds a user or a password") as refused:
        Storage(url)
    assert not {"secret", "sec/ret"} & set(re.split("[:@ ]", str(refused.value)))


def test_a_file_url_is_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a b"
    for url in (path.as_uri(), f"file://{path}", str(path), f"{path}/"):
        storage = Storage(url)
        assert storage.local
        storage.make("c")
        storage.write("c/x", b"")
        assert storage.path("c/x") == absolute(storage.path("c/x")) == f"{path}/c/x"
        assert storage.names("c") == ["c/x"]
    monkeypatch.chdir(tmp_path)
    assert absolute("a b/") == absolute("file://a b") == str(path)
    assert absolute("s3://bucket/a b") == "s3://bucket/a b"


@pytest.mark.parametrize("end", ["", "/"])
def test_the_report_of_a_study_is_found_wherever_it_lies(storage: Storage, end: str) -> None:
    url = storage.url + end
    assert report_folder(url, "digits") == storage.path("report/digits")
    assert report_folder(url) == storage.path("report")
    assert report_folder(url, "../x y") == storage.path("report/_x_y")
    with report_files(url, "digits") as files:
        assert files == []
    storage.make("report/digits")
    storage.write("report/digits/report.html", b"<p>")
    with report_files(url, "digits") as (file,):
        assert file.name == "report.html"
        assert file.read_bytes() == b"<p>"
    assert file.exists() == storage.local  # a copy is for the moment
