"""What every download of a data set keeps: once, whole or not at all, one clear line.

A server on the loopback device has small made-up files in the place of the published ones.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shutil
import socket
import tarfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from study import tasks
from study.cell import NO_OPTIONS
from study.errors import RequestError
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.layouts import ImageSet
from study.tasks.sources import downloading
from study.tasks.sources.data_set import DataSet, at_hand, read_data_set
from study.tasks.sources.places import Places
from tests.made_up import cifar
from tests.made_up.chapters import Publish, brought
from tests.made_up.commands import refusal
from tests.made_up.layouts import OF_TASK, Layout

Patch = pytest.MonkeyPatch


def entries(folder: Path) -> list[str]:
    """What a folder of the cache holds, without the lock files, which stay."""
    return sorted(path.name for path in folder.glob("[!.]*"))


def _publish_cifar(folder: Path, web: Path, url: str, patch: Patch, names: ImageSet) -> None:
    """As one archive, with its checksums made known to torchvision."""
    archive = web / "images.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, names.folder)
    known = cifar.publish(folder, patch)
    patch.setattr(known, "url", f"{url}/{archive.name}")
    patch.setattr(known, "tgz_md5", cifar.md5(archive.read_bytes()))


SOURCES: dict[str, Publish] = {
    "cifar10": partial(_publish_cifar, names=CIFAR10),
    "cifar100": partial(_publish_cifar, names=CIFAR100),
    **brought().downloads,
}
"""Tasks whose data set can be downloaded."""

_DATA_SETS = {name: task.data_set for name, task in tasks.TASKS.items() if task.data_set}

SHIPPED = [name for name, each in _DATA_SETS.items() if each.shipped is not DataSet.shipped]
"""Those whose data set an optional package ships."""

ASKED_FOR = sorted(_DATA_SETS.keys() - {*SOURCES, *SHIPPED})
"""Too large to be downloaded without being asked for, or of whoever runs the study."""


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class Published(NamedTuple):
    """A data set that can be downloaded.

    Attributes:
        layout: of its files.
        data_set: as its task declares it.
        web: the folder of the server, from which it is downloaded.
        served: a folder with the files of the data set.
        cache: a cache directory, which is not there yet.
    """

    layout: Layout
    data_set: DataSet
    web: Path
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
        message = refusal(self.load)
        start = f"{self.data_set.title} is not at hand and could not be downloaded ("
        assert message.startswith(start)
        assert f"DIR (data_dir in Python): {self.data_set.accepted}. " in message
        assert entries(self.cache / "downloads") == []
        return message.removeprefix(start)


@pytest.fixture(params=SOURCES)
def published(request, tmp_path, monkeypatch) -> Iterator[Published]:
    layout, data_set = OF_TASK[request.param], tasks.TASKS[request.param].data_set
    layout.write(served := tmp_path / "served")
    (web := tmp_path / "web").mkdir()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=web)) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        SOURCES[request.param](served, web, url, monkeypatch)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Published(layout, data_set, web, served, tmp_path / "cache")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_data_set_is_read_where_a_package_ships_it(name, tmp_path, monkeypatch):
    data_set = tasks.TASKS[name].data_set
    OF_TASK[name].write(folder := tmp_path / "shipped")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    places, options = Places(cache_dir=str(tmp_path)), tasks.resolved(name, NO_OPTIONS)
    assert not tasks.at_hand(name, places)
    with pytest.raises(
        RequestError,
        match=r"`uv sync --extra \w+`, or .* --data-dir DIR \(data_dir in Python\): \S",
    ):
        tasks.load(name, places, options)

    shipped = dataclasses.replace(data_set, shipped=lambda: folder)
    for place in (places, places._replace(cache_dir="memory://cache")):
        assert at_hand(shipped, place)
        assert read_data_set(shipped, place, lambda found: found) == folder
    elsewhere = places._replace(data_dir=str(tmp_path))
    assert read_data_set(shipped, elsewhere, lambda found: found) == tmp_path


def test_downloads_once(published, capfd):
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

    shutil.rmtree(published.web)
    assert published.load() == first
    assert capfd.readouterr().err == ""


# Where a server refuses, torchvision leaves the connection to the garbage collector.
@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fault", ["half", "not there"])
def test_a_broken_download_is_refused_and_not_kept(published, fault):
    for path in published.web.iterdir():
        whole = path.read_bytes()
        if fault == "half":
            os.truncate(path, len(whole) // 2)
            expected = "what arrived is damaged or incomplete)"
        else:
            path.unlink()
            expected = "File not found)"
        assert published.refusal().startswith(expected)
        path.write_bytes(whole)
    published.assert_whole(published.load())


@pytest.mark.parametrize("name", ASKED_FOR)
def test_data_that_are_not_downloaded_are_asked_for(name, tmp_path):
    places = Places(cache_dir=str(tmp_path))
    assert not tasks.at_hand(name, places)
    message = refusal(lambda: tasks.load(name, places, tasks.resolved(name, NO_OPTIONS)))
    for fact in (tasks.TASKS[name].data_set.title, "--data-dir DIR", "://"):
        assert fact in message
    assert "could not be downloaded" not in message
    assert entries(tmp_path / "downloads") == []


@pytest.mark.parametrize("error", ["Name or service not known", "Service Unavailable", None])
def test_no_network_is_one_clear_line(published, error, monkeypatch):
    """None: a server that is silent, which is given up."""
    assert downloading._SILENCE_SECONDS <= 20
    monkeypatch.setattr(downloading, "_SILENCE_SECONDS", 0.2)
    before, ask = socket.getdefaulttimeout(), urllib.request.urlopen
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def urlopen(*_, **__):
            if error is None:
                return ask(f"http://127.0.0.1:{silent.getsockname()[1]}")
            if error == "Service Unavailable":
                raise urllib.error.HTTPError("", 503, error, Message(), None)
            raise urllib.error.URLError(OSError(-2, error))

        monkeypatch.setattr(urllib.request, "urlopen", urlopen)
        assert published.refusal().startswith(error or "timed out)")
    assert socket.getdefaulttimeout() == before


def test_downloads_without_a_cache(published, tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="nothing can be kept in"):
        published.assert_whole(published.load(Places(cache_dir=str(tmp_path / "file"))))


def test_a_damaged_download_says_how_to_get_it_again(published):
    shutil.copytree(published.served, published.place)
    largest = max(published.place.iterdir(), key=lambda path: path.stat().st_size)
    os.truncate(largest, 100)
    words = rf"cannot be read .*Or delete .*{published.place.name}: the next run"
    with pytest.raises(RequestError, match=words):
        published.load()
