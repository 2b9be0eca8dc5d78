"""The plan of the benchmark: measurements, repetitions and expected figures."""

import dataclasses

PEERS = ["c", "tern", "tern-executor", "hyper", "serde", "go", "ahc", "urlsession"]
TITLES = {"c": "C libcurl", "tern": "Tern", "tern-executor": "Tern (session.executor)", "hyper": "hyper (one thread)",
          "serde": "hyper + serde_json (one thread)", "go": "Go net/http", "ahc": "async-http-client",
          "urlsession": "URLSession", "wrk": "wrk (limit)", "h2load": "h2load (limit)"}
# The ways to call Tern: each is divided by the other peers.
OURS = ["tern", "tern-executor"]
# The peers that are not products of the Swift package of their own name.
OTHER_BUILDS = ("tern-executor", "hyper", "serde", "go")
# The peers that are the program bench-hyper.
RUST = ("hyper", "serde")
# The peers of `--quick small-get`, which are built without a network.
QUICK_PEERS = ["c", "tern", "tern-executor", "hyper", "go"]
# The scenarios of calls with typed values, and of the GETs of the same JSON as bytes.
TYPED = ("user", "page", "post", "bytes")
# Scenarios that a peer does not have.
LACKING = {"c": TYPED, "hyper": ("https", *TYPED), "ahc": TYPED, "urlsession": TYPED,
           "serde": ("get", "https", "h2", "body64k", "download-file", "download-stream", "upload")}
# Peers whose pool has no limit, which would open a connection for each of the requests at once.
UNLIMITED = RUST
# Other builds of Tern's program by their names, with the switch of the manifest.
VARIANTS = {"no-polling": "TERN_NO_POLLING"}


@dataclasses.dataclass(frozen=True)
class Target:
    """A bound on Tern's figure divided by a peer's, or (peer "") on the figure itself."""

    peer: str
    measure: str  # speed: requests or bytes a second; cpu; rss: MiB; decoding: µs of CPU more than for the bytes
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
    requests: dict  # By peer; "" for those that are not named.
    targets: tuple
    # The targets of calls on the session's executor, where they are others.
    executor_targets: tuple = ()
    # Requests under way at a time; 0: as many as connections.
    at_once: int = 0
    # The build of Tern's program that is measured, one of VARIANTS. Such a case compares with the C loop alone.
    variant: str = ""
    # The JSON that a typed call sends or receives, one of `typed.BODIES`.
    body: str = ""
    # The case that fetches the same JSON as bytes. The two share their rounds, so that the difference holds less noise.
    beside: str = ""

    def targets_of(self, ours):
        return self.executor_targets if ours == "tern-executor" and self.executor_targets else self.targets

    @property
    def path(self):
        """The path of a typed call, or of the GET beside it."""
        return "/typed/users" if self.scenario == "post" else f"/typed/{self.body}.json"

    @property
    def is_transfer(self):
        return self.scenario in ("download-file", "download-stream", "upload")

    def count(self, peer):
        return self.requests.get(peer, self.requests[""])

    def peers(self, peers):
        """Those of the peers that take part."""
        lacking = UNLIMITED if self.at_once else ()
        return [peer for peer in peers if self.scenario not in LACKING.get(peer, ()) and peer not in lacking
                and (not self.variant or peer in ("c", *OURS))]

    @property
    def is_plain(self):
        """Returns whether the load generators measure the same."""
        return not self.at_once and not self.variant


def targets(rss=None, decoding=None, **peers):
    """Bounds by peer: of the speed alone, or of speed and CPU."""
    found = [Target("", measure, bound) for measure, bound in (("rss", rss), ("decoding", decoding)) if bound]
    for peer, bounds in peers.items():
        speed, cpu = bounds if isinstance(bounds, tuple) else (bounds, None)
        found += [Target(peer, measure, bound) for measure, bound in (("speed", speed), ("cpu", cpu)) if bound]
    return tuple(found)


def requests(count, ahc, urlsession):
    """Requests a run: each takes about a second."""
    return {"": count, "ahc": ahc, "urlsession": urlsession}


PAGE_TARGETS = targets(serde=(None, 1.35), go=(None, 0.3))
# By its name the title of a body, the requests of a run when it is decoded and when it stays bytes, and the targets.
BODIES = {
    "user": ("a user (193 B)", {"": 60_000, "go": 40_000}, {"": 60_000}, targets(decoding=1.5)),
    "page30": ("30 repositories (21 KB)", {"": 10_000, "go": 3_500}, {"": 30_000}, PAGE_TARGETS),
    "page300": ("300 repositories (214 KB)", {"": 1_000, "go": 350}, {"": 6_000}, PAGE_TARGETS),
}


def typed_get(body, connections):
    """The case that decodes a body, and the one that fetches the same as bytes."""
    title, decoded, fetched, bounds = BODIES[body]
    beside = f"{body}-bytes-{connections}"
    return [Case(f"{body}-{connections}", f"typed GET of {title}, {connections} connections",
                 "user" if body == "user" else "page", connections, decoded, bounds, body=body, beside=beside),
            Case(beside, f"GET of {title} as bytes, {connections} connections", "bytes", connections, fetched, (),
                 body=body)]


def typed_post(connections):
    title = BODIES["page30"][0]
    return Case(f"post-{connections}", f"typed POST of {title}, {connections} connections", "post", connections,
                {"": 10_000, "go": 6_000}, (), body="page30")


SMALL = requests(60_000, ahc=36_000, urlsession=5_000)
ONE = {"": 1}

CASES = [
    # The call that people write comes first.
    *typed_get("user", 16), *typed_get("user", 64),
    *typed_get("page30", 16), *typed_get("page30", 64),
    *typed_get("page300", 16),
    typed_post(16), typed_post(64),
    Case("get-1", "small GET, 1 connection", "get", 1, requests(15_000, ahc=7_500, urlsession=3_500),
         targets(go=0.7, hyper=0.7, ahc=2, urlsession=3), targets(go=1, hyper=0.9, ahc=2, urlsession=3)),
    # The targets of CPU hold for a loop that does not poll before it sleeps, those of speed for one that does.
    Case("get-1-no-polling", "small GET, 1 connection, no polling", "get", 1, requests(15_000, ahc=7_500, urlsession=3_500),
         targets(c=(None, 1.5)), targets(c=(None, 0.9)), variant="no-polling"),
    Case("get-16", "small GET, 16 connections", "get", 16, SMALL,
         targets(c=(1.05, 0.95), go=1.15, hyper=0.7, ahc=2.5, urlsession=10),
         targets(c=(1.15, 0.8), go=1.15, hyper=0.85, ahc=2.5, urlsession=10)),
    Case("get-64", "small GET, 64 connections", "get", 64, SMALL,
         targets(c=(1.4, 0.75), go=1.5, hyper=(0.75, 1.4), ahc=2.8, urlsession=10),
         targets(c=(1.4, 0.75), go=1.5, hyper=(0.9, 1.15), ahc=2.8, urlsession=10)),
    Case("get-256", "small GET, 256 connections", "get", 256, SMALL,
         targets(c=(1.4, 0.75), go=1.5, hyper=(0.75, 1.4), ahc=2.8, urlsession=10),
         targets(c=(1.4, 0.75), go=1.5, hyper=(0.9, 1.15), ahc=2.8, urlsession=10)),
    # 32 is Tern's own default.
    Case("get-10000", "10,000 small GETs at once, 32 connections", "get", 32, {"": 10_000}, targets(rss=150),
         at_once=10_000),
    Case("https-64", "HTTPS, HTTP/1.1, 64 connections", "https", 64, requests(40_000, ahc=25_000, urlsession=4_000),
         targets(c=1.2, go=1.2, ahc=2)),
    Case("h2-100", "HTTP/2 over TLS, 100 streams", "h2", 100, requests(50_000, ahc=25_000, urlsession=4_000),
         targets(c=(1.5, 0.65), go=1.2, ahc=3, urlsession=9)),
    Case("body64k-16", "64 KiB bodies, 16 connections", "body64k", 16,
         requests(25_000, ahc=15_000, urlsession=2_000),
         targets(c=(1.1, 1.0), go=1.5, hyper=0.8, ahc=2, urlsession=8)),
    Case("download-file", "1 GiB download to a file", "download-file", 1, ONE,
         targets(rss=20, c=1.3, go=1.5, hyper=0.9, ahc=2.6, urlsession=2.5)),
    Case("download-stream", "1 GiB download, streamed", "download-stream", 1, ONE,
         targets(rss=20, c=1.0, go=1.5, hyper=0.9, ahc=2, urlsession=2.5)),
    Case("upload", "1 GiB upload from a file", "upload", 1, ONE,
         targets(rss=20, c=(1.2, 0.9), go=0.9, hyper=0.9, ahc=1.3, urlsession=10)),
]
# Names of several cases.
GROUPS = {"small-get": ("get-1", "get-16", "get-64", "get-256"), "typed": TYPED}


def select(only, divisor):
    """The cases named (all, when none is), with that fraction of their requests."""
    names = {name for word in only or () for name in GROUPS.get(word, (word,))}
    chosen = [case for case in CASES if not names or case.name in names or case.scenario in names]
    beside = {case.beside for case in chosen}
    chosen = [case for case in CASES if case in chosen or case.name in beside]
    return [
        case if case.at_once else dataclasses.replace(
            case, requests={peer: max(count // divisor, 1) for peer, count in case.requests.items()})
        for case in chosen
    ]


def together(cases):
    """The cases in groups whose rounds are shared: the bytes stand before the case beside which they are."""
    by_name = {case.name: case for case in cases}
    taken = {case.beside for case in cases}
    return [[by_name[case.beside], case] if case.beside else [case] for case in cases if case.name not in taken]
