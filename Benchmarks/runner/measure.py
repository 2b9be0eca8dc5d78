"""Runs the peers in turns."""

import json
import os
import subprocess
import sys

import heads

SYSTEM_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def command(case, peer, folder, server):
    requests = case.requests.get(peer, case.requests.get("transfer"))
    words = [folder / f"bench-{peer}", case.scenario, "--connections", case.connections, "--requests", requests]
    base = server.https if case.scenario == "h2" else server.http
    if case.scenario == "upload":
        words += ["--url", f"{server.sink}/upload", "--warm-up-url", f"{server.sink}/small",
                  "--file", server.folder / "large", "--size", server.size]
    elif case.is_transfer:
        words += ["--url", f"{base}/large", "--warm-up-url", f"{base}/small", "--size", server.size]
    else:
        words += ["--url", f"{base}/64k" if case.scenario == "body64k" else f"{base}/small"]
    if case.scenario == "download-file":
        words += ["--file", server.folder / f"{peer}.out"]
    if case.scenario == "h2":
        words += ["--cacert", server.ca]
        # FoundationNetworking on Linux takes no authority but the system's: it sees ours in its place, in a mount
        # namespace of its own.
        if peer == "urlsession" and sys.platform == "linux":
            words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                     'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", server.ca, SYSTEM_AUTHORITIES, *words]
    if peer == "c":
        words += heads.words(server.fields.get(case.scenario, []))
    return [str(word) for word in words]


def once(case, peer, folder, server):
    """One run: the line that the peer printed, or a record of its failure."""
    environment = dict(os.environ, TMPDIR=str(server.folder))
    failure = {"client": peer, "errors": 1, "failed": True}
    try:
        done = subprocess.run(command(case, peer, folder, server), env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=180)
        run = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        run = dict(failure, reason="no end after 180 s")
    except (IndexError, json.JSONDecodeError):
        run = dict(failure, reason=f"exit status {done.returncode}, no figures")
    except OSError as error:
        run = dict(failure, reason=str(error))
    finally:
        (server.folder / f"{peer}.out").unlink(missing_ok=True)
    run["case"] = case.name
    return run


def interleaved(cases, peers, rounds, folder, server):
    """Every peer once a round; the first of a round changes, so that no one always follows the same one."""
    runs = []
    for case in cases:
        for turn in range(rounds):
            shift = turn % len(peers)
            for peer in peers[shift:] + peers[:shift]:
                run = once(case, peer, folder, server)
                run["round"] = turn
                runs.append(run)
                told = run.get("reason") or (f"{run['rps']:>9.1f}/s {run['cpu_us_per_request']:>11.2f} µs "
                                             f"{run['mb_per_s']:>8.1f} MB/s {run['peak_rss_mib']:>7.1f} MiB")
                errors = f"  {run['errors']} errors" if run["errors"] else ""
                print(f"{case.name:<16} {turn + 1}/{rounds} {peer:<11}{told}{errors}", file=sys.stderr, flush=True)
    with open(server.work / "runs.jsonl", "w") as file:
        file.writelines(json.dumps(run) + "\n" for run in runs)
    return runs
