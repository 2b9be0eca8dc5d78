"""Compares the request heads of the peers with Tern's: otherwise they would not do the same work."""

import json
import pathlib
import socket
import subprocess
import tempfile
import threading

import plan
import typed

SCENARIOS = ("get", "download-file", "download-stream", "upload")
# The scenarios of typed calls, with the body of the comparison.
TYPED = {"user": "user", "page": "page30", "post": "page30"}
SIZE = 70
# Peers that take the fields of their requests from the command line.
TAKING = ("c", "hyper", "serde", "go")
# Fields that libcurl writes by itself, with the same value.
OWN = ("accept",)


class Recorder:
    """Context manager: a server that keeps the head and the body of each request. It answers with that JSON, if any."""

    def __init__(self, json=None):
        self.json = json

    def __enter__(self):
        self.heads, self.bodies, self.socket = [], [], socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/x" % self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _serve(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection):
        received = b""
        while b"\r\n\r\n" not in received:
            more = connection.recv(1 << 16)
            if not more:
                return
            received += more
        head, body = received.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        length = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")]
        while length and len(body) < length[0]:
            body += connection.recv(1 << 16)
        self.heads.append(lines)
        self.bodies.append(body)
        answer = self.json or (b"%d" % len(body) if length else b"x" * SIZE)
        kind = b"Content-Type: application/json\r\n" if self.json else b""
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s"
                           % (kind, len(answer), answer))


def sent(binary, scenario, extra=(), answer=None):
    """The lines of the head that a peer sends. For a typed POST, checks the values that it sends as well."""
    with Recorder(answer) as recorder, tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * SIZE)
        file.flush()
        words = [binary, scenario, "--url", recorder.url, "--connections", 1, "--requests", 1, "--warm-up", 0,
                 "--size", SIZE, "--file", file.name, *extra]
        subprocess.run([str(word) for word in words], stdout=subprocess.DEVNULL, timeout=60, check=True)
        pathlib.Path(file.name).touch()  # A download has replaced it.
        if scenario == "post" and json.loads(recorder.bodies[0]) != typed.without_nulls(typed.BODIES[TYPED[scenario]]):
            raise SystemExit(f"Benchmarks/run: {binary} posts other values than those of its file")
        return [line.replace(recorder.url.split("/")[2], "SERVER") for line in recorder.heads[0]]


def name(line):
    return line.split(":")[0].lower()


def words(fields):
    return [word for field in fields for word in ("--field", field)]


def of_body(scenario, body, folder):
    """The words that tell a peer of the JSON of a typed call: the size and the values of the answer, and the file of
    what it posts."""
    answer = "user" if scenario == "post" else body
    expected = [] if scenario == "bytes" else ["--expect", typed.expected(answer)]
    return ["--size", len(typed.text(answer)), *expected,
            *(["--file", folder / "typed" / f"{body}.json"] if scenario == "post" else [])]


def all_fields(server, scenario):
    """The fields for a program that writes no more than Host and the length by itself."""
    return server.fields.get(scenario, [])


def of_peer(peer, server, scenario):
    """The words that give a peer the fields of Tern's requests; libcurl writes some of them by itself."""
    fields = all_fields(server, scenario)
    if peer == "c":
        fields = [field for field in fields if name(field) not in OWN]
    return words(fields) if peer in TAKING else []


def comparable(lines):
    """The request line, and the fields in any order and any case of their names."""
    return lines[0], sorted(name(line) + line[len(name(line)):] for line in lines[1:])


def agree(programs, server):
    """Finds the fields of Tern's requests in each scenario and has the peers that take fields send the same; ends the
    program when their heads are not Tern's."""
    for scenario in (*SCENARIOS, *TYPED) if "tern" in programs else ():
        extra, answer = [], None
        if scenario in TYPED:
            extra = of_body(scenario, TYPED[scenario], server.folder)
            answer = typed.text("user" if scenario == "post" else TYPED[scenario])
        wanted = sent(programs["tern"], scenario, extra, answer)
        server.fields[scenario] = [line for line in wanted[1:] if name(line) not in ("host", "content-length")]
        for peer in [peer for peer in TAKING if peer in programs and scenario not in plan.LACKING.get(peer, ())]:
            found = sent(programs[peer], scenario, [*extra, *of_peer(peer, server, scenario)], answer)
            if comparable(wanted) != comparable(found):
                raise SystemExit(f"Benchmarks/run: in {scenario} Tern sends {wanted}, {plan.TITLES[peer]} {found}")
    for scenario in ("https", "h2", "body64k", "bytes"):
        server.fields[scenario] = server.fields.get("get", [])
