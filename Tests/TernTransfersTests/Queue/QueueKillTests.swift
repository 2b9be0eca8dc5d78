#if os(Linux)
import Foundation
import Glibc
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import DownloadCrashChild
@testable import TernTransfers

/// Kills a process that runs a queue, at any instant, and starts it again until all of its transfers have finished: no
/// item and no result is lost, each file is right, and nothing is left.
@Suite("Transfer queue: kills", .serialized, .timeLimit(.minutes(30)))
struct QueueKillTests {
    static let kills = ProcessInfo.processInfo.environment["TERN_QUEUE_KILLS"].flatMap { Int($0) } ?? 15
    /// The short form has fewer transfers.
    static let transfers = kills < 100 ? 40 : 200

    private static func pattern(_ number: Int) -> LoopbackServer.Pattern {
        LoopbackServer.Pattern(count: 200_000 + number, seed: number)
    }

    @Test func queueFinishesAfterKills() async throws {
        let uploads = UploadServer(.tus)
        try await withServer { exchange in
            guard let number = Int(exchange.request.path.dropFirst()) else { return try uploads.answer(exchange) }
            try exchange.serveFile(Self.pattern(number))
        } test: { server, _, folder in
            var (kills, rounds, finished) = (0, 0, 0)
            while kills < Self.kills || rounds == 0 {
                let path = "\(folder.path)/\(rounds)"
                try prepare(path)
                let arguments = ["queue", server.url("").absoluteString.trimmed, path, "\(Self.transfers)"]
                var isDone = false
                while !isDone {
                    let child = try TransferProcess(arguments)
                    if kills < Self.kills {
                        // The process takes a while to start.
                        usleep(UInt32.random(in: 5_000..<120_000))
                        child.kill()
                    }
                    switch try child.end() {
                    case .killed: kills += 1
                    case .exited(let code):
                        try #require(code == 0, "the child failed")
                        isDone = true
                    }
                }
                try check(path, uploads)
                (rounds, finished) = (rounds + 1, finished + Self.transfers)
                uploads.removeAll()
                try FileManager.default.removeItem(atPath: path)
            }
            print("transfer queue: \(kills) kills, \(rounds) queues, \(finished) transfers, all right")
        }
    }

    private func prepare(_ path: String) throws {
        for name in ["books", "files"] {
            try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: true)
        }
        for number in 0..<Self.transfers where QueueChild.isUpload(number) {
            try Data(Self.pattern(number).bytes()).write(to: URL(filePath: "\(path)/files/\(number)"))
        }
    }

    private func check(_ path: String, _ uploads: UploadServer) throws {
        let numbers = 0..<Self.transfers
        let files = try FileManager.default.contentsOfDirectory(atPath: path + "/files")
        #expect(Set(files) == Set(numbers.map { "\($0)" }))
        let books = try FileManager.default.contentsOfDirectory(atPath: path + "/books")
        #expect(numbers.allSatisfy { books.contains("told-\($0)") })
        let complete = Dictionary(grouping: uploads.uploads.filter(\.isComplete), by: \.length)
        for number in numbers {
            let pattern = Self.pattern(number)
            let bytes = try Data(contentsOf: URL(filePath: "\(path)/files/\(number)"))
            #expect(bytes.count == pattern.count && pattern.matches(bytes), "\(number)")
            guard QueueChild.isUpload(number) else { continue }
            let found = complete[pattern.count] ?? []
            #expect(found.contains { pattern.matches($0.bytes) && $0.bytes.count == pattern.count }, "\(number)")
        }
        // Nothing is left in the queue.
        #expect(try QueueStore(folder: path + "/queue").load().records.isEmpty)
    }
}

extension String {
    /// The text without slashes at its end.
    fileprivate var trimmed: String { String(reversed().drop { $0 == "/" }.reversed()) }
}
#endif
