import CacheTestSupport
import Foundation
import Tern
import TernCache
import TernTesting
import Testing

@testable import TernHTTPCache

/// Cancellations of tasks that wait for a store: they end at once, and not when the store answers.
@Suite("HTTP cache: cancelled reads", .timeLimit(.minutes(1)))
struct CancelledReadTests {
    enum Cancellation: CaseIterable, Sendable { case handle, swiftTask, session }
    enum Read: CaseIterable, Sendable { case heads, body }

    /// Begins a request, waits until it reads, and expects that a cancellation ends it.
    private func expectEnd(
        of cached: CachedServer, after cancellation: Cancellation, whileReading: () async throws -> Void
    ) async throws {
        let request = try cached.client.request(.get, "a")
        let isHandle = cancellation == .handle
        let handle = isHandle ? cached.client.session.task(for: request, startsImmediately: true) : nil
        let task = Task {
            if let handle { return try await handle.value }
            return try await cached.get()
        }
        try await whileReading()
        switch cancellation {
        case .handle: handle?.cancel()
        case .swiftTask: task.cancel()
        case .session:
            await cached.waitForTasks(1)
            await cached.client.session.tasks.cancelAll()
        }
        #expect(await task.kind == .cancelled)
        await cached.finish()
    }

    @Test(arguments: Cancellation.allCases, Read.allCases)
    func aCancelledTaskDoesNotWaitForTheDisk(cancellation: Cancellation, read: Read) async throws {
        let (closed, open) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        open.open()
        try await withCache(handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            let store = SlowStore(
                heads: read == .heads ? closed : open, bodies: read == .body ? closed : open)
            cached.cache.shared.open(with: store)
            if read == .body {
                _ = try await cached.get()
                await cached.cache.flush()
            }
            let (requests, reads) = (cached.requestCount, store.reads.current)
            try await expectEnd(of: cached, after: cancellation) {
                let wanted = reads + (read == .heads ? 1 : 2)
                while store.reads.current < wanted { await Task.yield() }
            }
            #expect(cached.requestCount == requests)
            closed.open()
        }
    }

    @Test(arguments: Cancellation.allCases)
    func aCancelledTaskDoesNotWaitForTheSecondLevel(cancellation: Cancellation) async throws {
        let (store, clock) = (TestStore(.silence), ManualClock())
        try await withCache(
            cache: {
                $0.secondLevel = SecondLevelCache(store)
                $0.secondLevel?.clock = clock
            }, handler: numbered([("Cache-Control", "max-age=60")]),
            test: { cached in
                try await expectEnd(of: cached, after: cancellation) { try await clock.waitForSleepers(1) }
                #expect(cached.requestCount == 0)
                store.answer()
            })
    }

    @Test func aStoredResponseIsReadAlthoughItTakesTime() async throws {
        let open = LoopbackServer.Gate()
        open.open()
        try await withCache(handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            cached.cache.shared.open(with: SlowStore(heads: open, bodies: open))
            #expect(try await cached.get().text == "1")
            await cached.cache.flush()
            let second = try await cached.get()
            #expect(second.text == "1" && second.cacheTrace?.source == .stored)
        }
    }

    @Test func aRequestForAnotherProtocolIsNeverAnsweredFromTheCache() async throws {
        try await withCache(handler: numbered([])) { cached in
            var request = try cached.client.request(.get, "a")
            request.cache = .onlyStored
            let offer = UpgradeOffer(name: "echo", pipeCapacity: 1) { [:] }
            do throws(NetworkError) {
                _ = try await UpgradedStream.open(request, offer: offer, in: cached.client.session) { _, _ in nil }
                Issue.record("the request was sent")
            } catch {
                #expect(error.kind == .notStored)
                #expect(error.reason.contains("another protocol"))
            }
            #expect(cached.requestCount == 0)
        }
    }
}
