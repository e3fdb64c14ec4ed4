"""Pictures of captions: where each paradigm looks for each word that it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.comparison.compare import Comparison
from analysis.figures.captions import caption_figure
from analysis.figures.style import by_paradigm
from analysis.groups import rows_of
from analysis.section.picture import Picture
from analysis.words import listed
from study import tasks
from study.evaluate.caption_image import Example, examples_of

CAPTIONS_STEM = "captions-"

HOW_TO_READ = (
    "Captions of images that no model trained on, written by the chosen option of each paradigm, "
    "of its lowest seed. Each word stands below the image as the model saw it when it wrote the "
    "word: lit where the attention is, as large as its largest, and dark where there is none. "
    "Every image has the box of one category. Framed is the word at which the category's words "
    "have most probability: its score s_y, and the attention in the box a_z there, are what SAIF "
    "counts."
)


def caption_pictures(comparison: Comparison) -> Iterator[Picture]:
    """A picture an object: the captions of all paradigms that recorded the same one."""
    examples = _examples(comparison)
    if not examples:
        return
    found = {name: {_object(each): each for each in of} for name, of in examples.items()}
    objects = dict.fromkeys(key for of in found.values() for key in of)
    for number, key in enumerate(objects, start=1):
        shown = {name: of[key] for name, of in found.items() if key in of}
        image, category = key
        yield Picture(
            name=f"{CAPTIONS_STEM}{number}",
            title=f"{category} ({image})",
            caption=f"Captions of {image} by {listed(list(shown))}; box: {category}.",
            figure=caption_figure(shown),
            wide=True,
        )


def _examples(comparison: Comparison) -> Mapping[str, list[Example]]:
    """Paradigm -> the examples of its chosen option's lowest seed that recorded any."""
    rows = comparison.evaluations
    if "examples" not in rows or comparison.modality is not tasks.CAPTIONS:
        return {}
    rows = rows_of(comparison.choice, rows[rows["examples"].notna()]).sort_values("seed")
    return {
        name: examples_of(mine["examples"].iloc[0]) for name, mine in by_paradigm(rows).items()
    }


def _object(example: Example) -> tuple[str, str]:
    return example["image"], example["category"]
