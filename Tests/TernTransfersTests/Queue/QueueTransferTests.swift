import Dispatch
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

// The transfers of a queue: credentials, the network, limits on the rate, uploads, and the time between the move of a
// file and the record of it.

@Suite("Transfer queue: transfers", .timeLimit(.minutes(1)))
struct QueueTransferTests {
    @Test func credentialsAreAskedForAtEachAttemptAndNotStored() async throws {
        let asked = Log<TransferQueue.ItemID>()
        let fields = Log<String?>()
        let plain = Log<String?>()
        try await withQueue(
            configuration: .test { configuration in
                configuration.credentials = { item in
                    asked.add(item.id)
                    return TransferQueue.Credentials(headers: ["Authorization": "Bearer secret\(asked.all.count)"])
                }
            }
        ) { exchange in
            fields.add(exchange.request["Authorization"])
            plain.add(exchange.request["X-Plain"])
            if fields.all.count == 1 { return try exchange.respond(status: 503) }
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("x".utf8))
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a") { $0.headers["X-Plain"] = "1" })
            await test.queue.drained()
            #expect(asked.all == [id, id])
            #expect(fields.all == ["Bearer secret1", "Bearer secret2"])
            #expect(plain.all == ["1", "1"])
            await test.queue.close()
            for name in try test.folder.names where name.hasPrefix("queue/") {
                #expect(try test.folder.bytes(name).firstRange(of: Data("secret".utf8)) == nil)
            }
        }
    }

    @Test func signedURLIsThatOfTheCredentials() async throws {
        let (signatures, calls) = (Log<String>(), Log<Int>())
        try await withQueue(
            configuration: .test { configuration in
                configuration.credentials = { item in
                    calls.add(1)
                    let url = item.url.absoluteString + "?signature=\(signatures.all.count)"
                    return TransferQueue.Credentials(url: URL(string: url))
                }
            }
        ) { exchange in
            signatures.add(exchange.request.target)
            // The first signature has expired.
            if signatures.all.count == 1 { return try exchange.respond(status: 403) }
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("x".utf8))
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            await test.queue.drained()
            #expect(try await test.state(id) == .finished)
            #expect(signatures.all == ["/a?signature=0", "/a?signature=1"])
            // Once for each attempt.
            #expect(calls.all.count == 2)
        }
    }

    @Test func failingProviderFailsTheItem() async throws {
        struct NoToken: Error {}
        try await withQueue(configuration: .test { $0.credentials = { _ in throw NoToken() } }) { exchange in
            try exchange.respond(status: 500)
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            await test.queue.drained()
            #expect(try await test.queue.item(id)?.failure?.kind == .authentication)
            #expect(test.server.requests.isEmpty)
        }
    }

    @Test func itemThatMustNotUseAMeteredNetworkWaitsForAnother() async throws {
        let network = ScriptedNetwork(.reachable(.cellular))
        try await withQueue(network: network) { exchange in
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("x".utf8))
        } test: { test in
            var events = test.queue.events.makeAsyncIterator()
            let id = try await test.queue.enqueue(test.download("a") { $0.requiresUnmeteredNetwork = true })
            let other = try await test.queue.enqueue(test.download("b"))
            #expect(try await test.state(id) == .waitingForNetwork)
            await wait(for: .finished, of: other, in: &events)
            #expect(try await test.state(id) == .waitingForNetwork)
            network.set(.reachable(.wifi))
            await wait(for: .finished, of: id, in: &events)
        }
    }

    @Test func meteredNetworkStopsARunningItem() async throws {
        let network = ScriptedNetwork(.reachable(.wired))
        let pattern = LoopbackServer.Pattern(count: 100_000)
        let gate = LoopbackServer.Gate()
        try await withQueue(network: network) { exchange in
            if exchange.request["Range"] != nil { return try exchange.serveFile(pattern) }
            try exchange.writeHead(headers: [("ETag", pattern.etag), ("Content-Length", "\(pattern.count)")])
            try exchange.streamPattern(pattern, in: 0..<50_000)
            try exchange.wait(for: gate)
        } test: { test in
            var events = test.queue.events.makeAsyncIterator()
            let id = try await test.queue.enqueue(test.download("a") { $0.requiresUnmeteredNetwork = true })
            for await progress in test.queue.progress() where progress.completedBytes == 50_000 { break }
            network.set(.reachable(.cellular))
            await wait(for: .waitingForNetwork, of: id, in: &events)
            gate.open()
            network.set(.reachable(.wifi))
            await wait(for: .finished, of: id, in: &events)
            #expect(pattern.matches(try test.folder.bytes("a")))
        }
    }

    @Test func itemWithoutNetworkWaitsAndStartsAgain() async throws {
        let network = ScriptedNetwork(.unreachable)
        try await withQueue(network: network) { exchange in
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("x".utf8))
        } test: { test in
            var events = test.queue.events.makeAsyncIterator()
            // No name of this domain exists (RFC 6761).
            let url = try #require(URL(string: "http://queue.invalid/a"))
            let id = try await test.queue.enqueue(.download(url, to: test.folder.url("x")))
            await wait(for: .waitingForNetwork, of: id, in: &events)
            // Other hosts can be reached without a default route.
            let local = try await test.queue.enqueue(test.download("a"))
            await wait(for: .finished, of: local, in: &events)
            network.set(.reachable(.wired))
            await wait(for: .running, of: id, in: &events)
            await wait(for: .failed(retryable: true), of: id, in: &events)
        }
    }

    /// The status of the network tells of default routes alone, so a host without one is tried again after a while.
    @Test func itemWithoutADefaultRouteIsTriedAgain() async throws {
        let network = ScriptedNetwork(.unreachable)
        let clock = ManualClock()
        let stub = StubTransport { call in
            if call.index < 2 { throw StubTransport.Failure(.connectionFailed) }
            return .data(Data([1, 2, 3]), headers: ["ETag": "\"1\""])
        }
        try await inTestFolder { folder in
            var configuration = Session.Configuration()
            configuration.reachability = Reachability(network)
            let queue = try await TransferQueue.open(
                folder.url("queue"), session: Session(configuration: configuration, stub: stub),
                configuration: .test { $0.clock = clock })
            let url = try #require(URL(string: "http://10.1.2.3/a"))
            var events = queue.events.makeAsyncIterator()
            let id = try await queue.enqueue(.download(url, to: folder.url("a")))
            for delay in [1, 2] {
                await wait(for: .waitingForNetwork, of: id, in: &events)
                try await clock.waitForSleepers(1)
                let reason = try #require(try await queue.item(id)?.waitsFor)
                #expect("\(reason)".contains("10.1.2.3"))
                #expect("\(reason)".hasSuffix("\(Duration.seconds(delay))"))
                clock.advance(by: .seconds(delay))
            }
            await wait(for: .finished, of: id, in: &events)
            #expect(try await queue.item(id)?.waitsFor == nil)
            await queue.close()
        }
    }

    /// The network can return between the end of a transfer without one and the report of that end.
    @Test func itemThatLostTheNetworkStartsAgainIfItIsBackAlready() async throws {
        let network = ScriptedNetwork(.unreachable)
        let files = FaultyFiles { call, path in
            // The transfer removes what it has left.
            if call == "remove", path.hasSuffix("/.x.tern.json") { network.set(.reachable(.wired)) }
            return nil
        }
        try await withQueue(network: network, configuration: .test { $0.system = files }) { exchange in
            try exchange.respond(text: "x")
        } test: { test in
            var events = test.queue.events.makeAsyncIterator()
            // No name of this domain exists (RFC 6761).
            let url = try #require(URL(string: "http://queue.invalid/a"))
            let id = try await test.queue.enqueue(.download(url, to: test.folder.url("x")))
            await wait(for: .running, of: id, in: &events)
            await wait(for: .running, of: id, in: &events)
            await wait(for: .failed(retryable: true), of: id, in: &events)
        }
    }

    @Test func rateIsSharedAndCanBeChangedWhileTransfersRun() async throws {
        let pattern = LoopbackServer.Pattern(count: 1 << 20)
        try await withQueue(
            configuration: .test { configuration in
                // At this rate, the transfers would take days.
                configuration.limits.bytesPerSecond = 1
            }
        ) { exchange in
            try exchange.serveFile(pattern)
        } test: { test in
            try await test.queue.enqueue(contentsOf: ["a", "b"].map { test.download($0) })
            for await progress in test.queue.progress() where progress.completedBytes > 0 { break }
            #expect(try await test.queue.snapshot.allSatisfy { $0.state == .running })
            var limits = await test.queue.limits
            limits.bytesPerSecond = nil
            limits.bytesPerSecondPerHost = 1 << 30
            await test.queue.setLimits(limits)
            await test.queue.drained()
            #expect(pattern.matches(try test.folder.bytes("a")))
            #expect(pattern.matches(try test.folder.bytes("b")))
        }
    }

    @Test(arguments: [TransferQueue.UploadProtocol.tus, .httpDraft], [nil, FileDigest.Algorithm.sha256])
    func uploadIsSentAndItsResultIsKept(
        by kind: TransferQueue.UploadProtocol, checksum: FileDigest.Algorithm?
    ) async throws {
        let uploads = UploadServer(kind == .tus ? .tus : .httpDraft)
        let authorizations = Log<String?>()
        let pattern = LoopbackServer.Pattern(count: 300_000)
        try await withQueue(
            configuration: .test { configuration in
                configuration.credentials = { _ in TransferQueue.Credentials(headers: ["Authorization": "Bearer x"]) }
            }
        ) { exchange in
            authorizations.add(exchange.request["Authorization"])
            try uploads.answer(exchange)
        } test: { test in
            try test.folder.write(Data(pattern.bytes()), to: "file")
            uploads.add(.cut(after: 100_000), to: "PATCH")
            var transfer = TransferQueue.Transfer.upload(
                test.folder.url("file"), to: test.server.url("/files"), by: kind)
            transfer.checksum = checksum
            let id = try await test.queue.enqueue(transfer)
            await test.queue.drained()
            let item = try #require(try await test.queue.item(id))
            #expect(item.state == .finished && item.result?.bytes == 300_000, "\(String(describing: item.failure))")
            #expect(item.result?.uploadURL?.path == "/files/1")
            #expect(item.result?.responseBody == Data((kind == .tus ? "" : "stored").utf8))
            #expect(pattern.matches(uploads.completeUpload?.bytes ?? []))
            #expect(authorizations.all.allSatisfy { $0 == "Bearer x" } && authorizations.all.count > 2)
            try await test.queue.acknowledge(.all)
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == ["file"])
        }
    }

    /// The ends of transfers can be known in another order than that in which their results were stored.
    @Test func resultsTellEveryOneOfManyEndsAtTheSameTime() async throws {
        let uploads = UploadServer(.tus)
        var limits = TransferQueue.Limits()
        (limits.transfers, limits.transfersPerHost) = (16, 16)
        let configuration = TransferQueue.Configuration.test { $0.limits = limits }
        try await withQueue(configuration: configuration) { exchange in
            if exchange.request.path == "/files" || exchange.request.path.hasPrefix("/files/") {
                return try uploads.answer(exchange)
            }
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("x".utf8))
        } test: { test in
            var transfers = (0..<100).map { test.download("d\($0)") }
            for number in 0..<100 {
                try test.folder.write(Data("\(number)".utf8), to: "u\(number)")
                transfers.append(
                    .upload(test.folder.url("u\(number)"), to: test.server.url("/files"), by: .tus))
            }
            var open = Set(try await test.queue.enqueue(contentsOf: transfers))
            for await item in test.queue.results {
                #expect(item.state == .finished)
                open.remove(item.id)
                if open.isEmpty { break }
            }
            #expect(open.isEmpty)
        }
    }

    @Test func removedUploadLeavesNoDescription() async throws {
        let uploads = UploadServer(.tus)
        try await withQueue { exchange in
            try uploads.answer(exchange)
        } test: { test in
            try test.folder.write(Data(count: 100_000), to: "file")
            for _ in 0..<4 { uploads.add(.cut(after: 0), to: "PATCH") }
            let transfer = TransferQueue.Transfer.upload(
                test.folder.url("file"), to: test.server.url("/files"), by: .tus)
            let id = try await test.queue.enqueue(transfer)
            await test.queue.drained()
            #expect(try await test.state(id) == .failed(retryable: true))
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") }.count == 2)
            #expect(try await test.queue.remove(.item(id)) == 1)
            #expect(try test.folder.names.filter { !$0.hasPrefix("queue") } == ["file"])
        }
    }

    /// A process can be killed after the move of a file and before the record of it, and after the record and before
    /// the removal of the control file. Both are made here by the hook that records the result.
    @Test func fileThatWasMovedBeforeAKillIsNotReceivedAgain() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("test".utf8))
        } test: { server, client, folder in
            struct Killed: Error {}
            var options = DurableDownloadOptions.test { $0.existing = .fail }
            options.hooks = TransferHooks(record: { _ throws(TransferQueueError) in
                throw TransferQueueError(.inputOutput, "killed")
            })
            let request = try Request(url: server.url("/a"))
            let first = client.session.download(
                request, to: folder.url("a"), resuming: .automatically, options: options)
            #expect(try await failure { try await first.value }.kind == .fileSystem)
            #expect(try folder.names == [".a.tern.json", "a"])
            let recorded = Log<Int64>()
            options.hooks = TransferHooks(record: { result in recorded.add(result.bytes) })
            let second = client.session.download(
                request, to: folder.url("a"), resuming: .automatically, options: options)
            #expect(try await second.value.trace == [.foundWhole])
            #expect(recorded.all == [4])
            #expect(try folder.names == ["a"])
            #expect(server.requests.count == 1)
        }
    }

    @Test func acknowledgementRemovesTheControlFileThatAKillLeft() async throws {
        try await withQueue { exchange in
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("test".utf8))
        } test: { test in
            var options = DurableDownloadOptions.test()
            options.hooks = TransferHooks(record: { _ throws(TransferQueueError) in
                throw TransferQueueError(.inputOutput, "killed")
            })
            let id = try await test.queue.enqueue(test.download("a"))
            await test.queue.drained()
            // The state of the files after a kill between the record and the removal.
            let killed = test.session.download(
                try Request(url: test.server.url("/a")), to: test.folder.url("a"), resuming: .automatically,
                options: options)
            #expect(try await failure { try await killed.value }.kind == .fileSystem)
            #expect(try test.folder.names.contains(".a.tern.json"))
            #expect(try await test.queue.acknowledge(.item(id)) == 1)
            #expect(try !test.folder.names.contains(".a.tern.json"))
        }
    }

    /// The next item for the destination would fail while the cancelled one has its lock.
    @Test func acknowledgementWaitsUntilTheDestinationIsReleased() async throws {
        let pattern = LoopbackServer.Pattern(count: 1_000_000, seed: 4)
        try await withQueue { exchange in
            try exchange.writeHead(headers: [("Content-Length", "\(pattern.count)"), ("ETag", pattern.etag)])
            try exchange.streamPattern(pattern, in: 0..<1_000)
            try exchange.waitForClientToClose()
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            try await test.server.wait { $0.requestsReceived == 1 }
            // The thread that releases the lock is held up.
            let gate = DispatchSemaphore(value: 0)
            DownloadPart.executor.submit { gate.wait() }
            #expect(try await test.queue.cancel(.item(id)) == 1)
            let acknowledged = Log<Int>()
            let task = Task {
                let count = try await test.queue.acknowledge(.item(id))
                acknowledged.add(count)
            }
            for _ in 0..<100 { _ = try await test.queue.snapshot }
            #expect(acknowledged.all.isEmpty)
            gate.signal()
            try await task.value
            #expect(acknowledged.all == [1])
            let part = DownloadPart(
                destination: "\(test.folder.path)/a", synchronizes: false, system: PosixFileSystem())
            #expect(try await part.acquire(createsFolder: false))
            await part.close()
        }
    }

    @Test func acknowledgementLeavesTheControlFileOfANewerUpload() async throws {
        let uploads = UploadServer(.tus)
        try await withQueue {
            try uploads.answer($0)
        } test: { test in
            try test.folder.write(Data(count: 1_000), to: "photo")
            let upload = TransferQueue.Transfer.upload(
                test.folder.url("photo"), to: test.server.url("/files"), by: .tus)
            let first = try await test.queue.enqueue(upload)
            await test.queue.drained()
            for _ in 0..<8 { uploads.add(.cut(after: 0), to: "PATCH") }
            let second = try await test.queue.enqueue(upload)
            await test.queue.drained()
            #expect(try await test.state(second) == .failed(retryable: true))
            let names = try test.folder.names
            #expect(try await test.queue.acknowledge(.item(first)) == 1)
            #expect(names.contains { $0.hasSuffix(".tern.json") })
            #expect(try test.folder.names == names)
            let requests = uploads.requests
            uploads.removeFaults()
            #expect(try await test.queue.retry(.item(second)) == 1)
            await test.queue.drained()
            #expect(try await test.state(second) == .finished)
            #expect(uploads.requests.dropFirst(requests.count) == ["HEAD", "PATCH 0"])
        }
    }

    // MARK: The end of the queue

    /// Credentials that are given when the test says so, also to a transfer that was cancelled.
    private final class LateCredentials: Sendable {
        private let asked = Waiter<Void>()
        private let given = Waiter<Void>()

        var configuration: TransferQueue.Configuration {
            .test { configuration in
                configuration.credentials = { _ in
                    self.asked.resume()
                    await self.given.wait(onCancel: {})
                    return TransferQueue.Credentials()
                }
            }
        }

        func wait() async { await asked.wait() }

        func give() { given.resume() }
    }

    /// Returns when the queue is being closed.
    private func waitForClosing(_ queue: TransferQueue) async {
        while (try? await queue.snapshot) != nil { await Task.yield() }
    }

    @Test func removalThatMeetsTheCloseIsDone() async throws {
        let credentials = LateCredentials()
        try await withQueue(configuration: credentials.configuration) {
            try $0.respond()
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            await credentials.wait()
            let removal = Task { try await test.queue.remove(.item(id)) }
            while try await test.queue.item(id) != nil { await Task.yield() }
            let closing = Task { await test.queue.close() }
            await waitForClosing(test.queue)
            credentials.give()
            await closing.value
            #expect(try await removal.value == 1)
            let later = try await test.reopened { $0.startsTransfers = false }
            #expect(try await later.snapshot.isEmpty)
            await later.close()
        }
    }

    @Test func removalThatIsCancelledDoesNotSucceed() async throws {
        let credentials = LateCredentials()
        try await withQueue(configuration: credentials.configuration) {
            try $0.respond()
        } test: { test in
            let id = try await test.queue.enqueue(test.download("a"))
            await credentials.wait()
            let removal = Task { try await test.queue.remove(.item(id)) }
            while try await test.queue.item(id) != nil { await Task.yield() }
            removal.cancel()
            let error = await #expect(throws: TransferQueueError.self) { try await removal.value }
            #expect(error?.kind == .cancelled)
            credentials.give()
        }
    }

    @Test func cancelledCloseKeepsTheFolderUntilTheTransfersHaveEnded() async throws {
        let credentials = LateCredentials()
        try await withQueue(configuration: credentials.configuration) {
            try $0.respond()
        } test: { test in
            try await test.queue.enqueue(test.download("a"))
            await credentials.wait()
            let closing = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                await test.queue.close()
            }
            await waitForClosing(test.queue)
            let error = await #expect(throws: TransferQueueError.self) { await (try test.reopened()).close() }
            #expect(error?.kind == .inUse)
            credentials.give()
            await closing.value
            await (try test.reopened { $0.startsTransfers = false }).close()
        }
    }
}
