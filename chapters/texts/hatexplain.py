"""Reads HateXplain: posts with the labels and rationales of several annotators.

No message quotes a post; messages name the file and the post's id.
"""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from chapters.texts.posts import Post, Posts, checked_marks, checked_tokens
from study.cell import Options
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.directory import listed, nothing_in
from study.tasks.sources.downloading import downloading
from study.tasks.sources.places import Places
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
_TITLE = "HateXplain"
_AGAIN = "Copy the file again, as it was published."
_ACCEPTED = f"{_DATASET} and {_DIVISIONS} as in the data set's repository, in DIR or in DIR/Data"

_SPLITS = {"train": "train", "validation": "val", "test": "test"}
"""Our name of a split -> that of the data set."""


def load_posts(places: Places, options: Options) -> Posts:
    """The posts of HateXplain, split as its authors split them.

    Args:
        places: of the data set, where `dataset.json` and `post_id_divisions.json` lie, or of the
            parent of their folder `Data`; and of the cache.
        options: `label_rule`, one of `LABEL_RULES`, and `rationale_rule`, one of
            `RATIONALE_RULES`.

    Raises:
        RequestError: the data set is not at hand and cannot be downloaded; its files are
            incomplete or damaged, or hold what the data set cannot; or a split has no usable post.
    """
    return read_data_set(DATA_SET, places, lambda folder: _load_from(folder, options))


def _download(folder: Path, where: str) -> None:
    """Downloads both files into `folder`.

    Raises:
        RequestError: they cannot be downloaded, see `downloading`.
    """
    remedy = f"Pass it with --data-dir DIR (data_dir in Python): {_ACCEPTED}."
    with downloading(_TITLE, 13, folder, where, remedy):
        for name in (_DATASET, _DIVISIONS):
            with urllib.request.urlopen(f"{BASE_URL}/{name}") as response:
                content = response.read()
            json.loads(content)  # there is no checksum
            (folder / name).write_bytes(content)


DATA_SET = DataSet(
    title=_TITLE,
    folder="hatexplain",
    accepted=_ACCEPTED,
    belongs=lambda name: name.removeprefix("Data/") in (_DATASET, _DIVISIONS),
    download=_download,
)


def _load_from(data_dir: Path, options: Options) -> Posts:
    with listed(data_dir, _TITLE) as names:
        inside = data_dir / "Data"
        folder = inside if inside.is_dir() else data_dir
        path, divisions = folder / _DATASET, folder / _DIVISIONS
        if not (path.is_file() and divisions.is_file()):
            raise nothing_in(data_dir, names, _TITLE, _ACCEPTED)
    with reading(path, _AGAIN):
        dataset = dict(json.loads(path.read_bytes()))
    splits: dict[str, list[Post]] = {}
    left_out = Counter[str]()
    with reading(divisions, _AGAIN):
        named = json.loads(divisions.read_bytes())
        for split, official in _SPLITS.items():
            splits[split] = posts = []
            for post_id in named[official]:
                with reading(f"{path}, post {post_id!r}", _AGAIN):
                    # It is taken away, so that no post is in two splits.
                    found = _post(dataset.pop(post_id, None), options)
                if isinstance(found, Post):
                    posts.append(found)
                else:
                    left_out[found] += 1
            if not posts:
                raise ValueError(f"no post of its split {official!r} can be used")
    if dataset:
        left_out["in no split"] = len(dataset)
    return Posts(CLASSES, splits, dict(sorted(left_out.items())))


def _post(entry: Any, rules: Options) -> Post | str:
    """A post by the rules, or why it is left out.

    Raises:
        Exception: its entry is incomplete or wrong.
    """
    if entry is None:
        return "named in a split but not in the data"
    tokens = checked_tokens(entry["post_tokens"])
    marks = [checked_marks(each) for each in entry["rationales"]]
    labels = [CLASSES.index(annotator["label"]) for annotator in entry["annotators"]]
    if not "".join(tokens).strip():
        return "without a token"
    if any(len(each) != len(tokens) for each in marks):
        return "whose rationale is not as long as its text"
    counted = Counter(labels[:1] if rules["label_rule"] == "first" else labels)
    (label, most), *others = counted.most_common()
    if others and others[0][1] == most:
        return "undecided between labels"
    taken = marks[:1] if rules["rationale_rule"] == "first" else marks
    least = len(marks) / 2 if rules["rationale_rule"] == "majority" else 1
    rationale = [sum(each) >= least for each in zip(*taken, strict=True)]
    return Post(tokens, label, rationale or [False] * len(tokens))  # there may be no list
