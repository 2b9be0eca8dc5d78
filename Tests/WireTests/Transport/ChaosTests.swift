#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Sends many requests to a server that breaks connections in every way. `make chaos N=50000` sends more of them.
@Suite(.serialized)
struct ChaosTests {
    /// The number of requests of a session. Each round has a session of its own.
    private static let roundSize = 500
    private static let wanted = ProcessInfo.processInfo.environment["TERN_CHAOS"].flatMap { Int($0) }
    private static let seed =
        ProcessInfo.processInfo.environment["TERN_CHAOS_SEED"].flatMap { UInt64($0) } ?? 1
    private static let isMeasured = wanted != nil

    @Test(.timeLimit(.minutes(isMeasured ? 60 : 3)))
    func brokenConnectionsNeverGiveWrongResponses() async throws {
        let ledger = ChaosLedger()
        let chaos = ChaosServer(seed: Self.seed, ledger: ledger)
        let sockets = try ProcessFacts.socketCount()
        let server = try LoopbackServer(requestLogLimit: 0) { try chaos.answer($0) }
        try await run(Self.wanted ?? 1_500, url: "\(server.url)", server: server, ledger: ledger)
        server.stop()
        #expect(try ProcessFacts.socketCount() <= sockets)
    }

    /// Runs rounds with sessions of different sizes, and checks after each that nothing of it is left.
    private func run(
        _ count: Int, url: String, server: LoopbackServer, ledger: ChaosLedger,
        change: (inout Session.Configuration) -> Void = { _ in }
    ) async throws {
        let start = ContinuousClock.now
        var memory: [Int] = []
        try await withFolder { folder in
            for (round, first) in stride(from: 0, to: count, by: Self.roundSize).enumerated() {
                let numbers = first..<min(count, first + Self.roundSize)
                await runRound(round, of: numbers, url: url, folder: folder, ledger: ledger, change: change)
                // The session is released, and has closed its connections.
                try await server.wait { $0.openConnections == 0 }
                let defects = ledger.judge(numbers)
                #expect(defects == [], "seed \(Self.seed), numbers \(numbers)")
                if !defects.isEmpty { break }
                memory.append(try ProcessFacts.residentSize() >> 10)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
        }
        // The first rounds fill caches and the heap of the process.
        if memory.count > 20, !ProcessFacts.isSanitized {
            #expect(memory[memory.count - 1] < memory[10] + 32 << 10, "\(memory)")
        }
        if Self.isMeasured {
            let sizes = "resident \(memory.first ?? 0) KiB after the first round, \(memory.last ?? 0) KiB at the end"
            print("\(count) requests to \(url) in \(ContinuousClock.now - start), seed \(Self.seed), \(sizes)")
            print(ledger.summary)
        }
    }

    private func runRound(
        _ round: Int, of numbers: Range<Int>, url: String, folder: URL, ledger: ChaosLedger,
        change: (inout Session.Configuration) -> Void
    ) async {
        let session = Session(
            configuration: .test {
                let idle = Duration.milliseconds(ProcessFacts.isSanitized ? 2_000 : 400)
                $0.timeouts = Timeouts(connect: .seconds(20), idle: idle, total: .seconds(60))
                $0.maximumConnectionsPerHost = [24, 6, 40][round % 3]
                $0.idleConnectionLifetime = [.seconds(60), .milliseconds(2)][round % 2]
                change(&$0)
            })
        let client = ChaosClient(session: session, url: url, seed: Self.seed, ledger: ledger, folder: folder)
        await client.send(numbers, atOnce: [32, 16, 64][round % 3])
        await session.drained()
        #expect(await session.tasks.count == 0)
        await session.finishTasksAndInvalidate()
    }
}
#endif
