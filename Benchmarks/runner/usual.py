"""Measures the call of most programs: a session with a cookie store, retries and an authorization, and a decoded value."""

import json
import statistics
import subprocess

import programs
import typed

TITLE = "The call of a program"
REQUESTS = 40_000
CONNECTIONS = (16, 64)
TERN = ("--with", "cookie,retry,adapter")
# The peer that the others are compared with, and then those.
NAMES = {
    "tern": "Tern: `CookieStore`, `RetryInterceptor`, `RequestAdapter`",
    "executor": "Tern, the callers on `session.executor`",
    "go": "Go: `cookiejar.Jar`, two `RoundTripper`s, `encoding/json`",
    "reqwest": "reqwest 0.11: `Jar`, a loop of its own, serde_json",
}


def prepare(scratch, builds):
    """The programs of the peers in other languages."""
    if builds:
        programs.go(scratch / "go")
        programs.rust(scratch / "reqwest", "bench-reqwest")
    return {"go": scratch / "go" / "bench-go", "reqwest": scratch / "reqwest" / "release" / "bench-reqwest"}


def once(name, binary, connections, server):
    """The processor time of one call, and the calls a second."""
    words = [binary, "user", "--url", f"{server.http}/typed/user.json", "--connections", connections,
             "--requests", REQUESTS]
    if name != "reqwest":
        words += ["--size", len(typed.text("user")), "--expect", typed.expected("user")]
    if name in ("tern", "executor"):
        words += TERN
    if name == "executor":
        words += ["--executor", "yes"]
    if name == "go":
        words += ["--usual", "yes"]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
    run = json.loads(done.stdout.strip().splitlines()[-1])
    if run["errors"]:
        raise SystemExit(f"Benchmarks/run: {run['errors']} requests of {name} failed")
    return run["cpu_seconds"] / REQUESTS * 1e6, REQUESTS / run["seconds"]


def measure(binaries, server, version, rounds):
    """The section of RESULTS.md. The peers take turns, so that a disturbance of the machine hits all."""
    taken = {(name, count): [] for name in NAMES for count in CONNECTIONS}
    for _ in range(rounds):
        for count in CONNECTIONS:
            for name in NAMES:
                binary = binaries["tern" if name == "executor" else name]
                taken[name, count].append(once(name, binary, count, server))
    lines = [
        f"A GET of a user of {len(typed.text('user')):,} bytes with one cookie, an authorization and retries, decoded to a "
        f"value: what most programs do. Processor time of a call in microseconds, and calls a second. Measured by "
        f"`Benchmarks/run --additions` for Tern {version} with callers in the global pool, the default build, "
        f"{REQUESTS:,} calls a run, medians of {rounds} runs of which each peer had one in turn; in brackets Tern's "
        f"processor time divided by that of the peer, as a median of the rounds.", "",
        "| | " + " | ".join(f"{count} connections: CPU | calls/s" for count in CONNECTIONS) + " |",
        "|---|" + "---:|---:|" * len(CONNECTIONS)]
    for name, title in NAMES.items():
        cells = []
        for count in CONNECTIONS:
            cpu, rate = (statistics.median(values) for values in zip(*taken[name, count]))
            ratio = statistics.median(
                ours[0] / theirs[0] for ours, theirs in zip(taken["tern", count], taken[name, count]))
            cells.append(f"{cpu:.1f}" + ("" if name == "tern" else f" ({ratio:.2f})") + f" | {rate:,.0f}")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])
