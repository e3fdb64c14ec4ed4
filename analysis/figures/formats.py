"""What a figure is written as: PNG and PDF for papers, SVG for the page.

The same figure gives the same bytes. It is laid out for good when its first file is written, and
each file is then drawn once: of a figure with a layout engine Matplotlib draws each twice.

What is pointed at on the page says its name and numbers: Matplotlib writes the URL of an artist as
a link around it, of which a `<title>` is made here.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, GREY, WHITE, own_settings

_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))

_NO_LAYOUT = {"figure.constrained_layout.use": False}
"""With which the layout engine None is none, also where Matplotlib sets it again; the engine
"none" is one that does nothing."""

_DIGITS = re.compile(r"(\.\d\d)\d+|\s+(?=\s)")

_FOR_THE_PAGE = (
    (r"\A.*?(?=<svg)", ""),
    (r'<svg [^>]*(width="[^"]*")[^>]*(viewBox="[^"]*")[^>]*>', r"<svg \1 \2>"),
    (r"<style.*?</style>", ""),  # which would hold for the whole page
    (r'<g id="[^"]*"', "<g"),  # another figure has the same
    (r"<a [^>]*/>", ""),  # of numbers that are not known
    # The quotes are those that the text does not hold.
    (r"""<a xlink:href=(["'])(.*?)\1[^>]*>""", r"<g><title>\2</title>"),
    (r"</a>", "</g>"),
    (r"xlink:href", "href"),
    (r"(font-family: )?'DejaVu Sans'.*?, sans-serif", r"\1system-ui, sans-serif"),
    (r' transform="rotate\(-0 [^"]*"', ""),
    (f"(fill|stroke): {BLACK}", r"\1: currentColor"),
    (f"(fill|stroke): {GREY}", r"\1: var(--quiet)"),
    (f"(fill|stroke): {WHITE}", r"\1: var(--back)"),
    (r">\s+<", "><"),
)
"""Pattern -> what the page has instead: no names that clash, and its reader's colours."""


def figure_png(figure: Figure, dpi: float | None = None) -> bytes:
    """The figure as a PNG picture."""
    return _bytes(figure, "png", dpi=dpi or "figure", metadata={"Software": None})


def figure_pdf(figure: Figure) -> bytes:
    """The figure as a PDF page with embedded fonts."""
    return _bytes(figure, "pdf", metadata={"CreationDate": None})


def figure_svg(figure: Figure, salt: str) -> str:
    """The figure as an element of a page that defines `--quiet` and `--back`.

    Args:
        figure: the figure.
        salt: another one for each figure of a page, so that no two share an id.
    """
    drawn = _bytes(figure, "svg", salt, transparent=True, metadata=_NO_METADATA).decode()
    for pattern, replacement in _FOR_THE_PAGE:
        drawn = re.sub(pattern, replacement, drawn, flags=re.DOTALL)
    # Hundredths of a point are enough for what is drawn; what is said keeps its digits.
    return re.sub("<[^>]+>", lambda tag: _DIGITS.sub(r"\1", tag[0]), drawn.strip())


@own_settings()
def _bytes(figure: Figure, form: str, salt: str = "", **settings: Any) -> bytes:
    with (
        io.BytesIO() as sink,
        warnings.catch_warnings(),
        mpl.rc_context(_NO_LAYOUT | {"svg.fonttype": "none", "svg.hashsalt": salt}),
    ):
        # A letter of a name that the font lacks is seen as a box: no warning for each, no error.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        if engine := figure.get_layout_engine():
            engine.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(sink, format=form, **settings)
        return sink.getvalue()
