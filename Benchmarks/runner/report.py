"""Turns the runs into RESULTS.md."""

import json
import os
import platform
import re
import shutil
import statistics
import subprocess

import limits
import plan

# The columns of the ratios: a peer ("" for Tern itself) and a measure.
COLUMNS = {("c", "speed"): "C: speed", ("c", "cpu"): "C: CPU", ("hyper", "speed"): "hyper: speed",
           ("hyper", "cpu"): "hyper: CPU", ("serde", "speed"): "hyper + serde_json: speed",
           ("serde", "cpu"): "hyper + serde_json: CPU", ("go", "speed"): "Go: speed", ("go", "cpu"): "Go: CPU",
           ("ahc", "speed"): "AHC: speed", ("ahc", "cpu"): "AHC: CPU", ("urlsession", "speed"): "URLSession: speed",
           ("", "decoding"): "CPU beyond the bytes", ("", "rss"): "peak RSS"}


def median(runs, case, client, key):
    values = [run[key] for run in runs if run["case"] == case.name and run["client"] == client and not run["errors"]]
    return statistics.median(values) if values else None


def by_round(runs, case, client):
    return {run["round"]: run for run in runs
            if run["case"] == case and run["client"] == client and not run["errors"]}


def paired(runs, case, measure, client, peer):
    """The median over the rounds of a client's figure divided by the peer's in the same round."""
    def figure(run):
        # Per request: the peers do not make the same number of them.
        return run["rps"] if measure == "speed" else run["cpu_us_per_request"]

    ours, theirs = by_round(runs, case.name, client), by_round(runs, case.name, peer)
    ratios = [figure(ours[turn]) / figure(theirs[turn]) for turn in ours if turn in theirs and figure(theirs[turn])]
    return statistics.median(ratios) if ratios else None


def cost_of_decoding(runs, case, client):
    """The median over the rounds of the CPU µs that a typed call takes beyond the GET of the same JSON as bytes."""
    decoded, fetched = ({turn: run["cpu_us_per_request"] for turn, run in by_round(runs, name, client).items()}
                        for name in (case.name, case.beside))
    costs = [decoded[turn] - fetched[turn] for turn in decoded if turn in fetched]
    return statistics.median(costs) if costs else None


def is_limited(runs, case, target):
    """Returns whether no load generator that ran is fast enough for the target to count."""
    if target.measure != "speed":
        return False
    found = [paired(runs, case, "speed", tool, target.peer) for tool in limits.TOOLS]
    found = [ratio for ratio in found if ratio is not None]
    return bool(found) and max(found) < limits.MARGIN * target.bound


def verdict(case, target, runs, ours):
    """The cell, and the outcome: met, missed, limited or not measured."""
    bound = f"{'≥' if target.at_least else '≤'} {target.bound:g}"
    if target.measure == "rss":
        value, unit = median(runs, case, ours, "peak_rss_mib"), " MiB"
    elif target.measure == "decoding":
        value, unit = cost_of_decoding(runs, case, ours), " µs"
    else:
        value, unit = paired(runs, case, target.measure, ours, target.peer), "×"
    if value is None:
        return f"– ({bound}{unit})", "not measured"
    met = value >= target.bound if target.at_least else value <= target.bound
    digits = 1 if unit == " MiB" or value >= 10 else 2
    if not met and round(value, digits) == target.bound:
        digits += 1  # a near miss must not look like a hit
    text = f"{value:.{digits}f}{unit} ({bound}{unit})"
    if met:
        return f"{text} ✓", "met"
    if is_limited(runs, case, target):
        return f"{text} limited by the server", "limited by the server"
    return f"{text} ✗ **miss**", "missed"


def ratios(cases, peers, runs, ours):
    """The table of the ratios of one way to call Tern, and a sentence that counts the outcomes of its targets."""
    columns = [column for column in COLUMNS if not column[0] or column[0] in peers]
    rows = []
    counts = dict.fromkeys(("met", "missed", "limited by the server", "not measured"), 0)
    for case in cases:
        cells = []
        for column in columns:
            target = next((one for one in case.targets_of(ours) if (one.peer, one.measure) == column), None)
            text = ""
            if target:
                text, outcome = verdict(case, target, runs, ours)
                counts[outcome] += 1
            elif column[0] and (value := paired(runs, case, column[1], ours, column[0])) is not None:
                text = f"{value:.{1 if value >= 10 else 2}f}×"
            cells.append(text)
        rows.append((case.title, cells))
    # Columns of peers that took part in no case are left out.
    used = [index for index in range(len(columns)) if any(cells[index] for _, cells in rows)]
    lines = ["| | " + " | ".join(COLUMNS[columns[index]] for index in used) + " |", "|---" * (len(used) + 1) + "|",
             *(f"| {title} | " + " | ".join(cells[index] for index in used) + " |" for title, cells in rows)]
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return "\n".join(lines) + "\n", f"Targets: {told}."


def over_connections(cases, clients, runs):
    """By client: requests a second and CPU a request of small GETs, by the number of connections."""
    found = {client: {} for client in clients}
    for case in [case for case in cases if case.name in plan.GROUPS["small-get"]]:
        for client in clients:
            figures = [median(runs, case, client, key) for key in ("rps", "cpu_us_per_request")]
            if all(figures):
                found[client][case.connections] = tuple(figures)
    return found


def section(file, title):
    """The section of a file with that title, up to the next one; empty when there is none."""
    text = file.read_text() if file.exists() else ""
    start = text.find(f"\n## {title}\n")
    if start < 0:
        return ""
    end = text.find("\n## ", start + 1)
    return text[start:] if end < 0 else text[start:end]


def first(text, section):
    """The text with a section before its other ones."""
    start = text.find("\n## ")
    return text[:start] + section + text[start:] if start >= 0 else text + section


def replace_section(file, title, text, is_first=False):
    """Writes a section in place of the one with that title, at the end of a file or before its other sections."""
    kept = file.read_text().replace(section(file, title), "") if file.exists() else "# Benchmarks\n"
    made = f"\n## {title}\n\n{text}"
    file.write_text(first(kept, made) if is_first else kept + made)


def overview(cases, clients, runs):
    """The figures of all clients side by side: speed and CPU."""
    lines = ["| | " + " | ".join(plan.TITLES[client] for client in clients) + " |",
             "|---" + "|---:" * len(clients) + "|"]
    for case in cases:
        keys = (("mb_per_s", 0), ("cpu_seconds", 2)) if case.is_transfer else (("rps", 0), ("cpu_us_per_request", 1))
        cells = []
        for client in clients:
            values = [(median(runs, case, client, key), digits) for key, digits in keys]
            measured = any(run["case"] == case.name and run["client"] == client for run in runs)
            cells.append("failed" if measured and values[0][0] is None else "" if not measured else
                         " / ".join(f"{value:,.{digits}f}" for value, digits in values))
        lines.append(f"| {case.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def decoding(cases, peers, runs):
    """CPU µs of the typed GETs and of the GETs of the same bytes, with Tern's targets beside the differences."""
    lines = ["| | client | bytes | decoded | difference |", "|---|---|---:|---:|---:|"]
    for case in [case for case in cases if case.beside]:
        beside = next(one for one in cases if one.name == case.beside)
        for peer in case.peers(peers):
            values = [median(runs, one, peer, "cpu_us_per_request") for one in (beside, case)]
            values.append(cost_of_decoding(runs, case, peer))
            cells = ["failed" if value is None else f"{value:,.1f}" for value in values]
            target = next((one for one in case.targets_of(peer) if one.measure == "decoding"), None)
            if target and peer in plan.OURS:
                cells[-1] = verdict(case, target, runs, peer)[0]
            lines.append(f"| {case.title} | {plan.TITLES[peer]} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def table(case, clients, runs):
    titles = ["client", "MB/s" if case.is_transfer else "requests/s",
              "CPU s" if case.is_transfer else "CPU µs a request", "peak RSS MiB"]
    if case.scenario == "body64k":
        titles.insert(2, "MB/s")
    lines = [f"### {case.title[0].upper()}{case.title[1:]}", "", "| " + " | ".join(titles) + " |",
             "|---" + "|---:" * (len(titles) - 1) + "|"]
    for client in clients:
        keys = ["mb_per_s", "cpu_seconds"] if case.is_transfer else ["rps", "cpu_us_per_request"]
        if case.scenario == "body64k":
            keys.insert(1, "mb_per_s")
        digits = {"rps": 0, "mb_per_s": 0, "cpu_us_per_request": 1, "cpu_seconds": 2, "peak_rss_mib": 1}
        values = [(median(runs, case, client, key), digits[key]) for key in [*keys, "peak_rss_mib"]]
        cells = ["failed" if value is None else f"{value:,.{count}f}" for value, count in values]
        if client in limits.TOOLS:
            cells[-1] = ""
        lines.append(f"| {plan.TITLES[client]} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def said(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "unknown"


def crate(name, here):
    """The version of a crate that the peer in Rust was built with."""
    lock = here / "Sources/bench-hyper/Cargo.lock"
    found = re.search(rf'name = "{name}"\nversion = "([^"]+)"', lock.read_text()) if lock.exists() else None
    return found[1] if found else "?"


def version(here):
    name = said("git", "-C", str(here), "describe", "--always", "--tags")
    # The plots of this run are written before the report.
    paths = ["--", "..", ":!*.svg", ":!*.md"]
    changes = said("git", "-C", str(here), "status", "--porcelain", "--untracked-files=no", *paths)
    return name if changes == "unknown" else f"{name}-dirty"


def versions(here, programs, tools):
    resolved = here / "Package.resolved"
    pins = json.loads(resolved.read_text())["pins"] if resolved.exists() else []
    found = {pin["identity"]: pin["state"].get("version", "?") for pin in pins}
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/sbin") or "nginx"
    rows = [("Tern", version(here)),
            ("Swift", said("swift", "--version"))]
    if "c" in programs:
        rows.append(("libcurl", said(str(programs["c"]), "version")))
    if set(plan.RUST) & set(programs):
        rows.append(("hyper", f"{crate('hyper', here)} (tokio {crate('tokio', here)}, {said('rustc', '--version')})"))
    if "serde" in programs:
        rows.append(("serde_json", f"{crate('serde_json', here)} (serde {crate('serde', here)})"))
    if "go" in programs:
        rows.append(("Go", said("go", "version").replace("go version ", "")))
    if "ahc" in programs:
        rows.append(("async-http-client",
                     f"{found.get('async-http-client', '?')} (swift-nio {found.get('swift-nio', '?')})"))
    if "wrk" in tools:
        rows.append(("wrk", said("wrk", "-v").split("Copyright")[0].strip()))
    if "h2load" in tools:
        rows.append(("h2load", said("h2load", "--version")))
    return rows + [
        ("nginx", said(nginx, "-v").replace("nginx version: ", "")),
        ("Kernel", f"{platform.system()} {platform.release()}"),
        ("Processors", str(os.cpu_count())),
    ]


NOTES = (
    "A typed call is `let user: User = try await client.get(\"user.json\")`: a request, and a value decoded from the "
    "JSON of its answer. The typed POST encodes 30 repositories for each call, and decodes the user of 193 B that "
    "answers it. Tern uses the session's default coders, Go encoding/json and hyper serde_json, with types that have "
    "the same properties. Each peer checks what it decodes once before it measures, and the runner checks what each "
    "peer posts. The other peers take no part.",
    "URLSession's HTTP/2 is what FoundationNetworking's own libcurl negotiates. The peer in hyper has no TLS: its "
    "HTTP/2 runs over plain text. hyper runs on one thread, Go on all processors. The C loop and the streamed peers "
    "count bytes and throw them away; the C loop collects bodies of 64 KiB, the others collect the bodies of all GETs "
    "in memory. The C loop, hyper, Go, wrk and h2load send the request heads that Tern sends, field by field: before "
    "the first run those of the peers are recorded on the wire, and the benchmark ends when they differ in more than "
    "the order of the fields and the case of their names.",
    "A loop that runs the caller's tasks (session.executor) and waits for a response polls for at most 50 µs before it "
    "sleeps, when that was worthwhile lately. This buys speed at one connection with CPU time. So one connection has two "
    "rows: the targets of speed hold for the program as it is, those of CPU for a build that never polls "
    "(TERN_NO_POLLING). Calls without the executor never poll.",
    "The row with 10,000 requests at once starts each in a task of its own, over at most 32 connections, which is Tern's "
    "default limit. It is there for the peak of memory. hyper, whose pool has no limit, is left out.")


def render(cases, peers, tools, rounds, runs, size, here, programs, picture, is_brief=False):
    clients = [*peers, *tools]
    failed = sum(1 for run in runs if run["errors"])
    lines = ["# Benchmarks", "",
             "Written by `Benchmarks/run` (`make bench`). Client and server share the machine over loopback; nginx "
             f"has one worker. The peers ran in turns for {rounds} round{'s' if rounds > 1 else ''}; figures are "
             "medians of the rounds, ratios are medians of the ratios within a round. CPU is user and system time of "
             "the client's process, after a warm-up. The programs of Tern and async-http-client contain Swift's standard "
             "library, as those of Go and Rust contain theirs. Large files lie in memory (tmpfs)"
             + ("" if size == 1 << 30 else f"; **they have {size >> 20} MiB here, not 1 GiB**") + ".", "",
             "| | |", "|---|---|", *[f"| {name} | {value} |" for name, value in versions(here, programs, tools)], ""]
    if failed:
        lines += [f"**{failed} of {len(runs)} runs had errors and are left out.**", ""]
    lines += ["## Overview", "",
              "Requests a second / CPU µs a request; for files MB/s / CPU s."
              + (" wrk and h2load do nothing with an answer: they show how much the server can do." if tools else ""),
              "", overview(cases, clients, runs)]
    if any(over_connections(cases, clients, runs).values()):
        lines += [f"![Requests a second and CPU time a request, over the number of connections]({picture})", ""]
    if any(case.beside for case in cases):
        lines += ["## The cost of decoding", "",
                  "CPU µs of a typed GET and of a GET of the same JSON as bytes, one after the other in each round. "
                  "The difference is the median of the differences within a round. In brackets the target.", "",
                  decoding(cases, peers, runs)]
    if {"tern", "tern-executor"} <= set(peers):
        lines += ["## Tern: on the session's executor divided by without it", "", "| | speed | CPU |", "|---|---:|---:|"]
        for case in cases:
            values = [paired(runs, case, measure, "tern-executor", "tern") for measure in ("speed", "cpu")]
            cells = ["–" if value is None else f"{value:.2f}×" for value in values]
            lines.append(f"| {case.title} | " + " | ".join(cells) + " |")
        lines.append("")
    for ours in [peer for peer in plan.OURS if peer in peers]:
        text, told = ratios(cases, [peer for peer in peers if peer not in plan.OURS], runs, ours)
        lines += [f"## Ratios: {plan.TITLES[ours]} divided by the peer", "",
                  "In brackets the target; without brackets there is none. A speed target that is missed counts only "
                  f"where wrk or h2load reaches {limits.MARGIN} times it.", "", text, told, ""]
    if not is_brief:
        lines += ["## Figures", ""]
        lines += [table(case, case.peers(peers) + limits.of(case, tools), runs) for case in cases]
    lines += [line for note in NOTES for line in (note, "")]
    return "\n".join(lines)
