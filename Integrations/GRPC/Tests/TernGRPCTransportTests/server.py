"""A gRPC server for the tests: grpcio with the cases of gRPC's interoperability suite, and messages written by hand.

    server.py '{"port": 0, "options": {"grpc.max_concurrent_streams": 4}, …}'

Prints "port N" when it serves, and ends with its standard input. A message of a request is a JSON object, and zeros
after it up to a size: {"sizes": [10, 20], "status": {"code": 2, "message": "…"}, …}. One of a response is zeros of
the size that is asked for.
"""

import concurrent.futures
import json
import sys
import threading

import grpc

ARGUMENTS = json.loads(sys.argv[1])
COMPRESSION = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate, "identity": grpc.Compression.NoCompression}
CODES = {code.value[0]: code for code in grpc.StatusCode}
CANCELLED = threading.Event()


def fields(message):
    """The JSON object at the beginning of a message; an empty one of an empty message."""
    text = message.rstrip(b"\0")
    return json.loads(text) if text else {}


def begin(request, context):
    """Sends metadata back, and ends with the status that the request asks for."""
    metadata = dict(context.invocation_metadata())
    initial = [(key, value) for key, value in context.invocation_metadata() if key.startswith("x-initial")]
    trailing = [(key, value) for key, value in context.invocation_metadata() if key.startswith("x-trailing")]
    if initial:
        context.send_initial_metadata(initial)
    if trailing:
        context.set_trailing_metadata(trailing)
    if "compression" in request:
        context.set_compression(COMPRESSION[request["compression"]])
    if status := request.get("status"):
        context.abort(CODES[status["code"]], status["message"])
    return metadata


def empty(message, context):
    begin({}, context)
    assert message == b"", message
    return b""


def unary(message, context):
    request = fields(message)
    metadata = begin(request, context)
    if "sleep" in request:
        threading.Event().wait(request["sleep"])
    if request.get("wants") == "metadata":
        return json.dumps({key: value for key, value in metadata.items() if isinstance(value, str)}).encode()
    if request.get("wants") == "peer":
        return context.peer().encode()
    if request.get("wants") == "remaining":
        remaining = context.time_remaining()
        return str(-1 if remaining is None or remaining > 1e6 else remaining).encode()
    return bytes(request.get("size", len(message)))


def client_stream(messages, context):
    count = size = 0
    for message in messages:
        begin(fields(message), context)
        count, size = count + 1, size + len(message)
    return json.dumps({"count": count, "size": size}).encode()


def server_stream(message, context):
    request = fields(message)
    begin(request, context)
    done = threading.Event()
    if request.get("waits"):
        context.add_callback(lambda: (CANCELLED.set(), done.set()))
    for size in request.get("sizes", []):
        yield bytes(size)
    if request.get("waits"):
        done.wait()
    for _ in range(request.get("count", 0)):
        yield bytes(request.get("size", 32))


def full_duplex(messages, context):
    for message in messages:
        request = fields(message)
        begin(request, context)
        for size in request.get("sizes", []):
            yield bytes(size)
        if request.get("ends"):
            return


def wait_for_cancel(message, context):
    """Returns when a stream that waits was cancelled."""
    return b"cancelled" if CANCELLED.wait(20) else b""


class Handlers(grpc.GenericRpcHandler):
    METHODS = {
        "/tern.Test/Empty": grpc.unary_unary_rpc_method_handler(empty),
        "/tern.Test/Unary": grpc.unary_unary_rpc_method_handler(unary),
        "/tern.Test/ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
        "/tern.Test/ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
        "/tern.Test/FullDuplex": grpc.stream_stream_rpc_method_handler(full_duplex),
        "/tern.Test/WaitForCancel": grpc.unary_unary_rpc_method_handler(wait_for_cancel),
    }

    def service(self, details):
        return self.METHODS.get(details.method)


def main():
    options = [("grpc.so_reuseport", 0)] + list(ARGUMENTS.get("options", {}).items())
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(ARGUMENTS.get("threads", 32)), handlers=[Handlers()], options=options,
        compression=COMPRESSION[ARGUMENTS.get("compression", "identity")])
    port = 0
    if path := ARGUMENTS.get("unix"):
        server.add_insecure_port(f"unix:{path}")
    elif certificate := ARGUMENTS.get("certificate"):
        with open(certificate["key"], "rb") as key, open(certificate["chain"], "rb") as chain:
            credentials = grpc.ssl_server_credentials([(key.read(), chain.read())])
        port = server.add_secure_port(f"127.0.0.1:{ARGUMENTS.get('port', 0)}", credentials)
    else:
        port = server.add_insecure_port(f"127.0.0.1:{ARGUMENTS.get('port', 0)}")
    server.start()
    print(f"port {port}", flush=True)
    sys.stdin.read()
    server.stop(0)


main()
