"""Data sets of the Hugging Face Hub, and what they note in Parquet files."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from study.errors import RequestError
from study.tasks.sources.directory import SPLIT_NAMES, split_named
from study.tasks.sources.places import HUB
from study.tasks.sources.reading import why
from study.terminal.working import aside

_URL = re.compile(
    rf"{HUB}datasets/(?P<name>[^/]+/[^/@]+)(@(?P<revision>[^/]*))?(/(?P<configuration>[^/]+))?/*"
)


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
    name, revision, configuration = parsed(url).group("name", "revision", "configuration")
    import datasets
    import huggingface_hub
    from datasets.table import embed_table_storage

    datasets.enable_progress_bars()
    huggingface_hub.logging.set_verbosity_error()  # it would tell of each attempt
    aside(f"fetching {name} from the Hugging Face Hub")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            found = datasets.load_dataset(
                name, configuration, revision=revision or None, cache_dir=scratch
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
            "or pass a directory with --data-dir DIR (data_dir in Python)."
        ) from error


def parsed(url: str) -> re.Match[str]:
    """The name, revision and configuration that a URL of the Hub names, as groups.

    Raises:
        RequestError: it is no ``hf://datasets/ORG/NAME``, maybe with @REVISION, /CONFIGURATION.
    """
    if match := _URL.fullmatch(url):
        return match
    raise RequestError(
        f"{url} names no data set of the Hub. Write hf://datasets/ORG/NAME, followed by "
        "/CONFIGURATION if there are several."
    )
