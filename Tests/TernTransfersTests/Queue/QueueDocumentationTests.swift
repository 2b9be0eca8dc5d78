import Tern
import TernTesting
import Testing

@testable import TernTransfers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The examples of Documentation/TransferQueue.md, word for word.

@Suite("Documentation: the transfer queue", .timeLimit(.minutes(1)))
struct QueueDocumentationTests {
    private struct Track: Codable, Sendable { let title: String }

    @Test func examplesMatchTheirArticle() async throws {
        let uploads = UploadServer(.tus)
        try await withServer { exchange in
            if exchange.request.path.hasPrefix("/files") { return try uploads.answer(exchange) }
            try exchange.respond(headers: [("ETag", "\"1\"")], body: Array("test".utf8))
        } test: { server, client, files in
            let (session, folder) = (client.session, files.url("queue"))
            do {
                let (url, file) = (server.url("/first"), files.url("first"))
                let queue = try await TransferQueue.open(folder, session: session)
                try await queue.enqueue(.download(url, to: file))
                for await item in queue.results {
                    print(item)
                    try await queue.acknowledge(.item(item.id))
                    break
                }
                await queue.close()
            }
            let (url, file) = (server.url("/track"), files.url("track"))
            let (photo, endpoint) = (files.url("photo"), server.url("/files"))
            try files.write(Data("photo".utf8), to: "photo")
            let token = { @Sendable () async throws in "secret" }
            var configuration = TransferQueue.Configuration()
            configuration.credentials = { item in
                TransferQueue.Credentials(headers: ["Authorization": "Bearer \(try await token())"])
            }
            let queue = try await TransferQueue.open(folder, session: session, configuration: configuration)
            var transfer = TransferQueue.Transfer.download(url, to: file)
            transfer.priority = .high
            transfer.group = "album 7"
            transfer.label = "Track 1"
            transfer.digest = .sha256("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
            transfer.requiresUnmeteredNetwork = true
            try transfer.setUserData(Track(title: "One"))
            let id = try await queue.enqueue(transfer)
            let upload = TransferQueue.Transfer.upload(photo, to: endpoint, by: .tus)
            try await queue.enqueue(contentsOf: [upload])  // all or none
            do {
                let presignedURL = endpoint
                let put = TransferQueue.Transfer.upload(photo, to: presignedURL, by: .put)
                var form = TransferQueue.Transfer.upload(photo, to: endpoint, by: .multipart)
                form.fileField = "photo"
                form.formFields = ["album": "summer"]
                #expect(put.uploadProtocol == .put && form.uploadProtocol == .multipart)
            }
            let track = try await queue.userData(Track.self, of: id)
            #expect(track?.title == "One")
            try await queue.setDependencies(of: "index", on: ["album 7"])
            var limits = TransferQueue.Limits()
            limits.transfers = 6  // 4 by default
            limits.transfersPerHost = 3  // 2 by default
            limits.bytesPerSecond = 1_000_000  // of all transfers together
            limits.bytesPerSecondPerHost = 500_000
            await queue.setLimits(limits)  // also while transfers run
            for await progress in queue.progress(of: .group("album 7")) {
                print(progress.fractionCompleted ?? 0, progress.estimatedTimeRemaining ?? .zero)
            }
            await queue.drained()  // nothing is left that could start
            for item in try await queue.snapshot {
                print(item.id, item.state, item.progress.completedBytes, item.failure?.reason ?? "")
                #expect(item.state == .finished)
            }
            #expect(uploads.completeUpload?.bytes == Array("photo".utf8))
            try await queue.pause(.group("album 7"))
            try await queue.resume(.group("album 7"))
            try await queue.cancel(.item(id))  // failed, and its part stays
            try await queue.retry(.all)
            try await queue.move(.item(id), to: .first)  // within its priority
            try await queue.setPriority(.low, of: .all)
            try await queue.remove(.item(id))  // with its part
            #expect(try await queue.item(id) == nil)
            await queue.close()
        }
    }

    /// Prints the time of the opening.
    @Test func tenThousandItemsAreReadAtTheOpening() async throws {
        try await withServer {
            try $0.respond(status: 404)
        } test: { server, client, files in
            var configuration = TransferQueue.Configuration()
            configuration.startsTransfers = false
            let folder = files.url("queue")
            let first = try await TransferQueue.open(folder, session: client.session, configuration: configuration)
            try await first.enqueue(
                contentsOf: (0..<10_000).map { number in
                    .download(server.url("/files/\(number)?key=\(number)"), to: files.url("files/\(number)"))
                })
            await first.close()
            let clock = ContinuousClock()
            let start = clock.now
            let queue = try await TransferQueue.open(folder, session: client.session, configuration: configuration)
            print("transfer queue: 10,000 items opened in \(clock.now - start)")
            #expect(try await queue.snapshot.count == 10_000)
            await queue.close()
        }
    }
}
