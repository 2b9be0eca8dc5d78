"""Runs wrk and h2load: load generators that do nothing with an answer, and so show how much the server can do."""

import re
import resource
import subprocess

import heads
import typed

# Scenarios of each.
TOOLS = {"wrk": ("get", "https", "body64k", "bytes"), "h2load": ("get", "https", "body64k", "bytes", "h2")}
# A speed target counts where one of them reaches so many times the figure that the target demands.
MARGIN = 1.15


def of(case, tools):
    """Those of the tools that measure the case."""
    return [tool for tool in tools if case.scenario in TOOLS[tool] and case.is_plain]


def command(case, tool, server, seconds):
    path = case.path if case.body else "/64k" if case.scenario == "body64k" else "/small"
    url = server.address(case.scenario) + path
    fields = [word for field in heads.all_fields(server, case.scenario) for word in ("-H", field)]
    if tool == "wrk":
        words = ["wrk", "-t", 1, "-c", case.connections, "-d", f"{seconds}s", "--timeout", "30s"]
    elif case.scenario == "h2":
        words = ["h2load", "-t", 1, "-c", 1, "-m", case.connections, "-D", seconds]
    else:
        words = ["h2load", "--h1", "-t", 1, "-c", case.connections, "-D", seconds]
    return [str(word) for word in [*words, *fields, url]]


def read(tool, text):
    """Requests in all, requests a second, and failures."""
    if tool == "wrk":
        total, rate = re.search(r"(\d+) requests in", text), re.search(r"Requests/sec:\s*([\d.]+)", text)
        failed = sum(map(int, re.findall(r"(?:connect|read|write|timeout|responses:) (\d+)", text)))
    else:
        total, rate = re.search(r"(\d+) succeeded", text), re.search(r"finished in .*?, ([\d.]+) req/s", text)
        failed = sum(map(int, re.findall(r"(\d+) (?:failed|errored|timeout)", text)))
    if not total or not rate or not int(total[1]):
        raise ValueError(f"{tool} printed no figures")
    return int(total[1]), float(rate[1]), failed


def once(case, tool, server, seconds):
    """One run as a record, of the same form as those of the peers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command(case, tool, server, seconds), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60 + seconds)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total, rate, failed = read(tool, done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = 65_536 if case.scenario == "body64k" else len(typed.text(case.body)) if case.body else 0
    return {"client": tool, "scenario": case.scenario, "connections": case.connections, "requests": total, "rps": rate,
            "cpu_us_per_request": cpu * 1e6 / total, "cpu_seconds": cpu, "mb_per_s": rate * size / 1e6,
            "peak_rss_mib": 0.0, "errors": failed}
