"""Runs the peers and the load generators in turns."""

import json
import os
import subprocess
import sys

import heads
import limits
import plan

SYSTEM_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def command(case, peer, programs, server):
    program = programs[case.variant if case.variant and peer in plan.OURS else peer]
    words = [program, "get" if case.scenario == "bytes" else case.scenario, "--connections", case.connections,
             "--requests", case.count(peer)]
    if case.at_once:
        words += ["--at-once", case.at_once]
    if peer == "tern-executor":
        words += ["--executor", "yes"]
    base = server.address(case.scenario, has_tls=peer != "hyper")
    if case.scenario == "upload":
        words += ["--url", f"{server.sink}/upload", "--warm-up-url", f"{server.sink}/small",
                  "--file", server.folder / "large", "--size", server.size]
    elif case.is_transfer:
        words += ["--url", f"{base}/large", "--warm-up-url", f"{base}/small", "--size", server.size]
    elif case.body:
        words += ["--url", f"{base}{case.path}", *heads.of_body(case.scenario, case.body, server.folder)]
    else:
        words += ["--url", f"{base}/64k" if case.scenario == "body64k" else f"{base}/small"]
    if case.scenario == "download-file":
        words += ["--file", server.folder / f"{peer}.out"]
    if base.startswith("https"):
        words += ["--cacert", server.ca]
        # FoundationNetworking on Linux takes no authority but the system's: it sees ours in its place, in a mount
        # namespace of its own.
        if peer == "urlsession" and sys.platform == "linux":
            words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                     'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", server.ca, SYSTEM_AUTHORITIES, *words]
    words += heads.of_peer(peer, server, case.scenario)
    return [str(word) for word in words]


def once(case, client, programs, server, seconds):
    """One run: the line that the peer printed, or a record of its failure."""
    environment = dict(os.environ, TMPDIR=str(server.folder))
    failure = {"errors": 1, "failed": True}
    try:
        if client in limits.TOOLS:
            run = limits.once(case, client, server, seconds)
        else:
            done = subprocess.run(command(case, client, programs, server), env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True, timeout=180)
            run = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        run = dict(failure, reason="no end in time")
    except (IndexError, json.JSONDecodeError):
        run = dict(failure, reason=f"exit status {done.returncode}, no figures")
    except (OSError, ValueError) as error:
        run = dict(failure, reason=str(error))
    finally:
        (server.folder / f"{client}.out").unlink(missing_ok=True)
    return dict(run, case=case.name, client=client)


def interleaved(cases, peers, tools, rounds, programs, server, seconds):
    """Every peer and load generator once a round; the first of a round changes, so that no one always follows the same
    one."""
    runs = []
    for group in plan.together(cases):
        takes_part = {case.name: case.peers(peers) + limits.of(case, tools) for case in group}
        clients = [client for client in [*peers, *tools] if any(client in some for some in takes_part.values())]
        for turn in range(rounds):
            shift = turn % len(clients)
            for client in clients[shift:] + clients[:shift]:
                for case in [case for case in group if client in takes_part[case.name]]:
                    run = once(case, client, programs, server, seconds)
                    run["round"] = turn
                    runs.append(run)
                    told = run.get("reason") or (f"{run['rps']:>9.1f}/s {run['cpu_us_per_request']:>11.2f} µs "
                                                 f"{run['mb_per_s']:>8.1f} MB/s {run['peak_rss_mib']:>7.1f} MiB")
                    errors = f"  {run['errors']} errors" if run["errors"] else ""
                    print(f"{case.name:<16} {turn + 1}/{rounds} {client:<14}{told}{errors}", file=sys.stderr,
                          flush=True)
    with open(server.work / "runs.jsonl", "w") as file:
        file.writelines(json.dumps(run) + "\n" for run in runs)
    return runs
