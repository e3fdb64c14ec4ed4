"""Posts: the words that people read, how attention to them is measured, and how they are shown."""

from __future__ import annotations

from study.tasks.task import Measure, Modality

POSTS = Modality(
    "posts",
    counted="posts that have a rationale",
    m="most tokens m",
    foreground="the tokens of the rationale",
    partly="a rationale",
    draws="posts",
    measures=(
        Measure("token_f1", "token F1", of="chapters.texts.plausibility:token_f1"),
        Measure("iou_f1", "IOU F1", bounded=False, of="chapters.texts.plausibility:iou_f1"),
        Measure("auprc", "AUPRC", of="chapters.texts.plausibility:auprc"),
    ),
    measures_text="Plausibility: how far the attention agrees with the tokens that people marked, "
    "by the measures of the HateXplain data set, those of ERASER, with t intervals. Predicted are "
    "the 5 tokens with most attention: token F1 compares them with the marked tokens, IOU F1 with "
    "the marked spans, where a token matches a span of at most two. AUPRC is the area under the "
    "precision-recall curve of the attention itself.",
    shown="chapters.texts.texts:shown",
    how_shown="The shade of a word grows with the attention on it, and the rationale is "
    "underlined.",
    reads="chapters.texts.given_texts:given_texts",
    example='"a text of yours"',
    published="chapters.texts.published:POSTS",
    named_by="architecture",
)
