"""Texts of your own: rows of tokens, a label and maybe a rationale, in JSONL or Parquet.

    {"tokens": ["a", "fine", "film"], "label": "good", "rationale": [0, 1, 0]}

Messages name the file and the line or row; they quote no text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study.cell.seeds import share_of_each
from study.errors import RequestError, as_seen
from study.tasks.base import SPLITS
from study.tasks.posts.posts import Posts, checked_marks, checked_tokens
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.directory import (
    SPLIT_NAMES,
    files_by_split,
    listed,
    nothing_in,
    split_named,
)
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading

TASK = "texts"
"""Its name, which is part of the seeds."""

SHARE = 0.2
"""Of the texts of each class that test where no split does, and of the rest that validate."""

_TITLE = "texts of your own"
_SUFFIXES = (".jsonl", ".parquet")
_ACCEPTED = (
    "JSONL or Parquet with the columns tokens (a list of strings), label (text or whole numbers) "
    "and, where it is known, rationale (0 or 1 for each token); files whose names begin with "
    "train, validation and test, or files of no split, maybe with a column split"
)
_MEND = "Mend it, or leave the text out."


class _Text(NamedTuple):
    """A checked row.

    Attributes:
        where: its file and line, for messages.
        tokens: words, at least one.
        label: text or an integer.
        rationale: (tokens,) bool; None if nothing is marked.
        split: of the column; None: there is none.
    """

    where: str
    tokens: list[str]
    label: str | int
    rationale: np.ndarray | None
    split: str | None

    @property
    def content(self) -> tuple[str, ...]:
        """What makes two texts equal, whatever their labels."""
        return tuple(self.tokens)


def load_own(places: Places) -> Posts:
    """The texts of a directory, split as their files or rows say, else by hash.

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
        f"{TASK} takes {_TITLE}: pass them with --data-dir DIR. Accepted: {_ACCEPTED}."
    )


def _belongs(name: str) -> bool:
    """Whether a file may belong to texts of your own, by its name relative to the directory."""
    return name.lower().endswith(_SUFFIXES) and name.count("/") <= 1


DATA_SET = DataSet(
    title=_TITLE,
    folder=TASK,
    accepted=_ACCEPTED,
    belongs=_belongs,
    download=_refuse_download,
)


def _load_from(data_dir: Path) -> Posts:
    with listed(data_dir, _TITLE) as entries:
        files = files_by_split(data_dir, entries, _SUFFIXES)
    if not files:
        raise nothing_in(data_dir, entries, _TITLE, _ACCEPTED)
    texts = {
        split: [text for path in paths for text in _read(path)] for split, paths in files.items()
    }
    every = [text for each in texts.values() for text in each]
    classes = _classes(every, data_dir)
    if "" in texts:
        texts = _by_column(every)
    found, note = _three(texts, classes, data_dir)
    for split in SPLITS:
        there = {text.label for text in found[split]}
        for label in classes:
            if label not in there:
                alike = [text.content for text in every if text.label == label]
                raise RequestError(
                    f"{data_dir}: the {split} split has no text of the class {label!r:.40}, of "
                    f"which there are {len(alike)} in all, {len(set(alike))} of them different. "
                    "Add texts of it, or leave it out."
                )
    return Posts(
        classes=tuple(map(str, classes)),
        tokens={split: [text.tokens for text in found[split]] for split in SPLITS},
        labels={
            split: np.array([classes[text.label] for text in found[split]], np.int64)
            for split in SPLITS
        },
        rationales={split: [text.rationale for text in found[split]] for split in SPLITS},
        left_out={},
        notes=(note, _counts(found, classes), *_repeated(found)),
    )


def _repeated(found: Mapping[str, Sequence[_Text]]) -> Iterator[str]:
    """Sentences on texts that a split has from the splits before it, or more than once."""
    before: set[tuple[str, ...]] = set()
    for split in SPLITS:
        both = [text for text in found[split] if text.content in before]
        if both:
            yield (
                f"{split} texts that an earlier split has, too: {len(both):,} of "
                f"{len(found[split]):,}, the first in {both[0].where}. Take them out, or give all "
                "texts in files of no split, of which equal ones stay together"
            )
        before.update(text.content for text in found[split])
    texts = [text for split in SPLITS for text in found[split]]
    again = len(texts) - sum(len({text.content for text in found[split]}) for split in SPLITS)
    if again:
        yield (
            f"texts that repeat another one of their split: {again:,} of {len(texts):,}. Each "
            "counts as a text of its own: leave them out"
        )


def _counts(found: Mapping[str, Sequence[_Text]], classes: Mapping[str | int, int]) -> str:
    """``classes: 2, of which the rarest has 30 (train), 8 (validation), 10 (test) texts``."""
    least = {
        split: min(np.bincount([classes[text.label] for text in found[split]])) for split in SPLITS
    }
    counts = ", ".join(f"{count:,} ({split})" for split, count in least.items())
    return f"classes: {len(classes)}, of which the rarest has {counts} texts"


# Classes and splits


def _classes(texts: Sequence[_Text], data_dir: Path) -> dict[str | int, int]:
    """Label -> its number, by name or number.

    Raises:
        RequestError: labels are text and numbers, or there is one class only.
    """
    if len({type(text.label) for text in texts}) > 1:
        raise RequestError(
            f"{data_dir}: some labels are text, others are numbers. Write all labels alike."
        )
    labels: list[Any] = sorted({text.label for text in texts})
    if len(labels) < 2:
        raise RequestError(
            f"{data_dir}: all texts are of one class, {labels[0]!r:.40}. Add texts of another one."
        )
    return {label: number for number, label in enumerate(labels)}


def _by_column(texts: Sequence[_Text]) -> dict[str, list[_Text]]:
    """The texts of each split that the column split names; without the column, all of "".

    Raises:
        RequestError: some texts have no split.
    """
    found: dict[str, list[_Text]] = {}
    for text in texts:
        found.setdefault(text.split or "", []).append(text)
    if "" in found and len(found) > 1:
        raise RequestError(
            f"{found[''][0].where} has no split, other texts have. Write one of {SPLIT_NAMES}."
        )
    return found


def _three(
    texts: Mapping[str, list[_Text]], classes: Mapping[str | int, int], data_dir: Path
) -> tuple[Mapping[str, list[_Text]], str]:
    """The texts of all three splits, and a sentence about where they are from.

    Raises:
        RequestError: there is no train split.
    """
    train = texts.get("train", texts.get(""))
    if train is None:
        raise RequestError(f"{data_dir} has no train split, only {' and '.join(texts)}. Add it.")
    validation, test = texts.get("validation"), texts.get("test")
    share = f"{100 * SHARE:g} % of the train texts of each class, drawn by hash,"
    notes = []
    if test is None and validation is not None:
        validation, test = None, validation
        notes.append("the validation texts test")
    if test is None:
        train, test = _drawn(train, classes, "test")
        notes.append(f"{share} test")
    if validation is None:
        train, validation = _drawn(train, classes, "validation")
        notes.append(f"{share} validate")
    note = f"splits: {', then '.join(notes) or 'as given'}"
    return {"train": train, "validation": validation, "test": test}, note


def _drawn(
    texts: Sequence[_Text], classes: Mapping[str | int, int], split: str
) -> tuple[list[_Text], list[_Text]]:
    """The texts that stay, and the share of each class that is drawn for a split."""
    labels = [classes[text.label] for text in texts]
    contents = (text.content for text in texts)
    drawn = set(share_of_each(labels, SHARE, TASK, split, contents=contents))
    return (
        [text for row, text in enumerate(texts) if row not in drawn],
        [text for row, text in enumerate(texts) if row in drawn],
    )


# Rows


def _read(path: Path) -> list[_Text]:
    """The checked rows of a file.

    Raises:
        RequestError: it is damaged or empty, or a row is wrong; it names the line or row.
    """
    texts = []
    with reading(path):
        for where, row in _rows(path):
            with reading(where, _MEND):
                texts.append(_text(where, row))
    if not texts:
        raise RequestError(f"{path} holds no text. Fill it, or take it away.")
    return texts


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Place and content of each row; of JSONL as it is written."""
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            known = [name for name in _Text._fields if name in file.schema_arrow.names]
            batches = file.iter_batches(columns=known)
            rows = (row for batch in batches for row in batch.to_pylist())
            yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows))
    else:
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            if line.strip():
                yield f"{path}, line {number}", line


def _text(where: str, row: Any) -> _Text:
    """Checks a row; raises something if it is incomplete or wrong."""
    row = json.loads(row) if isinstance(row, bytes) else row
    if not isinstance(row, dict):
        raise ValueError("it is no JSON object, one a line")
    tokens, label, marks = checked_tokens(row["tokens"]), row["label"], row.get("rationale")
    if not "".join(tokens).strip():
        raise ValueError("its tokens hold no word")
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, str):
        label = as_seen(label)
    if type(label) not in (int, str) or label == "":
        raise ValueError("its label is no text and no whole number")
    marks = None if marks is None else checked_marks(marks)
    if marks is not None and len(marks) != len(tokens):
        raise ValueError(f"its rationale has {len(marks)} values for {len(tokens)} tokens")
    rationale = np.array(marks, bool) if marks is not None and any(marks) else None
    return _Text(where, tokens, label, rationale, _split(row.get("split")))


def _split(name: Any) -> str | None:
    split = None if name is None else split_named(str(name))
    if name is not None and split is None:
        raise ValueError(f"its split must be one of {SPLIT_NAMES}, not {name!r:.40}")
    return split
