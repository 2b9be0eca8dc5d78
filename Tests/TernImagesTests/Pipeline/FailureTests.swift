import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests which failures and partial downloads are remembered, and what the trace says.
@Suite(.timeLimit(.minutes(1))) struct FailureTests {
    @Test func aProcessorFailureDoesNotAffectTheImage() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.caching = .none
        request.processors = [.custom(identifier: "picky") { _ in throw ImageError(.corrupt, "not to my taste") }]
        #expect(await kit.pipeline.failure(of: request)?.kind == .corrupt)
        request.processors = []
        _ = try await kit.pipeline.image(from: request)
    }

    @Test func aFileThatIsMendedIsReadAgain() async throws {
        let folder = try ScratchFolder()
        let file = folder.url.appending(path: "1.png")
        try Data("not yet".utf8).write(to: file)
        let kit = PipelineKit(picture: Data())
        #expect(await kit.pipeline.failure(of: ImageRequest(file))?.kind == .unknownFormat)
        try Pictures.png().write(to: file)
        _ = try await kit.pipeline.image(from: file)
    }

    @Test func bytesThatAreNoPictureAreRememberedUntilTheyAreForgotten() async throws {
        let kit = PipelineKit(picture: Data("no picture".utf8))
        let request = ImageRequest(try url("https://a.example/1.png"))
        #expect(await kit.pipeline.failure(of: request)?.kind == .unknownFormat)
        #expect(await kit.pipeline.failure(of: request)?.kind == .failedBefore)
        // The second answer does not extend the lifetime, and removing the image forgets the failure.
        try await kit.pipeline.remove(request)
        #expect(await kit.pipeline.failure(of: request)?.kind == .unknownFormat)
        #expect(kit.stub.calls.count == 2)
    }

    /// A server whose URLs have a signature, which expires, and a pipeline that names pictures without it.
    private func signed(_ picture: Data, gate: LoopbackServer.Gate? = nil) -> PipelineKit {
        PipelineKit(
            StubTransport { call in
                if let gate, call.query == "sign=old" { try await gate.wait() }
                return call.query == "sign=new" ? .data(picture) : .status(403)
            }
        ) { $0.hooks.cacheKey = { $0.source.request?.urlString.components(separatedBy: "?").first } }
    }

    @Test func aRefusedURLDoesNotAnswerForAnotherOneOfTheSameImage() async throws {
        let kit = signed(try Pictures.png())
        let old = ImageRequest(try url("https://a.example/1.png?sign=old"))
        #expect(await kit.pipeline.failure(of: old)?.kind == .network)
        #expect(await kit.pipeline.failure(of: old)?.kind == .failedBefore)
        _ = try await kit.pipeline.image(from: try url("https://a.example/1.png?sign=new"))
        #expect(kit.stub.calls.map(\.query) == ["sign=old", "sign=new"])
        // The name is that of one image: it is in memory for both now.
        _ = try await kit.pipeline.image(from: old)
    }

    @Test(arguments: [false, true]) func aRefusedURLDoesNotFailTheTasksThatHaveJoinedItsLoad(
        otherSize: Bool
    ) async throws {
        let gate = LoopbackServer.Gate()
        let kit = signed(try Pictures.png(), gate: gate)
        let old = kit.pipeline.task(for: ImageRequest(try url("https://a.example/1.png?sign=old")))
        await kit.pipeline.waitForMessages()
        var request = ImageRequest(try url("https://a.example/1.png?sign=new"))
        if otherSize { request.targetSize = PixelSize(width: 2, height: 2) }
        let (new, same) = (kit.pipeline.task(for: request), kit.pipeline.task(for: request))
        await kit.pipeline.waitForMessages()
        gate.open()
        await #expect(throws: ImageError.self) { _ = try await old.image }
        _ = try await new.image
        _ = try await same.image
        #expect(kit.stub.calls.map(\.query) == ["sign=old", "sign=new"])
        await kit.expectNothingLeft()
    }

    @Test func aRefusalIsForgottenWhenTheCookiesChange() async throws {
        let picture = try Pictures.png()
        let stub = StubTransport { call in
            if call.path == "/login" { return .status(204, headers: ["Set-Cookie": "id=7; Path=/"]) }
            return call.headers["Cookie"] == nil ? .status(403) : .data(picture)
        }
        var configuration = Session.Configuration()
        configuration.cookies = .separate
        let session = Session(configuration: configuration, stub: stub)
        let kit = PipelineKit(stub) { $0.session = session }
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.options.handlesCookies = true
        #expect(await kit.pipeline.failure(of: request)?.kind == .network)
        #expect(await kit.pipeline.failure(of: request)?.kind == .failedBefore)
        _ = try await session.response(for: try Request(.get, "https://a.example/login"))
        _ = try await kit.pipeline.image(from: request)
        #expect(stub.calls.map(\.path) == ["/1.png", "/login", "/1.png"])
    }

    @Test func aRefusalOfAnUnknownUserIsNotRemembered() async throws {
        let kit = PipelineKit(StubTransport { _ in .status(403) }) { $0.hooks.prepare = { $0 } }
        let request = ImageRequest(try url("https://a.example/1.png"))
        for _ in 0..<2 { #expect(await kit.pipeline.failure(of: request)?.kind == .network) }
    }

    @Test func aLifetimeOfZeroRemembersNoFailure() async throws {
        let kit = PipelineKit(StubTransport { _ in .status(404) }) { $0.failureLifetime = .zero }
        let request = ImageRequest(try url("https://a.example/1.png"))
        for _ in 0..<2 { #expect(await kit.pipeline.failure(of: request)?.kind == .network) }
        #expect(kit.stub.calls.count == 2)
    }

    @Test func theNetworksReturnForgetsFailures() async throws {
        let clock = ManualClock()
        let kit = PipelineKit(StubTransport { _ in .status(404) }) { $0.clock = clock }
        let request = ImageRequest(try url("https://a.example/1.png"))
        _ = await kit.pipeline.failure(of: request)
        await kit.pipeline.forgetFailures()
        #expect(await kit.pipeline.failure(of: request)?.kind == .network)
    }

    @Test func theTraceListsTheDecodingFailureBeforeTheFetch() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        try await cache.insert(Data("no picture".utf8), for: DiskTier.encodedKey(request.source.key))
        let trace = try await kit.pipeline.response(for: request).trace
        let failed = try #require(trace.steps.firstIndex { $0.stage == .originals && $0.outcome == .failed })
        let fetched = try #require(trace.steps.firstIndex { $0.stage == .network })
        #expect(failed < fetched)
        #expect(trace[.originals] == .stored)
    }

    @Test func anImageRejectedByMemoryIsNotReportedAsStored() async throws {
        let kit = PipelineKit(picture: try Pictures.png(200, 200)) { $0.memoryLimit = 1_000 }
        let trace = try await kit.pipeline.response(for: ImageRequest(try url("https://a.example/1.png"))).trace
        #expect(trace[.memory] == .notStored)
    }

    @Test func anImageRejectedByTheDiskIsNotReportedAsStored() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache)) { $0.diskContent = .processed }
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.options.waitsForStore = true
        request.caching.originals = []
        _ = await kit.pipeline.disk.cache
        try await cache.close()
        let trace = try await kit.pipeline.response(for: request).trace
        #expect(trace[.processed] == .notStored)
        await kit.expectNothingLeft()
    }

    @Test func aRemovedImageIsNotStoredAfterwards() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(300, 300), disk: .cache(cache)) { $0.diskContent = .all }
        for number in 0..<10 {
            let request = ImageRequest(try url("https://a.example/\(number).png"))
            _ = try await kit.pipeline.image(from: request)
            try await kit.pipeline.remove(request)
            try await kit.pipeline.flush()
            #expect(await kit.pipeline.isOnDisk(request) == false)
        }
    }

    @Test func aFileBeyondTheLimitIsNotRead() async throws {
        let folder = try ScratchFolder()
        let file = folder.url.appending(path: "huge.png")
        try Data(count: 100_000).write(to: file)
        var request = ImageRequest(file)
        request.options.responseByteLimit = 99_999
        let kit = PipelineKit(picture: Data())
        #expect(await kit.pipeline.failure(of: request)?.kind == .limitExceeded)
    }

    // MARK: Parts

    @Test func aShortRangeDoesNotCompleteTheImage() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(300, 200)
        let kit = PipelineKit(
            StubTransport { call in
                guard call.headers.contains("Range") else { return .data(picture, headers: ["ETag": "\"v1\""]) }
                return .data(
                    picture[10..<20], status: 206,
                    headers: ["Content-Range": "bytes 10-19/\(picture.count)", "ETag": "\"v1\""])
            }, disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        let part = PartialImage(data: picture.prefix(10), validator: "\"v1\"", length: nil)
        let key = PartialImage.key(request.source.key)
        try await cache.insert(part.data, for: key, metadata: part.metadata)
        #expect(try await kit.pipeline.image(from: request).size == PixelSize(width: 300, height: 200))
        // A mismatched part is not tried again.
        #expect(!cache.contains(key))
    }

    @Test func aCancelledTransferResumes() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(300, 200)
        let half = picture.count / 2
        let clock = ManualClock()
        let stub = StubTransport(clock: clock) { call in
            let headers: Headers = ["Content-Length": "\(picture.count)", "ETag": "\"v1\""]
            guard call.headers["Range"] == "bytes=\(half)-" else {
                return .chunks(
                    [picture.prefix(half), picture.suffix(from: half)], interval: .seconds(1), headers: headers)
            }
            let range = "bytes \(half)-\(picture.count - 1)/\(picture.count)"
            return .data(picture.suffix(from: half), status: 206, headers: ["Content-Range": range, "ETag": "\"v1\""])
        }
        let kit = PipelineKit(stub, disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        let task = kit.pipeline.task(for: request)
        for await progress in task.progress where progress.completedBytes == half { break }
        task.cancel()
        await kit.expectNothingLeft()
        let trace = try await kit.pipeline.response(for: request).trace
        #expect(trace.description.contains("\(half) of them from before"))
    }
}
