#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Public bug reports of other clients about downloads, tried on Tern. Each test names its report.
@Suite("Public reports: downloads", .timeLimit(.minutes(1)))
struct DownloadReportTests {
    private static let pattern = LoopbackServer.Pattern(count: 1_000_000, seed: 1)
    private static let half = 500_000

    /// Returns the data of a download that was cut off after its first half, for the server of the next attempt.
    private func resumeData(in folder: TestFolder, offset: Int? = nil) async throws -> ResumeData {
        var resumeData: ResumeData?
        try await withServer { exchange in
            try exchange.writeHead(
                headers: [("ETag", Self.pattern.etag), ("Content-Length", String(Self.pattern.count))])
            try exchange.streamPattern(Self.pattern, in: 0..<(offset ?? Self.half))
            try exchange.waitUntilReceived()
            exchange.close()
        } test: { _, client in
            let task = client.download("file", to: folder.url("file"), options: Download.Options(isResumable: true))
            resumeData = try await failure { try await task.value }.resumeData
        }
        return try #require(resumeData)
    }

    private func moved(_ data: ResumeData, to server: LoopbackServer, offset: Int64? = nil) -> ResumeData {
        ResumeData(
            url: server.url("file").absoluteString, validator: data.validator, offset: offset ?? data.offset,
            partialFile: data.partialPath, totalBytes: data.totalBytes)
    }

    /// xroche/httrack #428: a cache that works in blocks answers with a range that begins earlier (RFC 9110 §14.4).
    @Test func aRangeThatBeginsEarlierDoublesNoBytes() async throws {
        try await inTestFolder { folder in
            let data = try await resumeData(in: folder)
            try await withServer { exchange in
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                let start = Self.half - 4_096
                try exchange.writeHead(
                    status: 206,
                    headers: [
                        ("ETag", Self.pattern.etag), ("Content-Length", String(Self.pattern.count - start)),
                        ("Content-Range", "bytes \(start)-\(Self.pattern.count - 1)/\(Self.pattern.count)"),
                    ])
                try exchange.streamPattern(Self.pattern, in: start..<Self.pattern.count)
            } test: { server, client in
                _ = try await client.download(resuming: moved(data, to: server), to: folder.url("file")).value
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(Self.pattern.matches(try folder.bytes("file")))
            }
        }
    }

    /// nextcloud/updater #671 and steipete/AFDownloadRequestOperation #15: the partial file is already whole, so the
    /// server refuses the range behind its end.
    @Test func aPartThatIsWholeAlreadyIsTheFile() async throws {
        try await inTestFolder { folder in
            let data = try await resumeData(in: folder)
            let part = folder.url(data.partialFile)
            var bytes = [UInt8]()
            for chunk in Self.pattern.bytes() { bytes.append(chunk) }
            try Data(bytes).write(to: part)
            try await withServer { exchange in
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                try exchange.respond(
                    status: 416,
                    headers: [("Content-Range", "bytes */\(Self.pattern.count)"), ("ETag", Self.pattern.etag)])
            } test: { server, client in
                let whole = moved(data, to: server, offset: Int64(Self.pattern.count))
                _ = try await client.download(resuming: whole, to: folder.url("file")).value
                #expect(Self.pattern.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(try folder.names == ["file"])
            }
        }
    }

    /// owncloud/client #2280, novoda/download-manager #442 and dynamical-org/reformatters #936: the file has shrunk, so
    /// each attempt to continue is refused with 416.
    @Test func aFileThatShrankIsFetchedWhole() async throws {
        let smaller = LoopbackServer.Pattern(count: 100_000, seed: 2)
        try await inTestFolder { folder in
            let data = try await resumeData(in: folder)
            try await withServer { exchange in
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(smaller) }
                try exchange.respond(status: 416, headers: [("Content-Range", "bytes */\(smaller.count)")])
            } test: { server, client in
                _ = try await client.download(resuming: moved(data, to: server), to: folder.url("file")).value
                #expect(smaller.matches(try folder.bytes("file")))
                #expect(try folder.bytes("file").count == smaller.count)
                #expect(server.requests.count == 2)
            }
        }
    }

    /// voidzero-dev/vite-plus #2452: a partial response whose range contradicts itself is not appended.
    @Test(arguments: ["bytes 500000-999998/1000000", "bytes 500000-999999/999999", "bytes 999999-500000/1000000"])
    func aRangeThatContradictsItselfIsNotAppended(range: String) async throws {
        try await inTestFolder { folder in
            let data = try await resumeData(in: folder)
            try await withServer { exchange in
                guard exchange.request["Range"] != nil else { return try exchange.serveFile(Self.pattern) }
                try exchange.respond(
                    status: 206, headers: [("ETag", Self.pattern.etag), ("Content-Range", range)],
                    body: [UInt8](repeating: 0xFF, count: Self.half))
            } test: { server, client in
                _ = try await client.download(resuming: moved(data, to: server), to: folder.url("file")).value
                #expect(try folder.bytes("file").count == Self.pattern.count)
                #expect(Self.pattern.matches(try folder.bytes("file")))
            }
        }
    }

    /// jshttp/content-disposition #20, hoppscotch #6605, mozilla-mobile/android-components #11054, supabase/storage
    /// #1385 and kevva/download #128.
    @Test(arguments: [
        ("attachment; filename=\"file.png\"; filename*=utf8''other.png", "file.png"),
        ("attachment; filename=\"plain.txt\"; filename*=iso-8859-1''bad%G1name.txt", "plain.txt"),
        ("attachment; filename=\"plain.txt\"; filename*=UTF-8''cut%", "plain.txt"),
        ("attachment;filename*=utf-8''Java8%2064%E4%BD%8D%2Eexe;filename=\"other.exe\"", "Java8 64位.exe"),
        ("attachment; size=1049971; filename*=iso-8859-1'fr'Fran%E7ais.txt", "Français.txt"),
        ("attachment; filename=John; filename*=UTF-8''report(1).pdf", "report(1).pdf"),
    ])
    func theNameOfAFileIsThatOfTheServer(field: String, name: String) async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                try exchange.respond(headers: [("Content-Disposition", field)], text: "x")
            } test: { _, client in
                let head = try await client.response(for: try client.request(.get, "file")).head
                #expect(head.suggestedFilename == name)
            }
        }
    }

    /// nodejs/node #47130: with one connection and `Connection: close`, waiting requests were sent on the closed
    /// connection.
    @Test func requestsThatWaitForOneConnectionAreNotLost() async throws {
        let configuration = Session.Configuration.test { $0.maximumConnectionsPerHost = 1 }
        try await withServer(configuration: configuration) { exchange in
            _ = try exchange.readBody()
            exchange.closeAfterResponse()
            try exchange.respond(text: "done")
        } test: { server, client in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await client.post("x", headers: ["Connection": "close"], body: .text("a"), as: String.self)
                    }
                }
                for try await text in group { #expect(text == "done") }
            }
            #expect(server.requests.count == 20)
        }
    }
}
#endif
