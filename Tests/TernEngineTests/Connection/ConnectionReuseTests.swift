#if os(Linux)
import Foundation
import TernConcurrency
import Testing

@testable import TernEngine

/// The use of one HTTP/1.1 connection after the other, with the bytes of a real server.
@Suite(.timeLimit(.minutes(1))) struct ConnectionReuseTests {
    /// Returns settings whose end starts a second exchange in the same turn, after the server has passed the gate.
    private func settings(
        then log: ExchangeLog, at endpoint: Endpoint, after gate: Gate, ended: Gate
    ) -> TestExchange.Settings {
        var settings = TestExchange.Settings()
        settings.path = "/first"
        settings.atEnd = { client in
            do {
                // The server goes on when the response has been read. The loop cannot poll the socket in between.
                ended.open()
                try gate.wait()
            } catch {
                log.add("\(error)")
            }
            var second = TestExchange.Settings()
            second.path = "/second"
            client.submit(second, to: endpoint, log: log)
        }
        return settings
    }

    @Test func aConnectionIsUsedAgain() async throws {
        let server = try ScriptedServer({ connection in
            try connection.answer()
            try connection.answer()
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let first = harness.start("/first", to: Endpoint(server))
        #expect(await first.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        let second = harness.start("/second", to: Endpoint(server))
        #expect(await second.waitForEnd() == ["connected http11 reused", "head 200", "ended"])
        #expect(first.text == "/first")
        #expect(second.text == "/second")
        #expect(server.accepted == 1)
        #expect(server.failures == [])
    }

    @Test func aConnectionIsNotUsedBeyondThePromisedRequests() async throws {
        let server = try ScriptedServer(
            { connection in
                try connection.answer(fields: "Keep-Alive: timeout=60, max=1\r\n")
                try connection.answer()
                try connection.waitForEnd()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        for path in ["/first", "/second", "/third"] {
            #expect(await harness.start(path, to: Endpoint(server)).outcome().status == 200)
        }
        #expect(server.accepted == 2)
        #expect(server.failures == [])
    }

    /// The server closes a connection when its promise ends: a request in the last second can be lost.
    @Test func aConnectionIsNotUsedInTheLastSecondOfItsPromise() async throws {
        let gate = Gate()
        let server = try ScriptedServer(
            { connection in
                try connection.answer(fields: "Keep-Alive: timeout=2\r\n")
                try connection.answer()
                // The client closes it instead of sending a request.
                gate.open()
                try connection.waitForEnd()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        #expect(await harness.start("/first", to: Endpoint(server)).outcome().status == 200)
        #expect(await harness.start("/second", to: Endpoint(server)).outcome().status == 200)
        try gate.wait()
        #expect(server.accepted == 1)
        // The time of the promise, without its last second, has to pass.
        #expect(!MonotonicSemaphore().wait(for: .milliseconds(1_050)))
        let last = harness.start("/third", to: Endpoint(server))
        #expect(await last.outcome().status == 200)
        #expect(server.accepted == 2)
        #expect(server.requests.map(\.count) == [2, 1])
    }

    /// It opens at once, and the first request on it has not waited in a pool: it may have been processed.
    @Test func aNewUnixSocketConnectionIsNotTreatedAsPooled() async throws {
        try await withSocketPath { path in
            let server = try ScriptedServer(
                path: path,
                { connection in
                    try connection.readHead()
                    connection.close()
                })
            defer { server.stop() }
            let harness = try WireHarness()
            let log = harness.start("/first", to: Endpoint(server))
            #expect(await log.waitForEnd().last == "failed connectionLost")
            #expect(await log.outcome().isDeadConnection == false)
            #expect(server.accepted == 1)
        }
    }

    @Test func strayBytesSendTheNextRequestToAFreshConnection() async throws {
        let (sent, ended) = (Gate(), Gate())
        let server = try ScriptedServer(
            { connection in
                try connection.answer()
                try ended.wait()
                try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nunsent")
                sent.open()
                try connection.waitForEnd()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        let second = ExchangeLog()
        let first = harness.start(
            settings(then: second, at: Endpoint(server), after: sent, ended: ended), to: Endpoint(server))
        await first.waitForEnd()
        #expect(await second.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        #expect(second.text == "/second")
        #expect(server.requests == [["GET /first HTTP/1.1"], ["GET /second HTTP/1.1"]])
        #expect(server.failures == [])
    }

    @Test func anExchangeWhoseConnectionClosedBeforeTheRequestGoesElsewhere() async throws {
        let (closed, ended) = (Gate(), Gate())
        let server = try ScriptedServer(
            { connection in
                try connection.answer()
                try ended.wait()
                connection.close()
                closed.open()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        let second = ExchangeLog()
        let first = harness.start(
            settings(then: second, at: Endpoint(server), after: closed, ended: ended), to: Endpoint(server))
        await first.waitForEnd()
        #expect(await second.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        #expect(second.text == "/second")
        #expect(server.failures == [])
    }

    @Test func aRecordOfTLSWithoutDataKeepsTheConnection() async throws {
        let identity = try TestIdentity()
        let (sent, ended) = (Gate(), Gate())
        let server = try ScriptedServer(
            tls: try TestServer(identity, version: 13),
            { connection in
                try connection.answer()
                try ended.wait()
                try connection.updateKeys()
                sent.open()
                try connection.answer()
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        let second = ExchangeLog()
        await harness.start(settings(then: second, at: endpoint, after: sent, ended: ended), to: endpoint).waitForEnd()
        #expect(await second.waitForEnd() == ["connected http11 reused", "head 200", "ended"])
        #expect(server.failures == [])
    }

    /// A part of a record can be the beginning of an answer that nobody asked for.
    @Test func aPartOfARecordOfTLSEndsTheUseOfTheConnection() async throws {
        let identity = try TestIdentity()
        let (sent, ended) = (Gate(), Gate())
        let server = try ScriptedServer(
            tls: try TestServer(identity, version: 13),
            { connection in
                try connection.answer()
                try ended.wait()
                // The header of a record of 64 bytes, and 5 of them.
                try connection.writeBelowTLS([0x17, 3, 3, 0, 64, 1, 2, 3, 4, 5])
                sent.open()
                try connection.waitForHangUp()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        let endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        let second = ExchangeLog()
        await harness.start(settings(then: second, at: endpoint, after: sent, ended: ended), to: endpoint).waitForEnd()
        #expect(await second.waitForEnd().contains("connected http11 new"), "\(second.entries)")
        #expect(second.text == "/second")
    }

    /// A server that ends with unread bytes of the request resets the connection, and a write that finds the reset
    /// hides it from the reads.
    @Test func aResetDuringTheRequestIsNotTheEndOfABody() async throws {
        for _ in 0..<10 {
            let server = try ScriptedServer({ connection in
                try connection.readHead()
                try connection.write("HTTP/1.1 200 OK\r\n\r\npartial")
                connection.close()
            })
            defer { server.stop() }
            let harness = try WireHarness()
            var settings = TestExchange.Settings(method: "POST", body: .length(16 << 20), bytes: 16 << 20)
            settings.path = "/first"
            let entries = await harness.start(settings, to: Endpoint(server)).waitForEnd()
            #expect(entries.last?.hasPrefix("failed") == true, "\(entries)")
        }
    }

    @Test func closeNotifyBehindDataInOneReadEndsTheBody() async throws {
        let identity = try TestIdentity()
        let server = try ScriptedServer(
            tls: try TestServer(identity),
            { connection in
                try connection.readHead()
                connection.cork(true)
                try connection.write("HTTP/1.1 200 OK\r\n\r\nthe whole body")
                connection.endTLS()
                connection.cork(false)
                // The socket stays open until the client has seen close_notify.
                try connection.waitForEnd()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        let endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        let first = harness.start("/first", to: endpoint)
        #expect(await first.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        #expect(first.text == "the whole body")
        let second = harness.start("/second", to: endpoint)
        #expect(await second.waitForEnd().contains("connected http11 new"))
        #expect(server.failures == [])
    }

    @Test func aFullResponseBeforeTheEndIsDelivered() async throws {
        let closed = Gate()
        let server = try ScriptedServer(
            { connection in
                try connection.answer()
                connection.close()
                closed.open()
            }, { try $0.answer() })
        defer { server.stop() }
        let harness = try WireHarness()
        let first = harness.start("/first", to: Endpoint(server))
        #expect(await first.waitForEnd().last == "ended")
        #expect(first.text == "/first")
        // Otherwise, the second request can be sent before the connection ends, and is lost with it.
        try closed.wait()
        let second = harness.start("/second", to: Endpoint(server))
        #expect(await second.waitForEnd().last == "ended")
        #expect(second.text == "/second")
        #expect(server.failures == [])
    }

    @Test func bytesThatTheSocketHasNotTakenEndTheUseOfTheConnection() async throws {
        try await withSocketPath { path in
            // The socket takes a part of the last piece, which the engine has read.
            let count = try Self.bodyCount()
            let server = try ScriptedServer(
                path: path,
                { connection in
                    try connection.readHead()
                    try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    // Without reading, so that the socket takes no more.
                    try connection.waitForHangUp()
                }, { try $0.answer() })
            defer { server.stop() }
            let harness = try WireHarness(connectionsPerOrigin: 1)
            var settings = TestExchange.Settings()
            settings.method = "POST"
            settings.bytes = count
            settings.body = .length(Int64(count))
            let first = harness.start(settings, to: Endpoint(server))
            #expect(await first.waitForEnd().last == "ended")
            let second = harness.start("/second", to: Endpoint(server))
            #expect(await second.waitForEnd().contains("connected http11 new"))
            #expect(second.text == "/second")
            #expect(server.failures == [])
        }
    }

    /// Returns the number of bytes of whole pieces of a body, of which a Unix socket takes all but a part of the last.
    private static func bodyCount() throws -> Int {
        let (first, second) = try TestConnection.sockets()
        defer {
            Socket.close(first)
            Socket.close(second)
        }
        let piece = [UInt8](repeating: 0, count: LoopContext.receiveCapacity)
        var room = 0
        while case .bytes(let count) = unsafe piece.withUnsafeBytes({ unsafe Socket.send(first, from: $0) }) {
            room += count
        }
        // The server reads 4,096 bytes with the head.
        return (room + 32_768) / piece.count * piece.count + piece.count - 512
    }

    @Test func aPausedReaderHoldsBoundedMemory() async throws {
        let (paused, blocked) = (Gate(), ExchangeLog())
        let length = 16 << 20
        try await withSocketPath { path in
            let server = try ScriptedServer(
                path: path,
                { connection in
                    try connection.readHead()
                    try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nx")
                    try paused.wait()
                    let missing = try connection.fill(with: 0x78, upTo: length - 1)
                    blocked.add("blocked")
                    try connection.write([UInt8](repeating: 0x78, count: missing))
                    guard missing > length / 2 else { throw ScriptFailure("the client took \(length - missing) bytes") }
                })
            defer { server.stop() }
            let harness = try WireHarness()
            var settings = TestExchange.Settings()
            settings.pauses = true
            let log = harness.start(settings, to: Endpoint(server))
            await log.wait(for: "paused")
            paused.open()
            await blocked.wait(for: "blocked")
            // Everything that the loop has read stands in the log.
            #expect(await harness.value { _ in log.body.count } == 1)
            harness.resume(log)
            #expect(await log.waitForEnd().last == "ended")
            #expect(log.body.count == length)
            #expect(server.failures == [])
        }
    }
}

/// Makes the path of a Unix socket for the time of a test.
func withSocketPath(_ test: (String) async throws -> Void) async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString.prefix(8))").path
    defer { unsafe unlink(path) }
    try await test(path)
}
#endif
