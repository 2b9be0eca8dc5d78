#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// What one cookie must keep to by itself, whoever made it.

extension Cookie {
    /// `hasPath`: the path was given, and is not the default one.
    func checkPrefixes(hasPath: Bool) throws(Cookie.Refusal) {
        if name.isEmpty {
            if Self.hasPrefix(value, "__secure-") || Self.hasPrefix(value, "__host-") {
                throw .hiddenPrefix
            }
        } else if Self.hasPrefix(name, "__secure-") {
            if !isSecure { throw .securePrefix }
        } else if Self.hasPrefix(name, "__host-") {
            guard isSecure, isHostOnly, hasPath, path == "/" else { throw .hostPrefix }
        }
    }

    /// Returns whether this cookie has no name and a value that, once sent, reads like a cookie with the other's name.
    func poses(asNameOf other: Cookie) -> Bool {
        guard name.isEmpty, let equals = value.utf8.firstIndex(of: UInt8(ascii: "=")) else { return false }
        let posed = String(value[..<equals])
        return Self.bytes(posed, encoding).elementsEqual(Self.bytes(other.name, other.encoding))
    }

    private static func hasPrefix(_ text: String, _ prefix: String) -> Bool {
        text.utf8.lazy.map(\.asciiLowercased).starts(with: prefix.utf8)
    }

    /// What a field would have been refused for, or could not have held: a cookie made by hand can be anything.
    func checkForm() throws(Refusal) {
        let separator = UInt8(ascii: ";")
        // The default path is that of the URL, which can contain a semicolon. The path is not sent.
        let isWellFormed =
            [name, value, domain, path].allSatisfy { text in
                text.utf8.allSatisfy { !$0.isASCIIControl || $0 == 0x09 }
            } && [name, value, domain].allSatisfy { !$0.utf8.contains(separator) }
            && !name.utf8.contains(UInt8(ascii: "=")) && !domain.isEmpty && path.utf8.first == Reference.slash
        if !isWellFormed { throw .malformed }
        if name.isEmpty, value.isEmpty { throw .empty }
        if encoding == .latin1, (name + value + path).unicodeScalars.contains(where: { $0.value > 0xFF }) {
            throw .malformed
        }
        if Self.byteCount(name, encoding) + Self.byteCount(value, encoding) > SetCookieField.maximumSize {
            throw .tooLarge
        }
        if sameSite == SameSite.none, !isSecure { throw .sameSiteNone }
    }

    /// Returns the same cookie with the canonical form of its host.
    func withCanonicalDomain() throws(Refusal) -> Cookie {
        // The refusal's reason names the domain as a possible cause.
        guard let host = try? CanonicalHost(domain) else { throw .malformed }
        if host.text == domain { return self }
        return Cookie(
            name: name, value: value, domain: host.text, isHostOnly: isHostOnly, path: path, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires, creation: creation,
            encoding: encoding)
    }

    /// The same cookie, ended by a date at the latest; a creation that is not known becomes the one given.
    func endingBy(_ latest: Date, creation now: Date) -> Cookie {
        Cookie(
            name: name, value: value, domain: domain, isHostOnly: isHostOnly, path: path, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires.map { min($0, latest) },
            creation: creation == .distantPast ? now : creation, encoding: encoding)
    }

    /// What says nothing is taken for Lax (RFC 6265bis §5.6.7).
    func isSentAcrossSites(_ method: Request.Method) -> Bool {
        switch sameSite {
        case .strict: false
        case .lax, nil: method.isSafe
        case .some(SameSite.none): true
        }
    }
}
