import Foundation
import GRPCCore
import Synchronization
import Tern
import Testing

@testable import TernGRPCTransport

/// Connections of grpcio's server that end, are full, or cannot be made.
@Suite("grpcio: connections", .enabled(if: TestServer.isExpected, TestServer.absence), .timeLimit(.minutes(1)))
struct ConnectionTests {
    /// Makes calls by several tasks until each has made `count`. Returns the errors.
    private func load(_ client: TestClient, tasks: Int, count: Int) async -> [RPCError] {
        await withTaskGroup(of: [RPCError].self) { group in
            for task in 0..<tasks {
                group.addTask {
                    var errors: [RPCError] = []
                    for number in 0..<count {
                        let error = await failure {
                            // Half of the calls have a body of known length, and half are streams.
                            if (task + number) % 2 == 0 {
                                #expect(try await client.unary("Unary", message(size: 100)).message.count == 100)
                            } else {
                                let size = try await client.duplex("FullDuplex") { writer in
                                    for _ in 0..<3 { try await writer.write(message(#"{"sizes": [10]}"#)) }
                                } read: {
                                    try await $0.messages.reduce(0) { $0 + $1.count }
                                }
                                #expect(size == 30)
                            }
                        }
                        if let error { errors.append(error) }
                    }
                    return errors
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// grpcio answers streams above its limit with ENHANCE_YOUR_CALM.
    @Test func aBurstKeepsToTheLimitOfStreams() async throws {
        let server = try await TestServer(["options": ["grpc.max_concurrent_streams": 4]])
        let transport = try TernGRPCTransport(server.url)
        try await withGRPCClient(transport: transport) { client in
            #expect(await load(client, tasks: 64, count: 4).isEmpty)
            // One on each event loop.
            #expect(await transport.openConnectionCount <= Session.eventLoopCount)
        }
    }

    @Test func theAgeOfConnectionsLosesNoCall() async throws {
        let options = ["grpc.max_connection_age_ms": 100, "grpc.max_connection_age_grace_ms": 10_000]
        let server = try await TestServer(["options": options])
        try await withClient(of: server.url) { client in
            // Connections end several times meanwhile.
            let start = ContinuousClock.now
            var rounds = 0
            while rounds < 3 || ContinuousClock.now - start < .seconds(1) {
                let errors = await load(client, tasks: 16, count: 10)
                #expect(errors.isEmpty, "\(errors.prefix(3))")
                rounds += 1
            }
        }
    }

    @Test func eachCallEndsWithAStatusWhenTheServerIsKilled() async throws {
        let server = try await TestServer()
        try await withClient(of: server.url) { client in
            for _ in 0..<3 {
                async let errors = load(client, tasks: 16, count: 60)
                _ = try? await client.unary("Unary", message(#"{"sleep": 0.05}"#)).message
                try await server.restart()
                for error in await errors { #expect(error.code == .unavailable, "\(error)") }
                var options = CallOptions.defaults
                options.waitForReady = true
                #expect(try await client.unary("Empty", options: options).message == [])
            }
        }
    }

    @Test func aCallWaitsForTheServerIfItIsToldTo() async throws {
        let server = try await TestServer()
        server.kill()
        try await withClient(of: server.url) { client in
            let error = await failure { _ = try await client.unary("Empty").message }
            #expect(error?.code == .unavailable && error?.cause is NetworkError, "\(String(describing: error))")
            var options = CallOptions.defaults
            options.waitForReady = true
            options.timeout = .milliseconds(100)
            let late = await failure { _ = try await client.unary("Empty", options: options).message }
            #expect(late?.code == .deadlineExceeded)
            options.timeout = nil
            let patient = options
            let unary = Task { try await client.unary("Unary", message(size: 9), options: patient).message.count }
            let stream = Task {
                try await client.duplex("FullDuplex", options: patient) { writer in
                    try await writer.write(message(#"{"sizes": [7]}"#))
                } read: {
                    try await $0.messages.reduce(0) { $0 + $1.count }
                }
            }
            try await server.restart()
            #expect(try await unary.value == 9)
            #expect(try await stream.value == 7)
        }
    }

    @Test func retriesFollowTheServiceConfig() async throws {
        let server = try await TestServer()
        var configuration = TernGRPCTransport.Configuration()
        let json = """
            {"methodConfig": [{"name": [{"service": "tern.Test"}], "retryPolicy": {"maxAttempts": 3,
            "initialBackoff": "0.01s", "maxBackoff": "0.02s", "backoffMultiplier": 1.5,
            "retryableStatusCodes": ["UNAVAILABLE"]}}], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}
            """
        configuration.serviceConfig = try JSONDecoder().decode(ServiceConfig.self, from: Data(json.utf8))
        let transport = try TernGRPCTransport(server.url, configuration: configuration)
        try await withGRPCClient(transport: transport) { client in
            let before = try #require(transport.retryThrottle?.tokens)
            let response = try await client.unary("Unary", message(#"{"status": {"code": 14, "message": "m"}}"#))
            let error = await failure { _ = try response.message }
            #expect(error?.code == .unavailable && error?.message == "m")
            #expect(Array(response.metadata["grpc-previous-rpc-attempts"]).isEmpty)
            // Two retries, and three failures in all.
            #expect(transport.retryThrottle?.tokens == before - 3)
        }
    }

    // MARK: Ways to the server

    @Test func unixSocketsAreUsed() async throws {
        let path = "/tmp/tern-grpc-\(UInt32.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: path) }  // A leftover does no harm.
        let server = try await TestServer(["unix": path])
        var configuration = TernGRPCTransport.Configuration()
        configuration.session.unixSocketPath = path
        try await withClient(of: "http://localhost", configuration) { client in
            let reply = try await client.unary("Unary", message(size: 5)).message
            #expect(reply.count == 5)
        }
        withExtendedLifetime(server) {}
    }

    @Test func serversAreVerified() async throws {
        let folder = URL(filePath: "/tmp/tern-grpc-\(UInt32.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // A leftover does no harm.
        let (chain, key) = (folder.appending(path: "chain.pem"), folder.appending(path: "key.pem"))
        let openssl = Process()
        openssl.executableURL = URL(filePath: "/usr/bin/openssl")
        openssl.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=server", "-addext", "subjectAltName=DNS:grpc.test", "-keyout", key.path, "-out", chain.path,
        ]
        openssl.standardError = FileHandle.nullDevice
        try openssl.run()
        openssl.waitUntilExit()
        let server = try await TestServer(["certificate": ["chain": chain.path, "key": key.path]])
        var configuration = TernGRPCTransport.Configuration()
        configuration.addresses = ["127.0.0.1"]
        let url = "https://grpc.test:\(server.port)"
        try await withClient(of: url, configuration) { client in
            let error = await failure { _ = try await client.unary("Empty").message }
            #expect(error?.code == .unavailable)
            #expect((error?.cause as? NetworkError)?.kind == .untrustedServer, "\(String(describing: error))")
        }
        configuration.session.authorities = .file(chain.path)
        try await withClient(of: url, configuration) { client in
            let reply = try await client.unary("Unary", message(size: 5)).message
            #expect(reply.count == 5)
        }
    }

    @Test func callsTakeTurnsAmongAddresses() async throws {
        let servers = [try await TestServer(), try await TestServer()]
        var configuration = TernGRPCTransport.Configuration()
        configuration.addresses = servers.map { "127.0.0.1:\($0.port)" }
        configuration.serviceConfig.loadBalancingConfig = [.roundRobin]
        let transport = try TernGRPCTransport("http://grpc.test", configuration: configuration)
        try await withGRPCClient(transport: transport) { client in
            #expect(await load(client, tasks: 4, count: 4).isEmpty)
            #expect(await transport.openConnectionCount >= 2)
            // The calls of a server that is gone go to the other one, from the next connection on.
            servers[0].kill()
            _ = await load(client, tasks: 1, count: 2)
            #expect(await load(client, tasks: 4, count: 4).isEmpty)
        }
    }

    // MARK: The end of a transport

    @Test func aShutdownLetsCallsEndAndNoneBegin() async throws {
        let server = try await TestServer()
        let transport = try TernGRPCTransport(server.url)
        let connection = Task { try await transport.connect() }
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let client = GRPCClient(transport: transport)
        let call = Task {
            try await client.duplex("FullDuplex") { writer in
                try await writer.write(message(#"{"sizes": [1]}"#))
                for await _ in ends { break }
                try await writer.write(message(#"{"sizes": [2]}"#))
            } read: { response in
                try await response.messages.reduce(into: [Int]()) { sizes, message in
                    sizes.append(message.count)
                    begin.yield()
                }
            }
        }
        for await _ in begun { break }
        transport.beginGracefulShutdown()
        let error = await failure { _ = try await client.unary("Empty").message }
        #expect(error?.code == .failedPrecondition)
        end.yield()
        #expect(try await call.value == [1, 2])
        try await connection.value
        let second = await failure { try await transport.connect() }
        #expect(second?.code == .failedPrecondition)
    }

    @Test func cancellingTheConnectionEndsAllCalls() async throws {
        let server = try await TestServer()
        let transport = try TernGRPCTransport(server.url)
        let connection = Task { try await transport.connect() }
        let client = GRPCClient(transport: transport)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let call = Task {
            try await client.serverStream("ServerStream", message(#"{"sizes": [3], "waits": true}"#)) { response in
                for try await _ in response.messages { begin.yield() }
            }
        }
        for await _ in begun { break }
        connection.cancel()
        let error = await failure { try await call.value }
        #expect(error?.code == .unavailable, "\(String(describing: error))")
        try await connection.value
        try await withClient(of: server.url) { other in
            let reply = try await other.unary("WaitForCancel").message
            #expect(reply == Array("cancelled".utf8))
        }
    }
}
