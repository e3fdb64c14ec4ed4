"""Reads HateXplain: posts with the labels and rationales of several annotators.

No message quotes a post; messages name the file, the line and the post id.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study.cell import LABEL_RULES, RATIONALE_RULES
from study.cell.checks import require
from study.errors import RequestError, unknown
from study.tasks.posts.posts import Posts
from study.tasks.sources.fetched import DataSet, read_data_set, why
from study.tasks.sources.json_values import expect, kind_of, shown
from study.tasks.sources.places import NO_PLACES, Places
from study.terminal.working import working

CLASSES = ("hatespeech", "normal", "offensive")
"""Label k is the k-th class, as in the data set's own scripts."""

BASE_URL = "https://raw.githubusercontent.com/hate-alert/HateXplain/master/Data"
_DATASET = "dataset.json"
_DIVISIONS = "post_id_divisions.json"
_FILES = (_DATASET, _DIVISIONS)
_ACCEPTED = f"{_DATASET} and {_DIVISIONS} as in the data set's repository, in DIR or in DIR/Data"

_SPLITS = {"train": "train", "validation": "val", "test": "test"}
"""Our name of a split -> that of the data set."""

_KEYS = ("post_tokens", "annotators", "rationales")

# Why posts are left out, in the order of the report.
_NO_SPLIT = "in no split"
_NOT_IN_DATA = "named in a split but not in the data"
_NO_TOKEN = "without a token"
_WRONG_LENGTH = "whose rationale is not as long as its text"
_UNDECIDED = "undecided between labels"
_REASONS = (_NO_SPLIT, _NOT_IN_DATA, _NO_TOKEN, _WRONG_LENGTH, _UNDECIDED)

_SILENCE_SECONDS = 20.0
"""A server that is silent for this long is given up."""

_ID = r"[\w.:-]{1,80}"
"""The form of a post id. Anything else might be the text of a post, and is not quoted."""

_PLACES = {
    # Among the values in the data set, only posts are objects with a key.
    _DATASET: re.compile(rf'"({_ID})"\s*:\s*\{{'),
    _DIVISIONS: re.compile(rf'"({_ID})"\s*[,\]]'),
}
"""Matches the beginning of a post in the text of a file."""


class _Post(NamedTuple):
    """A checked post.

    Attributes:
        tokens: words.
        labels: of each annotator, at least one, in `CLASSES`.
        marks: lists of 0 and 1, a value a token; there may be fewer lists than labels, or none.
    """

    tokens: list[str]
    labels: list[str]
    marks: list[list[int]]


class _Split(NamedTuple):
    """The usable posts of one split, and the number left out for each reason."""

    tokens: list[list[str]]
    labels: list[int]
    rationales: list[np.ndarray | None]
    left_out: Counter[str]


@dataclass(frozen=True)
class _File:
    """A file that holds a JSON object.

    Attributes:
        path: for messages.
        text: its text, to find line numbers for messages.
        content: the parsed text.
    """

    path: Path
    text: str
    content: dict[str, Any]

    def at(self, name: str, what: str = "post") -> str:
        """The file, the line and the post or split of that name, for messages."""
        forms = {json.dumps(name, ensure_ascii=flag) for flag in (True, False)}
        written = "|".join(re.escape(form) for form in forms)
        key = self.path.name == _DATASET or what == "split"
        after = r"\s*:" if key else ""
        # The last one, since of a repeated key JSON takes the last value.
        place = _last(re.compile(f"(?:{written}){after}").finditer(self.text))
        line = "" if place is None else f", line {_line(self.text, place.start())}"
        shown = repr(name) if re.fullmatch(_ID, name) else "without a usual name"
        return f"{self.path}{line}, {what} {shown}"


def load_posts(
    places: Places = NO_PLACES,
    label_rule: str = "majority",
    rationale_rule: str = "majority",
) -> Posts:
    """The posts of HateXplain, split as its authors split them.

    Args:
        places: of the data set, where `dataset.json` and `post_id_divisions.json` lie, or of the
            parent of their folder `Data`; and of the cache.
        label_rule: one of `study.cell.LABEL_RULES`. majority: the label that more annotators gave
            than any other; posts without one are left out. first: the first annotator's.
        rationale_rule: one of `study.cell.RATIONALE_RULES`. majority: the tokens that at least
            half of the post's lists mark. union: that any list marks. first: that the first marks.

    Raises:
        ValueError: no such rule.
        RequestError: the data set is not at hand and cannot be downloaded; its files are
            incomplete or damaged, or hold what the data set cannot; or a split has no usable post.
    """
    for name, rule, known in (
        ("label_rule", label_rule, LABEL_RULES),
        ("rationale_rule", rationale_rule, RATIONALE_RULES),
    ):
        require(rule in known, name, rule, f"one of {', '.join(known)}")
    return read_data_set(
        DATA_SET, places, lambda folder: _load_from(folder, label_rule, rationale_rule)
    )


# The download


def _download(folder: Path, where: str) -> None:
    """Downloads both files into `folder`.

    Raises:
        RequestError: no connection, a broken connection, no JSON, or a full disk.
    """
    print(f"downloading HateXplain from {BASE_URL} to {where}", file=sys.stderr, flush=True)
    try:
        with working("downloading HateXplain", len(_FILES), "files") as part:
            for name in part.each(_FILES):
                (folder / name).write_bytes(_fetch(name))
    # URLError and time-outs are OSErrors.
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RequestError(
            f"HateXplain is not at hand and could not be downloaded ({why(error)}). Pass it "
            f"with --data-dir DIR: {_ACCEPTED}. The study digits needs no download."
        ) from error


def _fetch(name: str) -> bytes:
    """One file of the data set's repository.

    Raises:
        OSError: no connection, a broken one, silence, or the server refuses.
        http.client.HTTPException: less arrived than was announced.
        ValueError: the answer is no JSON.
    """
    try:
        with urllib.request.urlopen(f"{BASE_URL}/{name}", timeout=_SILENCE_SECONDS) as response:
            content: bytes = response.read()
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise
    try:
        json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"what arrived as {name} is damaged or no JSON") from error
    return content


DATA_SET = DataSet(
    title="HateXplain",
    folder="hatexplain",
    accepted=_ACCEPTED,
    belongs=lambda name: name.removeprefix("Data/") in _FILES,
    download=_download,
)


# The files


def _load_from(data_dir: Path, label_rule: str, rationale_rule: str) -> Posts:
    folder = _find(data_dir)
    dataset, divisions = (_read(folder / name) for name in _FILES)
    ids = _ids(divisions)
    splits = {}
    for split, official in _SPLITS.items():
        splits[split] = _split(ids[official], dataset, label_rule, rationale_rule)
        if not splits[split].tokens:
            raise RequestError(
                f"{divisions.path}: no post of the split {official!r} can be used: "
                f"{_counted(splits[split].left_out)}."
            )
    left_out = sum((each.left_out for each in splits.values()), Counter[str]())
    left_out[_NO_SPLIT] = len(dataset.content.keys() - set().union(*ids.values()))
    return Posts(
        classes=CLASSES,
        tokens={split: each.tokens for split, each in splits.items()},
        labels={split: np.array(each.labels, dtype=np.int64) for split, each in splits.items()},
        rationales={split: each.rationales for split, each in splits.items()},
        left_out={reason: left_out[reason] for reason in _REASONS if left_out[reason]},
    )


def _counted(left_out: Counter[str]) -> str:
    parts = [f"{left_out[reason]} {reason}" for reason in _REASONS if left_out[reason]]
    return ", ".join(parts) or "it names none"


def _find(data_dir: Path) -> Path:
    """The folder that holds the files: `data_dir`, or `Data` in it.

    Raises:
        RequestError: there is no such directory, or one of the files is missing.
    """
    try:
        if not data_dir.is_dir():
            fault = "is not a directory" if data_dir.exists() else "does not exist"
            raise RequestError(
                f"{data_dir} {fault}. Pass HateXplain with --data-dir DIR: {_ACCEPTED}."
            )
        folders = (data_dir, data_dir / "Data")
        missing = [[n for n in _FILES if not (folder / n).is_file()] for folder in folders]
    except OSError as error:
        raise RequestError(f"{data_dir} cannot be read ({why(error)}).") from error
    # The folder that lacks fewest files; if equal, the directory that was asked for.
    lacks, folder = min(zip(missing, folders, strict=True), key=lambda pair: len(pair[0]))
    if lacks:
        raise RequestError(f"{folder} has no {' and no '.join(lacks)}. HateXplain is {_ACCEPTED}.")
    return folder


def _read(path: Path) -> _File:
    """Reads and parses a file.

    Raises:
        RequestError: it cannot be read, is not UTF-8, no JSON or no object, or the object repeats
            a key, so that its value is ambiguous.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({why(error)}).") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(errors="replace")
        raise RequestError(
            f"{path} is not UTF-8: line {_line(before, len(before))}"
            f"{_nearest(path, before)}. Copy the file again, as it was published."
        ) from error
    pairs, content = _parse(path, text)
    if not isinstance(content, dict):
        raise RequestError(
            f"{path} must hold an object, got {kind_of(content)}. HateXplain is {_ACCEPTED}."
        )
    file = _File(path, text, content)
    if len(pairs) > len(content):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key, _ in pairs if counts[key] > 1)
        what = "post" if path.name == _DATASET else "split"
        raise RequestError(f"{file.at(repeated, what)} is there more than once. Leave one.")
    return file


def _parse(path: Path, text: str) -> tuple[list[tuple[str, Any]], Any]:
    """The keys and values of the outermost object, repeated ones too, and the parsed content."""
    outermost: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal outermost
        outermost = pairs  # the outermost object is the last to end
        return dict(pairs)

    try:
        content = json.loads(text, object_pairs_hook=keep)
    except json.JSONDecodeError as error:
        raise RequestError(
            f"{path} is no JSON: {error.msg}, line {error.lineno}, column {error.colno}"
            f"{_nearest(path, text[: error.pos])}. Copy the file again, as it was published."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"{path} holds numbers or lists that no file of HateXplain holds. Copy the file "
            "again, as it was published."
        ) from error
    return outermost, content


def _nearest(path: Path, before: str) -> str:
    """The last post that begins in the text before an error, for messages."""
    place = _last(_PLACES[path.name].finditer(before))
    return "" if place is None else f", the last post before it is {place[1]!r}"


def _last(places: Iterator[re.Match[str]]) -> re.Match[str] | None:
    found = None
    for place in places:
        found = place
    return found


def _line(text: str, position: int) -> int:
    """The number of a line, from 1."""
    return text.count("\n", 0, position) + 1


# The splits


def _ids(divisions: _File) -> dict[str, list[str]]:
    """The data set's name of a split -> ids of its posts.

    Raises:
        RequestError: a split is missing or no list of ids, or a post is named twice.
    """
    ids: dict[str, list[str]] = {}
    split_of: dict[str, str] = {}
    for split in _SPLITS.values():
        if split not in divisions.content:
            raise RequestError(
                f"{divisions.path} has no split {split!r}: {', '.join(_SPLITS.values())} are "
                "needed."
            )
        ids[split] = divisions.content[split]
        try:
            expect(ids[split], list, f"the split {split!r}")
            _expect_texts(ids[split], f"in the split {split!r}, entry")
        except RequestError as error:
            raise RequestError(f"{divisions.path}: {error}") from error
        for post_id in ids[split]:
            if post_id in split_of:
                raise RequestError(
                    f"{divisions.at(post_id)} is named twice: in the split "
                    f"{split_of[post_id]!r} and in {split!r}. Leave one."
                )
            split_of[post_id] = split
    return ids


def _split(ids: list[str], dataset: _File, label_rule: str, rationale_rule: str) -> _Split:
    """The usable posts among `ids`, in their order.

    Raises:
        RequestError: a post's entry is incomplete or wrong.
    """
    result = _Split([], [], [], Counter())
    for post_id in ids:
        if post_id not in dataset.content:
            result.left_out[_NOT_IN_DATA] += 1
            continue
        try:
            post = _post(dataset.content[post_id])
        except RequestError as error:
            raise RequestError(f"{dataset.at(post_id)}: {error}") from error
        label = _label(post.labels, label_rule)
        if not any(token.strip() for token in post.tokens):
            result.left_out[_NO_TOKEN] += 1
        elif any(len(marks) != len(post.tokens) for marks in post.marks):
            result.left_out[_WRONG_LENGTH] += 1
        elif label is None:
            result.left_out[_UNDECIDED] += 1
        else:
            result.tokens.append(post.tokens)
            result.labels.append(label)
            result.rationales.append(_rationale(post.marks, rationale_rule))
    return result


def _label(labels: list[str], rule: str) -> int | None:
    """The label of a post by a rule; None if the rule leaves it open."""
    if rule == "first":
        return CLASSES.index(labels[0])
    (winner, votes), *others = Counter(labels).most_common()
    if others and others[0][1] == votes:
        return None
    return CLASSES.index(winner)


def _rationale(marks: list[list[int]], rule: str) -> np.ndarray | None:
    """The rationale of a post by a rule: (tokens,) bool; None if no token is marked.

    Args:
        marks: lists of 0 and 1, equally long; there may be none.
    """
    if not marks:
        return None
    votes = np.sum(marks[:1] if rule == "first" else marks, axis=0)
    rationale = 2 * votes >= len(marks) if rule == "majority" else votes > 0
    return rationale if rationale.any() else None


# The posts


def _post(entry: Any) -> _Post:
    """Checks the data set's entry of a post.

    Raises:
        RequestError: it is incomplete or wrong; the message names neither file nor post.
    """
    expect(entry, dict, "a post")
    for key in _KEYS:
        if key not in entry:
            raise RequestError(f"{key!r} is missing.")
        expect(entry[key], list, repr(key))
    return _Post(
        _tokens(entry["post_tokens"]),
        _labels(entry["annotators"]),
        _marks(entry["rationales"]),
    )


def _tokens(tokens: list[Any]) -> list[str]:
    _expect_texts(tokens, "token")
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError:
        raise RequestError("a token holds half a character (a lone surrogate).") from None
    return tokens


def _labels(annotators: list[Any]) -> list[str]:
    if not annotators:
        raise RequestError("'annotators' is empty: nobody labelled the post.")
    labels = []
    for number, annotator in enumerate(annotators, 1):
        expect(annotator, dict, f"annotator {number}")
        if "label" not in annotator:
            raise RequestError(f"annotator {number} has no 'label'.")
        label = annotator["label"]
        expect(label, str, f"the label of annotator {number}")
        if label not in CLASSES:
            shown = label if re.fullmatch(_ID, label) else "(no single word)"
            raise RequestError(f"annotator {number}: {unknown('label', shown, CLASSES)}")
        labels.append(label)
    return labels


def _marks(rationales: list[Any]) -> list[list[int]]:
    for number, marks in enumerate(rationales, 1):
        expect(marks, list, f"rationale {number}")
        for place, value in enumerate(marks, 1):
            if isinstance(value, bool) or value not in (0, 1):
                raise RequestError(
                    f"value {place} of rationale {number} must be 0 or 1, got {shown(value)}."
                )
    return rationales


def _expect_texts(values: list[Any], what: str) -> None:
    """Refuses a list that holds anything but text."""
    if all(isinstance(value, str) for value in values):  # fast, as there are many words
        return
    for number, value in enumerate(values, 1):
        expect(value, str, f"{what} {number}")
