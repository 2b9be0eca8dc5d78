"""The peers of Python for `run-streaming`, and the server of events. Prints one line of JSON like bench-streaming.

streaming_peers.py serve-events PORT             an endless stream of events for each connection
streaming_peers.py picows URL SIZE COUNT WINDOW
streaming_peers.py websockets URL SIZE COUNT WINDOW
streaming_peers.py aiohttp URL SIZE COUNT WINDOW
streaming_peers.py httpx-sse URL COUNT
"""

import asyncio
import json
import resource
import socket
import sys
import threading
import time

EVENT = b"event: price\nid: 12345\ndata: {\"symbol\": \"TERN\", \"price\": 101.25, \"volume\": 4200}\n\n"


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def report(count, wall, cpu):
    seconds, cpu = time.monotonic() - wall, used() - cpu
    print(json.dumps({"rate": count / seconds, "cpu_us": cpu * 1e6 / count, "seconds": seconds}))


def send_events(connection):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = EVENT * 512
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    try:
        connection.recv(65_536)
        connection.sendall(head)
        while True:
            connection.sendall(chunk)
    except OSError:
        connection.close()


def serve_events(port):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=send_events, args=(connection,), daemon=True).start()


async def with_picows(url, size, count, window):
    """A client that is called for each frame, without a task for each message: the fastest one of Python."""
    import picows
    message, done = bytes(size), asyncio.get_running_loop().create_future()

    class Echo(picows.WSListener):
        received = 0
        bytes = 0

        def on_ws_connected(self, transport):
            self.wall, self.cpu = time.monotonic(), used()
            for _ in range(min(window, count)):
                transport.send(picows.WSMsgType.BINARY, message)

        def on_ws_frame(self, transport, frame):
            # The server sends large messages in several frames.
            self.bytes += frame.payload_size
            if not frame.fin:
                return
            assert self.bytes == size
            self.bytes = 0
            if self.received + window < count:
                transport.send(picows.WSMsgType.BINARY, message)
            self.received += 1
            if self.received == count:
                report(count, self.wall, self.cpu)
                done.set_result(None)

    transport, _ = await picows.ws_connect(Echo, url)
    await done
    transport.disconnect()


async def with_websockets(url, size, count, window):
    import websockets.asyncio.client
    async with websockets.asyncio.client.connect(url, compression=None, proxy=None, max_size=None) as socket:
        await echo(socket.send, socket.recv, size, count, window)


async def with_aiohttp(url, size, count, window):
    import aiohttp
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as socket:
        await echo(socket.send_bytes, socket.receive_bytes, size, count, window)


async def echo(send, receive, size, count, window):
    message = bytes(size)
    wall, cpu = time.monotonic(), used()
    for _ in range(min(window, count)):
        await send(message)
    for number in range(count):
        assert len(await receive()) == size
        if number + window < count:
            await send(message)
    report(count, wall, cpu)


def with_httpx(url, count):
    import httpx
    import httpx_sse
    wall, cpu = time.monotonic(), used()
    with httpx.Client(trust_env=False) as client, httpx_sse.connect_sse(client, "GET", url) as source:
        for number, event in enumerate(source.iter_sse(), 1):
            assert event.event == "price"
            if number == count:
                break
    report(count, wall, cpu)


def main():
    task, words = sys.argv[1], sys.argv[2:]
    if task == "serve-events":
        serve_events(int(words[0]))
    elif task == "httpx-sse":
        with_httpx(words[0], int(words[1]))
    else:
        run = {"picows": with_picows, "websockets": with_websockets, "aiohttp": with_aiohttp}[task]
        asyncio.run(run(words[0], *map(int, words[1:])))


main()
