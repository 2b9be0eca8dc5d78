#if os(Linux) && !TERN_URLSESSION
import Foundation
import Synchronization
import Tern
import TernTesting
import Testing

/// Checks which servers a connection is made with, against chains that the test makes.
@Suite(.serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct TrustTests {
    private func inChain(_ test: (TestChain) async throws -> Void) async throws {
        try await inTestFolder { folder in try await test(TestChain(in: folder)) }
    }

    private func get(
        _ url: String, _ policy: TrustPolicy, _ change: (inout Session.Configuration) -> Void = { _ in }
    ) async throws -> Response<Data> {
        let configuration = Session.Configuration.test {
            $0.trust.standard = policy
            change(&$0)
        }
        return try await Session(configuration: configuration).response(for: Request(.get, url))
    }

    private func isTaken(_ url: String, _ policy: TrustPolicy) async throws -> Bool {
        do {
            return try await get(url, policy).head.status == 200
        } catch let error as NetworkError where error.metrics?.sentBytes == 0 {
            return false
        }
    }

    @Test func anyCertificateOfTheChainCanBePinned() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "leaf", ["-cert_chain", chain.path("middle.pem")])
            let stranger = try Pin.key(of: chain.certificate("stranger"))
            for name in ["leaf", "middle", "root"] {
                var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
                policy.pins = [stranger, .key(of: try chain.certificate(name))]
                #expect(try await isTaken(server.url(), policy))
                policy.pinScope = .leaf
                #expect(try await isTaken(server.url(), policy) == (name == "leaf"))
                policy.pins = [.certificate(try chain.certificate(name))]
                policy.pinScope = .chain
                #expect(try await isTaken(server.url(), policy))
            }
        }
    }

    @Test func mismatchedPinIsRefusedBeforeSending() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "leaf", ["-cert_chain", chain.path("middle.pem")])
            let pin = try Pin.key(of: chain.certificate("stranger"))
            let policy = TrustPolicy(anchors: .only([try chain.certificate("root")]), pins: [pin])
            let error = try await failure { try await get(server.url(), policy) }
            #expect(error.kind == .pinMismatch && error.metrics?.sentBytes == 0)
            #expect(error.reason.contains("127.0.0.1") && error.reason.contains("expected \(pin)"))
            for name in ["leaf", "middle", "root"] {
                #expect(error.reason.contains("\(try chain.certificate(name))"))
            }
            let none = TrustPolicy(anchors: .only([try chain.certificate("root")]), pins: [])
            #expect(try await failure { try await get(server.url(), none) }.kind == .pinMismatch)
        }
    }

    @Test(arguments: [false, true]) func concurrentRequestsReportTheirOwnHandshake(allowsHTTP2: Bool) async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let authority = try Certificate.load(pem: Data(contentsOf: URL(filePath: nginx.authorityFile)))
        let client = try nginx.secureClient {
            $0.allowsHTTP2 = allowsHTTP2
            $0.trust.standard = TrustPolicy(anchors: .only(authority), pins: [])
        }
        let kinds = await withTaskGroup(of: NetworkError.Kind?.self) { group in
            for _ in 0..<12 {
                group.addTask {
                    do throws(NetworkError) {
                        _ = try await client.get("connection") as Data
                        return nil
                    } catch {
                        return error.kind
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(kinds.count == 12 && kinds.allSatisfy { $0 == .pinMismatch })
    }

    /// A certificate that a server sends besides its chain proves nothing: the server need not have its key.
    @Test func certificateOutsideTheChainMatchesNoPin() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "leaf", ["-cert_chain", chain.path("sent.pem")])
            let policy = TrustPolicy(
                anchors: .only([try chain.certificate("root")]), pins: [.key(of: try chain.certificate("stranger"))])
            #expect(try await failure { try await get(server.url(), policy) }.kind == .pinMismatch)
        }
    }

    /// Where no chain is verified, the server must have the key of its own certificate only.
    @Test func certificateOutsideTheChainMatchesNoPinWithoutVerification() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "leaf", ["-cert_chain", chain.path("sent.pem")])
            for name in ["leaf", "middle", "stranger"] {
                var policy = TrustPolicy.unchecked
                policy.pins = [.key(of: try chain.certificate(name))]
                #expect(try await isTaken(server.url(), policy) == (name == "leaf"))
            }
        }
    }

    @Test func pinnedCertificatesAreTheAnchors() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "leaf", ["-cert_chain", chain.path("middle.pem")])
            for name in ["leaf", "middle", "root"] {
                #expect(try await isTaken(server.url(), .pinned(to: [try chain.certificate(name)])))
            }
            let error = try await failure {
                try await get(server.url(), .pinned(to: [try chain.certificate("stranger")]))
            }
            #expect(error.kind == .untrustedServer && error.metrics?.sentBytes == 0)
            // No authority of the system has signed it.
            let system = try await failure {
                try await get(server.url(), .pinnedKeys(of: [try chain.certificate("leaf")]))
            }
            #expect(system.kind == .untrustedServer)
        }
    }

    // MARK: Decisions of the caller's code

    private struct Refusal: Error, CustomStringConvertible {
        let description = "not on the list"
    }

    @Test func aDecisionSeesTheVerifiedChainAndCanRefuse() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "leaf", ["-cert_chain", chain.path("middle.pem")])
            let seen = Mutex<[ServerTrust]>([])
            let chainOfServer = try ["leaf", "middle", "root"].map { try chain.certificate($0) }
            for isAccepted in [true, false] {
                var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
                policy.decision = TrustDecision { trust in
                    seen.withLock { $0.append(trust) }
                    // It can wait.
                    try await Task.sleep(for: .milliseconds(1))
                    if !isAccepted { throw Refusal() }
                }
                if isAccepted {
                    #expect(try await get(server.url(), policy).head.status == 200)
                } else {
                    let error = try await failure { try await get(server.url(), policy) }
                    #expect(error.kind == .untrustedServer && error.metrics?.sentBytes == 0, "\(error)")
                    #expect(error.reason.contains("not on the list"), "\(error)")
                }
                let trust = try #require(seen.withLock { $0.popLast() })
                #expect(trust.isVerified && trust.failure == nil && trust.host == "127.0.0.1")
                #expect(trust.certificates == chainOfServer)
            }
        }
    }

    /// Only a decision that says so is asked about a certificate that the other rules do not trust.
    @Test func aDecisionAcceptsAnUntrustedServerOnlyByName() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "leaf", ["-cert_chain", chain.path("middle.pem")])
            let asked = Mutex<[ServerTrust]>([])
            let accept: @Sendable (ServerTrust) async throws -> Void = { trust in asked.withLock { $0.append(trust) } }
            let error = try await failure { try await get(server.url(), .custom(TrustDecision(accept))) }
            #expect(error.kind == .untrustedServer && asked.withLock { $0.isEmpty }, "\(error)")

            let lenient = TrustPolicy.custom(.acceptingUnverified(accept))
            #expect(try await get(server.url(), lenient).head.status == 200)
            let trust = try #require(asked.withLock { $0.popLast() })
            #expect(!trust.isVerified && trust.failure?.isEmpty == false)
            // The server need not have the key of any other certificate.
            #expect(trust.certificates == [try chain.certificate("leaf")])

            // A trusted server is not reported as untrusted.
            var trusted = lenient
            trusted.anchors = .only([try chain.certificate("root")])
            #expect(try await get(server.url(), trusted).head.status == 200)
            let second = try #require(asked.withLock { $0.popLast() })
            #expect(second.isVerified && second.failure == nil && second.certificates.count == 3)

            // Another host.
            let other = try await get(
                server.url().replacing("127.0.0.1", with: "other.example"), trusted
            ) { $0.hostAddresses = ["other.example": ["127.0.0.1"]] }
            let third = try #require(asked.withLock { $0.popLast() })
            #expect(other.head.status == 200 && !third.isVerified && third.host == "other.example")

            // Pins count nevertheless.
            var pinned = lenient
            pinned.pins = [.key(of: try chain.certificate("stranger"))]
            #expect(try await failure { try await get(server.url(), pinned) }.kind == .pinMismatch)
            #expect(asked.withLock { $0.isEmpty })
        }
    }

    @Test func aDecisionIsAskedOnceForEachConnection() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            let count = Mutex(0)
            var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
            policy.decision = TrustDecision { _ in count.withLock { $0 += 1 } }
            let session = Session(configuration: .test { [policy] in $0.trust.standard = policy })
            for connections in 1...3 {
                // The server closes each connection; the next one resumes its session of TLS.
                _ = try await session.response(for: Request(.get, server.url()))
                #expect(count.withLock { $0 } == connections)
            }
        }
    }

    /// A decision that never comes is ended by the limits of the request, and its task is cancelled.
    @Test(arguments: [Timeouts(connect: .milliseconds(100)), Timeouts(total: .milliseconds(100)), Timeouts()])
    func aDecisionThatDoesNotComeEndsInTime(timeouts: Timeouts) async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            let (ended, continuation) = AsyncStream<Void>.makeStream()
            let (began, beginning) = AsyncStream<Void>.makeStream()
            var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
            policy.decision = TrustDecision { _ in
                beginning.finish()
                defer { continuation.finish() }
                try await Task.sleep(for: .seconds(3_600))
            }
            let session = Session(
                configuration: .test { [policy] in
                    $0.trust.standard = policy
                    $0.timeouts = timeouts
                    $0.idleConnectionLifetime = .milliseconds(50)
                })
            let task = session.task(for: try Request(.get, server.url()), startsImmediately: true)
            for await _ in began {}
            if timeouts == Timeouts() { task.cancel() }
            let error = try await failure { try await task.value }
            let kinds: Set<NetworkError.Kind> = [.connectTimedOut, .totalTimedOut, .cancelled]
            #expect(kinds.contains(error.kind) && error.metrics?.sentBytes ?? 0 == 0, "\(error)")
            for await _ in ended {}
        }
    }

    @Test func decisionsAreEqualByIdentity() {
        let decision = TrustDecision { _ in }
        #expect(TrustPolicy.custom(decision) == .custom(decision))
        #expect(TrustPolicy.custom(decision) != .custom(TrustDecision { _ in }))
        #expect(!"\(decision)".isEmpty && !"\(TrustDecision.acceptingUnverified { _ in })".isEmpty)
    }

    @Test func anchorsCanExtendThoseOfTheSystem() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            #expect(try await isTaken(server.url(), TrustPolicy(anchors: .standardAnd([chain.certificate("root")]))))
            #expect(
                try await !isTaken(server.url(), TrustPolicy(anchors: .standardAnd([chain.certificate("stranger")]))))
            #expect(try await !isTaken(server.url(), TrustPolicy()))
            // The session's own authorities count as the standard ones.
            let pem = try chain.bytes("root.pem")
            let policy = TrustPolicy(anchors: .standardAnd([try chain.certificate("stranger")]))
            for authorities in [Session.Configuration.Authorities.pem(pem), .file(chain.path("root.pem"))] {
                let response = try await get(server.url(), policy) { $0.authorities = authorities }
                #expect(response.head.status == 200)
            }
        }
    }

    /// The session's authorities must not be added to those of the policy, or replace them.
    @Test func sessionAuthoritiesDoNotExtendExclusiveAnchors() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            let pem = try chain.bytes("root.pem")
            let policy = TrustPolicy(anchors: .only([try chain.certificate("stranger")]))
            for authorities in [Session.Configuration.Authorities.pem(pem), .file(chain.path("root.pem"))] {
                // The second connection uses the authorities that the first one left.
                for _ in 0..<2 {
                    let error = try await failure {
                        try await get(server.url(), policy) { $0.authorities = authorities }
                    }
                    #expect(error.kind == .untrustedServer && error.metrics?.sentBytes == 0)
                }
            }
        }
    }

    @Test func reportsAreDeliveredAndTheRequestContinues() async throws {
        final class Watcher: SessionObserver {
            let reports = Mutex<[String]>([])
            func didFindUnpinned(_ report: String, of task: AnySessionTask) { reports.withLock { $0.append(report) } }
        }
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            var policy = TrustPolicy(
                anchors: .only([try chain.certificate("root")]), pins: [.key(of: try chain.certificate("stranger"))])
            policy.isReportOnly = true
            let watcher = Watcher()
            let response = try await get(server.url(), policy) { $0.observers = [watcher] }
            #expect(response.head.status == 200)
            #expect(response.metrics.pinReport?.contains("no pin for 127.0.0.1 fits") == true)
            #expect(watcher.reports.withLock { $0 } == [response.metrics.pinReport].compactMap { $0 })
        }
    }

    @Test func namesAndDatesAreCheckedByDefault() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
            #expect(try await !isTaken(server.url(host: "localhost"), policy))
            policy.checksHostName = false
            #expect(try await isTaken(server.url(host: "localhost"), policy))
            let expired = try await TLSServer(chain, "expired")
            let error = try await failure { try await get(expired.url(), policy) }
            #expect(error.kind == .untrustedServer && error.reason.contains("expired"))
        }
    }

    @Test func pinsApplyWithoutVerification() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "expired")
            #expect(try await isTaken(server.url(host: "localhost"), .unchecked))
            var policy = TrustPolicy.unchecked
            policy.pins = [.key(of: try chain.certificate("expired"))]
            #expect(try await isTaken(server.url(), policy))
            policy.pins = [.key(of: try chain.certificate("direct"))]
            #expect(try await failure { try await get(server.url(), policy) }.kind == .pinMismatch)
        }
    }

    @Test func clientCertificateIsPresented() async throws {
        try await inChain { chain in
            let server = try await TLSServer(
                chain, "direct", ["-Verify", "1", "-CAfile", chain.path("root.pem"), "-verify_return_error"])
            var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
            let identities: [ClientIdentity] = [
                .pem(certificates: try chain.bytes("client.pem"), key: try chain.bytes("client.key")),
                .pkcs12(try chain.bytes("client.p12"), password: "p12"),
            ]
            for identity in identities {
                policy.identity = identity
                #expect(try await get(server.url(), policy).head.status == 200)
            }
            // A key without its password is an error, and does not prompt at the terminal.
            policy.identity = .pem(certificates: try chain.bytes("client.pem"), key: try chain.bytes("locked.key"))
            #expect(try await failure { try await get(server.url(), policy) }.kind == .tls)
            policy.identity = .pem(
                certificates: try chain.bytes("client.pem"), key: try chain.bytes("locked.key"), password: "key")
            #expect(try await get(server.url(), policy).head.status == 200)
            policy.identity = nil
            _ = try await failure { try await get(server.url(), policy) }
            policy.identity = .pkcs12(try chain.bytes("client.p12"), password: "hunter2")
            let error = try await failure { try await get(server.url(), policy) }
            #expect(error.kind == .tls && !"\(error)".contains("hunter2"))
        }
    }

    @Test func minimumTLSVersionApplies() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct", ["-tls1_2"])
            var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
            #expect(try await isTaken(server.url(), policy))
            policy.minimumVersion = .tls13
            #expect(try await failure { try await get(server.url(), policy) }.kind == .tls)
        }
    }

    @Test func revokedCertificatesAreRefusedOnRequest() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            var policy = TrustPolicy(anchors: .only([try chain.certificate("root")]))
            policy.revocation = .list(file: chain.path("empty.crl"))
            #expect(try await isTaken(server.url(), policy))
            policy.revocation = .list(file: chain.path("revoked.crl"))
            let error = try await failure { try await get(server.url(), policy) }
            #expect(error.kind == .untrustedServer && error.reason.contains("revoked"))
            policy.revocation = .list(file: chain.path("none.crl"))
            let missing = try await failure { try await get(server.url(), policy) }
            #expect(missing.kind == .invalidRequest && missing.reason.contains("revoked"))
            // The session's authorities are checked, too.
            var standard = TrustPolicy()
            standard.revocation = .list(file: chain.path("revoked.crl"))
            let pem = try chain.bytes("root.pem")
            let other = try await failure {
                try await get(server.url(), standard) { $0.authorities = .pem(pem) }
            }
            #expect(other.kind == .untrustedServer && other.reason.contains("revoked"))
            policy.revocation = .requireStaple
            #expect(try await failure { try await get(server.url(), policy) }.metrics?.sentBytes == 0)
        }
    }

    /// Another spelling of an address must not get the connection, or the TLS session, of an address with pins.
    @Test(arguments: [true, false]) func everySpellingOfAnAddressHasItsPins(laxFirst: Bool) async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            let root = try chain.certificate("root")
            let stranger = Pin.key(of: try chain.certificate("stranger"))
            let session = Session(
                configuration: .test {
                    $0.trust.standard = TrustPolicy(anchors: .only([root]))
                    $0.trust.hosts = ["127.0.0.1": TrustPolicy(anchors: .only([root]), pins: [stranger])]
                })
            let lax = ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "\u{FF11}27.0.0.1"]
            for host in laxFirst ? lax + ["127.0.0.1"] : ["127.0.0.1"] + lax {
                let error = try await failure { try await session.response(for: Request(.get, server.url(host: host))) }
                #expect(error.kind == .pinMismatch && error.metrics?.sentBytes == 0, "\(host): \(error)")
            }
        }
    }

    @Test func everySpellingOfAnAddressHasOneConnection() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let authority = try Certificate.load(pem: Data(contentsOf: URL(filePath: nginx.authorityFile)))
        let client = try nginx.secureClient {
            $0.allowsHTTP2 = false
            $0.trust.standard = nil
            $0.trust.hosts = ["0x7f000001": TrustPolicy(anchors: .only(authority))]
        }
        var connections: Set<String> = []
        for host in ["127.1", "127.0.0.1", "2130706433", "127.0.0.1."] {
            let request = try Request(.get, "https://\(host):\(nginx.securePort)/connection")
            connections.insert(try await client.session.response(for: request, decode: .string).value)
        }
        #expect(connections.count == 1)
    }

    @Test func connectionsAreNotSharedBetweenPolicies() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let authority = try Certificate.load(pem: Data(contentsOf: URL(filePath: nginx.authorityFile)))
        let client = try nginx.secureClient { $0.allowsHTTP2 = false }
        var other = TrustPolicy(anchors: .only(authority))
        let first = other
        other.pinScope = .leaf
        func connection(_ policy: TrustPolicy?) async throws -> String {
            var request = try client.request(.get, "connection")
            request.trust = policy
            return try await client.response(for: request, as: String.self).value
        }
        let policies = [nil, first, .pinned(to: authority), other, .unchecked]
        var connections: [String] = []
        for policy in policies { connections.append(try await connection(policy)) }
        #expect(Set(connections).count == policies.count)
        // Each policy has its own connection, and uses it again.
        for (policy, known) in zip(policies, connections) {
            let again = try await connection(policy)
            #expect(again == known)
        }
    }

    @Test func redirectToAnotherOriginDropsThePolicyOfTheRequest() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            try await withServer { exchange in
                try exchange.respond(status: 302, headers: [("Location", server.url())], text: "")
            } test: { first, client in
                var request = try Request(.get, url: first.url)
                request.trust = .unchecked
                let error = try await failure { [request] in try await client.session.response(for: request) }
                #expect(error.kind == .untrustedServer)
            }
        }
    }

    /// A stranger who is between the client and the server of a pinned request cannot get around the pin by a detour.
    @Test func redirectBackBringsThePolicyOfTheRequestBack() async throws {
        try await inChain { chain in
            let server = try await TLSServer(chain, "direct")
            try await withServer { exchange in
                try exchange.respond(status: 302, headers: [("Location", server.url())], text: "")
            } test: { first, client in
                let own = try Target(absolute: server.url())
                var request = try Request(.get, server.url())
                request.trust = .unchecked
                request.updateTrust(forRedirectTo: try Target(absolute: first.url.absoluteString))
                request.target = try Target(absolute: first.url.absoluteString)
                #expect(request.trust == nil)
                // The first server redirects to the origin that the policy is for, whose certificate the session
                // refuses.
                let response = try await client.session.response(for: request)
                #expect(response.head.target.origin == own.origin && response.head.redirects.count == 1)
            }
        }
    }

    @Test func hostsWithoutAPolicyAreRefusedOnRequest() async throws {
        let configuration = Session.Configuration.test {
            $0.trust.standard = nil
            $0.trust.hosts = ["api.example.com": TrustPolicy()]
        }
        let session = Session(configuration: configuration)
        let error = try await failure { try await session.response(for: Request(.get, "https://127.0.0.1:1/")) }
        #expect(error.kind == .untrustedServer && error.reason.contains("127.0.0.1"))
    }

    @Test func pinsForPlainHTTPAreAnError() async throws {
        let configuration = Session.Configuration.test { $0.trust.hosts = ["127.0.0.1": TrustPolicy(pins: [])] }
        let session = Session(configuration: configuration)
        let error = try await failure { try await session.response(for: Request(.get, "http://127.0.0.1:1/")) }
        #expect(error.kind == .invalidRequest)
    }

    @Test func unsupportedConfigurationsAreErrors() throws {
        var configuration = Session.Configuration.test()
        try configuration.check()
        configuration.trust.hosts = ["h": TrustPolicy(anchors: .only([]))]
        #expect(throws: NetworkError.self) { try configuration.check() }
        configuration.trust.hosts = ["h": TrustPolicy(pins: [])]
        configuration.proxies = .only(Proxy(.https, host: "p", port: 1))
        try configuration.check()
    }
}
#endif
