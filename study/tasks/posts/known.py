"""The declared tasks of posts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from study.cell import Options
from study.cell.declared import Axis, Name
from study.tasks.base import POSTS, Declaration, TaskInfo, min_count
from study.tasks.posts import hatexplain, own_texts
from study.tasks.posts.posts import Posts
from study.tasks.sources.places import Places

_SIZES = {"train": 15_383, "validation": 1_922, "test": 1_924}  # posts of HateXplain
_WORDS, _LENGTH = 24_991, 23  # vocabulary and mean words a post of its training split


def _hatexplain(options: Options) -> TaskInfo:
    def read(places: Places) -> Posts:
        return hatexplain.load_posts(places, options["label_rule"], options["rationale_rule"])

    return _info("hatexplain", read, options, hatexplain.CLASSES)


def _own_texts(options: Options) -> TaskInfo:
    return _info(own_texts.TASK, own_texts.load_own, options)


def _info(
    name: str,
    read: Callable[[Places], Posts],
    options: Options,
    classes: tuple[str, ...] = (),
) -> TaskInfo:
    """A task of posts.

    Args:
        name: of the task.
        read: places of its files -> the posts.
        options: of its data.
        classes: names of the classes; empty: the data tell them.
    """
    from study.tasks.posts.texts import made_up_texts, nominal_facts, text_task

    nominal = nominal_facts(_WORDS, _SIZES, _LENGTH, len(classes) or 2)
    return TaskInfo(
        nominal.input_shape,
        classes,
        load=lambda places: text_task(name, read(places), options),
        made_up=lambda facts, count: made_up_texts(name, facts, count),
        nominal=nominal,
    )


TASKS: Mapping[str, Declaration] = {
    "hatexplain": Declaration(
        POSTS,
        _hatexplain,
        {
            "label_rule": Axis(
                "label of a post that several people labelled: the majority's, or the first",
                Name(hatexplain.LABEL_RULES),
                ("majority",),
                column="how posts got their labels",
            ),
            "rationale_rule": Axis(
                "rationale of a post: words that a majority of the people marked, or the union "
                "of theirs, or the first",
                Name(hatexplain.RATIONALE_RULES),
                ("majority",),
                column="how posts got their rationales",
            ),
            "min_count": min_count(1),
        },
        hatexplain.DATA_SET,
        warning="These are posts as people wrote them, some of them hate speech with slurs.",
    ),
    own_texts.TASK: Declaration(
        POSTS, _own_texts, {"min_count": min_count(1)}, own_texts.DATA_SET
    ),
}
