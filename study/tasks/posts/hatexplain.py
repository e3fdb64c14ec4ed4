"""Reads HateXplain: posts with the labels and rationales of several annotators.

No message quotes a post; messages name the file and the post id.
"""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from study.errors import RequestError
from study.tasks.posts.posts import Posts, checked_marks, checked_tokens
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.directory import listed
from study.tasks.sources.downloading import downloading
from study.tasks.sources.places import NO_PLACES, Places
from study.tasks.sources.reading import reading

LABEL_RULES = ("majority", "first")
"""The label that more annotators gave than any other, posts without one are left out; or that of
the first annotator."""

RATIONALE_RULES = ("majority", "union", "first")
"""The tokens that at least half of a post's lists mark, that any marks, or the first."""

CLASSES = ("hatespeech", "normal", "offensive")
"""Label k is the k-th class, as in the data set's own scripts."""

BASE_URL = "https://raw.githubusercontent.com/hate-alert/HateXplain/master/Data"
_DATASET = "dataset.json"
_DIVISIONS = "post_id_divisions.json"
_FILES = (_DATASET, _DIVISIONS)
_TITLE = "HateXplain"
_AGAIN = "Copy the file again, as it was published."
_ACCEPTED = f"{_DATASET} and {_DIVISIONS} as in the data set's repository, in DIR or in DIR/Data"

_SPLITS = {"train": "train", "validation": "val", "test": "test"}
"""Our name of a split -> that of the data set."""

# Why posts are left out, in the order of the report.
_NO_SPLIT = "in no split"
_NOT_IN_DATA = "named in a split but not in the data"
_NO_TOKEN = "without a token"
_WRONG_LENGTH = "whose rationale is not as long as its text"
_UNDECIDED = "undecided between labels"
_REASONS = (_NO_SPLIT, _NOT_IN_DATA, _NO_TOKEN, _WRONG_LENGTH, _UNDECIDED)


class _Split(NamedTuple):
    """The usable posts of one split, and the number left out for each reason."""

    tokens: list[list[str]]
    labels: list[int]
    rationales: list[np.ndarray | None]
    left_out: Counter[str]


def load_posts(
    places: Places = NO_PLACES,
    label_rule: str = "majority",
    rationale_rule: str = "majority",
) -> Posts:
    """The posts of HateXplain, split as its authors split them.

    Args:
        places: of the data set, where `dataset.json` and `post_id_divisions.json` lie, or of the
            parent of their folder `Data`; and of the cache.
        label_rule: one of `LABEL_RULES`.
        rationale_rule: one of `RATIONALE_RULES`.

    Raises:
        RequestError: the data set is not at hand and cannot be downloaded; its files are
            incomplete or damaged, or hold what the data set cannot; or a split has no usable post.
    """
    return read_data_set(
        DATA_SET, places, lambda folder: _load_from(folder, label_rule, rationale_rule)
    )


# The download


def _download(folder: Path, where: str) -> None:
    """Downloads both files into `folder`.

    Raises:
        RequestError: they cannot be downloaded, see `downloading`.
    """
    with downloading(_TITLE, 13, folder, where, f"Pass it with --data-dir DIR: {_ACCEPTED}."):
        for name in _FILES:
            with urllib.request.urlopen(f"{BASE_URL}/{name}") as response:
                content = response.read()
            json.loads(content)  # there is no checksum
            (folder / name).write_bytes(content)


DATA_SET = DataSet(
    title=_TITLE,
    folder="hatexplain",
    accepted=_ACCEPTED,
    belongs=lambda name: name.removeprefix("Data/") in _FILES,
    download=_download,
)


# The files


def _load_from(data_dir: Path, label_rule: str, rationale_rule: str) -> Posts:
    folder = _find(data_dir)
    divisions = folder / _DIVISIONS
    with reading(divisions, _AGAIN):
        ids = _ids(divisions)
    with reading(folder / _DATASET, _AGAIN):
        dataset = dict(json.loads((folder / _DATASET).read_bytes()))
    splits = {
        split: _split(named, dataset, folder / _DATASET, label_rule, rationale_rule)
        for split, named in ids.items()
    }
    for split, each in splits.items():
        if not each.tokens:
            raise RequestError(
                f"{divisions}: no post of the split {_SPLITS[split]!r} can be used: "
                f"{_counted(each.left_out)}. {_AGAIN}"
            )
    left_out = sum((each.left_out for each in splits.values()), Counter[str]())
    left_out[_NO_SPLIT] = len(dataset.keys() - set().union(*ids.values()))
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
    """The folder that holds the files: `Data` in a directory if it is there, else the directory.

    Raises:
        RequestError: there is no such directory, or one of the files is missing.
    """
    with listed(data_dir, _TITLE):
        inside = data_dir / "Data"
        folder = inside if inside.is_dir() else data_dir
        missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        raise RequestError(f"{folder} has no {' and no '.join(missing)}. {_TITLE} is {_ACCEPTED}.")
    return folder


def _ids(path: Path) -> dict[str, list[str]]:
    """Split -> ids of its posts.

    Raises:
        ValueError: a post is named twice.
    """
    divisions = json.loads(path.read_bytes())
    ids = {split: list(divisions[official]) for split, official in _SPLITS.items()}
    counts = Counter(itertools.chain.from_iterable(ids.values()))
    if counts.total() > len(counts):
        raise ValueError("it names a post twice")
    return ids


# The posts


def _split(
    ids: list[str], dataset: dict[str, Any], path: Path, label_rule: str, rationale_rule: str
) -> _Split:
    """The usable posts among `ids`, in their order.

    Raises:
        RequestError: a post's entry is incomplete or wrong.
    """
    result = _Split([], [], [], Counter())
    for post_id in ids:
        if post_id not in dataset:
            result.left_out[_NOT_IN_DATA] += 1
            continue
        with reading(f"{path}, post {post_id!r}", _AGAIN):
            entry = dataset[post_id]
            tokens = checked_tokens(entry["post_tokens"])
            marks = [checked_marks(each) for each in entry["rationales"]]
            labels = [annotator["label"] for annotator in entry["annotators"]]
            if not labels or not set(labels) <= set(CLASSES):
                raise ValueError(f"each annotator's label must be one of {', '.join(CLASSES)}")
        label = _label(labels, label_rule)
        if not "".join(tokens).strip():
            result.left_out[_NO_TOKEN] += 1
        elif any(len(each) != len(tokens) for each in marks):
            result.left_out[_WRONG_LENGTH] += 1
        elif label is None:
            result.left_out[_UNDECIDED] += 1
        else:
            result.tokens.append(tokens)
            result.labels.append(label)
            result.rationales.append(_rationale(marks, rationale_rule))
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
