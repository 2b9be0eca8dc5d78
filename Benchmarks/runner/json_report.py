"""Writes the figures of `run-json` as RESULTS-json.md."""

import datetime
import os
import platform
import statistics
import subprocess

import json_programs
import json_shapes
import report

DEBUG_SHAPES = ("user", "page30", "dictionaries")
COLUMNS = ("tern", "foundation", "serde", "go", "orjson", "msgspec")
# The peers whose calls of malloc are counted. Go counts its own objects.
COUNTED = ("tern", "foundation", "serde")


def number(value):
    """Three digits, or all before the point."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def count(value):
    """An average of calls that mostly are alike."""
    return "–" if value is None else f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def median(runs, peer):
    return statistics.median(runs[peer]) if peer in runs else None


def ratio(runs, above, below):
    """The median of the ratios of the runs in one turn, which saw the same load."""
    return statistics.median(one / other for one, other in zip(runs[above], runs[below]))


class Targets:
    """Counts the targets that are met."""

    def __init__(self):
        self.met, self.all = {}, {}

    def cell(self, value, sign, target, name):
        is_met = value >= target if sign == "≥" else value <= target
        self.all[name] = self.all.get(name, 0) + 1
        self.met[name] = self.met.get(name, 0) + is_met
        return f"{value:.2f} ({sign} {target:g}: {'met' if is_met else '**missed**'})"

    def told(self):
        return "; ".join(f"{name}, {self.met[name]} of {self.all[name]}" for name in self.all)


def speed(direction, measured, sizes, targets):
    """The table of the CPU times of one direction."""
    lines = ["| Text | Bytes | Tern | Foundation | Foundation / Tern | serde_json | Tern / serde_json | Go | orjson | "
             "msgspec |", "|---|---:|---:|---:|---|---:|---|---:|---:|---:|"]
    for shape in json_shapes.SHAPES:
        runs = measured.get((shape.name, direction))
        if not runs:
            continue
        faster, slower = shape.targets(direction)
        foundation = targets.cell(ratio(runs, "foundation", "tern"), "≥", faster, f"{direction}, Foundation")
        serde = "–"
        if "serde" in runs:
            serde = targets.cell(ratio(runs, "tern", "serde"), "≤", slower, f"{direction}, serde_json")
        tern, other, rust, *rest = (number(median(runs, peer)) for peer in COLUMNS)
        lines.append(f"| {shape.title} | {sizes[shape.name]:,} | {tern} | {other} | {foundation} | {rust} | {serde} | "
                     + " | ".join(rest) + " |")
    return lines


def counted(figures, columns, form):
    """A table of figures by shape, direction and peer."""
    lines = ["| Text | | " + " | ".join(json_programs.TITLES[peer] for peer in columns) + " |",
             "|---|---|" + "---:|" * len(columns)]
    for shape in json_shapes.SHAPES:
        for direction in ("decode", "encode"):
            found = figures.get((shape.name, direction))
            if found:
                cells = (form(found.get(peer)) for peer in columns)
                lines.append(f"| {shape.title} | {direction} | " + " | ".join(cells) + " |")
    return lines


def debug(measured):
    lines = ["| Text | decode: Tern | Foundation | Foundation / Tern | encode: Tern | Foundation | Foundation / Tern |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for shape in json_shapes.SHAPES:
        if (shape.name, "decode") not in measured:
            continue
        cells = []
        for direction in ("decode", "encode"):
            runs = measured[shape.name, direction]
            cells += [number(median(runs, "tern")), number(median(runs, "foundation")),
                      f"{ratio(runs, 'foundation', 'tern'):.2f}"]
        lines.append(f"| {shape.title} | " + " | ".join(cells) + " |")
    return lines


def first_line(*command, folder=None):
    return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout.strip().splitlines()[0]


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def header(here, loads):
    """The versions of all that takes part."""
    return [
        "| | |", "|---|---|",
        f"| Date | {datetime.date.today()} |",
        f"| Tern | {report.version(here)} |",
        f"| Swift | {first_line('swift', '--version')} |",
        f"| Rust | {first_line('rustc', '--version', folder=here / 'Sources/bench-json-rust')}, {crates()} |",
        f"| Go | {first_line('go', 'version')} |",
        f"| Python | {platform.python_version()}, {', '.join(json_programs.PACKAGES)} |",
        f"| System | {platform.system()} {platform.release()} |",
        f"| Processors | {os.cpu_count()} × {processor()} |",
        f"| Load before and after the run | {loads[0]:.2f}, {loads[1]:.2f} |", "",
    ]


def crates():
    """The versions of serde's crates, as Cargo chose them."""
    lock = (json_programs.SOURCES / "bench-json-rust/Cargo.lock").read_text().splitlines()
    chosen = {name[8:-1]: version[11:-1] for name, version in zip(lock, lock[1:]) if name.startswith('name = "')}
    return ", ".join(f"{name} {chosen[name]}" for name in ("serde", "serde_json"))


def render(here, rounds, loads, sizes, measured, debugged, instructions, mallocs):
    targets = Targets()
    tables = {direction: speed(direction, measured, sizes, targets) for direction in ("decode", "encode")}
    lines = [
        "# Benchmarks of JSON", "",
        "Written by `Benchmarks/run-json`, in a release build, through the public interface. Each figure is the CPU "
        f"time of a call in µs, the median of {rounds} runs in turns. A ratio is the median of the ratios of the runs "
        "in one turn, which saw the same load. Each peer keeps one decoder and one encoder with its default "
        "settings. It decodes to types of its language and encodes from them; orjson has no types, and makes "
        "dictionaries and lists. Before the measurement each peer decodes each text and encodes the result, and the "
        "runner compares the values of the two texts.", "",
        *header(here, loads),
        f"Targets that are met: {targets.told()}.", "",
        "## Decoding", "", *tables["decode"], "",
    ]
    doubles = measured.get(("doubles", "decode"))
    if doubles:
        lines += [
            "serde_json reads some doubles with an error in the last place. With its feature `float_roundtrip`, "
            f"which avoids that, the 50,000 doubles take {number(median(doubles, 'serde-exact'))} µs. Tern is always "
            f"exact, and takes {ratio(doubles, 'tern', 'serde-exact'):.2f} times that.", ""]
    lines += [
        "A dash: the peer has no equivalent. serde_json has neither dates nor Base64, and orjson reads them as "
        "strings.", "",
        "## Encoding", "", *tables["encode"], "",
        "Tern and Foundation write `/` as `\\/` by default, and the other peers as it is. serde_json and Go sort no "
        "members of a struct. msgspec indents a text only in a second pass. All peers leave out members that are "
        "nil.", "",
    ]
    if instructions:
        counted_peers = [name for name in COLUMNS if name != "go"]
        lines += ["## Instructions", "",
                  "Thousands of instructions of a call in user space, counted by callgrind: the difference of two "
                  "runs, so that no start is counted. Go is not counted: its collector runs at any time.", "",
                  *counted(instructions, counted_peers,
                           lambda value: number(None if value is None else value / 1000)), ""]
    lines += [
        "## Allocations", "",
        "Calls of malloc and its kin, counted by a library that is loaded before glibc; for Go, the runtime's own "
        "count of objects.", "", *counted(mallocs, (*COUNTED, "go"), count), "",
    ]
    if debugged:
        lines += ["## Debug builds", "",
                  "CPU time of a call in µs, with TernJSON and the program built without optimization. Foundation is "
                  "a part of the toolchain and always optimized: only the types that it decodes and encodes are "
                  "not.", "",
                  *debug(debugged), ""]
    return "\n".join(lines)
