#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Foundation
#endif

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
