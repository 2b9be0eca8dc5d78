#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks the three time limits: each names itself, and none runs while a task is paused.
@Suite("Wire: timeouts", .timeLimit(.minutes(1)))
struct TimeoutTests {
    /// Waits for real time on the loop, without a sleep: sends a request without an answer, until its own limit ends
    /// it.
    private func pass(_ duration: Duration, on client: Client) async throws {
        let silent = try LoopbackServer { try $0.waitForClientToClose() }
        defer { silent.stop() }
        var request = try Request(url: silent.url)
        request.timeouts = Timeouts(connect: nil, idle: duration)
        let error = try await failure { [request] in try await client.response(for: request) }
        #expect(error.kind == .idleTimedOut)
    }

    private func request(
        _ client: Client, _ timeouts: Timeouts, method: Request.Method = .get, body: Request.Body = .none
    ) throws -> Request {
        var request = try client.request(method, "", body: body)
        request.timeouts = timeouts
        return request
    }

    // MARK: Each limit

    @Test func connectTimeoutNamesItself() async throws {
        let server = try LoopbackServer(acceptsConnections: false) { _ in }
        defer { server.stop() }
        let session = Session(configuration: .test { $0.timeouts.connect = .milliseconds(100) })
        let client = Client(baseURL: server.url, session: session)
        let start = ContinuousClock.now
        let error = try await failure { try await client.get("") }
        #expect(error.kind == .connectTimedOut)
        #expect(error.timeoutPhase == .connect)
        #expect(error.reason.contains("127.0.0.1:\(server.port)") && error.reason.contains("0.1"))
        #expect(error.response == nil)
        #expect(start.duration(to: .now) >= .milliseconds(100))
    }

    @Test func idleTimeoutBeforeTheHeadNamesItself() async throws {
        try await withServer {
            try $0.waitForClientToClose()
        } test: { server, client in
            let request = try self.request(client, Timeouts(idle: .milliseconds(100)))
            let error = try await failure { try await client.response(for: request) }
            #expect(error.kind == .idleTimedOut)
            #expect(error.timeoutPhase == .idle)
            #expect(error.response == nil)
            // The connection is closed, because its response can still come.
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func idleTimeoutInTheBodyReportsReceivedBytes() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            try exchange.waitForClientToClose()
        } test: { _, client in
            try await withGrowingLimit { limit in
                let request = try self.request(client, Timeouts(idle: limit))
                let error = try await failure { try await client.response(for: request) }
                #expect(error.kind == .idleTimedOut)
                guard error.status == 200 else { return false }
                #expect(error.reason.contains("3 of 10 bytes"))
                #expect(error.body == Data("abc".utf8))
                return true
            }
        }
    }

    @Test func headInSingleLinesIsNotIdle() async throws {
        try await withServer { exchange in
            let limit = Int(exchange.request.path.dropFirst()) ?? 0
            try exchange.write("HTTP/1.1 200 OK\r\n")
            for number in 0..<8 {
                try exchange.pause(for: .milliseconds(limit / 4))
                try exchange.write("X-\(number): 1\r\n")
            }
            try exchange.write("Content-Length: 0\r\n\r\n")
        } test: { _, client in
            try await withGrowingLimit { limit in
                let milliseconds = Int(limit / .milliseconds(1))
                var request = try client.request(.get, "\(milliseconds)")
                request.timeouts = Timeouts(idle: limit)
                do {
                    return try await client.response(for: request).status == 200
                } catch {
                    return false
                }
            }
        }
    }

    @Test func idleTimeoutOfAnUploadThatNobodyReadsNamesItself() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer {
            try $0.wait(for: gate)
        } test: { _, client in
            let body = Request.Body.data(Data(count: 64 << 20))
            let request = try self.request(client, Timeouts(idle: .milliseconds(200)), method: .post, body: body)
            let error = try await failure { try await client.response(for: request) }
            #expect(error.kind == .idleTimedOut)
            gate.open()
        }
    }

    @Test func totalTimeoutCoversTheBody() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            exchange.throttle(bytesPerSecond: 1_000_000)
            try exchange.streamZeros(count: 100_000_000)
        } test: { _, client in
            try await withGrowingLimit { limit in
                let request = try self.request(client, Timeouts(idle: .seconds(30), total: limit))
                let error = try await failure { try await client.response(for: request) }
                #expect(error.kind == .totalTimedOut)
                #expect(error.timeoutPhase == .total)
                if limit == .milliseconds(200) { #expect(error.reason.contains("0.2")) }
                guard error.status == 200 else { return false }
                #expect(error.reason.contains("of 100000000 bytes"))
                return true
            }
        }
    }

    @Test func totalTimeoutEndsAStreamThatIsRead() async throws {
        try await withServer { exchange in
            try exchange.writeChunkedHead()
            while true {
                try exchange.writeChunk([UInt8]("tick\n"))
                try exchange.waitUntilReceived()
            }
        } test: { _, client in
            try await withGrowingLimit { limit in
                let request = try self.request(client, Timeouts(total: limit))
                var lines = 0
                let error = try await failure {
                    for try await _ in client.session.stream(request).lines { lines += 1 }
                }
                #expect(error.timeoutPhase == .total)
                return lines > 0
            }
        }
    }

    @Test func waitForAConnectionCountsForTheTotalTimeoutOnly() async throws {
        try await withGrowingLimit { try await waitForAPlace($0) }
    }

    private func waitForAPlace(_ limit: Duration) async throws -> Bool {
        let gate = LoopbackServer.Gate()
        var isAnswered = false
        try await withServer(configuration: .test { $0.maximumConnectionsPerHost = 1 }) { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "ok")
        } test: { server, client in
            let blocker = client.task(.get, "")
            try await server.wait { $0.requestsReceived == 1 }
            let patient = client.session.task(
                for: try request(client, Timeouts(connect: limit, idle: limit)), startsImmediately: true)
            let hasty = try request(client, Timeouts(total: limit * 2))
            let error = try await failure { try await client.response(for: hasty) }
            #expect(error.timeoutPhase == .total)
            #expect(server.counts.requestsReceived == 1)
            #expect(patient.state == .running)
            // The patient task has its limit for its response, and the server is fast now.
            gate.open()
            _ = try await blocker.value
            isAnswered = await patient.wait(for: .completed)
        }
        return isAnswered
    }

    @Test func requestWithoutLimitsDoesNotTimeOut() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "late")
        } test: { _, client in
            let request = try self.request(client, Timeouts(connect: nil, idle: nil, total: nil))
            let task = client.session.task(for: request, startsImmediately: true)
            try await pass(.milliseconds(100), on: client)
            gate.open()
            #expect(try await task.value.status == 200)
        }
    }

    // MARK: Pauses

    @Test func pausedTaskMovesNoByteAndDoesNotTimeOut() async throws {
        try await withGrowingLimit { try await pauseDuringTrickle($0) }
    }

    private func pauseDuringTrickle(_ limit: Duration) async throws -> Bool {
        let gate = LoopbackServer.Gate()
        var isWhole = false
        try await withServer { exchange in
            // A steady trickle: only the pause stops it.
            try exchange.writeChunkedHead()
            exchange.throttle(bytesPerSecond: 200_000)
            while !gate.isOpen { try exchange.writeChunk([UInt8](repeating: 0, count: 1_000)) }
            try exchange.endChunks()
        } test: { _, client in
            let limits = Timeouts(connect: limit, idle: limit, total: .seconds(30))
            let task = client.session.task(for: try request(client, limits), startsImmediately: true)
            _ = await task.response
            task.pause()
            // This is queued on the loop after the pause: once it has ended, the pause is in force, unless it came too
            // late.
            try await pass(.milliseconds(50), on: client)
            let before = await client.session.tasks.snapshot
            guard before.map(\.state) == [.suspended] else { return gate.open() }
            try await pass(limit * 2, on: client)
            let after = await client.session.tasks.snapshot
            #expect(after.map(\.progress.completedBytes) == before.map(\.progress.completedBytes))
            #expect(after.map(\.state) == [.suspended] && after.map(\.id) == [task.id])
            task.resume()
            gate.open()
            isWhole = await task.wait(for: .completed)
            if isWhole {
                let count = try await task.value.value.count
                #expect(Int64(count) >= before[0].progress.completedBytes)
            }
        }
        return isWhole
    }

    @Test func totalClockStopsDuringAPause() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "ok")
        } test: { server, client in
            try await withGrowingLimit { limit in
                let limits = Timeouts(idle: limit, total: limit * 2)
                let task = client.session.task(for: try request(client, limits), startsImmediately: true)
                task.pause()
                try await pass(limit * 3, on: client)
                guard task.state == .suspended else { return false }
                task.resume()
                let error = try await failure { try await task.value }
                // The idle clock starts again at the resume, and ends first.
                return error.timeoutPhase == .idle
            }
        }
    }

    @Test func pauseBeforeTheConnectionStopsTheConnectClock() async throws {
        let server = try LoopbackServer(acceptsConnections: false) { _ in }
        defer { server.stop() }
        let client = Client(baseURL: server.url, session: Session(configuration: .test()))
        try await withGrowingLimit { limit in
            let request = try self.request(client, Timeouts(connect: limit, total: .seconds(20)))
            let task = client.session.task(for: request, startsImmediately: true)
            task.pause()
            try await pass(limit * 2, on: client)
            guard task.state == .suspended else { return false }
            task.resume()
            let error = try await failure { try await task.value }
            #expect(error.timeoutPhase == .connect)
            return true
        }
    }

    @Test func slowReaderDoesNotTimeOut() async throws {
        let size = 16 << 20
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n")
            try exchange.streamZeros(count: size)
        } test: { _, client in
            try await withGrowingLimit { limit in
                let stream = client.session.stream(try self.request(client, Timeouts(idle: limit)))
                var count = 0
                do {
                    for try await chunk in stream.chunks {
                        if count == 0 { try await pass(limit * 2, on: client) }
                        count += chunk.count
                    }
                } catch let error as NetworkError where error.timeoutPhase == .idle {
                    return false
                }
                #expect(count == size)
                return true
            }
        }
    }
}
#endif
