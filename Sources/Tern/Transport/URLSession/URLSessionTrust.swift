#if canImport(Darwin)
import Foundation
import Security

/// Trust in a server by authorities that were given, and no others.
struct URLSessionTrust {
    private let anchors: [SecCertificate]

    init(_ certificates: [Data]) {
        anchors = certificates.compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
    }

    /// Why the server is not trusted; nil when it is. May go to the network for a missing certificate: not to be called
    /// with a lock held.
    func refusal(of trust: SecTrust) -> (any Error)? {
        SecTrustSetAnchorCertificates(trust, anchors as CFArray)
        SecTrustSetAnchorCertificatesOnly(trust, true)
        var error: CFError?
        if unsafe SecTrustEvaluateWithError(trust, &error) { return nil }
        if let error { return error }
        return URLError(.serverCertificateUntrusted)
    }
}
#endif
