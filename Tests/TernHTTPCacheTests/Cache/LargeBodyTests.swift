import Foundation
import Synchronization
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernCache
@testable import TernHTTPCache

/// Bodies that go to the disk while they arrive.
@Suite("HTTP cache: large bodies", .timeLimit(.minutes(2)), .serialized)
struct LargeBodyTests {
    private func server(
        _ pattern: LoopbackServer.Pattern, _ headers: LoopbackServer.Fields = [("Cache-Control", "max-age=60")]
    ) -> LoopbackServer.Handler {
        { exchange in try exchange.serveFile(pattern, headers: headers) }
    }

    /// Reads a stream to its end or to a number of bytes. Returns the number of bytes that are those of the pattern.
    private func read(
        _ stream: ResponseStream, _ pattern: LoopbackServer.Pattern, upTo limit: Int = .max,
        each: (Int) async throws -> Void = { _ in }
    ) async throws -> Int {
        var count = 0
        for try await chunk in stream.chunks {
            guard pattern.matches(chunk, at: count) else { break }
            count += chunk.count
            try await each(count)
            if count >= limit { break }
        }
        return count
    }

    @Test func aFlushDoesNotWaitForABodyThatIsStillArriving() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            .disk,
            handler: { exchange in
                try exchange.writeHead(
                    headers: [("Cache-Control", "max-age=60"), ("Content-Length", "600000")])
                try exchange.write([UInt8](repeating: 1, count: 500_000))
                try exchange.wait(for: gate)
                try exchange.write([UInt8](repeating: 1, count: 100_000))
            },
            test: { cached in
                let stream = cached.client.stream("a")
                var iterator = stream.chunks.makeAsyncIterator()
                var count = 0
                while count < 500_000, let chunk = try await iterator.next() { count += chunk.count }
                await cached.cache.flush()
                gate.open()
                while let chunk = try await iterator.next() { count += chunk.count }
                #expect(count == 600_000)
                await cached.cache.flush()
                #expect(try await cached.get().cacheTrace?.source == .stored)
            })
    }

    @Test func aLargeBodyIsWrittenWhileItArrivesAndMemoryStaysFlat() async throws {
        let pattern = LoopbackServer.Pattern(count: 64 << 20)
        try await withDisk(handler: server(pattern)) { cached, disk, folder in
            var most = 0
            let first = try await read(cached.client.stream("a"), pattern) { count in
                most = max(most, cached.cache.shared.waitingBytes)
                // The reader of this test waits for the disk, which the cache never does.
                try await cached.cache.written(to: disk)
                guard count > 1 << 20 else { return }
                #expect(try await disk.usage.fileBytes >= count - BodyRecording.collectedLimit)
            }
            #expect(first == pattern.count)
            #expect(most > 0 && most <= BodyQueueState.limit)
            try await until { cached.cache.statistics.stored > 0 }
            #expect(try folder.unfinished().isEmpty)
            let again = try await read(cached.client.stream("a"), pattern)
            #expect(again == pattern.count)
            var request = try cached.client.request(.get, "a")
            request.headers["Range"] = "bytes=20000001-60000000"
            let part = try await cached.client.session.response(for: request)
            #expect(part.status == 206)
            #expect(pattern.matches(part.value, at: 20_000_001) && part.value.count == 40_000_000)
            #expect(part.cacheTrace?.source == .stored)
            #expect(cached.requestCount == 1)
        }
    }

    @Test func aSlowDiskNeverSlowsTheReader() async throws {
        let pattern = LoopbackServer.Pattern(count: 8 << 20)
        let (hook, gate) = (FileHook(), ThreadGate())
        try await withDisk(hook, handler: server(pattern)) { cached, disk, folder in
            hook.set { call in
                if call == "write" { gate.pass() }
                return nil
            }
            let stream = cached.client.stream("a")
            let count = try await read(stream, pattern) { _ in
                #expect(cached.cache.shared.waitingBytes <= BodyQueueState.limit)
            }
            #expect(count == pattern.count)
            let trace = try await stream.response.cacheTrace
            #expect(trace?.storing == "store-busy")
            #expect(trace?.isStored == false)
            gate.open()
            try await cached.cache.written(to: disk)
            try await until { try folder.unfinished().isEmpty }
            #expect(try await disk.usage.count == 0)
        }
    }

    @Test func aPartThatIsLongerThanAnnouncedIsNotJoined() async throws {
        let body = [UInt8](repeating: 0x61, count: 1_200_000)
        let headers: LoopbackServer.Fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=60")]
        let handler: LoopbackServer.Handler = { exchange in
            switch exchange.request["Range"] {
            case "bytes=0-599999"?:
                let fields = headers + [("Content-Range", "bytes 0-599999/1200000")]
                try exchange.respond(status: 206, headers: fields, body: Array(body[0..<600_000]))
            case .some:
                let fields = headers + [("Content-Range", "bytes 600000-1199999/1200000")]
                try exchange.writeChunkedHead(status: 206, headers: fields)
                try exchange.writeChunk(body[600_000...] + [0x62])
                try exchange.endChunks()
            case nil:
                try exchange.respond(headers: headers, body: body)
            }
        }
        try await withDisk(handler: handler) { cached, disk, _ in
            for (index, range) in ["bytes=0-599999", "bytes=600000-1199999"].enumerated() {
                let stream = cached.client.stream("a", headers: ["Range": range])
                for try await _ in stream.chunks {}
                let trace = try await stream.storedTrace()
                #expect(trace?.storing == (index == 0 ? "stored" : "incomplete"))
            }
            let whole = try await cached.get()
            #expect(Array(whole.value) == body)
        }
    }

    @Test(arguments: [100, 600_000])
    func aRequestAfterAStreamWaitsForTheWrite(count: Int) async throws {
        let body = [UInt8](repeating: 0x61, count: count)
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], body: body)
        }
        try await withDisk(handler: handler) { cached, _, _ in
            for number in 1...30 {
                for try await _ in cached.client.stream("\(number)").chunks {}
                let response = try await cached.get("\(number)")
                #expect(response.value.count == count)
                #expect(cached.requestCount == number)
            }
        }
    }

    @Test func theBytesOfAllResponsesAreBounded() async throws {
        let state = CacheState()
        #expect(state.reserve(30 << 20))
        #expect(state.reserve(2 << 20))
        #expect(!state.reserve(1))
        state.release(2 << 20)
        #expect(state.reserve(1))
        #expect(state.waitingBytes == (30 << 20) + 1)
    }

    @Test func aFailingDiskGivesTheBodyUp() async throws {
        let pattern = LoopbackServer.Pattern(count: 4 << 20)
        let hook = FileHook()
        try await withDisk(hook, handler: server(pattern)) { cached, disk, folder in
            for call in ["create", "write", "rename", "INSERT"] {
                hook.set { name in name.contains(call) ? (call == "INSERT" ? 13 : 28) : nil }
                let stream = cached.client.stream("a")
                let count = try await read(stream, pattern) { _ in
                    // Bytes that arrive at once fit only into an empty queue.
                    try await until { cached.cache.shared.waitingBytes == 0 }
                }
                #expect(count == pattern.count)
                let trace = try await stream.storedTrace()
                #expect(trace?.storing == "store-failed", "\(call)")
                try await until { cached.cache.shared.waitingBytes == 0 }
            }
            hook.set(nil)
            try await until { try folder.unfinished().isEmpty }
            #expect(try await disk.usage.fileBytes == 0)
        }
    }

    @Test func aBodyBeyondTheLimitIsGivenUpWhileItArrives() async throws {
        let pattern = LoopbackServer.Pattern(count: 3 << 20)
        try await withDisk(entryByteLimit: 2 << 20) { exchange in
            try exchange.writeChunkedHead(headers: [("Cache-Control", "max-age=60")])
            for start in stride(from: 0, to: pattern.count, by: 1 << 18) {
                try exchange.writeChunk(pattern.bytes(in: start..<start + (1 << 18)))
            }
            try exchange.endChunks()
        } test: { cached, disk, folder in
            let stream = cached.client.stream("a")
            let count = try await read(stream, pattern) { _ in try await cached.cache.written(to: disk) }
            #expect(count == pattern.count)
            #expect(try await stream.response.cacheTrace?.storing == "body-too-large")
            try await until { try folder.unfinished().isEmpty }
            #expect(try await disk.usage.count == 0)
        }
    }

    @Test(arguments: [true, false])
    func anInterruptedBodyIsKeptAsAPartIfItCanBeCompleted(hasTag: Bool) async throws {
        let pattern = LoopbackServer.Pattern(count: 3 << 20)
        let (count, asked) = (Counter(), Log<String?>())
        try await withDisk { exchange in
            asked.add(exchange.request["Range"])
            guard count.next() == 1 else {
                return try exchange.serveFile(
                    pattern, etag: hasTag ? nil : "", headers: [("Cache-Control", "max-age=60")])
            }
            var headers: LoopbackServer.Fields = [("Cache-Control", "max-age=60"), ("Content-Length", "3145728")]
            if hasTag { headers.append(("ETag", pattern.etag)) }
            try exchange.writeHead(headers: headers)
            try exchange.write(pattern.bytes(in: 0..<(2 << 20)))
            exchange.close()
        } test: { cached, disk, folder in
            let stream = cached.client.stream("a")
            await #expect(throws: NetworkError.self) {
                _ = try await read(stream, pattern) { _ in try await cached.cache.written(to: disk) }
            }
            let trace = try await stream.storedTrace()
            #expect(trace?.isStored == hasTag)
            try await until { try folder.unfinished().isEmpty }
            #expect(try await disk.usage.count == (hasTag ? 2 : 0))
            let whole = try await cached.get()
            #expect(pattern.matches(whole.value) && whole.value.count == pattern.count)
            #expect(asked.values == [nil, hasTag ? "bytes=2097152-" : nil])
            let storing = await whole.storedTrace()
            #expect(storing?.isStored == true)
            let second = try await cached.get()
            #expect(second.value == whole.value && second.cacheTrace?.source == .stored)
        }
    }

    @Test func aDroppedResponseLeavesNoUnfinishedFile() async throws {
        let pattern = LoopbackServer.Pattern(count: 16 << 20)
        try await withDisk(handler: server(pattern, [("Cache-Control", "max-age=60")])) { cached, disk, folder in
            let count = try await read(cached.client.stream("a"), pattern, upTo: 1 << 20) { _ in
                try await cached.cache.written(to: disk)
            }
            #expect(count >= 1 << 20)
            try await until { try folder.unfinished().isEmpty }
            try await until { cached.cache.shared.waitingBytes == 0 }
        }
    }

    @Test(arguments: [true, false]) func partsAreJoinedOnTheDisk(isStreamed: Bool) async throws {
        let pattern = LoopbackServer.Pattern(count: 4 << 20)
        try await withDisk(handler: server(pattern)) { cached, disk, folder in
            for range in ["bytes=1048576-2097151", "bytes=2000000-3000000", "bytes=0-1100000", "bytes=2900000-"] {
                var request = try cached.client.request(.get, "a")
                request.headers["Range"] = range
                let trace: CacheTrace?
                if isStreamed {
                    let stream = cached.client.session.stream(request)
                    for try await _ in stream.chunks { try await cached.cache.written(to: disk) }
                    trace = try await stream.storedTrace()
                } else {
                    trace = await (try await cached.client.session.response(for: request)).storedTrace()
                }
                #expect(trace?.isStored == true, "\(range)")
            }
            let whole = try await cached.get()
            #expect(whole.status == 200)
            #expect(pattern.matches(whole.value) && whole.value.count == pattern.count)
            #expect(whole.cacheTrace?.source == .stored)
            #expect(cached.requestCount == 4)
            #expect(try await disk.usage.count == 2)
            #expect(try folder.unfinished().isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func aPartOfABodyThatIsTooLargeIsNotCompleted(kind: StoreKind) async throws {
        let pattern = LoopbackServer.Pattern(count: 300_000)
        let limit: (inout HTTPCache.Configuration) -> Void = { $0.entryByteLimit = 100_000 }
        try await withCache(kind, cache: limit, handler: server(pattern)) { cached in
            let part = try await cached.get(headers: ["Range": "bytes=0-49999"])
            let trace = await part.storedTrace()
            #expect(trace?.isStored == true)
            let whole = try await cached.get()
            #expect(pattern.matches(whole.value) && whole.value.count == pattern.count)
            #expect(cached.requestCount == 2)
        }
    }
}
