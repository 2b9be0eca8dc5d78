#if canImport(Darwin)
import Foundation
import Security

/// Trust in a server by a policy, and by authorities that were given in place of the system's.
struct URLSessionTrust {
    private let policy: TrustPolicy
    /// The session's authorities, in DER form; nil for the system's.
    private let authorities: [Data]?

    init(_ policy: TrustPolicy, authorities: [Data]?) {
        self.policy = policy
        self.authorities = authorities
    }

    /// Why the server is not trusted; nil when it is. May go to the network for a missing certificate: not to be called
    /// with a lock held. `report` is called with what is to be told of a server that is trusted all the same.
    func refusal(of trust: SecTrust, host: String, report: (String) -> Void) -> TransferFailure? {
        SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, policy.checksHostName ? host as CFString : nil))
        setAnchors(trust)
        var error: CFError?
        if policy.anchors != .none, !(unsafe SecTrustEvaluateWithError(trust, &error)) {
            let reason = error.map { CFErrorCopyDescription($0) as String } ?? "no reason is known"
            return TransferFailure(
                .untrustedServer, "the certificate of \(host) is not trusted: \(reason)", underlying: error)
        }
        // After the evaluation: the chain that was verified, and not all that was sent.
        let chain = (SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []).compactMap { certificate in
            // What the system took for a certificate is one for us too; if not, no pin fits it.
            try? Certificate(der: SecCertificateCopyData(certificate) as Data)
        }
        switch policy.verdict(on: chain, of: host, now: Date()) {
        case .accepted:
            return nil
        case .reported(let text):
            report(text)
            return nil
        case .refused(let reason):
            return TransferFailure(.pinMismatch, reason)
        }
    }

    private func setAnchors(_ trust: SecTrust) {
        let given: [Certificate]
        var isOnly = true
        switch policy.anchors {
        case .none:
            return
        case .standard:
            guard authorities != nil else { return }
            given = []
        case .standardAnd(let certificates):
            given = certificates
            isOnly = authorities != nil
        case .only(let certificates):
            given = certificates
        }
        var anchors = given.map(\.der)
        if case .only = policy.anchors {} else { anchors += authorities ?? [] }
        let certificates = anchors.compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
        SecTrustSetAnchorCertificates(trust, certificates as CFArray)
        SecTrustSetAnchorCertificatesOnly(trust, isOnly)
    }
}

extension ClientIdentity {
    /// The identity as the system takes it; nil when the file or its password is not right.
    var credential: URLCredential? {
        guard case .pkcs12(let bytes) = content else { return nil }
        var items: CFArray?
        var options: [String: Any] = [kSecImportExportPassphrase as String: password ?? ""]
        #if os(macOS)
        // There it would go into the user's keychain, with each handshake once more. Elsewhere nothing is kept anyway.
        options[kSecImportToMemoryOnly as String] = true
        #endif
        guard unsafe SecPKCS12Import(bytes as CFData, options as CFDictionary, &items) == errSecSuccess,
            let first = (items as? [[String: Any]])?.first, let found = first[kSecImportItemIdentity as String]
        else { return nil }
        let identity = found as CFTypeRef
        guard CFGetTypeID(identity) == SecIdentityGetTypeID() else { return nil }
        // The type was looked at: a conditional cast to a type of Core Foundation always succeeds.
        return URLCredential(
            identity: unsafe unsafeDowncast(identity, to: SecIdentity.self), certificates: nil, persistence: .none)
    }
}
#endif
