"""A server for downloads that are killed: it sends 16 KiB at a time, and counts the bytes that the client's system has
acknowledged before it sends more. One process, one thread for each connection."""

import array
import fcntl
import hashlib
import http.server
import os
import re
import socket
import socketserver
import sys
import termios
import threading
import time

PIECE = 16 << 10


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        if self.path == "/count":
            body = str(self.server.count).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.answer(True)

    def answer(self, has_body):
        content = self.server.content
        start, end = 0, len(content)
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if found and condition in (None, self.server.tag):
            start = int(found[1])
            end = min(end, int(found[2]) + 1 if found[2] else end)
            if start >= end:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", self.server.tag)
        self.send_header("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if not has_body:
            return
        waiting = array.array("i", [0])
        due = time.monotonic()
        for position in range(start, end, PIECE):
            piece = content[position:min(position + PIECE, end)]
            try:
                self.wfile.write(piece)
                while True:
                    fcntl.ioctl(self.connection, termios.TIOCOUTQ, waiting)
                    if waiting[0] == 0:
                        break
                    if self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != 1:  # not established
                        raise ConnectionError
                    time.sleep(0.0001)
            except OSError:
                self.close_connection = True
                return
            with self.server.lock:
                self.server.count += len(piece)
            if self.server.rate:
                due += len(piece) / self.server.rate
                rest = due - time.monotonic()
                if rest > 0.001:
                    time.sleep(rest)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *arguments):
        pass


def main():
    port, size, rate = (int(word) for word in sys.argv[1:])
    server = Server(("127.0.0.1", port), Handler)
    server.content = hashlib.shake_256(b"tern").digest(size)
    server.tag = f'"{size}"'
    server.rate, server.count, server.lock = rate, 0, threading.Lock()
    server.serve_forever()


main()
