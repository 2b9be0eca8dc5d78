#if os(Linux)
import HTTP3TestSupport
import Testing

@testable import TernEngine

/// A server, or someone on the path, that sends a session what it should not.
@Suite(.enabled(if: HTTP3Session.obstacle == nil, "a library of HTTP/3 is missing"))
struct HTTP3HostileTests {
    private static let second: UInt64 = 1_000_000_000

    /// Frames of which a server sends very many, in packets of their own.
    enum Flood: String, CaseIterable {
        case ping = "PING"
        case challenge = "PATH_CHALLENGE"
        case response = "PATH_RESPONSE"
        case streamsBlocked = "STREAMS_BLOCKED"
        case dataBlocked = "DATA_BLOCKED"
        case maximumStreams = "MAX_STREAMS"
        case maximumData = "MAX_DATA"
        case identifier = "NEW_CONNECTION_ID"
        case token = "NEW_TOKEN"
        case crypto = "CRYPTO"
        case reset = "RESET_STREAM"
        case handshakeDone = "HANDSHAKE_DONE"

        func frames(_ number: UInt64) -> [UInt8] {
            let small = HTTP3Bytes.integer(number)
            switch self {
            case .ping: return [1]
            case .challenge: return [0x1A] + HTTP3Bytes.integer(1 << 40 | number)
            case .response: return [0x1B, 1, 2, 3, 4, 5, 6, 7, 8]
            case .streamsBlocked: return [0x16] + small
            case .dataBlocked: return [0x14] + small
            case .maximumStreams: return [0x12] + HTTP3Bytes.integer(100 + number)
            case .maximumData: return [0x10] + small
            case .identifier:
                // Each retires all before it.
                let next = HTTP3Bytes.integer(number + 1)
                let identifier = (0..<8).map { UInt8(truncatingIfNeeded: (number + 1) >> UInt64($0 * 8)) }
                return [0x18] + next + next + [8] + identifier + identifier + identifier
            case .token: return [7, 32] + [UInt8](repeating: 7, count: 32)
            case .crypto: return [6] + HTTP3Bytes.integer(number * 32) + [32] + [UInt8](repeating: 0, count: 32)
            // Streams that the server opens and resets at once.
            case .reset: return [4] + HTTP3Bytes.integer(3 + 4 * (2 + number % 90)) + [0x41, 0, 0]
            case .handshakeDone: return [0x1E]
            }
        }
    }

    @Test(arguments: Flood.allCases)
    func floodsAreBounded(flood: Flood) throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        let stream = try #require(pair.submit())
        pair.run()
        let before = pair.sentBytes
        var count = 0
        for number in 0..<UInt64(3_000) where pair.failure == nil {
            pair.deliver(pair.server?.sealed(flood.frames(number)) ?? [])
            _ = pair.discardOutput()
            count += 1
        }
        // An answer for each at most, of the size of one datagram.
        let sent = pair.sentBytes - before
        #expect(sent <= 20_000 + count * 1_500, "\(flood): \(sent) bytes for \(count) packets")
        // A connection that is given up ends its request, and says why.
        if let failure = pair.failure {
            pair.end(failure)
            #expect(pair.error(of: stream) != nil, "\(flood)")
        } else {
            #expect(pair.session?.activeStreams == 1, "\(flood)")
        }
    }

    @Test func aServerThatResetsEveryRequestKeepsNothing() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        for _ in 0..<1_000 {
            let stream = try #require(pair.submit())
            pair.run()
            pair.server?.reset(stream, code: 0x10B)
            pair.server?.stop(stream, code: 0x10B)
            pair.run()
            #expect(pair.error(of: stream)?.kind == .notProcessed)
        }
        #expect(pair.session?.streams.isEmpty == true && pair.session?.activeStreams == 0)
    }

    @Test func aClientThatCancelsEveryRequestKeepsNothing() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        for number in 0..<1_000 {
            let stream = try #require(pair.submit())
            if number % 2 == 0 { pair.run() }
            pair.session?.cancel(stream)
            pair.run(for: 30_000_000)
            // The server ends its side.
            pair.server?.reset(stream, code: 0x10C)
            pair.run(for: 30_000_000)
        }
        #expect(pair.session?.streams.isEmpty == true && pair.failure == nil, "\(pair.failure as Any)")
    }

    /// A packet that violates QUIC (RFC 9000 §12.4, §13.1, §19).
    struct Violation: CustomStringConvertible {
        let description: String
        let frames: [UInt8]

        init(_ description: String, _ parts: [UInt8]...) {
            self.description = description
            frames = Array(parts.joined())
        }
    }

    private static let violations = [
        Violation("no frame"),
        Violation("an unknown frame", [0x1F]),
        Violation("an acknowledgement of what was not sent", [2], HTTP3Bytes.integer(1 << 40), [0, 0, 0]),
        Violation("a frame that is cut off", [4, 0]),
        Violation("a stream that only the client may open", [0x0A, 40, 1, 1]),
        Violation("more streams than are allowed", [0x0A], HTTP3Bytes.integer(3 + 4 * 5_000), [1, 1]),
        Violation("more bytes than are allowed", [0x0E, 0], HTTP3Bytes.integer(1 << 40), [1, 1]),
        Violation("a limit of streams that is too high", [0x12], HTTP3Bytes.integer(1 << 61)),
        Violation("RETIRE_CONNECTION_ID of what was not given", [0x19, 63]),
        Violation("more identifiers than are allowed", identifiers(9)),
        Violation("an identifier of no bytes", [0x18, 1, 0, 0], [UInt8](repeating: 9, count: 16)),
        Violation("a token of no bytes", [7, 0]),
        Violation("DATAGRAM", [0x31, 1, 1]),
        Violation("STOP_SENDING of a stream of the server", [5, 3, 0]),
    ]

    private static func identifiers(_ count: UInt8) -> [UInt8] {
        (1...count).flatMap { [0x18, $0, 0, 8] + [UInt8](repeating: $0, count: 24) }
    }

    @Test(arguments: violations)
    func aViolationEndsTheConnection(violation: Violation) throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        let stream = try #require(pair.submit())
        pair.run()
        pair.deliver(pair.server?.sealed(violation.frames) ?? [])
        let failure = try #require(pair.failure, "\(violation)")
        #expect(failure.kind == .malformedResponse, "\(violation): \(failure)")
        pair.end(failure)
        #expect(pair.error(of: stream) != nil)
    }

    @Test func theReasonOfAServerIsNotShown() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        pair.deliver(pair.server?.sealed([0x1D, 0x41, 0x07, 4] + Array("evil".utf8)) ?? [])
        let failure = try #require(pair.failure)
        #expect(failure.kind == .connectionLost && failure.reason.contains("H3_EXCESSIVE_LOAD"), "\(failure)")
        #expect(!failure.reason.contains("evil"))
    }

    // MARK: Datagrams without protection

    @Test func anyoneOnThePathCannotEndAConnection() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        let stream = try #require(pair.submit())
        pair.run()
        let before = pair.sentBytes
        for number in 0..<500 {
            let bytes = (0..<(number % 100)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
            pair.deliver(pair.server?.forged(bytes) ?? [])
            pair.deliver(bytes)
            pair.deliver([0xC0, 0, 0, 0, 1] + bytes)
            pair.deliver([0x80, 0, 0, 0, 0] + bytes)
            _ = pair.discardOutput()
        }
        // A stateless reset with another token.
        var reset = try #require(pair.server?.statelessReset())
        reset[reset.count - 1] ^= 1
        pair.deliver(reset)
        #expect(pair.failure == nil && pair.sentBytes - before < 5_000, "\(pair.failure as Any)")
        pair.server?.write(HTTP3Bytes.head(204), to: stream, isLast: true)
        pair.run()
        #expect(pair.hasEnded(stream))
    }

    @Test func aStatelessResetEndsTheConnection() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        let stream = try #require(pair.submit())
        pair.run()
        pair.deliver(try #require(pair.server?.statelessReset()))
        let failure = try #require(pair.failure)
        #expect(failure.kind == .connectionLost && failure.reason.contains("stateless reset"), "\(failure)")
        pair.end(failure)
        #expect(pair.error(of: stream)?.kind == .connectionLost)
    }

    /// Returns the first datagram of a client, and a packet of Version Negotiation for it (RFC 9000 §17.2.1).
    private func versions(_ versions: [UInt32], for first: [UInt8]) throws -> [UInt8] {
        try #require(first.count > 50 && first[0] & 0x80 != 0)
        let server = Int(first[5])
        let client = Int(first[6 + server])
        let identifiers = [first[6 + server]] + first[(7 + server)..<(7 + server + client)] + first[5..<(6 + server)]
        return [0x80, 0, 0, 0, 0] + identifiers
            + versions.flatMap { version in
                [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: version >> UInt32($0)) }
            }
    }

    @Test func aServerWithoutVersion1IsAnError() throws {
        let pair = try HTTP3Pair()
        defer { pair.end() }
        var first: [UInt8] = []
        pair.network = { _, bytes in
            if first.isEmpty { first = bytes }
            return []
        }
        pair.run()
        pair.deliver(try versions([0x6B33_43CF, 0xFF00_001D], for: first))
        let failure = try #require(pair.failure)
        #expect(failure.kind == .connectionFailed && failure.reason.contains("version 1"), "\(failure)")
    }

    @Test func versionsOfSomeoneElseAreIgnored() throws {
        let pair = try HTTP3Pair()
        defer { pair.end() }
        var first: [UInt8] = []
        pair.network = { _, bytes in
            if first.isEmpty { first = bytes }
            return [HTTP3Pair.delay]
        }
        pair.run(for: 1)
        // The version that the client uses, and other identifiers.
        pair.deliver(try versions([1, 0x6B33_43CF], for: first))
        var other = try versions([0x6B33_43CF], for: first)
        other[7] ^= 1
        pair.deliver(other)
        pair.run()
        #expect(pair.session?.isConnected == true)
        // After a packet of the server.
        pair.deliver(try versions([0x6B33_43CF], for: first))
        #expect(pair.failure == nil)
    }

    // MARK: Certificates

    @Test func noRequestIsSentWithoutAVerdict() throws {
        let pair = try HTTP3Pair()
        defer { pair.end() }
        pair.alert = 42
        pair.run(for: Self.second)
        #expect(pair.failure?.kind == .tls && pair.certificateCount == 1)
        #expect(pair.submit() == nil && pair.server?.takeRequest() == nil)
    }
}
#endif
