"""Counts user-space instructions, free of the machine's noise."""

import json
import re
import statistics
import subprocess

import heads

SIZE = 64 << 20
# Functions that run for the progress of a request, by their mangled names: the stores of each turn, and the meter.
PROGRESS = re.compile(r"storeProgress|\$s4Tern13ProgressMeterC")


def collected(binary, scenario, requests, server, extra=()):
    """All instructions of a run with one worker and no warm-up, and the profile."""
    profile = f"{server.work}/{binary.name}.{scenario}.{requests}{'.watched' if 'yes' in extra else ''}.callgrind"
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", binary, scenario, "--url",
             f"{server.http}/{'small' if scenario == 'get' else 'large'}", "--connections", "1",
             "--requests", str(requests), "--warm-up", "0", "--file", server.folder / "out", *extra]
    if scenario != "get":
        words += ["--size", str(SIZE)]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    return int(re.search(r"Collected\s*:\s*(\d+)", done.stderr).group(1)), profile


def each(binary, scenario, few, many, server, extra=()):
    """Instructions of one request: the difference of two runs holds no start-up. And the profile of the longer run."""
    more, profile = collected(binary, scenario, many, server, extra)
    return (more - collected(binary, scenario, few, server, extra)[0]) / (many - few), profile


def of_progress(profile, requests):
    """Instructions a request in the functions that serve progress alone, without what they call."""
    shown = subprocess.run(["callgrind_annotate", "--threshold=100", profile], capture_output=True, text=True,
                           check=True).stdout
    found = re.findall(r"^\s*([\d,]+) \([^)]*\)\s+\S*?:(\S+)", shown, re.MULTILINE)
    return sum(int(count.replace(",", "")) for count, name in found if PROGRESS.search(name)) / requests


def without_debug_information(binary, server):
    """Valgrind stumbles over the compiler's debug information; the symbols stay."""
    stripped = server.folder / binary.name
    subprocess.run(["strip", "-g", "-o", stripped, binary], check=True)
    return stripped


def median(rounds, *measures):
    """The medians of several measures that are taken in turns: how threads meet differs from run to run."""
    return [statistics.median(values) for values in zip(*([measure() for measure in measures] for _ in range(rounds)))]


def processor_time(binary, scenario, server, extra=(), requests=12):
    """Seconds of one transfer outside of callgrind, under which time runs fifty times as fast."""
    words = [binary, scenario, "--url", f"{server.http}/large", "--warm-up-url", f"{server.http}/small",
             "--connections", 1, "--requests", requests, "--file", server.folder / "out", "--size", SIZE, *extra]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["cpu_seconds"] / requests


def count(c, tern, server):
    c, tern = without_debug_information(c, server), without_debug_information(tern, server)
    fields, watch = heads.of_peer("c", server, "get"), ["--watch", "yes"]
    yardstick, plain, watched = median(
        3, lambda: each(c, "get", 500, 2_500, server, fields)[0], lambda: each(tern, "get", 500, 2_500, server)[0],
        lambda: each(tern, "get", 500, 2_500, server, watch)[0])
    nobody = of_progress(each(tern, "get", 500, 2_500, server)[1], 2_500)
    print(f"small GET, instructions: C {yardstick:,.0f}; Tern {plain:,.0f}, {nobody:,.0f} of them for progress that "
          f"nobody follows; as a task whose progress is followed {watched:,.0f}", flush=True)
    for scenario in ("download-file", "download-stream"):
        plain, watched = median(3, lambda: each(tern, scenario, 1, 9, server)[0],
                                lambda: each(tern, scenario, 1, 9, server, watch)[0])
        print(f"{scenario} of {SIZE >> 20} MiB, instructions: {plain:,.0f}; {watched:,.0f} when its progress is "
              f"followed ({watched / plain - 1:+.1%})", flush=True)
        pairs = [(processor_time(tern, scenario, server), processor_time(tern, scenario, server, watch))
                 for _ in range(12)]
        plain, watched = (statistics.median(values) for values in zip(*pairs))
        ratio = statistics.median(watched / plain for plain, watched in pairs)
        print(f"{scenario} of {SIZE >> 20} MiB, processor time: {plain * 1e3:.2f} ms; {watched * 1e3:.2f} ms when its "
              f"progress is followed ({ratio - 1:+.1%}, the median of {len(pairs)} pairs)", flush=True)
    print(f"Profiles: {server.work}/*.callgrind (callgrind_annotate)")
