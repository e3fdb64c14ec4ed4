"""Data on shared storage: one whole copy a machine, one download for all, one preparation."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from study import run, tasks
from study.errors import RequestError
from study.plan.jobs import Seconds
from study.storage.storage import Storage
from study.tasks.mosaics.base_images import prepared
from study.tasks.mosaics.cifar import CIFAR10, load_cifar10
from study.tasks.mosaics.layouts import find, may_belong
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.posts.hatexplain import load_posts
from study.tasks.sources import fetched
from study.tasks.sources.cache import locked, whole
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.places import Places
from tests.conftest import PROJECT
from tests.made_up.cifar import WRITERS, make, write_official
from tests.study.tasks.test_base_images import assert_equal, entries
from tests.study.tasks.test_base_images import make as make_base
from tests.study.tasks.test_hatexplain_loader import write as write_posts
from tests.study.tasks.test_layouts import LAYOUTS

FILES = {"apple": b"red", "pear": b"green", "plum": b"blue"}


def contents(folder: Path) -> dict[str, bytes]:
    """Name -> content of every file under a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def no_download(folder: Path, where: str) -> None:
    raise RequestError("there is no network")


def fruit(download: Callable[[Path, str], None] = no_download) -> DataSet:
    """A data set of files without an extension."""
    return DataSet("Fruit", "fruit", "files of fruit", lambda name: "." not in name, download)


def pick(folder: Path, where: str) -> None:
    """The download of fruit."""
    for name, data in FILES.items():
        (folder / name).write_bytes(data)


def write_files(folder: Path) -> str:
    """The fruit in a folder, as a URL."""
    folder.mkdir(parents=True)
    pick(folder, "")
    return folder.as_uri()


def upload(folder: Path, url: str) -> str:
    fs, root = fsspec.core.url_to_fs(url)
    for name, data in contents(folder).items():
        fs.pipe_file(f"{root}/{name}", data)
    return url


def refusal(call: Callable[[], object]) -> str:
    """The message of a `RequestError`: one line."""
    with pytest.raises(RequestError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this machine."""
    monkeypatch.setenv("ATTENTION_STUDY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# --data-dir URL


@LAYOUTS
def test_a_copy_is_the_data_set(tmp_path: Path, cache: Path, layout: str) -> None:
    """And has its digest, wherever it comes from and lies."""
    folder = WRITERS[layout](tmp_path / "data", CIFAR10, make(CIFAR10))
    urls = [folder.as_uri(), upload(folder, f"memory://{uuid.uuid4().hex}/data")]
    here = load_cifar10(Places(str(folder)))
    for url in urls:
        assert_equal(load_cifar10(Places(url)), here)
    assert_equal(load_cifar10(Places(urls[0], str(tmp_path / "another cache"))), here)
    assert len(entries(cache / "fetched")) == 2


def test_copies_once_and_changed_data_anew(
    tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = write_files(tmp_path / "data")
    assert read_data_set(fruit(), Places(url), contents) == FILES
    printed = capfd.readouterr()
    assert printed.out == ""
    (copy,) = (cache / "fetched" / name for name in entries(cache / "fetched"))
    assert printed.err == f"copying Fruit (3 files, 0 MB) from {tmp_path / 'data'} to {copy}\n"
    assert read_data_set(fruit(), Places(url), contents) == FILES
    assert capfd.readouterr().err == ""
    (tmp_path / "data" / "pear").write_bytes(b"brown")  # as long as before
    assert read_data_set(fruit(), Places(url), contents)["pear"] == b"brown"
    assert "copying Fruit" in capfd.readouterr().err
    assert contents(copy) == FILES


def test_only_what_a_reader_reads_is_copied(tmp_path: Path, cache: Path) -> None:
    url = write_files(tmp_path / "data")
    for name in ("readme.txt", ".hidden", ".git/apple"):
        (tmp_path / "data" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "data" / name).touch()
    assert read_data_set(fruit(), Places(url), contents) == FILES


@LAYOUTS
def test_every_file_that_cifar_needs_belongs_to_it(tmp_path: Path, layout: str) -> None:
    WRITERS[layout](tmp_path / "data", CIFAR10, make(CIFAR10))
    places = [tmp_path / "data"]
    if layout != "class folders":  # the others may lie in one folder more
        inner = CIFAR10.folder if layout == "official" else "plain_text"
        WRITERS[layout](tmp_path / "parent" / inner, CIFAR10, make(CIFAR10))
        places.append(tmp_path / "parent")
    for place in places:
        found = find(place, CIFAR10).files
        assert all(may_belong(path.relative_to(place).as_posix(), CIFAR10) for path in found)
    for name in ("cifar-10-python.tar.gz", "results/cells/train.parquet", "a/b/train/cat/1.png"):
        assert not may_belong(name, CIFAR10)


def test_what_is_wrong_with_a_copy_names_where_it_is_from(tmp_path: Path, cache: Path) -> None:
    folder = write_official(tmp_path / "data", CIFAR10, make(CIFAR10))
    os.truncate(folder / "data_batch_5", 100)
    message = refusal(lambda: load_cifar10(Places(folder.as_uri())))
    (copy,) = entries(cache / "fetched")
    assert "data_batch_5 cannot be read (" in message
    assert f"It was copied from {folder}: mend it there, or delete" in message
    assert copy in message


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "file://{tmp}/empty",
            "{tmp}/empty holds no file of CIFAR-10. Accepted: cifar-10-batches",
        ),
        (
            "file://{tmp}/none",
            "{tmp}/none holds no file of CIFAR-10. Accepted: cifar-10-batches-p",
        ),
        ("memory://none", "memory://none holds no file of CIFAR-10. Accepted: cifar-10"),
    ],
)
def test_an_unusable_url_is_one_clear_line(
    tmp_path: Path, cache: Path, url: str, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    got = refusal(lambda: load_cifar10(Places(url.format(tmp=tmp_path))))
    assert got.startswith(message.format(tmp=tmp_path))
    assert not cache.exists()


def test_without_s3fs_the_extra_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    message = refusal(lambda: load_cifar10(Places("s3://bucket/data")))
    assert message.startswith("cannot open the data directory s3://bucket/data: s3:// needs")
    assert "`uv sync --extra cluster`" in message


@pytest.mark.parametrize("fault", ["lost", "full", "changed"])
def test_what_breaks_off_is_never_taken(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    url = write_files(tmp_path / "data")
    read, write = Storage.read, Path.write_bytes

    def broken_read(storage: Storage, name: str) -> bytes:
        if name == "plum":
            if fault == "lost":
                with storage.reading(name):
                    raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            if fault == "changed":
                write(tmp_path / "new", b"RED")  # at once: another thread may be reading it
                (tmp_path / "new").replace(tmp_path / "data" / "apple")
        return read(storage, name)

    def full_disk(path: Path, data: bytes) -> None:
        if fault == "full" and path.name == "plum":
            write(path, data[:1])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    monkeypatch.setattr(Storage, "read", broken_read)
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    message = refusal(lambda: read_data_set(fruit(), Places(url), contents))
    assert {
        "lost": "plum (Connection reset by peer)",
        "full": "(No space left on device). It takes 0 MB: free space there, or set ATTENTION_STU",
        "changed": "changed while it was copied (it has other files now)",
    }[fault] in message
    assert entries(cache / "fetched") == []
    monkeypatch.undo()
    monkeypatch.setenv("ATTENTION_STUDY_CACHE", str(cache))
    assert read_data_set(fruit(), Places(url), contents) == contents(tmp_path / "data")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, cache: Path) -> None:
    cache.touch()
    url = write_files(tmp_path / "data")
    message = refusal(lambda: read_data_set(fruit(), Places(url), contents))
    assert "(Not a directory). It takes 0 MB: free space there, or set ATTENTION_STUDY" in message


# --cache-dir URL


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder in the place of shared storage."""
    return tmp_path / "shared"


def machine(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """Goes on as another machine, whose cache is empty."""
    monkeypatch.setenv("ATTENTION_STUDY_CACHE", str(cache))
    assert not cache.exists()
    return cache


def test_one_machine_downloads_for_all(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def download(folder: Path, where: str) -> None:
        asked.append(where)
        pick(folder, where)
        (folder / "readme.txt").touch()

    cache = machine(monkeypatch, tmp_path / "first")
    assert read_data_set(fruit(download), Places(None, shared.as_uri()), contents) == FILES
    assert asked == [str(cache / "downloads" / "fruit")]
    kept = contents(shared / "downloads" / "fruit")
    manifest = json.loads(kept.pop("manifest.json"))
    assert kept == FILES
    assert manifest["files"] == {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in FILES.items()
    }
    machine(monkeypatch, tmp_path / "second")
    assert read_data_set(fruit(), Places(None, shared.as_uri()), contents) == FILES
    shutil.rmtree(tmp_path / "second" / "fetched")
    assert read_data_set(fruit(), Places(None, shared.as_uri()), contents) == FILES


def test_the_manifest_is_written_last(
    cache: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that broke off, here before each of its files, is none."""
    write = Storage.write
    for number in range(len(FILES) + 1):
        left = number

        def broken(storage: Storage, name: str, data: bytes) -> None:
            nonlocal left
            left -= 1
            with storage._writing(name):
                if left < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
            write(storage, name, data)

        with monkeypatch.context() as patch:
            patch.setattr(Storage, "write", broken)
            message = refusal(
                lambda: read_data_set(fruit(pick), Places(None, shared.as_uri()), contents)
            )
        assert message == (
            f"Fruit cannot be kept in {shared}/downloads/fruit (No space left on device). Make it "
            "writable, choose another place with --cache-dir, or leave the option out."
        )
        assert not fetched.at_hand(fruit(), Places(None, shared.as_uri()))
        assert not (cache / "fetched").exists() or entries(cache / "fetched") == []
    # What was downloaded for it is taken now.
    assert read_data_set(fruit(), Places(None, shared.as_uri()), contents) == FILES


def test_a_place_that_cannot_be_written_is_found_before_the_download(
    cache: Path,
) -> None:
    message = refusal(lambda: read_data_set(fruit(), Places(None, "file:///proc/none"), contents))
    assert message.startswith("Fruit cannot be kept in /proc/none/downloads/fruit (No such file")


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("cut", "plum has 3 bytes, not 4"),
        ("changed", "plum has another checksum"),
        ("removed", "plum is gone"),
        ("manifest cut", "which is damaged"),
        ("manifest leads out", "which is damaged"),
    ],
)
def test_what_differs_from_its_manifest_is_refused(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, damage: str, fault: str
) -> None:
    machine(monkeypatch, tmp_path / "first")
    read_data_set(fruit(pick), Places(None, shared.as_uri()), contents)
    folder = shared / "downloads" / "fruit"
    plum, manifest = folder / "plum", folder / "manifest.json"
    known = {"size": 4, "sha256": hashlib.sha256(b"blue").hexdigest()}
    if damage == "removed":
        plum.unlink()
    else:
        path, data = {
            "cut": (plum, b"blu"),
            "changed": (plum, b"BLUE"),
            "manifest cut": (manifest, manifest.read_bytes()[:-9]),
            "manifest leads out": (manifest, json.dumps({"files": {"../x": known}}).encode()),
        }[damage]
        path.write_bytes(data)
    cache = machine(monkeypatch, tmp_path / "second")
    message = refusal(lambda: read_data_set(fruit(), Places(None, shared.as_uri()), contents))
    assert message == (
        f"the download in {folder} is not what its manifest.json says ({fault}). Delete that "
        "folder: the next run downloads it again."
    )
    assert not (cache / "fetched").exists() or entries(cache / "fetched") == []
    shutil.rmtree(folder)
    assert read_data_set(fruit(pick), Places(None, shared.as_uri()), contents) == FILES


def test_official_data_sets_are_kept_alike(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the downloads of CIFAR-10 and HateXplain leave is what their readers find."""
    machine(monkeypatch, tmp_path / "first")
    write_official(tmp_path / "first" / "downloads" / CIFAR10.folder, CIFAR10, make(CIFAR10))
    write_posts(tmp_path / "first" / "downloads" / "hatexplain")
    images, posts = load_cifar10(), load_posts()
    for name in ("second", "third"):
        assert_equal(load_cifar10(Places(None, shared.as_uri())), images)
        assert load_posts(Places(None, shared.as_uri())).tokens == posts.tokens
        machine(monkeypatch, tmp_path / name)


def test_tasks_without_a_download_use_the_cache_of_the_machine(
    shared: Path, digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)  # prepared before, in that cache
    assert tasks.load("digits", Places(cache_dir=shared.as_uri())).facts == digits.facts
    assert not shared.exists()


# --plan


def test_at_hand_copies_nothing(tmp_path: Path, cache: Path, shared: Path) -> None:
    url = write_official(tmp_path / "data", CIFAR10, make(CIFAR10)).as_uri()
    assert not tasks.at_hand("cifar10", Places(url))
    assert not tasks.at_hand("cifar10", Places(None, shared.as_uri()))
    assert not cache.exists()
    assert not shared.exists()
    load_cifar10(Places(url))
    assert tasks.at_hand("cifar10", Places(url))
    assert tasks.at_hand("cifar10", Places(str(tmp_path / "data")))
    shutil.copytree(tmp_path / "data", cache / "downloads" / CIFAR10.folder)
    load_cifar10(Places(None, shared.as_uri()))
    assert tasks.at_hand("cifar10", Places(None, shared.as_uri()))
    (tmp_path / "data" / "test_batch").touch()
    assert not tasks.at_hand("cifar10", Places(url))


def test_a_plan_copies_nothing(
    tmp_path: Path,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # No step is timed: the times are not what this is about.
    monkeypatch.setattr(
        "study.plan.planning.cell_seconds",
        lambda _, cells: {cell.id: Seconds(1.0, 1.0) for cell in cells},
    )
    url = write_official(tmp_path / "data", CIFAR10, make(CIFAR10)).as_uri()
    small = ["--set", "paradigm=soft", "lr=0.1", "seed=0"]
    arguments = ["cifar10", "--plan", *small, "--results", str(tmp_path / "results"), "--data-dir"]
    assert run.main([*arguments, url]) == 0
    assert "data not at hand" in capsys.readouterr().out
    assert not cache.exists()
    assert run.main([*arguments, (tmp_path / "none").as_uri()]) == 2
    assert "holds no file of CIFAR-10" in capsys.readouterr().err


# Many processes

# Without study.tasks itself, which imports torch: a process begins within half a second.
_BEGIN = """
import os, sys, time, types
from pathlib import Path
package = types.ModuleType("study.tasks")
package.__path__ = ["study/tasks"]
sys.modules["study.tasks"] = package
here = Path(sys.argv[1])

def tell(what):
    with open(here / "log", "a") as log:
        log.write(f"{what} {os.getpid()}\\n")

def wait_for(name):
    while not (here / name).exists():
        time.sleep(0.01)

def ready():
    tell("ready")
    wait_for("go")
"""

_PREPARE = """
import numpy as np
from study.tasks.mosaics.base_images import BaseImages, prepared
def read():
    tell("begins")
    wait_for("release")
    time.sleep(0.2)
    images, labels = np.zeros((4, 2, 2, 1), np.uint8), np.zeros(4, np.int64)
    return BaseImages.create(images, labels, images, labels, class_names=["a"], max_value=1,
                             source="here")
ready()
print(prepared(here / "cache" / "prepared", read).digest)
"""

_COPY = """
from study.storage.storage import Storage
from study.tasks.mosaics.cifar import load_cifar10
from study.tasks.sources.places import Places
read = Storage.read
def slow_read(storage, name):
    tell("begins") if name == "data_batch_1" else None
    wait_for("release")
    time.sleep(0.1)
    return read(storage, name)
Storage.read = slow_read
ready()
print(load_cifar10(Places(sys.argv[2], str(here / "cache"))).digest)
"""


class Together:
    """Processes that begin at once and say what they do."""

    def __init__(self, here: Path, code: str, count: int, *arguments: str) -> None:
        self.here = here
        here.mkdir(exist_ok=True)
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", _BEGIN + code, str(here), *arguments],
                cwd=PROJECT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        self.wait_for("ready", count)
        (here / "go").touch()

    def said(self, what: str) -> list[int]:
        """Ids of the processes that said so."""
        log = self.here / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(f"{what} ")]

    def wait_for(self, what: str, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.said(what)) < count:
            assert time.monotonic() < deadline, (what, [p.poll() for p in self.processes])
            time.sleep(0.01)

    def kill(self, pid: int) -> None:
        (killed,) = (each for each in self.processes if each.pid == pid)
        self.processes.remove(killed)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()

    def release(self) -> tuple[set[str], str]:
        """What the processes print and what they say to the user, when all have ended."""
        (self.here / "release").touch()
        ended = [process.communicate(timeout=60) for process in self.processes]
        assert [process.returncode for process in self.processes] == [0] * len(ended), ended
        return {out for out, _ in ended}, "".join(err for _, err in ended)


@pytest.fixture
def together(tmp_path: Path) -> Iterator[Callable[..., Together]]:
    started = []

    def start(code: str, count: int, *arguments: str) -> Together:
        started.append(Together(tmp_path / "together", code, count, *arguments))
        return started[-1]

    yield start
    for each in started:
        for process in each.processes:
            process.kill()
            process.communicate()


def test_processes_that_begin_at_once_prepare_once(together: Callable[..., Together]) -> None:
    """Also where the first one is killed at it: then the next one prepares."""
    processes = together(_PREPARE, 3)
    processes.wait_for("begins", 1)
    processes.kill(processes.said("begins")[0])
    processes.wait_for("begins", 2)
    printed, errors = processes.release()
    assert len(printed) == 1
    assert errors == ""
    assert len(processes.said("begins")) == 2
    assert entries(processes.here / "cache") == ["prepared"]


def test_processes_that_begin_at_once_copy_once(
    tmp_path: Path, together: Callable[..., Together]
) -> None:
    """Also where the first one is killed at it: what it leaves behind is removed."""
    folder = write_official(tmp_path / "data", CIFAR10, make(CIFAR10))
    processes = together(_COPY, 3, folder.as_uri())
    processes.wait_for("begins", 1)
    processes.kill(processes.said("begins")[0])
    processes.wait_for("begins", 2)
    (partial,) = entries(processes.here / "cache" / "fetched")
    assert partial.endswith(".part")
    printed, errors = processes.release()
    assert printed == {f"{load_cifar10(Places(str(folder))).digest}\n"}
    assert errors.count("copying CIFAR-10 (7 files, 0 MB)") == 1  # the killed one's is not read
    assert len(processes.said("begins")) == 2
    (copy,) = entries(processes.here / "cache" / "fetched")
    assert contents(processes.here / "cache" / "fetched" / copy) == contents(folder)


def test_another_folder_is_not_waited_for(tmp_path: Path) -> None:
    with locked(tmp_path / "one"), locked(tmp_path / "other"), whole(tmp_path / "other"):
        pass
    assert entries(tmp_path) == ["other"]


def test_a_cache_that_cannot_be_locked_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert_equal(prepared(tmp_path / "prepared", make_base), make_base())
    url = write_files(tmp_path / "data")
    assert read_data_set(fruit(), Places(url, str(tmp_path / "cache")), contents) == FILES
    assert len(entries(tmp_path / "cache" / "fetched")) == 1


# On S3


@pytest.fixture
def bucket(s3: Any) -> Iterator[Any]:
    import boto3

    made = boto3.resource("s3").create_bucket(Bucket=f"data-{uuid.uuid4().hex}")
    yield made
    made.meta.client.close()


def put(bucket: Any, prefix: str, files: dict[str, bytes]) -> str:
    for name, data in files.items():
        bucket.put_object(Key=f"{prefix}/{name}", Body=data)
    return f"s3://{bucket.name}/{prefix}"


@pytest.mark.faults
def test_processes_that_begin_at_once_copy_from_s3_once(
    tmp_path: Path, bucket: Any, together: Callable[..., Together]
) -> None:
    folder = write_official(tmp_path / "data", CIFAR10, make(CIFAR10))
    url = put(bucket, "data", contents(folder) | {"": b"", "../plum": b"x", "readme.md": b"x"})
    processes = together(_COPY, 2, url)
    printed, errors = processes.release()
    assert printed == {f"{load_cifar10(Places(str(folder))).digest}\n"}
    assert errors.count("\n") == errors.count(f"(7 files, 0 MB) from {url} to ") == 1
    assert len(processes.said("begins")) == 1
    (copy,) = entries(processes.here / "cache" / "fetched")
    assert contents(processes.here / "cache" / "fetched" / copy) == contents(folder)


@pytest.mark.faults
def test_changed_objects_are_copied_anew(bucket: Any) -> None:
    url = put(bucket, "data", FILES)
    assert read_data_set(fruit(), Places(url), contents) == FILES
    put(bucket, "data", {"pear": b"brown"})
    assert not fetched.at_hand(fruit(), Places(url))
    assert read_data_set(fruit(), Places(url), contents) == FILES | {"pear": b"brown"}


@pytest.mark.faults
def test_no_name_leads_out_of_the_copy(tmp_path: Path, bucket: Any) -> None:
    """A bucket takes names that no folder has."""
    url = put(bucket, "data", FILES)
    bucket.put_object(Key=f"data/{tmp_path}/apple", Body=b"out")
    bucket.put_object(Key="data/a/../../apple", Body=b"out")
    assert read_data_set(fruit(), Places(url), contents) == FILES
    assert list(tmp_path.rglob("apple")) == list((tmp_path / "cache" / "fetched").rglob("apple"))


@pytest.mark.faults
def test_a_download_is_kept_on_s3(
    tmp_path: Path, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"s3://{bucket.name}/cache"
    for name, download in (("first", pick), ("second", no_download)):
        machine(monkeypatch, tmp_path / name)
        assert read_data_set(fruit(download), Places(None, url), contents) == FILES
    kept = ["apple", "manifest.json", "pear", "plum"]
    assert [each.key for each in bucket.objects.all()] == [
        f"cache/downloads/fruit/{n}" for n in kept
    ]
