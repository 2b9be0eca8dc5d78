import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The total of the request bodies of several tasks: from the bodies, before anything is sent.
@Suite("Progress: combined uploads", .timeLimit(.minutes(1)))
struct CombinedUploadTests {
    /// A body, its total before the task begins, and after its end.
    struct Row: Sendable, CustomStringConvertible {
        let description: String
        let before: Int64?
        /// Nil for the number of bytes that a compression leaves.
        let after: Int64?
        var headers: Headers = [:]
        let body: @Sendable (TestFolder) throws -> Request.Body
    }

    private static var chunks: AsyncStream<Data> {
        AsyncStream { continuation in
            continuation.yield(Data(count: 700))
            continuation.finish()
        }
    }

    static let rows: [Row] = [
        Row(description: "no body", before: 0, after: 0) { _ in .none },
        Row(description: "bytes", before: 700, after: 700) { _ in .data(Data(count: 700)) },
        Row(description: "no bytes", before: 0, after: 0) { _ in .data(Data()) },
        Row(description: "a file", before: 700, after: 700) { .file(try $0.file(700)) },
        Row(description: "an empty file", before: 0, after: 0) { .file(try $0.file(0)) },
        Row(description: "a missing file", before: nil, after: 0) { .file(URL(filePath: "\($0.path)/none")) },
        Row(description: "a stream of a stated length", before: 700, after: 700) { _ in .stream(chunks, length: 700) },
        Row(description: "a stream with Content-Length", before: 700, after: 700, headers: ["Content-Length": "700"]) {
            _ in .stream(chunks)
        },
        Row(description: "a stream of unknown length", before: nil, after: 700) { _ in .stream(chunks) },
        Row(description: "JSON", before: nil, after: 7) { _ in .json(["a": 1]) },
        Row(description: "compressed bytes", before: nil, after: nil) { _ in
            Request.Body.data(Data(count: 700)).compressed(.deflate)
        },
        Row(description: "a form", before: 700 + 193, after: 700 + 193) { folder in
            var form = try MultipartForm(boundary: "limit")
            form.append("summer", named: "album")
            try form.append(file: try folder.file(700), named: "photo", filename: "a.jpg")
            return .multipart(form)
        },
    ]

    @Test(arguments: rows) func totalIsThatOfTheBody(_ row: Row) async throws {
        try await inTestFolder { folder in
            try await withServer { exchange in
                _ = try exchange.readBody()
                try exchange.respond(text: "stored")
            } test: { _, client in
                let body = try row.body(folder)
                let task = client.task(.put, "file", headers: row.headers, body: body, startsImmediately: false)
                let plain = client.task(.put, "b", body: .data(Data(count: 50)), startsImmediately: false)
                var values: [Session.Progress] = []
                for await value in Session.Progress.combined(ofUploads: [task, plain]) {
                    values.append(value)
                    if values.count == 1 { for task in [task, plain] { task.resume() } }
                }
                #expect(values.first?.completedBytes == 0)
                #expect(values.first?.totalBytes == row.before.map { $0 + 50 })
                if let after = row.after { #expect(values.last?.totalBytes == after + 50) }
                #expect(values.last?.completedBytes == values.last?.totalBytes)
                #expect(values.last?.isFinished == true)
            }
        }
    }

    @Test func totalStaysWhileARequestIsSentAgain() async throws {
        let (halfway, again) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withServer { exchange in
            if exchange.request.path == "/a", !halfway.isOpen {
                _ = try exchange.readChunk(upTo: 64 << 10)
                halfway.open()
                return exchange.reset()
            }
            try exchange.wait(for: again)
            _ = try exchange.drainBody()
            try exchange.respond(text: "stored")
        } test: { _, client in
            let size = 8 << 20
            let body = Request.Body.data(Data(count: size))
            var policy = RetryPolicy()
            policy.firstDelay = .zero
            let tasks = ["a", "b"].map { path in
                client.task(.put, path, body: body, startsImmediately: false) {
                    $0.interceptors = [RetryInterceptor(policy)]
                }
            }
            var values: [Session.Progress] = []
            for await value in Session.Progress.combined(ofUploads: tasks) {
                values.append(value)
                if values.count == 1 { for task in tasks { task.resume() } }
                if halfway.isOpen { again.open() }
            }
            #expect(values.allSatisfy { $0.totalBytes == Int64(2 * size) })
            #expect(values.map(\.completedBytes) == values.map(\.completedBytes).sorted())
            #expect(values.last?.fractionCompleted == 1)
            #expect(tasks[0].uploadProgressNow.attempt == 2)
        }
    }

    @Test func aRedirectWithoutTheBodyHasNothingToSend() async throws {
        let (isAsked, answer) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        try await withServer { exchange in
            _ = try exchange.readBody()
            if exchange.request.path == "/form" {
                return try exchange.respond(status: 303, headers: [("Location", "/page")])
            }
            isAsked.open()
            try exchange.wait(for: answer)
            try exchange.respond(text: "page")
        } test: { _, client in
            let task = client.task(.post, "form", body: .data(Data(count: 500)))
            try await isAsked.wait()
            #expect(task.uploadProgressNow.totalBytes == 0)
            #expect(task.uploadProgressNow.completedBytes == 0)
            answer.open()
            _ = try await task.value
        }
    }

    @Test func aTaskThatWaitsForAConnectionHasItsTotal() async throws {
        let gate = LoopbackServer.Gate()
        var configuration = Session.Configuration.test()
        configuration.maximumConnectionsPerHost = 1
        try await withServer(configuration: configuration) { exchange in
            _ = try exchange.readBody()
            try exchange.wait(for: gate)
            try exchange.respond(text: "stored")
        } test: { _, client in
            let tasks = ["a", "b", "c"].map { client.task(.put, $0, body: .json(["a": 1])) }
            for await value in Session.Progress.combined(ofUploads: tasks) where value.totalBytes == 21 { gate.open() }
            #expect(gate.isOpen)
        }
    }

    @Test func twoReadersAndACancelledOneChangeNoTask() async throws {
        try await withServer { exchange in
            _ = try exchange.readBody()
            try exchange.respond(text: "stored")
        } test: { _, client in
            let tasks = (0..<3).map { client.task(.put, "\($0)", body: .text("four"), startsImmediately: false) }
            let readers = (0..<2).map { _ in
                Task { await Session.Progress.combined(ofUploads: tasks).collected() }
            }
            let cancelled = Task { for await _ in Session.Progress.combined(ofUploads: tasks) {} }
            cancelled.cancel()
            await cancelled.value
            for task in tasks { task.resume() }
            for reader in readers {
                let values = await reader.value
                #expect(values.last?.totalBytes == 12)
                #expect(values.last?.completedBytes == 12)
            }
            #expect(tasks.allSatisfy { $0.state == .completed })
        }
    }
}

extension TestFolder {
    /// Returns a new file of this many bytes.
    fileprivate func file(_ count: Int) throws -> URL {
        let url = URL(filePath: "\(path)/\(count)")
        try Data(count: count).write(to: url)
        return url
    }
}
