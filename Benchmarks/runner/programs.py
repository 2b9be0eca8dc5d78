"""Builds the programs of the peers, each kind in a folder of its own below the scratch path."""

import os
import pathlib
import subprocess

import plan

HERE = pathlib.Path(__file__).resolve().parent.parent


def swift(scratch, products, switches=None, extra=()):
    """Builds the products in release, with these switches of the manifests, and returns the folder that holds them."""
    own = {"TERN_BENCH_LOCAL", *plan.VARIANTS.values()}
    environment = {name: value for name, value in os.environ.items() if name not in own}
    environment.update(switches or {})
    command = ["swift", "build", "--package-path", str(HERE), "-c", "release", "--scratch-path", str(scratch), *extra]
    # A build without dependencies removes the file that pins those of the whole package.
    resolved = HERE / "Package.resolved"
    pins = resolved.read_bytes() if resolved.exists() and "TERN_BENCH_LOCAL" in environment else None
    try:
        for product in products:
            subprocess.run([*command, "--product", product], check=True, env=environment)
        shown = subprocess.run([*command, "--show-bin-path"], check=True, capture_output=True, text=True,
                               env=environment)
    finally:
        if pins is not None:
            resolved.write_bytes(pins)
    return pathlib.Path(shown.stdout.strip().splitlines()[-1])


def go(folder):
    """Builds the peer in Go, with a cache below the scratch path and without a module from elsewhere."""
    environment = dict(os.environ, GOCACHE=str(folder / "cache"), GOPROXY="off", GOFLAGS="-buildvcs=false",
                       GOTOOLCHAIN="local", GOWORK="off")
    subprocess.run(["go", "build", "-o", str(folder / "bench-go"), "."], check=True, env=environment,
                   cwd=HERE / "Sources/bench-go")


def rust(folder):
    """Builds the peer in Rust from Debian's crates. Cargo reads their place from the folder of the sources."""
    sources = HERE / "Sources/bench-hyper"
    # The file of another version of Cargo may be unreadable for this one.
    (sources / "Cargo.lock").unlink(missing_ok=True)
    subprocess.run(["cargo", "build", "--offline", "--release", "--target-dir", str(folder)], check=True, cwd=sources)


def prepare(scratch, peers, builds=True, variants=tuple(plan.VARIANTS)):
    """The program of each peer by its name, "sink", and the variants of Tern's program by theirs: built, or those that the
    scratch path already holds."""
    scratch = scratch.resolve()
    is_whole = "ahc" in peers
    local = {} if is_whole else {"TERN_BENCH_LOCAL": "1"}
    folder = (scratch if is_whole else scratch / "local") / "release"
    built = [peer for peer in peers if peer not in plan.OTHER_BUILDS]
    if builds:
        folder = swift(folder.parent, ["bench-sink"] + [f"bench-{peer}" for peer in built], local)
    programs = {peer: folder / f"bench-{peer}" for peer in [*built, "sink"]}
    if "tern-executor" in peers:
        programs["tern-executor"] = folder / "bench-tern"
        if builds and "tern" not in peers:
            swift(folder.parent, ["bench-tern"], local)
    for variant in variants if set(plan.OURS) & set(peers) else ():
        folder = scratch / variant / "release"
        if builds:
            folder = swift(scratch / variant, ["bench-tern"], {"TERN_BENCH_LOCAL": "1", plan.VARIANTS[variant]: "1"})
        programs[variant] = folder / "bench-tern"
    if "go" in peers:
        if builds:
            go(scratch / "go")
        programs["go"] = scratch / "go" / "bench-go"
    if "hyper" in peers:
        if builds:
            rust(scratch / "hyper")
        programs["hyper"] = scratch / "hyper" / "release" / "bench-hyper"
    return programs
