"""The plan of the pipeline benchmark: measurements, limits and report."""

import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

PEERS = {"tern": "Tern", "aiohttp": "aiohttp, Pillow", "requests": "requests, Pillow", "vips": "aiohttp, libvips (newest)",
         "vips-debian": "aiohttp, libvips (the system's)"}
COUNT = 200

# Peer, how many times as fast Tern is to be, by the wall and by the processor.
RATIOS = [("aiohttp", 1.1), ("requests", 1.6), ("vips", 2.3), ("vips-debian", 2.3)]

# Arguments of bench-pipeline; {jpeg} and {progressive} are pictures.
RUNS = [["bind"], ["miss"], ["overhead"], ["coalescing"], ["answers", "{jpeg}"], ["preview", "{progressive}"], ["scroll"]]

# Figure, row, unit, the most it may be, or the least; None where it is only told.
FIGURES = [
    ("bind.µs", "Binding a picture in memory, `task(for:)`, on the caller", "µs", 2, None),
    ("bind-url.µs", "the same, with the request made of a URL", "µs", 2, None),
    ("bind-calls", "calls of the system in 10,000 such bindings", "", 0, None),
    ("miss.µs", "Beginning a load, `task(for:)`, on the caller", "µs", 8, None),
    ("miss-url.µs", "the same, with the request made of a URL", "µs", 8, None),
    ("miss-p99.µs", "the slowest of a hundred", "µs", None, None),
    ("overhead.tasks/s", "Loads with an empty decoder, each of its own picture, a second", "", None, 60_000),
    ("overhead-processor.µs", "processor time of one, of all threads", "µs", None, None),
    ("coalescing-p99.ms", "10,000 equal loads: from the answer to the delivery, 99 of 100", "ms", 50, None),
    ("coalescing-last.ms", "to the last of them", "ms", None, None),
    ("answers-p99.ms", "The actor answers while every core decodes, 99 of 100", "ms", 2, None),
    ("answers-worst.ms", "the slowest of 3,000", "ms", None, None),
    ("answers-cores", "cores at work meanwhile", "", None, None),
    ("preview.ms", "First preview after the last byte of scan 1, 1 MP → 400×300", "ms", 15, None),
    ("preview-p95.ms", "19 of 20", "ms", None, None),
    ("preview-full.ms", "the same at full size", "ms", 15, None),
    ("preview-full-p95.ms", "19 of 20", "ms", None, None),
    ("scroll-stale", "List of 1,000 rows, 60 a second, 100 ms of latency: wrong pictures shown", "", 0, None),
    ("scroll-wasted.%", "decoded and not shown", "%", 5, None),
    ("scroll-p95.ms", "from a row's appearance to its picture, 95 of 100", "ms", 250, None),
    ("scroll-unseen", "rows that left the screen without their picture", "", None, None),
]


def thumbnails(commands, worker, jpeg, rounds):
    """[(wall, processor)] in nanoseconds of each round, by peer."""
    server = subprocess.Popen([*commands["serve"], jpeg], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        base = server.stdout.readline().strip()
        workers = {peer: worker(commands[peer]) for peer in PEERS}
        # The first time connects, and loads what is loaded lazily.
        for one in workers.values():
            one.ask(base, 20)
        costs, peers = {peer: [] for peer in PEERS}, list(PEERS)
        for number in range(rounds):
            # Who begins changes from round to round.
            for peer in peers[number % len(peers):] + peers[:number % len(peers)]:
                costs[peer].append(tuple(int(word) for word in workers[peer].ask(base, COUNT).split()))
        for one in workers.values():
            one.close()
        return costs
    finally:
        server.stdin.close()
        server.wait()


def figures(tool, pictures):
    """{figure: value} of what the pipeline costs itself."""
    found = {}
    for words in RUNS:
        command = [str(tool), *(word.format(**pictures) for word in words)]
        run = subprocess.run(command, capture_output=True, text=True)
        said = run.stdout
        if run.returncode != 0:
            print(f"Benchmarks/run-pipeline: {words[0]} has failed: {run.stderr[:300].strip()}")
        found.update((line.rsplit(" ", 1)[0], float(line.rsplit(" ", 1)[1])) for line in said.splitlines())
    return found


def calls(tool):
    """How many calls of the system binding makes; None, with a message, where they cannot be seen."""
    if not shutil.which("strace"):
        print("Benchmarks/run-pipeline: strace is missing; the calls of the system are not counted")
        return None
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace"
        run = subprocess.run(["strace", "-f", "-o", trace, tool, "marks"], capture_output=True, text=True)
        if run.returncode != 0:
            print(f"Benchmarks/run-pipeline: strace may not trace here, the calls are not counted: {run.stderr.strip()}")
            return None
        lines = [line.split(maxsplit=1) for line in trace.read_text().splitlines()]
    marks = [index for index, (_, call) in enumerate(lines) if call.startswith("getppid")]
    thread = lines[marks[0]][0]
    between = [call for number, call in lines[marks[0] + 1:marks[1]]
               if number == thread and re.match(r"[a-z_0-9]+\(", call)]
    return len(between)


def verdict(value, most, least):
    if (most is None or value <= most) and (least is None or value >= least):
        return ""
    return "**missed**"


def number(value):
    if value == float("inf"):
        return "∞"
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def render(facts, costs, found, rounds):
    out = ["# Benchmarks of the image pipeline", "",
           "Written by `Benchmarks/run-pipeline`, in a release build, through the public interface and from another module. "
           "The pictures are made by code; nothing is kept on a disk.", "", "| | |", "|---|---|"]
    out += [f"| {name} | {value} |" for name, value in facts]
    out += ["", f"## {COUNT} thumbnails from loopback", "",
            "JPEGs of 1 MP from a server in a process of its own, to 400×300, each with two threads to decode on; medians of "
            f"{rounds} rounds in which the peers take turns. Ratios are medians of the rounds' own.", "",
            "| | pictures a second | processor time of one, ms | Tern faster, by the wall | by the processor | target | |",
            "|---|---:|---:|---:|---:|---:|---|"]
    targets = dict(RATIOS)
    for peer, name in PEERS.items():
        rate = COUNT / statistics.median(wall for wall, _ in costs[peer]) * 1e9
        spent = statistics.median(spent for _, spent in costs[peer]) / COUNT / 1e6
        row = f"| {name} | {rate:,.0f} | {spent:.2f} |"
        if peer in targets:
            ratios = [statistics.median(theirs[part] / ours[part] for ours, theirs in zip(costs["tern"], costs[peer]))
                      for part in (0, 1)]
            missed = verdict(min(ratios), None, targets[peer])
            row += f" {ratios[0]:.2f} | {ratios[1]:.2f} | ≥ {targets[peer]} | {missed} |"
        else:
            row += " | | | |"
        out.append(row)
    out += ["", "## The pipeline itself", "", "| | | target | |", "|---|---:|---:|---|"]
    for name, row, unit, most, least in FIGURES:
        value, unit = found.get(name), f" {unit}" if unit else ""
        target = f"≤ {most:,}{unit}" if most is not None else f"≥ {least:,}{unit}" if least is not None else ""
        if value is None:
            said = "not counted" if name == "bind-calls" else "**failed**"
            out.append(f"| {row} | – | {target} | {said if target else ''} |")
        else:
            out.append(f"| {row} | {number(value)}{unit} | {target} | {verdict(value, most, least)} |")
    return "\n".join(out) + "\n"
