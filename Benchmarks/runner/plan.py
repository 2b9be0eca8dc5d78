"""The plan of the benchmark: measurements, repetitions and expected figures."""

import dataclasses

PEERS = ["c", "tern", "ahc", "urlsession"]
TITLES = {"c": "C libcurl", "tern": "Tern", "ahc": "async-http-client", "urlsession": "URLSession"}


@dataclasses.dataclass(frozen=True)
class Target:
    """A bound on Tern's figure divided by a peer's, or (peer "") on the figure itself."""

    peer: str
    measure: str  # speed: requests or bytes a second; cpu; rss: MiB
    bound: float

    @property
    def at_least(self):
        return self.measure == "speed"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    title: str
    scenario: str
    connections: int
    requests: dict
    targets: tuple

    @property
    def is_transfer(self):
        return self.scenario in ("download-file", "download-stream", "upload")


def against(ahc, urlsession, c):
    """Targets: (speed, CPU) against async-http-client, speed against URLSession, measures against C."""
    targets = [Target("ahc", "speed", ahc[0]), Target("ahc", "cpu", ahc[1]), Target("urlsession", "speed", urlsession)]
    targets += [Target("" if measure == "rss" else "c", measure, bound) for measure, bound in c.items()]
    return tuple(targets)


# Requests a run: each takes about a second.
SMALL = {"c": 60_000, "tern": 60_000, "ahc": 36_000, "urlsession": 5_000}
ONE = {"transfer": 1}

CASES = [
    Case("get-1", "small GET, 1 connection", "get", 1,
         {"c": 15_000, "tern": 15_000, "ahc": 7_500, "urlsession": 3_500}, against((1.5, 0.5), 3, {"cpu": 1.5})),
    Case("get-16", "small GET, 16 connections", "get", 16, SMALL,
         against((1.3, 0.65), 10, {"speed": 0.72, "cpu": 1.55})),
    Case("get-64", "small GET, 64 connections", "get", 64, SMALL,
         against((1.3, 0.65), 10, {"speed": 0.85, "cpu": 1.35})),
    Case("get-256", "small GET, 256 connections", "get", 256, SMALL,
         against((1.3, 0.65), 10, {"speed": 0.85, "cpu": 1.35})),
    Case("h2-100", "HTTP/2 over TLS, 100 streams", "h2", 100,
         {"c": 50_000, "tern": 50_000, "ahc": 25_000, "urlsession": 4_000}, against((1.6, 0.5), 9, {"cpu": 1.35})),
    Case("body64k-16", "64 KiB bodies, 16 connections", "body64k", 16,
         {"c": 25_000, "tern": 25_000, "ahc": 15_000, "urlsession": 2_000}, against((1.1, 0.8), 8, {"cpu": 1.7})),
    Case("download-file", "1 GiB download to a file", "download-file", 1, ONE,
         against((1.5, 0.65), 2.5, {"rss": 32})),
    Case("download-stream", "1 GiB download, streamed", "download-stream", 1, ONE,
         against((1.5, 0.65), 2.5, {"rss": 32})),
    Case("upload", "1 GiB upload from a file", "upload", 1, ONE, against((1.2, 0.7), 10, {"cpu": 1.2})),
]


def select(only, divisor):
    """The cases named (all, when none is), with that fraction of their requests."""
    chosen = [case for case in CASES if not only or case.name in only or case.scenario in only]
    return [
        dataclasses.replace(case, requests={peer: max(count // divisor, 1) for peer, count in case.requests.items()})
        for case in chosen
    ]
