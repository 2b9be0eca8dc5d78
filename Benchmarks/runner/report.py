"""Turns the runs into RESULTS.md."""

import json
import os
import platform
import shutil
import statistics
import subprocess

import plan

def median(runs, case, peer, key):
    values = [run[key] for run in runs if run["case"] == case.name and run["client"] == peer and not run["errors"]]
    return statistics.median(values) if values else None


def paired(runs, case, peer, measure):
    """The median over the rounds of Tern's figure divided by the peer's in the same round."""
    def by_round(client):
        return {run["round"]: run for run in runs
                if run["case"] == case.name and run["client"] == client and not run["errors"]}

    def figure(run):
        # Per request: the peers do not make the same number of them.
        return run["rps"] if measure == "speed" else run["cpu_us_per_request"]

    ours, theirs = by_round("tern"), by_round(peer)
    ratios = [figure(ours[turn]) / figure(theirs[turn]) for turn in ours if turn in theirs and figure(theirs[turn])]
    return statistics.median(ratios) if ratios else None


def verdict(case, target, runs):
    """The cell, and whether the target is met (None: not measured)."""
    bound = f"{'≥' if target.at_least else '≤'} {target.bound:g}"
    if target.measure == "rss":
        value, unit = median(runs, case, "tern", "peak_rss_mib"), " MiB"
    else:
        value, unit = paired(runs, case, target.peer, target.measure), "×"
    if value is None:
        return f"– ({bound}{unit})", None
    met = value >= target.bound if target.at_least else value <= target.bound
    digits = 1 if unit == " MiB" or value >= 10 else 2
    if not met and round(value, digits) == target.bound:
        digits += 1  # a near miss must not look like a hit
    return f"{value:.{digits}f}{unit} ({bound}{unit}) {'✓' if met else '✗ **miss**'}", met


def ratios(cases, runs):
    """The table of ratios, and the counts of targets met, missed and not measured."""
    columns = [("ahc", "speed"), ("ahc", "cpu"), ("urlsession", "speed"), ("c", "speed"), ("c", "cpu"), ("", "rss")]
    heads = ["AHC: speed", "AHC: CPU", "URLSession: speed", "C: speed", "C: CPU", "peak RSS"]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    counts = {True: 0, False: 0, None: 0}
    for case in cases:
        cells = []
        for column in columns:
            target = next((one for one in case.targets if (one.peer, one.measure) == column), None)
            text, met = verdict(case, target, runs) if target else ("", None)
            if target:
                counts[met] += 1
            elif column[0] and (value := paired(runs, case, *column)) is not None:
                text = f"{value:.{1 if value >= 10 else 2}f}×"
            cells.append(text)
        lines.append(f"| {case.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n", counts


def table(case, peers, runs):
    heads = ["client", "MB/s" if case.is_transfer else "requests/s",
             "CPU s" if case.is_transfer else "CPU µs a request", "peak RSS MiB"]
    if case.scenario == "body64k":
        heads.insert(2, "MB/s")
    lines = [f"### {case.title[0].upper()}{case.title[1:]}", "", "| " + " | ".join(heads) + " |",
             "|---" + "|---:" * (len(heads) - 1) + "|"]
    for peer in peers:
        keys = ["mb_per_s", "cpu_seconds"] if case.is_transfer else ["rps", "cpu_us_per_request"]
        if case.scenario == "body64k":
            keys.insert(1, "mb_per_s")
        digits = {"rps": 0, "mb_per_s": 0, "cpu_us_per_request": 1, "cpu_seconds": 2, "peak_rss_mib": 1}
        values = [(median(runs, case, peer, key), digits[key]) for key in [*keys, "peak_rss_mib"]]
        cells = ["failed" if value is None else f"{value:,.{count}f}" for value, count in values]
        lines.append(f"| {plan.TITLES[peer]} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def said(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "unknown"


def versions(here, folder):
    resolved = here / "Package.resolved"
    pins = json.loads(resolved.read_text())["pins"] if resolved.exists() else []
    found = {pin["identity"]: pin["state"].get("version", "?") for pin in pins}
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/sbin") or "nginx"
    return [
        ("Tern", said("git", "-C", str(here), "describe", "--always", "--tags", "--dirty")),
        ("Swift", said("swift", "--version")),
        ("libcurl (C and Tern)", said(str(folder / "bench-c"), "version")),
        ("async-http-client", f"{found.get('async-http-client', '?')} (swift-nio {found.get('swift-nio', '?')})"),
        ("nginx", said(nginx, "-v").replace("nginx version: ", "")),
        ("Kernel", f"{platform.system()} {platform.release()}"),
        ("Processors", str(os.cpu_count())),
    ]


def render(cases, peers, rounds, runs, size, here, folder):
    text, counts = ratios(cases, runs)
    failed = sum(1 for run in runs if run["errors"])
    lines = ["# Benchmarks", "",
             "Written by `Benchmarks/run` (`make bench`). Client and server share the machine over loopback; nginx "
             f"has one worker. The peers ran in turns for {rounds} round{'s' if rounds > 1 else ''}; figures are medians of the rounds, ratios "
             "are medians of the ratios within a round. CPU is user and system time of the client's process, after "
             "a warm-up. Large files lie in memory (tmpfs)"
             + ("" if size == 1 << 30 else f"; **they have {size >> 20} MiB here, not 1 GiB**") + ".", "",
             "| | |", "|---|---|", *[f"| {name} | {value} |" for name, value in versions(here, folder)], "",
             "## Ratios: Tern divided by the peer", "",
             "In brackets the target; without brackets there is none.", "", text,
             f"Targets: {counts[True]} met, {counts[False]} missed, {counts[None]} not measured."
             + (f" **{failed} of {len(runs)} runs had errors and are left out.**" if failed else ""), "",
             "## Figures", ""]
    lines += [table(case, peers, runs) for case in cases]
    lines += ["URLSession's HTTP/2 is what FoundationNetworking's own libcurl negotiates. The C loop and the streamed "
              "peers count bytes and throw them away; Tern, async-http-client and URLSession collect the bodies of "
              "GETs in memory. The C loop sends the request heads that Tern sends, field by field: before the first "
              "run both are recorded on the wire, and the benchmark ends when they differ in more than the order of "
              "the fields.", ""]
    return "\n".join(lines)
