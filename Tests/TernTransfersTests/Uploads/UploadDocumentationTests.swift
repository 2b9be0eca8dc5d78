import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The examples of Documentation/DurableUploads.md, word for word.

@Suite("Documentation: durable uploads", .timeLimit(.minutes(1)))
struct UploadDocumentationTests {
    @Test func examplesMatchTheirArticle() async throws {
        let uploads = UploadServer(.tus)
        try await withServer {
            try uploads.answer($0)
        } test: { _, client, folder in
            let file = folder.url("big.iso")
            try folder.write(Data("test".utf8), to: "big.iso")
            do {
                let task = client.upload(file, resuming: .tus("files/"))
                for await progress in task.progress { print(progress.fractionCompleted ?? 0) }
                let result = try await task.value
                print(result.url, result.bytes, result.attempts)
                #expect(result.bytes == 4)
                for event in task.trace {
                    if case .startedOver(let reason) = event { print("started over: \(reason)") }
                }
            }
            var options = DurableUploadOptions()
            options.retry.policy.limit = 20  // attempts in a row without a new byte
            options.retry.timeWithoutProgress = .seconds(3600)
            options.chunkSize = 8 << 20  // bytes of one request, for servers that limit them
            options.checksum = .sha256  // of each request
            options.metadata = ["project": "tern"]  // tus alone
            options.contentType = "application/x-iso9660-image"
            options.throttle = 1_000_000  // bytes a second
            _ = try await client.upload(file, resuming: .tus("files/"), options: options).value
            let metadata = "filename YmlnLmlzbw==,filetype YXBwbGljYXRpb24veC1pc285NjYwLWltYWdl,project dGVybg=="
            #expect(uploads.uploads.last?.fields["Upload-Metadata"] == metadata)
            #expect(uploads.uploads.allSatisfy { $0.bytes == Array("test".utf8) } && uploads.checksums.count == 1)
        }
    }

    @Test func examplesOfUploadsToAnyServerMatchTheirArticle() async throws {
        let received = Log<Int>()
        try await withServer { exchange in
            received.add(try exchange.readBody().count)
            try exchange.respond(status: received.all.count == 3 ? 403 : 200)
        } test: { server, client, folder in
            let photo = folder.url("photo.jpg")
            try folder.write(Data("test".utf8), to: "photo.jpg")
            let presignedURL = server.url("/photo.jpg?signature=1")
            do {
                let task = client.upload(photo, retrying: .put(presignedURL))
                #expect(try await task.value.bytes == 4)
            }
            let form = WholeUpload.multipart("photos", fileField: "photo", formFields: ["album": "summer"])
            let result = try await client.upload(photo, retrying: form, headers: ["X-Client": "gallery"]).value
            print(result.response?.head.status ?? 0, result.attempts)
            do {
                let makePresignedURL = { @Sendable () async throws in server.url("/photo.jpg?signature=2") }
                var options = DurableUploadOptions()
                options.url = { _ in try await makePresignedURL() }
                let task = client.upload(photo, retrying: .put("photo.jpg?signature=1"), options: options)
                #expect(try await task.value.trace.contains(.replacedURL))
            }
            #expect(received.all.count == 4 && received.all[0] == 4 && received.all[1] > 4)
        }
    }
}
