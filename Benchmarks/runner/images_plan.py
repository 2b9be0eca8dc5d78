"""The plan of the image benchmark: measurements, limits and report."""

import math
import statistics
import tempfile
import pathlib

# Name of the row, task, format, megapixels, turns in a round, peers.
TASKS = [
    ("JPEG 1 MP, full", "full", "jpg", "1", 20, ("tern", "c", "pillow")),
    ("JPEG 12 MP, full", "full", "jpg", "12", 2, ("tern", "c", "pillow")),
    ("PNG 1 MP, full", "full", "png", "1", 5, ("tern", "c", "pillow", "vips-debian", "vips")),
    ("PNG 12 MP, full", "full", "png", "12", 1, ("tern", "c", "pillow", "vips-debian", "vips")),
    ("WebP 1 MP, full", "full", "webp", "1", 10, ("tern", "c", "pillow")),
    ("WebP 12 MP, full", "full", "webp", "12", 1, ("tern", "c", "pillow", "vips")),
    ("GIF, 30 frames of 400×300", "frames", "gif", "1", 3, ("tern", "pillow", "vips-debian", "vips")),
    ("APNG, 30 frames of 400×300", "frames", "apng", "1", 3, ("tern", "pillow")),
    ("JPEG 1 MP → 400×300", "thumb", "jpg", "1", 20, ("tern", "pillow", "vips-debian", "vips")),
    ("JPEG 12 MP → 400×300", "thumb", "jpg", "12", 5, ("tern", "pillow", "vips-debian", "vips")),
    ("WebP 12 MP → 400×300", "thumb", "webp", "12", 2, ("tern", "pillow", "vips")),
    ("PNG 12 MP → 400×300", "thumb", "png", "12", 1, ("tern", "pillow", "vips-debian", "vips")),
    ("Resize 12 MP → 400×300", "resize", "png", "12", 5, ("tern",)),
    ("ThumbHash, shown at 32×24", "thumbHash", "png", "0", 1000, ("tern",)),
    ("BlurHash of 4×3, shown at 32×32", "blurHash", "png", "0", 1000, ("tern",)),
]

# Row, peer or None for milliseconds, the most that Tern may take of it. Full decoding at 95% of the C library's speed.
TARGETS = [
    *((f"{kind} {size} MP, full", "c", 1 / 0.95) for kind in ("JPEG", "PNG", "WebP") for size in (1, 12)),
    *((f"PNG {size} MP, full", "pillow", 1.0) for size in (1, 12)),
    ("PNG 12 MP, full", "vips", 0.95), ("PNG 12 MP → 400×300", "vips", 1.15),
    ("GIF, 30 frames of 400×300", "vips", 0.6),
    ("JPEG 1 MP → 400×300", "pillow", 0.65), ("JPEG 12 MP → 400×300", "pillow", 0.95),
    *((f"JPEG {size} MP → 400×300", "vips-debian", 0.85) for size in (1, 12)),
    ("JPEG 1 MP → 400×300", "vips", 0.95), ("JPEG 12 MP → 400×300", "vips", 0.75),
    ("WebP 12 MP → 400×300", "pillow", 0.55),
    ("Resize 12 MP → 400×300", None, 24.0),
    ("ThumbHash, shown at 32×24", None, 0.05), ("BlurHash of 4×3, shown at 32×32", None, 0.1),
]
LEAST_DECIBELS = 50
MOST_MEMORY = 0.4
PEERS = {"tern": "Tern", "c": "the C library", "pillow": "Pillow", "vips-debian": "the system's libvips",
         "vips": "the newest libvips"}


def measure(commands, worker, pictures, rounds):
    """Versions of the peers, and costs {row: {peer: [ns]}} with the thumbnails' quality and memory."""
    workers = {peer: worker(command) for peer, command in commands.items()}
    versions = {peer: workers[peer].ask("version") for peer in ("pillow", "vips-debian", "vips")}
    costs = {}
    for row, task, kind, size, turns, peers in TASKS:
        path = pictures / f"photo-{size}.{kind}"
        for peer in peers:
            workers[peer].ask(task, kind, path, 1)
        costs[row] = {peer: [] for peer in peers}
        for number in range(rounds):
            # Who begins changes from round to round.
            for peer in peers[number % len(peers):] + peers[:number % len(peers)]:
                costs[row][peer].append(float(workers[peer].ask(task, kind, path, turns)))
    quality = {(size, peer): decibels(workers, peer, pictures, size)
               for size in ("1", "12") for peer in ("tern", "pillow", "vips-debian", "vips")}
    for one in workers.values():
        one.close()
    memory = {}
    for kind in ("jpg", "png", "webp"):
        for peer in ("tern", "pillow", "vips"):
            once = worker(commands[peer])
            # A tiny picture first: all code is loaded, and what comes on top is the large one's own.
            once.ask("thumb", kind, pictures / f"photo-0.{kind}", 1)
            before = once.peak()
            once.ask("thumb", kind, pictures / f"photo-12.{kind}", 1)
            memory[kind, peer] = (once.peak(), once.peak() - before)
            once.close()
    return versions, (costs, quality, memory)


def decibels(workers, peer, pictures, size):
    """A peer's JPEG thumbnail against a full decoding and Lanczos, both Pillow's: peak signal to noise."""
    with tempfile.TemporaryDirectory() as folder:
        made, exact = pathlib.Path(folder) / "made", pathlib.Path(folder) / "exact"
        workers[peer].ask("save", "jpg", pictures / f"photo-{size}.jpg", made)
        workers["pillow"].ask("exact", "jpg", pictures / f"photo-{size}.jpg", exact)
        one, other = made.read_bytes(), exact.read_bytes()
    if len(one) != len(other):
        raise SystemExit(f"Benchmarks/run-images: {peer} made {len(one)} bytes in place of {len(other)}")
    squares = sum((a - b) ** 2 for channel in range(3) for a, b in zip(one[channel::4], other[channel::4]))
    return 10 * math.log10(255 * 255 * (len(one) * 3 / 4) / squares) if squares else math.inf


def verdict(value, target, text):
    """A figure beside its target, bold and marked if it misses."""
    return f"{text} | {'' if value <= target else '**missed**'}"


def milliseconds(cost):
    """A cost in nanoseconds as a cell; a dash for None."""
    return "–" if cost is None else f"{cost / 1e6:.2f}" if cost >= 1e6 else f"{cost / 1e6:.3f}"


def render(facts, measured, rounds):
    costs, quality, memory = measured
    middle = {row: {peer: statistics.median(values) for peer, values in peers.items()} for row, peers in costs.items()}
    out = ["# Benchmarks of the image codecs", "",
           "Written by `Benchmarks/run-images`: processor time (of all threads) by the public interface in a release "
           f"build, medians of {rounds} rounds in which the peers take turns in one run. The pictures are made by "
           "code.",
           "", "| | |", "|---|---|"]
    out += [f"| {name} | {value} |" for name, value in facts]
    out += ["", "## Against the targets", "", "| | Tern took | target | |", "|---|---:|---:|---|"]
    for row, peer, target in TARGETS:
        if peer:
            # Round by round, so that a slow stretch of the machine weighs on both.
            value = statistics.median(a / b for a, b in zip(costs[row]["tern"], costs[row][peer]))
            out.append(f"| {row}, of {PEERS[peer]}'s time | " + verdict(value, target, f"{value:.2f} | ≤ {target:.2f}")
                       + " |")
        else:
            value = middle[row]["tern"] / 1e6
            out.append(f"| {row} | " + verdict(value, target, f"{value:.3g} ms | ≤ {target:g} ms") + " |")
    for size in ("1", "12"):
        value = quality[size, "tern"]
        out.append(f"| JPEG {size} MP → 400×300, against full decoding and Lanczos | "
                   + verdict(-value, -LEAST_DECIBELS, f"{value:.1f} dB | ≥ {LEAST_DECIBELS} dB") + " |")
    for part, label in enumerate(("the peak memory of a process with Pillow", "what Pillow adds to its peak for it")):
        value = memory["jpg", "tern"][part] / memory["jpg", "pillow"][part]
        out.append(f"| JPEG 12 MP → 400×300, of {label} | "
                   + verdict(value, MOST_MEMORY, f"{value:.2f} | ≤ {MOST_MEMORY:.2f}") + " |")
    out += ["", "## Processor time, ms", "", f"| | {' | '.join(PEERS.values())} |", "|---|" + "---:|" * len(PEERS)]
    out += [f"| {row} | " + " | ".join(milliseconds(middle[row].get(peer)) for peer in PEERS) + " |" for row in middle]
    names = ("tern", "pillow", "vips-debian", "vips")
    out += ["", "## Quality of the JPEG thumbnail, dB", "", f"| | {' | '.join(PEERS[peer] for peer in names)} |",
            "|---|---:|---:|---:|---:|"]
    out += [f"| {size} MP | " + " | ".join(f"{quality[size, peer]:.1f}" for peer in names) + " |"
            for size in ("1", "12")]
    names = ("tern", "pillow", "vips")
    out += ["", "## Peak of resident memory, one thumbnail of 12 MP, MB", "",
            "The whole process with its language's runtime; behind it what the picture and the bytes of its file added "
            "to the peak of a thumbnail of 32×24 pixels in the same process.", "",
            f"| | {' | '.join(PEERS[peer] for peer in names)} |", "|---|---:|---:|---:|"]
    out += [f"| {label} | " + " | ".join("{:.1f} ({:.1f})".format(
                *(part / 1e6 for part in memory[kind, peer])) for peer in names) + " |"
            for kind, label in (("jpg", "JPEG"), ("png", "PNG"), ("webp", "WebP"))]
    return "\n".join(out) + "\n"
