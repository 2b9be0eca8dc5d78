import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The part beside the destination: who may continue it, and what becomes of it.
@Suite("Durable downloads: parts", .timeLimit(.minutes(1)))
struct DownloadPartTests {
    static let pattern = LoopbackServer.Pattern(count: 1_000_000)
    private let leftovers = [".file.tern", ".file.tern.json"]

    private func download(
        _ client: Client, _ folder: TestFolder, path: String = "file",
        _ change: (inout DurableDownloadOptions) -> Void = { _ in }
    ) -> DurableDownloadTask {
        client.download(path, to: folder.url("file"), resuming: .automatically, options: .test(change))
    }

    /// A URL with a signature, for the same file as `/file?id=1`.
    private static let signed = "file?id=1&sig=secret"

    /// Leaves the first 300,000 bytes of a URL in the folder.
    private func leavePart(_ client: Client, _ folder: TestFolder, path: String = "file?id=1") async throws {
        let error = try await failure {
            try await download(client, folder, path: path) { $0.retry.policy.limit = 0 }.value
        }
        #expect(error.kind == .truncatedBody)
        #expect(try folder.names == leftovers)
    }

    /// A server that cuts the first request, and whose later requests wait for the gate if there is one.
    private func handler(_ gate: LoopbackServer.Gate? = nil) -> LoopbackServer.Handler {
        { exchange in
            if exchange.number == 1 { return try exchange.cut(Self.pattern, after: 300_000) }
            if let gate { try exchange.wait(for: gate) }
            try exchange.serveFile(Self.pattern)
        }
    }

    @Test func secondDownloadOfADestinationFailsAtOnce() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.serveFile(Self.pattern)
        } test: { server, client, folder in
            let first = download(client, folder)
            try await server.wait { $0.requestsReceived == 1 }
            let error = try await failure { try await download(client, folder).value }
            #expect(error.kind == .downloadInProgress)
            #expect(error.reason.contains(folder.url("file").path))
            gate.open()
            #expect(try await first.value.bytes == 1_000_000)
            #expect(try folder.names == ["file"])
        }
    }

    @Test func secondDownloadWaitsAndReceivesTheFirstOnesFile() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "1000000"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.wait(for: gate)
            try exchange.streamPattern(Self.pattern, in: 1_000..<1_000_000)
        } test: { server, client, folder in
            let clock = ManualClock()
            let first = download(client, folder)
            for await progress in first.progress where progress.completedBytes == 1_000 { break }
            let second = download(client, folder) {
                $0.contention = .wait
                $0.clock = clock
            }
            try await clock.waitForSleepers(1)
            gate.open()
            _ = try await first.value
            clock.advance(by: .milliseconds(100))
            let result = try await second.value
            #expect(result.trace == [.waitedForOtherDownload, .finishedByOtherDownload])
            #expect(result.bytes == 1_000_000 && result.attempts == 0)
            #expect(server.counts.requestsReceived == 1)
            #expect(try folder.names == ["file"])
        }
    }

    @Test func secondDownloadContinuesTheFirstOnesPart() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            guard exchange.number == 1 else { return try exchange.serveFile(Self.pattern) }
            try exchange.writeHead(headers: [("Content-Length", "1000000"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.wait(for: gate)
        } test: { server, client, folder in
            let clock = ManualClock()
            let first = download(client, folder)
            for await progress in first.progress where progress.completedBytes == 1_000 { break }
            let second = download(client, folder) {
                $0.contention = .wait
                $0.clock = clock
            }
            try await clock.waitForSleepers(1)
            first.cancel()
            let error = try await failure { try await first.value }
            #expect(error.isCancelled)
            clock.advance(by: .milliseconds(100))
            let result = try await second.value
            #expect(result.trace == [.waitedForOtherDownload, .continued(at: 1_000)])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func cancelKeepsThePartAndDiscardRemovesIt() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "1000000"), ("ETag", Self.pattern.etag)])
            try exchange.streamPattern(Self.pattern, in: 0..<1_000)
            try exchange.wait(for: gate)
        } test: { _, client, folder in
            let first = download(client, folder)
            for await progress in first.progress where progress.completedBytes == 1_000 { break }
            first.cancel()
            let error = try await failure { try await first.value }
            #expect(error.isCancelled && error.reason.contains("1000 bytes are kept in"))
            #expect(try folder.names == leftovers)
            let second = download(client, folder)
            try await second.discard()
            let discarded = try await failure { try await second.value }
            #expect(discarded.isCancelled)
            #expect(try folder.names == [])
        }
    }

    @Test func discardLeavesAFinishedFile() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            let task = download(client, folder)
            _ = try await task.value
            try await task.discard()
            #expect(try folder.names == ["file"])
        }
    }

    @Test func partOfAnotherURLIsLeftAloneUnlessTold() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder, path: Self.signed)
            let other = download(client, folder, path: "file?id=2&sig=secret")
            let error = try await failure { try await other.value }
            #expect(error.kind == .otherDownload)
            #expect(!"\(error)".contains("secret"))
            try await other.discard()
            #expect(try folder.names == leftovers)
            // A secret that is no signature can name the file.
            let session = try await failure { try await download(client, folder, path: "file?id=1&session=2").value }
            #expect(session.kind == .otherDownload)
            let third = download(client, folder, path: "file?id=2") { $0.replacesOtherDownload = true }
            #expect(try await third.value.trace == [.startedOver(.otherURL, discarded: 0)])
            #expect(try folder.names == ["file"])
        }
    }

    @Test func signedURLWithAnotherSignatureContinues() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder, path: Self.signed)
            let result = try await download(client, folder, path: "file?id=1&sig=other").value
            #expect(result.trace == [.continued(at: 300_000)])
        }
    }

    /// A signature can name a user: bytes that came with another one are used once the server has confirmed them.
    @Test(arguments: [true, false]) func wholePartOfAnotherSignatureIsConfirmed(isComplete: Bool) async throws {
        let asked = Log<String>()
        try await withServer { exchange in
            asked.add(exchange.request["Range"] ?? "-")
            if exchange.request.target.contains("sig=other") { return try exchange.respond(status: 403) }
            try handler()(exchange)
        } test: { _, client, folder in
            try await leavePart(client, folder, path: Self.signed)
            try folder.write(Data(Self.pattern.bytes()), to: ".file.tern")
            if isComplete { try changeControl(folder, bootID: DiskCall.bootID, of: ".file.tern") }
            let error = try await failure {
                try await download(client, folder, path: "file?id=1&sig=other").value
            }
            #expect(error.status == 403)
            #expect(try folder.names == leftovers)
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.trace.first == .continued(at: 999_999) && result.receivedBytes == 1)
            #expect(asked.all == ["-", "bytes=999999-", "bytes=999999-"])
            #expect(try folder.names == ["file"])
        }
    }

    @Test func movedFileOfAnotherSignatureIsNotTakenWithoutADigest() async throws {
        try await withServer(handler()) { server, client, folder in
            try await leaveMovedFile(client, folder)
            let left = try folder.bytes(".file.tern.json")
            let digest = FileDigest.sha256(sha256(Self.pattern.bytes()))
            let found = try await download(client, folder, path: Self.signed) { $0.digest = digest }.value
            #expect(found.trace == [.verified(digest), .foundWhole])
            try folder.write(left, to: ".file.tern.json")
            #expect(try await download(client, folder, path: Self.signed).value.trace == [.started])
        }
    }

    @Test func waitingDownloadWithAnotherSignatureAsksTheServer() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            if exchange.number == 1 { try exchange.wait(for: gate) }
            try exchange.serveFile(Self.pattern)
        } test: { server, client, folder in
            let first = download(client, folder, path: Self.signed)
            try await server.wait { $0.requestsReceived == 1 }
            let second = download(client, folder) { $0.contention = .wait }
            while !second.trace.contains(.waitedForOtherDownload) { await Task.yield() }
            gate.open()
            _ = try await first.value
            #expect(try await second.value.trace == [.waitedForOtherDownload, .started])
        }
    }

    @Test func theTimeOfTheWholeDownloadEndsAWaitForAnother() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.serveFile(Self.pattern)
        } test: { server, client, folder in
            let first = download(client, folder)
            try await server.wait { $0.requestsReceived == 1 }
            let error = try await failure {
                try await download(client, folder) {
                    $0.contention = .wait
                    $0.retry.maximumTime = .milliseconds(300)
                }.value
            }
            #expect(error.kind == .downloadInProgress && error.reason.contains("time limit of the transfer"))
            gate.open()
            _ = try await first.value
        }
    }

    /// A process can be killed while a finished file has two names, where the file system cannot move it in one step.
    @Test func finishedFileWithTwoNamesLosesOne() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leaveMovedFile(client, folder)
            try FileManager.default.linkItem(at: folder.url("file"), to: folder.url(".file.tern"))
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.trace == [.foundWhole])
            #expect(try folder.names == ["file"])
        }
    }

    /// The lock ends with a call that fails.
    @Test func partThatCannotBeRemovedCanBeTriedAgain() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder)
            try FileManager.default.removeItem(at: folder.url(".file.tern"))
            try FileManager.default.createSymbolicLink(atPath: folder.url(".file.tern").path, withDestinationPath: "x")
            for _ in 0..<2 {
                let error = try await failure { try await download(client, folder, path: "file?id=1").discard() }
                #expect(error.kind == .fileSystem)
            }
            try FileManager.default.removeItem(at: folder.url(".file.tern"))
            try await download(client, folder, path: "file?id=1").discard()
            #expect(try folder.names.filter { $0.hasSuffix(".json") } == [])
        }
    }

    @Test func completePartOfAnotherURLDoesNotVerifyThisOne() async throws {
        let other = LoopbackServer.Pattern(count: 1_000_000, seed: 5)
        let hash = try #require(FileHash(.sha256))
        hash.update(Data(Self.pattern.bytes()))
        let digest = hash.finalize().bytes.base64EncodedString()
        try await withServer { exchange in
            guard exchange.request.target.contains("id=2") else { return try handler()(exchange) }
            try exchange.respond(headers: [("Repr-Digest", "sha-256=:\(digest):")], body: other.bytes())
        } test: { _, client, folder in
            try await leaveCompletePart(client, folder, bytes: Data(Self.pattern.bytes()))
            let error = try await failure {
                try await download(client, folder, path: "file?id=2") { $0.replacesOtherDownload = true }.value
            }
            #expect(error.kind == .digestMismatch)
        }
    }

    @Test func partOfAFailedMoveIsForItsOwnerAlone() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder)
            try folder.write(Data([1]), to: "file")
            let error = try await failure {
                try await download(client, folder, path: "file?id=1") { $0.existing = .fail }.value
            }
            #expect(error.kind == .fileSystem)
            var status = stat()
            #expect(unsafe stat(folder.url(".file.tern").path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test func spaceIsReservedInOneStep() throws {
        let path = "/tmp/tern-space-\(UInt64.random(in: 0 ... .max))"
        let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        defer {
            close(descriptor)
            _ = unsafe unlink(path)
        }
        try DiskCall.allocate(100_000, for: descriptor, path: path)
        #expect(DiskCall.identity(of: descriptor)?.length == 100_000)
        // More than any disk has.
        #expect(throws: FileFailure.self) { try DiskCall.allocate(1 << 60, for: descriptor, path: path) }
        #expect(DiskCall.identity(of: descriptor)?.length == 100_000)
    }

    @Test func filesAreForTheirOwnerAlone() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder, path: Self.signed)
            for name in leftovers {
                var status = stat()
                #expect(unsafe stat(folder.url(name).path, &status) == 0)
                #expect(status.st_mode & 0o777 == 0o600)
            }
            #expect(String(decoding: try folder.bytes(".file.tern.json"), as: UTF8.self).contains("secret"))
        }
    }

    @Test func damagedControlFileStartsOver() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder)
            try folder.write(Data("{\"version\":1}".utf8), to: ".file.tern.json")
            let result = try await download(client, folder).value
            #expect(result.trace == [.startedOver(.controlInvalid, discarded: 0)])
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }

    @Test func controlFileOfALaterVersionIsLeftAlone() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder)
            try folder.write(Data("{\"version\":2}".utf8), to: ".file.tern.json")
            let error = try await failure { try await download(client, folder).value }
            #expect(error.kind == .otherDownload)
            #expect(try folder.bytes(".file.tern.json") == Data("{\"version\":2}".utf8))
            #expect(try folder.bytes(".file.tern").count == 300_000)
        }
    }

    @Test func shortenedPartContinuesWhereItEnds() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder)
            try folder.write(Data(Self.pattern.bytes(in: 0..<100)), to: ".file.tern")
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.trace == [.continued(at: 100)])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func partThatIsTooLongStartsOver() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leavePart(client, folder)
            try folder.write(Data(count: 1_000_001), to: ".file.tern")
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.trace == [.startedOver(.partMissing, discarded: 0)])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    /// A process that was killed after its last byte has all of them, of the version that the server confirms.
    @Test func wholePartNeedsItsLastByte() async throws {
        try await withServer(handler()) { server, client, folder in
            try await leavePart(client, folder)
            try folder.write(Data(Self.pattern.bytes()), to: ".file.tern")
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.receivedBytes == 1 && result.attempts == 1)
            #expect(server.counts.requestsReceived == 2)
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }

    /// Leaves the folder as a process does that was killed between the move of `/file?id=1` and the removal of the
    /// control file.
    private func leaveMovedFile(_ client: Client, _ folder: TestFolder) async throws {
        try await leavePart(client, folder)
        try folder.write(Data(Self.pattern.bytes()), to: "file")
        let names = ControlNames(destination: "file")
        var control = try ControlFile(folder.bytes(".file.tern.json"), names: names)
        control.completedFile = DiskCall.identity(of: folder.url("file").path)?.number
        try folder.write(control.encoded(), to: ".file.tern.json")
        try FileManager.default.removeItem(at: folder.url(".file.tern"))
    }

    @Test func movedFileIsFoundByItsNumber() async throws {
        try await withServer(handler()) { server, client, folder in
            try await leaveMovedFile(client, folder)
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.trace == [.foundWhole] && result.bytes == 1_000_000)
            #expect(server.counts.requestsReceived == 1)
            #expect(try folder.names == ["file"])
        }
    }

    /// The moved file belongs to its URL: another one is downloaded, and is no reason to refuse.
    @Test func movedFileOfAnotherURLIsNotTakenForThisOne() async throws {
        try await withServer(handler()) { server, client, folder in
            try await leaveMovedFile(client, folder)
            let result = try await download(client, folder, path: "file?id=2").value
            #expect(result.trace == [.started] && result.receivedBytes == 1_000_000)
            #expect(server.counts.requestsReceived == 2)
            #expect(try folder.names == ["file"])
        }
    }

    /// The number of a removed file can be given to a new one.
    @Test func movedFileWithTheDigestIsVerifiedAndAnotherIsReplaced() async throws {
        try await withServer(handler()) { server, client, folder in
            try await leaveMovedFile(client, folder)
            let left = try folder.bytes(".file.tern.json")
            let digest = FileDigest.sha256(sha256(Self.pattern.bytes()))
            let found = try await download(client, folder, path: "file?id=1") { $0.digest = digest }.value
            #expect(found.trace == [.verified(digest), .foundWhole] && found.digest == digest)

            try folder.write(left, to: ".file.tern.json")
            // The file keeps its number.
            try folder.write(Data(count: 1_000_000), to: "file")
            let result = try await download(client, folder, path: "file?id=1") { $0.digest = digest }.value
            #expect(result.trace == [.started, .verified(digest)])
            #expect(server.counts.requestsReceived == 2)
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func movedFileOfAnotherLengthIsReplaced() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leaveMovedFile(client, folder)
            try folder.write(Data(count: 10), to: "file")
            #expect(try await download(client, folder, path: "file?id=1").value.trace == [.started])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    // MARK: A loss of power after the last byte

    /// Leaves a part that a process marked as complete.
    private func leaveCompletePart(
        _ client: Client, _ folder: TestFolder, bytes: Data, bootID: String? = DiskCall.bootID
    ) async throws {
        try await leavePart(client, folder)
        try folder.write(bytes, to: ".file.tern")
        try changeControl(folder, bootID: bootID, of: ".file.tern")
    }

    private func changeControl(_ folder: TestFolder, bootID: String?, of name: String) throws {
        var control = try ControlFile(folder.bytes(".file.tern.json"), names: ControlNames(destination: "file"))
        control.completedFile = DiskCall.identity(of: folder.url(name).path)?.number
        control.digest = ControlFile.StoredDigest(.sha256(sha256(Self.pattern.bytes())))
        control.bootID = bootID
        try folder.write(control.encoded(), to: ".file.tern.json")
    }

    @Test func completePartThatLostBytesIsContinued() async throws {
        try await withServer(handler()) { _, client, folder in
            try await leaveCompletePart(client, folder, bytes: Data(Self.pattern.bytes(in: 0..<200_000)))
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.trace.first == .continued(at: 200_000) && result.bytes == 1_000_000)
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test(arguments: ["another run", nil]) func completePartOfAnotherRunIsVerifiedAgain(bootID: String?) async throws {
        try await withServer(handler()) { server, client, folder in
            try await leaveCompletePart(client, folder, bytes: Data(count: 1_000_000), bootID: bootID)
            let error = try await failure { try await download(client, folder, path: "file?id=1").value }
            #expect(error.kind == .digestMismatch, "\(error)")
            try await leaveFirstBytesAndComplete(client, folder, bootID: bootID)
            #expect(try folder.names == ["file"] && server.counts.requestsReceived == 1)
        }
    }

    /// Moves a complete part of another run, whose bytes are right.
    private func leaveFirstBytesAndComplete(_ client: Client, _ folder: TestFolder, bootID: String?) async throws {
        var control = ControlFile(url: try client.url("file?id=1").absoluteString, partialFile: ".file.tern")
        (control.etag, control.size) = (Self.pattern.etag, 1_000_000)
        try folder.write(control.encoded(), to: ".file.tern.json")
        try folder.write(Data(Self.pattern.bytes()), to: ".file.tern")
        try changeControl(folder, bootID: bootID, of: ".file.tern")
        let result = try await download(client, folder, path: "file?id=1").value
        #expect(result.trace == [.foundWhole, .verified(.sha256(sha256(Self.pattern.bytes())))])
    }

    @Test func movedFileOfAnotherRunIsVerifiedAgain() async throws {
        try await withServer(handler()) { server, client, folder in
            try await leaveMovedFile(client, folder)
            try changeControl(folder, bootID: "another run", of: "file")
            try folder.write(Data(count: 1_000_000), to: "file")
            let result = try await download(client, folder, path: "file?id=1").value
            #expect(result.trace == [.started] && server.counts.requestsReceived == 2)
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    /// A size that sums cannot contain, in the answer to a request for a whole file and for its rest.
    @Test(arguments: [false, true]) func sizeThatNoFileHasIsRefused(isRest: Bool) async throws {
        let size = 1 << 61
        let stub = StubTransport { call in
            if call.headers.contains("Range") {
                let place = "bytes 300000-\(size - 1)/\(size)"
                return StubTransport.Answer(status: 206, headers: ["ETag": Self.pattern.etag, "Content-Range": place])
            }
            if !isRest { return .status(200, headers: ["ETag": Self.pattern.etag, "Content-Length": "\(size)"]) }
            let bytes = Data(Self.pattern.bytes(in: 0..<300_000))
            return .chunks([bytes], headers: ["ETag": Self.pattern.etag]).failing(.init(.connectionLost))
        }
        try await inTestFolder { folder in
            let client = try Client(baseURL: "https://a.test", session: Session(stub: stub))
            let error = try await failure { try await download(client, folder) { $0.freeSpaceCheck = false }.value }
            #expect(error.kind == .malformedResponse, "\(error)")
            #expect(try folder.names == (isRest ? leftovers : []))
        }
    }

    /// The bytes of the longer body are moved through a pipe.
    @Test(arguments: [Self.pattern, LoopbackServer.Pattern(count: 8_000_000)])
    func fullDiskIsNamedAndItsPartContinues(pattern: LoopbackServer.Pattern) async throws {
        try await withServer {
            try $0.serveFile(pattern)
        } test: { _, client, folder in
            let writes = Log<Int>()
            let faulty = FaultyFiles { call, _ in
                guard call == "write" else { return nil }
                writes.add(1)
                return writes.all.count > 4 ? ENOSPC : nil
            }
            let request = try client.request(.get, "file")
            let full = DurableDownloadTask(
                download: .started(
                    .success(request), session: client.session, to: folder.url("file"), options: .test(), system: faulty
                ))
            let error = try await failure { try await full.value }
            #expect(error.kind == .fileSystem)
            #expect(error.reason.contains("write \(folder.path)/.file.tern: No space left on device"))
            let kept = try folder.bytes(".file.tern").count
            #expect(kept > 0)
            let result = try await download(client, folder).value
            #expect(result.trace == [.continued(at: Int64(kept))])
            #expect(try result.bytes == pattern.count && pattern.matches(folder.bytes("file")))
        }
    }

    /// The bytes have arrived, and wait because of the throttle.
    @Test(arguments: [200_000, 1_000_000], [1, 4])
    func timeLimitIncludesTheWaitsOfTheThrottle(count: Int, segments: Int) async throws {
        let pattern = LoopbackServer.Pattern(count: count)
        try await withServer {
            try $0.serveFile(pattern)
        } test: { _, client, folder in
            let task = download(client, folder) {
                ($0.segments, $0.shortestSegment, $0.throttle) = (segments, 1_000, 100)
                $0.retry.maximumTime = .milliseconds(300)
            }
            let error = try await failure { try await task.value }
            #expect(
                error.kind == .totalTimedOut && error.reason.contains("waited because of its limit on the rate"),
                "\(error)")
            #expect(error.reason.contains("the time limit of 0.3 seconds"), "\(error)")
            // The bytes that have arrived are kept.
            #expect(try folder.names == [".file.tern", ".file.tern.json"])
        }
    }

    /// The disk is full when the description is stored.
    @Test(arguments: [1, 4]) func partThatCannotBeDescribedLeavesNothing(segments: Int) async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client, folder in
            let faulty = FaultyFiles { call, path in
                call == "write" && path.hasSuffix("/.file.tern.json.new") ? ENOSPC : nil
            }
            let options = DurableDownloadOptions.test {
                ($0.segments, $0.shortestSegment) = (segments, 1_000)
            }
            let full = DurableDownloadTask(
                download: .started(
                    .success(try client.request(.get, "file")), session: client.session, to: folder.url("file"),
                    options: options, system: faulty))
            let error = try await failure { try await full.value }
            #expect(
                error.reason.contains("No space left on device") && error.reason.contains("nothing is kept"), "\(error)"
            )
            #expect(try folder.names == [])
        }
    }

    @Test func folderThatCannotBeWrittenIsNamed() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { server, client, folder in
            let request = try client.request(.get, "file")
            let faulty = FaultyFiles { call, path in call == "open" && path.hasSuffix(".json") ? EROFS : nil }
            let task = DurableDownloadTask(
                download: .started(
                    .success(request), session: client.session, to: folder.url("file"), options: .test(), system: faulty
                ))
            let error = try await failure { try await task.value }
            #expect(error.reason.contains("\(folder.path)/.file.tern.json: Read-only file system"))
            #expect(server.counts.requestsReceived == 0)
        }
    }

    /// The destination is not created before the last byte, and its name is checked before the first.
    @Test func nameThatIsTooLongFailsAtOnce() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { server, client, folder in
            let name = String(repeating: "n", count: 256)
            let task = client.download("file", to: folder.url(name), resuming: .automatically, options: .test())
            let error = try await failure { try await task.value }
            #expect(error.kind == .fileSystem && error.reason.contains("File name too long"), "\(error)")
            #expect(server.counts.requestsReceived == 0)
            #expect(try folder.names == [])
        }
    }

    @Test(arguments: [1, 4]) func fileThatDoesNotFitFailsBeforeItsBody(segments: Int) async throws {
        try await withServer { exchange in
            let fields = [("Content-Length", "\(1 << 50)"), ("ETag", "\"huge\"")]
            try exchange.writeHead(headers: fields)
            try exchange.waitForClientToClose()
        } test: { _, client, folder in
            let error = try await failure { try await download(client, folder) { $0.segments = segments }.value }
            #expect(error.kind == .fileSystem, "\(error)")
            #expect(try folder.names == [])
            #expect(error.reason.contains("No space left on device"))
        }
    }

    @Test func folderAtTheDestinationIsRefused() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { server, client, folder in
            try FileManager.default.createDirectory(at: folder.url("file"), withIntermediateDirectories: false)
            let error = try await failure { try await download(client, folder).value }
            #expect(error.kind == .fileSystem)
            #expect(server.counts.requestsReceived == 0)
            #expect(try folder.names == ["file"])
        }
    }

    @Test func synchronizedPartIsTrustedAfterARestartAsFarAsItWasSynchronized() {
        var control = ControlFile(url: "https://a.example/f", partialFile: ".f.tern")
        #expect(DownloadPart.reliableLength(500, of: control) == 500)
        control.syncedBytes = 400
        control.bootID = DiskCall.bootID
        #expect(DownloadPart.reliableLength(500, of: control) == (DiskCall.bootID == nil ? 400 : 500))
        control.bootID = "another run"
        #expect(DownloadPart.reliableLength(500, of: control) == 400)
        #expect(DownloadPart.reliableLength(300, of: control) == 300)
    }

    @Test func synchronizedDownloadWritesWhatItSynchronized() async throws {
        let large = LoopbackServer.Pattern(count: 20 << 20)
        try await withServer { exchange in
            if exchange.number == 1 { return try exchange.cut(large, after: 12 << 20) }
            try exchange.serveFile(large)
        } test: { _, client, folder in
            let first = download(client, folder) {
                $0.synchronizes = true
                $0.retry.policy.limit = 0
            }
            _ = try await failure { try await first.value }
            let control = try ControlFile(folder.bytes(".file.tern.json"), names: ControlNames(destination: "file"))
            #expect(control.syncedBytes == 12 << 20)
            #expect(control.bootID == DiskCall.bootID)
            let result = try await download(client, folder) { $0.synchronizes = true }.value
            #expect(result.trace == [.continued(at: 12 << 20)])
            #expect(large.matches(try folder.bytes("file")))
            #expect(try folder.names == ["file"])
        }
    }
}
