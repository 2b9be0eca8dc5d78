#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension StreamTests {
    @Test func leavingTheLoopEndsTheTransfer() async throws {
        let hasGone = LoopbackServer.Gate()
        try await withServer {
            try Self.stall($0, hasGone)
        } test: { _, client in
            for try await chunk in client.stream("a").chunks {
                #expect(!chunk.isEmpty)
                break
            }
            try await hasGone.wait()
            await client.session.drained()
        }
    }

    @Test func aDroppedStreamEndsItsTask() async throws {
        let hasGone = LoopbackServer.Gate()
        try await withServer {
            try Self.stall($0, hasGone)
        } test: { _, client in
            var stream: ResponseStream? = client.stream("a")
            _ = try await stream?.response
            let task = try #require(stream?.task)
            #expect(task.state == .running)
            stream = nil
            try await hasGone.wait()
            #expect(await task.states.collected().last == .cancelled)
        }
    }

    @Test func aStreamThatIsDroppedBeforeItsHeadEndsItsTask() async throws {
        let hasGone = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.waitForClientToClose()
            hasGone.open()
        } test: { server, client in
            var stream: ResponseStream? = client.stream("a")
            let task = try #require(stream?.task)
            try await server.wait { $0.requestsReceived == 1 }
            stream = nil
            try await hasGone.wait()
            #expect(await task.states.collected().last == .cancelled)
        }
    }

    @Test func cancellingTheReaderEndsTheTransfer() async throws {
        let hasGone = LoopbackServer.Gate()
        let hasRead = LoopbackServer.Gate()
        try await withServer {
            try Self.stall($0, hasGone)
        } test: { _, client in
            let stream = client.stream("a")
            let reader = Task {
                try await failure {
                    var chunks = stream.chunks.makeAsyncIterator()
                    while try await chunks.next() != nil { hasRead.open() }
                    return "the end"
                }
            }
            try await hasRead.wait()
            reader.cancel()
            #expect(try await reader.value.isCancelled)
            try await hasGone.wait()
            #expect(stream.task.state == .cancelled)
        }
    }

    @Test func cancellingTheTaskEndsTheReader() async throws {
        let hasGone = LoopbackServer.Gate()
        try await withServer {
            try Self.stall($0, hasGone)
        } test: { _, client in
            let stream = client.stream("a")
            var chunks = stream.chunks.makeAsyncIterator()
            #expect(try await chunks.next() != nil)
            stream.task.cancel()
            let error = try await failure {
                while try await chunks.next() != nil {}
                return "the end"
            }
            #expect(error.isCancelled)
            #expect(error.taskID == stream.task.id)
            try await hasGone.wait()
        }
    }

    @Test func cancelledUnreadStreamEndsItsTask() async throws {
        let hasGone = LoopbackServer.Gate()
        try await withServer {
            try Self.stall($0, hasGone)
        } test: { _, client in
            let stream = client.stream("a")
            _ = try await stream.response
            stream.task.cancel()
            #expect(await stream.task.states.collected().last == .cancelled)
            try await hasGone.wait()
            await client.session.drained()
        }
    }

    @Test func aRefusedStatusIsAnErrorWithTheBodysStart() async throws {
        let configuration = Session.Configuration.test { $0.errorBodyLimit = 1_000 }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(status: 500, body: Self.pattern.bytes())
        } test: { _, client in
            let stream = client.stream("a")
            let error = try await failure { try await stream.response }
            #expect(error.kind == .status)
            #expect(error.status == 500)
            #expect(error.body.count == 1_000)
            #expect(Self.pattern.matches(error.body))
            var chunks = stream.chunks.makeAsyncIterator()
            let again = try await failure { try await chunks.next() }
            #expect(again.status == 500)
            #expect(stream.task.state == .failed)
        }
    }

    @Test func aBodyThatEndsTooEarlyIsAnErrorAfterItsBytes() async throws {
        try await withScript("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf") { _, client in
            var chunks = client.stream("a").chunks.makeAsyncIterator()
            #expect(try await chunks.next() == Data("half".utf8))
            let error = try await failure { try await chunks.next() }
            #expect(error.kind == .truncatedBody)
        }
    }

    @Test func twoReadersAtOnceAreAClearError() async throws {
        let hasGone = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "10")])
            try exchange.wait(for: hasGone)
            try exchange.write("0123456789")
        } test: { _, client in
            let stream = client.stream("a")
            _ = try await stream.response
            let results = await withTaskGroup(of: Result<Data?, NetworkError>.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        do throws(NetworkError) {
                            var chunks = stream.chunks.makeAsyncIterator()
                            return .success(try await chunks.next())
                        } catch {
                            return .failure(error)
                        }
                    }
                }
                // The second read fails while the first waits.
                let second = await group.next()
                hasGone.open()
                return [await group.next(), second]
            }
            guard case .success(let chunk) = results[0], case .failure(let error) = results[1] else {
                Issue.record("no reader was refused")
                return
            }
            #expect(chunk == Data("0123456789".utf8))
            #expect(error.kind == .unsupported)
            #expect(error.reason.contains("one reader"))
        }
    }

    @Test func secondLoopContinuesWhereTheFirstStopped() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client in
            let stream = client.stream("a")
            var count = 0
            for try await chunk in stream.chunks {
                count += chunk.count
                if count > 1_000_000 { break }
            }
            #expect(stream.task.state == .running)
            var rest = 0
            for try await chunk in stream.chunks { rest += chunk.count }
            #expect(count + rest == Self.pattern.count)
        }
    }

    /// The next loop receives the elements that an earlier loop had fetched, but not returned.
    @Test func leftLoopLeavesFetchedElementsToTheNext() async throws {
        try await withServer { exchange in
            try exchange.respond(text: "head\nfirst\nsecond\nlast")
        } test: { _, client in
            let stream = client.stream("a")
            for try await line in stream.lines {
                #expect(line == "head")
                break
            }
            var letters = ""
            for try await byte in stream.bytes.prefix(3) { letters.append(Character(Unicode.Scalar(byte))) }
            #expect(letters == "fir")
            var lines = stream.lines.makeAsyncIterator()
            #expect(try await lines.next() == "st")
            var bytes = 0
            var chunks = stream.chunks.makeAsyncIterator()
            // The iterator of the lines still holds the elements that it fetched.
            #expect(try await chunks.next() == nil)
            while try await lines.next() != nil { bytes += 1 }
            #expect(bytes == 2)
            #expect(stream.task.state == .completed)
        }
    }

    @Test(arguments: [true, false])
    func everyReaderReceivesTheEndOfTheStream(isCancelled: Bool) async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "10")])
            try exchange.write("half")
            // The body breaks off only after the cancellation.
            try exchange.wait(for: gate)
            exchange.close()
        } test: { _, client in
            let stream = client.stream("a")
            if isCancelled { stream.task.cancel() }
            gate.open()
            for _ in 0..<3 {
                let error = try await failure { for try await _ in stream.chunks {} }
                #expect(error.kind == (isCancelled ? .cancelled : .truncatedBody))
            }
        }
    }

    @Test func readersEndAfterACompleteBody() async throws {
        try await withServer {
            try $0.serveFile(Self.pattern)
        } test: { _, client in
            let stream = client.stream("a")
            var counts: [Int] = []
            for _ in 0..<3 {
                var count = 0
                for try await chunk in stream.chunks { count += chunk.count }
                counts.append(count)
            }
            #expect(counts == [Self.pattern.count, 0, 0])
        }
    }
}
#endif
