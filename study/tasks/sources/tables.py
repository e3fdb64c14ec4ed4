"""Tables of examples, as Hugging Face `datasets` reads them: Parquet, JSON lines, CSV, the Hub."""

from __future__ import annotations

import contextlib
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from study.errors import RequestError
from study.tasks.sources.directory import split_named
from study.tasks.sources.places import HUB
from study.tasks.sources.reading import reading, why

if TYPE_CHECKING:
    from datasets import Dataset

SUFFIXES = (".parquet", ".jsonl", ".json", ".csv")
"""Of the files that are read, in small letters."""


@contextlib.contextmanager
def table(path: Path, mend: str) -> Iterator[Dataset]:
    """The rows of a file, which its body may read.

    Args:
        path: of the file, with one of `SUFFIXES`.
        mend: what to do about a bad one.

    Raises:
        RequestError: it cannot be read, or the body raised something.
    """
    with reading(path, mend), tempfile.TemporaryDirectory() as scratch:
        datasets = _quiet()
        rows = datasets.Dataset
        read = {".parquet": rows.from_parquet, ".csv": rows.from_csv}
        try:
            # Unlike `load_dataset`, these ask no network.
            found = read.get(path.suffix.lower(), _from_json)(str(path), cache_dir=scratch)
        except StopIteration as error:
            raise ValueError("it is empty") from error
        except datasets.exceptions.DatasetGenerationError as error:
            raise ValueError(why(error.__cause__ or error)) from error
        yield found


def _from_json(path: str, cache_dir: str) -> Dataset:
    """In one piece: the types of a column are those of all its rows, not of the first 10 MB."""
    from datasets import Dataset

    return Dataset.from_json(path, cache_dir=cache_dir, chunksize=Path(path).stat().st_size)


def _quiet() -> ModuleType:
    """Hugging Face's `datasets`, which then neither shows bars of local files nor logs errors."""
    import datasets

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(logging.CRITICAL)
    return datasets


def fetch_of_the_hub(url: str, folder: Path) -> None:
    """Writes the splits of a data set of the Hugging Face Hub as Parquet.

    Args:
        url: hf://datasets/ORG/NAME, maybe with @REVISION and /CONFIGURATION.
        folder: empty.

    Raises:
        RequestError: it is no such URL, there is no such data set, or it cannot be fetched.
    """
    name, revision, configuration = _parsed(url)
    import datasets
    from datasets.table import embed_table_storage

    datasets.enable_progress_bars()
    print(f"fetching {name} from the Hugging Face Hub", file=sys.stderr, flush=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            found = datasets.load_dataset(
                name, configuration, revision=revision, cache_dir=scratch
            )
            for split, rows in found.items():
                if split_named(str(split)) is not None:
                    whole = rows.with_format("arrow").map(embed_table_storage, batched=True)
                    whole.with_format(None).to_parquet(folder / f"{split}.parquet")
    except Exception as error:  # of many libraries below it
        raise RequestError(
            f"{url} cannot be fetched ({why(error)}). See https://huggingface.co/datasets/{name}; "
            "or pass a directory with --data-dir DIR."
        ) from error


def _parsed(url: str) -> tuple[str, str | None, str | None]:
    """Name, revision and configuration of ``hf://datasets/ORG/NAME@REVISION/CONFIGURATION``."""
    kind, *parts = url.removeprefix(HUB).strip("/").split("/")
    if kind != "datasets" or not 2 <= len(parts) <= 3:
        raise RequestError(
            f"{url} names no data set of the Hub. Write hf://datasets/ORG/NAME, with "
            "/CONFIGURATION behind it where there are several."
        )
    organisation, name, *configuration = parts
    name, _, revision = name.partition("@")
    return f"{organisation}/{name}", revision or None, configuration[0] if configuration else None
