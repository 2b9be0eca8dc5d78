import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Pauses of durable downloads, in each phase of a download.
@Suite("Durable downloads: pauses", .timeLimit(.minutes(1)))
struct DownloadPauseTests {
    static let pattern = LoopbackServer.Pattern(count: 1_000_000)

    /// Holds each request until it is opened, or the request is cancelled.
    private struct Held: Interceptor {
        let asked = LoopbackServer.Gate()
        let opened = LoopbackServer.Gate()

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            asked.open()
            try await opened.wait()
            return try await next(request)
        }
    }

    /// A server that sends 300,000 bytes of the first response, and the rest of all others.
    private struct Half: Sendable {
        let ranges = Log<RangeFields>()
        let sent = LoopbackServer.Gate()
        let closed = LoopbackServer.Gate()
        var headers: LoopbackServer.Fields = [("ETag", DownloadPauseTests.pattern.etag)]

        func answer(_ exchange: LoopbackServer.Exchange) throws {
            let pattern = DownloadPauseTests.pattern
            ranges.add(RangeFields(exchange.request))
            guard exchange.number == 1 else { return try exchange.serveFile(pattern) }
            try exchange.writeHead(headers: headers + [("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<300_000)
            sent.open()
            try exchange.waitForClientToClose()
            closed.open()
        }
    }

    private func download(
        _ client: Client, _ folder: TestFolder, _ change: (inout DurableDownloadOptions) -> Void = { _ in }
    ) -> DurableDownloadTask {
        client.download("file", to: folder.url("file"), resuming: .automatically, options: .test(change))
    }

    /// Waits until a download has received at least this many bytes.
    private func wait(for count: Int64, of task: DurableDownloadTask) async {
        for await progress in task.progress where progress.completedBytes >= count { return }
    }

    /// Waits until the run of a paused download has ended, and its files are closed.
    private func waitUntilPaused(_ task: DurableDownloadTask) async throws {
        while await !task.download.attempts.isPaused { await Task.yield() }
    }

    @Test func aPauseBeforeTheFirstRequestSendsNone() async throws {
        let held = Held()
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { server, client, folder in
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: .test()) {
                $0.interceptors = [held]
            }
            try await held.asked.wait()
            task.pause()
            #expect(task.state == .suspended)
            try await waitUntilPaused(task)
            held.opened.open()
            #expect(server.requests.isEmpty)
            #expect(try folder.names == [])
            task.resume()
            #expect(task.state == .running)
            let result = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(result.trace == [.paused, .resumed, .started])
            #expect(task.state == .completed)
        }
    }

    @Test func aPauseInTheBodyClosesTheConnectionAndKeepsThePart() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { server, client, folder in
            let task = download(client, folder)
            var states = task.states.makeAsyncIterator()
            #expect(await states.next() == .running)
            await wait(for: 300_000, of: task)
            task.pause()
            task.pause()
            #expect(await states.next() == .suspended)
            try await half.closed.wait()
            try await waitUntilPaused(task)
            #expect(task.state == .suspended && task.waitsFor == nil)
            #expect(task.progressNow.completedBytes == 300_000 && !task.progressNow.isFinished)
            #expect(try folder.bytes(".file.tern").count == 300_000)
            task.resume()
            task.resume()
            let result = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(half.ranges.all == [RangeFields(nil, nil), RangeFields("bytes=300000-", Self.pattern.etag)])
            #expect(result.trace == [.started, .paused, .resumed, .continued(at: 300_000)])
            #expect(result.attempts == 2 && result.receivedBytes == 1_000_000)
            #expect(task.progressNow.attempt == 1)
            var last: Session.TaskState?
            while let state = await states.next() { last = state }
            #expect(last == .completed)
            // A download that has ended is not paused.
            task.pause()
            task.resume()
            #expect(task.state == .completed && task.trace == result.trace)
        }
    }

    @Test func aDownloadThatIsResumedWhileItPausesGoesOn() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            for _ in 0..<3 {
                task.pause()
                task.resume()
            }
            #expect(task.state == .running)
            let result = try await task.value
            #expect(Self.pattern.matches(try folder.bytes("file")))
            let pauses = result.trace.filter { $0 == .paused }.count
            #expect((1...3).contains(pauses))
            #expect(result.trace.filter { $0 == .resumed }.count == pauses)
        }
    }

    @Test func aPauseInAWaitLeavesNoTimer() async throws {
        let clock = ManualClock()
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000) }
            try exchange.serveFile(Self.pattern)
        } test: { server, client, folder in
            let task = download(client, folder) {
                $0.clock = clock
                ($0.retry.policy.firstDelay, $0.retry.policy.multiplier) = (.seconds(3_600), 1)
                $0.retry.policy.maximumDelay = .seconds(3_600)
                $0.retry.timeWithoutProgress = nil
            }
            try await clock.waitForSleepers(1)
            task.pause()
            try await waitUntilPaused(task)
            #expect(clock.sleeperCount == 0 && task.waitsFor == nil)
            #expect(server.requests.count == 1)
            task.resume()
            let result = try await task.value
            // The rest of the wait is not waited for.
            #expect(clock.now.offset == .zero && result.attempts == 2)
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func timeLimitsStopInAPause() async throws {
        let (half, clock) = (Half(), ManualClock())
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let task = download(client, folder) {
                $0.clock = clock
                $0.retry.maximumTime = .seconds(60)
                $0.retry.timeWithoutProgress = .seconds(60)
            }
            await wait(for: 300_000, of: task)
            clock.advance(by: .seconds(10))
            task.pause()
            try await waitUntilPaused(task)
            clock.advance(by: .seconds(86_400))
            task.resume()
            #expect(try await task.value.duration == .seconds(10))
        }
    }

    @Test func aCancellationInAPauseEndsTheDownloadAndKeepsItsPart() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            task.cancel()
            let error = try await failure { try await task.value }
            #expect(error.kind == .cancelled && error.reason.contains("300000 bytes are kept in"), "\(error)")
            #expect(task.state == .cancelled && task.progressNow.isFinished)
            task.resume()
            #expect(task.state == .cancelled)
            // As a later process does.
            let result = try await download(client, folder).value
            #expect(result.trace == [.continued(at: 300_000)])
        }
    }

    @Test func aCancellationWhileItPausesEndsTheDownload() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            task.pause()
            task.cancel()
            let error = try await failure { try await task.value }
            #expect(error.kind == .cancelled)
            #expect(task.state == .cancelled)
        }
    }

    @Test func aPausedDownloadIsDiscarded() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            try await task.discard()
            #expect(try folder.names == [])
            #expect(try await failure { try await task.value }.kind == .cancelled)
        }
    }

    @Test func anotherDownloadCanContinueThePart() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { server, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            let other = try await download(client, folder).value
            #expect(other.trace == [.continued(at: 300_000)])
            // Its part is gone, so it downloads the file itself.
            task.resume()
            let result = try await task.value
            #expect(result.bytes == 1_000_000 && server.requests.count == 3)
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func aDownloadIsNotResumedBesideAnotherOne() async throws {
        let (half, gate) = (Half(), LoopbackServer.Gate())
        try await withServer { exchange in
            if exchange.number == 2 { try exchange.wait(for: gate) }
            try half.answer(exchange)
        } test: { server, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            let other = download(client, folder)
            try await server.wait { $0.requestsReceived >= 2 }
            task.resume()
            #expect(try await failure { try await task.value }.kind == .downloadInProgress)
            #expect(task.state == .failed)
            gate.open()
            _ = try await other.value
        }
    }

    @Test func aWaitForAnotherDownloadIsPaused() async throws {
        let (half, clock) = (Half(), ManualClock())
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let first = download(client, folder)
            await wait(for: 300_000, of: first)
            let task = download(client, folder) {
                $0.clock = clock
                $0.contention = .wait
            }
            try await clock.waitForSleepers(1)
            task.pause()
            try await waitUntilPaused(task)
            #expect(clock.sleeperCount == 0)
            first.cancel()
            _ = try await failure { try await first.value }
            task.resume()
            #expect(try await task.value.trace.last == .continued(at: 300_000))
        }
    }

    @Test func segmentsArePausedTogether() async throws {
        let size = 400_000
        let pattern = LoopbackServer.Pattern(count: size)
        let served = Log<String>()
        try await withServer { exchange in
            let range = exchange.request["Range"] ?? "none"
            served.add(range)
            guard let end = ["bytes=0-199999": 50_000, "bytes=200000-399999": 250_000][range] else {
                return try exchange.serveFile(pattern)
            }
            let start = exchange.requestedStart
            try exchange.writeHead(
                status: 206,
                headers: [
                    ("ETag", pattern.etag), ("Content-Length", "200000"),
                    ("Content-Range", "bytes \(start)-\(start + 199_999)/\(size)"),
                ])
            try exchange.streamPattern(pattern, in: start..<end)
            try exchange.waitForClientToClose()
        } test: { server, client, folder in
            let task = download(client, folder) { ($0.segments, $0.shortestSegment) = (2, 100_000) }
            await wait(for: 100_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            try await server.wait { $0.openConnections == 0 }
            task.resume()
            let result = try await task.value
            #expect(pattern.matches(try folder.bytes("file")))
            #expect(Set(served.all.suffix(2)) == ["bytes=50000-199999", "bytes=250000-399999"])
            #expect(result.trace.contains(.continued(at: 100_000)))
        }
    }

    @Test func aFileInMemoryIsWrittenWhenItIsPaused() async throws {
        let pattern = LoopbackServer.Pattern(count: 100_000)
        try await withServer { exchange in
            guard exchange.number == 1 else { return try exchange.serveFile(pattern) }
            try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "100000")])
            try exchange.streamPattern(pattern, in: 0..<40_000)
            try exchange.waitForClientToClose()
        } test: { _, client, folder in
            let task = download(client, folder)
            await wait(for: 40_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            #expect(try folder.bytes(".file.tern").count == 40_000)
            task.resume()
            #expect(try await task.value.trace == [.started, .paused, .resumed, .continued(at: 40_000)])
        }
    }

    @Test func aPartThatNothingCanContinueStartsOver() async throws {
        let half = Half(headers: [])
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            #expect(try folder.names == [])
            task.resume()
            let result = try await task.value
            #expect(result.bytes == 1_000_000 && result.receivedBytes == 1_300_000)
            #expect(task.progressNow.attempt == 2)
        }
    }

    @Test func aPausedDownloadWithoutASessionFailsWhenItIsResumed() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let task = download(client, folder)
            await wait(for: 300_000, of: task)
            task.pause()
            try await waitUntilPaused(task)
            await client.session.finishTasksAndInvalidate()
            #expect(task.state == .suspended)
            task.resume()
            #expect(try await failure { try await task.value }.kind == .sessionInvalidated)
            #expect(try folder.bytes(".file.tern").count == 300_000)
        }
    }

    @Test func aPausedDownloadThatIsReleasedEndsAndLeavesItsPart() async throws {
        let half = Half()
        try await withServer {
            try half.answer($0)
        } test: { _, client, folder in
            let (progress, states) = try await pausedStreams(client, folder)
            #expect(await Array(progress).last?.isFinished == true)
            #expect(await Array(states).last == .cancelled)
            #expect(try await download(client, folder).value.trace == [.continued(at: 300_000)])
        }
    }

    /// Returns the streams of a paused download whose handle is released.
    private func pausedStreams(
        _ client: Client, _ folder: TestFolder
    ) async throws -> (AsyncStream<Session.Progress>, AsyncStream<Session.TaskState>) {
        let task = download(client, folder)
        await wait(for: 300_000, of: task)
        task.pause()
        try await waitUntilPaused(task)
        return (task.progress, task.states)
    }
}

extension Array {
    /// Collects all elements of a stream.
    fileprivate init(_ stream: AsyncStream<Element>) async {
        self = []
        for await element in stream { append(element) }
    }
}
