#if !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The progress of a continued download, for the rows of Documentation/Reference/ResumedDownloads.md.

extension ResumeTests {
    /// Continues a download, and returns the values of its progress and its error.
    private func progress(
        of token: ResumeData, _ client: Client, folder: TestFolder
    ) async -> (values: [Session.Progress], error: NetworkError?) {
        let task = client.download(resuming: token, to: folder.url("file"), startsImmediately: false)
        var values: [Session.Progress] = []
        for await value in task.progress {
            if values.isEmpty { task.resume() }
            values.append(value)
        }
        do throws(NetworkError) {
            _ = try await task.value
            return (values, nil)
        } catch {
            return (values, error)
        }
    }

    /// Checks what holds for each list of values.
    private func checkValues(_ values: [Session.Progress]) {
        for (value, next) in zip(values, values.dropFirst()) {
            #expect(value.attempt <= next.attempt && !value.isFinished, "\(values)")
            if value.attempt == next.attempt { #expect(value.completedBytes <= next.completedBytes, "\(values)") }
        }
        #expect(values.allSatisfy { $0.completedBytes <= $0.totalBytes ?? .max }, "\(values)")
        #expect(values.dropLast().allSatisfy { $0.fractionCompleted ?? 0 < 1 }, "\(values)")
        #expect(values.last?.isFinished == true, "\(values)")
    }

    @Test func theTotalOfSeveralPartsIsThatOfTheFile() async throws {
        let (size, total) = (100_000, Self.pattern.count)
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                let start = (exchange.request["Range"]?.dropFirst("bytes=".count).dropLast()).flatMap { Int($0) } ?? 0
                let fields = [
                    ("ETag", Self.pattern.etag), ("Content-Range", "bytes \(start)-\(start + size - 1)/\(total)"),
                ]
                try exchange.respond(status: 206, headers: fields, body: Self.pattern.bytes()[start..<start + size])
            } test: { server, client in
                let (values, error) = await progress(of: moved(token, to: server), client, folder: folder)
                #expect(error == nil)
                checkValues(values)
                #expect(values.allSatisfy { $0.totalBytes == Int64(total) }, "\(values)")
                #expect(values.last?.fractionCompleted == 1 && values.last?.attempt == 5, "\(values)")
                // Each attempt begins where the one before it ended, and ends with its own part.
                for value in values {
                    let start = Self.half + (value.attempt - 1) * size
                    #expect((Int64(start)...Int64(start + size)).contains(value.completedBytes), "\(values)")
                }
            }
        }
    }

    /// No body of a response that brings no bytes of the file counts, whatever its status.
    @Test(
        arguments: [
            101, 201, 202, 203, 204, 205, 207, 208, 226, 300, 304, 400, 401, 403, 404, 406, 410, 412, 416, 417, 425,
            429, 500, 501, 503, 599,
        ], [true, false])
    func aBodyThatIsNotTheRestDoesNotCount(status: Int, knowsLength: Bool) async throws {
        try await inTestFolder { folder in
            let first = try #require(try await token(folder: folder))
            try await withServer { exchange in
                let hasBody = ![101, 204, 205, 304].contains(status)
                let isWhole = exchange.request["Range"] == nil
                try exchange.respond(status: isWhole ? 503 : status, body: hasBody ? [1, 2] : [])
            } test: { server, client in
                let token = ResumeData(
                    url: server.url("file").absoluteString, validator: first.validator, offset: first.offset,
                    partialFile: first.partialPath, totalBytes: knowsLength ? first.totalBytes : nil)
                let (values, error) = await progress(of: token, client, folder: folder)
                #expect(error?.resumeData?.offset == Int64(Self.half))
                checkValues(values)
                #expect(values.allSatisfy { [0, Int64(Self.half)].contains($0.completedBytes) }, "\(values)")
                #expect(values.allSatisfy { $0.totalBytes == nil || $0.totalBytes == token.totalBytes }, "\(values)")
                #expect(values.last?.fractionCompleted ?? 0 < 1, "\(values)")
            }
        }
    }

    /// Bytes that are not kept do not count at the end, and no value goes beyond the file.
    @Test(arguments: WrongBody.allCases) func aWrongBodyEndsWithTheBytesThatAreKept(_ body: WrongBody) async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                try body.send(exchange)
            } test: { server, client in
                let (values, error) = await progress(of: moved(token, to: server), client, folder: folder)
                #expect(error?.kind == body.kind)
                checkValues(values)
                #expect(values.allSatisfy { $0.totalBytes == Int64(Self.pattern.count) }, "\(values)")
                #expect(values.last?.completedBytes == Int64(Self.half), "\(values)")
            }
        }
    }

    /// A whole file in place of the rest is counted from its beginning.
    @Test(arguments: [200, 412]) func aWholeFileBeginsAnAttempt(status: Int) async throws {
        try await inTestFolder { folder in
            let token = try #require(try await token(folder: folder))
            try await withServer { exchange in
                if status == 200 || exchange.request["Range"] == nil {
                    return try exchange.serveFile(Self.other, supportsRanges: false)
                }
                try exchange.respond(status: status, body: [1, 2])
            } test: { server, client in
                let (values, error) = await progress(of: moved(token, to: server), client, folder: folder)
                #expect(error == nil)
                checkValues(values)
                #expect(values.first?.completedBytes == Int64(Self.half), "\(values)")
                #expect(values.last?.completedBytes == Int64(Self.other.count), "\(values)")
                #expect(values.last?.totalBytes == Int64(Self.other.count), "\(values)")
                #expect(values.last?.attempt ?? 1 > 1, "\(values)")
            }
        }
    }
}
#endif
