"""The declared tasks of posts."""

from __future__ import annotations

from collections.abc import Mapping

from study.cell import Options
from study.errors import RequestError
from study.tasks.base import POSTS, Declaration, Facts, Task, TaskInfo
from study.tasks.posts import hatexplain
from study.tasks.sources.places import Places

_SIZES = {"train": 15_383, "validation": 1_922, "test": 1_924}  # posts of HateXplain
_WORDS, _LENGTH = 24_991, 23  # vocabulary and mean words a post of its training split


def _hatexplain(options: Options) -> TaskInfo:
    from study.tasks.posts.texts import made_up_texts, nominal_facts, text_task

    label_rule, rationale_rule = options.label_rule, options.rationale_rule
    if label_rule is None or rationale_rule is None or options.min_count is None:
        raise RequestError(
            "hatexplain takes a label_rule, a rationale_rule and a min_count, none is none. Leave "
            "them out, or give them with --set."
        )

    def load(places: Places) -> Task:
        posts = hatexplain.load_posts(places, label_rule, rationale_rule)
        return text_task("hatexplain", posts, options)

    def made_up(facts: Facts, count: int) -> Task:
        return made_up_texts("hatexplain", facts, count, len(hatexplain.CLASSES))

    nominal = nominal_facts(_WORDS, _SIZES, _LENGTH)
    return TaskInfo(nominal.input_shape, hatexplain.CLASSES, load, made_up, nominal)


TASKS: Mapping[str, Declaration] = {
    "hatexplain": Declaration(
        POSTS,
        _hatexplain,
        {"label_rule": "majority", "rationale_rule": "majority", "min_count": 1},
        hatexplain.DATA_SET,
    ),
}
