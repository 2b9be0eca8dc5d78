"""Sees to it that the C loop sends the request heads that Tern sends: otherwise the two would not do the same work."""

import pathlib
import socket
import subprocess
import tempfile
import threading

SCENARIOS = ("get", "download-file", "download-stream", "upload")
SIZE = 70
# Fields that libcurl writes by itself, for Tern as for the C loop.
OWN = ("host", "accept", "content-length")


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


def agree(c, tern):
    """The fields to give to the C loop in each scenario, so that its heads are Tern's but for the order of the fields;
    ends the program when they are not."""
    agreed = {}
    for scenario in SCENARIOS:
        wanted = sent(tern, scenario)
        fields = [line for line in wanted[1:] if name(line) not in OWN]
        found = sent(c, scenario, words(fields))
        if wanted[0] != found[0] or sorted(wanted) != sorted(found):
            raise SystemExit(f"Benchmarks/run: in {scenario} Tern sends {wanted}, the C loop {found}")
        agreed[scenario] = fields
    agreed["h2"] = agreed["body64k"] = agreed["get"]
    return agreed
