"""Texts of your own, or of the Hugging Face Hub: rows of words, a label and maybe a rationale.

    {"tokens": ["a", "fine", "film"], "label": "good", "rationale": [0, 1, 0]}

Messages name the file and the row, counted from 1; they quote no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chapters.texts.posts import Post, Posts, checked_marks, checked_tokens
from chapters.texts.tables import SUFFIXES, files_by_split, read_rows
from study.cell.seeds import share_of_each
from study.errors import RequestError, as_seen
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.directory import SPLIT_NAMES, listed, nothing_in, split_named
from study.tasks.sources.hub import named_classes
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading
from study.tasks.task import SPLITS

if TYPE_CHECKING:
    import pandas as pd

TASK = "texts"
"""Its name, which is part of the seeds."""

SHARE = 0.2
"""Of the texts of each class that test where no split does, and of the rest that validate."""

WORDS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""The tokens of a text in lower case: words, with the apostrophes in them, and other marks."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""A whole number as it is usually written: 01 and -0 are text."""

_TOKENS = "tokens"
_COLUMNS = ("label", "rationale", "split")
_TITLE = "texts of your own"
_ACCEPTED = (
    "Parquet or JSON lines with the columns tokens (a list of words) or text, label (text or "
    "whole numbers) and, where it is known, rationale (0 or 1 for each token); CSV with text and "
    "label; files whose names begin with train, validation and test, or files of no split, maybe "
    "with a column split"
)
_MEND = "Fix it, or leave the text out."


def load_own(places: Places) -> Posts:
    """The texts of a directory or of the Hub, split as their files or rows say, else by hash.

    Raises:
        RequestError: no directory is given, or it holds no texts; a row is damaged or wrong; there
            is one class only, or a split lacks a class.
    """
    return read_data_set(DATA_SET, places, _load_from)


def _refuse_download(folder: Path, where: str) -> None:
    """See `study.tasks.sources.data_set.DataSet`.

    Raises:
        RequestError: always.
    """
    raise RequestError(
        f"{TASK} takes {_TITLE}: pass them with --data-dir DIR (data_dir in Python), or "
        "--data-dir hf://datasets/ORG/NAME for those of the Hugging Face Hub. "
        f"Accepted: {_ACCEPTED}."
    )


DATA_SET = DataSet(
    title=_TITLE,
    folder=TASK,
    accepted=_ACCEPTED,
    belongs=lambda name: name.lower().endswith(SUFFIXES) and name.count("/") <= 1,
    download=_refuse_download,
    any_of_the_hub=True,
)


def _load_from(data_dir: Path) -> Posts:
    import pandas as pd

    with listed(data_dir, _TITLE, depth=1) as names_there:
        files = files_by_split(data_dir, names_there, (".jsonl", ".parquet"))
        in_csv = not files  # CSV beside texts in one of these tells of them
        if in_csv:
            files = files_by_split(data_dir, names_there, (".csv",))
    if not files:
        raise nothing_in(data_dir, names_there, _TITLE, _ACCEPTED)
    rows = (row for split, paths in files.items() for path in paths for row in _read(path, split))
    every = pd.DataFrame(rows)
    texts = every.dropna(subset="label", ignore_index=True)
    numbers = texts.groupby("label")["number"].min()
    if in_csv and all(map(_WHOLE.fullmatch, numbers.index)):
        numbers[:] = numbers.index.astype(int)
    names = tuple(numbers.sort_values(kind="stable").index)
    if len(names) < 2:
        held = f"all texts are of one class, {names[0]!r:.40}" if names else "no text has a label"
        raise RequestError(f"{data_dir}: {held}. Add texts of others.")
    texts["label"] = texts["label"].map(names.index)
    notes = [_divide(texts, data_dir), _counts(texts, names, data_dir), *_repeated(texts)]
    notes += [
        f"words: of the column {source}, in lower case, words and punctuation marks apart"
        for source in {*texts["source"]} - {_TOKENS}
    ]
    missing = len(every) - len(texts)
    return Posts(
        names,
        {
            str(split): list(map(Post, each["tokens"], each["label"], each["rationale"]))
            for split, each in texts.groupby("split")
        },
        {"without a label": missing} if missing else {},
        tuple(notes),
    )


# Rows


def _read(path: Path, split: str) -> Iterator[dict[str, Any]]:
    """The checked rows of a file, which is of a split or, if that is "", of several.

    A row has these columns:

        where      its file and row, for messages
        source     the column that its words are of
        tokens     its words, at least one; they make two texts equal, whatever their labels
        label      the name of its class; None: it has none
        number     by which classes are sorted, and then by their names
        rationale  whether each word is of it
        split      "" if nothing names one

    Raises:
        RequestError: it is damaged or empty, or a row is wrong.
    """
    names = source = None
    with reading(path, _MEND):
        if path.suffix.lower() == ".parquet":
            names = named_classes(path).get("label")
    for where, row in read_rows(path, _MEND):
        with reading(where, _MEND):
            source = source or _source(row)
            tokens = row[source]
            if source != _TOKENS:
                tokens = WORDS.findall((tokens or "").lower())
            if not "".join(checked_tokens(tokens)).strip():
                raise ValueError(f"its {source} holds no word")
            label, number = _label(row["label"], names)
            text = {
                "where": where,
                "source": source,
                "tokens": tuple(tokens),
                "label": label,
                "number": number,
                "rationale": _rationale(row.get("rationale"), len(tokens)),
                "split": split or _named(row.get("split")),
            }
        yield text
    if source is None:
        raise RequestError(f"{path} holds no text. Fill it, or remove it.")


def _source(row: Mapping[str, Any]) -> str:
    """The column of the words.

    Raises:
        ValueError: there is none, or several may be; or there is no label.
    """
    texts = [name for name in row if name not in _COLUMNS and isinstance(row[name], str)]
    known = [name for name in (_TOKENS, "text", "sentence") if name in row]
    found = known[:1] or texts
    if len(found) != 1 or "label" not in row:
        raise ValueError(
            f"it has the columns {', '.join(row)}; it needs label, and tokens or text"
        )
    return found[0]


def _label(label: Any, names: Sequence[str] | None) -> tuple[str | None, int]:
    """Name and number of a class; None: it is below 0, as where named classes leave it open."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, str) and as_seen(label):
        return as_seen(label), 0
    if type(label) is not int:
        raise ValueError("its label is neither text nor a whole number")
    if names is None:
        return str(label), label
    if label >= len(names):
        raise ValueError(f"its label is {label}, but only {len(names)} classes are named")
    return (names[label] if label >= 0 else None), label


def _rationale(marks: Any, length: int) -> list[bool]:
    checked = [False] * length if marks is None else checked_marks(marks)
    if len(checked) != length:
        raise ValueError(f"its rationale has {len(checked)} values for {length} tokens")
    return checked


def _named(split: Any) -> str:
    found = "" if split is None else split_named(str(split))
    if found is None:
        raise ValueError(f"its split must be one of {SPLIT_NAMES}, not {split!r:.40}")
    return found


# Splits


def _divide(texts: pd.DataFrame, data_dir: Path) -> str:
    """Gives every text one of the three splits; says where these are from.

    Raises:
        RequestError: there is no train split, or some texts have no split.
    """
    if not texts["split"].any():
        texts["split"] = "train"
    given = texts["split"].unique().tolist()
    if "" in given:
        where = texts["where"][texts["split"] == ""].iloc[0]
        raise RequestError(
            f"{where} has no split, though other texts do. Write one of {SPLIT_NAMES}."
        )
    if "train" not in given:
        raise RequestError(f"{data_dir} has no train split, only {' and '.join(given)}. Add it.")
    how = []
    if {*given} == {"train", "validation"}:
        texts["split"] = texts["split"].replace("validation", "test")
        how.append("the validation texts test")
    for split, does in (("test", "test"), ("validation", "validate")):
        if split not in texts["split"].array:
            train = texts[texts["split"] == "train"]
            labels, contents = train["label"].tolist(), train["tokens"]
            drawn = share_of_each(labels, SHARE, TASK, split, contents=contents)
            texts.loc[train.index[drawn], "split"] = split
            share = f"{100 * SHARE:g} % of the train texts of each class"
            how.append(f"{share}, drawn by hash, {does}")
    return f"splits: {', then '.join(how) or 'as given'}"


def _counts(texts: pd.DataFrame, classes: Sequence[str], data_dir: Path) -> str:
    """``classes: 2, of which the rarest has 30 (train), 8 (validation), 10 (test) texts``.

    Raises:
        RequestError: a split has no text of a class.
    """
    import pandas as pd

    counts = pd.crosstab(texts["split"], texts["label"]).reindex(SPLITS, fill_value=0)
    for split, label in np.argwhere(counts.to_numpy() == 0):
        alike = texts["tokens"][texts["label"] == label]
        raise RequestError(
            f"{data_dir}: the {SPLITS[split]} split has no text of the class "
            f"{classes[label]!r:.40}, of which there are {len(alike)} in all, {alike.nunique()} "
            "of them different. Add texts of it, or leave it out."
        )
    least = ", ".join(f"{n:,} ({split})" for split, n in counts.min(axis=1).items())
    return f"classes: {len(classes)}, of which the rarest has {least} texts"


def _repeated(texts: pd.DataFrame) -> Iterator[str]:
    """Sentences on texts that a split has from the splits before it, or more than once."""
    place = texts["split"].map(SPLITS.index)
    earlier = place.groupby(texts["tokens"], sort=False).transform("min") < place
    for split in SPLITS:
        here = texts["split"] == split
        both = texts["where"][here & earlier]
        if len(both):
            yield (
                f"{split} texts that an earlier split has, too: {len(both):,} of {here.sum():,}, "
                f"the first in {both.iloc[0]}. Take them out, or give all texts in files of no "
                "split, of which equal ones stay together"
            )
    if again := texts.duplicated(["split", "tokens"]).sum():
        yield (
            f"texts that repeat another one of their split: {again:,} of {len(texts):,}. Each "
            "counts as a text of its own: leave them out"
        )
