"""The declared tasks of posts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from chapters.texts import hatexplain, own_texts
from chapters.texts.modality import POSTS
from chapters.texts.posts import Posts
from study.cell import Options
from study.cell.declared import Axis, Name
from study.tasks.sources.places import Places
from study.tasks.task import Declaration, TaskInfo, min_count


def _info(
    name: str,
    read: Callable[[Places, Options], Posts],
    classes: tuple[str, ...],
    options: Options,
) -> TaskInfo:
    """A task of posts.

    Args:
        name: of the task.
        read: places of its files, options of its data -> the posts.
        classes: names of the classes; empty: the data tell them.
        options: of its data.
    """
    from chapters.texts.texts import text_task

    return TaskInfo(classes, lambda places: text_task(name, read(places, options), options))


TASKS: Mapping[str, Declaration] = {
    "hatexplain": Declaration(
        POSTS,
        partial(_info, "hatexplain", hatexplain.load_posts, hatexplain.CLASSES),
        {
            "label_rule": Axis(
                "label of a post that several people labelled: of the majority, or of the first",
                Name(hatexplain.LABEL_RULES),
                ("majority",),
                column="how posts got their labels",
                said="labels by {}",
            ),
            "rationale_rule": Axis(
                "rationale of a post: words marked by a majority of the people, by any of them "
                "(union), or by the first",
                Name(hatexplain.RATIONALE_RULES),
                ("majority",),
                column="how posts got their rationales",
                said="rationales by {}",
            ),
            "min_count": min_count(1),
        },
        hatexplain.DATA_SET,
        warning="These are posts as people wrote them, some of them hate speech with slurs.",
    ),
    own_texts.TASK: Declaration(
        POSTS,
        partial(_info, own_texts.TASK, lambda places, _: own_texts.load_own(places), ()),
        {"min_count": min_count(1)},
        own_texts.DATA_SET,
    ),
}
