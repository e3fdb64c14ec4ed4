"""Files of texts: which are of which split, and the rows of Parquet, JSON lines and CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.tasks.sources.directory import of_no_split, one_folder, split_named
from study.tasks.sources.reading import reading

SUFFIXES = (".parquet", ".jsonl", ".csv")
"""Of the files that are read, in small letters."""

_BATCH_ROWS = 4_096
_TEXTS = ("label", "text", "sentence", "split")
"""Columns of CSV that are text, whatever they look like."""
_HEAD_BYTES = 1_000


def files_by_split(
    data_dir: Path, names: Sequence[str], suffixes: tuple[str, ...]
) -> Mapping[str, Sequence[Path]]:
    """The files of a directory, or of one of its folders, sorted by name.

    Args:
        data_dir: the directory.
        names: in it, of `study.tasks.sources.directory.listed`.
        suffixes: of the files, in small letters.

    Returns:
        Split -> its files, whose names begin with it, as in ``val-00000-of-00001.parquet``. Where
        none does, all files are of "". Empty: there are none.

    Raises:
        RequestError: several folders hold such files; or only some names begin with a split.
    """
    files = [name for name in names if name.lower().endswith(suffixes)]
    found: dict[str, list[Path]] = {}
    for name in files:
        path = one_folder(data_dir, files) / name.rpartition("/")[2]
        split = split_named(re.split("[^A-Za-z]", path.name)[0])
        found.setdefault(split or "", []).append(path)
    if "" in found and len(found) > 1:
        raise of_no_split(found[""][0])
    return found


def read_rows(path: Path, mend: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place, for people, and content of each row of a file; blank lines are none.

    Args:
        path: of the file, with one of `SUFFIXES`.
        mend: what to do about a bad one.

    Raises:
        RequestError: it cannot be read.
    """
    read = {".parquet": _rows_of_parquet, ".csv": _rows_of_csv}.get(path.suffix.lower(), _lines)
    with reading(path, mend):
        for number, row in enumerate(read(path), start=1):
            where = f"{path}, row {number}"
            with reading(where, mend):
                content = json.loads(row) if isinstance(row, str) else row
                if not isinstance(content, dict):
                    raise ValueError("it is not one JSON object per line")
            yield where, content


def _rows_of_parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            yield from batch.to_pylist()


def _rows_of_csv(path: Path) -> Iterator[dict[str, Any]]:
    import pandas as pd

    _refuse_utf_16(path)
    # Types are those of whole columns, and a blank is a blank. But labels are text: 01 is not 1.
    text = dict.fromkeys(_TEXTS, str)
    table = pd.read_csv(path, keep_default_na=False, low_memory=False, dtype=text)
    if not isinstance(table.index, pd.RangeIndex):
        raise ValueError("a row has more values than the header: put texts with commas in quotes")
    for row in table.to_dict("records"):
        yield {str(name): value for name, value in row.items()}


def _lines(path: Path) -> Iterator[str]:
    _refuse_utf_16(path)
    return (line for line in path.read_text(encoding="utf-8-sig").split("\n") if line.strip())


def _refuse_utf_16(path: Path) -> None:
    """Refuses plain letters as UTF-16 without a BOM, which are UTF-8 with a NUL beside each."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if b"\0" in head:
        raise UnicodeDecodeError("utf-8", head, 0, 1, "a NUL")
