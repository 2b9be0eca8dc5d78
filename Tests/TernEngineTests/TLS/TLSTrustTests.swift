#if os(Linux)
import TernEngine
import Testing

@Suite struct TLSTrustTests {
    private func handshake(
        _ options: TLSOptions, _ server: TestServer, host: String = "localhost"
    ) throws -> TLSHandshakeResult {
        try TestConnection(TLSPolicy(options), server, host: host).handshake()
    }

    @Test(arguments: [12, 13] as [Int32]) func aChainToAnAnchorIsAccepted(version: Int32) throws {
        let root = try TestIdentity.authority()
        let middle = try TestIdentity.authority("middle", issuer: root)
        let server = try TestServer(TestIdentity(issuer: middle), intermediate: middle, version: version)
        let connection = try TestConnection(TLSPolicy(.only(root)), server)
        #expect(connection.handshake() == .done)
        #expect(connection.client.version == (version == 13 ? .tls13 : .tls12))
        #expect(!connection.client.cipherName.isEmpty)
        #expect(connection.client.pinReport == nil && !connection.client.isResumed)
        #expect(connection.requestedName == "localhost")
    }

    @Test func anyCertificateOfTheChainCanBeTheAnchor() throws {
        let root = try TestIdentity.authority()
        let middle = try TestIdentity.authority("middle", issuer: root)
        let leaf = try TestIdentity(issuer: middle)
        let server = try TestServer(leaf, intermediate: middle)
        for anchor in [root, middle, leaf] { #expect(try handshake(.only(anchor), server) == .done) }
        let error = try handshake(.only(TestIdentity.authority("stranger")), server).error
        #expect(error?.kind == .untrustedServer)
        #expect(error?.reason.contains("certificate of localhost:443 is not trusted: ") == true)
    }

    @Test func anUnknownAuthorityIsRefusedWithOpenSSLsReason() throws {
        let root = try TestIdentity.authority()
        let server = try TestServer(TestIdentity(issuer: root))
        let error = try handshake(.only(TestIdentity.authority()), server).error
        #expect(error?.kind == .untrustedServer)
        let other = try handshake(.only(TestIdentity.authority("other")), server).error
        #expect(other?.reason.contains("unable to get local issuer certificate") == true)
    }

    @Test func aCertificateThatSignsItselfIsRefusedUnlessItIsAnAnchor() throws {
        let own = try TestIdentity()
        let server = try TestServer(own)
        #expect(try handshake(.only(TestIdentity.authority()), server).error?.kind == .untrustedServer)
        #expect(try handshake(.only(own), server) == .done)
    }

    @Test(arguments: [(-7_200, -3_600, "expired"), (3_600, 7_200, "not yet valid")])
    func aCertificateOutsideItsDatesIsRefused(start: Int, end: Int, text: String) throws {
        let root = try TestIdentity.authority()
        let server = try TestServer(TestIdentity(issuer: root, start: start, end: end))
        let error = try handshake(.only(root), server).error
        #expect(error?.kind == .untrustedServer && error?.reason.contains(text) == true)
    }

    @Test(arguments: [
        ("DNS:localhost", "localhost", true),
        ("DNS:localhost", "localhost.", true),
        ("DNS:LOCALHOST", "localhost", true),
        ("DNS:example.com", "localhost", false),
        ("DNS:*.example.com", "a.example.com", true),
        ("DNS:*.example.com", "a.b.example.com", false),
        ("DNS:*.example.com", "example.com", false),
        ("DNS:a*.example.com", "ab.example.com", false),
        ("DNS:*b.example.com", "ab.example.com", false),
        ("DNS:*.com", "example.com", false),
        ("DNS:example.com,DNS:b.example", "b.example", true),
        ("DNS:xn--bcher-kva.example", "xn--bcher-kva.example", true),
        ("", "localhost", false),
        ("email:a@localhost", "localhost", false),
        ("IP:127.0.0.1", "127.0.0.1", true),
        ("IP:127.0.0.1", "127.0.0.2", false),
        ("IP:127.0.0.1", "localhost", false),
        ("DNS:127.0.0.1", "127.0.0.1", false),
        ("IP:0:0:0:0:0:0:0:1", "::1", true),
        ("IP:0:0:0:0:0:0:0:1", "::2", false),
        ("IP:fe80:0:0:0:0:0:0:1", "fe80::1%eth0", true),
    ])
    func namesMatchInFull(names: String, host: String, isAccepted: Bool) throws {
        let root = try TestIdentity.authority()
        let commonName = host.count < 60 ? host : "server"
        let server = try TestServer(TestIdentity(commonName, names: names, issuer: root))
        for anchors in [TLSOptions.Anchors.only([root.der]), .none] {
            var options = TLSOptions()
            options.anchors = anchors
            let connection = try TestConnection(TLSPolicy(options), server, host: host)
            let result = connection.handshake()
            #expect((result == .done) == isAccepted, "\(names) \(host) \(result)")
            if !isAccepted {
                #expect(result.error?.kind == .untrustedServer)
                #expect(result.error?.reason.contains("matches target host name '\(host)'") == true)
            }
            // Addresses are not names (RFC 6066 §3).
            let isAddress = host.contains(":") || host.hasPrefix("127")
            #expect(connection.requestedName == (isAddress ? nil : host == "localhost." ? "localhost" : host))
            options.checksHostName = false
            #expect(try handshake(options, server, host: host) == .done)
        }
    }

    @Test(arguments: ["", ".", "..", ".example.com", "a\0b", "a..", String(repeating: "a", count: 256)])
    func aTextThatIsNoHostIsRefused(host: String) throws {
        let server = try TestServer(TestIdentity())
        #expect(throws: EngineError.self) { try TestConnection(TLSPolicy(TLSOptions()), server, host: host) }
    }

    @Test func withoutAnchorsEveryChainIsAccepted() throws {
        var options = TLSOptions()
        options.anchors = .none
        options.checksHostName = false
        #expect(try handshake(options, TestServer(TestIdentity(end: -60))) == .done)
        #expect(try handshake(options, TestServer(TestIdentity(issuer: .authority()))) == .done)
    }

    @Test func ownAnchorsAddToTheStandardOnes() throws {
        let (root, other) = (try TestIdentity.authority(), try TestIdentity.authority("other"))
        let server = try TestServer(TestIdentity(issuer: root))
        func isAccepted(_ roots: TLSOptions.Roots, _ anchors: TLSOptions.Anchors) throws -> Bool {
            var options = TLSOptions()
            options.roots = roots
            options.anchors = anchors
            return try handshake(options, server) == .done
        }
        try withFile(other.pem + root.pem) { file throws in
            for roots in [TLSOptions.Roots.file(file), .pem(Array("text\n".utf8) + other.pem + root.pem)] {
                #expect(try isAccepted(roots, .standard))
                #expect(try isAccepted(roots, .standardAnd([other.der])))
                #expect(try !isAccepted(roots, .only([other.der])))
            }
        }
        #expect(try isAccepted(.system, .standardAnd([root.der])))
        #expect(try !isAccepted(.system, .standardAnd([other.der])))
        #expect(try !isAccepted(.system, .standard))
    }

    @Test func unreadableAnchorsAreAnError() throws {
        let root = try TestIdentity.authority()
        var options = TLSOptions()
        for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
            options.roots = .pem(Array(text.utf8))
            #expect(TLSPolicy(options).prepare()?.kind == .tls)
            try withFile(Array(text.utf8)) { file in
                options.roots = .file(file)
                #expect(TLSPolicy(options).prepare()?.kind == .tls)
            }
        }
        options.roots = .file("/absent/file.pem")
        let error = TLSPolicy(options).prepare()
        #expect(error?.kind == .tls && error?.reason.contains("/absent/file.pem") == true)
        for der in [[], [0x30, 0x00], root.der.dropLast(), root.der + [0]] as [[UInt8]] {
            options.anchors = .only([der])
            #expect(TLSPolicy(options).prepare()?.kind == .invalidRequest)
        }
    }

    @Test func theMinimumVersionApplies() throws {
        let root = try TestIdentity.authority()
        let server = try TestServer(TestIdentity(issuer: root), version: 12)
        var options = TLSOptions.only(root)
        #expect(try handshake(options, server) == .done)
        options.minimumVersion = .tls13
        #expect(try handshake(options, server).error?.kind == .tls)
    }

    @Test func revokedCertificatesAreRefused() throws {
        let root = try TestIdentity.authority()
        let leaf = try TestIdentity(issuer: root)
        let server = try TestServer(leaf)
        func result(_ list: [UInt8], _ roots: Bool) throws -> TLSHandshakeResult {
            try withFile(list) { file in
                var options = roots ? TLSOptions() : .only(root)
                if roots { options.roots = .pem(root.pem) }
                options.revocation = .list(file: file)
                return try handshake(options, server)
            }
        }
        for roots in [false, true] {
            #expect(try result(root.list(), roots) == .done)
            let error = try result(root.list(revoked: leaf), roots).error
            #expect(error?.kind == .untrustedServer && error?.reason.contains("certificate revoked") == true)
            // Each authority needs its list.
            let other = try result(TestIdentity.authority("other").list(), roots).error
            #expect(other?.kind == .untrustedServer && other?.reason.contains("CRL") == true)
        }
        var options = TLSOptions.only(root)
        options.revocation = .list(file: "/absent/list")
        let error = TLSPolicy(options).prepare()
        #expect(error?.kind == .invalidRequest && error?.reason.contains("revoked") == true)
    }
}
#endif
