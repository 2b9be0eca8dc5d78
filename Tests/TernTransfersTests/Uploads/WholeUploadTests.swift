import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Uploads of a file in one request over the loopback interface, whose server breaks, refuses and loses them.
@Suite("Whole uploads", .timeLimit(.minutes(1)))
struct WholeUploadTests {
    static let pattern = LoopbackServer.Pattern(count: 1 << 20, seed: 3)
    static let secret = "5ecre7"

    /// The two kinds of a whole upload.
    enum Kind: CaseIterable {
        case put, form

        func place(_ path: String = "a", secret: String = WholeUploadTests.secret) -> WholeUpload {
            let url = "\(path)?X-Amz-Signature=\(secret)"
            return self == .put ? .put(url) : .multipart(url, fileField: "photo", formFields: ["b": "2", "a": "1"])
        }
    }

    /// A request that was received to its end.
    struct Received: Sendable {
        let target: String
        let method: String
        let fields: [String: String]
        let body: [UInt8]
    }

    /// Receives uploads, and stores those that are whole.
    final class Server: Sendable {
        let stored = Log<Received>()

        func store(_ exchange: LoopbackServer.Exchange, status: Int = 200, headers: LoopbackServer.Fields = []) throws {
            let request = exchange.request
            var fields: [String: String] = [:]
            for name in ["Content-Type", "Content-Length", "Content-Digest", "Repr-Digest", "X-Extra"] {
                fields[name] = request[name]
            }
            let body = try exchange.readBody()
            stored.add(Received(target: request.target, method: request.method, fields: fields, body: body))
            try exchange.respond(status: status, headers: headers, body: Array("stored".utf8))
        }
    }

    private func options(_ change: (inout DurableUploadOptions) -> Void = { _ in }) -> DurableUploadOptions {
        var options = DurableUploadOptions()
        options.retry.policy.firstDelay = .zero
        change(&options)
        return options
    }

    /// Runs a server whose first requests are answered by `faults`, and which stores the others.
    private func withUploads(
        count: Int = pattern.count, _ faults: [LoopbackServer.Handler] = [],
        test: (Server, LoopbackServer, Client, TestFolder, URL) async throws -> Void
    ) async throws {
        let uploads = Server()
        try await withServer { exchange in
            if exchange.number <= faults.count { return try faults[exchange.number - 1](exchange) }
            try uploads.store(exchange)
        } test: { server, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<count)), to: "a.bin")
            try await test(uploads, server, client, folder, folder.url("a.bin"))
        }
    }

    /// Returns a handler that answers with a status.
    private static func refuse(_ status: Int, _ headers: LoopbackServer.Fields = []) -> LoopbackServer.Handler {
        { exchange in
            _ = try exchange.drainBody()
            try exchange.respond(status: status, headers: headers)
        }
    }

    private static func cut(_ exchange: LoopbackServer.Exchange) throws {
        _ = try exchange.readChunk(upTo: 64 << 10)
        exchange.reset()
    }

    private func expectWhole(
        _ received: Received?, _ kind: Kind, count: Int = pattern.count,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let received = try #require(received, sourceLocation: sourceLocation)
        let file = Self.pattern.bytes(in: 0..<count)
        #expect(received.fields["Content-Length"] == "\(received.body.count)", sourceLocation: sourceLocation)
        guard kind == .form else {
            #expect(received.method == "PUT" && received.body == file, sourceLocation: sourceLocation)
            return
        }
        let type = try #require(received.fields["Content-Type"])
        let boundary = try #require(type.split(separator: "boundary=").last)
        func part(_ name: String, _ more: String = "") -> String {
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\(more)\r\n\r\n"
        }
        let head =
            part("a") + "1\r\n" + part("b") + "2\r\n"
            + part("photo", "; filename=\"a.bin\"\r\nContent-Type: application/octet-stream")
        let whole = Array(head.utf8) + file + Array("\r\n--\(boundary)--\r\n".utf8)
        #expect(received.method == "POST" && received.body == whole, sourceLocation: sourceLocation)
    }

    // MARK: Success

    @Test(arguments: Kind.allCases, [0, 1, 300_000]) func fileIsSentInOneRequest(_ kind: Kind, count: Int) async throws
    {
        try await withUploads(count: count) { uploads, server, client, folder, file in
            let task = client.upload(
                file, retrying: kind.place(), options: options(), headers: ["X-Extra": "private"])
            let result = try await task.value
            try expectWhole(uploads.stored.all.first, kind, count: count)
            #expect(uploads.stored.all.first?.fields["X-Extra"] == "private")
            #expect(result.trace == [.started] && result.attempts == 1)
            #expect(result.bytes == Int64(count) && result.sentBytes == Int64(count))
            #expect(result.response?.value == Data("stored".utf8))
            #expect(result.url == server.url("/a"))
            #expect(task.progressNow.fractionCompleted == 1 && task.state == .completed)
            #expect(try folder.names == ["a.bin"])
            var sum: Session.Progress?
            for await progress in Session.Progress.combined(of: [task, task]) {
                #expect(progress.totalBytes == Int64(2 * count))
                sum = progress
            }
            #expect(sum?.totalBytes == Int64(2 * count) && sum?.isFinished == true)
        }
    }

    @Test func createdFileHasTheURLOfItsLocationWithoutAQuery() async throws {
        let uploads = Server()
        try await withServer { exchange in
            try uploads.store(exchange, status: 201, headers: [("Location", "/photos/7?key=\(Self.secret)")])
        } test: { server, client, folder in
            try folder.write(Data("x".utf8), to: "a.bin")
            let result = try await client.upload(folder.url("a.bin"), retrying: Kind.form.place()).value
            #expect(result.url == server.url("/photos/7"))
        }
    }

    @Test(arguments: Kind.allCases) func digestIsThatOfTheContent(_ kind: Kind) async throws {
        try await withUploads(count: 300_000) { uploads, _, client, _, file in
            let options = options { $0.checksum = .sha256 }
            _ = try await client.upload(file, retrying: kind.place(), options: options).value
            let received = try #require(uploads.stored.all.first)
            let digest = DigestFunction.hash(received.body, .sha256)
            let field = "sha-256=:\(Data(digest).base64EncodedString()):"
            #expect(received.fields["Content-Digest"] == field)
            #expect(received.fields["Repr-Digest"] == (kind == .put ? field : nil))
        }
    }

    @Test func redirectSendsTheFileAgain() async throws {
        try await withUploads([Self.refuse(307, [("Location", "/b")])]) { uploads, _, client, _, file in
            let result = try await client.upload(file, retrying: Kind.put.place(), options: options()).value
            try expectWhole(uploads.stored.all.first, .put)
            #expect(uploads.stored.all.first?.target == "/b" && result.attempts == 1)
        }
    }

    // MARK: Failed attempts

    /// Holds the second attempt before it is sent.
    private struct Held: Interceptor {
        let attempts = Log<Int>()
        let asked = LoopbackServer.Gate()
        let opened = LoopbackServer.Gate()

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            attempts.add(1)
            if attempts.all.count == 2 {
                asked.open()
                try await opened.wait()
            }
            return try await next(request)
        }
    }

    @Test(arguments: Kind.allCases) func failedAttemptIsSentAgainFromTheFirstByte(_ kind: Kind) async throws {
        let (seen, held) = (LoopbackServer.Gate(), Held())
        let fault: LoopbackServer.Handler = { exchange in
            _ = try exchange.readChunk(upTo: 64 << 10)
            try exchange.wait(for: seen)
            exchange.reset()
        }
        try await withUploads([fault]) { uploads, _, client, _, file in
            let task = client.upload(file, retrying: kind.place(), options: options()) { $0.interceptors = [held] }
            let watching = Task {
                var values: [Session.Progress] = []
                for await progress in task.progress {
                    values.append(progress)
                    if progress.completedBytes > 0 { seen.open() }
                }
                return values
            }
            try await held.asked.wait()
            // Nothing of the first attempt counts.
            let now = task.progressNow
            #expect(now.attempt == 2 && now.completedBytes == 0 && now.totalBytes == 1 << 20)
            #expect(now.fractionCompleted == 0)
            held.opened.open()
            let result = try await task.value
            try expectWhole(uploads.stored.all.first, kind)
            #expect(result.attempts == 2 && result.bytes == 1 << 20 && result.sentBytes > result.bytes)
            #expect(result.trace.count == 4 && result.trace.first == .started, "\(result.trace)")
            #expect(Array(result.trace.suffix(2)) == [.waited(.zero), .startedOver(.notResumable)])
            let values = await watching.value
            #expect(values.allSatisfy { $0.totalBytes == 1 << 20 || $0.totalBytes == nil })
            #expect(values.map(\.attempt) == values.map(\.attempt).sorted())
            for attempt in 1...2 {
                let bytes = values.filter { $0.attempt == attempt }.map(\.completedBytes)
                #expect(bytes == bytes.sorted() && !bytes.isEmpty)
            }
            #expect(values.last?.fractionCompleted == 1 && values.last?.attempt == 2)
        }
    }

    @Test(arguments: Kind.allCases) func busyServerIsAskedAgain(_ kind: Kind) async throws {
        // The first connection is new: a session sends a request again by itself when one that it has used before is cut.
        let faults = [Self.cut, Self.refuse(503, [("Retry-After", "0")]), Self.refuse(500)]
        try await withUploads(faults) { uploads, _, client, folder, file in
            let result = try await client.upload(file, retrying: kind.place(), options: options()).value
            try expectWhole(uploads.stored.all.first, kind)
            #expect(result.attempts == 4)
            #expect(result.trace.filter { $0 == .startedOver(.notResumable) }.count == 3)
            #expect(try folder.names == ["a.bin"])
        }
    }

    @Test(arguments: Kind.allCases, [400, 403, 409, 413, 460])
    func refusalEndsTheUploadAtOnce(_ kind: Kind, status: Int) async throws {
        try await withUploads(Array(repeating: Self.refuse(status), count: 5)) { _, server, client, folder, file in
            let task = client.upload(file, retrying: kind.place(), options: options())
            let error = try await failure { try await task.value }
            #expect(error.kind == .status && error.status == status)
            #expect(server.requests.count == 1)
            for text in ["\(error)", "\(task)", "\(task.trace)", "\(kind.place())"] {
                #expect(!text.contains(Self.secret), "\(text)")
            }
            #expect(try folder.names == ["a.bin"])
        }
    }

    @Test func serverThatFailsForEverEndsTheUpload() async throws {
        try await withUploads(Array(repeating: Self.refuse(503), count: 20)) { _, server, client, _, file in
            let options = options { $0.retry.policy.limit = 3 }
            let error = try await failure {
                try await client.upload(file, retrying: Kind.put.place(), options: options).value
            }
            #expect(error.status == 503 && error.attempts == 4 && server.requests.count == 4)
            #expect(error.reason.contains("the server keeps none"), "\(error)")
        }
    }

    @Test func anotherURLTakesThePlaceOfAnExpiredOne() async throws {
        try await withUploads([Self.refuse(403)]) { uploads, server, client, _, file in
            let options = options { $0.url = { _ in server.url("/a?X-Amz-Signature=new") } }
            let result = try await client.upload(file, retrying: Kind.put.place(), options: options).value
            #expect(uploads.stored.all.map(\.target) == ["/a?X-Amz-Signature=new"])
            #expect(result.trace.contains(.replacedURL))
        }
    }

    @Test func serverThatRefusesEachURLIsNotAskedForEver() async throws {
        try await withUploads(Array(repeating: Self.refuse(403), count: 9)) { _, server, client, _, file in
            let options = options { $0.url = { _ in server.url("/a?X-Amz-Signature=\(server.requests.count)") } }
            let error = try await failure {
                try await client.upload(file, retrying: Kind.put.place(), options: options).value
            }
            #expect(error.status == 403 && server.requests.count == 3)
        }
    }

    // MARK: The file

    @Test(arguments: Kind.allCases) func fileThatChangesBetweenAttemptsIsAnError(_ kind: Kind) async throws {
        try await inTestFolder { other in
            let uploads = Server()
            try await withServer { exchange in
                guard exchange.number == 1 else { return try uploads.store(exchange) }
                _ = try exchange.drainBody()
                try other.write(Data(count: 7), to: "a.bin")
                try exchange.respond(status: 503)
            } test: { server, client, _ in
                try other.write(Data(Self.pattern.bytes()), to: "a.bin")
                let error = try await failure {
                    try await client.upload(other.url("a.bin"), retrying: kind.place(), options: options()).value
                }
                #expect(error.kind == .requestBody && error.reason.contains("changed"), "\(error)")
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test(arguments: Kind.allCases) func fileThatTakesThePlaceOfTheFirstIsAnError(_ kind: Kind) async throws {
        try await inTestFolder { other in
            try await withServer { exchange in
                _ = try exchange.drainBody()
                try other.write(Data(count: 7), to: "new")
                try PosixFileSystem().rename("\(other.path)/new", to: "\(other.path)/a.bin")
                try exchange.respond(status: 503)
            } test: { server, client, _ in
                try other.write(Data(count: 7), to: "a.bin")
                let error = try await failure {
                    try await client.upload(other.url("a.bin"), retrying: kind.place(), options: options()).value
                }
                #expect(error.kind == .requestBody && error.reason.contains("changed"), "\(error)")
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test(arguments: Kind.allCases) func fileThatChangesWhileItIsSentIsAnError(_ kind: Kind) async throws {
        try await withUploads { uploads, _, client, _, file in
            let reads = Log<String>()
            let files = FaultyFiles { call, path in
                guard call == "read", path == file.path else { return nil }
                reads.add(call)
                if reads.all.count == 3 {
                    // `try?`: the test fails if the file does not change.
                    try? FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSince1970: 1_000_000)], ofItemAtPath: path)
                }
                return nil
            }
            let task = DurableUploadTask(
                upload: RetriedUpload.started(
                    file, .success(try client.request(.put, "a")), form: kind.place().form, session: client.session,
                    options: options(), system: files))
            let error = try await failure { try await task.value }
            #expect(error.kind == .requestBody && error.reason.contains("changed"), "\(error)")
            #expect(uploads.stored.all.isEmpty)
        }
    }

    @Test func missingFileSendsNothing() async throws {
        try await withUploads { _, server, client, folder, _ in
            let task = client.upload(folder.url("none"), retrying: Kind.put.place(), options: options())
            let error = try await failure { try await task.value }
            #expect(error.kind == .fileSystem)
            #expect(server.requests.isEmpty)
        }
    }

    // MARK: Several processes

    /// Writes what a process leaves that is killed while it sends a file.
    private func leaveControl(of file: URL, _ folder: TestFolder, _ client: Client) async throws {
        let place = try client.url("a?X-Amz-Signature=old").absoluteString
        let digest = ControlFile.digest(of: place)
        let name = UploadControl.name(of: "a.bin", endpointDigest: digest)
        let source = UploadFile(path: file.path, controlPath: "\(folder.path)/\(name)", system: PosixFileSystem())
        let identity = try await source.open()
        _ = try await source.acquire()
        try await source.store(UploadControl(kind: .whole, endpointDigest: digest, url: "", file: identity))
        await source.close(keepsControl: true)
        #expect(try folder.names.count == 2)
    }

    @Test(arguments: Kind.allCases) func laterProcessBeginsAgainAndSaysSo(_ kind: Kind) async throws {
        try await withUploads { uploads, _, client, folder, file in
            try await leaveControl(of: file, folder, client)
            let result = try await client.upload(file, retrying: kind.place(), options: options()).value
            #expect(result.trace == [.startedOver(.notResumable)])
            try expectWhole(uploads.stored.all.first, kind)
            #expect(try folder.names == ["a.bin"])
        }
    }

    @Test func laterProcessSaysThatTheFileHasChanged() async throws {
        try await withUploads { uploads, _, client, folder, file in
            try await leaveControl(of: file, folder, client)
            try folder.write(Data("other".utf8), to: "a.bin")
            let result = try await client.upload(file, retrying: Kind.put.place(), options: options()).value
            #expect(result.trace == [.startedOver(.fileChanged)])
            #expect(uploads.stored.all.first?.body == Array("other".utf8))
        }
    }

    @Test func controlFileIsPrivateAndHasNothingOfTheURL() async throws {
        let (asked, answer) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let fault: LoopbackServer.Handler = { exchange in
            asked.open()
            try exchange.wait(for: answer)
            try Self.refuse(403)(exchange)
        }
        try await withUploads([fault]) { _, _, client, folder, file in
            let task = client.upload(file, retrying: Kind.put.place("path-\(Self.secret)"), options: options())
            try await asked.wait()
            let name = try #require(try folder.names.first { $0 != "a.bin" })
            let text = String(decoding: try folder.bytes(name), as: UTF8.self)
            #expect(text.contains("whole") && !text.contains(Self.secret) && !name.contains(Self.secret), "\(text)")
            let mode = try FileManager.default.attributesOfItem(atPath: folder.url(name).path)[.posixPermissions]
            #expect(mode as? Int == 0o600)
            // The signature does not distinguish two uploads of a file to the same place.
            let other = client.upload(
                file, retrying: Kind.put.place("path-\(Self.secret)", secret: "other"), options: options())
            #expect(try await failure { try await other.value }.kind == .uploadInProgress)
            answer.open()
            _ = try await failure { try await task.value }
        }
    }

    // MARK: Commands

    @Test(arguments: Kind.allCases) func cancelledUploadLeavesNothing(_ kind: Kind) async throws {
        let asked = LoopbackServer.Gate()
        let fault: LoopbackServer.Handler = { exchange in
            asked.open()
            try exchange.waitForClientToClose()
        }
        try await withUploads([fault]) { _, _, client, folder, file in
            let task = client.upload(file, retrying: kind.place(), options: options())
            try await asked.wait()
            task.cancel()
            #expect(try await failure { try await task.value }.kind == .cancelled)
            #expect(try folder.names == ["a.bin"])
        }
    }

    @Test func pausedUploadBeginsAgain() async throws {
        let asked = LoopbackServer.Gate()
        let fault: LoopbackServer.Handler = { exchange in
            _ = try exchange.readChunk(upTo: 64 << 10)
            asked.open()
            try exchange.waitForClientToClose()
        }
        try await withUploads([fault]) { uploads, server, client, folder, file in
            let task = client.upload(file, retrying: Kind.put.place(), options: options())
            try await asked.wait()
            task.pause()
            #expect(task.state == .suspended)
            try await server.wait { $0.openConnections == 0 }
            task.resume()
            let result = try await task.value
            #expect(result.trace == [.started, .paused, .resumed, .startedOver(.notResumable)])
            #expect(task.progressNow.attempt == 2)
            try expectWhole(uploads.stored.all.first, .put)
        }
    }

    @Test func fileThatChangesInAPauseIsAnError() async throws {
        let asked = LoopbackServer.Gate()
        let fault: LoopbackServer.Handler = { exchange in
            asked.open()
            try exchange.waitForClientToClose()
        }
        try await withUploads([fault]) { uploads, server, client, folder, file in
            let task = client.upload(file, retrying: Kind.put.place(), options: options())
            try await asked.wait()
            task.pause()
            try await server.wait { $0.openConnections == 0 }
            try folder.write(Data("other".utf8), to: "a.bin")
            task.resume()
            let error = try await failure { try await task.value }
            #expect(error.kind == .requestBody && error.reason.contains("changed"), "\(error)")
            #expect(uploads.stored.all.isEmpty)
        }
    }

    private static let changes: [@Sendable (inout DurableUploadOptions) -> Void] = [
        { $0.chunkSize = 1 }, { $0.metadata = ["a": "b"] }, { $0.throttle = 0 },
    ]

    @Test(arguments: changes.indices) func optionsWithoutAMeaningAreRefused(_ index: Int) async throws {
        try await withUploads { _, server, client, folder, file in
            let options = options { Self.changes[index](&$0) }
            let task = client.upload(file, retrying: Kind.put.place(), options: options)
            let error = try await failure { try await task.value }
            #expect(error.kind == .invalidRequest)
            #expect(server.requests.isEmpty)
            #expect(try folder.names == ["a.bin"])
        }
    }
}
