#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernStreaming
import Testing

/// permessage-deflate with each of its parameters, over connections to PyPI's `websockets`.
@Suite(
    "WebSocket: compression with a server of another author", .serialized, .enabled(if: Venv.isExpected, Venv.absence),
    .timeLimit(.minutes(2)))
struct WebSocketCompressionPeerTests {
    /// The parameters of a server, or those that a client asks for.
    private struct Parameters: Encodable {
        var serverNoContextTakeover = false
        var clientNoContextTakeover = false
        var serverMaxWindowBits: Int?
        var clientMaxWindowBits: Int?

        /// Each combination. zlib compresses with windows of 9 to 15 bits; a client that is asked for one of 8 bits
        /// does not compress.
        static func all(clientBits: [Int?]) -> [Parameters] {
            [false, true].flatMap { server in
                [false, true].flatMap { client in
                    [nil, 9, 12].flatMap { serverBits in
                        clientBits.map { Parameters(server, client, serverBits, $0) }
                    }
                }
            }
        }

        init(_ server: Bool, _ client: Bool, _ serverBits: Int?, _ clientBits: Int?) {
            (serverNoContextTakeover, clientNoContextTakeover) = (server, client)
            (serverMaxWindowBits, clientMaxWindowBits) = (serverBits, clientBits)
        }

        /// The parameters as the server names them in its response.
        var names: Set<String> {
            var names: Set<String> = []
            if serverNoContextTakeover { names.insert("server_no_context_takeover") }
            if clientNoContextTakeover { names.insert("client_no_context_takeover") }
            if let bits = serverMaxWindowBits { names.insert("server_max_window_bits=\(bits)") }
            if let bits = clientMaxWindowBits { names.insert("client_max_window_bits=\(bits)") }
            return names
        }
    }

    /// A server for each set of parameters in the first argument. It sends its answer to the offer, and then each
    /// message back.
    private static let program = #"""
        import asyncio, json, sys
        import websockets
        from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory as Factory

        async def echo(ws):
            await ws.send(ws.response.headers["Sec-WebSocket-Extensions"])
            async for message in ws:
                await ws.send(message)

        async def main():
            ports = []
            for parameters in json.loads(sys.argv[1]):
                server = await websockets.serve(
                    echo, "127.0.0.1", 0, compression=None, extensions=[Factory(**parameters)], max_size=None,
                    ping_interval=None)
                ports.append(server.sockets[0].getsockname()[1])
            print("ports", *ports, "end", flush=True)
            await asyncio.Future()

        asyncio.run(main())
        """#

    /// Starts a server for each set of parameters.
    private func servers(_ parameters: [Parameters], in folder: TestFolder) async throws -> (Child, [Int]) {
        try folder.write(Self.program, to: "servers.py")
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let list = String(decoding: try encoder.encode(parameters), as: UTF8.self)
        let output = "\(folder.path)/servers.out"
        let child = try Child([Venv.program("python"), "\(folder.path)/servers.py", list], output: output)
        let ports = try await Child.find(in: output, within: 30) { text in
            text.firstMatch(of: /ports ([\d ]+) end/).map { $0.output.1.split(separator: " ").compactMap { Int($0) } }
        }
        return (child, ports)
    }

    /// Exchanges messages that repeat each other nearer and farther than the windows. Returns the parameters of the
    /// response.
    private func converse(_ session: Session, port: Int, _ compression: WebSocket.Compression) async throws -> String {
        var options = WebSocket.Options()
        options.compression = compression
        let socket = try await session.webSocket("ws://127.0.0.1:\(port)/", options: options)
        #expect(socket.isCompressed)
        guard case .text(let response)? = try await socket.receive() else { return "" }
        var random = SystemRandomNumberGenerator()
        let noise = Data((0..<40_000).map { _ in UInt8.random(in: 0...255, using: &random) })
        let line = "a line of text that the windows keep é\n"
        for size in [0, 63, 64, 256, 513, 4_000, 40_000] {
            for _ in 0..<2 {
                let data = noise.prefix(size)
                try await socket.send(data)
                #expect(try await socket.receive() == .binary(data))
                let text = String(repeating: line, count: size / 40)
                try await socket.send(text)
                #expect(try await socket.receive() == .text(text))
            }
        }
        let metrics = await socket.metrics
        #expect(metrics.receivedBytes < metrics.receivedMessageBytes)
        try await socket.close()
        #expect(socket.closure?.isClean == true)
        return response
    }

    private func parameters(_ response: String) -> Set<String> {
        let parts = response.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(parts.first == "permessage-deflate")
        return Set(parts.dropFirst())
    }

    @Test func aServerDecidesOnTheParameters() async throws {
        try await inTestFolder { folder in
            let all = Parameters.all(clientBits: [nil, 8, 9, 12])
            let (child, ports) = try await servers(all, in: folder)
            let session = Session(configuration: .test())
            for (asked, port) in zip(all, ports) {
                let response = try await converse(session, port: port, WebSocket.Compression())
                #expect(parameters(response) == asked.names)
            }
            #expect(ports.count == all.count)
            withExtendedLifetime(child) {}
        }
    }

    @Test func aClientAsksForTheParameters() async throws {
        try await inTestFolder { folder in
            let (child, ports) = try await servers([Parameters(false, false, nil, nil)], in: folder)
            let session = Session(configuration: .test())
            for asked in Parameters.all(clientBits: [9, 15]) {
                let compression = WebSocket.Compression(
                    serverNoContextTakeover: asked.serverNoContextTakeover,
                    clientNoContextTakeover: asked.clientNoContextTakeover,
                    serverMaxWindowBits: asked.serverMaxWindowBits,
                    clientMaxWindowBits: try #require(asked.clientMaxWindowBits))
                let response = try await converse(session, port: try #require(ports.first), compression)
                // The window of the client need not be answered.
                let own = asked.names.filter { !$0.hasPrefix("client_max_window_bits") }
                #expect(parameters(response).isSuperset(of: own))
            }
            withExtendedLifetime(child) {}
        }
    }
}
#endif
