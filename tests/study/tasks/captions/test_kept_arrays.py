"""Arrays of the cache: made once, whole or not at all, shared by processes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from study.errors import RequestError
from study.tasks.captions.arrays import kept, opened

ARRAY = np.arange(24, dtype=np.float16).reshape(4, 3, 2)


def parts() -> Iterator[np.ndarray]:
    yield ARRAY[:3]
    yield ARRAY[3:]


def never() -> Iterator[np.ndarray]:
    raise AssertionError("it is there")


def test_is_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "prepared" / "array"
    assert opened(folder, ARRAY.shape, np.float16) is None
    first = kept(folder, ARRAY.shape, np.float16, parts)
    again = kept(folder, ARRAY.shape, np.float16, never)
    for array in (first, again):
        assert type(array) is np.ndarray
        assert array.dtype == np.float16
        np.testing.assert_array_equal(array, ARRAY)


def test_may_be_larger_than_memory(tmp_path: Path) -> None:
    kept(tmp_path, ARRAY.shape, np.float16, parts)
    (file,) = tmp_path.glob("array.*")
    shape = (2 * os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE"))
    os.truncate(file, ARRAY.itemsize * shape[0] * shape[1])
    array = opened(tmp_path, shape, np.float16)
    assert array is not None
    assert not array[-1].any()


def test_one_makes_it_while_others_wait(tmp_path: Path) -> None:
    calls = []

    def counted() -> Iterator[np.ndarray]:
        calls.append(1)
        yield from parts()

    with ThreadPoolExecutor(4) as pool:
        arrays = list(
            pool.map(
                lambda _: kept(tmp_path / "array", ARRAY.shape, np.float16, counted), range(8)
            )
        )
    assert len(calls) == 1
    for array in arrays:
        np.testing.assert_array_equal(array, ARRAY)


def test_a_damaged_one_is_made_again(tmp_path: Path) -> None:
    kept(tmp_path / "array", ARRAY.shape, np.float16, parts)
    (file,) = (tmp_path / "array").iterdir()
    os.truncate(file, file.stat().st_size - 3)
    found = kept(tmp_path / "array", ARRAY.shape, np.float16, parts)
    np.testing.assert_array_equal(found, ARRAY)


def test_nothing_is_left_of_one_that_could_not_be_made(tmp_path: Path) -> None:
    def broken() -> Iterator[np.ndarray]:
        yield ARRAY[:3]
        raise RequestError("an image is gone")

    with pytest.raises(RequestError, match="an image is gone"):
        kept(tmp_path / "array", ARRAY.shape, np.float16, broken)
    assert [path.name for path in tmp_path.iterdir()] == [".array.lock"]


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    def full() -> Iterator[np.ndarray]:
        yield ARRAY[:3]
        raise OSError(errno.ENOSPC, "No space left on device")

    words = r"array cannot be written \(No space left on device\). It takes 0 MB: free space"
    with pytest.raises(RequestError, match=words):
        kept(tmp_path / "array", ARRAY.shape, np.float16, full)
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match="ATTENTION_STUDY_CACHE"):
        kept(tmp_path / "file" / "array", ARRAY.shape, np.float16, parts)
