"""Counts user-space instructions of one request, free of the machine's noise."""

import re
import subprocess


def collected(binary, requests, server):
    """All instructions of a run with one worker and no warm-up."""
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={server.work}/{binary.name}.{requests}.callgrind",
             str(binary), "get", "--url", f"{server.http}/small", "--connections", "1", "--requests", str(requests),
             "--warm-up", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected\s*:\s*(\d+)", done.stderr).group(1))


def count(binaries, server, few=500, many=2_500):
    """The difference of two runs holds no start-up, only requests."""
    for peer, binary in binaries.items():
        if not binary.exists():
            print(f"{peer}: not built")
            continue
        # Valgrind stumbles over the compiler's debug information; the symbols stay.
        stripped = server.folder / binary.name
        subprocess.run(["strip", "-g", "-o", stripped, binary], check=True)
        binary = stripped
        difference = collected(binary, many, server) - collected(binary, few, server)
        print(f"{peer}: {difference / (many - few):,.0f} instructions a request")
    print(f"Profiles: {server.work}/*.callgrind (callgrind_annotate)")
