"""Builds the programs of `run-json`, each in a folder of its own below the scratch path."""

import os
import pathlib
import subprocess
import sys

import programs

PACKAGES = ["orjson==3.13.0", "msgspec==0.22.0"]
# The names of the peers in the tables.
TITLES = {"tern": "Tern", "foundation": "Foundation", "serde": "serde_json", "go": "Go", "orjson": "orjson",
          "msgspec": "msgspec"}
HERE = pathlib.Path(__file__).resolve().parent.parent
SOURCES = HERE / "Sources"
PEER = HERE / "runner/json_peer.py"


def swift(folder, *extra):
    """The program of Tern and Foundation. Builds the product TernJSON alone, and fetches nothing."""
    return programs.swift(folder, ["bench-json"], {"TERN_BENCH_LOCAL": "1"}, extra) / "bench-json"


def rust(folder, *extra):
    """The program of serde_json, built from Debian's crates, whose place Cargo reads from the folder of the sources."""
    sources = SOURCES / "bench-json-rust"
    # The file of another version of Cargo may be unreadable for this one.
    (sources / "Cargo.lock").unlink(missing_ok=True)
    command = ["cargo", "build", "--offline", "--release", "--target-dir", folder, *extra]
    subprocess.run(command, check=True, cwd=sources)
    return folder / "release/bench-json-rust"


def go(folder):
    environment = dict(os.environ, GOCACHE=str(folder / "cache"), GOPROXY="off", GOFLAGS="-buildvcs=false",
                       GOTOOLCHAIN="local", GOWORK="off")
    subprocess.run(["go", "build", "-o", folder / "bench-json-go", "."], check=True, env=environment,
                   cwd=SOURCES / "bench-json-go")
    return folder / "bench-json-go"


def python(folder):
    """An interpreter with the packages."""
    interpreter = folder / "bin/python"
    if not interpreter.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return interpreter


def mallocs(folder):
    """The library that counts allocations."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "mallocs.so"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library,
                    SOURCES / "bench-json-mallocs/mallocs.c"], check=True)
    return library


def prepare(scratch, work):
    """The first words of each peer's command by its name, with "debug-" before those of debug builds, and the library
    that counts allocations."""
    scratch = scratch.resolve()
    commands = {}
    for prefix, program in (("", swift(scratch / "json")), ("debug-", swift(scratch / "json-debug", "-c", "debug"))):
        for coder in ("tern", "foundation"):
            commands[prefix + coder] = [program, coder]
    commands["serde"] = [rust(scratch / "json-rust")]
    commands["serde-exact"] = [rust(scratch / "json-rust-exact", "--features", "exact")]
    commands["go"] = [go(scratch / "json-go")]
    interpreter = python(work / "venv")
    for coder in ("orjson", "msgspec"):
        commands[coder] = [interpreter, "-B", PEER, coder]
    return commands, mallocs(scratch / "json-mallocs")
