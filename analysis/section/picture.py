"""A figure of the report, drawn when it is asked for, and as a page shows it."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass

from matplotlib.figure import Figure

from analysis.figures.formats import figure_pdf, figure_png, figure_svg
from analysis.figures.style import WIDTH


def file_stem(*names: str) -> str:
    """Names that may have any letters, as that of a task trained elsewhere, in one of a file."""
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(names))


@dataclass(frozen=True, eq=False)
class Picture:
    """One figure of the report.

    Attributes:
        name: stem of its file, e.g. ``heatmaps-test``, unique in a comparison; one of those that
            `analysis.page.files` knows.
        title: heading.
        caption: what it shows, on which split, with n and interval. Its first sentence stands for
            the figure where that cannot be seen.
        figure: see `analysis.figures`.
    """

    name: str
    title: str
    caption: str
    figure: Figure

    @property
    def wide(self) -> bool:
        """Whether it wants the width of a page."""
        return bool(self.figure.get_size_inches()[0] > 1.2 * WIDTH)

    @functools.cached_property
    def png(self) -> bytes:
        """The figure as a PNG picture."""
        return figure_png(self.figure)

    @functools.cached_property
    def pdf(self) -> bytes:
        """The figure as a PDF page."""
        return figure_pdf(self.figure)

    @functools.cached_property
    def svg(self) -> str:
        """The figure as an element of a page."""
        return figure_svg(self.figure, salt=self.name + hashlib.sha256(self.png).hexdigest())


@dataclass(frozen=True, eq=False)
class Shown:
    """A picture on a page: an SVG element, its file beside the page, and the words around it."""

    title: str
    caption: str
    svg: str
    file: str
    wide: bool = False

    @property
    def name(self) -> str:
        """Its file's name without folder and ending: that of its picture, and a key."""
        return self.file.rpartition("/")[-1].partition(".")[0]

    @property
    def pdf(self) -> str:
        """The same for papers."""
        return f"{self.file.removesuffix('.png')}.pdf"

    @property
    def alt(self) -> str:
        """For readers who cannot see it: the first sentence of the caption."""
        return self.caption.split(". ")[0].removesuffix(".") + "."
