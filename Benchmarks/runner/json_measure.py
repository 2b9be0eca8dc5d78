"""Checks the peers of `run-json`, and measures them in turns."""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

# The CPU time of the measured calls of one run, in µs, and of those that are counted under callgrind, where a call
# takes fifty times as long.
RUN = 300_000
COUNTED = 3_000


def output(words, **options):
    """Returns the output of a command. Its complaints are shown if it fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, timeout=600, **options)
    if done.returncode:
        sys.exit(f"run-json: {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    return done


class Peer:
    """A program, the file of a shape, and one direction."""

    def __init__(self, words, shape, direction, path):
        self.words = [*words, shape, direction, path]
        self.count = 0

    def once(self, warm_up, count):
        return json.loads(output([*self.words, warm_up, count]).stdout)

    def calibrate(self):
        """Chooses the number of calls of a run."""
        each = self.once(0, 2)["cpu_us"]
        each = self.once(1, max(2, int(RUN / 10 / each)))["cpu_us"]
        self.each = each
        self.count = max(3, int(RUN / each))

    def run(self):
        return self.once(max(1, self.count // 5), self.count)

    def mallocs(self, library):
        """The allocations of a call: the difference of two runs holds no start."""
        counted = []
        for count in (10, 30):
            with tempfile.NamedTemporaryFile() as file:
                output([*self.words, 10, count], env=dict(os.environ, LD_PRELOAD=str(library), BENCH_MALLOCS=file.name))
                counted.append(int(file.read()))
        return (counted[1] - counted[0]) / 20

    def instructions(self):
        """The instructions of a call in user space, by the same difference."""
        calls = max(1, int(COUNTED / self.each))
        counted = []
        for count in (calls, 2 * calls):
            done = output(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *self.words, 1, count])
            counted.append(int(re.search(rb"Collected\s*:\s*(\d+)", done.stderr)[1]))
        return (counted[1] - counted[0]) / calls


def is_same(one, other, is_exact):
    """Compares two values. Members that are null count as absent."""
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = ({name: member for name, member in value.items() if member is not None} for value in (one, other))
        return one.keys() == other.keys() and all(is_same(one[name], other[name], is_exact) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(is_same(*pair, is_exact) for pair in zip(one, other))
    if isinstance(one, float) and not is_exact:
        return math.isclose(one, other, rel_tol=1e-15)
    # 1 and 1.0 are the same number, true and 1 are not the same.
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def sorted_object(pairs):
    names = [name for name, _ in pairs]
    if names != sorted(names):
        raise ValueError("the names are not sorted")
    return dict(pairs)


def check(words, peer, shape, path):
    """Refuses a peer that does not encode the values that it decoded, or not in the asked layout."""
    text = output([*words, shape.name, "check", path]).stdout
    fault = None
    try:
        made = json.loads(text, object_pairs_hook=sorted_object if shape.name == "sorted" else None)
        if not is_same(json.loads(path.read_bytes()), made, is_exact=peer != "serde"):
            fault = "it wrote other values than the file has"
    except ValueError as error:
        fault = str(error)
    if shape.name == "pretty" and peer in shape.encoders and text.count(b"\n") < 100:
        fault = "it wrote one line"
    if fault:
        sys.exit(f"run-json: {peer} is refused for {shape.name}: {fault}")


def interleaved(name, peers, rounds):
    """Every peer once a round; the first of a round changes. Returns the CPU times of a call in µs by peer."""
    runs = {peer: [] for peer in peers}
    sizes = {}
    for peer in peers.values():
        peer.calibrate()
    for turn in range(rounds):
        order = list(peers)
        shift = turn % len(order)
        for peer in order[shift:] + order[:shift]:
            figures = peers[peer].run()
            runs[peer].append(figures["cpu_us"])
            if sizes.setdefault(peer, figures["bytes"]) != figures["bytes"]:
                sys.exit(f"run-json: {peer} made {figures['bytes']} bytes of {name}, and {sizes[peer]} before")
            print(f"{name} {turn + 1}/{rounds} {peer:<12}{figures['cpu_us']:>12.3f} µs", file=sys.stderr, flush=True)
    return runs
