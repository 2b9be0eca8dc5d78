"""Counts user-space instructions, free of the machine's noise."""

import json
import re
import statistics
import subprocess

import callgraph
import heads

TITLE = "Instructions"
SIZE = 64 << 20
# Requests of the shorter one of two runs.
SMALL = 2_000
# Functions that run for the progress of a request, by their mangled names: the stores of each turn, and the meter.
PROGRESS = re.compile(r"storeProgress|\$s4Tern13ProgressMeterC")


def collected(binary, scenario, requests, server, extra=()):
    """All instructions of a run with one worker and no warm-up, and the profile."""
    profile = f"{server.work}/{binary.name}.{scenario}.{requests}{''.join(extra) if 'yes' in extra else ''}.callgrind"
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
    return sum(count for name, count in callgraph.Profile(profile).own.items() if PROGRESS.search(name)) / requests


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


def small_get(binary, server, extra=()):
    """Figures of one request: the difference of two runs, of which one makes twice the requests, holds no start-up."""
    found = []
    for requests in (SMALL, 2 * SMALL):
        total, path = collected(binary, "get", requests, server, extra)
        profile = callgraph.Profile(path)
        found.append({"total": total, **profile.by_layer(), "retains": profile.counted(callgraph.RETAINS),
                      "retains above": profile.above_engine(callgraph.RETAINS),
                      "releases": profile.counted(callgraph.RELEASES)})
    return {name: (found[1][name] - found[0][name]) / SMALL for name in found[0]}


def medians(rounds, *measures):
    """By measure, the medians of its figures. The measures are taken in turns."""
    taken = [[measure() for measure in measures] for _ in range(rounds)]
    return [{name: statistics.median(run[index][name] for run in taken) for name in taken[0][index]}
            for index in range(len(measures))]


def row(title, figures):
    """A row of the table; C has no layers."""
    above = figures["total"] - figures[callgraph.ENGINE]
    cells = [figures["total"]] + ([figures[callgraph.ENGINE], above, figures["retains"], figures["retains above"],
                                   figures["releases"]] if figures["retains"] else [])
    texts = [f"{cell:,.0f}" if cell >= 1000 else f"{cell:,.1f}" for cell in cells] + [""] * (6 - len(cells))
    return f"| {title} | " + " | ".join(texts) + " |"


def transfers(tern, server, watch):
    """Rows of what following the progress of a transfer costs."""
    for scenario, title in (("download-file", "download to a file"), ("download-stream", "download, streamed")):
        plain, watched = median(3, lambda: each(tern, scenario, 1, 9, server)[0],
                                lambda: each(tern, scenario, 1, 9, server, watch)[0])
        pairs = [(processor_time(tern, scenario, server), processor_time(tern, scenario, server, watch))
                 for _ in range(12)]
        ratio = statistics.median(watched / plain for plain, watched in pairs)
        yield (f"| {SIZE >> 20} MiB {title} | {plain:,.0f} | {watched:,.0f} ({watched / plain - 1:+.1%}) | "
               f"{ratio - 1:+.1%} |")


def count(c, tern, server, version):
    """The section of RESULTS.md."""
    c, tern = without_debug_information(c, server), without_debug_information(tern, server)
    fields, watch, executor = heads.of_peer("c", server, "get"), ["--watch", "yes"], ["--executor", "yes"]
    yardstick, plain, elsewhere, watched = medians(
        3, lambda: small_get(c, server, fields), lambda: small_get(tern, server),
        lambda: small_get(tern, server, executor), lambda: small_get(tern, server, watch))
    nobody = of_progress(collected(tern, "get", SMALL, server)[1], SMALL)
    lines = [
        f"Counted by `Benchmarks/run --instructions` with callgrind, in user space, for Tern {version}. One small GET over "
        f"one connection: the difference of two runs, of {SMALL:,} and {2 * SMALL:,} requests, divided by {SMALL:,}; "
        "medians of 3 such differences. Tern's program is linked with a static standard library.", "",
        "| small GET | instructions | in the engine | above the engine | swift_retain | of them above the engine | "
        "swift_release |",
        "|---|---:|---:|---:|---:|---:|---:|",
        row("C libcurl", yardstick), row("Tern", plain), row("Tern (session.executor)", elsewhere),
        row("Tern, as a task whose progress is followed", watched), "",
        "The functions of TernEngine and CTernLoop are the engine. A function of a library (memory, reference counts, "
        "Swift's runtime, system calls) counts where its caller counts: if both layers call it, its instructions are shared "
        "in proportion to the inclusive counts of the calls. Everything else is above the engine: of Tern's "
        f"{plain['total'] - plain[callgraph.ENGINE]:,.0f} instructions there, {plain[callgraph.ABOVE]:,.0f} count for the "
        f"module Tern, {plain[callgraph.PROGRAM]:,.0f} for the benchmark's own program, and "
        f"{plain[callgraph.RUNTIME]:,.0f} for the threads that run Swift's tasks "
        f"({elsewhere[callgraph.ABOVE]:,.0f}, {elsewhere[callgraph.PROGRAM]:,.0f} and "
        f"{elsewhere[callgraph.RUNTIME]:,.0f} on the session's executor). {nobody:,.0f} instructions serve the progress "
        "that nobody follows. The calls of swift_retain and swift_release include those for bridged objects and for "
        "several counts at once.", "",
        "| | instructions | when its progress is followed | CPU time then, the median of 12 pairs |", "|---|---:|---:|---:|",
        *transfers(tern, server, watch), ""]
    return "\n".join(lines)
