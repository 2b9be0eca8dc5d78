#if os(Linux)
import TernEngine
import Testing

@Suite struct TLSIdentityTests {
    @Test(arguments: [12, 13] as [Int32]) func theIdentityIsPresented(version: Int32) throws {
        let root = try TestIdentity.authority()
        let client = try TestIdentity("client", names: "", issuer: root)
        let server = try TestServer(TestIdentity(issuer: root), clientAuthority: root, version: version)
        let identities: [TLSOptions.Identity] = [
            .pem(certificates: client.pem, key: client.key(), password: nil),
            .pem(certificates: client.pem + root.pem, key: client.key(password: "secret"), password: "secret"),
            .pkcs12(client.pkcs12(password: "secret"), password: "secret"),
        ]
        for identity in identities {
            var options = TLSOptions.only(root)
            options.identity = identity
            let connection = try TestConnection(TLSPolicy(options), server)
            #expect(connection.handshake() == .done)
            #expect(connection.serverState == 1 && connection.serverHasClient)
        }
        // Over TLS 1.3 the refusal arrives after the client's handshake.
        let connection = try TestConnection(TLSPolicy(.only(root)), server)
        let result = connection.handshake()
        #expect(connection.serverState == -1)
        if version == 13 {
            guard case .failed(let error) = connection.read().last else { return #expect(Bool(false)) }
            #expect(error.kind == .tls && error.reason.contains("certificate required"))
        } else {
            #expect(result.error?.kind == .tls)
        }
    }

    /// A client without a certificate, with one of another authority, and with one that has expired.
    @Test(arguments: ["certificate required", "unknown ca", "certificate expired"])
    func theAlertBehindAResetIsRead(alert: String) throws {
        let root = try TestIdentity.authority()
        let server = try TestServer(TestIdentity(issuer: root), clientAuthority: root, version: 13)
        var options = TLSOptions.only(root)
        let client: TestIdentity? =
            switch alert {
            case "unknown ca": try TestIdentity("client", issuer: TestIdentity.authority("other"))
            case "certificate expired": try TestIdentity("client", issuer: root, start: -7_200, end: -3_600)
            default: nil
            }
        if let client { options.identity = .pem(certificates: client.pem, key: client.key(), password: nil) }
        let connection = try TestConnection(TLSPolicy(options), server)
        #expect(connection.handshake() == .done && connection.serverState == -1)
        connection.closeServerSocket()
        guard case .failed(let write) = connection.write([1]) else { return #expect(Bool(false)) }
        #expect(write.kind == .connectionLost)
        guard case .failed(let error) = connection.read().last else { return #expect(Bool(false)) }
        #expect(error.kind == .tls && error.reason.contains(alert), "\(error)")
    }

    @Test func anUnreadableIdentityIsAnErrorWithoutItsPassword() throws {
        let client = try TestIdentity("client")
        let other = try TestIdentity("other")
        let identities: [TLSOptions.Identity] = [
            .pem(certificates: client.pem, key: client.key(password: "secret"), password: nil),
            .pem(certificates: client.pem, key: client.key(password: "secret"), password: "hunter2"),
            .pem(certificates: client.pem, key: client.key(password: "secret"), password: "secret\0"),
            .pem(certificates: client.pem, key: other.key(), password: nil),
            .pem(certificates: [], key: client.key(), password: nil),
            .pem(certificates: client.pem, key: [], password: nil),
            .pkcs12(client.pkcs12(password: "secret"), password: "hunter2"),
            .pkcs12([1, 2, 3], password: "hunter2"),
            .pkcs12([], password: ""),
        ]
        for identity in identities {
            var options = TLSOptions()
            options.anchors = .none
            options.identity = identity
            let policy = TLSPolicy(options)
            let error = policy.prepare()
            #expect(error?.kind == .tls && error?.reason.contains("identity of the client") == true)
            #expect(error?.reason.contains("hunter2") == false)
            #expect(policy.prepare() == error)
        }
    }
}

@Suite struct TLSStapleTests {
    private func result(_ options: TLSOptions, _ identity: TestIdentity, _ staple: [UInt8]) throws -> [EngineError?] {
        try ([12, 13] as [Int32]).map { version in
            let server = try TestServer(identity, version: version, staple: staple)
            return try TestConnection(TLSPolicy(options), server).handshake().error
        }
    }

    @Test func onlyAValidResponseForTheCertificateIsAccepted() throws {
        let root = try TestIdentity.authority()
        let (leaf, other) = (try TestIdentity(issuer: root), try TestIdentity(issuer: root))
        let stranger = try TestIdentity.authority("stranger")
        var options = TLSOptions.only(root)
        options.revocation = .requiresStaple
        #expect(try result(options, leaf, root.staple(for: leaf)) == [nil, nil])
        #expect(try result(options, leaf, root.staple(for: leaf, end: 0)) == [nil, nil])
        let refused: [([UInt8], String)] = [
            ([], "no OCSP response"),
            ([1, 2, 3], "malformed"),
            (root.staple(for: leaf, .revoked), "revoked"),
            (root.staple(for: leaf, .unknown), "does not know"),
            (root.staple(for: other), "another certificate"),
            (root.staple(for: leaf, signer: stranger), "no valid signature"),
            (root.staple(for: leaf, signer: leaf), "no valid signature"),
            (root.staple(for: leaf, start: -7_200, end: -3_600), "out of date"),
            (root.staple(for: leaf, start: 3_600, end: 7_200), "out of date"),
            (root.staple(for: leaf, start: -8 * 86_400, end: 0), "out of date"),
        ]
        for (staple, text) in refused {
            for error in try result(options, leaf, staple) {
                #expect(error?.kind == .untrustedServer && error?.reason.contains(text) == true, "\(text)")
            }
        }
        // Without the requirement, responses do not count.
        #expect(try result(.only(root), leaf, root.staple(for: leaf, .revoked)) == [nil, nil])
    }

    @Test func theStandardAuthoritiesSignResponsesWithoutAnchors() throws {
        let root = try TestIdentity.authority()
        let leaf = try TestIdentity(issuer: root)
        var options = TLSOptions()
        options.anchors = .none
        options.revocation = .requiresStaple
        options.roots = .pem(root.pem)
        let error = try result(options, leaf, [])
        #expect(error.allSatisfy { $0?.kind == .untrustedServer })
    }
}
#endif
