"""Where it looks, as HTML."""

from __future__ import annotations

import base64
import binascii
import re

import pytest

from study.tracking.looks import Example, looks_html, looks_page

_PNG = base64.b64encode(b"\x89PNG").decode()


def mosaic(m: int = 5, **changes: object) -> Example:
    example = {
        "tiles": _PNG, "attention": [0.75, *[0.25 / (m - 1)] * (m - 1)], "foreground": [1],
        "label": "cat", "predicted": "dog", "score": 0.61,
    }  # fmt: skip
    return Example(**(example | changes))  # type: ignore[typeddict-item]


def test_a_tile_has_its_place_its_attention_and_its_mark():
    html = looks_html({"soft": [mosaic()]})
    spans = re.findall(r'<span class="(\w*)[^>]*--x:([0-9.]+)%;--a:([0-9.]+)[^>]*>(\d+)<', html)
    assert [across for _, across, *_ in spans] == ["0", "25", "50", "75", "100"]
    assert spans[0][2:] == ("0.75", "75")
    assert [kind == "true" for kind, *_ in spans] == [False, True, False, False, False]
    assert 'dog, 61 %: <span class="wrong">wrong' in html


def test_an_image_stands_on_the_page_once_however_many_look_at_it():
    html = looks_html({name: [mosaic()] for name in ("soft", "hard", "lvml")})
    assert html.count("data:image/png;base64,") == 1
    windows = [[[0.0, 1.0]]] * 5
    assert looks_html({"soft": [mosaic(windows=windows)]}).count("data:image/svg+xml;base64,") == 1


@pytest.mark.parametrize(("m", "seen"), [(5, 4), (10, 2), (20, 1), (60, 1)])
def test_what_is_long_is_folded(m, seen):
    before, after = looks_html({"soft": [mosaic(m)] * 12}).split("<details>")
    assert before.count('class="tiles"') == seen
    assert after.count('class="tiles"') == 12 - seen
    assert f"{12 - seen} more" in after


def test_inputs_that_only_some_have_are_left_out():
    html = looks_html({"soft": [mosaic(), mosaic()], "hard": [mosaic()]})
    assert html.count('class="tiles"') == 2


def test_an_input_whose_class_nobody_knows_is_named_and_neither_right_nor_wrong():
    asked = mosaic(6, input="a.png", across=3, foreground=[])
    html = looks_html({"soft": [{key: asked[key] for key in asked if key != "label"}]})
    assert "<th>input</th>" in html
    assert "<th>a.png</th>" in html
    assert "--n:3;" in html
    assert '<p class="said">dog, 61 %</p>' in html


def test_no_text_of_results_is_markup():
    bad = '<b>"&'
    example = Example(
        words=[bad], attention=[1.0], foreground=[0], label=bad, predicted=bad, score=1.0
    )
    html = looks_html({bad: [example]}) + looks_page([example], bad, bad)
    assert bad not in html
    assert "<b>" not in html
    with pytest.raises(binascii.Error):
        looks_html({"soft": [mosaic(tiles='");background:url(https://example.org)')]})
