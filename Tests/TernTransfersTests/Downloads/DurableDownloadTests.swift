import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Downloads over real connections, whose server breaks them.
@Suite("Durable downloads", .timeLimit(.minutes(1)))
struct DurableDownloadTests {
    static let pattern = LoopbackServer.Pattern(count: 1_000_000)

    /// Starts a download of `/file` to `file` in the folder.
    private func download(
        _ client: Client, _ folder: TestFolder, _ change: (inout DurableDownloadOptions) -> Void = { _ in }
    ) -> DurableDownloadTask {
        client.download("file", to: folder.url("file"), resuming: .automatically, options: .test(change))
    }

    @Test func wholeFileGetsItsNameAndNothingElseIsLeft() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { server, client, folder in
            let task = download(client, folder)
            let result = try await task.value
            #expect(result.file.path == folder.url("file").path)
            #expect(result.bytes == 1_000_000 && result.receivedBytes == 1_000_000 && result.attempts == 1)
            #expect(result.trace == [.started])
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
            #expect(task.progressNow.completedBytes == 1_000_000 && task.progressNow.isFinished)
            var sum: Session.Progress?
            for await progress in Session.Progress.combined(of: [task, task]) { sum = progress }
            #expect(sum?.completedBytes == 2_000_000 && sum?.isFinished == true)
        }
    }

    @Test func callChangesItsRequest() async throws {
        let keys = Log<String>()
        try await withServer { exchange in
            keys.add(exchange.request["X-Key"] ?? "none")
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000, from: 0) }
            try exchange.serveFile(Self.pattern)
        } test: { _, client, folder in
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: .test()) {
                $0.headers["X-Key"] = "seven"
            }
            _ = try await task.value
            #expect(keys.all == ["seven", "seven"])
        }
    }

    @Test func bodyThatBreaksOffIsTakenUpAgainWithoutLoss() async throws {
        let cuts = [0, 1, 4_095, 65_536, 200_000, 700_000]
        let asked = Log<RangeFields>()
        try await withServer { exchange in
            asked.add(RangeFields(exchange.request))
            let start = exchange.requestedStart
            guard exchange.number <= cuts.count else { return try exchange.serveFile(Self.pattern) }
            let end = cuts[exchange.number - 1]
            try exchange.cut(Self.pattern, after: max(0, end - start), from: start)
        } test: { server, client, folder in
            let task = download(client, folder)
            let result = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.receivedBytes == 1_000_000)
            #expect(result.attempts == 7)
            #expect(task.latestResponse?.status == 206)
            let tag = Self.pattern.etag
            #expect(asked.all.first == RangeFields(nil, nil))
            // The part is empty after the first cut, so that the second request asks for the whole file.
            #expect(
                asked.all.dropFirst(2)
                    == [1, 4_095, 65_536, 200_000, 700_000].map { RangeFields("bytes=\($0)-", tag) }[...])
            #expect(try folder.names == ["file"])
        }
    }

    @Test func changedFileStartsOver() async throws {
        let changed = LoopbackServer.Pattern(count: 900_000, seed: 7)
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000) }
            try exchange.serveFile(changed)
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(changed.matches(try folder.bytes("file")))
            #expect(result.trace.contains(.startedOver(.fileChanged, discarded: 300_000)))
            #expect(result.receivedBytes == 1_200_000)
        }
    }

    @Test func downloadThatStartsOverBeginsANewAttemptOfItsProgress() async throws {
        let changed = LoopbackServer.Pattern(count: 900_000, seed: 7)
        let (isFirstSeen, isSecondSeen) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000) }
            try exchange.wait(for: isFirstSeen)
            try exchange.writeHead(headers: [("ETag", changed.etag), ("Content-Length", "900000")])
            try exchange.streamPattern(changed, in: 0..<100_000)
            try exchange.wait(for: isSecondSeen)
            try exchange.streamPattern(changed, in: 100_000..<900_000)
        } test: { _, client, folder in
            let task = download(client, folder)
            var last: Session.Progress?
            for await progress in task.progress {
                last = progress
                if progress.attempt == 1, progress.completedBytes == 300_000 { isFirstSeen.open() }
                if progress.attempt == 2, progress.completedBytes == 100_000 {
                    #expect(progress.totalBytes == 900_000)
                    isSecondSeen.open()
                }
            }
            #expect(last?.attempt == 2 && last?.completedBytes == 900_000 && last?.isFinished == true)
            let result = try await task.value
            let bytes = try folder.bytes("file")
            #expect(result.bytes == 900_000 && bytes.count == 900_000 && changed.matches(bytes))
        }
    }

    /// Responses to the second request that prove no continuation, and the reason in the trace.
    enum Doubt: CaseIterable {
        case noValidator, wrongRange, otherLength, otherTag, ignoredRange, unsatisfiable
    }

    @Test(arguments: Doubt.allCases)
    func doubtfulPartIsNeverAppended(doubt: Doubt) async throws {
        let tag = Self.pattern.etag
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000) }
            guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
            let wrong = [UInt8](repeating: 0, count: 700_000)
            let place = ("Content-Range", "bytes 300000-999999/1000000")
            switch doubt {
            case .noValidator: try exchange.respond(status: 206, headers: [place], body: wrong)
            case .wrongRange:
                let place = ("Content-Range", "bytes 0-699999/1000000")
                try exchange.respond(status: 206, headers: [("ETag", tag), place], body: wrong)
            case .otherLength:
                let place = ("Content-Range", "bytes 300000-999999/1000001")
                try exchange.respond(status: 206, headers: [("ETag", tag), place], body: wrong)
            case .otherTag: try exchange.respond(status: 206, headers: [("ETag", "\"x\""), place], body: wrong)
            case .ignoredRange: try exchange.serveFile(Self.pattern, supportsRanges: false)
            case .unsatisfiable: try exchange.respond(status: 416, headers: [("Content-Range", "bytes */1000000")])
            }
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            let reason: StartOverReason =
                switch doubt {
                case .noValidator, .wrongRange, .otherLength: .wrongRange
                case .otherTag: .fileChanged
                case .ignoredRange: .rangeIgnored
                case .unsatisfiable: .rangeNotSatisfiable
                }
            #expect(result.trace.contains(.startedOver(reason, discarded: 300_000)))
            #expect(result.attempts == 2)
        }
    }

    @Test func serverThatComparesDatesOnlyIsContinued() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let fields: LoopbackServer.Fields = [("Last-Modified", date), ("Date", "Mon, 07 Nov 1994 08:49:37 GMT")]
        let asked = Log<RangeFields>()
        try await withServer { exchange in
            asked.add(RangeFields(exchange.request))
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000, headers: fields) }
            guard exchange.request["If-Range"] == date else {
                return try exchange.serveFile(Self.pattern, lastModified: date, supportsRanges: false)
            }
            try exchange.serveFile(Self.pattern, lastModified: date)
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(asked.all.map(\.condition) == [nil, Self.pattern.etag, date])
            #expect(result.trace.contains(.continued(at: 300_000)))
            #expect(result.receivedBytes == 1_000_000)
        }
    }

    @Test func bodyOfUnknownLengthThatWasWholeEndsWith416() async throws {
        try await withServer { exchange in
            if exchange.number == 1 {
                try exchange.writeChunkedHead(headers: [("ETag", Self.pattern.etag)])
                try exchange.writeChunk(Self.pattern.bytes())
                return exchange.close()
            }
            let place = ("Content-Range", "bytes */1000000")
            try exchange.respond(status: 416, headers: [place, ("ETag", Self.pattern.etag)])
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.receivedBytes == 1_000_000 && result.attempts == 2)
        }
    }

    @Test func compressedBodyIsNeverContinued() async throws {
        let bytes = Array("one two three".utf8)
        let asked = Log<RangeFields>()
        try await withServer { exchange in
            asked.add(RangeFields(exchange.request))
            #expect(exchange.request["Accept-Encoding"] == "identity")
            let body = GzipBody.stored(bytes)
            let fields = [("ETag", "\"a\""), ("Content-Encoding", "gzip"), ("Content-Length", "\(body.count)")]
            try exchange.writeHead(headers: fields)
            guard exchange.number == 1 else { return try exchange.write(body) }
            try exchange.write(body.dropLast(10))
            exchange.close()
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(try folder.bytes("file") == Data(bytes))
            #expect(asked.all == [RangeFields(nil, nil), RangeFields(nil, nil)])
            #expect(result.trace.contains { if case .startedOver(.encoded, _) = $0 { true } else { false } })
            #expect(result.attempts == 2)
            #expect(try folder.names == ["file"])
        }
    }

    @Test func busyServerIsWaitedFor() async throws {
        let clock = ManualClock()
        try await withServer { exchange in
            switch exchange.number {
            case 1: try exchange.respond(status: 429, headers: [("Retry-After", "3")])
            case 2: try exchange.respond(status: 503, headers: [("Retry-After", "7")])
            default: try exchange.serveFile(Self.pattern)
            }
        } test: { server, client, folder in
            let task = download(client, folder) { $0.clock = clock }
            try await clock.waitForSleepers(1)
            #expect(clock.nextDeadline?.offset == .seconds(3))
            clock.advance(by: .seconds(3))
            try await clock.waitForSleepers(1)
            #expect(clock.nextDeadline?.offset == .seconds(10))
            clock.advance(by: .seconds(7))
            let result = try await task.value
            #expect(result.attempts == 3 && result.duration == .seconds(10))
            #expect(result.trace.contains(.waited(.seconds(7))))
        }
    }

    @Test func interceptorLeavesTheAttemptsAlone() async throws {
        let requests = Log<Int>()
        try await withServer(
            configuration: { $0.interceptors = [RetryInterceptor()] },
            { exchange in
                requests.add(exchange.number)
                try exchange.respond(status: 503)
            },
            test: { _, client, folder in
                let error = try await failure { try await download(client, folder) { $0.retry.policy.limit = 2 }.value }
                #expect(error.status == 503 && error.attempts == 3)
                #expect(requests.all == [1, 2, 3])
            })
    }

    @Test func longRetryAfterEndsTheDownload() async throws {
        try await withServer {
            try $0.respond(status: 503, headers: [("Retry-After", "86400")])
        } test: { _, client, folder in
            let error = try await failure { try await download(client, folder).value }
            #expect(error.status == 503)
            #expect(try folder.names == [])
        }
    }

    @Test func redirectIsFollowedByEachAttempt() async throws {
        try await withServer { exchange in
            if exchange.request.path == "/file" {
                return try exchange.respond(status: 302, headers: [("Location", "/moved?signature=\(exchange.number)")])
            }
            let start = exchange.requestedStart
            if start == 0 { return try exchange.cut(Self.pattern, after: 500_000) }
            try exchange.serveFile(Self.pattern)
        } test: { _, client, folder in
            let result = try await download(client, folder).value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.trace.contains(.continued(at: 500_000)))
        }
    }

    @Test func expiredURLIsReplaced() async throws {
        try await withServer { exchange in
            if exchange.request.query("sig") == "1", exchange.number > 1 { return try exchange.respond(status: 403) }
            if exchange.requestedStart == 0 { return try exchange.cut(Self.pattern, after: 500_000) }
            try exchange.serveFile(Self.pattern)
        } test: { server, client, folder in
            let statuses = Log<Int?>()
            let task = client.download(
                "file", to: folder.url("file"), resuming: .automatically,
                options: .test { options in
                    options.url = { error in
                        statuses.add(error.status)
                        return server.url("/file?sig=2")
                    }
                }, query: ["sig": "1"])
            let result = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(statuses.all == [403])
            #expect(result.trace.contains(.replacedURL) && result.trace.contains(.continued(at: 500_000)))
        }
    }

    @Test func errorStatesAttemptsTimeAndBytes() async throws {
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000) }
            exchange.reset()
        } test: { _, client, folder in
            let error = try await failure {
                try await download(client, folder) { $0.retry.policy.limit = 2 }.value
            }
            #expect(error.attempts == 4)
            #expect(error.attemptsDuration != nil)
            #expect(error.reason.contains("4 attempts failed"))
            #expect(error.reason.contains("300000 bytes received, 300000 bytes are kept in"))
            #expect(try folder.names == [".file.tern", ".file.tern.json"])
        }
    }

    @Test func laterDownloadContinuesInAMovedFolder() async throws {
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000) }
            try exchange.serveFile(Self.pattern)
        } test: { _, client, folder in
            let fail: (inout DurableDownloadOptions) -> Void = { $0.retry.policy.limit = 0 }
            let first = client.download(
                "file", to: folder.url("a/file"), resuming: .automatically,
                options: .test {
                    fail(&$0)
                    $0.createsFolders = true
                })
            _ = try await failure { try await first.value }
            try FileManager.default.moveItem(atPath: folder.url("a").path, toPath: folder.url("b").path)
            let second = client.download("file", to: folder.url("b/file"), resuming: .automatically)
            let result = try await second.value
            #expect(result.trace == [.continued(at: 300_000)])
            #expect(result.receivedBytes == 700_000)
            #expect(Self.pattern.matches(try folder.bytes("b/file")))
            #expect(try folder.names == ["b", "b/file"])
        }
    }

    @Test func attemptThatTakesTooLongIsFollowedByAnother() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            if exchange.number > 1 { return try exchange.serveFile(Self.pattern) }
            try exchange.writeHead(headers: [("Content-Length", "1000000"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.wait(for: gate)
        } test: { _, client, folder in
            var request = try client.request(.get, "file")
            request.timeouts = Timeouts(total: .seconds(1))
            let task = client.session.download(
                request, to: folder.url("file"), resuming: .automatically, options: .test())
            let result = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.attempts > 1)
        }
    }

    @Test func timeOfTheWholeDownloadEndsAnAttemptThatRuns() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "1000000"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.wait(for: gate)
        } test: { server, client, folder in
            let error = try await failure {
                try await download(client, folder) { $0.retry.maximumTime = .seconds(3) }.value
            }
            #expect(error.kind == .totalTimedOut, "\(error)")
            #expect(error.reason.contains("time limit of 3.0 seconds"))
            #expect(server.counts.requestsReceived == 1)
            #expect(try folder.bytes(".file.tern").count == 1_000)
        }
    }

    @Test func networkIsWaitedFor() async throws {
        let network = ScriptedNetwork(.unreachable)
        try await inTestFolder { folder in
            var configuration = Session.Configuration()
            configuration.proxies = .none
            configuration.reachability = Reachability(network)
            let session = Session(configuration: configuration)
            let request = try Request(.get, "http://name.invalid/file")
            let task = session.download(
                request, to: folder.url("file"), resuming: .automatically, options: .test { $0.retry.policy.limit = 0 })
            while !task.trace.contains(.waitedForNetwork) { await Task.yield() }
            network.set(.unknown)
            let error = try await failure { try await task.value }
            #expect(error.kind == .dns)
            #expect(error.reason.contains("1 attempt in"))
        }
    }

    /// A machine without a default route reaches the hosts of its own networks, which the status does not tell.
    @Test func hostIsTriedAgainWhileThereIsNoDefaultRoute() async throws {
        let network = ScriptedNetwork(.unreachable)
        let clock = ManualClock()
        try await inTestFolder { folder in
            let transport = StubTransport { call in
                if call.index < 3 { throw StubTransport.Failure(.connectionFailed) }
                return .data(Data([1, 2, 3]), headers: ["ETag": "\"1\""])
            }
            var configuration = Session.Configuration()
            configuration.reachability = Reachability(network)
            let session = Session(configuration: configuration, stub: transport)
            let request = try Request(.get, "http://10.1.2.3/file")
            let task = session.download(
                request, to: folder.url("file"), resuming: .automatically, options: .test { $0.clock = clock })
            for delay in [1, 2, 4] {
                try await clock.waitForSleepers(1)
                #expect(task.waitsFor == .route(host: "10.1.2.3", nextTrial: .seconds(delay)))
                clock.advance(by: .seconds(delay))
            }
            let result = try await task.value
            #expect(result.bytes == 3 && result.attempts == 1)
            #expect(task.waitsFor == nil)
        }
    }

    /// Where there is a route to the host, the machine is not offline: a failure is one of the host.
    @Test func routeToTheHostIsEnough() async throws {
        let network = ScriptedNetwork(.unreachable, routes: ["10.1.2.3"])
        try await inTestFolder { folder in
            var configuration = Session.Configuration()
            configuration.reachability = Reachability(network)
            let stub = StubTransport { _ in throw StubTransport.Failure(.connectionFailed) }
            let session = Session(configuration: configuration, stub: stub)
            let request = try Request(.get, "http://10.1.2.3/file")
            let task = session.download(
                request, to: folder.url("file"), resuming: .automatically, options: .test { $0.retry.policy.limit = 2 })
            let error = try await failure { try await task.value }
            #expect(error.kind == .connectionFailed && error.attempts == 3)
            #expect(!task.trace.contains(.waitedForNetwork))
        }
    }

    @Test func sizeOfTheFileIsChecked() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            let error = try await failure { try await download(client, folder) { $0.expectedSize = 999_999 }.value }
            #expect(error.kind == .unexpectedSize)
            #expect(try folder.names == [])
            _ = try await download(client, folder) { $0.expectedSize = 1_000_000 }.value
        }
    }

    @Test func bodyWithMoreBytesThanExpectedIsCut() async throws {
        try await withServer {
            try $0.writeChunked(chunks: [Array(repeating: 0, count: 2_000)])
        } test: { _, client, folder in
            let error = try await failure { try await download(client, folder) { $0.expectedSize = 1_000 }.value }
            #expect(error.kind == .unexpectedSize)
            #expect(try folder.names == [])
        }
    }

    /// The bytes of the longer body are moved through a pipe.
    @Test(arguments: [1_000_000, 8_000_000]) func throttleLimitsTheRate(count: Int) async throws {
        let clock = ManualClock()
        try await withServer {
            try $0.serveFile(LoopbackServer.Pattern(count: count))
        } test: { _, client, folder in
            let task = download(client, folder) {
                $0.throttle = 1_000
                $0.clock = clock
            }
            try await clock.waitForSleepers(1)
            #expect(task.progressNow.completedBytes < 300_000)
            task.throttle = nil
            clock.advance(by: .milliseconds(100))
            #expect(try await task.value.bytes == count)
        }
    }

    @Test(arguments: [
        DurableDownloadOptions(throttle: 0), DurableDownloadOptions(expectedSize: -1),
        DurableDownloadOptions(digest: .sha256("x")), DurableDownloadOptions(segments: 0),
        DurableDownloadOptions(segments: 17),
    ])
    func invalidOptionsFailBeforeAnythingIsSent(options: DurableDownloadOptions) async throws {
        try await withServer {
            try $0.respond()
        } test: { server, client, folder in
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            let error = try await failure { try await task.value }
            #expect(error.kind == .invalidRequest)
            let ranged = client.download(
                "file", to: folder.url("file"), resuming: .automatically, headers: ["Range": "bytes=0-1"])
            let refused = try await failure { try await ranged.value }
            #expect(refused.kind == .invalidRequest)
            #expect(server.counts.requestsReceived == 0)
        }
    }
}

/// A gzip member (RFC 1952) whose bytes are stored without compression.
enum GzipBody {
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        let count = UInt16(bytes.count)
        let lengths = [count, ~count].flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
        let end = [checksum(bytes), UInt32(bytes.count)].flatMap { word in
            (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
        }
        return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255, 1] + lengths + bytes + end
    }

    /// CRC-32 (RFC 1952 §8).
    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var sum = ~UInt32(0)
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? (sum >> 1) ^ 0xEDB8_8320 : sum >> 1 }
        }
        return ~sum
    }
}
