"""Texts of your own: rows of tokens, a label and maybe a rationale, in JSONL or Parquet.

    {"tokens": ["a", "fine", "film"], "label": "good", "rationale": [0, 1, 0]}

No message quotes a text; messages name the file and the line or row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study.cell.seeds import share_of_each
from study.errors import RequestError, as_seen
from study.tasks.base import SPLITS
from study.tasks.posts.posts import Posts
from study.tasks.sources.directory import (
    SPLIT_NAMES,
    files_by_split,
    listed,
    nothing_in,
    split_named,
)
from study.tasks.sources.fetched import DataSet, read_data_set, why
from study.tasks.sources.json_values import expect, kind_of, shown, whole
from study.tasks.sources.places import Places

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
_SHOWN = r"[\w .:/-]{1,40}"
"""The form of a label or split. Anything else might be a text, and is not quoted."""


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
    """See `study.tasks.sources.fetched.DataSet`.

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
                    f"{data_dir}: the {split} split has no text of the class {_shown(label)}, of "
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
    first = texts[0]
    for text in texts:
        if type(text.label) is not type(first.label):
            raise RequestError(
                f"{text.where}: the label is {kind_of(text.label)}, that of {first.where} is "
                f"{kind_of(first.label)}. Write all labels alike."
            )
    labels: list[Any] = sorted({text.label for text in texts})
    if len(labels) < 2:
        raise RequestError(
            f"{data_dir}: all texts are of one class, {_shown(labels[0])}. Add texts of another "
            "one."
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


def _read(path: Path) -> Iterator[_Text]:
    """The checked rows of a file.

    Raises:
        RequestError: it is damaged or empty, or a row is wrong; it names the line or row.
    """
    rows = _parquet_rows(path) if path.suffix.lower() == ".parquet" else _json_rows(path)
    count = 0
    for where, row in rows:
        try:
            text = _text(where, row)
        except RequestError as error:
            raise RequestError(f"{where}: {error}") from error
        yield text
        count += 1
    if count == 0:
        raise RequestError(f"{path} holds no text. Fill it, or take it away.")


def _json_rows(path: Path) -> Iterable[tuple[str, Any]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({why(error)}).") from error
    for number, line in enumerate(content.split(b"\n"), start=1):
        where = f"{path}, line {number}"
        try:
            text = line.decode("utf-8-sig")  # files that were joined have a mark within
            if not text.strip():
                continue
            row = json.loads(text)
        except UnicodeDecodeError as error:
            raise RequestError(f"{where} is not UTF-8. Write the file in UTF-8.") from error
        except json.JSONDecodeError as error:
            raise RequestError(
                f"{where} is no JSON: {error.msg}, column {error.colno}. Write one object a line."
            ) from error
        except (ValueError, RecursionError) as error:
            raise RequestError(
                f"{where} holds a number or lists that are too large. Write one object a line."
            ) from error
        yield where, row


def _parquet_rows(path: Path) -> Iterable[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        with pq.ParquetFile(path) as file:
            known = [name for name in _Text._fields if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=known):
                for each in batch.to_pylist():
                    yield f"{path}, row {row}", each
                    row += 1
    except (pa.ArrowException, OSError) as error:
        raise RequestError(
            f"{path} is damaged or no Parquet file ({why(error)}). Copy it again."
        ) from error


def _text(where: str, row: Any) -> _Text:
    """Checks a row.

    Raises:
        RequestError: it is incomplete or wrong; the message names neither file nor line.
    """
    expect(row, dict, "a text")
    for name in ("tokens", "label"):
        if row.get(name) is None:
            raise RequestError(f"{name!r} is missing. Each text has tokens and a label.")
    tokens, label = row["tokens"], row["label"]
    expect(tokens, list, "tokens")
    for number, token in enumerate(tokens, start=1):
        if not isinstance(token, str):  # without a call for each of many words
            expect(token, str, f"token {number}")
    if not any(token.strip() for token in tokens):
        raise RequestError("tokens holds no word. Leave the text out.")
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError:
        raise RequestError("a token holds half a character (a lone surrogate).") from None
    label = as_seen(label) if isinstance(label, str) else whole(label)
    if label == "" or label != label:  # NaN, as pandas writes what is missing
        raise RequestError("the label is empty. Write one, or leave the text out.")
    if not isinstance(label, str | int) or isinstance(label, bool):
        raise RequestError(f"label must be text or a whole number, got {shown(label)}.")
    return _Text(where, tokens, label, _rationale(row.get("rationale"), len(tokens)), _split(row))


def _rationale(marks: Any, count: int) -> np.ndarray | None:
    if marks is None:
        return None
    expect(marks, list, "rationale")
    if len(marks) != count:
        raise RequestError(
            f"rationale has {len(marks)} values for {count} tokens. Give each token a 0 or a 1."
        )
    for place, value in enumerate(marks, start=1):
        if value not in (0, 1):
            raise RequestError(f"value {place} of rationale must be 0 or 1, got {shown(value)}.")
    return np.array(marks, bool) if any(marks) else None


def _split(row: Mapping[str, Any]) -> str | None:
    name = row.get("split")
    if name is None:
        return None
    expect(name, str, "split")
    split = split_named(name)
    if split is None:
        raise RequestError(f"split must be one of {SPLIT_NAMES}, got {_shown(name)}.")
    return split


def _shown(value: str | int) -> str:
    """A label or split for messages, unless it may be a text."""
    return repr(value) if re.fullmatch(_SHOWN, str(value)) else "(of an unusual form)"
