"""What a figure is written as: PNG and PDF for papers, SVG for the page.

The same figure gives the same bytes. It is laid out for good when its first file is written, and
each file is then drawn once: of a figure with a layout engine Matplotlib draws each twice.

What is pointed at on the page says its name and numbers: they are the URL of a mark, which
Matplotlib writes as a link around it, and which becomes a `<title>` here.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, GREY, WHITE, own_settings

_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))

_NO_LAYOUT = {"figure.constrained_layout.use": False}
"""With which the layout engine None is none, also where Matplotlib sets it again; the engine
"none" is one that does nothing."""

_OF_A_DOCUMENT = ("style", "metadata")
"""Elements that would hold for the whole page, or say nothing in it."""

_INKS = {BLACK: "currentColor", GREY: "var(--quiet)", WHITE: "var(--back)"}
"""Colour -> what the reader of the page has for it."""

_LINK = "{http://www.w3.org/1999/xlink}href"

_EXCESS = re.compile(r"(?<=\.\d\d)\d+|\s+(?=\s)|font-family: [^;]*(; )?|rotate\(-0 [^)]*\)")
"""Of attributes: digits beyond hundredths of a point, empty room, a font of its own, no turn."""


def figure_png(figure: Figure) -> bytes:
    """The figure as a PNG picture."""
    return _bytes(figure, "png", dpi="figure", metadata={"Software": None})


def figure_pdf(figure: Figure) -> bytes:
    """The figure as a PDF page with embedded fonts."""
    return _bytes(figure, "pdf", metadata={"CreationDate": None})


def figure_svg(figure: Figure, salt: str) -> str:
    """The figure as an element of a page that defines `--quiet` and `--back`.

    Args:
        figure: the figure.
        salt: another one for each figure of a page, so that no two share an id.
    """
    drawn = _bytes(figure, "svg", salt, transparent=True, metadata=_NO_METADATA)
    (element,) = _on_the_page(ElementTree.fromstring(drawn))
    del element.attrib["height"], element.attrib["version"]
    return ElementTree.tostring(element, encoding="unicode")


def _on_the_page(drawn: Element) -> Iterator[Element]:
    """What stands on the page for an element: itself, its children, or nothing."""
    tag = _plain(drawn.tag)
    children = [each for child in drawn for each in _on_the_page(child)]
    if tag in _OF_A_DOCUMENT or (tag == "a" and not children):  # of a number that is not known
        return
    element = Element(tag)
    if tag == "a":
        element.tag = "g"
        ElementTree.SubElement(element, "title").text = drawn.get(_LINK)
    else:
        element.attrib = {_plain(name): _value(name, text) for name, text in drawn.items()}
    if tag == "g":
        element.attrib.pop("id", None)  # which another figure has, too
        if not element.attrib:
            yield from children
            return
    if drawn.text and not drawn.text.isspace():
        element.text = drawn.text
    element.extend(children)
    yield element


def _plain(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def _value(name: str, text: str) -> str:
    """Of an attribute, as short as it can be drawn from, in the reader's colours."""
    if name == "style":
        for colour, ink in _INKS.items():
            text = text.replace(colour, ink)
    return _EXCESS.sub("", text)


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
