"""Measures what the parts of a session cost that a program adds: cookies, interceptors, observers, handles, progress."""

import json
import statistics
import subprocess

TITLE = "Additions to a session"
REQUESTS = 40_000
CONNECTIONS = (16, 64)
ROWS = (
    ("nothing", ()),
    ("a cookie store in use", ("--with", "cookie")),
    ("an observer that counts the events", ("--with", "observer")),
    ("a `SessionInspector`, without a viewer", ("--with", "inspector")),
    ("`RetryInterceptor`", ("--with", "retry")),
    ("a `RequestAdapter` that adds a header", ("--with", "adapter")),
    ("the cookie store, `RetryInterceptor` and the adapter", ("--with", "cookie,retry,adapter")),
    ("an interceptor that adds a header and may wait", ("--with", "interceptor")),
    ("the cookie store, `RetryInterceptor` and that interceptor", ("--with", "cookie,retry,interceptor")),
    ("a handle, whose value is awaited", ("--with", "handle")),
    ("a handle whose progress one task reads", ("--watch", "yes")),
)


def once(binary, extra, connections, server):
    """Microseconds of processor time of one request."""
    words = [binary, "get", "--url", f"{server.http}/small", "--connections", connections, "--requests", REQUESTS, *extra]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
    run = json.loads(done.stdout.strip().splitlines()[-1])
    if run["errors"]:
        raise SystemExit(f"Benchmarks/run: {run['errors']} requests failed with {' '.join(extra)}")
    return run["cpu_seconds"] / REQUESTS * 1e6


def measure(binary, server, version, rounds):
    """The section of RESULTS.md. The rows take turns, so that a disturbance of the machine hits all."""
    taken = {(title, count): [] for title, _ in ROWS for count in CONNECTIONS}
    for _ in range(rounds):
        for title, extra in ROWS:
            for count in CONNECTIONS:
                taken[title, count].append(once(binary, extra, count, server))
    medians = {key: statistics.median(values) for key, values in taken.items()}
    lines = [
        f"CPU time of one small GET in microseconds, and divided by that of a session without additions. Measured by "
        f"`Benchmarks/run --additions` for Tern {version}: callers in the global pool, the default build, "
        f"{REQUESTS:,} requests a run, medians of {rounds} runs of which each row had one in turn.", "",
        "| the session has | " + " | ".join(f"{count} connections" for count in CONNECTIONS) + " |",
        "|---|" + "---:|" * len(CONNECTIONS)]
    for title, _ in ROWS:
        cells = [f"{medians[title, count]:.1f} ({medians[title, count] / medians[ROWS[0][0], count]:.2f})"
                 for count in CONNECTIONS]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])
