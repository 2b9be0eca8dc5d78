import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Uploads in one request as items of a queue.
@Suite("Transfer queue: whole uploads", .timeLimit(.minutes(1)))
struct QueueWholeUploadTests {
    static let pattern = LoopbackServer.Pattern(count: 1 << 20, seed: 7)
    static let secret = "5ecre7"
    static let ways: [TransferQueue.UploadProtocol] = [.put, .multipart]

    private func transfer(
        _ way: TransferQueue.UploadProtocol, _ test: QueueTest,
        _ change: (inout TransferQueue.Transfer) -> Void = { _ in }
    ) throws -> TransferQueue.Transfer {
        try test.folder.write(Data(Self.pattern.bytes()), to: "a.bin")
        let url = test.server.url("/a?X-Amz-Signature=\(Self.secret)")
        var transfer = TransferQueue.Transfer.upload(test.folder.url("a.bin"), to: url, by: way)
        change(&transfer)
        return transfer
    }

    @Test(arguments: ways) func itemsAreSentInOneRequest(_ way: TransferQueue.UploadProtocol) async throws {
        let bodies = Log<[UInt8]>()
        try await withQueue { exchange in
            if exchange.number == 1 { return exchange.reset() }
            bodies.add(try exchange.readBody())
            try exchange.respond(text: "stored")
        } test: { test in
            let id = try await test.queue.enqueue(
                try transfer(way, test) {
                    if way == .multipart { ($0.fileField, $0.formFields) = ("photo", ["album": "summer"]) }
                    $0.checksum = .sha256
                })
            await test.queue.drained()
            let item = try #require(try await test.queue.item(id))
            #expect(item.state == .finished && item.result?.bytes == 1 << 20 && item.result?.attempts == 2)
            #expect(item.result?.uploadURL == test.server.url("/a"))
            #expect(item.result?.responseBody == Data("stored".utf8))
            let body = try #require(bodies.all.first)
            if way == .put {
                #expect(Self.pattern.matches(body))
            } else {
                let start = String(decoding: body.prefix(300), as: UTF8.self)
                for text in ["name=\"album\"\r\n\r\nsummer\r\n", "name=\"photo\""] {
                    #expect(start.contains(text), "\(start)")
                }
            }
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == ["a.bin"])
        }
    }

    /// The sizes of files that are there count before their uploads begin, also in a later process.
    @Test(arguments: ways + [.tus]) func totalOfTheQueueIsKnownAtOnce(
        _ way: TransferQueue.UploadProtocol
    ) async throws {
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try $0.respond()
        } test: { test in
            try test.folder.write(Data(Self.pattern.bytes()), to: "a.bin")
            for count in 1...3 {
                var upload = TransferQueue.Transfer.upload(
                    test.folder.url("a.bin"), to: test.server.url("/\(count)"), by: way)
                upload.isPaused = count == 3
                _ = try await test.queue.enqueue(upload)
            }
            func total(_ queue: TransferQueue) async -> Int64? {
                for await progress in queue.progress() { return progress.totalBytes }
                return nil
            }
            #expect(await total(test.queue) == 3 << 20)
            // A file that is still to come has no size.
            _ = try await test.queue.enqueue(
                .upload(test.folder.url("later"), to: test.server.url("/later"), by: way))
            #expect(await total(test.queue) == nil)
            await test.queue.close()
            let queue = try await test.reopened { $0.startsTransfers = false }
            #expect(try await queue.snapshot.prefix(3).allSatisfy { $0.progress.totalBytes == 1 << 20 })
            await queue.close()
        }
    }

    @Test(arguments: ways) func laterProcessBeginsAgain(_ way: TransferQueue.UploadProtocol) async throws {
        let asked = LoopbackServer.Gate()
        let bodies = Log<Int>()
        try await withQueue { exchange in
            if exchange.number == 1 {
                _ = try exchange.readChunk(upTo: 64 << 10)
                asked.open()
                return try exchange.waitForClientToClose()
            }
            bodies.add(try exchange.readBody().count)
            try exchange.respond(text: "stored")
        } test: { test in
            let id = try await test.queue.enqueue(try transfer(way, test))
            try await asked.wait()
            await test.queue.close()
            let queue = try await test.reopened { $0.startsTransfers = false }
            let item = try #require(try await queue.item(id))
            // Nothing of the first process counts.
            #expect(item.state == .waiting && item.progress.completedBytes == 0)
            await queue.start()
            await queue.drained()
            #expect(try await queue.item(id)?.state == .finished)
            #expect(bodies.all.count == 1 && bodies.all[0] >= Self.pattern.count)
            await queue.close()
        }
    }

    @Test func pausedItemKeepsNothing() async throws {
        let asked = LoopbackServer.Gate()
        try await withQueue { exchange in
            if exchange.number == 1 {
                _ = try exchange.readChunk(upTo: 64 << 10)
                asked.open()
                return try exchange.waitForClientToClose()
            }
            _ = try exchange.drainBody()
            try exchange.respond(text: "stored")
        } test: { test in
            let id = try await test.queue.enqueue(try transfer(.put, test))
            try await asked.wait()
            _ = try await test.queue.pause(.all)
            await test.queue.drained()
            #expect(try await test.queue.item(id)?.progress.completedBytes == 0)
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == ["a.bin"])
            _ = try await test.queue.resume(.all)
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
        }
    }

    @Test func expiredURLIsStoredOnceAndShownNowhere() async throws {
        try await withQueue { exchange in
            _ = try exchange.drainBody()
            try exchange.respond(status: 403)
        } test: { test in
            let id = try await test.queue.enqueue(try transfer(.put, test))
            await test.queue.drained()
            let item = try #require(try await test.queue.item(id))
            #expect(item.state == .failed(retryable: false) && item.failure?.status == 403)
            #expect(test.server.requests.count == 1)
            for text in ["\(item)", item.failure?.reason ?? "", item.redactedURL] {
                #expect(!text.contains(Self.secret), "\(text)")
            }
            await test.queue.close()
            let store = try QueueStore(folder: test.folder.url("queue").path)
            let outcome = try #require(try store.outcome(id))
            #expect(outcome.firstRange(of: Data(Self.secret.utf8)) == nil)
            store.close()
            for name in try test.folder.names where name.hasPrefix("queue/") {
                let file = test.folder.url(name).path
                let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
                #expect(mode as? Int == 0o600, "\(name)")
            }
        }
    }

    @Test func credentialsGiveAURLForEachAttempt() async throws {
        let targets = Log<String>()
        let asked = Log<Int>()
        try await withQueue(
            configuration: .test { configuration in
                configuration.credentials = { item in
                    asked.add(1)
                    let signed = item.url.absoluteString + "?X-Amz-Signature=\(asked.all.count)"
                    return TransferQueue.Credentials(url: URL(string: signed))
                }
            }
        ) { exchange in
            targets.add(exchange.request.target)
            _ = try exchange.drainBody()
            try exchange.respond(status: targets.all.count == 1 ? 403 : 200)
        } test: { test in
            try test.folder.write(Data(count: 9), to: "a.bin")
            let id = try await test.queue.enqueue(
                .upload(test.folder.url("a.bin"), to: test.server.url("/a"), by: .put))
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
            #expect(targets.all.count == 2 && Set(targets.all).count == 2)
        }
    }

    /// A token that has expired is renewed, although the URL stays.
    @Test func credentialsWithoutAURLAreRenewedAfterARefusal() async throws {
        let tokens = Log<Int>()
        try await withQueue(
            configuration: .test { configuration in
                configuration.credentials = { _ in
                    tokens.add(tokens.all.count)
                    return TransferQueue.Credentials(headers: ["X-Key": "\(tokens.all.count)"])
                }
            }
        ) { exchange in
            _ = try exchange.drainBody()
            try exchange.respond(status: exchange.request["X-Key"] == "1" ? 401 : 200)
        } test: { test in
            let id = try await test.queue.enqueue(try transfer(.put, test))
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
            #expect(test.server.requests.count == 2)
        }
    }

    @Test func aServerThatRefusesEachCredentialEndsTheUpload() async throws {
        try await withQueue(
            configuration: .test { $0.credentials = { _ in TransferQueue.Credentials(headers: ["X-Key": "1"]) } }
        ) { exchange in
            _ = try exchange.drainBody()
            try exchange.respond(status: 403)
        } test: { test in
            let id = try await test.queue.enqueue(try transfer(.put, test))
            await test.queue.drained()
            #expect(try await test.queue.item(id)?.failure?.status == 403)
            #expect(test.server.requests.count == 3)
        }
    }

    private static let changes: [@Sendable (inout TransferQueue.Transfer) -> Void] = [
        { $0.chunkSize = 1 }, { $0.metadata = ["a": "b"] },
    ]

    @Test(arguments: changes.indices) func optionsWithoutAMeaningAreRefused(_ index: Int) async throws {
        try await withQueue {
            try $0.respond(status: 500)
        } test: { test in
            let item = try transfer(.put, test, Self.changes[index])
            let error = await #expect(throws: TransferQueueError.self) { try await test.queue.enqueue(item) }
            #expect(error?.kind == .invalidTransfer)
        }
    }

    @Test func removedItemLeavesNothingOfAKilledProcess() async throws {
        try await withQueue(configuration: .test { $0.startsTransfers = false }) {
            try $0.respond(status: 500)
        } test: { test in
            let id = try await test.queue.enqueue(try transfer(.put, test))
            let url = test.server.url("/a?X-Amz-Signature=\(Self.secret)").absoluteString
            let name = UploadControl.name(of: "a.bin", endpointDigest: ControlFile.digest(of: url))
            try test.folder.write(Data(), to: name)
            _ = try await test.queue.remove(.item(id))
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == ["a.bin"])
        }
    }
}
