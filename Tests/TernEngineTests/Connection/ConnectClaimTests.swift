#if os(Linux)
import Foundation
import Testing

@testable import TernEngine

/// The claims of exchanges to connections that connect, from which their time limits for connecting follow.
@Suite(.timeLimit(.minutes(1))) struct ConnectClaimTests {
    @Test func aWithdrawnExchangeLeavesItsConnectionToTheNext() async throws {
        let identity = try TestIdentity()
        let goOn = Gate()
        let server = try ScriptedServer(
            tls: try TestServer(identity),
            { connection in
                try goOn.wait()
                try connection.answer()
            })
        defer { server.stop() }
        let harness = try WireHarness(connectionsPerOrigin: 1)
        let endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        let first = harness.start("/first", to: endpoint)
        await first.wait(for: "connecting")
        let second = harness.start("/second", to: endpoint)
        // The second waits for the limit of connections, without a time limit for connecting.
        #expect(await harness.value { _ in second.entries } == [])
        harness.cancel(first)
        await second.wait(for: "connecting")
        goOn.open()
        #expect(await second.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        #expect(first.entries == ["connecting"])
        #expect(server.requests == [["GET /second HTTP/1.1"]])
        #expect(server.failures == [])
    }

    @Test func anAttemptThatIsGivenUpReleasesItsClaim() async throws {
        let identity = try TestIdentity()
        let accepted = ExchangeLog()
        let server = try ScriptedServer(
            tls: try TestServer(identity),
            { connection in
                accepted.add("accepted")
                // Without a handshake, the attempt goes on until the client gives it up.
                try connection.waitForEndOfBytes()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness(connectionsPerOrigin: 1)
        let endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        let first = harness.start("/first", to: endpoint)
        await first.wait(for: "connecting")
        await accepted.wait(for: "accepted")
        let second = harness.start("/second", to: endpoint)
        harness.perform { client in client.exchange(of: first).map { client.pool.giveUpConnecting($0) } }
        // The second takes over the attempt, loses it with the end of it, and gets one of its own, within the same
        // limit.
        #expect(await second.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        #expect(server.requests == [[], ["GET /second HTTP/1.1"]])
        #expect(server.failures == [])
    }

    @Test func theEndOfAnAttemptLeavesTheLimitsOfThoseThatShareIt() async throws {
        let identity = try TestIdentity()
        let accepted = ExchangeLog()
        let silent: ScriptedServer.Script = { connection in
            accepted.add("accepted")
            try connection.waitForEndOfBytes()
        }
        let server = try ScriptedServer(tls: try TestServer(identity), silent, silent, silent)
        defer { server.stop() }
        let harness = try WireHarness()
        var endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        endpoint.allowsHTTP2 = true
        let logs = (0..<3).map { harness.start("/\($0)", to: endpoint) }
        for log in logs { await log.wait(for: "connecting") }
        await accepted.wait(for: "accepted")
        harness.perform { client in client.exchange(of: logs[0]).map { client.pool.giveUpConnecting($0) } }
        await accepted.wait(for: "accepted", count: 2)
        harness.perform { client in client.exchange(of: logs[1]).map { client.pool.giveUpConnecting($0) } }
        await accepted.wait(for: "accepted", count: 3)
        // Each began to connect once, so that its time limit has run since then.
        #expect(await harness.value { _ in logs.map(\.entries) } == [["connecting"], ["connecting"], ["connecting"]])
    }

    @Test func exchangesThatWaitToShareGoOnOverHTTP1() async throws {
        let identity = try TestIdentity()
        let (goOn, end) = (Gate(), Gate())
        let server = try ScriptedServer(
            tls: try TestServer(identity, choosing: "http/1.1"),
            { connection in
                try goOn.wait()
                try connection.handshake()
                try end.wait()
                try connection.answerAll()
            },
            { connection in
                try end.wait()
                try connection.answerAll()
            })
        defer { server.stop() }
        let harness = try WireHarness(connectionsPerOrigin: 2)
        var endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        endpoint.allowsHTTP2 = true
        let logs = (0..<4).map { harness.start("/\($0)", to: endpoint) }
        for log in logs { await log.wait(for: "connecting") }
        goOn.open()
        // Two exchanges have connections; the others wait in the queue, without a time limit for connecting.
        await logs[2].wait(for: "stopped")
        await logs[3].wait(for: "stopped")
        for _ in 0..<2 { end.open() }
        for (number, log) in logs.enumerated() {
            #expect(await log.waitForEnd().last == "ended")
            #expect(log.text == "/\(number)")
        }
        #expect(server.accepted == 2)
        #expect(server.failures == [])
    }

    @Test func theTableOfDestinationsStaysBounded() async throws {
        let harness = try WireHarness()
        let size = await harness.value { client in
            for number in 0..<10_000 {
                // No address: the attempt fails at once.
                let destination = Destination(
                    origin: "http://host\(number):80", host: "host\(number)", port: 80, authority: "host\(number)",
                    addresses: [])
                let exchange = TestExchange(.init(), to: destination, log: ExchangeLog(), client: client)
                if let made = exchange.exchange { client.pool.submit(made) }
            }
            return client.pool.destinationCount
        }
        #expect(size <= 4_096)
    }

    @Test func aFailureToLoadAuthoritiesIsNotKept() async throws {
        let identity = try TestIdentity()
        let server = try ScriptedServer(tls: try TestServer(identity), { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        try await withSocketPath { path in
            var options = TLSOptions()
            options.roots = .file(path)
            let endpoint = Endpoint(server, policy: TLSPolicy(options))
            #expect(await harness.start(to: endpoint).waitForEnd() == ["connecting", "failed tls"])
            try Data(identity.pem).write(to: URL(filePath: path))
            #expect(await harness.start(to: endpoint).waitForEnd().last == "ended")
        }
        #expect(server.accepted == 1)
        #expect(server.failures == [])
    }

    @Test func hostsBehindAUnixSocketHaveTheirOwnConnections() async throws {
        let (first, second) = try (TestIdentity(names: "DNS:a.example"), TestIdentity(names: "DNS:b.example"))
        let names = ExchangeLog()
        try await withSocketPath { path in
            // The server would answer for both hosts on one connection.
            let script: ScriptedServer.Script = { connection in
                try connection.answer()
                names.add(connection.requestedName ?? "")
                try connection.answer()
            }
            let server = try ScriptedServer(path: path, tls: try TestServer(first), script, script)
            defer { server.stop() }
            let harness = try WireHarness()
            let policy = TLSPolicy(.only(first, second))
            var endpoint = Endpoint(server, policy: policy)
            endpoint.host = "a.example"
            #expect(await harness.start("/a", to: endpoint).waitForEnd().last == "ended")
            endpoint.host = "b.example"
            #expect(await harness.start("/b", to: endpoint).waitForEnd().last == "failed untrustedServer")
            #expect(server.accepted == 2)
            #expect(names.entries == ["a.example"])
            #expect(server.requests[0] == ["GET /a HTTP/1.1"])
        }
    }

    @Test func oneOriginOnTwoSocketsAndOverTCPSharesNoConnection() async throws {
        try await withSocketPath { firstPath in
            try await withSocketPath { secondPath in
                let answerAll: ScriptedServer.Script = { try $0.answerAll() }
                let servers = [
                    try ScriptedServer(path: firstPath, answerAll), try ScriptedServer(path: secondPath, answerAll),
                    try ScriptedServer(answerAll),
                ]
                defer { for server in servers { server.stop() } }
                let harness = try WireHarness()
                let endpoints = servers.map { server in
                    var endpoint = Endpoint(server)
                    // One origin, with an idle connection to each server from the second round on.
                    endpoint.port = servers[2].address.port
                    return endpoint
                }
                for (round, form) in ["new", "reused"].enumerated() {
                    for (index, endpoint) in endpoints.enumerated() {
                        let log = harness.start("/\(round)\(index)", to: endpoint)
                        #expect(await log.waitForEnd().contains("connected http11 \(form)"))
                        #expect(log.text == "/\(round)\(index)")
                    }
                }
                for (index, server) in servers.enumerated() {
                    #expect(server.accepted == 1)
                    #expect(server.requests == [["GET /0\(index) HTTP/1.1", "GET /1\(index) HTTP/1.1"]])
                }
            }
        }
    }

    @Test func aFailedWriteToAProxyReportsItsAnswer() async throws {
        let (asked, closed) = (Gate(), Gate())
        try await withSocketPath { path in
            let server = try ScriptedServer(
                path: path,
                { connection in
                    try connection.readHead()
                    try connection.write(
                        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\n"
                            + "Content-Length: 0\r\n\r\n")
                    // While the client answers the challenge, the socket is closed.
                    try asked.wait()
                    try connection.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                    connection.close()
                    closed.open()
                })
            defer { server.stop() }
            let harness = try WireHarness(authorize: { _, _ in
                asked.open()
                // A gate that stays closed shows in the number of requests.
                try? closed.wait()
                return "Basic eDp5"
            })
            var endpoint = Endpoint(server, policy: TLSPolicy(.only(try TestIdentity())))
            endpoint.proxy = ProxyAddress(.http, host: "proxy", port: 1)
            let log = harness.start(to: endpoint)
            #expect(await log.waitForEnd() == ["connecting", "failed proxy"])
            #expect(
                log.error?.reason.contains("it answered with status 403") == true, "\(String(describing: log.error))")
            #expect(server.requests == [["CONNECT localhost:0 HTTP/1.1"]])
            #expect(server.failures == [])
        }
    }
}
#endif
