"""A server over HTTP/3 for the tests, whose paths say what it does wrong: peer.py CERTIFICATE KEY [--OPTION=VALUE …].

It prints its port, and a line for each step of a request: what the client did can be compared with what it reports.
The options lose, double, delay and change datagrams in both directions: numbers of 1,000.
"""
import asyncio
import hashlib
import sys
from collections import Counter

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import FrameType, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, ProtocolNegotiated, StreamReset

REJECTED, CANCELLED, INTERNAL = 0x10B, 0x10C, 0x102
MASK = (1 << 64) - 1
options = {"retry": 0, "window": 1 << 20, "connection_window": 4 << 20, "lost": 0, "doubled": 0, "delayed": 0,
           "changed": 0, "seed": 1}


class Numbers:
    """Numbers that depend on the seed alone (SplitMix64), as `ChaosRandom` gives them."""

    def __init__(self, seed, number=0, salt=0):
        self.state = (seed + number * 0xD1342543DE82EF95) & MASK ^ (salt * 0xA0761D6478BD642F & MASK)

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        value = self.state
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
        return value ^ (value >> 31)

    def below(self, limit):
        return self.next() % max(1, limit)


def body_of(number, salt=1):
    """The body of `ChaosBody`."""
    numbers = Numbers(0, number, salt)
    line = f"{number}:{numbers.next()}\n".encode()
    share = numbers.below(100)
    if share < 8:
        size = 0
    elif share < 50:
        size = 1 + numbers.below(200)
    elif share < 85:
        size = 200 + numbers.below(8_000)
    elif share < 98:
        size = 8_000 + numbers.below(90_000)
    else:
        size = 100_000 + numbers.below(500_000)
    return (line * (size // len(line) + 1))[:size]


def pattern(count):
    return (bytes(range(251)) * (count // 251 + 1))[:count]


def say(*words):
    print(*words, flush=True)


class Request:
    def __init__(self, method, path):
        self.method, self.path, self.body, self.is_answered = method, path, bytearray(), False


counts = Counter()


class Peer(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = None
        self.requests = {}
        # Streams from this one on are not processed.
        self.end_of_requests = None
        self.is_silent = self.has_new_keys = False

    def datagram_received(self, data, addr):
        if not self.is_silent:
            super().datagram_received(data, addr)

    def transmit(self):
        if not self.is_silent:
            super().transmit()

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
            say("connection")
        if isinstance(event, HandshakeCompleted) and event.session_resumed:
            say("resumed")
        if isinstance(event, StreamReset):
            say("reset", event.stream_id, event.error_code)
        if self.http is None:
            return
        for happened in self.http.handle_event(event):
            stream = happened.stream_id
            if isinstance(happened, HeadersReceived):
                if self.end_of_requests is not None and stream >= self.end_of_requests:
                    self.reject(stream)
                    continue
                if stream not in self.requests:
                    fields = dict(happened.headers)
                    self.requests[stream] = Request(fields[b":method"].decode(), fields[b":path"].decode())
                    self.begin(stream, self.requests[stream], happened.stream_ended)
                if happened.stream_ended and stream in self.requests:
                    self.end(stream, self.requests[stream])
            elif isinstance(happened, DataReceived) and stream in self.requests:
                self.requests[stream].body += happened.data
                if happened.stream_ended:
                    self.end(stream, self.requests[stream])
        self.transmit()

    # Answers

    def head(self, stream, status, fields=(), is_last=False):
        lines = [(b":status", str(status).encode())] + [(a.encode(), b.encode()) for a, b in fields]
        self.http.send_headers(stream, lines, end_stream=is_last)

    def whole(self, stream, body, status=200, fields=()):
        if isinstance(body, str):
            body = body.encode()
        self.head(stream, status, [("content-length", str(len(body))), *fields])
        self.http.send_data(stream, bytes(body), end_stream=True)
        say("sent", stream)

    def reject(self, stream, code=REJECTED):
        self._quic.reset_stream(stream, code)
        try:
            self._quic.stop_stream(stream, code)
        except Exception:
            pass

    def go_away(self, first):
        """Ends the connection for streams from one on, which no request has that was received."""
        if self.end_of_requests is not None:
            return
        self.end_of_requests = first
        frame = encode_frame(FrameType.GOAWAY, encode_uint_var(first))
        self._quic.send_stream_data(self.http._local_control_stream_id, frame)

    def close_at_once(self, code):
        self._quic.close(error_code=code)
        self.transmit()

    def later(self, seconds, work, *arguments):
        def run():
            if self._quic._close_event is None:
                work(*arguments)
                self.transmit()

        asyncio.get_running_loop().call_later(seconds, run)

    # Requests. `begin` sees the head, `end` the whole request.

    def begin(self, stream, request, is_whole):
        counts[request.path] += 1
        number = counts[request.path]
        say("request", request.method, request.path)
        name = request.path.strip("/").split("/")[0]
        if name.isdigit():
            return self.begin_chaos(stream, request, int(name), number)
        answer = getattr(self, "begin_" + name.replace("-", "_"), None)
        if answer:
            request.is_answered = answer(stream, request, number) is not False

    def end(self, stream, request):
        say("whole", request.method, request.path, len(request.body), hashlib.sha256(request.body).hexdigest()[:16])
        if request.is_answered:
            return
        parts = request.path.strip("/").split("/")
        if parts[0].isdigit():
            self.end_chaos(stream, request, int(parts[0]))
        elif parts[0] == "echo":
            self.whole(stream, request.body)
        elif parts[0] == "body":
            self.whole(stream, pattern(int(parts[1])))
        elif parts[0] == "trailers":
            self.head(stream, 200)
            self.http.send_data(stream, b"hello", end_stream=False)
            self.http.send_headers(stream, [(b"checksum", b"1")], end_stream=True)
        elif parts[0] == "interim":
            self.head(stream, 103, [("link", "</a>")])
            self.whole(stream, "hello")
        elif parts[0] == "cut":
            self.head(stream, 200)
            self.http.send_data(stream, pattern(int(parts[1])), end_stream=False)
            self.later(0.05, self.reject, stream, int(parts[2], 16))
        elif parts[0] == "close":
            self.head(stream, 200)
            self.http.send_data(stream, pattern(int(parts[1])), end_stream=False)
            self.later(0.05, self.close_at_once, int(parts[2], 16))
        elif parts[0] == "short":
            self.head(stream, 200, [("content-length", "1000")])
            self.http.send_data(stream, b"hello", end_stream=True)
        elif parts[0] == "large-head":
            self.head(stream, 200, [("a", "x" * int(parts[1]))], is_last=True)
        elif parts[0] == "alternative":
            self.whole(stream, "hello", fields=[("alt-svc", 'h3=":1"')])
        else:
            self.whole(stream, "hello")

    def begin_reject(self, stream, request, number):
        """Rejects the first request, or the first ones: reject/2."""
        if number <= int(request.path.split("/")[2]):
            self.reject(stream)
            return True
        return False

    def begin_goaway(self, stream, request, number):
        """Goes away before the first request is processed, and answers those before it."""
        if number == 1:
            self.go_away(stream)
            return True
        return False

    def begin_last(self, stream, request, number):
        """Goes away after this request, which is answered."""
        self.go_away(max(self.requests) + 4)
        return False

    def begin_lost(self, stream, request, number):
        """Closes the connection before a byte of the response, the first time."""
        if number == 1:
            self.close_at_once(0x100)
            return True
        return False

    def begin_early(self, stream, request, number):
        self.head(stream, 413, [("content-length", "2")])
        self.http.send_data(stream, b"no", end_stream=True)
        try:
            self._quic.stop_stream(stream, 0x100)
        except Exception:
            pass
        return True

    def begin_hole(self, stream, request, number):
        self.transmit()
        self.is_silent = True
        return True

    def begin_push(self, stream, request, number):
        self._quic.send_stream_data(stream, encode_frame(FrameType.PUSH_PROMISE, bytes([0, 0, 0, 0xD9])))
        return True

    def begin_stall(self, stream, request, number):
        return True

    # Chaos

    WHOLE = ("whole", "interims", "trickle", "trailers", "unknown", "goawayAfter", "shift")
    REFUSED = ("rejected", "goawayBefore")
    FAULTS = WHOLE + REFUSED + (
        "resetBeforeHead", "resetInBody", "shortBody", "longBody", "badHead", "closeBeforeHead",
        "closeInBody", "stallBeforeHead", "stallInBody", "early", "serverError", "rejected", "silence")

    def begin_chaos(self, stream, request, number, attempt):
        numbers = Numbers(options["seed"], number, attempt + 100)
        request.fault = "whole" if numbers.below(100) < 60 else self.FAULTS[numbers.below(len(self.FAULTS))]
        # A connection that ends takes many requests with it.
        share = {"closeBeforeHead": 4, "closeInBody": 4, "goawayBefore": 3, "goawayAfter": 3, "silence": 30}
        if numbers.below(share.get(request.fault, 1)) > 0:
            request.fault = "whole"
        if request.fault == "goawayBefore" and (stream < max(self.requests) or self.end_of_requests is not None):
            request.fault = "whole"
        request.number, request.index = number, attempt - 1
        say("received", number, request.method, request.fault)
        fault = request.fault
        if fault == "rejected":
            self.reject(stream)
            say("refused", number, request.index)
        elif fault == "goawayBefore":
            self.go_away(stream)
            say("refused", number, request.index)
        elif fault == "closeBeforeHead":
            self.close_at_once(INTERNAL)
        elif fault == "silence":
            self.is_silent = True
        elif fault == "early":
            self.head(stream, 503, [("number", str(number)), ("content-length", "0")], is_last=True)
        else:
            return
        request.is_answered = True

    def end_chaos(self, stream, request, number):
        if bytes(request.body) != (body_of(number, 2) if request.method in ("POST", "PUT") else b""):
            say("defect", number, "a wrong request body of", len(request.body))
        say("processed", number)
        fault, http = request.fault, self.http
        body = b"" if request.method == "HEAD" else body_of(number)
        name = ("number", str(number))
        length = ("content-length", str(len(body)))
        half = len(body) // 2
        if fault == "interims":
            self.head(stream, 103, [("link", "</a>")])
            self.head(stream, 103)
        if fault == "resetBeforeHead":
            return self.reject(stream, CANCELLED)
        if fault == "stallBeforeHead":
            return
        if fault == "serverError":
            return self.head(stream, 500, [name], is_last=True)
        if fault == "badHead":
            # A name in capitals.
            return self._quic.send_stream_data(
                stream, encode_frame(FrameType.HEADERS, bytes([0, 0, 0xD9, 0x23, 65, 65, 65, 1, 65])), True)
        if fault in ("shortBody", "longBody"):
            size = len(body) + (9 if fault == "shortBody" else -1)
            if size < 0 or request.method == "HEAD":
                return self.reject(stream, INTERNAL)
            self.head(stream, 200, [name, ("content-length", str(size))])
            return http.send_data(stream, body, end_stream=True)
        if fault == "goawayAfter":
            self.go_away(max(self.requests) + 4)
        self.head(stream, 200, [name] if fault in ("trailers", "unknown") else [name, length])
        if fault in ("resetInBody", "closeInBody", "stallInBody"):
            http.send_data(stream, body[:half], end_stream=False)
            if fault == "resetInBody":
                self.later(0.01, self.reject, stream, INTERNAL)
            elif fault == "closeInBody":
                self.later(0.01, self.close_at_once, 0x100)
            return
        if fault == "trickle":
            http.send_data(stream, body[:half], end_stream=False)
            self.later(0.02, self.finish, stream, request, body[half:])
            return
        if fault == "unknown":
            self._quic.send_stream_data(stream, encode_frame(0x21, b"unknown"))
        if fault == "shift" and not self.has_new_keys:
            self.has_new_keys = True
            self._quic.request_key_update()
        if fault == "trailers":
            http.send_data(stream, body, end_stream=False)
            http.send_headers(stream, [(b"checksum", b"1")], end_stream=True)
        else:
            http.send_data(stream, body, end_stream=True)
        say("done", number, request.index)

    def finish(self, stream, request, rest):
        self.http.send_data(stream, rest, end_stream=True)
        say("done", request.number, request.index)


class Network(QuicServer):
    """Disturbs the datagrams of both directions."""

    def __init__(self, **named):
        super().__init__(**named)
        self.numbers = Numbers(options["seed"], 7)

    def connection_made(self, transport):
        super().connection_made(self)
        self.socket = transport

    def disturbed(self, deliver, data, address):
        below = self.numbers.below
        if below(1_000) < options["lost"]:
            return
        if below(1_000) < options["changed"]:
            data = bytearray(data)
            data[below(len(data))] ^= 1 << below(8)
            data = bytes(data)
        loop = asyncio.get_running_loop()
        for _ in range(2 if below(1_000) < options["doubled"] else 1):
            if below(1_000) < options["delayed"]:
                loop.call_later(below(20) / 1_000, deliver, data, address)
            else:
                deliver(data, address)

    def datagram_received(self, data, addr):
        def deliver(data, addr):
            # A changed datagram can be one that aioquic does not expect.
            try:
                super(Network, self).datagram_received(data, addr)
            except Exception as error:
                say("dropped", repr(error))

        self.disturbed(deliver, data, addr)

    # The transport of the connections.

    def sendto(self, data, addr=None):
        self.disturbed(self.socket.sendto, data, addr)

    def close(self):
        self.socket.close()

    def is_closing(self):
        return self.socket.is_closing()

    def get_extra_info(self, name, default=None):
        return self.socket.get_extra_info(name, default)


async def main():
    certificate, key = sys.argv[1:3]
    for word in sys.argv[3:]:
        name, value = word.removeprefix("--").split("=")
        options[name] = int(value)
    configuration = QuicConfiguration(
        alpn_protocols=["h3"], is_client=False, max_stream_data=options["window"],
        max_data=options["connection_window"])
    configuration.load_cert_chain(certificate, key)
    loop = asyncio.get_running_loop()
    tickets = {}
    transport, _ = await loop.create_datagram_endpoint(
        lambda: Network(
            configuration=configuration, create_protocol=Peer, retry=options["retry"] != 0,
            session_ticket_fetcher=lambda label: tickets.pop(label, None),
            session_ticket_handler=lambda ticket: tickets.__setitem__(ticket.ticket, ticket)),
        local_addr=("127.0.0.1", 0))
    say("port", transport.get_extra_info("sockname")[1])
    await asyncio.Event().wait()


asyncio.run(main())
