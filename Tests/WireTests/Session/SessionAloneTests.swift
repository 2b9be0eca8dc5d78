import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Uses a session without a client, from configuration to value.
@Suite("Wire: Session alone", .timeLimit(.minutes(1)))
struct SessionAloneTests {
    private struct Point: Sendable, Equatable {
        var x: Int
        var y: Int
    }

    private struct NoPoint: Error {}

    /// A custom decoder for `3,4`.
    private static let point = BodyDecoder<Point> { body, head in
        let parts = String(decoding: body, as: UTF8.self).split(separator: ",").compactMap { Int($0) }
        guard head.status == 200, parts.count == 2 else { throw NoPoint() }
        return Point(x: parts[0], y: parts[1])
    }

    @Test func sessionReturnsAValueWithoutAClient() async throws {
        let server = try LoopbackServer { try $0.respond(text: "3,4") }
        defer { server.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.headers["User-Agent"] = "alone"
        let session = Session(configuration: configuration)

        let request = try Request(.get, url: server.url)
        let response = try await session.response(for: request)
        #expect(response.status == 200 && response.value == Data("3,4".utf8))
        #expect(try await session.response(for: request, decode: Self.point).value == Point(x: 3, y: 4))

        let task = session.task(for: request, decode: Self.point)
        #expect(task.state == .suspended)
        task.resume()
        #expect(try await task.value.value == Point(x: 3, y: 4))
        #expect(task.state == .completed)
    }

    @Test func customDecoderErrorIsTheUnderlyingError() async throws {
        let server = try LoopbackServer { try $0.respond(text: "3") }
        defer { server.stop() }
        let session = Session(configuration: .test())
        let request = try Request(url: server.url)
        let error = try await failure { try await session.response(for: request, decode: Self.point) }
        #expect(error.kind == .decoding && error.underlying is NoPoint)
    }

    @Test func taskMovesNoByteUntilItIsResumed() async throws {
        let server = try LoopbackServer { try $0.respond(text: "ok") }
        defer { server.stop() }
        let session = Session(configuration: .test())
        let task = session.task(for: try Request(url: server.url))
        let other = session.task(for: try Request(url: server.url("other")), startsImmediately: true)
        _ = try await other.value
        #expect(task.state == .suspended)
        #expect(await session.tasks.count == 1)
        #expect(server.requests.map(\.target) == ["/other"])
        task.resume()
        _ = try await task.value
        #expect(server.counts.requestsReceived == 2)
        let eager = Session(configuration: .test { $0.startsImmediately = true })
        #expect(try await eager.task(for: try Request(url: server.url)).value.status == 200)
    }
}
