"""Makes images of every kind, and the pixels that Pillow decodes from them: fixtures.py FOLDER

Each line of FOLDER/index.tsv describes one file: name, "exact" or "close", width, height, frames. NAME.rgba holds the
pixels of NAME: straight RGBA, 8 bits a channel, upright, the frames one after another. Samples of 16 bits are
rounded, which Pillow does not do; gamma and profiles are not applied. Pillow reads some PNGs of 16 bits and some tRNS
chunks in its own way: for these the samples that were written are the reference. For all others, the samples must
agree with Pillow, or the script fails.
"""

import base64
import io
import pathlib
import random
import struct
import sys
import zlib

from PIL import Image, ImageDraw, ImageOps, features

FOLDER = pathlib.Path(sys.argv[1])
RANDOM = random.Random(7)
INDEX = []
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def keep(name, data, frames, rule="exact"):
    """Writes a file and its frames, images of mode RGBA."""
    assert all(frame.mode == "RGBA" and frame.size == frames[0].size for frame in frames), name
    (FOLDER / name).write_bytes(data)
    (FOLDER / f"{name}.rgba").write_bytes(b"".join(frame.tobytes() for frame in frames))
    INDEX.append(f"{name}\t{rule}\t{frames[0].width}\t{frames[0].height}\t{len(frames)}\n")


def photo(width, height, alpha=False):
    """Returns an image of smooth colours, edges and a little noise; the same in every run."""
    picture = Image.merge("RGB", [
        Image.linear_gradient("L").resize((width, height)),
        Image.linear_gradient("L").rotate(90).resize((width, height)),
        Image.radial_gradient("L").resize((width, height)),
    ])
    draw = ImageDraw.Draw(picture)
    for _ in range(12):
        x, y = RANDOM.randrange(width), RANDOM.randrange(height)
        colour = tuple(RANDOM.randrange(256) for _ in range(3))
        draw.ellipse((x, y, x + width // 4, y + height // 5), fill=colour)
    noise = Image.frombytes("RGB", picture.size, RANDOM.randbytes(width * height * 3))
    picture = Image.blend(picture, noise, 0.08)
    if alpha:
        mask = Image.radial_gradient("L").resize((width, height))
        ImageDraw.Draw(mask).rectangle((0, 0, width // 3, height // 3), fill=0)
        ImageDraw.Draw(mask).rectangle((width // 2, 0, width, height // 4), fill=255)
        picture.putalpha(mask)
    return picture


def saved(picture, kind, **options):
    into = io.BytesIO()
    picture.save(into, kind, **options)
    return into.getvalue()


def opened(data):
    return Image.open(io.BytesIO(data))


# PNG: written here, since Pillow writes few of its kinds.

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def packed(samples, depth):
    """Returns one row of samples as bytes, the first in the highest bits."""
    if depth == 16:
        return b"".join(struct.pack(">H", sample) for sample in samples)
    row, bits, count = bytearray(), 0, 0
    for sample in samples:
        bits, count = bits << depth | sample, count + depth
        if count == 8:
            row.append(bits)
            bits, count = 0, 0
    if count:
        row.append(bits << 8 - count)
    return bytes(row)


def filtered(rows, pixel_bytes):
    """Returns each row after the byte of its filter; the five filters alternate."""
    out, above = bytearray(), b""
    for number, row in enumerate(rows):
        kind = number % 5
        above = above or bytes(len(row))
        out.append(kind)
        for i, value in enumerate(row):
            left = row[i - pixel_bytes] if i >= pixel_bytes else 0
            up, corner = above[i], above[i - pixel_bytes] if i >= pixel_bytes else 0
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda near: abs(guess - near))
            out.append(value - (0, left, up, (left + up) // 2, paeth)[kind] & 255)
        above = row
    return bytes(out)


def png(width, height, colour, depth, pixels, interlaced=False, extra=b""):
    pixel_bytes = max(1, CHANNELS[colour] * depth // 8)
    body = b""
    for x0, y0, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        rows = [packed([sample for x in range(x0, width, dx) for sample in pixels[y][x]], depth)
                for y in range(y0, height, dy)]
        if x0 < width:
            body += filtered(rows, pixel_bytes)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    # Two IDAT chunks: the stream can be split anywhere.
    stream = zlib.compress(body, 6)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", stream[:17])
            + chunk(b"IDAT", stream[17:]) + chunk(b"IEND", b""))


def expected(width, height, colour, depth, pixels, palette, transparent, cuts=False):
    """Returns the pixels of the samples by the PNG specification (third edition, 12.4 and 13.12 without gamma). If
    `cuts` is true, the samples of 16 bits are cut to their high byte, as in Pillow, and not rounded."""
    def level(sample):
        if depth == 16:
            return sample >> 8 if cuts else (sample + 128) // 257
        return sample * 255 // ((1 << depth) - 1)

    out = bytearray()
    for row in pixels:
        for pixel in row:
            if colour == 3:
                alpha = transparent[pixel[0]] if transparent and pixel[0] < len(transparent) else 255
                out += bytes((*palette[pixel[0]], alpha))
            elif colour in (0, 4):
                alpha = level(pixel[1]) if colour == 4 else 0 if transparent == pixel else 255
                out += bytes((*[level(pixel[0])] * 3, alpha))
            else:
                alpha = level(pixel[3]) if colour == 6 else 0 if transparent == pixel else 255
                out += bytes((*map(level, pixel[:3]), alpha))
    return Image.frombytes("RGBA", (width, height), bytes(out))


def pngs():
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for transparency in (False, True) if colour in (0, 2, 3) else (False,):
                for interlaced in (False, True):
                    for width, height in ((61, 47), (3, 2), (1, 1)):
                        one_png(colour, depth, transparency, interlaced, width, height)


def one_png(colour, depth, transparency, interlaced, width, height):
    most = (1 << depth) - 1
    pixels = [[tuple((x * (3 + c) + y * 5 + RANDOM.randrange(most // 8 + 2)) * (most // 255 + 1) % (most + 1)
                     for c in range(CHANNELS[colour])) for x in range(width)] for y in range(height)]
    palette, transparent, extra = None, None, b""
    if colour == 3:
        palette = [tuple(RANDOM.randrange(256) for _ in range(3)) for _ in range(most + 1)]
        extra += chunk(b"PLTE", bytes(value for entry in palette for value in entry))
    if transparency:
        if colour == 3:
            # Fewer entries than the palette has: the rest is opaque.
            transparent = bytes(RANDOM.randrange(256) for _ in range(max(1, most * 2 // 3)))
            extra += chunk(b"tRNS", transparent)
        else:
            transparent = pixels[height // 2][width // 2]
            if depth == 16 and width > 3:
                # Equal only in the high byte: it stays opaque.
                pixels[0][0] = tuple(sample ^ 1 for sample in transparent)
            extra += chunk(b"tRNS", struct.pack(f">{len(transparent)}H", *transparent))
    name = f"{'trns-' if transparency else ''}{'adam7-' if interlaced else ''}c{colour}-d{depth}-{width}x{height}.png"
    data = png(width, height, colour, depth, pixels, interlaced, extra)
    truth = expected(width, height, colour, depth, pixels, palette, transparent)
    # Pillow returns 16-bit grey unchanged, and compares a tRNS of fewer than 8 or of 16 bits with samples that it has
    # already scaled to 8 bits.
    cut = expected(width, height, colour, depth, pixels, palette, transparent, cuts=True)
    if not (colour in (0, 2) and depth == 16) and not (transparency and depth < 8 and colour == 0):
        assert opened(data).convert("RGBA").tobytes() == cut.tobytes(), name
    if colour == 0 and depth == 16 and not transparency:
        high = opened(data).tobytes()[1::2]
        assert high == cut.tobytes()[::4], name
    keep(name, data, [truth])


def odd_pngs():
    """Makes files with chunks about colour, which must change no pixel, and files that Pillow itself writes."""
    width, height = 40, 30
    picture = photo(width, height)
    source = picture.load()
    pixels = [[source[x, y] for x in range(width)] for y in range(height)]
    for name, extra in {
        "gamma": chunk(b"gAMA", struct.pack(">I", 100000)),
        "srgb": chunk(b"sRGB", b"\0"),
        "background": chunk(b"bKGD", struct.pack(">HHH", 1, 2, 3)),
        "significant": chunk(b"sBIT", b"\5\6\5"),
        "text": chunk(b"tEXt", b"Comment\0nothing"),
    }.items():
        data = png(width, height, 2, 8, pixels, extra=extra)
        keep(f"chunk-{name}.png", data, [opened(data).convert("RGBA")])
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        data = saved(photo(90, 70, alpha=mode.endswith("A")).convert(mode), "PNG")
        keep(f"pillow-{mode}.png", data, [opened(data).convert("RGBA")])


# GIF: a transparent pixel has no colour; Tern decodes it as 0.


def colourless(picture):
    picture = picture.convert("RGBA")
    return Image.composite(picture, Image.new("RGBA", picture.size), picture.getchannel("A").point(lambda a: a and 255))


def frames_of(data):
    image = opened(data)
    frames = []
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        frames.append(colourless(image))
    return frames


def gifs():
    for name, colours in {"2": 2, "7": 7, "16": 16, "256": 256}.items():
        for interlace in (0, 1):
            picture = photo(73, 51).quantize(colours)
            data = saved(picture, "GIF", interlace=interlace)
            keep(f"colours-{name}-{'interlaced' if interlace else 'plain'}.gif", data, frames_of(data))
    picture = photo(50, 40).quantize(32)
    data = saved(picture, "GIF", transparency=picture.getpixel((20, 20)))
    keep("transparent.gif", data, frames_of(data))
    for name, colours, size in (("one", 2, (1, 1)), ("wide", 4, (300, 1)), ("high", 4, (1, 300))):
        data = saved(photo(*size).quantize(colours), "GIF")
        keep(f"{name}.gif", data, frames_of(data))
    for disposal in (0, 1, 2, 3, [1, 2, 3, 1, 2, 3]):
        frames = []
        for step in range(6):
            frame = Image.new("RGBA", (60, 44))
            draw = ImageDraw.Draw(frame)
            draw.ellipse((step * 7, 4, step * 7 + 22, 30), fill=(250, step * 40, 30, 255))
            draw.rectangle((2, 30 - step, 20 + step, 40), fill=(20, 200, step * 50, 255))
            frames.append(frame)
        data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:], disposal=disposal, loop=3,
                     duration=[100, 20, 0, 50, 70, 90])
        label = "mixed" if isinstance(disposal, list) else disposal
        keep(f"disposal-{label}.gif", data, frames_of(data))


# BMP


def bitmap(width, height, bits, rows, compression=0, masks=b"", palette=b"", top_down=False):
    header = 40 + len(masks)
    start = 14 + header + len(palette)
    return (struct.pack("<2sIHHI", b"BM", start + len(rows), 0, 0, start)
            + struct.pack("<IiiHHIIiiII", 40, width, -height if top_down else height, 1, bits, compression,
                          len(rows), 2835, 2835, len(palette) // 4, 0) + masks + palette + rows)


def bmps():
    for mode in ("1", "L", "P", "RGB"):
        for width in (31, 64):
            data = saved(photo(width, 20).convert(mode), "BMP")
            keep(f"pillow-{mode}-{width}.bmp", data, [opened(data).convert("RGBA")])
    width, height = 21, 13
    palette = bytes(value for _ in range(256) for value in (*RANDOM.randbytes(3), 0))
    made = {
        "4-bits": (4, RANDOM.randbytes(12 * height), 0, b"", palette[:64], False),
        "8-top-down": (8, RANDOM.randbytes(24 * height), 0, b"", palette, True),
        "555": (16, RANDOM.randbytes(44 * height), 0, b"", b"", False),
        "565": (16, RANDOM.randbytes(44 * height), 3, struct.pack("<III", 0xF800, 0x7E0, 0x1F), b"", False),
        "24-top-down": (24, RANDOM.randbytes(64 * height), 0, b"", b"", True),
        "32": (32, RANDOM.randbytes(84 * height), 0, b"", b"", False),
        "32-masks": (32, RANDOM.randbytes(84 * height), 3, struct.pack("<III", 0xFF0000, 0xFF00, 0xFF), b"", False),
        "rle8": (8, b"".join(bytes((9, y, 12, y + 7)) + b"\0\0" for y in range(height)) + b"\0\1", 1, b"", palette,
                 False),
    }
    for name, (bits, rows, compression, masks, table, top_down) in made.items():
        data = bitmap(width, height, bits, rows, compression, masks, table, top_down)
        keep(f"{name}.bmp", data, [opened(data).convert("RGBA")])


# QOI


def qois():
    for mode in ("RGB", "RGBA"):
        for width in (1, 33, 300):
            picture = photo(width, 40, alpha=mode == "RGBA")
            data = saved(picture, "QOI")
            keep(f"pillow-{mode}-{width}.qoi", data, [opened(data).convert("RGBA")])
    # Random chunks: every kind of them, and runs that cross rows. Pillow reads what follows the pixels, too.
    for number, channels in enumerate((3, 4, 4)):
        data = (b"qoif" + struct.pack(">IIBB", 61, 47, channels, 0) + RANDOM.randbytes(61 * 47 * 5)
                + b"\0\0\0\0\0\0\0\1")
        keep(f"random-{number}.qoi", data, [opened(data).convert("RGBA")])


# WebP, the rest of PNG, icons, JPEG


def webps():
    for alpha in (False, True):
        picture = photo(121, 83, alpha)
        label = "-alpha" if alpha else ""
        for name, options in {
            "lossy-20": {"quality": 20}, "lossy-80": {"quality": 80}, "lossy-100": {"quality": 100, "method": 6},
            "lossless": {"lossless": True}, "lossless-exact": {"lossless": True, "exact": True},
        }.items():
            data = saved(picture, "WEBP", **options)
            keep(f"{name}{label}.webp", data, [opened(data).convert("RGBA")])
    for name, picture in (("one", photo(1, 1)), ("flat", Image.new("RGB", (64, 64), "teal")),
                          ("few", photo(70, 50).quantize(9).convert("RGB"))):
        for lossless in (False, True):
            data = saved(picture, "WEBP", lossless=lossless)
            keep(f"{name}-{'lossless' if lossless else 'lossy'}.webp", data, [opened(data).convert("RGBA")])
    for lossless in (False, True):
        frames = [photo(48, 36, alpha=True) for _ in range(4)]
        data = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], duration=70, loop=2,
                     lossless=lossless, minimize_size=True)
        keep(f"animated-{'lossless' if lossless else 'lossy'}.webp", data, rgba_frames(data))


def apngs():
    """Makes animated PNGs with every way to dispose of a frame and to blend it.

    Half-transparent pixels occur only in frames that replace the canvas, because Pillow's blending dims them, and
    because Pillow does not restore the pixels below a blended frame.
    """
    for disposal in (0, 1, 2):
        for blend in (0,) if disposal == 2 else (0, 1):
            frames = []
            for step in range(5):
                frame = Image.new("RGBA", (52, 40))
                draw = ImageDraw.Draw(frame)
                draw.ellipse((step * 7, 4, step * 7 + 22, 30), fill=(250, step * 40, 30, 255 if blend else 200))
                draw.rectangle((2, 30 - step, 20 + step, 37), fill=(20, 200, step * 50, 255 if blend else 90))
                frames.append(frame)
            data = saved(frames[0], "PNG", save_all=True, append_images=frames[1:], disposal=disposal, blend=blend,
                         duration=[100, 20, 30, 50, 70], loop=2)
            keep(f"animated-{disposal}-{blend}.png", data, rgba_frames(data))


def icons():
    picture = photo(24, 24, alpha=True)
    for name in ("png", "bmp"):
        data = saved(picture, "ICO", sizes=[(24, 24), (16, 16)], bitmap_format=name)
        keep(f"{name}.ico", data, [opened(data).convert("RGBA")])

# HEIC files of 24 by 16, 40 by 30 and 64 by 64 pixels, coded by x265: alpha, a grid that is cropped, turned and
# mirrored, and 10 bits.
HEICS = {
    "alpha": """
        AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWljAAACpW1ldGEAAAAAAAAAIWhkbHIAAAAAAAAAAHBpY3QAAAAAAAAAAAAAAAAAAAAADnBpdG0AAAAA
        AAEAAABQaWxvYwEAAABEAAAEAAEAAQAAAAEAAAAAAAAACAACAAEAAAABAAAACAAAAAgAAwAAAAAAAQAAAsUAAAEXAAQAAAAAAAEAAAPcAAAA
        mgAAAGJpaW5mAAAAAAAEAAAAFWluZmUCAAAAAAEAAGdyaWQAAAAAFWluZmUCAAABAAIAAGdyaWQAAAAAFWluZmUCAAABAAMAAGh2YzEAAAAA
        FWluZmUCAAABAAQAAGh2YzEAAAABamlwcnAAAAE/aXBjbwAAABRpc3BlAAAAAAAAABgAAAAQAAAAJ2F1eEMAAAAAdXJuOm1wZWc6aGV2Yzoy
        MDE1OmF1eGlkOjEAAAAAd2h2Y0MBBAgAAAAAAAAAAAAe8AD8//j4AAAPAyAAAQAXQAEMAf//BAgAAAMAnjgAAAMAAB66AkAhAAEAKkIBAQQI
        AAADAJ44AAADAAAekAQQILLdVdNc3AgIGBAAAAMAEAAAAwAQgCIAAQAIRAHBcxgwGJAAAAAUaXNwZQAAAAAAAABAAAAAQAAAAHFodmNDAQQI
        AAAAAAAAAAAAHvAA/Pz4+AAADwMgAAEAF0ABDAH//wQIAAADAJ/4AAADAAAeugJAIQABACZCAQEECAAAAwCf+AAAAwAAHsCCBBZbqrprmwIA
        AAMAAgAAAwACECIAAQAGRAHBc8GJAAAAI2lwbWEAAAAAAAAABAABAQEAAgIBAgADAoMEAAQChQQAAAA2aXJlZgAAAAAAAAAOZGltZwABAAEA
        AwAAAA5kaW1nAAIAAQAEAAAADmF1eGwAAgABAAEAAAAYaWRhdAAAAAAAGAAQAAAAAAAYABAAAAG5bWRhdAAAARMoAa8GsgiILy2AsmUeIolK
        vxjfYooveaQqDSMI2tMv+Y03ukdI/EMNwErP415dfXV/HuMBl9RW1ADAUVhjRyVyj2vR+AYh2URA6DkOsBu8rBmDoDqh753BQKeNKhryfTNj
        pvHpfMvfn/itIu/HsaSaz4/R+b/GBoUiuOuuFjqmgWTZY3EKNg7VIxkD9/diNAZY/9BY6Uc9JXnN7tR/bkrNfTbnFlvj0TY/zdz8vQy6Vq/j
        2Pnfhzt0MXh5XiIN4uNKX9CV2PFMlp7uceRfeIfKcaNazvBAwzTGwzXXJywtVnI15vkIYcCbvyks5cyV1lkau9L+uqn6cRilf/Hastu/8KWp
        /zGTQ+08C3Peoxaw9UTngAAAAJYoAa4NZDYRo7vDLCGZOzI2pQS6z+dsGVrvHt9x760lKqQcCeNpl/JAhB153QP1TBnnDKeXfl6UV+insarq
        tKgxVC3AGkeZA/lmOKHgDpJNAgJSnoR6aeiVchy8woB5wfU6CSlD1JCZWleqKfBSWNCuSXgV/LoPWFrDHr4nsQoHbC8MN0ccgWzP0jjtSSSa
        1uaOhNpMzRY=
    """,
    "turned": """
        AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWljAAAB7G1ldGEAAAAAAAAAIWhkbHIAAAAAAAAAAHBpY3QAAAAAAAAAAAAAAAAAAAAADnBpdG0AAAAA
        AAEAAAAwaWxvYwEAAABEAAACAAEAAQAAAAEAAAAAAAAACAACAAAAAAABAAACDAAAARcAAAA4aWluZgAAAAAAAgAAABVpbmZlAgAAAAABAABn
        cmlkAAAAABVpbmZlAgAAAQACAABodmMxAAAAARlpcHJwAAAA9GlwY28AAAAUaXNwZQAAAAAAAABYAAAASAAAAChjbGFwAAAAKAAAAAEAAAAe
        AAAAAf////wAAAAB////+gAAAAEAAAAJaXJvdAEAAAAJaW1pcgEAAAATY29scm5jbHgADAANAAaAAAAAd2h2Y0MBBAgAAAAAAAAAAAAe8AD8
        //j4AAAPAyAAAQAXQAEMAf//BAgAAAMAnjgAAAMAAB66AkAhAAEAKkIBAQQIAAADAJ44AAADAAAekAQQILLdVdNc3AgIGBAAAAMAEAAAAwAQ
        gCIAAQAIRAHBcxgwGJAAAAAUaXNwZQAAAAAAAABAAAAAQAAAAB1pcG1hAAAAAAAAAAIAAQUBgoOEBQACAoYHAAAAIGlyZWYAAAAAAAAAFGRp
        bWcAAQAEAAIAAgACAAIAAAAQaWRhdAAAAQEAWABIAAABH21kYXQAAAETKAGvBrIIiC8tgLJlHiKJSr8Y32KKL3mkKg0jCNrTL/mNN7pHSPxD
        DcBKz+NeXX11fx7jAZfUVtQAwFFYY0clco9r0fgGIdlEQOg5DrAbvKwZg6A6oe+dwUCnjSoa8n0zY6bx6XzL35/4rSLvx7Gkms+P0fm/xgaF
        IrjrrhY6poFk2WNxCjYO1SMZA/f3YjQGWP/QWOlHPSV5ze7Uf25KzX025xZb49E2P83c/L0Mulav49j534c7dDF4eV4iDeLjSl/QldjxTJae
        7nHkX3iHynGjWs7wQMM0xsM11ycsLVZyNeb5CGHAm78pLOXMldZZGrvS/rqp+nEYpX/x2rLbv/Clqf8xk0PtPAtz3qMWsPVE54A=
    """,
    "deep": """
        AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWljAAABLm1ldGEAAAAAAAAAIWhkbHIAAAAAAAAAAHBpY3QAAAAAAAAAAAAAAAAAAAAADnBpdG0AAAAA
        AAEAAAAgaWxvYwEAAABEAAABAAEAAAAAAAEAAAFOAAAAwgAAACNpaW5mAAAAAAABAAAAFWluZmUCAAAAAAEAAGh2YzEAAAAAsGlwcnAAAACT
        aXBjbwAAAHdodmNDAQQIAAAAAAAAAAAAHvAA/P/6+gAADwMgAAEAF0ABDAH//wQIAAADAJw4AAADAAAeugJAIQABACpCAQEECAAAAwCcOAAA
        AwAAHpAEECCbLdVdNc3AgIGBAAADAAEAAAMAAQgiAAEACEQBwXMYMBiQAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAVaXBtYQAAAAAAAAABAAEC
        gQIAAADKbWRhdAAAAL4oAa8GsgiAIgmAsnuHxGUOqsgHSFBIWpcRsf8E/O7yIN9dPZ5oGOhnrB/8HJJqRn/3Msx4xjiXntkcdqHIrDQk5wpr
        qF7CPT6/4r/G/ueRC0iqL+q/XZui5xiN5i1pCQJGIRJSLlf04aSxLUc7qro0l326O7CJ6cDqV/B/e/pCmSunadG11wDIjfkwWMYm2d7hwPph
        ii9rncVMk6rveqlurgrE/e/FmvTAjeLU4Lp98qP/wsJii/6A/hawWGcm
    """,
}

# JPEG XL, which Pillow does not write: small files of libjxl 0.7.
JPEG_XLS = {
    "alpha": (
        "/woDwYLiQggIEAAYAksoNBZe7ljsUlBQUFBwRCNEFIygwMwYHb3jAiC5MQYvYYwxxjAGh1DYMcaYuGSMwdHYlQBgACGAAKKAAcD2Mp5Y"
        "A/j++f//X/L/Z/H/lUL+//+yZP//+v+v///6/6/z/8r9IvyaPru3pDXFrsvaTTyXQZBbHvf4//j/+P/4T/lP+f97C5kG"
    ),
    "lossy": (
        "/woDQUJxIQASiAIA4AFd5RIAABUqo4wbvJzr+fJDh8W0jesMbbVtYUmiyDg2SSdwSBILqLf5wi8QxaZKzBPHXPABmspq2atY65NDJStD"
        "VbaIBABUkkhH5GR4nwSxioxuwrbbn293s6Z7XaujAsk0AKByzFkSMqTS679Xz4ejaSrzXVGQugM="
    ),
    "grey": (
        "/woDwaK4EAgIEAD0AEsosXExD1eFWRISSgIiRsyMGWNuROEJace5EAAMIAQQAMQg2IDbav9/G+/062D+/3Mr0ub8FZGD42NJOwg="
    ),
    "moving": (
        "/wrBBaPBmggIoAwAAIABSxib7UJhp6CgpBgpGLHUMQbDMTYGh2Mw+3BljIgxWAFJijFYOcbg9EIEEADI3gf0//+C/88B/wvk/3/1v9Qf"
        "29IZ091d3j1H5Cz2fM0+/mfn///j/x/e/uH4Hww0IbUBCAggGQAAfAFLGJvtQmGnoKCkGCkYsdQxBsPxGmMwHIPZ97yDOJIUY7ByjMHp"
        "hQggAJC9F/gAgP//xf//AKoO3bBHw2+fr/O2u7u7u7x7gEiL3/HIz+8f5f//x9M/vP+D7z+w0ENKAAgIoGUAAJABSxib7UJhp6CgpBhF"
        "jFjqGIPhGBtjjBejYzD7njWAI0kxBivHGJxeiAACANn7gGoAKPy/6/+Tcv7Q8////3/7/z+nwzskubt3d5d3rxAJqhu6+Xn4o/z//3j6"
        "h/d/4PyHHTtofg=="
    ),
}


def seeds():
    """Makes files for fuzzing only, without entries in the index."""
    for name, options in {"plain": {}, "lossless": {"quality": 100, "subsampling": "4:4:4"}}.items():
        for alpha in (False, True):
            picture = photo(40, 30, alpha)
            (FOLDER / f"{name}{'-alpha' if alpha else ''}.avif").write_bytes(saved(picture, "AVIF", **options))
    small = photo(24, 18)
    for compression in ("raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "jpeg"):
        (FOLDER / f"small-{compression}.tiff").write_bytes(saved(small, "TIFF", compression=compression))
    for compression in ("group3", "group4"):
        (FOLDER / f"small-{compression}.tiff").write_bytes(saved(small.convert("1"), "TIFF", compression=compression))
    small.putalpha(small.convert("L"))
    (FOLDER / "small-alpha.tiff").write_bytes(saved(small, "TIFF", compression="tiff_lzw", strip_size=200))
    for name, text in HEICS.items():
        (FOLDER / f"{name}.heic").write_bytes(base64.b64decode(text))
    for name, text in JPEG_XLS.items():
        (FOLDER / f"{name}.jxl").write_bytes(base64.b64decode(text))
    frames = [photo(32, 24) for _ in range(3)]
    data = saved(frames[0], "AVIF", save_all=True, append_images=frames[1:], duration=50)
    (FOLDER / "animated.avif").write_bytes(data)
    small = photo(24, 18)
    (FOLDER / "small-gain-map.jpg").write_bytes(
        gain_map(saved(small, "JPEG", quality=80), saved(photo(12, 9).convert("L"), "JPEG", quality=80)))
    profile = rgb_profile()
    for kind, name in (("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp")):
        (FOLDER / f"small-profile.{name}").write_bytes(saved(small, kind, icc_profile=profile))


def gain_map(base, gains):
    """Returns a JPEG with a second one behind it, whose levels are gains (Ultra HDR; CIPA DC-007 for the index)."""
    def segment(marker, name, body):
        return struct.pack(">BBH", 0xFF, marker, len(name) + len(body) + 3) + name + b"\0" + body

    text = (b'<rdf:Description hdrgm:Version="1.0" hdrgm:GainMapMin="-0.5" hdrgm:GainMapMax="3.0" hdrgm:Gamma="1.2" '
            b'hdrgm:OffsetSDR="0.02" hdrgm:HDRCapacityMin="0" hdrgm:HDRCapacityMax="3"></rdf:Description>')
    second = gains[:2] + segment(0xE1, b"http://ns.adobe.com/xap/1.0/", text) + gains[2:]
    entries = [(0xB000, 7, 4, b"0100"), (0xB001, 4, 1, struct.pack(">I", 2)), (0xB002, 7, 32, struct.pack(">I", 50))]
    index = b"MM" + struct.pack(">HIH", 42, 8, 3)
    index += b"".join(struct.pack(">HHI", *entry[:3]) + entry[3] for entry in entries) + bytes(4)
    index += struct.pack(">IIII", 0x30000, len(base) + 90, 0, 0)
    # Offsets count from the head of the index.
    index += struct.pack(">IIII", 0, len(second), len(index) + 16 + len(base) - 2, 0)
    return base[:2] + segment(0xE2, b"MPF", index) + base[2:] + second


def rgb_profile():
    """Returns an ICC profile of red, green and blue, with a curve of 2.2."""
    def point(x, y, z):
        return b"XYZ " + bytes(4) + struct.pack(">iii", *(round(value * 65536) for value in (x, y, z)))

    curve = b"curv" + bytes(4) + struct.pack(">IHH", 1, 0x233, 0)
    tags = [(b"rXYZ", point(0.61, 0.31, 0.02)), (b"gXYZ", point(0.2, 0.63, 0.06)), (b"bXYZ", point(0.15, 0.06, 0.74)),
            (b"wtpt", point(0.9642, 1, 0.8249)), *((name, curve) for name in (b"rTRC", b"gTRC", b"bTRC"))]
    at, table, bodies = 132 + len(tags) * 12, b"", b""
    for name, body in tags:
        table += name + struct.pack(">II", at + len(bodies), len(body))
        bodies += body
    head = bytearray(128)
    head[0:4], head[8:12] = struct.pack(">I", at + len(bodies)), bytes([2, 0x40, 0, 0])
    head[12:24], head[36:40] = b"mntrRGB XYZ ", b"acsp"
    head[68:80] = point(0.9642, 1, 0.8249)[8:]
    return bytes(head) + struct.pack(">I", len(tags)) + table + bodies


def rgba_frames(data):
    image = opened(data)
    frames = []
    for number in range(image.n_frames):
        image.seek(number)
        frames.append(image.convert("RGBA"))
    return frames


def keep_jpeg(name, data):
    keep(f"{name}.jpg", data, [opened(data).convert("RGB").convert("RGBA")], "close")


def jpegs():
    for width, height in ((160, 120), (97, 61), (8, 8), (1, 1)):
        picture = photo(width, height)
        for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
            for progressive in (False, True):
                label = f"{subsampling.replace(':', '')}{'-progressive' if progressive else ''}-{width}x{height}"
                keep_jpeg(label, saved(picture, "JPEG", quality=85, subsampling=subsampling, progressive=progressive))
        keep_jpeg(f"grey-{width}x{height}", saved(picture.convert("L"), "JPEG", quality=85))
    picture = photo(160, 120)
    keep_jpeg("grey-progressive", saved(picture.convert("L"), "JPEG", progressive=True))
    keep_jpeg("low", saved(picture, "JPEG", quality=8))
    keep_jpeg("optimized", saved(picture, "JPEG", quality=95, optimize=True))
    keep_jpeg("restart-rows", saved(picture, "JPEG", restart_marker_rows=1))
    keep_jpeg("restart-blocks", saved(picture, "JPEG", restart_marker_blocks=3))
    keep_jpeg("restart-progressive", saved(picture, "JPEG", restart_marker_blocks=3, progressive=True))
    cmyk = picture.convert("CMYK")
    # Pillow writes no black, so this adds some.
    black = picture.convert("L").point(lambda value: (255 - value) // 2)
    cmyk = Image.merge("CMYK", (*cmyk.split()[:3], black))
    for progressive in (False, True):
        data = saved(cmyk, "JPEG", quality=90, progressive=progressive)
        label = "-progressive" if progressive else ""
        keep_jpeg(f"cmyk{label}", data)
        # The same inks as luma, chroma and black, as the last byte of Adobe's marker states.
        inks = Image.merge("RGB", cmyk.split()[:3])
        ycck = Image.merge("CMYK", (*inks.convert("YCbCr").split(), cmyk.getchannel("K")))
        data = bytearray(saved(ycck, "JPEG", quality=90, progressive=progressive))
        at = data.index(b"\xff\xee\x00\x0eAdobe")
        data[at + 15] = 2
        keep_jpeg(f"ycck{label}", bytes(data))
        # Without the marker, the inks are inverted, too.
        data = saved(cmyk, "JPEG", quality=90, progressive=progressive)
        at = data.index(b"\xff\xee\x00\x0eAdobe")
        keep_jpeg(f"cmyk-bare{label}", data[:at] + data[at + 16:])


def tiffs():
    picture = photo(61, 47)
    clear = picture.copy()
    clear.putalpha(picture.convert("L"))
    kinds = {
        "1": picture.convert("1"), "L": picture.convert("L"), "P": picture.convert("P", palette=Image.Palette.ADAPTIVE),
        "RGB": picture.convert("RGB"), "RGBA": clear,
    }
    for mode, image in kinds.items():
        for compression in ("raw", "packbits", "tiff_lzw", "tiff_adobe_deflate"):
            # Strips of one row, of some rows, and of the whole picture.
            for strip in (1, 1 << 10, 1 << 20):
                data = saved(image, "TIFF", compression=compression, strip_size=strip)
                keep(f"{mode}-{compression}-{strip}.tiff", data, [opened(data).convert("RGBA")])
    for compression in ("group3", "group4"):
        data = saved(kinds["1"], "TIFF", compression=compression)
        keep(f"1-{compression}.tiff", data, [opened(data).convert("RGBA")])
    inks = kinds["RGB"].convert("CMYK")
    data = saved(inks, "TIFF", compression="tiff_lzw")
    keep("CMYK.tiff", data, [opened(data).convert("RGB").convert("RGBA")], "close")
    for name, image in (("L", kinds["L"]), ("RGB", kinds["RGB"])):
        data = saved(image, "TIFF", compression="jpeg", quality=90)
        keep(f"{name}-jpeg.tiff", data, [opened(data).convert("RGB").convert("RGBA")], "close")


def oriented():
    picture = photo(33, 20)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        for name, kind, options, rule in (
            ("jpg", "JPEG", {"quality": 95, "subsampling": "4:4:4"}, "close"), ("png", "PNG", {}, "exact"),
            ("webp", "WEBP", {"lossless": True}, "exact"),
        ):
            data = saved(picture, kind, exif=exif, **options)
            shown = ImageOps.exif_transpose(opened(data)).convert("RGBA")
            keep(f"orientation-{orientation}.{name}", data, [shown], rule)


FOLDER.mkdir(parents=True, exist_ok=True)
for make in (pngs, odd_pngs, apngs, gifs, bmps, qois, icons, webps, jpegs, tiffs, oriented, seeds):
    make()
(FOLDER / "index.tsv").write_text("".join(INDEX))
print(f"{len(INDEX)} files, Pillow {Image.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}, "
      f"libwebp {features.version('webp')}")
