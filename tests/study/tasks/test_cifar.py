"""CIFAR: class names, equal whatever the layout, the cache, the download, the real images."""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import io
import os
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.cifar import (
    CIFAR10,
    CIFAR10_CLASSES,
    CIFAR10_FOREGROUND,
    CIFAR100,
    CIFAR100_CLASSES,
    CIFAR100_FOREGROUND,
    CIFAR100_FOREGROUND_SUPERCLASSES,
    load_cifar10,
    load_cifar100,
)
from study.tasks.mosaics.layouts import FileNames
from tests.study.tasks.test_base_images import assert_equal, entries
from tests.study.tasks.test_layouts import (
    WRITERS,
    make,
    write_class_folders,
    write_official,
    write_parquet,
)

DATA = Path(__file__).parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="needs ../shared/data, the real data at hand"
)

LOADERS = {"cifar10": (CIFAR10, load_cifar10), "cifar100": (CIFAR100, load_cifar100)}
BOTH = pytest.mark.parametrize(("names", "load"), LOADERS.values(), ids=LOADERS)
Load = Callable[..., BaseImages]


def no_connection(*_: object, **__: object) -> None:
    raise urllib.error.URLError(OSError(-2, "Name or service not known"))


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", no_connection)


def test_class_names() -> None:
    assert len(CIFAR10_CLASSES) == 10
    assert list(CIFAR10_CLASSES) == sorted(CIFAR10_CLASSES)
    assert len(set(CIFAR100_CLASSES)) == len(CIFAR100_CLASSES) == 100
    assert list(CIFAR100_CLASSES) == sorted(CIFAR100_CLASSES)


def test_foregrounds() -> None:
    assert CIFAR10_FOREGROUND == ("airplane", "automobile", "bird")
    assert [len(names) for names in CIFAR100_FOREGROUND_SUPERCLASSES.values()] == [5] * 10
    assert len(set(CIFAR100_FOREGROUND)) == len(CIFAR100_FOREGROUND) == 50
    assert set(CIFAR100_FOREGROUND) < set(CIFAR100_CLASSES)


@BOTH
def test_files_are_those_that_torchvision_keeps(names: FileNames, load: Load) -> None:
    from torchvision import datasets  # takes seconds

    keeps = datasets.CIFAR10 if names is CIFAR10 else datasets.CIFAR100
    assert names.folder == keeps.base_folder
    assert names.train == tuple(name for name, _ in keeps.train_list)
    assert names.test == tuple(name for name, _ in keeps.test_list)
    assert (names.meta, names.meta_key) == (keeps.meta["filename"], keeps.meta["key"])


@BOTH
def test_the_layout_makes_no_difference(tmp_path: Path, names: FileNames, load: Load) -> None:
    first, *others = (
        load(str(write(tmp_path / layout, names, make(names))), str(tmp_path / "cache"))
        for layout, write in WRITERS.items()
    )
    assert first.max_value == 255
    assert first.class_names == names.class_names
    np.testing.assert_array_equal(first.train_images, make(names)[0].images)
    for other in others:
        assert_equal(other, first)


def test_jpeg_copies_do_not_meet_the_official_images(tmp_path: Path) -> None:
    train, test = make(CIFAR10)
    copy = train._replace(images=train.images ^ 1)
    digests = [
        load_cifar10(str(write_parquet(tmp_path / name, CIFAR10, (each, test))), str(tmp_path))
        for name, each in (("official", train), ("copy", copy))
    ]
    assert digests[0].digest != digests[1].digest


# The cache


def test_second_load_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_class_folders(tmp_path / "data", CIFAR10, make(CIFAR10))
    first = load_cifar10(str(folder), str(tmp_path / "cache"))
    monkeypatch.setattr("study.tasks.mosaics.cifar.read", None)
    assert_equal(load_cifar10(str(folder), str(tmp_path / "cache")), first)


@pytest.mark.parametrize("layout", WRITERS)
def test_a_changed_file_is_read_again(tmp_path: Path, layout: str) -> None:
    train, test = make(CIFAR10)
    folder, cache = tmp_path / "data", str(tmp_path / "cache")
    WRITERS[layout](folder, CIFAR10, (train, test))
    before = load_cifar10(str(folder), cache)
    folder.rename(tmp_path / "old")
    changed = train._replace(images=train.images[::-1].copy())
    WRITERS[layout](folder, CIFAR10, (changed, test))
    after = load_cifar10(str(folder), cache)
    assert after.digest != before.digest
    np.testing.assert_array_equal(after.train_images, changed.images)


def test_a_file_of_equal_size_but_another_time_is_read_again(tmp_path: Path) -> None:
    folder, cache = write_official(tmp_path / "data", CIFAR10, make(CIFAR10)), tmp_path / "cache"
    load_cifar10(str(folder), str(cache))
    status = (folder / "test_batch").stat()
    os.utime(folder / "test_batch", ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    load_cifar10(str(folder), str(cache))
    assert len(entries(cache / "prepared")) == 2


def test_goes_on_without_a_cache(tmp_path: Path) -> None:
    folder = write_official(tmp_path / "data", CIFAR10, make(CIFAR10))
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="cannot keep the prepared images"):
        base = load_cifar10(str(folder), str(tmp_path / "file"))
    assert_equal(base, load_cifar10(str(folder), str(tmp_path / "cache")))


def test_a_dangling_link_is_named(tmp_path: Path) -> None:
    folder = write_class_folders(tmp_path / "data", CIFAR10, make(CIFAR10))
    link = folder / "test" / "bird" / "link.png"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(RequestError, match=r"bird/link\.png cannot be read \(No such file"):
        load_cifar10(str(folder), str(tmp_path / "cache"))


# The download


class Response(io.BytesIO):
    """What urlopen returns."""

    def __init__(self, url: str, data: bytes) -> None:
        super().__init__(data)
        self.url = url
        self.length = len(data)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A small archive in the place of CIFAR-10's, with its checksums made known."""
    folder = write_official(tmp_path / "made" / CIFAR10.folder, CIFAR10, make(CIFAR10))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        tar.add(folder, CIFAR10.folder)

    def md5(data: bytes) -> str:
        return hashlib.md5(data, usedforsecurity=False).hexdigest()

    def checked(names: tuple[str, ...]) -> list[list[str]]:
        return [[name, md5((folder / name).read_bytes())] for name in names]

    from torchvision import datasets

    meta = {**datasets.CIFAR10.meta, "md5": checked((CIFAR10.meta,))[0][1]}
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(file.getvalue()))
    monkeypatch.setattr(datasets.CIFAR10, "train_list", checked(CIFAR10.train))
    monkeypatch.setattr(datasets.CIFAR10, "test_list", checked(CIFAR10.test))
    monkeypatch.setattr(datasets.CIFAR10, "meta", meta)
    return file.getvalue()


def serve(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    def urlopen(request: urllib.request.Request, *_: object, **__: object) -> Response:
        return Response(request.full_url, data)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)


def test_downloads_once(
    tmp_path: Path,
    archive: bytes,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    cache = tmp_path / "cache"
    serve(monkeypatch, archive)
    first = load_cifar10(cache_dir=str(cache))
    np.testing.assert_array_equal(first.test_images, make(CIFAR10)[1].images)
    printed = capfd.readouterr()
    assert printed.out == ""
    place = cache / "downloads" / CIFAR10.folder
    assert printed.err == f"downloading CIFAR-10 (170 MB) to {place}\n"
    assert entries(cache / "downloads") == [CIFAR10.folder]

    monkeypatch.setattr(urllib.request, "urlopen", no_connection)
    assert_equal(load_cifar10(cache_dir=str(cache)), first)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("served", ["half", "other", "nothing"])
def test_a_broken_download_is_refused_and_not_kept(
    tmp_path: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch, served: str
) -> None:
    data = {"half": archive[: len(archive) // 2], "other": b"<html>", "nothing": b""}[served]
    serve(monkeypatch, data)
    message = refused_download(load_cifar10, tmp_path / "cache")
    assert "could not be downloaded (the archive arrived damaged: its checksum is" in message
    assert entries(tmp_path / "cache" / "downloads") == []
    serve(monkeypatch, archive)
    load_cifar10(cache_dir=str(tmp_path / "cache"))


def test_a_download_that_another_process_won(
    tmp_path: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "cache" / "downloads" / CIFAR10.folder

    def urlopen(request: urllib.request.Request, *_: object, **__: object) -> Response:
        if not place.exists():
            write_official(place, CIFAR10, make(CIFAR10))
        return Response(request.full_url, archive)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    base = load_cifar10(cache_dir=str(tmp_path / "cache"))
    np.testing.assert_array_equal(base.test_images, make(CIFAR10)[1].images)
    assert entries(place.parent) == [CIFAR10.folder]


def test_downloads_without_a_cache(
    tmp_path: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    serve(monkeypatch, archive)
    with pytest.warns(UserWarning, match="cannot keep the prepared images"):
        base = load_cifar10(cache_dir=str(tmp_path / "file"))
    np.testing.assert_array_equal(base.test_images, make(CIFAR10)[1].images)


def test_a_damaged_download_says_how_to_get_it_again(tmp_path: Path) -> None:
    folder = tmp_path / "downloads" / CIFAR10.folder
    write_official(folder, CIFAR10, make(CIFAR10))
    os.truncate(folder / "data_batch_5", 100)
    with pytest.raises(RequestError, match=r"data_batch_5 is damaged.*Or delete .*-py: the next"):
        load_cifar10(cache_dir=str(tmp_path))


def refused_download(load: Load, cache: Path) -> str:
    with pytest.raises(RequestError) as caught:
        load(cache_dir=str(cache))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@BOTH
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (urllib.error.URLError(OSError(-2, "Name or service not known")), "Name or service not"),
        (urllib.error.URLError(TimeoutError("timed out")), "timed out"),
        (urllib.error.HTTPError("", 503, "Service Unavailable", None, None), "Service Unavail"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (http.client.IncompleteRead(b""), "IncompleteRead"),
    ],
    ids=["no name", "time-out", "server error", "reset", "incomplete"],
)
def test_no_network_is_one_clear_line(
    tmp_path: Path,
    names: FileNames,
    load: Load,
    error: Exception,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def urlopen(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    message = refused_download(load, tmp_path)
    assert message.startswith(
        f"{names.title} is not at hand and could not be downloaded ({reason}"
    )
    for part in ("--data-dir", names.folder, "Parquet", "class folders", "digits needs no down"):
        assert part in message
    assert entries(tmp_path / "downloads") == []


def test_a_silent_server_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    waits = []

    def urlopen(*_: object, **__: object) -> None:
        waits.append(socket.getdefaulttimeout())
        raise TimeoutError("timed out")

    before = socket.getdefaulttimeout()
    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    refused_download(load_cifar10, tmp_path)
    assert waits
    assert all(wait is not None and wait <= 20 for wait in waits)
    assert socket.getdefaulttimeout() == before


# The rest


def test_importing_needs_neither_torchvision_nor_pillow_nor_scikit_learn() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torchvision', 'PIL', 'sklearn']));"
        "import study.tasks.mosaics.cifar, study.tasks.mosaics.digits, study.tasks.mosaics.layouts"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, cwd=Path(__file__).parents[3]
    )


@needs_data
def test_the_real_images(tmp_path: Path) -> None:
    base = load_cifar10(str(DATA / "cifar10"), str(tmp_path))
    assert base.train_images.shape == (50_000, 32, 32, 3)
    assert base.test_images.shape == (10_000, 32, 32, 3)
    np.testing.assert_array_equal(np.bincount(base.train_labels), [5_000] * 10)
    np.testing.assert_array_equal(np.bincount(base.test_labels), [1_000] * 10)
    assert 0.45 < base.train_images.mean() / 255 < 0.5  # CIFAR-10's mean is .473
    again = load_cifar10(str(DATA / "cifar10"), str(tmp_path))
    assert dataclasses.astuple(again)[4:] == dataclasses.astuple(base)[4:]
