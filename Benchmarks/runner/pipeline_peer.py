"""Python's ways to 200 thumbnails in the pipeline benchmark: pipeline_peer.py aiohttp|requests|vips|vips-debian

Reads lines ADDRESS COUNT and answers each with the nanoseconds of the wall and of the processor, as bench-pipeline does.
Each has two threads to decode on, and keeps its connections from one line to the next.
"""

import asyncio
import concurrent.futures
import io
import sys
import threading
import time

SIZE = (400, 300)
PEER = sys.argv[1]
THREADS = concurrent.futures.ThreadPoolExecutor(2)
if PEER in ("aiohttp", "requests"):
    from PIL import Image
else:
    if PEER == "vips-debian":
        sys.modules["_libvips"] = None
    import pyvips

    # Else the second time would cost nothing.
    pyvips.cache_set_max(0)
if PEER == "requests":
    import requests

    LOCAL = threading.local()
else:
    import aiohttp


def pillow_thumb(data):
    picture = Image.open(io.BytesIO(data))
    picture.thumbnail(SIZE, Image.Resampling.LANCZOS)
    return picture.size


def vips_thumb(data):
    picture = pyvips.Image.thumbnail_buffer(data, SIZE[0], height=SIZE[1])
    picture.write_to_memory()
    return picture.width, picture.height


def check(sizes):
    if any(size != SIZE for size in sizes):
        sys.exit(f"pipeline_peer.py: {PEER} made pictures of other sizes")


def get(address):
    if not hasattr(LOCAL, "session"):
        LOCAL.session = requests.Session()
    return pillow_thumb(LOCAL.session.get(address).content)


async def fetched(session, address, thumb):
    async with session.get(address) as response:
        data = await response.read()
    return await asyncio.get_running_loop().run_in_executor(THREADS, thumb, data)


async def answer(session, base, count):
    thumb = pillow_thumb if PEER == "aiohttp" else vips_thumb
    check(await asyncio.gather(*(fetched(session, f"{base}{index}", thumb) for index in range(count))))


def say(start, spent):
    print(time.perf_counter_ns() - start, time.process_time_ns() - spent, flush=True)


async def serve():
    async with aiohttp.ClientSession() as session:
        for line in sys.stdin:
            base, count = line.split()
            start, spent = time.perf_counter_ns(), time.process_time_ns()
            await answer(session, base, int(count))
            say(start, spent)


def main():
    if PEER != "requests":
        return asyncio.run(serve())
    for line in sys.stdin:
        base, count = line.split()
        start, spent = time.perf_counter_ns(), time.process_time_ns()
        check(THREADS.map(get, [f"{base}{index}" for index in range(int(count))]))
        say(start, spent)


main()
