"""What was written of single images, as pictures of the report."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.digest.compare import Comparison
from analysis.forms import listed
from analysis.page.where_it_looks import of_paradigms, recorded
from analysis.section.picture import Picture
from chapters.captions.caption_figure import caption_figure
from chapters.captions.evaluation.caption_examples import Example


def pictures(comparison: Comparison) -> Iterator[Picture]:
    """A picture an object: the captions of all paradigms that recorded the same one."""
    examples = of_paradigms(recorded(comparison))
    found = {name: {_object(each): each for each in of} for name, of in examples.items()}
    objects = dict.fromkeys(key for of in found.values() for key in of)
    for number, key in enumerate(objects, start=1):
        shown = {name: of[key] for name, of in found.items() if key in of}
        image, category = key
        yield Picture(
            name=f"captions-{number}",
            title=f"{category} ({image})",
            caption=f"Captions of {image} by {listed(list(shown))}; box: {category}.",
            figure=caption_figure(shown),
        )


def _object(example: Example) -> tuple[str, str]:
    return example["image"], example["category"]
