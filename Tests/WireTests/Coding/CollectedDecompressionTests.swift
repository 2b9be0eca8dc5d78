#if os(Linux) && !TERN_URLSESSION
@testable import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Compares the three ways to receive a compressed body: collected, streamed, and downloaded.
@Suite("Wire: decompression in three ways", .timeLimit(.minutes(1)))
struct CollectedDecompressionTests {
    enum Way: CaseIterable {
        case collected
        /// Collected by a task with a handle.
        case task
        case streamed
        case download

        /// Returns the body of the response to a path.
        func body(of path: String, _ client: Client) async throws -> Data {
            switch self {
            case .collected:
                return try await client.get(path)
            case .task:
                return try await client.task(.get, path, as: Data.self).value
            case .streamed:
                var body = Data()
                for try await chunk in client.stream(path).chunks { body += chunk }
                return body
            case .download:
                var result: Result<Data, any Error> = .success(Data())
                try await inTestFolder { folder in
                    do {
                        _ = try await client.download(path, to: folder.url("f")).value
                        result = .success(try folder.bytes("f"))
                    } catch {
                        result = .failure(error)
                    }
                    // A body that fails leaves no file.
                    let isEmpty = try folder.names.isEmpty
                    #expect(isEmpty == (CollectedDecompressionTests.error(of: result) != nil))
                }
                return try result.get()
            }
        }
    }

    private static func error(of result: Result<Data, any Error>) -> (any Error)? {
        if case .failure(let error) = result { error } else { nil }
    }

    struct Sample: Sendable, CustomTestStringConvertible {
        let coding: String
        let body: [UInt8]

        var testDescription: String { coding }

        /// The text `hello, compressed world` in each coding that is offered.
        static let all = [
            Sample(coding: "gzip", body: Compressed.gzip), Sample(coding: "deflate", body: Compressed.deflate),
            Sample(coding: "br", body: bytes("obAAwC8JQlaWg2wCTJZwUUdy+kHvAA==")),
            Sample(coding: "zstd", body: bytes("KLUv/SQXuQAAaGVsbG8sIGNvbXByZXNzZWQgd29ybGQANxEW")),
        ].filter { ContentDecoder.acceptEncoding.contains($0.coding) }

        private static func bytes(_ base64: String) -> [UInt8] { Array(Data(base64Encoded: base64) ?? Data()) }
    }

    private static var text: Data { Data("hello, compressed world".utf8) }

    /// Pseudo-random lower-case letters, which compress to about 60%.
    private static func letters(_ count: Int) -> Data {
        var state: UInt64 = 14
        return Data(
            (0..<count).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(97 + (state >> 33) % 26)
            })
    }

    @Test(arguments: Sample.all, Way.allCases)
    func bodyCutInsideARightLengthIsTruncated(sample: Sample, way: Way) async throws {
        try await withServer { exchange in
            let count = Int(exchange.request.path.dropFirst()) ?? 0
            try exchange.respond(headers: [("Content-Encoding", sample.coding)], body: Array(sample.body.prefix(count)))
        } test: { _, client in
            for count in 1..<sample.body.count {
                let error = try await failure { try await way.body(of: "\(count)", client) }
                #expect(error.kind == .truncatedBody, "\(count) of \(sample.body.count): \(error)")
            }
            #expect(try await way.body(of: "\(sample.body.count)", client) == Self.text)
            // An empty body needs no decompression.
            #expect(try await way.body(of: "0", client).isEmpty)
        }
    }

    @Test(arguments: Way.allCases)
    func largeBodyCutInsideARightLengthIsTruncated(way: Way) async throws {
        let letters = Self.letters(3 << 20)
        let whole = Array(try Deflater.compress(letters, .gzip))
        try await withServer { exchange in
            let cut = exchange.request.path == "/half" ? whole.count / 2 : whole.count
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: whole.prefix(cut))
        } test: { _, client in
            let error = try await failure { try await way.body(of: "half", client) }
            #expect(error.kind == .truncatedBody)
            #expect(error.reason.contains("of its content"))
            // Compared outside of the macro: a failed expectation would print both.
            let isWhole = try await way.body(of: "whole", client) == letters
            #expect(isWhole)
        }
    }

    /// Several members, zeros after the end, and empty elements in the list of codings (RFC 9110 §5.6.1).
    @Test(arguments: Way.allCases)
    func gzipFormsOfServersAreAccepted(way: Way) async throws {
        let gzip = Compressed.gzip
        let bodies: [(coding: String, body: [UInt8], times: Int)] = [
            ("gzip", gzip + gzip, 2), ("gzip", gzip + gzip + gzip, 3), ("x-gzip", gzip, 1),
            ("gzip", gzip + [UInt8](repeating: 0, count: 700), 1), ("gzip,", gzip, 1), (", gzip ,", gzip, 1),
            ("gzip, identity", gzip, 1), ("gzip", gzip + gzip + [0], 2),
        ]
        try await withServer { exchange in
            let sample = bodies[Int(exchange.request.path.dropFirst()) ?? 0]
            try exchange.respond(headers: [("Content-Encoding", sample.coding)], body: sample.body)
        } test: { _, client async throws in
            for (index, sample) in bodies.enumerated() {
                let expected = (0..<sample.times).reduce(into: Data()) { body, _ in body += Self.text }
                #expect(try await way.body(of: "\(index)", client) == expected, "\(sample.coding), \(index)")
            }
        }
    }

    /// In one field and in two, in the order in which they were applied.
    @Test(arguments: Way.allCases)
    func severalCodingsAreRemoved(way: Way) async throws {
        let twice = Array(try Deflater.compress(Data(Compressed.deflate), .gzip))
        let forms = [
            ["deflate, gzip"], ["deflate", "gzip"], ["identity, deflate", "", "gzip, identity"], ["Deflate,X-Gzip"],
        ]
        try await withServer { exchange in
            let (form, count) = (exchange.request.path.hasPrefix("/cut") ? 0 : 1, exchange.request.path.dropFirst(4))
            let fields = forms[form == 0 ? 0 : Int(count) ?? 0].map { ("Content-Encoding", $0) }
            try exchange.respond(headers: fields, body: form == 0 ? Array(twice.prefix(Int(count) ?? 0)) : twice)
        } test: { _, client async throws in
            for index in forms.indices { #expect(try await way.body(of: "all\(index)", client) == Self.text) }
            for count in 1..<twice.count {
                let error = try await failure { try await way.body(of: "cut\(count)", client) }
                #expect(error.kind == .truncatedBody, "\(count): \(error)")
            }
        }
    }

    /// The bytes can be content, which must not be lost without an error.
    @Test(arguments: Way.allCases)
    func bytesAfterThePaddingAreMalformed(way: Way) async throws {
        let gzip = Compressed.gzip
        let bodies = [
            gzip + [0] + gzip, gzip + [UInt8](repeating: 0, count: 70_000) + gzip, gzip + [10], gzip + [0, 1],
        ]
        try await withServer { exchange in
            let body = bodies[Int(exchange.request.path.dropFirst()) ?? 0]
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: body)
        } test: { _, client in
            for index in bodies.indices {
                let error = try await failure { try await way.body(of: "\(index)", client) }
                #expect(error.kind == .malformedResponse, "\(index): \(error)")
            }
        }
    }

    @Test(arguments: Way.allCases)
    func damagedBodyIsMalformed(way: Way) async throws {
        var damaged = Compressed.gzip
        damaged[12] ^= 0xFF
        damaged[13] ^= 0xFF
        try await withServer { [damaged] exchange in
            switch exchange.request.path {
            case "/damaged": try exchange.respond(headers: [("Content-Encoding", "gzip")], body: damaged)
            case "/junk": try exchange.respond(headers: [("Content-Encoding", "gzip")], text: "this is not gzip")
            case "/unknown": try exchange.respond(headers: [("Content-Encoding", "compress")], body: damaged)
            default: try exchange.respond(headers: [("Content-Encoding", "gzip, gzip")], body: damaged)
            }
        } test: { _, client in
            for path in ["damaged", "junk", "unknown", "twice"] {
                let error = try await failure { try await way.body(of: path, client) }
                #expect(error.kind == .malformedResponse, "\(path): \(error)")
            }
        }
    }

    @Test(arguments: [204, 304, 200])
    func responseWithoutABodyHasNothingToDecompress(status: Int) async throws {
        let configuration = Session.Configuration.test { $0.validation.statuses = { _ in true } }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(
                status: status, headers: [("Content-Encoding", "gzip")], body: status == 200 ? Compressed.gzip : [])
        } test: { _, client in
            let method = status == 200 ? Request.Method.head : .get
            let response = try await client.response(for: client.request(method, ""))
            #expect(response.status == status && response.value.isEmpty)
        }
    }

    // MARK: Limits

    @Test func memoryLimitAppliesToTheDecompressedBody() async throws {
        let letters = Self.letters(1 << 20)
        let body = Array(try Deflater.compress(letters, .gzip))
        try await withServer(configuration: .test { $0.errorBodyLimit = 100 }) { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: body)
        } test: { _, client in
            for limit in [1, 64 << 10, (1 << 20) - 1] {
                var request = try client.request(.get, "")
                request.maximumBodySize = limit
                let error = try await failure { [request] in try await client.response(for: request) }
                #expect(error.kind == .tooLarge && error.reason.contains("more than \(limit) bytes"))
                #expect(error.body == letters.prefix(min(limit, 100)))
            }
            var request = try client.request(.get, "")
            request.maximumBodySize = 1 << 20
            let isWhole = try await client.response(for: request).value == letters
            #expect(isWhole)
        }
    }

    /// Receives 1 GiB of zeros in about 1 MiB, with a limit of 4 MiB.
    @Test(.disabled(if: ProcessFacts.isSanitized, ProcessFacts.sanitized))
    func collectedBombStaysWithinItsLimit() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report { try await CollectedDecompressionTests.collectBomb() }
        }
    }

    private static func collectBomb() async throws {
        let member = Array(try Deflater.compress(Data(count: 64 << 20), .gzip))
        let bomb = Array(repeatElement(member, count: 16).joined())
        try await withServer(configuration: .test { $0.maximumBodySize = 4 << 20 }) { exchange in
            try exchange.respond(
                headers: [("Content-Encoding", "gzip")], body: exchange.request.path == "/" ? [] : bomb)
        } test: { _, client in
            for _ in 0..<50 { try await client.get("") }
            try MemoryTests.forgetPeak()
            let before = try ProcessFacts.residentSize()
            for _ in 0..<4 {
                let error = try await failure { try await client.get("bomb") }
                #expect(error.kind == .tooLarge)
            }
            let peak = try MemoryTests.peakSize() - before
            guard peak < 24 << 20 else { throw CheckFailure(description: "\(peak >> 10) KiB above the start") }
        }
    }

    @Test(arguments: Way.allCases)
    func collectedBodyBeyondTheRatioIsRefused(way: Way) async throws {
        let zeros = Array(try Deflater.compress(Data(count: 32 << 20), .gzip))
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: zeros)
        }
        try await withServer(handler) { _, client in
            let error = try await failure { try await way.body(of: "", client) }
            #expect(error.kind == .tooLarge && error.reason.contains("maximumDecompressionRatio"))
        }
        try await withServer(configuration: .test { $0.maximumDecompressionRatio = 1_100 }, handler) {
            _, client async throws in
            #expect(try await way.body(of: "", client).count == 32 << 20)
        }
    }

    // MARK: Refused responses

    @Test func bodyOfARefusedStatusIsDecompressedForItsError() async throws {
        let letters = Self.letters(300 << 10)
        let body = Array(try Deflater.compress(letters, .gzip))
        try await withServer(configuration: .test { $0.errorBodyLimit = 64 << 10 }) { exchange in
            switch exchange.request.path {
            case "/small":
                try exchange.respond(status: 500, headers: [("Content-Encoding", "gzip")], body: Compressed.gzip)
            case "/cut":
                try exchange.respond(
                    status: 500, headers: [("Content-Encoding", "gzip")], body: Array(Compressed.gzip.dropLast(12)))
            case "/junk": try exchange.respond(status: 500, headers: [("Content-Encoding", "gzip")], text: "no gzip")
            default: try exchange.respond(status: 500, headers: [("Content-Encoding", "gzip")], body: body)
            }
        } test: { _, client in
            let small = try await failure { try await client.get("small") }
            #expect(small.kind == .status && small.body == Self.text)
            let large = try await failure { try await client.get("large") }
            #expect(large.kind == .status && large.body == letters.prefix(64 << 10))
            let cut = try await failure { try await client.get("cut") }
            #expect(cut.kind == .status && !cut.body.isEmpty && Self.text.starts(with: cut.body))
            let junk = try await failure { try await client.get("junk") }
            #expect(junk.kind == .status && junk.status == 500)
        }
    }

    // MARK: Progress

    @Test func progressOfACollectedBodyCountsItsContent() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Compressed.bomb)
        } test: { _, client in
            let task = client.task(.get, "", as: Data.self)
            let all = await task.progress.collected()
            #expect(all.allSatisfy { $0.totalBytes == nil })
            #expect(all.last?.completedBytes == 256 << 10 && all.last?.isFinished == true)
            #expect(task.metrics?.decodedBodyBytes == 256 << 10)
            #expect(task.metrics?.receivedBytes ?? .max < 1_000)
        }
    }

    /// A body that is declared as encoded, but is not, is counted as received.
    @Test func progressOfAnUnencodedStreamCountsItsBytes() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", "identity")], body: [UInt8](repeating: 7, count: 5_000))
        } test: { _, client in
            try await inTestFolder { folder in
                let task = client.download("", to: folder.url("f"))
                let all = await task.progress.collected()
                #expect(all.last?.completedBytes == 5_000 && all.last?.totalBytes == 5_000)
            }
        }
    }

    /// Compressed responses leave their connection for the next request.
    @Test func connectionIsUsedAgain() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Compressed.gzip)
        } test: { server, client async throws in
            for _ in 0..<5 { #expect(try await client.get("") == Self.text) }
            #expect(server.counts.acceptedConnections == 1)
        }
    }
}
#endif
