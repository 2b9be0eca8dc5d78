import ArgumentParser
// The escapes of URLs.
import Foundation
import TernTransfers

/// URLs as people type them.
enum URLText {
    /// Adds `https://` to a URL without a scheme. `localhost:8080/x` has none.
    static func complete(_ text: String) -> String {
        if text.hasPrefix("http://") || text.hasPrefix("https://") { return text }
        guard let separator = text.firstRange(of: "://") else { return "https://" + text }
        let isScheme = text[..<separator.lowerBound].allSatisfy { character in
            character.isASCII && (character.isLetter || character.isNumber || "+-.".contains(character))
        }
        return isScheme ? text : "https://" + text
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

    /// Throws an error if a path is empty or ends with a slash.
    static func check(_ path: String?) throws {
        if let path, path.isEmpty || path.hasSuffix("/") {
            throw ValidationError("-o needs the name of a file, not '\(path)'")
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
