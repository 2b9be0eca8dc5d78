import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Interim responses with status 104 (Upload Resumption Supported) to the request that creates an upload.
@Suite("Durable uploads: interim responses", .timeLimit(.minutes(1)))
struct UploadAnnouncementTests {
    static let pattern = LoopbackServer.Pattern(count: 300_000, seed: 4)
    static let version = (name: "Upload-Draft-Interop-Version", value: "8")

    private func options(_ change: (inout DurableUploadOptions) -> Void = { _ in }) -> DurableUploadOptions {
        var options = DurableUploadOptions()
        options.retry.policy.firstDelay = .zero
        change(&options)
        return options
    }

    private func withUploads(
        _ kind: UploadMessages.Kind = .httpDraft, _ faults: UploadServer.Fault...,
        test: (UploadServer, Client, TestFolder) async throws -> Void
    ) async throws {
        let uploads = UploadServer(kind)
        for fault in faults { uploads.add(fault, to: "POST") }
        try await withServer {
            try uploads.answer($0)
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes()), to: "file")
            try await test(uploads, client, folder)
        }
    }

    private func expectWhole(_ uploads: UploadServer, _ folder: TestFolder) throws {
        #expect(uploads.completeUpload?.bytes == Self.pattern.bytes())
        #expect(try folder.names == ["file"])
    }

    @Test(arguments: ["8", "7", "6"]) func lostCreationContinues(version: String) async throws {
        let heads: [LoopbackServer.Fields] = [[(Self.version.name, version), ("Location", "PATH")]]
        try await withUploads(.httpDraft, .announce(heads, then: .loss)) { uploads, client, folder in
            let result = try await client.upload(
                folder.url("file"), resuming: .httpDraft("files"), options: options()
            ).value
            #expect(uploads.requests == ["POST", "HEAD", "PATCH 0"])
            #expect(uploads.uploads.count == 1 && result.url.path == "/files/1")
            #expect(result.trace.first == .created && result.trace.last == .continued(at: 0))
            try expectWhole(uploads, folder)
        }
    }

    @Test func laterProcessContinuesALostCreation() async throws {
        let heads: [LoopbackServer.Fields] = [[Self.version, ("Location", "PATH")]]
        try await withUploads(.httpDraft, .announce(heads, then: .loss)) { uploads, client, folder in
            let file = folder.url("file")
            let failed = try await failure {
                try await client.upload(
                    file, resuming: .httpDraft("files"), options: options { $0.retry.maximumAttempts = 1 }
                ).value
            }
            #expect(failed.kind == .connectionLost, "\(failed)")
            #expect(try folder.names.count == 2)
            let result = try await client.upload(file, resuming: .httpDraft("files"), options: options()).value
            #expect(result.trace == [.continued(at: 0)] && uploads.uploads.count == 1)
            try expectWhole(uploads, folder)
        }
    }

    @Test func answeredCreationIsCreatedOnce() async throws {
        let heads: [LoopbackServer.Fields] = [
            [Self.version, ("Location", "PATH")], [Self.version, ("Upload-Offset", "0")],
        ]
        try await withUploads(.httpDraft, .announce(heads, then: .answer)) { uploads, client, folder in
            let result = try await client.upload(
                folder.url("file"), resuming: .httpDraft("files"), options: options()
            ).value
            #expect(uploads.requests == ["POST", "PATCH 0"] && result.trace == [.created])
            try expectWhole(uploads, folder)
        }
    }

    /// The first location is asked for, and is not there.
    @Test func contradictingLocationsStartOver() async throws {
        let heads: [LoopbackServer.Fields] = [
            [Self.version, ("Location", "/files/none")], [Self.version, ("Location", "PATH")],
        ]
        try await withUploads(.httpDraft, .announce(heads, then: .loss)) { uploads, client, folder in
            let result = try await client.upload(
                folder.url("file"), resuming: .httpDraft("files"), options: options()
            ).value
            #expect(uploads.requests == ["POST", "HEAD", "POST", "PATCH 0"])
            #expect(result.trace.contains(.startedOver(.gone)))
            try expectWhole(uploads, folder)
        }
    }

    @Test func finalResponseDecides() async throws {
        let heads: [LoopbackServer.Fields] = [[Self.version, ("Location", "/files/none")]]
        try await withUploads(.httpDraft, .announce(heads, then: .answer)) { uploads, client, folder in
            let result = try await client.upload(
                folder.url("file"), resuming: .httpDraft("files"), options: options()
            ).value
            #expect(uploads.requests == ["POST", "PATCH 0"] && result.url.path == "/files/1")
            try expectWhole(uploads, folder)
        }
    }

    /// None of these names an upload, so a lost creation is repeated.
    @Test(
        arguments: [
            [version], [version, ("Location", "PATH"), ("Location", "/files/2")], [version, ("Location", "ftp://a/b")],
            [("Upload-Draft-Interop-Version", "3"), ("Location", "PATH")], [("Location", "PATH")],
        ] as [LoopbackServer.Fields])
    func unusableAnnouncementIsIgnored(fields: LoopbackServer.Fields) async throws {
        try await withUploads(.httpDraft, .announce([fields], then: .loss)) { uploads, client, folder in
            _ = try await client.upload(folder.url("file"), resuming: .httpDraft("files"), options: options()).value
            #expect(uploads.requests == ["POST", "POST", "PATCH 0"])
            try expectWhole(uploads, folder)
        }
    }

    @Test func tusIgnoresAnnouncements() async throws {
        let heads: [LoopbackServer.Fields] = [[Self.version, ("Location", "/files/none")]]
        try await withUploads(.tus, .announce(heads, then: .loss)) { uploads, client, folder in
            _ = try await client.upload(folder.url("file"), resuming: .tus("files"), options: options()).value
            #expect(uploads.requests == ["POST", "POST", "PATCH 0"])
        }
    }

    @Test func refusedCreationLeavesNothing() async throws {
        let heads: [LoopbackServer.Fields] = [[Self.version, ("Location", "PATH")]]
        try await withUploads(.httpDraft, .announce(heads, then: .status(413))) { uploads, client, folder in
            let failed = try await failure {
                try await client.upload(folder.url("file"), resuming: .httpDraft("files"), options: options()).value
            }
            #expect(failed.status == 413 && "\(failed)".contains("the server has no part"), "\(failed)")
            #expect(try folder.names == ["file"] && uploads.requests == ["POST"])
        }
    }

    @Test func overloadedServerIsAskedForTheUpload() async throws {
        let heads: [LoopbackServer.Fields] = [[Self.version, ("Location", "PATH")]]
        try await withUploads(.httpDraft, .announce(heads, then: .status(503))) { uploads, client, folder in
            _ = try await client.upload(folder.url("file"), resuming: .httpDraft("files"), options: options()).value
            #expect(uploads.requests == ["POST", "HEAD", "PATCH 0"])
            try expectWhole(uploads, folder)
        }
    }

    @Test func secretsDoNotFollowALocationOfAnotherOrigin() async throws {
        let fields = Log<String?>()
        let other = try LoopbackServer { exchange in
            fields.add(exchange.request["Authorization"])
            let count = try exchange.readBody().count
            let isInquiry = exchange.request.method == "HEAD"
            try exchange.respond(
                status: isInquiry ? 204 : 200,
                headers: isInquiry ? [("Upload-Offset", "0"), ("Upload-Complete", "?0")] : [("X-Count", "\(count)")])
        }
        defer { other.stop() }
        try await withServer { exchange in
            fields.add(exchange.request["Authorization"])
            _ = try exchange.readBody()
            try exchange.write(
                "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 8\r\n"
                    + "Location: \(other.url)/x?secret=1\r\n\r\n")
            exchange.close()
        } test: { _, client, folder in
            try folder.write(Data("text".utf8), to: "file")
            let result = try await client.upload(
                folder.url("file"), resuming: .httpDraft("files"), options: options(),
                headers: ["Authorization": "Bearer secret-token"]
            ).value
            #expect(fields.all == ["Bearer secret-token", nil, nil] && result.bytes == 4)
        }
    }

    /// Bytes after a response belong to no request.
    @Test func announcementAfterTheResponseIsIgnored() async throws {
        let uploads = UploadServer(.httpDraft)
        try await withServer { exchange in
            guard exchange.request.method == "POST" else { return try uploads.answer(exchange) }
            try uploads.answer(exchange)
            try exchange.write(
                "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 8\r\n"
                    + "Location: /files/none\r\n\r\n")
        } test: { _, client, folder in
            try folder.write(Data(Self.pattern.bytes()), to: "file")
            let result = try await client.upload(
                folder.url("file"), resuming: .httpDraft("files"), options: options()
            ).value
            #expect(result.url.path == "/files/1" && !uploads.requests.contains("HEAD /files/none"))
            try expectWhole(uploads, folder)
        }
    }
}
