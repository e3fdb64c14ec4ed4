"""Reads named arrays from .npz and .safetensors; nothing that is pickled is ever loaded."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study.errors import RequestError
from study.prune.names import NPZ
from study.theory.attention_paths import checks


class Stored(NamedTuple):
    """An array as it is stored.

    Attributes:
        values: bfloat16 as float32, which holds it exactly.
        half: whether it is float16 or bfloat16.
    """

    values: np.ndarray
    half: bool


@dataclass(frozen=True)
class Arrays:
    """The arrays of an open file.

    Attributes:
        names: of all.
        read: the array of a name; raises a `RequestError` if it cannot be read.
    """

    names: tuple[str, ...]
    read: Callable[[str], Stored]


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Arrays]:
    """Opens a file; its arrays are read one by one.

    Raises:
        RequestError: it is damaged or not readable, or memory does not hold it.
    """
    opens = _npz if file.suffix.lower() == NPZ else _safetensors
    with contextlib.ExitStack() as stack:
        try:
            yield stack.enter_context(opens(file))
        except OSError as error:
            raise RequestError(f"{file} cannot be read ({error.strerror or error}).") from error
        except MemoryError as error:
            raise RequestError(f"{file}: {error}") from error


@contextlib.contextmanager
def _npz(file: Path) -> Iterator[Arrays]:
    try:
        with zipfile.ZipFile(file) as archive:
            checks.fits(sum(each.file_size for each in archive.infolist()), "reading it")
        loaded: Any = np.load(file, allow_pickle=False)
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise _damaged(file, error) from error

    def read(name: str) -> Stored:
        try:
            values = loaded[name]
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise _damaged(file, error) from error
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise _damaged(file, error) from error
            raise RequestError(
                f"{name} in {file} is pickled objects, which are not loaded, as they could run "
                "code. Save it as an array of numbers."
            ) from error
        return Stored(values, values.dtype == np.float16)

    with loaded:
        yield Arrays(tuple(loaded.files), read)


@contextlib.contextmanager
def _safetensors(file: Path) -> Iterator[Arrays]:
    import torch
    from safetensors import SafetensorError, safe_open

    checks.fits(file.stat().st_size, "reading it")
    try:
        loaded = safe_open(file, framework="pt")  # NumPy has no bfloat16
    except SafetensorError as error:
        raise _damaged(file, error) from error

    def read(name: str) -> Stored:
        try:
            tensor = loaded.get_tensor(name)
            half = tensor.dtype in (torch.float16, torch.bfloat16)
            return Stored((tensor.float() if half else tensor).numpy(), half)
        except SafetensorError as error:
            raise _damaged(file, error) from error
        except TypeError as error:  # such as float8
            raise RequestError(
                f"{name} in {file} is {str(tensor.dtype).removeprefix('torch.')}, which is not "
                "read. Save it as float32."
            ) from error

    with loaded:
        yield Arrays(tuple(loaded.keys()), read)


def _damaged(file: Path, error: Exception) -> RequestError:
    return RequestError(f"{file} is damaged ({error}). Save it again.")
