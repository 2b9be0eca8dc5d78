#if os(Linux)
import HTTP3TestSupport
import Testing

@testable import TernEngine

/// A session over a network in memory that loses, delays, repeats and changes datagrams.
@Suite(.enabled(if: HTTP3Session.obstacle == nil, "a library of HTTP/3 is missing"))
struct HTTP3NetworkTests {
    private static let second: UInt64 = 1_000_000_000

    /// Generates the same numbers in every run.
    private struct Numbers {
        var state: UInt64

        mutating func below(_ limit: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % limit
        }
    }

    private static func body(_ stream: Int64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8 &+ Int(stream)) }
    }

    /// Answers each request that has ended with a body of its own.
    private func serve(_ pair: HTTP3Pair, bodySize: Int) {
        while let (stream, _) = pair.server?.takeRequest() {
            let body = Self.body(stream, bodySize)
            pair.server?.write(
                HTTP3Bytes.head(200, [("content-length", "\(body.count)")]) + HTTP3Bytes.data(body), to: stream,
                isLast: true)
        }
    }

    /// Networks: of 1,000 datagrams, so many are lost, come twice, are delayed, and have a changed bit.
    private static let networks: [(lost: UInt64, doubled: UInt64, delayed: UInt64, changed: UInt64)] = [
        (0, 0, 0, 0), (50, 0, 0, 0), (200, 0, 0, 0), (0, 300, 0, 0), (0, 0, 500, 0), (0, 0, 0, 100), (80, 80, 200, 30),
    ]

    @Test(arguments: networks, [UInt64(1), 2, 3])
    func everyResponseArrivesWhole(
        network: (lost: UInt64, doubled: UInt64, delayed: UInt64, changed: UInt64), seed: UInt64
    ) throws {
        let pair = try HTTP3Pair()
        defer { pair.end() }
        var numbers = Numbers(state: seed)
        pair.network = { _, bytes in
            if numbers.below(1_000) < network.lost { return [] }
            if numbers.below(1_000) < network.changed, !bytes.isEmpty {
                bytes[Int(numbers.below(UInt64(bytes.count)))] ^= 1 << UInt8(numbers.below(8))
            }
            let delay = HTTP3Pair.delay + (numbers.below(1_000) < network.delayed ? numbers.below(30_000_000) : 0)
            return numbers.below(1_000) < network.doubled ? [delay, 2 * delay] : [delay]
        }
        pair.run(for: 9 * Self.second) { pair.session?.isConnected ?? false }
        let session = try #require(pair.session)
        // A network that loses one in five can lose every datagram of a handshake.
        try #require(session.isConnected, "\(pair.failure as Any)")
        if let control = pair.server?.openStream() { pair.server?.write([0, 4, 0], to: control) }
        pair.onBody = { [unowned pair] stream, count in pair.session?.consume(stream, count: count) }
        var left: [Int64: Int] = [:]
        pair.onRead = { stream, room in
            let count = min(left[stream] ?? 0, room)
            left[stream, default: 0] -= count
            return count == 0 ? .end : .bytes(count)
        }
        var streams: [Int64] = []
        for number in 0..<20 {
            let isUpload = number % 3 == 0
            let stream = try #require(pair.submit(isUpload ? "POST" : "GET", hasBody: isUpload))
            if isUpload { left[stream] = 5_000 }
            streams.append(stream)
        }
        pair.run(for: 120 * Self.second) {
            serve(pair, bodySize: 20_000)
            return streams.allSatisfy { pair.hasEnded($0) || pair.error(of: $0) != nil }
        }
        for stream in streams {
            #expect(pair.hasEnded(stream), "\(stream): \(pair.error(of: stream) as Any), \(pair.failure as Any)")
            #expect(pair.bodies[stream] == Self.body(stream, 20_000))
        }
        #expect(session.activeStreams == 0)
    }

    @Test func aNetworkWithoutAnswersTakesTheLimitOfTheHandshake() throws {
        let pair = try HTTP3Pair()
        defer { pair.end() }
        pair.network = { _, _ in [] }
        pair.run(for: 9 * Self.second)
        #expect(pair.failure == nil && pair.sentDatagrams > 2)
        pair.run(for: 60 * Self.second)
        #expect(pair.failure?.kind == .connectionFailed)
        // An amplifier would send more than it got: a client sends a few datagrams.
        #expect(pair.sentDatagrams < 40, "\(pair.sentDatagrams)")
    }

    @Test func aSilentConnectionEnds() throws {
        let pair = try HTTP3Pair.connected { $0.idleTimeout = 30 * Self.second }
        defer { pair.end() }
        pair.run(for: 29 * Self.second)
        #expect(pair.failure == nil)
        pair.run(for: 60 * Self.second)
        let failure = try #require(pair.failure)
        #expect(failure.kind == .connectionLost && failure.reason.contains("silent"), "\(failure)")
    }

    @Test func aKeptConnectionDoesNotEnd() throws {
        let pair = try HTTP3Pair.connected { $0.idleTimeout = 30 * Self.second }
        defer { pair.end() }
        pair.session?.keepAlive(every: 10 * Self.second)
        pair.run(for: 200 * Self.second)
        #expect(pair.failure == nil)
    }

    @Test func aStreamThatIsNotReadDelaysNoOther() throws {
        let pair = try HTTP3Pair.connected {
            $0.streamWindow = 64 << 10
            $0.connectionWindow = 256 << 10
        }
        defer { pair.end() }
        let unread = try (0..<10).map { _ in try #require(pair.submit()) }
        pair.run()
        serve(pair, bodySize: 1 << 20)
        pair.run(for: 5 * Self.second)
        for stream in unread { #expect(1...64 << 10 ~= pair.bodies[stream]?.count ?? 0) }
        pair.onBody = { [unowned pair] stream, count in
            if !unread.contains(stream) { pair.session?.consume(stream, count: count) }
        }
        let other = try #require(pair.submit())
        pair.run(for: 20 * Self.second) {
            serve(pair, bodySize: 1 << 20)
            return pair.hasEnded(other)
        }
        #expect(pair.bodies[other] == Self.body(other, 1 << 20))
        // A reader that comes back gets the rest.
        for stream in unread { pair.session?.consume(stream, count: .max) }
        pair.onBody = { [unowned pair] stream, count in pair.session?.consume(stream, count: count) }
        pair.run(for: 60 * Self.second) { unread.allSatisfy { pair.hasEnded($0) } }
        for stream in unread { #expect(pair.bodies[stream] == Self.body(stream, 1 << 20)) }
    }

    @Test func anUploadFitsIntoSmallWindows() throws {
        var options = HTTP3TestServer.Options()
        (options.streamWindow, options.connectionWindow, options.requests) = (700, 1_000, 3)
        let pair = try HTTP3Pair.connected(options)
        defer { pair.end() }
        var left: [Int64: Int] = [:]
        pair.onRead = { stream, room in
            let count = min(left[stream] ?? 0, room)
            left[stream, default: 0] -= count
            return count == 0 ? .end : .bytes(count)
        }
        let streams = try (0..<3).map { _ in try #require(pair.submit("POST", hasBody: true)) }
        for stream in streams { left[stream] = 30_000 }
        #expect(pair.submit() == nil)
        var lengths: [Int64: UInt64] = [:]
        pair.run(for: 60 * Self.second) {
            while let (stream, length) = pair.server?.takeRequest() { lengths[stream] = length }
            return lengths.count == 3
        }
        for stream in streams { #expect((lengths[stream] ?? 0) > 30_000, "\(lengths)") }
    }

    @Test func theServerSeesAnotherAddressOfTheClient() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        pair.onBody = { [unowned pair] stream, count in
            pair.session?.consume(stream, count: count)
            // As behind a router that has forgotten the connection.
            if pair.bodies[stream]?.count ?? 0 > 500_000 { pair.clientPort = 2 }
        }
        let stream = try #require(pair.submit())
        pair.run()
        serve(pair, bodySize: 1 << 20)
        pair.run(for: 60 * Self.second) { pair.hasEnded(stream) }
        #expect(pair.bodies[stream] == Self.body(stream, 1 << 20) && pair.clientPort == 2)
    }

    @Test func keysChange() throws {
        let pair = try HTTP3Pair.connected()
        defer { pair.end() }
        pair.onBody = { [unowned pair] stream, count in pair.session?.consume(stream, count: count) }
        for _ in 0..<3 {
            let stream = try #require(pair.submit())
            pair.run(for: Self.second)
            #expect(pair.server?.updateKeys(at: pair.now) == true)
            serve(pair, bodySize: 10_000)
            pair.run(for: Self.second)
            #expect(pair.hasEnded(stream) && pair.failure == nil, "\(pair.failure as Any)")
        }
    }

    // MARK: Sessions that are resumed

    @Test func aTicketResumesTheSessionAndIsJudgedAgain() throws {
        let first = try HTTP3Pair.connected()
        let ticket = try #require(first.tickets.first)
        #expect(!first.isResumed && first.certificateCount == 1)
        first.end()
        let second = try HTTP3Pair.connected(ticket: ticket)
        #expect(second.isResumed && second.server?.isResumed == true && second.certificateCount == 1)
        second.end()
        // Certificates that are not accepted any more.
        let third = try HTTP3Pair(ticket: ticket)
        third.alert = 44
        third.run(for: Self.second)
        #expect(third.failure?.kind == .tls && third.failure?.reason.contains("44") == true)
        #expect(third.session?.isConnected == false && third.submit() == nil)
        third.end()
    }

    // MARK: Identities

    @Test(arguments: [false, true])
    func anIdentityIsShownToAServerThatAsks(asks: Bool) throws {
        var own = TLSOptions()
        let issuer = try TestIdentity.authority()
        let client = try TestIdentity("client", issuer: issuer)
        own.identity = .pem(certificates: client.pem + issuer.pem, key: client.key(), password: "")
        let identity = try #require(try TLSExportedIdentity(of: TLSPolicy(own)))
        #expect(try TLSExportedIdentity(of: TLSPolicy(TLSOptions())) == nil)
        var options = HTTP3TestServer.Options()
        options.requestsIdentity = asks
        let pair = try HTTP3Pair.connected(options, identity: identity)
        defer { pair.end() }
        #expect(pair.session?.isConnected == true, "\(pair.failure as Any)")
        #expect(pair.server?.clientCertificates == (asks ? 2 : 0))
        // A client without an identity goes on, if the server allows it.
        let other = try HTTP3Pair.connected(options)
        defer { other.end() }
        #expect(other.session?.isConnected == true && other.server?.clientCertificates == 0)
    }
}
#endif
