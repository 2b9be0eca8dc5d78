"""Pillow and libvips in the image benchmark: images_peer.py pillow|vips|vips-debian. Reads and answers as bench-images.

`vips` is the newest library, from PyPI; `vips-debian` the system's, which pyvips falls back to without the former.
"""

import io
import sys
import time

SIZE = (400, 300)
PEER = sys.argv[1]
if PEER == "pillow":
    from PIL import Image
else:
    if PEER == "vips-debian":
        sys.modules["_libvips"] = None
    import pyvips

    # Else the second time would cost nothing.
    pyvips.cache_set_max(0)


def pillow_full(data):
    picture = Image.open(io.BytesIO(data))
    picture.load()
    return picture


def pillow_thumb(data):
    # Lets libjpeg scale to at least twice the size first: its own draft, by its default reducing_gap of 2.
    picture = Image.open(io.BytesIO(data))
    picture.thumbnail(SIZE, Image.Resampling.LANCZOS)
    return picture


def pillow_exact(data):
    return pillow_full(data).resize(SIZE, Image.Resampling.LANCZOS)


def pillow_frames(data):
    picture = Image.open(io.BytesIO(data))
    for number in range(picture.n_frames):
        picture.seek(number)
        picture.load()


def vips_frames(data):
    return pyvips.Image.new_from_buffer(data, "", n=-1).write_to_memory()


def vips_full(data):
    return pyvips.Image.new_from_buffer(data, "").write_to_memory()


def vips_thumb(data):
    return pyvips.Image.thumbnail_buffer(data, SIZE[0], height=SIZE[1]).write_to_memory()


def rgba(pixels):
    """The bytes of libvips' RGB with an alpha of 255."""
    pixels = bytes(pixels)
    out = bytearray(b"\xff") * (len(pixels) // 3 * 4)
    for channel in range(3):
        out[channel::4] = pixels[channel::3]
    return out


def version():
    if PEER == "pillow":
        from PIL import features
        return (f"Pillow {Image.__version__} (libjpeg-turbo {features.version('libjpeg_turbo')}, "
                f"libwebp {features.version('webp')}, zlib-ng {features.version('zlib_ng')})")
    return f"libvips {'.'.join(str(pyvips.version(part)) for part in range(3))}"


def main():
    for line in sys.stdin:
        words = line.split()
        if words[0] == "version":
            print(version(), flush=True)
            continue
        task, _, path, last = words
        with open(path, "rb") as file:
            data = file.read()
        if task in ("save", "exact"):
            picture = globals()[f"{PEER.split('-')[0]}_{'thumb' if task == 'save' else task}"](data)
            with open(last, "wb") as file:
                file.write(picture.convert("RGBA").tobytes() if PEER == "pillow" else rgba(picture))
            print(0, flush=True)
            continue
        run = globals()[f"{PEER.split('-')[0]}_{task}"]
        start = time.process_time_ns()
        for _ in range(int(last)):
            run(data)
        print((time.process_time_ns() - start) // int(last), flush=True)


main()
