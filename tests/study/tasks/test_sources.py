"""Where data is from: made once a machine and whole; copied, downloaded for all, or of the Hub."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import datasets
import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from study.errors import RequestError
from study.storage.storage import Storage
from study.tasks.sources.cached import cached, digest_of, prepared
from study.tasks.sources.data_set import DataSet, at_hand, read_data_set
from study.tasks.sources.hub import named_classes
from study.tasks.sources.places import Places
from tests.conftest import PROJECT
from tests.made_up.commands import refusal

FILES = {"apple": b"red", "pear": b"green", "plum": b"blue"}


def contents(folder: Path) -> dict[str, bytes]:
    """Name -> content of every file under a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def entries(folder: Path) -> list[str]:
    """What is in a folder, but for locks."""
    names = os.listdir(folder) if folder.is_dir() else []
    return sorted(name for name in names if not name.endswith(".lock"))


def no_download(folder: Path, where: str) -> None:
    raise RequestError("there is no network")


def pick(folder: Path, where: str = "") -> None:
    """The download of fruit."""
    for name, data in FILES.items():
        (folder / name).write_bytes(data)


def fruit(download: Callable[[Path, str], None] = no_download, hub: bool = False) -> DataSet:
    """A data set of files without an extension."""
    title, accepted = "Fruit", "files of fruit"
    return DataSet(
        title, "fruit", accepted, lambda name: "." not in name, download, any_of_the_hub=hub
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this machine."""
    monkeypatch.setenv("ATTENTION_STUDY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The fruit in a folder."""
    (tmp_path / "data").mkdir()
    pick(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.faults)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a folder of shared storage, which is not there yet."""
    if request.param == "file":
        return (tmp_path / "shared").as_uri()
    name = f"bucket-{uuid.uuid4().hex}"
    if request.param == "s3":
        request.getfixturevalue("s3").create_bucket(Bucket=name)
    return f"{request.param}://{name}/shared"


def put(url: str, files: Mapping[str, bytes]) -> None:
    storage = Storage(url)
    for name, data in files.items():
        storage.make(os.path.dirname(name))
        storage.write(name, data)


@pytest.mark.parametrize(
    ("places", "fact"),
    [
        (Places("file:///none"), "holds no file of Fruit. Accepted: files of fruit."),
        (Places("hf://datasets/birds/marsh"), "Fruit is not taken from the Hub. "),
        (Places(None, "file:///proc/none"), "cannot be kept in /proc/none/downloads/fruit"),
        (Places(None, "s3://me:secret@bucket"), "the s3:// URL of the cache directory holds a us"),
    ],
)
def test_a_place_that_cannot_be_is_named_before_anything_is_fetched(cache, places, fact):
    assert fact in refusal(lambda: read_data_set(fruit(), places, contents))
    assert entries(cache / "fetched") == []


# --data-dir URL


def test_a_copy_is_made_once_and_of_changed_data_anew(cache, shared, capfd):
    put(shared, FILES | dict.fromkeys(("readme.txt", ".hidden", ".git/apple"), b"no fruit"))
    assert not at_hand(fruit(), Places(shared))
    assert not cache.exists()
    assert read_data_set(fruit(), Places(shared), contents) == FILES
    assert "copying Fruit (3 files)" in capfd.readouterr().err
    assert at_hand(fruit(), Places(shared))
    assert read_data_set(fruit(), Places(shared), contents) == FILES
    assert capfd.readouterr().err == ""
    time.sleep(0.01)  # a file system's clock may stand still for some milliseconds
    put(shared, {"pear": b"brown"})  # as long as before
    assert not at_hand(fruit(), Places(shared))
    assert read_data_set(fruit(), Places(shared), contents) == FILES | {"pear": b"brown"}


def test_what_is_wrong_with_a_copy_names_where_it_is_from(data, cache):
    def spoilt(folder: Path) -> None:
        raise RequestError("apple is rotten.")

    assert refusal(lambda: read_data_set(fruit(), Places(str(data)), spoilt)) == "apple is rotten."
    message = refusal(lambda: read_data_set(fruit(), Places(data.as_uri()), spoilt))
    assert message.startswith("apple is rotten. ")
    assert str(data) in message
    assert entries(cache / "fetched")[0] in message


def _reset(data: Path) -> None:
    with Storage(data).reading("plum"):
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_reset, "reset by peer"),
        (lambda data: (data / "apple").write_bytes(b"green"), "changed while it was copied"),
        (lambda data: (data / "pear").unlink(), "{data} cannot be copied: a file is gone"),
    ],
)
def test_a_copy_that_breaks_off_is_never_taken(
    data,
    cache,
    monkeypatch,
    fault,
    said,
):
    """Since its file system fails, or the data change meanwhile."""
    fetch = Storage.fetch

    def broken(storage: Storage, names: list[str], folder: Path) -> None:
        fetch(storage, names[:1], folder)
        fault(data)
        fetch(storage, names[1:], folder)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "fetch", broken)
        message = refusal(lambda: read_data_set(fruit(), Places(data.as_uri()), contents))
    assert said.format(data=data) in message
    assert entries(cache / "fetched") == []
    assert read_data_set(fruit(), Places(data.as_uri()), contents) == contents(data)


@pytest.mark.faults
def test_no_name_leads_out_of_the_copy(tmp_path, s3, cache):
    """A bucket takes names that no folder has."""
    s3.create_bucket(Bucket=(name := f"bucket-{uuid.uuid4().hex}"))
    outside = {
        "data/../plum": b"x",
        "data/a/../../apple": b"out",
        f"data/{tmp_path}/apple": b"out",
    }
    within = {f"data/{name}": data for name, data in FILES.items()}
    for key, data in {**within, **outside, "data/": b""}.items():
        s3.put_object(Bucket=name, Key=key, Body=data)
    assert read_data_set(fruit(), Places(f"s3://{name}/data"), contents) == FILES
    assert list(tmp_path.rglob("apple")) == list((cache / "fetched").rglob("apple"))


# --cache-dir URL


def machine(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Goes on as another machine, whose cache is empty."""
    monkeypatch.setenv("ATTENTION_STUDY_CACHE", str(cache))


def test_one_machine_downloads_for_all(tmp_path, shared, monkeypatch):
    places = Places(None, shared)
    machine(monkeypatch, tmp_path / "first")
    assert read_data_set(fruit(pick), places, contents) == FILES
    machine(monkeypatch, tmp_path / "second")
    assert not at_hand(fruit(), places)
    assert read_data_set(fruit(), places, contents) == FILES
    assert at_hand(fruit(), places)
    fs, root = fsspec.core.url_to_fs(shared)
    kept = {path.rpartition("/")[2] for path in fs.find(f"{root}/downloads/fruit")}
    assert kept == {*FILES, "files.json"}
    fs.rm(root, recursive=True)
    assert read_data_set(fruit(), places, contents) == FILES


@pytest.mark.parametrize("whole", range(len(FILES) + 1))
def test_an_upload_that_broke_off_is_none(whole, tmp_path, monkeypatch):
    """Here before each of its files."""
    places, write, left = Places(None, (tmp_path / "shared").as_uri()), Storage.write, [whole]

    def broken(storage: Storage, name: str, data: bytes) -> None:
        left[0] -= 1
        with storage._writing(name):
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        write(storage, name, data)

    machine(monkeypatch, tmp_path / "first")
    with monkeypatch.context() as patch:
        patch.setattr(Storage, "write", broken)
        message = refusal(lambda: read_data_set(fruit(pick), places, contents))
    assert "cannot be kept in" in message
    assert "No space left on device" in message
    machine(monkeypatch, tmp_path / "second")
    message = refusal(lambda: read_data_set(fruit(), places, contents))
    assert message == "there is no network"


# The cache


def numbers(values: np.ndarray, title: str) -> SimpleNamespace:
    return SimpleNamespace(values=values, title=title, digest=digest_of([values], [title]))


def kept(folder: Path, read: Callable[[], SimpleNamespace]) -> SimpleNamespace:
    return prepared(folder, read, numbers, ("values",), ("title",))


def never() -> SimpleNamespace:
    raise AssertionError("it is kept")


DAMAGES: list[Callable[[Path], object]] = [
    lambda folder: (folder / "values.npy").unlink(),
    lambda folder: np.save(folder / "values.npy", np.arange(6, 0, -1, np.int32)),
    lambda folder: (folder / "rest.json").write_text("{"),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=["gone", "changed", "no JSON"])
def test_what_is_prepared_is_kept_and_if_damaged_made_anew(tmp_path, damage):
    folder = tmp_path / "cache" / "numbers"
    made = numbers(np.arange(6, dtype=np.int32), "six")
    assert kept(folder, lambda: made).digest == made.digest
    again = kept(folder, never)
    assert (again.digest, again.title) == (made.digest, "six")
    again.values[0] = 9  # of this process alone
    assert kept(folder, never).values[0] == 0
    damage(folder)
    assert kept(folder, lambda: made).digest == made.digest
    assert kept(folder, never).digest == made.digest


def test_a_full_disk_leaves_nothing_and_is_told(tmp_path):
    def full(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    message = refusal(lambda: cached(tmp_path / "made", full, contents))
    assert "No space left on device" in message
    assert "ATTENTION_STUDY_CACHE" in message
    assert entries(tmp_path) == []


_MAKE = """
import os, sys, time
from pathlib import Path
from study.tasks.sources.cached import cached
here = Path(sys.argv[1])

def make(folder):
    (folder / "half").touch()
    (here / f"began {os.getpid()}").touch()
    while not (here / "release").exists():
        time.sleep(0.01)
    (folder / "whole").write_text(str(os.getpid()))

print(cached(here / "cache" / "made", make, lambda folder: (folder / "whole").read_text()))
"""


def test_processes_that_begin_at_once_make_once(tmp_path):
    """Where the first one is killed at it, the next one makes it, and removes what is left."""
    command = [sys.executable, "-W", "error", "-c", _MAKE, str(tmp_path)]
    processes = {
        each.pid: each
        for each in (
            subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        )
    }

    def began(count: int) -> list[int]:
        deadline = time.monotonic() + 60
        while len(found := list(tmp_path.glob("began *"))) < count:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return [int(path.name.split()[1]) for path in found]

    try:
        (first,) = began(1)
        processes[first].send_signal(signal.SIGKILL)
        (second,) = set(began(2)) - {first}
        (tmp_path / "release").touch()
        printed = [each.communicate(timeout=60)[0] for each in processes.values()]
    finally:
        for each in processes.values():
            each.kill()
            each.communicate()
    assert sorted(printed) == ["", f"{second}\n", f"{second}\n"]
    assert entries(tmp_path / "cache") == ["made"]


# What stands in the place of a file


def test_a_copy_of_a_folder_waits_for_no_pipe(data, cache):
    (data / "apple").unlink()
    os.mkfifo(data / "apple")
    message = refusal(lambda: read_data_set(fruit(), Places(data.as_uri()), contents))
    assert f"{data}/apple is a named pipe" in message


# The Hub


def test_a_data_set_of_the_hub_is_fetched_once(tmp_path, cache, monkeypatch):
    """With the files that its rows name, and only the splits of which a task knows."""
    asked = []
    Image.new("L", (3, 2), 7).save(tmp_path / "grey.png")
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["x"])}
    )
    rows = datasets.Dataset.from_dict(
        {"image": [str(tmp_path / "grey.png")], "label": [0]}, features=features
    )

    def found(*names: str | None, revision: str | None, **_: object) -> datasets.DatasetDict:
        asked.append((*names, revision))
        return datasets.DatasetDict(train=rows, unsupervised=rows)

    monkeypatch.setattr(datasets, "load_dataset", found)
    places = Places("hf://datasets/birds/marsh@v2/small")
    for _ in range(2):
        files = read_data_set(fruit(hub=True), places, contents)
    assert asked == [("birds/marsh", "small", "v2")]
    assert list(files) == ["train.parquet"]
    (copy,) = entries(cache / "fetched")
    path = cache / "fetched" / copy / "train.parquet"
    assert named_classes(path) == {"label": ["x"]}
    (row,) = pq.read_table(path).to_pylist()
    assert row["image"]["bytes"] == (tmp_path / "grey.png").read_bytes()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("hf://birds/marsh", "hf://datasets/ORG/NAME"),
        ("hf://datasets/marsh/a/b/c", "hf://datasets/ORG/NAME"),
        ("hf://datasets/birds/none", "no such data set"),
        ("hf://datasets/birds/marsh", "its splits are unsupervised"),
    ],
)
def test_what_the_hub_lacks_is_one_line(cache, monkeypatch, url, said):
    def found(name: str, *_: object, **__: object) -> datasets.DatasetDict:
        if name != "birds/marsh":
            raise datasets.exceptions.DatasetNotFoundError("no such data set")
        return datasets.DatasetDict(unsupervised=datasets.Dataset.from_dict({"text": ["dull"]}))

    monkeypatch.setattr(datasets, "load_dataset", found)
    message = refusal(lambda: read_data_set(fruit(hub=True), Places(url), contents))
    assert url in message
    assert said in message
    assert entries(cache / "fetched") == []
