import ArgumentParser
// The escapes of URLs.
import Foundation
import Tern
import TernTransfers

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// URLs as people type them.
enum URLText {
    /// Adds a scheme to a URL that has none: `http` for this machine and for addresses, which seldom have a certificate,
    /// and `https` for every other host. `:8080/x` is `localhost:8080/x`, as in HTTPie.
    static func complete(_ text: String) -> String {
        if hasScheme(text) { return text }
        if text.hasPrefix(":") {
            let rest = text.dropFirst()
            return "http://localhost" + (rest.first?.isASCIIDigit ?? false ? ":" : "") + rest
        }
        return (isLocal(host(text)) ? "http://" : "https://") + text
    }

    /// Returns whether a text begins with a scheme. `localhost:8080/x` and `a/?u=http://b` do not.
    static func hasScheme(_ text: String) -> Bool {
        guard let separator = text.firstRange(of: "://") else { return false }
        return text[..<separator.lowerBound].allSatisfy { character in
            character.isASCII && (character.isLetter || character.isNumber || "+-.".contains(character))
        }
    }

    /// Returns the host of a URL without a scheme.
    private static func host(_ text: String) -> Substring {
        var host = text[...].prefix { !"/?#".contains($0) }
        if let at = host.lastIndex(of: "@") { host = host[host.index(after: at)...] }
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return host[...end] }
        return host.prefix { $0 != ":" }
    }

    private static func isLocal(_ host: Substring) -> Bool {
        let name = host.lowercased()
        if name == "localhost" || name.hasSuffix(".localhost") || name.hasPrefix("[") { return true }
        return name.contains(where: \.isASCIIDigit) && name.allSatisfy { $0.isASCIIDigit || $0 == "." }
    }

    /// Returns the URL for a message, without the user, the password and the values of the query.
    static func shown(_ text: String) -> String {
        // `try?`: a text that is no URL is shown up to where a secret could begin.
        if let request = try? Request(.get, complete(text)) { return Terminal.plain(request.shownURL) }
        let end = text.lastIndex(of: "@").map { text.index(after: $0) } ?? text.startIndex
        return Terminal.plain(String(text[end...].prefix { $0 != "?" }))
    }

    /// Returns the `user:password` of a URL, and the URL without them; nil if it names no user.
    static func splittingUser(_ text: String) -> (user: String, url: String)? {
        guard var parts = URLComponents(string: text), let user = parts.user else { return nil }
        let password = parts.password ?? ""
        (parts.user, parts.password) = (nil, nil)
        return parts.string.map { ("\(user):\(password)", $0) }
    }

    /// Returns the scheme, host and port of a URL, or the text if it is none.
    static func origin(_ text: String) -> String {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), let host = url.host()?.lowercased()
        else {
            return text
        }
        return "\(scheme)://\(host):\(url.port ?? (scheme == "http" ? 80 : 443))"
    }

    /// Returns a name for the file of a URL: the last part of its path, without characters that a name cannot have.
    static func fileName(_ text: String) -> String {
        let path = URL(string: text)?.path(percentEncoded: true) ?? ""
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last?.removingPercentEncoding ?? ""
        // Removes what would make a hidden file, a command-line option or a home folder.
        let plain = String(
            Terminal.plain(name).drop { ".-~".contains($0) }.map { $0 == "/" || $0 == "\u{FFFD}" ? "_" : $0 })
        let isUsable = !plain.allSatisfy { $0 == "." || $0 == "_" } && plain.utf8.count <= 200
        return isUsable ? plain : "download"
    }
}

/// Paths as people type them, and as servers suggest them.
enum PathText {
    /// Returns the URL of a file. `URL(filePath:)` expands `~` and `~name` at the start to a home folder. The shell has
    /// already done so for the user, and a server must not be able to.
    static func url(_ path: String) -> URL {
        URL(filePath: path.hasPrefix("~") ? "./" + path : path, directoryHint: .notDirectory)
    }

    /// The current folder with a slash behind it; empty if it was removed, so that a path in it fails.
    static var currentFolder: String {
        let path = FileManager.default.currentDirectoryPath
        return path.isEmpty || path.hasSuffix("/") ? path : path + "/"
    }

    /// Returns whether a path names standard output. A download to `/dev/stdout` would replace that link with a file.
    static func isStandardOutput(_ path: String) -> Bool { ["-", "/dev/stdout", "/dev/fd/1"].contains(path) }

    /// Throws an error if a path is empty.
    static func check(_ path: String?) throws {
        if let path, path.isEmpty { throw ValidationError("-o needs the name of a file or folder") }
    }

    /// Throws an error if a path is not that of a file in a folder that is there.
    static func checkFile(_ path: String, of option: String) throws {
        guard !path.isEmpty, case .file(let file) = try place(path) else {
            throw ValidationError("\(option) needs the name of a file")
        }
        try FileText.checkFolder(of: file)
    }

    /// A place that `-o` names.
    enum Place: Equatable {
        /// The standard output.
        case output
        /// A file that is there or not.
        case file(String)
        /// A folder that is there. Its path ends with a slash.
        case folder(String)
        /// A device or a pipe, such as `/dev/null`.
        case device(String)
    }

    /// Returns the place of a path. A path that ends with a slash is that of a folder.
    ///
    /// - Throws: `FileText.Failure` if there is no such folder.
    static func place(_ path: String) throws(FileText.Failure) -> Place {
        if isStandardOutput(path) { return .output }
        let isNamedFolder = path.hasSuffix("/")
        // The system finds no file where a slash follows its name.
        let name = isNamedFolder ? String(path.dropLast()) : path
        guard let kind = name.isEmpty ? .folder : FileText.kind(of: name) else {
            if isNamedFolder { throw FileText.Failure(path: path, code: ENOENT) }
            return .file(path)
        }
        switch kind {
        case .folder: return .folder(isNamedFolder ? path : path + "/")
        case _ where isNamedFolder: throw FileText.Failure(path: path, code: ENOTDIR)
        case .file: return .file(path)
        case .device: return .device(path)
        }
    }
}

/// Numbers of bytes as curl and wget read them: `500k` is 500 · 1,024, and `1M` 1,024 · 1,024.
enum SizeText {
    private static let units: [Character: Double] = ["k": 1_024, "m": 1_048_576, "g": 1_073_741_824]

    static func bytes(_ text: String) throws -> Int {
        var number = text[...]
        var unit = 1.0
        if let last = text.lowercased().last, let found = units[last] {
            number = number.dropLast()
            unit = found
        }
        guard let value = Double(number), value.isFinite, value > 0, value * unit >= 1, value * unit < 1e15 else {
            throw ValidationError("'\(text)' is no number of bytes; write 500k or 1M")
        }
        return Int(value * unit)
    }
}

/// Digests of the form `sha256:9f86…`.
enum DigestText {
    static func digest(_ text: String) throws -> FileDigest {
        guard let colon = text.firstIndex(of: ":"),
            let algorithm = FileDigest.Algorithm(rawValue: text[..<colon].lowercased().filter { $0 != "-" })
        else {
            let names = FileDigest.Algorithm.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("'\(text)' is no digest; write FUNCTION:DIGEST, with \(names)")
        }
        let digest = FileDigest(algorithm, String(text[text.index(after: colon)...]))
        guard digest.bytes.count == algorithm.length else {
            throw ValidationError("'\(text)' is no \(algorithm.rawValue) digest: it has \(2 * algorithm.length) digits")
        }
        return digest
    }
}

extension Request {
    /// The URL without the user, the password and the values of the query.
    fileprivate var shownURL: String {
        let text = description
        return text.firstIndex(of: " ").map { String(text[text.index(after: $0)...]) } ?? text
    }
}

extension Character {
    /// Whether the character is one of 0 to 9.
    var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}

extension PathText.Place? {
    /// The options of curl for the same place.
    ///
    /// - Parameter isNamed: Whether the server names the file.
    func curlWords(isNamed: Bool) -> [CurlText.Word] {
        let name = [CurlText.Word("--remote-name")] + (isNamed ? [CurlText.Word("--remote-header-name")] : [])
        return switch self {
        case .file(let path)?, .device(let path)?: [CurlText.Word("--output", path)]
        case .folder(let path)?: name + [CurlText.Word("--output-dir", path)]
        case .output?: []
        case nil: name
        }
    }
}
