"""What every download of a data set keeps: once, whole or not at all, one clear line.

A server on the loopback device has small made-up files in the place of the published ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import io
import os
import shutil
import socket
import tarfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from study import tasks
from study.cell import NO_OPTIONS
from study.errors import RequestError
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.layouts import OFFICIAL, Wanted
from study.tasks.posts import hatexplain
from study.tasks.sources import downloading
from study.tasks.sources.data_set import DataSet, at_hand, read_data_set
from study.tasks.sources.places import Places
from tests.made_up import cifar
from tests.made_up.layouts import OF_TASK, Layout
from tests.made_up.series import write_series

Patch = pytest.MonkeyPatch


def entries(folder: Path) -> list[str]:
    """What a folder of the cache holds, without the lock files, which stay."""
    return sorted(path.name for path in folder.glob("[!.]*"))


Publish = Callable[[Path, str, Patch], dict[str, bytes]]
"""Makes a download ask a URL for a folder's files; gives path -> content of what is asked for."""


def _publish_cifar(folder: Path, url: str, patch: Patch, names: Wanted) -> dict[str, bytes]:
    """As one archive, with its checksums made known to torchvision."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        tar.add(folder, OFFICIAL[names.official[0]].folder)
    known = cifar.publish(folder, patch)
    patch.setattr(known, "url", f"{url}/images.tar.gz")
    patch.setattr(known, "tgz_md5", _md5(file.getvalue()))
    return {"/images.tar.gz": file.getvalue()}


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _publish_omniglot(folder: Path, url: str, patch: Patch) -> dict[str, bytes]:
    """With the checksums made known to torchvision."""
    from torchvision.datasets import Omniglot  # takes seconds

    files = {stem: (folder / f"{stem}.zip").read_bytes() for stem in Omniglot.zips_md5}
    patch.setattr(Omniglot, "download_url_prefix", f"{url}/python")
    patch.setattr(Omniglot, "zips_md5", {stem: _md5(data) for stem, data in files.items()})
    return {f"/python/{stem}.zip": data for stem, data in files.items()}


def _publish_posts(folder: Path, url: str, patch: Patch) -> dict[str, bytes]:
    patch.setattr(hatexplain, "BASE_URL", f"{url}/Data")
    names = ("dataset.json", "post_id_divisions.json")
    return {f"/Data/{name}": (folder / name).read_bytes() for name in names}


SOURCES: dict[str, Publish] = {
    "cifar10": partial(_publish_cifar, names=CIFAR10),
    "cifar100": partial(_publish_cifar, names=CIFAR100),
    "hatexplain": _publish_posts,
    "omniglot": _publish_omniglot,
}
"""Tasks whose data set can be downloaded."""

NOT_DOWNLOADED = {"mscoco"}
"""Data sets that are too large to be downloaded without being asked for."""

SHIPPED = {"series"}
"""Data sets that an optional package ships."""

YOUR_OWN = {"images", "texts"}
"""Data that only who runs the study has."""

FAULTS: dict[str, Callable[[bytes], bytes | None]] = {
    "half": lambda content: content[: len(content) // 2],
    "page": lambda _: b"<html>",
    "not there": lambda _: None,
}
"""What the server has in the place of a file."""

DAMAGED = "what arrived is damaged or incomplete"


class Server(ThreadingHTTPServer):
    """Serves files of given content on the loopback device.

    Attributes:
        files: path -> content; another path is a 404.
        cut: how many of the bytes that are announced are never sent.
        may_answer: unset while the server is to be silent.
        meanwhile: is called before each answer.
        asked: the paths of all requests.
    """

    daemon_threads = False  # so that closing waits for the last answer

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.meanwhile: Callable[[], object] = lambda: None
        self.asked: list[str] = []

    def handle_error(self, *_: object) -> None:
        """A client that has gone is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        """As torchvision asks, before it asks for a file."""
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.may_answer.wait()
        self.server.meanwhile()
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[: len(content) - self.server.cut])

    def log_message(self, *_: object) -> None:
        pass


class Published(NamedTuple):
    """A data set on a server.

    Attributes:
        layout: of its files.
        data_set: as its task declares it.
        served: a folder with the same files.
        cache: a cache directory, which is not there yet.
    """

    layout: Layout
    data_set: DataSet
    server: Server
    served: Path
    cache: Path

    @property
    def place(self) -> Path:
        """Of the download."""
        return self.cache / "downloads" / self.data_set.folder

    def load(self, places: Places | None = None) -> str:
        """The digest of the data."""
        places = places or Places(cache_dir=str(self.cache))
        return tasks.load(self.layout.task, places, self.layout.options).facts.digest

    def assert_whole(self, digest: str) -> None:
        elsewhere = self.served.parent / "another cache"
        assert digest == self.load(Places(str(self.served), str(elsewhere)))

    def refusal(self) -> str:
        """What is said where it cannot be downloaded; nothing is kept of it."""
        with pytest.raises(RequestError) as caught:
            self.load()
        message = str(caught.value)
        start = f"{self.data_set.title} is not at hand and could not be downloaded ("
        assert message.startswith(start)
        assert message.endswith(
            f"). Pass it with --data-dir DIR: {self.data_set.accepted}. The study digits needs no "
            "download."
        )
        assert "\n" not in message
        assert entries(self.cache / "downloads") == []
        return message.removeprefix(start)


@pytest.fixture(params=SOURCES)
def published(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Patch
) -> Iterator[Published]:
    layout, data_set = OF_TASK[request.param], tasks.TASKS[request.param].data_set
    assert data_set is not None
    assert layout.write is not None
    layout.write(served := tmp_path / "served")
    with Server() as server:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        url = f"http://127.0.0.1:{server.server_address[1]}"
        server.files = SOURCES[request.param](served, url, monkeypatch)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Published(layout, data_set, server, served, tmp_path / "cache")
        server.may_answer.set()
        server.shutdown()
        thread.join()


def test_every_data_set_is_tested() -> None:
    found = {name for name, task in tasks.TASKS.items() if task.reads("data_dir")}
    assert SOURCES.keys() | NOT_DOWNLOADED | SHIPPED | YOUR_OWN == found


@pytest.mark.parametrize("name", SHIPPED)
def test_a_data_set_is_read_where_a_package_ships_it(
    name: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    data_set = tasks.TASKS[name].data_set
    assert data_set is not None
    folder = write_series(tmp_path / "shipped")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    places, options = Places(cache_dir=str(tmp_path)), tasks.resolved(name, NO_OPTIONS)
    assert not tasks.at_hand(name, places)
    with pytest.raises(RequestError, match=r"`uv sync --extra series`, or .* --data-dir DIR: \S"):
        tasks.load(name, places, options)
    assert entries(tmp_path / "downloads") == []

    shipped = dataclasses.replace(data_set, shipped=lambda: folder)
    for place in (places, places._replace(cache_dir="memory://cache")):
        assert at_hand(shipped, place)
        assert read_data_set(shipped, place, lambda found: found) == folder
    elsewhere = places._replace(data_dir=str(tmp_path))
    assert read_data_set(shipped, elsewhere, lambda found: found) == tmp_path


def test_downloads_once(published: Published, capfd: pytest.CaptureFixture[str]) -> None:
    first = published.load()
    published.assert_whole(first)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"downloading {published.data_set.title} ")
    assert printed.err.endswith(f" to {published.place}\n")
    assert printed.err.count("\n") == 1
    assert entries(published.place.parent) == [published.place.name]
    for path in published.served.iterdir():
        assert (published.place / path.name).read_bytes() == path.read_bytes()
    asked = list(published.server.asked)
    assert set(asked) == published.server.files.keys()

    assert published.load() == first
    assert capfd.readouterr().err == ""
    assert published.server.asked == asked


# Where a server refuses, torchvision leaves the connection to the garbage collector.
# Where a server refuses, torchvision leaves the connection to the garbage collector.
@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fault", [*FAULTS, "cut"])
def test_a_broken_download_is_refused_and_not_kept(published: Published, fault: str) -> None:
    whole = dict(published.server.files)
    for path, content in whole.items():
        if fault == "cut":
            published.server.cut = 7
        else:
            broken = FAULTS[fault](content)
            published.server.files = {**whole, path: broken} if broken is not None else {}
        expected = "Not Found)" if fault == "not there" else (f"{DAMAGED})", "IncompleteRead(")
        assert published.refusal().startswith(expected)
    published.server.files, published.server.cut = whole, 0
    published.assert_whole(published.load())


ASKED_FOR = {
    "mscoco": ("MSCOCO is not at hand", ".zip"),
    **{name: (f"{name} takes ", "hf://datasets/ORG/NAME") for name in sorted(YOUR_OWN)},
}
"""Task -> facts of what is said where its data are to be had."""


@pytest.mark.parametrize("name", ASKED_FOR)
def test_data_that_are_not_downloaded_are_asked_for(name: str, tmp_path: Path) -> None:
    places = Places(cache_dir=str(tmp_path))
    assert not tasks.at_hand(name, places)
    with pytest.raises(RequestError) as caught:
        tasks.load(name, places, tasks.resolved(name, NO_OPTIONS))
    message = str(caught.value)
    assert message.startswith(ASKED_FOR[name][0])
    assert ASKED_FOR[name][1] in message
    assert "--data-dir DIR" in message
    assert "\n" not in message
    assert entries(tmp_path / "downloads") == []


@pytest.mark.parametrize("error", ["Name or service not known", "Service Unavailable", None])
def test_no_network_is_one_clear_line(
    published: Published, error: str | None, monkeypatch: Patch
) -> None:
    """None: a server that is silent, which is given up."""

    def urlopen(*_: object, **__: object) -> None:
        if error == "Service Unavailable":
            raise urllib.error.HTTPError("", 503, error, Message(), None)
        raise urllib.error.URLError(OSError(-2, error))

    assert downloading._SILENCE_SECONDS <= 20
    monkeypatch.setattr(downloading, "_SILENCE_SECONDS", 0.2)
    published.server.may_answer.clear()
    if error:
        monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    before = socket.getdefaulttimeout()
    assert published.refusal().startswith(error or "timed out)")
    assert socket.getdefaulttimeout() == before


def test_downloads_without_a_cache(published: Published, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="nothing can be kept in"):
        published.assert_whole(published.load(Places(cache_dir=str(tmp_path / "file"))))


def test_a_download_that_another_process_won(published: Published) -> None:
    def won() -> None:
        if not published.place.exists():
            shutil.copytree(published.served, published.place)

    published.server.meanwhile = won
    published.assert_whole(published.load())
    assert entries(published.place.parent) == [published.place.name]


def test_a_damaged_download_says_how_to_get_it_again(published: Published) -> None:
    shutil.copytree(published.served, published.place)
    largest = max(published.place.iterdir(), key=lambda path: path.stat().st_size)
    os.truncate(largest, 100)
    words = rf"cannot be read .*Or delete .*{published.place.name}: the next run"
    with pytest.raises(RequestError, match=words):
        published.load()
    assert published.server.asked == []
