import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Transfer queue", .timeLimit(.minutes(1)))
struct TransferQueueTests {
    private static func serve(_ exchange: LoopbackServer.Exchange) throws {
        try exchange.respond(headers: [("ETag", "\"1\"")], body: Array(exchange.request.path.utf8))
    }

    /// Returns the error of a call that throws one of a queue.
    private func error(_ body: () async throws -> Void) async -> TransferQueueError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? TransferQueueError
        }
    }

    @Test func itemsFinishAndStayUntilTheyAreAcknowledged() async throws {
        try await withQueue {
            try Self.serve($0)
        } test: { test in
            let ids = try await test.queue.enqueue(contentsOf: ["a", "b", "c"].map { test.download($0) })
            await test.queue.drained()
            let items = try await test.queue.snapshot
            #expect(Set(items.map(\.id)) == Set(ids))
            #expect(items.allSatisfy { $0.state == .finished && $0.progress.isFinished && $0.result?.bytes == 2 })
            #expect(try test.folder.bytes("b") == Data("/b".utf8))
            #expect(try await test.queue.acknowledge(.item(ids[0])) == 1)
            #expect(try await test.queue.acknowledge(.item(ids[0])) == 0)
            #expect(try await test.queue.snapshot.count == 2)
            await test.queue.close()
            let later = try await test.reopened()
            #expect(try await later.snapshot.map(\.state) == [.finished, .finished])
            #expect(try await later.acknowledge(.all) == 2)
            #expect(try await later.snapshot.isEmpty)
            await later.close()
            #expect(test.server.requests.count == 3)
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == ["a", "b", "c"])
        }
    }

    /// The numbers of a queue file that another program has changed.
    @Test func theSumOfLargeSizesIsTheLargestNumber() async throws {
        try await withQueue {
            try Self.serve($0)
        } test: { test in
            let names = (0..<9).map { "file\($0)" }
            let ids = try await test.queue.enqueue(contentsOf: names.map { test.download($0) })
            await test.queue.drained()
            await test.queue.close()
            let change = "UPDATE items SET completed = \(ControlFile.mostBytes), total = \(ControlFile.mostBytes)"
            do { try SQLiteDatabase(test.folder.path + "/queue/queue.sqlite").execute(change) }
            let later = try await test.reopened()
            var before = later.progress().makeAsyncIterator()
            #expect(await before.next()?.completedBytes == .max)
            #expect(try await later.acknowledge(.items(Array(ids.dropLast()))) == 8)
            #expect(try await later.acknowledge(.all) == 1)
            var after = later.progress().makeAsyncIterator()
            #expect(await after.next()?.completedBytes == .max)
            await later.close()
        }
    }

    @Test func resultsReportEachEndOnceAndAgainInTheNextProcess() async throws {
        try await withQueue { exchange in
            if exchange.request.path == "/b" { return try exchange.respond(status: 404) }
            try Self.serve(exchange)
        } test: { test in
            var results = test.queue.results.makeAsyncIterator()
            let a = try await test.queue.enqueue(test.download("a"))
            #expect(await results.next()?.id == a)
            let b = try await test.queue.enqueue(test.download("b"))
            let failed = await results.next()
            #expect(failed?.id == b && failed?.state == .failed(retryable: false))
            #expect(failed?.failure?.kind == .status)
            await test.queue.close()
            #expect(await results.next() == nil)
            let later = try await test.reopened()
            var again = later.results.makeAsyncIterator()
            #expect(await again.next()?.id == a)
            #expect(await again.next()?.failure?.reason == failed?.failure?.reason)
            try await later.acknowledge(.all)
            await later.close()
        }
    }

    @Test func itemsWaitUntilTheQueueStarts() async throws {
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try Self.serve($0)
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            await test.queue.drained()
            #expect(try await test.state(id) == .waiting)
            #expect(test.server.requests.isEmpty)
            await test.queue.start()
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
        }
    }

    @Test func nextProcessContinuesWhatRanAndKeepsWhatWasPaused() async throws {
        let pattern = LoopbackServer.Pattern(count: 1 << 20)
        let isCut = Lock(true)
        let gate = LoopbackServer.Gate()
        let ranges = Log<String?>()
        try await withQueue { exchange in
            ranges.add(exchange.request["Range"])
            guard isCut.withLock({ $0 }) else { return try exchange.serveFile(pattern) }
            try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<500_000)
            try exchange.wait(for: gate)
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            let paused = try await test.queue.enqueue(test.download("b") { $0.isPaused = true })
            for await progress in test.queue.progress(of: .item(id)) where progress.completedBytes == 500_000 { break }
            await test.queue.close()
            isCut.withLock { $0 = false }
            gate.open()
            let later = try await test.reopened { $0.startsTransfers = false }
            let item = try #require(try await later.item(id))
            #expect(item.state == .waiting && item.progress.completedBytes == 500_000)
            await later.start()
            await later.drained()
            #expect(try await later.item(id)?.state == .finished)
            #expect(try await later.item(paused)?.state == .paused)
            #expect(pattern.matches(try test.folder.bytes("a")))
            #expect(ranges.all == [nil, "bytes=500000-"])
            await later.close()
        }
    }

    @Test func pausedTransferStopsAndResumes() async throws {
        let pattern = LoopbackServer.Pattern(count: 100_000)
        let gate = LoopbackServer.Gate()
        try await withQueue { exchange in
            if exchange.request["Range"] != nil { return try exchange.serveFile(pattern) }
            try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<50_000)
            try exchange.wait(for: gate)
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a") { $0.group = "g" })
            for await progress in test.queue.progress() where progress.completedBytes == 50_000 { break }
            #expect(try await test.queue.pause(.group("h")) == 0)
            #expect(try await test.queue.pause(.group("g")) == 1)
            await test.queue.drained()
            #expect(try await test.state(id) == .paused)
            #expect(try await test.queue.item(id)?.progress.completedBytes == 50_000)
            gate.open()
            #expect(try await test.queue.resume(.all) == 1)
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
            #expect(pattern.matches(try test.folder.bytes("a")))
        }
    }

    @Test func cancelledItemFailsAndCanBeTriedAgain() async throws {
        let gate = LoopbackServer.Gate()
        try await withQueue { exchange in
            try exchange.wait(for: gate)
            try Self.serve(exchange)
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            #expect(try await test.queue.cancel(.item(id)) == 1)
            #expect(try await test.state(id) == .failed(retryable: true))
            #expect(try await test.queue.item(id)?.failure?.kind == .cancelled)
            gate.open()
            #expect(try await test.queue.retry(.item(id)) == 1)
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
            #expect(try await test.queue.item(id)?.failure == nil)
        }
    }

    @Test func removedItemLeavesNothing() async throws {
        let pattern = LoopbackServer.Pattern(count: 100_000)
        let gate = LoopbackServer.Gate()
        try await withQueue { exchange in
            try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<50_000)
            try exchange.wait(for: gate)
        } test: { test in
            let ids = try await test.queue.enqueue(contentsOf: [
                test.download("a"), test.download("b") { $0.isPaused = true },
            ])
            for await progress in test.queue.progress() where progress.completedBytes == 50_000 { break }
            #expect(try await test.queue.remove(.all) == 2)
            gate.open()
            #expect(try await test.queue.item(ids[0]) == nil)
            #expect(try await test.queue.snapshot.isEmpty)
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == [])
            // Its destination is free again.
            try await test.queue.enqueue(test.download("a") { $0.isPaused = true })
        }
    }

    @Test func limitsHoldAndOrderIsThatOfPriorityAndPlace() async throws {
        let order = Log<String>()
        try await withQueue(
            configuration: .test { configuration in
                configuration.startsTransfers = false
                configuration.limits.transfers = 1
            }
        ) { exchange in
            order.add(exchange.request.path)
            try Self.serve(exchange)
        } test: { test in
            let ids = try await test.queue.enqueue(contentsOf: ["a", "b", "c", "d", "e"].map { test.download($0) })
            #expect(try await test.queue.move(.items([ids[3], ids[2]]), to: .before(ids[0])) == 2)
            #expect(try await test.queue.setPriority(.high, of: .item(ids[4])) == 1)
            #expect(try await test.queue.move(.item(ids[0]), to: .last) == 1)
            #expect(try await test.queue.snapshot.map(\.id) == [4, 3, 2, 1, 0].map { ids[$0] })
            await test.queue.close()
            let later = try await test.reopened { $0.limits.transfers = 1 }
            await later.drained()
            #expect(order.all == ["/e", "/d", "/c", "/b", "/a"])
            await later.close()
        }
    }

    @Test func groupStartsAfterTheGroupsItDependsOn() async throws {
        let order = Log<String>()
        try await withQueue(configuration: .test { $0.startsTransfers = false }) { exchange in
            order.add(exchange.request.path)
            if exchange.request.path == "/a1" { return try exchange.respond(status: 404) }
            try Self.serve(exchange)
        } test: { test in
            try await test.queue.setDependencies(of: "b", on: ["a"])
            let cycle = await error { try await test.queue.setDependencies(of: "a", on: ["b"]) }
            #expect(cycle?.kind == .cyclicDependency)
            try await test.queue.enqueue(contentsOf: [
                test.download("b1") { $0.group = "b" }, test.download("a1") { $0.group = "a" },
                test.download("a2") { $0.group = "a" },
            ])
            await test.queue.close()
            let later = try await test.reopened()
            await later.drained()
            #expect(Set(order.all) == ["/a1", "/a2"])
            for item in try await later.snapshot where item.state.hasEnded {
                try await later.acknowledge(.item(item.id))
            }
            await later.drained()
            #expect(order.all.last == "/b1")
            await later.close()
        }
    }

    @Test func secondOwnerIsRefused() async throws {
        try await withQueue {
            try Self.serve($0)
        } test: { test in
            let second = await error { _ = try await test.reopened() }
            #expect(second?.kind == .inUse)
            await test.queue.close()
            await test.queue.close()
            let closed = await error { _ = try await test.queue.snapshot }
            #expect(closed?.kind == .closed)
            await (try test.reopened()).close()
        }
    }

    @Test func eventsTellTheLifeOfAnItem() async throws {
        try await withQueue {
            try Self.serve($0)
        } test: { test in
            var events = test.queue.events.makeAsyncIterator()
            let id = try await test.queue.enqueue(test.download("a"))
            await test.queue.drained()
            try await test.queue.acknowledge(.item(id))
            await test.queue.close()
            var seen: [TransferQueue.Event] = []
            while let event = await events.next() { seen.append(event) }
            #expect(seen == [.enqueued(id), .changed(id, .running), .changed(id, .finished), .removed(id)])
        }
    }

    @Test func slowReaderOfEventsLearnsTheNumberThatItMissed() async throws {
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try Self.serve($0)
        } test: { test in
            let events = test.queue.events
            try await test.queue.enqueue(contentsOf: (0..<1_030).map { test.download("\($0)") })
            await test.queue.close()
            var last: TransferQueue.Event?
            var count = 0
            for await event in events { (last, count) = (event, count + 1) }
            #expect(last == .dropped(6) && count == 1_025)
        }
    }

    @Test func progressOfAGroupEndsWithItsItems() async throws {
        try await withQueue {
            try Self.serve($0)
        } test: { test in
            try await test.queue.enqueue(contentsOf: [
                test.download("a") { $0.group = "g" }, test.download("bb") { $0.group = "g" },
                test.download("c") { $0.isPaused = true },
            ])
            var last: Session.Progress?
            for await progress in test.queue.progress(of: .group("g")) { last = progress }
            #expect(last?.isFinished == true && last?.completedBytes == 5 && last?.totalBytes == 5)
            try await test.queue.acknowledge(.all)
            var all = test.queue.progress().makeAsyncIterator()
            let first = await all.next()
            #expect(first?.completedBytes == 5 && first?.isFinished == false)
            await test.queue.close()
            #expect(await all.next()?.isFinished == true)
        }
    }

    @Test func userDataAndLabelsAreKept() async throws {
        struct Track: Codable, Equatable, Sendable { let title: String }
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try Self.serve($0)
        } test: { test in
            var transfer = test.download("a") { ($0.label, $0.group) = ("Å", "g") }
            try transfer.setUserData(Track(title: "Ä"))
            let id = try await test.queue.enqueue(transfer)
            let other = try await test.queue.enqueue(test.download("b"))
            await test.queue.close()
            let later = try await test.reopened { $0.startsTransfers = false }
            #expect(try await later.userData(Track.self, of: id) == Track(title: "Ä"))
            #expect(try await later.userData(Track.self, of: other) == nil)
            #expect(await error { _ = try await later.userData(Int.self, of: id) }?.kind == .damaged)
            let item = try #require(try await later.item(id))
            #expect(item.label == "Å" && item.group == "g" && item.file == test.folder.url("a"))
            await later.close()
        }
    }

    @Test func transfersThatCannotWorkAreRefused() async throws {
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try Self.serve($0)
        } test: { test in
            func refusal(_ transfer: TransferQueue.Transfer) async -> TransferQueueError? {
                await error { try await test.queue.enqueue(transfer) }
            }
            let url = test.server.url("/a?token=xyzzy")
            let file = test.folder.url("a")
            let ftp = try #require(URL(string: "ftp://example.com/"))
            let user = try #require(URL(string: "http://user:xyzzy@example.com/"))
            var refused: [TransferQueue.Transfer] = [
                .download(ftp, to: file), .download(user, to: file), .download(url, to: url),
            ]
            let changes: [(inout TransferQueue.Transfer) -> Void] = [
                { $0.headers["Authorization"] = "Bearer xyzzy" }, { $0.headers["X"] = "a\r\nB: c" },
                { $0.headers["Range"] = "bytes=0-" }, { $0.existing = .keepBoth }, { $0.segments = 0 },
                { $0.expectedSize = -1 }, { $0.digest = .sha256("xyzzy") }, { $0.group = "" },
                { $0.label = String(repeating: "x", count: 2_000) },
                { $0.headers["X"] = String(repeating: "x", count: 300_000) },
            ]
            for change in changes {
                var transfer = TransferQueue.Transfer.download(url, to: file)
                change(&transfer)
                refused.append(transfer)
            }
            for transfer in refused {
                let found = await refusal(transfer)
                #expect(found?.kind == .invalidTransfer, "\(transfer)")
                #expect(found.map { !"\($0)".contains("xyzzy") } == true, "\(String(describing: found))")
            }
            var large = TransferQueue.Transfer.download(url, to: file)
            #expect(throws: TransferQueueError.self) {
                try large.setUserData(String(repeating: "x", count: 70_000))
            }
            #expect(try await test.queue.snapshot.isEmpty)
        }
    }

    @Test func secondItemOfAFileIsRefusedUntilTheFirstHasFinished() async throws {
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try Self.serve($0)
        } test: { test in
            try await test.queue.enqueue(test.download("a"))
            #expect(await error { try await test.queue.enqueue(test.download("a")) }?.kind == .duplicate)
            let twice = await error {
                try await test.queue.enqueue(contentsOf: [test.download("b"), test.download("b")])
            }
            #expect(twice?.kind == .duplicate)
            // All or none.
            #expect(try await test.queue.snapshot.count == 1)
            await test.queue.start()
            await test.queue.drained()
            try await test.queue.enqueue(test.download("a"))
            await test.queue.drained()
            #expect(try await test.queue.acknowledge(.all) == 2)
        }
    }

    @Test func secretsOfURLsAreHidden() async throws {
        try await withQueue { exchange in
            try exchange.respond(status: 404)
        } test: { test in
            let id = try await test.queue.enqueue(
                .download(test.server.url("/a?signature=secret"), to: test.folder.url("a")))
            await test.queue.drained()
            let item = try #require(try await test.queue.item(id))
            var dumped = ""
            dump(item, to: &dumped)
            dump(test.queue, to: &dumped)
            #expect(!"\(item) \(dumped) \(String(describing: item.failure))".contains("secret"))
            #expect(item.url.absoluteString.contains("secret"))
        }
    }

    @Test func queueAndFilesCanBeMovedTogether() async throws {
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try Self.serve($0)
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            await test.queue.close()
            let moved = TestFolder(path: test.folder.path + "-moved")
            try FileManager.default.moveItem(atPath: test.folder.path, toPath: moved.path)
            // The folder of the test is removed under its old name.
            defer { try? FileManager.default.removeItem(atPath: moved.path) }
            let later = try await TransferQueue.open(moved.url("queue"), session: test.session)
            await later.drained()
            #expect(try await later.item(id)?.file.path == moved.url("a").path)
            #expect(try moved.bytes("a") == Data("/a".utf8))
            await later.close()
        }
    }

    @Test func stateIsCodable() throws {
        let states: [TransferQueue.State] = [
            .waiting, .running, .paused, .waitingForNetwork, .failed(retryable: true), .failed(retryable: false),
            .finished,
        ]
        let data = try JSONEncoder().encode(states)
        #expect(try JSONDecoder().decode([TransferQueue.State].self, from: data) == states)
        #expect(states.map(\.hasEnded) == [false, false, false, false, true, true, true])
    }
}
