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

/// Pauses that arrive between two attempts of a transfer, when no request of it runs.
@Suite("Transfer queue: pauses between attempts", .timeLimit(.minutes(1)))
struct QueuePauseTests {
    static let pattern = LoopbackServer.Pattern(count: 300_000)
    static let kinds: [TransferQueue.Item.Kind] = [.download, .upload]
    /// The time between the attempts, on the clock of the test.
    private static let delay = Duration.seconds(5)

    /// A server that breaks off the first request for bytes after 100,000 of them.
    private final class Server: Sendable {
        let uploads = UploadServer(.tus)
        private let served = Log<String>()

        init() { uploads.add(.cut(after: 100_000), to: "PATCH") }

        /// The requests so far.
        var requests: [String] { served.all + uploads.requests }

        func answer(_ exchange: LoopbackServer.Exchange) throws {
            guard exchange.request.method == "GET" else { return try uploads.answer(exchange) }
            served.add("GET \(exchange.requestedStart)")
            if served.all.count == 1 { return try exchange.cut(QueuePauseTests.pattern, after: 100_000) }
            try exchange.serveFile(QueuePauseTests.pattern)
        }

        /// The requests of a transfer of this kind until its first bytes were broken off.
        func firstRequests(_ kind: TransferQueue.Item.Kind) -> [String] {
            kind == .download ? ["GET 0"] : ["POST", "PATCH 0"]
        }

        /// All requests of a transfer of this kind that was continued.
        func allRequests(_ kind: TransferQueue.Item.Kind) -> [String] {
            firstRequests(kind) + (kind == .download ? ["GET 100000"] : ["HEAD", "PATCH 100000"])
        }
    }

    /// Holds up one call of the provider of credentials, at the beginning of an attempt.
    private final class Provider: Sendable {
        private let calls = Lock(0)
        private let asked = Waiter<Void>()
        private let given = Waiter<Void>()
        private let heldCall: Int

        init(holding call: Int) { heldCall = call }

        func credentials() async -> TransferQueue.Credentials {
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            if call == heldCall {
                asked.resume()
                // It gives them to a transfer that was paused, too.
                await given.wait(onCancel: {})
            }
            return TransferQueue.Credentials()
        }

        func wait() async { await asked.wait() }

        func give() { given.resume() }
    }

    private func enqueue(_ kind: TransferQueue.Item.Kind, _ test: QueueTest) async throws -> TransferQueue.ItemID {
        if kind == .download { return try await test.queue.enqueue(test.download("file")) }
        try test.folder.write(Data(Self.pattern.bytes()), to: "file")
        return try await test.queue.enqueue(
            .upload(test.folder.url("file"), to: test.server.url("/files"), by: .tus))
    }

    /// Checks that the item finishes, and that no byte was moved twice.
    private func expectContinuation(
        of id: TransferQueue.ItemID, _ kind: TransferQueue.Item.Kind, _ server: Server, _ test: QueueTest
    ) async throws {
        await test.queue.drained()
        #expect(try await test.state(id) == .finished)
        #expect(server.requests == server.allRequests(kind))
        switch kind {
        case .download: #expect(Self.pattern.matches(try test.folder.bytes("file")))
        case .upload: #expect(Self.pattern.matches(server.uploads.completeUpload?.bytes ?? []))
        }
    }

    @Test(arguments: kinds) func pauseDuringTheDelayKeepsThePart(kind: TransferQueue.Item.Kind) async throws {
        let (server, clock) = (Server(), ManualClock())
        let configuration = TransferQueue.Configuration.test { configuration in
            configuration.retry.policy.firstDelay = Self.delay
            configuration.clock = clock
        }
        try await withQueue(configuration: configuration) {
            try server.answer($0)
        } test: { test in
            let id = try await enqueue(kind, test)
            try await clock.waitForSleepers(1)
            #expect(try await test.queue.pause(.item(id)) == 1)
            await test.queue.drained()
            #expect(try await test.state(id) == .paused && clock.sleeperCount == 0)
            #expect(server.requests == server.firstRequests(kind))
            #expect(try await test.queue.resume(.item(id)) == 1)
            try await expectContinuation(of: id, kind, server, test)
        }
    }

    /// The delay is over, and the queue asks for the credentials of the next attempt.
    @Test(arguments: kinds) func pauseBeforeTheNextRequestSendsNone(kind: TransferQueue.Item.Kind) async throws {
        let server = Server()
        let provider = Provider(holding: server.firstRequests(kind).count + 1)
        let configuration = TransferQueue.Configuration.test { configuration in
            configuration.credentials = { _ in await provider.credentials() }
        }
        try await withQueue(configuration: configuration) {
            try server.answer($0)
        } test: { test in
            let id = try await enqueue(kind, test)
            await provider.wait()
            #expect(try await test.queue.pause(.item(id)) == 1)
            #expect(try await test.state(id) == .paused)
            provider.give()
            await test.queue.drained()
            #expect(try await test.state(id) == .paused)
            #expect(server.requests == server.firstRequests(kind))
            #expect(try await test.queue.resume(.item(id)) == 1)
            try await expectContinuation(of: id, kind, server, test)
        }
    }

    /// The item is resumed while its paused transfer has not ended, and still has the lock of the file.
    @Test(arguments: kinds) func resumeThatMeetsThePausedTransferContinues(
        kind: TransferQueue.Item.Kind
    ) async throws {
        let server = Server()
        let provider = Provider(holding: server.firstRequests(kind).count + 1)
        let configuration = TransferQueue.Configuration.test { configuration in
            configuration.credentials = { _ in await provider.credentials() }
        }
        try await withQueue(configuration: configuration) {
            try server.answer($0)
        } test: { test in
            let id = try await enqueue(kind, test)
            await provider.wait()
            #expect(try await test.queue.pause(.item(id)) == 1)
            #expect(try await test.queue.resume(.item(id)) == 1)
            #expect(try await test.state(id) == .waiting)
            provider.give()
            try await expectContinuation(of: id, kind, server, test)
        }
    }

    /// The delay ends at the same time, so that the next request is sent or not.
    @Test(arguments: kinds, 0..<10) func pauseThatMeetsTheNextAttemptLosesNothing(
        kind: TransferQueue.Item.Kind, round: Int
    ) async throws {
        let (server, clock) = (Server(), ManualClock())
        let configuration = TransferQueue.Configuration.test { configuration in
            configuration.retry.policy.firstDelay = Self.delay
            configuration.clock = clock
        }
        try await withQueue(configuration: configuration) {
            try server.answer($0)
        } test: { test in
            let id = try await enqueue(kind, test)
            try await clock.waitForSleepers(1)
            clock.advance(by: Self.delay)
            for _ in 0..<round { await Task.yield() }
            _ = try await test.queue.pause(.item(id))
            await test.queue.drained()
            let state = try await test.state(id)
            #expect(state == .paused || state == .finished, "\(String(describing: state))")
            _ = try await test.queue.resume(.item(id))
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
            switch kind {
            case .download: #expect(Self.pattern.matches(try test.folder.bytes("file")))
            case .upload: #expect(Self.pattern.matches(server.uploads.completeUpload?.bytes ?? []))
            }
        }
    }
}
