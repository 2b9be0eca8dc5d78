#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

/// Reads many multipart streams of servers that stall, cut, reset and flood, with time limits, cancellations and
/// readers that stop. Each one ends within its limit and a second more. `make campaign N=50000` reads more of them.
@Suite(.serialized)
struct PartsCampaignTests {
    private static let wanted = ProcessInfo.processInfo.environment["TERN_CAMPAIGN"].flatMap { Int($0) }
    private static let seed = ProcessInfo.processInfo.environment["TERN_CAMPAIGN_SEED"].flatMap { UInt64($0) } ?? 1
    /// The number of streams of a session. Each round has a session of its own. Beside the other tests it is small,
    /// because the streams of a round begin together, and the bound is that of the streams and not of their beginning.
    private static let roundSize = wanted == nil ? 50 : 200

    @Test(.timeLimit(.minutes(wanted == nil ? 3 : 90)))
    func streamsOfPartsEndWithinTheirLimits() async throws {
        let count = Self.wanted ?? 1_000
        let server = try LoopbackServer(requestLogLimit: 0) { try Campaign.answer($0, seed: Self.seed) }
        defer { server.stop() }
        let delays = DelayMeter()
        delays.start()
        defer { delays.stop() }
        var ends: [String: Int] = [:]
        for (round, first) in stride(from: 0, to: count, by: Self.roundSize).enumerated() {
            let session = Session(configuration: Campaign.configuration(round))
            let client = Client(baseURL: server.url, session: session)
            let runs = (first..<min(count, first + Self.roundSize)).map { Campaign.Run($0, seed: Self.seed) }
            for run in runs { run.start(client) }
            guard try await ended(runs, delays) else { return }
            for run in runs { ends[run.ending ?? "none", default: 0] += 1 }
            await session.drained()
            try await server.wait { $0.openConnections == $0.idleConnections }
            await session.finishTasksAndInvalidate()
        }
        if Self.wanted != nil {
            print("\(count) streams of parts, seed \(Self.seed), longest delay of the machine \(delays.longest)")
            for (end, count) in ends.sorted(by: { $0.value > $1.value }) { print("  \(count)  \(end)") }
        }
    }

    /// Waits for the ends of runs. Returns false if one is late. The time for which the machine did not run this
    /// process does not count.
    private func ended(_ runs: [Campaign.Run], _ delays: DelayMeter) async throws -> Bool {
        while true {
            let open = runs.filter { $0.ending == nil }
            if open.isEmpty { break }
            // Much later than the limit, so that the run can be looked at while it hangs.
            if let late = open.first(where: { $0.age > $0.limit + .seconds(20) + delays.longest * 2 }) {
                Issue.record("\(late) hangs after \(late.age), seed \(Self.seed)")
                return false
            }
            try await ContinuousClock().sleepWithoutDescriptor(for: .milliseconds(5))
        }
        let margin = Duration.seconds(1) + delays.longest * 2
        let late = runs.filter { $0.age > $0.limit + margin }
        #expect(late.isEmpty, "\(late), seed \(Self.seed), margin \(margin)")
        return late.isEmpty
    }
}

/// Measures for how long the machine did not run a task that was due.
private final class DelayMeter: Sendable {
    private let state = Lock<(longest: Duration, isStopped: Bool)>((.zero, false))

    /// Begins to measure, until `stop()`.
    func start() {
        Task {
            while !state.withLock({ $0.isStopped }) {
                let due = ContinuousClock.now + .milliseconds(10)
                // An error means that the task is cancelled, which nobody does.
                guard (try? await ContinuousClock().sleepWithoutDescriptor(until: due)) != nil else { return }
                let delay = ContinuousClock.now - due
                state.withLock { $0.longest = max($0.longest, delay) }
            }
        }
    }

    var longest: Duration { state.withLock { $0.longest } }

    func stop() { state.withLock { $0.isStopped = true } }
}

private enum Campaign {
    /// The behaviour of the server after some parts.
    enum Fault: CaseIterable {
        case none, stall, cut, reset, flood, drip, junk, silence, wrongDelimiter, badChunk, refuse, gzipStall
    }

    /// The behaviour of the reader.
    enum Reader: CaseIterable {
        case patient, slow, cancelled, taskCancelled, stops, pauses, releases
    }

    struct Generator: RandomNumberGenerator {
        private var state: UInt64

        init(_ number: Int, seed: UInt64) { state = UInt64(number) &* 0x2545_F491_4F6C_DD1D ^ seed << 32 ^ seed }

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    static func configuration(_ round: Int) -> Session.Configuration {
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.maximumConnectionsPerHost = [200, 50, 200, 20][round % 4]
        configuration.maximumBodySize = 1 << 20
        configuration.idleConnectionLifetime = [.seconds(60), .milliseconds(2)][round % 2]
        return configuration
    }

    // MARK: The server

    static func answer(_ exchange: LoopbackServer.Exchange, seed: UInt64) throws {
        guard let number = Int(exchange.request.path.dropFirst()) else { return exchange.reset() }
        var random = Generator(number, seed: seed)
        let fault = Fault.allCases.randomElement(using: &random) ?? .none
        let parts = Int.random(in: 0...5, using: &random)
        let size = [0, 10, 1_000, 60_000, 400_000].randomElement(using: &random) ?? 0
        if fault != .none { exchange.closeAfterResponse() }
        switch fault {
        case .silence: return try exchange.waitForClientToClose()
        case .refuse: return try exchange.respond(status: 503, text: "busy")
        default: break
        }
        let coding: LoopbackServer.Fields = fault == .gzipStall ? [("Content-Encoding", "gzip")] : []
        try exchange.writeChunkedHead(
            headers: [("Content-Type", "multipart/x-mixed-replace; boundary=b")] + coding)
        if fault == .gzipStall {
            try exchange.writeChunk([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3])
            return try exchange.waitForClientToClose()
        }
        let line = fault == .wrongDelimiter ? "--other\r\n" : "--b\r\n"
        let body = String(repeating: "x", count: size)
        let part = Array("\(line)Content-Type: image/jpeg\r\n\r\n\(body)\r\n".utf8)
        for _ in 0..<parts { try exchange.writeChunk(part) }
        try end(exchange, fault, part)
    }

    private static func end(_ exchange: LoopbackServer.Exchange, _ fault: Fault, _ part: [UInt8]) throws {
        switch fault {
        case .none, .wrongDelimiter:
            try exchange.writeChunk(Array("--b--\r\n".utf8))
            try exchange.endChunks()
        case .cut:
            try exchange.write("40\r\n--b\r\nX: 1\r\n")
            exchange.close()
        case .reset: exchange.reset()
        case .flood: while true { try exchange.writeChunk(part + [0x0A]) }
        case .junk: while true { try exchange.writeChunk([UInt8](repeating: 0x0A, count: 1_000)) }
        case .badChunk: try exchange.write("zz\r\n")
        case .drip:
            while true {
                try exchange.writeChunk(Array("--b\r\n\r\none\r\n".utf8))
                try exchange.pause(for: .milliseconds(3))
            }
        case .stall, .silence, .refuse, .gzipStall: try exchange.waitForClientToClose()
        }
    }

    // MARK: The reader

    /// One stream, and its end.
    final class Run: Sendable, CustomStringConvertible {
        private struct State {
            var start = ContinuousClock.now
            var end: (time: ContinuousClock.Instant, text: String)?
            var place = "not started"
            var task: AnySessionTask?
        }

        let number: Int
        let limit: Duration
        private let fault: Fault
        private let reader: Reader
        private let delay: Duration
        private let state = Lock(State())

        init(_ number: Int, seed: UInt64) {
            self.number = number
            var server = Generator(number, seed: seed)
            fault = Fault.allCases.randomElement(using: &server) ?? .none
            var random = Generator(number, seed: ~seed)
            reader = Reader.allCases.randomElement(using: &random) ?? .patient
            limit = .milliseconds(Int.random(in: 1...300, using: &random))
            delay = .milliseconds(Int.random(in: 0...200, using: &random))
        }

        var ending: String? { state.withLock { $0.end?.text } }
        var age: Duration { state.withLock { ($0.end?.time ?? .now) - $0.start } }
        var description: String {
            let (place, task) = state.withLock { ($0.place, $0.task) }
            return "run \(number): \(fault), \(reader), limit \(limit), delay \(delay), took \(age), at \(place), "
                + "task \(task.map { "\($0.state)" } ?? "none"), \(ending ?? "open")"
        }

        func start(_ client: Client) {
            state.withLock { $0.start = .now }
            let work = Task {
                let text = await read(client)
                state.withLock { $0.end = (.now, text) }
            }
            guard reader == .cancelled else { return }
            Task {
                // Nobody cancels this task.
                try? await ContinuousClock().sleepWithoutDescriptor(for: delay)
                work.cancel()
            }
        }

        private func note(_ place: String) { state.withLock { $0.place = place } }

        private func read(_ client: Client) async -> String {
            do {
                let stream = client.stream("\(number)") { request in
                    request.timeouts.total = limit
                    request.timeouts.idle = .seconds(60)
                }
                let task = stream.task
                state.withLock { $0.task = task }
                note("the first part")
                if reader == .taskCancelled { cancel(task) }
                if reader == .pauses { pause(task) }
                if reader == .releases {
                    // A reader that never reads.
                    _ = try await stream.response
                    return "released"
                }
                var count = 0
                for try await _ in stream.parts {
                    count += 1
                    note("part \(count)")
                    if reader == .stops, count == 2 { return "stopped" }
                    if reader == .slow { try await ContinuousClock().sleepWithoutDescriptor(for: .milliseconds(5)) }
                }
                return "ended"
            } catch let error as NetworkError {
                return error.kind.rawValue
            } catch {
                return "cancelled between parts"
            }
        }

        private func cancel(_ task: AnySessionTask) {
            Task {
                // Nobody cancels this task.
                try? await ContinuousClock().sleepWithoutDescriptor(for: delay)
                task.cancel()
            }
        }

        /// Pauses the task for a moment. A pause stops the limit, and is short enough for the margin.
        private func pause(_ task: AnySessionTask) {
            Task {
                // Nobody cancels this task.
                try? await ContinuousClock().sleepWithoutDescriptor(for: delay)
                task.pause()
                try? await ContinuousClock().sleepWithoutDescriptor(for: .milliseconds(20))
                task.resume()
            }
        }
    }
}
#endif
