"""Images as Pillow shows them: fitted to a square, upright, on white; damaged ones are refused."""

from __future__ import annotations

import io
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

from study.errors import RequestError
from study.tasks.mosaics.decoding import all_decoded, decoded, fitted
from tests.made_up.images import SIDE, encoded, made_up

TURNED = 0x0112
"""The tag of EXIF that says how a camera was held."""


def test_the_middle_square_is_taken_and_averaged():
    """Of stripes as thin as a pixel antialiasing leaves grey, of what lies outside nothing."""
    wide = np.zeros((80, 200, 3), np.uint8)
    wide[:, 60:140] = np.where(np.arange(80)[:, None] % 2, 200, 100)
    small = fitted(Image.fromarray(wide), 8)
    assert abs(small.astype(int) - 150).max() <= 16  # aliased: 50
    tall = fitted(Image.fromarray(wide.transpose(1, 0, 2)), 8)
    np.testing.assert_array_equal(tall, small.transpose(1, 0, 2))


def test_a_large_jpeg_is_as_its_png():
    """Though it is decoded at an eighth of its size."""
    ramp = np.linspace(0, 255, 640).astype(np.uint8)
    pixels = np.ascontiguousarray(np.broadcast_to(ramp[None, :, None], (640, 640, 3)))
    jpeg, png = (decoded(encoded(pixels, kind), SIDE, True) for kind in ("JPEG", "PNG"))
    assert abs(jpeg.astype(int) - png).max() <= 3


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_photo_is_turned_upright(kind):
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:8] = 255
    exif, file = Image.Exif(), io.BytesIO()
    exif[TURNED] = 6  # to be turned by 90 degrees
    Image.fromarray(pixels).save(file, kind, exif=exif, lossless=True)
    upright = decoded(file.getvalue(), 16, False).astype(int)
    assert abs(upright - np.rot90(pixels, 3)).max() <= 3


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(mode):
    image = Image.new(mode, (8, 8), 0)
    if mode == "P":
        image.info["transparency"] = 0
    assert (fitted(image, 8) == 255).all()


def _chunk(name: bytes, data: bytes, checksum: bytes = b"") -> bytes:
    """A part of a PNG; its right checksum, if none is given."""
    right = zlib.crc32(name + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + name + data + (checksum or right)


@pytest.mark.parametrize(
    "chunk",
    [
        _chunk(b"eXIf", b"MM\0*\xff\xff\xff\xff"),
        _chunk(b"tEXt", b"a\0b", checksum=b"\0\0\0\0"),
        _chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(3_000_000))),
        _chunk(b"gAMA", b"a"),
    ],
    ids=["EXIF", "checksum", "large", "short"],
)
@pytest.mark.parametrize("behind", [False, True])
def test_metadata_that_cannot_be_read_do_not_damage_an_image(chunk, behind):
    """Every viewer shows it; nothing is said of them."""
    png = encoded(made_up(0, 0))
    place = len(png) - 12 if behind else 33  # before the end, or behind the header
    broken = png[:place] + chunk + png[place:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (pixels,) = all_decoded(["it"], [broken], SIDE, False)
    np.testing.assert_array_equal(pixels, made_up(0, 0))


DAMAGED = {
    "none": (None, "identify"),
    "text": (b"<html>", "identify"),
    "cut off": (encoded(made_up(0, 0))[:60], "truncated|broken|identify"),
    "a format that is not trusted": (encoded(made_up(0, 0), "TIFF"), "identify"),
    "16 bits": (encoded(np.zeros((SIDE, SIDE), np.uint16)), "8 bits"),
    "another size": (encoded(made_up(0, 0, (16, 28))), "16 x 28 .* 12 x 12"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_an_image_that_cannot_be_used_is_named(case):
    broken, message = DAMAGED[case]
    places, whole = [f"row {row}" for row in range(301)], [encoded(made_up(0, 0))] * 300
    with pytest.raises(RequestError, match=f"^row 300 cannot be read .*({message})"):
        all_decoded(places, [*whole, broken], SIDE, False)
