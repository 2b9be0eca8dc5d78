#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Compressed bodies, made by other programs.
enum Compressed {
    /// The text `hello, compressed world` by gzip, 43 bytes.
    static let gzip = bytes("H4sIAAAAAAACA8tIzcnJ11FIzs8tKEotLk5NUSjPL8pJAQAInjQ1FwAAAA==")
    /// The same text by zlib: the coding that HTTP calls deflate.
    static let deflate = bytes("eJzLSM3JyddRSM7PLShKLS5OTVEozy/KSQEAaLII3g==")
    /// 256 KiB of zeros by gzip, 289 bytes.
    static let bomb = bytes(
        """
        H4sIAAAAAAACA+3BMQEAAADCoPVP7W0HoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA3gAi6g7iAAAEAA==
        """)

    private static func bytes(_ base64: String) -> [UInt8] { Array(Data(base64Encoded: base64) ?? Data()) }
}

@Suite("Wire: decompression", .timeLimit(.minutes(1)))
struct DecompressionTests {
    @Test(arguments: [("gzip", Compressed.gzip), ("deflate", Compressed.deflate), ("GZIP", Compressed.gzip)])
    func compressedBodyIsDecompressed(coding: String, body: [UInt8]) async throws {
        try await withServer { exchange in
            let accepted = exchange.request["Accept-Encoding"] ?? ""
            guard accepted.contains("gzip"), accepted.contains("deflate") else {
                return try exchange.respond(status: 406)
            }
            try exchange.respond(headers: [("Content-Encoding", coding)], body: body)
        } test: { _, client in
            let response = try await client.response(for: client.request(.get, ""), as: String.self)
            #expect(response.value == "hello, compressed world")
            #expect(response.metrics.decodedBodyBytes == 23)
            var text = ""
            for try await line in client.stream("").lines { text += line }
            #expect(text == "hello, compressed world")
        }
    }

    @Test func decompressionCanBeSwitchedOff() async throws {
        try await withServer(configuration: .test { $0.decompresses = false }) { exchange in
            guard exchange.request["Accept-Encoding"] == nil else { return try exchange.respond(status: 406) }
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Compressed.gzip)
        } test: { _, client async throws in
            #expect(try await Array(client.get("")) == Compressed.gzip)
        }
    }

    @Test func bombIsStoppedAtTheLimit() async throws {
        let configuration = Session.Configuration.test { $0.maximumDecompressedSize = 64 << 10 }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Compressed.bomb)
        } test: { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .tooLarge)
            #expect(error.reason.contains("decompresses to more than 65536 bytes"))
            let streamed = try await failure { for try await _ in client.stream("").chunks {} }
            #expect(streamed.kind == .tooLarge)
        }
    }

    @Test func bodyUpToTheLimitIsAccepted() async throws {
        let configuration = Session.Configuration.test { $0.maximumDecompressedSize = 256 << 10 }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Compressed.bomb)
        } test: { _, client in
            let response = try await client.response(for: client.request(.get, ""))
            // Compared outside of the macro: a failed expectation would print both.
            let isWhole = response.value == Data(count: 256 << 10)
            #expect(isWhole)
            #expect(response.metrics.receivedBytes < 1_000)
            #expect(response.metrics.decodedBodyBytes == 256 << 10)
        }
    }

    @Test func aStreamThatIsCutInsideARightFrameIsTruncated() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Array(Compressed.gzip.dropLast(12)))
        } test: { _, client in
            let error = try await failure { for try await _ in client.stream("").chunks {} }
            #expect(error.kind == .truncatedBody)
            #expect(error.metrics?.decodedBodyBytes ?? 0 > 0)
            try await inTestFolder { folder in
                let download = client.download("", to: folder.url("f"))
                let error = try await failure { try await download.value }
                #expect(error.kind == .truncatedBody)
                #expect(try folder.names.isEmpty)
            }
        }
    }

    @Test(arguments: ["identity", "none", "None", "utf-8", "a", "gzip, a", "gzip;q=1"])
    func unknownCodingIsDeliveredUnchanged(coding: String) async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", coding)], text: "as it is")
        } test: { _, client in
            #expect(try await client.get("", as: String.self) == "as it is")
            var text = ""
            for try await line in client.stream("").lines { text += line }
            #expect(text == "as it is")
        }
    }

    @Test func streamInAnUnrequestedCodingIsMalformed() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", "compress")], body: Compressed.gzip)
        } test: { _, client in
            let error = try await failure { for try await _ in client.stream("").chunks {} }
            #expect(error.kind == .malformedResponse)
            #expect(error.reason.contains("is encoded as compress"))
        }
    }

    @Test func progressOfACompressedDownloadCountsDecompressedBytes() async throws {
        try await withServer { exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: Compressed.bomb)
        } test: { _, client in
            try await inTestFolder { folder in
                let task = client.download("", to: folder.url("f"))
                var last: Session.Progress?
                for await progress in task.progress {
                    #expect(progress.totalBytes == nil)
                    last = progress
                }
                #expect(last?.completedBytes == 256 << 10 && last?.isFinished == true)
                let metrics = try #require(task.metrics)
                #expect(metrics.decodedBodyBytes == 256 << 10 && metrics.receivedBytes < 1_000)
                #expect(try folder.bytes("f").count == 256 << 10)
            }
        }
    }

    @Test func corruptBodyIsMalformed() async throws {
        var corrupt = Compressed.gzip
        corrupt[12] ^= 0xFF
        corrupt[13] ^= 0xFF
        try await withServer { [corrupt] exchange in
            try exchange.respond(headers: [("Content-Encoding", "gzip")], body: corrupt)
        } test: { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .malformedResponse)
            #expect(error.reason.contains("cannot be decompressed") && !error.reason.contains("not HTTP"))
        }
    }
}
#endif
