"""Compares the request heads of the peers with Tern's: otherwise they would not do the same work."""

import pathlib
import socket
import subprocess
import tempfile
import threading

import plan

SCENARIOS = ("get", "download-file", "download-stream", "upload")
SIZE = 70
# Peers that take the fields of their requests from the command line.
TAKING = ("c", "hyper", "go")
# Fields that libcurl writes by itself, with the same value.
OWN = ("accept",)


class Recorder:
    """Context manager: a server that keeps the head of each request."""

    def __enter__(self):
        self.heads, self.socket = [], socket.create_server(("127.0.0.1", 0))
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
        answer = b"%d" % len(body) if length else b"x" * SIZE
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)


def sent(binary, scenario, extra=()):
    """The lines of the head that a peer sends."""
    with Recorder() as recorder, tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * SIZE)
        file.flush()
        words = [binary, scenario, "--url", recorder.url, "--connections", 1, "--requests", 1, "--warm-up", 0,
                 "--size", SIZE, "--file", file.name, *extra]
        subprocess.run([str(word) for word in words], stdout=subprocess.DEVNULL, timeout=60, check=True)
        pathlib.Path(file.name).touch()  # A download has replaced it.
        return [line.replace(recorder.url.split("/")[2], "SERVER") for line in recorder.heads[0]]


def name(line):
    return line.split(":")[0].lower()


def words(fields):
    return [word for field in fields for word in ("--field", field)]


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
    for scenario in SCENARIOS if "tern" in programs else ():
        wanted = sent(programs["tern"], scenario)
        server.fields[scenario] = [line for line in wanted[1:] if name(line) not in ("host", "content-length")]
        for peer in [peer for peer in TAKING if peer in programs]:
            found = sent(programs[peer], scenario, of_peer(peer, server, scenario))
            if comparable(wanted) != comparable(found):
                raise SystemExit(f"Benchmarks/run: in {scenario} Tern sends {wanted}, {plan.TITLES[peer]} {found}")
    for scenario in ("https", "h2", "body64k"):
        server.fields[scenario] = server.fields.get("get", [])
