#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Foundation
#endif

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
