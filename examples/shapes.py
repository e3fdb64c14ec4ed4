"""Draws 300 images of each of five shapes into `shapes/`, for docs/your-own/pictures.md."""

import random
from pathlib import Path

from PIL import Image, ImageDraw

random.seed(0)
for name, corners in {"circle": 0, "triangle": 3, "square": 4, "hexagon": 6, "octagon": 8}.items():
    folder = Path("shapes") / name
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(300):
        width, height = random.randint(60, 200), random.randint(60, 200)
        image = Image.new("RGB", (width, height), tuple(random.choices(range(120), k=3)))
        colour = tuple(random.choices(range(120, 256), k=3))
        size = random.uniform(0.25, 0.45) * min(width, height)
        circle = (width / 2, height / 2, size)
        draw = ImageDraw.Draw(image)
        if corners:
            draw.regular_polygon(circle, corners, random.uniform(0, 360), colour)
        else:
            draw.circle(circle[:2], size, colour)
        image.save(folder / f"{number}.png")
