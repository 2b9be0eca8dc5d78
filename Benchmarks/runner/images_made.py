"""Photo-like pictures, made by code and the same in every run: images_made.py FOLDER

photo-1 has 1 megapixel, photo-12 twelve, photo-0 next to none. Clouds of several octaves, hard edges, and grain.
"""

import pathlib
import random
import sys

from PIL import Image, ImageDraw, ImageFilter

SIZES = {"0": (32, 24), "1": (1152, 864), "12": (4000, 3000)}


def photo(width, height):
    numbers = random.Random(11)
    picture = Image.merge("RGB", [Image.linear_gradient("L").rotate(turn).resize((width, height))
                                  for turn in (0, 90, 180)])
    octave = 0
    while (across := 8 << octave) < width:
        octave, down = octave + 1, across * 3 // 4
        clouds = Image.frombytes("RGB", (across, down), numbers.randbytes(across * down * 3))
        picture = Image.blend(picture, clouds.resize((width, height), Image.Resampling.BICUBIC), 0.5 / octave ** 0.8)
    draw = ImageDraw.Draw(picture)
    for _ in range(160):
        x, y, side = numbers.randrange(width), numbers.randrange(height), numbers.randrange(2, width // 8)
        colour = tuple(numbers.randrange(256) for _ in range(3))
        shape = numbers.choice((draw.ellipse, draw.rectangle))
        shape((x, y, x + side, y + side * numbers.randrange(2, 9) // 8), outline=colour, width=1 + side // 40)
    picture = picture.filter(ImageFilter.GaussianBlur(width / 4000))
    tile = Image.frombytes("RGB", (512, 512), numbers.randbytes(512 * 512 * 3))
    grain = Image.new("RGB", (width, height))
    for y in range(0, height, 512):
        for x in range(0, width, 512):
            grain.paste(tile, (x, y))
    return Image.blend(picture, grain, 0.05)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in SIZES.items():
        picture = photo(*size)
        picture.save(folder / f"photo-{name}.jpg", quality=85)
        picture.save(folder / f"photo-{name}.webp", quality=80)
        picture.save(folder / f"photo-{name}.png", compress_level=6)
        if name == "1":
            # A view that moves over the picture, so that every pixel of every frame changes.
            frames = [picture.crop((step * 20, step * 15, step * 20 + 400, step * 15 + 300)) for step in range(30)]
            frames[0].save(folder / "photo-1.apng", "PNG", save_all=True, append_images=frames[1:], duration=40)
            colors = [frame.quantize(256) for frame in frames]
            colors[0].save(folder / "photo-1.gif", save_all=True, append_images=colors[1:], duration=40, loop=0)


main()
