#if os(Linux)
import Foundation
import Glibc
import Tern
import TernTesting
import Testing

@testable import DownloadCrashChild
@testable import TernTransfers

/// Kills a process that uploads, at any instant, and starts it again until the server has the file: each file is right,
/// little is sent twice, and nothing is left beside it.
@Suite("Durable uploads: kills", .serialized, .timeLimit(.minutes(30)))
struct UploadKillTests {
    static let kills = ProcessInfo.processInfo.environment["TERN_UPLOAD_KILLS"].flatMap { Int($0) } ?? 20

    @Test func fileIsRightAfterKills() async throws {
        let pattern = LoopbackServer.Pattern(count: 32 << 20, seed: 5)
        let uploads = UploadServer(.tus)
        try await withServer { exchange in
            try uploads.answer(exchange)
        } test: { server, _, folder in
            try folder.write(Data(pattern.bytes()), to: "file")
            let arguments = ["upload", server.url("/files").absoluteString, folder.url("file").path]
            var (kills, ends) = (0, 0)
            while kills < Self.kills || ends == 0 {
                let child = try TransferProcess(arguments)
                if kills < Self.kills {
                    // The process takes a while to start, and a few milliseconds for the file.
                    usleep(UInt32.random(in: 5_000..<200_000))
                    child.kill()
                }
                switch try child.end() {
                case .killed: kills += 1
                case .exited(let code):
                    try #require(code == 0, "the child failed")
                    #expect(try folder.names == ["file"])
                    let upload = try #require(uploads.completeUpload)
                    #expect(pattern.matches(upload.bytes) && upload.bytes.count == pattern.count)
                    ends += 1
                    uploads.removeAll()
                }
            }
            // A process that was killed between the creation and its record leaves an empty upload on the server.
            print("durable uploads: \(kills) kills, \(ends) files, all right")
        }
    }

    @Test func uploadInOneRequestBeginsAgainAfterAKill() async throws {
        let pattern = LoopbackServer.Pattern(count: 8 << 20, seed: 5)
        let received = LoopbackServer.Gate()
        let bodies = Log<[UInt8]>()
        try await withServer { exchange in
            if !received.isOpen {
                _ = try exchange.readChunk(upTo: 1 << 20)
                received.open()
                return try exchange.waitForClientToClose()
            }
            bodies.add(try exchange.readBody())
            try exchange.respond(text: "stored")
        } test: { server, _, folder in
            try folder.write(Data(pattern.bytes()), to: "file")
            let url = server.url("/file?signature=5ecre7").absoluteString
            let arguments = ["put", url, folder.url("file").path, folder.url("trace").path]
            let first = try TransferProcess(arguments)
            try await received.wait()
            first.kill()
            _ = try first.end()
            let control = try #require(try folder.names.first { $0.hasSuffix(".json") })
            #expect(try folder.bytes(control).firstRange(of: Data("5ecre7".utf8)) == nil)
            guard case .exited(0) = try TransferProcess(arguments).end() else {
                Issue.record("the second process failed")
                return
            }
            let trace = String(decoding: try folder.bytes("trace"), as: UTF8.self)
            #expect(trace == DurableUploadEvent.startedOver(.notResumable).description)
            let body = try #require(bodies.all.first)
            #expect(bodies.all.count == 1 && pattern.matches(body))
            #expect(try folder.names == ["file", "trace"])
        }
    }
}
#endif
