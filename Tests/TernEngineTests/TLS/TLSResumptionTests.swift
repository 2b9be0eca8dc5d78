#if os(Linux)
import Synchronization
import Testing

@testable import TernEngine

@Suite struct TLSResumptionTests {
    private let root: TestIdentity
    private let server: TestServer
    private let server12: TestServer

    init() throws {
        root = try TestIdentity.authority()
        let leaf = try TestIdentity(names: "DNS:localhost,DNS:other", issuer: root)
        server = try TestServer(leaf, version: 13)
        server12 = try TestServer(leaf, version: 12)
    }

    /// Connects, and reads once so that tickets arrive. Returns whether a session was resumed.
    private func isResumed(
        _ policy: TLSPolicy, _ cache: TLSResumption, _ server: TestServer, host: String = "localhost",
        protocols: [String] = [], origin: String = "https://localhost:443"
    ) throws -> Bool {
        let connection = try TestConnection(
            policy, server, host: host, protocols: protocols, origin: origin, resumption: cache)
        #expect(connection.handshake() == .done)
        #expect(connection.read().last == .wouldBlock)
        return connection.client.isResumed
    }

    @Test func aTicketIsUsedOnce() throws {
        let (policy, cache) = (TLSPolicy(.only(root)), TLSResumption())
        #expect(try !isResumed(policy, cache, server))
        // OpenSSL's servers send two tickets after a whole handshake, and one after a resumed one.
        #expect(cache.count == 2)
        let connection = try TestConnection(policy, server, resumption: cache)
        #expect(cache.count == 1)
        #expect(connection.handshake() == .done)
        #expect(connection.client.isResumed)
        #expect(connection.read().last == .wouldBlock)
        #expect(cache.count == 2)
        for _ in 0..<5 { #expect(try isResumed(policy, cache, server)) }
        cache.removeAll()
        #expect(try !isResumed(policy, cache, server))
    }

    @Test func sessionsOfTLS12AreResumed() throws {
        let (policy, cache) = (TLSPolicy(.only(root)), TLSResumption())
        #expect(try !isResumed(policy, cache, server12))
        #expect(cache.count == 1)
        #expect(try isResumed(policy, cache, server12))
    }

    @Test func ticketsStayWithinPolicyOriginHostAndProtocols() throws {
        let (policy, cache) = (TLSPolicy(.only(root)), TLSResumption())
        #expect(try !isResumed(policy, cache, server))
        #expect(try !isResumed(TLSPolicy(.only(root)), cache, server))
        #expect(try !isResumed(policy, cache, server, host: "other"))
        #expect(try !isResumed(policy, cache, server, protocols: ["h2"]))
        #expect(try !isResumed(policy, cache, server, origin: "https://localhost:444"))
        #expect(try isResumed(policy, cache, server))
    }

    @Test func requiredStaplesExcludeResumption() throws {
        let leaf = try TestIdentity(issuer: root)
        let server = try TestServer(leaf, staple: root.staple(for: leaf))
        var options = TLSOptions.only(root)
        options.revocation = .requiresStaple
        let (policy, cache) = (TLSPolicy(options), TLSResumption())
        for _ in 0..<2 { #expect(try !isResumed(policy, cache, server)) }
        #expect(cache.count == 0)
    }

    @Test(arguments: [12, 13] as [Int32]) func theJudgeDecidesAboutResumedSessions(version: Int32) throws {
        let server = version == 12 ? server12 : server
        let verdict = Mutex(TLSVerdict.accepted)
        let peers = Mutex<[TLSPeer]>([])
        let box = Box(verdict: verdict, peers: peers)
        var options = TLSOptions.only(root)
        options.judge = { peer in
            box.peers.withLock { $0.append(peer) }
            return box.verdict.withLock { $0 }
        }
        let (policy, cache) = (TLSPolicy(options), TLSResumption())
        func connect() throws -> (TLSHandshakeResult, TLSSession) {
            let connection = try TestConnection(policy, server, resumption: cache)
            let result = connection.handshake()
            _ = connection.read()
            return (result, connection.client)
        }
        #expect(try connect().0 == .done)
        let resumed = try connect()
        #expect(resumed.1.isResumed && resumed.1.pinReport == nil)
        let seen = box.peers.withLock { $0 }
        #expect(seen.count == 2 && seen[0] == seen[1] && seen[0].chain.count == 2 && seen[0].isVerified)
        box.verdict.withLock { $0 = .reported("a report") }
        let reported = try connect()
        #expect(reported.0 == .done && reported.1.pinReport == "a report")
        if version == 13 { #expect(reported.1.isResumed) }
        box.verdict.withLock { $0 = .refused("a refusal") }
        let refused = try connect()
        #expect(refused.0 == .failed(EngineError(.refusedByPolicy, "a refusal")))
        #expect(!refused.1.isResumed)
    }

    @Test func theJudgeSeesTheVerifiedChainBeforeTheIdentityIsShown() throws {
        let client = try TestIdentity("client", names: "", issuer: root)
        let leaf = try TestIdentity(issuer: root)
        let server = try TestServer(leaf, intermediate: .authority("stranger"), clientAuthority: root)
        let peers = Box(verdict: Mutex(.refused("no pin fits")), peers: Mutex([]))
        for anchors in [TLSOptions.Anchors.only([root.der]), .none] {
            var options = TLSOptions()
            options.anchors = anchors
            options.identity = .pem(certificates: client.pem, key: client.key(), password: nil)
            options.judge = { peer in
                peers.peers.withLock { $0 = [peer] }
                return peers.verdict.withLock { $0 }
            }
            let connection = try TestConnection(TLSPolicy(options), server)
            #expect(connection.handshake() == .failed(EngineError(.refusedByPolicy, "no pin fits")))
            #expect(!connection.serverHasClient)
            let chain = anchors == .none ? [leaf.der] : [leaf.der, root.der]
            let peer = TLSPeer(
                host: "localhost", chain: chain, isVerified: anchors != .none, violation: nil)
            #expect(peers.peers.withLock { $0 } == [peer])
        }
    }

    @Test func theJudgeIsNotAskedAboutUntrustedChains() throws {
        let peers = Box(verdict: Mutex(.accepted), peers: Mutex([]))
        var options = TLSOptions.only(try TestIdentity.authority("other"))
        options.judge = { peer in
            peers.peers.withLock { $0.append(peer) }
            return .accepted
        }
        let result = try TestConnection(TLSPolicy(options), server).handshake()
        #expect(result.error?.kind == .untrustedServer)
        #expect(peers.peers.withLock { $0.isEmpty })
    }

    private final class Box: Sendable {
        let verdict: Mutex<TLSVerdict>
        let peers: Mutex<[TLSPeer]>

        init(verdict: consuming sending Mutex<TLSVerdict>, peers: consuming sending Mutex<[TLSPeer]>) {
            self.verdict = verdict
            self.peers = peers
        }
    }
}

@Suite struct TicketCacheTests {
    private func key(_ number: Int) -> TicketKey {
        TicketKey(policy: 1, origin: "https://\(number)", host: "\(number)", protocols: [])
    }

    @Test func theNewestTicketIsTakenFirst() {
        var cache = TicketCache<Int>(keys: 4, perKey: 2)
        for ticket in 1...3 { cache.insert(ticket, for: key(0), until: 100) }
        #expect(cache.count == 2)
        #expect(cache.take(key(0), now: 0) == 3)
        #expect(cache.take(key(0), now: 0) == 2)
        #expect(cache.take(key(0), now: 0) == nil)
        #expect(cache.take(key(1), now: 0) == nil)
    }

    @Test func expiredTicketsAreNotTaken() {
        var cache = TicketCache<Int>(keys: 4, perKey: 2)
        cache.insert(1, for: key(0), until: 100)
        cache.insert(2, for: key(0), until: 50)
        #expect(cache.take(key(0), now: 50) == 1)
        cache.insert(1, for: key(0), until: 100)
        #expect(cache.take(key(0), now: 100) == nil)
        #expect(cache.count == 0)
    }

    @Test func theKeyThatWasUsedTheLongestTimeAgoLeaves() {
        var cache = TicketCache<Int>(keys: 2, perKey: 2)
        cache.insert(0, for: key(0), until: 100)
        cache.insert(1, for: key(1), until: 100)
        cache.insert(2, for: key(0), until: 100)
        cache.insert(3, for: key(2), until: 100)
        #expect(cache.count == 3)
        #expect(cache.take(key(1), now: 0) == nil)
        #expect(cache.take(key(0), now: 0) == 2)
    }

    @Test func aCacheWithoutRoomKeepsNothing() {
        for (keys, perKey) in [(0, 2), (2, 0), (-1, -1)] {
            var cache = TicketCache<Int>(keys: keys, perKey: perKey)
            cache.insert(1, for: key(0), until: 100)
            #expect(cache.count == 0 && cache.take(key(0), now: 0) == nil)
        }
    }
}
#endif
