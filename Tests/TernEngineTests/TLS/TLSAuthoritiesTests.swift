#if os(Linux)
import Foundation
import Testing

@testable import TernEngine

@Suite(.timeLimit(.minutes(1))) struct TLSAuthoritiesTests {
    private func handshake(_ options: TLSOptions, _ server: TestServer) throws -> TLSHandshakeResult {
        try TestConnection(TLSPolicy(options), server).handshake()
    }

    @Test func policiesWithOneSourceShareItsCertificates() throws {
        let identity = try TestIdentity()
        let text = identity.pem
        let authorities = TLSAuthorities.of(.pem(text))
        #expect(authorities.parses == 0)
        var options = TLSOptions()
        options.roots = .pem(text)
        let server = try TestServer(identity)
        for _ in 0..<3 { #expect(try handshake(options, server) == .done) }
        options.anchors = .standardAnd([try TestIdentity.authority().der])
        #expect(try handshake(options, server) == .done)
        #expect(TLSAuthorities.of(.pem(text)) === authorities)
        #expect(authorities.parses == 1)
    }

    @Test func certificatesOfOnePolicyStayItsOwn() throws {
        let (shared, own) = try (TestIdentity.authority(), TestIdentity())
        var options = TLSOptions()
        options.roots = .pem(shared.pem)
        options.anchors = .standardAnd([own.der])
        let server = try TestServer(own)
        #expect(try handshake(options, server) == .done)
        options.anchors = .standard
        #expect(try handshake(options, server).error?.kind == .untrustedServer)
    }

    @Test func aChangedFileIsReadAgain() throws {
        let (first, second) = try (TestIdentity(), TestIdentity("another server"))
        try withFile(first.pem) { path in
            var options = TLSOptions()
            options.roots = .file(path)
            #expect(try handshake(options, TestServer(first)) == .done)
            #expect(try handshake(options, TestServer(second)).error?.kind == .untrustedServer)
            try Data(second.pem).write(to: URL(filePath: path))
            #expect(try handshake(options, TestServer(second)) == .done)
            #expect(try handshake(options, TestServer(first)).error?.kind == .untrustedServer)
        }
    }

    @Test func aFailureIsNotKept() throws {
        let identity = try TestIdentity()
        try withFile(Array("no certificate".utf8)) { path in
            var options = TLSOptions()
            options.roots = .file(path)
            let policy = TLSPolicy(options)
            #expect(policy.prepare()?.kind == .tls)
            try Data(identity.pem).write(to: URL(filePath: path))
            #expect(policy.prepare() == nil)
            let connection = try TestConnection(policy, TestServer(identity))
            #expect(connection.handshake() == .done)
        }
    }

    @Test func manyThreadsParseASourceOnce() async throws {
        let text = try TestIdentity().pem
        let authorities = TLSAuthorities.of(.pem(text))
        let failures = await withTaskGroup(of: EngineError?.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var options = TLSOptions()
                    options.roots = .pem(text)
                    return TLSPolicy(options).prepare()
                }
            }
            return await group.reduce(into: []) { failures, error in error.map { failures.append($0) } }
        }
        #expect(failures == [])
        #expect(authorities.parses == 1)
    }
}
#endif
