// For Linux only: URLSession adds fields by itself.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

/// Checks requests without the fields that every request gets, and the frames of their bodies.
@Suite("Wire: requests without default fields", .timeLimit(.minutes(1)))
struct BareRequestTests {
    private func names(_ change: (inout Request) -> Void) async throws -> [String] {
        let fields = Lock<[[String]]>([])
        let server = try LoopbackServer { exchange in
            fields.withLock { $0.append(exchange.request.headers.map { $0.name.lowercased() }.sorted()) }
            try exchange.drainBody()
            try exchange.respond(status: 200)
        }
        defer { server.stop() }
        let session = Session(configuration: .test { $0.headers["X-Every"] = "1" })
        var request = try Request(.post, "http://127.0.0.1:\(server.port)/", body: .data(Data([1]), contentType: "a/b"))
        // The fields of the last request are kept. Those of another kind do not take their place.
        _ = try await session.response(for: request)
        change(&request)
        _ = try await session.response(for: request)
        _ = try await session.response(for: request)
        await session.finishTasksAndInvalidate()
        let seen = fields.withLock { $0 }
        #expect(seen.count == 3 && seen[0].contains("accept") && seen[0].contains("x-every"))
        #expect(seen[1] == seen[2])
        return seen[2]
    }

    @Test func theRequestsOwnFieldsAreSentAlone() async throws {
        #expect(
            try await names {
                $0.sendsDefaultFields = false
                $0.headers["X-Own"] = "2"
            } == ["content-length", "content-type", "host", "x-own"])
        #expect(
            try await names { $0.sendsDefaultFields = false } == ["content-length", "content-type", "host"])
    }

    @Test func anOwnFieldReplacesADefault() async throws {
        #expect(
            try await names {
                $0.sendsDefaultFields = false
                $0.headers["Accept"] = "c/d"
            } == ["accept", "content-length", "content-type", "host"])
    }

    @Test(.enabled(if: Programs.areExpected(["nghttpd"]), "nghttpd is missing; `make test` installs it"))
    func noLengthAndNoEmptyFrameAreSentOverHTTP2() async throws {
        try await inTestFolder { folder in try await checkFrames(in: folder) }
    }

    private func checkFrames(in folder: TestFolder) async throws {
        let port = try LoopbackPort.free()
        let output = "\(folder.path)/output"
        let child = try Child(
            [
                "nghttpd", "--no-tls", "--verbose", "--address=127.0.0.1", "--htdocs=\(folder.path)", "--echo-upload",
                "\(port)",
            ], output: output)
        defer { withExtendedLifetime(child) {} }
        #expect(await LoopbackPort.wait([port]))
        let session = Session(configuration: .test { $0.usesHTTP2WithoutTLS = true })
        let chunks = AsyncStream { continuation in
            for text in ["abc", "de"] { continuation.yield(Data(text.utf8)) }
            continuation.finish()
        }
        let bodies: [Request.Body] = [
            .data(Data("hello".utf8), contentType: nil), .stream(chunks, length: 5, contentType: nil),
        ]
        for body in bodies {
            var request = try Request(.post, "http://127.0.0.1:\(port)/echo", body: body)
            request.sendsDefaultFields = false
            request.headers["X-Own"] = "2"
            #expect(try await session.response(for: request).value.count == 5)
        }
        await session.finishTasksAndInvalidate()
        let said = try String(contentsOfFile: output, encoding: .utf8)
        #expect(said.components(separatedBy: ") x-own: 2").count == 3)
        for name in ["accept", "accept-encoding", "user-agent", "content-length", "content-type"] {
            #expect(!said.contains("(stream_id=1) \(name):") && !said.contains("(stream_id=3) \(name):"), "\(name)")
        }
        let frames = said.components(separatedBy: "recv DATA frame <length=").dropFirst()
        #expect(!frames.isEmpty && frames.allSatisfy { !$0.hasPrefix("0") }, "\(frames.count)")
        #expect(frames.count { $0.prefix(20).contains("flags=0x01") } == 2)
    }
}
#endif
