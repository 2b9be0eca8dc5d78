import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Files at the destination that another program has not finished.
@Suite("Durable downloads: parts of other programs", .timeLimit(.minutes(1)))
struct ForeignPartTests {
    private static let pattern = LoopbackServer.Pattern(count: 1_000_000)
    private static let old = "Sun, 06 Nov 1994 08:49:37 GMT"

    private func download(
        _ client: Client, _ folder: TestFolder, _ foreignPart: DurableDownloadOptions.ForeignPart
    ) -> DurableDownloadTask {
        let options = DurableDownloadOptions.test { $0.foreignPart = foreignPart }
        return client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
    }

    /// Serves the file with a date of its last change, and records each request.
    private static func serve(
        _ exchange: LoopbackServer.Exchange, changed: String, _ asked: Log<String>
    ) throws {
        let range = exchange.request["Range"]
        asked.add("\(exchange.request.method) \(range ?? "-")")
        let start = exchange.requestedStart
        var fields: LoopbackServer.Fields = [
            ("Last-Modified", changed), ("Date", "Mon, 01 Jan 2024 08:49:37 GMT"), ("ETag", pattern.etag),
            ("Content-Length", "\(pattern.count - start)"),
        ]
        if range != nil { fields.append(("Content-Range", "bytes \(start)-999999/1000000")) }
        try exchange.writeHead(status: range == nil ? 200 : 206, headers: fields)
        if exchange.request.method != "HEAD" { try exchange.streamPattern(pattern, in: start..<pattern.count) }
    }

    /// The times of a file of which nothing says that it began after the server's file had changed.
    @Test(arguments: [
        (birth: 3_600.0, modified: 3_600.0), (birth: -60, modified: -3_600), (birth: -31_536_000, modified: -60),
    ])
    func timesDecide(birth: Double, modified: Double) throws {
        let now = Date(timeIntervalSince1970: 1_704_098_977)
        let rule = ForeignPartRule(
            length: 10, birth: now.addingTimeInterval(birth), modified: now.addingTimeInterval(modified), now: now,
            requiresProof: true)
        let head = ResponseHead(
            status: 200, version: .http11, target: try Target(absolute: "http://a.test/file"),
            headers: [
                "Content-Length": "20", "ETag": "\"1\"", "Last-Modified": "Mon, 01 Jan 2024 07:49:37 GMT",
                "Date": "Mon, 01 Jan 2024 08:49:37 GMT",
            ])
        guard case .leave(_) = rule.decision(on: head) else {
            Issue.record("the file is continued")
            return
        }
        let recent = ForeignPartRule(
            length: 10, birth: now.addingTimeInterval(-60), modified: now, now: now, requiresProof: true)
        #expect(recent.decision(on: head) == .take(size: 20))
    }

    @Test func partOfAnotherProgramIsContinued() async throws {
        let asked = Log<String>()
        try await withServer {
            try Self.serve($0, changed: Self.old, asked)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<300_000)), to: "file")
            let result = try await download(client, folder, .continuedIfUnchanged).value
            #expect(result.trace == [.tookForeignPart(bytes: 300_000), .continued(at: 300_000)])
            #expect(asked.all == ["HEAD -", "GET bytes=300000-"])
            #expect(Self.pattern.matches(try folder.bytes("file")))
            #expect(try folder.bytes("file").count == 1_000_000)
            #expect(try folder.names == ["file"])
        }
    }

    @Test func wholeFileOfAnotherProgramNeedsNoBody() async throws {
        let asked = Log<String>()
        try await withServer {
            try Self.serve($0, changed: Self.old, asked)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes()), to: "file")
            let result = try await download(client, folder, .continuedIfUnchanged).value
            #expect(result.trace.first == .tookForeignPart(bytes: 1_000_000))
            #expect(result.receivedBytes == 0 && result.bytes == 1_000_000)
            #expect(asked.all == ["HEAD -"])
            #expect(try folder.names == ["file"])
        }
    }

    @Test func partIsNotContinuedIfTheServersFileIsNewerUnlessForced() async throws {
        let asked = Log<String>()
        try await withServer {
            // Changed in the second of the response: later than the file here was begun.
            try Self.serve($0, changed: "Mon, 01 Jan 2024 08:49:37 GMT", asked)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<300_000)), to: "file")
            let result = try await download(client, folder, .continuedIfUnchanged).value
            #expect(
                result.trace == [
                    .leftForeignPart("the server's file can have changed since the file here was begun"), .started,
                ])
            #expect(Self.pattern.matches(try folder.bytes("file")))
            try folder.write(Data(Self.pattern.bytes(in: 0..<300_000)), to: "file")
            let forced = try await download(client, folder, .continued).value
            #expect(forced.trace == [.tookForeignPart(bytes: 300_000), .continued(at: 300_000)])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func longerFileIsReplaced() async throws {
        let asked = Log<String>()
        try await withServer {
            try Self.serve($0, changed: Self.old, asked)
        } test: { _, client, folder in
            try folder.write(Data(count: 1_000_001), to: "file")
            let result = try await download(client, folder, .continued).value
            #expect(result.trace.last == .started)
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func wrongPartIsFoundByTheDigest() async throws {
        let asked = Log<String>()
        try await withServer {
            try Self.serve($0, changed: Self.old, asked)
        } test: { _, client, folder in
            try folder.write(Data(count: 300_000), to: "file")
            let options = DurableDownloadOptions.test {
                $0.foreignPart = .continued
                $0.digest = .sha256(sha256(Self.pattern.bytes()))
            }
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            #expect(try await failure { try await task.value }.kind == .digestMismatch)
            #expect(try folder.names == [])
        }
    }

    @Test func interruptedAdoptionIsRepeated() async throws {
        let asked = Log<String>()
        try await withServer {
            try Self.serve($0, changed: Self.old, asked)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<300_000)), to: "file")
            let names = ControlNames(destination: "file")
            var control = ControlFile(
                url: try client.request(.get, "file").urlString, partialFile: names.partial)
            control.etag = Self.pattern.etag
            try folder.write(try control.encoded(), to: names.control)
            let result = try await download(client, folder, .continuedIfUnchanged).value
            #expect(result.trace.first == .tookForeignPart(bytes: 300_000))
            #expect(try folder.names == ["file"])
        }
    }

    /// 403 is that of a URL that is signed for GET.
    @Test(arguments: [403, 405, 501]) func serverWithoutHeadIsReadFromTheStart(status: Int) async throws {
        try await withServer { exchange in
            if exchange.request.method == "HEAD" { return try exchange.respond(status: status) }
            try exchange.serveFile(Self.pattern)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<300_000)), to: "file")
            let result = try await download(client, folder, .continued).value
            #expect(result.trace == [.leftForeignPart("the server answers HEAD with \(status)"), .started])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    /// A whole file that cannot be told to be the server's is left alone until the server has sent another one.
    @Test func wholeFileWithoutAValidatorSurvivesAFailure() async throws {
        try await withServer { exchange in
            guard exchange.request.method == "HEAD" else { return try exchange.respond(status: 403) }
            let weak = ("ETag", "W/" + Self.pattern.etag)
            try exchange.writeHead(headers: [weak, ("Content-Length", "\(Self.pattern.count)")])
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes()), to: "file")
            let error = try await failure { try await download(client, folder, .continued).value }
            #expect(error.status == 403)
            #expect(try folder.names == ["file"])
            #expect(Self.pattern.matches(try folder.bytes("file")))
        }
    }

    @Test func fileOfAnotherSizeThanExpectedIsLeftAlone() async throws {
        let asked = Log<String>()
        try await withServer {
            try Self.serve($0, changed: Self.old, asked)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<300_000)), to: "file")
            let options = DurableDownloadOptions.test {
                $0.foreignPart = .continued
                $0.expectedSize = 5
            }
            let task = client.download("file", to: folder.url("file"), resuming: .automatically, options: options)
            #expect(try await failure { try await task.value }.kind == .unexpectedSize)
            #expect(try folder.names == ["file"])
            #expect(try folder.bytes("file").count == 300_000)
        }
    }

    /// The file is kept as a part if the server fails after it was taken.
    @Test func fileThatWasTakenSurvivesAFailure() async throws {
        let asked = Log<String>()
        try await withServer { exchange in
            if exchange.request.method == "GET" { return try exchange.respond(status: 403) }
            try Self.serve(exchange, changed: Self.old, asked)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<300_000)), to: "file")
            let error = try await failure { try await download(client, folder, .continued).value }
            #expect(error.status == 403 && error.reason.contains("300000 bytes are kept"))
            #expect(try folder.bytes(".file.tern").count == 300_000)
        }
    }
}
