"""Reads a profile of callgrind, and splits its instructions by the layers of the program."""

import collections
import re

# Layers by the start of mangled names. Every other function serves all layers: its instructions go to its callers.
ENGINE, ABOVE, PROGRAM, RUNTIME = "engine", "above", "program", "runtime"
LAYERS = (ENGINE, ABOVE, PROGRAM, RUNTIME)
MODULES = (("$s10TernEngine", ENGINE), ("tern_loop", ENGINE), ("$s4Tern", ABOVE), ("$s10bench_tern", PROGRAM),
           ("$s12BenchSupport", PROGRAM))
# Calls that count up and down; those of bridged objects call the plain ones.
RETAINS = ("swift_retain", "swift_retain_n", "swift_bridgeObjectRetain", "swift_bridgeObjectRetain_n")
RELEASES = ("swift_release", "swift_release_n", "swift_bridgeObjectRelease", "swift_bridgeObjectRelease_n")


class Profile:
    """The instructions of each function itself, and the number and the inclusive instructions of each call."""

    def __init__(self, path):
        self.own = collections.Counter()
        self.calls = collections.Counter()       # By (caller, called).
        self.inclusive = collections.Counter()   # By (caller, called).
        names, function, called = {}, "", None
        with open(path, errors="replace") as file:
            for line in file:
                if match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line):
                    name = names[match[2]] = (match[3] or names.get(match[2], "")).strip()
                    # Levels of a recursion, "name'2", are one function.
                    name = re.sub(r"'\d+$", "", name)
                    function, called = (function, name) if match[1] else (name, None)
                elif line.startswith("calls="):
                    self.calls[function, called] += int(line[6:].split()[0])
                elif re.match(r"[\d+*-]", line) and (words := line.split())[1:]:
                    if called is None:
                        self.own[function] += int(words[1])
                    else:
                        self.inclusive[function, called] += int(words[1])
                        called = None

    def counted(self, names):
        """Calls of the functions, without those that one of them makes to another."""
        return sum(count for (caller, called), count in self.calls.items() if called in names and caller not in names)

    def above_engine(self, names):
        """Calls of the functions, of those that `counted` counts, by all but the engine."""
        engine = tuple(start for start, layer in MODULES if layer == ENGINE)
        return sum(count for (caller, called), count in self.calls.items()
                   if called in names and caller not in names and not caller.startswith(engine))

    def by_layer(self):
        """Instructions by layer. A function of no layer gives each caller the share of its calls' inclusive counts, and
        to the runtime what no layer calls: the loops of the threads that run Swift's tasks."""
        shares = {name: dict.fromkeys(LAYERS, 0) for name in self.own}
        fixed = {name: layer for name in self.own for start, layer in MODULES if name.startswith(start)}
        for name in shares:
            shares[name][fixed.get(name, RUNTIME)] = 1
        callers = collections.defaultdict(list)
        for (caller, called), cost in self.inclusive.items():
            if called not in fixed and called in shares and caller in shares and caller != called and cost:
                callers[called].append((caller, cost))
        for _ in range(50):
            for name, found in callers.items():
                whole = sum(cost for _, cost in found)
                shares[name] = {layer: sum(shares[caller][layer] * cost for caller, cost in found) / whole
                                for layer in LAYERS}
        return {layer: sum(count * shares[name][layer] for name, count in self.own.items()) for layer in LAYERS}
