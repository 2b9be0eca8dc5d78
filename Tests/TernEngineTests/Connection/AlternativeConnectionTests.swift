#if os(Linux)
import Dispatch
import Glibc
import TernConcurrency
import Testing

@testable import TernEngine

/// A port for UDP on 127.0.0.1 that takes datagrams, and answers none.
private final class SilentPort {
    private let descriptor: Int32
    let number: UInt16

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let address = SocketAddress.ipv4(0x7F00_0001, port: 0)
        guard unsafe address.withSystemAddress({ unsafe bind(descriptor, $0, $1) }) == 0,
            let local = Socket.local(of: descriptor)
        else { throw ScriptFailure("no port: \(SystemError.last.text)") }
        self.descriptor = descriptor
        number = local.port
    }

    deinit { close(descriptor) }

    /// Takes the datagrams that have arrived, and returns their number.
    func take() -> Int {
        var count = 0
        var byte: UInt8 = 0
        while unsafe recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 { count += 1 }
        return count
    }

    /// Waits until a datagram arrives, and takes it.
    func wait() async throws {
        let descriptor = descriptor
        let hasArrived = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                continuation.resume(returning: unsafe poll(&entry, 1, 20_000) == 1)
            }
        }
        try #require(hasArrived && take() > 0)
    }

    /// The fields of a response that names the port.
    var fields: String { "Alt-Svc: h3=\":\(number)\"\r\n" }
}

/// Requests to servers that name alternatives over HTTP/3 which are of no use. `HTTP3OfferTests` has those that are.
@Suite(.timeLimit(.minutes(1)), .enabled(if: HTTP3Session.obstacle == nil, "a library of HTTP/3 is missing"))
struct AlternativeConnectionTests {
    private static let overHTTP1 = ["connecting", "connected http11 new", "head 200", "ended"]
    private static let closing = "Connection: close\r\n"

    private func endpoint(_ server: ScriptedServer, _ identity: TestIdentity) -> Endpoint {
        var endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        endpoint.takesAlternatives = true
        return endpoint
    }

    @Test func aSilentAlternativeIsNoErrorAndIsTriedOnce() async throws {
        let identity = try TestIdentity()
        let port = try SilentPort()
        let fields = port.fields + Self.closing
        let server = try ScriptedServer(
            tls: try TestServer(identity), { try $0.answer(fields: fields) }, { try $0.answer(fields: fields) },
            { try $0.answer(fields: fields) })
        defer { server.stop() }
        let harness = try WireHarness(http3HeadStart: 1_000_000)
        let endpoint = endpoint(server, identity)
        #expect(await harness.start("/1", to: endpoint).waitForEnd() == Self.overHTTP1)
        #expect(port.take() == 0)
        #expect(await harness.start("/2", to: endpoint).waitForEnd() == Self.overHTTP1)
        #expect(port.take() > 0)
        #expect(await harness.start("/3", to: endpoint).waitForEnd() == Self.overHTTP1)
        #expect(port.take() == 0)
        #expect(server.accepted == 3 && server.failures == [])
    }

    @Test func anAlternativeThatRefusesLetsTCPStartAtOnce() async throws {
        let identity = try TestIdentity()
        let fields = try SilentPort().fields + Self.closing
        let server = try ScriptedServer(
            tls: try TestServer(identity), { try $0.answer(fields: fields) }, { try $0.answer(fields: fields) })
        defer { server.stop() }
        // Longer than the time limit of the suite.
        let harness = try WireHarness(http3HeadStart: 600_000_000_000)
        let endpoint = endpoint(server, identity)
        #expect(await harness.start("/1", to: endpoint).waitForEnd() == Self.overHTTP1)
        #expect(await harness.start("/2", to: endpoint).waitForEnd() == Self.overHTTP1)
        #expect(server.failures == [])
    }

    @Test func anOpenConnectionServesWhileTheAlternativeIsTried() async throws {
        let identity = try TestIdentity()
        let port = try SilentPort()
        let fields = port.fields
        let server = try ScriptedServer(
            tls: try TestServer(identity),
            { connection in
                for _ in 0..<3 { try connection.answer(fields: fields) }
            })
        defer { server.stop() }
        let harness = try WireHarness(http3HeadStart: 0)
        let endpoint = endpoint(server, identity)
        #expect(await harness.start("/1", to: endpoint).waitForEnd() == Self.overHTTP1)
        for path in ["/2", "/3"] {
            let log = harness.start(path, to: endpoint)
            #expect(await log.waitForEnd() == ["connected http11 reused", "head 200", "ended"])
        }
        // One attempt, which no exchange needs: it does not open a connection over TCP.
        #expect(port.take() > 0 && server.accepted == 1 && server.failures == [])
    }

    @Test func theTimeLimitForConnectingEndsTheRace() async throws {
        let identity = try TestIdentity()
        let port = try SilentPort()
        let fields = port.fields + Self.closing
        let server = try ScriptedServer(
            tls: try TestServer(identity), { try $0.answer(fields: fields) }, { try $0.answer(fields: fields) })
        defer { server.stop() }
        let harness = try WireHarness(http3HeadStart: 600_000_000_000)
        let endpoint = endpoint(server, identity)
        #expect(await harness.start("/1", to: endpoint).waitForEnd() == Self.overHTTP1)
        let second = harness.start("/2", to: endpoint)
        try await port.wait()
        harness.perform { client in client.exchange(of: second).map { client.pool.giveUpConnecting($0) } }
        // The alternative has not failed: nothing was reached. A cancelled request leaves its attempt to the next one.
        let third = harness.start("/3", to: endpoint)
        try await port.wait()
        harness.cancel(third)
        #expect(await harness.value { _ in second.entries + third.entries } == ["connecting", "connecting"])
        #expect(server.accepted == 1 && server.failures == [])
    }

    @Test func theErrorIsThatOfTCP() async throws {
        let identity = try TestIdentity()
        let port = try SilentPort()
        let fields = port.fields + Self.closing
        let server = try ScriptedServer(tls: try TestServer(identity), { try $0.answer(fields: fields) })
        let harness = try WireHarness(http3HeadStart: 1_000_000)
        let endpoint = endpoint(server, identity)
        #expect(await harness.start("/1", to: endpoint).waitForEnd() == Self.overHTTP1)
        server.stop()
        let second = harness.start("/2", to: endpoint)
        #expect(await second.waitForEnd().last == "failed connectionRefused")
        #expect(port.take() > 0)
    }
}

/// The responses that alternatives are taken from.
@Suite struct AlternativesTests {
    private let fields = "Alt-Svc: h3=\":1\", h3=\"b.example:2\"\r\n"

    private func destination(
        _ trust: TLSPolicy? = TLSPolicy(TLSOptions()), proxy: ProxyAddress? = nil, addresses: [SocketAddress]? = nil,
        socket: String? = nil, isForUpgrade: Bool = false, takes: Bool = true
    ) -> Destination {
        Destination(
            origin: "https://a.example:443", host: "a.example", port: 443, authority: "a.example", trust: trust,
            takesAlternatives: takes, proxy: proxy, addresses: addresses, unixSocketPath: socket,
            isForUpgrade: isForUpgrade)
    }

    private func learn(
        _ fields: String, status: Int = 200, _ destination: Destination, over alternative: AlternativeService? = nil,
        _ alternatives: Alternatives
    ) {
        let head = ReceivedHead(
            status: status, version: .http11, bytes: Array("HTTP/1.1 \(status) OK\r\n\(fields)\r\n".utf8))
        alternatives.learn(from: head, of: destination, over: alternative, now: 0)
    }

    private func best(_ destination: Destination, fields: String? = nil) -> AlternativeService? {
        let alternatives = Alternatives()
        learn(fields ?? self.fields, destination, alternatives)
        return alternatives.best(for: destination, now: 0)
    }

    @Test func onlyServersThatSpeakForTheirOriginNameThem() {
        func unchecked(_ change: (inout TLSOptions) -> Void) -> TLSPolicy {
            var options = TLSOptions()
            change(&options)
            return TLSPolicy(options)
        }
        #expect(best(destination()) == AlternativeService(port: 1))
        #expect(best(destination(nil)) == nil)
        #expect(best(destination(takes: false)) == nil)
        #expect(best(destination(proxy: ProxyAddress(.http, host: "p", port: 1))) == nil)
        #expect(best(destination(socket: "/tmp/s")) == nil)
        #expect(best(destination(isForUpgrade: true)) == nil)
        #expect(best(destination(unchecked { $0.anchors = .none })) == nil)
        #expect(best(destination(unchecked { $0.checksHostName = false })) == nil)
        #expect(best(destination(unchecked { $0.identity = .pkcs12([], password: "") })) == nil)
        #expect(best(Destination(overHTTP1: destination())) == nil)
    }

    @Test func addressesOfTheCallerBindTheHost() {
        let bound = destination(addresses: [.ipv4(0x7F00_0001, port: 443)])
        #expect(best(bound, fields: "Alt-Svc: h3=\"b.example:2\", h3=\":3\"\r\n") == AlternativeService(port: 3))
        #expect(best(bound, fields: "Alt-Svc: h3=\"b.example:2\"\r\n") == nil)
    }

    @Test func theNetworkIsLookedAtOnceASecond() {
        let addresses = Lock<[SocketAddress]>([.ipv4(1, port: 0)])
        let alternatives = Alternatives { NetworkMark(addresses: addresses.withLock { $0 }) }
        let destination = destination()
        let service = AlternativeService(port: 1)
        learn("Alt-Svc: h3=\":1\"; persist=1\r\n", destination, alternatives)
        #expect(alternatives.best(for: destination, now: 0) == service)
        alternatives.failed(service, of: destination, now: 0)
        #expect(alternatives.best(for: destination, now: 2_000_000_000) == nil)
        addresses.withLock { $0 = [.ipv4(2, port: 0)] }
        #expect(alternatives.best(for: destination, now: 2_900_000_000) == nil)
        #expect(alternatives.best(for: destination, now: 3_000_000_000) == service)
        // The machine's own network stays.
        #expect(NetworkMark.current() == NetworkMark.current())
    }

    @Test func anAlternativeIsNamedToItsServer() {
        let destination = destination()
        #expect(AlternativeService(port: 443).authority(of: destination) == "a.example")
        #expect(AlternativeService(port: 8_443).authority(of: destination) == "a.example:8443")
        #expect(AlternativeService(host: "b.example", port: 443).authority(of: destination) == "b.example")
        #expect(AlternativeService(host: "2001:db8::1", port: 1).authority(of: destination) == "[2001:db8::1]:1")
    }

    @Test func aMisdirectedRequestNamesNoneAndEndsTheUse() {
        let alternatives = Alternatives()
        let destination = destination()
        learn(fields, status: 421, destination, alternatives)
        #expect(alternatives.best(for: destination, now: 0) == nil)
        learn(fields, destination, alternatives)
        learn("", status: 421, destination, over: AlternativeService(port: 1), alternatives)
        #expect(alternatives.best(for: destination, now: 0) == AlternativeService(host: "b.example", port: 2))
        learn("Alt-Svc: clear\r\n", destination, alternatives)
        #expect(alternatives.best(for: destination, now: 0) == nil)
    }
}
#endif
