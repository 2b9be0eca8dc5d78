import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Responses that a policy writes to a file at their head, in place of memory.
@Suite("Wire: responses that become downloads", .timeLimit(.minutes(1)))
struct BecomeDownloadTests {
    /// Makes a download of each response with a long body.
    private struct LongToFile: SessionPolicy {
        let file: URL
        var options = Download.Options()

        @concurrent func disposition(
            of response: ResponseHead, for task: AnySessionTask
        ) async throws -> ResponseDisposition? {
            (response.contentLength ?? .max) >= 1_000 ? .becomeDownload(to: file, options: options) : nil
        }
    }

    /// Sends as many bytes as its path says; `/gzip` is compressed, and `/missing` is refused.
    private static let handler: LoopbackServer.Handler = { exchange in
        switch exchange.request.path {
        case "/missing":
            try exchange.respond(status: 404, text: String(repeating: "n", count: 2_000))
        case "/cut":
            try exchange.writeHead(headers: [("Content-Length", "5000"), ("ETag", "\"a\"")])
            try exchange.write([UInt8](repeating: 7, count: 2_000))
            try exchange.waitForClientToClose()
        case let path:
            let count = Int(path.dropFirst()) ?? 0
            try exchange.writeHead(headers: [("Content-Length", "\(count)")])
            try exchange.write([UInt8](repeating: 7, count: count))
        }
    }

    private func withPolicy(
        options: Download.Options = Download.Options(), observer: (any SessionObserver)? = nil,
        _ test: (LoopbackServer, Client, TestFolder) async throws -> Void
    ) async throws {
        try await inTestFolder { folder in
            let policy = LongToFile(file: folder.url("file"), options: options)
            let configuration = Session.Configuration.test {
                $0.policy = policy
                $0.observers = observer.map { [$0] } ?? []
            }
            try await withServer(configuration: configuration, Self.handler) { server, client in
                try await test(server, client, folder)
            }
        }
    }

    @Test(arguments: [1_000, 3 << 20], [false, true])
    func aLongResponseIsWrittenToAFile(count: Int, hasHandle: Bool) async throws {
        try await withPolicy { _, client, folder in
            let request = try client.request(.get, "\(count)") { $0.maximumBodySize = 10 }
            let response =
                hasHandle
                ? try await client.session.task(for: request, startsImmediately: true).value
                : try await client.session.response(for: request)
            #expect(response.value.isEmpty && response.file == folder.url("file"))
            #expect(response.metrics.decodedBodyBytes == Int64(count))
            #expect(try folder.bytes("file") == Data(repeating: 7, count: count))
            #expect(try folder.names == ["file"])
        }
    }

    @Test func aShortResponseStaysInMemory() async throws {
        try await withPolicy { _, client, folder in
            let response = try await client.response(for: client.request(.get, "999"))
            #expect(response.value.count == 999 && response.file == nil)
            #expect(try folder.names.isEmpty)
        }
    }

    @Test func aRefusedResponseWritesNoFile() async throws {
        try await withPolicy { _, client, folder in
            let error = try await failure { try await client.get("missing") }
            #expect(error.status == 404 && error.body.count == 2_000)
            #expect(try folder.names.isEmpty)
        }
    }

    @Test func aTypedValueNeedsItsBody() async throws {
        try await withPolicy { _, client, folder in
            let missing: String? = try await client.get("1000") { $0.validation = .any }
            #expect(missing == nil)
            let error = try await failure { try await client.get("1000", as: Int.self) { $0.validation = .any } }
            #expect(error.kind == .decoding && error.reason.contains("a policy made a download of it"))
            #expect(try folder.bytes("file").count == 1_000)
        }
    }

    @Test func theOptionsAreThoseOfADownload() async throws {
        try await withPolicy(options: Download.Options(existing: .keepBoth)) { _, client, folder in
            for _ in 0..<2 { try await client.get("1000") }
            #expect(try folder.names == ["file", "file-1"])
        }
    }

    @Test func aResumableOneKeepsItsPart() async throws {
        try await withPolicy(options: Download.Options(isResumable: true)) { server, client, folder in
            let task = client.task(.get, "cut")
            for await progress in task.progress where progress.completedBytes >= 2_000 {
                task.cancel()
                break
            }
            let error = try await failure { try await task.value }
            #expect(error.isCancelled && error.resumeData?.totalBytes == 5_000)
            #expect(try folder.names.count == 1)
        }
    }

    @Test func downloadsAndStreamsKeepTheirOwnPlace() async throws {
        try await withPolicy { _, client, folder in
            let file = try await client.download("2000", to: folder.url("own")).value
            #expect(file == folder.url("own"))
            var count = 0
            for try await chunk in client.stream("2000") { count += chunk.count }
            #expect(count == 2_000)
            #expect(try folder.names == ["own"])
        }
    }

    private final class Ends: SessionObserver {
        let log = Mutex<[String]>([])

        func didObserve(_ event: TaskRegistry.Event) {
            let text: String? =
                switch event {
                case .fileMoved(_, let file): "moved \(file.lastPathComponent)"
                case .completed(let end): "ended \(end.file?.lastPathComponent ?? "-")"
                default: nil
                }
            if let text { log.withLock { $0.append(text) } }
        }
    }

    @Test func theFileIsReportedWithTheEnd() async throws {
        let ends = Ends()
        try await withPolicy(observer: ends) { _, client, _ in
            try await client.get("1000")
            await client.session.finishTasksAndInvalidate()
            #expect(ends.log.withLock { $0 } == ["moved file", "ended file"])
        }
    }

    @Test func aDestinationThatIsNoFileIsAnError() async throws {
        struct Wrong: SessionPolicy {
            @concurrent func disposition(
                of response: ResponseHead, for task: AnySessionTask
            ) async throws -> ResponseDisposition? {
                URL(string: "https://a.example/x").map { .becomeDownload(to: $0) }
            }
        }
        try await withServer(configuration: .test { $0.policy = Wrong() }, Self.handler) { _, client in
            let error = try await failure { try await client.get("1000") }
            #expect(error.kind == .policy)
        }
    }
}
