#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Foundation
#endif

extension Session.Configuration {
    /// The origins that receive header fields with a secret.
    ///
    /// ```swift
    /// configuration.headers["Authorization"] = "Bearer \(token)"
    /// configuration.secretHeaderOrigins = ["https://api.example.com"]
    /// ```
    public enum HeaderOrigins: Sendable, Hashable, ExpressibleByArrayLiteral {
        /// The origins of these URLs, such as `https://api.example.com`. Only the scheme, host and port count, not the
        /// path.
        case only([String])
        /// Every origin that a request names. A redirect to another origin still removes the fields.
        case all

        /// Creates the value from the origins of these URLs.
        public init(arrayLiteral urls: String...) { self = .only(urls) }
    }
}

/// Origins by their canonical forms. Pure.
struct OriginSet: Sendable {
    /// nil for every origin.
    private let origins: Set<String>?
    /// The reason why a URL names no origin; nil if each does.
    let problem: String?

    init(_ scope: Session.Configuration.HeaderOrigins) {
        guard case .only(let urls) = scope else {
            (origins, problem) = (nil, nil)
            return
        }
        var named: Set<String> = []
        var problem: String?
        for url in urls {
            do throws(Target.Problem) {
                named.insert(try Target(absolute: url).origin)
            } catch {
                problem = error.reason
            }
        }
        (origins, self.problem) = (named, problem)
    }

    var isEveryOrigin: Bool { origins == nil }

    func contains(_ target: Target) -> Bool { origins?.contains(target.origin) ?? true }
}

/// Selects the header fields that a session adds to a request, by the request's origin. Pure. A class, because each
/// request asks for its fields, and a copy has many references.
final class SessionHeaders: Sendable {
    private let all: Headers
    /// The fields without a secret.
    private let withoutSecrets: Headers
    /// The origins that receive all fields.
    private let origins: OriginSet
    /// The reason why no request can be sent with these fields; nil when requests can.
    let problem: String?

    init(_ headers: Headers, secretsTo scope: Session.Configuration.HeaderOrigins) {
        all = headers
        withoutSecrets = Headers(headers.filter { !Self.isSecretForOrigins($0) })
        let secret = withoutSecrets.count == headers.count ? nil : headers.first(where: Self.isSecretForOrigins)
        origins = OriginSet(secret == nil ? .all : scope)
        if let secret, case .only(let urls) = scope, urls.isEmpty {
            problem =
                "the header \(secret.name.printable(limit: 80)) holds a secret, and secretHeaderOrigins does not "
                + "say which origins it is for"
        } else {
            problem = OriginSet(scope).problem.map { "secretHeaderOrigins: \($0)" }
        }
    }

    /// Returns whether a field is sent to the named origins only: it holds a secret and is not `Proxy-Authorization`,
    /// which is meant for the proxy and never sent to an origin.
    private static func isSecretForOrigins(_ field: Headers.Field) -> Bool {
        Headers.isSecret(field.name) && !Headers.namesMatch(field.name, "Proxy-Authorization")
    }

    /// Whether a field holds a secret.
    var haveSecrets: Bool { withoutSecrets.count != all.count }

    /// The fields for every request; nil if they depend on its origin. Known without a copy of its target.
    var forEveryOrigin: Headers? {
        @inline(never) get { origins.isEveryOrigin ? all : nil }
    }

    /// Returns the fields for a request to a URL.
    @inline(never)
    func fields(for target: Target) -> Headers {
        origins.contains(target) ? all : withoutSecrets
    }
}

/// The default value of `User-Agent`: the program with its version if it has one, the system, and Tern
/// (RFC 9110 §10.1.5).
enum UserAgent {
    /// The value for this process, computed once.
    static let current = text(program: programName, version: programVersion, system: systemName)

    /// Returns `program/version (system) Tern/version`.
    static func text(program: String?, version: String?, system: String?) -> String {
        var words: [String] = []
        if let program = program.map(token), !program.isEmpty {
            let version = version.map(token) ?? ""
            words.append(version.isEmpty ? program : "\(program)/\(version)")
        }
        // In a comment, parentheses and backslashes have meanings of their own.
        if let system { words.append("(\(Transliteration.ascii(system).filter { !"()\\".contains($0) }))") }
        words.append("Tern/\(TernPackage.version)")
        return words.joined(separator: " ")
    }

    /// Returns a text as a token: transliterated, with hyphens for spaces, and other characters percent-encoded.
    private static func token(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in Transliteration.ascii(text).utf8 {
            switch byte {
            case UInt8(ascii: " "): result.append(UInt8(ascii: "-"))
            case _ where ByteSet.token.contains(byte): result.append(byte)
            default: result.appendPercentEncoded(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    #if canImport(Darwin)
    private static var programName: String? {
        Bundle.main.infoDictionary?["CFBundleExecutable"] as? String ?? Bundle.main.bundleIdentifier
            ?? ProcessInfo.processInfo.processName
    }

    private static var programVersion: String? {
        let facts = Bundle.main.infoDictionary
        return facts?["CFBundleShortVersionString"] as? String ?? facts?["CFBundleVersion"] as? String
    }

    private static var systemName: String? {
        let version = ProcessInfo.processInfo.operatingSystemVersion
        #if os(macOS)
        let name = "macOS"
        #elseif os(tvOS)
        let name = "tvOS"
        #elseif os(watchOS)
        let name = "watchOS"
        #elseif os(visionOS)
        let name = "visionOS"
        #else
        let name = "iOS"
        #endif
        return "\(name) \(version.majorVersion).\(version.minorVersion)"
    }
    #else
    private static var programName: String? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe buffer.withUnsafeMutableBytes { bytes -> Int in
            guard let start = bytes.baseAddress else { return 0 }
            return unsafe readlink("/proc/self/exe", start, bytes.count)
        }
        guard count > 0 else { return nil }
        let path = String(decoding: buffer[..<count], as: UTF8.self)
        return path.split(separator: "/").last.map { String($0) }
    }

    /// nil, because an executable has no version here.
    private static var programVersion: String? { nil }

    /// The name without the kernel's version, which a server does not need.
    private static var systemName: String? { "Linux" }
    #endif
}

/// The default value of `Accept-Language`: the user's first six languages, the first with the weight 1 and each further
/// one a tenth less, down to 0.5 (RFC 9110 §12.5.4).
enum AcceptLanguage {
    /// The value for this process, computed once; nil if no language is set, as on most servers.
    static let current = text(languages)

    static func text(_ languages: [String]) -> String? {
        let weights = ["1", "0.9", "0.8", "0.7", "0.6", "0.5"]
        let weighted = zip(languages, weights).map { "\($0);q=\($1)" }
        return weighted.isEmpty ? nil : weighted.joined(separator: ", ")
    }

    #if canImport(Darwin)
    private static var languages: [String] { Locale.preferredLanguages }
    #else
    private static var languages: [String] {
        languages { name in unsafe getenv(name).map { unsafe String(cString: $0) } }
    }
    #endif

    /// Returns the languages in the variables that POSIX and GNU gettext define. `LANGUAGE` is a list, and counts only
    /// if a locale is set.
    static func languages(_ variable: (String) -> String?) -> [String] {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(variable).first { !$0.isEmpty }
        guard let locale, let language = tag(locale) else { return [] }
        let list = (variable("LANGUAGE") ?? "").split(separator: ":").compactMap { tag(String($0)) }
        var result: [String] = []
        for tag in list.isEmpty ? [language] : list where !result.contains(tag) { result.append(tag) }
        return result
    }

    /// Returns `de-AT` for `de_AT.UTF-8@euro` (BCP 47); nil for `C` and `POSIX`, the locales without a language.
    private static func tag(_ locale: String) -> String? {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        if name.isEmpty || name == "C" || name == "POSIX" { return nil }
        let tag = name.replacing("_", with: "-")
        let isTag = tag.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") }
        return isTag ? String(tag) : nil
    }
}

/// Transliterates text to ASCII. FoundationEssentials has no such function, and that of the C library depends on the
/// locale. A table covers the Latin alphabets of Europe. Other characters are percent-encoded as UTF-8, so that
/// different names stay different.
enum Transliteration {
    /// Returns a text of ASCII characters without control characters.
    static func ascii(_ text: String) -> String {
        var result: [UInt8] = []
        for character in text {
            if let byte = character.asciiValue, !byte.isASCIIControl {
                result.append(byte)
            } else if let letters = letters[character] {
                result += letters.utf8
            } else {
                for byte in String(character).utf8 { result.appendPercentEncoded(byte) }
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The replacements. Characters compare by canonical equivalence, so a letter with a combining mark equals the
    /// composed one.
    private static let letters: [Character: String] = {
        let groups = [
            "A": "ÀÁÂÃĀĂĄǍ", "AE": "ÄÆ", "AA": "Å", "C": "ÇĆĈĊČ", "D": "ÐĎĐ", "E": "ÈÉÊËĒĔĖĘĚ", "G": "ĜĞĠĢ",
            "H": "ĤĦ", "I": "ÌÍÎÏĨĪĬĮİ", "J": "Ĵ", "K": "Ķ", "L": "ĹĻĽĿŁ", "N": "ÑŃŅŇ", "O": "ÒÓÔÕŌŎŐ",
            "OE": "ÖØŒ", "R": "ŔŖŘ", "S": "ŚŜŞŠȘ", "SS": "ẞ", "T": "ŢŤŦȚ", "TH": "Þ", "U": "ÙÚÛŨŪŬŮŰŲ", "UE": "Ü",
            "W": "Ŵ", "Y": "ÝŶŸ", "Z": "ŹŻŽ", "a": "àáâãāăąǎ", "ae": "äæ", "aa": "å", "c": "çćĉċč", "d": "ðďđ",
            "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ", "i": "ìíîïĩīĭįı", "j": "ĵ", "k": "ķ", "l": "ĺļľŀł",
            "n": "ñńņňŉ", "o": "òóôõōŏő", "oe": "öøœ", "r": "ŕŗř", "s": "śŝşšș", "ss": "ß", "t": "ţťŧț", "th": "þ",
            "u": "ùúûũūŭůűų", "ue": "ü", "w": "ŵ", "y": "ýŷÿ", "z": "źżž", "-": "‐‑‒–—", "'": "‘’", "\"": "“”",
            "...": "…", " ": "\u{A0}",
        ]
        var table: [Character: String] = [:]
        for (letters, marked) in groups {
            for character in marked { table[character] = letters }
        }
        return table
    }()
}
