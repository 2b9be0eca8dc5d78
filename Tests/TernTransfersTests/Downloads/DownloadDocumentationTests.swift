import Tern
import TernTesting
import TernTransfers
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The examples of Documentation/DurableDownloads.md, word for word.

@Suite("Documentation: durable downloads", .timeLimit(.minutes(1)))
struct DownloadDocumentationTests {
    @Test func examplesMatchTheirArticle() async throws {
        // Opens when a new URL is asked for: the attempt that the pause ends may be refused and never know it.
        let signature = LoopbackServer.Gate()
        try await withServer { exchange in
            if exchange.request.path == "/test", !signature.isOpen { return try exchange.respond(status: 403) }
            let fields = [("ETag", "\"1\""), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]
            try exchange.respond(headers: fields, body: Array("test".utf8))
        } test: { server, client, folder in
            let file = folder.url("big.iso")
            do {
                let task = client.download("big.iso", to: file, resuming: .automatically)
                for await progress in task.progress { print(progress.fractionCompleted ?? 0) }
                let result = try await task.value
                print(result.file, result.bytes, result.attempts)
                #expect(result.bytes == 4)
                if let changed = task.latestResponse?.headers.date("Last-Modified") { print("changed at \(changed)") }
                #expect(task.latestResponse?.headers.date("Last-Modified")?.timeIntervalSince1970 == 784_111_777)
                for event in task.trace {
                    if case .startedOver(let reason, let discarded) = event {
                        print("\(reason): \(discarded) bytes discarded")
                    }
                }
            }
            let signedURL = { @Sendable () async throws in
                signature.open()
                return server.url("/test")
            }
            var options = DurableDownloadOptions()
            options.retry.policy.limit = 20  // attempts in a row without a new byte
            options.retry.timeWithoutProgress = .seconds(3600)
            options.retry.offlineWait = .seconds(600)
            options.url = { error in try await signedURL() }
            options.digest = .sha256("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
            options.expectedSize = 4
            options.contention = .wait
            options.throttle = 1_000_000  // bytes a second
            options.segments = 8
            let task = client.download("test", to: folder.url("test"), resuming: .automatically, options: options)
            task.throttle = nil  // while it runs
            task.pause()
            task.resume()
            let result = try await task.value
            #expect(result.digest == options.digest)
            #expect(result.trace.contains(.replacedURL))
            task.cancel()
            try await task.discard()
            #expect(try folder.names == ["big.iso", "test"])
        }
    }
}
