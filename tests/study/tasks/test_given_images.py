"""Pictures that a person gives: any form is the same input, and what is none is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from study.errors import RequestError
from study.tasks.mosaics.decoding import decoded
from study.tasks.mosaics.given_images import given_images
from tests.made_up.images import encoded, made_up

SIDE = 8
CARRIED = {"input_shape": (3, SIDE, SIDE), "max_value": 255, "m": 6}
GREY = CARRIED | {"input_shape": (1, SIDE, SIDE)}


def pixels(asked: Any) -> np.ndarray:
    """The segments of an input as images (m, side, side, channels) in 0..255."""
    return ((asked.segments.permute(0, 2, 3, 1) + 1) * 127.5).round().numpy().astype(np.uint8)


def picture(columns: int, rows: int) -> np.ndarray:
    """Of tiles of `SIDE` pixels."""
    return made_up(1, 0, (SIDE * columns, SIDE * rows))


@given(st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_tiles_put_together_are_the_picture(rows, columns, by_number):
    """A number of tiles is the grid of squares."""
    whole = picture(columns, rows)
    tiles = rows * columns if by_number else (rows, columns)
    (asked,) = given_images(CARRIED, whole, tiles)
    tiled = pixels(asked).reshape(rows, columns, SIDE, SIDE, 3).swapaxes(1, 2)
    np.testing.assert_array_equal(tiled.reshape(whole.shape), whole)
    assert asked.shown()["across"] == columns
    assert [*asked.parts] == [*range(rows * columns)]


def test_one_picture_is_cut_into_m_and_with_tiles_each_of_a_list():
    whole = picture(2, 3)
    (alone,) = given_images(CARRIED, whole, None)
    assert len(alone.segments) == 6
    both = given_images(CARRIED, [whole, whole], 6)
    assert [each.name for each in both] == [0, 1]
    for each in both:
        np.testing.assert_array_equal(each.segments, alone.segments)
    (mosaic,) = given_images(CARRIED, [whole, whole], None)
    assert len(mosaic.segments) == 2


def test_every_form_of_a_picture_is_the_same(tmp_path):
    """It stays as it is, and looks as among images of one's own."""
    shape = (SIDE + 3, SIDE + 5)
    array, path = made_up(2, 0, shape), tmp_path / "a.png"
    path.write_bytes(encoded(array))
    image = Image.fromarray(array)
    forms = [
        path, str(path), image, array, torch.from_numpy(array), array / 255,
        array.astype(np.int64), np.dstack([array, np.full(shape[::-1], 255, np.uint8)]),
    ]  # fmt: skip
    (asked,) = given_images(CARRIED, forms, None)
    for each in pixels(asked):
        np.testing.assert_array_equal(each, decoded(path, SIDE, True))
    assert asked.parts[:3] == [str(path), str(path), 2]
    assert image.size == shape


def test_arrays_of_more_axes_are_mosaics():
    stack = np.stack([made_up(0, number, (SIDE, SIDE)) for number in range(6)])
    listed = given_images(CARRIED, [*stack], None)
    for given_stack in (stack, stack[None], [[*stack]], (tuple(stack),)):
        (asked,) = given_images(CARRIED, given_stack, None)
        np.testing.assert_array_equal(asked.segments, listed[0].segments)
    two = given_images(CARRIED, stack.reshape(2, 3, SIDE, SIDE, 3), None)
    assert [each.segments.shape[0] for each in two] == [3, 3]


def test_a_network_of_greys_sees_greys(tmp_path):
    """Of a picture that is grey, the greys themselves."""
    grey = made_up(1, 0, (SIDE, SIDE))[..., 0]
    coloured = made_up(1, 1, (SIDE, SIDE))
    (asked,) = given_images(GREY, [grey, grey[..., None], coloured], None)
    same, one_channel, luminance = pixels(asked)
    np.testing.assert_array_equal(same[..., 0], grey)
    np.testing.assert_array_equal(one_channel[..., 0], grey)
    np.testing.assert_array_equal(
        luminance[..., 0], np.asarray(Image.fromarray(coloured).convert("L"))
    )


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_file_is_prepared_as_among_images_of_ones_own(kind, tmp_path):
    """A large JPEG is decoded no larger than needed."""
    path = tmp_path / "large"
    path.write_bytes(encoded(made_up(1, 0, (200, 160)), kind))
    (asked,) = given_images(CARRIED, [path], None)
    np.testing.assert_array_equal(pixels(asked)[0], decoded(path, SIDE, True))


FULL = np.zeros((SIDE, SIDE, 3))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("not/there.png", r"^picture not/there.png cannot be read \(No such file"),
        ([FULL, None], r"^picture 1 cannot be read \(it is of type NoneType"),
        ([FULL, "/"], r"^picture / cannot be read \(Is a directory\)"),
        (Image.new("I;16", (8, 8)), r"^picture 0 cannot be read \(it has more than 8 bits"),
        (FULL.transpose(2, 0, 1), r"shape \(3, 8, 8\)"),
        (torch.zeros(1, 8, 8), r"shape \(1, 8, 8\)"),
        (np.zeros((5, 8, 8)), r"shape \(5, 8, 8\)"),
        (np.zeros((8, 8, 2)), r"shape \(8, 8, 2\)"),
        (np.zeros((0, 8, 3)), r"shape \(0, 8, 3\)"),
        (FULL + 1.5, r"float64, do not all lie in 0..1\)"),
        (FULL * np.nan, r"float64, do not all lie in 0..1\)"),
        (FULL.astype(int) - 1, r"int64, do not all lie in 0..255\)"),
        (FULL.astype(int) + 256, r"int64, do not all lie in 0..255\)"),
        (FULL.astype(bool), r"bool, do not all lie"),
        ([], "^an empty list was given"),
        ([[FULL], []], "^an empty list was given"),
        ([FULL, [FULL]], "or one of lists and others"),
    ],
)
def test_what_is_no_picture_is_refused_in_one_line(asked, message):
    with pytest.raises(RequestError, match=message) as refusal:
        given_images(CARRIED, asked, None)
    assert "\n" not in str(refusal.value)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "damaged.png"
    path.write_bytes(encoded(made_up(0, 0))[:60])
    with pytest.raises(RequestError, match=rf"^picture {path} cannot be read .*Give a file"):
        given_images(CARRIED, path, None)


@pytest.mark.parametrize("tiles", [0, -2, 2.5, "2", (2,), (0, 3), (9, 1), (2, 2, 2), (1.0, 2)])
def test_tiles_that_are_none_are_refused(tiles):
    with pytest.raises(RequestError, match=r"^tiles=.* must be how many tiles"):
        given_images(CARRIED, FULL, tiles)


def test_mosaics_are_not_cut():
    with pytest.raises(RequestError, match=r"^tiles= cuts pictures; lists of them are mosaics"):
        given_images(CARRIED, [[FULL], [FULL]], 2)


@pytest.mark.parametrize(
    "other", [{"max_value": None}, {"input_shape": (3, 7, 1)}, {"input_shape": (2, 8, 8)}]
)
def test_a_network_of_no_square_pictures_says_so(other):
    with pytest.raises(RequestError, match="takes no square pictures"):
        given_images(CARRIED | other, FULL, None)
