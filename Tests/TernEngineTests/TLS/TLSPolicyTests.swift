#if os(Linux)
import Testing

@testable import TernEngine

@Suite(.timeLimit(.minutes(1))) struct TLSPolicyTests {
    @Test func theEnvironmentNamesTheRootsFirst() {
        func find(_ file: String?, _ folder: String?, readable: [String]) -> SystemRoots {
            SystemRoots.find(file: file, folder: folder) { readable.contains($0) }
        }
        let files = SystemRoots.files
        #expect(find("/f", nil, readable: files) == .locations(file: "/f", folder: nil))
        #expect(find(nil, "/d", readable: files) == .locations(file: nil, folder: "/d"))
        #expect(find("/f", "/d", readable: []) == .locations(file: "/f", folder: "/d"))
        for (index, file) in files.enumerated() {
            #expect(find(nil, nil, readable: Array(files[index...])) == .locations(file: file, folder: nil))
        }
        #expect(find(nil, nil, readable: []) == .openSSL)
    }

    @Test func aPolicyIsPreparedOnceForManyThreads() async throws {
        let policy = TLSPolicy(TLSOptions())
        let contexts = try await withThrowingTaskGroup(of: UInt.self) { group in
            for _ in 0..<8 { group.addTask { try policy.context() } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(contexts.count == 1)
        #expect(policy.prepare() == nil)
        #expect(TLSPolicy(TLSOptions()).identifier != policy.identifier)
    }

    /// Connections on several threads share a policy and a cache of tickets.
    @Test func manyThreadsShareAPolicy() async throws {
        var options = TLSOptions()
        options.anchors = .none
        options.checksHostName = false
        options.judge = { $0.chain.count == 1 ? .accepted : .refused("another chain") }
        let (policy, cache) = (TLSPolicy(options), TLSResumption())
        let resumed = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<4 {
                group.addTask {
                    let server = try TestServer(TestIdentity())
                    var resumed = 0
                    for _ in 0..<20 {
                        let connection = try TestConnection(
                            policy, server, origin: "https://\(number)", resumption: cache)
                        #expect(connection.handshake() == .done)
                        _ = connection.read()
                        if connection.client.isResumed { resumed += 1 }
                    }
                    return resumed
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(resumed == 4 * 19)
    }

    @Test func anExpiredChainIsNotResumed() throws {
        let root = try TestIdentity.authority()
        let server = try TestServer(TestIdentity(issuer: root, end: 3_600))
        let cache = TLSResumption()
        let policy = TLSPolicy(.only(root))
        let connection = try TestConnection(policy, server, resumption: cache)
        #expect(connection.handshake() == .done)
        _ = connection.read()
        #expect(cache.count == 2)
        let key = TicketKey(
            policy: policy.identifier, origin: "https://localhost:443", host: "localhost", protocols: [])
        let ticket = try #require(cache.take(key, now: 0))
        #expect(ticket.expiry == ticket.chainExpiry)
        #expect(cache.take(key, now: ticket.chainExpiry) == nil)
    }
}
#endif
