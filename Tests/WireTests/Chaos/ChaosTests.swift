#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Sends many requests to servers that break connections in every way: HTTP/1.1 over TCP and over TLS, HTTP/2 over TLS,
/// and HTTP/3 over a network that loses and changes datagrams. `make chaos N=50000` sends more of them.
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
        try await run(Self.wanted ?? 1_500, url: "\(server.url)", ledger: ledger) {
            try await server.wait { $0.openConnections == 0 }
        }
        server.stop()
        #expect(try ProcessFacts.socketCount() <= sockets)
    }

    @Test(.timeLimit(.minutes(isMeasured ? 60 : 3)))
    func brokenTLSConnectionsNeverGiveWrongResponses() async throws {
        try await runOverTLS(speaking: "http/1.1") { socket, server in
            let connection = ChaosTLSConnection(socket)
            connection.serve { try server.answer($0) }
        }
    }

    @Test(.timeLimit(.minutes(isMeasured ? 60 : 3)))
    func brokenHTTP2ConnectionsNeverGiveWrongResponses() async throws {
        try await runOverTLS(speaking: "h2") { socket, server in
            ChaosHTTP2Connection(socket, server: server).serve()
        }
    }

    @Test(.timeLimit(.minutes(isMeasured ? 60 : 3)), .enabled(if: AioQUICPeer.isExpected, "aioquic is missing"))
    func brokenHTTP3ConnectionsNeverGiveWrongResponses() async throws {
        let ledger = ChaosLedger(isSecure: true)
        let peer = try await AioQUICPeer(
            "--seed=\(Self.seed)", "--lost=5", "--doubled=10", "--delayed=30", "--changed=2")
        let log = ChaosHTTP3Log(peer, ledger: ledger)
        let sockets = try ProcessFacts.socketCount()
        let count = Self.wanted.map { $0 * 2 / 5 } ?? 500
        let authority = try Data(contentsOf: peer.folder.appending(path: "ca.pem"))
        let policy = TrustPolicy(anchors: .only(try Certificate.load(pem: authority)))
        try await run(count, url: "\(peer.url)/", ledger: ledger) {
            try log.read()
        } change: {
            $0.http3 = .always
            $0.trust.standard = policy
        }
        #expect(ledger.successes > count / 2)
        #expect(try ProcessFacts.socketCount() <= sockets)
    }

    private func runOverTLS(
        speaking protocolName: String, serve: @escaping @Sendable (ChaosSocket, ChaosServer) -> Void
    ) async throws {
        let ledger = ChaosLedger(isSecure: true)
        let chaos = ChaosServer(seed: Self.seed, ledger: ledger)
        let sockets = try ProcessFacts.socketCount()
        let listener = try ChaosListener(protocolName, ledger: ledger) { socket in
            chaos.serve(socket) { serve(socket, chaos) }
        }
        defer { listener.stop() }
        let policy = TrustPolicy(anchors: .only(try Certificate.load(pem: listener.authority)))
        try await run(Self.wanted ?? 1_500, url: "https://127.0.0.1:\(listener.port)/", ledger: ledger) {
            await listener.waitUntilIdle()
        } change: {
            $0.trust.standard = policy
        }
        if Self.isMeasured { print("  over \(listener.acceptedCount) connections, \(protocolName)") }
        listener.stop()
        #expect(try ProcessFacts.socketCount() <= sockets)
    }

    /// Runs rounds with sessions of different sizes, and checks after each that nothing of it is left.
    private func run(
        _ count: Int, url: String, ledger: ChaosLedger, waitUntilIdle: () async throws -> Void,
        change: (inout Session.Configuration) -> Void = { _ in }
    ) async throws {
        let start = ContinuousClock.now
        var memory: [Int] = []
        try await withFolder { folder in
            for (round, first) in stride(from: 0, to: count, by: Self.roundSize).enumerated() {
                let numbers = first..<min(count, first + Self.roundSize)
                await runRound(round, of: numbers, url: url, folder: folder, ledger: ledger, change: change)
                // The session is released, and has closed its connections.
                try await waitUntilIdle()
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
            print("\(count) requests to \(url) in \(ContinuousClock.now - start), seed \(Self.seed)")
            let sizes = stride(from: 0, to: memory.count, by: max(1, memory.count / 10)).map { memory[$0] }
            print("  resident KiB after rounds: \(sizes + memory.suffix(1))")
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
