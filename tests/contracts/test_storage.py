"""A directory of whole files, on a disk and in memory."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import uuid

import pytest

from study.results import report_files, report_folder
from study.storage.storage import ResultsError, Storage
from study.storage.urls import absolute
from tests.made_up.commands import python


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path) -> Storage:
    if request.param == "local":
        return Storage(tmp_path / "root")
    return Storage(f"memory://{uuid.uuid4().hex}")


def test_no_content_is_ever_lost_but_by_writing_and_removing(storage):
    """A storage behaves as a dict from names to bytes does."""
    files = {}
    draw = random.Random(0)
    names = ["a/x", "a/[x]", "a/y.bin", "b/c/x"]
    for folder in ("a", "b/c"):
        storage.make(folder)
    for number in range(100):
        action, name = draw.choice(["write", "remove", "move"]), draw.choice(names)
        if action == "write":
            files[name] = str(number).encode()
            storage.write(name, files[name])
        elif action == "remove":
            files.pop(name, None)
            storage.remove(name)
        elif name in files:
            to = storage.move(name, draw.choice(names))
            assert to not in files
            files[to] = files.pop(name)
        else:
            with pytest.raises(FileNotFoundError):
                storage.move(name, "a/z")
        assert storage.exists(name) == (name in files)
    there = [*storage.names("a"), *storage.names("b")]
    assert {name: storage.read(name) for name in there} == files


def test_a_file_that_another_process_moves_first_is_missing(tmp_path, monkeypatch):
    """As shards that begin at once set the same damage aside."""
    storage, move = Storage(tmp_path), shutil.move
    storage.write("x", b"damaged")

    def late(source, target):
        os.remove(source)
        move(source, target)

    monkeypatch.setattr(shutil, "move", late)
    with pytest.raises(FileNotFoundError):
        storage.move("x", "aside/x")


def test_names_are_those_of_all_files_below_a_folder(storage):
    """But of hidden ones, which are of other programs."""
    assert storage.names("a") == []
    hidden = ["a/.ipynb_checkpoints/x", "a/._x", "a/__MACOSX/x"]
    for name in ("a/y", "a/c/x", "a/c/d/x", "a/x._.bin", "ab/x", *hidden):
        storage.make(name.rpartition("/")[0])
        storage.write(name, b"")
    assert storage.names("a") == ["a/c/d/x", "a/c/x", "a/x._.bin", "a/y"]
    assert storage.names("a", "x") == ["a/x._.bin"]
    assert storage.exists("a/c")
    with pytest.raises(FileNotFoundError):
        storage.read("a/z")


def test_a_download_that_breaks_off_leaves_nothing_that_looks_whole(tmp_path):
    storage = Storage(f"memory://{uuid.uuid4().hex}")
    for name in ("a/x", "a/y"):
        storage.write(name, b"whole")
    with pytest.raises(FileNotFoundError):
        storage.fetch(["a/x", "a/gone"], tmp_path)
    assert not (tmp_path / "a" / "x").exists()
    storage.fetch(["a/x", "a/y"], tmp_path)
    assert [path.read_bytes() for path in (tmp_path / "a").glob("?")] == [b"whole"] * 2


def test_a_full_disk_is_an_error_of_one_line_and_leaves_the_old_file(tmp_path, monkeypatch):
    storage = Storage(tmp_path)
    storage.write("x", b"old")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultsError, match=r"/x \(No space left on device\)\. Free space"):
        storage.write("x", b"new")
    assert storage.read("x") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    storage = Storage(tmp_path)
    for act in (
        lambda: storage.make("file/a"),
        lambda: storage.probe("file"),
        lambda: storage.write("file/a", b""),
        lambda: storage.read("file/a"),
        lambda: storage.remove("file/a"),
        lambda: storage.names("file"),
        lambda: storage.names("file/a"),
    ):
        with pytest.raises(ResultsError, match=r"cannot (read|write).*file.*Not a directory"):
            act()


def test_an_unreadable_folder_is_not_an_empty_one(tmp_path, monkeypatch):
    """Else all its cells would run again."""

    def refused(_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(ResultsError, match=r"cannot read .*/a \(Permission denied\)"):
        Storage(tmp_path).names("a")


def test_what_a_killed_writer_leaves_is_not_read_and_swept(tmp_path):
    code = f"""
import os
from study.storage.storage import Storage
storage = Storage({str(tmp_path)!r})
storage.make("a")
storage.write("a/x", b"old")
os.replace = lambda *_: os._exit(9)
storage.write("a/x", b"new")
"""
    assert python("-c", code).returncode == 9
    (tmp_path / "a" / "other.part").write_text("not ours")
    assert len(list((tmp_path / "a").iterdir())) == 3
    storage = Storage(tmp_path)
    for _ in range(2):
        assert storage.names("a") == ["a/other.part", "a/x"]
        assert storage.read("a/x") == b"old"
        storage.sweep()
    assert len(list((tmp_path / "a").iterdir())) == 2


def test_a_writer_whose_unfinished_file_is_swept_writes_it_again(tmp_path, monkeypatch):
    storage, replace, swept = Storage(tmp_path), os.replace, []

    def sweep_first(*paths):
        if not swept:
            swept.append(paths)
            Storage(tmp_path).sweep()
        replace(*paths)

    monkeypatch.setattr(os, "replace", sweep_first)
    storage.write("x", b"whole")
    assert swept
    assert storage.read("x") == b"whole"


def test_a_file_url_is_its_path(tmp_path, monkeypatch):
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
def test_the_report_of_a_study_is_found_wherever_it_lies(storage, end):
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


@pytest.mark.parametrize(
    ("url", "fact"),
    [
        ("nosuch://bucket/results", "nosuch"),
        (os.fsdecode(b"r\xe4s"), r"r\\udce4s' has a name that is not UTF-8"),
        ("sftp://user:secret@host/x", "holds a user or a password"),
        ("https://user:sec/ret@host/x", "holds a user or a password"),
        ("x::sftp://u:secret@h/", "holds a user or a password"),
        ("s3://secret@bucket/r", "holds a user or a password"),
        ("s3://", "s3:// names no bucket"),
    ],
)
def test_a_place_that_cannot_hold_results_is_refused_and_no_password_shown(url, fact):
    with pytest.raises(ResultsError, match=fact) as refused:
        Storage(url)
    assert not {"secret", "sec/ret"} & set(re.split("[:@ ]", str(refused.value)))
