#if os(Linux)
import Foundation
import Glibc
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import DownloadCrashChild
@testable import TernTransfers

/// Kills a process that downloads, at any instant, and starts it again until the file is there: each file is right,
/// little is received twice, and nothing is left beside it.
@Suite("Durable downloads: kills", .serialized, .timeLimit(.minutes(30)))
struct DownloadKillTests {
    static let kills = ProcessInfo.processInfo.environment["TERN_DOWNLOAD_KILLS"].flatMap { Int($0) } ?? 20

    /// A way in which the server sends, and the client receives.
    struct Flow: CustomStringConvertible {
        let description: String
        let segments: Int
        /// The size of the pieces, each of which the client has read before the next is sent; nil for no pause.
        let piece: Int?
        /// The size of the file in bytes.
        let size: Int
        /// Whether the client hashes the bytes, which then pass through its memory.
        var isVerified = true
        /// The latest time of a kill after the start of the process, in microseconds.
        var latest: UInt32 = 400_000
    }

    /// With pieces, the server knows how many bytes the client has read.
    static let flows = [
        Flow(description: "slow, one stream", segments: 1, piece: 16 << 10, size: 24 << 20),
        Flow(description: "fast, one stream", segments: 1, piece: nil, size: 64 << 20),
        Flow(description: "slow, segments", segments: 4, piece: 16 << 10, size: 24 << 20),
        Flow(description: "fast, segments", segments: 4, piece: nil, size: 64 << 20),
        Flow(description: "slow, moved by the system", segments: 1, piece: 16 << 10, size: 24 << 20, isVerified: false),
        Flow(description: "fast, moved by the system", segments: 1, piece: nil, size: 64 << 20, isVerified: false),
        // In memory until it is whole.
        Flow(description: "small file", segments: 1, piece: 1 << 10, size: 256 << 10, latest: 150_000),
    ]

    @Test(arguments: flows)
    func fileIsRightAfterKills(flow: Flow) async throws {
        let size = flow.size
        let pattern = LoopbackServer.Pattern(count: size, seed: flow.segments)
        let body = pattern.bytes()
        let hash = try #require(FileHash(.sha256))
        hash.update(Data(body))
        let digest = Hexadecimal.lowercase(Array(hash.finalize().bytes))
        let received = Lock(0)
        let server = try LoopbackServer(requestLogLimit: 0) { exchange in
            guard let piece = flow.piece, exchange.request["Range"] != nil || flow.segments == 1 else {
                return try exchange.serveFile(pattern)
            }
            let (start, end) = exchange.range(of: size)
            var fields = [("ETag", pattern.etag), ("Content-Length", "\(end - start)")]
            let isPart = exchange.request["Range"] != nil
            if isPart { fields.append(("Content-Range", "bytes \(start)-\(end - 1)/\(size)")) }
            try exchange.writeHead(status: isPart ? 206 : 200, headers: fields)
            for from in stride(from: start, to: end, by: piece) {
                let to = min(from + piece, end)
                received.withLock { $0 += to - from }
                try exchange.write(body[from..<to])
                try exchange.waitUntilReceived()
            }
        }
        defer { server.stop() }
        try await inTestFolder { folder in
            let arguments = [
                server.url("/file").absoluteString, folder.url("file").path, flow.isVerified ? digest : "none",
                "\(flow.segments)",
            ]
            var (kills, files) = (0, 0)
            var random = SystemRandomNumberGenerator()
            while kills < max(1, Self.kills / Self.flows.count) {
                let child = try TransferProcess(arguments)
                // The process takes a while to start, and a few milliseconds for a fast download.
                usleep(UInt32.random(in: 5_000..<flow.latest, using: &random))
                child.kill()
                switch try child.end() {
                case .killed:
                    kills += 1
                    // Killed after the end of its download.
                    guard try folder.names == ["file"] else { continue }
                    try check(folder, pattern)
                    files += 1
                case .exited(let code):
                    try #require(code == 0, "the child failed")
                    try check(folder, pattern)
                    files += 1
                }
            }
            let last = try TransferProcess(arguments)
            guard case .exited(0) = try last.end() else {
                Issue.record("the last download failed")
                return
            }
            try check(folder, pattern)
            files += 1
            let wasted = flow.piece == nil ? nil : received.withLock { $0 } - files * size
            let share = wasted.map { Double($0) / Double(files * size) * 100 }
            print(
                "durable downloads, \(flow): \(kills) kills, \(files) files, "
                    + (wasted.map { "\($0) bytes wasted, \($0 / max(1, kills)) a kill, \(share ?? 0) %" } ?? "all right")
            )
            if let wasted { #expect(wasted <= max(kills * (256 << 10), files * size / 50)) }
        }
    }

    private func check(_ folder: TestFolder, _ pattern: LoopbackServer.Pattern) throws {
        #expect(try folder.names == ["file"])
        let bytes = try folder.bytes("file")
        #expect(bytes.count == pattern.count && pattern.matches(bytes))
        try FileManager.default.removeItem(at: folder.url("file"))
    }
}

extension LoopbackServer.Exchange {
    /// The positions that the request asks for.
    fileprivate func range(of size: Int) -> (start: Int, end: Int) {
        let ends = (request["Range"] ?? "").dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
        return (ends.first ?? 0, ends.count > 1 ? ends[1] + 1 : size)
    }
}
#endif
