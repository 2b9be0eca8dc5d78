import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#endif

/// Durable uploads over the loopback interface, by both protocols.
@Suite("Durable uploads", .timeLimit(.minutes(1)))
struct DurableUploadTests {
    static let kinds: [UploadMessages.Kind] = [.tus, .httpDraft]
    static let pattern = LoopbackServer.Pattern(count: 1 << 20, seed: 3)

    private func options(_ change: (inout DurableUploadOptions) -> Void = { _ in }) -> DurableUploadOptions {
        var options = DurableUploadOptions()
        options.retry.policy.firstDelay = .zero
        change(&options)
        return options
    }

    private func resumption(_ kind: UploadMessages.Kind) -> UploadResumption {
        kind == .tus ? .tus("files") : .httpDraft("files")
    }

    private func withUploads(
        _ kind: UploadMessages.Kind, count: Int = pattern.count, interceptors: [any Interceptor] = [],
        test: (UploadServer, Client, TestFolder, URL) async throws -> Void
    ) async throws {
        let uploads = UploadServer(kind)
        try await withServer(
            configuration: { $0.interceptors = interceptors }, { try uploads.answer($0) },
            test: { _, client, folder in
                try folder.write(Data(Self.pattern.bytes(in: 0..<count)), to: "big.iso")
                try await test(uploads, client, folder, folder.url("big.iso"))
            })
    }

    /// Leaves an upload of which the server has 10 bytes.
    private func leaveUpload(
        of file: URL, to place: UploadResumption = .tus("files"), _ uploads: UploadServer, _ client: Client
    ) async throws {
        uploads.add(.cut(after: 10), to: "PATCH")
        _ = try await failure {
            try await client.upload(file, resuming: place, options: options { $0.retry.maximumAttempts = 1 }).value
        }
    }

    private func expectWhole(_ uploads: UploadServer, _ folder: TestFolder, count: Int = pattern.count) throws {
        let upload = try #require(uploads.uploads.last)
        #expect(upload.bytes == Self.pattern.bytes(in: 0..<count) && upload.isComplete == true)
        #expect(try folder.names == ["big.iso"])
    }

    @Test(arguments: kinds) func callChangesItsRequests(kind: UploadMessages.Kind) async throws {
        let uploads = UploadServer(kind)
        let keys = Log<String>()
        try await withServer { exchange in
            keys.add(exchange.request["X-Key"] ?? "none")
            try uploads.answer(exchange)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes(in: 0..<1_000)), to: "big.iso")
            let task = client.upload(folder.url("big.iso"), resuming: resumption(kind)) {
                $0.headers["X-Key"] = "seven"
            }
            _ = try await task.value
            #expect(!keys.all.isEmpty && keys.all.allSatisfy { $0 == "seven" })
        }
    }

    @Test(arguments: kinds) func fileIsSentInOneRequest(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            let task = client.upload(file, resuming: resumption(kind))
            var last: Session.Progress?
            for await progress in task.progress {
                #expect(progress.completedBytes >= last?.completedBytes ?? 0)
                last = progress
            }
            let result = try await task.value
            #expect(last?.completedBytes == 1 << 20 && last?.totalBytes == 1 << 20 && last?.isFinished == true)
            #expect(result.bytes == 1 << 20 && result.sentBytes == 1 << 20 && result.attempts == 2)
            #expect(result.url.path == "/files/1" && result.trace == [.created])
            #expect(result.response?.status == (kind == .tus ? 204 : 200))
            #expect(uploads.requests == ["POST", "PATCH 0"])
            try expectWhole(uploads, folder)
        }
    }

    @Test(arguments: kinds) func emptyFileIsUploaded(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind, count: 0) { uploads, client, folder, file in
            let result = try await client.upload(file, resuming: resumption(kind)).value
            #expect(result.bytes == 0 && uploads.requests == ["POST"])
            try expectWhole(uploads, folder, count: 0)
        }
    }

    @Test(arguments: kinds) func brokenRequestsAreContinued(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            uploads.add(.cut(after: 100_000), .cut(after: 200_000), .cut(after: 0), to: "PATCH")
            let result = try await client.upload(file, resuming: resumption(kind), options: options()).value
            #expect(
                uploads.requests.filter { $0.hasPrefix("PATCH") } == [
                    "PATCH 0", "PATCH 100000", "PATCH 300000", "PATCH 300000",
                ])
            #expect(result.trace.contains(.continued(at: 100_000)) && result.trace.contains(.continued(at: 300_000)))
            try expectWhole(uploads, folder)
        }
    }

    @Test(arguments: kinds) func interceptorLeavesTheAttemptsAlone(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind, interceptors: [RetryInterceptor()]) { uploads, client, folder, file in
            let busy = UploadServer.Fault.status(503, [])
            uploads.add(busy, to: "PATCH")
            uploads.add(busy, busy, busy, to: "HEAD")
            let error = try await failure {
                try await client.upload(
                    file, resuming: resumption(kind), options: options { $0.retry.policy.limit = 2 }
                ).value
            }
            #expect(error.status == 503)
            #expect(uploads.requests == ["POST", "PATCH 0", "HEAD", "HEAD"])
        }
    }

    @Test(arguments: kinds) func lostAnswerIsFoundComplete(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            uploads.add(.loseAnswer, to: "PATCH")
            let result = try await client.upload(file, resuming: resumption(kind), options: options()).value
            #expect(uploads.requests == ["POST", "PATCH 0", "HEAD"])
            #expect(result.trace.last == .foundComplete && result.response == nil)
            try expectWhole(uploads, folder)
        }
    }

    @Test(arguments: kinds) func lostCreationIsRepeated(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            uploads.add(.loseAnswer, to: "POST")
            _ = try await client.upload(file, resuming: resumption(kind), options: options()).value
            #expect(uploads.requests == ["POST", "POST", "PATCH 0"])
            try expectWhole(uploads, folder)
        }
    }

    @Test(arguments: kinds) func chunksAndChecksumsAreSent(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            uploads.add(.status(460, []), to: "PATCH")
            let result = try await client.upload(
                file, resuming: resumption(kind),
                options: options {
                    $0.chunkSize = 400_000
                    $0.checksum = .sha256
                }
            ).value
            #expect(uploads.requests == ["POST", "PATCH 0", "HEAD", "PATCH 0", "PATCH 400000", "PATCH 800000"])
            #expect(uploads.checksums.count == 3 && result.sentBytes > 1 << 20)
            try expectWhole(uploads, folder)
        }
    }

    @Test(arguments: kinds) func otherProcessContinues(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            uploads.add(.cut(after: 300_000), to: "PATCH")
            let failed = try await failure {
                try await client.upload(
                    file, resuming: resumption(kind), options: options { $0.retry.maximumAttempts = 1 }
                ).value
            }
            #expect(failed.kind == .connectionLost && "\(failed)".contains("bytes sent"), "\(failed)")
            #expect(try folder.names.count == 2)
            let result = try await client.upload(file, resuming: resumption(kind), options: options()).value
            #expect(result.trace == [.continued(at: 300_000)] && result.sentBytes == 1 << 20 - 300_000)
            #expect(uploads.uploads.count == 1)
            try expectWhole(uploads, folder)
        }
    }

    /// A server that refuses an expired credential answers as if the upload were gone.
    @Test(arguments: kinds) func refusedUploadIsContinuedLater(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            try await leaveUpload(of: file, to: resumption(kind), uploads, client)
            uploads.add(.status(403, []), to: "HEAD")
            uploads.add(.status(403, []), to: "POST")
            let error = try await failure {
                try await client.upload(file, resuming: resumption(kind), options: options()).value
            }
            #expect(error.status == 403)
            let result = try await client.upload(file, resuming: resumption(kind), options: options()).value
            #expect(result.trace == [.continued(at: 10)] && uploads.uploads.count == 1)
            try expectWhole(uploads, folder)
        }
    }

    #if os(Linux)
    /// A pipe with a name, which another user can put in the place of the description, holds nothing up.
    @Test func pipeInThePlaceOfTheDescriptionIsRefused() async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            try await leaveUpload(of: file, uploads, client)
            let name = try #require(try folder.names.first { $0.hasSuffix(".tern.json") })
            try FileManager.default.removeItem(at: folder.url(name))
            #expect(unsafe mkfifo(folder.url(name).path, 0o600) == 0)
            let error = try await failure { try await client.upload(file, resuming: .tus("files")).value }
            #expect(error.kind == .fileSystem && error.reason.contains("refuse to write"), "\(error)")
        }
    }
    #endif

    @Test(arguments: kinds) func goneUploadStartsOver(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            uploads.add(.cut(after: 300_000), to: "PATCH")
            uploads.add(.forget, to: "HEAD")
            let result = try await client.upload(file, resuming: resumption(kind), options: options()).value
            #expect(result.trace.contains(.startedOver(.gone)))
            try expectWhole(uploads, folder)
        }
    }

    @Test func serverThatLosesEachUploadIsGivenUp() async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            for _ in 0..<10 {
                uploads.add(.cut(after: 10), to: "PATCH")
                uploads.add(.forget, to: "HEAD")
            }
            let failed = try await failure {
                try await client.upload(file, resuming: .tus("files"), options: options()).value
            }
            #expect(failed.status == 404 && "\(failed)".contains("4 uploads were lost"), "\(failed)")
            #expect(try folder.names == ["big.iso"])
        }
    }

    @Test func changedFileStartsOver() async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            try await leaveUpload(of: file, uploads, client)
            try folder.write(Data("another file".utf8), to: "big.iso")
            let result = try await client.upload(file, resuming: .tus("files"), options: options()).value
            #expect(result.trace == [.startedOver(.fileChanged), .created] && uploads.uploads.count == 2)
            #expect(uploads.uploads.last?.bytes == Array("another file".utf8))
        }
    }

    private func change(_ path: String) {
        let system = PosixFileSystem()
        do {
            let descriptor = try system.open(path, .update)
            try system.write(Data([1]), to: descriptor)
            try system.close(descriptor)
        } catch {
            Issue.record(error)
        }
    }

    /// The server has bytes of two files then, and reports a whole one.
    @Test(arguments: [false, true]) func fileThatChangesWhileItIsSentIsAnError(isChecked: Bool) async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            let old = Date(timeIntervalSince1970: 1_000_000)
            try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: file.path)
            let reads = Log<String>()
            let files = FaultyFiles { call, path in
                guard call == "read", path == file.path else { return nil }
                reads.add(call)
                // In place, so that length and number stay. Three pieces, or three requests.
                if reads.all.count == 3 { change(path) }
                return nil
            }
            let task = DurableUploadTask(
                upload: DurableUpload.started(
                    file, .success(try client.request(.post, "files")), kind: .tus, session: client.session,
                    options: options {
                        if isChecked { ($0.checksum, $0.chunkSize) = (.sha256, 400_000) }
                    }, system: files))
            let error = try await failure { try await task.value }
            #expect(error.kind == .requestBody && !uploads.uploads.contains(where: \.isComplete), "\(error)")
            #expect(error.reason.contains("\(file.path): the file changed during the upload"), "\(error)")
            let result = try await client.upload(file, resuming: .tus("files"), options: options()).value
            #expect(result.trace == [.startedOver(.fileChanged), .created])
            #expect(try uploads.uploads.last?.bytes == Array(folder.bytes("big.iso")))
        }
    }

    @Test func tornControlFileStartsOver() async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            try await leaveUpload(of: file, uploads, client)
            let name = try #require(try folder.names.first { $0.hasSuffix(".json") })
            let mode = try FileManager.default.attributesOfItem(atPath: "\(folder.path)/\(name)")[.posixPermissions]
            #expect(mode as? Int == 0o600)
            try folder.bytes(name).dropLast(5).write(to: folder.url(name))
            let result = try await client.upload(file, resuming: .tus("files"), options: options()).value
            #expect(result.trace == [.startedOver(.controlInvalid), .created])
            try expectWhole(uploads, folder)
        }
    }

    @Test func controlFileOfAnotherEndpointStartsOver() async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            try await leaveUpload(of: file, uploads, client)
            let name = try #require(try folder.names.first { $0.hasSuffix(".json") })
            var control = try #require(try UploadControl.read(folder.bytes(name)).control)
            control.endpointDigest = sha256([1])
            try folder.write(control.encoded(), to: name)
            let result = try await client.upload(file, resuming: .tus("files"), options: options()).value
            #expect(result.trace == [.startedOver(.controlInvalid), .created] && uploads.uploads.count == 2)
            try expectWhole(uploads, folder)
        }
    }

    /// A token in the URL names a user: another one continues nothing, and learns nothing of the upload.
    @Test(arguments: kinds) func uploadOfAnotherTokenIsLeftAlone(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            let place: (String) -> UploadResumption = { token in
                kind == .tus ? .tus("files?token=\(token)") : .httpDraft("files?token=\(token)")
            }
            try await leaveUpload(of: file, to: place("a"), uploads, client)
            let before = uploads.requests.count
            let result = try await client.upload(file, resuming: place("b"), options: options()).value
            #expect(result.trace == [.created])
            #expect(uploads.requests.dropFirst(before) == ["POST", "PATCH 0"])
            let again = try await client.upload(file, resuming: place("a"), options: options()).value
            #expect(again.trace == [.continued(at: 10)])
            #expect(try folder.names == ["big.iso"])
        }
    }

    @Test func controlFileOfALaterVersionIsLeftAlone() async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            try await leaveUpload(of: file, uploads, client)
            let name = try #require(try folder.names.first { $0.hasSuffix(".json") })
            try folder.write(Data(#"{"version":2}"#.utf8), to: name)
            let failed = try await failure {
                try await client.upload(file, resuming: .tus("files"), options: options()).value
            }
            #expect(failed.kind == .unsupportedControlFile && failed.reason.contains(name), "\(failed)")
            #expect(try folder.bytes(name) == Data(#"{"version":2}"#.utf8))
        }
    }

    @Test func theTimeOfTheWholeUploadEndsARequestThatRuns() async throws {
        let gate = LoopbackServer.Gate()
        let uploads = UploadServer(.tus)
        try await withServer { exchange in
            if exchange.request.method == "PATCH" { try exchange.wait(for: gate) }
            try uploads.answer(exchange)
        } test: { _, client, folder in
            try folder.write(Data(count: 1_000), to: "big.iso")
            let failed = try await failure {
                try await client.upload(
                    folder.url("big.iso"), resuming: .tus("files"),
                    options: options { $0.retry.maximumTime = .seconds(2) }
                ).value
            }
            #expect(failed.kind == .totalTimedOut && failed.reason.contains("limit of 2.0 seconds"), "\(failed)")
        }
    }

    @Test func printsShowNoSecret() async throws {
        try await withUploads(.tus) { _, client, _, file in
            let place = UploadResumption.tus("files?key=secret")
            let result = try await client.upload(file, resuming: place, options: options()).value
            let credentials = TransferQueue.Credentials(
                headers: ["Authorization": "secret"], url: URL(string: "https://a.test/x?sig=secret"))
            for text in [
                String(describing: result), String(reflecting: result), String(describing: credentials),
                String(reflecting: credentials), String(describing: place), String(reflecting: place),
            ] {
                #expect(!text.contains("secret") && !text.contains("/files/1"), "\(text)")
            }
            var dumped = ""
            dump(result, to: &dumped)
            dump(credentials, to: &dumped)
            dump(place, to: &dumped)
            #expect(!dumped.contains("secret") && !dumped.contains("/files/1"), "\(dumped)")
        }
    }

    /// Answers of a server that accepts bytes and takes none.
    private func idleAnswer(_ kind: UploadMessages.Kind) -> UploadServer.Fault {
        .status(200, [kind == .tus ? ("Upload-Offset", "0") : ("Upload-Complete", "?0")])
    }

    @Test(arguments: kinds) func serverThatTakesNoByteIsAskedAgain(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, folder, file in
            uploads.add(idleAnswer(kind), to: "PATCH")
            let result = try await client.upload(file, resuming: resumption(kind), options: options()).value
            #expect(uploads.requests == ["POST", "PATCH 0", "HEAD", "PATCH 0"])
            #expect(result.trace.contains(.waited(.zero)), "\(result.trace)")
            try expectWhole(uploads, folder)
        }
    }

    @Test(arguments: kinds) func serverThatNeverTakesAByteIsGivenUp(kind: UploadMessages.Kind) async throws {
        try await withUploads(kind) { uploads, client, _, file in
            for _ in 0..<20 { uploads.add(idleAnswer(kind), to: "PATCH") }
            let failed = try await failure {
                try await client.upload(
                    file, resuming: resumption(kind), options: options { $0.retry.policy.limit = 2 }
                ).value
            }
            #expect(failed.kind == .malformedResponse, "\(failed)")
            #expect(uploads.requests == ["POST", "PATCH 0", "HEAD", "PATCH 0", "HEAD", "PATCH 0"])
        }
    }

    @Test func emptyDraftUploadThatIsNeverCompleteIsGivenUp() async throws {
        try await withUploads(.httpDraft, count: 0) { uploads, client, _, file in
            let open = ("Upload-Complete", "?0")
            uploads.add(.status(201, [("Location", "/files/1"), open]), to: "POST")
            for _ in 0..<20 {
                uploads.add(.status(200, [open]), to: "PATCH")
                uploads.add(.status(204, [("Upload-Offset", "0"), open]), to: "HEAD")
            }
            let failed = try await failure {
                try await client.upload(
                    file, resuming: .httpDraft("files"), options: options { $0.retry.policy.limit = 2 }
                ).value
            }
            #expect(failed.kind == .malformedResponse, "\(failed)")
            #expect(uploads.requests == ["POST", "PATCH 0", "HEAD", "PATCH 0", "HEAD", "PATCH 0"])
        }
    }

    @Test func secondUploadOfTheSameFileFails() async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            let first = client.upload(file, resuming: .tus("files"), options: options { $0.throttle = 1_000 })
            for await progress in first.progress where progress.completedBytes > 0 { break }
            let failed = try await failure { try await client.upload(file, resuming: .tus("files")).value }
            #expect(failed.kind == .uploadInProgress, "\(failed)")
            first.cancel()
            let cancelled = try await failure { try await first.value }
            #expect(cancelled.kind == .cancelled)
            _ = try await client.upload(file, resuming: .tus("files"), options: options()).value
            try expectWhole(uploads, folder)
        }
    }

    @Test(arguments: [400, 403, 413]) func refusalIsAnErrorWithItsStatus(status: Int) async throws {
        try await withUploads(.tus) { uploads, client, folder, file in
            uploads.add(.status(status, []), to: "POST")
            let failed = try await failure { try await client.upload(file, resuming: .tus("files")).value }
            #expect(failed.kind == .status && failed.status == status)
            #expect(try folder.names == ["big.iso"])
        }
    }

    @Test func secretsStayWithTheEndpointsOrigin() async throws {
        let fields = Log<String?>()
        let other = try LoopbackServer { exchange in
            fields.add(exchange.request["Authorization"])
            let count = try exchange.readBody().count
            try exchange.respond(status: 204, headers: [("Upload-Offset", "\(count)")])
        }
        defer { other.stop() }
        try await withServer { exchange in
            fields.add(exchange.request["Authorization"])
            try exchange.respond(status: 201, headers: [("Location", "\(other.url)/x?secret=1")])
        } test: { _, client, folder in
            try folder.write(Data("text".utf8), to: "file")
            let task = client.upload(
                folder.url("file"), resuming: .tus("files"), headers: ["Authorization": "Bearer secret-token"])
            let result = try await task.value
            #expect(fields.all == ["Bearer secret-token", nil] && result.url.host() == "127.0.0.1")
            #expect(!"\(task)".contains("secret"))
        }
    }

    @Test func onlyTheFieldsOfTheCallFollowToAnotherOrigin() async throws {
        let fields = Log<[String?]>()
        @Sendable func note(_ exchange: LoopbackServer.Exchange) {
            fields.add(["X-Tenant", "X-Call"].map { exchange.request[$0] })
        }
        let other = try LoopbackServer { exchange in
            note(exchange)
            let count = try exchange.readBody().count
            try exchange.respond(status: 204, headers: [("Upload-Offset", "\(count)")])
        }
        defer { other.stop() }
        try await withServer { exchange in
            note(exchange)
            try exchange.respond(status: 201, headers: [("Location", "\(other.url)/x")])
        } test: { server, client, folder in
            try folder.write(Data("text".utf8), to: "file")
            let own = Client(baseURL: server.url, session: client.session, headers: ["X-Tenant": "acme"])
            let task = own.upload(folder.url("file"), resuming: .tus("files"), headers: ["X-Call": "1"])
            _ = try await task.value
            #expect(fields.all == [["acme", "1"], [nil, "1"]])
        }
    }

    @Test func aUnixSocketStaysWithItsOrigin() throws {
        var request = try Request(.post, "http://localhost/files")
        request.unixSocketPath = "/run/up.sock"
        let near = try Target(absolute: "http://localhost/files/1")
        try request.move(to: near)
        #expect(request.target == near)
        let far = try Target(absolute: "http://bank.example/x")
        let error = #expect(throws: NetworkError.self) { try request.move(to: far) }
        #expect(error?.kind == .redirect && request.target == near)
    }

    @Test func aTrustPolicyStaysWithItsOrigin() throws {
        var request = try Request(.post, "https://a.example/files", headers: ["Host": "a.example", "X-Own": "1"])
        request.trust = TrustPolicy.unchecked
        try request.move(to: try Target(absolute: "https://b.example/files/1"))
        #expect(request.trust == nil && request.headers == ["X-Own": "1"])
        try request.move(to: try Target(absolute: "https://a.example/files/1"))
        #expect(request.trust != nil)
    }

    @Test func missingFileAndWrongOptionsFailBeforeAnyRequest() async throws {
        try await withUploads(.tus) { uploads, client, folder, _ in
            let missing = try await failure {
                try await client.upload(folder.url("none"), resuming: .tus("files")).value
            }
            #expect(missing.kind == .fileSystem, "\(missing)")
            let file = folder.url("big.iso")
            let wrong: [(inout DurableUploadOptions) -> Void] = [
                { $0.chunkSize = 0 }, { $0.throttle = 0 }, { $0.metadata = ["a b": ""] },
            ]
            for change in wrong {
                let failed = try await failure {
                    try await client.upload(file, resuming: .tus("files"), options: options(change)).value
                }
                #expect(failed.kind == .invalidRequest)
            }
            let folderItself = try await failure {
                try await client.upload(URL(filePath: folder.path), resuming: .tus("files")).value
            }
            #expect(folderItself.kind == .fileSystem)
            #expect(uploads.requests.isEmpty)
        }
    }
}
