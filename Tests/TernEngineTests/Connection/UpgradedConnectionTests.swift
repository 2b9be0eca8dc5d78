#if os(Linux)
import Foundation
import Testing

@testable import TernEngine

/// Connections that the server switches to another protocol, with the bytes of a real server.
@Suite(.timeLimit(.minutes(1))) struct UpgradedConnectionTests {
    private static let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: Echo\r\n\r\n"
    private static let steps = ["connecting", "connected http11 new", "head 101", "upgraded", "ended"]

    private func settings(reads: Bool = true, expected: Int = 0) -> TestExchange.Settings {
        var settings = TestExchange.Settings()
        settings.upgrade = "echo"
        settings.reads = reads
        settings.expected = expected
        return settings
    }

    /// Starts a server, with TLS or without, and its endpoint.
    private func start(
        secure isSecure: Bool = false, path: String? = nil, _ first: @escaping ScriptedServer.Script,
        then second: @escaping ScriptedServer.Script = { try $0.answer() }
    ) throws -> (ScriptedServer, Endpoint) {
        guard isSecure else {
            let server = try ScriptedServer(path: path, first, second)
            return (server, Endpoint(server))
        }
        let identity = try TestIdentity()
        let server = try ScriptedServer(path: path, tls: try TestServer(identity), first, second)
        return (server, Endpoint(server, policy: TLSPolicy(.only(identity))))
    }

    // MARK: The switch

    /// A server that never answers its handshake holds others up for the length of a turn.
    @Test func aSilentHandshakeDoesNotHoldOthersUpForEver() async throws {
        let release = Gate()
        let (server, endpoint) = try start(
            { connection in
                try connection.readHead()
                try release.wait()
            },
            then: { connection in
                try connection.readHead()
                try connection.write(Self.answer)
            })
        defer { server.stop() }
        let harness = try WireHarness(handshakeTurn: 50_000_000)
        let silent = harness.start(settings(), to: endpoint)
        await silent.wait(for: "connected")
        let next = harness.start(settings(), to: endpoint)
        #expect(await next.waitForEnd().contains("head 101"))
        #expect(!silent.entries.contains { $0.hasPrefix("head") })
        release.open()
        #expect(await silent.waitForEnd().last == "failed connectionLost")
    }

    @Test(arguments: [false, true]) func bytesGoBothWaysAfterTheSwitch(isSecure: Bool) async throws {
        let ended = ExchangeLog()
        let (server, endpoint) = try start(
            secure: isSecure,
            { connection in
                let head = try connection.readHead()
                guard head.contains("\r\nUpgrade: echo\r\nConnection: upgrade\r\n") else { throw ScriptFailure(head) }
                try connection.write(Self.answer)
                while case let bytes = try connection.readSome(), !bytes.isEmpty { try connection.write(bytes) }
                ended.add("ended")
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(expected: 5), to: endpoint)
        #expect(await log.waitForEnd() == Self.steps)
        #expect(await harness.value { $0.upgraded(of: log)?.write(Array("hello".utf8)) } == true)
        await log.wait(for: "all")
        #expect(log.text == "hello")
        harness.perform { $0.upgraded(of: log)?.close() }
        await ended.wait(for: "ended")
        // Closing is not reported to the side that closes.
        #expect(await harness.value { _ in log.entries.contains { $0.hasPrefix("closed") } } == false)
        #expect(server.failures == [])
    }

    @Test(arguments: [false, true]) func bytesBehindTheHeadBelongToTheNewProtocol(isSecure: Bool) async throws {
        let (server, endpoint) = try start(
            secure: isSecure,
            { connection in
                try connection.readHead()
                try connection.write(Self.answer + "HTTP/1.1 200 OK\r\n\r\n")
                try connection.waitForEnd()
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(reads: false, expected: 19), to: endpoint)
        #expect(await log.waitForEnd() == Self.steps)
        #expect(log.body == [])
        harness.perform { $0.upgraded(of: log)?.isReading = true }
        await log.wait(for: "all")
        #expect(log.text == "HTTP/1.1 200 OK\r\n\r\n")
        harness.perform { $0.upgraded(of: log)?.close() }
    }

    @Test(arguments: ["Upgrade: other\r\n", "Upgrade: echo, other\r\n", "Upgrade: echo\r\nUpgrade: other\r\n", ""])
    func aSwitchToAnotherProtocolIsRefused(field: String) async throws {
        let (server, endpoint) = try start({ connection in
            try connection.readHead()
            try connection.write("HTTP/1.1 101 Switching Protocols\r\n\(field)\r\nbytes")
            try connection.waitForEnd()
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        #expect(await log.waitForEnd() == ["connecting", "connected http11 new", "failed malformedResponse"])
        #expect(await harness.start("/next", to: endpoint).waitForEnd().last == "ended")
        #expect(server.failures == [])
    }

    @Test func aSwitchInHTTP10IsRefused() async throws {
        let (server, endpoint) = try start({ connection in
            try connection.readHead()
            try connection.write("HTTP/1.0 101 Switching\r\nUpgrade: echo\r\n\r\n")
            try connection.waitForEnd()
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        #expect(await log.waitForEnd().last == "failed malformedResponse")
        #expect(await harness.value { $0.upgraded(of: log) == nil })
    }

    @Test func aSwitchThatWasNotAskedForIsRefused() async throws {
        let (server, endpoint) = try start({ connection in
            try connection.readHead()
            try connection.write(Self.answer)
            try connection.waitForEnd()
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(to: endpoint)
        #expect(await log.waitForEnd() == ["connecting", "connected http11 new", "failed malformedResponse"])
        #expect(await harness.start("/next", to: endpoint).waitForEnd().last == "ended")
        #expect(server.failures == [])
    }

    @Test func aServerThatDeclinesAnswersAsUsual() async throws {
        let (server, endpoint) = try start({ connection in
            try connection.answer()
            try connection.answer()
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        #expect(await log.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        #expect(await harness.start("/next", to: endpoint).waitForEnd().contains("connected http11 reused"))
    }

    @Test func anHTTP2ConnectionIsNeitherSwitchedNorShared() async throws {
        let identity = try TestIdentity()
        let server = try ScriptedServer(
            tls: try TestServer(identity, choosing: "h2"),
            { connection in
                try connection.beginHTTP2()
                let stream = try connection.readFrame(1).stream
                try connection.write(.headers(stream, [(":status", "200")], end: true))
                _ = try connection.readFrame(7)
            },
            { connection in
                try connection.readHead()
                try connection.write(Self.answer)
                try connection.waitForEnd()
            })
        defer { server.stop() }
        let harness = try WireHarness()
        var endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        endpoint.allowsHTTP2 = true
        #expect(await harness.start(to: endpoint).waitForEnd().contains("connected http2 new"))
        #expect(await harness.start(settings(), to: endpoint).waitForEnd().last == "failed invalidRequest")
        // A destination without HTTP/2 has connections of its own.
        endpoint.allowsHTTP2 = false
        let log = harness.start(settings(), to: endpoint)
        #expect(await log.waitForEnd() == Self.steps)
    }

    // MARK: Back-pressure

    /// The reader has not begun, and pauses again with the byte behind the head although more wait in the socket.
    @Test func aReaderThatPausesStopsTheServer() async throws {
        let length = 16 << 20
        let (upgraded, blocked) = (Gate(), ExchangeLog())
        try await withSocketPath { path in
            let (server, endpoint) = try start(
                path: path,
                { connection in
                    try connection.readHead()
                    try connection.write(Self.answer + "x")
                    try upgraded.wait()
                    let missing = try connection.fill(with: 0x78, upTo: length - 1)
                    blocked.add("blocked")
                    try connection.write([UInt8](repeating: 0x78, count: missing))
                    guard missing > length / 2 else { throw ScriptFailure("the client took \(length - missing) bytes") }
                    try connection.waitForEnd()
                })
            defer { server.stop() }
            let harness = try WireHarness()
            var settings = self.settings(reads: false, expected: length)
            settings.pauses = true
            let log = harness.start(settings, to: endpoint)
            await log.wait(for: "upgraded")
            upgraded.open()
            await blocked.wait(for: "blocked")
            // Each call is a turn of the loop, which serves the sockets first.
            for _ in 0..<4 { #expect(await harness.value { _ in log.body.count } == 0) }
            harness.perform { $0.upgraded(of: log)?.isReading = true }
            await log.wait(for: "paused")
            for _ in 0..<4 { #expect(await harness.value { _ in log.body.count } == 1) }
            // Otherwise, the loop would be woken for bytes that nobody wants, again and again.
            #expect(await harness.value { $0.upgraded(of: log)?.stream.events } == [])
            harness.perform { $0.upgraded(of: log)?.isReading = true }
            await log.wait(for: "all")
            harness.perform { $0.upgraded(of: log)?.close() }
            #expect(server.failures == [])
        }
    }

    @Test(arguments: [false, true]) func aServerThatDoesNotReadStopsTheWriter(isSecure: Bool) async throws {
        let length = 16 << 20
        let (goOn, done) = (Gate(), ExchangeLog())
        let (server, endpoint) = try start(
            secure: isSecure,
            { connection in
                try connection.readHead()
                try connection.write(Self.answer)
                try goOn.wait()
                var count = 0
                while count < length, case let bytes = try connection.readSome(), !bytes.isEmpty {
                    guard bytes.allSatisfy({ $0 == 0x79 }) else { throw ScriptFailure("other bytes") }
                    count += bytes.count
                }
                done.add("read \(count)")
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        await log.wait(for: "upgraded")
        let bytes = [UInt8](repeating: 0x79, count: length / 2)
        #expect(await harness.value { $0.upgraded(of: log)?.write(bytes) } == false)
        #expect(await harness.value { $0.upgraded(of: log)?.write(bytes) } == false)
        #expect(await harness.value { _ in log.entries.contains("written") } == false)
        goOn.open()
        await log.wait(for: "written")
        await done.wait(for: "read \(length)")
        #expect(server.failures == [])
    }

    // MARK: The end

    @Test(arguments: [false, true]) func theServerCanSendAfterTheEndOfTheClient(isSecure: Bool) async throws {
        let length = 4 << 20
        let (server, endpoint) = try start(
            secure: isSecure,
            { connection in
                try connection.readHead()
                try connection.write(Self.answer)
                var count = 0
                while case let bytes = try connection.readSome(), !bytes.isEmpty { count += bytes.count }
                try connection.write("read \(count)")
                connection.endTLS()
                connection.endSending()
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        await log.wait(for: "upgraded")
        // The end follows the bytes that wait.
        harness.perform { client in
            _ = client.upgraded(of: log)?.write([UInt8](repeating: 0x79, count: length))
            client.upgraded(of: log)?.finishWriting()
        }
        await log.wait(for: "closed")
        #expect(log.text == "read \(length)")
        #expect(log.entries.last == "closed")
        #expect(server.failures == [])
    }

    @Test(arguments: [false, true]) func theClientCanSendAfterTheEndOfTheServer(isSecure: Bool) async throws {
        let received = ExchangeLog()
        let (server, endpoint) = try start(
            secure: isSecure,
            { connection in
                try connection.readHead()
                try connection.write(Self.answer + "last")
                if isSecure { connection.endTLS() } else { connection.endSending() }
                var text = ""
                while case let bytes = try connection.readSome(), !bytes.isEmpty {
                    text += String(decoding: bytes, as: UTF8.self)
                }
                received.add("received \(text)")
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        await log.wait(for: "end of the server")
        #expect(log.text == "last")
        // Each call is a turn of the loop, which serves the sockets first.
        for _ in 0..<4 { #expect(await harness.value { _ in log.entries.count { $0.hasPrefix("end of") } } == 1) }
        #expect(await harness.value { $0.upgraded(of: log)?.write(Array("late".utf8)) } == true)
        harness.perform { $0.upgraded(of: log)?.finishWriting() }
        await log.wait(for: "closed")
        await received.wait(for: "received late")
        #expect(log.entries.suffix(2) == ["end of the server", "closed"])
    }

    @Test func anEndWithoutCloseNotifyIsAFailure() async throws {
        let (server, endpoint) = try start(
            secure: true,
            { connection in
                try connection.readHead()
                try connection.write(Self.answer + "last")
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        await log.wait(for: "closed")
        #expect(log.text == "last")
        #expect(log.entries.last == "closed connectionLost")
        #expect(await harness.value { $0.upgraded(of: log)?.isOpen } == false)
    }

    @Test func aFailedWriteClosesTheConnectionOfAPausedReader() async throws {
        let (go, gone) = (Gate(), ExchangeLog())
        let (server, endpoint) = try start({ connection in
            try connection.readHead()
            try connection.write(Self.answer)
            try go.wait()
            connection.close()
            gone.add("gone")
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(reads: false), to: endpoint)
        await log.wait(for: "upgraded")
        // Bytes that the server has not read turn its close into a reset.
        #expect(await harness.value { $0.upgraded(of: log)?.write([1]) } == true)
        go.open()
        await gone.wait(for: "gone")
        #expect(await harness.value { $0.upgraded(of: log)?.write([2]) } == false)
        await log.wait(for: "closed")
        #expect(log.entries.last == "closed connectionLost")
        #expect(await harness.value { $0.upgraded(of: log)?.isOpen } == false)
    }

    // MARK: The pool

    @Test func thePoolNoLongerCountsTheConnection() async throws {
        let (server, endpoint) = try start({ connection in
            try connection.readHead()
            try connection.write(Self.answer)
            while case let bytes = try connection.readSome(), !bytes.isEmpty { try connection.write(bytes) }
        })
        defer { server.stop() }
        let harness = try WireHarness(connectionsPerOrigin: 1)
        let log = harness.start(settings(expected: 5), to: endpoint)
        #expect(await log.waitForEnd() == Self.steps)
        let next = harness.start("/next", to: endpoint)
        #expect(await next.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        // The next exchange has the same number of a connection in the pool, and neither disturbs the other.
        #expect(await harness.value { $0.upgraded(of: log)?.write(Array("hello".utf8)) } == true)
        await log.wait(for: "all")
        #expect(log.text == "hello")
        harness.perform { $0.upgraded(of: log)?.close() }
        #expect(server.failures == [])
    }

    @Test func aCancelledExchangeClosesTheConnectionBeforeTheSwitch() async throws {
        let (asked, ended) = (ExchangeLog(), ExchangeLog())
        let (server, endpoint) = try start({ connection in
            try connection.readHead()
            asked.add("asked")
            try connection.waitForEnd()
            ended.add("ended")
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(settings(), to: endpoint)
        await asked.wait(for: "asked")
        harness.cancel(log)
        await ended.wait(for: "ended")
        #expect(await harness.value { $0.upgraded(of: log) == nil })
    }

    @Test func aConnectionOutlivesItsExchangeAndEndsWithThePool() async throws {
        let ended = ExchangeLog()
        let (server, endpoint) = try start({ connection in
            try connection.readHead()
            try connection.write(Self.answer)
            while case let bytes = try connection.readSome(), !bytes.isEmpty { try connection.write(bytes) }
            ended.add("ended")
        })
        defer { server.stop() }
        var harness: WireHarness? = try WireHarness()
        let log = try #require(harness?.start(settings(expected: 5), to: endpoint))
        await log.waitForEnd()
        harness?.cancel(log)
        harness?.perform { _ = $0.upgraded(of: log)?.write(Array("hello".utf8)) }
        await log.wait(for: "all")
        harness = nil
        await log.wait(for: "closed")
        #expect(log.entries.last == "closed cancelled")
        await ended.wait(for: "ended")
        #expect(server.failures == [])
    }
}
#endif
