#if os(Linux)
import CTernTestTLS
import Foundation
import TernEngine

/// A certificate with its key, which a test makes.
@safe final class TestIdentity {
    struct CreationFailed: Error {}

    let pointer: OpaquePointer
    private let issuer: TestIdentity?

    /// Creates an identity. The times are seconds from now.
    init(
        _ commonName: String = "server", names: String = "DNS:localhost", issuer: TestIdentity? = nil,
        isAuthority: Bool = false, start: Int = -3_600, end: Int = 86_400
    ) throws {
        let created = unsafe tern_test_identity_create(
            issuer?.pointer, commonName, names, isAuthority ? 1 : 0, start, end)
        guard let created = unsafe created else { throw CreationFailed() }
        unsafe pointer = created
        self.issuer = issuer
    }

    deinit { unsafe tern_test_identity_free(pointer) }

    static func authority(_ name: String = "root", issuer: TestIdentity? = nil) throws -> TestIdentity {
        try TestIdentity(name, names: "", issuer: issuer, isAuthority: true)
    }

    var der: [UInt8] { unsafe Self.bytes { unsafe tern_test_certificate_der(pointer, $0) } }
    var pem: [UInt8] { unsafe Self.bytes { unsafe tern_test_certificate_pem(pointer, $0) } }

    func key(password: String? = nil) -> [UInt8] {
        unsafe Self.bytes { unsafe tern_test_key_pem(pointer, password, $0) }
    }

    func pkcs12(password: String) -> [UInt8] { unsafe Self.bytes { unsafe tern_test_pkcs12(pointer, password, $0) } }

    /// Returns a list of revoked certificates, which this authority signs.
    func list(revoked: TestIdentity? = nil) -> [UInt8] {
        unsafe Self.bytes { unsafe tern_test_crl_pem(pointer, revoked?.pointer, $0) }
    }

    /// The status of a certificate in an OCSP response.
    enum Status: Int32 {
        case good, revoked, unknown
    }

    /// Returns an OCSP response for a certificate of this authority.
    func staple(
        for subject: TestIdentity, _ status: Status = .good, signer: TestIdentity? = nil, start: Int = -60,
        end: Int = 3_600
    ) -> [UInt8] {
        unsafe Self.bytes {
            unsafe tern_test_staple(
                (signer ?? self).pointer, pointer, subject.pointer, status.rawValue, start, end, $0)
        }
    }

    private static func bytes(_ make: (UnsafeMutablePointer<Int>) -> UnsafeMutablePointer<UInt8>?) -> [UInt8] {
        var count = 0
        guard let start = unsafe make(&count) else { return [] }
        defer { unsafe free(start) }
        return unsafe Array(UnsafeBufferPointer(start: start, count: count))
    }
}

/// Writes bytes to a file for the time of a test.
func withFile<Result>(_ bytes: [UInt8], _ test: (String) throws -> Result) throws -> Result {
    let url = FileManager.default.temporaryDirectory.appending(path: "tern-tls-\(UUID().uuidString)")
    try Data(bytes).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    return try test(url.path)
}

extension TLSOptions {
    /// Options that trust only these certificates.
    static func only(_ anchors: TestIdentity...) -> TLSOptions {
        var options = TLSOptions()
        options.anchors = .only(anchors.map(\.der))
        return options
    }
}
#endif
