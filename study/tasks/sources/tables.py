"""Rows of Parquet, JSON lines and CSV, and data sets of the Hugging Face Hub."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from study.errors import RequestError
from study.tasks.sources.directory import SPLIT_NAMES, split_named
from study.tasks.sources.places import HUB
from study.tasks.sources.reading import reading, why
from study.terminal.working import aside

SUFFIXES = (".parquet", ".jsonl", ".csv")
"""Of the files that are read, in small letters."""

_BATCH_ROWS = 4_096
_TEXTS = ("label", "text", "sentence", "split")
"""Columns of CSV that are text, whatever they look like."""
_HEAD_BYTES = 1_000


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


def named_classes(path: Path) -> dict[str, list[str]]:
    """Column -> names of its classes by number, as Hugging Face notes them in a Parquet file.

    Raises:
        Exception: it is no Parquet file.
    """
    import pyarrow.parquet as pq

    described = (pq.read_schema(path).metadata or {}).get(b"huggingface", b"{}")
    features = json.loads(described).get("info", {}).get("features", {})
    named = {column: feature.get("names") for column, feature in features.items()}
    return {column: names for column, names in named.items() if isinstance(names, list)}


def fetch_of_the_hub(url: str, folder: Path) -> None:
    """Writes the splits of a data set of the Hugging Face Hub as Parquet.

    Args:
        url: hf://datasets/ORG/NAME, maybe with @REVISION and /CONFIGURATION.
        folder: empty.

    Raises:
        RequestError: it is no such URL, there is no such data set, or it cannot be fetched.
    """
    name, revision, configuration = parsed(url)
    import datasets
    import huggingface_hub
    from datasets.table import embed_table_storage

    datasets.enable_progress_bars()
    huggingface_hub.logging.set_verbosity_error()  # it would tell of each attempt
    aside(f"fetching {name} from the Hugging Face Hub")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            found = datasets.load_dataset(
                name, configuration, revision=revision, cache_dir=scratch
            )
            for split, rows in found.items():
                if split_named(str(split)) is not None:
                    whole = rows.with_format("arrow").map(embed_table_storage, batched=True)
                    whole.with_format(None).to_parquet(folder / f"{split}.parquet")
            if not any(folder.iterdir()):
                raise ValueError(
                    f"its splits are {', '.join(map(str, found))}; known are {SPLIT_NAMES}"
                )
    except Exception as error:  # of many libraries below it
        raise RequestError(
            f"{url} cannot be fetched ({why(error)}). See https://huggingface.co/datasets/{name}; "
            "or pass a directory with --data-dir DIR."
        ) from error


def parsed(url: str) -> tuple[str, str | None, str | None]:
    """Name, revision and configuration of ``hf://datasets/ORG/NAME@REVISION/CONFIGURATION``.

    Raises:
        RequestError: it is no such URL.
    """
    kind, *parts = url.removeprefix(HUB).strip("/").split("/")
    if kind != "datasets" or not 2 <= len(parts) <= 3 or not all(parts):
        raise RequestError(
            f"{url} names no data set of the Hub. Write hf://datasets/ORG/NAME, followed by "
            "/CONFIGURATION if there are several."
        )
    organisation, name, *configuration = parts
    name, _, revision = name.partition("@")
    return f"{organisation}/{name}", revision or None, configuration[0] if configuration else None
