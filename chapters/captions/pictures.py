"""What was written of single images, as pictures of the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from analysis.digest.compare import Comparison
from analysis.forms import listed
from analysis.page.where_it_looks import of_paradigms, recorded
from analysis.section.picture import Picture
from chapters.captions.caption_figure import caption_figure
from chapters.captions.evaluation.caption_examples import Example


def pictures(comparison: Comparison) -> Iterator[Picture]:
    """A picture an object: the captions of all paradigms that recorded the same one."""
    by_object: dict[tuple[str, str], dict[str, Example]] = defaultdict(dict)
    for name, examples in of_paradigms(recorded(comparison)).items():
        for example in examples:
            by_object[example["image"], example["category"]][name] = example
    for number, ((image, category), shown) in enumerate(by_object.items(), start=1):
        yield Picture(
            name=f"captions-{number}",
            title=f"{category} ({image})",
            caption=f"Captions of {image} by {listed(list(shown))}; box: {category}.",
            figure=caption_figure(shown),
        )
