"""Builds the programs of the peers, each kind in a folder of its own below the scratch path."""

import os
import pathlib
import subprocess

import plan

# The programs that contain Swift's standard library, as those of Go and Rust contain theirs. Foundation's networking, which
# URLSession needs, is linked dynamically.
STATIC = ("tern", "ahc")
CONTAINING = ["--static-swift-stdlib"]

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


def rust(folder, name="bench-hyper"):
    """Builds a peer in Rust from Debian's crates. Cargo reads their place from the folder of the sources."""
    sources = HERE / "Sources" / name
    # The file of another version of Cargo may be unreadable for this one.
    (sources / "Cargo.lock").unlink(missing_ok=True)
    subprocess.run(["cargo", "build", "--offline", "--release", "--target-dir", str(folder)], check=True, cwd=sources)


def prepare(scratch, peers, builds=True, variants=tuple(plan.VARIANTS)):
    """The program of each peer by its name, "sink", and the variants of Tern's program by theirs: built, or those that the
    scratch path already holds."""
    scratch = scratch.resolve()
    is_whole = "ahc" in peers
    local = {} if is_whole else {"TERN_BENCH_LOCAL": "1"}
    built = {"sink", *(peer for peer in peers if peer not in plan.OTHER_BUILDS)}
    if "tern-executor" in peers:
        built.add("tern")
    programs = {}
    for folder, names, extra in (
            (scratch if is_whole else scratch / "local", sorted(built - set(STATIC)), []),
            (scratch / ("static-all" if is_whole else "static"), sorted(built & set(STATIC)), CONTAINING)):
        bin_path = folder / "release"
        if builds and names:
            bin_path = swift(folder, [f"bench-{name}" for name in names], local, extra)
        programs.update({name: bin_path / f"bench-{name}" for name in names})
    if "tern-executor" in peers:
        programs["tern-executor"] = programs["tern"]
    for variant in variants if set(plan.OURS) & set(peers) else ():
        folder = scratch / variant / "release"
        if builds:
            folder = swift(scratch / variant, ["bench-tern"], {"TERN_BENCH_LOCAL": "1", plan.VARIANTS[variant]: "1"},
                           CONTAINING)
        programs[variant] = folder / "bench-tern"
    if "go" in peers:
        if builds:
            go(scratch / "go")
        programs["go"] = scratch / "go" / "bench-go"
    if set(plan.RUST) & set(peers):
        if builds:
            rust(scratch / "hyper")
        programs.update({peer: scratch / "hyper" / "release" / "bench-hyper" for peer in plan.RUST if peer in peers})
    return programs
