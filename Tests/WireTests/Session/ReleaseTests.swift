import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
/// Checks that all closures of a task are released at its end, even while its handle, or its error, is kept.
@Suite("Release of closures", .timeLimit(.minutes(1)))
struct ReleaseTests {
    /// The way in which a task ends.
    enum Ending: CaseIterable {
        case completed
        case failed
        case cancelled
        case cancelledBeforeStart

        /// The path that the demo server is asked for.
        var path: String {
            switch self {
            case .completed: "echo"
            case .failed: "status/500"
            case .cancelled, .cancelledBeforeStart: "never"
            }
        }
    }

    /// Ends a suspended task, and returns its error, if it has one.
    private func end<Value>(_ task: SessionTask<Value>, _ ending: Ending) async -> NetworkError? {
        switch ending {
        case .completed, .failed: task.resume()
        case .cancelled:
            task.resume()
            await task.wait(for: .running)
            task.cancel()
        case .cancelledBeforeStart: task.cancel()
        }
        do {
            _ = try await task.value
            return nil
        } catch {
            return error
        }
    }

    private func withEchoServer(_ test: (Client) async throws -> Void) async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            if exchange.request.path == "/never" { try exchange.wait(for: gate) }
            try LoopbackServer.answerDemo(exchange)
        } test: { _, client in
            try await test(client)
            gate.open()
        }
    }

    @Test(arguments: Ending.allCases)
    func theDecoderIsReleased(ending: Ending) async throws {
        try await withEchoServer { client in
            let isReleased = LoopbackServer.Gate()
            let task = try makeDecodedTask(client, ending, isReleased)
            let error = await end(task, ending)
            try await isReleased.wait()
            withExtendedLifetime((task, error)) {}
        }
    }

    private func makeDecodedTask(
        _ client: Client, _ ending: Ending, _ isReleased: LoopbackServer.Gate
    ) throws -> SessionTask<Response<Int>> {
        let probe = Probe(isReleased)
        let request = try client.request(.post, ending.path, body: .text("x"))
        return client.session.task(
            for: request,
            decode: BodyDecoder { body, _ in
                probe.touch()
                return body.count
            })
    }

    @Test(arguments: Ending.allCases)
    func theDestinationIsReleased(ending: Ending) async throws {
        try await withEchoServer { client in
            let isReleased = LoopbackServer.Gate()
            let task = try makeDownload(client, ending, isReleased)
            let error = await end(task, ending)
            try await isReleased.wait()
            // Without a destination, the file belongs to the caller.
            if error == nil { try FileManager.default.removeItem(at: try await task.value) }
            withExtendedLifetime((task, error)) {}
        }
    }

    private func makeDownload(
        _ client: Client, _ ending: Ending, _ isReleased: LoopbackServer.Gate
    ) throws -> SessionTask<URL> {
        let probe = Probe(isReleased)
        let request = try client.request(.post, ending.path, body: .text("x"))
        return client.session.download(request, startsImmediately: false) { _, _ in
            probe.touch()
            return nil
        }
    }

    @Test(arguments: Ending.allCases)
    func theSequenceOfABodyIsReleased(ending: Ending) async throws {
        try await withEchoServer { client in
            let isReleased = LoopbackServer.Gate()
            let task = makeUpload(client, ending, isReleased)
            let error = await end(task, ending)
            try await isReleased.wait()
            // The remaining request describes the one that was sent, and cannot be sent by mistake.
            #expect(task.request?.method == .post)
            if let request = error?.request {
                let again = try await failure { try await client.session.response(for: request) }
                // A server that refuses at once can be faster than the body.
                #expect(again.kind == .requestBody || ending == .failed && again.kind == .status)
            }
            withExtendedLifetime((task, error)) {}
        }
    }

    private func makeUpload(
        _ client: Client, _ ending: Ending, _ isReleased: LoopbackServer.Gate
    ) -> SessionTask<Data> {
        let probe = Probe(isReleased)
        let chunks = AsyncStream<Data> { continuation in
            continuation.yield(Data("a".utf8))
            continuation.finish()
        }.map { chunk in
            probe.touch()
            return chunk
        }
        return client.task(.post, ending.path, body: .stream(chunks), startsImmediately: false)
    }

    @Test func droppedStreamReleasesItsBodySequence() async throws {
        try await withEchoServer { client in
            let isReleased = LoopbackServer.Gate()
            do {
                // This task never ends by itself.
                let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
                let probe = Probe(isReleased)
                continuation.yield(Data("a".utf8))
                let body = Request.Body.stream(
                    chunks.map { chunk in
                        probe.touch()
                        return chunk
                    })
                let stream = client.stream("upload", method: .post, body: body)
                await stream.task.wait(forSentBytes: 1)
                withExtendedLifetime(continuation) {}
            }
            try await isReleased.wait()
        }
    }
}
#endif
