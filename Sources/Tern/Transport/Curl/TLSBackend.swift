#if os(Linux)
import CTernCurl
import CTernTLS
import FoundationEssentials

/// The TLS library of the libcurl in use.
struct TLSBackend {
    /// The name that libcurl reports: `OpenSSL/3.0.19`, `GnuTLS/3.7.9`.
    let name: String
    /// A Boolean value that indicates whether the library is OpenSSL and its functions were found in this process.
    let isOpenSSL: Bool

    static let current: TLSBackend = {
        let name = unsafe tern_curl_tls_version().map { unsafe String(cString: $0) } ?? "none"
        // The text can contain several names. Those in parentheses are not in use.
        let used = name.split(separator: " ").first { !$0.hasPrefix("(") }.map { String($0) } ?? name
        return TLSBackend(name: used, isOpenSSL: major(of: used).map { tern_tls_load($0) == 0 } ?? false)
    }()

    /// Returns 1 or 3; nil if the library is not OpenSSL or its functions are not known.
    static func major(of version: String) -> Int32? {
        guard version.hasPrefix("OpenSSL/") else { return nil }
        return switch version.dropFirst(8) {
        case let number where number.hasPrefix("3."): 3
        case let number where number.hasPrefix("1.1."): 1
        default: nil
        }
    }
}

extension TrustPolicy {
    /// The pins in libcurl's own form; nil if libcurl cannot express them. It supports only pins of public keys of the
    /// server's own certificate that always apply.
    var libcurlPins: String? {
        guard let pins, !pins.isEmpty, pinScope == .leaf, !isReportOnly, pinsExpire == nil else { return nil }
        var texts: [String] = []
        for pin in pins {
            guard case .key(let hash) = pin.content else { return nil }
            texts.append("sha256//\(hash.base64EncodedString())")
        }
        return texts.joined(separator: ";")
    }
}
#endif
